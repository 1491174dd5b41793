/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_limits.c - servers that are away or silent, who waits for them, and the end.
 */
#include "upstream_unit.h"

static void reopen(const struct ssc_upstream_config *cfg)
{
	close_upstream();
	open_upstream(cfg);
}

/* ---- a server that is away ---- */

START_TEST(calls_wait_for_a_server_that_is_down_at_start)
{
	struct ssc_upstream_config cfg = config();
	struct asked *a;

	close_upstream();
	nfs3_server_down(server);
	open_upstream(&cfg);
	a = ask(SSC_OP_GETATTR, NULL);
	submit(a);
	ck_assert(!stats().up);
	nfs3_server_up(server);
	ck_assert_int_eq(wait_done(a), SSC_OK);
	ck_assert(!a->call->retried);
	ck_assert(stats().up);
	forget(a);
}
END_TEST

START_TEST(calls_wait_for_a_server_that_restarts)
{
	struct asked *a;
	int i;

	for (i = 0; i < 3; i++) {
		round_trip();
		nfs3_server_down(server);
		a = ask(SSC_OP_GETATTR, NULL);
		submit(a);
		nfs3_server_up(server);
		ck_assert_int_eq(wait_done(a), SSC_OK);
		forget(a);
	}
	ck_assert_uint_eq(stats().connects, 4);
}
END_TEST

START_TEST(what_cannot_be_sent_in_time_is_answered_down)
{
	uint64_t start;
	struct asked *a;

	round_trip();
	nfs3_server_down(server);
	wait_away();
	a = ask(SSC_OP_MKDIR, "d");
	start = ssc_clock_now_ns();
	submit_for(a, 200 * MS);
	ck_assert_int_eq(wait_done(a), SSC_E_DOWN);
	ck_assert_uint_ge(a->done_ns, start + 200 * MS);
	nfs3_server_up(server);
	round_trip();
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MKDIR), 0);
	ck_assert_uint_eq(a->n_late, 0);
	forget(a);
}
END_TEST

START_TEST(what_was_sent_before_the_server_went_is_not_answered_down)
{
	struct asked *a = ask(SSC_OP_MKDIR, "d");

	fault(NFS3_MKDIR, NFS3_HOLD);
	submit_for(a, 500 * MS);
	ck_assert(nfs3_server_wait_calls(server, NFS3_MKDIR, 1));
	nfs3_server_down(server);
	ck_assert_int_eq(wait_done(a), SSC_E_TIMEDOUT); /* it may have been carried out */
	ck_assert_int_eq(wait_late(a), SSC_E_CONN);
	forget(a);
}
END_TEST

START_TEST(after_the_dead_limit_calls_are_answered_at_once)
{
	struct ssc_upstream_config cfg = config();
	enum ssc_err err = SSC_E_DOWN;
	struct asked *a;
	uint64_t start;
	int i;

	cfg.dead_ns = 300 * MS;
	reopen(&cfg);
	round_trip();
	nfs3_server_down(server);
	wait_away();
	a = ask(SSC_OP_GETATTR, NULL);
	submit_for(a, SSC_NS_PER_S); /* waits: the server was there a moment ago */
	ck_assert_int_eq(wait_done(a), SSC_E_DOWN);
	ck_assert_uint_ge(a->done_ns, a->call->answer_by_ns);
	forget(a);
	for (i = 0; i < 50; i++) {
		start = ssc_clock_now_ns();
		a = ask(SSC_OP_GETATTR, NULL);
		submit_for(a, 10 * SSC_NS_PER_S);
		ck_assert(is_done(a)); /* before submit came back */
		ck_assert_int_eq(a->done_err, SSC_E_DOWN);
		ck_assert_uint_lt(ssc_clock_now_ns() - start, 5 * SSC_NS_PER_S);
		forget(a);
	}
	ck_assert_uint_eq(stats().refused, 50);
	nfs3_server_up(server);
	start = ssc_clock_now_ns();
	while (err == SSC_E_DOWN && ssc_clock_now_ns() - start < 20 * SSC_NS_PER_S)
		err = run_and_forget(ask(SSC_OP_GETATTR, NULL));
	ck_assert_int_eq(err, SSC_OK);
}
END_TEST

/* ---- a server that is silent ---- */

