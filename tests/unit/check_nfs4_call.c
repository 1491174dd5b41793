/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_nfs4_call.c - arguments and results of NFSv4.2 operations, against bytes written by hand.
 */
#include <arpa/inet.h>

#include <string.h>

#include "ssc/nfs4_call.h"
#include "unit.h"

static struct ssc_nfs4_call call;
static const struct ssc_cred nobody;
static const struct ssc_stateid id = {.seqid = 7, .other = "abcdefghijkl"};
static uint8_t bytes[4096];
static size_t n_bytes;

#define ck_outcome(outcome, name) ck_assert_str_eq(ssc_nfs4_outcome_str(outcome), name)

static void set_up(void)
{
	ssc_nfs4_call_init(&call, &nobody);
	n_bytes = 0;
}

static void tear_down(void)
{
	ssc_nfs4_call_fini(&call);
}

static void put(uint32_t v)
{
	v = htonl(v);
	memcpy(bytes + n_bytes, &v, 4);
	n_bytes += 4;
}

#define PUT(...)                                                   \
	do {                                                       \
		const uint32_t words_[] = {__VA_ARGS__};           \
		for (size_t i_ = 0; i_ < sizeof(words_) / 4; i_++) \
			put(words_[i_]);                           \
	} while (0)

static void put_text(const char *text)
{
	size_t len = strlen(text);

	put((uint32_t)len);
	memcpy(bytes + n_bytes, text, len);
	memset(bytes + n_bytes + len, 0, -len & 3);
	n_bytes += len + (-len & 3);
}

static void put_id(void)
{
	put(7);
	memcpy(bytes + n_bytes, "abcdefghijkl", 12);
	n_bytes += 12;
}

static void expect_args(uint32_t n_ops)
{
	ck_assert(!call.is_bad);
	ck_assert_uint_eq(call.n_ops, n_ops);
	ck_assert_uint_eq((size_t)(call.out.at - call.args), n_bytes);
	ck_assert_mem_eq(call.args, bytes, n_bytes);
}

/* The bytes put so far are the results of @n operations, of a compound that ended with @status. */
static void give(uint32_t status, uint32_t n)
{
	call.outcome = status;
	call.n_results = n;
	ssc_xdr_init(&call.in, bytes, n_bytes);
}

/* ---- arguments ---- */

START_TEST(simple_arguments)
{
	const struct ssc_fh fh = {.len = 5, .data = "handl"};
	struct ssc_bitmap map = {{0}};

	ssc_nfs4_arg(&call, SSC_OP4_PUTROOTFH);
	put(24);
	ssc_nfs4_arg_putfh(&call, &fh);
	put(22);
	put_text("handl");
	ssc_nfs4_arg_name(&call, SSC_OP4_LOOKUP, "name", 4);
	put(15);
	put_text("name");
	ck_assert(!call.is_unsafe);
	ssc_bitmap_set(&map, 4);
	ssc_bitmap_set(&map, 77);
	ssc_nfs4_arg_getattr(&call, &map);
	PUT(9, 3, 16, 0, 1 << 13);
	ssc_nfs4_arg_name(&call, SSC_OP4_REMOVE, "n", 1);
	put(28);
	put_text("n");
	ck_assert(call.is_unsafe);
	expect_args(5);
}
END_TEST

START_TEST(open_arguments)
{
	struct ssc_nfs4_open_args args = {
		.access = SSC_OPEN4_BOTH,
		.deny = 1,
		.clientid = 0x100000002ull,
		.owner = 0,
		.create = true,
		.sattr = {.set_size = true, .size = 3, .set_mode = true, .mode = 0640},
		.name = "f",
	};

	ssc_nfs4_arg_open(&call, &args);
	const uint32_t words[] = {18, 0, 0x403, 1, 1,  2, 8, 0,    0, 1,
				  0,  2, 16,    2, 12, 0, 3, 0640, 0};

	for (size_t i = 0; i < sizeof(words) / 4; i++)
		put(words[i]);
	put_text("f");
	args.name = NULL;
	args.create = false;
	ssc_nfs4_arg_open(&call, &args);
	const uint32_t again[] = {18, 0, 0x403, 1, 1, 2, 8, 0, 0, 0, 4};

	for (size_t i = 0; i < sizeof(again) / 4; i++)
		put(again[i]);
	ck_assert(call.is_unsafe);
	expect_args(2);
}
END_TEST

