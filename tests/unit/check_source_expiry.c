/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_source_expiry.c - how sources leave the cache: idle, dead, purged, at the end.
 *
 * Most tests stand for a fault that others have had in a delayed unmount; see the comments.
 */
#include "core/source_internal.h"
#include "source_unit.h"

static bool is_mounted(unsigned int id)
{
	return fake_source_read(&fake_sources[id].n_mounted) > 0;
}

static enum ssc_source_state state_of(unsigned int id, struct ssc_source_info *info)
{
	struct ssc_source_key key = fake_source_key(id);
	struct ssc_source_info infos[64];
	uint32_t n = ssc_source_cache_list(cache, infos, 64);

	for (uint32_t i = 0; i < n; i++) {
		if (ssc_source_key_equal(&infos[i].key, &key)) {
			*info = infos[i];
			return info->state;
		}
	}
	ck_abort_msg("source %u is not in the list", id);
}

/* ---- idle ---- */

/* Another server's mount stayed for ever: an error path, or a file that was not put, kept a reference. */
START_TEST(it_is_unmounted_when_it_was_idle_for_long)
{
	use(1);
	advance(IDLE_NS - 2);
	ck_assert(is_mounted(1));
	advance(0);
	fake_source_await(&fake_sources[1].n_mounted, 0);
	await_sources(0);
	ck_assert_uint_eq(stats().unmounts, 1);
	use(1); /* and mounted again for the next copy */
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 2);
}
END_TEST

/* Its address family makes no difference: with IPv6 too nothing of us is left at the source. */
START_TEST(ipv6_expires_as_well)
{
	struct ssc_source_key key = fake_source_key(1);
	struct ssc_source *source;

	memcpy(key.addr, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0", 12);
	ck_assert_int_eq(ssc_source_cache_get(cache, &key, &source), SSC_OK);
	ssc_source_put(source);
	advance(IDLE_NS);
	fake_source_await(&fake_sources[1].n_mounted, 0);
}
END_TEST

START_TEST(use_extends_it)
{
	for (int i = 0; i < 10; i++) {
		use(1);
		advance(IDLE_NS / 2);
	}
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
	advance(IDLE_NS / 2);
	fake_source_await(&fake_sources[1].n_mounted, 0);
}
END_TEST

START_TEST(what_is_in_use_does_not_expire)
{
	struct ssc_source *a = get(1), *b = get(1);

	advance(10 * IDLE_NS);
	fake_source_check(a, 1);
	ssc_source_put(a);
	advance(10 * IDLE_NS);
	fake_source_check(b, 1);
	ssc_source_put(b);
	advance(IDLE_NS - 2);
	ck_assert(is_mounted(1));
	advance(0);
	fake_source_await(&fake_sources[1].n_mounted, 0);
}
END_TEST

START_TEST(one_timer_serves_each_at_its_own_time)
{
	for (unsigned int i = 1; i <= 10; i++) {
		use(i);
		advance(SSC_NS_PER_S);
	}
	advance(IDLE_NS - 10 * SSC_NS_PER_S - 11 - 1);
	for (unsigned int i = 1; i <= 10; i++) {
		ck_assert(is_mounted(i));
		advance(SSC_NS_PER_S);
		fake_source_await(&fake_sources[i].n_mounted, 0);
	}
	await_sources(0);
	ck_assert_uint_eq(stats().unmounts, 10);
}
END_TEST

/* A copy fails, at whatever step: its reference comes back, and the source expires. */
START_TEST(every_way_out_gives_the_reference_back)
{
	struct asker asker;

	use(1); /* a copy whose open fails: it only puts */
	fake_source_set_err(2, SSC_E_PROTO);
	ck_assert_int_eq(get_err(2), SSC_E_PROTO);
	fake_source_hold_mounts(3, true);
	ask_cancellable(&asker, 3, true);
	ck_assert(ssc_source_cache_cancel(cache, &asker.wait));
	ask(&asker, 3);
	advance(WAIT_NS);
	ck_assert_int_eq(asker_await(&asker), SSC_E_TIMEDOUT);
	fake_source_hold_mounts(3, false);
	fake_source_await(&fake_sources[3].n_mounted, 1);
	await_sources(2);
	advance(IDLE_NS);
	await_sources(0);
	ck_assert_uint_eq(stats().unmounts, 2);
}
END_TEST

/* ---- claiming, from within: what no test from outside can time ---- */

static bool claim(struct ssc_source *source, uint64_t refs)
{
	bool is_claimed;

	pthread_mutex_lock(&cache->lock);
	is_claimed = ssc_source_claim_locked(source, refs);
	pthread_mutex_unlock(&cache->lock);
	return is_claimed;
}

START_TEST(what_was_used_since_the_look_is_not_claimed)
{
	struct ssc_source *source = get(1);
	uint64_t refs;

	ssc_source_put(source);
	refs = atomic_load(&source->refs);
	use(1);
	ck_assert_uint_eq(ssc_source_count(refs), ssc_source_count(atomic_load(&source->refs)));
	ck_assert(!claim(source, refs)); /* idle then and idle now, but not in between */
	ck_assert_ptr_eq(get(1), source);
	ck_assert(!claim(source, refs));
	ssc_source_put(source);
	ck_assert(claim(source, atomic_load(&source->refs)));
	fake_source_await(&fake_sources[1].n_mounted, 0);
}
END_TEST

/* A look-up that found it just before it was claimed. */
START_TEST(what_was_claimed_has_no_reference_to_share)
{
	struct ssc_source *source = get(1);

	ssc_source_put(source);
	rcu_read_lock();
	ck_assert(claim(source, atomic_load(&source->refs)));
	ck_assert(!ssc_source_get_unless_zero(source));
	SSC_TSAN_RELEASE(source);
	rcu_read_unlock();
	fake_source_await(&fake_sources[1].n_mounted, 0);
}
END_TEST

/* ---- unmounting ---- */

/* CVE-2022-4379 of another server: after a failed open it unmounted what the next copy then found. */
START_TEST(a_new_asker_never_gets_what_is_being_unmounted)
{
	struct ssc_source *source;
	struct ssc_source_info info;

	use(1);
	fake_source_hold_unmounts(1, true);
	advance(IDLE_NS);
	fake_source_await(&fake_sources[1].n_unmounts_held, 1);
	ck_assert_int_eq(state_of(1, &info), SSC_SOURCE_LEAVING);
	ck_assert_ptr_null(try_get(1));
	source = get(1); /* does not wait for it, and has a mount of its own */
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_mounted), 2);
	fake_source_hold_unmounts(1, false);
	fake_source_await(&fake_sources[1].n_mounted, 1);
	fake_source_check(source, 1);
	ssc_source_put(source);
}
END_TEST

