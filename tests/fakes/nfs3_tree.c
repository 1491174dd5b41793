/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_tree.c - nodes, names and data of the file system in memory.
 */
#include <stdlib.h>
#include <string.h>

#include "nfs3_tree.h"

static const char fh_magic[8] = "ssc-fake";

void nfs3_tree_init(struct nfs3_tree *tree)
{
	memset(tree, 0, sizeof(*tree));
	tree->clock = 1000000;
	tree->last_cookie = 2; /* "." and ".." */
	tree->fh_bytes = NFS3_TREE_FH_BYTES;
	nfs3_tree_add_node(tree, NFS3_DIR);
	tree->nodes[0].mode = 0755;
	tree->nodes[0].nlink = 2;
}

static void free_node(struct nfs3_node *node)
{
	uint32_t generation = node->generation;

	free(node->target);
	free(node->now.bytes);
	free(node->kept.bytes);
	free(node->entries);
	memset(node, 0, sizeof(*node));
	node->generation = generation + 1;
}

void nfs3_tree_fini(struct nfs3_tree *tree)
{
	size_t i;

	for (i = 0; i < tree->n_nodes; i++)
		free_node(&tree->nodes[i]);
	free(tree->nodes);
}

struct nfs3_time nfs3_tree_now(struct nfs3_tree *tree)
{
	tree->clock++;
	return (struct nfs3_time){.s = (uint32_t)(tree->clock / 1000),
				  .ns = (uint32_t)(tree->clock % 1000) * 1000000};
}

uint32_t nfs3_tree_index(const struct nfs3_tree *tree, const struct nfs3_node *node)
{
	return (uint32_t)(node - tree->nodes);
}

void nfs3_tree_fh(const struct nfs3_tree *tree, uint32_t node, uint8_t fh[NFS3_TREE_FH_MAX])
{
	memset(fh, 0, NFS3_TREE_FH_MAX);
	memcpy(fh, fh_magic, sizeof(fh_magic));
	memcpy(fh + 8, &node, 4);
	memcpy(fh + 12, &tree->nodes[node].generation, 4);
}

struct nfs3_node *nfs3_tree_find(struct nfs3_tree *tree, const uint8_t *fh, size_t len)
{
	uint32_t index, generation;

	if (!fh || len != tree->fh_bytes || memcmp(fh, fh_magic, sizeof(fh_magic)) != 0)
		return NULL;
	memcpy(&index, fh + 8, 4);
	memcpy(&generation, fh + 12, 4);
	if (index >= tree->n_nodes || !tree->nodes[index].used ||
	    tree->nodes[index].generation != generation)
		return NULL;
	return &tree->nodes[index];
}

struct nfs3_entry *nfs3_tree_lookup(struct nfs3_node *dir, const char *name)
{
	size_t i;

	for (i = 0; i < dir->n_entries; i++) {
		if (strcmp(dir->entries[i].name, name) == 0)
			return &dir->entries[i];
	}
	return NULL;
}

uint32_t nfs3_tree_add_node(struct nfs3_tree *tree, uint32_t type)
{
	struct nfs3_node *node;
	uint32_t i;

	for (i = 0; i < tree->n_nodes && tree->nodes[i].used; i++)
		;
	if (i == tree->n_nodes) {
		tree->nodes = realloc(tree->nodes, (i + 1) * sizeof(*tree->nodes));
		if (!tree->nodes)
			abort();
		memset(&tree->nodes[i], 0, sizeof(*tree->nodes));
		tree->n_nodes++;
	}
	node = &tree->nodes[i];
	node->used = true;
	node->type = type;
	node->fsid = NFS3_TREE_FSID;
	node->fileid = i + 100;
	node->atime = node->mtime = node->ctime = nfs3_tree_now(tree);
	return i;
}

