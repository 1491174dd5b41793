/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_side_host.c - a file of another FSAL as side of a copy: by the server's own methods.
 *
 * They may block, and want a context: each call here is made on a worker of the engine, as the copy's
 * caller. No state is passed, since states may go while a copy runs; that an open state allows the
 * copy was checked before, so share reservations are passed by (side.bypass).
 *
 * Data       Where a file's data ends is remembered for a while: a file system that keeps pages (tmpfs)
 *            looks at each of them to find that out, and a copy in pieces would have it do so for the
 *            rest of the file at each piece. Taking a new hole for data is harmless, it reads as zeros.
 */
#include "ssc/clock.h"

#include "copy_side.h"
#include "nfs4_errmap.h"

static struct ssc_copy_side *side_of(struct ssc_copy_file *file)
{
	return container_of(file, struct ssc_copy_side, file);
}

/* What the server's methods take, with its one buffer. */
union io_arg {
	struct fsal_io_arg arg;
	uint8_t room[sizeof(struct fsal_io_arg) + sizeof(struct iovec)];
};

typedef void (*io_method)(struct fsal_obj_handle *obj, bool bypass, struct fsal_io_arg *arg,
			  struct async_process_data *data);

static uint32_t move(struct ssc_copy_side *side, struct ssc_copy_io *io, io_method method,
		     union io_arg *u)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct async_process_data data = {.mutex = &mutex, .cond = &cond};
	struct req_op_context ctx;

	memset(u, 0, sizeof(*u));
	u->arg.offset = io->offset;
	u->arg.iov_count = 1;
	u->arg.iov[0].iov_base = io->data;
	u->arg.iov[0].iov_len = io->len;
	ssc_copy_side_enter(side, &ctx);
	method(side->obj, side->bypass, &u->arg, &data);
	ssc_copy_side_leave();
	pthread_mutex_destroy(&mutex);
	pthread_cond_destroy(&cond);
	return ssc_nfs4_of_fsal(data.ret);
}

static void host_read(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	union io_arg u;
	uint32_t status = move(side_of(file), io, fsal_read, &u);
	bool is_good = status == NFS4_OK;

	io->complete(io, status, is_good ? (uint32_t)u.arg.io_amount : 0,
		     is_good && u.arg.end_of_file);
}

static void host_write(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	struct ssc_copy_side *side = side_of(file);
	union io_arg u;
	uint32_t status = move(side, io, fsal_write, &u);

	if (status == NFS4_OK && !u.arg.fsal_stable)
		atomic_store(&side->has_unstable, true);
	io->complete(io, status, status == NFS4_OK ? (uint32_t)u.arg.io_amount : 0, false);
}

static void host_commit(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	struct ssc_copy_side *side = side_of(file);
	struct req_op_context ctx;
	fsal_status_t status;

	ssc_copy_side_enter(side, &ctx);
	status = side->obj->obj_ops->commit2(side->obj, 0, 0);
	ssc_copy_side_leave();
	io->complete(io, ssc_nfs4_of_fsal(status), 0, false);
}

/* SEEK; *at is where @what begins at or after @offset, the file's end when there is none. */
static uint32_t seek(struct ssc_copy_side *side, data_content4 what, uint64_t offset, uint64_t *at,
		     bool *eof)
{
	struct io_info info = {.io_content.what = what};
	struct req_op_context ctx;
	fsal_status_t status;

	info.io_content.hole.di_offset = offset;
	ssc_copy_side_enter(side, &ctx);
	status = side->obj->obj_ops->seek2(side->obj, NULL, &info);
	ssc_copy_side_leave();
	*eof = info.io_eof;
	*at = info.io_content.hole.di_offset;
	return ssc_nfs4_of_fsal(status);
}

#define SEEN_N       64
#define SEEN_KEEP_NS (2 * SSC_NS_PER_S)

/* [start, end) was data at seen_ns. */
struct seen {
	fsal_fsid_t fsid;
	uint64_t fileid;
	uint64_t start, end, seen_ns;
};

static struct {
	pthread_mutex_t lock;
	struct seen files[SEEN_N]; /* guarded by lock */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct seen *seen_of(const struct fsal_obj_handle *obj)
{
	return &seen.files[ssc_base_mix(obj->fileid ^ obj->fsid.minor) % SEEN_N];
}

static bool is_seen(const struct seen *s, const struct fsal_obj_handle *obj)
{
	return s->fileid == obj->fileid && s->fsid.major == obj->fsid.major &&
	       s->fsid.minor == obj->fsid.minor;
}

/* Whether *@end is known of the data that @at is in. */
static bool recall_data(const struct fsal_obj_handle *obj, uint64_t at, uint64_t *end)
{
	uint64_t now = ssc_clock_now_ns();
	const struct seen *s = seen_of(obj);
	bool is_known;

	pthread_mutex_lock(&seen.lock);
	is_known =
		is_seen(s, obj) && s->start <= at && at < s->end && now - s->seen_ns < SEEN_KEEP_NS;
	if (is_known)
		*end = s->end;
	pthread_mutex_unlock(&seen.lock);
	return is_known;
}

static void note_data(const struct fsal_obj_handle *obj, uint64_t start, uint64_t end)
{
	struct seen *s = seen_of(obj);

	pthread_mutex_lock(&seen.lock);
	*s = (struct seen){
		.fsid = obj->fsid,
		.fileid = obj->fileid,
		.start = start,
		.end = end,
		.seen_ns = ssc_clock_now_ns(),
	};
	pthread_mutex_unlock(&seen.lock);
}

static uint32_t size_now(struct ssc_copy_side *side, uint64_t *size)
{
	struct req_op_context ctx;
	fsal_status_t status;

	ssc_copy_side_enter(side, &ctx);
	status = ssc_copy_side_size(side->obj, NULL, size);
	ssc_copy_side_leave();
	return ssc_nfs4_of_fsal(status);
}

static uint32_t host_next_data(struct ssc_copy_file *file, uint64_t offset, uint64_t *start,
			       uint64_t *end)
{
	struct ssc_copy_side *side = side_of(file);
	uint32_t status;
	bool eof;

	status = seek(side, NFS4_CONTENT_DATA, offset, start, &eof);
	if (status == NFS4_OK && eof)
		status = NFS4ERR_NXIO;
	if (status == NFS4_OK && !recall_data(side->obj, *start, end)) {
		status = seek(side, NFS4_CONTENT_HOLE, *start, end, &eof);
		if (status == NFS4_OK)
			note_data(side->obj, *start, *end);
	}
	/* No data from here to the end, or the file was cut off meanwhile. */
	if (status == NFS4ERR_NXIO) {
		status = size_now(side, start);
		*end = *start;
	}
	return status;
}

static uint32_t host_punch(struct ssc_copy_file *file, uint64_t offset, uint64_t len)
{
	struct ssc_copy_side *side = side_of(file);
	struct req_op_context ctx;
	fsal_status_t status;

	ssc_copy_side_enter(side, &ctx);
	status = side->obj->obj_ops->fallocate(side->obj, NULL, offset, len, false);
	ssc_copy_side_leave();
	if (!FSAL_IS_ERROR(status))
		atomic_store(&side->has_unstable, true);
	return ssc_nfs4_of_fsal(status);
}

const struct ssc_copy_file_ops ssc_copy_side_host_ops = {
	.read = host_read,
	.write = host_write,
	.next_data = host_next_data,
	.punch = host_punch,
	.commit = host_commit,
};
