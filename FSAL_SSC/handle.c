/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * handle.c - objects: their birth and end, and the bytes that name them.
 *
 * The cache above owns each object and gives it back by release.
 * Threads: the server's. Nothing here blocks on the upstream.
 */
#include "glue.h"

static struct ssc_handle *handle_alloc(struct ssc_export *exp, const struct ssc_key *key,
				       object_file_type_t type)
{
	size_t bytes = offsetof(struct ssc_handle, key) + offsetof(struct ssc_key, data) + key->len;
	struct ssc_handle *h = gsh_calloc(1, bytes);

	h->key.len = key->len;
	memcpy(h->key.data, key->data, key->len);
	ssc_kept_init(&h->kept);
	pthread_mutex_init(&h->lock, NULL);
	fsal_obj_handle_init(&h->obj, &exp->export, type);
	h->obj.obj_ops = &ssc_module.obj_ops;
	return h;
}

struct ssc_handle *ssc_handle_new_root(struct ssc_export *exp)
{
	struct ssc_handle *h;
	struct ssc_key key;

	ssc_key_make_root(exp->upstream_id, exp->path_hash, &key);
	h = handle_alloc(exp, &key, DIRECTORY);
	ssc_root_identity(exp, &h->obj.fsid, &h->obj.fileid);
	return h;
}

struct ssc_handle *ssc_handle_new(struct ssc_export *exp, const struct ssc_fh *fh,
				  const struct ssc_attrs *attrs)
{
	struct ssc_handle *h;
	struct ssc_key key;

	if (attrs->type == SSC_FT_DIR && ssc_root_is(exp, fh)) {
		h = ssc_handle_new_root(exp);
	} else {
		ssc_key_make_object(exp->upstream_id, fh, &key);
		h = handle_alloc(exp, &key, ssc_attrs_type(attrs->type));
		h->obj.fsid = ssc_root_fsid(exp, attrs->fsid);
		h->obj.fileid = attrs->fileid;
	}
	ssc_kept_arrived(&h->kept, 0, attrs, false);
	return h;
}

void ssc_handle_free(struct ssc_handle *h)
{
	fsal_obj_handle_fini(&h->obj);
	pthread_mutex_destroy(&h->lock);
	ssc_kept_fini(&h->kept);
	gsh_free(h);
}

static void handle_release(struct fsal_obj_handle *obj)
{
	ssc_handle_free(ssc_handle_of(obj));
}

/*
 * What the upstream named was known already. When it was opened under both names of it here at once,
 * one keeps the reservations of both.
 */
static fsal_status_t handle_merge(struct fsal_obj_handle *orig, struct fsal_obj_handle *dupe)
{
	if (orig->type != REGULAR_FILE || dupe->type != REGULAR_FILE)
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	ssc_open_met(ssc_handle_of(orig), ssc_handle_of(dupe));
	return merge_share(orig, &ssc_handle_of(orig)->share, &ssc_handle_of(dupe)->share);
}

static fsal_status_t handle_to_wire(const struct fsal_obj_handle *obj, fsal_digesttype_t type,
				    struct gsh_buffdesc *fh)
{
	const struct ssc_handle *h = ssc_handle_of(obj);

	ssc_open_uncount();
	if (fh->len < h->key.len) {
		ssc_log_warn("%s: the upstream's file handles of %d bytes do not fit into those of "
			     "NFSv%d (%zu bytes are left for them); clients must use NFSv4",
			     ssc_export_now()->name, h->key.len - SSC_KEY_HEAD_BYTES,
			     type == FSAL_DIGEST_NFSV3 ? 3 : 4, fh->len - SSC_KEY_HEAD_BYTES);
		return fsalstat(ERR_FSAL_TOOSMALL, 0);
	}
	memcpy(fh->addr, h->key.data, h->key.len);
	fh->len = h->key.len;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static void handle_to_key(struct fsal_obj_handle *obj, struct gsh_buffdesc *key)
{
	struct ssc_handle *h = ssc_handle_of(obj);

	key->addr = h->key.data;
	key->len = h->key.len;
}

struct ssc_handle *ssc_handle_below(struct fsal_obj_handle *obj)
{
	struct gsh_buffdesc key;

