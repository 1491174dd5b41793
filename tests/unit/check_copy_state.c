/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_state.c - copy stateids, what is said of a copy while it runs and after, its callback.
 *
 * Races are in check_copy_state_race.c.
 */
#include <pthread.h>
#include <semaphore.h>

#include "copy_state_unit.h"

enum { CLIENT = 7, OTHER_CLIENT = 8, MAX = 8, MAX_PER_CLIENT = 5, KEPT_MAX = 4, EPOCH = 0x1234567 };

static struct ssc_timers *timers;
static struct ssc_copy_table *table;
static struct copy a, b;
static struct ssc_offload_status_res res;
static sem_t settled;

static void setup(void)
{
	struct ssc_copy_table_config cfg = {
		.max = MAX,
		.max_per_client = MAX_PER_CLIENT,
		.kept_max = KEPT_MAX,
		.keep_ns = KEEP_NS,
		.retry_ns = RETRY_NS,
		.instance = EPOCH,
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

static struct ssc_copy_table_stats stats(void)
{
	struct ssc_copy_table_stats now;

	ssc_copy_table_stats(table, &now);
	return now;
}

/* ---- stateids ---- */

START_TEST(rfc7862_4_8_the_seqid_is_one)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert_uint_eq(a.stateid.seqid, 1);
	copy_end(&a, SSC_NFS4_OK, 5);
	ck_assert_uint_eq(a.told_stateid.seqid, 1);
	ck_assert_mem_eq(a.told_stateid.other, a.stateid.other, SSC_STATEID_OTHER_BYTES);
}
END_TEST

START_TEST(rfc7862_4_8_another_seqid_is_invalid)
{
	static const uint32_t seqids[] = {0, 2, UINT32_MAX};

	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.stateid.seqid = seqids[_i];
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid),
			  SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(atomic_load(&a.n_cancelled), 0);
	copy_end(&a, SSC_NFS4_OK, 5);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
}
END_TEST

START_TEST(another_clients_stateid_is_bad)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert_uint_eq(copy_status(&a, table, OTHER_CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(ssc_copy_table_cancel(table, OTHER_CLIENT, &a.stateid),
			  SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(atomic_load(&a.n_cancelled), 0);
	copy_end(&a, SSC_NFS4_OK, 5);
	ck_assert_uint_eq(copy_status(&a, table, OTHER_CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(ssc_copy_table_cancel(table, OTHER_CLIENT, &a.stateid),
			  SSC_NFS4ERR_BAD_STATEID);
}
END_TEST

START_TEST(an_unknown_stateid_is_bad)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	b = a;
	for (int i = 0; i < SSC_STATEID_OTHER_BYTES; i++) {
		b.stateid = a.stateid;
		b.stateid.other[i] ^= 1;
		ck_assert_uint_eq(copy_status(&b, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	}
	copy_end(&a, SSC_NFS4_OK, 5);
}
END_TEST

START_TEST(stateids_are_distinct_and_none_of_the_hosts)
{
	enum { N = 400 };
	static struct copy copies[N];
	uint32_t middle;

	for (int i = 0; i < N; i++) {
		const uint8_t *other = copies[i].stateid.other;

		ck_assert(copy_start(&copies[i], table, CLIENT, 1, 2));
		copy_end(&copies[i], SSC_NFS4_OK, 1);
		memcpy(&middle, other + 4, sizeof(middle));
		ck_assert_uint_ne(middle, EPOCH);
		for (int j = 0; j < i; j++)
			ck_assert_int_ne(memcmp(other, copies[j].stateid.other,
						SSC_STATEID_OTHER_BYTES),
					 0);
	}
}
END_TEST

/* ---- OFFLOAD_STATUS ---- */

START_TEST(rfc7862_15_9_a_running_copy_says_how_far)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(res.count, 0);
	ck_assert(!res.is_complete);
	a.progress = 300;
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(res.count, 300);
	ck_assert(!res.is_complete);
	a.progress = 200;
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(res.count, 300); /* never less */
	copy_end(&a, SSC_NFS4_OK, 300);
}
END_TEST

START_TEST(rfc7862_15_9_an_ended_copy_says_how_it_ended)
{
	static const uint32_t statuses[] = {SSC_NFS4_OK, SSC_NFS4ERR_IO};

	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.answer = _i == 0 ? ANSWER_OK : ANSWER_LATER; /* also while the callback is on its way */
	copy_end(&a, statuses[_i], 4711);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(res.count, 4711);
	ck_assert(res.is_complete);
	ck_assert_uint_eq(res.complete, statuses[_i]);
	if (_i == 1)
		copy_answer(&a, a.state, SSC_TOLD_OK);
}
END_TEST

START_TEST(an_ended_copy_is_known_for_its_time)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	copy_end(&a, SSC_NFS4_OK, 1);
	pass(KEEP_NS - SSC_NS_PER_S);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 0);
	pass(SSC_NS_PER_S);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid),
			  SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 1);
	ck_assert_uint_eq(stats().kept, 0);
}
END_TEST

