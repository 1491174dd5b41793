/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_nfs4_session.c - the session client against a peer that counts breaches of the rules: coming up,
 * slots, deadlines, ending.
 */
#include <pthread.h>

#include "nfs4_unit.h"

START_TEST(comes_up_in_three_round_trips)
{
	ck_assert_uint_eq(peer->n_exchange, 1);
	ck_assert_uint_eq(peer->n_create, 1);
	ck_assert_uint_eq(peer->n_complete, 1);
	ck_assert_uint_eq(peer->n_requests, 3);
	ck_assert_uint_eq(info().n_slots, 16);
	ck_assert_uint_eq(info().io_max, SSC_NFS4_IO_MAX);
	ck_assert_uint_eq(info().lease_s, 90);
	ck_assert_uint_eq(info().generation, 1);
	ck_outcome(read_some(5, 100), "OK");
	ck_outcome(read_some(4096, SSC_NFS4_IO_MAX), "OK");
	ck_assert_uint_eq(peer->n_requests, 5);
}
END_TEST

START_TEST(takes_itself_away)
{
	ssc_nfs4_client_free(client);
	client = NULL;
	ck_assert_uint_eq(peer->n_destroy_session, 1);
	ck_assert_uint_eq(peer->n_destroy_client, 1);
}
END_TEST

START_TEST(writes_and_commits)
{
	static const size_t sizes[] = {0, 1, 2, 3, 4, 4095, 40001, 1 << 20};
	struct ssc_nfs4_call call;
	struct ssc_write_response res;
	uint8_t verf[SSC_VERIFIER_BYTES];
	uint8_t *buf = calloc(1, sizes[_i] + 1);
	struct iovec iov[3] = {{buf, sizes[_i] / 3}, {buf, 0}, {buf, sizes[_i]}};

	/* Operations behind the data find their place whatever its length; the peer checks it. */
	ssc_nfs4_call_init(&call, &who.cred);
	ssc_nfs4_arg_putfh(&call, &any_fh);
	ssc_nfs4_arg_write(&call, &any_stateid, 77, 0, iov, 3, sizes[_i]);
	ssc_nfs4_arg_commit(&call, 0, 0);
	ck_outcome(ssc_nfs4_run(client, &call), "OK");
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_PUTFH), "OK");
	ck_outcome(ssc_nfs4_res_write(&call, &res), "OK");
	ck_assert_uint_eq(res.count, sizes[_i]);
	ck_assert_mem_eq(res.verf, "verifier", 8);
	ck_outcome(ssc_nfs4_res_commit(&call, verf), "OK");
	ck_assert_mem_eq(verf, "verifier", 8);
	ssc_nfs4_call_fini(&call);
	free(buf);
}
END_TEST

/* ---- slots ---- */

struct many {
	struct ssc_nfs4_call call;
	struct iovec iov;
	uint8_t buf[64];
	atomic_int *left;
	uint32_t outcome;
};

static void many_done(struct ssc_nfs4_call *call)
{
	struct many *m = call->ctx;

	m->outcome = call->outcome;
	ssc_nfs4_call_fini(call);
	atomic_fetch_sub(m->left, 1);
}

static void submit_many(struct many *m, int n, atomic_int *left, uint64_t timeout_ns)
{
	for (int i = 0; i < n; i++) {
		m[i].iov = (struct iovec){m[i].buf, sizeof(m[i].buf)};
		m[i].left = left;
		ssc_nfs4_call_init(&m[i].call, &who.cred);
		ssc_nfs4_arg_putfh(&m[i].call, &any_fh);
		ssc_nfs4_arg_read(&m[i].call, &any_stateid, 64u * (uint32_t)i, 64, &m[i].iov, 1);
		m[i].call.timeout_ns = timeout_ns;
		m[i].call.done = many_done;
		m[i].call.ctx = &m[i];
		ssc_nfs4_submit(client, &m[i].call);
	}
}

static void wait_left(atomic_int *left)
{
	for (int i = 0; i < 10000 && atomic_load(left) > 0; i++)
		sleep_ms(1);
	ck_assert_int_eq(atomic_load(left), 0);
}

static enum peer_action hold_reads(struct nfs4_peer *p, struct nfs4_request *rq)
{
	(void)p;
	return rq->first_op == SSC_OP4_READ ? PEER_HOLD : PEER_ANSWER;
}

START_TEST(uses_all_slots_and_no_more)
{
	struct many *m = calloc(100, sizeof(*m));
	atomic_int left = 100;

	peer_before(peer, hold_reads);
	submit_many(m, 100, &left, 0);
	while (atomic_load(&left) > 0) {
		for (int i = 0; i < 200 && peer_n_held(peer) < 16; i++)
			sleep_ms(1);
		ck_assert_uint_le(peer_n_held(peer), 16);
		peer_release(peer, left % 2); /* replies in either order */
	}
	ck_assert_uint_eq(peer->max_busy, 16);
	ck_assert_uint_eq(info().max_in_flight, 16);
	for (int i = 0; i < 100; i++)
		ck_outcome(m[i].outcome, "OK");
	free(m);
}
END_TEST

