/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_nfs42_wrong.c - what a peer may get wrong in the COPY family is refused.
 */
#include "nfs42_unit.h"

#define COPY_FLAGS_AT   56
#define COPY_SOURCES_AT 64

static struct message copy_head(uint32_t n_sources)
{
	struct message m = hex(SRC_STATEID DST_STATEID "0000000000000000 0000000000000000"
						       "0000000000000000 00000001 00000001");

	ck_assert_uint_eq(m.len, COPY_SOURCES_AT);
	word(&m, n_sources);
	return m;
}

START_TEST(bools_are_0_or_1)
{
	struct message m = copy_head(0);
	union any value;

	for (size_t at = COPY_FLAGS_AT; at < COPY_SOURCES_AT; at += 4) {
		set_word(&m, at, 2);
		ck_assert(!decode(copy_args, &m, m.len, &value));
		set_word(&m, at, 0x01000000);
		ck_assert(!decode(copy_args, &m, m.len, &value));
		set_word(&m, at, 0);
		ck_assert(decode(copy_args, &m, m.len, &value));
	}
}
END_TEST

START_TEST(what_is_there_once_is_not_there_twice)
{
	struct message res = hex("00000000 00000002" SRC_STATEID SRC_STATEID
				 "0000000000000000 00000000 0000000000000000 00000000 00000000");
	struct message status = hex("00000000 0000000012345678 00000002 00000000 00000000");
	union any value;

	ck_assert(!decode(copy_res, &res, res.len, &value));
	ck_assert(!decode(offload_status_res, &status, status.len, &value));
}
END_TEST

START_TEST(stable_how_ends_with_file_sync)
{
	struct message m = hex("00000000 00000000 0000000000400000 00000003 0102030405060708"
			       "00000001 00000001");
	union any value;

	ck_assert(!decode(copy_res, &m, m.len, &value));
}
END_TEST

START_TEST(a_longer_list_is_read_and_cut)
{
	struct message m = copy_head(SSC_NETLOCS_MAX + 2);
	char uaddr[] = "10.0.0.0.8.1";
	union any value;

	for (int i = 0; i < SSC_NETLOCS_MAX + 2; i++) {
		uaddr[7] = (char)('0' + i);
		netaddr(&m, "tcp", uaddr);
	}
	ck_assert(decode(copy_args, &m, m.len, &value));
	ck_assert_uint_eq(value.copy_args.sources.n, SSC_NETLOCS_MAX);
	ck_assert_uint_eq(value.copy_args.sources.n_all, SSC_NETLOCS_MAX + 2);
	ck_assert_str_eq(value.copy_args.sources.loc[7].uaddr, "10.0.0.7.8.1");
	/* What is left out is read with the same care. */
	set_word(&m, m.len - 16, SSC_UADDR_MAX + 1);
	ck_assert(!decode(copy_args, &m, m.len, &value));
}
END_TEST

START_TEST(lists_have_an_end)
{
	struct message m = copy_head(SSC_NETLOCS_READ_MAX);
	union any value;

	for (int i = 0; i < SSC_NETLOCS_READ_MAX + 1; i++)
		netaddr(&m, "tcp", "1.2.3.4.8.1");
	ck_assert(decode(copy_args, &m, m.len - 28, &value));
	ck_assert_uint_eq(value.copy_args.sources.n_all, SSC_NETLOCS_READ_MAX);
	set_word(&m, COPY_SOURCES_AT, SSC_NETLOCS_READ_MAX + 1);
	ck_assert(!decode(copy_args, &m, m.len, &value));
	set_word(&m, COPY_SOURCES_AT, UINT32_MAX);
	ck_assert(!decode(copy_args, &m, m.len, &value));
	value.copy_args.sources.n = SSC_NETLOCS_MAX + 1;
	ck_assert(!encode(copy_args, &value, &m, ROOM));
}
END_TEST

static bool decode_netaddr(size_t netid_len, size_t uaddr_len, union any *value)
{
	struct message m = copy_head(1);
	char long_text[256];

	memset(long_text, 'x', sizeof(long_text));
	word(&m, SSC_NL4_NETADDR);
	text(&m, long_text, netid_len);
	text(&m, long_text, uaddr_len);
	return decode(copy_args, &m, m.len, value);
}

