/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fio_nfs.c - external I/O engine for fio: NFSv3 and NFSv4.0 without a kernel client.
 *
 * Not the engine of the same purpose inside fio: here fsync is COMMIT, every I/O is counted and
 * compared with what was asked, a request leaves when it is queued, and a failure reaches the
 * job's error and the exit code. Licence: it includes fio's headers, so it is built apart, for
 * measuring only, and is never packaged.
 *
 * One connection per fio job. Files are opened by LOOKUP, and created when that finds nothing and
 * the job writes. Use:
 *   ioengine=external:/path/fio_nfs.so
 *   nfs_url=nfs://HOST/PATH?nfsport=N&mountport=N&version=3
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fio.h"
#include "optgroup.h"

#include "nfsraw.h"

struct nfs_options {
	void *pad; /* fio keeps its own pointer at offset 0 */
	char *nfs_url;
};

struct nfs_file {
	struct nfsraw_fh fh;
	struct nfsraw_state state;
};

struct nfs_io {
	struct nfsraw_op op;
	struct io_u *io_u;
	struct engine *engine;
};

struct engine {
	struct nfsraw *nr;
	struct io_u **ready; /* ring of completed requests, one slot per io_u */
	unsigned int n_slots;
	unsigned int head;
	unsigned int n_ready;
	unsigned int first_event;
};

static struct fio_option options[] = {
	{
		.name = "nfs_url",
		.lname = "URL of the mount",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct nfs_options, nfs_url),
		.help = "nfs://HOST/PATH?nfsport=N&mountport=N&version=3|4",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = NULL,
	},
};

static int nfs_init(struct thread_data *td)
{
	struct nfs_options *opts = td->eo;
	struct nfsraw_target target;
	struct engine *engine;
	int error;

	if (!opts->nfs_url || nfsraw_parse_url(opts->nfs_url, &target) != 0) {
		log_err("fio_nfs: nfs_url is missing or malformed\n");
		td_verror(td, EINVAL, "nfs_url");
		return 1;
	}
	engine = calloc(1, sizeof(*engine));
	if (!engine) {
		td_verror(td, ENOMEM, "nfs_init");
		return 1;
	}
	td->io_ops_data = engine;
	error = nfsraw_open(&target, &engine->nr);
	if (error) {
		log_err("fio_nfs: %s: %s\n", opts->nfs_url, nfsraw_error(engine->nr));
		td_verror(td, error, "mount");
		return 1;
	}
	return 0;
}

static void nfs_cleanup(struct thread_data *td)
{
	struct engine *engine = td->io_ops_data;

	if (!engine)
		return;
	nfsraw_close(engine->nr);
	free(engine->ready);
	free(engine);
	td->io_ops_data = NULL;
}

static int nfs_io_u_init(struct thread_data *td, struct io_u *io_u)
{
	struct nfs_io *io = calloc(1, sizeof(*io));

	(void)td;
	if (!io)
		return ENOMEM;
	io->io_u = io_u;
	io_u->engine_data = io;
	return 0;
}

static void nfs_io_u_free(struct thread_data *td, struct io_u *io_u)
{
	(void)td;
	free(io_u->engine_data);
	io_u->engine_data = NULL;
}

/* fio fills in the number of io_u only after init(), so the ring is made at the first use. */
static int make_ring(struct thread_data *td, struct engine *engine)
{
	if (engine->ready)
		return 0;
	engine->n_slots = td->o.iodepth + 1;
	engine->ready = calloc(engine->n_slots, sizeof(*engine->ready));
	return engine->ready ? 0 : ENOMEM;
}

static int open_nfs_file(struct thread_data *td, const char *path, struct nfs_file *file)
{
	struct nfsraw *nr = ((struct engine *)td->io_ops_data)->nr;
	struct nfsraw_fh dir;
	struct nfsraw_op op = {.kind = NFSRAW_LOOKUP, .fh = &dir, .state = &file->state};
	int error = nfsraw_walk(nr, path, &dir, &op.name);

	if (error)
		return error;
	nfsraw_state_init(nr, &file->state);
	if (nfsraw_version(nr) == 4)
		op.kind = NFSRAW_OPEN;
	error = nfsraw_call(nr, &op);
	if (error == ENOENT && td_write(td)) {
		op.kind = NFSRAW_CREATE;
		error = nfsraw_call(nr, &op);
	}
	if (error)
		return error;
	file->fh = op.out_fh;
	if (!file->state.want_confirm)
		return 0;
	op.kind = NFSRAW_OPEN_CONFIRM;
	op.fh = &file->fh;
	return nfsraw_call(nr, &op);
}

static int nfs_open_file(struct thread_data *td, struct fio_file *f)
{
	struct engine *engine = td->io_ops_data;
	struct nfs_file *file = calloc(1, sizeof(*file));
	int error = file ? make_ring(td, engine) : ENOMEM;

	if (!error)
		error = open_nfs_file(td, f->file_name, file);
	if (error) {
		log_err("fio_nfs: open %s: %s (%s)\n", f->file_name, strerror(error),
			nfsraw_error(engine->nr));
		td_verror(td, error, "nfs_open_file");
		free(file);
		return 1;
	}
	FILE_SET_ENG_DATA(f, file);
	return 0;
}

