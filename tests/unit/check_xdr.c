/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_xdr.c - the cursor gives what is there, and nothing once something was not (RFC 4506).
 */
#include <string.h>

#include "ssc/xdr.h"
#include "unit.h"

static const uint8_t bytes[] = {0, 0, 0, 1, 0xff, 2, 3,   4,   0,   0,   0,   0, 0, 0,
				1, 0, 0, 0, 0,    5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0};

START_TEST(reads_what_is_there)
{
	struct ssc_xdr x;
	uint32_t len;
	const char *p;

	ssc_xdr_init(&x, bytes, sizeof(bytes));
	ck_assert(ssc_xdr_bool(&x));
	ck_assert_uint_eq(ssc_xdr_u32(&x), 0xff020304u);
	ck_assert_uint_eq(ssc_xdr_u64(&x), 256);
	p = ssc_xdr_opaque(&x, 5, &len);
	ck_assert_uint_eq(len, 5);
	ck_assert_mem_eq(p, "hello", 5);
	ck_assert(ssc_xdr_ok(&x));
	ck_assert_ptr_eq(x.at, x.end);
}
END_TEST

START_TEST(is_bad_for_good_after_the_end)
{
	uint8_t copy[4] = {1, 1, 1, 1};
	struct ssc_xdr x;

	ssc_xdr_init(&x, bytes, 7);
	ck_assert_uint_eq(ssc_xdr_u32(&x), 1);
	ck_assert_uint_eq(ssc_xdr_u32(&x), 0);
	ck_assert(!ssc_xdr_ok(&x));
	ssc_xdr_copy(&x, copy, sizeof(copy));
	ck_assert_uint_eq(copy[0] + copy[1] + copy[2] + copy[3], 0);
	ck_assert_ptr_null(ssc_xdr_fixed(&x, 0));
	ck_assert(!ssc_xdr_ok(&x));
}
END_TEST

START_TEST(a_half_u64_is_none)
{
	struct ssc_xdr x;

	ssc_xdr_init(&x, bytes + 4, 4);
	ck_assert_uint_eq(ssc_xdr_u64(&x), 0);
	ck_assert(!ssc_xdr_ok(&x));
}
END_TEST

static const struct {
	uint32_t length;
	size_t have, max;
	bool is_ok;
} opaques[] = {
	{4, 4, 4, true},
	{4, 4, 3, false},
	{5, 8, 8, true},
	{5, 7, 8, false}, /* no room for the padding */
	{5, 5, 8, false},
	{0, 0, 0, true},
	{0xffffffffu, 8, SIZE_MAX, false},
	{0xfffffffdu, 8, SIZE_MAX, false},
	{0xfffffff7u, 8, 64, false},
};

START_TEST(bounds_opaques)
{
	uint8_t wire[16] = {opaques[_i].length >> 24, (opaques[_i].length >> 16) & 0xff,
			    (opaques[_i].length >> 8) & 0xff, opaques[_i].length & 0xff};
	struct ssc_xdr x;
	uint32_t len = 77;
	const void *p;

	ssc_xdr_init(&x, wire, 4 + opaques[_i].have);
	p = ssc_xdr_opaque(&x, opaques[_i].max, &len);
	ck_assert_int_eq(ssc_xdr_ok(&x), opaques[_i].is_ok);
	ck_assert_int_eq(p != NULL, opaques[_i].is_ok);
	ck_assert_uint_eq(len, opaques[_i].is_ok ? opaques[_i].length : 0);
}
END_TEST

START_TEST(a_bool_is_0_or_1)
{
	const uint8_t two[4] = {0, 0, 0, 2};
	struct ssc_xdr x;

	ssc_xdr_init(&x, two, 4);
	ck_assert(!ssc_xdr_bool(&x));
	ck_assert(!ssc_xdr_ok(&x));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("xdr");
	TCase *tc = tcase_create("cursor");

	tcase_add_test(tc, reads_what_is_there);
	tcase_add_test(tc, is_bad_for_good_after_the_end);
	tcase_add_test(tc, a_half_u64_is_none);
	tcase_add_loop_test(tc, bounds_opaques, 0, (int)(sizeof(opaques) / sizeof(opaques[0])));
	tcase_add_test(tc, a_bool_is_0_or_1);
	suite_add_tcase(s, tc);
	return unit_main(s);
}
