/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_source_cache.c - getting a source: hits, misses, waiting for one attempt, failures, limits.
 */
#include "source_unit.h"

enum { N = 10 };

/* ---- hits and misses ---- */

START_TEST(a_hit_costs_no_call)
{
	struct ssc_source_cache_stats s;

	for (int i = 0; i < 1000; i++)
		use(1);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
	s = stats();
	ck_assert_uint_eq(s.misses, 1);
	ck_assert_uint_eq(s.hits, 999);
	ck_assert_uint_eq(s.mounts, 1);
	ck_assert_uint_eq(s.mount_rpcs, FAKE_MOUNT_RPCS);
	ck_assert_uint_eq(s.unmounts + s.waits + s.failures + s.timeouts + s.refused, 0);
}
END_TEST

START_TEST(equal_keys_share_and_others_do_not)
{
	struct ssc_source_key key = fake_source_key(1);
	struct ssc_source *a = get(1), *b = get(1), *c;

	ck_assert_ptr_eq(a, b);
	key.conn = 5; /* an export whose connection keys differ */
	ck_assert_int_eq(ssc_source_cache_get(cache, &key, &c), SSC_OK);
	ck_assert_ptr_ne(a, c);
	ssc_source_put(c);
	key = fake_source_key(1);
	key.version = SSC_SOURCE_V3;
	ck_assert_int_eq(ssc_source_cache_get(cache, &key, &c), SSC_OK);
	ck_assert_ptr_ne(a, c);
	ck_assert_uint_eq(stats().mounts, 3);
	ssc_source_put(c);
	ssc_source_put(b);
	ssc_source_put(a);
}
END_TEST

