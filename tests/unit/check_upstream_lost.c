/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_lost.c - what one call leaves behind when it is never answered, or never sent.
 */
#include "upstream_unit.h"

/* Others are answered all the time, so it is not the connection that is silent. */
START_TEST(a_call_that_the_server_forgot_ends_beside_others)
{
	struct ssc_upstream_config cfg = config();
	struct asked *forgotten;
	uint64_t until;
	unsigned int n_late = 0;

	close_upstream();
	cfg.dead_ns = 300 * MS;
	open_upstream(&cfg);
	fault(NFS3_GETATTR, NFS3_WRONG_XID);
	forgotten = ask(SSC_OP_GETATTR, NULL);
	submit_for(forgotten, 100 * MS);
	until = ssc_clock_now_ns() + 10 * SSC_NS_PER_S;
	while (n_late == 0 && ssc_clock_now_ns() < until) {
		round_trip();
		pthread_mutex_lock(&forgotten->lock);
		n_late = forgotten->n_late;
		pthread_mutex_unlock(&forgotten->lock);
	}
	ck_assert_uint_eq(n_late, 1);
	ck_assert_int_eq(wait_done(forgotten), SSC_E_TIMEDOUT);
	ck_assert_int_eq(wait_late(forgotten), SSC_E_CONN);
	forget(forgotten);
	round_trip();
}
END_TEST

/* The loop thread has nothing else to do and would sleep longer. */
START_TEST(the_dead_limit_is_kept_by_an_idle_connection)
{
	const struct timespec pause = {.tv_sec = 1, .tv_nsec = 100 * MS};
	struct ssc_upstream_config cfg = config();
	struct asked *a;
	uint64_t begin;

	close_upstream();
	cfg.dead_ns = SSC_NS_PER_S;
	open_upstream(&cfg);
	round_trip();
	nanosleep(&pause, NULL); /* the last reply is older than the limit */
	nfs3_server_freeze(server, true);
	a = ask(SSC_OP_GETATTR, NULL);
	begin = ssc_clock_now_ns();
	submit(a);
	while (stats().up && ssc_clock_now_ns() < begin + 10 * SSC_NS_PER_S)
		nanosleep(&(struct timespec){.tv_nsec = 10 * MS}, NULL);
	ck_assert_uint_lt(ssc_clock_now_ns() - begin, cfg.dead_ns + 2 * SSC_NS_PER_S);
	nfs3_server_freeze(server, false);
	ck_assert_int_eq(wait_done(a), SSC_OK);
	ck_assert(a->call->retried);
	forget(a);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_lost");
	TCase *lost = add_case(suite, "lost", setup_both);

	tcase_add_test(lost, a_call_that_the_server_forgot_ends_beside_others);
	tcase_add_test(lost, the_dead_limit_is_kept_by_an_idle_connection);
	return unit_main(suite);
}
