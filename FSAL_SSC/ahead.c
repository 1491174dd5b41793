/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * ahead.c - see ahead.h.
 *
 * Who holds a slot: its place in the table, and the upstream until done. A slot that lost its place
 * is freed by the last of both. Its call lives as long; of one that timed out nothing is read, since a
 * late reply may still change it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ahead.h"
#include "ssc/clock.h"

/* Listings that go on at the same time; a page is some 200 KiB. */
#define SLOTS 8

/* A client that lists on asks for the next page within milliseconds. */
#define YOUNG_NS (250 * SSC_NS_PER_MS)

struct slot {
	struct ssc_ahead *ahead;
	struct ssc_call *call;
	/* guarded by ahead.lock */
	int refs;
	bool is_done;
	enum ssc_err err; /* once it is done */
	/* constant */
	uint64_t ticket;
	uint64_t n_changes;
	uint64_t asked_ns;
	struct ssc_attrs attrs; /* the directory when it was asked for */
};

struct ssc_ahead {
	struct ssc_upstream *up;
	pthread_mutex_t lock;
	pthread_cond_t cond; /* some call is done */
	struct slot *slot[SLOTS];
};

struct ssc_ahead *ssc_ahead_new(struct ssc_upstream *up)
{
	struct ssc_ahead *ahead = calloc(1, sizeof(*ahead));

	if (ahead == NULL)
		abort();
	ahead->up = up;
	pthread_mutex_init(&ahead->lock, NULL);
	ssc_clock_cond_init(&ahead->cond);
	return ahead;
}

static void put_locked(struct slot *slot)
{
	if (slot == NULL || --slot->refs > 0)
		return;
	ssc_call_put(slot->call);
	free(slot);
}

void ssc_ahead_free(struct ssc_ahead *ahead)
{
	if (ahead == NULL)
		return;
	for (int i = 0; i < SLOTS; i++)
		put_locked(ahead->slot[i]); /* nobody else is left */
	pthread_cond_destroy(&ahead->cond);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}

/* ---- asking ---- */

static void done(struct ssc_call *call)
{
	struct slot *slot = call->ctx;
	struct ssc_ahead *ahead = slot->ahead;

	pthread_mutex_lock(&ahead->lock);
	slot->is_done = true;
	slot->err = call->err;
	pthread_cond_broadcast(&ahead->cond);
	put_locked(slot);
	pthread_mutex_unlock(&ahead->lock);
}

/* The place for a new one: a free one, or the oldest's. */
static int oldest_locked(const struct ssc_ahead *ahead)
{
	int oldest = 0;

	for (int i = 0; i < SLOTS; i++) {
		if (ahead->slot[i] == NULL)
			return i;
		if (ahead->slot[i]->asked_ns < ahead->slot[oldest]->asked_ns)
			oldest = i;
	}
	return oldest;
}

/* Pages that nobody came for. */
static void drop_old_locked(struct ssc_ahead *ahead, uint64_t now)
{
	for (int i = 0; i < SLOTS; i++) {
		if (ahead->slot[i] == NULL || now - ahead->slot[i]->asked_ns < YOUNG_NS)
			continue;
		put_locked(ahead->slot[i]);
		ahead->slot[i] = NULL;
	}
}

void ssc_ahead_ask(struct ssc_ahead *ahead, const struct ssc_ahead_page *page, uint32_t max_bytes,
		   uint64_t answer_by_ns, uint64_t ticket)
{
	struct slot *slot = calloc(1, sizeof(*slot));
	struct ssc_call *call = ssc_call_new(ahead->up, SSC_OP_READDIRPLUS);
	int i;

	if (slot == NULL)
		abort();
	call->fh = *page->dir;
	call->cred = *page->cred;
	call->arg.readdir.cookie = page->cookie;
	call->arg.readdir.max_bytes = max_bytes;
	memcpy(call->arg.readdir.verf, page->verf, SSC_VERF_BYTES);
	call->answer_by_ns = answer_by_ns;
	call->done = done;
	call->done_only_wakes = true;
	call->ctx = slot;
	*slot = (struct slot){
		.ahead = ahead,
		.call = call,
		.refs = 2,
		.ticket = ticket,
		.n_changes = page->n_changes,
		.asked_ns = ssc_clock_now_ns(),
		.attrs = *page->attrs,
	};
	pthread_mutex_lock(&ahead->lock);
	drop_old_locked(ahead, slot->asked_ns);
	i = oldest_locked(ahead);
	put_locked(ahead->slot[i]);
	ahead->slot[i] = slot;
	ssc_call_get(call); /* the slot may go before submit is over */
	pthread_mutex_unlock(&ahead->lock);
	ahead->up->ops->submit(ahead->up, call);
	ssc_call_put(call);
}

/* ---- taking ---- */

static bool is_same_time(struct ssc_time a, struct ssc_time b)
{
	return a.s == b.s && a.ns == b.ns;
}

static bool is_unchanged(const struct ssc_attrs *a, const struct ssc_attrs *b)
{
	return is_same_time(a->ctime, b->ctime) && is_same_time(a->mtime, b->mtime);
}

static bool is_wanted(const struct slot *slot, const struct ssc_ahead_page *page)
{
	const struct ssc_call *call = slot->call;

	return call->arg.readdir.cookie == page->cookie && call->fh.len == page->dir->len &&
	       memcmp(call->fh.data, page->dir->data, page->dir->len) == 0 &&
	       memcmp(call->arg.readdir.verf, page->verf, SSC_VERF_BYTES) == 0 &&
	       call->cred.uid == page->cred->uid && call->cred.gid == page->cred->gid &&
	       call->cred.n_groups == page->cred->n_groups &&
	       memcmp(call->cred.groups, page->cred->groups,
		      page->cred->n_groups * sizeof(page->cred->groups[0])) == 0;
}

static struct slot *find_locked(struct ssc_ahead *ahead, const struct ssc_ahead_page *page)
{
	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = ahead->slot[i];

		if (slot == NULL || !is_wanted(slot, page))
			continue;
		ahead->slot[i] = NULL; /* ours now */
		return slot;
	}
	return NULL;
}

static bool is_good(const struct slot *slot, const struct ssc_ahead_page *page)
{
	return slot->is_done && slot->err == SSC_OK && slot->call->has_attrs &&
	       slot->n_changes == page->n_changes &&
	       is_unchanged(&slot->attrs, &slot->call->attrs) &&
	       is_unchanged(&slot->attrs, page->attrs);
}

struct ssc_call *ssc_ahead_take(struct ssc_ahead *ahead, const struct ssc_ahead_page *page,
				uint64_t *ticket)
{
	struct ssc_call *call = NULL;
	struct slot *slot;

	pthread_mutex_lock(&ahead->lock);
	drop_old_locked(ahead, ssc_clock_now_ns());
	slot = find_locked(ahead, page);
	if (slot != NULL) {
		const uint64_t by = slot->call->answer_by_ns;

		while (!slot->is_done && ssc_clock_now_ns() < by)
			ssc_clock_wait(&ahead->cond, &ahead->lock, by);
		if (is_good(slot, page)) {
			*ticket = slot->ticket;
			call = ssc_call_get(slot->call);
		}
		put_locked(slot);
	}
	pthread_mutex_unlock(&ahead->lock);
	return call;
}
