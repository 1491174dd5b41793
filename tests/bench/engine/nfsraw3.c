/* SPDX-License-Identifier: LGPL-3.0-or-later OR GPL-2.0-only */
/*
 * nfsraw3.c - the operations of nfsraw.h as single NFSv3 calls.
 *
 * Arguments are encoded inside the libnfs call, so that they may live on the stack. Results are
 * valid in the callback only; lengths in them are checked here because libnfs does not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nfsraw_private.h"

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

static nfs_fh3 wire_fh(const struct nfsraw_fh *fh)
{
	nfs_fh3 wire = {.data = {.data_len = fh->len, .data_val = (char *)fh->data}};

	return wire;
}

static diropargs3 wire_name(const struct nfsraw_op *op)
{
	diropargs3 wire = {.dir = wire_fh(op->fh), .name = (char *)op->name};

	return wire;
}

static int status_error(nfsstat3 status)
{
	switch (status) {
	case NFS3_OK:
		return 0;
	case NFS3ERR_JUKEBOX:
		return EAGAIN;
	default:
		return -nfsstat3_to_errno((int)status);
	}
}

static int take_read(struct nfsraw_op *op, const READ3res *res)
{
	const READ3resok *ok = &res->READ3res_u.resok;

	if (ok->data.data_len > op->count_bytes)
		return EPROTO;
	memcpy(op->buf, ok->data.data_val, ok->data.data_len);
	op->done_bytes = ok->data.data_len;
	op->is_eof = ok->eof;
	return 0;
}

static int take_write(struct nfsraw_op *op, const WRITE3res *res)
{
	op->done_bytes = res->WRITE3res_u.resok.count;
	return op->done_bytes <= op->count_bytes ? 0 : EPROTO;
}

static int take_lookup(struct nfsraw_op *op, const LOOKUP3res *res)
{
	const LOOKUP3resok *ok = &res->LOOKUP3res_u.resok;

	if (ok->obj_attributes.attributes_follow)
		op->size_bytes = ok->obj_attributes.post_op_attr_u.attributes.size;
	return nfsraw_fh_set(&op->out_fh, ok->object.data.data_val, ok->object.data.data_len)
		       ? 0
		       : EPROTO;
}

static int take_post_op_fh(struct nfsraw_op *op, const post_op_fh3 *fh)
{
	const nfs_fh3 *handle = &fh->post_op_fh3_u.handle;

	if (!fh->handle_follows)
		return ENOTSUP;
	return nfsraw_fh_set(&op->out_fh, handle->data.data_val, handle->data.data_len) ? 0
											: EPROTO;
}

static int take_readdir(struct nfsraw_op *op, const READDIRPLUS3res *res)
{
	const READDIRPLUS3resok *ok = &res->READDIRPLUS3res_u.resok;

	op->done_bytes = 0;
	op->cookie = op->offset;
	for (const entryplus3 *entry = ok->reply.entries; entry; entry = entry->nextentry) {
		op->done_bytes++;
		op->cookie = entry->cookie;
	}
	op->is_eof = ok->reply.eof;
	memcpy(op->verf, ok->cookieverf, sizeof(op->verf));
	/* No entry and no end would make the caller ask for ever. */
	return op->done_bytes || op->is_eof ? 0 : EPROTO;
}

/* Every result of NFSv3 starts with its status. */
static void answer_cb(struct rpc_context *rpc, int status, void *data, void *priv)
{
	struct nfsraw_op *op = priv;
	int error;

	(void)rpc;
	if (status != RPC_STATUS_SUCCESS) {
		nfsraw_answer(op, op->nr->dead ? op->nr->dead : EIO);
		return;
	}
	error = status_error(*(const nfsstat3 *)data);
	if (!error) {
		switch (op->kind) {
		case NFSRAW_READ:
			error = take_read(op, data);
			break;
		case NFSRAW_WRITE:
			error = take_write(op, data);
			break;
		case NFSRAW_LOOKUP:
			error = take_lookup(op, data);
			break;
		case NFSRAW_GETATTR:
			op->size_bytes =
				((GETATTR3res *)data)->GETATTR3res_u.resok.obj_attributes.size;
			break;
		case NFSRAW_CREATE:
			error = take_post_op_fh(op, &((CREATE3res *)data)->CREATE3res_u.resok.obj);
			break;
		case NFSRAW_MKDIR:
			error = take_post_op_fh(op, &((MKDIR3res *)data)->MKDIR3res_u.resok.obj);
			break;
		case NFSRAW_READDIR:
			error = take_readdir(op, data);
			break;
		case NFSRAW_COMMIT:
		case NFSRAW_ACCESS:
		case NFSRAW_REMOVE:
		case NFSRAW_RMDIR:
		case NFSRAW_OPEN:
		case NFSRAW_OPEN_CONFIRM:
		case NFSRAW_CLOSE:
			break;
		}
	}
	nfsraw_answer(op, error);
}

