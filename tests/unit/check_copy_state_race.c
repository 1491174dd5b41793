/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_state_race.c - copies that end, are cancelled, asked for and called back at the same time.
 *
 * Meant for the thread sanitizer; what is checked holds without it as well. Each race is a loop of
 * rounds with two threads that start together, or a storm in which every thread does everything.
 */
#include <pthread.h>

#include "copy_state_unit.h"

enum {
	CLIENT = 7,
	EXPORT = 2,
	MAX = 64,
	MAX_PER_CLIENT = 40,
	KEPT_MAX = 100,
	ROUNDS = 400,
	STORM_THREADS = 4,
	STORM_STEPS = 4000,
	STORM_COPIES = 1500, /* that a thread starts at most */
	STORM_CLIENTS = 3
};

static struct ssc_timers *timers;
static struct ssc_copy_table *table;
static struct copy copies[ROUNDS];
static pthread_barrier_t barrier;
static struct copy *the_copy;
static uint32_t cancelled, spins;
static struct ssc_offload_status_res seen[2];

static void setup(void)
{
	struct ssc_copy_table_config cfg = {
		.max = MAX,
		.max_per_client = MAX_PER_CLIENT,
		.kept_max = KEPT_MAX,
		.keep_ns = KEEP_NS,
		.retry_ns = RETRY_NS,
		.instance = 1,
	};

	fake_clock_start(START_NS);
	timers = cfg.timers = ssc_timers_new();
	table = ssc_copy_table_new(&cfg);
	pthread_barrier_init(&barrier, NULL, 2);
}

static void teardown(void)
{
	ssc_copy_table_free(table);
	ssc_timers_free(timers);
	pthread_barrier_destroy(&barrier);
	fake_clock_stop();
}

static void spin(uint32_t n)
{
	while (n-- > 0)
		sched_yield();
}

static void *end_it(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	spin(spins % 4);
	copy_end(the_copy, SSC_NFS4_OK, 100);
	return NULL;
}

/* One round: the copy ends on a thread of its own, while @other runs here. */
static void race(struct copy *copy, uint64_t *seed, void (*other)(void))
{
	pthread_t thread;

	the_copy = copy;
	spins = (uint32_t)unit_random(seed);
	pthread_create(&thread, NULL, end_it, NULL);
	pthread_barrier_wait(&barrier);
	spin(spins / 4 % 4);
	other();
	pthread_join(thread, NULL);
}

static void cancel_it(void)
{
	cancelled = ssc_copy_table_cancel(table, CLIENT, &the_copy->stateid);
}

START_TEST(cancel_against_end)
{
	uint64_t seed = unit_seed("cancel_against_end");

	for (int i = 0; i < ROUNDS; i++) {
		ck_assert(copy_start(&copies[i], table, CLIENT, 1, EXPORT));
		race(&copies[i], &seed, cancel_it);
		if (cancelled == SSC_NFS4_OK) {
			ck_assert_uint_eq(atomic_load(&copies[i].n_sent), 0);
			ck_assert_uint_eq(atomic_load(&copies[i].n_cancelled), 1);
			ck_assert_uint_eq(atomic_load(&copies[i].n_freed), 1);
		} else {
			ck_assert_uint_eq(cancelled, SSC_NFS4ERR_COMPLETE_ALREADY);
			ck_assert_uint_eq(atomic_load(&copies[i].n_sent), 1);
			ck_assert_uint_eq(atomic_load(&copies[i].n_cancelled), 0);
		}
	}
}
END_TEST

static void ask_twice(void)
{
	for (int i = 0; i < 2; i++) {
		atomic_store(&the_copy->progress, 40 * (i + 1));
		ck_assert_uint_eq(copy_status(the_copy, table, CLIENT, &seen[i]), SSC_NFS4_OK);
	}
}

START_TEST(status_against_end)
{
	uint64_t seed = unit_seed("status_against_end");

	for (int i = 0; i < ROUNDS; i++) {
		ck_assert(copy_start(&copies[i], table, CLIENT, 1, EXPORT));
		race(&copies[i], &seed, ask_twice);
		ck_assert_uint_le(seen[0].count, seen[1].count);
		ck_assert(!seen[0].is_complete || seen[1].is_complete);
		for (int j = 0; j < 2; j++)
			ck_assert_uint_eq(seen[j].count, seen[j].is_complete ? 100 : 40 * (j + 1));
	}
}
END_TEST

