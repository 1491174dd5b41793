/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * budget.h - one bound on the bytes that all upstreams together keep in flight.
 *
 * Object     struct ssc_budget, one per module. A request that does not fit waits in FIFO order.
 * Fairness   Waiters are served first come, first served; a request larger than the whole budget is
 *            let through when nothing else is in flight, so nothing waits for ever.
 * Locking    one leaf mutex. wake runs without it, on the thread that gave bytes back.
 * Threads    any. Nothing blocks.
 */
#ifndef SSC_BUDGET_H
#define SSC_BUDGET_H

#include "ssc/base.h"

struct ssc_budget;

/* Embedded in who waits. Zeroed at birth. */
struct ssc_budget_waiter {
	void (*wake)(struct ssc_budget_waiter *w); /* room was made: try again. Set by the owner */
	/* guarded by the budget's lock */
	struct ssc_budget_waiter *next;
	bool queued;
};

struct ssc_budget *ssc_budget_new(uint64_t max_bytes);
void ssc_budget_free(struct ssc_budget *b);
void ssc_budget_set_max(struct ssc_budget *b, uint64_t max_bytes) SSC_NONNULL;

/** @brief Take @bytes. False: no room now, and @w will be woken once when some was given back. */
bool ssc_budget_take(struct ssc_budget *b, uint64_t bytes,
		     struct ssc_budget_waiter *w) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Give @bytes back, and wake who waits. */
void ssc_budget_give(struct ssc_budget *b, uint64_t bytes) SSC_NONNULL;

/** @brief Take @w off the queue, if it is there. After this its wake does not run. */
void ssc_budget_leave(struct ssc_budget *b, struct ssc_budget_waiter *w) SSC_NONNULL;

uint64_t ssc_budget_used(struct ssc_budget *b) SSC_NONNULL;

#endif /* SSC_BUDGET_H */
