/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_sync_before.c - what a name was before a call whose outcome its client has not heard.
 */
#include "sync_unit.h"

static struct ssc_before before_as(uint64_t who, const char *name)
{
	const struct ssc_fh dir = {.len = 3, .data = "dir"};

	return ssc_caller_before(caller, who, &dir, name);
}

static struct ssc_call *change(enum ssc_op op)
{
	struct ssc_call *call = new_call(op, "n");

	if (op == SSC_OP_CREATE)
		call->arg.create.how = SSC_CREATE_GUARDED;
	else if (op == SSC_OP_REMOVE || op == SSC_OP_RMDIR || op == SSC_OP_RENAME)
		call->arg.rename.object = (struct ssc_fh){.len = 3, .data = "obj"};
	if (op == SSC_OP_RENAME) {
		call->arg.rename.to_dir = (struct ssc_fh){.len = 5, .data = "other"};
		ck_assert_int_eq(ssc_call_set_text(call, "m"), SSC_OK);
	}
	return call;
}

static const struct {
	enum ssc_op op;
	int what;
	bool is_dir;
} changes[] = {
	{SSC_OP_CREATE, SSC_BEFORE_ABSENT, false}, {SSC_OP_REMOVE, SSC_BEFORE_OBJECT, false},
	{SSC_OP_RMDIR, SSC_BEFORE_OBJECT, true},   {SSC_OP_RENAME, SSC_BEFORE_OBJECT, false},
	{SSC_OP_MKDIR, SSC_BEFORE_SAME, false},    {SSC_OP_SYMLINK, SSC_BEFORE_SAME, false},
};

static void expect_change(int i, bool is_pending)
{
	struct ssc_before before = before_as(1, "n");

	ck_assert_int_eq(before.what, changes[i].what);
	if (before.what == SSC_BEFORE_SAME)
		return;
	ck_assert_int_eq(before.is_pending, is_pending);
	ck_assert_int_eq(before.is_dir, changes[i].is_dir);
	if (before.what == SSC_BEFORE_OBJECT) {
		ck_assert_uint_eq(before.object.len, 3);
		ck_assert(memcmp(before.object.data, "obj", 3) == 0);
	}
	ck_assert_int_eq(before_as(2, "n").what, SSC_BEFORE_SAME); /* another client */
	ck_assert_int_eq(before_as(1, "m").what, SSC_BEFORE_SAME); /* another name */
}

START_TEST(nothing_is_before_when_nothing_is_late)
{
	push(SSC_OP_CREATE, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(1, change(SSC_OP_CREATE)), SSC_OK);
	ck_assert_int_eq(before_as(1, "n").what, SSC_BEFORE_SAME);
}
END_TEST

START_TEST(a_call_that_is_not_over_is_pending)
{
	push(changes[_i].op, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(run(1, change(changes[_i].op)), SSC_E_TIMEDOUT);
	expect_change(_i, true);
	fake_upstream_release(fake, 0);
	expect_change(_i, false);
}
END_TEST

START_TEST(an_outcome_that_is_not_known_counts)
{
	push(changes[_i].op, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, change(changes[_i].op)), SSC_E_CONN);
	expect_change(_i, false);
}
END_TEST

START_TEST(a_call_that_failed_does_not_count)
{
	push(changes[_i].op, FAKE_LATE_AT_ONCE, SSC_E_ACCES);
	ck_assert_int_eq(run(1, change(changes[_i].op)), SSC_E_TIMEDOUT);
	ck_assert_int_eq(before_as(1, "n").what, SSC_BEFORE_SAME);
}
END_TEST

START_TEST(the_retry_ends_it)
{
	push(changes[_i].op, FAKE_LATE_AT_ONCE, SSC_OK);
	ck_assert_int_eq(run(1, change(changes[_i].op)), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, change(changes[_i].op)), SSC_OK);
	ck_assert_int_eq(before_as(1, "n").what, SSC_BEFORE_SAME);
}
END_TEST

START_TEST(half_a_minute_ends_it)
{
	push(SSC_OP_REMOVE, FAKE_LATE_AT_ONCE, SSC_OK);
	ck_assert_int_eq(run(1, change(SSC_OP_REMOVE)), SSC_E_TIMEDOUT);
	fake_clock_advance(30 * SSC_NS_PER_S - 1);
	ck_assert_int_eq(before_as(1, "n").what, SSC_BEFORE_OBJECT);
	fake_clock_advance(1);
	ck_assert_int_eq(before_as(1, "n").what, SSC_BEFORE_SAME);
	ck_assert_int_eq(run(1, change(SSC_OP_REMOVE)), SSC_OK); /* the outcome is there longer */
}
END_TEST

START_TEST(another_request_for_the_name_ends_it)
{
	push(SSC_OP_REMOVE, FAKE_LATE_AT_ONCE, SSC_OK);
	ck_assert_int_eq(run(1, change(SSC_OP_REMOVE)), SSC_E_TIMEDOUT);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(2, change(SSC_OP_MKDIR)), SSC_OK);
	ck_assert_int_eq(before_as(1, "n").what, SSC_BEFORE_SAME);
}
END_TEST

int main(void)
{
	const int n = (int)(sizeof(changes) / sizeof(changes[0]));
	Suite *suite = suite_create("sync_before");
	TCase *states = add_case(suite, "states");
	TCase *ends = add_case(suite, "ends");

	tcase_add_test(states, nothing_is_before_when_nothing_is_late);
	tcase_add_loop_test(states, a_call_that_is_not_over_is_pending, 0, n);
	tcase_add_loop_test(states, an_outcome_that_is_not_known_counts, 0, n);
	tcase_add_loop_test(states, a_call_that_failed_does_not_count, 0, n);
	tcase_add_loop_test(ends, the_retry_ends_it, 0, n);
	tcase_add_test(ends, half_a_minute_ends_it);
	tcase_add_test(ends, another_request_for_the_name_ends_it);
	return unit_main(suite);
}
