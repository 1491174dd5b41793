/* SPDX-License-Identifier: LGPL-3.0-or-later OR GPL-2.0-only */
/*
 * nfsraw4.c - the operations of nfsraw.h as single NFSv4.0 COMPOUNDs.
 *
 * Version 4.0 because libnfs 4.0.0 has no sessions. Each open file has an open owner of its own,
 * so that many OPENs and CLOSEs can be under way on one connection without mixing up their
 * sequence ids (RFC 7530 9.1.7). No delegations, no callbacks, no RENEW: I/O renews the lease,
 * and a benchmark's idle times are short.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nfsraw_private.h"

#include <nfsc/libnfs-raw-nfs4.h>

/* Path components that a mount path may have; each is one LOOKUP. */
#define MOUNT_DEPTH_MAX 32

struct compound {
	nfs_argop4 ops[MOUNT_DEPTH_MAX + 3];
	unsigned int n_ops;
};

static nfs_argop4 *add(struct compound *c, nfs_opnum4 opnum)
{
	nfs_argop4 *arg = &c->ops[c->n_ops++];

	memset(arg, 0, sizeof(*arg));
	arg->argop = opnum;
	return arg;
}

static void add_putfh(struct compound *c, const struct nfsraw_fh *fh)
{
	nfs_fh4 *wire = &add(c, OP_PUTFH)->nfs_argop4_u.opputfh.object;

	wire->nfs_fh4_len = fh->len;
	wire->nfs_fh4_val = (char *)fh->data;
}

static component4 wire_name(const char *name)
{
	component4 wire = {.utf8string_len = (u_int)strlen(name), .utf8string_val = (char *)name};

	return wire;
}

static stateid4 wire_stateid(const struct nfsraw_state *state)
{
	/* All zero without a state: the anonymous stateid. */
	stateid4 wire = {0};

	if (state) {
		wire.seqid = state->seqid;
		memcpy(wire.other, state->other, sizeof(wire.other));
	}
	return wire;
}

/* What a client asks for in a stat(): type, change, size, fsid, fileid; mode to time_modify. */
static uint32_t stat_mask[2] = {
	1u << FATTR4_TYPE | 1u << FATTR4_CHANGE | 1u << FATTR4_SIZE | 1u << FATTR4_FSID |
		1u << FATTR4_FILEID,
	1u << (FATTR4_MODE - 32) | 1u << (FATTR4_NUMLINKS - 32) | 1u << (FATTR4_OWNER - 32) |
		1u << (FATTR4_OWNER_GROUP - 32) | 1u << (FATTR4_RAWDEV - 32) |
		1u << (FATTR4_SPACE_USED - 32) | 1u << (FATTR4_TIME_ACCESS - 32) |
		1u << (FATTR4_TIME_METADATA - 32) | 1u << (FATTR4_TIME_MODIFY - 32),
};

static void add_getattr(struct compound *c)
{
	bitmap4 *mask = &add(c, OP_GETATTR)->nfs_argop4_u.opgetattr.attr_request;

	mask->bitmap4_len = 2;
	mask->bitmap4_val = stat_mask;
}

static int status_error(nfsstat4 status)
{
	switch ((int)status) {
	case NFS4_OK:
		return 0;
	case NFS4ERR_DELAY:
	case NFS4ERR_GRACE:
		return EAGAIN;
	case NFS4ERR_NOENT:
		return ENOENT;
	case NFS4ERR_EXIST:
		return EEXIST;
	case NFS4ERR_ACCESS:
		return EACCES;
	case NFS4ERR_PERM:
		return EPERM;
	case NFS4ERR_NOSPC:
		return ENOSPC;
	case NFS4ERR_STALE:
		return ESTALE;
	case NFS4ERR_INVAL:
		return EINVAL;
	case NFS4ERR_NOTDIR:
		return ENOTDIR;
	case NFS4ERR_ISDIR:
		return EISDIR;
	case NFS4ERR_NOTEMPTY:
		return ENOTEMPTY;
	case NFS4ERR_NOTSUPP:
		return ENOTSUP;
	default:
		return EIO;
	}
}

