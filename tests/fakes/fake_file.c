/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_file.c - reads and writes decided at the call, completed within it or by a crew.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fake_file.h"
#include "ssc/nfs42.h"

static __thread bool is_worker;

/* ---- the crew ---- */

struct late {
	struct late *next;
	struct fake_file *file;
	uint32_t status, bytes;
	bool eof;
};

_Static_assert(sizeof(struct late) <= sizeof(((struct ssc_copy_io *)0)->room), "fits");

struct fake_crew {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct late *waiting;
	unsigned int n_waiting;
	bool is_held, is_stopping;
	uint64_t random;
	unsigned int n;
	pthread_t thread[16];
};

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void complete(struct fake_file *f, struct ssc_copy_io *io, uint32_t status, uint32_t bytes,
		     bool eof)
{
	pthread_mutex_lock(&f->lock);
	f->n_running--;
	pthread_mutex_unlock(&f->lock);
	io->complete(io, status, bytes, eof);
}

static struct late *choose_locked(struct fake_crew *crew)
{
	unsigned int i = next_random(&crew->random) % crew->n_waiting;
	struct late **link = &crew->waiting, *late;

	while (i-- > 0)
		link = &(*link)->next;
	late = *link;
	*link = late->next;
	crew->n_waiting--;
	return late;
}

