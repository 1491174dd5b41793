/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_nfs4_recovery.c - lost connections, replies, sessions and client ids; and replies that are wrong.
 *
 * The peer counts each request that it has done, so "once" means once.
 */
#include <arpa/inet.h>

#include "nfs4_unit.h"

/* What becomes of the READs (or OPENs...) from the first on; then they are answered. */
static enum peer_action fate[8];
static atomic_uint n_fates, n_seen;

static enum peer_action as_fated(struct nfs4_peer *p, struct nfs4_request *rq)
{
	uint32_t n;

	(void)p;
	if (!rq->has_sequence || rq->first_op == SSC_OP4_RECLAIM_COMPLETE)
		return PEER_ANSWER;
	n = atomic_fetch_add(&n_seen, 1);
	return n < atomic_load(&n_fates) ? fate[n] : PEER_ANSWER;
}

static void fated(int n, enum peer_action a, enum peer_action b)
{
	fate[0] = a;
	fate[1] = b;
	atomic_store(&n_seen, 0);
	atomic_store(&n_fates, (unsigned)n);
	peer_before(peer, as_fated);
}

/* A COMMIT that is said to be unsafe, so that the reply is cached. @return its outcome. */
static uint32_t commit_once(void)
{
	uint8_t verf[SSC_VERIFIER_BYTES];
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who.cred);
	ssc_nfs4_arg_putfh(&call, &any_fh);
	ssc_nfs4_arg_commit(&call, 0, 0);
	call.is_unsafe = true;
	outcome = ssc_nfs4_run(client, &call);
	if (outcome == SSC_ST4_OK) {
		ck_outcome(ssc_nfs4_res(&call, SSC_OP4_PUTFH), "OK");
		ck_outcome(ssc_nfs4_res_commit(&call, verf), "OK");
	}
	ssc_nfs4_call_fini(&call);
	return outcome;
}

START_TEST(a_request_that_was_lost_is_sent_again)
{
	uint32_t done = atomic_load(&peer->n_done);

	fated(1, PEER_CLOSE, PEER_ANSWER);
	ck_outcome(read_some(3, 1000), "OK");
	ck_assert_uint_eq(atomic_load(&peer->n_done), done + 1);
	ck_assert_uint_eq(peer->n_bind, 1); /* the session was kept */
	ck_assert_uint_eq(peer->n_create, 1);
	ck_assert_uint_eq(info().n_resent, 1);
}
END_TEST

START_TEST(a_lost_reply_of_a_safe_call_is_done_again)
{
	uint32_t done = atomic_load(&peer->n_done);

	peer->is_uncached_later = _i;
	fated(1, PEER_CLOSE_AFTER, PEER_ANSWER);
	ck_outcome(read_some(3, 1000), "OK"); /* UNCACHED, and then once more */
	ck_assert_uint_eq(atomic_load(&peer->n_done), done + 2);
	ck_assert_uint_eq(peer->n_create, 1);
}
END_TEST

START_TEST(a_lost_reply_of_an_unsafe_call_is_given_again)
{
	uint32_t done = atomic_load(&peer->n_done);

	fated(1, PEER_CLOSE_AFTER, PEER_ANSWER);
	ck_outcome(commit_once(), "OK");
	ck_assert_uint_eq(atomic_load(&peer->n_done), done + 1); /* once */
	ck_outcome(read_some(0, 10), "OK");
}
END_TEST

START_TEST(an_unsafe_call_that_was_not_begun_is_sent_in_the_new_session)
{
	uint32_t done = atomic_load(&peer->n_done);

	peer_forget_session(peer);
	ck_outcome(commit_once(), "OK");
	ck_assert_uint_eq(atomic_load(&peer->n_done), done + 1);
	ck_assert_uint_eq(peer->n_create, 2);
}
END_TEST

static enum peer_action forget_after(struct nfs4_peer *p, struct nfs4_request *rq)
{
	enum peer_action a = as_fated(p, rq);

	if (rq->first_op == SSC_OP4_BIND_CONN_TO_SESSION)
		peer_forget_session(p);
	return a;
}

