/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * attrs.c - attributes: what the upstream says, as Ganesha wants it; getattrs and setattr2.
 *
 * The change attribute is ctime in ns. Two changes within one tick of the upstream's clock look alike,
 * as they do to any NFSv3 client.
 * Attributes that came along with the replies to earlier calls (kept.h) answer getattrs
 *   after I/O   when this request did I/O on this very file: they are at least as new as its reply
 *   recent      when they came within the last second: what else goes on at the same time may as
 *               well come after. Not across a RENAME, which takes a link from an object that the
 *               server above does not name.
 * Everything else asks the upstream. Opening a file asks too (open.c): a client that opens a file must
 * see what others wrote before they closed it.
 */
#include "fsal_convert.h"

#include "ssc/clock.h"

#include "glue.h"

/* A third of what Linux clients trust attributes for at least (acregmin, 3 s). */
#define RECENT_NS SSC_NS_PER_S

object_file_type_t ssc_attrs_type(enum ssc_ftype type)
{
	switch (type) {
	case SSC_FT_REG:
		return REGULAR_FILE;
	case SSC_FT_DIR:
		return DIRECTORY;
	case SSC_FT_BLK:
		return BLOCK_FILE;
	case SSC_FT_CHR:
		return CHARACTER_FILE;
	case SSC_FT_LNK:
		return SYMBOLIC_LINK;
	case SSC_FT_SOCK:
		return SOCKET_FILE;
	case SSC_FT_FIFO:
		return FIFO_FILE;
	case SSC_FT_NONE:
		break;
	}
	return NO_FILE_TYPE;
}

static struct timespec show_time(const struct ssc_time *t)
{
	return (struct timespec){.tv_sec = t->s, .tv_nsec = t->ns};
}

void ssc_attrs_show(struct ssc_export *exp, const struct ssc_handle *h,
		    const struct ssc_attrs *attrs, struct fsal_attrlist *out)
{
	if (out == NULL)
		return;
	out->type = ssc_attrs_type(attrs->type);
	out->filesize = attrs->size;
	out->fsid = h->obj.fsid;
	out->fileid = h->obj.fileid;
	out->mode = attrs->mode;
	out->numlinks = attrs->nlink;
	out->owner = attrs->uid;
	out->group = attrs->gid;
	out->rawdev.major = attrs->rdev_major;
	out->rawdev.minor = attrs->rdev_minor;
	out->atime = show_time(&attrs->atime);
	out->mtime = show_time(&attrs->mtime);
	out->ctime = show_time(&attrs->ctime);
	out->change = (uint64_t)attrs->ctime.s * SSC_NS_PER_S + attrs->ctime.ns;
	out->spaceused = attrs->used;
	out->supported = exp->export.exp_ops.fs_supported_attrs(&exp->export);
	out->valid_mask = ATTRS_POSIX;
}

void ssc_attrs_show_none(struct fsal_attrlist *out)
{
	if (out != NULL && (out->request_mask & ATTR_RDATTR_ERR) != 0)
		out->valid_mask = ATTR_RDATTR_ERR;
}

enum ssc_err ssc_attrs_fetch(struct ssc_export *exp, struct ssc_handle *h, struct ssc_attrs *attrs)
{
	struct ssc_run run = {.exp = exp, .h = h, .op = SSC_OP_GETATTR};
	struct ssc_call *call;
	enum ssc_err err = ssc_run(&run, &call);

	if (err == SSC_OK)
		*attrs = call->attrs;
	ssc_call_put(call);
	return err;
}

static bool is_kept(struct ssc_handle *h, struct ssc_attrs *attrs)
{
	uint64_t now = ssc_clock_now_ns();
	uint64_t renamed = atomic_load(&ssc_module.renamed_ns);
	uint64_t since = now > RECENT_NS ? now - RECENT_NS : 0;

	if (ssc_noted_take(h) && ssc_kept_get(&h->kept, 0, attrs))
		return true;
	return ssc_kept_get(&h->kept, since > renamed ? since : renamed, attrs);
}

static bool is_come_back(enum ssc_err err)
{
	return err == SSC_E_TIMEDOUT || err == SSC_E_DOWN || err == SSC_E_CONN ||
	       err == SSC_E_JUKEBOX;
}

/*
 * The cache above asks for a folder's attributes after LINK and RENAME, and answers the request as
 * that question was answered. If the client were told to come back for it, its repetition would find
 * EXIST or NOENT. Attributes of a moment ago do less harm: the next one to ask gets newer ones.
 */
