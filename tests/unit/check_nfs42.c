/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_nfs42.c - the COPY family on the wire is what RFC 7863 says, to and fro.
 */
#include "nfs42_unit.h"

/* ---- bytes by hand, from RFC 7863 ---- */

static void check_stateids(const struct ssc_stateid *src, const struct ssc_stateid *dst)
{
	ck_assert_uint_eq(src->seqid, 7);
	ck_assert_mem_eq(src->other, "abcdefghijkl", SSC_STATEID_OTHER_BYTES);
	ck_assert_uint_eq(dst->seqid, 0xfffffffe);
	ck_assert_mem_eq(dst->other, "ABCDEFGHIJKL", SSC_STATEID_OTHER_BYTES);
}

/* rfc7862_15_2 */
START_TEST(copy_args_by_hand)
{
	const struct message m =
		hex(SRC_STATEID DST_STATEID "0000000000001000"           /* ca_src_offset */
					    "0000000100000000"           /* ca_dst_offset */
					    "fedcba9876543210"           /* ca_count */
					    "00000001"                   /* ca_consecutive */
					    "00000000"                   /* ca_synchronous */
					    "00000002"                   /* ca_source_server<> */
					    "00000003 00000003 74637000" /* NETADDR "tcp" */
					    "0000000d 3139322e302e322e 312e382e31 000000"
					    "00000003 00000004 74637036" /* NETADDR "tcp6" */
					    "00000007 3a3a312e382e31 00");
	union any value;

	check_both_ways(copy_args, &m, &value);
	check_stateids(&value.copy_args.src_stateid, &value.copy_args.dst_stateid);
	ck_assert_uint_eq(value.copy_args.src_offset, 4096);
	ck_assert_uint_eq(value.copy_args.dst_offset, 1ull << 32);
	ck_assert_uint_eq(value.copy_args.count, 0xfedcba9876543210);
	ck_assert(value.copy_args.consecutive && !value.copy_args.synchronous);
	ck_assert_uint_eq(value.copy_args.sources.n, 2);
	ck_assert_uint_eq(value.copy_args.sources.n_all, 2);
	ck_assert_int_eq(value.copy_args.sources.loc[0].type, SSC_NL4_NETADDR);
	ck_assert_str_eq(value.copy_args.sources.loc[0].netid, "tcp");
	ck_assert_str_eq(value.copy_args.sources.loc[0].uaddr, "192.0.2.1.8.1");
	ck_assert_str_eq(value.copy_args.sources.loc[1].netid, "tcp6");
	ck_assert_str_eq(value.copy_args.sources.loc[1].uaddr, "::1.8.1");
}
END_TEST

/* rfc7862_15_2: within one server the list is empty */
START_TEST(copy_args_without_sources)
{
	const struct message m = hex(SRC_STATEID DST_STATEID "0000000000000000 0000000000000000"
							     "0000000000000000"
							     "00000000 00000001 00000000");
	union any value;

	check_both_ways(copy_args, &m, &value);
	ck_assert_uint_eq(value.copy_args.sources.n, 0);
	ck_assert_uint_eq(value.copy_args.sources.n_all, 0);
	ck_assert(!value.copy_args.consecutive && value.copy_args.synchronous);
}
END_TEST

/* rfc7862_15_2 */
START_TEST(copy_res_synchronous)
{
	const struct message m = hex("00000000"         /* cr_status */
				     "00000000"         /* wr_callback_id<1>: none */
				     "0000000000400000" /* wr_count */
				     "00000002"         /* FILE_SYNC4 */
				     "0102030405060708" /* wr_writeverf */
				     "00000001 00000001");
	union any value;

	check_both_ways(copy_res, &m, &value);
	ck_assert(!value.copy_res.response.has_callback_id);
	ck_assert_uint_eq(value.copy_res.response.count, 4 << 20);
	ck_assert_uint_eq(value.copy_res.response.committed, 2);
	ck_assert_mem_eq(value.copy_res.response.verf, "\1\2\3\4\5\6\7\10", 8);
	ck_assert(value.copy_res.consecutive && value.copy_res.synchronous);
}
END_TEST

START_TEST(copy_res_asynchronous)
{
	const struct message m = hex("00000000"
				     "00000001" SRC_STATEID /* wr_callback_id<1> */
				     "0000000000000000 00000000 f1f2f3f4f5f6f7f8"
				     "00000000 00000000");
	union any value;

	check_both_ways(copy_res, &m, &value);
	ck_assert(value.copy_res.response.has_callback_id);
	ck_assert_uint_eq(value.copy_res.response.callback_id.seqid, 7);
	ck_assert(!value.copy_res.consecutive && !value.copy_res.synchronous);
}
END_TEST