static int send_data(struct rpc_context *rpc, struct nfsraw_op *op)
{
	nfs_fh3 fh = wire_fh(op->fh);

	switch (op->kind) {
	case NFSRAW_READ: {
		READ3args args = {.file = fh, .offset = op->offset, .count = op->count_bytes};

		return rpc_nfs3_read_async(rpc, answer_cb, &args, op);
	}
	case NFSRAW_WRITE: {
		WRITE3args args = {.file = fh,
				   .offset = op->offset,
				   .count = op->count_bytes,
				   .stable = op->is_stable ? FILE_SYNC : UNSTABLE,
				   .data = {op->count_bytes, op->buf}};

		return rpc_nfs3_write_async(rpc, answer_cb, &args, op);
	}
	default: {
		/* Offset and count of 0: the whole file, as an fsync() asks for. */
		COMMIT3args args = {.file = fh};

		return rpc_nfs3_commit_async(rpc, answer_cb, &args, op);
	}
	}
}

static int send_object(struct rpc_context *rpc, struct nfsraw_op *op)
{
	nfs_fh3 fh = wire_fh(op->fh);

	switch (op->kind) {
	case NFSRAW_GETATTR: {
		GETATTR3args args = {.object = fh};

		return rpc_nfs3_getattr_async(rpc, answer_cb, &args, op);
	}
	case NFSRAW_ACCESS: {
		ACCESS3args args = {.object = fh,
				    .access = ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND};

		return rpc_nfs3_access_async(rpc, answer_cb, &args, op);
	}
	default: {
		READDIRPLUS3args args = {.dir = fh,
					 .cookie = op->offset,
					 .dircount = op->count_bytes / 4,
					 .maxcount = op->count_bytes};

		memcpy(args.cookieverf, op->verf, sizeof(args.cookieverf));
		return rpc_nfs3_readdirplus_async(rpc, answer_cb, &args, op);
	}
	}
}

static int send_name(struct rpc_context *rpc, struct nfsraw_op *op)
{
	diropargs3 where = wire_name(op);

	switch (op->kind) {
	case NFSRAW_LOOKUP: {
		LOOKUP3args args = {.what = where};

		return rpc_nfs3_lookup_async(rpc, answer_cb, &args, op);
	}
	case NFSRAW_CREATE: {
		CREATE3args args = {.where = where, .how = {.mode = UNCHECKED}};
		sattr3 *attrs = &args.how.createhow3_u.obj_attributes;

		attrs->mode = (set_mode3){.set_it = 1, .set_mode3_u = {.mode = 0644}};
		return rpc_nfs3_create_async(rpc, answer_cb, &args, op);
	}
	case NFSRAW_MKDIR: {
		MKDIR3args args = {.where = where};

		args.attributes.mode = (set_mode3){.set_it = 1, .set_mode3_u = {.mode = 0755}};
		return rpc_nfs3_mkdir_async(rpc, answer_cb, &args, op);
	}
	case NFSRAW_RMDIR: {
		RMDIR3args args = {.object = where};

		return rpc_nfs3_rmdir_async(rpc, answer_cb, &args, op);
	}
	default: {
		REMOVE3args args = {.object = where};

		return rpc_nfs3_remove_async(rpc, answer_cb, &args, op);
	}
	}
}

int nfsraw3_send(struct nfsraw *nr, struct nfsraw_op *op)
{
	int rc;

	switch (op->kind) {
	case NFSRAW_READ:
	case NFSRAW_WRITE:
	case NFSRAW_COMMIT:
		rc = send_data(nr->rpc, op);
		break;
	case NFSRAW_GETATTR:
	case NFSRAW_ACCESS:
	case NFSRAW_READDIR:
		rc = send_object(nr->rpc, op);
		break;
	case NFSRAW_OPEN:
	case NFSRAW_OPEN_CONFIRM:
	case NFSRAW_CLOSE:
		return ENOTSUP;
	default:
		rc = send_name(nr->rpc, op);
		break;
	}
	return rc == 0 ? 0 : EIO;
}

struct mount {
	struct nfsraw *nr;
	bool is_done;
	int error;
};

static void mount_cb(struct rpc_context *rpc, int status, void *data, void *priv)
{
	struct mount *mount = priv;
	const mountres3 *res = data;

	(void)rpc;
	mount->is_done = true;
	if (status != RPC_STATUS_SUCCESS) {
		mount->error = EIO;
		return;
	}
	if (res->fhs_status != MNT3_OK) {
		snprintf(mount->nr->error, sizeof(mount->nr->error), "MNT: %s",
			 mountstat3_to_str((int)res->fhs_status));
		mount->error = -mountstat3_to_errno((int)res->fhs_status);
		return;
	}
	if (!nfsraw_fh_set(&mount->nr->root, res->mountres3_u.mountinfo.fhandle.fhandle3_val,
			   res->mountres3_u.mountinfo.fhandle.fhandle3_len))
		mount->error = EPROTO;
}

int nfsraw3_mount(struct nfsraw *nr, const struct nfsraw_target *target)
{
	struct mount mount = {.nr = nr};
	struct rpc_context *rpc;
	int error;

	rpc = nfsraw_dial(nr, target, target->mount_port, MOUNT_PROGRAM, MOUNT_V3);
	if (!rpc)
		return ECONNREFUSED;
	if (rpc_mount3_mnt_async(rpc, mount_cb, (char *)target->path, &mount) < 0)
		error = EIO;
	else
		error = nfsraw_spin(nr, rpc, &mount.is_done);
	rpc_destroy_context(rpc);
	return error ? error : mount.error;
}
