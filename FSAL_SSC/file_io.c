/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * file_io.c - read2 and write2, asynchronous; commit2.
 *
 * One I/O:  share check -> submit -> done, on this thread or another -> note and keep what the reply
 * told -> the server's callback, exactly once. Another thread needs a context of its own for the
 * callback, since the cache above calls on through it; the export is held for that from before the
 * submission. The callback may be the last thing that the request waited for, so nothing of the request
 * is touched after it.
 *
 * What was not committed. An upstream that restarts loses UNSTABLE data and shows another verifier.
 *   NFSv4   WRITE and COMMIT are answered with a verifier that follows it (verifier.h), and each with
 *           the one of its own reply (noted.c). The client compares the two and sends again.
 *   NFSv3   the same, by op_bind.c. On a server whose tables that could not bind, a client could not
 *           notice: there each file remembers the upstream's verifier that its oldest uncommitted
 *           WRITE got, and a COMMIT over NFSv3 that is answered with another one fails with EIO,
 *           once: fsync or close then tells the program that its data is gone, which is the truth.
 *
 * Locks: obj_lock for the share check; handle.lock round what is uncommitted.
 */
#include "export_mgr.h"

#include "ssc/clock.h"

#include "glue.h"
#include "op_bind.h"

/* A worker may read its own reply from the socket so long, which spares two changes of thread. */
#define DRIVE_NS (50 * SSC_NS_PER_MS)

/* One READ or WRITE on its way. */
struct io {
	struct ssc_export *exp;
	struct ssc_handle *h;
	struct fsal_io_arg *arg; /* borrowed, with the buffers, until the callback */
	fsal_async_cb done_cb;
	void *caller_arg;
	struct req_op_context *ctx;    /* the request's */
	struct gsh_export *gsh_export; /* a reference, unless done runs within the submission */
	uint64_t ticket;
	struct iovec iov[]; /* a copy when the upstream takes less than was asked */
};

__thread bool ssc_export_in_done;

/* ---- the reply ---- */

void ssc_file_io_note_unstable(struct ssc_handle *h, const uint8_t verf[SSC_VERF_BYTES])
{
	pthread_mutex_lock(&h->lock);
	h->n_unstable++;
	if (!h->is_uncommitted) {
		h->is_uncommitted = true;
		memcpy(h->uncommitted_verf, verf, SSC_VERF_BYTES);
	}
	pthread_mutex_unlock(&h->lock);
}

static void take_write(struct io *io, const struct ssc_call *call)
{
	uint64_t generation = ssc_verifier_note(&io->exp->verifier, call->res.io.verf);

	io->arg->io_amount = call->res.io.count;
	/* DATA_SYNC leaves times and size behind: the server above knows all or nothing. */
	io->arg->fsal_stable = call->res.io.committed == SSC_FILE_SYNC;
	if (!io->arg->fsal_stable)
		ssc_file_io_note_unstable(io->h, call->res.io.verf);
	ssc_noted_set(io->ctx, io->h, generation);
}

static void take_reply(struct io *io, const struct ssc_call *call)
{
	bool has_attrs = call->err != SSC_E_TIMEDOUT && call->has_attrs;

	/* Before anything that makes the server above ask for attributes. */
	ssc_kept_arrived(&io->h->kept, io->ticket, has_attrs ? &call->attrs : NULL, false);
	io->arg->io_amount = 0;
	if (call->err != SSC_OK)
		return;
	if (call->op == SSC_OP_WRITE) {
		take_write(io, call);
	} else {
		io->arg->io_amount = call->res.io.count;
		io->arg->end_of_file = call->res.io.eof;
	}
}

/* ---- telling the server ---- */

static void tell(struct io *io, fsal_status_t status)
{
	io->done_cb(&io->h->obj, status, io->arg, io->caller_arg);
}

