/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_ops.c - random name space and file operations, each with its outcome predicted by a model.
 *
 * One run is fixed by its seed. Every call must return just the errno that the model expects, so a
 * server that answers EXIST or NOENT to its own retry is caught at once. Some files are kept open
 * (holds) while they are renamed, replaced and unlinked; before a directory is removed they are
 * closed, as an NFS client keeps a .nfs name for each and the directory would not be empty.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops_ops.h"

#define N_HOLDS     4
#define WRITE_BYTES 16384
#define LINK_BYTES  1000

struct torture {
	const char *base;
	struct node *root;
	struct rng rng;
	struct {
		int fd;
		struct node *node; /* NULL: free */
	} holds[N_HOLDS];
};

/* One name chosen at random, whether something has it or not. */
struct place {
	struct node *dir;
	int name;
	struct node *node; /* NULL: nothing has the name */
	char path[PATH_BYTES];
};

static struct place any_place(struct torture *t)
{
	struct place p = {.dir = model_any_dir(t->root, &t->rng)};

	p.name = (int)rng_below(&t->rng, MODEL_NAMES);
	p.node = p.dir->kids[p.name];
	model_path(p.path, t->base, p.dir, p.name);
	return p;
}

/* A place with a file, when some tries find one; else any. */
static struct place any_file(struct torture *t)
{
	struct place p = any_place(t);

	for (int i = 0; i < 20 && !(p.node && p.node->type == NODE_FILE); i++)
		p = any_place(t);
	return p;
}

static void release_holds(struct torture *t)
{
	for (int i = 0; i < N_HOLDS; i++) {
		if (!t->holds[i].node)
			continue;
		xclose(t->holds[i].fd);
		model_unhold(t->holds[i].node);
		t->holds[i].node = NULL;
	}
}

static void op_create(struct torture *t)
{
	struct place p = any_place(t);
	mode_t mode = rng_below(&t->rng, 2) ? 0644 : 0600;
	int fd = open(p.path, O_CREAT | O_EXCL | O_RDWR, mode);

	need_err(fd, p.node ? EEXIST : 0, "create %s", p.path);
	if (fd < 0)
		return;
	xclose(fd);
	model_add(p.dir, p.name, model_new(NODE_FILE, mode));
}

static void op_mkdir(struct torture *t)
{
	struct place p = any_place(t);

	if (model_depth(p.dir) >= MODEL_DEPTH - 1)
		return;
	need_err(mkdir(p.path, 0755), p.node ? EEXIST : 0, "mkdir %s", p.path);
	if (!p.node)
		model_add(p.dir, p.name, model_new(NODE_DIR, 0755));
}

static void op_symlink(struct torture *t)
{
	struct place p = any_place(t);
	struct node *node;
	char target[LINK_BYTES + 1];
	uint32_t len = 1 + rng_below(&t->rng, LINK_BYTES);

	memset(target, 'a' + (int)rng_below(&t->rng, 26), len);
	target[len] = '\0';
	need_err(symlink(target, p.path), p.node ? EEXIST : 0, "symlink %s", p.path);
	if (p.node)
		return;
	node = model_new(NODE_LINK, 0777);
	node->size = len;
	memcpy(node->data, target, len);
	model_add(p.dir, p.name, node);
}

static void op_mkfifo(struct torture *t)
{
	struct place p = any_place(t);

	need_err(mkfifo(p.path, 0640), p.node ? EEXIST : 0, "mkfifo %s", p.path);
	if (!p.node)
		model_add(p.dir, p.name, model_new(NODE_FIFO, 0640));
}

static void op_link(struct torture *t)
{
	struct place from = any_file(t), to = any_place(t);
	int err = 0;

	if (!from.node)
		err = ENOENT;
	else if (to.node)
		err = EEXIST;
	else if (from.node->type == NODE_DIR)
		err = EPERM;
	need_err(link(from.path, to.path), err, "link %s %s", from.path, to.path);
	if (err == 0)
		model_add(to.dir, to.name, from.node);
}

