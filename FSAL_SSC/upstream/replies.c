/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * replies.c - from the bytes of an NFSv3 reply to the result of a struct ssc_call.
 *
 * libnfs 4.0.0 decodes results with lengths it does not check: a file handle's of 0xfffffff7 lets it
 * read gigabytes away. So they are taken apart here, by the checked cursor, and everything is copied:
 * the bytes are the wire's. A peer's word is
 * checked once, for all layers above. What breaks the protocol becomes SSC_E_PROTO.
 * Threads: the holder of conn.lock. Source: RFC 1813 2.6, 3.3.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "libnfs_compat.h"
#include "ssc/log.h"
#include "ssc/xdr.h"

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

static struct ssc_time get_time(struct ssc_xdr *x)
{
	struct ssc_time t = {.s = ssc_xdr_u32(x), .ns = ssc_xdr_u32(x)};

	/* Some servers put garbage into nanoseconds; the kernel's client takes them as they are. */
	if (t.ns >= SSC_NS_PER_S)
		t.ns = 0;
	return t;
}

static void get_attrs(struct ssc_xdr *x, struct ssc_attrs *to)
{
	static const enum ssc_ftype types[] = {
		[NF3REG] = SSC_FT_REG,   [NF3DIR] = SSC_FT_DIR, [NF3BLK] = SSC_FT_BLK,
		[NF3CHR] = SSC_FT_CHR,   [NF3LNK] = SSC_FT_LNK, [NF3SOCK] = SSC_FT_SOCK,
		[NF3FIFO] = SSC_FT_FIFO,
	};
	uint32_t type = ssc_xdr_u32(x);

	if (type < NF3REG || type > NF3FIFO) {
		ssc_xdr_fail(x);
		type = 0;
	}
	to->type = types[type];
	to->mode = ssc_xdr_u32(x) & 07777;
	to->nlink = ssc_xdr_u32(x);
	to->uid = ssc_xdr_u32(x);
	to->gid = ssc_xdr_u32(x);
	to->size = ssc_xdr_u64(x);
	to->used = ssc_xdr_u64(x);
	to->rdev_major = ssc_xdr_u32(x);
	to->rdev_minor = ssc_xdr_u32(x);
	to->fsid = ssc_xdr_u64(x);
	to->fileid = ssc_xdr_u64(x);
	to->atime = get_time(x);
	to->mtime = get_time(x);
	to->ctime = get_time(x);
}

static void get_post_attrs(struct ssc_xdr *x, bool *has, struct ssc_attrs *to)
{
	*has = ssc_xdr_bool(x);
	if (*has)
		get_attrs(x, to);
}

/* Weak cache consistency data: only what is true after the operation is of use to us. */
static void get_wcc(struct ssc_xdr *x, struct ssc_call *into)
{
	if (ssc_xdr_bool(x))
		(void)ssc_xdr_fixed(x, 24); /* size, mtime, ctime before */
	get_post_attrs(x, &into->has_attrs, &into->attrs);
}

static void get_fh(struct ssc_xdr *x, struct ssc_fh *to)
{
	uint32_t len;
	const void *p = ssc_xdr_opaque(x, SSC_FH3_MAX, &len);

	if (len == 0) {
		ssc_xdr_fail(x);
		return;
	}
	to->len = (uint8_t)len;
	memcpy(to->data, p, len);
}

static void get_lookup(struct ssc_xdr *x, struct ssc_call *into)
{
	get_fh(x, &into->res.object.fh);
	get_post_attrs(x, &into->res.object.has_attrs, &into->res.object.attrs);
	get_post_attrs(x, &into->has_attrs, &into->attrs);
}

/* CREATE, MKDIR, SYMLINK and MKNOD answer alike. */
static void get_made(struct ssc_xdr *x, struct ssc_call *into)
{
	if (ssc_xdr_bool(x))
		get_fh(x, &into->res.object.fh);
	get_post_attrs(x, &into->res.object.has_attrs, &into->res.object.attrs);
	get_wcc(x, into);
}