/*
 * A walk that went on at a neighbour saved before the lock was dropped for unmounting: the neighbours
 * leave meanwhile, one as its mount fails, others as they are evicted or purged.
 */
START_TEST(others_leave_while_one_is_unmounted_slowly)
{
	struct asker asker;

	for (unsigned int i = 1; i <= 3; i++)
		use(i);
	fake_source_hold_mounts(4, true);
	fake_source_set_err(4, SSC_E_DOWN);
	fake_source_hold_unmounts(1, true);
	advance(IDLE_NS - WAIT_NS / 2);
	ask(&asker, 4);
	advance(WAIT_NS / 2);
	fake_source_await(&fake_sources[1].n_unmounts_held, 1);
	fake_source_await(&fake_sources[2].n_mounted, 0);
	fake_source_await(&fake_sources[3].n_mounted, 0);
	fake_source_hold_mounts(4, false);
	ck_assert_int_eq(asker_await(&asker), SSC_E_DOWN);
	use(5);
	ck_assert_uint_eq(ssc_source_cache_purge(cache, NULL, NULL), 1);
	fake_source_await(&fake_sources[5].n_mounted, 0);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_unmounts_held), 1);
	fake_source_hold_unmounts(1, false);
	await_sources(0);
}
END_TEST

/* ---- dead ---- */

