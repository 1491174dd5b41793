/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_copy.c - COPY, synchronous: see op_copy.h.
 *
 * A request and the completion of its copy meet in `passed`: who comes second goes on with the answer.
 * If that is the completion, it has the server resume the compound on one of its workers, and nothing
 * of the request is touched any more.
 */
#include "nfs_core.h"
#include "nfs_proto_functions.h"

#include "ssc/clock.h"

#include "compound_xdr.h"
#include "copy_service.h"
#include "op_copy.h"

/* One synchronous COPY. */
struct sync_copy {
	struct svc_req *req;
	struct ssc_copy_plan plan;
	struct ssc_copy *copy;
	atomic_bool passed; /* by the request or by the completion */
};

static void fill_verifier(uint8_t verf[SSC_VERIFIER_BYTES])
{
	struct gsh_buffdesc desc = {.addr = verf, .len = SSC_VERIFIER_BYTES};

	op_ctx->fsal_export->exp_ops.get_write_verifier(op_ctx->fsal_export, &desc);
}

static enum nfs_req_result answer(struct ssc_copy_res *res, uint32_t status)
{
	res->status = status;
	return status == NFS4_OK ? NFS_REQ_OK : NFS_REQ_ERROR;
}

static enum nfs_req_result answer_nothing(struct ssc_copy_res *res)
{
	res->consecutive = res->synchronous = true;
	res->response.committed = FILE_SYNC4;
	fill_verifier(res->response.verf);
	return answer(res, NFS4_OK);
}

/*
 * What was copied is told, even if an error came then: the client asks for the rest, and meets the error
 * there. No bytes mean the end of the source, so they are never said of anything else.
 */
static uint32_t outcome(const struct ssc_copy_result *result)
{
	if (result->commit_status != NFS4_OK)
		return result->commit_status;
	if (result->bytes > 0)
		return NFS4_OK;
	if (result->status != NFS4_OK)
		return result->status;
	return result->is_eof ? NFS4_OK : NFS4ERR_DELAY;
}

static enum nfs_req_result finish(struct sync_copy *c, struct ssc_copy_res *res)
{
	struct ssc_copy_result result;
	uint32_t status;

	ssc_copy_get_result(c->copy, &result);
	ssc_copy_put(c->copy);
	ssc_copy_side_wrote(c->plan.dst, true);
	status = outcome(&result);
	if (status == NFS4_OK) {
		res->consecutive = res->synchronous = true;
		res->response.count = result.bytes;
		res->response.committed =
			atomic_load(&c->plan.dst->has_unstable) && !c->plan.must_commit
				? UNSTABLE4
				: FILE_SYNC4;
		fill_verifier(res->response.verf);
	}
	ssc_copy_side_free(c->plan.src);
	ssc_copy_side_free(c->plan.dst);
	gsh_free(c);
	return answer(res, status);
}

static void copy_done(struct ssc_copy *copy, void *ctx)
{
	struct sync_copy *c = ctx;

	(void)copy;
	if (atomic_exchange(&c->passed, true))
		svc_resume(c->req);
}

static enum nfs_req_result start_sync(compound_data_t *data, struct ssc_copy_plan *plan,
				      struct ssc_copy_res *res)
{
	const struct ssc_module_config *config = &ssc_module.config;
	struct sync_copy *c = gsh_calloc(1, sizeof(*c));
	struct ssc_copy_spec spec = {
		.src = &plan->src->file,
		.dst = &plan->dst->file,
		.src_offset = plan->src_offset,
		.dst_offset = plan->dst_offset,
		.count = plan->count,
		.dst_size = plan->dst_size,
		.stop_ns = ssc_clock_now_ns() + config->copy_sync_max_ms * SSC_NS_PER_MS,
		.commit = plan->must_commit,
		.done = copy_done,
		.ctx = c,
	};

	c->req = data->req;
	c->plan = *plan;
	data->op_data = c;
	c->copy = ssc_copy_start(ssc_copy_service_engine(), &spec);
	if (!atomic_exchange(&c->passed, true))
		return NFS_REQ_ASYNC_WAIT; /* the compound may run elsewhere from here on */
	data->op_data = NULL;
	return finish(c, res);
}

static bool wants_async(const struct ssc_copy_args *args, const struct ssc_copy_plan *plan)
{
	return !args->synchronous && plan->count > ssc_module.config.copy_sync_max_bytes;
}

static enum nfs_req_result answer_async(struct ssc_copy_res *res, const struct ssc_stateid *stateid)
{
	res->consecutive = true;
	res->response.has_callback_id = true;
	res->response.callback_id = *stateid;
	res->response.committed = UNSTABLE4;
	fill_verifier(res->response.verf);
	return answer(res, NFS4_OK);
}

enum nfs_req_result ssc_op_copy(struct nfs_argop4 *op, compound_data_t *data,
				struct nfs_resop4 *resp)
{
	const struct ssc_copy_args *args = ssc_copy_args_of(op);
	struct ssc_copy_res *res = ssc_copy_res_of(resp);
	struct ssc_copy_plan plan = {.count = 0};
	struct ssc_stateid stateid;
	nfsstat4 status;

	resp->resop = NFS4_OP_COPY;
	memset(res, 0, sizeof(*res));
	if (args == NULL)
		return answer(res, NFS4ERR_DELAY);
	status = ssc_copy_check(data, args, ssc_module.config.copy_strict_range, &plan);
	if (status == NFS4_OK && plan.count > 0) {
		if (!wants_async(args, &plan) || !ssc_copy_async_start(data, &plan, &stateid))
			return start_sync(data, &plan, res);
		return answer_async(res, &stateid);
	}
	ssc_copy_side_free(plan.src);
	ssc_copy_side_free(plan.dst);
	return status == NFS4_OK ? answer_nothing(res) : answer(res, status);
}

enum nfs_req_result ssc_op_copy_resume(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp)
{
	struct sync_copy *c = data->op_data;

	(void)op;
	data->op_data = NULL;
	return finish(c, ssc_copy_res_of(resp));
}