static void get_readlink(struct ssc_xdr *x, struct ssc_call *into)
{
	const char *target;
	uint32_t len;

	get_post_attrs(x, &into->has_attrs, &into->attrs);
	target = ssc_xdr_opaque(x, SSC_LINK_MAX, &len);
	if (!target || memchr(target, 0, len)) {
		ssc_xdr_fail(x);
		return;
	}
	into->res.link.target = strndup(target, len);
	if (!into->res.link.target)
		abort();
}

static void scatter(const struct ssc_call *call, const uint8_t *data, size_t len)
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
static void get_read(struct ssc_xdr *x, const struct ssc_call *call, bool is_placed,
		     struct ssc_call *into)
{
	const void *data;
	uint32_t len;

	get_post_attrs(x, &into->has_attrs, &into->attrs);
	into->res.io.count = ssc_xdr_u32(x);
	into->res.io.eof = ssc_xdr_bool(x);
	if (is_placed) { /* all of it was checked by ssc_reply_place */
		(void)ssc_xdr_u32(x);
		return;
	}
	data = ssc_xdr_opaque(x, call->arg.io.count, &len);
	/* RFC 1813 3.3.6: nothing, and not the end, would make a reader ask for ever. */
	if (!data || len != into->res.io.count ||
	    (len == 0 && !into->res.io.eof && call->arg.io.count != 0))
		ssc_xdr_fail(x);
	else if (into == call)
		scatter(call, data, len);
}

static void get_write(struct ssc_xdr *x, const struct ssc_call *call, struct ssc_call *into)
{
	uint32_t count, committed;

	get_wcc(x, into);
	count = ssc_xdr_u32(x);
	committed = ssc_xdr_u32(x);
	ssc_xdr_copy(x, into->res.io.verf, SSC_VERF_BYTES);
	/* RFC 1813 3.3.7: a server may do better than asked, never worse; and some of it. */
	if (count > call->arg.io.count || (count == 0 && call->arg.io.count != 0) ||
	    committed > FILE_SYNC || committed < (uint32_t)call->arg.io.stable)
		ssc_xdr_fail(x);
	into->res.io.count = count;
	into->res.io.committed = (enum ssc_stable)committed;
}

static void get_commit(struct ssc_xdr *x, struct ssc_call *into)
{
	get_wcc(x, into);
	ssc_xdr_copy(x, into->res.io.verf, SSC_VERF_BYTES);
}

/* Names go to the end of one block that begins with the entries, so their room is known first. */
static void get_dirent(struct ssc_xdr *x, struct ssc_dirent *e, char **names)
{
	const char *name;
	uint32_t len;

	e->fileid = ssc_xdr_u64(x);
	name = ssc_xdr_opaque(x, SSC_NAME_MAX, &len);
	e->cookie = ssc_xdr_u64(x);
	get_post_attrs(x, &e->has_attrs, &e->attrs);
	if (ssc_xdr_bool(x))
		get_fh(x, &e->fh);
	if (len == 0 || memchr(name, '/', len) || memchr(name, 0, len)) {
		ssc_xdr_fail(x);
		return;
	}
	if (!names)
		return;
	e->name = memcpy(*names, name, len);
	(*names)[len] = 0;
	*names += len + 1;
}

/* @return how many entries there are; *name_bytes: how long their names with NULs. */
static size_t count_dirents(struct ssc_xdr x, size_t *name_bytes)
{
	struct ssc_dirent e;
	size_t n = 0;

	*name_bytes = 0;
	while (ssc_xdr_ok(&x) && n < DIRENTS_MAX && ssc_xdr_bool(&x)) {
		struct ssc_xdr peek = x;
		uint32_t len;

		(void)ssc_xdr_u64(&peek);
		(void)ssc_xdr_opaque(&peek, SSC_NAME_MAX, &len);
		*name_bytes += len + 1;
		get_dirent(&x, &e, NULL);
		n++;
	}
	return n;
}

