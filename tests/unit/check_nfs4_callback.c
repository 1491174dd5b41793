/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_nfs4_callback.c - the back channel: what the client answers, and what it keeps.
 */
#include <arpa/inet.h>

#include "nfs4_unit.h"

static uint8_t call[2048], answer[2048];
static size_t call_len, answer_len;
static atomic_uint n_offloads;
static atomic_uint policy;

static uint32_t got_offload(void *ctx, const struct ssc_cb_offload_args *args)
{
	ck_assert_ptr_eq(ctx, peer);
	ck_assert_uint_eq(args->response.count, 4711);
	atomic_fetch_add(&n_offloads, 1);
	return atomic_load(&policy);
}

static void set_up(void)
{
	nfs4_prepare();
	cfg.want_back_channel = true;
	cfg.offload = got_offload;
	atomic_store(&policy, SSC_ST4_OK);
	atomic_store(&n_offloads, 0);
	nfs4_start();
}

/* ---- what the server sends ---- */

static void put(uint32_t v)
{
	v = htonl(v);
	memcpy(call + call_len, &v, 4);
	call_len += 4;
}

static void begin(uint32_t xid, uint32_t program, uint32_t proc)
{
	const uint32_t head[] = {0, xid, 0, 2, program, 1, proc, 0, 0, 0, 0};

	call_len = 0;
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		put(head[i]);
}

static void begin_compound(uint32_t xid, uint32_t n_ops)
{
	begin(xid, 0x40000000u, 1);
	put(3); /* tag */
	put(0x61626300);
	put(2);
	put(0);
	put(n_ops);
}

static void put_sequence(uint32_t seqid, uint32_t slot)
{
	const struct ssc_nfs4_info i = info();

	put(11);
	memcpy(call + call_len, i.session, 16);
	call_len += 16;
	put(seqid);
	put(slot);
	put(slot);
	put(0);
	put(1); /* a list of referring calls, of one */
	memcpy(call + call_len, i.session, 16);
	call_len += 16;
	put(1);
	put(5);
	put(0);
}

static void put_offload(uint32_t id)
{
	put(15);
	put(4);
	put(0x01020304); /* handle */
	put(1);
	put(id);
	put(id);
	put(id);
	put(0); /* NFS4_OK: a write_response4 without stateid */
	put(0);
	put(0);
	put(4711);
	put(2);
	put(0);
	put(1);
}

/* Send it. @return the compound's status, or the RPC's refusal + 1000000. */
static uint32_t ask(void)
{
	struct ssc_xdr x;
	uint32_t mark = htonl(0x80000000u | (uint32_t)(call_len - 4)), xid, accept, len;

	memcpy(call, &mark, 4);
	memcpy(&xid, call + 4, 4);
	peer_send(peer, call, call_len);
	answer_len = peer_take_answer(peer, answer, sizeof(answer));
	ck_assert_uint_ge(answer_len, 24);
	ssc_xdr_init(&x, answer, answer_len);
	ck_assert_uint_eq(ssc_xdr_u32(&x), ntohl(xid));
	ck_assert_uint_eq(ssc_xdr_u32(&x), 1);
	(void)ssc_xdr_fixed(&x, 12);
	accept = ssc_xdr_u32(&x);
	if (accept)
		return accept + 1000000;
	if (answer_len == 24)
		return 0;
	accept = ssc_xdr_u32(&x);
	ck_assert_mem_eq(ssc_xdr_opaque(&x, 100, &len), "abc", 3); /* our tag */
	return accept;
}

static uint32_t n_results(void)
{
	uint32_t n;

	memcpy(&n, answer + 24 + 4 + 8, 4);
	return ntohl(n);
}

static bool has_kept(uint32_t id, uint64_t ms)
{
	struct ssc_stateid stateid;
	struct ssc_cb_offload_args args;
	uint32_t word = htonl(id);

	stateid.seqid = 1;
	for (int i = 0; i < 3; i++)
		memcpy(stateid.other + 4 * i, &word, 4);
	return ssc_nfs4_offload_wait(client, &stateid, in_ms(ms), &args);
}

/* ---- tests ---- */

START_TEST(answers_null_and_refuses_others)
{
	begin(1, 0x40000000u, 0);
	ck_assert_uint_eq(ask(), 0);
	begin(2, 0x40000000u, 2);
	ck_assert_uint_eq(ask(), 1000003);
	begin(3, 100003, 1);
	ck_assert_uint_eq(ask(), 1000001);
	ck_outcome(read_some(0, 10), "OK");
}
END_TEST

START_TEST(an_offload_is_told_and_kept)
{
	begin_compound(1, 2);
	put_sequence(1, 0);
	put_offload(42);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	ck_assert_uint_eq(n_results(), 2);
	ck_assert_uint_eq(n_offloads, 1);
	ck_assert(!has_kept(43, 1));
	ck_assert(has_kept(42, 1));
	ck_assert(!has_kept(42, 1)); /* taken */
	ck_assert_uint_eq(info().n_callbacks, 1);
}
END_TEST

START_TEST(a_repeated_call_gets_the_same_answer)
{
	uint8_t first[2048];
	size_t len;

	begin_compound(1, 2);
	put_sequence(1, 2);
	put_offload(42);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	memcpy(first, answer, answer_len);
	len = answer_len;
	begin_compound(2, 2);
	put_sequence(1, 2);
	put_offload(42);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	ck_assert_uint_eq(answer_len, len);
	ck_assert_mem_eq(answer + 4, first + 4, len - 4); /* but for the xid */
	ck_assert_uint_eq(n_offloads, 1);
}
END_TEST