static void *crew_main(void *arg)
{
	struct fake_crew *crew = arg;

	pthread_mutex_lock(&crew->lock);
	for (;;) {
		struct ssc_copy_io *io;
		struct late late;

		while ((crew->n_waiting == 0 || crew->is_held) && !crew->is_stopping)
			pthread_cond_wait(&crew->cond, &crew->lock);
		if (crew->n_waiting == 0)
			break;
		io = (struct ssc_copy_io *)((uint8_t *)choose_locked(crew) -
					    offsetof(struct ssc_copy_io, room));
		late = *(struct late *)io->room;
		pthread_mutex_unlock(&crew->lock);
		complete(late.file, io, late.status, late.bytes, late.eof);
		pthread_mutex_lock(&crew->lock);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

struct fake_crew *fake_crew_new(unsigned int n, uint64_t seed)
{
	struct fake_crew *crew = calloc(1, sizeof(*crew));

	assert(crew != NULL && n <= sizeof(crew->thread) / sizeof(crew->thread[0]));
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->cond, NULL);
	crew->random = seed;
	for (crew->n = 0; crew->n < n; crew->n++)
		if (pthread_create(&crew->thread[crew->n], NULL, crew_main, crew) != 0)
			abort();
	return crew;
}

void fake_crew_free(struct fake_crew *crew)
{
	unsigned int i;

	if (crew == NULL)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->is_stopping = true;
	pthread_cond_broadcast(&crew->cond);
	pthread_mutex_unlock(&crew->lock);
	for (i = 0; i < crew->n; i++)
		pthread_join(crew->thread[i], NULL);
	pthread_cond_destroy(&crew->cond);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
}

void fake_crew_hold(struct fake_crew *crew, bool is_held)
{
	pthread_mutex_lock(&crew->lock);
	crew->is_held = is_held;
	pthread_cond_broadcast(&crew->cond);
	pthread_mutex_unlock(&crew->lock);
}

unsigned int fake_crew_waiting(struct fake_crew *crew)
{
	unsigned int n;

	pthread_mutex_lock(&crew->lock);
	n = crew->n_waiting;
	pthread_mutex_unlock(&crew->lock);
	return n;
}

static void answer(struct fake_file *f, struct ssc_copy_io *io, uint32_t status, uint32_t bytes,
		   bool eof)
{
	struct fake_crew *crew = f->crew;
	struct late *late = (struct late *)io->room;

	if (crew == NULL) {
		complete(f, io, status, bytes, eof);
		return;
	}
	*late = (struct late){.file = f, .status = status, .bytes = bytes, .eof = eof};
	pthread_mutex_lock(&crew->lock);
	late->next = crew->waiting;
	crew->waiting = late;
	crew->n_waiting++;
	pthread_cond_broadcast(&crew->cond); /* a signal to many may be lost: glibc bug 25847 */
	pthread_mutex_unlock(&crew->lock);
}

/* ---- reads and writes ---- */

static bool contains(const struct ssc_copy_io *io, uint64_t offset)
{
	return offset >= io->offset && offset - io->offset < io->len;
}

static void begin_locked(struct fake_file *f, const struct ssc_copy_io *io)
{
	f->n_misplaced += f->file.is_blocking && !is_worker;
	if (++f->n_running > f->peak_running)
		f->peak_running = f->n_running;
	if (io->len > f->longest_io)
		f->longest_io = io->len;
}

/* What the script says before any byte moves. */
static uint32_t status_locked(struct fake_file *f, const struct ssc_copy_io *io, uint64_t fail_at)
{
	if (contains(io, f->delay_at) && f->n_delays > 0) {
		f->n_delays -= f->n_delays != UINT32_MAX;
		return SSC_NFS4ERR_DELAY;
	}
	return io->offset == fail_at ? f->fail_status : SSC_NFS4_OK;
}

static uint32_t len_locked(struct fake_file *f, const struct ssc_copy_io *io, uint64_t fail_at)
{
	uint32_t len = io->len;

	if (contains(io, fail_at))
		len = (uint32_t)(fail_at - io->offset);
	if (f->random != 0 && next_random(&f->random) % 4 == 0)
		len = 1 + (uint32_t)(next_random(&f->random) % len);
	return len;
}

static void fake_read(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	struct fake_file *f = (struct fake_file *)file;
	uint32_t status, len = 0;
	bool eof = false;

	assert(io->len > 0 && !io->is_write);
	pthread_mutex_lock(&f->lock);
	begin_locked(f, io);
	f->n_reads++;
	if (contains(io, f->shrink_at) && f->size > f->shrink_to)
		f->size = f->shrink_to;
	status = status_locked(f, io, f->fail_read_at);
	if (status == SSC_NFS4_OK && io->offset < f->size) {
		len = len_locked(f, io, f->fail_read_at);
		if (len > f->size - io->offset)
			len = (uint32_t)(f->size - io->offset);
		memcpy(io->data, f->data + io->offset, len);
		f->bytes_read += len;
		if (io->offset + len > f->read_end)
			f->read_end = io->offset + len;
	}
	eof = status == SSC_NFS4_OK && !f->hides_eof && io->offset + len >= f->size;
	pthread_mutex_unlock(&f->lock);
	answer(f, io, status, len, eof);
}

static void grow_locked(struct fake_file *f, uint64_t size)
{
	if (size >= f->room) {
		uint64_t room = 2 * size + 1; /* never none, so that the pointers are good */

		f->data = realloc(f->data, room);
		f->was_written = realloc(f->was_written, room);
		assert(f->data != NULL && f->was_written != NULL);
		memset(f->data + f->room, 0, room - f->room);
		memset(f->was_written + f->room, 0, room - f->room);
		f->room = room;
	}
	if (size > f->size)
		f->size = size;
}

static void fake_write(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	struct fake_file *f = (struct fake_file *)file;
	uint32_t status, len = 0;

	assert(io->len > 0 && io->is_write);
	pthread_mutex_lock(&f->lock);
	begin_locked(f, io);
	f->n_writes++;
	status = status_locked(f, io, f->fail_write_at);
	if (status == SSC_NFS4_OK && contains(io, f->zero_write_at) && f->n_zero_writes > 0) {
		f->n_zero_writes--;
	} else if (status == SSC_NFS4_OK) {
		len = len_locked(f, io, f->fail_write_at);
		grow_locked(f, io->offset + len);
		memcpy(f->data + io->offset, io->data, len);
		memset(f->was_written + io->offset, 1, len);
		f->bytes_written += len;
		if (io->offset + len > f->write_end)
			f->write_end = io->offset + len;
	}
	pthread_mutex_unlock(&f->lock);
	answer(f, io, status, len, false);
}

/* ---- the others ---- */

static uint32_t fake_next_data(struct ssc_copy_file *file, uint64_t offset, uint64_t *start,
			       uint64_t *end)
{
	struct fake_file *f = (struct fake_file *)file;
	uint32_t status;
	unsigned int i;

	pthread_mutex_lock(&f->lock);
	f->n_misplaced += f->file.is_blocking && !is_worker;
	f->n_next_data++;
	status = f->next_data_status;
	*start = *end = offset > f->size ? offset : f->size;
	for (i = 0; i < f->n_extents; i++) {
		if (f->extents[i].end <= offset || f->extents[i].start >= f->size)
			continue;
		*start = f->extents[i].start > offset ? f->extents[i].start : offset;
		*end = f->extents[i].end < f->size ? f->extents[i].end : f->size;
		break;
	}
	pthread_mutex_unlock(&f->lock);
	return status;
}

static uint32_t fake_punch(struct ssc_copy_file *file, uint64_t offset, uint64_t len)
{
	struct fake_file *f = (struct fake_file *)file;
	uint32_t status;

	pthread_mutex_lock(&f->lock);
	f->n_misplaced += f->file.is_blocking && !is_worker;
	f->n_punches++;
	status = f->punch_status;
	assert(offset + len <= f->size);
	if (status == SSC_NFS4_OK) {
		memset(f->data + offset, 0, len);
		memset(f->was_written + offset, 2, len);
	}
	pthread_mutex_unlock(&f->lock);
	return status;
}

static void fake_commit(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	struct fake_file *f = (struct fake_file *)file;
	uint32_t status;

	assert(io->offset == 0 && io->len == 1 && io->data == NULL);
	pthread_mutex_lock(&f->lock);
	begin_locked(f, io);
	f->n_commits++;
	assert(f->n_running == 1); /* nothing is in flight any more */
	status = f->n_commit_delays > 0 ? SSC_NFS4ERR_DELAY : f->commit_status;
	if (f->n_commit_delays > 0 && f->n_commit_delays != UINT32_MAX)
		f->n_commit_delays--;
	pthread_mutex_unlock(&f->lock);
	answer(f, io, status, 0, false);
}

void fake_file_init(struct fake_file *f, uint64_t size)
{
	*f = (struct fake_file){
		.ops = {.read = fake_read, .write = fake_write},
		.fail_read_at = FAKE_FILE_NEVER,
		.fail_write_at = FAKE_FILE_NEVER,
		.delay_at = FAKE_FILE_NEVER,
		.zero_write_at = FAKE_FILE_NEVER,
		.shrink_at = FAKE_FILE_NEVER,
		.fail_status = SSC_NFS4ERR_IO,
	};
	f->file.ops = &f->ops;
	pthread_mutex_init(&f->lock, NULL);
	grow_locked(f, size);
}

void fake_file_fini(struct fake_file *f)
{
	pthread_mutex_destroy(&f->lock);
	free(f->extents);
	free(f->was_written);
	free(f->data);
}

void fake_file_set_extents(struct fake_file *f, const struct fake_extent *extents, unsigned int n)
{
	f->ops.next_data = fake_next_data;
	f->extents = calloc(n + 1, sizeof(*extents));
	assert(f->extents != NULL);
	if (n > 0)
		memcpy(f->extents, extents, n * sizeof(*extents));
	f->n_extents = n;
}

void fake_file_can_punch(struct fake_file *f)
{
	f->ops.punch = fake_punch;
}

void fake_file_can_commit(struct fake_file *f)
{
	f->ops.commit = fake_commit;
}

void fake_file_worker_begin(void)
{
	is_worker = true;
}

void fake_file_worker_end(void)
{
	is_worker = false;
}
