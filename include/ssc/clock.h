/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * clock.h - the one source of time for core and upstream code, so that tests can hold it still.
 *
 * Threads: any. Units: ns since an arbitrary start, monotonic.
 */
#ifndef SSC_CLOCK_H
#define SSC_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#include "ssc/base.h"

/** @brief Now, in ns on the monotonic clock (or on the fake one of a test). */
uint64_t ssc_clock_now_ns(void);

/** @brief Initialize @cond for ssc_clock_wait. */
void ssc_clock_cond_init(pthread_cond_t *cond) SSC_NONNULL;

/**
 * @brief Wait for @cond until @until_ns on this clock. May return early, as pthread_cond_wait may:
 *        the caller looks at its condition and at the clock again.
 *
 * Locks: the caller holds @lock, which is free while it waits.
 */
void ssc_clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns) SSC_NONNULL;

/**
 * @brief Replace the clock and the waiting by it, for tests only; NULL brings the real one back.
 *
 * Threads: call while no other thread of ours runs.
 */
void ssc_clock_set(uint64_t (*now_ns)(void),
		   void (*wait)(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns));

#endif /* SSC_CLOCK_H */
