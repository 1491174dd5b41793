/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * root.c - the root of an export: found when it is first needed, and found again when it went stale.
 *
 * An upstream that is away when the server starts must not cost the export, so the root object exists
 * without its handle at the upstream. What clients are told of it, fsid and fileid, is decided when it
 * is first asked for and never changes: Linux gives a mount up whose root changes its number. With
 * the upstream there, it is the upstream's own; without, numbers made from the configuration.
 * The upstream's other file systems are shown with fsids of their own.
 *
 * A handle that becomes stale means that the upstream came back with other handles (its fsid changed):
 * its MOUNT service is asked again. Objects below the root are then stale for good; the root is not.
 *
 * Locks: root.lock, never held while the upstream is asked.
 */
#include "ssc/clock.h"

#include "glue.h"

/* In the upper half of fsid.major, so that our fsids differ from those of other FSALs. */
#define FSID_TAG 0x535343ull

void ssc_root_init(struct ssc_export *exp)
{
	pthread_mutex_init(&exp->root.lock, NULL);
}

void ssc_root_fini(struct ssc_export *exp)
{
	pthread_mutex_destroy(&exp->root.lock);
}

static bool fh_equal(const struct ssc_fh *a, const struct ssc_fh *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static void show_locked(struct ssc_export *exp, uint64_t fsid, uint64_t fileid)
{
	if (exp->root.is_shown)
		return;
	exp->root.is_shown = true;
	exp->root.shown_fsid = fsid;
	exp->root.shown_fileid = fileid;
}

/* Any identity will do that nobody else has: the path's hash is it, among one server's file systems. */
static void show_without_upstream_locked(struct ssc_export *exp)
{
	show_locked(exp, exp->path_hash, ssc_base_mix(exp->path_hash) >> 1);
}

/* Attributes of @fh, to learn its file system. As root, since the request's user may not be allowed. */
static enum ssc_err ask_attrs(struct ssc_export *exp, const struct ssc_fh *fh,
			      struct ssc_attrs *attrs)
{
	struct ssc_call *call = ssc_call_new(exp->up, SSC_OP_GETATTR);
	enum ssc_err err;

	call->fh = *fh;
	err = ssc_caller_run(exp->caller, 0, &call);
	if (err == SSC_OK)
		*attrs = call->attrs;
	ssc_call_put(call);
	return err;
}

static void learn(struct ssc_export *exp, const struct ssc_fh *fh, const struct ssc_attrs *attrs)
{
	bool is_moved;

	pthread_mutex_lock(&exp->root.lock);
	is_moved = exp->root.is_known &&
		   (!fh_equal(&exp->root.fh, fh) || exp->root.fsid != attrs->fsid);
	exp->root.is_known = true;
	exp->root.fh = *fh;
	exp->root.fsid = attrs->fsid;
	show_locked(exp, attrs->fsid, attrs->fileid);
	pthread_mutex_unlock(&exp->root.lock);
	if (is_moved)
		ssc_log_event(
			"%s: the upstream came back with other file handles; open files are stale",
			exp->name);
}

enum ssc_err ssc_root_fh(struct ssc_export *exp, const struct ssc_fh *stale, uint64_t until_ns,
			 struct ssc_fh *fh)
{
	struct ssc_attrs attrs;
	enum ssc_err err;
	bool is_known;

	pthread_mutex_lock(&exp->root.lock);
	/* Another request may have asked again since. */
	is_known = exp->root.is_known && (stale == NULL || !fh_equal(stale, &exp->root.fh));
	if (is_known)
		*fh = exp->root.fh;
	pthread_mutex_unlock(&exp->root.lock);
	if (is_known)
		return SSC_OK;

	err = exp->up->ops->root(exp->up, stale != NULL, until_ns, fh);
	if (err == SSC_OK)
		err = ask_attrs(exp, fh, &attrs);
	if (err == SSC_OK)
		learn(exp, fh, &attrs);
	return err;
}

bool ssc_root_is(struct ssc_export *exp, const struct ssc_fh *fh)
{
	bool is_root;

	pthread_mutex_lock(&exp->root.lock);
	is_root = exp->root.is_known && fh_equal(fh, &exp->root.fh);
	pthread_mutex_unlock(&exp->root.lock);
	return is_root;
}

static fsal_fsid_t fsid_of(struct ssc_export *exp, uint64_t fsid)
{
	return (fsal_fsid_t){.major = FSID_TAG << 32 | exp->upstream_id, .minor = fsid};
}

fsal_fsid_t ssc_root_fsid(struct ssc_export *exp, uint64_t fsid)
{
	pthread_mutex_lock(&exp->root.lock);
	if (exp->root.is_known && exp->root.is_shown && fsid == exp->root.fsid)
		fsid = exp->root.shown_fsid;
	pthread_mutex_unlock(&exp->root.lock);
	return fsid_of(exp, fsid);
}

void ssc_root_identity(struct ssc_export *exp, fsal_fsid_t *fsid, uint64_t *fileid)
{
	pthread_mutex_lock(&exp->root.lock);
	show_without_upstream_locked(exp);
	*fsid = fsid_of(exp, exp->root.shown_fsid);
	*fileid = exp->root.shown_fileid;
	pthread_mutex_unlock(&exp->root.lock);
}

bool ssc_root_is_crossing(struct ssc_export *exp, const struct ssc_attrs *attrs)
{
	bool is_crossing;

	pthread_mutex_lock(&exp->root.lock);
	is_crossing = exp->root.is_known && attrs->fsid != exp->root.fsid;
	pthread_mutex_unlock(&exp->root.lock);
	return is_crossing;
}
