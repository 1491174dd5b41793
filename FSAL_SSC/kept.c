/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * kept.c - see kept.h. Needs neither Ganesha nor libnfs.
 */
#include <string.h>

#include "kept.h"
#include "ssc/clock.h"

void ssc_kept_init(struct ssc_kept *kept)
{
	memset(kept, 0, sizeof(*kept));
	pthread_mutex_init(&kept->lock, NULL);
}

void ssc_kept_fini(struct ssc_kept *kept)
{
	pthread_mutex_destroy(&kept->lock);
}

uint64_t ssc_kept_ticket(struct ssc_kept *kept)
{
	uint64_t ticket;

	pthread_mutex_lock(&kept->lock);
	ticket = kept->n_arrived;
	pthread_mutex_unlock(&kept->lock);
	return ticket;
}

static int time_cmp(const struct ssc_time *a, const struct ssc_time *b)
{
	if (a->s != b->s)
		return a->s < b->s ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return 0;
}

/* Whether the two differ in nothing but what WRITE and READ change. */
static bool differ_by_io(const struct ssc_attrs *a, const struct ssc_attrs *b)
{
	return a->type == SSC_FT_REG && b->type == SSC_FT_REG && a->mode == b->mode &&
	       a->nlink == b->nlink && a->uid == b->uid && a->gid == b->gid && a->fsid == b->fsid &&
	       a->fileid == b->fileid;
}

static bool differ_by_nothing(const struct ssc_attrs *a, const struct ssc_attrs *b)
{
	return a->type == b->type && a->mode == b->mode && a->nlink == b->nlink &&
	       a->uid == b->uid && a->gid == b->gid && a->size == b->size && a->used == b->used &&
	       a->rdev_major == b->rdev_major && a->rdev_minor == b->rdev_minor &&
	       a->fsid == b->fsid && a->fileid == b->fileid && time_cmp(&a->mtime, &b->mtime) == 0;
}

static void forget_locked(struct ssc_kept *kept)
{
	kept->is_valid = false;
	kept->floor = kept->n_arrived;
}

static void keep_locked(struct ssc_kept *kept, const struct ssc_attrs *attrs)
{
	kept->is_valid = true;
	kept->is_known = true;
	kept->valid_since = kept->n_arrived;
	kept->at_ns = ssc_clock_now_ns();
	kept->attrs = *attrs;
}

/* Writes that the server did within one tick of its clock: the later of them is the longer file. */
static void merge_locked(struct ssc_kept *kept, const struct ssc_attrs *attrs)
{
	if (attrs->size > kept->attrs.size)
		kept->attrs.size = attrs->size;
	if (attrs->used > kept->attrs.used)
		kept->attrs.used = attrs->used;
	if (time_cmp(&attrs->mtime, &kept->attrs.mtime) > 0)
		kept->attrs.mtime = attrs->mtime;
	if (time_cmp(&attrs->atime, &kept->attrs.atime) > 0)
		kept->attrs.atime = attrs->atime;
	kept->at_ns = ssc_clock_now_ns();
}

/* @attrs are of a call that overlapped with the one whose attributes are kept. */
static void overlap_locked(struct ssc_kept *kept, uint64_t ticket, const struct ssc_attrs *attrs,
			   bool is_shrinking)
{
	int order = time_cmp(&attrs->ctime, &kept->attrs.ctime);

	if (order > 0)
		keep_locked(kept, attrs);
	else if (order == 0 && !differ_by_nothing(attrs, &kept->attrs)) {
		if (is_shrinking || ticket < kept->shrunk || !differ_by_io(attrs, &kept->attrs))
			forget_locked(kept);
		else
			merge_locked(kept, attrs);
	}
}

void ssc_kept_arrived(struct ssc_kept *kept, uint64_t ticket, const struct ssc_attrs *attrs,
		      bool is_shrinking)
{
	pthread_mutex_lock(&kept->lock);
	kept->n_arrived++;
	if (attrs == NULL)
		forget_locked(kept);
	else if (!kept->is_valid) {
		if (ticket >= kept->floor)
			keep_locked(kept, attrs);
	} else if (ticket >= kept->valid_since)
		keep_locked(kept, attrs);
	else
		overlap_locked(kept, ticket, attrs, is_shrinking);
	if (is_shrinking)
		kept->shrunk = kept->n_arrived;
	pthread_mutex_unlock(&kept->lock);
}

void ssc_kept_forget(struct ssc_kept *kept)
{
	pthread_mutex_lock(&kept->lock);
	kept->n_arrived++;
	forget_locked(kept);
	pthread_mutex_unlock(&kept->lock);
}

bool ssc_kept_confirm(struct ssc_kept *kept, const struct ssc_attrs *attrs)
{
	bool is_same = false;

	pthread_mutex_lock(&kept->lock);
	kept->n_arrived++;
	/* With nothing kept, a reply that came meanwhile may have told of something newer. */
	if (kept->is_valid) {
		int order = time_cmp(&attrs->ctime, &kept->attrs.ctime);

		is_same = order > 0 || (order == 0 && differ_by_nothing(attrs, &kept->attrs));
		if (order > 0)
			keep_locked(kept, attrs);
		else if (is_same)
			kept->at_ns = ssc_clock_now_ns();
	}
	pthread_mutex_unlock(&kept->lock);
	return is_same;
}

bool ssc_kept_get(struct ssc_kept *kept, uint64_t since_ns, struct ssc_attrs *attrs)
{
	bool is_there;

	pthread_mutex_lock(&kept->lock);
	is_there = kept->is_valid && kept->at_ns > since_ns;
	if (is_there)
		*attrs = kept->attrs;
	pthread_mutex_unlock(&kept->lock);
	return is_there;
}

bool ssc_kept_last(struct ssc_kept *kept, struct ssc_attrs *attrs)
{
	bool is_known;

	pthread_mutex_lock(&kept->lock);
	is_known = kept->is_known;
	if (is_known)
		*attrs = kept->attrs;
	pthread_mutex_unlock(&kept->lock);
	return is_known;
}
