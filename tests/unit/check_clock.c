/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_clock.c - the real clock, the fake one, and waiting by either.
 */
#include <errno.h>

#include "fake_clock.h"
#include "ssc/clock.h"
#include "unit.h"

START_TEST(real_clock_is_the_monotonic_one)
{
	struct timespec ts;
	uint64_t before, now, after;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	before = (uint64_t)ts.tv_sec * SSC_NS_PER_S + ts.tv_nsec;
	now = ssc_clock_now_ns();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	after = (uint64_t)ts.tv_sec * SSC_NS_PER_S + ts.tv_nsec;
	ck_assert_uint_le(before, now);
	ck_assert_uint_le(now, after);
}
END_TEST

START_TEST(fake_clock_moves_only_by_hand)
{
	fake_clock_start(5);
	ck_assert_uint_eq(ssc_clock_now_ns(), 5);
	fake_clock_advance(7);
	ck_assert_uint_eq(ssc_clock_now_ns(), 12);
	ck_assert_uint_eq(ssc_clock_now_ns(), 12);
	fake_clock_stop();
	ck_assert_uint_ne(ssc_clock_now_ns(), 12);
}
END_TEST

START_TEST(wait_ends_at_its_deadline)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;
	uint64_t until = ssc_clock_now_ns() + 2 * SSC_NS_PER_MS;

	ssc_clock_cond_init(&cond);
	pthread_mutex_lock(&lock);
	while (ssc_clock_now_ns() < until)
		ssc_clock_wait(&cond, &lock, until);
	/* One that is past already does not block, or this test would run into its time limit. */
	ssc_clock_wait(&cond, &lock, 1);
	ck_assert_int_eq(pthread_mutex_trylock(&lock), EBUSY); /* held again */
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&cond);
}
END_TEST

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool waits, signalled, woke;
	uint64_t until_ns;
};

static void *wait_for_signal(void *arg)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->waits = true;
	while (!w->signalled && ssc_clock_now_ns() < w->until_ns)
		ssc_clock_wait(&w->cond, &w->lock, w->until_ns);
	w->woke = true;
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void begin(struct waiter *w, pthread_t *thread)
{
	bool waits;

	pthread_mutex_init(&w->lock, NULL);
	ssc_clock_cond_init(&w->cond);
	ck_assert_int_eq(pthread_create(thread, NULL, wait_for_signal, w), 0);
	do { /* the lock is free only before it waits, and while it does */
		pthread_mutex_lock(&w->lock);
		waits = w->waits;
		pthread_mutex_unlock(&w->lock);
	} while (!waits);
}

START_TEST(wait_ends_by_a_signal)
{
	/* In an hour by the real clock; so only the signal can end it. */
	struct waiter w = {.until_ns = ssc_clock_now_ns() + 3600 * SSC_NS_PER_S};
	pthread_t thread;

	begin(&w, &thread);
	pthread_mutex_lock(&w.lock);
	ck_assert(!w.woke);
	w.signalled = true;
	pthread_cond_signal(&w.cond);
	pthread_mutex_unlock(&w.lock);
	pthread_join(thread, NULL);
	ck_assert(w.woke);
}
END_TEST

START_TEST(wait_by_the_fake_clock_ends_when_that_is_moved)
{
	struct waiter w = {.until_ns = 3600 * SSC_NS_PER_S};
	pthread_t thread;

	fake_clock_start(1);
	begin(&w, &thread);
	fake_clock_advance(3599 * SSC_NS_PER_S);
	pthread_mutex_lock(&w.lock);
	ck_assert(!w.woke);
	pthread_mutex_unlock(&w.lock);
	fake_clock_advance(SSC_NS_PER_S);
	pthread_join(thread, NULL);
	ck_assert(w.woke);
	fake_clock_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("clock");
	TCase *happy = tcase_create("happy");
	TCase *waits = tcase_create("waits");

	tcase_add_test(happy, real_clock_is_the_monotonic_one);
	tcase_add_test(happy, fake_clock_moves_only_by_hand);
	suite_add_tcase(suite, happy);
	tcase_add_test(waits, wait_ends_at_its_deadline);
	tcase_add_test(waits, wait_ends_by_a_signal);
	tcase_add_test(waits, wait_by_the_fake_clock_ends_when_that_is_moved);
	suite_add_tcase(suite, waits);
	return unit_main(suite);
}