/* RFC 7530 9.1.7: these leave the owner's sequence where it was. */
static bool is_seqid_kept(nfsstat4 status)
{
	switch ((int)status) {
	case NFS4ERR_STALE_CLIENTID:
	case NFS4ERR_STALE_STATEID:
	case NFS4ERR_BAD_STATEID:
	case NFS4ERR_BAD_SEQID:
	case NFS4ERR_BADZDR:
	case NFS4ERR_RESOURCE:
	case NFS4ERR_NOFILEHANDLE:
	case NFS4ERR_MOVED:
		return true;
	default:
		return false;
	}
}

static void take_stateid(struct nfsraw_state *state, const stateid4 *wire)
{
	state->seqid = wire->seqid;
	memcpy(state->other, wire->other, sizeof(state->other));
}

static int take_read(struct nfsraw_op *op, const READ4resok *ok)
{
	if (ok->data.data_len > op->count_bytes)
		return EPROTO;
	memcpy(op->buf, ok->data.data_val, ok->data.data_len);
	op->done_bytes = ok->data.data_len;
	op->is_eof = ok->eof;
	return 0;
}

static int take_attrs(struct nfsraw_op *op, const fattr4 *attrs)
{
	uint32_t word[2];

	/* Type (4) and change (8) come first, then the size. */
	if (attrs->attr_vals.attrlist4_len < 20)
		return EPROTO;
	memcpy(word, attrs->attr_vals.attrlist4_val + 12, sizeof(word));
	op->size_bytes = (uint64_t)ntohl(word[0]) << 32 | ntohl(word[1]);
	return 0;
}

static int take_readdir(struct nfsraw_op *op, const READDIR4resok *ok)
{
	op->done_bytes = 0;
	op->cookie = op->offset;
	for (const entry4 *entry = ok->reply.entries; entry; entry = entry->nextentry) {
		op->done_bytes++;
		op->cookie = entry->cookie;
	}
	op->is_eof = ok->reply.eof;
	memcpy(op->verf, ok->cookieverf, sizeof(op->verf));
	return op->done_bytes || op->is_eof ? 0 : EPROTO;
}

/* Take one successful result. Returns 0 or an errno. */
static int take_result(struct nfsraw_op *op, nfs_resop4 *res)
{
	switch (res->resop) {
	case OP_READ:
		return take_read(op, &res->nfs_resop4_u.opread.READ4res_u.resok4);
	case OP_WRITE:
		op->done_bytes = res->nfs_resop4_u.opwrite.WRITE4res_u.resok4.count;
		return op->done_bytes <= op->count_bytes ? 0 : EPROTO;
	case OP_GETATTR:
		return take_attrs(op,
				  &res->nfs_resop4_u.opgetattr.GETATTR4res_u.resok4.obj_attributes);
	case OP_GETFH: {
		const nfs_fh4 *fh = &res->nfs_resop4_u.opgetfh.GETFH4res_u.resok4.object;

		return nfsraw_fh_set(&op->out_fh, fh->nfs_fh4_val, fh->nfs_fh4_len) ? 0 : EPROTO;
	}
	case OP_READDIR:
		return take_readdir(op, &res->nfs_resop4_u.opreaddir.READDIR4res_u.resok4);
	case OP_OPEN: {
		const OPEN4resok *ok = &res->nfs_resop4_u.opopen.OPEN4res_u.resok4;

		take_stateid(op->state, &ok->stateid);
		op->state->want_confirm = ok->rflags & OPEN4_RESULT_CONFIRM;
		return 0;
	}
	case OP_OPEN_CONFIRM:
		take_stateid(op->state, &res->nfs_resop4_u.opopen_confirm.OPEN_CONFIRM4res_u.resok4
						 .open_stateid);
		op->state->want_confirm = false;
		return 0;
	default:
		return 0;
	}
}