static void op_unlink(struct torture *t)
{
	struct place p = any_place(t);
	int err = !p.node ? ENOENT : p.node->type == NODE_DIR ? EISDIR : 0;

	need_err(unlink(p.path), err, "unlink %s", p.path);
	if (err == 0)
		model_remove(p.dir, p.name);
}

static void op_rmdir(struct torture *t)
{
	struct place p = any_place(t);
	int err = 0;

	if (!p.node)
		err = ENOENT;
	else if (p.node->type != NODE_DIR)
		err = ENOTDIR;
	else if (!model_is_empty(p.node))
		err = ENOTEMPTY;
	release_holds(t);
	need_err(rmdir(p.path), err, "rmdir %s", p.path);
	if (err == 0)
		model_remove(p.dir, p.name);
}

/* The order of the checks is the kernel's: ancestors first, then one object, then types. */
static int rename_errno(const struct place *from, const struct place *to)
{
	if (!from->node)
		return ENOENT;
	if (from->node->type == NODE_DIR && model_is_above(from->node, to->dir))
		return EINVAL;
	if (to->node && to->node->type == NODE_DIR && model_is_above(to->node, from->dir))
		return ENOTEMPTY;
	if (!to->node || to->node == from->node)
		return 0;
	if (from->node->type == NODE_DIR && to->node->type != NODE_DIR)
		return ENOTDIR;
	if (from->node->type != NODE_DIR && to->node->type == NODE_DIR)
		return EISDIR;
	if (to->node->type == NODE_DIR && !model_is_empty(to->node))
		return ENOTEMPTY;
	return 0;
}

static int height_of(const struct node *node)
{
	int height = 0;

	for (int i = 0; node->type == NODE_DIR && i < MODEL_NAMES; i++) {
		int below = node->kids[i] ? 1 + height_of(node->kids[i]) : 0;

		if (below > height)
			height = below;
	}
	return height;
}

static void op_rename(struct torture *t)
{
	struct place from = any_place(t), to = any_place(t);
	int err;

	for (int i = 0; i < 10 && !from.node; i++)
		from = any_place(t);
	if (from.node && model_depth(to.dir) + 1 + height_of(from.node) > MODEL_DEPTH)
		return;
	err = rename_errno(&from, &to);
	if (to.node && to.node->type == NODE_DIR)
		release_holds(t);
	need_err(rename(from.path, to.path), err, "rename %s %s", from.path, to.path);
	if (err != 0 || to.node == from.node)
		return;
	if (to.node)
		model_remove(to.dir, to.name);
	from.dir->kids[from.name] = NULL;
	from.node->n_links--;
	model_add(to.dir, to.name, from.node);
}

static void write_both(struct torture *t, int fd, struct node *node)
{
	uint32_t offset = rng_below(&t->rng, MODEL_FILE_BYTES - WRITE_BYTES);
	uint32_t bytes = 1 + rng_below(&t->rng, WRITE_BYTES);

	/* A write at or just before the end is the usual one. */
	if (rng_below(&t->rng, 2) && node->size < offset)
		offset = node->size;
	if (offset > node->size)
		memset(node->data + node->size, 0, offset - node->size);
	pattern_fill(node->data + offset, bytes, rng_next(&t->rng), offset);
	xpwrite(fd, node->data + offset, bytes, offset);
	if (offset + bytes > node->size)
		node->size = offset + bytes;
}

static void op_write(struct torture *t)
{
	struct place p = any_file(t);
	int fd;

	if (!p.node || p.node->type != NODE_FILE)
		return;
	fd = xopen(p.path, O_RDWR, 0);
	write_both(t, fd, p.node);
	if (rng_below(&t->rng, 8) == 0)
		need(fsync(fd) == 0, "fsync %s", p.path);
	xclose(fd);
}

