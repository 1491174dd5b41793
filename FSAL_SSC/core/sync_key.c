/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_key.c - when two calls are the same request, and which names a call changes.
 *
 * Only fields that go on the wire count, and of attributes only those that are set. Pure functions.
 */
#include <string.h>

#include "sync_internal.h"

uint64_t ssc_sync_key_hash(uint64_t who, const struct ssc_call *call)
{
	uint64_t hash = ssc_base_hash(&who, sizeof(who), 0);

	hash = ssc_base_hash(&call->op, sizeof(call->op), hash);
	hash = ssc_base_hash(call->fh.data, call->fh.len, hash);
	if (call->name != NULL)
		hash = ssc_base_hash(call->name, strlen(call->name), hash);
	return hash;
}

bool ssc_sync_fh_equal(const struct ssc_fh *a, const struct ssc_fh *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_same_cred(const struct ssc_cred *a, const struct ssc_cred *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->n_groups == b->n_groups &&
	       memcmp(a->groups, b->groups, a->n_groups * sizeof(a->groups[0])) == 0;
}

static bool is_same_time(enum ssc_time_how a_how, const struct ssc_time *a, enum ssc_time_how b_how,
			 const struct ssc_time *b)
{
	return a_how == b_how && (a_how != SSC_TIME_CLIENT || (a->s == b->s && a->ns == b->ns));
}

static bool is_same_sattr(const struct ssc_sattr *a, const struct ssc_sattr *b)
{
	if (a->set_mode != b->set_mode || (a->set_mode && a->mode != b->mode))
		return false;
	if (a->set_uid != b->set_uid || (a->set_uid && a->uid != b->uid))
		return false;
	if (a->set_gid != b->set_gid || (a->set_gid && a->gid != b->gid))
		return false;
	if (a->set_size != b->set_size || (a->set_size && a->size != b->size))
		return false;
	return is_same_time(a->atime_how, &a->atime, b->atime_how, &b->atime) &&
	       is_same_time(a->mtime_how, &a->mtime, b->mtime_how, &b->mtime);
}

static bool is_same_create(const struct ssc_call *a, const struct ssc_call *b)
{
	if (a->arg.create.how != b->arg.create.how)
		return false;
	if (a->arg.create.how == SSC_CREATE_EXCLUSIVE)
		return memcmp(a->arg.create.verf, b->arg.create.verf, SSC_VERF_BYTES) == 0;
	return is_same_sattr(&a->arg.create.set, &b->arg.create.set);
}

static bool is_same_make(const struct ssc_call *a, const struct ssc_call *b)
{
	if (!is_same_sattr(&a->arg.make.set, &b->arg.make.set))
		return false;
	return a->op != SSC_OP_MKNOD || (a->arg.make.type == b->arg.make.type &&
					 a->arg.make.rdev_major == b->arg.make.rdev_major &&
					 a->arg.make.rdev_minor == b->arg.make.rdev_minor);
}

static bool is_same_arg(const struct ssc_call *a, const struct ssc_call *b)
{
	switch (a->op) {
	case SSC_OP_SETATTR:
		return is_same_sattr(&a->arg.setattr.set, &b->arg.setattr.set);
	case SSC_OP_CREATE:
		return is_same_create(a, b);
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
		return is_same_make(a, b);
	case SSC_OP_RENAME: /* arg.rename.object is what the client's request names, not part of it */
	case SSC_OP_LINK:
		return ssc_sync_fh_equal(&a->arg.rename.to_dir, &b->arg.rename.to_dir);
	case SSC_OP_REMOVE:
	case SSC_OP_RMDIR:
		return true;
	case SSC_OP_NULL:
	case SSC_OP_GETATTR:
	case SSC_OP_LOOKUP:
	case SSC_OP_READLINK:
	case SSC_OP_READ:
	case SSC_OP_WRITE:
	case SSC_OP_READDIRPLUS:
	case SSC_OP_FSSTAT:
	case SSC_OP_FSINFO:
	case SSC_OP_PATHCONF:
	case SSC_OP_COMMIT:
	case SSC_OP_N:
		break;
	}
	return false; /* idempotent ones do not join */
}

bool ssc_sync_key_equal(const struct ssc_call *a, const struct ssc_call *b)
{
	return a->op == b->op && ssc_sync_fh_equal(&a->fh, &b->fh) &&
	       is_same_cred(&a->cred, &b->cred) && is_same_text(a->name, b->name) &&
	       is_same_text(a->text, b->text) && is_same_arg(a, b);
}

bool ssc_sync_is_repeatable(const struct ssc_call *call)
{
	return call->op == SSC_OP_SETATTR ||
	       (call->op == SSC_OP_CREATE && call->arg.create.how == SSC_CREATE_UNCHECKED);
}

static uint64_t name_hash(const struct ssc_fh *dir, const char *name)
{
	uint64_t hash = ssc_base_hash(dir->data, dir->len, 0);

	return name != NULL ? ssc_base_hash(name, strlen(name), hash) : 0;
}

void ssc_sync_names(const struct ssc_call *call, uint64_t names[SSC_SYNC_NAMES])
{
	memset(names, 0, SSC_SYNC_NAMES * sizeof(names[0]));
	if (call->op == SSC_OP_LINK)
		names[0] = name_hash(&call->arg.rename.to_dir, call->name);
	else if (call->op != SSC_OP_SETATTR)
		names[0] = name_hash(&call->fh, call->name);
	if (call->op == SSC_OP_RENAME)
		names[1] = name_hash(&call->arg.rename.to_dir, call->text);
}

bool ssc_sync_names_meet(const uint64_t a[SSC_SYNC_NAMES], const uint64_t b[SSC_SYNC_NAMES])
{
	int i, j;

	for (i = 0; i < SSC_SYNC_NAMES; i++) {
		for (j = 0; j < SSC_SYNC_NAMES; j++) {
			if (a[i] != 0 && a[i] == b[j])
				return true;
		}
	}
	return false;
}