static void answer_cb(struct rpc_context *rpc, int status, void *data, void *priv)
{
	struct nfsraw_op *op = priv;
	COMPOUND4res *res = data;
	int error;

	(void)rpc;
	if (status != RPC_STATUS_SUCCESS) {
		nfsraw_answer(op, op->nr->dead ? op->nr->dead : EIO);
		return;
	}
	error = status_error(res->status);
	for (u_int i = 0; i < res->resarray.resarray_len; i++) {
		nfs_resop4 *one = &res->resarray.resarray_val[i];
		/* Each arm of the result union starts with the status of its operation. */
		nfsstat4 one_status = one->nfs_resop4_u.opgetattr.status;

		if ((one->resop == OP_OPEN || one->resop == OP_CLOSE ||
		     one->resop == OP_OPEN_CONFIRM) &&
		    !is_seqid_kept(one_status))
			op->state->owner_seqid++;
		if (one_status == NFS4_OK && !error)
			error = take_result(op, one);
	}
	if (error && error != EAGAIN)
		snprintf(op->nr->error, sizeof(op->nr->error), "NFSv4 status %d", res->status);
	nfsraw_answer(op, error);
}

static void build_open(struct nfsraw *nr, struct nfsraw_op *op, struct compound *c, char *owner,
		       size_t owner_size, uint32_t *mode)
{
	static uint32_t mode_mask[2] = {0, 1u << (FATTR4_MODE - 32)};
	OPEN4args *args;

	add_putfh(c, op->fh);
	args = &add(c, OP_OPEN)->nfs_argop4_u.opopen;
	args->seqid = op->state->owner_seqid;
	args->share_access = OPEN4_SHARE_ACCESS_BOTH;
	args->share_deny = OPEN4_SHARE_DENY_NONE;
	args->owner.clientid = nr->clientid;
	args->owner.owner.owner_len = (u_int)snprintf(owner, owner_size, "owner%llu",
						      (unsigned long long)op->state->owner);
	args->owner.owner.owner_val = owner;
	args->claim.claim = CLAIM_NULL;
	args->claim.open_claim4_u.file = wire_name(op->name);
	if (op->kind == NFSRAW_CREATE) {
		createhow4 *how = &args->openhow.openflag4_u.how;
		fattr4 *attrs = &how->createhow4_u.createattrs;

		args->openhow.opentype = OPEN4_CREATE;
		how->mode = UNCHECKED4;
		*mode = htonl(0644);
		attrs->attrmask.bitmap4_len = 2;
		attrs->attrmask.bitmap4_val = mode_mask;
		attrs->attr_vals.attrlist4_len = sizeof(*mode);
		attrs->attr_vals.attrlist4_val = (char *)mode;
	} else {
		args->openhow.opentype = OPEN4_NOCREATE;
	}
	add(c, OP_GETFH);
	add_getattr(c);
}

static void build_io(struct nfsraw_op *op, struct compound *c)
{
	add_putfh(c, op->fh);
	if (op->kind == NFSRAW_READ) {
		READ4args *args = &add(c, OP_READ)->nfs_argop4_u.opread;

		args->stateid = wire_stateid(op->state);
		args->offset = op->offset;
		args->count = op->count_bytes;
	} else if (op->kind == NFSRAW_WRITE) {
		WRITE4args *args = &add(c, OP_WRITE)->nfs_argop4_u.opwrite;

		args->stateid = wire_stateid(op->state);
		args->offset = op->offset;
		args->stable = op->is_stable ? FILE_SYNC4 : UNSTABLE4;
		args->data.data_len = op->count_bytes;
		args->data.data_val = op->buf;
		nfsraw_pdu_hint(op->count_bytes);
	} else {
		add(c, OP_COMMIT);
	}
}