START_TEST(data_arguments)
{
	char buf[100];
	const struct iovec iov = {buf, 100};

	ssc_nfs4_arg_read(&call, &id, 0x200000001ull, 100, &iov, 1);
	put(25);
	put_id();
	PUT(2, 1, 100);
	ssc_nfs4_arg_write(&call, &id, 5, 2, &iov, 1, 99);
	put(38);
	put_id();
	PUT(0, 5, 2, 99);
	ck_assert_uint_eq(call.data_at, n_bytes);
	ssc_nfs4_arg_commit(&call, 1, 2);
	PUT(5, 0, 1, 2);
	ssc_nfs4_arg_seek(&call, &id, 9, 1);
	put(69);
	put_id();
	PUT(0, 9, 1);
	ssc_nfs4_arg_space(&call, SSC_OP4_DEALLOCATE, &id, 1, 2);
	put(62);
	put_id();
	PUT(0, 1, 0, 2);
	expect_args(5);
	ck_assert(!call.is_unsafe);
}
END_TEST

START_TEST(what_does_not_fit_is_bad)
{
	char buf[10];
	const struct iovec iov = {buf, 10};

	ssc_nfs4_arg_read(&call, &id, 0, 11, &iov, 1); /* more than there is room for */
	ck_assert(call.is_bad);
	set_up();
	ssc_nfs4_arg_read(&call, &id, 0, 10, &iov, 1);
	ck_assert(!call.is_bad);
	ssc_nfs4_arg_read(&call, &id, 0, 10, &iov, 1); /* the second */
	ck_assert(call.is_bad);
	set_up();
	for (int i = 0; i < 10000; i++)
		ssc_nfs4_arg_close(&call, &id);
	ck_assert(call.is_bad);
}
END_TEST

/* ---- results ---- */

START_TEST(missing_and_other_results)
{
	PUT(24, 0);
	give(SSC_ST4_STALE, 1);
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_PUTROOTFH), "OK");
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_GETFH), "STALE"); /* what the compound ended with */
	give(SSC_ST4_OK, 1);
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_PUTROOTFH), "OK");
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_GETFH),
		   "local PROTO"); /* it ended well: where is it? */
	give(SSC_ST4_OK, 2);
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_PUTROOTFH), "OK");
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_GETFH), "local PROTO"); /* cut */
	give(SSC_ST4_OK, 1);
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_SAVEFH), "local PROTO"); /* another's */
	give(ssc_nfs4_local(SSC_E_CONN), 0);
	ck_outcome(ssc_nfs4_res(&call, SSC_OP4_SAVEFH), "local CONN");
	n_bytes = 0;
	PUT(10044, SSC_ST4_OP_ILLEGAL);
	give(SSC_ST4_OP_ILLEGAL, 1);
	ck_outcome(ssc_nfs4_res(&call, 9999), "OP_ILLEGAL");
}
END_TEST

static struct ssc_nfs4_attrs attrs;
static struct ssc_nfs4_open_res opened;
static struct ssc_nfs4_read_plus_res plus;
static struct ssc_copy_res copied;
static struct ssc_copy_notify_res notified;
static struct ssc_offload_status_res offloaded;
static struct ssc_fh fh;

static uint32_t take_getattr(void)
{
	return ssc_nfs4_res_getattr(&call, &attrs);
}

static uint32_t take_open(void)
{
	return ssc_nfs4_res_open(&call, &opened);
}

static uint32_t take_read_plus(void)
{
	return ssc_nfs4_res_read_plus(&call, &plus);
}

