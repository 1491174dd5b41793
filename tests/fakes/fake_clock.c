/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_clock.c - one atomic number as the time.
 */
#include <stdatomic.h>
#include <time.h>

#include "fake_clock.h"
#include "ssc/clock.h"

static _Atomic uint64_t fake_now_ns;

static uint64_t fake_now(void)
{
	return atomic_load(&fake_now_ns);
}

static void fake_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	struct timespec ts;

	if (fake_now() >= until_ns)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += SSC_NS_PER_MS;
	if (ts.tv_nsec >= (long)SSC_NS_PER_S) {
		ts.tv_nsec -= (long)SSC_NS_PER_S;
		ts.tv_sec++;
	}
	pthread_cond_timedwait(cond, lock, &ts);
}

void fake_clock_start(uint64_t now_ns)
{
	atomic_store(&fake_now_ns, now_ns);
	ssc_clock_set(fake_now, fake_wait);
}

void fake_clock_stop(void)
{
	ssc_clock_set(NULL, NULL);
}

void fake_clock_advance(uint64_t ns)
{
	atomic_fetch_add(&fake_now_ns, ns);
}
