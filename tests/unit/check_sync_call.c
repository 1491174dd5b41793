/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_sync_call.c - waiting for answers, and retries that join an earlier sending.
 *
 * What makes two requests the same is tested in check_sync_key.c, the EXIST and NOENT decisions in
 * check_sync_decide.c, races in check_sync_race.c.
 */
#include "ssc/log.h"
#include "sync_unit.h"

#define KEEP_NS  (120 * SSC_NS_PER_S)
#define LATE_MAX 4096u

/* ---- waiting ---- */

START_TEST(an_answer_comes_back)
{
	struct ssc_call *call = new_call(SSC_OP_GETATTR, NULL);
	struct fake_step step = {.op = SSC_OP_GETATTR, .has_attrs = true, .attrs = {.size = 77}};

	fake_upstream_push(fake, &step);
	ck_assert_int_eq(ssc_caller_run(caller, 1, &call), SSC_OK);
	ck_assert_int_eq(call->err, SSC_OK);
	ck_assert(call->has_attrs);
	ck_assert_uint_eq(call->attrs.size, 77);
	ssc_call_put(call);
}
END_TEST

START_TEST(an_answer_comes_back_from_another_thread)
{
	fake_upstream_use_worker(fake);
	push(SSC_OP_GETATTR, FAKE_REPLY, SSC_E_STALE);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_NOSPC);
	ck_assert_int_eq(run(1, new_call(SSC_OP_GETATTR, NULL)), SSC_E_STALE);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_NOSPC);
}
END_TEST

START_TEST(every_result_is_passed_on)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, (enum ssc_err)_i);
	push(SSC_OP_LOOKUP, FAKE_REPLY, (enum ssc_err)_i);
	ck_assert_int_eq(mkdir_as(1, "d"), _i);
	ck_assert_int_eq(run(1, new_call(SSC_OP_LOOKUP, "d")), _i);
}
END_TEST

START_TEST(the_deadline_is_the_answer_limit)
{
	push(SSC_OP_N, FAKE_REPLY, SSC_OK);
	push(SSC_OP_N, FAKE_REPLY, SSC_OK);
	run(1, new_call(SSC_OP_GETATTR, NULL));
	ck_assert_uint_eq(fake_upstream_record(fake, 0).answer_by_ns,
			  1000 * SSC_NS_PER_S + LIMIT_NS);
	ssc_caller_set_timeout(caller, 3);
	fake_clock_advance(5);
	mkdir_as(1, "d");
	ck_assert_uint_eq(fake_upstream_record(fake, 1).answer_by_ns, 1000 * SSC_NS_PER_S + 5 + 3);
}
END_TEST

START_TEST(an_idempotent_call_that_times_out_is_not_kept)
{
	push(SSC_OP_LOOKUP, FAKE_LATE, SSC_OK);
	push(SSC_OP_LOOKUP, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(1, new_call(SSC_OP_LOOKUP, "d")), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ck_assert_int_eq(run(1, new_call(SSC_OP_LOOKUP, "d")), SSC_OK);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_LOOKUP), 2);
	fake_upstream_release(fake, 0);
}
END_TEST

START_TEST(what_was_answered_in_time_is_not_kept)
{
	push(SSC_OP_MKDIR, FAKE_REPLY, (enum ssc_err)_i);
	mkdir_as(1, "d");
	ck_assert_uint_eq(ssc_caller_n_late(caller), _i == SSC_E_CONN ? 1 : 0);
}
END_TEST

/* ---- joining ---- */

START_TEST(a_retry_takes_the_late_outcome)
{
	struct ssc_call *call = new_call(SSC_OP_MKDIR, "d");

	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	fake_upstream_release(fake, 0);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	ck_assert_int_eq(ssc_caller_run(caller, 1, &call), SSC_OK);
	ck_assert_uint_eq(call->res.object.fh.len, 4);
	ck_assert_str_eq((char *)call->res.object.fh.data, "new");
	ck_assert_int_eq(call->err, SSC_OK);
	ssc_call_put(call);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

static unsigned int n_heard;

static void hear(void *ctx, const struct ssc_call *call)
{
	ck_assert_ptr_eq(ctx, &n_heard);
	ck_assert_int_eq(call->op, SSC_OP_MKDIR);
	n_heard++;
}

START_TEST(late_changes_are_told_and_nothing_else)
{
	n_heard = 0;
	ssc_caller_on_late(caller, hear, &n_heard);
	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(n_heard, 0);
	fake_upstream_release(fake, 0);
	ck_assert_uint_eq(n_heard, 1);
	push(SSC_OP_MKDIR, FAKE_LATE, SSC_E_ACCES);
	ck_assert_int_eq(mkdir_as(1, "e"), SSC_E_TIMEDOUT);
	fake_upstream_release(fake, 1);
	ck_assert_uint_eq(n_heard, 1);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "f"), SSC_OK);
	ck_assert_uint_eq(n_heard, 1);
}
END_TEST

