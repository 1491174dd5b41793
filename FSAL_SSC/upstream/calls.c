/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * calls.c - from struct ssc_call to a request, one small function per NFSv3 procedure.
 *
 * libnfs' encoders write the arguments; everything is sent or copied before the function returns, so
 * nothing of the call is borrowed afterwards. Threads: the holder of conn.lock. Source: RFC 1813 3.3.
 */
#include <arpa/inet.h>
#include <string.h>

#include "internal.h"
#include "libnfs_compat.h"
#include "ssc/log.h"

static nfs_fh3 fh_arg(const struct ssc_fh *fh)
{
	return (nfs_fh3){.data = {.data_len = fh->len, .data_val = (char *)fh->data}};
}

static diropargs3 dir_arg(const struct ssc_call *call)
{
	return (diropargs3){.dir = fh_arg(&call->fh), .name = call->name};
}

static nfstime3 time_arg(struct ssc_time t)
{
	return (nfstime3){.seconds = (uint32_t)t.s, .nseconds = t.ns};
}

static void sattr_arg(const struct ssc_sattr *set, sattr3 *out)
{
	memset(out, 0, sizeof(*out));
	out->mode.set_it = set->set_mode;
	out->mode.set_mode3_u.mode = set->mode;
	out->uid.set_it = set->set_uid;
	out->uid.set_uid3_u.uid = set->uid;
	out->gid.set_it = set->set_gid;
	out->gid.set_gid3_u.gid = set->gid;
	out->size.set_it = set->set_size;
	out->size.set_size3_u.size = set->size;
	out->atime.set_it = (time_how)set->atime_how;
	out->atime.set_atime_u.atime = time_arg(set->atime);
	out->mtime.set_it = (time_how)set->mtime_how;
	out->mtime.set_mtime_u.mtime = time_arg(set->mtime);
}

/* One call on its way into the wire. */
struct out {
	struct ssc_wire *wire;
	uint32_t xid;
	const struct ssc_call *call;
	size_t bytes; /* of data behind the arguments */
};

static enum ssc_err send_call(const struct out *o, uint32_t procedure, zdrproc_t encode, void *args)
{
	const struct ssc_wire_procedure proc = {NFS_PROGRAM, NFS_V3, procedure};
	const struct ssc_call *call = o->call;
	uint8_t buf[SSC_WIRE_CALL_MAX];
	size_t len = ssc_wire_header(buf, o->xid, &proc, &call->cred);
	ZDR zdr;

	libnfs_zdrmem_create(&zdr, (char *)buf + len, sizeof(buf) - len, ZDR_ENCODE);
	if (encode && !encode(&zdr, args))
		return SSC_E_SERVERFAULT;
	len += (size_t)zdr.pos;
	if (o->bytes > 0) { /* the last word encoded is the length of no data */
		const uint32_t n = htonl((uint32_t)o->bytes);

		memcpy(buf + len - sizeof(n), &n, sizeof(n));
	}
	return ssc_wire_send(o->wire, buf, len, call->arg.io.iov,
			     o->bytes > 0 ? call->arg.io.n_iov : 0, o->bytes, true);
}

static enum ssc_err issue_null(const struct out *o)
{
	return send_call(o, NFS3_NULL, NULL, NULL);
}

static enum ssc_err issue_getattr(const struct out *o)
{
	const struct ssc_call *call = o->call;
	GETATTR3args args = {.object = fh_arg(&call->fh)};

	return send_call(o, NFS3_GETATTR, (zdrproc_t)zdr_GETATTR3args, &args);
}

static enum ssc_err issue_setattr(const struct out *o)
{
	const struct ssc_call *call = o->call;
	SETATTR3args args = {.object = fh_arg(&call->fh)};

	sattr_arg(&call->arg.setattr.set, &args.new_attributes);
	return send_call(o, NFS3_SETATTR, (zdrproc_t)zdr_SETATTR3args, &args);
}

static enum ssc_err issue_lookup(const struct out *o)
{
	const struct ssc_call *call = o->call;
	LOOKUP3args args = {.what = dir_arg(call)};

	return send_call(o, NFS3_LOOKUP, (zdrproc_t)zdr_LOOKUP3args, &args);
}

static enum ssc_err issue_readlink(const struct out *o)
{
	const struct ssc_call *call = o->call;
	READLINK3args args = {.symlink = fh_arg(&call->fh)};

	return send_call(o, NFS3_READLINK, (zdrproc_t)zdr_READLINK3args, &args);
}

static enum ssc_err issue_read(const struct out *o)
{
	const struct ssc_call *call = o->call;
	READ3args args = {
		.file = fh_arg(&call->fh),
		.offset = call->arg.io.offset,
		.count = call->arg.io.count,
	};

	return send_call(o, NFS3_READ, (zdrproc_t)zdr_READ3args, &args);
}

