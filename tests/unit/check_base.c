/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_base.c - names of results, hash and mix.
 */
#include <string.h>

#include "ssc/base.h"
#include "unit.h"

START_TEST(every_result_has_its_own_name)
{
	enum ssc_err a, b;

	for (a = SSC_OK; a < SSC_E_N; a++) {
		ck_assert_str_ne(ssc_err_str(a), "(unknown)");
		for (b = SSC_OK; b < a; b++)
			ck_assert_str_ne(ssc_err_str(a), ssc_err_str(b));
	}
	ck_assert_str_eq(ssc_err_str(SSC_E_NOENT), "NOENT");
	ck_assert_str_eq(ssc_err_str(SSC_E_BAD_COOKIE), "BAD_COOKIE");
}
END_TEST

START_TEST(a_number_that_is_no_result_has_a_name)
{
	ck_assert_str_eq(ssc_err_str(SSC_E_N), "(unknown)");
	ck_assert_str_eq(ssc_err_str((enum ssc_err)12345), "(unknown)");
}
END_TEST

START_TEST(hash_is_fnv_1a)
{
	ck_assert_uint_eq(ssc_base_hash("", 0, 0), 0xcbf29ce484222325ull);
	ck_assert_uint_eq(ssc_base_hash("a", 1, 0), 0xaf63dc4c8601ec8cull);
	ck_assert_uint_eq(ssc_base_hash("foobar", 6, 0), 0x85944171f73967e8ull);
}
END_TEST

START_TEST(hash_can_be_continued)
{
	ck_assert_uint_eq(ssc_base_hash("bar", 3, ssc_base_hash("foo", 3, 0)),
			  ssc_base_hash("foobar", 6, 0));
}
END_TEST

START_TEST(mix_is_the_finalizer_of_splitmix64)
{
	/* The first two numbers of that generator started at 0. */
	ck_assert_uint_eq(ssc_base_mix(0x9e3779b97f4a7c15ull), 0xe220a8397b1dcdafull);
	ck_assert_uint_eq(ssc_base_mix(2 * 0x9e3779b97f4a7c15ull), 0x6e789e6aa1b965f4ull);
}
END_TEST

static uint64_t unshift(uint64_t y, unsigned int by)
{
	uint64_t x = y;
	unsigned int i;

	for (i = by; i < 64; i += by)
		x = y ^ (x >> by);
	return x;
}

/* Newton's iteration doubles the correct low bits. */
static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;
	int i;

	for (i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

START_TEST(mix_can_be_undone)
{
	uint64_t state = unit_seed("mix_can_be_undone");
	int i;

	for (i = 0; i < 10000; i++) {
		uint64_t x = unit_random(&state);
		uint64_t y = ssc_base_mix(x);

		y = unshift(y, 31) * inverse(0x94d049bb133111ebull);
		y = unshift(y, 27) * inverse(0xbf58476d1ce4e5b9ull);
		y = unshift(y, 30);
		ck_assert_uint_eq(y, x);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *happy = tcase_create("happy");

	tcase_add_test(happy, every_result_has_its_own_name);
	tcase_add_test(happy, a_number_that_is_no_result_has_a_name);
	tcase_add_test(happy, hash_is_fnv_1a);
	tcase_add_test(happy, hash_can_be_continued);
	tcase_add_test(happy, mix_is_the_finalizer_of_splitmix64);
	tcase_add_test(happy, mix_can_be_undone);
	suite_add_tcase(suite, happy);
	return unit_main(suite);
}