START_TEST(a_late_error_is_taken_too)
{
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_E_EXIST); /* sent once: EXIST is true */
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_EXIST);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(an_outcome_is_taken_once)
{
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_OK);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_EXIST);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
}
END_TEST

START_TEST(a_retry_waits_up_to_its_own_limit)
{
	struct runner r;

	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	start(&r, 1, new_call(SSC_OP_MKDIR, "d"));
	advance_until_over(&r);
	ck_assert_int_eq(join_runner(&r), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1); /* the next retry joins too */
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_OK);
}
END_TEST

START_TEST(a_retry_that_waits_gets_the_outcome)
{
	struct runner r;

	push(SSC_OP_MKDIR, FAKE_LATE, SSC_E_NOSPC);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	start(&r, 1, new_call(SSC_OP_MKDIR, "d"));
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(join_runner(&r), SSC_E_NOSPC); /* the clock stands: only late ends it */
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

START_TEST(a_retry_does_not_wait_for_a_silent_upstream)
{
	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	fake_upstream_set_silent(fake, true);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT); /* the clock stands */
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_OK); /* what is known is taken all the same */
}
END_TEST

START_TEST(a_held_call_is_kept_when_it_times_out)
{
	struct runner r;

	push(SSC_OP_MKDIR, FAKE_HOLD, SSC_OK);
	start(&r, 1, new_call(SSC_OP_MKDIR, "d"));
	fake_upstream_wait_calls(fake, 1);
	ck_assert_uint_eq(fake_upstream_expire(fake), 0);
	fake_clock_advance(LIMIT_NS);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ck_assert_uint_eq(fake_upstream_expire(fake), 1);
	ck_assert_int_eq(join_runner(&r), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_OK);
}
END_TEST