/* The arguments end in data of no length: the wire sends it from where it lies. */
static enum ssc_err issue_write(const struct out *o)
{
	const struct ssc_call *call = o->call;
	struct out with_data = *o;
	WRITE3args args = {
		.file = fh_arg(&call->fh),
		.offset = call->arg.io.offset,
		.count = call->arg.io.count,
		.stable = (stable_how)call->arg.io.stable,
		.data = {.data_len = 0, .data_val = ""},
	};

	with_data.bytes = call->arg.io.count;
	return send_call(&with_data, NFS3_WRITE, (zdrproc_t)zdr_WRITE3args, &args);
}

static enum ssc_err issue_create(const struct out *o)
{
	const struct ssc_call *call = o->call;
	CREATE3args args = {.where = dir_arg(call)};

	args.how.mode = (createmode3)call->arg.create.how;
	switch (call->arg.create.how) {
	case SSC_CREATE_UNCHECKED:
		sattr_arg(&call->arg.create.set, &args.how.createhow3_u.obj_attributes);
		break;
	case SSC_CREATE_GUARDED:
		sattr_arg(&call->arg.create.set, &args.how.createhow3_u.g_obj_attributes);
		break;
	case SSC_CREATE_EXCLUSIVE:
		memcpy(args.how.createhow3_u.verf, call->arg.create.verf, SSC_VERF_BYTES);
		break;
	}
	return send_call(o, NFS3_CREATE, (zdrproc_t)zdr_CREATE3args, &args);
}

static enum ssc_err issue_mkdir(const struct out *o)
{
	const struct ssc_call *call = o->call;
	MKDIR3args args = {.where = dir_arg(call)};

	sattr_arg(&call->arg.make.set, &args.attributes);
	return send_call(o, NFS3_MKDIR, (zdrproc_t)zdr_MKDIR3args, &args);
}

static enum ssc_err issue_symlink(const struct out *o)
{
	const struct ssc_call *call = o->call;
	SYMLINK3args args = {.where = dir_arg(call)};

	sattr_arg(&call->arg.make.set, &args.symlink.symlink_attributes);
	args.symlink.symlink_data = call->text;
	return send_call(o, NFS3_SYMLINK, (zdrproc_t)zdr_SYMLINK3args, &args);
}

static enum ssc_err issue_mknod(const struct out *o)
{
	const struct ssc_call *call = o->call;
	MKNOD3args args = {.where = dir_arg(call)};
	sattr3 set;
	specdata3 dev = {call->arg.make.rdev_major, call->arg.make.rdev_minor};

	sattr_arg(&call->arg.make.set, &set);
	switch (call->arg.make.type) {
	case SSC_FT_CHR:
		args.what.type = NF3CHR;
		args.what.mknoddata3_u.chr_device = (devicedata3){set, dev};
		break;
	case SSC_FT_BLK:
		args.what.type = NF3BLK;
		args.what.mknoddata3_u.blk_device = (devicedata3){set, dev};
		break;
	case SSC_FT_SOCK:
		args.what.type = NF3SOCK;
		args.what.mknoddata3_u.sock_attributes = set;
		break;
	case SSC_FT_FIFO:
		args.what.type = NF3FIFO;
		args.what.mknoddata3_u.pipe_attributes = set;
		break;
	case SSC_FT_NONE:
	case SSC_FT_REG:
	case SSC_FT_DIR:
	case SSC_FT_LNK:
		return SSC_E_BADTYPE;
	}
	return send_call(o, NFS3_MKNOD, (zdrproc_t)zdr_MKNOD3args, &args);
}

static enum ssc_err issue_remove(const struct out *o)
{
	const struct ssc_call *call = o->call;
	REMOVE3args args = {.object = dir_arg(call)};

	return send_call(o, NFS3_REMOVE, (zdrproc_t)zdr_REMOVE3args, &args);
}

static enum ssc_err issue_rmdir(const struct out *o)
{
	const struct ssc_call *call = o->call;
	RMDIR3args args = {.object = dir_arg(call)};

	return send_call(o, NFS3_RMDIR, (zdrproc_t)zdr_RMDIR3args, &args);
}

static enum ssc_err issue_rename(const struct out *o)
{
	const struct ssc_call *call = o->call;
	RENAME3args args = {
		.from = dir_arg(call),
		.to = {.dir = fh_arg(&call->arg.rename.to_dir), .name = call->text},
	};

	return send_call(o, NFS3_RENAME, (zdrproc_t)zdr_RENAME3args, &args);
}

static enum ssc_err issue_link(const struct out *o)
{
	const struct ssc_call *call = o->call;
	LINK3args args = {
		.file = fh_arg(&call->fh),
		.link = {.dir = fh_arg(&call->arg.rename.to_dir), .name = call->name},
	};

	return send_call(o, NFS3_LINK, (zdrproc_t)zdr_LINK3args, &args);
}

static enum ssc_err issue_readdirplus(const struct out *o)
{
	const struct ssc_call *call = o->call;
	READDIRPLUS3args args = {
		.dir = fh_arg(&call->fh),
		.cookie = call->arg.readdir.cookie,
		/* dircount bounds names only and servers differ in how they take it: ask for all */
		.dircount = call->arg.readdir.max_bytes,
		.maxcount = call->arg.readdir.max_bytes,
	};

