/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * export_ops.c - what the server asks of an export: its root, limits, handles and verifier.
 *
 * The root is given even while the upstream is away, with attributes that the cache above does not
 * trust, so that such a server costs its export nothing but a few seconds at the start.
 * Limits are the export's own, since upstreams differ; the server takes those of the module unless
 * it is told otherwise.
 * Threads: the server's.
 */
#include "export_mgr.h"
#include "nfs_core.h"

#include "ssc/clock.h"

#include "glue.h"

/* How long loading an export waits for its upstream. The server loads them one after another. */
#define START_WAIT_NS (3 * SSC_NS_PER_S)

static struct ssc_upstream_limits limits_of(struct fsal_export *export)
{
	struct ssc_export *exp = ssc_export_of(export);
	struct ssc_upstream_limits limits;

	exp->up->ops->limits(exp->up, &limits);
	return limits;
}

static uint32_t export_maxread(struct fsal_export *export)
{
	return limits_of(export).read_max_bytes;
}

static uint32_t export_maxwrite(struct fsal_export *export)
{
	return limits_of(export).write_max_bytes;
}

static uint32_t export_maxnamelen(struct fsal_export *export)
{
	return limits_of(export).name_max;
}

static uint32_t export_maxlink(struct fsal_export *export)
{
	return limits_of(export).link_max;
}

static uint64_t export_maxfilesize(struct fsal_export *export)
{
	return limits_of(export).file_size_max;
}

/* ---- the root ---- */

/* The request that loads an export has no caller, and should not wait as long as a client would. */
static uint64_t patience_ns(struct ssc_export *exp)
{
	uint64_t timeout = atomic_load(&exp->timeout_ns);

	if (op_ctx->caller_addr == NULL && timeout > START_WAIT_NS)
		return START_WAIT_NS;
	return timeout;
}

static fsal_status_t give_root(struct ssc_export *exp, struct fsal_obj_handle **obj,
			       struct fsal_attrlist *attrs_out)
{
	struct ssc_handle *root;
	struct ssc_attrs attrs;
	struct ssc_fh fh;
	enum ssc_err err;

	err = ssc_root_fh(exp, NULL, ssc_clock_now_ns() + patience_ns(exp), &fh);
	root = ssc_handle_new_root(exp);
	if (err == SSC_OK)
		err = ssc_attrs_fetch(exp, root, &attrs);
	if (err == SSC_OK) {
		ssc_attrs_show(exp, root, &attrs, attrs_out);
	} else {
		ssc_log_warn("%s: the upstream does not give its root now (%s); clients are told "
			     "to come back until it does",
			     exp->name, ssc_err_str(err));
		if (attrs_out != NULL)
			attrs_out->valid_mask = ATTR_RDATTR_ERR;
	}
	*obj = &root->obj;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* ---- a path below the root, as NFSv3 clients may mount ---- */

/* What @path has below the export's own path: "" for the root itself, NULL when it is not below. */
static const char *path_below(const char *path)
{
	const char *top = CTX_FULLPATH(op_ctx);
	size_t len = strlen(top);

	while (len > 0 && top[len - 1] == '/')
		len--;
	if (strncmp(path, top, len) != 0 || (path[len] != 0 && path[len] != '/'))
		return NULL;
	path += len;
	return path + strspn(path, "/");
}

static enum ssc_err walk(struct ssc_export *exp, const char *path, struct ssc_handle **found,
			 struct ssc_attrs *attrs)
{
	struct ssc_handle *at = ssc_handle_new_root(exp);
	char name[SSC_NAME_MAX + 1];
	enum ssc_err err = SSC_OK;

	while (err == SSC_OK && *path != 0) {
		size_t len = strcspn(path, "/");
		struct ssc_handle *next = NULL;

		if (len > SSC_NAME_MAX) {
			err = SSC_E_NAMETOOLONG;
			break;
		}
		memcpy(name, path, len);
		name[len] = 0;
		path += len + strspn(path + len, "/");
		if (strcmp(name, ".") == 0)
			continue;
		err = strcmp(name, "..") == 0 ? SSC_E_INVAL
					      : ssc_namespace_lookup(exp, at, name, &next, attrs);
		if (err == SSC_OK) {
			ssc_handle_free(at);
			at = next;
		}
	}
	if (err == SSC_OK)
		*found = at;
	else
		ssc_handle_free(at);
	return err;
}

static fsal_status_t export_lookup_path(struct fsal_export *export, const char *path,
					struct fsal_obj_handle **obj,
					struct fsal_attrlist *attrs_out)
{
	struct ssc_export *exp = ssc_export_of(export);
	const char *below = path_below(path);
	struct ssc_handle *found;
	struct ssc_attrs attrs;
	enum ssc_err err;

	*obj = NULL;
	if (below == NULL)
		return ssc_fsal_status(SSC_E_NOENT);
	if (*below == 0)
		return give_root(exp, obj, attrs_out);
	err = walk(exp, below, &found, &attrs);
	if (err != SSC_OK)
		return ssc_fsal_status(err);
	ssc_attrs_show(exp, found, &attrs, attrs_out);
	*obj = &found->obj;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* ---- handles from clients ---- */

static fsal_status_t export_wire_to_host(struct fsal_export *export, fsal_digesttype_t type,
					 struct gsh_buffdesc *fh, int flags)
{
	struct ssc_export *exp = ssc_export_of(export);

