/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_budget.c - the bound on data in flight, alone and shared by two upstreams.
 */
#include "upstream_unit.h"

#define ADDRESS_2 "127.0.3.2"
#define KIB       1024u

static struct ssc_budget *budget;
static struct ssc_fh file_fh;
static uint8_t data[256 * KIB];
static struct iovec iov;
static struct nfs3_server *server_2;
static struct ssc_upstream *up_2;
static struct ssc_fh file_fh_2;

/* 64 KiB, and a little for what a call without data counts. */
static void setup_budget(void)
{
	struct ssc_upstream_config cfg;

	start_server();
	budget = ssc_budget_new(66 * KIB);
	cfg = config();
	cfg.budget = budget;
	open_upstream(&cfg);
	nfs3_server_poke(server, "f", data, sizeof(data));
	file_fh = fh_of("f");
	iov = (struct iovec){data, 32 * KIB};
}

static void teardown_budget(void)
{
	close_upstream();
	ck_assert_uint_eq(ssc_budget_used(budget), 0);
	ssc_budget_free(budget);
	teardown_both();
}

static struct asked *read_at(uint64_t offset)
{
	return ask_io(SSC_OP_READ, &file_fh, offset, &iov);
}

START_TEST(data_in_flight_is_bounded)
{
	enum { N = 8 };
	struct asked *a[N];
	int i, sent;

	for (i = 0; i < N; i++)
		a[i] = read_at(0);
	fault_times(NFS3_READ, NFS3_HOLD, N);
	for (i = 0; i < N; i++)
		submit(a[i]);
	for (sent = 2; sent <= N; sent += 2) {
		ck_assert(nfs3_server_wait_calls(server, NFS3_READ, sent));
		round_trip(); /* small calls pass */
		ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_READ), sent);
		ck_assert_uint_ge(ssc_budget_used(budget), 64 * KIB);
		wait_held(2);
		nfs3_server_release(server);
		ck_assert_int_eq(wait_done(a[sent - 2]), SSC_OK); /* in their order */
		ck_assert_int_eq(wait_done(a[sent - 1]), SSC_OK);
	}
	for (i = 0; i < N; i++)
		forget(a[i]);
	ck_assert_uint_eq(ssc_budget_used(budget), 0);
}
END_TEST

START_TEST(a_call_over_the_bound_goes_alone)
{
	struct asked *small = read_at(0), *large, *next;

	iov.iov_len = 200 * KIB;
	large = read_at(0);
	next = read_at(0);
	fault_times(NFS3_READ, NFS3_HOLD, 3);
	submit(small);
	submit(large);
	submit(next);
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 1));
	round_trip();
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_READ), 1);
	nfs3_server_release(server);
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 2));
	round_trip();
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_READ), 2);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_done(large), SSC_OK);
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 3));
	nfs3_server_release(server);
	ck_assert_int_eq(wait_done(next), SSC_OK);
	ck_assert_int_eq(wait_done(small), SSC_OK);
	forget(small);
	forget(large);
	forget(next);
}
END_TEST

START_TEST(a_call_that_waits_for_room_keeps_its_deadline)
{
	struct asked *a[3];
	int i;

	fault_times(NFS3_READ, NFS3_HOLD, 2);
	for (i = 0; i < 3; i++) {
		a[i] = read_at(0);
		submit_for(a[i], i < 2 ? 20 * SSC_NS_PER_S : 100 * MS);
	}
	ck_assert_int_eq(wait_done(a[2]), SSC_E_DOWN); /* never sent */
	wait_held(2);
	nfs3_server_release(server);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(wait_done(a[i]), i < 2 ? SSC_OK : SSC_E_DOWN);
		forget(a[i]);
	}
	ck_assert_int_eq(run_and_forget(read_at(0)), SSC_OK); /* it left the queue */
}
END_TEST

START_TEST(stop_gives_everything_back)
{
	struct asked *a[4];
	int i;

	fault_times(NFS3_READ, NFS3_HOLD, 4);
	for (i = 0; i < 4; i++) {
		a[i] = read_at(0);
		submit(a[i]);
	}
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 2));
	stop_in_time();
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(a[i]->done_err, SSC_E_SHUTDOWN);
		forget(a[i]);
	}
	ck_assert_uint_eq(ssc_budget_used(budget), 0);
}
END_TEST

/* Another upstream on the same budget, on a server of its own. */
static void open_second(void)
{
	struct ssc_upstream_config cfg;
	struct ssc_upstream *first = up;
	struct nfs3_server *first_server = server;

	server_2 = nfs3_server_new(ADDRESS_2);
	server = server_2;
	cfg = config();
	cfg.server = ADDRESS_2;
	cfg.budget = budget;
	open_upstream(&cfg);
	nfs3_server_poke(server_2, "f", data, sizeof(data));
	file_fh_2 = fh_of("f");
	up_2 = up;
	up = first;
	server = first_server;
}

static void close_second(void)
{
	up_2->ops->stop(up_2);
	up_2->ops->free(up_2);
	nfs3_server_free(server_2);
}

static enum ssc_err read_second(void)
{
	struct ssc_upstream *first = up;
	struct asked *a;
	enum ssc_err err;

	up = up_2;
	a = ask_io(SSC_OP_READ, &file_fh_2, 0, &iov);
	submit_for(a, 5 * SSC_NS_PER_S);
	err = wait_done(a);
	forget(a);
	up = first;
	return err;
}

START_TEST(a_server_that_is_away_holds_no_room)
{
	struct asked *a[4];
	int i;

	open_second();
	fault_times(NFS3_READ, NFS3_HOLD, 2);
	for (i = 0; i < 4; i++) { /* two in flight, two in the queue */
		a[i] = read_at(0);
		submit(a[i]);
	}
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 2));
	nfs3_server_down(server);
	ck_assert_int_eq(read_second(), SSC_OK);
	nfs3_server_up(server);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(wait_done(a[i]), SSC_OK);
		forget(a[i]);
	}
	close_second();
}
END_TEST

START_TEST(a_silent_server_holds_no_room_for_what_timed_out)
{
	struct asked *a[2];
	int i;

	open_second();
	fault_times(_i ? NFS3_WRITE : NFS3_READ, NFS3_HOLD, 2);
	for (i = 0; i < 2; i++) {
		a[i] = ask_io(_i ? SSC_OP_WRITE : SSC_OP_READ, &file_fh, i * 32 * KIB, &iov);
		submit_for(a[i], 100 * MS);
	}
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(wait_done(a[i]), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_budget_used(budget), 0);
	ck_assert_int_eq(read_second(), SSC_OK);
	wait_held(2);
	nfs3_server_release(server);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(wait_late(a[i]), SSC_OK);
		forget(a[i]);
	}
	close_second();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_budget");
	TCase *bounds = tcase_create("budget");

	tcase_add_checked_fixture(bounds, setup_budget, teardown_budget);
	tcase_set_timeout(bounds, 90);
	suite_add_tcase(suite, bounds);
	tcase_add_test(bounds, data_in_flight_is_bounded);
	tcase_add_test(bounds, a_call_over_the_bound_goes_alone);
	tcase_add_test(bounds, a_call_that_waits_for_room_keeps_its_deadline);
	tcase_add_test(bounds, stop_gives_everything_back);
	tcase_add_test(bounds, a_server_that_is_away_holds_no_room);
	tcase_add_loop_test(bounds, a_silent_server_holds_no_room_for_what_timed_out, 0, 2);
	return unit_main(suite);
}
