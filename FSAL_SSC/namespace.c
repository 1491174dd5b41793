/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * namespace.c - names: lookup, mkdir, mknode, symlink, readlink, link, rename, unlink.
 *
 * Each is one call to the upstream, which also checks the caller's permission. Whether an EXIST or
 * NOENT is the work of an earlier sending of the same request is decided below us (sync_call.h).
 *
 * Other file systems below the upstream's root are passed through, with fsids of their own. Not so
 * when the export sets Filesystem_Id: then all files would appear to be of one file system, in which
 * file ids repeat, and programs that compare them would take two files for one. There LOOKUP answers
 * XDEV, and readdir leaves the entry out, as Ganesha's own VFS does with what it does not export.
 *
 * Threads: the server's, often with its lock on the directory's content held.
 */
#include "export_mgr.h"
#include "nfs_exports.h"

#include "ssc/clock.h"

#include "glue.h"

static bool is_dir(const struct fsal_obj_handle *obj)
{
	return obj->type == DIRECTORY;
}

/* ---- lookup ---- */

bool ssc_namespace_is_closed(struct ssc_export *exp, const struct ssc_attrs *attrs,
			     const char *name)
{
	if (!op_ctx_export_has_option_set(EXPORT_OPTION_FSID_SET) ||
	    !ssc_root_is_crossing(exp, attrs))
		return false;
	ssc_log_warn(
		"%s: '%s' is another file system of the upstream; it is not served because the "
		"export sets Filesystem_Id. Export it on its own, or leave Filesystem_Id out",
		exp->name, name);
	return true;
}

/* The attributes of what a reply names, asked for when the reply did not hold them. */
static enum ssc_err object_attrs(struct ssc_export *exp, const struct ssc_call *call,
				 struct ssc_attrs *attrs)
{
	if (!call->res.object.has_attrs)
		return ssc_run_getattr(exp, &call->res.object.fh, attrs);
	*attrs = call->res.object.attrs;
	return SSC_OK;
}

/*
 * Nothing above the root may be reached by "..", so the root must be known before. It is never
 * asked for its own parent: the server above knows what is there.
 */
static enum ssc_err check_parent_lookup(struct ssc_export *exp, struct ssc_handle *dir)
{
	struct ssc_fh root, fh;
	enum ssc_err err;

	if (ssc_key_form(dir->key.data) == SSC_KEY_ROOT)
		return SSC_E_NOENT;
	err = ssc_root_fh(exp, NULL, ssc_clock_now_ns() + atomic_load(&exp->timeout_ns), &root);
	if (err != SSC_OK)
		return err;
	ssc_key_fh(dir->key.data, dir->key.len, &fh);
	return ssc_root_is(exp, &fh) ? SSC_E_NOENT : SSC_OK;
}

enum ssc_err ssc_namespace_lookup(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
				  struct ssc_handle **found, struct ssc_attrs *attrs)
{
	struct ssc_run run = {
		.exp = exp,
		.h = dir,
		.op = SSC_OP_LOOKUP,
		.fill = ssc_run_fill_name,
		.arg = name,
	};
	struct ssc_call *call = NULL;
	enum ssc_err err = SSC_OK;

	*found = NULL;
	if (strcmp(name, "..") == 0)
		err = check_parent_lookup(exp, dir);
	if (err == SSC_OK)
		err = ssc_run(&run, &call);
	if (err == SSC_OK)
		err = object_attrs(exp, call, attrs);
	if (err == SSC_OK && ssc_namespace_is_closed(exp, attrs, name))
		err = SSC_E_XDEV;
	if (err == SSC_OK)
		*found = ssc_handle_new(exp, &call->res.object.fh, attrs);
	ssc_call_put(call);
	return err;
}

