/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * clock.c - CLOCK_MONOTONIC behind a pair of functions that a test may replace.
 *
 * The pair is written only while one thread runs (ssc_clock_set), so it needs no lock.
 */
#include <stdlib.h>
#include <time.h>

#include "ssc/base.h"
#include "ssc/clock.h"

static uint64_t real_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SSC_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void real_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until_ns / SSC_NS_PER_S),
		.tv_nsec = (long)(until_ns % SSC_NS_PER_S),
	};

	pthread_cond_timedwait(cond, lock, &ts);
}

static uint64_t (*clock_now_ns)(void) = real_now_ns;
static void (*clock_wait)(pthread_cond_t *, pthread_mutex_t *, uint64_t) = real_wait;

uint64_t ssc_clock_now_ns(void)
{
	return clock_now_ns();
}

void ssc_clock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	/* Neither can fail with these arguments but for memory, and then the host aborts too. */
	if (pthread_condattr_init(&attr) != 0 ||
	    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(cond, &attr) != 0)
		abort();
	pthread_condattr_destroy(&attr);
}

void ssc_clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	clock_wait(cond, lock, until_ns);
}

void ssc_clock_set(uint64_t (*now_ns)(void),
		   void (*wait)(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns))
{
	clock_now_ns = now_ns != NULL ? now_ns : real_now_ns;
	clock_wait = wait != NULL ? wait : real_wait;
}