START_TEST(texts_have_bounds)
{
	union any value;
	struct message m;

	ck_assert(decode_netaddr(SSC_NETID_MAX, SSC_UADDR_MAX, &value));
	ck_assert_uint_eq(strlen(value.copy_args.sources.loc[0].netid), SSC_NETID_MAX);
	ck_assert_uint_eq(strlen(value.copy_args.sources.loc[0].uaddr), SSC_UADDR_MAX);
	ck_assert(encode(copy_args, &value, &m, ROOM));
	ck_assert(decode_netaddr(0, 0, &value));
	ck_assert(!decode_netaddr(SSC_NETID_MAX + 1, 1, &value));
	ck_assert(!decode_netaddr(1, SSC_UADDR_MAX + 1, &value));
	memset(value.copy_args.sources.loc[0].netid, 'x', SSC_NETID_MAX + 1);
	ck_assert(!encode(copy_args, &value, &m, ROOM));
}
END_TEST

START_TEST(a_text_has_no_nul)
{
	struct message m = copy_head(1);
	union any value;

	word(&m, SSC_NL4_NETADDR);
	text(&m, "t\0p", 3);
	text(&m, "1.2.3.4.8.1", 11);
	ck_assert(!decode(copy_args, &m, m.len, &value));
}
END_TEST

/* Names and URLs are read, since they may stand among addresses, and kept by their kind only. */
START_TEST(names_are_read_but_not_kept)
{
	static const char name[SSC_NETLOC_NAME_MAX + 1] = "host";
	struct message m = copy_head(3);
	union any value;

	word(&m, SSC_NL4_NAME);
	text(&m, name, SSC_NETLOC_NAME_MAX);
	netaddr(&m, "tcp", "1.2.3.4.8.1");
	word(&m, SSC_NL4_URL);
	text(&m, name, 4);
	ck_assert(decode(copy_args, &m, m.len, &value));
	ck_assert_uint_eq(value.copy_args.sources.n, 3);
	ck_assert_int_eq(value.copy_args.sources.loc[0].type, SSC_NL4_NAME);
	ck_assert_str_eq(value.copy_args.sources.loc[0].netid, "");
	ck_assert_str_eq(value.copy_args.sources.loc[1].netid, "tcp");
	ck_assert_int_eq(value.copy_args.sources.loc[2].type, SSC_NL4_URL);
	ck_assert(!encode(copy_args, &value, &m, ROOM));
	m = copy_head(1);
	word(&m, SSC_NL4_NAME);
	text(&m, name, SSC_NETLOC_NAME_MAX + 1);
	ck_assert(!decode(copy_args, &m, m.len, &value));
}
END_TEST

START_TEST(kinds_of_servers_are_known)
{
	struct message m = copy_head(1);
	union any value;

	netaddr(&m, "tcp", "1.2.3.4.8.1");
	ck_assert(decode(copy_args, &m, m.len, &value));
	set_word(&m, COPY_SOURCES_AT + 4, 0);
	ck_assert(!decode(copy_args, &m, m.len, &value));
	set_word(&m, COPY_SOURCES_AT + 4, 4);
	ck_assert(!decode(copy_args, &m, m.len, &value));
}
END_TEST

START_TEST(handles_have_bounds)
{
	static const char fh[SSC_FH_MAX + 1];
	struct message tail = hex(SRC_STATEID "0000001c 0000000000000fff"), m = {.len = 0};
	union any value;

	text(&m, fh, SSC_FH_MAX);
	memcpy(m.bytes + m.len, tail.bytes, tail.len);
	m.len += tail.len;
	check_both_ways(cb_offload_args, &m, &value);
	ck_assert_uint_eq(value.cb_offload_args.fh.len, SSC_FH_MAX);
	m.len = 0;
	text(&m, fh, SSC_FH_MAX + 1);
	memcpy(m.bytes + m.len, tail.bytes, tail.len);
	m.len += tail.len;
	ck_assert(!decode(cb_offload_args, &m, m.len, &value));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("nfs42_wrong");
	TCase *wrong = tcase_create("wrong");

	tcase_add_test(wrong, bools_are_0_or_1);
	tcase_add_test(wrong, what_is_there_once_is_not_there_twice);
	tcase_add_test(wrong, stable_how_ends_with_file_sync);
	tcase_add_test(wrong, a_longer_list_is_read_and_cut);
	tcase_add_test(wrong, lists_have_an_end);
	tcase_add_test(wrong, texts_have_bounds);
	tcase_add_test(wrong, a_text_has_no_nul);
	tcase_add_test(wrong, names_are_read_but_not_kept);
	tcase_add_test(wrong, kinds_of_servers_are_known);
	tcase_add_test(wrong, handles_have_bounds);
	suite_add_tcase(s, wrong);
	return unit_main(s);
}