static uint32_t take_copy(void)
{
	return ssc_nfs4_res_copy(&call, &copied);
}

static uint32_t take_notify(void)
{
	return ssc_nfs4_res_copy_notify(&call, &notified);
}

static uint32_t take_status(void)
{
	return ssc_nfs4_res_offload_status(&call, &offloaded);
}

static uint32_t take_getfh(void)
{
	return ssc_nfs4_res_getfh(&call, &fh);
}

/* Taken whole, and cut at every word. */
static void whole_and_cut(uint32_t (*take)(void))
{
	const size_t whole = n_bytes;

	for (n_bytes = 0; n_bytes < whole; n_bytes += 4) {
		give(SSC_ST4_OK, 1);
		ck_outcome(take(), "local PROTO");
	}
	give(SSC_ST4_OK, 1);
	ck_outcome(take(), "OK");
	ck_assert_ptr_eq(call.in.at, call.in.end);
}

START_TEST(getattr_results)
{
	PUT(9, 0, 3, 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 8 | 1 << 20,
	    1 << 1 | 1 << 4 | 1 << 13 | 1 << 21, 1 << 13,
	    4 * (3 + 1 + 2 + 2 + 4 + 2 + 1 + 2 + 2 + 3 + 1), 2, 0xffffffffu, 3, SSC_FT_REG, 0);
	put(99); /* change */
	put(1);
	put(2); /* size */
	PUT(0, 5, 0);
	put(6); /* fsid */
	put(0);
	put(123); /* fileid */
	put(0644);
	put_text("root");
	put(0);
	put(8192); /* space_used */
	PUT(0, 17);
	put(18); /* time_modify */
	put(4096);
	whole_and_cut(take_getattr);
	ck_assert_uint_eq(attrs.type, SSC_FT_REG);
	ck_assert_uint_eq(attrs.change, 99);
	ck_assert_uint_eq(attrs.size, 0x100000002ull);
	ck_assert_uint_eq(attrs.fsid[1], 6);
	ck_assert_uint_eq(attrs.fileid, 123);
	ck_assert_uint_eq(attrs.mode, 0644);
	ck_assert_str_eq(attrs.owner, "root");
	ck_assert_uint_eq(attrs.space_used, 8192);
	ck_assert_int_eq(attrs.mtime.s, 17);
	ck_assert_uint_eq(attrs.mtime.ns, 18);
	ck_assert_uint_eq(attrs.clone_blksize, 4096);
	ck_assert(ssc_bitmap_has(&attrs.supported, 33));
	ck_assert(!ssc_bitmap_has(&attrs.supported, 34));
	ck_assert(ssc_bitmap_has(&attrs.mask, SSC_ATTR4_SIZE));
}
END_TEST

static const struct {
	uint32_t word[2], len; /* bitmap, bytes of values */
} odd_attrs[] = {
	{{1 << 12, 0}, 4},  /* an ACL, which we cannot read */
	{{1 << 4, 0}, 4},   /* half a size */
	{{1 << 4, 0}, 12},  /* and a word that is nobody's */
	{{0, 1u << 31}, 4}, /* number 63 */
	{{1 << 5, 0}, 4},   /* a boolean of 7 */
	{{0, 1 << 4}, 4},   /* an owner that is longer than all */
};

START_TEST(odd_attributes)
{
	PUT(9, 0, 2, odd_attrs[_i].word[0], odd_attrs[_i].word[1], odd_attrs[_i].len);
	for (uint32_t i = 0; i < odd_attrs[_i].len; i += 4)
		put(7);
	give(SSC_ST4_OK, 1);
	ck_outcome(take_getattr(), "local PROTO");
}
END_TEST

