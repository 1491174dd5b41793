/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_procs.c - the procedures of the scripted NFS server that need no names, and the choice of one.
 *
 * No permissions are checked: what was asked with which credentials is in the records.
 */
#include <string.h>

#include "nfs3_internal.h"

#define READ_MAX (1u << 20)

static uint32_t do_getattr(struct nfs3_ctx *c)
{
	struct nfs3_node *n = nfs3_get_node(c);

	if (!n)
		return ST_STALE;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_attrs(c, n);
	return ST_OK;
}

static uint32_t do_setattr(struct nfs3_ctx *c)
{
	struct nfs3_node *n = nfs3_get_node(c);
	struct nfs3_sattr set;
	uint32_t status;

	nfs3_get_sattr(c, &set);
	if (!n)
		return ST_STALE;
	status = nfs3_apply(c, n, &set);
	if (status != ST_OK)
		return status;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_wcc(c, n);
	return ST_OK;
}

static uint32_t do_readlink(struct nfs3_ctx *c)
{
	static const char long_target[5000] = {[0 ... 4999] = 'x'};
	struct nfs3_node *n = nfs3_get_node(c);

	if (!n || n->type != NFS3_LNK)
		return n ? ST_INVAL : ST_STALE;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_post_attrs(c, n);
	if (c->kind == NFS3_HUGE_LENGTH)
		nfs3_put_u32(c, NFS3_LENGTH_HUGE);
	else if (c->kind == NFS3_DATA_TOO_LONG)
		nfs3_enc_opaque(c->res, long_target, sizeof(long_target));
	else
		nfs3_enc_opaque(c->res, n->target, strlen(n->target));
	return ST_OK;
}

static uint32_t do_read(struct nfs3_ctx *c)
{
	static const uint8_t more[READ_MAX + 8];
	struct nfs3_node *n = nfs3_get_node(c);
	uint64_t offset = nfs3_dec_u64(c->args);
	uint32_t asked = nfs3_dec_u32(c->args);
	uint32_t len = asked;

	c->record->offset = offset;
	c->record->count = asked;
	if (!n || n->type != NFS3_REG)
		return n ? ST_ISDIR : ST_STALE;
	if (offset >= n->now.len)
		len = 0;
	else if (len > n->now.len - offset)
		len = (uint32_t)(n->now.len - offset);
	nfs3_put_u32(c, ST_OK);
	nfs3_put_post_attrs(c, n);
	if (c->kind == NFS3_DATA_TOO_LONG) {
		nfs3_put_u32(c, asked + 4);
		nfs3_put_u32(c, 0);
		nfs3_enc_opaque(c->res, more, asked + 4);
		return ST_OK;
	}
	nfs3_put_u32(c, len + (c->kind == NFS3_WRONG_COUNT));
	nfs3_put_u32(c, offset + len >= n->now.len);
	if (c->kind == NFS3_HUGE_LENGTH)
		nfs3_put_u32(c, NFS3_LENGTH_HUGE);
	else
		nfs3_enc_opaque(c->res, len ? n->now.bytes + offset : NULL, len);
	return ST_OK;
}

static uint32_t do_write(struct nfs3_ctx *c)
{
	struct nfs3_node *n = nfs3_get_node(c);
	uint64_t offset = nfs3_dec_u64(c->args);
	uint32_t count = nfs3_dec_u32(c->args);
	uint32_t stable = nfs3_dec_u32(c->args);
	const uint8_t *data;
	size_t len;

	data = nfs3_dec_opaque(c->args, READ_MAX, &len);
	c->record->offset = offset;
	c->record->count = count;
	if (!n || n->type != NFS3_REG)
		return n ? ST_INVAL : ST_STALE;
	if (count > len)
		return ST_INVAL;
	if (c->kind == NFS3_LESS_STABLE)
		stable = 0;
	if (!nfs3_tree_write(n, offset, data, count, stable != 0))
		return ST_FBIG;
	n->mtime = n->ctime = nfs3_tree_now(c->tree);
	nfs3_put_u32(c, ST_OK);
	nfs3_put_wcc(c, n);
	nfs3_put_u32(c, count + (c->kind == NFS3_WRONG_COUNT));
	nfs3_put_u32(c, stable);
	nfs3_enc_u64(c->res, c->verifier);
	c->record->verifier = c->verifier;
	return ST_OK;
}

