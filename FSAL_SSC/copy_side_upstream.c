/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_side_upstream.c - a file of a re-export as side of a copy: READ, WRITE and COMMIT of the upstream.
 *
 * Nothing blocks: completions run on the thread that reads the upstream's replies, and start the next
 * call from there. What a reply tells is kept with the file as for other I/O (file_io.c).
 */
#include "ssc/clock.h"

#include "copy_side.h"
#include "nfs4_errmap.h"

/* What is remembered with each I/O, in its room. */
struct up_io {
	struct ssc_copy_side *side;
	struct iovec iov;
	uint64_t ticket;
};

_Static_assert(sizeof(struct up_io) <= sizeof(((struct ssc_copy_io *)0)->room), "room");

static struct ssc_copy_side *side_of(struct ssc_copy_file *file)
{
	return container_of(file, struct ssc_copy_side, file);
}

/* The oldest generation counts: what was written under it is what may be lost. */
static void note_generation(struct ssc_copy_side *side, uint64_t generation)
{
	uint64_t oldest = atomic_load(&side->generation);

	while ((oldest == 0 || generation < oldest) &&
	       !atomic_compare_exchange_weak(&side->generation, &oldest, generation))
		;
}

static void wrote(struct ssc_copy_side *side, const struct ssc_call *call)
{
	note_generation(side, ssc_verifier_note(&side->exp->verifier, call->res.io.verf));
	if (call->res.io.committed == SSC_FILE_SYNC)
		return;
	atomic_store(&side->has_unstable, true);
	ssc_file_io_note_unstable(side->h, call->res.io.verf);
}

/* Whether the COMMIT that was answered covers all that was written. */
static uint32_t committed(struct ssc_copy_side *side, const struct ssc_call *call)
{
	uint64_t now = ssc_verifier_note(&side->exp->verifier, call->res.io.verf);
	uint64_t oldest = atomic_load(&side->generation);

	return oldest == 0 || oldest == now ? NFS4_OK : NFS4ERR_IO;
}

static void io_done(struct ssc_call *call)
{
	struct ssc_copy_io *io = call->ctx;
	struct up_io *up = (struct up_io *)io->room;
	bool has_attrs = call->err != SSC_E_TIMEDOUT && call->has_attrs;
	uint32_t status = ssc_nfs4_of_err(call->err);
	uint32_t bytes = 0;
	bool eof = false;

	ssc_kept_arrived(&up->side->h->kept, up->ticket, has_attrs ? &call->attrs : NULL, false);
	if (call->err == SSC_OK && call->op == SSC_OP_COMMIT) {
		status = committed(up->side, call);
	} else if (call->err == SSC_OK) {
		bytes = call->res.io.count;
		eof = call->op == SSC_OP_READ && call->res.io.eof;
		if (call->op == SSC_OP_WRITE)
			wrote(up->side, call);
	}
	ssc_call_put(call);
	io->complete(io, status, bytes, eof);
}

static void start(struct ssc_copy_side *side, struct ssc_copy_io *io, enum ssc_op op)
{
	struct ssc_upstream *upstream = side->exp->up;
	struct ssc_call *call = ssc_call_new(upstream, op);
	struct up_io *up = (struct up_io *)io->room;

	*up = (struct up_io){
		.side = side,
		.iov = {.iov_base = io->data, .iov_len = io->len},
		.ticket = ssc_kept_ticket(&side->h->kept),
	};
	call->fh = side->fh;
	call->cred = side->cred;
	if (op != SSC_OP_COMMIT) {
		call->arg.io.offset = io->offset;
		call->arg.io.count = io->len;
		call->arg.io.stable = SSC_UNSTABLE;
		call->arg.io.iov = &up->iov;
		call->arg.io.n_iov = 1;
	}
	if (side->has_limit)
		call->answer_by_ns = ssc_clock_now_ns() + atomic_load(&side->exp->timeout_ns);
	call->done = io_done;
	call->ctx = io;
	upstream->ops->submit(upstream, call);
}

static void up_read(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	start(side_of(file), io, SSC_OP_READ);
}

static void up_write(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	start(side_of(file), io, SSC_OP_WRITE);
}

static void up_commit(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	start(side_of(file), io, SSC_OP_COMMIT);
}

/* NFSv3 knows no holes. */
const struct ssc_copy_file_ops ssc_copy_side_upstream_ops = {
	.read = up_read,
	.write = up_write,
	.commit = up_commit,
};
