/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * calls.c - from struct ssc_call to a libnfs request, one small function per NFSv3 procedure.
 *
 * libnfs copies everything into the request, WRITE's data too, before the function returns; nothing
 * of the call is borrowed afterwards. Threads: the holder of conn.lock. Source: RFC 1813 3.3.
 */
#include <stdlib.h>
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

/*
 * libnfs only frames the reply: ssc_reply_decode takes the results apart. Its own decoders trust the
 * lengths they find (see replies.c).
 */
static uint32_t keep_bytes(ZDR *zdr, void *out, ...)
{
	struct ssc_reply_bytes *reply = out;

	if (zdr->pos < 0 || zdr->pos > zdr->size)
		return 0;
	reply->bytes = zdr->buf + zdr->pos;
	reply->len = (size_t)(zdr->size - zdr->pos);
	return 1;
}

/*
 * The argument stream of a request made by rpc_allocate_pdu2. struct rpc_pdu is private; its ZDR
 * lies behind a pointer, the xid and padding in 4.0.0. ssc_calls_check_libnfs verifies that.
 */
static ZDR *pdu_zdr(struct rpc_pdu *pdu)
{
	return (ZDR *)((char *)pdu + 16);
}

int ssc_calls_send(struct rpc_context *rpc, const struct ssc_procedure *proc, rpc_cb cb,
		   void *private_data, void *args, size_t more)
{
	struct rpc_pdu *pdu =
		rpc_allocate_pdu2(rpc, proc->program, proc->version, proc->number, cb, private_data,
				  keep_bytes, sizeof(struct ssc_reply_bytes), more);

	if (!pdu)
		return -1;
	if ((proc->encode && !proc->encode(pdu_zdr(pdu), args)) || rpc_queue_pdu(rpc, pdu) != 0) {
		rpc_free_pdu(rpc, pdu);
		return -1;
	}
	return 0;
}

static int send_call(struct rpc_context *rpc, struct ssc_call *call, int procedure,
		     zdrproc_t encode, void *args, size_t more)
{
	const struct ssc_procedure proc = {NFS_PROGRAM, NFS_V3, procedure, encode};

	return ssc_calls_send(rpc, &proc, ssc_reply_cb, call, args, more);
}

static int issue_null(struct rpc_context *rpc, struct ssc_call *call)
{
	return send_call(rpc, call, NFS3_NULL, NULL, NULL, 0);
}

static int issue_getattr(struct rpc_context *rpc, struct ssc_call *call)
{
	GETATTR3args args = {.object = fh_arg(&call->fh)};

	return send_call(rpc, call, NFS3_GETATTR, (zdrproc_t)zdr_GETATTR3args, &args, 0);
}

static int issue_setattr(struct rpc_context *rpc, struct ssc_call *call)
{
	SETATTR3args args = {.object = fh_arg(&call->fh)};

	sattr_arg(&call->arg.setattr.set, &args.new_attributes);
	return send_call(rpc, call, NFS3_SETATTR, (zdrproc_t)zdr_SETATTR3args, &args, 0);
}

static int issue_lookup(struct rpc_context *rpc, struct ssc_call *call)
{
	LOOKUP3args args = {.what = dir_arg(call)};

	return send_call(rpc, call, NFS3_LOOKUP, (zdrproc_t)zdr_LOOKUP3args, &args, 0);
}

static int issue_readlink(struct rpc_context *rpc, struct ssc_call *call)
{
	READLINK3args args = {.symlink = fh_arg(&call->fh)};

	return send_call(rpc, call, NFS3_READLINK, (zdrproc_t)zdr_READLINK3args, &args, 0);
}

static int issue_read(struct rpc_context *rpc, struct ssc_call *call)
{
	READ3args args = {
		.file = fh_arg(&call->fh),
		.offset = call->arg.io.offset,
		.count = call->arg.io.count,
	};

	return send_call(rpc, call, NFS3_READ, (zdrproc_t)zdr_READ3args, &args, 0);
}

/* One buffer is the rule; several are joined first, since libnfs takes one. */
static int issue_write(struct rpc_context *rpc, struct ssc_call *call)
{
	WRITE3args args = {
		.file = fh_arg(&call->fh),
		.offset = call->arg.io.offset,
		.count = call->arg.io.count,
		.stable = (stable_how)call->arg.io.stable,
		.data = {.data_len = call->arg.io.count},
	};
	char *joined = NULL;
	size_t at = 0;
	int rc;

	if (call->arg.io.n_iov == 1) {
		args.data.data_val = call->arg.io.iov[0].iov_base;
	} else {
		joined = malloc(call->arg.io.count ? call->arg.io.count : 1);
		if (!joined)
			return -1;
		for (int i = 0; i < call->arg.io.n_iov && at < call->arg.io.count; i++) {
			size_t n = call->arg.io.iov[i].iov_len;

			if (n > call->arg.io.count - at)
				n = call->arg.io.count - at;
			memcpy(joined + at, call->arg.io.iov[i].iov_base, n);
			at += n;
		}
		args.data.data_val = joined;
	}
	rc = send_call(rpc, call, NFS3_WRITE, (zdrproc_t)zdr_WRITE3args, &args, call->arg.io.count);
	free(joined);
	return rc;
}

static int issue_create(struct rpc_context *rpc, struct ssc_call *call)
{
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
	return send_call(rpc, call, NFS3_CREATE, (zdrproc_t)zdr_CREATE3args, &args, 0);
}

static int issue_mkdir(struct rpc_context *rpc, struct ssc_call *call)
{
	MKDIR3args args = {.where = dir_arg(call)};

	sattr_arg(&call->arg.make.set, &args.attributes);
	return send_call(rpc, call, NFS3_MKDIR, (zdrproc_t)zdr_MKDIR3args, &args, 0);
}