/* rfc7862_15_2: what the server would have needed, and nothing else */
START_TEST(copy_res_with_requirements)
{
	const struct message m = hex("0000276e 00000001 00000000"); /* 10094 */
	union any value;

	check_both_ways(copy_res, &m, &value);
	ck_assert_uint_eq(value.copy_res.status, SSC_NFS4ERR_OFFLOAD_NO_REQS);
	ck_assert(value.copy_res.consecutive && !value.copy_res.synchronous);
}
END_TEST

/* A status other than those with an arm is all there is. */
START_TEST(results_that_are_a_status)
{
	const struct message m = hex("00002714"); /* NFS4ERR_NOTSUPP */
	union any value;

	check_both_ways(copy_res, &m, &value);
	ck_assert_uint_eq(value.copy_res.response.count, 0);
	check_both_ways(copy_notify_res, &m, &value);
	check_both_ways(offload_cancel_res, &m, &value);
	check_both_ways(offload_status_res, &m, &value);
	check_both_ways(clone_res, &m, &value);
	ck_assert_uint_eq(value.clone_res.status, SSC_NFS4ERR_NOTSUPP);
}
END_TEST

/* rfc7862_15_3 */
START_TEST(copy_notify_by_hand)
{
	const struct message args = hex(SRC_STATEID "00000003 00000003 74637000"
						    "00000009 312e322e332e342e35 000000");
	const struct message res = hex("00000000"
				       "ffffffffffffffff 3b9ac9ff" /* nfstime4 */
				       DST_STATEID "00000001 00000003 00000003 74637000"
				       "00000009 312e322e332e342e35 000000");
	union any value;

	check_both_ways(copy_notify_args, &args, &value);
	ck_assert_str_eq(value.copy_notify_args.destination.uaddr, "1.2.3.4.5");
	check_both_ways(copy_notify_res, &res, &value);
	ck_assert_int_eq(value.copy_notify_res.lease_s, -1);
	ck_assert_uint_eq(value.copy_notify_res.lease_ns, 999999999);
	ck_assert_uint_eq(value.copy_notify_res.sources.n, 1);
}
END_TEST

/* rfc7862_15_8, rfc7862_15_9 */
START_TEST(offload_by_hand)
{
	const struct message args = hex(SRC_STATEID);
	const struct message running = hex("00000000 0000000012345678 00000000");
	const struct message ended = hex("00000000 0000000012345678 00000001 0000001c");
	union any value;

	check_both_ways(offload_args, &args, &value);
	check_both_ways(offload_status_res, &running, &value);
	ck_assert_uint_eq(value.offload_status_res.count, 0x12345678);
	ck_assert(!value.offload_status_res.is_complete);
	check_both_ways(offload_status_res, &ended, &value);
	ck_assert(value.offload_status_res.is_complete);
	ck_assert_uint_eq(value.offload_status_res.complete, 28);
}
END_TEST

/* rfc7862_15_13 */
START_TEST(clone_by_hand)
{
	const struct message m =
		hex(SRC_STATEID DST_STATEID "0000000000001000 0000000000002000 0000000000003000");
	union any value;

	check_both_ways(clone_args, &m, &value);
	check_stateids(&value.clone_args.src_stateid, &value.clone_args.dst_stateid);
	ck_assert_uint_eq(value.clone_args.src_offset, 0x1000);
	ck_assert_uint_eq(value.clone_args.dst_offset, 0x2000);
	ck_assert_uint_eq(value.clone_args.count, 0x3000);
}
END_TEST

/* rfc7862_16_1 */
START_TEST(cb_offload_by_hand)
{
	const struct message done = hex("00000005 0102030405 000000" /* coa_fh */
					SRC_STATEID "00000000"
					"00000000 0000000000001000 00000001 1122334455667788");
	const struct message failed =
		hex("00000004 01020304" SRC_STATEID "0000001c 0000000000000fff"); /* NOSPC */
	union any value;

	check_both_ways(cb_offload_args, &done, &value);
	ck_assert_uint_eq(value.cb_offload_args.fh.len, 5);
	ck_assert_uint_eq(value.cb_offload_args.response.count, 4096);
	ck_assert_uint_eq(value.cb_offload_args.response.committed, 1);
	check_both_ways(cb_offload_args, &failed, &value);
	ck_assert_uint_eq(value.cb_offload_args.status, 28);
	ck_assert_uint_eq(value.cb_offload_args.count, 4095);
}
END_TEST