START_TEST(twins_of_a_retry_get_one_outcome_between_them)
{
	struct runner r[3];
	unsigned int n_ok = 0, n_exist = 0;
	int i;

	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	for (i = 0; i < 3; i++)
		start(&r[i], 1, new_call(SSC_OP_MKDIR, "d"));
	fake_upstream_release(fake, 0);
	for (i = 0; i < 3; i++) {
		enum ssc_err err = join_runner(&r[i]);

		n_ok += err == SSC_OK;
		n_exist += err == SSC_E_EXIST;
	}
	ck_assert_uint_eq(n_ok, 1);
	ck_assert_uint_eq(n_exist, 2);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

/* ---- what cuts a file off ---- */

static struct ssc_call *cutting(int i)
{
	struct ssc_call *call = new_call(i ? SSC_OP_SETATTR : SSC_OP_CREATE, i ? NULL : "f");

	if (i)
		call->arg.setattr.set.set_size = true;
	else
		call->arg.create.how = SSC_CREATE_UNCHECKED;
	return call;
}

START_TEST(a_retry_that_cuts_off_waits_and_is_sent_anew)
{
	struct runner r;

	push(SSC_OP_N, FAKE_LATE, SSC_OK);
	push(SSC_OP_N, FAKE_REPLY, SSC_E_NOSPC);
	ck_assert_int_eq(run(1, cutting(_i)), SSC_E_TIMEDOUT);
	start(&r, 1, cutting(_i));
	advance_until_over(&r);
	ck_assert_int_eq(join_runner(&r), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1); /* never two at a time */
	start(&r, 1, cutting(_i));
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(join_runner(&r), SSC_E_NOSPC);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(an_old_cut_does_not_answer_a_new_one)
{
	push(SSC_OP_N, FAKE_LATE_AT_ONCE, SSC_OK);
	push(SSC_OP_N, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(1, cutting(_i)), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ck_assert_int_eq(run(1, cutting(_i)), SSC_OK);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
}
END_TEST

START_TEST(a_cut_of_unknown_outcome_is_not_kept)
{
	push(SSC_OP_N, FAKE_REPLY, SSC_E_CONN);
	ck_assert_int_eq(run(1, cutting(_i)), SSC_E_CONN);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

/* ---- how long an outcome is kept ---- */

START_TEST(an_outcome_ages_out)
{
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_OK);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	fake_clock_advance(KEEP_NS - 1);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	fake_clock_advance(1);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_EXIST);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(an_outcome_is_there_until_it_ages_out)
{
	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	fake_clock_advance(10 * KEEP_NS); /* what is awaited does not age */
	fake_upstream_release(fake, 0);
	fake_clock_advance(KEEP_NS - 1);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_OK);
}
END_TEST

START_TEST(a_full_table_pushes_the_oldest_outcome_out)
{
	char name[16];
	unsigned int i;

	for (i = 0; i <= LATE_MAX; i++) {
		push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_OK);
		snprintf(name, sizeof(name), "%u", i);
		ck_assert_int_eq(mkdir_as(1, name), SSC_E_TIMEDOUT);
	}
	ck_assert_uint_eq(ssc_caller_n_late(caller), LATE_MAX);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(mkdir_as(1, "0"), SSC_E_EXIST); /* the one that went */
	ck_assert_int_eq(mkdir_as(1, "1"), SSC_OK);
	ck_assert_int_eq(mkdir_as(1, name), SSC_OK);
	ck_assert_uint_eq(ssc_caller_n_late(caller), LATE_MAX - 2);
}
END_TEST

static unsigned int n_warnings;

static void count_warnings(enum ssc_log_level level, const char *fmt, va_list args)
{
	(void)fmt;
	(void)args;
	n_warnings += level == SSC_LOG_WARN;
}

START_TEST(a_table_full_of_awaited_calls_takes_no_more)
{
	char name[16];
	unsigned int i;

	for (i = 0; i <= LATE_MAX; i++) {
		push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
		if (i == LATE_MAX)
			ssc_log_set(count_warnings, SSC_LOG_WARN);
		snprintf(name, sizeof(name), "%u", i);
		ck_assert_int_eq(mkdir_as(1, name), SSC_E_TIMEDOUT);
	}
	ssc_log_set(NULL, SSC_LOG_WARN);
	ck_assert_uint_eq(n_warnings, 1);
	ck_assert_uint_eq(ssc_caller_n_late(caller), LATE_MAX);
	fake_upstream_release(fake, LATE_MAX); /* nothing to keep it in */
	ck_assert_uint_eq(ssc_caller_n_late(caller), LATE_MAX);
	fake_upstream_release(fake, 0); /* an older one */
	ck_assert_int_eq(mkdir_as(1, "0"), SSC_OK);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(mkdir_as(1, name), SSC_E_EXIST);
}
END_TEST

static struct ssc_call *rename_call(const char *from, const char *to)
{
	struct ssc_call *call = new_call(SSC_OP_RENAME, from);

	call->arg.rename.to_dir = call->fh;
	ck_assert_int_eq(ssc_call_set_text(call, to), SSC_OK);
	return call;
}

START_TEST(another_request_for_the_name_makes_an_outcome_void)
{
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT); /* and its client gives up */
	push(SSC_OP_RMDIR, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(run(2, new_call(SSC_OP_RMDIR, "d")), SSC_OK);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_OK);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_MKDIR), 2);
}
END_TEST

