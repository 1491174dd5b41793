/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * stack.c - an export of another FSAL with ours around it: FSAL { Name = SSC; FSAL { Name = VFS; } }.
 *
 * Ours is in no data path: create_export lets the inner FSAL make its export and leaves that one in
 * op_ctx, so the server stacks its cache right on top of the inner one. What is left of us is the
 * configuration block, and the note that makes copies possible (copy_export.h).
 *
 * References  The server took one on our module for the export, and will drop one on the module of the
 *             export that it finds, which is the inner one. So the one that reading the inner block took
 *             is left to the server, and the one on us is dropped here.
 * Updates     come to us with the inner export as the original.
 */
#include "copy_export.h"
#include "glue.h"

fsal_status_t ssc_stack_create(struct fsal_module *module, struct ssc_export_config *config,
			       struct config_error_type *err_type,
			       const struct fsal_up_vector *up_ops)
{
	struct fsal_module *inner = lookup_fsal(config->inner.name);
	fsal_status_t status;

	if (inner == NULL)
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	fsal_put(inner); /* the reference of reading the block is enough */
	op_ctx->fsal_module = inner;
	status = inner->m_ops.create_export(inner, config->inner.node, err_type, up_ops);
	if (FSAL_IS_ERROR(status)) {
		op_ctx->fsal_module = module;
		return status;
	}
	config->inner.node = NULL; /* the reference is the export's now */
	fsal_put(module);
	ssc_copy_export_stacked(op_ctx->fsal_export, config->allow_copy);
	ssc_log_event("export %d (%s): FSAL %s serves it%s", op_ctx->ctx_export->export_id,
		      CTX_FULLPATH(op_ctx), inner->name,
		      config->allow_copy ? ", with server-side copy" : "");
	return status;
}

fsal_status_t ssc_stack_update(const struct ssc_export_config *config,
			       struct config_error_type *err_type, struct fsal_export *original,
			       struct fsal_module *super)
{
	struct fsal_module *inner = lookup_fsal(config->inner.name);
	fsal_status_t status;

	if (inner == NULL)
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	/* That it still is the same FSAL is what each checks first. */
	status = inner->m_ops.update_export(inner, config->inner.node, err_type, original, super);
	if (!FSAL_IS_ERROR(status))
		ssc_copy_export_updated(original, config->allow_copy);
	fsal_put(inner);
	return status;
}

void ssc_stack_drop(struct ssc_export_config *config)
{
	struct fsal_module *inner = NULL;

	/* Without a node the block was not there, or its FSAL could not be loaded. */
	if (config->inner.node != NULL)
		inner = lookup_fsal(config->inner.name);
	if (inner == NULL)
		return;
	fsal_put(inner); /* of the look-up */
	fsal_put(inner); /* of reading the block */
	config->inner.node = NULL;
}
