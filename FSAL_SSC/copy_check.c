/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_check.c - whether a COPY may be done, and what it comes to.
 *
 * The destination is the current file, and op_ctx is its export's. Its side is checked by the server
 * itself: ALLOCATE of no bytes makes every check that a WRITE makes, and changes nothing.
 * The source is the saved file. Its rights are those that its own export gives to the caller, so they are
 * found in a context of that export, with the caller mapped anew (struct source).
 */
#include <limits.h>

#include "export_mgr.h"
#include "nfs_creds.h"
#include "nfs_exports.h"

#include "compound_xdr.h"
#include "nfs4_errmap.h"
#include "op_bind.h"
#include "op_copy.h"
#include "stateid.h"

/* No file is longer, and no offset beyond it can be handed on. */
#define OFFSET_MAX ((uint64_t)INT64_MAX)

/* Up to this, looking for holes costs more than it saves, and so does asking for a size. */
#define SMALL_BYTES 65536

/* ---- the source's export ---- */

/* A context of the source's export on top of the request's own, while it is needed. */
struct source {
	struct req_op_context ctx;
	struct req_op_context *request;
	bool is_other; /* the source's export is not the destination's */
};

static nfsstat4 enter_source(compound_data_t *data, struct source *s)
{
	struct req_op_context *request = op_ctx;

	s->request = request;
	s->is_other = data->saved_export != request->ctx_export;
	if (!s->is_other)
		return NFS4_OK;
	get_gsh_export_ref(data->saved_export);
	init_op_context(&s->ctx, data->saved_export, data->saved_export->fsal_export,
			request->caller_addr, request->nfs_vers, request->nfs_minorvers,
			request->req_type);
	s->ctx.client = request->client;
	s->ctx.start_time = request->start_time;
	s->ctx.original_creds = request->original_creds;
	s->ctx.cred_flags = request->cred_flags;
	s->ctx.caller_gdata = request->caller_gdata;
	return nfs4_export_check_access(data->req);
}

static void leave_source(struct source *s)
{
	if (!s->is_other)
		return;
	/* Groups that had to be looked up are freed with the request. */
	s->request->caller_gdata = s->ctx.caller_gdata;
	gsh_free(s->ctx.caller_garray_copy);
	gsh_free(s->ctx.managed_garray_copy);
	release_op_context(); /* and the reference on the export */
}

/* ---- handles, types, exports ---- */

static bool is_there(const nfs_fh4 *fh, const struct fsal_obj_handle *obj)
{
	return fh->nfs_fh4_len != 0 && obj != NULL;
}

static nfsstat4 check_files(const compound_data_t *data)
{
	if (!is_there(&data->currentFH, data->current_obj) ||
	    !is_there(&data->savedFH, data->saved_obj) || data->saved_export == NULL)
		return NFS4ERR_NOFILEHANDLE;
	if (data->current_filetype != REGULAR_FILE || data->saved_filetype != REGULAR_FILE)
		return NFS4ERR_WRONG_TYPE;
	return NFS4_OK;
}

/* ---- ranges ---- */

static nfsstat4 check_range(const struct ssc_copy_args *args, struct ssc_copy_plan *plan)
{
	uint64_t count = args->count;

	if (args->src_offset + count < count || args->dst_offset + count < count)
		return NFS4ERR_INVAL;
	if (args->dst_offset > OFFSET_MAX)
		return NFS4ERR_FBIG;
	plan->src_offset = args->src_offset;
	plan->dst_offset = args->dst_offset;
	if (args->src_offset > OFFSET_MAX)
		return NFS4_OK; /* beyond the end of any file */
	if (count == 0 || count > OFFSET_MAX - args->src_offset)
		count = OFFSET_MAX - args->src_offset;
	if (count > OFFSET_MAX - args->dst_offset)
		count = OFFSET_MAX - args->dst_offset;
	plan->count = count;
	return NFS4_OK;
}

static bool overlaps(uint64_t a, uint64_t b, uint64_t count)
{
	return a < b ? b - a < count : a - b < count;
}

/*
 * The source is @size bytes long. What lies beyond is not copied: so a copy does not chase the end of a
 * file that grows, least of all of the file that it writes to.
 */
static nfsstat4 cut_to_size(const struct ssc_copy_args *args, uint64_t size,
			    struct ssc_copy_plan *plan)
{
	uint64_t left = args->src_offset < size ? size - args->src_offset : 0;

	if (plan->is_strict && (args->src_offset > size || args->count > left))
		return NFS4ERR_INVAL;
	if (plan->count > left)
		plan->count = left;
	if (plan->is_same && overlaps(plan->src_offset, plan->dst_offset, plan->count))
		return NFS4ERR_INVAL;
	return NFS4_OK;
}

/* ---- the two sides ---- */

/* Every check of a WRITE: type, quota, stateid, access, delegations, size limit. */
static nfsstat4 probe_write(compound_data_t *data, const struct ssc_stateid *stateid,
			    uint64_t offset)
{
	nfs_argop4 arg = {.argop = NFS4_OP_ALLOCATE};
	nfs_resop4 res = {.resop = NFS4_OP_ALLOCATE};
	ALLOCATE4args *args = &arg.nfs_argop4_u.opallocate;

	args->aa_stateid.seqid = stateid->seqid;
	memcpy(args->aa_stateid.other, stateid->other, sizeof(stateid->other));
	args->aa_offset = offset;
	args->aa_length = 0;
	(void)ssc_op_stock(NFS4_OP_ALLOCATE, &arg, data, &res);
	return res.nfs_resop4_u.opallocate.ar_status;
}

static nfsstat4 check_limit(uint64_t limit, uint64_t offset, uint64_t count)
{
	return offset > limit || count > limit - offset ? NFS4ERR_FBIG : NFS4_OK;
}