static void tell_from_elsewhere(struct io *io, fsal_status_t status)
{
	struct req_op_context ctx;

	init_op_context_simple(&ctx, io->gsh_export, &io->exp->export);
	tell(io, status);
	/* This may drop the export's last reference, and free it. */
	ssc_export_in_done = true;
	release_op_context();
	ssc_export_in_done = false;
}

static void io_done(struct ssc_call *call)
{
	struct io *io = call->ctx;
	fsal_status_t status = ssc_fsal_status(call->err);

	take_reply(io, call);
	ssc_call_put(call);
	if (op_ctx == io->ctx) {
		/* Within the submission: the request is not suspended, its context is here. */
		struct gsh_export *gsh_export = io->gsh_export;

		tell(io, status);
		put_gsh_export(gsh_export);
	} else {
		tell_from_elsewhere(io, status);
	}
	gsh_free(io);
}

/* ---- the request ---- */

static uint64_t bytes_of(const struct iovec *iov, int n)
{
	uint64_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Let @call carry at most @max bytes of what the server asked for: a short I/O is a legal answer. */
static void set_iov(struct io *io, struct ssc_call *call, uint32_t max)
{
	uint64_t bytes = bytes_of(io->arg->iov, io->arg->iov_count);
	uint64_t left = max;
	int n;

	call->arg.io.offset = io->arg->offset;
	call->arg.io.iov = io->arg->iov;
	call->arg.io.n_iov = io->arg->iov_count;
	call->arg.io.count = (uint32_t)(bytes < max ? bytes : max);
	if (bytes <= max)
		return;
	for (n = 0; left > 0; n++) {
		io->iov[n] = io->arg->iov[n];
		if (io->iov[n].iov_len > left)
			io->iov[n].iov_len = left;
		left -= io->iov[n].iov_len;
	}
	call->arg.io.iov = io->iov;
	call->arg.io.n_iov = n;
}

static void submit(struct ssc_handle *h, enum ssc_op op, fsal_async_cb done_cb,
		   struct fsal_io_arg *arg, void *caller_arg)
{
	struct ssc_export *exp = ssc_export_now();
	struct io *io = gsh_malloc(sizeof(*io) + arg->iov_count * sizeof(struct iovec));
	struct ssc_call *call = ssc_call_new(exp->up, op);
	struct ssc_upstream_limits limits;

	*io = (struct io){
		.exp = exp,
		.h = h,
		.arg = arg,
		.done_cb = done_cb,
		.caller_arg = caller_arg,
		.ctx = op_ctx,
		.gsh_export = op_ctx->ctx_export,
	};
	exp->up->ops->limits(exp->up, &limits);
	ssc_key_fh(h->key.data, h->key.len, &call->fh);
	ssc_run_cred(&call->cred);
	set_iov(io, call, op == SSC_OP_READ ? limits.read_max_bytes : limits.write_max_bytes);
	if (op == SSC_OP_WRITE)
		call->arg.io.stable = arg->fsal_stable ? SSC_FILE_SYNC : SSC_UNSTABLE;
	call->answer_by_ns = ssc_clock_now_ns() + atomic_load(&exp->timeout_ns);
	call->drive_ns = DRIVE_NS;
	call->done = io_done;
	call->ctx = io;
	io->ticket = ssc_kept_ticket(&h->kept);
	get_gsh_export_ref(io->gsh_export);
	exp->up->ops->submit(exp->up, call);
}

static void io_read2(struct fsal_obj_handle *obj, bool bypass, fsal_async_cb done_cb,
		     struct fsal_io_arg *arg, void *caller_arg)
{
	struct ssc_handle *h = ssc_handle_of(obj);
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);

	if (arg->info != NULL)
		status = fsalstat(ERR_FSAL_NOTSUPP, ENOTSUP); /* NFSv3 cannot tell holes */
	else if (obj->type != REGULAR_FILE)
		status = fsalstat(ERR_FSAL_INVAL, EINVAL);
	else
		status = ssc_open_allows(h, arg->state, FSAL_O_READ, bypass);
	if (FSAL_IS_ERROR(status))
		done_cb(obj, status, arg, caller_arg);
	else
		submit(h, SSC_OP_READ, done_cb, arg, caller_arg);
}

