/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_zero.c - runs of zeros: which are worth a hole, and where they begin and end.
 */
#include <string.h>

#include "core/copy_internal.h"
#include "unit.h"

enum { BLOCK = SSC_COPY_BLOCK_BYTES, HOLE = SSC_COPY_HOLE_MIN_BYTES, ROOM = 4 * HOLE };

static uint8_t buf[ROOM + 64];

static void fill(size_t from, size_t to, int byte)
{
	memset(buf + from, byte, to - from);
}

static void expect(size_t from, size_t len, uint64_t at, size_t run, bool zero)
{
	bool is_zero = !zero;

	ck_assert_uint_eq(ssc_copy_zero_run(buf + from, len, at, &is_zero), run);
	ck_assert_int_eq(is_zero, zero);
}

START_TEST(one_byte_makes_it_data)
{
	size_t len, i;

	memset(buf, 0, sizeof(buf));
	for (len = 0; len < 100; len++) {
		ck_assert(ssc_copy_zero_is(buf + 1, len));
		for (i = 0; i < len; i++) {
			buf[1 + i] = 1;
			ck_assert(!ssc_copy_zero_is(buf + 1, len));
			buf[1 + i] = 0;
		}
	}
}
END_TEST

START_TEST(all_data_is_one_run)
{
	fill(0, ROOM, 7);
	expect(0, ROOM, 0, ROOM, false);
	expect(0, 1, 12345, 1, false);
}
END_TEST

START_TEST(all_zeros_are_one_run)
{
	fill(0, ROOM, 0);
	expect(0, ROOM, 0, ROOM, true);
	expect(0, ROOM, 77, ROOM, true);
	expect(0, BLOCK, 0, BLOCK, true);
	expect(0, BLOCK, 5, BLOCK, true);
	expect(0, BLOCK - 1, 0, BLOCK - 1, false); /* writing is as cheap */
}
END_TEST

START_TEST(a_short_run_is_data)
{
	fill(0, ROOM, 7);
	fill(BLOCK, BLOCK + HOLE - BLOCK, 0);
	expect(0, ROOM, 0, ROOM, false);
	fill(0, ROOM, 7);
	fill(0, HOLE - BLOCK, 0);
	expect(0, ROOM, 0, ROOM, false);
	fill(0, ROOM, 7);
	fill(ROOM - HOLE + BLOCK, ROOM, 0);
	expect(0, ROOM, 0, ROOM, false);
}
END_TEST

START_TEST(a_long_run_is_found_wherever_it_is)
{
	fill(0, ROOM, 7);
	fill(2 * BLOCK, 2 * BLOCK + HOLE, 0);
	expect(0, ROOM, 0, 2 * BLOCK, false);
	expect(2 * BLOCK, ROOM - 2 * BLOCK, 2 * BLOCK, HOLE, true);
	expect(2 * BLOCK + HOLE, ROOM - 2 * BLOCK - HOLE, 2 * BLOCK + HOLE, ROOM - 2 * BLOCK - HOLE,
	       false);
	fill(ROOM - HOLE, ROOM, 0);
	expect(2 * BLOCK + HOLE, ROOM - 2 * BLOCK - HOLE, 0, ROOM - HOLE - 2 * BLOCK - HOLE, false);
}
END_TEST

START_TEST(blocks_are_aligned_where_they_go)
{
	fill(0, ROOM, 7);
	fill(BLOCK, BLOCK + HOLE, 0);
	expect(0, ROOM, 1, ROOM, false); /* one block less is whole there */
	fill(0, ROOM, 7);
	fill(BLOCK - 100, BLOCK + HOLE, 0);
	expect(0, ROOM, 100, BLOCK - 100, false);
	expect(BLOCK - 100, ROOM - BLOCK + 100, BLOCK, HOLE, true);
}
END_TEST

/* Whatever the layout, runs cover all of it, none is empty, and zeros are zeros. */
START_TEST(runs_cover_everything)
{
	uint64_t random = unit_seed("runs_cover_everything");
	int round;

	for (round = 0; round < 300; round++) {
		size_t len = 1 + unit_random(&random) % ROOM, from = 0, n;
		uint64_t at = unit_random(&random) % 3 * 1001;
		bool is_zero;

		memset(buf, 0, sizeof(buf));
		for (n = unit_random(&random) % 6; n > 0; n--)
			memset(buf + unit_random(&random) % len, 3, 1);
		for (from = 0; from < len; from += n) {
			n = ssc_copy_zero_run(buf + from, len - from, at + from, &is_zero);
			ck_assert_uint_ge(n, 1);
			ck_assert_uint_le(n, len - from);
			if (is_zero)
				ck_assert(ssc_copy_zero_is(buf + from, n));
			else
				ck_assert(n < HOLE || n < BLOCK ||
					  !ssc_copy_zero_is(buf + from, n));
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_zero");
	TCase *runs = tcase_create("runs");

	tcase_add_test(runs, one_byte_makes_it_data);
	tcase_add_test(runs, all_data_is_one_run);
	tcase_add_test(runs, all_zeros_are_one_run);
	tcase_add_test(runs, a_short_run_is_data);
	tcase_add_test(runs, a_long_run_is_found_wherever_it_is);
	tcase_add_test(runs, blocks_are_aligned_where_they_go);
	tcase_add_test(runs, runs_cover_everything);
	tcase_set_timeout(runs, 30);
	suite_add_tcase(suite, runs);
	return unit_main(suite);
}
