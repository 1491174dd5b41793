/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_copy.c - copies that the kernel is asked to make: copy_file_range(2) and FICLONE.
 *
 * copy-ranges keeps a model of two files in memory and does random things to both, most of them copies
 * of any range to any place. Both files stay mapped all the time with their pages in use, so that a page
 * which should have been dropped after a copy is seen. The copied part is read back through the map, and
 * all of it now and then through another mount of the same folder, which has a cache of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops.h"

/* Room for copies above twice the client's rsize of 1 MiB, which it asks for asynchronously. */
#define MODEL_BYTES (6u << 20)
#define SMALL_BYTES (64u << 10)
#define AROUND      8192u /* checked on both sides of a copied range, the whole page at least */

/* Copies until bytes are done or the source ends; returns what was done. */
static uint64_t copy_range(int in, int out, off_t from, off_t to, uint64_t bytes, int *calls)
{
	uint64_t done = 0;

	for (*calls = 0; done < bytes;) {
		ssize_t n = copy_file_range(in, &from, out, &to, bytes - done, 0);

		need(n >= 0, "copy_file_range of %" PRIu64 " bytes after %" PRIu64, bytes - done,
		     done);
		++*calls;
		if (n == 0)
			break;
		done += (uint64_t)n;
	}
	return done;
}

/* BYTES 0: to the end of the source. */
void copy_file(char **argv)
{
	uint64_t bytes = strtoull(argv[5], NULL, 0), done;
	int in = xopen(argv[1], O_RDONLY, 0), out = xopen(argv[2], O_RDWR | O_CREAT, 0644), calls;
	uint64_t start = now_ms();

	done = copy_range(in, out, (off_t)strtoull(argv[3], NULL, 0),
			  (off_t)strtoull(argv[4], NULL, 0), bytes ? bytes : INT64_MAX / 2, &calls);
	need(bytes == 0 || done == bytes, "only %" PRIu64 " bytes", done);
	printf("bytes=%" PRIu64 " calls=%d ms=%" PRIu64 "\n", done, calls, now_ms() - start);
	xclose(in);
	xclose(out);
}

/* The call gives ERRNO, 0 for success. */
void clone_file(char **argv)
{
	int in = xopen(argv[1], O_RDONLY, 0), out = xopen(argv[2], O_RDWR | O_CREAT, 0644);

	need_err(ioctl(out, FICLONE, in), atoi(argv[3]), "FICLONE");
	xclose(in);
	xclose(out);
}

#define A_USER 1000

/* By a user who may write a file that has set-id bits, as its owner. They are gone then, as after a write. */
void copy_setid(char **argv)
{
	int in = xopen(argv[1], O_RDONLY, 0), out = xopen(argv[2], O_RDWR | O_CREAT, 0644), calls;
	struct stat st;

	need(fchown(out, A_USER, A_USER) == 0 && fchmod(out, 06755) == 0, "prepare %s", argv[2]);
	xclose(out);
	need(setegid(A_USER) == 0 && seteuid(A_USER) == 0, "seteuid");
	out = xopen(argv[2], O_RDWR, 0);
	need(fstat(out, &st) == 0 && (st.st_mode & 06000) == 06000, "no set-id bits before");
	need(copy_range(in, out, 0, 0, INT64_MAX / 2, &calls) > 0, "nothing was copied");
	xclose(out);
	xclose(in);
	need(stat(argv[3], &st) == 0, "stat %s", argv[3]);
	need((st.st_mode & 06000) == 0, "mode 0%o after the copy", st.st_mode);
}

static void lock_all(int fd, short type, const char *path)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

	need(fcntl(fd, F_OFD_SETLK, &lock) == 0, "lock %s", path);
}

/* With both files locked: the client names the locks then, not the opens. */
void copy_locked(char **argv)
{
	int in = xopen(argv[1], O_RDONLY, 0), out = xopen(argv[2], O_RDWR | O_CREAT, 0644), calls;
	struct stat st;

	need(fstat(in, &st) == 0, "stat %s", argv[1]);
	lock_all(in, F_RDLCK, argv[1]);
	lock_all(out, F_WRLCK, argv[2]);
	for (int i = 0; i < 2; i++) {
		need(copy_range(in, out, 0, 0, INT64_MAX / 2, &calls) == (uint64_t)st.st_size,
		     "not all is copied");
		lock_all(in, F_UNLCK, argv[1]);
		lock_all(out, F_UNLCK, argv[2]);
	}
	xclose(in);
	xclose(out);
}

/* ---- against a model ---- */

struct side {
	const char *path;
	int fd;
	uint8_t *map;
	uint8_t *model;
	uint64_t size;
};

static struct side sides[2];
static struct rng rng;