static void io_write2(struct fsal_obj_handle *obj, bool bypass, fsal_async_cb done_cb,
		      struct fsal_io_arg *arg, void *caller_arg)
{
	struct ssc_handle *h = ssc_handle_of(obj);
	fsal_status_t status = fsalstat(ERR_FSAL_INVAL, EINVAL);

	if (obj->type == REGULAR_FILE)
		status = ssc_open_allows(h, arg->state, FSAL_O_WRITE, bypass);
	if (FSAL_IS_ERROR(status))
		done_cb(obj, status, arg, caller_arg);
	else
		submit(h, SSC_OP_WRITE, done_cb, arg, caller_arg);
}

/* ---- commit ---- */

struct commit_args {
	uint64_t offset;
	uint32_t count; /* 0: to the end */
};

static enum ssc_err fill_commit(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	const struct commit_args *args = arg;

	(void)other;
	call->arg.io.offset = args->offset;
	call->arg.io.count = args->count;
	return SSC_OK;
}

/*
 * The upstream has committed what it still had, under @verf. True when some of the file's
 * data was written under another one, and is lost. WRITEs that were answered since @n_unstable was
 * read may not be covered by this COMMIT.
 */
static bool settle(struct ssc_handle *h, const struct commit_args *args, uint64_t n_unstable,
		   const uint8_t verf[SSC_VERF_BYTES])
{
	bool is_whole = args->offset == 0 && args->count == 0;
	bool is_lost;

	pthread_mutex_lock(&h->lock);
	is_lost = h->is_uncommitted && memcmp(h->uncommitted_verf, verf, SSC_VERF_BYTES) != 0;
	if (is_lost)
		memcpy(h->uncommitted_verf, verf, SSC_VERF_BYTES);
	if (is_lost || is_whole)
		h->is_uncommitted = h->is_uncommitted && h->n_unstable != n_unstable;
	pthread_mutex_unlock(&h->lock);
	return is_lost;
}

static fsal_status_t io_commit2(struct fsal_obj_handle *obj, off_t offset, size_t len)
{
	struct ssc_export *exp = ssc_export_now();
	struct ssc_handle *h = ssc_handle_of(obj);
	struct commit_args args = {
		.offset = (uint64_t)offset,
		.count = len <= UINT32_MAX ? (uint32_t)len : 0,
	};
	struct ssc_run run = {
		.exp = exp,
		.h = h,
		.op = SSC_OP_COMMIT,
		.fill = fill_commit,
		.arg = &args,
	};
	struct ssc_call *call;
	bool is_lost = false;
	uint64_t n_unstable;
	enum ssc_err err;

	pthread_mutex_lock(&h->lock);
	n_unstable = h->n_unstable;
	pthread_mutex_unlock(&h->lock);
	err = ssc_run(&run, &call);
	if (err == SSC_OK) {
		ssc_noted_set(op_ctx, h, ssc_verifier_note(&exp->verifier, call->res.io.verf));
		is_lost = settle(h, &args, n_unstable, call->res.io.verf);
	}
	ssc_call_put(call);
	if (is_lost && op_ctx->nfs_vers == NFS_V3 && !ssc_op_has_v3()) {
		ssc_log_crit("%s: the upstream restarted and lost data of file id %llu that an "
			     "NFSv3 client had not committed; the client is told EIO",
			     exp->name, (unsigned long long)obj->fileid);
		return fsalstat(ERR_FSAL_IO, EIO);
	}
	return ssc_fsal_status(err);
}

void ssc_file_io_ops_init(struct fsal_obj_ops *ops)
{
	ops->read2 = io_read2;
	ops->write2 = io_write2;
	ops->commit2 = io_commit2;
}
