/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_ops.h - the model of a directory tree that the torture of fsops_ops.c compares with.
 *
 * A node is what an inode is; a dent is a name of it. Links keep a node alive, and so do holds (file
 * descriptors that the torture keeps open). Single-threaded.
 */
#ifndef FSOPS_OPS_H
#define FSOPS_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops.h"

#define MODEL_FILE_BYTES (64 * 1024) /* largest file; bounds the model's memory */
#define MODEL_NAMES      12          /* names in use in each directory: few, so that they collide */
#define MODEL_DEPTH      6

enum node_type { NODE_FILE, NODE_DIR, NODE_LINK, NODE_FIFO };

struct node {
	enum node_type type;
	mode_t mode;
	int n_links;
	int n_holds;
	bool links_unsure; /* lost a name while held: the client may keep it as .nfs */
	uint32_t size;
	uint8_t *data;       /* FILE: size bytes, room for MODEL_FILE_BYTES; LINK: its target */
	struct node *parent; /* DIR: NULL for the root */
	int name_in_parent;  /* DIR */
	struct node *kids[MODEL_NAMES]; /* DIR: by number of name */
};

struct node *model_new(enum node_type type, mode_t mode);
/* Gives the object a name; a directory learns its place. */
void model_add(struct node *dir, int name, struct node *node);
/* Takes a name away; the node is freed with its last name and hold. */
void model_remove(struct node *dir, int name);
void model_unhold(struct node *node);
bool model_is_empty(const struct node *dir);
/* a is b, or a directory above b. */
bool model_is_above(const struct node *a, const struct node *b);
int model_depth(const struct node *dir);
/* Any directory of the tree, the deeper ones less often. */
struct node *model_any_dir(struct node *root, struct rng *rng);
void model_name(int name, char *out);
/* Writes the path of a name in dir, below base, to path, which has PATH_BYTES. */
void model_path(char *path, const char *base, const struct node *dir, int name);
/* Fails unless the whole tree in the file system is the model's. */
void model_verify(const char *base, struct node *root);
void model_verify_node(const char *path, const struct node *node);
void model_verify_dir(const char *path, const struct node *dir);

#endif