static void get_readdirplus(struct ssc_xdr *x, struct ssc_call *into)
{
	struct ssc_dirent *ents;
	size_t n, name_bytes;
	char *names;

	get_post_attrs(x, &into->has_attrs, &into->attrs);
	ssc_xdr_copy(x, into->res.readdir.verf, SSC_VERF_BYTES);
	n = count_dirents(*x, &name_bytes);
	ents = calloc(1, n * sizeof(*ents) + name_bytes + 1);
	if (!ents)
		abort();
	names = (char *)(ents + n);
	into->res.readdir.ents = ents;
	while (ssc_xdr_bool(x)) {
		if (into->res.readdir.n_ents == n) {
			ssc_xdr_fail(x); /* more than DIRENTS_MAX */
			return;
		}
		get_dirent(x, &ents[into->res.readdir.n_ents], &names);
		if (!ssc_xdr_ok(x))
			return;
		into->res.readdir.n_ents++;
	}
	into->res.readdir.eof = ssc_xdr_bool(x);
}

static void get_fsstat(struct ssc_xdr *x, struct ssc_call *into)
{
	get_post_attrs(x, &into->has_attrs, &into->attrs);
	into->res.fsstat.total_bytes = ssc_xdr_u64(x);
	into->res.fsstat.free_bytes = ssc_xdr_u64(x);
	into->res.fsstat.avail_bytes = ssc_xdr_u64(x);
	into->res.fsstat.total_files = ssc_xdr_u64(x);
	into->res.fsstat.free_files = ssc_xdr_u64(x);
	into->res.fsstat.avail_files = ssc_xdr_u64(x);
}

static void get_fsinfo(struct ssc_xdr *x, struct ssc_call *into)
{
	uint32_t properties;

	get_post_attrs(x, &into->has_attrs, &into->attrs);
	into->res.fsinfo.rtmax = ssc_xdr_u32(x);
	(void)ssc_xdr_fixed(x, 8); /* rtpref, rtmult */
	into->res.fsinfo.wtmax = ssc_xdr_u32(x);
	(void)ssc_xdr_fixed(x, 8); /* wtpref, wtmult */
	into->res.fsinfo.dtpref = ssc_xdr_u32(x);
	into->res.fsinfo.maxfilesize = ssc_xdr_u64(x);
	into->res.fsinfo.time_delta = get_time(x);
	properties = ssc_xdr_u32(x);
	into->res.fsinfo.can_link = properties & FSF3_LINK;
	into->res.fsinfo.can_symlink = properties & FSF3_SYMLINK;
	into->res.fsinfo.homogeneous = properties & FSF3_HOMOGENEOUS;
	into->res.fsinfo.can_settime = properties & FSF3_CANSETTIME;
}

static void get_pathconf(struct ssc_xdr *x, struct ssc_call *into)
{
	get_post_attrs(x, &into->has_attrs, &into->attrs);
	into->res.pathconf.linkmax = ssc_xdr_u32(x);
	into->res.pathconf.name_max = ssc_xdr_u32(x);
	into->res.pathconf.no_trunc = ssc_xdr_bool(x);
	into->res.pathconf.chown_restricted = ssc_xdr_bool(x);
	into->res.pathconf.case_insensitive = ssc_xdr_bool(x);
	into->res.pathconf.case_preserving = ssc_xdr_bool(x);
}