/* Hand a new object up, or nothing. */
static fsal_status_t give(struct ssc_export *exp, enum ssc_err err, struct ssc_handle *h,
			  const struct ssc_attrs *attrs, struct fsal_obj_handle **obj,
			  struct fsal_attrlist *attrs_out)
{
	if (err != SSC_OK) {
		*obj = NULL;
		return ssc_fsal_status(err);
	}
	ssc_attrs_show(exp, h, attrs, attrs_out);
	*obj = &h->obj;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* What was removed meanwhile: good for nothing but to be removed once more. */
static void make_attrs_up(struct ssc_export *exp, const struct ssc_before *before,
			  struct ssc_attrs *attrs)
{
	struct ssc_cred cred;

	ssc_run_cred(&cred);
	*attrs = (struct ssc_attrs){
		.type = before->is_dir ? SSC_FT_DIR : SSC_FT_REG,
		.nlink = 1,
		.uid = cred.uid,
		.gid = cred.gid,
		.fsid = exp->path_hash,
		.fileid = ssc_base_hash(before->object.data, before->object.len, 0),
	};
}

/* The object that had the name, when the upstream says that nothing has it. */
static enum ssc_err object_before(struct ssc_export *exp, const struct ssc_before *before,
				  struct ssc_handle **found, struct ssc_attrs *attrs)
{
	enum ssc_err err;

	if (before->is_pending)
		return SSC_E_JUKEBOX;
	if (before->object.len == 0)
		return SSC_E_NOENT;
	err = ssc_run_getattr(exp, &before->object, attrs);
	if (err == SSC_E_STALE) {
		make_attrs_up(exp, before, attrs);
		err = SSC_OK;
	}
	if (err == SSC_OK)
		*found = ssc_handle_new(exp, &before->object, attrs);
	return err;
}

/*
 * The server above looks names up before it removes, moves or creates them; so a client that was
 * told to come back from that may find its own work here. It is shown the name as it was before, and
 * learns the outcome from the call that follows (sync_call.h).
 */
static enum ssc_err as_before(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
			      enum ssc_err err, struct ssc_handle **found, struct ssc_attrs *attrs)
{
	struct ssc_before before;
	struct ssc_fh fh;

	if ((err != SSC_OK && err != SSC_E_NOENT) || ssc_run_fh(exp, dir, NULL, &fh) != SSC_OK)
		return err;
	before = ssc_caller_before(exp->caller, ssc_run_who(), &fh, name);
	if (err == SSC_E_NOENT && before.what == SSC_BEFORE_OBJECT)
		return object_before(exp, &before, found, attrs);
	if (err == SSC_OK && before.what == SSC_BEFORE_ABSENT) {
		ssc_handle_free(*found);
		*found = NULL;
		return before.is_pending ? SSC_E_JUKEBOX : SSC_E_NOENT;
	}
	return err;
}

static fsal_status_t namespace_lookup(struct fsal_obj_handle *dir, const char *name,
				      struct fsal_obj_handle **obj, struct fsal_attrlist *attrs_out)
{
	struct ssc_export *exp = ssc_export_now();
	struct ssc_handle *h = ssc_handle_of(dir);
	struct ssc_handle *found = NULL;
	struct ssc_attrs attrs;
	enum ssc_err err = SSC_E_NOTDIR;

	if (is_dir(dir)) {
		err = ssc_namespace_lookup(exp, h, name, &found, &attrs);
		err = as_before(exp, h, name, err, &found, &attrs);
	}
	return give(exp, err, found, &attrs, obj, attrs_out);
}

/* ---- making things ---- */

enum ssc_err ssc_namespace_made(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
				const struct ssc_call *call, struct ssc_handle **made,
				struct ssc_attrs *attrs)
{
	enum ssc_err err;

