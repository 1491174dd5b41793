/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * timer.h - one thread that runs things later: one-shot timers on the clock of clock.h.
 *
 * Object     struct ssc_timers, one per module, with its thread. struct ssc_timer is embedded in what
 *            it belongs to, and belongs to one struct ssc_timers for its life.
 * Lifetime   ssc_timer_init -> arm, arm again, disarm, any number of times -> ssc_timer_disarm -> free.
 * Running    fire runs on the timer thread with no lock held; it must not block for long, since it
 *            delays the others. It may arm its own timer again, and it may free what holds the timer
 *            if nobody else can reach it.
 * Threads    any. Locking: one leaf mutex, never held while fire runs.
 */
#ifndef SSC_TIMER_H
#define SSC_TIMER_H

#include "ssc/base.h"

struct ssc_timers;

struct ssc_timer {
	void (*fire)(struct ssc_timer *timer);
	struct ssc_timers *timers;
	/* guarded by the timers' lock */
	uint64_t at_ns;
	size_t place; /* in the heap, from 1; 0: not armed */
};

/** @brief The thread starts here. NULL when none can be had (logged). */
struct ssc_timers *ssc_timers_new(void) SSC_MUST_CHECK;

/** @brief Stop the thread and free: no timer is armed or will be any more. NULL is allowed. */
void ssc_timers_free(struct ssc_timers *timers);

void ssc_timer_init(struct ssc_timer *timer, struct ssc_timers *timers,
		    void (*fire)(struct ssc_timer *timer)) SSC_NONNULL;

/** @brief Let it fire once at @at_ns, instead of whenever it was to fire before. */
void ssc_timer_arm(struct ssc_timer *timer, uint64_t at_ns) SSC_NONNULL;

/** @brief As arm, but never later than it is armed for already. */
void ssc_timer_arm_earlier(struct ssc_timer *timer, uint64_t at_ns) SSC_NONNULL;

/**
 * @brief It will not fire any more, and does not run when this returns.
 *
 * Blocks: while it runs, so not with a lock held that fire takes; from within its own fire it does
 * not wait.
 */
void ssc_timer_disarm(struct ssc_timer *timer) SSC_NONNULL;

#endif /* SSC_TIMER_H */