START_TEST(an_unsafe_call_whose_session_is_gone_is_reported)
{
	uint32_t done = atomic_load(&peer->n_done);

	fated(1, PEER_CLOSE_AFTER, PEER_ANSWER);
	peer_before(peer, forget_after);
	ck_outcome(commit_once(), "local CONN"); /* nobody knows */
	ck_assert_uint_eq(atomic_load(&peer->n_done), done + 1);
	ck_outcome(read_some(0, 10), "OK");
	ck_assert_uint_eq(peer->n_create, 2);
	ck_assert_uint_eq(info().generation, 1);
}
END_TEST

START_TEST(a_given_up_slot_is_counted_right_after_a_loss)
{
	struct ssc_nfs4_call call;

	/* Lost for good, and its time is over: then the connection goes, and the sequence is unknown. */
	for (int done = 0; done < 2; done++) {
		fated(1, done ? PEER_DROP : PEER_LOSE, PEER_ANSWER);
		ssc_nfs4_call_init(&call, &who.cred);
		ssc_nfs4_arg_putfh(&call, &any_fh);
		call.timeout_ns = 50 * SSC_NS_PER_MS;
		ck_outcome(ssc_nfs4_run(client, &call), "local TIMEDOUT");
		ssc_nfs4_call_fini(&call);
		ssc_nfs4_client_disconnect(client);
		ck_assert(peer_wait(&peer->n_bind, (uint32_t)done + 1));
		for (int i = 0; i < 40; i++)
			ck_outcome(read_some(0, 10), "OK");
	}
	ck_assert_uint_eq(peer->n_create, 1);
}
END_TEST

START_TEST(a_lost_session_is_made_anew)
{
	peer_forget_session(peer);
	ck_outcome(read_some(0, 5000), "OK");
	ck_assert_uint_eq(peer->n_create, 2);
	ck_assert_uint_eq(peer->n_exchange, 1);
	ck_assert_uint_eq(info().generation, 1);
	ck_assert_uint_eq(info().n_sessions, 2);
}
END_TEST

START_TEST(a_lost_client_id_is_made_anew)
{
	peer_forget_client(peer);
	ck_outcome(read_some(0, 5000), "OK");
	ck_assert_uint_eq(peer->n_exchange, 2);
	ck_assert_uint_eq(peer->n_complete, 2);
	ck_assert_uint_eq(info().generation, 2);
	ck_outcome(commit_once(), "OK");
}
END_TEST

START_TEST(a_restart_is_survived)
{
	fated(1, PEER_CLOSE, PEER_ANSWER);
	atomic_store(&peer->refuses, true);
	peer_forget_client(peer);
	ssc_nfs4_client_disconnect(client);
	sleep_ms(300);
	ck_assert(!info().is_up);
	atomic_store(&peer->refuses, false);
	ck_outcome(read_some(0, 5000), "OK");
	ck_assert_uint_eq(info().generation, 2);
}
END_TEST

START_TEST(the_back_channel_gets_a_session_of_its_own)
{
	ssc_nfs4_client_free(client);
	cfg.want_back_channel = true;
	nfs4_start();
	uint32_t created = atomic_load(&peer->n_create);
	uint32_t gone = atomic_load(&peer->n_destroy_session);

	ck_assert(info().has_back_channel);
	ssc_nfs4_client_disconnect(client);
	ck_assert(peer_wait(&peer->n_destroy_session, gone + 1));
	ck_assert_uint_eq(peer->n_create, created + 1);
	ck_outcome(read_some(0, 5000), "OK");
	ck_assert_uint_eq(info().generation, 1);
}
END_TEST

/* ---- what SEQUENCE says ---- */

static uint32_t say_status;
static atomic_uint n_say;

static enum peer_action say(struct nfs4_peer *p, struct nfs4_request *rq)
{
	(void)p;
	if (rq->has_sequence && rq->first_op == SSC_OP4_READ && atomic_load(&n_say) > 0) {
		atomic_fetch_sub(&n_say, 1);
		rq->sequence_status = say_status;
	}
	return PEER_ANSWER;
}