START_TEST(a_frozen_server_keeps_its_calls)
{
	enum { N = 10 };
	struct asked *a[N];
	int i;

	round_trip();
	nfs3_server_freeze(server, true);
	for (i = 0; i < N; i++) {
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		submit_for(a[i], i < 5 ? 100 * MS : 20 * SSC_NS_PER_S);
	}
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(wait_done(a[i]), SSC_E_TIMEDOUT);
	nfs3_server_freeze(server, false);
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(i < 5 ? wait_late(a[i]) : wait_done(a[i]), SSC_OK);
		forget(a[i]);
	}
	ck_assert_uint_eq(nfs3_server_n_connections(server), 1);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_FSSTAT), N);
}
END_TEST

START_TEST(no_more_than_so_many_wait_for_a_server_that_is_away)
{
	enum { MAX = 5 };
	struct ssc_upstream_config cfg = config();
	struct asked *a[MAX];
	int i;

	cfg.waiting_max = MAX;
	close_upstream();
	nfs3_server_down(server);
	open_upstream(&cfg);
	for (i = 0; i < MAX; i++) {
		a[i] = ask(SSC_OP_GETATTR, NULL);
		submit(a[i]);
		ck_assert(!is_done(a[i]));
	}
	ck_assert_uint_eq(stats().waiting, MAX);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(run_and_forget(ask(SSC_OP_GETATTR, NULL)), SSC_E_DOWN);
	ck_assert_uint_eq(stats().refused, 3);
	nfs3_server_up(server);
	for (i = 0; i < MAX; i++) {
		ck_assert_int_eq(wait_done(a[i]), SSC_OK);
		forget(a[i]);
	}
	ck_assert_uint_eq(stats().waiting, 0);
	round_trip();
}
END_TEST

START_TEST(nobody_waits_for_a_server_that_is_known_to_be_silent)
{
	struct asked *a = ask(SSC_OP_GETATTR, NULL);
	int i;

	round_trip();
	ck_assert(!up->ops->is_silent(up));
	nfs3_server_freeze(server, true);
	submit_for(a, SSC_NS_PER_S); /* long enough to ask whether somebody is there */
	ck_assert_int_eq(wait_done(a), SSC_E_TIMEDOUT);
	for (i = 0; i < 20; i++) {
		struct asked *b = ask(SSC_OP_GETATTR, NULL);

		submit(b);
		ck_assert(is_done(b)); /* before submit came back */
		ck_assert_int_eq(b->done_err, SSC_E_DOWN);
		forget(b);
	}
	ck_assert(up->ops->is_silent(up));
	ck_assert_uint_eq(stats().refused, 20);
	nfs3_server_freeze(server, false);
	ck_assert_int_eq(wait_late(a), SSC_OK);
	forget(a);
	ck_assert(!up->ops->is_silent(up));
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(run_and_forget(ask(SSC_OP_GETATTR, NULL)), SSC_OK);
	ck_assert_uint_eq(nfs3_server_n_connections(server), 1);
}
END_TEST

/* The server answers others, or when nobody asks it anything, a NULL call. */
START_TEST(one_slow_call_does_not_make_a_server_silent)
{
	struct asked *slow = ask(SSC_OP_FSSTAT, NULL);

	round_trip();
	fault(NFS3_FSSTAT, NFS3_HOLD);
	/* About when the next NULL call is sent: that one has no time to be answered. */
	submit_for(slow, SSC_NS_PER_S + (uint64_t)_i * MS);
	while (_i == 0 && ssc_clock_now_ns() < slow->call->answer_by_ns + 20 * MS)
		ck_assert_int_eq(run_and_forget(ask(SSC_OP_GETATTR, NULL)), SSC_OK);
	ck_assert_int_eq(wait_done(slow), SSC_E_TIMEDOUT);
	ck_assert(!up->ops->is_silent(up));
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_GETATTR, NULL)), SSC_OK);
	wait_held(1);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(slow), SSC_OK);
	ck_assert_uint_eq(stats().refused, 0);
	forget(slow);
}
END_TEST

START_TEST(a_busy_server_takes_more_than_may_wait)
{
	enum { MAX = 5, N = 20 };
	struct ssc_upstream_config cfg = config();
	struct asked *a[N];
	int i;

	cfg.waiting_max = MAX;
	reopen(&cfg);
	round_trip();
	fault_times(NFS3_FSSTAT, NFS3_HOLD, N);
	for (i = 0; i < N; i++) {
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		submit(a[i]);
	}
	ck_assert(nfs3_server_wait_calls(server, NFS3_FSSTAT, N));
	nfs3_server_release(server);
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(wait_done(a[i]), SSC_OK);
		forget(a[i]);
	}
	ck_assert_uint_eq(stats().refused, 0);
}
END_TEST

/* ---- the end ---- */