START_TEST(keeps_below_a_lowered_limit)
{
	struct many *m = calloc(60, sizeof(*m));
	atomic_int left = 60;

	atomic_store(&peer->target_slot, 2);
	ck_outcome(read_some(0, 10), "OK"); /* brings the news */
	ck_assert_uint_eq(info().n_slots, 3);
	peer_before(peer, hold_reads);
	submit_many(m, 60, &left, 0);
	while (atomic_load(&left) > 0) {
		sleep_ms(2);
		ck_assert_uint_le(peer_n_held(peer), 3);
		peer_release(peer, false);
	}
	atomic_store(&peer->target_slot, UINT32_MAX);
	peer_before(peer, NULL);
	ck_outcome(read_some(0, 10), "OK");
	ck_assert_uint_eq(info().n_slots, 16);
	free(m);
}
END_TEST

static void *reader(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	for (int i = 0; i < 200; i++)
		if (read_some(unit_random(&seed) % 100000, (uint32_t)(unit_random(&seed) % 70000)))
			return arg;
	return NULL;
}

START_TEST(serves_many_threads)
{
	pthread_t thread[8];
	void *bad;

	for (uintptr_t i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, reader, (void *)(i + 1)), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], &bad);
		ck_assert_ptr_null(bad);
	}
}
END_TEST

/* ---- deadlines ---- */

static enum peer_action lose_reads(struct nfs4_peer *p, struct nfs4_request *rq)
{
	(void)p;
	return rq->first_op == SSC_OP4_READ ? PEER_LOSE : PEER_ANSWER;
}

static enum peer_action lose_all(struct nfs4_peer *p, struct nfs4_request *rq)
{
	(void)p, (void)rq;
	return PEER_LOSE;
}

START_TEST(ends_what_is_not_answered)
{
	struct many *m = calloc(20, sizeof(*m));
	atomic_int left = 20;
	uint64_t begin = ssc_clock_now_ns();

	/* 16 are sent, and 4 find no slot. */
	peer_before(peer, lose_reads);
	submit_many(m, 20, &left, 200 * SSC_NS_PER_MS);
	wait_left(&left);
	ck_assert_uint_ge(ssc_clock_now_ns() - begin, 200 * SSC_NS_PER_MS);
	ck_assert_uint_lt(ssc_clock_now_ns() - begin, 3 * SSC_NS_PER_S);
	for (int i = 0; i < 20; i++)
		ck_outcome(m[i].outcome, i < 16 ? "local TIMEDOUT" : "local DOWN");
	ck_assert_uint_eq(info().n_timeouts, 20);
	free(m);
}
END_TEST

START_TEST(a_late_reply_harms_nobody)
{
	struct many *m = calloc(16, sizeof(*m));
	atomic_int left = 16;

	peer_before(peer, hold_reads);
	submit_many(m, 16, &left, 100 * SSC_NS_PER_MS);
	wait_left(&left);
	memset(m, 0xee, 16 * sizeof(*m)); /* the buffers are the caller's again */
	peer_before(peer, NULL);
	ck_assert_uint_eq(peer_release(peer, true), 16);
	for (int i = 0; i < 40; i++)
		ck_outcome(read_some(0, 10), "OK");
	for (int i = 0; i < 16; i++)
		ck_assert_uint_eq(m[i].buf[5], 0xee);
	free(m);
}
END_TEST

START_TEST(a_silent_server_is_asked_and_given_up)
{
	ssc_nfs4_client_free(client);
	cfg.dead_ns = 400 * SSC_NS_PER_MS;
	nfs4_start();
	peer_before(peer, lose_reads);
	struct many *m = calloc(1, sizeof(*m));
	atomic_int left = 1;
	uint32_t before = atomic_load(&peer->n_connects);

	submit_many(m, 1, &left, 2 * SSC_NS_PER_S);
	ck_assert(peer_wait(&peer->n_nulls, 1));
	ck_assert(peer_wait(&peer->n_connects, before + 1));
	peer_before(peer, NULL);
	wait_left(&left);
	ck_outcome(m->outcome, "OK"); /* it was sent again */
	ck_assert_uint_ge(info().n_resent, 1);
	free(m);
}
END_TEST

START_TEST(a_server_that_never_answers_is_no_server)
{
	peer_before(peer, lose_all);
	cfg.connect_ns = 150 * SSC_NS_PER_MS;
	cfg.patience_ns = 300 * SSC_NS_PER_MS;
	ck_assert_int_eq(ssc_nfs4_client_new(&cfg, &client), SSC_OK);
	who.client = client;
	ck_outcome(read_some(0, 10), "local DOWN");
	ck_outcome(ssc_nfs4_client_wait(client, in_ms(10)), "local TIMEDOUT");
	/* From now on it is told at once. */
	uint64_t begin = ssc_clock_now_ns();
	ck_outcome(read_some(0, 10), "local DOWN");
	ck_assert_uint_lt(ssc_clock_now_ns() - begin, 100 * SSC_NS_PER_MS);
}
END_TEST

