/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_sync_unknown.c - requests whose earlier sending has an unknown outcome.
 *
 * The retry is sent anew, knowing that it may be a repetition; that knowledge must survive whatever
 * comes between, and must not be invented.
 */
#include "sync_unit.h"

#define KEEP_NS (120 * SSC_NS_PER_S)

static struct ssc_call *mkdir_d(void)
{
	struct ssc_call *call = new_call(SSC_OP_MKDIR, "d");

	call->arg.make.set.set_mode = true;
	call->arg.make.set.mode = 0750;
	return call;
}

/* LOOKUP finds what mkdir_d would have made. */
static void push_made(void)
{
	struct fake_step step = {.op = SSC_OP_LOOKUP,
				 .fh = {.len = 4, .data = "made"},
				 .has_attrs = true,
				 .attrs = {.type = SSC_FT_DIR, .mode = 0750, .nlink = 2, .uid = 1}};

	fake_upstream_push(fake, &step);
}

static void expect_decided(void)
{
	struct ssc_call *call = mkdir_d();

	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	push_made();
	ck_assert_int_eq(ssc_caller_run(caller, 1, &call), SSC_OK);
	ck_assert_str_eq((char *)call->res.object.fh.data, "made");
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ssc_call_put(call);
}

static void expect_plain(void)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_EXIST);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_LOOKUP), 0);
}

static const enum ssc_err unknown[] = {SSC_E_CONN, SSC_E_DOWN, SSC_E_PROTO, SSC_E_SHUTDOWN};

START_TEST(a_late_unknown_outcome_makes_the_retry_a_repetition)
{
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, unknown[_i]);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_TIMEDOUT);
	expect_decided();
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_MKDIR), 2);
}
END_TEST

START_TEST(a_call_given_up_makes_the_retry_a_repetition)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	expect_decided();
}
END_TEST

/* Errors that send the client back without having been carried out, as far as this sending goes. */
static const enum ssc_err not_now[] = {SSC_E_DOWN, SSC_E_JUKEBOX, SSC_E_CONN};

START_TEST(the_knowledge_survives_attempts_that_fail)
{
	int i;

	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	for (i = 0; i < 3; i++) {
		push(SSC_OP_MKDIR, FAKE_REPLY, not_now[_i]);
		ck_assert_int_eq(run(1, mkdir_d()), not_now[_i]);
		ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	}
	expect_decided();
}
END_TEST

START_TEST(the_knowledge_survives_a_second_time_out)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_E_EXIST);
	push_made();
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_OK); /* joined, and EXIST decided */
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_MKDIR), 2);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(a_joined_outcome_of_a_call_sent_twice_is_doubted)
{
	struct fake_step step = {.op = SSC_OP_MKDIR,
				 .how = FAKE_LATE_AT_ONCE,
				 .err = SSC_E_EXIST,
				 .retried = true};

	fake_upstream_push(fake, &step);
	push_made();
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_OK);
}
END_TEST

START_TEST(a_second_sending_that_is_put_off_is_remembered)
{
	struct fake_step step = {.op = SSC_OP_MKDIR, .err = SSC_E_JUKEBOX, .retried = true};

	fake_upstream_push(fake, &step);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_JUKEBOX);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	expect_decided();
}
END_TEST

START_TEST(what_was_never_sent_is_no_repetition)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_DOWN);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_JUKEBOX);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_DOWN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_JUKEBOX);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	expect_plain();
}
END_TEST

START_TEST(a_decided_request_is_forgotten)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_OK);
	expect_plain();
}
END_TEST

START_TEST(the_knowledge_ages_out)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	fake_clock_advance(KEEP_NS);
	expect_plain();
}
END_TEST

START_TEST(the_knowledge_is_void_after_another_request_for_the_name)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	push(SSC_OP_RMDIR, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(1, new_call(SSC_OP_RMDIR, "d")), SSC_OK);
	expect_plain();
}
END_TEST

/* Two identical requests of one client timed out; one is known, one still works. */
START_TEST(a_retry_is_not_sent_beside_a_twin_that_still_works)
{
	struct runner r;

	push(SSC_OP_MKDIR, FAKE_HOLD, SSC_E_EXIST);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_CONN);
	start(&r, 1, mkdir_d());
	fake_upstream_wait_calls(fake, 1);
	ck_assert_int_eq(run(1, mkdir_d()), SSC_E_CONN);
	fake_clock_advance(LIMIT_NS);
	ck_assert_uint_eq(fake_upstream_expire(fake), 1);
	ck_assert_int_eq(join_runner(&r), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 2);
	start(&r, 1, mkdir_d());
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(join_runner(&r), SSC_E_EXIST);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_MKDIR), 2);
	expect_decided(); /* the other retry: one of the two made it */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync_unknown");
	TCase *repeats = add_case(suite, "repeats");
	TCase *forgets = add_case(suite, "forgets");

	tcase_add_loop_test(repeats, a_late_unknown_outcome_makes_the_retry_a_repetition, 0, 4);
	tcase_add_test(repeats, a_call_given_up_makes_the_retry_a_repetition);
	tcase_add_loop_test(repeats, the_knowledge_survives_attempts_that_fail, 0, 3);
	tcase_add_test(repeats, the_knowledge_survives_a_second_time_out);
	tcase_add_test(repeats, a_joined_outcome_of_a_call_sent_twice_is_doubted);
	tcase_add_test(repeats, a_second_sending_that_is_put_off_is_remembered);
	tcase_add_test(repeats, a_retry_is_not_sent_beside_a_twin_that_still_works);
	tcase_add_test(forgets, what_was_never_sent_is_no_repetition);
	tcase_add_test(forgets, a_decided_request_is_forgotten);
	tcase_add_test(forgets, the_knowledge_ages_out);
	tcase_add_test(forgets, the_knowledge_is_void_after_another_request_for_the_name);
	return unit_main(suite);
}
