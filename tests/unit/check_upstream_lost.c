/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_lost.c - what one call leaves behind when it is never answered, or never sent.
 */
#include "upstream_unit.h"

#define KIB 1024u

static uint8_t bytes[2][64 * KIB];

/* Others are answered all the time, so it is not the connection that is silent. */
START_TEST(a_call_that_the_server_forgot_ends_beside_others)
{
	struct ssc_upstream_config cfg = config();
	struct asked *forgotten;
	uint64_t until;
	unsigned int n_late = 0;

	close_upstream();
	cfg.dead_ns = SSC_NS_PER_S;
	open_upstream(&cfg);
	round_trip();
	fault(NFS3_GETATTR, NFS3_WRONG_XID);
	forgotten = ask(SSC_OP_GETATTR, NULL);
	submit_for(forgotten, SSC_NS_PER_S);
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
	for (;;) {
		a = ask(SSC_OP_GETATTR, NULL);
		begin = ssc_clock_now_ns();
		submit(a);
		nanosleep(&(struct timespec){.tv_nsec = 300 * MS}, NULL);
		if (!is_done(a))
			break;
		forget(a); /* it was on its way already when the server froze */
	}
	while (stats().up && ssc_clock_now_ns() < begin + 10 * SSC_NS_PER_S)
		nanosleep(&(struct timespec){.tv_nsec = 10 * MS}, NULL);
	ck_assert_uint_lt(ssc_clock_now_ns() - begin, cfg.dead_ns + 2 * SSC_NS_PER_S);
	nfs3_server_freeze(server, false);
	ck_assert_int_eq(wait_done(a), SSC_OK);
	ck_assert(a->call->retried);
	forget(a);
}
END_TEST

static struct asked *ask_read(const struct ssc_fh *fh, int which, struct iovec *buf)
{
	*buf = (struct iovec){bytes[which], sizeof(bytes[which])};
	return ask_io(SSC_OP_READ, fh, 0, buf);
}

/* Two upstreams share one budget; the first one's place in its queue must not outlive its calls. */
START_TEST(a_call_that_waited_for_room_in_vain_leaves_its_place)
{
	struct ssc_upstream_config cfg = config();
	struct ssc_upstream *first, *second;
	struct asked *held, *waiting, *other;
	struct iovec iov[3];
	struct ssc_fh fh;

	close_upstream();
	cfg.budget = ssc_budget_new(sizeof(bytes[0]) + 4 * KIB);
	open_upstream(&cfg);
	first = up;
	nfs3_server_poke(server, "f", bytes[0], sizeof(bytes[0]));
	fh = fh_of("f");
	fault(NFS3_READ, NFS3_HOLD);
	held = ask_read(&fh, 0, &iov[0]);
	submit_for(held, 20 * SSC_NS_PER_S);
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 1));
	waiting = ask_read(&fh, 1, &iov[1]);
	submit_for(waiting, 100 * MS);
	ck_assert_int_eq(wait_done(waiting), SSC_E_DOWN);
	forget(waiting);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_done(held), SSC_OK);
	forget(held);

	open_upstream(&cfg);
	second = up;
	other = ask_read(&fh, 1, &iov[2]);
	submit_for(other, 2 * SSC_NS_PER_S);
	ck_assert_int_eq(wait_done(other), SSC_OK);
	forget(other);

	up = first;
	close_upstream();
	up = second;
	close_upstream();
	ssc_budget_free(cfg.budget);
}
END_TEST

/* Between TIMEDOUT and the late reply nobody reads the result (for ThreadSanitizer). */
START_TEST(limits_that_come_late_are_not_taken)
{
	struct ssc_upstream_limits limits;
	struct ssc_fh fh;

	fault(NFS3_FSINFO, NFS3_HOLD);
	ck_assert_int_eq(up->ops->root(up, false, ssc_clock_now_ns() + 200 * MS, &fh), SSC_OK);
	nfs3_server_release(server);
	round_trip();
	up->ops->limits(up, &limits);
	ck_assert(!limits.known);
	ck_assert_int_eq(up->ops->root(up, true, ssc_clock_now_ns() + 20 * SSC_NS_PER_S, &fh),
			 SSC_OK);
	up->ops->limits(up, &limits);
	ck_assert(limits.known);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_lost");
	TCase *lost = add_case(suite, "lost", setup_both);

	tcase_add_test(lost, a_call_that_the_server_forgot_ends_beside_others);
	tcase_add_test(lost, the_dead_limit_is_kept_by_an_idle_connection);
	tcase_add_test(lost, a_call_that_waited_for_room_in_vain_leaves_its_place);
	tcase_add_test(lost, limits_that_come_late_are_not_taken);
	return unit_main(suite);
}
