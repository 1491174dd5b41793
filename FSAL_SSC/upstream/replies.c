/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * replies.c - from a libnfs reply to the result of a struct ssc_call.
 *
 * A peer's word is checked here once, for all layers above: libnfs hands over lengths that exceed
 * what was asked for, handles longer than 64 bytes, and names with a '/'. What breaks the protocol
 * becomes SSC_E_PROTO. Everything is copied: the decoded structs die with the callback.
 * Threads: the holder of conn.lock, inside rpc_service. Source: RFC 1813 2.6, 3.3.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "libnfs_compat.h"
#include "ssc/log.h"

/* Entries of one reply: a name and its handle take 40 bytes at least, a reply 64 KiB at most. */
#define DIRENTS_MAX 4096

enum ssc_err ssc_reply_status(uint32_t status)
{
	switch (status) {
	case NFS3_OK:
		return SSC_OK;
	case NFS3ERR_PERM:
		return SSC_E_PERM;
	case NFS3ERR_NOENT:
		return SSC_E_NOENT;
	case NFS3ERR_IO:
		return SSC_E_IO;
	case NFS3ERR_NXIO:
		return SSC_E_NXIO;
	case NFS3ERR_ACCES:
		return SSC_E_ACCES;
	case NFS3ERR_EXIST:
		return SSC_E_EXIST;
	case NFS3ERR_XDEV:
		return SSC_E_XDEV;
	case NFS3ERR_NODEV:
		return SSC_E_NODEV;
	case NFS3ERR_NOTDIR:
		return SSC_E_NOTDIR;
	case NFS3ERR_ISDIR:
		return SSC_E_ISDIR;
	case NFS3ERR_INVAL:
		return SSC_E_INVAL;
	case NFS3ERR_FBIG:
		return SSC_E_FBIG;
	case NFS3ERR_NOSPC:
		return SSC_E_NOSPC;
	case NFS3ERR_ROFS:
		return SSC_E_ROFS;
	case NFS3ERR_MLINK:
		return SSC_E_MLINK;
	case NFS3ERR_NAMETOOLONG:
		return SSC_E_NAMETOOLONG;
	case NFS3ERR_NOTEMPTY:
		return SSC_E_NOTEMPTY;
	case NFS3ERR_DQUOT:
		return SSC_E_DQUOT;
	case NFS3ERR_STALE:
	case NFS3ERR_REMOTE: /* RFC 1813 2.6: too many levels of remote, the file is not here */
		return SSC_E_STALE;
	case NFS3ERR_BADHANDLE:
		return SSC_E_BADHANDLE;
	case NFS3ERR_NOT_SYNC:
		return SSC_E_NOT_SYNC;
	case NFS3ERR_BAD_COOKIE:
		return SSC_E_BAD_COOKIE;
	case NFS3ERR_NOTSUPP:
		return SSC_E_NOTSUPP;
	case NFS3ERR_TOOSMALL:
		return SSC_E_TOOSMALL;
	case NFS3ERR_SERVERFAULT:
		return SSC_E_SERVERFAULT;
	case NFS3ERR_BADTYPE:
		return SSC_E_BADTYPE;
	case NFS3ERR_JUKEBOX:
		return SSC_E_JUKEBOX;
	default:
		ssc_log_warn("the upstream answered with the unknown status %u", status);
		return SSC_E_PROTO;
	}
}

static struct ssc_time time_of(nfstime3 t)
{
	/* Some servers put garbage into nanoseconds; the kernel's client takes them as they are. */
	return (struct ssc_time){.s = t.seconds, .ns = t.nseconds < SSC_NS_PER_S ? t.nseconds : 0};
}

static bool attrs_of(const fattr3 *from, struct ssc_attrs *to)
{
	static const enum ssc_ftype types[] = {
		[NF3REG] = SSC_FT_REG,   [NF3DIR] = SSC_FT_DIR, [NF3BLK] = SSC_FT_BLK,
		[NF3CHR] = SSC_FT_CHR,   [NF3LNK] = SSC_FT_LNK, [NF3SOCK] = SSC_FT_SOCK,
		[NF3FIFO] = SSC_FT_FIFO,
	};

	if ((unsigned int)from->type < NF3REG || (unsigned int)from->type > NF3FIFO)
		return false;
	*to = (struct ssc_attrs){
		.type = types[from->type],
		.mode = from->mode & 07777,
		.nlink = from->nlink,
		.uid = from->uid,
		.gid = from->gid,
		.size = from->size,
		.used = from->used,
		.rdev_major = from->rdev.specdata1,
		.rdev_minor = from->rdev.specdata2,
		.fsid = from->fsid,
		.fileid = from->fileid,
		.atime = time_of(from->atime),
		.mtime = time_of(from->mtime),
		.ctime = time_of(from->ctime),
	};
	return true;
}