static const struct {
	uint32_t status;
	const char *outcome;
	uint32_t n_create, n_exchange;
} sequence_says[] = {
	{SSC_ST4_DELAY, "OK", 1, 1},
	{SSC_ST4_BADSESSION, "OK", 2, 1},
	{SSC_ST4_DEADSESSION, "OK", 2, 1},
	{SSC_ST4_SEQ_MISORDERED, "OK", 2, 1},
	{SSC_ST4_BADSLOT, "OK", 2, 1}, /* it was slot 0 */
	{SSC_ST4_EXPIRED, "OK", 2, 2},
	{SSC_ST4_STALE_CLIENTID, "OK", 2, 2},
	{SSC_ST4_CONN_NOT_BOUND_TO_SESSION, "OK", 1, 1},
	{SSC_ST4_REQ_TOO_BIG, "REQ_TOO_BIG", 1, 1},
	{SSC_ST4_SERVERFAULT, "SERVERFAULT", 1, 1},
};

START_TEST(obeys_sequence)
{
	say_status = sequence_says[_i].status;
	atomic_store(&n_say, 1);
	peer_before(peer, say);
	ck_outcome(read_some(0, 100), sequence_says[_i].outcome);
	ck_outcome(read_some(0, 100), "OK");
	ck_assert_uint_eq(peer->n_create, sequence_says[_i].n_create);
	ck_assert_uint_eq(peer->n_exchange, sequence_says[_i].n_exchange);
}
END_TEST

START_TEST(endless_delay_ends)
{
	struct ssc_nfs4_call call;

	say_status = SSC_ST4_DELAY;
	atomic_store(&n_say, 1000000);
	peer_before(peer, say);
	ssc_nfs4_call_init(&call, &who.cred);
	ssc_nfs4_arg_commit(&call, 0, 0); /* not a READ: goes through */
	ck_outcome(ssc_nfs4_run(client, &call), "OK");
	ssc_nfs4_call_fini(&call);
	cfg.answer_ns = 400 * SSC_NS_PER_MS;
	ssc_nfs4_client_free(client);
	nfs4_start();
	ck_outcome(read_some(0, 100), "local TIMEDOUT");
	atomic_store(&n_say, 0);
	ck_outcome(read_some(0, 100), "OK");
}
END_TEST

START_TEST(endless_loss_of_sessions_ends)
{
	say_status = SSC_ST4_BADSESSION;
	atomic_store(&n_say, 1000000);
	peer_before(peer, say);
	ck_outcome(read_some(0, 100), "local PROTO");
	ck_assert_uint_le(peer->n_create, 14);
	atomic_store(&n_say, 0);
	ck_outcome(read_some(0, 100), "OK");
}
END_TEST

/* ---- replies that are wrong ---- */

static void set_at(uint8_t *at, uint32_t v)
{
	v = htonl(v);
	memcpy(at, &v, 4);
}

static uint32_t get_at(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, 4);
	return ntohl(v);
}

/* Results: status 0, tag 4, number 8, SEQUENCE 12, its status 16, session 20, seqid 36, slot 40. */
static const struct {
	size_t at, cut; /* the word that is changed; or to how many bytes it is cut */
} wrongs[] = {
	{20, 0}, {32, 0}, {36, 0}, {40, 0}, {12, 0}, {16, 0}, {4, 0},  {8, 0},  {0, 1},
	{0, 3},  {0, 4},  {0, 11}, {0, 12}, {0, 17}, {0, 20}, {0, 40}, {0, 55},
};

static atomic_int wrong_at = -1;
static atomic_uint wrong_n;

static void make_wrong(struct nfs4_peer *p, const struct nfs4_request *rq, uint8_t *reply,
		       size_t *len, size_t room)
{
	int i = atomic_load(&wrong_at);

	(void)p, (void)room;
	if (rq->first_op != SSC_OP4_READ || i < 0 || atomic_load(&wrong_n) == 0)
		return;
	atomic_fetch_sub(&wrong_n, 1);
	if (wrongs[i].cut)
		*len = wrongs[i].cut;
	else
		set_at(reply + wrongs[i].at, get_at(reply + wrongs[i].at) + 0x01010101);
}

START_TEST(a_wrong_reply_costs_the_connection)
{
	peer_after(peer, make_wrong);
	atomic_store(&wrong_n, 1);
	atomic_store(&wrong_at, _i);
	ck_outcome(read_some(9, 3000), "OK");
	if (wrongs[_i].at == 8)
		return; /* more results than there are: nobody misses those that were not asked for */
	ck_assert_uint_ge(atomic_load(&peer->n_connects), 2);
	ck_assert_uint_eq(peer->n_create, 1);
	ck_outcome(read_some(9, 100000), "OK");
}
END_TEST

