/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_pieces.c - attributes, handles and names as they stand in arguments and results.
 *
 * Faults of a result are made here, where the field is encoded.
 */
#include <string.h>

#include "nfs3_internal.h"

/* ---- pieces of results ---- */

void nfs3_put_u32(struct nfs3_ctx *c, uint32_t value)
{
	nfs3_enc_u32(c->res, value);
}

void nfs3_put_time(struct nfs3_ctx *c, struct nfs3_time t)
{
	nfs3_put_u32(c, t.s);
	nfs3_put_u32(c, t.ns);
}

void nfs3_put_attrs(struct nfs3_ctx *c, const struct nfs3_node *n)
{
	uint64_t size = n->type == NFS3_REG   ? n->now.len
			: n->type == NFS3_LNK ? strlen(n->target)
					      : 4096;

	nfs3_put_u32(c, c->kind == NFS3_BAD_TYPE ? 99 : n->type);
	nfs3_put_u32(c, n->mode);
	nfs3_put_u32(c, n->nlink);
	nfs3_put_u32(c, n->uid);
	nfs3_put_u32(c, n->gid);
	nfs3_enc_u64(c->res, size);
	nfs3_enc_u64(c->res, (size + 511) / 512 * 512);
	nfs3_put_u32(c, n->rdev_major);
	nfs3_put_u32(c, n->rdev_minor);
	nfs3_enc_u64(c->res, n->fsid);
	nfs3_enc_u64(c->res, n->fileid);
	nfs3_put_time(c, n->atime);
	nfs3_put_time(c, n->mtime);
	nfs3_put_time(c, n->ctime);
}

void nfs3_put_post_attrs(struct nfs3_ctx *c, const struct nfs3_node *n)
{
	nfs3_put_u32(c, n && c->kind != NFS3_NO_ATTRS);
	if (n && c->kind != NFS3_NO_ATTRS)
		nfs3_put_attrs(c, n);
}

void nfs3_put_wcc(struct nfs3_ctx *c, const struct nfs3_node *n)
{
	nfs3_put_u32(c, 0);
	nfs3_put_post_attrs(c, n);
}

void nfs3_put_fh(struct nfs3_ctx *c, uint32_t node)
{
	uint8_t fh[72] = {0};
	size_t len = c->tree->fh_bytes;

	nfs3_tree_fh(c->tree, node, fh);
	if (c->kind == NFS3_LONG_FH)
		len = 65;
	else if (c->kind == NFS3_EMPTY_FH)
		len = 0;
	if (c->kind == NFS3_HUGE_LENGTH)
		nfs3_put_u32(c, NFS3_LENGTH_HUGE);
	else
		nfs3_enc_opaque(c->res, fh, len);
}

void nfs3_put_post_fh(struct nfs3_ctx *c, uint32_t node)
{
	nfs3_put_u32(c, c->kind != NFS3_NO_ATTRS);
	if (c->kind != NFS3_NO_ATTRS)
		nfs3_put_fh(c, node);
}

void nfs3_procs_fail(struct nfs3_ctx *c, enum nfs3_proc proc, uint32_t status)
{
	static const uint8_t n_flags[NFS3_N_PROCS] = {
		[NFS3_SETATTR] = 2, [NFS3_LOOKUP] = 1,      [NFS3_READLINK] = 1,
		[NFS3_READ] = 1,    [NFS3_WRITE] = 2,       [NFS3_CREATE] = 2,
		[NFS3_MKDIR] = 2,   [NFS3_SYMLINK] = 2,     [NFS3_MKNOD] = 2,
		[NFS3_REMOVE] = 2,  [NFS3_RMDIR] = 2,       [NFS3_RENAME] = 4,
		[NFS3_LINK] = 3,    [NFS3_READDIRPLUS] = 1, [NFS3_FSSTAT] = 1,
		[NFS3_FSINFO] = 1,  [NFS3_PATHCONF] = 1,    [NFS3_COMMIT] = 2,
	};
	int i;

	nfs3_put_u32(c, status);
	for (i = 0; i < n_flags[proc]; i++)
		nfs3_put_u32(c, 0); /* attributes that do not follow */
}

/* ---- pieces of arguments ---- */

struct nfs3_node *nfs3_get_node(struct nfs3_ctx *c)
{
	size_t len;
	const uint8_t *fh = nfs3_dec_opaque(c->args, 64, &len);

	return nfs3_tree_find(c->tree, fh, len);
}

void nfs3_get_name(struct nfs3_ctx *c, char name[NFS3_TREE_NAME_BYTES])
{
	nfs3_dec_string(c->args, name, NFS3_TREE_NAME_BYTES);
}

static void get_time(struct nfs3_ctx *c, uint32_t *how, struct nfs3_time *t)
{
	*how = nfs3_dec_u32(c->args);
	if (*how == 2) {
		t->s = nfs3_dec_u32(c->args);
		t->ns = nfs3_dec_u32(c->args);
	}
}

void nfs3_get_sattr(struct nfs3_ctx *c, struct nfs3_sattr *s)
{
	memset(s, 0, sizeof(*s));
	if ((s->set_mode = nfs3_dec_u32(c->args)))
		s->mode = nfs3_dec_u32(c->args);
	if ((s->set_uid = nfs3_dec_u32(c->args)))
		s->uid = nfs3_dec_u32(c->args);
	if ((s->set_gid = nfs3_dec_u32(c->args)))
		s->gid = nfs3_dec_u32(c->args);
	if ((s->set_size = nfs3_dec_u32(c->args)))
		s->size = nfs3_dec_u64(c->args);
	get_time(c, &s->atime_how, &s->atime);
	get_time(c, &s->mtime_how, &s->mtime);
}

uint32_t nfs3_apply(struct nfs3_ctx *c, struct nfs3_node *n, const struct nfs3_sattr *s)
{
	if (s->set_size && n->type != NFS3_REG)
		return n->type == NFS3_DIR ? ST_ISDIR : ST_INVAL;
	if (s->set_size &&
	    (!nfs3_tree_resize(&n->now, s->size) || !nfs3_tree_resize(&n->kept, s->size)))
		return ST_FBIG;
	if (s->set_mode)
		n->mode = s->mode & 07777;
	if (s->set_uid)
		n->uid = s->uid;
	if (s->set_gid)
		n->gid = s->gid;
	if (s->atime_how)
		n->atime = s->atime_how == 2 ? s->atime : nfs3_tree_now(c->tree);
	if (s->mtime_how)
		n->mtime = s->mtime_how == 2 ? s->mtime : nfs3_tree_now(c->tree);
	n->ctime = nfs3_tree_now(c->tree);
	return ST_OK;
}

uint32_t nfs3_check_dir(const struct nfs3_node *dir)
{
	if (!dir)
		return ST_STALE;
	return dir->type == NFS3_DIR ? ST_OK : ST_NOTDIR;
}
