/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_kept.c - which of two overlapping replies tells the newer attributes.
 */
#include <string.h>

#include "fake_clock.h"
#include "kept.h"
#include "unit.h"

static struct ssc_kept kept;

static void setup(void)
{
	fake_clock_start(1000);
	ssc_kept_init(&kept);
}

static void teardown(void)
{
	ssc_kept_fini(&kept);
	fake_clock_stop();
}

/* A file as the server shows it at its time @ctime. */
static struct ssc_attrs file(int64_t ctime, uint64_t size)
{
	return (struct ssc_attrs){
		.type = SSC_FT_REG,
		.mode = 0644,
		.nlink = 1,
		.size = size,
		.used = size,
		.fileid = 7,
		.mtime = {.s = ctime},
		.ctime = {.s = ctime},
	};
}

static void arrive(uint64_t ticket, int64_t ctime, uint64_t size)
{
	struct ssc_attrs attrs = file(ctime, size);

	ssc_kept_arrived(&kept, ticket, &attrs, false);
}

static void arrive_shrunk(uint64_t ticket, int64_t ctime, uint64_t size)
{
	struct ssc_attrs attrs = file(ctime, size);

	ssc_kept_arrived(&kept, ticket, &attrs, true);
}

#define NOTHING UINT64_MAX

static uint64_t size_kept(void)
{
	struct ssc_attrs attrs;

	return ssc_kept_get(&kept, 0, &attrs) ? attrs.size : NOTHING;
}

START_TEST(nothing_is_kept_at_first)
{
	ck_assert_uint_eq(size_kept(), NOTHING);
}
END_TEST

START_TEST(the_last_is_known_when_nothing_is_kept)
{
	struct ssc_attrs attrs;

	ck_assert(!ssc_kept_last(&kept, &attrs));
	arrive(ssc_kept_ticket(&kept), 10, 111);
	ssc_kept_forget(&kept);
	ck_assert_uint_eq(size_kept(), NOTHING);
	ck_assert(ssc_kept_last(&kept, &attrs));
	ck_assert_uint_eq(attrs.size, 111);
}
END_TEST

START_TEST(the_latest_of_calls_one_after_another_is_kept)
{
	arrive(ssc_kept_ticket(&kept), 5, 100);
	ck_assert_uint_eq(size_kept(), 100);
	arrive(ssc_kept_ticket(&kept), 5, 10);
	ck_assert_uint_eq(size_kept(), 10);
	/* Even if the server's clock went back. */
	arrive(ssc_kept_ticket(&kept), 4, 20);
	ck_assert_uint_eq(size_kept(), 20);
}
END_TEST

START_TEST(of_overlapping_calls_the_later_ctime_is_kept)
{
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);

	arrive(b, 6, 200);
	arrive(a, 5, 100);
	ck_assert_uint_eq(size_kept(), 200);
}
END_TEST

START_TEST(within_one_tick_the_longer_file_is_the_later_one)
{
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);

	arrive(b, 5, 200);
	arrive(a, 5, 100);
	ck_assert_uint_eq(size_kept(), 200);
}
END_TEST

START_TEST(within_one_tick_a_cut_leaves_nothing)
{
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);

	arrive_shrunk(a, 5, 0);
	arrive(b, 5, 100);
	ck_assert_uint_eq(size_kept(), NOTHING);
}
END_TEST

START_TEST(a_cut_between_two_others_leaves_nothing)
{
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);
	uint64_t cut = ssc_kept_ticket(&kept);

	arrive(a, 5, 100);
	arrive_shrunk(cut, 5, 100);
	arrive(b, 5, 300);
	ck_assert_uint_eq(size_kept(), NOTHING);
}
END_TEST

START_TEST(within_one_tick_another_mode_leaves_nothing)
{
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);
	struct ssc_attrs attrs = file(5, 100);

	attrs.mode = 0600;
	arrive(a, 5, 100);
	ssc_kept_arrived(&kept, b, &attrs, false);
	ck_assert_uint_eq(size_kept(), NOTHING);
}
END_TEST

START_TEST(what_overlapped_with_doubt_does_not_end_it)
{
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);
	uint64_t c = ssc_kept_ticket(&kept);

	arrive_shrunk(a, 5, 0);
	arrive(b, 5, 100);
	arrive(c, 6, 50);
	ck_assert_uint_eq(size_kept(), NOTHING);
	arrive(ssc_kept_ticket(&kept), 6, 70);
	ck_assert_uint_eq(size_kept(), 70);
}
END_TEST

START_TEST(a_reply_without_attributes_leaves_nothing)
{
	uint64_t a = ssc_kept_ticket(&kept);

	arrive(ssc_kept_ticket(&kept), 5, 100);
	ssc_kept_arrived(&kept, ssc_kept_ticket(&kept), NULL, false);
	ck_assert_uint_eq(size_kept(), NOTHING);
	arrive(a, 5, 100);
	ck_assert_uint_eq(size_kept(), NOTHING);
}
END_TEST