static bool have_ended;

static void end_export(void)
{
	have_ended = ssc_copy_table_end_export(table, EXPORT, UINT64_MAX);
}

START_TEST(export_going_against_end)
{
	uint64_t seed = unit_seed("export_going_against_end");

	for (int i = 0; i < ROUNDS; i++) {
		ck_assert(copy_start(&copies[i], table, CLIENT, 1, EXPORT));
		race(&copies[i], &seed, end_export);
		ck_assert(have_ended);
		ck_assert_uint_eq(atomic_load(&copies[i].n_sent), 1);
		ck_assert_uint_eq(copies[i].told.status, atomic_load(&copies[i].n_cancelled) == 1
								 ? SSC_NFS4ERR_ADMIN_REVOKED
								 : SSC_NFS4_OK);
	}
}
END_TEST

static void client_gone(void)
{
	ssc_copy_table_client_gone(table, CLIENT);
}

START_TEST(client_going_against_end)
{
	uint64_t seed = unit_seed("client_going_against_end");

	for (int i = 0; i < ROUNDS; i++) {
		ck_assert(copy_start(&copies[i], table, CLIENT, 1, EXPORT));
		race(&copies[i], &seed, client_gone);
		ck_assert_uint_le(atomic_load(&copies[i].n_sent), 1);
		ck_assert_uint_eq(atomic_load(&copies[i].n_freed), 1);
	}
}
END_TEST

static void *answer_it(void *arg)
{
	pthread_barrier_wait(&barrier);
	spin(spins % 4);
	copy_answer(the_copy, the_copy->state, *(enum ssc_copy_told *)arg);
	return NULL;
}

START_TEST(client_going_against_an_answer)
{
	uint64_t seed = unit_seed("client_going_against_an_answer");

	for (int i = 0; i < ROUNDS; i++) {
		enum ssc_copy_told told = (enum ssc_copy_told)(i % 3);
		pthread_t thread;

		the_copy = &copies[i];
		ck_assert(copy_start(the_copy, table, CLIENT, 1, EXPORT));
		atomic_store(&the_copy->answer, ANSWER_LATER);
		copy_end(the_copy, SSC_NFS4_OK, 1);
		spins = (uint32_t)unit_random(&seed);
		pthread_create(&thread, NULL, answer_it, &told);
		pthread_barrier_wait(&barrier);
		spin(spins / 4 % 4);
		ssc_copy_table_client_gone(table, CLIENT);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(atomic_load(&the_copy->n_sent), 1);
		ck_assert_uint_eq(atomic_load(&the_copy->n_freed), 1);
	}
}
END_TEST

/* ---- the storm ---- */

struct thread {
	pthread_t thread;
	uint64_t seed;
	unsigned int n_started, n_running;
	struct copy *running[MAX];
	struct copy copies[STORM_COPIES];
};