START_TEST(open_results)
{
	static const uint32_t none[] = {3, 1, 1}; /* NONE_EXT, contention, a word */

	PUT(18, 0);
	put_id();
	for (int i = 0; i < 5; i++)
		put(i == 0);
	PUT(4);
	put(0); /* attrset */
	for (int i = 0; i < 3; i++)
		put(none[i]);
	whole_and_cut(take_open);
	ck_assert_mem_eq(&opened.stateid, &id, sizeof(id));
	ck_assert_uint_eq(opened.rflags, 4);
}
END_TEST

START_TEST(open_results_with_a_delegation)
{
	PUT(18, 0);
	put_id();
	for (int i = 0; i < 5; i++)
		put(0);
	PUT(4, 1, 16);
	put(2); /* WRITE */
	put_id();
	PUT(0, 1, 0);
	put(55); /* space limit */
	for (int i = 0; i < 3; i++)
		put(0);
	put_text("EVERYONE@");
	whole_and_cut(take_open);
	ck_assert_uint_eq(opened.delegation, 2);
}
END_TEST

START_TEST(read_results)
{
	char buf[10] = "..........";
	const struct iovec iov[2] = {{buf, 3}, {buf + 4, 5}};
	struct ssc_nfs4_read_res res;

	ssc_nfs4_arg_read(&call, &id, 0, 8, iov, 2);
	PUT(25, 0, 1);
	put_text("1234567");
	for (size_t whole = n_bytes, n = 0; n <= whole; n += 4) {
		n_bytes = n;
		give(SSC_ST4_OK, 1);
		ck_outcome(ssc_nfs4_res_read(&call, &res), n < whole ? "local PROTO" : "OK");
	}
	ck_assert(res.is_eof);
	ck_assert_uint_eq(res.count, 7);
	ck_assert_mem_eq(buf, "123.4567..", 10);
	n_bytes = 0;
	PUT(25, 0, 0);
	put_text("123456789"); /* more than was asked for */
	give(SSC_ST4_OK, 1);
	ck_outcome(ssc_nfs4_res_read(&call, &res), "local PROTO");
	ck_assert_mem_eq(buf, "123.4567..", 10);
	n_bytes = 12;
	put(9);
	call.is_placed = true;
	give(SSC_ST4_OK, 1);
	ck_outcome(ssc_nfs4_res_read(&call, &res), "local PROTO");
}
END_TEST

START_TEST(read_plus_results)
{
	PUT(68, 0, 1, 2, 0, 0, 100);
	put_text("data!");
	PUT(1, 0, 105, 1, 0);
	whole_and_cut(take_read_plus);
	ck_assert_uint_eq(plus.n, 2);
	ck_assert(plus.is_eof);
	ck_assert(!plus.segment[0].is_hole);
	ck_assert_mem_eq(plus.segment[0].data, "data!", 5);
	ck_assert_uint_eq(plus.segment[0].len, 5);
	ck_assert(plus.segment[1].is_hole);
	ck_assert_uint_eq(plus.segment[1].len, 1ull << 32);
}
END_TEST

START_TEST(read_plus_with_many_segments)
{
	PUT(68, 0, 1, SSC_SEGMENTS_MAX + 3);
	for (int i = 0; i < SSC_SEGMENTS_MAX + 3; i++) {
		put(1);
		put(0);
		put((uint32_t)i);
		put(0);
		put(1);
	}
	give(SSC_ST4_OK, 1);
	ck_outcome(take_read_plus(), "OK");
	ck_assert_uint_eq(plus.n, SSC_SEGMENTS_MAX);
	ck_assert(!plus.is_eof); /* there is more to come */
	n_bytes = 12;
	put(0xffffffffu);
	give(SSC_ST4_OK, 1);
	ck_outcome(take_read_plus(), "local PROTO");
	n_bytes = 12;
	put(1);
	put(2); /* neither data nor hole */
	PUT(0, 0, 0);
	give(SSC_ST4_OK, 1);
	ck_outcome(take_read_plus(), "local PROTO");
}
END_TEST