	/* Bytes in an order of their own: the other machine's, which flags tells, does not matter. */
	(void)type, (void)flags;
	return ssc_fsal_status(ssc_key_check(fh->addr, fh->len, exp->upstream_id, exp->path_hash));
}

static fsal_status_t export_create_handle(struct fsal_export *export, struct gsh_buffdesc *fh_desc,
					  struct fsal_obj_handle **obj,
					  struct fsal_attrlist *attrs_out)
{
	struct ssc_export *exp = ssc_export_of(export);
	struct ssc_handle *h;
	struct ssc_attrs attrs;
	struct ssc_fh fh;
	enum ssc_err err;

	*obj = NULL;
	err = ssc_key_check(fh_desc->addr, fh_desc->len, exp->upstream_id, exp->path_hash);
	if (err != SSC_OK)
		return ssc_fsal_status(err);
	if (ssc_key_form(fh_desc->addr) == SSC_KEY_ROOT)
		return give_root(exp, obj, attrs_out);

	ssc_key_fh(fh_desc->addr, fh_desc->len, &fh);
	err = ssc_run_getattr(exp, &fh, &attrs);
	if (err != SSC_OK)
		return ssc_fsal_status(err);
	h = ssc_handle_new(exp, &fh, &attrs);
	ssc_attrs_show(exp, h, &attrs, attrs_out);
	*obj = &h->obj;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* ---- the file system ---- */

static void show_fsstat(const struct ssc_call *call, fsal_dynamicfsinfo_t *info)
{
	info->total_bytes = call->res.fsstat.total_bytes;
	info->free_bytes = call->res.fsstat.free_bytes;
	info->avail_bytes = call->res.fsstat.avail_bytes;
	info->total_files = call->res.fsstat.total_files;
	info->free_files = call->res.fsstat.free_files;
	info->avail_files = call->res.fsstat.avail_files;
}

static fsal_status_t export_get_dynamic_info(struct fsal_export *export,
					     struct fsal_obj_handle *obj,
					     fsal_dynamicfsinfo_t *info)
{
	struct ssc_export *exp = ssc_export_of(export);
	struct ssc_run run = {.exp = exp, .h = ssc_handle_of(obj), .op = SSC_OP_FSSTAT};
	struct ssc_upstream_limits limits = limits_of(export);
	struct ssc_call *call = NULL;
	enum ssc_err err;

	/* Asked once more while the export is loaded: the wait for its root was enough. */
	if (op_ctx->caller_addr == NULL && !limits.known)
		return ssc_fsal_status(SSC_E_DOWN);
	err = ssc_run(&run, &call);
	if (err == SSC_OK) {
		show_fsstat(call, info);
		limits = limits_of(export);
		info->maxread = limits.read_max_bytes;
		info->maxwrite = limits.write_max_bytes;
		info->time_delta.tv_sec = limits.time_delta.s;
		info->time_delta.tv_nsec = limits.time_delta.ns;
	}
	ssc_call_put(call);
	return ssc_fsal_status(err);
}

/* ---- the rest ---- */

static void export_get_write_verifier(struct fsal_export *export, struct gsh_buffdesc *verf)
{
	struct ssc_export *exp = ssc_export_of(export);
	uint8_t value[SSC_VERF_BYTES];

	ssc_verifier_value(&exp->verifier, ssc_noted_generation(exp), value);
	memcpy(verf->addr, value, verf->len < sizeof(value) ? verf->len : sizeof(value));
}

static fsal_status_t export_no_quota(struct fsal_export *export, const char *path, int type, int id,
				     fsal_quota_t *quota)
{
	(void)export, (void)path, (void)type, (void)id, (void)quota;
	return fsalstat(ERR_FSAL_NO_QUOTA, 0);
}

static fsal_status_t export_no_set_quota(struct fsal_export *export, const char *path, int type,
					 int id, fsal_quota_t *quota, fsal_quota_t *result)
{
	(void)export, (void)path, (void)type, (void)id, (void)quota, (void)result;
	return fsalstat(ERR_FSAL_NO_QUOTA, 0);
}

void ssc_export_ops_init(struct export_ops *ops)
{
	ops->prepare_unexport = ssc_export_prepare_unexport;
	ops->release = ssc_export_release;
	ops->lookup_path = export_lookup_path;
	ops->wire_to_host = export_wire_to_host;
	ops->create_handle = export_create_handle;
	ops->get_fs_dynamic_info = export_get_dynamic_info;
	ops->fs_maxread = export_maxread;
	ops->fs_maxwrite = export_maxwrite;
	ops->fs_maxnamelen = export_maxnamelen;
	ops->fs_maxlink = export_maxlink;
	ops->fs_maxfilesize = export_maxfilesize;
	ops->get_quota = export_no_quota;
	ops->set_quota = export_no_set_quota;
	ops->get_write_verifier = export_get_write_verifier;
	ops->alloc_state = ssc_open_alloc_state;
	/* free_state: the default frees what alloc_state gave */
}