/* What one thread has started and others ask for. */
static struct {
	pthread_mutex_t lock;
	/* guarded by lock */
	uint64_t client[256];
	struct ssc_stateid stateid[256];
	unsigned int n;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct thread threads[STORM_THREADS];
static atomic_uint n_running, n_running_of[STORM_CLIENTS], n_over;
static bool is_overload;

static void start_one(struct thread *t)
{
	struct copy *copy = &t->copies[t->n_started];
	uint64_t client = unit_random(&t->seed) % STORM_CLIENTS;

	if (t->n_started == STORM_COPIES ||
	    !copy_start(copy, table, client + 1, (uint32_t)(unit_random(&t->seed) % 3),
			(uint32_t)(unit_random(&t->seed) % 3)))
		return;
	/* Counted after it was let in and before it ends: never more than the table has counted. */
	if (atomic_fetch_add(&n_running, 1) >= MAX ||
	    atomic_fetch_add(&n_running_of[client], 1) >= MAX_PER_CLIENT)
		atomic_fetch_add(&n_over, 1);
	atomic_store(&copy->answer, is_overload ? ANSWER_OK : unit_random(&t->seed) % 2);
	copy->progress = client; /* found again when it ends */
	t->n_started++;
	t->running[t->n_running++] = copy;
	pthread_mutex_lock(&known.lock);
	known.client[known.n % 256] = client + 1;
	known.stateid[known.n++ % 256] = copy->stateid;
	pthread_mutex_unlock(&known.lock);
}

static void end_one(struct thread *t)
{
	struct copy *copy;

	if (t->n_running == 0)
		return;
	copy = t->running[--t->n_running];
	atomic_fetch_sub(&n_running_of[copy->progress], 1);
	atomic_fetch_sub(&n_running, 1);
	copy_end(copy, SSC_NFS4_OK, 1000);
}

static void ask_for_one(struct thread *t)
{
	struct ssc_offload_status_res res;
	struct ssc_stateid stateid;
	uint64_t client;

	pthread_mutex_lock(&known.lock);
	if (known.n < 256) {
		pthread_mutex_unlock(&known.lock);
		return;
	}
	client = known.client[unit_random(&t->seed) % 256];
	stateid = known.stateid[unit_random(&t->seed) % 256];
	pthread_mutex_unlock(&known.lock);
	if (unit_random(&t->seed) % 2 == 0)
		ssc_copy_table_status(table, client, &stateid, &res);
	else
		ssc_copy_table_cancel(table, client, &stateid);
}

static void disturb(struct thread *t)
{
	struct ssc_copy_table_stats stats;
	uint64_t client = unit_random(&t->seed) % STORM_CLIENTS;

	switch (unit_random(&t->seed) % 5) {
	case 0:
		ssc_copy_table_poke(table, client + 1);
		break;
	case 1:
		ssc_copy_table_client_gone(table, client + 1);
		break;
	case 2:
		(void)ssc_copy_table_end_export(table, EXPORT, 0);
		break;
	case 3:
		fake_clock_advance(unit_random(&t->seed) % (KEEP_NS / 4));
		break;
	case 4:
		ssc_copy_table_stats(table, &stats);
		while (ssc_copy_table_next_client(table, &client))
			continue;
		break;
	}
}

static void *storm(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < STORM_STEPS; i++) {
		uint64_t what = unit_random(&t->seed) % 100;

		if (what < 45)
			start_one(t);
		else if (what < (is_overload ? 60 : 80))
			end_one(t);
		else if (what < 95)
			ask_for_one(t);
		else
			disturb(t);
	}
	while (t->n_running > 0)
		end_one(t);
	return NULL;
}

/* 0: everything. 1: far more copies than are allowed. */
START_TEST(everything_at_once)
{
	uint64_t seed = unit_seed("everything_at_once");
	struct ssc_copy_table_stats stats;
	unsigned int n_started = 0, n_freed = 0;

	is_overload = _i == 1;
	memset(threads, 0, sizeof(threads));
	known.n = 0;
	for (int i = 0; i < STORM_THREADS; i++) {
		threads[i].seed = unit_random(&seed);
		pthread_create(&threads[i].thread, NULL, storm, &threads[i]);
	}
	for (int i = 0; i < STORM_THREADS; i++) {
		pthread_join(threads[i].thread, NULL);
		n_started += threads[i].n_started;
	}
	ck_assert_uint_eq(atomic_load(&n_over), 0);
	ssc_copy_table_stats(table, &stats);
	ck_assert_uint_eq(stats.running, 0);
	ck_assert_uint_le(stats.kept, KEPT_MAX);
	ck_assert_uint_eq(stats.started, n_started);
	if (is_overload)
		ck_assert_uint_ge(stats.refused, 1000);
	ck_assert(ssc_copy_table_stop(table, 0));
	ssc_copy_table_free(table);
	table = NULL;
	for (int i = 0; i < STORM_THREADS; i++)
		for (unsigned int j = 0; j < threads[i].n_started; j++)
			n_freed += atomic_load(&threads[i].copies[j].n_freed);
	ck_assert_uint_eq(n_freed, n_started);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_state_race");
	TCase *tc = tcase_create("races");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 50);
	tcase_add_test(tc, cancel_against_end);
	tcase_add_test(tc, status_against_end);
	tcase_add_test(tc, export_going_against_end);
	tcase_add_test(tc, client_going_against_end);
	tcase_add_test(tc, client_going_against_an_answer);
	tcase_add_loop_test(tc, everything_at_once, 0, 2);
	suite_add_tcase(suite, tc);
	return unit_main(suite);
}
