/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_side.c - see copy_side.h.
 */
#include "export_mgr.h"

#include "copy_side.h"

/* ---- making ---- */

static void copy_creds(struct user_cred *to, const struct user_cred *from)
{
	*to = *from;
	to->caller_garray = NULL;
	if (from->caller_glen == 0)
		return;
	to->caller_garray = gsh_malloc(from->caller_glen * sizeof(gid_t));
	memcpy(to->caller_garray, from->caller_garray, from->caller_glen * sizeof(gid_t));
}

static void reach_upstream(struct ssc_copy_side *side, struct ssc_export *exp, bool has_limit)
{
	struct ssc_upstream_limits limits;

	side->exp = exp;
	side->h = ssc_handle_below(side->obj);
	side->has_limit = has_limit;
	ssc_key_fh(side->h->key.data, side->h->key.len, &side->fh);
	ssc_run_cred(&side->cred);
	exp->up->ops->limits(exp->up, &limits);
	side->file.ops = &ssc_copy_side_upstream_ops;
	side->file.io_max = limits.read_max_bytes < limits.write_max_bytes ? limits.read_max_bytes
									   : limits.write_max_bytes;
}

struct ssc_copy_side *ssc_copy_side_new(struct fsal_obj_handle *obj, struct ssc_export *exp,
					bool bypass, bool has_limit)
{
	struct ssc_copy_side *side = gsh_calloc(1, sizeof(*side));

	side->gsh_export = op_ctx->ctx_export;
	get_gsh_export_ref(side->gsh_export);
	side->obj = obj;
	obj->obj_ops->get_ref(obj);
	side->bypass = bypass;
	copy_creds(&side->creds, &op_ctx->creds);
	side->perms = op_ctx->export_perms;
	if (exp != NULL) {
		reach_upstream(side, exp, has_limit);
	} else {
		side->file.ops = &ssc_copy_side_host_ops;
		side->file.is_blocking = true;
	}
	return side;
}

void ssc_copy_side_free(struct ssc_copy_side *side)
{
	struct req_op_context ctx;

	if (side == NULL)
		return;
	init_op_context_simple(&ctx, side->gsh_export, side->gsh_export->fsal_export);
	side->obj->obj_ops->put_ref(side->obj);
	release_op_context(); /* and the reference on the export */
	gsh_free(side->creds.caller_garray);
	gsh_free(side);
}

/* ---- contexts ---- */

void ssc_copy_side_enter(struct ssc_copy_side *side, struct req_op_context *ctx)
{
	get_gsh_export_ref(side->gsh_export);
	init_op_context(ctx, side->gsh_export, side->gsh_export->fsal_export, NULL, NFS_V4, 2,
			NFS_REQUEST);
	ctx->creds = side->creds;
	ctx->original_creds = side->creds;
	ctx->export_perms = side->perms;
}

void ssc_copy_side_leave(void)
{
	release_op_context(); /* and the reference of enter */
}

/* ---- attributes ---- */

void ssc_copy_side_forget_attrs(struct fsal_obj_handle *obj)
{
	const struct fsal_up_vector *up = ssc_copy_export_below(op_ctx->ctx_export)->up_ops;
	struct gsh_buffdesc key;

	obj->obj_ops->handle_to_key(obj, &key);
	(void)up->invalidate(up, &key, FSAL_UP_INVALIDATE_ATTRS);
}

void ssc_copy_side_wrote(struct ssc_copy_side *side, bool is_request)
{
	/* Writes by the host's methods went through its cache. */
	if (side->exp == NULL)
		return;
	ssc_copy_side_forget_attrs(side->obj);
	if (is_request)
		ssc_noted_set(op_ctx, side->h, atomic_load(&side->generation));
}

fsal_status_t ssc_copy_side_size(struct fsal_obj_handle *obj, struct ssc_export *exp,
				 uint64_t *size)
{
	struct fsal_attrlist attrs;
	struct ssc_attrs fetched;
	fsal_status_t status;
	enum ssc_err err;

	if (exp != NULL) {
		err = ssc_attrs_fetch(exp, ssc_handle_below(obj), &fetched);
		*size = fetched.size;
		return ssc_fsal_status(err);
	}
	ssc_copy_side_forget_attrs(obj);
	fsal_prepare_attrs(&attrs, ATTR_SIZE);
	status = obj->obj_ops->getattrs(obj, &attrs);
	*size = attrs.filesize;
	fsal_release_attrs(&attrs);
	return status;
}