static nfsstat4 check_destination(compound_data_t *data, const struct ssc_copy_args *args,
				  struct ssc_stateid_found *found)
{
	struct fsal_obj_handle *obj = data->current_obj;
	nfsstat4 status;

	if ((op_ctx->export_perms.options & EXPORT_OPTION_WRITE_ACCESS) == 0)
		return NFS4ERR_ROFS;
	status = ssc_stateid_check(data, obj, false, &args->dst_stateid, SSC_STATEID_WRITE, found);
	if (status != NFS4_OK)
		return status;
	return probe_write(data, &found->stateid, args->dst_offset);
}

/* As READ: who may execute a file may read it. In the source's context. */
static nfsstat4 check_read_access(struct fsal_obj_handle *obj)
{
	fsal_status_t status;

	if ((op_ctx->export_perms.options & EXPORT_OPTION_READ_ACCESS) == 0)
		return NFS4ERR_ACCESS;
	status = obj->obj_ops->test_access(obj, FSAL_READ_ACCESS, NULL, NULL, true);
	if (status.major == ERR_FSAL_ACCESS)
		status = fsal_access(obj, FSAL_MODE_MASK_SET(FSAL_X_OK) |
						  FSAL_ACE4_MASK_SET(FSAL_ACE_PERM_EXECUTE));
	return ssc_nfs4_of_fsal(status);
}

/* Others' reservations: what a stateid of nobody's must respect. */
static nfsstat4 check_reservations(struct fsal_obj_handle *obj, struct ssc_export *exp,
				   fsal_openflags_t flags, const struct ssc_stateid_found *found)
{
	if (!found->is_special || exp == NULL)
		return NFS4_OK; /* the inner FSAL checks each read and write */
	return ssc_nfs4_of_fsal(ssc_open_allows(ssc_handle_below(obj), NULL, flags, found->bypass));
}

/* Whether it matters how long the source is. */
static bool needs_size(const struct ssc_copy_args *args, const struct ssc_copy_plan *plan)
{
	return args->count == 0 || plan->count > ssc_module.config.copy_sync_max_bytes ||
	       plan->is_strict || plan->is_same;
}

/* In the source's context. */
static nfsstat4 prepare_source(compound_data_t *data, const struct ssc_copy_args *args,
			       struct ssc_export *exp, struct ssc_copy_plan *plan)
{
	struct fsal_obj_handle *obj = data->saved_obj;
	struct ssc_stateid_found found;
	uint64_t size;
	nfsstat4 status;

	status = ssc_stateid_check(data, obj, true, &args->src_stateid, SSC_STATEID_READ, &found);
	if (status == NFS4_OK)
		status = check_read_access(obj);
	if (status == NFS4_OK)
		status = check_reservations(obj, exp, FSAL_O_READ, &found);
	if (status == NFS4_OK && needs_size(args, plan)) {
		status = ssc_nfs4_of_fsal(ssc_copy_side_size(obj, exp, &size));
		if (status == NFS4_OK)
			status = cut_to_size(args, size, plan);
	}
	if (status == NFS4_OK)
		status = check_limit(op_ctx->ctx_export->MaxOffsetRead, plan->src_offset,
				     plan->count);
	if (status == NFS4_OK)
		plan->src = ssc_copy_side_new(obj, exp, !found.is_special || found.bypass, true);
	return status;
}

static nfsstat4 prepare_destination(compound_data_t *data, struct ssc_export *exp,
				    const struct ssc_stateid_found *found,
				    struct ssc_copy_plan *plan)
{
	struct fsal_obj_handle *obj = data->current_obj;
	nfsstat4 status = check_reservations(obj, exp, FSAL_O_WRITE, found);

	if (status == NFS4_OK)
		status = check_limit(op_ctx->ctx_export->MaxOffsetWrite, plan->dst_offset,
				     plan->count);
	plan->dst_size = UINT64_MAX;
	if (status == NFS4_OK && plan->count > SMALL_BYTES)
		status = ssc_nfs4_of_fsal(ssc_copy_side_size(obj, exp, &plan->dst_size));
	if (status != NFS4_OK)
		return status;
	plan->must_commit = (op_ctx->export_perms.options & EXPORT_OPTION_COMMIT) != 0;
	plan->dst = ssc_copy_side_new(obj, exp, !found->is_special, true);
	return NFS4_OK;
}

nfsstat4 ssc_copy_check(compound_data_t *data, const struct ssc_copy_args *args, bool is_strict,
			struct ssc_copy_plan *plan)
{
	struct ssc_export *src_exp = NULL, *dst_exp = NULL;
	struct ssc_stateid_found found;
	struct source source;
	nfsstat4 status;

	if (args->sources.n_all > 0)
		return NFS4ERR_NOTSUPP; /* another server's file */
	status = check_files(data);
	if (status != NFS4_OK)
		return status;
	if (ssc_copy_export_kind(op_ctx->ctx_export, &dst_exp) == SSC_COPY_NOT ||
	    ssc_copy_export_kind(data->saved_export, &src_exp) == SSC_COPY_NOT)
		return NFS4ERR_NOTSUPP;
	status = check_range(args, plan);
	if (status == NFS4_OK)
		status = check_destination(data, args, &found);
	if (status != NFS4_OK)
		return status;

	plan->is_strict = is_strict;
	plan->is_same = data->saved_obj == data->current_obj ||
			data->current_obj->obj_ops->handle_cmp(data->current_obj, data->saved_obj);
	status = enter_source(data, &source);
	if (status == NFS4_OK)
		status = prepare_source(data, args, src_exp, plan);
	leave_source(&source);
	if (status == NFS4_OK)
		status = prepare_destination(data, dst_exp, &found, plan);
	return status;
}
