/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_side_host.c - a file of another FSAL as side of a copy: by the server's own methods.
 *
 * They may block, and want a context: each call here is made on a worker of the engine, as the copy's
 * caller. No state is passed, since states may go while a copy runs; that an open state allows the
 * copy was checked before, so share reservations are passed by (side.bypass).
 */
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
	if (status == NFS4_OK && !eof)
		status = seek(side, NFS4_CONTENT_HOLE, *start, end, &eof);
	else if (status == NFS4_OK)
		status = NFS4ERR_NXIO;
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
