/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_model.c - the directory tree that the torture expects, and its comparison with the real one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops_ops.h"

#define LONG_NAME_BYTES 200 /* every fourth name is this long */

struct node *model_new(enum node_type type, mode_t mode)
{
	struct node *node = xmalloc(sizeof(*node));

	memset(node, 0, sizeof(*node));
	node->type = type;
	node->mode = mode;
	if (type == NODE_FILE || type == NODE_LINK)
		node->data = xmalloc(MODEL_FILE_BYTES);
	return node;
}

static void free_unused(struct node *node)
{
	if (node->n_links > 0 || node->n_holds > 0)
		return;
	free(node->data);
	free(node);
}

void model_add(struct node *dir, int name, struct node *node)
{
	dir->kids[name] = node;
	node->n_links++;
	if (node->type == NODE_DIR) {
		node->parent = dir;
		node->name_in_parent = name;
	}
}

void model_remove(struct node *dir, int name)
{
	struct node *node = dir->kids[name];

	dir->kids[name] = NULL;
	node->n_links--;
	if (node->n_holds > 0)
		node->links_unsure = true;
	free_unused(node);
}

void model_unhold(struct node *node)
{
	node->n_holds--;
	free_unused(node);
}

bool model_is_empty(const struct node *dir)
{
	for (int i = 0; i < MODEL_NAMES; i++)
		if (dir->kids[i])
			return false;
	return true;
}

bool model_is_above(const struct node *a, const struct node *b)
{
	while (b && b != a)
		b = b->parent;
	return b == a;
}

int model_depth(const struct node *dir)
{
	int depth = 0;

	for (; dir->parent; dir = dir->parent)
		depth++;
	return depth;
}

struct node *model_any_dir(struct node *root, struct rng *rng)
{
	struct node *dir = root;

	while (rng_below(rng, 4) != 0) {
		struct node *kid = dir->kids[rng_below(rng, MODEL_NAMES)];

		if (!kid || kid->type != NODE_DIR)
			break;
		dir = kid;
	}
	return dir;
}

void model_name(int name, char *out)
{
	int n = sprintf(out, "n%02d", name);

	if (name % 4 != 3)
		return;
	memset(out + n, 'x', (size_t)(LONG_NAME_BYTES - n));
	out[LONG_NAME_BYTES] = '\0';
}

static void append_dir(char *path, const struct node *dir)
{
	char name[LONG_NAME_BYTES + 1];

	if (!dir->parent)
		return;
	append_dir(path, dir->parent);
	model_name(dir->name_in_parent, name);
	strcat(path, "/");
	strcat(path, name);
}

void model_path(char *path, const char *base, const struct node *dir, int name)
{
	char last[LONG_NAME_BYTES + 1];

	snprintf(path, PATH_BYTES - (MODEL_DEPTH + 2) * (LONG_NAME_BYTES + 1), "%s", base);
	append_dir(path, dir);
	model_name(name, last);
	strcat(path, "/");
	strcat(path, last);
}

static void verify_data(const char *path, const struct node *node)
{
	static uint8_t buf[MODEL_FILE_BYTES + 1];
	int fd = xopen(path, O_RDONLY, 0);
	size_t n = xpread(fd, buf, sizeof(buf), 0), i;

	xclose(fd);
	need(n == node->size, "%s: %zu bytes read, expected %u", path, n, node->size);
	for (i = 0; i < n && buf[i] == node->data[i]; i++)
		;
	need(i == n, "%s: byte %zu of %zu is 0x%02x, expected 0x%02x", path, i, n, buf[i],
	     node->data[i]);
}

void model_verify_node(const char *path, const struct node *node)
{
	static const mode_t types[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO};
	char target[PATH_BYTES];
	struct stat st;
	ssize_t n;

	need(lstat(path, &st) == 0, "stat %s", path);
	need((st.st_mode & S_IFMT) == types[node->type], "%s: mode 0%o, expected type 0%o", path,
	     st.st_mode, types[node->type]);
	if (node->type != NODE_LINK)
		need((st.st_mode & 07777) == node->mode, "%s: mode 0%o, expected 0%o", path,
		     st.st_mode & 07777, node->mode);
	if (node->type != NODE_DIR && !node->links_unsure)
		need((int)st.st_nlink == node->n_links, "%s: %d links, expected %d", path,
		     (int)st.st_nlink, node->n_links);
	if (node->type == NODE_FILE) {
		need(st.st_size == node->size, "%s: size %lld, expected %u", path,
		     (long long)st.st_size, node->size);
		verify_data(path, node);
	}
	if (node->type == NODE_LINK) {
		n = readlink(path, target, sizeof(target));
		need(n == (ssize_t)node->size && memcmp(target, node->data, node->size) == 0,
		     "readlink %s: %zd bytes, expected %u", path, n, node->size);
	}
}

void model_verify_dir(const char *path, const struct node *dir)
{
	bool seen[MODEL_NAMES] = {false};
	char want[LONG_NAME_BYTES + 1];
	struct dirent *entry;
	DIR *d = opendir(path);
	int name;

	need(d, "opendir %s", path);
	for (errno = 0; (entry = readdir(d)); errno = 0) {
		if (entry->d_name[0] == '.')
			continue;
		name = atoi(entry->d_name + 1);
		need(name >= 0 && name < MODEL_NAMES, "%s: odd entry %s", path, entry->d_name);
		model_name(name, want);
		need(strcmp(want, entry->d_name) == 0, "%s: odd entry %s", path, entry->d_name);
		need(!seen[name], "%s: entry %s came twice", path, entry->d_name);
		need(dir->kids[name], "%s: entry %s should be gone", path, entry->d_name);
		seen[name] = true;
	}
	need(errno == 0, "readdir %s", path);
	closedir(d);
	for (name = 0; name < MODEL_NAMES; name++)
		need(seen[name] == !!dir->kids[name], "%s: entry %d is missing", path, name);
}

static void verify_below(const char *base, const struct node *dir)
{
	char path[PATH_BYTES];

	for (int i = 0; i < MODEL_NAMES; i++) {
		if (!dir->kids[i])
			continue;
		model_path(path, base, dir, i);
		model_verify_node(path, dir->kids[i]);
		if (dir->kids[i]->type == NODE_DIR) {
			model_verify_dir(path, dir->kids[i]);
			verify_below(base, dir->kids[i]);
		}
	}
}

void model_verify(const char *base, struct node *root)
{
	model_verify_dir(base, root);
	verify_below(base, root);
}
