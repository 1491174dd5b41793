/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_source_thread.c - what becomes of mounts and unmounts while no thread can be started for them.
 *
 * Linked with --wrap=pthread_create, which fails while the test says so.
 */
#include <errno.h>

#include "core/source_internal.h"
#include "source_unit.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

static atomic_bool is_refused;
static atomic_uint n_refused;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (!atomic_load(&is_refused))
		return __real_pthread_create(thread, attr, run, arg);
	atomic_fetch_add(&n_refused, 1);
	return EAGAIN;
}

static void setup(void)
{
	unit_setup();
	atomic_store(&is_refused, true);
	atomic_store(&n_refused, 0);
}

static void teardown(void)
{
	atomic_store(&is_refused, false);
	unit_teardown();
}

/* The cache's threads have ended: the next work needs a new one. */
static void await_no_thread(void)
{
	uint32_t n;

	do {
		sched_yield();
		pthread_mutex_lock(&cache->lock);
		n = cache->n_threads;
		pthread_mutex_unlock(&cache->lock);
	} while (n != 0);
}

START_TEST(a_mount_waits_for_a_thread)
{
	struct asker asker;

	ask(&asker, 1);
	ck_assert(!is_done(&asker));
	ck_assert_uint_eq(atomic_load(&n_refused), 1);
	advance(SSC_NS_PER_S);
	ck_assert_uint_eq(atomic_load(&n_refused), 2);
	atomic_store(&is_refused, false);
	advance(SSC_NS_PER_S);
	ck_assert_int_eq(asker_await(&asker), SSC_OK);
	fake_source_check(asker.source, 1);
	ssc_source_put(asker.source);
}
END_TEST

START_TEST(who_waits_for_it_does_so_until_the_deadline)
{
	struct asker asker;

	ask(&asker, 1);
	advance(WAIT_NS);
	ck_assert_int_eq(asker_await(&asker), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 0);
}
END_TEST

START_TEST(an_unmount_waits_for_a_thread)
{
	atomic_store(&is_refused, false);
	use(1);
	use(2);
	await_no_thread();
	atomic_store(&is_refused, true);
	advance(IDLE_NS);
	ck_assert_uint_eq(stats().n_leaving, 2);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_unmounts), 0);
	atomic_store(&is_refused, false);
	advance(SSC_NS_PER_S);
	await_sources(0);
}
END_TEST

START_TEST(stop_does_it_itself)
{
	struct asker asker;

	atomic_store(&is_refused, false);
	use(1);
	use(2);
	await_no_thread();
	atomic_store(&is_refused, true);
	ask(&asker, 3);
	ck_assert(ssc_source_cache_stop(cache, UINT64_MAX));
	ck_assert_int_eq(asker_await(&asker), SSC_E_SHUTDOWN);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_unmounts), 1);
	ck_assert_uint_eq(fake_source_read(&fake_sources[2].n_unmounts), 1);
	ck_assert_uint_eq(fake_source_read(&fake_sources[3].n_attempts), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source_thread");
	TCase *tc = tcase_create("no thread");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_mount_waits_for_a_thread);
	tcase_add_test(tc, who_waits_for_it_does_so_until_the_deadline);
	tcase_add_test(tc, an_unmount_waits_for_a_thread);
	tcase_add_test(tc, stop_does_it_itself);
	suite_add_tcase(suite, tc);
	return unit_main(suite);
}