START_TEST(both_names_of_a_rename_count)
{
	static const char *const touching[] = {"a", "b"};

	push(SSC_OP_RENAME, FAKE_LATE_AT_ONCE, SSC_OK);
	ck_assert_int_eq(run(1, rename_call("a", "b")), SSC_E_TIMEDOUT);
	push(SSC_OP_RMDIR, FAKE_REPLY, SSC_OK);
	run(1, new_call(SSC_OP_RMDIR, "c"));
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1); /* other names are no matter */
	push(SSC_OP_RMDIR, FAKE_REPLY, SSC_OK);
	run(1, new_call(SSC_OP_RMDIR, touching[_i]));
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(the_new_name_of_a_link_counts)
{
	struct ssc_call *link = new_call(SSC_OP_LINK, "n");

	link->fh.data[0] = 'f';
	link->arg.rename.to_dir = (struct ssc_fh){.len = 3, .data = "dir"};
	push(SSC_OP_LINK, FAKE_LATE_AT_ONCE, SSC_OK);
	ck_assert_int_eq(run(1, link), SSC_E_TIMEDOUT);
	push(SSC_OP_REMOVE, FAKE_REPLY, SSC_OK);
	run(1, new_call(SSC_OP_REMOVE, "n"));
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

/* ---- the end ---- */

START_TEST(stop_ends_the_waiting)
{
	struct runner r;

	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	start(&r, 1, new_call(SSC_OP_MKDIR, "d"));
	fake_upstream_ops(fake)->ops->stop(fake_upstream_ops(fake));
	ck_assert_int_eq(join_runner(&r), SSC_E_SHUTDOWN);
	ck_assert_int_eq(mkdir_as(1, "other"), SSC_E_SHUTDOWN);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(free_takes_unclaimed_outcomes_along)
{
	push(SSC_OP_MKDIR, FAKE_LATE_AT_ONCE, SSC_OK);
	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	ck_assert_int_eq(mkdir_as(1, "a"), SSC_E_TIMEDOUT);
	ck_assert_int_eq(mkdir_as(1, "b"), SSC_E_TIMEDOUT);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 2);
	ssc_caller_free(NULL);
	/* teardown stops and frees; the leak checker counts. */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync_call");
	TCase *waits = add_case(suite, "waits");
	TCase *joins = add_case(suite, "joins");
	TCase *cuts = add_case(suite, "cuts");
	TCase *keeps = add_case(suite, "keeps");
	TCase *ends = add_case(suite, "ends");

	tcase_add_test(waits, an_answer_comes_back);
	tcase_add_test(waits, an_answer_comes_back_from_another_thread);
	tcase_add_loop_test(waits, every_result_is_passed_on, SSC_OK, SSC_E_TIMEDOUT);
	tcase_add_loop_test(waits, every_result_is_passed_on, SSC_E_DOWN, SSC_E_N);
	tcase_add_test(waits, the_deadline_is_the_answer_limit);
	tcase_add_test(waits, an_idempotent_call_that_times_out_is_not_kept);
	tcase_add_loop_test(waits, what_was_answered_in_time_is_not_kept, SSC_OK, SSC_E_TIMEDOUT);
	tcase_add_loop_test(waits, what_was_answered_in_time_is_not_kept, SSC_E_DOWN, SSC_E_N);
	tcase_add_test(joins, a_retry_takes_the_late_outcome);
	tcase_add_test(joins, late_changes_are_told_and_nothing_else);
	tcase_add_test(joins, a_late_error_is_taken_too);
	tcase_add_test(joins, an_outcome_is_taken_once);
	tcase_add_test(joins, a_retry_waits_up_to_its_own_limit);
	tcase_add_test(joins, a_retry_that_waits_gets_the_outcome);
	tcase_add_test(joins, a_retry_does_not_wait_for_a_silent_upstream);
	tcase_add_test(joins, a_held_call_is_kept_when_it_times_out);
	tcase_add_test(joins, twins_of_a_retry_get_one_outcome_between_them);
	tcase_add_loop_test(cuts, a_retry_that_cuts_off_waits_and_is_sent_anew, 0, 2);
	tcase_add_loop_test(cuts, an_old_cut_does_not_answer_a_new_one, 0, 2);
	tcase_add_loop_test(cuts, a_cut_of_unknown_outcome_is_not_kept, 0, 2);
	tcase_add_test(keeps, an_outcome_ages_out);
	tcase_add_test(keeps, an_outcome_is_there_until_it_ages_out);
	tcase_add_test(keeps, a_full_table_pushes_the_oldest_outcome_out);
	tcase_add_test(keeps, a_table_full_of_awaited_calls_takes_no_more);
	tcase_add_test(keeps, another_request_for_the_name_makes_an_outcome_void);
	tcase_add_loop_test(keeps, both_names_of_a_rename_count, 0, 2);
	tcase_add_test(keeps, the_new_name_of_a_link_counts);
	tcase_add_test(ends, stop_ends_the_waiting);
	tcase_add_test(ends, free_takes_unclaimed_outcomes_along);
	return unit_main(suite);
}