static void build_state(struct nfsraw_op *op, struct compound *c)
{
	add_putfh(c, op->fh);
	if (op->kind == NFSRAW_CLOSE) {
		CLOSE4args *args = &add(c, OP_CLOSE)->nfs_argop4_u.opclose;

		args->seqid = op->state->owner_seqid;
		args->open_stateid = wire_stateid(op->state);
	} else {
		OPEN_CONFIRM4args *args = &add(c, OP_OPEN_CONFIRM)->nfs_argop4_u.opopen_confirm;

		args->seqid = op->state->owner_seqid;
		args->open_stateid = wire_stateid(op->state);
	}
}

static void build_name(struct nfsraw_op *op, struct compound *c)
{
	add_putfh(c, op->fh);
	if (op->kind == NFSRAW_LOOKUP) {
		add(c, OP_LOOKUP)->nfs_argop4_u.oplookup.objname = wire_name(op->name);
	} else if (op->kind == NFSRAW_MKDIR) {
		CREATE4args *args = &add(c, OP_CREATE)->nfs_argop4_u.opcreate;

		args->objtype.type = NF4DIR;
		args->objname = wire_name(op->name);
	} else {
		add(c, OP_REMOVE)->nfs_argop4_u.opremove.target = wire_name(op->name);
		return;
	}
	add(c, OP_GETFH);
	add_getattr(c);
}

static void build_object(struct nfsraw_op *op, struct compound *c)
{
	add_putfh(c, op->fh);
	if (op->kind == NFSRAW_ACCESS) {
		add(c, OP_ACCESS)->nfs_argop4_u.opaccess.access =
			ACCESS4_READ | ACCESS4_MODIFY | ACCESS4_EXTEND;
	} else if (op->kind == NFSRAW_READDIR) {
		READDIR4args *args = &add(c, OP_READDIR)->nfs_argop4_u.opreaddir;

		args->cookie = op->offset;
		memcpy(args->cookieverf, op->verf, sizeof(args->cookieverf));
		args->dircount = op->count_bytes / 4;
		args->maxcount = op->count_bytes;
		args->attr_request.bitmap4_len = 2;
		args->attr_request.bitmap4_val = stat_mask;
	} else {
		add_getattr(c);
	}
}

static int send_compound(struct nfsraw *nr, struct compound *c, rpc_cb cb, void *priv)
{
	COMPOUND4args args = {.argarray = {c->n_ops, c->ops}};
	int rc = rpc_nfs4_compound_async(nr->rpc, cb, &args, priv);

	/* Not taken by the allocation when the call failed before it. */
	nfsraw_pdu_hint(0);
	return rc == 0 ? 0 : EIO;
}

int nfsraw4_send(struct nfsraw *nr, struct nfsraw_op *op)
{
	struct compound c;
	char owner[32];
	uint32_t mode;

	c.n_ops = 0;
	switch (op->kind) {
	case NFSRAW_READ:
	case NFSRAW_WRITE:
	case NFSRAW_COMMIT:
		build_io(op, &c);
		break;
	case NFSRAW_CREATE:
	case NFSRAW_OPEN:
		build_open(nr, op, &c, owner, sizeof(owner), &mode);
		break;
	case NFSRAW_OPEN_CONFIRM:
	case NFSRAW_CLOSE:
		build_state(op, &c);
		break;
	case NFSRAW_LOOKUP:
	case NFSRAW_MKDIR:
	case NFSRAW_REMOVE:
	case NFSRAW_RMDIR:
		build_name(op, &c);
		break;
	case NFSRAW_GETATTR:
	case NFSRAW_ACCESS:
	case NFSRAW_READDIR:
		build_object(op, &c);
		break;
	}
	return send_compound(nr, &c, answer_cb, op);
}

struct mount {
	struct nfsraw *nr;
	bool is_done;
	int error;
	char confirm[NFS4_VERIFIER_SIZE];
};