START_TEST(copy_results)
{
	PUT(60, 0);
	put(1); /* a callback id */
	put_id();
	PUT(0, 5, 2, 1, 2, 1, 0);
	whole_and_cut(take_copy);
	ck_assert(copied.response.has_callback_id);
	ck_assert_uint_eq(copied.response.count, 5);
	n_bytes = 0;
	PUT(60, SSC_ST4_OFFLOAD_NO_REQS, 1, 0);
	give(SSC_ST4_OFFLOAD_NO_REQS, 1);
	ck_outcome(take_copy(), "OFFLOAD_NO_REQS");
	ck_assert(copied.consecutive);
	ck_assert(!copied.synchronous);
	n_bytes = 8;
	give(SSC_ST4_OFFLOAD_NO_REQS, 1);
	ck_outcome(take_copy(), "local PROTO");
	n_bytes = 4;
	put(SSC_ST4_OFFLOAD_DENIED);
	give(SSC_ST4_OFFLOAD_DENIED, 1);
	ck_outcome(take_copy(), "OFFLOAD_DENIED");
	give(SSC_ST4_ACCESS, 0);
	ck_outcome(take_copy(), "ACCESS");
}
END_TEST

START_TEST(notify_and_status_results)
{
	PUT(61, 0, 0, 90, 0);
	put_id();
	PUT(1, SSC_NL4_NETADDR);
	put_text("tcp");
	put_text("192.0.2.1.8.1");
	whole_and_cut(take_notify);
	ck_assert_int_eq(notified.lease_s, 90);
	ck_assert_str_eq(notified.sources.loc[0].uaddr, "192.0.2.1.8.1");
	n_bytes = 0;
	PUT(67, 0, 0, 77, 1, SSC_ST4_NOSPC);
	whole_and_cut(take_status);
	ck_assert(offloaded.is_complete);
	ck_assert_uint_eq(offloaded.complete, SSC_ST4_NOSPC);
}
END_TEST

START_TEST(getfh_results)
{
	PUT(10, 0);
	put_text("handle");
	whole_and_cut(take_getfh);
	ck_assert_uint_eq(fh.len, 6);
	n_bytes = 8;
	put(0);
	give(SSC_ST4_OK, 1);
	ck_outcome(take_getfh(), "local PROTO");
	n_bytes = 8;
	put(129);
	n_bytes += 132;
	give(SSC_ST4_OK, 1);
	ck_outcome(take_getfh(), "local PROTO");
}
END_TEST

START_TEST(names_of_outcomes)
{
	ck_outcome(SSC_ST4_OK, "OK");
	ck_outcome(10094, "OFFLOAD_NO_REQS");
	ck_outcome(70, "STALE");
	ck_outcome(4, "?");
	ck_outcome(ssc_nfs4_local(SSC_E_DOWN), "local DOWN");
	ck_outcome(0xffffffffu, "local ?");
}
END_TEST

#define N_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
	Suite *s = suite_create("nfs4_call");
	TCase *args = tcase_create("arguments");
	TCase *res = tcase_create("results");

	tcase_add_checked_fixture(args, set_up, tear_down);
	tcase_add_test(args, simple_arguments);
	tcase_add_test(args, open_arguments);
	tcase_add_test(args, data_arguments);
	tcase_add_test(args, what_does_not_fit_is_bad);
	tcase_add_test(args, names_of_outcomes);
	suite_add_tcase(s, args);
	tcase_add_checked_fixture(res, set_up, tear_down);
	tcase_add_test(res, missing_and_other_results);
	tcase_add_test(res, getattr_results);
	tcase_add_loop_test(res, odd_attributes, 0, N_OF(odd_attrs));
	tcase_add_test(res, open_results);
	tcase_add_test(res, open_results_with_a_delegation);
	tcase_add_test(res, read_results);
	tcase_add_test(res, read_plus_results);
	tcase_add_test(res, read_plus_with_many_segments);
	tcase_add_test(res, copy_results);
	tcase_add_test(res, notify_and_status_results);
	tcase_add_test(res, getfh_results);
	suite_add_tcase(s, res);
	return unit_main(s);
}