START_TEST(what_was_forgotten_does_not_return)
{
	uint64_t a = ssc_kept_ticket(&kept);

	ssc_kept_forget(&kept);
	arrive(a, 5, 100);
	ck_assert_uint_eq(size_kept(), NOTHING);
	arrive(ssc_kept_ticket(&kept), 5, 100);
	ck_assert_uint_eq(size_kept(), 100);
}
END_TEST

START_TEST(age_counts_from_the_last_arrival)
{
	struct ssc_attrs attrs;
	uint64_t a = ssc_kept_ticket(&kept), b = ssc_kept_ticket(&kept);

	arrive(a, 5, 100);
	ck_assert(ssc_kept_get(&kept, 999, &attrs));
	ck_assert(!ssc_kept_get(&kept, 1000, &attrs));
	fake_clock_advance(10);
	arrive(b, 5, 200);
	ck_assert(ssc_kept_get(&kept, 1000, &attrs));
}
END_TEST

static bool confirm(int64_t ctime, uint64_t size)
{
	struct ssc_attrs attrs = file(ctime, size);

	return ssc_kept_confirm(&kept, &attrs);
}

START_TEST(what_is_kept_is_confirmed_and_young_again)
{
	struct ssc_attrs attrs;

	arrive(ssc_kept_ticket(&kept), 5, 100);
	fake_clock_advance(10);
	ck_assert(confirm(5, 100));
	ck_assert(ssc_kept_get(&kept, 1000, &attrs));
	ck_assert_uint_eq(attrs.size, 100);
}
END_TEST

START_TEST(a_later_ctime_replaces_and_an_earlier_one_does_not)
{
	uint64_t before, after;

	arrive(ssc_kept_ticket(&kept), 5, 100);
	before = ssc_kept_ticket(&kept);
	ck_assert(confirm(7, 200));
	after = ssc_kept_ticket(&kept);
	ck_assert_uint_eq(size_kept(), 200);
	ck_assert(!confirm(6, 150));
	ck_assert_uint_eq(size_kept(), 200);
	arrive(before, 6, 150); /* it overlapped */
	ck_assert_uint_eq(size_kept(), 200);
	arrive(after, 6, 150); /* sent when 200 was known */
	ck_assert_uint_eq(size_kept(), 150);
}
END_TEST

START_TEST(nothing_and_another_within_one_tick_confirm_nothing)
{
	ck_assert(!confirm(5, 100));
	ck_assert_uint_eq(size_kept(), NOTHING);
	arrive(ssc_kept_ticket(&kept), 5, 100);
	ck_assert(!confirm(5, 101));
	ck_assert_uint_eq(size_kept(), 100);
	ssc_kept_forget(&kept);
	ck_assert(!confirm(5, 100));
	ck_assert_uint_eq(size_kept(), NOTHING);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kept");
	TCase *order = tcase_create("order");
	TCase *doubt = tcase_create("doubt");
	TCase *elsewhere = tcase_create("elsewhere");

	tcase_add_checked_fixture(order, setup, teardown);
	tcase_add_test(order, nothing_is_kept_at_first);
	tcase_add_test(order, the_last_is_known_when_nothing_is_kept);
	tcase_add_test(order, the_latest_of_calls_one_after_another_is_kept);
	tcase_add_test(order, of_overlapping_calls_the_later_ctime_is_kept);
	tcase_add_test(order, within_one_tick_the_longer_file_is_the_later_one);
	tcase_add_test(order, age_counts_from_the_last_arrival);
	suite_add_tcase(suite, order);
	tcase_add_checked_fixture(doubt, setup, teardown);
	tcase_add_test(doubt, within_one_tick_a_cut_leaves_nothing);
	tcase_add_test(doubt, a_cut_between_two_others_leaves_nothing);
	tcase_add_test(doubt, within_one_tick_another_mode_leaves_nothing);
	tcase_add_test(doubt, what_overlapped_with_doubt_does_not_end_it);
	tcase_add_test(doubt, a_reply_without_attributes_leaves_nothing);
	tcase_add_test(doubt, what_was_forgotten_does_not_return);
	suite_add_tcase(suite, doubt);
	tcase_add_checked_fixture(elsewhere, setup, teardown);
	tcase_add_test(elsewhere, what_is_kept_is_confirmed_and_young_again);
	tcase_add_test(elsewhere, a_later_ctime_replaces_and_an_earlier_one_does_not);
	tcase_add_test(elsewhere, nothing_and_another_within_one_tick_confirm_nothing);
	suite_add_tcase(suite, elsewhere);
	return unit_main(suite);
}
