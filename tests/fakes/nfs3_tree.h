/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_tree.h - the file system in memory behind the scripted NFS server.
 *
 * Data has two copies: what is read, and what survives a crash. An unstable write changes the first
 * only; COMMIT copies it to the second. Metadata is stable at once. Files are small (a few MiB), so
 * nothing is clever here. Not thread-safe: the server holds its lock.
 */
#ifndef SSC_NFS3_TREE_H
#define SSC_NFS3_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFS3_TREE_FH_BYTES   24 /* what a handle needs, and has unless told otherwise */
#define NFS3_TREE_FH_MAX     64
#define NFS3_TREE_FSID       0x55
#define NFS3_TREE_FILE_MAX   (64u << 20)
#define NFS3_TREE_NAME_BYTES 256

enum nfs3_type { NFS3_REG = 1, NFS3_DIR, NFS3_BLK, NFS3_CHR, NFS3_LNK, NFS3_SOCK, NFS3_FIFO };

struct nfs3_time {
	uint32_t s, ns;
};

struct nfs3_entry {
	char name[NFS3_TREE_NAME_BYTES];
	uint64_t cookie;
	uint32_t node;
};

struct nfs3_data {
	uint8_t *bytes;
	size_t len;
};

struct nfs3_node {
	bool used;
	uint32_t generation; /* of this slot; part of the handle */
	uint32_t type, mode, nlink, uid, gid, rdev_major, rdev_minor;
	struct nfs3_time atime, mtime, ctime;
	char *target;               /* LNK */
	struct nfs3_data now;       /* REG */
	struct nfs3_data kept;      /* what a crash leaves */
	struct nfs3_entry *entries; /* DIR, in the order of their cookies */
	size_t n_entries;
	uint32_t parent; /* DIR */
	uint64_t fsid, fileid;
};

struct nfs3_tree {
	struct nfs3_node *nodes; /* slot 0 is the root */
	size_t n_nodes;
	uint64_t last_cookie;
	uint64_t clock; /* of timestamps: a step each time it is read */
	size_t fh_bytes;
};

void nfs3_tree_init(struct nfs3_tree *tree);
void nfs3_tree_fini(struct nfs3_tree *tree);

/** @brief Drop what was never made stable. */
void nfs3_tree_crash(struct nfs3_tree *tree);

struct nfs3_time nfs3_tree_now(struct nfs3_tree *tree);

/** @brief The handle of @node: tree->fh_bytes bytes. */
void nfs3_tree_fh(const struct nfs3_tree *tree, uint32_t node, uint8_t fh[NFS3_TREE_FH_MAX]);

/** @brief The node of a handle, NULL when it is none of ours or gone. */
struct nfs3_node *nfs3_tree_find(struct nfs3_tree *tree, const uint8_t *fh, size_t len);

uint32_t nfs3_tree_index(const struct nfs3_tree *tree, const struct nfs3_node *node);

struct nfs3_entry *nfs3_tree_lookup(struct nfs3_node *dir, const char *name);

/** @brief A new node of @type, with no name yet. Pointers to nodes may move. */
uint32_t nfs3_tree_add_node(struct nfs3_tree *tree, uint32_t type);

/** @brief A name for @node in @dir (both are slots). */
void nfs3_tree_add_entry(struct nfs3_tree *tree, uint32_t dir, const char *name, uint32_t node);

/** @brief Take a name away; the last one takes the node along. */
void nfs3_tree_remove_entry(struct nfs3_tree *tree, struct nfs3_node *dir,
			    struct nfs3_entry *entry);

/** @brief Move a name, over the one that may be at the target. Checks were made. */
void nfs3_tree_rename(struct nfs3_tree *tree, struct nfs3_node *from, const char *name,
		      struct nfs3_node *to, const char *new_name);

/** @brief Grow or cut. False: too large. */
bool nfs3_tree_resize(struct nfs3_data *data, uint64_t len);

/** @brief Write; @stable: to what a crash leaves, too. False: too large. */
bool nfs3_tree_write(struct nfs3_node *node, uint64_t offset, const void *bytes, size_t len,
		     bool stable);

void nfs3_tree_commit(struct nfs3_node *node);

#endif /* SSC_NFS3_TREE_H */
