/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_share.c - many callers, threads and connections of one upstream, and its figures.
 */
#include "upstream_unit.h"

#define MIB (1u << 20)

START_TEST(credentials_go_with_each_call)
{
	struct nfs3_record r;
	struct asked *a;
	unsigned int i, j;

	for (i = 0; i < 3; i++) {
		a = ask(SSC_OP_GETATTR, NULL);
		a->call->cred = (struct ssc_cred){.uid = 1000 + i, .gid = 7, .n_groups = i * 8};
		for (j = 0; j < i * 8; j++)
			a->call->cred.groups[j] = j * 3;
		ck_assert_int_eq(run_and_forget(a), SSC_OK);
		r = nfs3_server_record(server, NFS3_GETATTR, i);
		ck_assert_uint_eq(r.uid, 1000 + i);
		ck_assert_uint_eq(r.gid, 7);
		ck_assert_uint_eq(r.n_groups, i * 8);
		for (j = 0; j < i * 8; j++)
			ck_assert_uint_eq(r.groups[j], j * 3);
	}
}
END_TEST

START_TEST(figures_count_what_was_done)
{
	char data[10] = {0};
	struct iovec iov = {data, 10};
	struct ssc_upstream_stats s;
	struct ssc_fh fh;

	nfs3_server_poke(server, "f", "0123456789", 10);
	fh = fh_of("f");
	ck_assert_int_eq(run_and_forget(ask_io(SSC_OP_READ, &fh, 0, &iov)), SSC_OK);
	ck_assert_int_eq(run_and_forget(ask_io(SSC_OP_WRITE, &fh, 0, &iov)), SSC_OK);
	s = stats();
	ck_assert_uint_eq(s.calls, 3);
	ck_assert_uint_eq(s.replies, 3);
	ck_assert_uint_eq(s.per_op[SSC_OP_LOOKUP], 1);
	ck_assert_uint_eq(s.per_op[SSC_OP_READ], 1);
	ck_assert_uint_eq(s.per_op[SSC_OP_WRITE], 1);
	ck_assert_uint_eq(s.bytes_read, 10);
	ck_assert_uint_eq(s.bytes_written, 10);
	ck_assert_uint_eq(s.connects, 1);
	ck_assert_uint_eq(s.resent + s.timeouts + s.late + s.refused + s.bad_replies, 0);
	ck_assert_uint_eq(s.in_flight + s.waiting, 0);
	ck_assert(s.up);
}
END_TEST

START_TEST(a_driver_gets_its_answer_itself)
{
	struct asked *a;
	int i;

	for (i = 0; i < 100; i++) {
		a = ask(SSC_OP_GETATTR, NULL);
		a->call->drive_ns = 10 * SSC_NS_PER_S;
		submit(a);
		/* Once the connection is up submit comes back with the answer. */
		ck_assert(i == 0 || is_done(a));
		ck_assert_int_eq(wait_done(a), SSC_OK);
		forget(a);
	}
}
END_TEST

enum { THREADS = 8, CALLS = 200 };

static void *ask_many(void *arg)
{
	unsigned int *n_ok = arg;
	int i;

	for (i = 0; i < CALLS; i++) {
		struct asked *a = ask(i % 3 ? SSC_OP_GETATTR : SSC_OP_FSSTAT, NULL);

		a->call->drive_ns = i % 2 ? 50 * MS : 0;
		a->call->done_only_wakes = i % 5 != 0;
		submit(a);
		*n_ok += wait_done(a) == SSC_OK;
		forget(a);
	}
	return NULL;
}

START_TEST(many_threads_share_the_connections)
{
	struct ssc_upstream_config cfg = config();
	unsigned int n_ok[THREADS] = {0};
	pthread_t threads[THREADS];
	int i;

	close_upstream();
	cfg.connections = 2;
	open_upstream(&cfg);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_many, &n_ok[i]), 0);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_uint_eq(n_ok[i], CALLS);
	}
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_ANY), THREADS * CALLS);
}
END_TEST

START_TEST(much_data_opens_another_connection)
{
	enum { N = 6 };
	static uint8_t data[MIB];
	struct iovec iov = {data, MIB};
	struct ssc_upstream_config cfg = config();
	struct asked *a[N];
	struct ssc_fh fh;
	int i;

	round_trip(); /* so that it has a connection, to be counted below */
	close_upstream();
	cfg.connections = 2;
	open_upstream(&cfg);
	round_trip(); /* calls that wait for the first connection are all that one's */
	nfs3_server_poke(server, "f", "", 0);
	fh = fh_of("f");
	fault_times(NFS3_WRITE, NFS3_HOLD, N);
	for (i = 0; i < N; i++) {
		a[i] = ask_io(SSC_OP_WRITE, &fh, (uint64_t)i * MIB, &iov);
		submit(a[i]);
	}
	ck_assert(nfs3_server_wait_connections(server, 3)); /* the first upstream had one */
	ck_assert(nfs3_server_wait_calls(server, NFS3_WRITE, N));
	nfs3_server_release(server);
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(wait_done(a[i]), SSC_OK);
		forget(a[i]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_share");
	TCase *sharing = add_case(suite, "sharing", setup_both);

	tcase_add_test(sharing, credentials_go_with_each_call);
	tcase_add_test(sharing, figures_count_what_was_done);
	tcase_add_test(sharing, a_driver_gets_its_answer_itself);
	tcase_add_test(sharing, many_threads_share_the_connections);
	tcase_add_test(sharing, much_data_opens_another_connection);
	return unit_main(suite);
}