static void mount_cb(struct rpc_context *rpc, int status, void *data, void *priv)
{
	struct mount *mount = priv;
	const COMPOUND4res *res = data;

	(void)rpc;
	mount->is_done = true;
	if (status != RPC_STATUS_SUCCESS) {
		mount->error = EIO;
		return;
	}
	mount->error = status_error(res->status);
	if (mount->error) {
		snprintf(mount->nr->error, sizeof(mount->nr->error), "NFSv4 status %d",
			 res->status);
		return;
	}
	for (u_int i = 0; i < res->resarray.resarray_len; i++) {
		const nfs_resop4 *one = &res->resarray.resarray_val[i];

		if (one->resop == OP_SETCLIENTID) {
			const SETCLIENTID4resok *ok =
				&one->nfs_resop4_u.opsetclientid.SETCLIENTID4res_u.resok4;

			mount->nr->clientid = ok->clientid;
			memcpy(mount->confirm, ok->setclientid_confirm, sizeof(mount->confirm));
		} else if (one->resop == OP_GETFH) {
			const nfs_fh4 *fh = &one->nfs_resop4_u.opgetfh.GETFH4res_u.resok4.object;

			if (!nfsraw_fh_set(&mount->nr->root, fh->nfs_fh4_val, fh->nfs_fh4_len))
				mount->error = EPROTO;
		}
	}
}

static int run_mount_step(struct nfsraw *nr, struct mount *mount, struct compound *c)
{
	int error;

	mount->is_done = false;
	error = send_compound(nr, c, mount_cb, mount);
	if (!error)
		error = nfsraw_spin(nr, nr->rpc, &mount->is_done);
	return error ? error : mount->error;
}

/* PUTROOTFH, one LOOKUP per component, GETFH. path is cut into names in place. */
static int build_path(struct compound *c, char *path)
{
	char *save = NULL;

	add(c, OP_PUTROOTFH);
	for (char *name = strtok_r(path, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		if (c->n_ops > MOUNT_DEPTH_MAX)
			return ENAMETOOLONG;
		add(c, OP_LOOKUP)->nfs_argop4_u.oplookup.objname = wire_name(name);
	}
	add(c, OP_GETFH);
	return 0;
}

int nfsraw4_mount(struct nfsraw *nr, const struct nfsraw_target *target)
{
	struct compound c = {.n_ops = 0};
	struct mount mount = {.nr = nr};
	char path[sizeof(target->path)];
	char id[64];
	SETCLIENTID4args *client = &add(&c, OP_SETCLIENTID)->nfs_argop4_u.opsetclientid;
	SETCLIENTID_CONFIRM4args *confirm;
	struct timespec ts;
	int error;

	/* Its own client per connection: each has its own open owners. */
	clock_gettime(CLOCK_REALTIME, &ts);
	client->client.id.id_len = (u_int)snprintf(id, sizeof(id), "nfsraw %d %lld.%09ld",
						   (int)getpid(), (long long)ts.tv_sec, ts.tv_nsec);
	client->client.id.id_val = id;
	memcpy(client->client.verifier, &ts.tv_nsec, sizeof(client->client.verifier));
	client->callback.cb_program = NFS4_CALLBACK;
	client->callback.cb_location.r_netid = (char *)"tcp";
	client->callback.cb_location.r_addr = (char *)"0.0.0.0.0.0";
	error = run_mount_step(nr, &mount, &c);
	if (error)
		return error;

	c.n_ops = 0;
	confirm = &add(&c, OP_SETCLIENTID_CONFIRM)->nfs_argop4_u.opsetclientid_confirm;
	confirm->clientid = nr->clientid;
	memcpy(confirm->setclientid_confirm, mount.confirm, sizeof(mount.confirm));
	error = run_mount_step(nr, &mount, &c);
	if (error)
		return error;

	c.n_ops = 0;
	memcpy(path, target->path, sizeof(path));
	error = build_path(&c, path);
	return error ? error : run_mount_step(nr, &mount, &c);
}