static int nfs_close_file(struct thread_data *td, struct fio_file *f)
{
	struct engine *engine = td->io_ops_data;
	struct nfs_file *file = FILE_ENG_DATA(f);
	int error = 0;

	if (!file)
		return 0;
	if (nfsraw_version(engine->nr) == 4) {
		struct nfsraw_op op = {.kind = NFSRAW_CLOSE,
				       .fh = &file->fh,
				       .state = &file->state};

		error = nfsraw_call(engine->nr, &op);
	}
	FILE_SET_ENG_DATA(f, NULL);
	free(file);
	if (error && !td->error)
		td_verror(td, error, "nfs_close_file");
	return error;
}

static int nfs_unlink_file(struct thread_data *td, struct fio_file *f)
{
	struct engine *engine = td->io_ops_data;
	struct nfsraw_fh dir;
	struct nfsraw_op op = {.kind = NFSRAW_REMOVE, .fh = &dir};
	int error;

	if (!engine)
		return ENOTCONN;
	error = nfsraw_walk(engine->nr, f->file_name, &dir, &op.name);
	return error ? error : nfsraw_call(engine->nr, &op);
}

static void io_done(struct nfsraw_op *op)
{
	struct nfs_io *io = op->priv;
	struct engine *engine = io->engine;
	struct io_u *io_u = io->io_u;

	io_u->error = op->error;
	if (!op->error && ddir_rw(io_u->ddir)) {
		io_u->resid = io_u->xfer_buflen - op->done_bytes;
		/* A write that takes nothing would be tried again for ever. */
		if (op->done_bytes == 0 && (io_u->ddir == DDIR_WRITE || !op->is_eof))
			io_u->error = EIO;
	}
	engine->ready[(engine->head + engine->n_ready++) % engine->n_slots] = io_u;
}

static enum fio_q_status nfs_queue(struct thread_data *td, struct io_u *io_u)
{
	struct engine *engine = td->io_ops_data;
	struct nfs_io *io = io_u->engine_data;
	struct nfs_file *file = FILE_ENG_DATA(io_u->file);

	fio_ro_check(td, io_u);
	if (ddir_rw(io_u->ddir) && io_u->xfer_buflen > NFSRAW_IO_MAX) {
		io_u->error = EINVAL;
		return FIO_Q_COMPLETED;
	}
	io->engine = engine;
	io->op = (struct nfsraw_op){.fh = &file->fh,
				    .state = &file->state,
				    .offset = io_u->offset,
				    .count_bytes = (uint32_t)io_u->xfer_buflen,
				    .buf = io_u->xfer_buf,
				    .is_stable = td->o.sync_io,
				    .done = io_done,
				    .priv = io};
	switch (io_u->ddir) {
	case DDIR_READ:
		io->op.kind = NFSRAW_READ;
		break;
	case DDIR_WRITE:
		io->op.kind = NFSRAW_WRITE;
		break;
	case DDIR_SYNC:
	case DDIR_DATASYNC:
		/*
		 * Waited for here: fio goes on asking for the same fsync until one completes, and
		 * would send a queue full of them. Answers to I/O that is out collect meanwhile.
		 */
		io->op.kind = NFSRAW_COMMIT;
		io_u->error = nfsraw_call(engine->nr, &io->op);
		return FIO_Q_COMPLETED;
	default:
		io_u->error = ENOTSUP;
		return FIO_Q_COMPLETED;
	}
	nfsraw_submit(engine->nr, &io->op);
	return FIO_Q_QUEUED;
}

static int nfs_getevents(struct thread_data *td, unsigned int min, unsigned int max,
			 const struct timespec *timeout)
{
	struct engine *engine = td->io_ops_data;
	int wait_ms = timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000) : 1000;
	unsigned int n;

	/* Look once even when nothing has to be there, so that answers do not pile up. */
	if (engine->n_ready < max)
		nfsraw_poll(engine->nr, 0);
	while (engine->n_ready < min) {
		/* A lost connection has completed everything that was out. */
		if (nfsraw_poll(engine->nr, wait_ms) != 0 || timeout)
			break;
	}
	n = engine->n_ready < max ? engine->n_ready : max;
	engine->first_event = engine->head;
	engine->head = (engine->head + n) % engine->n_slots;
	engine->n_ready -= n;
	return (int)n;
}

static struct io_u *nfs_event(struct thread_data *td, int event)
{
	struct engine *engine = td->io_ops_data;

	return engine->ready[(engine->first_event + (unsigned int)event) % engine->n_slots];
}

/* fio finds the engine by this name. */
struct ioengine_ops ioengine = {
	.name = "fio_nfs",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL,
	.init = nfs_init,
	.cleanup = nfs_cleanup,
	.io_u_init = nfs_io_u_init,
	.io_u_free = nfs_io_u_free,
	.open_file = nfs_open_file,
	.close_file = nfs_close_file,
	.unlink_file = nfs_unlink_file,
	.queue = nfs_queue,
	.getevents = nfs_getevents,
	.event = nfs_event,
	.options = options,
	.option_struct_size = sizeof(struct nfs_options),
};
