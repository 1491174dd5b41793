/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_log.c - levels, the sink, stderr before there is one, and the limit on repeated lines.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fake_clock.h"
#include "ssc/base.h"
#include "ssc/log.h"
#include "unit.h"

static unsigned int n_lines;
static enum ssc_log_level last_level;
static char last_line[256];

static void keep(enum ssc_log_level level, const char *fmt, va_list args)
{
	n_lines++;
	last_level = level;
	vsnprintf(last_line, sizeof(last_line), fmt, args);
}

static void setup(void)
{
	/* Without fork, what a call site remembers outlives its test. */
	static uint64_t start_ns;

	start_ns += 100 * SSC_NS_PER_S;
	n_lines = 0;
	last_line[0] = '\0';
	fake_clock_start(start_ns);
}

static void teardown(void)
{
	ssc_log_set(NULL, SSC_LOG_WARN);
	fake_clock_stop();
}

START_TEST(sink_gets_the_level_and_the_text)
{
	ssc_log_set(keep, SSC_LOG_DEBUG);
	ssc_log_event("mounted %s %d", "here", 7);
	ck_assert_uint_eq(n_lines, 1);
	ck_assert_int_eq(last_level, SSC_LOG_EVENT);
	ck_assert_str_eq(last_line, "mounted here 7");
}
END_TEST

START_TEST(lines_above_the_wanted_level_are_not_built)
{
	ssc_log_set(keep, SSC_LOG_EVENT);
	ck_assert(ssc_log_wants(SSC_LOG_CRIT));
	ck_assert(ssc_log_wants(SSC_LOG_EVENT));
	ck_assert(!ssc_log_wants(SSC_LOG_INFO));
	ssc_log_info("not wanted %d", (ck_abort_msg("argument was evaluated"), 1));
	ssc_log_debug("nor this");
	ssc_log_crit("this one");
	ck_assert_uint_eq(n_lines, 1);
	ck_assert_int_eq(last_level, SSC_LOG_CRIT);
}
END_TEST

/* What @talk writes to stderr. */
static void capture(void (*talk)(void), char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	ck_assert_ptr_nonnull(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	talk();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
}

static void talk_all_levels(void)
{
	ssc_log_crit("one");
	ssc_log_warn("two");
	ssc_log_event("three");
	ssc_log_debug("four");
}

START_TEST(without_a_sink_bad_news_go_to_stderr)
{
	char text[256];

	capture(talk_all_levels, text, sizeof(text));
	ck_assert_str_eq(text, "ssc CRIT: one\nssc WARN: two\n");
}
END_TEST

START_TEST(no_sink_brings_stderr_back)
{
	char text[256];

	ssc_log_set(keep, SSC_LOG_DEBUG);
	ssc_log_set(NULL, SSC_LOG_DEBUG);
	capture(talk_all_levels, text, sizeof(text));
	ck_assert_str_eq(text, "ssc CRIT: one\nssc WARN: two\n");
	ck_assert_uint_eq(n_lines, 0);
}
END_TEST

static void warn_here(void)
{
	ssc_log_warn("peer misbehaves");
}

START_TEST(one_place_warns_once_a_second)
{
	ssc_log_set(keep, SSC_LOG_DEBUG);
	warn_here();
	warn_here();
	ck_assert_uint_eq(n_lines, 1);
	fake_clock_advance(SSC_NS_PER_S - 1);
	warn_here();
	ck_assert_uint_eq(n_lines, 1);
	fake_clock_advance(1);
	warn_here();
	warn_here();
	ck_assert_uint_eq(n_lines, 2);
	ssc_log_warn("another place");
	ck_assert_uint_eq(n_lines, 3);
}
END_TEST

START_TEST(a_warning_that_is_not_wanted_does_not_use_up_the_second)
{
	ssc_log_set(keep, SSC_LOG_CRIT);
	warn_here();
	ck_assert_uint_eq(n_lines, 0);
	ssc_log_set(keep, SSC_LOG_WARN);
	warn_here();
	ck_assert_uint_eq(n_lines, 1);
}
END_TEST

START_TEST(once_a_second_works_at_time_zero)
{
	_Atomic uint64_t last = 0;

	fake_clock_stop();
	fake_clock_start(0);
	ck_assert(ssc_log_once_a_second(&last));
	ck_assert(!ssc_log_once_a_second(&last));
}
END_TEST

#define RACERS 8

static _Atomic uint64_t race_last;
static _Atomic unsigned int race_won;

static void *race(void *arg)
{
	(void)arg;
	if (ssc_log_once_a_second(&race_last))
		race_won++;
	return NULL;
}

START_TEST(of_threads_that_warn_together_one_does)
{
	pthread_t threads[RACERS];
	int round, i;

	for (round = 0; round < 50; round++) {
		race_won = 0;
		fake_clock_advance(SSC_NS_PER_S);
		for (i = 0; i < RACERS; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, race, NULL), 0);
		for (i = 0; i < RACERS; i++)
			pthread_join(threads[i], NULL);
		ck_assert_uint_eq(race_won, 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *happy = tcase_create("happy");
	TCase *limit = tcase_create("limit");

	tcase_add_checked_fixture(happy, setup, teardown);
	tcase_add_test(happy, sink_gets_the_level_and_the_text);
	tcase_add_test(happy, lines_above_the_wanted_level_are_not_built);
	tcase_add_test(happy, without_a_sink_bad_news_go_to_stderr);
	tcase_add_test(happy, no_sink_brings_stderr_back);
	suite_add_tcase(suite, happy);
	tcase_add_checked_fixture(limit, setup, teardown);
	tcase_add_test(limit, one_place_warns_once_a_second);
	tcase_add_test(limit, a_warning_that_is_not_wanted_does_not_use_up_the_second);
	tcase_add_test(limit, once_a_second_works_at_time_zero);
	tcase_add_test(limit, of_threads_that_warn_together_one_does);
	suite_add_tcase(suite, limit);
	return unit_main(suite);
}