START_TEST(after_a_death_the_next_one_mounts_again)
{
	struct ssc_source *a = get(1), *b = get(1), *c;
	struct ssc_source_info info;

	ck_assert(!ssc_source_is_dead(b));
	ssc_source_put_dead(a);
	ck_assert(ssc_source_is_dead(b));
	ck_assert_int_eq(state_of(1, &info), SSC_SOURCE_DEAD);
	ck_assert_uint_eq(info.n_users, 1);
	c = get(1);
	ck_assert_ptr_ne(b, c);
	fake_source_check(b, 1); /* others' stays until they put it, */
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_unmounts), 0);
	ssc_source_put_dead(b); /* also when they find the same */
	fake_source_await(&fake_sources[1].n_unmounts, 1);
	fake_source_check(c, 1);
	ck_assert(!ssc_source_is_dead(c));
	ssc_source_put(c);
	ck_assert_ptr_eq(c, get(1));
	ssc_source_put(c);
}
END_TEST

/* A clean-up that looked for the mount in a list could find the wrong one, or none. */
START_TEST(errors_of_one_source_leave_the_others_alone)
{
	struct ssc_source *a = get(1), *b = get(2);
	struct ssc_source_info info;

	for (int i = 0; i < 100; i++) {
		ssc_source_put_dead(a);
		a = get(1);
	}
	ck_assert_int_eq(state_of(2, &info), SSC_SOURCE_READY);
	ck_assert_uint_eq(info.n_users, 1);
	fake_source_check(b, 2);
	ssc_source_put(b);
	ssc_source_put(a);
	ck_assert_uint_eq(fake_source_read(&fake_sources[2].n_attempts), 1);
	fake_source_await(&fake_sources[1].n_unmounts, 100);
}
END_TEST

/* ---- pins and purges ---- */

START_TEST(a_pin_keeps_it_mounted)
{
	struct ssc_source *source = get(1);
	struct ssc_source_info info;

	ssc_source_pin(source);
	ssc_source_pin(source); /* two exports */
	ssc_source_put(source);
	ck_assert_int_eq(state_of(1, &info), SSC_SOURCE_READY);
	ck_assert_uint_eq(info.n_pins, 2);
	ck_assert_uint_eq(info.n_users, 2);
	advance(2 * IDLE_NS);
	ck_assert_uint_eq(ssc_source_cache_purge(cache, NULL, NULL), 0);
	ssc_source_unpin(source);
	advance(2 * IDLE_NS);
	fake_source_check(source, 1);
	ssc_source_unpin(source);
	advance(IDLE_NS);
	fake_source_await(&fake_sources[1].n_mounted, 0);
}
END_TEST

static bool is_odd(void *arg, const struct ssc_source_key *key)
{
	++*(unsigned int *)arg;
	return key->addr[15] % 2 == 1;
}

START_TEST(a_purge_takes_what_matches_whatever_its_expiry)
{
	struct ssc_source *used, *pinned;
	unsigned int n_seen = 0;

	for (unsigned int i = 1; i <= 6; i++)
		use(i);
	used = get(1);
	pinned = get(3);
	ssc_source_pin(pinned);
	ssc_source_put(pinned);
	ck_assert_uint_eq(ssc_source_cache_purge(cache, is_odd, &n_seen), 2);
	ck_assert_uint_eq(n_seen, 5); /* not asked about what is pinned */
	fake_source_await(&fake_sources[5].n_mounted, 0);
	ck_assert(ssc_source_is_dead(used));
	fake_source_check(used, 1);
	ssc_source_put(used);
	fake_source_await(&fake_sources[1].n_mounted, 0);
	await_sources(4);
	fake_source_check(pinned, 3);
	ssc_source_unpin(pinned);
}
END_TEST

START_TEST(who_waits_for_what_is_purged_is_told)
{
	struct asker running, queued, again;

	cache_end();
	cache_start(16, 1);
	fake_source_hold_mounts(1, true);
	ask(&running, 1);
	ask(&queued, 2);
	fake_source_await(&fake_sources[1].n_mounts_held, 1);
	ck_assert_uint_eq(ssc_source_cache_purge(cache, NULL, NULL), 2);
	ck_assert_int_eq(asker_await(&running), SSC_E_SHUTDOWN);
	ck_assert_int_eq(asker_await(&queued), SSC_E_SHUTDOWN);
	ask(&again, 2);
	fake_source_hold_mounts(1, false);
	ck_assert_int_eq(asker_await(&again), SSC_OK);
	fake_source_await(&fake_sources[1].n_unmounts, 1); /* mounted too late */
	ck_assert_uint_eq(fake_source_read(&fake_sources[2].n_attempts), 1);
	ssc_source_put(again.source);
}
END_TEST

