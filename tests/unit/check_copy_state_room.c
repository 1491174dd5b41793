/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_state_room.c - many copies that end at once, and a client that takes few callbacks at a time.
 */
#include <pthread.h>
#include <semaphore.h>

#include "copy_state_unit.h"

enum { CLIENT = 7, OTHER_CLIENT = 8, N = 6 };

static struct ssc_timers *timers;
static struct ssc_copy_table *table;
static struct copy copies[N];
static sem_t settled;

static void setup(void)
{
	struct ssc_copy_table_config cfg = {
		.max = N,
		.max_per_client = N,
		.kept_max = N,
		.keep_ns = KEEP_NS,
		.retry_ns = RETRY_NS,
		.instance = 1,
	};

	fake_clock_start(START_NS);
	sem_init(&settled, 0, 0);
	timers = cfg.timers = ssc_timers_new();
	table = ssc_copy_table_new(&cfg);
}

static void teardown(void)
{
	ssc_copy_table_free(table);
	ssc_timers_free(timers);
	fake_clock_stop();
}

static void post(struct ssc_timer *timer)
{
	(void)timer;
	sem_post(&settled);
}

/* Pass @ns; what was due then has run when this returns. */
static void pass(uint64_t ns)
{
	struct ssc_timer last;

	ssc_timer_init(&last, timers, post);
	fake_clock_advance(ns + 1);
	ssc_timer_arm(&last, ssc_clock_now_ns());
	sem_wait(&settled);
	ssc_timer_disarm(&last);
}

/* The first one's callback is on its way, those of the others find no room. */
static void end_all(uint64_t client)
{
	int i;

	for (i = 0; i < N; i++)
		ck_assert(copy_start(&copies[i], table, i == 0 ? CLIENT : client, 1, 2));
	for (i = 0; i < N; i++) {
		copies[i].answer = i == 0 ? ANSWER_LATER : ANSWER_NO_ROOM;
		copy_end(&copies[i], SSC_NFS4_OK, 1);
	}
}

static unsigned int n_sent(int i)
{
	return atomic_load(&copies[i].n_sent);
}

/* Each that is over makes room for the next one, without any time passing. */
START_TEST(one_after_the_other)
{
	int i;

	end_all(CLIENT);
	for (i = 0; i < N; i++)
		copies[i].answer = ANSWER_LATER;
	for (i = 0; i < N - 1; i++) {
		ck_assert_uint_eq(n_sent(i + 1), 1);
		copy_answer(&copies[i], copies[i].state, SSC_TOLD_OK);
		pass(0);
		ck_assert_uint_eq(n_sent(i + 1), 2);
		if (i + 2 < N)
			ck_assert_uint_eq(n_sent(i + 2), 1);
	}
	copy_answer(&copies[N - 1], copies[N - 1].state, SSC_TOLD_OK);
	pass(KEEP_NS / 2);
	for (i = 0; i < N; i++)
		ck_assert_uint_eq(n_sent(i), i == 0 ? 1 : 2);
}
END_TEST

START_TEST(one_that_is_to_be_sent_again_makes_room_too)
{
	end_all(CLIENT);
	copies[1].answer = ANSWER_LATER;
	copy_answer(&copies[0], copies[0].state, SSC_TOLD_AGAIN);
	pass(0);
	ck_assert_uint_eq(n_sent(1), 2);
	ck_assert_uint_eq(n_sent(2), 1);
	copy_answer(&copies[1], copies[1].state, SSC_TOLD_OK);
}
END_TEST

START_TEST(room_at_one_client_is_none_at_another)
{
	int i;

	end_all(OTHER_CLIENT);
	copy_answer(&copies[0], copies[0].state, SSC_TOLD_OK);
	pass(0);
	for (i = 1; i < N; i++)
		ck_assert_uint_eq(n_sent(i), 1);
}
END_TEST

/* The room may be taken by callbacks that nobody tells us the end of. */
START_TEST(without_a_word_it_is_tried_soon_and_then_later_and_later)
{
	unsigned int soon, n;

	ck_assert(copy_start(&copies[0], table, CLIENT, 1, 2));
	copies[0].answer = ANSWER_NO_ROOM;
	copy_end(&copies[0], SSC_NFS4_OK, 1);
	ck_assert_uint_eq(n_sent(0), 1);
	pass(10 * SSC_NS_PER_MS);
	ck_assert_uint_eq(n_sent(0), 2);
	for (soon = 0; soon < 200; soon++)
		pass(10 * SSC_NS_PER_MS);
	n = n_sent(0);
	ck_assert_uint_ge(n, 6);
	ck_assert_uint_le(n, 12);
	for (soon = 0; soon < 100; soon++)
		pass(RETRY_NS / 10);
	ck_assert_uint_ge(n_sent(0), n + 3);
	ck_assert_uint_le(n_sent(0), n + 12);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_state_room");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_after_the_other);
	tcase_add_test(tc, one_that_is_to_be_sent_again_makes_room_too);
	tcase_add_test(tc, room_at_one_client_is_none_at_another);
	tcase_add_test(tc, without_a_word_it_is_tried_soon_and_then_later_and_later);
	suite_add_tcase(suite, tc);
	return unit_main(suite);
}
