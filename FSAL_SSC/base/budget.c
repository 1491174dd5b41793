/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * budget.c - a counting bound with a FIFO of waiters.
 *
 * One rule decides everything: a request fits when what is taken, what all those ahead of it in the
 * queue want, and its own bytes stay within the bound (or when it is first and nothing is taken).
 * A newcomer has the whole queue ahead of it, so nobody overtakes and room found for a woken waiter
 * is not stolen before it comes back.
 *
 * Waking happens one by one: choose under the lock, call without it, look at the queue afresh. A
 * waiter whose wake runs has n_waking > 0; leave waits for that to end, since its owner frees it.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "ssc/budget.h"

struct ssc_budget {
	pthread_mutex_t lock;
	/* guarded by lock */
	pthread_cond_t woke; /* some n_waking fell to 0 */
	uint64_t max_bytes;
	uint64_t used_bytes;
	struct ssc_budget_waiter *head;
	struct ssc_budget_waiter **tail; /* where the next one is linked */
};

struct ssc_budget *ssc_budget_new(uint64_t max_bytes)
{
	struct ssc_budget *b = calloc(1, sizeof(*b));

	if (b == NULL)
		abort();
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->woke, NULL);
	b->max_bytes = max_bytes;
	b->tail = &b->head;
	return b;
}

void ssc_budget_free(struct ssc_budget *b)
{
	if (b == NULL)
		return;
	assert(b->used_bytes == 0 && b->head == NULL);
	pthread_cond_destroy(&b->woke);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static uint64_t add_saturated(uint64_t x, uint64_t y)
{
	uint64_t sum;

	return __builtin_add_overflow(x, y, &sum) ? UINT64_MAX : sum;
}

static bool fits_locked(const struct ssc_budget *b, uint64_t ahead_bytes, uint64_t bytes)
{
	uint64_t before = add_saturated(b->used_bytes, ahead_bytes);

	return before == 0 || add_saturated(before, bytes) <= b->max_bytes;
}

static void enqueue_locked(struct ssc_budget *b, struct ssc_budget_waiter *w)
{
	w->next = NULL;
	w->queued = true;
	*b->tail = w;
	b->tail = &w->next;
}

static void dequeue_locked(struct ssc_budget *b, struct ssc_budget_waiter *w)
{
	struct ssc_budget_waiter **link = &b->head;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	if (b->tail == &w->next)
		b->tail = link;
	w->next = NULL;
	w->queued = false;
	w->woken = false;
}

/* What those want that are served before @w, or before a newcomer when @w does not wait yet. */
static uint64_t ahead_locked(const struct ssc_budget *b, const struct ssc_budget_waiter *w)
{
	const struct ssc_budget_waiter *other;
	uint64_t bytes = 0;

	for (other = b->head; other != NULL && other != w; other = other->next)
		bytes = add_saturated(bytes, other->want_bytes);
	return bytes;
}

static struct ssc_budget_waiter *next_to_wake_locked(const struct ssc_budget *b)
{
	struct ssc_budget_waiter *w;
	uint64_t ahead = 0;

	for (w = b->head; w != NULL && fits_locked(b, ahead, w->want_bytes); w = w->next) {
		if (!w->woken)
			return w;
		ahead = add_saturated(ahead, w->want_bytes);
	}
	return NULL;
}

/* Drops the lock round each wake; holds it again on return. */
static void wake_locked(struct ssc_budget *b)
{
	struct ssc_budget_waiter *w;

	while ((w = next_to_wake_locked(b)) != NULL) {
		w->woken = true;
		w->n_waking++;
		pthread_mutex_unlock(&b->lock);
		w->wake(w);
		pthread_mutex_lock(&b->lock);
		if (--w->n_waking == 0)
			pthread_cond_broadcast(&b->woke);
	}
}

void ssc_budget_set_max(struct ssc_budget *b, uint64_t max_bytes)
{
	pthread_mutex_lock(&b->lock);
	b->max_bytes = max_bytes;
	wake_locked(b);
	pthread_mutex_unlock(&b->lock);
}

bool ssc_budget_take(struct ssc_budget *b, uint64_t bytes, struct ssc_budget_waiter *w)
{
	bool fits;

	pthread_mutex_lock(&b->lock);
	fits = fits_locked(b, ahead_locked(b, w), bytes);
	if (fits) {
		b->used_bytes += bytes;
		if (w->queued) {
			dequeue_locked(b, w);
			wake_locked(b); /* it may have taken less than it had waited for */
		}
	} else {
		w->want_bytes = bytes;
		w->woken = false;
		if (!w->queued)
			enqueue_locked(b, w);
		else
			wake_locked(b);
	}
	pthread_mutex_unlock(&b->lock);
	return fits;
}

void ssc_budget_give(struct ssc_budget *b, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	assert(bytes <= b->used_bytes);
	b->used_bytes -= bytes;
	wake_locked(b);
	pthread_mutex_unlock(&b->lock);
}

void ssc_budget_leave(struct ssc_budget *b, struct ssc_budget_waiter *w)
{
	pthread_mutex_lock(&b->lock);
	if (w->queued) {
		dequeue_locked(b, w);
		wake_locked(b);
	}
	while (w->n_waking > 0)
		pthread_cond_wait(&b->woke, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

uint64_t ssc_budget_used(struct ssc_budget *b)
{
	uint64_t used;

	pthread_mutex_lock(&b->lock);
	used = b->used_bytes;
	pthread_mutex_unlock(&b->lock);
	return used;
}