START_TEST(a_running_copy_is_known_however_long)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	pass(100 * KEEP_NS);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	copy_end(&a, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
}
END_TEST

/* ---- OFFLOAD_CANCEL ---- */

START_TEST(rfc7862_15_8_cancelling_ends_it_without_a_callback)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid), SSC_NFS4_OK);
	ck_assert_uint_eq(atomic_load(&a.n_cancelled), 1);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid),
			  SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 0); /* it still runs */
	copy_end(&a, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 0);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 1);
	ck_assert_uint_eq(stats().cancelled, 1);
	ck_assert_uint_eq(stats().kept, 0);
}
END_TEST

START_TEST(rfc7862_15_8_cancelling_too_late_changes_nothing)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.answer = ANSWER_AGAIN;
	copy_end(&a, SSC_NFS4_OK, 9);
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid),
			  SSC_NFS4ERR_COMPLETE_ALREADY);
	ck_assert_uint_eq(atomic_load(&a.n_cancelled), 0);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(res.count, 9);
	a.answer = ANSWER_OK;
	pass(RETRY_NS);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 2); /* the callback is still owed */
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid),
			  SSC_NFS4ERR_COMPLETE_ALREADY);
}
END_TEST

/* ---- the callback ---- */

START_TEST(rfc7862_16_1_one_callback_says_the_outcome)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert_uint_eq(atomic_load(&a.n_sent), 0);
	copy_end(&a, SSC_NFS4ERR_IO, 77);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 1);
	ck_assert_uint_eq(a.told.status, SSC_NFS4ERR_IO);
	ck_assert_uint_eq(a.told.count, 77);
	ck_assert_uint_eq(a.told.committed, 2);
	ck_assert_mem_eq(a.told.verf, "verifie", SSC_VERIFIER_BYTES);
	for (int i = 0; i < 20; i++)
		pass(KEEP_NS / 10);
	ssc_copy_table_poke(table, CLIENT);
	pass(1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 1);
	ck_assert_uint_eq(stats().callbacks_sent, 1);
	ck_assert_uint_eq(stats().callbacks_again, 0);
}
END_TEST

START_TEST(it_is_sent_again_later_and_later)
{
	uint64_t wait_ns = RETRY_NS;

	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.answer = ANSWER_AGAIN;
	copy_end(&a, SSC_NFS4_OK, 1);
	for (unsigned int n = 1; n <= 6; n++, wait_ns *= 2) {
		ck_assert_uint_eq(atomic_load(&a.n_sent), n);
		pass(wait_ns - SSC_NS_PER_MS);
		ck_assert_uint_eq(atomic_load(&a.n_sent), n);
		pass(SSC_NS_PER_MS);
	}
	a.answer = ANSWER_OK;
	pass(wait_ns);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 8);
	pass(wait_ns * 2);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 8);
	ck_assert_uint_eq(stats().callbacks_sent, 8);
	ck_assert_uint_eq(stats().callbacks_again, 7);
}
END_TEST

START_TEST(it_is_tried_to_the_end_of_its_time)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.answer = ANSWER_AGAIN;
	copy_end(&a, SSC_NFS4_OK, 1);
	for (int i = 0; i < 700; i++)
		pass(SSC_NS_PER_S);
	/* After 0, 1, 3, 7, 15, 31, 63, 127, 255 (then 150 apart), 405 and 555 s. */
	ck_assert_uint_eq(atomic_load(&a.n_sent), 11);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 1);
}
END_TEST

START_TEST(no_second_one_while_one_is_on_its_way)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.answer = ANSWER_LATER;
	copy_end(&a, SSC_NFS4_OK, 1);
	pass(KEEP_NS / 2);
	ssc_copy_table_poke(table, CLIENT);
	pass(1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 1);
	a.answer = ANSWER_OK;
	copy_answer(&a, a.state, SSC_TOLD_AGAIN); /* poked meanwhile: now */
	pass(1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 2);
}
END_TEST