static uint32_t do_commit(struct nfs3_ctx *c)
{
	struct nfs3_node *n = nfs3_get_node(c);

	c->record->offset = nfs3_dec_u64(c->args);
	c->record->count = nfs3_dec_u32(c->args);
	if (!n || n->type != NFS3_REG)
		return n ? ST_INVAL : ST_STALE;
	nfs3_tree_commit(n);
	nfs3_put_u32(c, ST_OK);
	nfs3_put_wcc(c, n);
	nfs3_enc_u64(c->res, c->verifier);
	return ST_OK;
}

static uint32_t do_fs(struct nfs3_ctx *c, enum nfs3_proc proc)
{
	struct nfs3_node *n = nfs3_get_node(c);
	uint32_t i;

	if (!n)
		return ST_STALE;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_post_attrs(c, n);
	if (proc == NFS3_FSSTAT) {
		for (i = 1; i <= 6; i++) /* total, free, available bytes; the same of files */
			nfs3_enc_u64(c->res, i << 20);
		nfs3_put_u32(c, 0);
	} else if (proc == NFS3_FSINFO) {
		const uint32_t figures[7] = {c->rtmax, c->rtmax, 512, c->wtmax,
					     c->wtmax, 512,      8192};

		for (i = 0; i < 7; i++)
			nfs3_put_u32(c, figures[i]);
		nfs3_enc_u64(c->res, NFS3_TREE_FILE_MAX);
		nfs3_put_time(c, (struct nfs3_time){.ns = 1000});
		nfs3_put_u32(c, 0x1b); /* links, symlinks, homogeneous, times */
	} else {
		const uint32_t figures[6] = {3000, 255, 1, 1, 0, 1};

		for (i = 0; i < 6; i++)
			nfs3_put_u32(c, figures[i]);
	}
	return ST_OK;
}

static uint32_t do_mnt(struct nfs3_ctx *c)
{
	char path[1025];

	nfs3_dec_string(c->args, path, sizeof(path));
	if (strcmp(path, NFS3_EXPORT) != 0)
		return strcmp(path, "/secret") == 0 ? ST_ACCES : ST_NOENT;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_fh(c, 0);
	nfs3_put_u32(c, 1);
	nfs3_put_u32(c, 1); /* AUTH_SYS */
	return ST_OK;
}

static uint32_t dispatch(struct nfs3_ctx *c, enum nfs3_proc proc)
{
	static uint32_t (*const simple[NFS3_N_PROCS])(struct nfs3_ctx *) = {
		[NFS3_GETATTR] = do_getattr,
		[NFS3_SETATTR] = do_setattr,
		[NFS3_LOOKUP] = nfs3_do_lookup,
		[NFS3_READLINK] = do_readlink,
		[NFS3_READ] = do_read,
		[NFS3_WRITE] = do_write,
		[NFS3_CREATE] = nfs3_do_create,
		[NFS3_MKDIR] = nfs3_do_mkdir,
		[NFS3_SYMLINK] = nfs3_do_symlink,
		[NFS3_MKNOD] = nfs3_do_mknod,
		[NFS3_RENAME] = nfs3_do_rename,
		[NFS3_LINK] = nfs3_do_link,
		[NFS3_READDIRPLUS] = nfs3_do_readdirplus,
		[NFS3_COMMIT] = do_commit,
		[NFS3_MNT] = do_mnt,
	};

	if (proc == NFS3_NULL)
		return ST_OK;
	if (proc == NFS3_REMOVE || proc == NFS3_RMDIR)
		return nfs3_do_remove(c, proc == NFS3_RMDIR);
	if (proc == NFS3_FSSTAT || proc == NFS3_FSINFO || proc == NFS3_PATHCONF)
		return do_fs(c, proc);
	return simple[proc] ? simple[proc](c) : ST_NOTSUPP;
}

bool nfs3_procs_run(struct nfs3_ctx *c, enum nfs3_proc proc)
{
	uint32_t status = dispatch(c, proc);

	if (c->args->bad)
		return false;
	if (status != ST_OK)
		nfs3_procs_fail(c, proc, status);
	return true;
}