START_TEST(a_server_that_is_always_wrong_is_given_up)
{
	peer_after(peer, make_wrong);
	atomic_store(&wrong_n, 1000000);
	atomic_store(&wrong_at, 3);
	ck_outcome(read_some(9, 3000), "local PROTO");
	ck_assert_uint_le(atomic_load(&peer->n_connects), SSC_NFS4_SLOTS_MAX);
	atomic_store(&wrong_n, 0);
	ck_outcome(read_some(9, 3000), "OK");
}
END_TEST

/* The data is placed straight from the socket, and the connection goes in the middle of it. */
static void cut_data(struct nfs4_peer *p, const struct nfs4_request *rq, uint8_t *reply,
		     size_t *len, size_t room)
{
	(void)reply, (void)room;
	if (rq->first_op != SSC_OP4_READ || atomic_load(&wrong_n) == 0)
		return;
	atomic_fetch_sub(&wrong_n, 1);
	p->cut_after = *len / 2;
}

START_TEST(a_reply_that_ends_in_the_middle_of_data)
{
	peer_after(peer, cut_data);
	atomic_store(&wrong_n, 1);
	ck_outcome(read_some(9, 900000), "OK");
	ck_assert_uint_eq(atomic_load(&peer->n_connects), 2);
}
END_TEST

/* Connections that break at random times under load: every READ is right, and the slots, too. */
START_TEST(random_losses)
{
	uint64_t seed = unit_seed("random_losses");

	for (int i = 0; i < 8; i++)
		fate[i] = (enum peer_action[]){PEER_ANSWER, PEER_CLOSE, PEER_CLOSE_AFTER,
					       PEER_ANSWER}[unit_random(&seed) % 4];
	for (int round = 0; round < 12; round++) {
		atomic_store(&n_seen, 0);
		atomic_store(&n_fates, 8);
		peer_before(peer, as_fated);
		for (int i = 0; i < 6; i++) {
			if (unit_random(&seed) % 3 == 0)
				ssc_nfs4_client_disconnect(client);
			ck_outcome(read_some(unit_random(&seed) % 1000,
					     (uint32_t)(unit_random(&seed) % 100000)),
				   "OK");
		}
		fate[unit_random(&seed) % 8] = PEER_CLOSE_AFTER;
		fate[unit_random(&seed) % 8] = PEER_ANSWER;
	}
}
END_TEST

#define N_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
	Suite *s = suite_create("nfs4_recovery");
	TCase *tc = tcase_create("losses");
	TCase *wrong = tcase_create("wrong");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, set_up_started, nfs4_end);
	tcase_add_test(tc, a_request_that_was_lost_is_sent_again);
	tcase_add_loop_test(tc, a_lost_reply_of_a_safe_call_is_done_again, 0, 2);
	tcase_add_test(tc, a_lost_reply_of_an_unsafe_call_is_given_again);
	tcase_add_test(tc, an_unsafe_call_that_was_not_begun_is_sent_in_the_new_session);
	tcase_add_test(tc, an_unsafe_call_whose_session_is_gone_is_reported);
	tcase_add_test(tc, a_given_up_slot_is_counted_right_after_a_loss);
	tcase_add_test(tc, a_lost_session_is_made_anew);
	tcase_add_test(tc, a_lost_client_id_is_made_anew);
	tcase_add_test(tc, a_restart_is_survived);
	tcase_add_test(tc, the_back_channel_gets_a_session_of_its_own);
	tcase_add_loop_test(tc, obeys_sequence, 0, N_OF(sequence_says));
	tcase_add_test(tc, endless_delay_ends);
	tcase_add_test(tc, endless_loss_of_sessions_ends);
	tcase_add_test(tc, random_losses);
	suite_add_tcase(s, tc);
	tcase_set_timeout(wrong, 40);
	tcase_add_checked_fixture(wrong, set_up_started, nfs4_end);
	tcase_add_loop_test(wrong, a_wrong_reply_costs_the_connection, 0, N_OF(wrongs));
	tcase_add_test(wrong, a_server_that_is_always_wrong_is_given_up);
	tcase_add_test(wrong, a_reply_that_ends_in_the_middle_of_data);
	suite_add_tcase(s, wrong);
	return unit_main(s);
}