START_TEST(delay_and_then_again)
{
	atomic_store(&policy, SSC_ST4_DELAY);
	begin_compound(1, 2);
	put_sequence(1, 0);
	put_offload(42);
	ck_assert_uint_eq(ask(), SSC_ST4_DELAY);
	ck_assert(!has_kept(42, 1));
	atomic_store(&policy, SSC_ST4_OK);
	begin_compound(2, 2);
	put_sequence(2, 0);
	put_offload(42);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	ck_assert(has_kept(42, 1));
	ck_assert_uint_eq(n_offloads, 2);
}
END_TEST

START_TEST(sequence_rules)
{
	begin_compound(1, 1);
	put_sequence(2, 0); /* the first is 1 */
	ck_assert_uint_eq(ask(), SSC_ST4_SEQ_MISORDERED);
	begin_compound(2, 1);
	put_sequence(1, 4); /* the peer granted itself 4 */
	ck_assert_uint_eq(ask(), SSC_ST4_BADSLOT);
	begin_compound(3, 1);
	put_sequence(1, 0);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	begin_compound(4, 1);
	put_sequence(2, 0);
	call[44 + 8 + 12 + 4 + 3] ^= 1; /* the session */
	ck_assert_uint_eq(ask(), SSC_ST4_BADSESSION);
	begin_compound(5, 1);
	put_offload(1);
	ck_assert_uint_eq(ask(), SSC_ST4_OP_NOT_IN_SESSION);
	begin_compound(6, 2);
	put_sequence(2, 0);
	put_sequence(3, 0);
	ck_assert_uint_eq(ask(), SSC_ST4_SEQUENCE_POS);
	begin_compound(7, 0);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	ck_assert_uint_eq(n_offloads, 0);
}
END_TEST

static const struct {
	uint32_t op, status;
} others[] = {
	{3, SSC_ST4_BADHANDLE},
	{4, SSC_ST4_BAD_STATEID},
	{5, SSC_ST4_NOMATCHING_LAYOUT},
	{6, SSC_ST4_NOTSUPP},
	{7, SSC_ST4_REJECT_DELEG},
	{9, SSC_ST4_NOTSUPP},
	{12, SSC_ST4_NOTSUPP},
	{13, SSC_ST4_NOTSUPP},
	{14, SSC_ST4_NOTSUPP},
	{16, SSC_ST4_OP_ILLEGAL},
	{2, SSC_ST4_OP_ILLEGAL},
	{0, SSC_ST4_OP_ILLEGAL},
	{0xffffffffu, SSC_ST4_OP_ILLEGAL},
	{10044, SSC_ST4_OP_ILLEGAL},
};

START_TEST(what_we_do_not_have_cannot_be_recalled)
{
	begin_compound(1, 3);
	put_sequence(1, 0);
	put(others[_i].op);
	put(1);
	put(2);
	ck_assert_uint_eq(ask(), others[_i].status);
	ck_assert_uint_eq(n_results(), 2);
}
END_TEST

START_TEST(slots_are_given_back)
{
	begin_compound(1, 3);
	put_sequence(1, 0);
	put(8); /* RECALL_ANY */
	put(0);
	put(1);
	put(0xff);
	put(10); /* RECALL_SLOT */
	put(3);
	ck_assert_uint_eq(ask(), SSC_ST4_OK);
	ck_assert_uint_eq(n_results(), 3);
	atomic_store(&peer->target_slot, 3);
	ck_outcome(read_some(0, 10), "OK");
	ck_assert_uint_eq(info().n_slots, 4);
}
END_TEST

/* Every prefix of a good call: an answer that says so, or the end of the connection. Never more. */
START_TEST(cut_calls)
{
	begin_compound(1, 2);
	put_sequence(1, 0);
	put_offload(9);
	const size_t whole = call_len;

	for (size_t len = 8; len < whole; len += 4) {
		uint32_t mark = htonl(0x80000000u | (uint32_t)(len - 4));

		memcpy(call, &mark, 4);
		peer_send(peer, call, len);
		/* Whatever came of it, the client serves on. */
		ck_outcome(read_some(0, 10), "OK");
	}
	ck_assert_uint_eq(n_offloads, 0);
}
END_TEST

START_TEST(many_that_nobody_waits_for)
{
	for (uint32_t i = 1; i <= 200; i++) {
		begin_compound(i, 2);
		put_sequence(i, 1);
		put_offload(i);
		ck_assert_uint_eq(ask(), SSC_ST4_OK);
	}
	ck_assert(!has_kept(100, 1));
	ck_assert(has_kept(200, 1));
	ck_assert(has_kept(137, 1)); /* the last 64 */
	ck_assert(!has_kept(136, 1));
}
END_TEST

static void *later(void *arg)
{
	sleep_ms(100);
	begin_compound(1, 2);
	put_sequence(1, 0);
	put_offload(7);
	ask();
	return arg;
}

START_TEST(somebody_waits)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, later, NULL), 0);
	ck_assert(has_kept(7, 5000));
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("nfs4_callback");
	TCase *tc = tcase_create("callback");

	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, set_up, nfs4_end);
	tcase_add_test(tc, answers_null_and_refuses_others);
	tcase_add_test(tc, an_offload_is_told_and_kept);
	tcase_add_test(tc, a_repeated_call_gets_the_same_answer);
	tcase_add_test(tc, delay_and_then_again);
	tcase_add_test(tc, sequence_rules);
	tcase_add_loop_test(tc, what_we_do_not_have_cannot_be_recalled, 0,
			    (int)(sizeof(others) / sizeof(others[0])));
	tcase_add_test(tc, slots_are_given_back);
	tcase_add_test(tc, cut_calls);
	tcase_add_test(tc, many_that_nobody_waits_for);
	tcase_add_test(tc, somebody_waits);
	suite_add_tcase(s, tc);
	return unit_main(s);
}