/* ---- the end ---- */

START_TEST(stop_unmounts_all_and_refuses)
{
	struct ssc_source_key key = fake_source_key(1);

	for (unsigned int i = 1; i <= 6; i++)
		use(i);
	ck_assert(ssc_source_cache_stop(cache, UINT64_MAX));
	for (unsigned int i = 1; i <= 6; i++)
		ck_assert(!is_mounted(i));
	ck_assert_int_eq(get_err(1), SSC_E_SHUTDOWN);
	ck_assert_ptr_null(try_get(1));
	ssc_source_cache_warm(cache, &key);
	ck_assert_uint_eq(ssc_source_cache_list(cache, NULL, 0), 0);
	ck_assert_uint_eq(fake_source_read(&fake_sources[1].n_attempts), 1);
	ck_assert(ssc_source_cache_stop(cache, 0));
}
END_TEST

START_TEST(stop_is_bounded)
{
	struct ssc_source *used = get(1), *pinned = get(2);
	struct asker asker;

	ssc_source_pin(pinned);
	ssc_source_put(pinned);
	fake_source_hold_mounts(3, true);
	ask(&asker, 3);
	fake_source_await(&fake_sources[3].n_mounts_held, 1);
	ck_assert(!ssc_source_cache_stop(cache, 0));
	ck_assert_int_eq(asker_await(&asker), SSC_E_SHUTDOWN);
	fake_source_check(used, 1);
	ssc_source_put(used);
	ssc_source_unpin(pinned);
	ck_assert(!ssc_source_cache_stop(cache, 0));
	fake_source_hold_mounts(3, false);
	ck_assert(ssc_source_cache_stop(cache, UINT64_MAX));
	ck_assert(!is_mounted(1) && !is_mounted(2) && !is_mounted(3));
}
END_TEST

/* From within: whoever frees the timers next relies on it. */
START_TEST(after_stop_the_timer_is_not_armed)
{
	struct ssc_source *a = get(1), *b = get(1);

	ck_assert_uint_ne(cache->timer.place, 0); /* for the wait */
	advance(WAIT_NS);
	ck_assert(!ssc_source_cache_stop(cache, 0));
	ck_assert_uint_eq(cache->timer.place, 0);
	ssc_source_put(a);
	ck_assert_uint_eq(cache->timer.place, 0);
	ssc_source_put(b);
}
END_TEST

START_TEST(what_is_in_use_outlives_the_cache)
{
	struct ssc_source *used = get(1);
	struct asker asker;

	fake_source_hold_mounts(2, true);
	ask(&asker, 2);
	fake_source_await(&fake_sources[2].n_mounts_held, 1);
	ck_assert(!ssc_source_cache_stop(cache, 0));
	ssc_source_cache_free(cache);
	cache = NULL;
	fake_source_check(used, 1);
	fake_source_hold_mounts(2, false);
	fake_source_await(&fake_sources[2].n_unmounts, 1);
	ssc_source_put(used);
	fake_source_await(&fake_sources[1].n_unmounts, 1);
}
END_TEST

/* A timer that was started before the list it walks. */
START_TEST(it_starts_and_stops_a_hundred_times)
{
	struct ssc_source_cache_config cfg;

	cache_end();
	fake_clock_stop();
	ssc_source_cache_config_init(&cfg);
	cfg.idle_ns = SSC_NS_PER_MS;
	cfg.ops = &fake_source_ops;
	cfg.timers = timers;
	for (unsigned int i = 0; i < 100; i++) {
		cache = ssc_source_cache_new(&cfg);
		for (unsigned int j = 1; j <= i % 4; j++)
			use(j);
		if (i % 2 == 0)
			await_sources(0);
		cache_end();
	}
}
END_TEST

START_TEST(nothing_to_free)
{
	ssc_source_cache_free(NULL);
}
END_TEST

