/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * budget.h - one bound on the bytes that all upstreams together keep in flight.
 *
 * Object     struct ssc_budget, one per module. A request that does not fit waits in FIFO order.
 * Fairness   Waiters are served first come, first served. A woken waiter keeps its place and the
 *            room it was woken for until it takes or leaves, so it must do one of the two, or
 *            those behind it wait for ever. A request larger than the whole budget is let through
 *            when nothing else is in flight.
 * Lifetime   An owner leaves before it frees its waiter, even if its last take succeeded.
 * Locking    one leaf mutex. wake runs without it, on the thread that made room (by giving bytes
 *            back, leaving, taking less than it had waited for, or raising the limit).
 * Threads    any; one waiter's take and leave not at the same time. Only leave may wait.
 */
#ifndef SSC_BUDGET_H
#define SSC_BUDGET_H

#include "ssc/base.h"

struct ssc_budget;

/* Embedded in who waits. Zeroed at birth. */
struct ssc_budget_waiter {
	void (*wake)(struct ssc_budget_waiter *w); /* there is room: take again. Set by the owner */
	/* guarded by the budget's lock */
	struct ssc_budget_waiter *next;
	uint64_t want_bytes;
	unsigned int n_waking; /* wakes running now */
	bool queued;
	bool woken; /* and neither came back nor left since */
};

/** @brief Never NULL: memory runs out = abort, as in the host. */
struct ssc_budget *ssc_budget_new(uint64_t max_bytes);

/** @brief Free: all bytes are given back and nobody waits. NULL is allowed. */
void ssc_budget_free(struct ssc_budget *b);

/** @brief Change the bound. What is taken already stays taken. */
void ssc_budget_set_max(struct ssc_budget *b, uint64_t max_bytes) SSC_NONNULL;

/**
 * @brief Take @bytes. False: no room now, and @w will be woken once when there is.
 *
 * Called again while @w waits, it keeps its place in the queue, and @bytes is what counts from now.
 */
bool ssc_budget_take(struct ssc_budget *b, uint64_t bytes,
		     struct ssc_budget_waiter *w) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Give @bytes back, and wake who now fits. */
void ssc_budget_give(struct ssc_budget *b, uint64_t bytes) SSC_NONNULL;

/**
 * @brief Take @w off the queue, if it is there. After this its wake does not run.
 *
 * Blocks: while its wake runs, so not from within wake, nor with a lock held that wake takes.
 */
void ssc_budget_leave(struct ssc_budget *b, struct ssc_budget_waiter *w) SSC_NONNULL;

/** @brief Bytes taken now. */
uint64_t ssc_budget_used(struct ssc_budget *b) SSC_NONNULL;

#endif /* SSC_BUDGET_H */