START_TEST(try_finds_only_what_is_mounted)
{
	struct ssc_source *source;
	struct asker asker;

	ck_assert_ptr_null(try_get(1));
	fake_source_hold_mounts(1, true);
	ask(&asker, 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	ck_assert_ptr_null(try_get(1));
	fake_source_hold_mounts(1, false);
	ck_assert_int_eq(asker_await(&asker), SSC_OK);
	source = try_get(1);
	ck_assert_ptr_eq(source, asker.source);
	ssc_source_put(source);
	ssc_source_put(asker.source);
	ck_assert_uint_eq(stats().hits, 1);
}
END_TEST

START_TEST(a_source_is_warmed_in_the_background)
{
	struct ssc_source_key key = fake_source_key(1);

	ssc_source_cache_warm(cache, &key);
	fake_source_await(&fake_sources[1].n_mounted, 1);
	use(1);
	ssc_source_cache_warm(cache, &key);
	use(1);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
}
END_TEST

/* ---- waiting ---- */

START_TEST(an_asker_is_never_blocked)
{
	struct asker slow, other;

	fake_source_hold_mounts(1, true);
	ask(&slow, 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	ck_assert(!is_done(&slow));
	ck_assert_uint_eq(fake_sources[1].until_ns, START_NS + WAIT_NS);
	ask(&other, 2); /* is not held up by it */
	ck_assert_int_eq(asker_await(&other), SSC_OK);
	fake_source_hold_mounts(1, false);
	ck_assert_int_eq(asker_await(&slow), SSC_OK);
	fake_source_check(slow.source, 1);
	ssc_source_put(slow.source);
	ssc_source_put(other.source);
	ask(&slow, 1); /* a hit is answered at once */
	ck_assert(is_done(&slow));
	ssc_source_put(slow.source);
}
END_TEST

START_TEST(all_who_ask_share_one_attempt)
{
	struct asker askers[N];

	fake_source_hold_mounts(1, true);
	for (int i = 0; i < N; i++)
		ask(&askers[i], 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	fake_source_hold_mounts(1, false);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(asker_await(&askers[i]), SSC_OK);
		ck_assert_ptr_eq(askers[i].source, askers[0].source);
	}
	for (int i = 0; i < N; i++) {
		fake_source_check(askers[i].source, 1);
		ssc_source_put(askers[i].source);
	}
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
	ck_assert_uint_eq(stats().misses, 1);
	ck_assert_uint_eq(stats().waits, N - 1);
}
END_TEST

/*
 * CVE-2023-1652 of another server: a waiter freed its entry and left it in the queue. Ours are overwritten when
 * they are told, and the mount's end, expiry and stop go through the lists afterwards.
 */
START_TEST(a_failure_wakes_all_and_is_forgotten)
{
	struct asker askers[N];

	fake_source_hold_mounts(1, true);
	fake_source_set_err(1, SSC_E_ACCES);
	for (int i = 0; i < N; i++)
		ask(&askers[i], 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	fake_source_hold_mounts(1, false);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(asker_await(&askers[i]), SSC_E_ACCES);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
	await_sources(0);
	ck_assert_int_eq(get_err(1), SSC_E_ACCES);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 2);
	fake_source_set_err(1, SSC_OK);
	use(1);
	advance(WAIT_NS);
	ck_assert_uint_eq(stats().failures, 2);
	ck_assert_uint_eq(stats().mount_rpcs, 2 + FAKE_MOUNT_RPCS);
	ck_assert_uint_eq(stats().timeouts, 0);
}
END_TEST

START_TEST(waiting_is_bounded_and_the_attempt_goes_on)
{
	struct asker early, late;

	fake_source_hold_mounts(1, true);
	ask(&early, 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	advance(WAIT_NS / 2);
	ask(&late, 1);
	advance(WAIT_NS / 2 - 3);
	ck_assert(!is_done(&early));
	advance(0);
	ck_assert_int_eq(asker_await(&early), SSC_E_TIMEDOUT);
	ck_assert(!is_done(&late)); /* its own time is not over */
	ask(&early, 1);             /* joins, no second attempt */
	fake_source_hold_mounts(1, false);
	ck_assert_int_eq(asker_await(&late), SSC_OK);
	ck_assert_int_eq(asker_await(&early), SSC_OK);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
	ck_assert_uint_eq(stats().timeouts, 1);
	ssc_source_put(early.source);
	ssc_source_put(late.source);
}
END_TEST

START_TEST(each_waits_for_its_own_time)
{
	struct asker askers[N];

	fake_source_hold_mounts(1, true);
	for (int i = 0; i < N; i++) {
		ask(&askers[i], 1);
		advance(SSC_NS_PER_S - 1);
	}
	advance(WAIT_NS - N * SSC_NS_PER_S - 2);
	for (int i = 0; i < N; i++) {
		ck_assert(!is_done(&askers[i]));
		advance(i == 0 ? 0 : SSC_NS_PER_S - 1);
		ck_assert_int_eq(asker_await(&askers[i]), SSC_E_TIMEDOUT);
	}
	fake_source_hold_mounts(1, false);
}
END_TEST

START_TEST(what_nobody_waits_for_any_more_is_kept)
{
	struct asker asker;

	fake_source_hold_mounts(1, true);
	ask(&asker, 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	advance(WAIT_NS);
	ck_assert_int_eq(asker_await(&asker), SSC_E_TIMEDOUT);
	fake_source_hold_mounts(1, false);
	fake_source_await(&fake_sources[1].n_mounted, 1);
	use(1);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
}
END_TEST

START_TEST(a_late_failure_is_told_to_nobody_twice)
{
	struct asker early, late;

	fake_source_hold_mounts(1, true);
	fake_source_set_err(1, SSC_E_DOWN);
	ask(&early, 1);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	advance(WAIT_NS);
	ask(&late, 1);
	ck_assert_int_eq(asker_await(&early), SSC_E_TIMEDOUT);
	fake_source_hold_mounts(1, false);
	ck_assert_int_eq(asker_await(&late), SSC_E_DOWN);
	await_sources(0);
}
END_TEST

START_TEST(a_wait_can_be_cancelled_until_it_is_told)
{
	struct asker gone, stays;

	fake_source_hold_mounts(1, true);
	ask_cancellable(&gone, 1, true);
	ask(&stays, 1);
	ck_assert(ssc_source_cache_cancel(cache, &gone.wait));
	ck_assert(!ssc_source_cache_cancel(cache, &gone.wait));
	memset(&gone.wait, 0xa5, sizeof(gone.wait));
	fake_source_hold_mounts(1, false);
	ck_assert_int_eq(asker_await(&stays), SSC_OK);
	ck_assert(!is_done(&gone));
	advance(WAIT_NS);
	ck_assert(!is_done(&gone));
	ssc_source_put(stays.source);
}
END_TEST

/* done of one asks again at once, on the cache's own thread. */
struct again {
	struct ssc_source_wait wait; /* first */
	struct asker asker;
	enum ssc_err err;
	atomic_bool has_asked;
};

static void ask_again(struct ssc_source_wait *wait, enum ssc_err err, struct ssc_source *source)
{
	struct again *again = (struct again *)wait;

	again->err = err;
	if (source != NULL)
		ssc_source_put_dead(source);
	ask(&again->asker, 1);
	atomic_store(&again->has_asked, true);
}

START_TEST(a_done_may_ask_again)
{
	struct ssc_source_key key = fake_source_key(1);
	struct again again = {.wait.done = ask_again};

	ssc_source_cache_get_async(cache, &key, &again.wait);
	while (!atomic_load(&again.has_asked))
		sched_yield();
	ck_assert_int_eq(again.err, SSC_OK);
	ck_assert_int_eq(asker_await(&again.asker), SSC_OK);
	fake_source_check(again.asker.source, 1);
	ssc_source_put(again.asker.source);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 2);
}
END_TEST

/* ---- limits ---- */

START_TEST(attempts_at_a_time_are_bounded)
{
	struct asker askers[5];

	for (unsigned int i = 0; i < 5; i++) {
		fake_source_hold_mounts(i + 1, true);
		ask(&askers[i], i + 1);
		if (i < 4)
			fake_source_await(&fake_sources[i + 1].n_mounts_held, 1);
	}
	ck_assert_uint_eq(fake_source_read(&fake_sources[5].n_attempts), 0);
	fake_source_hold_mounts(2, false);
	fake_source_await(&fake_sources[5].n_mounts_held, 1);
	for (unsigned int i = 0; i < 5; i++)
		fake_source_hold_mounts(i + 1, false);
	for (unsigned int i = 0; i < 5; i++) {
		ck_assert_int_eq(asker_await(&askers[i]), SSC_OK);
		ssc_source_put(askers[i].source);
	}
}
END_TEST

START_TEST(mounts_go_before_unmounts)
{
	struct ssc_source *source;

	cache_end();
	cache_start(16, 1);
	source = get(2);
	use(3);
	fake_source_hold_unmounts(3, true);
	advance(IDLE_NS);
	fake_source_await(&fake_sources[3].n_unmounts_held, 1); /* the only thread is there */
	ssc_source_put_dead(source);
	ck_assert_uint_eq(stats().n_leaving, 2);
	fake_source_hold_mounts(4, true);
	{
		struct asker asker;

		ask(&asker, 4);
		fake_source_hold_unmounts(3, false);
		fake_source_await(&fake_sources[4].n_mounts_held, 1);
		ck_assert_uint_eq(fake_source_read(&fake_sources[2].n_unmounts), 0);
		fake_source_hold_mounts(4, false);
		ck_assert_int_eq(asker_await(&asker), SSC_OK);
		ssc_source_put(asker.source);
	}
	fake_source_await(&fake_sources[2].n_unmounts, 1);
}
END_TEST

static void fill(unsigned int n)
{
	cache_end();
	cache_start(n, 4);
	for (unsigned int i = 1; i <= n; i++) {
		use(i);
		advance(SSC_NS_PER_S);
	}
}

START_TEST(over_the_limit_the_longest_idle_goes)
{
	struct ssc_source *source;

	fill(4);
	source = get(1); /* in use, though the oldest */
	use(2);          /* used since */
	use(5);
	fake_source_await(&fake_sources[3].n_mounted, 0);
	ck_assert_uint_eq(stats().evictions, 1);
	ck_assert_uint_eq(stats().n_sources, 4);
	ssc_source_put(source);
	for (unsigned int i = 1; i <= 5; i++)
		ck_assert_uint_eq(fake_source_read(&fake_sources[i].n_unmounts), i == 3);
}
END_TEST

START_TEST(when_all_are_in_use_an_asker_is_refused)
{
	struct ssc_source *sources[4];
	struct asker pending;

	fill(4);
	for (unsigned int i = 0; i < 4; i++)
		sources[i] = get(i + 1);
	ck_assert_int_eq(get_err(5), SSC_E_JUKEBOX);
	ssc_source_put(sources[3]);
	fake_source_hold_mounts(5, true);
	ask(&pending, 5);
	ck_assert_int_eq(get_err(6), SSC_E_JUKEBOX); /* what is being mounted counts */
	ck_assert_uint_eq(stats().refused, 2);
	fake_source_hold_mounts(5, false);
	ck_assert_int_eq(asker_await(&pending), SSC_OK);
	ssc_source_put(pending.source);
	use(6);
	for (unsigned int i = 0; i < 3; i++)
		ssc_source_put(sources[i]);
}
END_TEST

START_TEST(what_leaves_slowly_is_bounded_too)
{
	struct ssc_source_key key = fake_source_key(9);

	fill(4);
	for (unsigned int i = 1; i <= 8; i++)
		fake_source_hold_unmounts(i, true);
	use(5);
	use(6);
	use(7);
	ssc_source_cache_warm(cache, &key); /* evicts nobody */
	ck_assert_uint_eq(stats().evictions, 3);
	use(8);
	ck_assert_uint_eq(stats().n_leaving, 4);
	ck_assert_int_eq(get_err(9), SSC_E_JUKEBOX);
	ck_assert_uint_eq(stats().n_sources, 4); /* and nobody was evicted for nothing */
	for (unsigned int i = 1; i <= 8; i++)
		fake_source_hold_unmounts(i, false);
	await_sources(4);
	use(9);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source_cache");
	TCase *find = tcase_create("hits and misses");
	TCase *wait = tcase_create("waiting");
	TCase *limits = tcase_create("limits");

	tcase_add_checked_fixture(find, unit_setup, unit_teardown);
	tcase_add_test(find, a_hit_costs_no_call);
	tcase_add_test(find, equal_keys_share_and_others_do_not);
	tcase_add_test(find, try_finds_only_what_is_mounted);
	tcase_add_test(find, a_source_is_warmed_in_the_background);
	suite_add_tcase(suite, find);
	tcase_add_checked_fixture(wait, unit_setup, unit_teardown);
	tcase_add_test(wait, an_asker_is_never_blocked);
	tcase_add_test(wait, all_who_ask_share_one_attempt);
	tcase_add_test(wait, a_failure_wakes_all_and_is_forgotten);
	tcase_add_test(wait, waiting_is_bounded_and_the_attempt_goes_on);
	tcase_add_test(wait, each_waits_for_its_own_time);
	tcase_add_test(wait, what_nobody_waits_for_any_more_is_kept);
	tcase_add_test(wait, a_late_failure_is_told_to_nobody_twice);
	tcase_add_test(wait, a_wait_can_be_cancelled_until_it_is_told);
	tcase_add_test(wait, a_done_may_ask_again);
	suite_add_tcase(suite, wait);
	tcase_add_checked_fixture(limits, unit_setup, unit_teardown);
	tcase_add_test(limits, attempts_at_a_time_are_bounded);
	tcase_add_test(limits, mounts_go_before_unmounts);
	tcase_add_test(limits, over_the_limit_the_longest_idle_goes);
	tcase_add_test(limits, when_all_are_in_use_an_asker_is_refused);
	tcase_add_test(limits, what_leaves_slowly_is_bounded_too);
	suite_add_tcase(suite, limits);
	return unit_main(suite);
}