/* ---- what an administrator sees ---- */

START_TEST(the_list_says_what_is_there)
{
	struct ssc_source *source = get(1);
	struct ssc_source_info info, one[1];
	struct asker asker;

	ssc_source_add_bytes(source, 1000);
	use(1);
	use(2);
	fake_source_hold_mounts(3, true);
	ask(&asker, 3);
	advance(SSC_NS_PER_S - 1);
	ck_assert_int_eq(state_of(1, &info), SSC_SOURCE_READY);
	ck_assert_uint_eq(info.n_users, 1);
	ck_assert_uint_eq(info.idle_ns, 0);
	ck_assert_uint_eq(info.bytes, 1000);
	ck_assert_uint_eq(info.hits, 1);
	ck_assert_int_eq(state_of(2, &info), SSC_SOURCE_READY);
	ck_assert_uint_eq(info.n_users, 0);
	ck_assert_uint_eq(info.idle_ns, SSC_NS_PER_S);
	ck_assert_int_eq(state_of(3, &info), SSC_SOURCE_PENDING);
	ck_assert_uint_eq(info.n_users, 0);
	ck_assert_uint_eq(info.n_waits, 1);
	ck_assert_uint_eq(ssc_source_cache_list(cache, one, 1), 3);
	ck_assert_uint_eq(stats().n_sources, 3);
	fake_source_hold_mounts(3, false);
	ck_assert_int_eq(asker_await(&asker), SSC_OK);
	ssc_source_put(asker.source);
	ssc_source_put(source);
	ck_assert_uint_eq(ssc_source_cache_purge(cache, NULL, NULL), 3);
	await_sources(0);
	ck_assert_uint_eq(stats().bytes, 1000); /* they stay when it is gone */
	ck_assert_uint_eq(stats().hits, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source_expiry");
	TCase *idle = tcase_create("idle");
	TCase *claims = tcase_create("claims");
	TCase *gone = tcase_create("unmounted, dead, purged");
	TCase *end = tcase_create("the end");

	tcase_add_checked_fixture(idle, unit_setup, unit_teardown);
	tcase_add_test(idle, it_is_unmounted_when_it_was_idle_for_long);
	tcase_add_test(idle, ipv6_expires_as_well);
	tcase_add_test(idle, use_extends_it);
	tcase_add_test(idle, what_is_in_use_does_not_expire);
	tcase_add_test(idle, one_timer_serves_each_at_its_own_time);
	tcase_add_test(idle, every_way_out_gives_the_reference_back);
	suite_add_tcase(suite, idle);
	tcase_add_checked_fixture(claims, unit_setup, unit_teardown);
	tcase_add_test(claims, what_was_used_since_the_look_is_not_claimed);
	tcase_add_test(claims, what_was_claimed_has_no_reference_to_share);
	suite_add_tcase(suite, claims);
	tcase_add_checked_fixture(gone, unit_setup, unit_teardown);
	tcase_add_test(gone, a_new_asker_never_gets_what_is_being_unmounted);
	tcase_add_test(gone, others_leave_while_one_is_unmounted_slowly);
	tcase_add_test(gone, after_a_death_the_next_one_mounts_again);
	tcase_add_test(gone, errors_of_one_source_leave_the_others_alone);
	tcase_add_test(gone, a_pin_keeps_it_mounted);
	tcase_add_test(gone, a_purge_takes_what_matches_whatever_its_expiry);
	tcase_add_test(gone, who_waits_for_what_is_purged_is_told);
	suite_add_tcase(suite, gone);
	tcase_add_checked_fixture(end, unit_setup, unit_teardown);
	tcase_add_test(end, stop_unmounts_all_and_refuses);
	tcase_add_test(end, stop_is_bounded);
	tcase_add_test(end, after_stop_the_timer_is_not_armed);
	tcase_add_test(end, what_is_in_use_outlives_the_cache);
	tcase_add_test(end, it_starts_and_stops_a_hundred_times);
	tcase_add_test(end, nothing_to_free);
	tcase_add_test(end, the_list_says_what_is_there);
	suite_add_tcase(suite, end);
	return unit_main(suite);
}
