/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * client_tree.c - the test client's copies of whole trees, and their removal.
 *
 * Files, folders and symbolic links with their modes; other kinds are not met in the trees that
 * tests make.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"

static int tree_in_one(struct client *c, const char *from, const char *to);

int client_tree_in(struct client *c, const char *local, const char *path)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct dirent *ent;
	DIR *dir = opendir(local);
	int err = 0;

	if (!dir) {
		perror(local);
		return 1;
	}
	while (!err && (ent = readdir(dir)) != NULL) {
		if (!strcmp(ent->d_name, ".") || !strcmp(ent->d_name, ".."))
			continue;
		if (snprintf(from, sizeof(from), "%s/%s", local, ent->d_name) >=
			    (int)sizeof(from) ||
		    snprintf(to, sizeof(to), "%s/%s", path, ent->d_name) >= (int)sizeof(to))
			err = 1;
		else
			err = tree_in_one(c, from, to);
	}
	closedir(dir);
	return err;
}

static int tree_in_one(struct client *c, const char *from, const char *to)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int err;

	if (lstat(from, &st)) {
		perror(from);
		return 1;
	}
	if (S_ISLNK(st.st_mode)) {
		n = readlink(from, target, sizeof(target) - 1);
		if (n < 0)
			return 1;
		target[n] = '\0';
		err = CALL(c, nfs_symlink(c->nfs, target, to));
		return err ? client_fail(c, "symlink", to, err) : 0;
	}
	if (S_ISDIR(st.st_mode)) {
		/* With its mode at once: libnfs 4.0.0 opens what it chmods, over v4 also folders. */
		err = CALL(c, nfs_mkdir2(c->nfs, to, (int)(st.st_mode & 07777)));
		return err ? client_fail(c, "mkdir", to, err) : client_tree_in(c, from, to);
	}
	if (client_put(c, from, to))
		return 1;
	err = CALL(c, nfs_chmod(c->nfs, to, (int)(st.st_mode & 07777)));
	return err ? client_fail(c, "chmod", to, err) : 0;
}

static int tree_out_one(struct client *c, const char *from, const char *to)
{
	char target[PATH_MAX];
	struct nfs_stat_64 st;
	int err = CALL(c, nfs_lstat64(c->nfs, from, &st));

	if (err)
		return client_fail(c, "stat", from, err);
	if (S_ISLNK(st.nfs_mode)) {
		err = CALL(c, nfs_readlink(c->nfs, from, target, sizeof(target)));
		if (err)
			return client_fail(c, "readlink", from, err);
		return symlink(target, to);
	}
	if (S_ISDIR(st.nfs_mode)) {
		if (client_tree_out(c, from, to))
			return 1;
	} else if (client_get(c, from, to)) {
		return 1;
	}
	return chmod(to, (mode_t)(st.nfs_mode & 07777));
}

int client_tree_out(struct client *c, const char *path, const char *local)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct nfsdir *dir = NULL;
	struct nfsdirent *ent;
	int err = CALL(c, nfs_opendir(c->nfs, path, &dir));

	if (err)
		return client_fail(c, "readdir", path, err);
	if (mkdir(local, 0755) && errno != EEXIST) {
		perror(local);
		err = 1;
	}
	while (!err && (ent = nfs_readdir(c->nfs, dir)) != NULL) {
		if (!strcmp(ent->name, ".") || !strcmp(ent->name, ".."))
			continue;
		if (snprintf(from, sizeof(from), "%s/%s", path, ent->name) >= (int)sizeof(from) ||
		    snprintf(to, sizeof(to), "%s/%s", local, ent->name) >= (int)sizeof(to))
			err = 1;
		else
			err = tree_out_one(c, from, to);
	}
	nfs_closedir(c->nfs, dir);
	return err;
}

int client_rmtree(struct client *c, const char *path)
{
	char name[PATH_MAX];
	struct nfs_stat_64 st;
	struct nfsdir *dir = NULL;
	struct nfsdirent *ent;
	int err = CALL(c, nfs_lstat64(c->nfs, path, &st));

	if (err)
		return client_fail(c, "stat", path, err);
	if (!S_ISDIR(st.nfs_mode)) {
		err = CALL(c, nfs_unlink(c->nfs, path));
		return err ? client_fail(c, "rm", path, err) : 0;
	}
	err = CALL(c, nfs_opendir(c->nfs, path, &dir));
	if (err)
		return client_fail(c, "readdir", path, err);
	while (!err && (ent = nfs_readdir(c->nfs, dir)) != NULL) {
		if (!strcmp(ent->name, ".") || !strcmp(ent->name, ".."))
			continue;
		err = snprintf(name, sizeof(name), "%s/%s", path, ent->name) >= (int)sizeof(name) ||
		      client_rmtree(c, name);
	}
	nfs_closedir(c->nfs, dir);
	if (err)
		return err;
	err = CALL(c, nfs_rmdir(c->nfs, path));
	return err ? client_fail(c, "rmdir", path, err) : 0;
}