	/* The cache hands the question down, and the answer lies within our object. */
	obj->obj_ops->handle_to_key(obj, &key);
	return container_of((uint8_t *)key.addr, struct ssc_handle, key.data[0]);
}

/* ---- what NFSv3 has nothing for: answered quietly, where the defaults log CRIT ---- */

static fsal_status_t not_supported(void)
{
	return fsalstat(ERR_FSAL_NOTSUPP, ENOTSUP);
}

static fsal_status_t no_fallocate(struct fsal_obj_handle *obj, struct state_t *state,
				  uint64_t offset, uint64_t length, bool allocate)
{
	(void)obj, (void)state, (void)offset, (void)length, (void)allocate;
	return not_supported();
}

static fsal_status_t no_seek2(struct fsal_obj_handle *obj, struct state_t *state,
			      struct io_info *info)
{
	(void)obj, (void)state, (void)info;
	return not_supported();
}

static fsal_status_t no_seek(struct fsal_obj_handle *obj, struct io_info *info)
{
	(void)obj, (void)info;
	return not_supported();
}

static fsal_status_t no_getxattrs(struct fsal_obj_handle *obj, xattrkey4 *name, xattrvalue4 *value)
{
	(void)obj, (void)name, (void)value;
	return not_supported();
}

static fsal_status_t no_setxattrs(struct fsal_obj_handle *obj, setxattr_option4 option,
				  xattrkey4 *name, xattrvalue4 *value)
{
	(void)obj, (void)option, (void)name, (void)value;
	return not_supported();
}

static fsal_status_t no_removexattrs(struct fsal_obj_handle *obj, xattrkey4 *name)
{
	(void)obj, (void)name;
	return not_supported();
}

static fsal_status_t no_listxattrs(struct fsal_obj_handle *obj, count4 max, nfs_cookie4 *cookie,
				   bool_t *eof, xattrlist4 *names)
{
	(void)obj, (void)max, (void)cookie, (void)eof, (void)names;
	return not_supported();
}

static fsal_status_t no_list_ext_attrs(struct fsal_obj_handle *obj, unsigned int cookie,
				       struct fsal_xattrent *table, unsigned int size,
				       unsigned int *n, int *eof)
{
	(void)obj, (void)cookie, (void)table, (void)size, (void)n, (void)eof;
	return not_supported();
}

static fsal_status_t no_getextattr_id(struct fsal_obj_handle *obj, const char *name,
				      unsigned int *id)
{
	(void)obj, (void)name, (void)id;
	return not_supported();
}

static fsal_status_t no_getextattr_by_name(struct fsal_obj_handle *obj, const char *name,
					   void *buffer, size_t size, size_t *used)
{
	(void)obj, (void)name, (void)buffer, (void)size, (void)used;
	return not_supported();
}

static fsal_status_t no_getextattr_by_id(struct fsal_obj_handle *obj, unsigned int id, void *buffer,
					 size_t size, size_t *used)
{
	(void)obj, (void)id, (void)buffer, (void)size, (void)used;
	return not_supported();
}

static fsal_status_t no_setextattr(struct fsal_obj_handle *obj, const char *name, void *buffer,
				   size_t size, int create)
{
	(void)obj, (void)name, (void)buffer, (void)size, (void)create;
	return not_supported();
}

static fsal_status_t no_setextattr_by_id(struct fsal_obj_handle *obj, unsigned int id, void *buffer,
					 size_t size)
{
	(void)obj, (void)id, (void)buffer, (void)size;
	return not_supported();
}

static fsal_status_t no_remove_extattr_by_id(struct fsal_obj_handle *obj, unsigned int id)
{
	(void)obj, (void)id;
	return not_supported();
}

static fsal_status_t no_remove_extattr_by_name(struct fsal_obj_handle *obj, const char *name)
{
	(void)obj, (void)name;
	return not_supported();
}

void ssc_handle_ops_init(struct fsal_obj_ops *ops)
{
	fsal_default_obj_ops_init(ops);
	ops->release = handle_release;
	ops->merge = handle_merge;
	ops->handle_to_wire = handle_to_wire;
	ops->handle_to_key = handle_to_key;

	ops->fallocate = no_fallocate;
	ops->seek2 = no_seek2;
	ops->seek = no_seek;
	ops->getxattrs = no_getxattrs;
	ops->setxattrs = no_setxattrs;
	ops->removexattrs = no_removexattrs;
	ops->listxattrs = no_listxattrs;
	ops->list_ext_attrs = no_list_ext_attrs;
	ops->getextattr_id_by_name = no_getextattr_id;
	ops->getextattr_value_by_name = no_getextattr_by_name;
	ops->getextattr_value_by_id = no_getextattr_by_id;
	ops->setextattr_value = no_setextattr;
	ops->setextattr_value_by_id = no_setextattr_by_id;
	ops->remove_extattr_by_id = no_remove_extattr_by_id;
	ops->remove_extattr_by_name = no_remove_extattr_by_name;

	ssc_attrs_ops_init(ops);
	ssc_namespace_ops_init(ops);
	ssc_readdir_ops_init(ops);
	ssc_open_ops_init(ops);
	ssc_file_io_ops_init(ops);
}
