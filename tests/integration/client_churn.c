/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * client_churn.c - random changes to one folder, each checked against a model in memory.
 *
 * The model knows, for N_NAMES names, which exist and what they hold. Every step picks one of:
 * create, write, read and compare, truncate, rename, remove, list. A step whose outcome is not the
 * model's ends the run with one line that names step and seed; so does, at the end, any name or
 * byte that differs. The exact result matters: EXIST or NOENT where the model says otherwise is a
 * fault (a retry that was answered as if it were new).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

#define N_NAMES  24
#define FILE_MAX 40000u

struct file {
	bool exists;
	size_t size;
	uint8_t data[FILE_MAX];
};

static struct file model[N_NAMES];

struct churn {
	struct client *c;
	const char *dir;
	uint64_t random;
	unsigned long seed;
	unsigned long n_steps;
};

static uint32_t roll(struct churn *t, uint32_t below)
{
	t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(t->random >> 33) % below;
}

static const char *path_of(const struct churn *t, uint32_t i, char *buf, size_t size)
{
	snprintf(buf, size, "%s/churn%02u", t->dir, i);
	return buf;
}

static int wrong(const struct churn *t, const char *what, uint32_t i, int have, int want)
{
	const char *text = nfs_get_error(t->c->nfs);

	fprintf(stderr, "churn seed %lu step %lu: %s churn%02u: have %d (%s), want %d\n", t->seed,
		t->n_steps, what, i, have, have < 0 && text ? text : "", want);
	return 1;
}

static int step_create(struct churn *t, uint32_t i)
{
	char path[512];
	struct nfsfh *fh = NULL;
	int want = model[i].exists ? -EEXIST : 0;
	int err = CALL(t->c,
		       nfs_create(t->c->nfs, path_of(t, i, path, sizeof(path)), O_EXCL, 0644, &fh));

	if (err != want)
		return wrong(t, "create", i, err, want);
	if (!err) {
		nfs_close(t->c->nfs, fh);
		model[i].exists = true;
		model[i].size = 0;
	}
	return 0;
}

static int open_known(struct churn *t, uint32_t i, struct nfsfh **fh)
{
	char path[512];
	int want = model[i].exists ? 0 : -ENOENT;
	int err = CALL(t->c, nfs_open(t->c->nfs, path_of(t, i, path, sizeof(path)), O_RDWR, fh));

	return err != want ? wrong(t, "open", i, err, want) : 0;
}

static int step_write(struct churn *t, uint32_t i)
{
	struct file *f = &model[i];
	size_t off = roll(t, FILE_MAX / 2), len = 1 + roll(t, FILE_MAX / 2);
	struct nfsfh *fh = NULL;
	int err = open_known(t, i, &fh);

	if (err || !fh)
		return err;
	if (off > f->size)
		memset(f->data + f->size, 0, off - f->size);
	client_pattern(f->data + off, len, off, t->n_steps);
	if (off + len > f->size)
		f->size = off + len;
	err = CALL(t->c, nfs_pwrite(t->c->nfs, fh, off, len, f->data + off));
	nfs_close(t->c->nfs, fh);
	return err != (int)len ? wrong(t, "write", i, err, (int)len) : 0;
}

static int compare(struct churn *t, uint32_t i)
{
	static uint8_t have[FILE_MAX + 1];
	struct file *f = &model[i];
	struct nfsfh *fh = NULL;
	int err = open_known(t, i, &fh);

	if (err || !fh)
		return err;
	err = CALL(t->c, nfs_pread(t->c->nfs, fh, 0, sizeof(have), have));
	nfs_close(t->c->nfs, fh);
	if (err != (int)f->size)
		return wrong(t, "read", i, err, (int)f->size);
	return memcmp(have, f->data, f->size) ? wrong(t, "compare", i, 1, 0) : 0;
}

static int step_truncate(struct churn *t, uint32_t i)
{
	struct file *f = &model[i];
	size_t size = roll(t, FILE_MAX);
	char path[512];
	int want = f->exists ? 0 : -ENOENT;
	int err = CALL(t->c, nfs_truncate(t->c->nfs, path_of(t, i, path, sizeof(path)), size));

	if (err != want)
		return wrong(t, "truncate", i, err, want);
	if (!f->exists)
		return 0;
	if (size > f->size)
		memset(f->data + f->size, 0, size - f->size);
	f->size = size;
	return 0;
}

static int step_rename(struct churn *t, uint32_t i)
{
	uint32_t to = roll(t, N_NAMES);
	char a[512], b[512];
	int want = model[i].exists ? 0 : -ENOENT;
	int err;

	if (to == i)
		return 0;
	err = CALL(t->c, nfs_rename(t->c->nfs, path_of(t, i, a, sizeof(a)),
				    path_of(t, to, b, sizeof(b))));
	if (err != want)
		return wrong(t, "rename", i, err, want);
	if (!err) {
		model[to] = model[i];
		model[i].exists = false;
	}
	return 0;
}

static int step_remove(struct churn *t, uint32_t i)
{
	char path[512];
	int want = model[i].exists ? 0 : -ENOENT;
	int err = CALL(t->c, nfs_unlink(t->c->nfs, path_of(t, i, path, sizeof(path))));

	model[i].exists = false;
	return err != want ? wrong(t, "remove", i, err, want) : 0;
}

static int list(struct churn *t)
{
	bool seen[N_NAMES] = {false};
	struct nfsdir *dir = NULL;
	struct nfsdirent *ent;
	unsigned i;
	int err = CALL(t->c, nfs_opendir(t->c->nfs, t->dir, &dir));

	if (err)
		return wrong(t, "list", 0, err, 0);
	while ((ent = nfs_readdir(t->c->nfs, dir)) != NULL)
		if (sscanf(ent->name, "churn%2u", &i) == 1 && i < N_NAMES)
			seen[i] = true;
	nfs_closedir(t->c->nfs, dir);
	for (i = 0; i < N_NAMES; i++)
		if (seen[i] != model[i].exists)
			return wrong(t, "listed", i, seen[i], model[i].exists);
	return 0;
}

static int step(struct churn *t)
{
	uint32_t i = roll(t, N_NAMES);

	switch (roll(t, 10)) {
	case 0:
	case 1:
		return step_create(t, i);
	case 2:
	case 3:
		return step_write(t, i);
	case 4:
	case 5:
		return compare(t, i);
	case 6:
		return step_truncate(t, i);
	case 7:
		return step_rename(t, i);
	case 8:
		return step_remove(t, i);
	default:
		return list(t);
	}
}

int client_churn(struct client *c, const char *path, unsigned long seconds, unsigned long seed)
{
	struct churn t = {.c = c, .dir = path, .seed = seed, .random = seed * 2654435769u + 1};
	uint64_t end = client_now_ms() + seconds * 1000;
	char name[512];

	for (uint32_t i = 0; i < N_NAMES; i++)
		(void)CALL(c, nfs_unlink(c->nfs, path_of(&t, i, name, sizeof(name))));
	while (client_now_ms() < end) {
		t.n_steps++;
		if (step(&t))
			return 1;
	}
	for (uint32_t i = 0; i < N_NAMES; i++)
		if (compare(&t, i))
			return 1;
	if (list(&t))
		return 1;
	printf("steps=%lu came_back=%u\n", t.n_steps, c->n_retries);
	return 0;
}