START_TEST(no_server_at_all)
{
	atomic_store(&peer->refuses, true);
	cfg.patience_ns = 100 * SSC_NS_PER_MS;
	ck_assert_int_eq(ssc_nfs4_client_new(&cfg, &client), SSC_OK);
	who.client = client;
	ck_outcome(read_some(0, 10), "local DOWN");
	atomic_store(&peer->refuses, false);
	ck_outcome(ssc_nfs4_client_wait(client, in_ms(8000)), "OK");
	ck_outcome(read_some(0, 10), "OK");
}
END_TEST

/* ---- bounds and ends ---- */

START_TEST(the_queue_has_an_end)
{
	const int n = SSC_NFS4_QUEUE_MAX + 100;
	struct many *m = calloc((size_t)n, sizeof(*m));
	atomic_int left = n;
	int refused = 0;

	peer_before(peer, hold_reads);
	submit_many(m, n, &left, 0);
	ssc_nfs4_client_free(client);
	client = NULL;
	ck_assert_int_eq(atomic_load(&left), 0);
	for (int i = 0; i < n; i++) {
		const char *s = ssc_nfs4_outcome_str(m[i].outcome);

		refused += strcmp(s, "local JUKEBOX") == 0;
		ck_assert(strcmp(s, "local JUKEBOX") == 0 || strcmp(s, "local SHUTDOWN") == 0);
	}
	ck_assert_int_ge(refused, 100 - 16);
	free(m);
}
END_TEST

START_TEST(a_call_that_does_not_fit_is_refused)
{
	struct ssc_nfs4_call call;
	char name[256];

	memset(name, 'x', sizeof(name));
	ssc_nfs4_call_init(&call, &who.cred);
	for (int i = 0; i < 40; i++)
		ssc_nfs4_arg_name(&call, SSC_OP4_LOOKUP, name, sizeof(name));
	ck_outcome(ssc_nfs4_run(client, &call), "local INVAL");
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_LOOKUP), "local INVAL");
	ssc_nfs4_call_fini(&call);
	ck_assert_uint_eq(peer->n_requests, 3);
}
END_TEST

START_TEST(a_small_session_is_respected)
{
	ssc_nfs4_client_free(client);
	peer->request_max = 65536 + 3072;
	nfs4_start();
	ck_assert_uint_eq(info().io_max, 65536);
	ck_outcome(read_some(0, 65536), "OK");
	ck_outcome(read_some(0, 65537), "local INVAL");
	ck_outcome(read_some(0, 10), "OK");
}
END_TEST

START_TEST(the_lease_is_kept)
{
	ssc_nfs4_client_free(client);
	peer->lease_s = 1;
	nfs4_start();
	uint32_t before = atomic_load(&peer->n_done);

	sleep_ms(1200);
	ck_assert_uint_ge(atomic_load(&peer->n_done) - before, 3);
	ck_assert_uint_le(atomic_load(&peer->n_done) - before, 5);
}
END_TEST

START_TEST(wrong_configurations)
{
	struct ssc_nfs4_client *c;
	struct ssc_nfs4_config bad = cfg;

	bad.n_slots = 0;
	ck_assert_int_eq(ssc_nfs4_client_new(&bad, &c), SSC_E_INVAL);
	bad.n_slots = SSC_NFS4_SLOTS_MAX + 1;
	ck_assert_int_eq(ssc_nfs4_client_new(&bad, &c), SSC_E_INVAL);
	bad = cfg;
	bad.connect = NULL;
	ck_assert_int_eq(ssc_nfs4_client_new(&bad, &c), SSC_E_INVAL);
	bad.server = "localhost"; /* a name, which would have to be looked up */
	ck_assert_int_eq(ssc_nfs4_client_new(&bad, &c), SSC_E_INVAL);
	ck_assert_ptr_null(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("nfs4_session");
	TCase *tc = tcase_create("started");
	TCase *before = tcase_create("not_started");

	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, set_up_started, nfs4_end);
	tcase_add_test(tc, comes_up_in_three_round_trips);
	tcase_add_test(tc, takes_itself_away);
	tcase_add_loop_test(tc, writes_and_commits, 0, 8);
	tcase_add_test(tc, uses_all_slots_and_no_more);
	tcase_add_test(tc, keeps_below_a_lowered_limit);
	tcase_add_test(tc, serves_many_threads);
	tcase_add_test(tc, ends_what_is_not_answered);
	tcase_add_test(tc, a_late_reply_harms_nobody);
	tcase_add_test(tc, a_silent_server_is_asked_and_given_up);
	tcase_add_test(tc, the_queue_has_an_end);
	tcase_add_test(tc, a_call_that_does_not_fit_is_refused);
	tcase_add_test(tc, a_small_session_is_respected);
	tcase_add_test(tc, the_lease_is_kept);
	suite_add_tcase(s, tc);
	tcase_set_timeout(before, 30);
	tcase_add_checked_fixture(before, nfs4_prepare, nfs4_end);
	tcase_add_test(before, a_server_that_never_answers_is_no_server);
	tcase_add_test(before, no_server_at_all);
	tcase_add_test(before, wrong_configurations);
	suite_add_tcase(s, before);
	return unit_main(s);
}