START_TEST(a_poke_sends_what_is_owed_to_that_client)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert(copy_start(&b, table, OTHER_CLIENT, 1, 2));
	a.answer = b.answer = ANSWER_AGAIN;
	copy_end(&a, SSC_NFS4_OK, 1);
	copy_end(&b, SSC_NFS4_OK, 1);
	pass(RETRY_NS * 40);
	a.n_sent = b.n_sent = 0;
	a.answer = b.answer = ANSWER_OK;
	ssc_copy_table_poke(table, CLIENT);
	pass(1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 1);
	ck_assert_uint_eq(atomic_load(&b.n_sent), 0);
}
END_TEST

START_TEST(a_callback_that_outlives_its_state)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	a.answer = ANSWER_LATER;
	copy_end(&a, SSC_NFS4_OK, 1);
	pass(KEEP_NS);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 0);
	copy_answer(&a, a.state, _i == 0 ? SSC_TOLD_OK : SSC_TOLD_AGAIN);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 1);
	pass(KEEP_NS);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 1);
}
END_TEST

/* ---- limits ---- */

START_TEST(limits_count_what_runs)
{
	static struct copy copies[MAX + 2];
	static struct copy over;

	for (int i = 0; i < MAX_PER_CLIENT; i++)
		ck_assert(copy_start(&copies[i], table, CLIENT, 1, 2));
	ck_assert(!copy_start(&over, table, CLIENT, 1, 2));
	for (int i = MAX_PER_CLIENT; i < MAX; i++)
		ck_assert(copy_start(&copies[i], table, OTHER_CLIENT, 1, 2));
	ck_assert(!copy_start(&over, table, OTHER_CLIENT, 1, 2));
	ck_assert(!copy_start(&over, table, 9, 1, 2));
	ck_assert_uint_eq(stats().refused, 3);
	ck_assert_uint_eq(stats().running, MAX);
	copy_end(&copies[0], SSC_NFS4_OK, 1);
	ck_assert(copy_start(&copies[MAX], table, 9, 1, 2));
	copy_end(&copies[MAX], SSC_NFS4_OK, 1);
	/* A cancelled one counts until it has ended, or cancelling would be a way round the limit. */
	ck_assert(copy_start(&copies[MAX + 1], table, CLIENT, 1, 2));
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &copies[1].stateid), SSC_NFS4_OK);
	ck_assert(!copy_start(&over, table, CLIENT, 1, 2));
	for (int i = 1; i < MAX; i++)
		copy_end(&copies[i], SSC_NFS4_OK, 1);
	copy_end(&copies[MAX + 1], SSC_NFS4_OK, 1);
	ck_assert_uint_eq(stats().running, 0);
}
END_TEST

START_TEST(those_kept_are_bounded_and_the_owed_stay_longest)
{
	static struct copy copies[KEPT_MAX + 3];

	for (int i = 0; i < KEPT_MAX; i++) {
		ck_assert(copy_start(&copies[i], table, i == 1 ? OTHER_CLIENT : CLIENT, 1, 2));
		copies[i].answer = i == 0 ? ANSWER_AGAIN : ANSWER_OK;
		copy_end(&copies[i], SSC_NFS4_OK, 1);
	}
	/* 0 is owed its callback; 1 is the oldest that was told, but another client's; so 2 and 3 go. */
	for (int i = KEPT_MAX; i < KEPT_MAX + 2; i++) {
		ck_assert(copy_start(&copies[i], table, CLIENT, 1, 2));
		copies[i].answer = ANSWER_AGAIN;
		copy_end(&copies[i], SSC_NFS4_OK, 1);
		ck_assert_uint_eq(stats().kept, KEPT_MAX);
		ck_assert_uint_eq(atomic_load(&copies[i - KEPT_MAX + 2].n_freed), 1);
	}
	ck_assert_uint_eq(atomic_load(&copies[0].n_freed), 0);
	ck_assert_uint_eq(atomic_load(&copies[1].n_freed), 0);
	ck_assert(copy_start(&copies[6], table, CLIENT, 1, 2));
	copy_end(&copies[6], SSC_NFS4_OK, 1);
	ck_assert_uint_eq(atomic_load(&copies[1].n_freed), 1); /* told, though another's */
	ck_assert_uint_eq(atomic_load(&copies[6].n_sent), 1);
}
END_TEST

/* ---- what goes ---- */