static fsal_status_t attrs_get(struct fsal_obj_handle *obj, struct fsal_attrlist *out)
{
	struct ssc_export *exp = ssc_export_now();
	struct ssc_handle *h = ssc_handle_of(obj);
	enum ssc_err err = SSC_OK;
	struct ssc_attrs attrs;

	if (!is_kept(h, &attrs))
		err = ssc_attrs_fetch(exp, h, &attrs);
	if (is_come_back(err) && ssc_run_has_changed() && ssc_kept_last(&h->kept, &attrs))
		err = SSC_OK;
	if (err == SSC_OK && ssc_attrs_type(attrs.type) != obj->type) {
		/* The upstream gave the handle to another object. */
		err = SSC_E_STALE;
	}
	if (err == SSC_OK)
		ssc_attrs_show(exp, h, &attrs, out);
	else
		ssc_attrs_show_none(out);
	return ssc_fsal_status(err);
}

/* ---- setting ---- */

static struct ssc_time time_to_set(const struct timespec *t)
{
	return (struct ssc_time){.s = t->tv_sec, .ns = (uint32_t)t->tv_nsec};
}

void ssc_attrs_to_set(const struct fsal_attrlist *attrs, struct ssc_sattr *set)
{
	attrmask_t mask = attrs->valid_mask;

	memset(set, 0, sizeof(*set));
	if (mask & ATTR_MODE) {
		set->set_mode = true;
		set->mode = fsal2unix_mode(attrs->mode);
	}
	if (mask & ATTR_OWNER) {
		set->set_uid = true;
		set->uid = (uint32_t)attrs->owner;
	}
	if (mask & ATTR_GROUP) {
		set->set_gid = true;
		set->gid = (uint32_t)attrs->group;
	}
	if (mask & ATTR_SIZE) {
		set->set_size = true;
		set->size = attrs->filesize;
	}
	if (mask & ATTR_ATIME_SERVER) {
		set->atime_how = SSC_TIME_SERVER;
	} else if (mask & ATTR_ATIME) {
		set->atime_how = SSC_TIME_CLIENT;
		set->atime = time_to_set(&attrs->atime);
	}
	if (mask & ATTR_MTIME_SERVER) {
		set->mtime_how = SSC_TIME_SERVER;
	} else if (mask & ATTR_MTIME) {
		set->mtime_how = SSC_TIME_CLIENT;
		set->mtime = time_to_set(&attrs->mtime);
	}
}

void ssc_attrs_to_make(const struct fsal_attrlist *attrs, struct ssc_sattr *set)
{
	ssc_attrs_to_set(attrs, set);
	/*
	 * The upstream gives a new object to the caller. Asking for that again would be refused by
	 * some servers, and would undo what a set-gid directory decides.
	 */
	if (set->set_uid && set->uid == op_ctx->creds.caller_uid)
		set->set_uid = false;
	if (set->set_gid && set->gid == op_ctx->creds.caller_gid)
		set->set_gid = false;
}

static enum ssc_err fill_set(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	(void)other;
	call->arg.setattr.set = *(const struct ssc_sattr *)arg;
	return SSC_OK;
}

enum ssc_err ssc_attrs_set(struct ssc_export *exp, struct ssc_handle *h,
			   const struct ssc_sattr *set, struct ssc_attrs *attrs)
{
	struct ssc_run run = {
		.exp = exp,
		.h = h,
		.op = SSC_OP_SETATTR,
		.fill = fill_set,
		.arg = set,
		.is_shrinking = set->set_size,
	};
	struct ssc_call *call;
	enum ssc_err err = ssc_run(&run, &call);
	bool has_attrs = err == SSC_OK && call->has_attrs;

	if (has_attrs && attrs != NULL)
		*attrs = call->attrs;
	ssc_call_put(call);
	if (err == SSC_OK && !has_attrs && attrs != NULL)
		err = ssc_attrs_fetch(exp, h, attrs);
	return err;
}

static fsal_status_t attrs_set2(struct fsal_obj_handle *obj, bool bypass, struct state_t *state,
				struct fsal_attrlist *attrs)
{
	struct ssc_handle *h = ssc_handle_of(obj);
	struct ssc_sattr set;
	fsal_status_t status;

	ssc_attrs_to_set(attrs, &set);
	if (set.set_size) {
		if (obj->type != REGULAR_FILE)
			return fsalstat(ERR_FSAL_INVAL, EINVAL);
		status = ssc_open_allows(h, state, FSAL_O_WRITE, bypass);
		/* As for a WRITE, where the cache above does this: RFC 8881 18.30.3. */
		if (status.major == ERR_FSAL_SHARE_DENIED)
			status = fsalstat(ERR_FSAL_LOCKED, 0);
		if (FSAL_IS_ERROR(status))
			return status;
	}
	return ssc_fsal_status(ssc_attrs_set(ssc_export_now(), h, &set, NULL));
}

void ssc_attrs_ops_init(struct fsal_obj_ops *ops)
{
	ops->getattrs = attrs_get;
	ops->setattr2 = attrs_set2;
}