/* What follows status NFS3_OK. */
static void get_ok(struct ssc_xdr *x, const struct ssc_call *call, bool is_placed,
		   struct ssc_call *into)
{
	switch (call->op) {
	case SSC_OP_GETATTR:
		into->has_attrs = true;
		get_attrs(x, &into->attrs);
		break;
	case SSC_OP_LOOKUP:
		get_lookup(x, into);
		break;
	case SSC_OP_READLINK:
		get_readlink(x, into);
		break;
	case SSC_OP_READ:
		get_read(x, call, is_placed, into);
		break;
	case SSC_OP_WRITE:
		get_write(x, call, into);
		break;
	case SSC_OP_CREATE:
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
		get_made(x, into);
		break;
	case SSC_OP_SETATTR:
	case SSC_OP_REMOVE:
	case SSC_OP_RMDIR:
	case SSC_OP_RENAME: /* the old directory's; the new one's follow and are not kept */
		get_wcc(x, into);
		break;
	case SSC_OP_LINK:
		get_post_attrs(x, &into->has_attrs, &into->attrs);
		break;
	case SSC_OP_READDIRPLUS:
		get_readdirplus(x, into);
		break;
	case SSC_OP_FSSTAT:
		get_fsstat(x, into);
		break;
	case SSC_OP_FSINFO:
		get_fsinfo(x, into);
		break;
	case SSC_OP_PATHCONF:
		get_pathconf(x, into);
		break;
	case SSC_OP_COMMIT:
		get_commit(x, into);
		break;
	case SSC_OP_NULL:
	case SSC_OP_N:
		break;
	}
}

/* What follows another status: attributes, if at all. */
static void get_failed(struct ssc_xdr *x, const struct ssc_call *call, struct ssc_call *into)
{
	switch (call->op) {
	case SSC_OP_SETATTR:
	case SSC_OP_WRITE:
	case SSC_OP_CREATE:
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
	case SSC_OP_REMOVE:
	case SSC_OP_RMDIR:
	case SSC_OP_RENAME:
	case SSC_OP_COMMIT:
		get_wcc(x, into);
		break;
	case SSC_OP_LOOKUP:
	case SSC_OP_READLINK:
	case SSC_OP_READ:
	case SSC_OP_LINK:
	case SSC_OP_READDIRPLUS:
	case SSC_OP_FSSTAT:
	case SSC_OP_FSINFO:
	case SSC_OP_PATHCONF:
		get_post_attrs(x, &into->has_attrs, &into->attrs);
		break;
	case SSC_OP_NULL:
	case SSC_OP_GETATTR:
	case SSC_OP_N:
		break;
	}
}

bool ssc_reply_place(const struct ssc_call *call, const void *results, size_t len,
		     struct ssc_wire_place *place)
{
	struct ssc_attrs attrs;
	struct ssc_xdr x;
	bool has_attrs;
	uint32_t count;

	if (call->op != SSC_OP_READ)
		return false;
	ssc_xdr_init(&x, results, len);
	if (ssc_xdr_u32(&x) != NFS3_OK)
		return false;
	get_post_attrs(&x, &has_attrs, &attrs);
	count = ssc_xdr_u32(&x);
	(void)ssc_xdr_bool(&x); /* eof */
	if (ssc_xdr_u32(&x) != count || !ssc_xdr_ok(&x) || count > call->arg.io.count)
		return false;
	*place = (struct ssc_wire_place){
		.iov = call->arg.io.iov,
		.n_iov = call->arg.io.n_iov,
		.count = count,
		.head = (size_t)(x.at - (const uint8_t *)results),
	};
	return true;
}

enum ssc_err ssc_reply_decode(const struct ssc_call *call, const void *bytes, size_t len,
			      bool is_placed, struct ssc_call *into)
{
	enum ssc_err err = SSC_OK;
	struct ssc_xdr x;

	ssc_xdr_init(&x, bytes, len);
	if (call->op != SSC_OP_NULL)
		err = ssc_reply_status(ssc_xdr_u32(&x));
	if (err == SSC_OK)
		get_ok(&x, call, is_placed, into);
	else if (err != SSC_E_PROTO)
		get_failed(&x, call, into);
	if (ssc_xdr_ok(&x))
		return err;
	into->has_attrs = false;
	return SSC_E_PROTO;
}
