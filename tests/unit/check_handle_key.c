/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_handle_key.c - keys made, and bytes from clients checked.
 */
#include <string.h>

#include "handle_key.h"
#include "unit.h"

#define ID   0x2abcdef1u
#define HASH 0x0102030405060708ull

static struct ssc_fh fh_of_bytes(uint8_t len)
{
	struct ssc_fh fh = {.len = len};

	for (int i = 0; i < len; i++)
		fh.data[i] = (uint8_t)(i * 7 + 1);
	return fh;
}

START_TEST(a_handle_survives_the_way)
{
	for (uint8_t len = 1; len <= SSC_FH3_MAX; len++) {
		struct ssc_fh fh = fh_of_bytes(len), back;
		struct ssc_key key;

		ssc_key_make_object(ID, &fh, &key);
		ck_assert_uint_eq(key.len, len + 4u);
		ck_assert_int_eq(ssc_key_check(key.data, key.len, ID, HASH), SSC_OK);
		ck_assert_int_eq(ssc_key_form(key.data), SSC_KEY_OBJECT);
		ssc_key_fh(key.data, key.len, &back);
		ck_assert_uint_eq(back.len, len);
		ck_assert_mem_eq(back.data, fh.data, len);
	}
}
END_TEST

START_TEST(the_bytes_are_the_same_on_every_machine)
{
	static const uint8_t want[SSC_KEY_ROOT_BYTES] = {0xaa, 0xf3, 0x7b, 0xc5, 1, 2,
							 3,    4,    5,    6,    7, 8};
	struct ssc_key key;

	ssc_key_make_root(ID, HASH, &key);
	ck_assert_uint_eq(key.len, sizeof(want));
	ck_assert_mem_eq(key.data, want, sizeof(want));
	ck_assert_int_eq(ssc_key_form(key.data), SSC_KEY_ROOT);
	ck_assert_int_eq(ssc_key_check(key.data, key.len, ID, HASH), SSC_OK);
}
END_TEST

START_TEST(another_upstream_is_stale)
{
	struct ssc_fh fh = fh_of_bytes(32);
	struct ssc_key key;

	ssc_key_make_object(ID, &fh, &key);
	ck_assert_int_eq(ssc_key_check(key.data, key.len, ID + 1, HASH), SSC_E_STALE);
	ssc_key_make_root(ID, HASH, &key);
	ck_assert_int_eq(ssc_key_check(key.data, key.len, ID + 1, HASH), SSC_E_STALE);
	ck_assert_int_eq(ssc_key_check(key.data, key.len, ID, HASH + 1), SSC_E_STALE);
}
END_TEST

START_TEST(two_upstreams_with_equal_handles_have_two_keys)
{
	struct ssc_fh fh = fh_of_bytes(32);
	struct ssc_key a, b;

	ssc_key_make_object(ID, &fh, &a);
	ssc_key_make_object(ID + 1, &fh, &b);
	ck_assert(memcmp(a.data, b.data, a.len) != 0);
}
END_TEST

START_TEST(bytes_of_no_key_are_refused)
{
	uint8_t bytes[SSC_KEY_MAX + 1];
	struct ssc_fh fh = fh_of_bytes(8);
	struct ssc_key key;

	ssc_key_make_object(ID, &fh, &key);
	for (size_t len = 0; len <= SSC_KEY_HEAD_BYTES; len++)
		ck_assert_int_eq(ssc_key_check(key.data, len, ID, HASH), SSC_E_BADHANDLE);
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, key.data, SSC_KEY_HEAD_BYTES);
	ck_assert_int_eq(ssc_key_check(bytes, sizeof(bytes), ID, HASH), SSC_E_BADHANDLE);
	/* Forms that do not exist. */
	for (int form = 2; form <= 3; form++) {
		bytes[3] = (uint8_t)((bytes[3] & ~3) | form);
		ck_assert_int_eq(ssc_key_check(bytes, 12, ID, HASH), SSC_E_BADHANDLE);
	}
	/* A root is 12 bytes long. */
	ssc_key_make_root(ID, HASH, &key);
	ck_assert_int_eq(ssc_key_check(key.data, 11, ID, HASH), SSC_E_BADHANDLE);
	memcpy(bytes, key.data, key.len);
	ck_assert_int_eq(ssc_key_check(bytes, 13, ID, HASH), SSC_E_BADHANDLE);
}
END_TEST

START_TEST(ids_tell_servers_and_ports_apart_but_not_case)
{
	uint32_t id = ssc_key_upstream_id("nas.example", 2049);

	ck_assert_uint_eq(id, ssc_key_upstream_id("NAS.Example", 2049));
	ck_assert_uint_ne(id, ssc_key_upstream_id("nas.example", 2050));
	ck_assert_uint_ne(id, ssc_key_upstream_id("nas.example", 0));
	ck_assert_uint_ne(id, ssc_key_upstream_id("nas2.example", 2049));
	ck_assert_uint_ne(id, 0);
	ck_assert_uint_le(id, SSC_UPSTREAM_ID_MAX);
}
END_TEST

START_TEST(an_id_is_the_same_in_the_next_version)
{
	/* Clients hold handles with it: a change of the hash would make them stale. */
	ck_assert_uint_eq(ssc_key_upstream_id("192.0.2.7", 2049), 102160070u);
	ck_assert_uint_eq(ssc_key_upstream_id("nas.example", 2049), 802441910u);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("handle_key");
	TCase *keys = tcase_create("keys");
	TCase *ids = tcase_create("ids");

	tcase_add_test(keys, a_handle_survives_the_way);
	tcase_add_test(keys, the_bytes_are_the_same_on_every_machine);
	tcase_add_test(keys, another_upstream_is_stale);
	tcase_add_test(keys, two_upstreams_with_equal_handles_have_two_keys);
	tcase_add_test(keys, bytes_of_no_key_are_refused);
	suite_add_tcase(suite, keys);
	tcase_add_test(ids, ids_tell_servers_and_ports_apart_but_not_case);
	tcase_add_test(ids, an_id_is_the_same_in_the_next_version);
	suite_add_tcase(suite, ids);
	return unit_main(suite);
}