/* ---- random values come back as they were ---- */

static struct ssc_stateid random_stateid(uint64_t *seed)
{
	struct ssc_stateid s = {.seqid = (uint32_t)unit_random(seed)};

	for (size_t i = 0; i < sizeof(s.other); i++)
		s.other[i] = (uint8_t)unit_random(seed);
	return s;
}

static struct ssc_write_response random_response(uint64_t *seed)
{
	struct ssc_write_response r = {.has_callback_id = unit_random(seed) % 2,
				       .count = unit_random(seed),
				       .committed = (uint32_t)(unit_random(seed) % 3)};

	if (r.has_callback_id)
		r.callback_id = random_stateid(seed);
	r.verf[unit_random(seed) % 8] = (uint8_t)unit_random(seed);
	return r;
}

static void random_netlocs(uint64_t *seed, struct ssc_netlocs *locs)
{
	locs->n = locs->n_all = (uint32_t)(unit_random(seed) % (SSC_NETLOCS_MAX + 1));
	for (uint32_t i = 0; i < locs->n; i++) {
		locs->loc[i].type = SSC_NL4_NETADDR;
		memset(locs->loc[i].netid, 'n', unit_random(seed) % (SSC_NETID_MAX + 1));
		memset(locs->loc[i].uaddr, '1', unit_random(seed) % (SSC_UADDR_MAX + 1));
	}
}

START_TEST(random_copies_come_back)
{
	uint64_t seed = unit_seed("random_copies_come_back");

	for (int i = 0; i < 2000; i++) {
		union any in, out;
		struct message m;

		memset(&in, 0, sizeof(in));
		in.copy_args.src_stateid = random_stateid(&seed);
		in.copy_args.dst_stateid = random_stateid(&seed);
		in.copy_args.src_offset = unit_random(&seed);
		in.copy_args.dst_offset = unit_random(&seed);
		in.copy_args.count = unit_random(&seed);
		in.copy_args.consecutive = unit_random(&seed) % 2;
		in.copy_args.synchronous = unit_random(&seed) % 2;
		random_netlocs(&seed, &in.copy_args.sources);
		ck_assert(encode(copy_args, &in, &m, ROOM));
		memset(&out, 0, sizeof(out));
		ck_assert(decode(copy_args, &m, m.len, &out));
		ck_assert_uint_eq(out.copy_args.src_offset, in.copy_args.src_offset);
		ck_assert_uint_eq(out.copy_args.sources.n, in.copy_args.sources.n);
		for (uint32_t l = 0; l < in.copy_args.sources.n; l++)
			ck_assert_mem_eq(&out.copy_args.sources.loc[l],
					 &in.copy_args.sources.loc[l], sizeof(struct ssc_netloc));
		check_both_ways(copy_args, &m, &out);
	}
}
END_TEST

START_TEST(random_results_come_back)
{
	uint64_t seed = unit_seed("random_results_come_back");

	for (int i = 0; i < 2000; i++) {
		union any in, out;
		struct message m;

		memset(&in, 0, sizeof(in));
		in.copy_res.response = random_response(&seed);
		in.copy_res.consecutive = unit_random(&seed) % 2;
		in.copy_res.synchronous = unit_random(&seed) % 2;
		ck_assert(encode(copy_res, &in, &m, ROOM));
		check_both_ways(copy_res, &m, &out);
		ck_assert_mem_eq(&out.copy_res.response.callback_id,
				 &in.copy_res.response.callback_id, sizeof(struct ssc_stateid));
		ck_assert_uint_eq(out.copy_res.response.count, in.copy_res.response.count);
		ck_assert_mem_eq(out.copy_res.response.verf, in.copy_res.response.verf, 8);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("nfs42");
	TCase *hand = tcase_create("by hand");
	TCase *chance = tcase_create("random");

	tcase_add_test(hand, copy_args_by_hand);
	tcase_add_test(hand, copy_args_without_sources);
	tcase_add_test(hand, copy_res_synchronous);
	tcase_add_test(hand, copy_res_asynchronous);
	tcase_add_test(hand, copy_res_with_requirements);
	tcase_add_test(hand, results_that_are_a_status);
	tcase_add_test(hand, copy_notify_by_hand);
	tcase_add_test(hand, offload_by_hand);
	tcase_add_test(hand, clone_by_hand);
	tcase_add_test(hand, cb_offload_by_hand);
	suite_add_tcase(s, hand);
	tcase_add_test(chance, random_copies_come_back);
	tcase_add_test(chance, random_results_come_back);
	suite_add_tcase(s, chance);
	return unit_main(s);
}