	memcpy(args.cookieverf, call->arg.readdir.verf, SSC_VERF_BYTES);
	return send_call(o, NFS3_READDIRPLUS, (zdrproc_t)zdr_READDIRPLUS3args, &args);
}

static enum ssc_err issue_fsstat(const struct out *o)
{
	const struct ssc_call *call = o->call;
	FSSTAT3args args = {.fsroot = fh_arg(&call->fh)};

	return send_call(o, NFS3_FSSTAT, (zdrproc_t)zdr_FSSTAT3args, &args);
}

static enum ssc_err issue_fsinfo(const struct out *o)
{
	const struct ssc_call *call = o->call;
	FSINFO3args args = {.fsroot = fh_arg(&call->fh)};

	return send_call(o, NFS3_FSINFO, (zdrproc_t)zdr_FSINFO3args, &args);
}

static enum ssc_err issue_pathconf(const struct out *o)
{
	const struct ssc_call *call = o->call;
	PATHCONF3args args = {.object = fh_arg(&call->fh)};

	return send_call(o, NFS3_PATHCONF, (zdrproc_t)zdr_PATHCONF3args, &args);
}

static enum ssc_err issue_commit(const struct out *o)
{
	const struct ssc_call *call = o->call;
	COMMIT3args args = {
		.file = fh_arg(&call->fh),
		.offset = call->arg.io.offset,
		.count = call->arg.io.count,
	};

	return send_call(o, NFS3_COMMIT, (zdrproc_t)zdr_COMMIT3args, &args);
}

static enum ssc_err (*const issue[SSC_OP_N])(const struct out *) = {
	[SSC_OP_NULL] = issue_null,         [SSC_OP_GETATTR] = issue_getattr,
	[SSC_OP_SETATTR] = issue_setattr,   [SSC_OP_LOOKUP] = issue_lookup,
	[SSC_OP_READLINK] = issue_readlink, [SSC_OP_READ] = issue_read,
	[SSC_OP_WRITE] = issue_write,       [SSC_OP_CREATE] = issue_create,
	[SSC_OP_MKDIR] = issue_mkdir,       [SSC_OP_SYMLINK] = issue_symlink,
	[SSC_OP_MKNOD] = issue_mknod,       [SSC_OP_REMOVE] = issue_remove,
	[SSC_OP_RMDIR] = issue_rmdir,       [SSC_OP_RENAME] = issue_rename,
	[SSC_OP_LINK] = issue_link,         [SSC_OP_READDIRPLUS] = issue_readdirplus,
	[SSC_OP_FSSTAT] = issue_fsstat,     [SSC_OP_FSINFO] = issue_fsinfo,
	[SSC_OP_PATHCONF] = issue_pathconf, [SSC_OP_COMMIT] = issue_commit,
};

static bool time_fits(enum ssc_time_how how, struct ssc_time t)
{
	return how != SSC_TIME_CLIENT || (t.s >= 0 && t.s <= UINT32_MAX && t.ns < SSC_NS_PER_S);
}

/* What a glue above us might get wrong, or a client might ask for, that NFSv3 cannot carry. */
static enum ssc_err check_args(const struct ssc_call *call)
{
	const struct ssc_sattr *set = NULL;

	if (call->op != SSC_OP_NULL && (call->fh.len == 0 || call->fh.len > SSC_FH3_MAX))
		return SSC_E_BADHANDLE;
	switch (call->op) {
	case SSC_OP_READ:
	case SSC_OP_WRITE:
		return call->arg.io.count <= SSC_IO_MAX ? SSC_OK : SSC_E_INVAL;
	case SSC_OP_SETATTR:
		set = &call->arg.setattr.set;
		break;
	case SSC_OP_CREATE:
		set = call->arg.create.how == SSC_CREATE_EXCLUSIVE ? NULL : &call->arg.create.set;
		break;
	case SSC_OP_MKDIR:
	case SSC_OP_MKNOD:
	case SSC_OP_SYMLINK:
		set = &call->arg.make.set;
		break;
	default:
		break;
	}
	if (set &&
	    !(time_fits(set->atime_how, set->atime) && time_fits(set->mtime_how, set->mtime)))
		return SSC_E_INVAL;
	return SSC_OK;
}

enum ssc_err ssc_calls_issue(struct ssc_wire *w, uint32_t xid, struct ssc_call *call)
{
	const struct out o = {.wire = w, .xid = xid, .call = call};
	enum ssc_err err = check_args(call);

	return err ? err : issue[call->op](&o);
}

enum ssc_err ssc_calls_null(struct ssc_wire *w, uint32_t xid)
{
	static const struct ssc_wire_procedure null = {NFS_PROGRAM, NFS_V3, NFS3_NULL};
	static const struct ssc_cred root;
	uint8_t buf[SSC_WIRE_CALL_MAX];
	size_t len = ssc_wire_header(buf, xid, &null, &root);

	return ssc_wire_send(w, buf, len, NULL, 0, 0, false);
}