static bool post_attrs(const post_op_attr *from, bool *has, struct ssc_attrs *to)
{
	*has = from->attributes_follow != 0;
	return !*has || attrs_of(&from->post_op_attr_u.attributes, to);
}

static bool fh_of(const nfs_fh3 *from, struct ssc_fh *to)
{
	if (from->data.data_len == 0 || from->data.data_len > SSC_FH3_MAX || !from->data.data_val)
		return false;
	to->len = from->data.data_len;
	memcpy(to->data, from->data.data_val, to->len);
	return true;
}

/* CREATE, MKDIR, SYMLINK and MKNOD answer alike. */
static enum ssc_err made_object(const post_op_fh3 *fh, const post_op_attr *attrs,
				const wcc_data *dir, struct ssc_call *into)
{
	if (fh->handle_follows && !fh_of(&fh->post_op_fh3_u.handle, &into->res.object.fh))
		return SSC_E_PROTO;
	if (!post_attrs(attrs, &into->res.object.has_attrs, &into->res.object.attrs) ||
	    !post_attrs(&dir->after, &into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	return SSC_OK;
}

static enum ssc_err wcc_only(uint32_t status, const wcc_data *wcc, struct ssc_call *into)
{
	if (!post_attrs(&wcc->after, &into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	return ssc_reply_status(status);
}

static enum ssc_err decode_lookup(const LOOKUP3res *r, struct ssc_call *into)
{
	const LOOKUP3resok *ok = &r->LOOKUP3res_u.resok;

	if (r->status != NFS3_OK) {
		if (!post_attrs(&r->LOOKUP3res_u.resfail.dir_attributes, &into->has_attrs,
				&into->attrs))
			return SSC_E_PROTO;
		return ssc_reply_status(r->status);
	}
	if (!fh_of(&ok->object, &into->res.object.fh) ||
	    !post_attrs(&ok->obj_attributes, &into->res.object.has_attrs,
			&into->res.object.attrs) ||
	    !post_attrs(&ok->dir_attributes, &into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	return SSC_OK;
}

static enum ssc_err decode_readlink(const READLINK3res *r, struct ssc_call *into)
{
	const READLINK3resok *ok = &r->READLINK3res_u.resok;

	if (r->status != NFS3_OK)
		return ssc_reply_status(r->status);
	if (!ok->data || strnlen(ok->data, SSC_LINK_MAX + 1) > SSC_LINK_MAX ||
	    !post_attrs(&ok->symlink_attributes, &into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	into->res.link.target = strdup(ok->data);
	return into->res.link.target ? SSC_OK : SSC_E_SERVERFAULT;
}

static void scatter(const struct ssc_call *call, const char *data, size_t len)
{
	for (int i = 0; i < call->arg.io.n_iov && len > 0; i++) {
		size_t n = call->arg.io.iov[i].iov_len;

		if (n > len)
			n = len;
		memcpy(call->arg.io.iov[i].iov_base, data, n);
		data += n;
		len -= n;
	}
}

/* @into differs from @call when the answer is late: then the caller's buffers are gone. */
static enum ssc_err decode_read(const struct ssc_call *call, const READ3res *r,
				struct ssc_call *into)
{
	const READ3resok *ok = &r->READ3res_u.resok;

	if (r->status != NFS3_OK) {
		if (!post_attrs(&r->READ3res_u.resfail.file_attributes, &into->has_attrs,
				&into->attrs))
			return SSC_E_PROTO;
		return ssc_reply_status(r->status);
	}
	if (ok->data.data_len > call->arg.io.count || ok->count != ok->data.data_len ||
	    !post_attrs(&ok->file_attributes, &into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	/* RFC 1813 3.3.6: nothing, and not the end, would make a reader ask for ever. */
	if (ok->count == 0 && !ok->eof && call->arg.io.count != 0)
		return SSC_E_PROTO;
	into->res.io.count = ok->count;
	into->res.io.eof = ok->eof != 0;
	if (into == call)
		scatter(call, ok->data.data_val, ok->count);
	return SSC_OK;
}

static enum ssc_err decode_write(const struct ssc_call *call, const WRITE3res *r,
				 struct ssc_call *into)
{
	const WRITE3resok *ok = &r->WRITE3res_u.resok;

	if (r->status != NFS3_OK)
		return wcc_only(r->status, &r->WRITE3res_u.resfail.file_wcc, into);
	if (ok->count > call->arg.io.count || (ok->count == 0 && call->arg.io.count != 0) ||
	    (unsigned int)ok->committed > FILE_SYNC)
		return SSC_E_PROTO;
	/* RFC 1813 3.3.7: a server may do better than asked, never worse. */
	if ((unsigned int)ok->committed < (unsigned int)call->arg.io.stable)
		return SSC_E_PROTO;
	into->res.io.count = ok->count;
	into->res.io.committed = (enum ssc_stable)ok->committed;
	memcpy(into->res.io.verf, ok->verf, SSC_VERF_BYTES);
	return wcc_only(NFS3_OK, &ok->file_wcc, into);
}

static enum ssc_err decode_commit(const COMMIT3res *r, struct ssc_call *into)
{
	if (r->status != NFS3_OK)
		return wcc_only(r->status, &r->COMMIT3res_u.resfail.file_wcc, into);
	memcpy(into->res.io.verf, r->COMMIT3res_u.resok.verf, SSC_VERF_BYTES);
	return wcc_only(NFS3_OK, &r->COMMIT3res_u.resok.file_wcc, into);
}

static bool dirent_of(const entryplus3 *e, struct ssc_dirent *out, char **names, size_t *left)
{
	size_t len = e->name ? strnlen(e->name, SSC_NAME_MAX + 1) : 0;

	if (len == 0 || len > SSC_NAME_MAX || len >= *left || memchr(e->name, '/', len))
		return false;
	out->cookie = e->cookie;
	out->fileid = e->fileid;
	out->name = *names;
	memcpy(*names, e->name, len);
	(*names)[len] = 0;
	*names += len + 1;
	*left -= len + 1;
	if (e->name_handle.handle_follows && !fh_of(&e->name_handle.post_op_fh3_u.handle, &out->fh))
		return false;
	return post_attrs(&e->name_attributes, &out->has_attrs, &out->attrs);
}

static enum ssc_err decode_readdirplus(const READDIRPLUS3res *r, struct ssc_call *into)
{
	const READDIRPLUS3resok *ok = &r->READDIRPLUS3res_u.resok;
	size_t n = 0, left = 0;
	struct ssc_dirent *ents;
	char *names;

	if (r->status != NFS3_OK)
		return ssc_reply_status(r->status);
	for (const entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
		if (++n > DIRENTS_MAX || !e->name)
			return SSC_E_PROTO;
		left += strnlen(e->name, SSC_NAME_MAX + 1) + 1;
	}
	if (!post_attrs(&ok->dir_attributes, &into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	ents = calloc(1, n * sizeof(*ents) + left + 1);
	if (!ents)
		return SSC_E_SERVERFAULT;
	names = (char *)(ents + n);
	left++;
	into->res.readdir.ents = ents;
	into->res.readdir.eof = ok->reply.eof != 0;
	memcpy(into->res.readdir.verf, ok->cookieverf, SSC_VERF_BYTES);
	for (const entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
		if (!dirent_of(e, &ents[into->res.readdir.n_ents], &names, &left))
			return SSC_E_PROTO;
		into->res.readdir.n_ents++;
	}
	return SSC_OK;
}

static enum ssc_err decode_fsstat(const FSSTAT3res *r, struct ssc_call *into)
{
	const FSSTAT3resok *ok = &r->FSSTAT3res_u.resok;

	if (r->status != NFS3_OK)
		return ssc_reply_status(r->status);
	into->res.fsstat.total_bytes = ok->tbytes;
	into->res.fsstat.free_bytes = ok->fbytes;
	into->res.fsstat.avail_bytes = ok->abytes;
	into->res.fsstat.total_files = ok->tfiles;
	into->res.fsstat.free_files = ok->ffiles;
	into->res.fsstat.avail_files = ok->afiles;
	return post_attrs(&ok->obj_attributes, &into->has_attrs, &into->attrs) ? SSC_OK
									       : SSC_E_PROTO;
}

static enum ssc_err decode_fsinfo(const FSINFO3res *r, struct ssc_call *into)
{
	const FSINFO3resok *ok = &r->FSINFO3res_u.resok;

	if (r->status != NFS3_OK)
		return ssc_reply_status(r->status);
	into->res.fsinfo.rtmax = ok->rtmax;
	into->res.fsinfo.wtmax = ok->wtmax;
	into->res.fsinfo.dtpref = ok->dtpref;
	into->res.fsinfo.maxfilesize = ok->maxfilesize;
	into->res.fsinfo.time_delta = time_of(ok->time_delta);
	into->res.fsinfo.can_link = ok->properties & FSF3_LINK;
	into->res.fsinfo.can_symlink = ok->properties & FSF3_SYMLINK;
	into->res.fsinfo.homogeneous = ok->properties & FSF3_HOMOGENEOUS;
	into->res.fsinfo.can_settime = ok->properties & FSF3_CANSETTIME;
	return post_attrs(&ok->obj_attributes, &into->has_attrs, &into->attrs) ? SSC_OK
									       : SSC_E_PROTO;
}

static enum ssc_err decode_pathconf(const PATHCONF3res *r, struct ssc_call *into)
{
	const PATHCONF3resok *ok = &r->PATHCONF3res_u.resok;

	if (r->status != NFS3_OK)
		return ssc_reply_status(r->status);
	into->res.pathconf.linkmax = ok->linkmax;
	into->res.pathconf.name_max = ok->name_max;
	into->res.pathconf.no_trunc = ok->no_trunc != 0;
	into->res.pathconf.chown_restricted = ok->chown_restricted != 0;
	into->res.pathconf.case_insensitive = ok->case_insensitive != 0;
	into->res.pathconf.case_preserving = ok->case_preserving != 0;
	return post_attrs(&ok->obj_attributes, &into->has_attrs, &into->attrs) ? SSC_OK
									       : SSC_E_PROTO;
}

static enum ssc_err decode_getattr(const GETATTR3res *r, struct ssc_call *into)
{
	if (r->status != NFS3_OK)
		return ssc_reply_status(r->status);
	into->has_attrs = attrs_of(&r->GETATTR3res_u.resok.obj_attributes, &into->attrs);
	return into->has_attrs ? SSC_OK : SSC_E_PROTO;
}

static enum ssc_err decode_link(const LINK3res *r, struct ssc_call *into)
{
	if (!post_attrs(r->status == NFS3_OK ? &r->LINK3res_u.resok.file_attributes
					     : &r->LINK3res_u.resfail.file_attributes,
			&into->has_attrs, &into->attrs))
		return SSC_E_PROTO;
	return ssc_reply_status(r->status);
}

/* The results of the four that make an object differ in the name of their type only. */
#define DECODE_MADE(name, res, ok_type, arm)                                           \
	static enum ssc_err name(const res *r, struct ssc_call *into)                  \
	{                                                                              \
		const ok_type *ok = &r->arm.resok;                                     \
		if (r->status != NFS3_OK)                                              \
			return wcc_only(r->status, &r->arm.resfail.dir_wcc, into);     \
		return made_object(&ok->obj, &ok->obj_attributes, &ok->dir_wcc, into); \
	}
DECODE_MADE(decode_create, CREATE3res, CREATE3resok, CREATE3res_u)
DECODE_MADE(decode_mkdir, MKDIR3res, MKDIR3resok, MKDIR3res_u)
DECODE_MADE(decode_symlink, SYMLINK3res, SYMLINK3resok, SYMLINK3res_u)
DECODE_MADE(decode_mknod, MKNOD3res, MKNOD3resok, MKNOD3res_u)

enum ssc_err ssc_reply_decode(const struct ssc_call *call, void *data, struct ssc_call *into)
{
	switch (call->op) {
	case SSC_OP_NULL:
		return SSC_OK;
	case SSC_OP_GETATTR:
		return decode_getattr(data, into);
	case SSC_OP_SETATTR:
		return wcc_only(((SETATTR3res *)data)->status,
				&((SETATTR3res *)data)->SETATTR3res_u.resok.obj_wcc, into);
	case SSC_OP_LOOKUP:
		return decode_lookup(data, into);
	case SSC_OP_READLINK:
		return decode_readlink(data, into);
	case SSC_OP_READ:
		return decode_read(call, data, into);
	case SSC_OP_WRITE:
		return decode_write(call, data, into);
	case SSC_OP_CREATE:
		return decode_create(data, into);
	case SSC_OP_MKDIR:
		return decode_mkdir(data, into);
	case SSC_OP_SYMLINK:
		return decode_symlink(data, into);
	case SSC_OP_MKNOD:
		return decode_mknod(data, into);
	case SSC_OP_REMOVE:
		return wcc_only(((REMOVE3res *)data)->status,
				&((REMOVE3res *)data)->REMOVE3res_u.resok.dir_wcc, into);
	case SSC_OP_RMDIR:
		return wcc_only(((RMDIR3res *)data)->status,
				&((RMDIR3res *)data)->RMDIR3res_u.resok.dir_wcc, into);
	case SSC_OP_RENAME:
		return wcc_only(((RENAME3res *)data)->status,
				&((RENAME3res *)data)->RENAME3res_u.resok.fromdir_wcc, into);
	case SSC_OP_LINK:
		return decode_link(data, into);
	case SSC_OP_READDIRPLUS:
		return decode_readdirplus(data, into);
	case SSC_OP_FSSTAT:
		return decode_fsstat(data, into);
	case SSC_OP_FSINFO:
		return decode_fsinfo(data, into);
	case SSC_OP_PATHCONF:
		return decode_pathconf(data, into);
	case SSC_OP_COMMIT:
		return decode_commit(data, into);
	case SSC_OP_N:
		break;
	}
	return SSC_E_SERVERFAULT;
}