static int issue_symlink(struct rpc_context *rpc, struct ssc_call *call)
{
	SYMLINK3args args = {.where = dir_arg(call)};

	sattr_arg(&call->arg.make.set, &args.symlink.symlink_attributes);
	args.symlink.symlink_data = call->text;
	return send_call(rpc, call, NFS3_SYMLINK, (zdrproc_t)zdr_SYMLINK3args, &args,
			 strlen(call->text));
}

static int issue_mknod(struct rpc_context *rpc, struct ssc_call *call)
{
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
		return -1;
	}
	return send_call(rpc, call, NFS3_MKNOD, (zdrproc_t)zdr_MKNOD3args, &args, 0);
}

static int issue_remove(struct rpc_context *rpc, struct ssc_call *call)
{
	REMOVE3args args = {.object = dir_arg(call)};

	return send_call(rpc, call, NFS3_REMOVE, (zdrproc_t)zdr_REMOVE3args, &args, 0);
}

static int issue_rmdir(struct rpc_context *rpc, struct ssc_call *call)
{
	RMDIR3args args = {.object = dir_arg(call)};

	return send_call(rpc, call, NFS3_RMDIR, (zdrproc_t)zdr_RMDIR3args, &args, 0);
}

static int issue_rename(struct rpc_context *rpc, struct ssc_call *call)
{
	RENAME3args args = {
		.from = dir_arg(call),
		.to = {.dir = fh_arg(&call->arg.rename.to_dir), .name = call->text},
	};

	return send_call(rpc, call, NFS3_RENAME, (zdrproc_t)zdr_RENAME3args, &args, 0);
}

static int issue_link(struct rpc_context *rpc, struct ssc_call *call)
{
	LINK3args args = {
		.file = fh_arg(&call->fh),
		.link = {.dir = fh_arg(&call->arg.rename.to_dir), .name = call->name},
	};

	return send_call(rpc, call, NFS3_LINK, (zdrproc_t)zdr_LINK3args, &args, 0);
}

static int issue_readdirplus(struct rpc_context *rpc, struct ssc_call *call)
{
	READDIRPLUS3args args = {
		.dir = fh_arg(&call->fh),
		.cookie = call->arg.readdir.cookie,
		/* dircount bounds names only and servers differ in how they take it: ask for all */
		.dircount = call->arg.readdir.max_bytes,
		.maxcount = call->arg.readdir.max_bytes,
	};

	memcpy(args.cookieverf, call->arg.readdir.verf, SSC_VERF_BYTES);
	return send_call(rpc, call, NFS3_READDIRPLUS, (zdrproc_t)zdr_READDIRPLUS3args, &args, 0);
}

static int issue_fsstat(struct rpc_context *rpc, struct ssc_call *call)
{
	FSSTAT3args args = {.fsroot = fh_arg(&call->fh)};

	return send_call(rpc, call, NFS3_FSSTAT, (zdrproc_t)zdr_FSSTAT3args, &args, 0);
}

static int issue_fsinfo(struct rpc_context *rpc, struct ssc_call *call)
{
	FSINFO3args args = {.fsroot = fh_arg(&call->fh)};

	return send_call(rpc, call, NFS3_FSINFO, (zdrproc_t)zdr_FSINFO3args, &args, 0);
}

static int issue_pathconf(struct rpc_context *rpc, struct ssc_call *call)
{
	PATHCONF3args args = {.object = fh_arg(&call->fh)};

	return send_call(rpc, call, NFS3_PATHCONF, (zdrproc_t)zdr_PATHCONF3args, &args, 0);
}

static int issue_commit(struct rpc_context *rpc, struct ssc_call *call)
{
	COMMIT3args args = {
		.file = fh_arg(&call->fh),
		.offset = call->arg.io.offset,
		.count = call->arg.io.count,
	};

	return send_call(rpc, call, NFS3_COMMIT, (zdrproc_t)zdr_COMMIT3args, &args, 0);
}

static int (*const issue[SSC_OP_N])(struct rpc_context *, struct ssc_call *) = {
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
		return call->arg.io.count <= SSC_LIBNFS_IO_MAX ? SSC_OK : SSC_E_INVAL;
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

enum ssc_err ssc_calls_issue(struct rpc_context *rpc, struct ssc_call *call)
{
	enum ssc_err err = check_args(call);

	if (err)
		return err;
	return issue[call->op](rpc, call) == 0 ? SSC_OK : SSC_E_SERVERFAULT;
}

static void probe_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	(void)rpc, (void)status, (void)data, (void)private_data;
}

bool ssc_calls_check_libnfs(void)
{
	const size_t hint = 10000;
	struct rpc_context *rpc = ssc_rpc_new();
	struct rpc_pdu *pdu = NULL;
	bool ok = false;

	if (!rpc)
		goto out;
	pdu = rpc_allocate_pdu2(rpc, NFS_PROGRAM, NFS_V3, NFS3_SYMLINK, probe_cb, NULL, keep_bytes,
				sizeof(struct ssc_reply_bytes), hint);
	if (pdu) {
		const ZDR *zdr = pdu_zdr(pdu);

		/* An encoder with the room asked for, positioned behind an RPC header. */
		ok = zdr->x_op == ZDR_ENCODE && zdr->size >= (int)hint &&
		     zdr->size <= (int)hint + 2 * SSC_LIBNFS_ARGS_BYTES && zdr->pos >= 40 &&
		     zdr->pos <= 512 && zdr->buf;
		rpc_free_pdu(rpc, pdu);
	}
	rpc_destroy_context(rpc);
out:
	if (!ok)
		ssc_log_crit("the libnfs that was loaded is not laid out like version 4.0.0: "
			     "install Debian 12's libnfs13, or build for this one");
	return ok;
}