	if (call->res.object.fh.len == 0)
		return ssc_namespace_lookup(exp, dir, name, made, attrs);
	err = object_attrs(exp, call, attrs);
	if (err == SSC_OK)
		*made = ssc_handle_new(exp, &call->res.object.fh, attrs);
	return err;
}

struct make_args {
	const char *name;
	const char *target; /* of a symbolic link */
	struct ssc_sattr set;
	enum ssc_ftype type;
	uint32_t rdev_major;
	uint32_t rdev_minor;
};

static enum ssc_err fill_make(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	const struct make_args *args = arg;
	enum ssc_err err = ssc_call_set_name(call, args->name);

	(void)other;
	if (err == SSC_OK && args->target != NULL)
		err = ssc_call_set_text(call, args->target);
	call->arg.make.set = args->set;
	call->arg.make.type = args->type;
	call->arg.make.rdev_major = args->rdev_major;
	call->arg.make.rdev_minor = args->rdev_minor;
	return err;
}

static fsal_status_t make(struct fsal_obj_handle *dir, enum ssc_op op, struct make_args *args,
			  const struct fsal_attrlist *attrs_in, struct fsal_obj_handle **obj,
			  struct fsal_attrlist *attrs_out)
{
	struct ssc_export *exp = ssc_export_now();
	struct ssc_handle *h = ssc_handle_of(dir);
	struct ssc_run run = {.exp = exp, .h = h, .op = op, .fill = fill_make, .arg = args};
	struct ssc_handle *made = NULL;
	struct ssc_call *call = NULL;
	struct ssc_attrs attrs;
	enum ssc_err err = SSC_E_NOTDIR;

	ssc_attrs_to_make(attrs_in, &args->set);
	if (is_dir(dir))
		err = ssc_run(&run, &call);
	if (err == SSC_OK)
		err = ssc_namespace_made(exp, h, args->name, call, &made, &attrs);
	ssc_call_put(call);
	return give(exp, err, made, &attrs, obj, attrs_out);
}

static fsal_status_t namespace_mkdir(struct fsal_obj_handle *dir, const char *name,
				     struct fsal_attrlist *attrs_in, struct fsal_obj_handle **obj,
				     struct fsal_attrlist *attrs_out)
{
	struct make_args args = {.name = name, .type = SSC_FT_DIR};

	return make(dir, SSC_OP_MKDIR, &args, attrs_in, obj, attrs_out);
}

static fsal_status_t namespace_mknode(struct fsal_obj_handle *dir, const char *name,
				      object_file_type_t type, struct fsal_attrlist *attrs_in,
				      struct fsal_obj_handle **obj, struct fsal_attrlist *attrs_out)
{
	struct make_args args = {.name = name};

	switch (type) {
	case BLOCK_FILE:
	case CHARACTER_FILE:
		args.type = type == BLOCK_FILE ? SSC_FT_BLK : SSC_FT_CHR;
		args.rdev_major = attrs_in->rawdev.major;
		args.rdev_minor = attrs_in->rawdev.minor;
		break;
	case FIFO_FILE:
		args.type = SSC_FT_FIFO;
		break;
	case SOCKET_FILE:
		args.type = SSC_FT_SOCK;
		break;
	default:
		return fsalstat(ERR_FSAL_BADTYPE, EINVAL);
	}
	return make(dir, SSC_OP_MKNOD, &args, attrs_in, obj, attrs_out);
}

static fsal_status_t namespace_symlink(struct fsal_obj_handle *dir, const char *name,
				       const char *target, struct fsal_attrlist *attrs_in,
				       struct fsal_obj_handle **obj,
				       struct fsal_attrlist *attrs_out)
{
	struct make_args args = {.name = name, .target = target, .type = SSC_FT_LNK};

