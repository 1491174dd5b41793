/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_names.c - the procedures of the scripted NFS server that look at or change names.
 */
#include <string.h>

#include "nfs3_internal.h"

#define LINK_MAX 8192

uint32_t nfs3_do_lookup(struct nfs3_ctx *c)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES];
	struct nfs3_entry *entry;
	uint32_t node, status = nfs3_check_dir(dir);

	nfs3_get_name(c, name);
	if (status != ST_OK)
		return status;
	entry = nfs3_tree_lookup(dir, name);
	if (strcmp(name, ".") == 0)
		node = nfs3_tree_index(c->tree, dir);
	else if (strcmp(name, "..") == 0)
		node = dir->parent;
	else if (entry)
		node = entry->node;
	else
		return ST_NOENT;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_fh(c, node);
	nfs3_put_post_attrs(c, &c->tree->nodes[node]);
	nfs3_put_post_attrs(c, dir);
	return ST_OK;
}

/* The new object's result; @dir is a slot, because nodes may have moved. */
static uint32_t made(struct nfs3_ctx *c, uint32_t dir, uint32_t node)
{
	nfs3_put_u32(c, ST_OK);
	nfs3_put_post_fh(c, node);
	nfs3_put_post_attrs(c, &c->tree->nodes[node]);
	nfs3_put_wcc(c, &c->tree->nodes[dir]);
	return ST_OK;
}

static uint32_t make(struct nfs3_ctx *c, uint32_t dir, const char *name, uint32_t type,
		     const struct nfs3_sattr *set, uint32_t *node)
{
	struct nfs3_node *n;

	*node = nfs3_tree_add_node(c->tree, type);
	n = &c->tree->nodes[*node];
	n->uid = c->record->uid;
	n->gid = c->record->gid;
	n->mode = type == NFS3_DIR ? 0755 : 0644;
	nfs3_tree_add_entry(c->tree, dir, name, *node);
	return nfs3_apply(c, n, set);
}

static uint32_t create_exclusive(struct nfs3_ctx *c, uint32_t dir, const char *name,
				 struct nfs3_entry *entry)
{
	const uint8_t *verf = nfs3_dec_fixed(c->args, 8);
	struct nfs3_sattr none = {0};
	struct nfs3_node *n;
	struct nfs3_dec d = {verf, 8, verf == NULL};
	uint32_t node, hi = nfs3_dec_u32(&d), lo = nfs3_dec_u32(&d);

	if (entry) {
		n = &c->tree->nodes[entry->node];
		return n->atime.s == hi && n->mtime.s == lo ? made(c, dir, entry->node) : ST_EXIST;
	}
	make(c, dir, name, NFS3_REG, &none, &node);
	c->tree->nodes[node].atime.s = hi;
	c->tree->nodes[node].mtime.s = lo;
	return made(c, dir, node);
}

uint32_t nfs3_do_create(struct nfs3_ctx *c)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES];
	struct nfs3_entry *entry;
	struct nfs3_sattr set;
	uint32_t how, node, at, status = nfs3_check_dir(dir);

	nfs3_get_name(c, name);
	how = nfs3_dec_u32(c->args);
	if (status != ST_OK)
		return status;
	at = nfs3_tree_index(c->tree, dir);
	entry = nfs3_tree_lookup(dir, name);
	if (how == 2)
		return create_exclusive(c, at, name, entry);
	nfs3_get_sattr(c, &set);
	if (entry && (how == 1 || c->tree->nodes[entry->node].type != NFS3_REG))
		return ST_EXIST;
	if (entry) {
		node = entry->node;
		status = nfs3_apply(c, &c->tree->nodes[node], &set);
	} else {
		status = make(c, at, name, NFS3_REG, &set, &node);
	}
	return status == ST_OK ? made(c, at, node) : status;
}

uint32_t nfs3_do_mkdir(struct nfs3_ctx *c)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES];
	struct nfs3_sattr set;
	uint32_t node, at, status = nfs3_check_dir(dir);

	nfs3_get_name(c, name);
	nfs3_get_sattr(c, &set);
	if (status != ST_OK)
		return status;
	if (nfs3_tree_lookup(dir, name))
		return ST_EXIST;
	at = nfs3_tree_index(c->tree, dir);
	status = make(c, at, name, NFS3_DIR, &set, &node);
	return status == ST_OK ? made(c, at, node) : status;
}

uint32_t nfs3_do_symlink(struct nfs3_ctx *c)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES], target[LINK_MAX];
	struct nfs3_sattr set;
	uint32_t node, at, status = nfs3_check_dir(dir);

	nfs3_get_name(c, name);
	nfs3_get_sattr(c, &set);
	nfs3_dec_string(c->args, target, sizeof(target));
	if (status != ST_OK)
		return status;
	if (nfs3_tree_lookup(dir, name))
		return ST_EXIST;
	at = nfs3_tree_index(c->tree, dir);
	status = make(c, at, name, NFS3_LNK, &set, &node);
	c->tree->nodes[node].target = strdup(target);
	return status == ST_OK ? made(c, at, node) : status;
}

uint32_t nfs3_do_mknod(struct nfs3_ctx *c)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES];
	uint32_t type, major = 0, minor = 0, node, at, status = nfs3_check_dir(dir);
	struct nfs3_sattr set;

	nfs3_get_name(c, name);
	type = nfs3_dec_u32(c->args);
	nfs3_get_sattr(c, &set);
	if (type == NFS3_BLK || type == NFS3_CHR) {
		major = nfs3_dec_u32(c->args);
		minor = nfs3_dec_u32(c->args);
	}
	if (status != ST_OK)
		return status;
	if (nfs3_tree_lookup(dir, name))
		return ST_EXIST;
	at = nfs3_tree_index(c->tree, dir);
	status = make(c, at, name, type, &set, &node);
	c->tree->nodes[node].rdev_major = major;
	c->tree->nodes[node].rdev_minor = minor;
	return status == ST_OK ? made(c, at, node) : status;
}