START_TEST(a_client_that_goes_takes_its_states_with_it)
{
	static struct copy ended, other;

	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert(copy_start(&b, table, CLIENT, 1, 2));
	ck_assert(copy_start(&ended, table, CLIENT, 1, 2));
	ck_assert(copy_start(&other, table, OTHER_CLIENT, 1, 2));
	ended.answer = ANSWER_AGAIN;
	copy_end(&ended, SSC_NFS4_OK, 1);
	ssc_copy_table_client_gone(table, CLIENT);
	ck_assert_uint_eq(atomic_load(&a.n_cancelled), 1);
	ck_assert_uint_eq(atomic_load(&b.n_cancelled), 1);
	ck_assert_uint_eq(atomic_load(&other.n_cancelled), 0);
	ck_assert_uint_eq(atomic_load(&ended.n_freed), 1);
	ck_assert_uint_eq(copy_status(&a, table, CLIENT, &res), SSC_NFS4ERR_BAD_STATEID);
	ck_assert_uint_eq(copy_status(&other, table, OTHER_CLIENT, &res), SSC_NFS4_OK);
	copy_end(&a, SSC_NFS4_OK, 1);
	copy_end(&b, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(atomic_load(&a.n_sent) + atomic_load(&b.n_sent), 0);
	pass(KEEP_NS);
	ck_assert_uint_eq(atomic_load(&ended.n_sent), 1);
	copy_end(&other, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(atomic_load(&other.n_sent), 1);
}
END_TEST

START_TEST(clients_with_states_are_found_in_turn)
{
	static struct copy c;
	uint64_t client = 0;

	ck_assert(!ssc_copy_table_next_client(table, &client));
	ck_assert(copy_start(&a, table, UINT64_MAX, 1, 2));
	ck_assert(copy_start(&b, table, 5, 1, 2));
	ck_assert(copy_start(&c, table, 5, 1, 2));
	copy_end(&b, SSC_NFS4_OK, 1);
	ck_assert(ssc_copy_table_next_client(table, &client));
	ck_assert_uint_eq(client, 5);
	ck_assert(ssc_copy_table_next_client(table, &client));
	ck_assert_uint_eq(client, UINT64_MAX);
	ck_assert(!ssc_copy_table_next_client(table, &client));
	copy_end(&a, SSC_NFS4_OK, 1);
	copy_end(&c, SSC_NFS4_OK, 1);
}
END_TEST

struct ender {
	pthread_t thread;
	uint64_t until_ns;
	bool is_stop, result;
};

static void *end_export(void *arg)
{
	struct ender *ender = arg;

	ender->result = ender->is_stop ? ssc_copy_table_stop(table, ender->until_ns)
				       : ssc_copy_table_end_export(table, 2, ender->until_ns);
	return NULL;
}

static void ender_start(struct ender *ender)
{
	pthread_create(&ender->thread, NULL, end_export, ender);
	while (atomic_load(&a.n_cancelled) == 0 || atomic_load(&b.n_cancelled) == 0)
		sched_yield();
}

START_TEST(an_export_that_goes_revokes_its_copies_and_waits)
{
	struct ender ender = {.until_ns = START_NS + SSC_NS_PER_S};
	static struct copy other, later;

	ck_assert(copy_start(&a, table, CLIENT, 2, 3)); /* from it */
	ck_assert(copy_start(&b, table, CLIENT, 3, 2)); /* to it */
	ck_assert(copy_start(&other, table, CLIENT, 3, 3));
	ender_start(&ender);
	ck_assert_uint_eq(atomic_load(&other.n_cancelled), 0);
	copy_end(&a, SSC_NFS4_OK, 50);
	copy_end(&b, SSC_NFS4_OK, 60);
	pthread_join(ender.thread, NULL);
	ck_assert(ender.result);
	ck_assert_uint_eq(a.told.status, SSC_NFS4ERR_ADMIN_REVOKED);
	ck_assert_uint_eq(a.told.count, 50);
	ck_assert_uint_eq(b.told.status, SSC_NFS4ERR_ADMIN_REVOKED);
	ck_assert_uint_eq(copy_status(&b, table, CLIENT, &res), SSC_NFS4_OK);
	ck_assert_uint_eq(res.complete, SSC_NFS4ERR_ADMIN_REVOKED);
	copy_end(&other, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(other.told.status, SSC_NFS4_OK);
	ck_assert(copy_start(&later, table, CLIENT, 2, 2));
	copy_end(&later, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(later.told.status, SSC_NFS4_OK);
}
END_TEST

START_TEST(an_export_without_copies_goes_at_once)
{
	ck_assert(copy_start(&a, table, CLIENT, 3, 3));
	ck_assert(ssc_copy_table_end_export(table, 2, 0));
	copy_end(&a, SSC_NFS4_OK, 1);
}
END_TEST

START_TEST(waiting_for_copies_has_an_end)
{
	struct ender ender = {.until_ns = START_NS + SSC_NS_PER_S, .is_stop = _i == 1};

	ck_assert(copy_start(&a, table, CLIENT, 2, 3));
	ck_assert(copy_start(&b, table, CLIENT, 2, 3));
	/* One that its client has cancelled is waited for as well: it still uses the export. */
	ck_assert_uint_eq(ssc_copy_table_cancel(table, CLIENT, &a.stateid), SSC_NFS4_OK);
	ender_start(&ender);
	copy_end(&b, SSC_NFS4_OK, 1);
	fake_clock_advance(SSC_NS_PER_S);
	pthread_join(ender.thread, NULL);
	ck_assert(!ender.result);
	copy_end(&a, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 0);
	ck_assert(ssc_copy_table_end_export(table, 2, 0));
}
END_TEST

START_TEST(when_stopped_nothing_new_starts)
{
	struct ender ender = {.until_ns = UINT64_MAX, .is_stop = true};
	static struct copy over;

	ck_assert(copy_start(&a, table, CLIENT, 2, 3));
	ck_assert(copy_start(&b, table, OTHER_CLIENT, 4, 5));
	ender_start(&ender);
	ck_assert(!copy_start(&over, table, CLIENT, 1, 1));
	copy_end(&a, SSC_NFS4_OK, 1);
	copy_end(&b, SSC_NFS4_OK, 1);
	pthread_join(ender.thread, NULL);
	ck_assert(ender.result);
	ck_assert_uint_eq(atomic_load(&b.n_sent), 1);
	ck_assert_uint_eq(b.told.status, SSC_NFS4ERR_ADMIN_REVOKED);
}
END_TEST

START_TEST(copies_and_callbacks_may_outlive_the_table)
{
	ck_assert(copy_start(&a, table, CLIENT, 1, 2));
	ck_assert(copy_start(&b, table, CLIENT, 1, 2));
	b.answer = ANSWER_LATER;
	copy_end(&b, SSC_NFS4_OK, 1);
	ssc_copy_table_free(table);
	copy_answer(&b, b.state, SSC_TOLD_AGAIN);
	ck_assert_uint_eq(atomic_load(&b.n_freed), 1);
	copy_end(&a, SSC_NFS4_OK, 1);
	ck_assert_uint_eq(atomic_load(&a.n_sent), 0);
	ck_assert_uint_eq(atomic_load(&a.n_freed), 1);
	table = NULL;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_state");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, rfc7862_4_8_the_seqid_is_one);
	tcase_add_loop_test(tc, rfc7862_4_8_another_seqid_is_invalid, 0, 3);
	tcase_add_test(tc, another_clients_stateid_is_bad);
	tcase_add_test(tc, an_unknown_stateid_is_bad);
	tcase_add_test(tc, stateids_are_distinct_and_none_of_the_hosts);
	tcase_add_test(tc, rfc7862_15_9_a_running_copy_says_how_far);
	tcase_add_loop_test(tc, rfc7862_15_9_an_ended_copy_says_how_it_ended, 0, 2);
	tcase_add_test(tc, an_ended_copy_is_known_for_its_time);
	tcase_add_test(tc, a_running_copy_is_known_however_long);
	tcase_add_test(tc, rfc7862_15_8_cancelling_ends_it_without_a_callback);
	tcase_add_test(tc, rfc7862_15_8_cancelling_too_late_changes_nothing);
	tcase_add_test(tc, rfc7862_16_1_one_callback_says_the_outcome);
	tcase_add_test(tc, it_is_sent_again_later_and_later);
	tcase_add_test(tc, it_is_tried_to_the_end_of_its_time);
	tcase_add_test(tc, no_second_one_while_one_is_on_its_way);
	tcase_add_test(tc, a_poke_sends_what_is_owed_to_that_client);
	tcase_add_loop_test(tc, a_callback_that_outlives_its_state, 0, 2);
	tcase_add_test(tc, limits_count_what_runs);
	tcase_add_test(tc, those_kept_are_bounded_and_the_owed_stay_longest);
	tcase_add_test(tc, a_client_that_goes_takes_its_states_with_it);
	tcase_add_test(tc, clients_with_states_are_found_in_turn);
	tcase_add_test(tc, an_export_that_goes_revokes_its_copies_and_waits);
	tcase_add_test(tc, an_export_without_copies_goes_at_once);
	tcase_add_loop_test(tc, waiting_for_copies_has_an_end, 0, 2);
	tcase_add_test(tc, when_stopped_nothing_new_starts);
	tcase_add_test(tc, copies_and_callbacks_may_outlive_the_table);
	suite_add_tcase(suite, tc);
	return unit_main(suite);
}