	return make(dir, SSC_OP_SYMLINK, &args, attrs_in, obj, attrs_out);
}

static fsal_status_t namespace_readlink(struct fsal_obj_handle *obj, struct gsh_buffdesc *content,
					bool refresh)
{
	struct ssc_run run = {
		.exp = ssc_export_now(),
		.h = ssc_handle_of(obj),
		.op = SSC_OP_READLINK,
	};
	struct ssc_call *call = NULL;
	enum ssc_err err = SSC_E_INVAL;

	(void)refresh; /* nothing is kept here: each one asks */
	if (obj->type == SYMBOLIC_LINK)
		err = ssc_run(&run, &call);
	if (err == SSC_OK) {
		content->len = strlen(call->res.link.target) + 1;
		content->addr = gsh_strdup(call->res.link.target);
	}
	ssc_call_put(call);
	return ssc_fsal_status(err);
}

/* ---- link, rename, unlink ---- */

static enum ssc_err fill_link(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	call->arg.rename.to_dir = *other;
	return ssc_call_set_name(call, arg);
}

static fsal_status_t namespace_link(struct fsal_obj_handle *obj, struct fsal_obj_handle *dir,
				    const char *name)
{
	struct ssc_run run = {
		.exp = ssc_export_now(),
		.h = ssc_handle_of(obj),
		.other = ssc_handle_of(dir),
		.op = SSC_OP_LINK,
		.fill = fill_link,
		.arg = name,
	};
	struct ssc_call *call;
	enum ssc_err err = ssc_run(&run, &call);

	ssc_call_put(call);
	return ssc_fsal_status(err);
}

/* Whom a name stands for, to recognize it after a lost reply. */
static void note_object(struct ssc_call *call, const struct ssc_handle *object)
{
	if (ssc_key_form(object->key.data) == SSC_KEY_OBJECT)
		ssc_key_fh(object->key.data, object->key.len, &call->arg.rename.object);
}

struct rename_args {
	const char *from;
	const char *to;
	const struct ssc_handle *object;
};

static enum ssc_err fill_rename(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	const struct rename_args *args = arg;
	enum ssc_err err = ssc_call_set_name(call, args->from);

	call->arg.rename.to_dir = *other;
	note_object(call, args->object);
	return err == SSC_OK ? ssc_call_set_text(call, args->to) : err;
}

static fsal_status_t namespace_rename(struct fsal_obj_handle *obj, struct fsal_obj_handle *from_dir,
				      const char *from, struct fsal_obj_handle *to_dir,
				      const char *to)
{
	struct rename_args args = {.from = from, .to = to, .object = ssc_handle_of(obj)};
	struct ssc_run run = {
		.exp = ssc_export_now(),
		.h = ssc_handle_of(from_dir),
		.other = ssc_handle_of(to_dir),
		.op = SSC_OP_RENAME,
		.fill = fill_rename,
		.arg = &args,
	};
	struct ssc_call *call;
	enum ssc_err err = ssc_run(&run, &call);

	ssc_call_put(call);
	ssc_kept_forget(&ssc_handle_of(obj)->kept);
	/* What the new name stood for lost a link, and we are not told which object that was. */
	atomic_store(&ssc_module.renamed_ns, ssc_clock_now_ns());
	return ssc_fsal_status(err);
}

struct unlink_args {
	const char *name;
	const struct ssc_handle *object;
};

static enum ssc_err fill_unlink(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	const struct unlink_args *args = arg;

	(void)other;
	note_object(call, args->object);
	return ssc_call_set_name(call, args->name);
}

static fsal_status_t namespace_unlink(struct fsal_obj_handle *dir, struct fsal_obj_handle *obj,
				      const char *name)
{
	struct unlink_args args = {.name = name, .object = ssc_handle_of(obj)};
	struct ssc_run run = {
		.exp = ssc_export_now(),
		.h = ssc_handle_of(dir),
		.op = is_dir(obj) ? SSC_OP_RMDIR : SSC_OP_REMOVE,
		.fill = fill_unlink,
		.arg = &args,
	};
	struct ssc_call *call;
	enum ssc_err err = ssc_run(&run, &call);

	ssc_call_put(call);
	ssc_kept_forget(&ssc_handle_of(obj)->kept);
	return ssc_fsal_status(err);
}

void ssc_namespace_ops_init(struct fsal_obj_ops *ops)
{
	ops->lookup = namespace_lookup;
	ops->mkdir = namespace_mkdir;
	ops->mknode = namespace_mknode;
	ops->symlink = namespace_symlink;
	ops->readlink = namespace_readlink;
	ops->link = namespace_link;
	ops->rename = namespace_rename;
	ops->unlink = namespace_unlink;
}