static void op_truncate(struct torture *t)
{
	struct place p = any_file(t);
	uint32_t size = rng_below(&t->rng, MODEL_FILE_BYTES);

	if (!p.node || p.node->type != NODE_FILE)
		return;
	need(truncate(p.path, size) == 0, "truncate %s to %u", p.path, size);
	if (size > p.node->size)
		memset(p.node->data + p.node->size, 0, size - p.node->size);
	p.node->size = size;
}

static void op_overwrite(struct torture *t)
{
	struct place p = any_file(t);
	int fd;

	if (!p.node || p.node->type != NODE_FILE)
		return;
	fd = xopen(p.path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	p.node->size = 0;
	write_both(t, fd, p.node);
	xclose(fd);
}

static void op_chmod(struct torture *t)
{
	struct place p = any_place(t);
	mode_t mode = 0600 | (mode_t)rng_below(&t->rng, 0100);

	if (p.node && p.node->type == NODE_DIR)
		mode |= 0100;
	if (p.node && p.node->type == NODE_LINK)
		return;
	need_err(chmod(p.path, mode), p.node ? 0 : ENOENT, "chmod %s", p.path);
	if (p.node)
		p.node->mode = mode;
}

static void op_check(struct torture *t)
{
	struct place p = any_place(t);
	struct stat st;

	if (!p.node) {
		need_err(lstat(p.path, &st), ENOENT, "stat %s", p.path);
		return;
	}
	model_verify_node(p.path, p.node);
	if (p.node->type == NODE_DIR)
		model_verify_dir(p.path, p.node);
}

static void op_hold(struct torture *t)
{
	int i = (int)rng_below(&t->rng, N_HOLDS);
	struct place p = any_file(t);

	if (t->holds[i].node) {
		xclose(t->holds[i].fd);
		model_unhold(t->holds[i].node);
		t->holds[i].node = NULL;
	}
	if (!p.node || p.node->type != NODE_FILE)
		return;
	t->holds[i].fd = xopen(p.path, O_RDWR, 0);
	t->holds[i].node = p.node;
	p.node->n_holds++;
}

static void op_use_hold(struct torture *t)
{
	static uint8_t buf[MODEL_FILE_BYTES + 1];
	int i = (int)rng_below(&t->rng, N_HOLDS);
	struct node *node = t->holds[i].node;
	size_t n;

	if (!node)
		return;
	if (rng_below(&t->rng, 2)) {
		write_both(t, t->holds[i].fd, node);
		return;
	}
	n = xpread(t->holds[i].fd, buf, sizeof(buf), 0);
	need(n == node->size && memcmp(buf, node->data, n) == 0,
	     "held file with %d links: %zu bytes read, expected %u, or other content",
	     node->n_links, n, node->size);
}

/* At least COUNT operations, and for at least SECONDS. */
void test_ops(char **argv)
{
	static void (*const ops[])(struct torture *) = {
		op_create,   op_create,    op_create, op_mkdir, op_symlink,  op_mkfifo,
		op_link,     op_unlink,    op_unlink, op_rmdir, op_rename,   op_rename,
		op_rename,   op_write,     op_write,  op_write, op_check,    op_check,
		op_truncate, op_overwrite, op_chmod,  op_hold,  op_use_hold,
	};
	struct torture t = {.base = argv[1], .rng = {strtoull(argv[2], NULL, 0)}};
	unsigned long count = strtoul(argv[3], NULL, 0);
	uint64_t end = now_ms() + strtoull(argv[4], NULL, 0) * 1000;

	if (mkdir(t.base, 0755) != 0)
		fail("mkdir %s", t.base);
	t.root = model_new(NODE_DIR, 0755);
	for (unsigned long i = 0; i < count || now_ms() < end; i++)
		ops[rng_below(&t.rng, sizeof(ops) / sizeof(*ops))](&t);
	release_holds(&t);
	model_verify(t.base, t.root);
}
