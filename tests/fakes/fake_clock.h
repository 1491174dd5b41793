/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_clock.h - a clock that stands still until a test moves it.
 *
 * Waits with a deadline (ssc_clock_wait) look at it about once a real millisecond, so a test that
 * moves it need not know who waits. Threads: start and stop while no other thread runs; else any.
 */
#ifndef SSC_FAKE_CLOCK_H
#define SSC_FAKE_CLOCK_H

#include <stdint.h>

/** @brief Put the fake in place, at @now_ns. */
void fake_clock_start(uint64_t now_ns);

/** @brief Bring the real clock back. */
void fake_clock_stop(void);

void fake_clock_advance(uint64_t ns);

#endif /* SSC_FAKE_CLOCK_H */