static void side_open(struct side *s, const char *path)
{
	s->path = path;
	s->fd = xopen(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	s->model = xmalloc(MODEL_BYTES);
	memset(s->model, 0, MODEL_BYTES);
	s->map = mmap(NULL, MODEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	need(s->map != MAP_FAILED, "mmap %s", path);
}

/* Ends at 1 byte, a few pages or megabytes alike. */
static uint64_t some_length(uint64_t most)
{
	uint32_t n = rng_below(&rng, 10);
	uint64_t limit = n < 4 ? 5000 : n < 8 ? 300000 : MODEL_BYTES;

	if (limit > most)
		limit = most;
	return limit ? rng_below(&rng, (uint32_t)limit + 1) : 0;
}

static void grown_to(struct side *s, uint64_t end)
{
	if (end > s->size)
		s->size = end;
}

static void do_write(struct side *s, int step)
{
	uint64_t at = rng_below(&rng, MODEL_BYTES - SMALL_BYTES);
	uint64_t bytes = 1 + rng_below(&rng, SMALL_BYTES);

	pattern_fill(s->model + at, bytes, (uint64_t)step, at);
	xpwrite(s->fd, s->model + at, bytes, (off_t)at);
	/*
	 * Before it asks for a copy, Linux sends the server what is dirty in the range, but not what is
	 * behind it: for a server that does not know of the longer file yet, the copy ends before.
	 */
	if (at + bytes > s->size)
		need(fsync(s->fd) == 0, "fsync %s", s->path);
	grown_to(s, at + bytes);
}

static void do_store(struct side *s, int step)
{
	uint64_t at, bytes;

	if (s->size < 2)
		return;
	at = rng_below(&rng, (uint32_t)s->size - 1);
	bytes = some_length(s->size - at);
	pattern_fill(s->model + at, bytes, (uint64_t)step, at);
	memcpy(s->map + at, s->model + at, bytes);
}

static void do_truncate(struct side *s)
{
	uint64_t size = rng_below(&rng, MODEL_BYTES);

	need(ftruncate(s->fd, (off_t)size) == 0, "ftruncate %s to %" PRIu64, s->path, size);
	if (size < s->size)
		memset(s->model + size, 0, s->size - size);
	s->size = size;
}

static void check_range(const struct side *s, const uint8_t *seen, uint64_t at, uint64_t end,
			const char *how)
{
	if (end > s->size)
		end = s->size;
	for (uint64_t i = at; i < end; i++)
		need(seen[i] == s->model[i],
		     "%s of %s: byte %" PRIu64 " is 0x%02x, not 0x%02x; %" PRIu64 " to %" PRIu64
		     " of %" PRIu64,
		     how, s->path, i, seen[i], s->model[i], at, end, s->size);
}

static void check_size(const struct side *s, const char *path)
{
	struct stat st;

	need(stat(path, &st) == 0, "stat %s", path);
	need((uint64_t)st.st_size == s->size, "%s has %lld bytes, not %" PRIu64, path,
	     (long long)st.st_size, s->size);
}

static void do_copy(void)
{
	struct side *from = &sides[rng_below(&rng, 4) == 0], *to = &sides[rng_below(&rng, 4) != 0];
	uint64_t src = from->size ? rng_below(&rng, (uint32_t)from->size) : 0;
	uint64_t dst = rng_below(&rng, MODEL_BYTES);
	uint64_t most = MODEL_BYTES - (src > dst ? src : dst), bytes, done;
	int calls;

	if (from == to) { /* ranges may not overlap, and a file that grows meanwhile ends later */
		uint64_t apart = src > dst ? src - dst : dst - src;

		most = most < apart ? most : apart;
		most = most < from->size - src ? most : from->size - src;
	}
	bytes = some_length(most);
	done = copy_range(from->fd, to->fd, (off_t)src, (off_t)dst, bytes, &calls);
	if (bytes > from->size - src)
		bytes = from->size - src;
	need(done == bytes, "copy from %" PRIu64 " to %" PRIu64 ": %" PRIu64 " not %" PRIu64, src,
	     dst, done, bytes);
	memmove(to->model + dst, from->model + src, bytes);
	if (bytes > 0)
		grown_to(to, dst + bytes);
	check_size(to, to->path);
	check_range(to, to->map, dst < AROUND ? 0 : dst - AROUND, dst + bytes + AROUND, "mmap");
}

/* By the other mount, which opens the file anew: that is when it must see all. */
static void check_other(const struct side *s, const char *path, uint8_t *buf)
{
	int fd;

	need(fsync(s->fd) == 0, "fsync %s", s->path);
	need(msync(s->map, MODEL_BYTES, MS_SYNC) == 0, "msync %s", s->path);
	fd = xopen(path, O_RDONLY, 0);
	check_size(s, path);
	need(xpread(fd, buf, MODEL_BYTES, 0) == s->size, "other mount: length of %s", path);
	check_range(s, buf, 0, s->size, "other mount");
	xclose(fd);
}

void copy_ranges(char **argv)
{
	uint8_t *buf = xmalloc(MODEL_BYTES);
	int count = atoi(argv[5]);

	rng.state = strtoull(argv[4], NULL, 0);
	side_open(&sides[0], argv[1]);
	side_open(&sides[1], argv[2]);
	for (int step = 1; step <= count; step++) {
		uint32_t what = rng_below(&rng, 20);

		if (what < 3 || step == 1)
			do_write(&sides[what == 0], step);
		else if (what < 5)
			do_store(&sides[what == 3], step);
		else if (what < 6)
			do_truncate(&sides[rng_below(&rng, 2)]);
		else
			do_copy();
		if (step % 20 == 0 || step == count)
			check_other(&sides[1], argv[3], buf);
	}
	for (int i = 0; i < 2; i++)
		check_range(&sides[i], sides[i].map, 0, sides[i].size, "mmap");
	free(buf);
}