void nfs3_tree_add_entry(struct nfs3_tree *tree, uint32_t dir, const char *name, uint32_t node)
{
	struct nfs3_node *d = &tree->nodes[dir];
	struct nfs3_node *n = &tree->nodes[node];
	struct nfs3_entry *entry;

	d->entries = realloc(d->entries, (d->n_entries + 1) * sizeof(*d->entries));
	if (!d->entries)
		abort();
	entry = &d->entries[d->n_entries++];
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->name, name, strlen(name) + 1); /* the caller's name fits */
	entry->cookie = ++tree->last_cookie;
	entry->node = node;
	if (n->fsid == NFS3_TREE_FSID)
		n->fsid = d->fsid;
	if (n->type == NFS3_DIR) {
		n->nlink = 2;
		n->parent = dir;
		d->nlink++;
	} else {
		n->nlink++;
	}
	d->mtime = d->ctime = n->ctime = nfs3_tree_now(tree);
}

static void take_entry(struct nfs3_tree *tree, struct nfs3_node *dir, struct nfs3_entry *entry)
{
	size_t at = (size_t)(entry - dir->entries);

	memmove(entry, entry + 1, (dir->n_entries - at - 1) * sizeof(*entry));
	dir->n_entries--;
	dir->mtime = dir->ctime = nfs3_tree_now(tree);
}

void nfs3_tree_remove_entry(struct nfs3_tree *tree, struct nfs3_node *dir, struct nfs3_entry *entry)
{
	struct nfs3_node *node = &tree->nodes[entry->node];

	take_entry(tree, dir, entry);
	if (node->type == NFS3_DIR) {
		dir->nlink--;
		node->nlink = 0;
	} else {
		node->nlink--;
		node->ctime = nfs3_tree_now(tree);
	}
	if (node->nlink == 0)
		free_node(node);
}

void nfs3_tree_rename(struct nfs3_tree *tree, struct nfs3_node *from, const char *name,
		      struct nfs3_node *to, const char *new_name)
{
	struct nfs3_entry *target = nfs3_tree_lookup(to, new_name);
	uint32_t node = nfs3_tree_lookup(from, name)->node;

	if (target) {
		if (target->node == node)
			return; /* RFC 1813 3.3.14: two names of one file, nothing happens */
		nfs3_tree_remove_entry(tree, to, target);
	}
	take_entry(tree, from, nfs3_tree_lookup(from, name));
	if (tree->nodes[node].type == NFS3_DIR)
		from->nlink--;
	else
		tree->nodes[node].nlink--; /* add_entry counts it again */
	nfs3_tree_add_entry(tree, nfs3_tree_index(tree, to), new_name, node);
}

bool nfs3_tree_resize(struct nfs3_data *data, uint64_t len)
{
	uint8_t *bytes;

	if (len > NFS3_TREE_FILE_MAX)
		return false;
	bytes = realloc(data->bytes, len ? len : 1);
	if (!bytes)
		abort();
	if (len > data->len)
		memset(bytes + data->len, 0, len - data->len);
	data->bytes = bytes;
	data->len = len;
	return true;
}

static bool put(struct nfs3_data *data, uint64_t offset, const void *bytes, size_t len)
{
	uint64_t end = offset + len;

	if (end < offset || (end > data->len && !nfs3_tree_resize(data, end)))
		return false;
	if (len > 0)
		memcpy(data->bytes + offset, bytes, len);
	return true;
}

bool nfs3_tree_write(struct nfs3_node *node, uint64_t offset, const void *bytes, size_t len,
		     bool stable)
{
	return put(&node->now, offset, bytes, len) &&
	       (!stable || put(&node->kept, offset, bytes, len));
}

static void copy(struct nfs3_data *to, const struct nfs3_data *from)
{
	nfs3_tree_resize(to, from->len);
	if (from->len > 0)
		memcpy(to->bytes, from->bytes, from->len);
}

void nfs3_tree_commit(struct nfs3_node *node)
{
	copy(&node->kept, &node->now);
}

void nfs3_tree_crash(struct nfs3_tree *tree)
{
	size_t i;

	for (i = 0; i < tree->n_nodes; i++) {
		if (tree->nodes[i].used && tree->nodes[i].type == NFS3_REG)
			copy(&tree->nodes[i].now, &tree->nodes[i].kept);
	}
}