uint32_t nfs3_do_remove(struct nfs3_ctx *c, bool is_rmdir)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES];
	struct nfs3_entry *entry;
	struct nfs3_node *n;
	uint32_t status = nfs3_check_dir(dir);

	nfs3_get_name(c, name);
	if (status != ST_OK)
		return status;
	entry = nfs3_tree_lookup(dir, name);
	if (!entry)
		return ST_NOENT;
	n = &c->tree->nodes[entry->node];
	if (is_rmdir != (n->type == NFS3_DIR))
		return is_rmdir ? ST_NOTDIR : ST_ISDIR;
	if (n->n_entries > 0)
		return ST_NOTEMPTY;
	nfs3_tree_remove_entry(c->tree, dir, entry);
	nfs3_put_u32(c, ST_OK);
	nfs3_put_wcc(c, dir);
	return ST_OK;
}

uint32_t nfs3_do_rename(struct nfs3_ctx *c)
{
	struct nfs3_node *from = nfs3_get_node(c), *to;
	char name[NFS3_TREE_NAME_BYTES], new_name[NFS3_TREE_NAME_BYTES];
	struct nfs3_entry *entry, *target;
	uint32_t status = nfs3_check_dir(from);

	nfs3_get_name(c, name);
	to = nfs3_get_node(c);
	nfs3_get_name(c, new_name);
	if (status == ST_OK)
		status = nfs3_check_dir(to);
	if (status != ST_OK)
		return status;
	entry = nfs3_tree_lookup(from, name);
	target = nfs3_tree_lookup(to, new_name);
	if (!entry)
		return ST_NOENT;
	if (target && c->tree->nodes[target->node].n_entries > 0)
		return ST_NOTEMPTY;
	nfs3_tree_rename(c->tree, from, name, to, new_name);
	nfs3_put_u32(c, ST_OK);
	nfs3_put_wcc(c, from);
	nfs3_put_wcc(c, to);
	return ST_OK;
}

uint32_t nfs3_do_link(struct nfs3_ctx *c)
{
	struct nfs3_node *n = nfs3_get_node(c), *dir = nfs3_get_node(c);
	char name[NFS3_TREE_NAME_BYTES];
	uint32_t status = n ? nfs3_check_dir(dir) : ST_STALE;

	nfs3_get_name(c, name);
	if (status != ST_OK)
		return status;
	if (nfs3_tree_lookup(dir, name))
		return ST_EXIST;
	nfs3_tree_add_entry(c->tree, nfs3_tree_index(c->tree, dir), name,
			    nfs3_tree_index(c->tree, n));
	nfs3_put_u32(c, ST_OK);
	nfs3_put_post_attrs(c, n);
	nfs3_put_wcc(c, dir);
	return ST_OK;
}

static void put_entry(struct nfs3_ctx *c, const char *name, uint64_t cookie, uint32_t node)
{
	static const char long_name[300] = {[0 ... 299] = 'n'};

	nfs3_put_u32(c, 1);
	nfs3_enc_u64(c->res, c->tree->nodes[node].fileid);
	if (c->kind == NFS3_LONG_NAME)
		nfs3_enc_opaque(c->res, long_name, sizeof(long_name));
	else if (c->kind == NFS3_SLASH_NAME)
		nfs3_enc_opaque(c->res, "a/b", 3);
	else if (c->kind == NFS3_EMPTY_NAME)
		nfs3_put_u32(c, 0);
	else if (c->kind == NFS3_HUGE_LENGTH)
		nfs3_put_u32(c, NFS3_LENGTH_HUGE);
	else
		nfs3_enc_opaque(c->res, name, strlen(name));
	nfs3_enc_u64(c->res, cookie);
	nfs3_put_post_attrs(c, &c->tree->nodes[node]);
	nfs3_put_post_fh(c, node);
}

uint32_t nfs3_do_readdirplus(struct nfs3_ctx *c)
{
	struct nfs3_node *dir = nfs3_get_node(c);
	uint64_t cookie = nfs3_dec_u64(c->args), verifier = nfs3_dec_u64(c->args);
	size_t i, start = c->res->len, max;
	uint32_t status = nfs3_check_dir(dir);

	nfs3_dec_u32(c->args);
	max = nfs3_dec_u32(c->args);
	if (status != ST_OK)
		return status;
	if (c->strict_cookies && cookie != 0 && verifier != c->cookie_verifier)
		return ST_BAD_COOKIE;
	nfs3_put_u32(c, ST_OK);
	nfs3_put_post_attrs(c, dir);
	nfs3_enc_u64(c->res, c->cookie_verifier);
	if (cookie < 1)
		put_entry(c, ".", 1, nfs3_tree_index(c->tree, dir));
	if (cookie < 2)
		put_entry(c, "..", 2, dir->parent);
	for (i = 0; i < dir->n_entries; i++) {
		const struct nfs3_entry *e = &dir->entries[i];

		if (e->cookie <= cookie)
			continue;
		/* 160: the rest of an entry, and the end of the list. */
		if (c->res->len - start + strlen(e->name) + 160 > max)
			break;
		put_entry(c, e->name, e->cookie, e->node);
	}
	nfs3_put_u32(c, 0);
	nfs3_put_u32(c, i == dir->n_entries);
	return ST_OK;
}
