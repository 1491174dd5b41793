/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_async.c - a COPY that is answered at once and goes on by itself.
 *
 * Object     struct async, behind the table's state (copy_state.h).
 * Order      checks -> state -> copy starts -> the client is answered
 *            copy ends -> on a thread of the server's pool: attributes, outcome, sides are dropped
 *            -> the table has the callback sent, and frees us when nobody can ask any more
 * Data       is committed before the client hears of the end. If that fails, it is told UNSTABLE and the
 *            verifier changes, so that it copies again.
 * Waiting    An upstream that is away is waited for, PATIENCE_NS without a byte at most.
 * References the sides are held until the end; the copy until we are freed, for progress.
 */
#include <string.h>

#include "export_mgr.h"
#include "fridgethr.h"
#include "nfs_core.h"

#include "cb_channel.h"
#include "cb_offload.h"
#include "copy_service.h"
#include "op_copy.h"

#define PATIENCE_NS (300 * SSC_NS_PER_S)

struct async {
	atomic_uint refs;
	struct ssc_copy_side *src, *dst;
	struct ssc_copy_state *state;
	struct ssc_cb_target *target;
	struct ssc_fh fh; /* of the destination, as the client knows it */
	_Atomic(struct ssc_copy *) copy;
	atomic_bool is_cancelled;
};

/* ---- for the table ---- */

static uint64_t async_progress(void *ctx)
{
	struct async *a = ctx;
	struct ssc_copy *copy = atomic_load(&a->copy);

	return copy != NULL ? ssc_copy_progress(copy) : 0;
}

static void async_cancel(void *ctx)
{
	struct async *a = ctx;
	struct ssc_copy *copy;

	/* Either we see the copy, or who starts it sees that it is cancelled. */
	atomic_store(&a->is_cancelled, true);
	copy = atomic_load(&a->copy);
	if (copy != NULL)
		ssc_copy_cancel(copy);
}

static void told(void *ctx, enum ssc_copy_told how)
{
	ssc_copy_state_told(ctx, how);
}

static void async_send(void *ctx, struct ssc_copy_state *state, const struct ssc_stateid *stateid,
		       const struct ssc_copy_outcome *outcome)
{
	struct async *a = ctx;

	ssc_cb_offload_send(a->target, &a->fh, stateid, outcome, told, state);
}

static void async_free(void *ctx)
{
	struct async *a = ctx;

	if (atomic_fetch_sub(&a->refs, 1) != 1)
		return;
	ssc_cb_target_free(a->target);
	if (atomic_load(&a->copy) != NULL)
		ssc_copy_put(atomic_load(&a->copy));
	gsh_free(a);
}

static const struct ssc_copy_state_ops ops = {
	.progress = async_progress,
	.cancel = async_cancel,
	.send = async_send,
	.free = async_free,
};

/* ---- the end ---- */

/* As for a synchronous copy; no bytes without an error and before the end: it was cancelled. */
static uint32_t status_of(const struct ssc_copy_result *result)
{
	if (result->bytes > 0)
		return NFS4_OK;
	if (result->status != NFS4_OK)
		return result->status;
	return result->is_eof ? NFS4_OK : NFS4ERR_ADMIN_REVOKED;
}

static void fill_outcome(struct async *a, const struct ssc_copy_result *result,
			 struct ssc_copy_outcome *outcome)
{
	struct gsh_buffdesc desc = {.addr = outcome->verf, .len = sizeof(outcome->verf)};
	bool is_safe = result->commit_status == NFS4_OK || !atomic_load(&a->dst->has_unstable);

	*outcome = (struct ssc_copy_outcome){
		.status = status_of(result),
		.count = result->bytes,
		.committed = is_safe ? FILE_SYNC4 : UNSTABLE4,
	};
	op_ctx->fsal_export->exp_ops.get_write_verifier(op_ctx->fsal_export, &desc);
	/* The client is told the verifier that was; its COMMIT finds another one. */
	if (!is_safe)
		ssc_copy_export_reset_verifier(a->dst->gsh_export);
}

static void finish(struct async *a)
{
	struct ssc_copy_result result;
	struct ssc_copy_outcome outcome;
	struct req_op_context ctx;

	ssc_copy_get_result(atomic_load(&a->copy), &result);
	ssc_copy_side_enter(a->dst, &ctx);
	ssc_copy_side_wrote(a->dst, false);
	fill_outcome(a, &result, &outcome);
	ssc_copy_side_leave();
	ssc_copy_side_free(a->src);
	ssc_copy_side_free(a->dst);
	a->src = a->dst = NULL;
	ssc_copy_state_end(a->state, &outcome); /* and with it perhaps we */
}

static void finish_job(struct fridgethr_context *thread)
{
	finish(thread->arg);
}

/* On any thread, perhaps one that the end would have to wait for. */
static void copy_done(struct ssc_copy *copy, void *ctx)
{
	struct async *a = ctx;

	atomic_store(&a->copy, copy);
	if (fridgethr_submit(general_fridge, finish_job, a) != 0)
		finish(a); /* the server is stopping: nothing waits for us any more */
}

/* ---- the beginning ---- */

/* With two references: the starter's, and that of the table's state. */
static struct async *new_async(compound_data_t *data)
{
	struct async *a = gsh_calloc(1, sizeof(*a));

	atomic_store(&a->refs, 2);
	a->target = ssc_cb_target_new(data);
	a->fh.len = (uint8_t)data->currentFH.nfs_fh4_len;
	memcpy(a->fh.data, data->currentFH.nfs_fh4_val, a->fh.len);
	return a;
}

static void start(struct async *a, const struct ssc_copy_plan *plan)
{
	struct ssc_copy_spec spec = {
		.src = &plan->src->file,
		.dst = &plan->dst->file,
		.src_offset = plan->src_offset,
		.dst_offset = plan->dst_offset,
		.count = plan->count,
		.dst_size = plan->dst_size,
		.patience_ns = PATIENCE_NS,
		.commit = true,
		.done = copy_done,
		.ctx = a,
	};
	struct ssc_copy *copy = ssc_copy_start(ssc_copy_service_engine(), &spec);

	atomic_store(&a->copy, copy);
	if (atomic_load(&a->is_cancelled))
		ssc_copy_cancel(copy);
}

bool ssc_copy_async_start(compound_data_t *data, struct ssc_copy_plan *plan,
			  struct ssc_stateid *stateid)
{
	struct ssc_copy_table *table = ssc_copy_service_table();
	struct async *a;

	if (table == NULL || !ssc_channel_is_up(data->session))
		return false;
	a = new_async(data);
	a->state =
		ssc_copy_state_new(table, data->session->clientid, plan->src->gsh_export->export_id,
				   plan->dst->gsh_export->export_id, &ops, a, stateid);
	if (a->state == NULL) {
		async_free(a);
		async_free(a);
		return false;
	}
	a->src = plan->src;
	a->dst = plan->dst;
	a->src->has_limit = a->dst->has_limit = false;
	start(a, plan);
	async_free(a);
	return true;
}