START_TEST(stop_ends_every_call_once)
{
	enum { N = 12 };
	struct asked *a[N];
	int i;

	fault_times(NFS3_FSSTAT, NFS3_HOLD, N);
	for (i = 0; i < N; i++) {
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		submit_for(a[i], i % 2 ? 100 * MS : 20 * SSC_NS_PER_S);
	}
	for (i = 1; i < N; i += 2)
		ck_assert_int_eq(wait_done(a[i]), SSC_E_TIMEDOUT);
	stop_in_time();
	for (i = 0; i < N; i++) {
		ck_assert_uint_eq(a[i]->n_done, 1);
		ck_assert_uint_eq(a[i]->n_late, i % 2);
		if (i % 2)
			ck_assert(a[i]->late_err == SSC_E_CONN || a[i]->late_err == SSC_E_SHUTDOWN);
		else
			ck_assert_int_eq(a[i]->done_err, SSC_E_SHUTDOWN);
		forget(a[i]);
	}
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_GETATTR, NULL)), SSC_E_SHUTDOWN);
	up->ops->stop(up); /* again: nothing */
}
END_TEST

START_TEST(stop_ends_calls_that_wait_for_a_server)
{
	enum { N = 5 };
	struct asked *a[N];
	int i;

	nfs3_server_down(server);
	for (i = 0; i < N; i++) {
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		submit(a[i]);
	}
	stop_in_time();
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(a[i]->done_err, SSC_E_SHUTDOWN);
		forget(a[i]);
	}
}
END_TEST

static void *drive(void *arg)
{
	submit(arg);
	return NULL;
}

START_TEST(stop_ends_drivers)
{
	enum { N = 3 };
	struct asked *a[N];
	pthread_t threads[N];
	int i;

	round_trip();
	fault_times(NFS3_FSSTAT, NFS3_HOLD, N);
	for (i = 0; i < N; i++) { /* one drives, the others sleep */
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		a[i]->call->drive_ns = 60 * SSC_NS_PER_S;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, drive, a[i]), 0);
	}
	ck_assert(nfs3_server_wait_calls(server, NFS3_FSSTAT, N));
	stop_in_time();
	for (i = 0; i < N; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(a[i]->done_err, SSC_E_SHUTDOWN);
		forget(a[i]);
	}
}
END_TEST

START_TEST(stop_of_a_frozen_server_takes_no_longer)
{
	struct asked *a = ask(SSC_OP_GETATTR, NULL);

	round_trip();
	nfs3_server_freeze(server, true);
	submit(a);
	stop_in_time();
	ck_assert_int_eq(a->done_err, SSC_E_SHUTDOWN);
	forget(a);
	nfs3_server_freeze(server, false);
}
END_TEST

START_TEST(begin_and_end_many_times)
{
	struct ssc_upstream_config cfg = config();
	int i;

	cfg.connections = 4;
	for (i = 0; i < 50; i++) {
		struct asked *a;

		reopen(&cfg);
		a = ask(SSC_OP_GETATTR, NULL);
		submit(a);
		if (i % 2)
			ck_assert_int_eq(wait_done(a), SSC_OK);
		up->ops->stop(up);
		forget(a);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_limits");
	TCase *away = add_case(suite, "away", setup_both);
	TCase *silent = add_case(suite, "silent", setup_both);
	TCase *ends = add_case(suite, "ends", setup_both);

	tcase_add_test(away, calls_wait_for_a_server_that_is_down_at_start);
	tcase_add_test(away, calls_wait_for_a_server_that_restarts);
	tcase_add_test(away, what_cannot_be_sent_in_time_is_answered_down);
	tcase_add_test(away, what_was_sent_before_the_server_went_is_not_answered_down);
	tcase_add_test(away, after_the_dead_limit_calls_are_answered_at_once);
	tcase_add_test(away, no_more_than_so_many_wait_for_a_server_that_is_away);
	tcase_add_test(silent, a_frozen_server_keeps_its_calls);
	tcase_add_test(silent, nobody_waits_for_a_server_that_is_known_to_be_silent);
	tcase_add_loop_test(silent, one_slow_call_does_not_make_a_server_silent, 0, 6);
	tcase_add_test(silent, a_busy_server_takes_more_than_may_wait);
	tcase_add_test(ends, stop_ends_every_call_once);
	tcase_add_test(ends, stop_ends_calls_that_wait_for_a_server);
	tcase_add_test(ends, stop_ends_drivers);
	tcase_add_test(ends, stop_of_a_frozen_server_takes_no_longer);
	tcase_add_test(ends, begin_and_end_many_times);
	return unit_main(suite);
}
