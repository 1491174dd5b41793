/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * clock.h - the one source of time for core and upstream code, so that tests can hold it still.
 *
 * Threads: any. Units: ns since an arbitrary start, monotonic.
 */
#ifndef SSC_CLOCK_H
#define SSC_CLOCK_H

#include <stdint.h>

/** @brief Now, in ns on the monotonic clock (or on the fake one of a test). */
uint64_t ssc_clock_now_ns(void);

/**
 * @brief Replace the clock, for tests only; NULL brings the real one back.
 *
 * Threads: call while no other thread of ours runs.
 */
void ssc_clock_set(uint64_t (*now_ns)(void));

#endif /* SSC_CLOCK_H */
