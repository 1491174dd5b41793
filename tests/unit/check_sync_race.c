/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_sync_race.c - late outcomes, retries and aging that happen at the same time.
 *
 * Meant for the thread sanitizer; the counts hold without it as well. A call that was made by the
 * late one carries the handle "late", one that a retry sent itself "anew".
 */
#include "sync_unit.h"

#define KEEP_NS (120 * SSC_NS_PER_S)

enum { ROUNDS = 300, RETRIES = 3 };

struct racers {
	uint64_t random;
	unsigned int index; /* of the late call */
	bool ages;
	pthread_barrier_t barrier;
};

static void spin(uint64_t n)
{
	while (n-- > 0)
		sched_yield();
}

static void *release_late(void *arg)
{
	struct racers *r = arg;

	pthread_barrier_wait(&r->barrier);
	spin(r->random % 7);
	fake_upstream_release(fake, r->index);
	return NULL;
}

static void *age(void *arg)
{
	struct racers *r = arg;

	pthread_barrier_wait(&r->barrier);
	spin(r->random / 7 % 7);
	if (r->ages)
		fake_clock_advance(KEEP_NS);
	ssc_caller_n_late(caller);
	return NULL;
}

static void *retry(void *arg)
{
	struct runner *runner = arg;
	struct racers *r = (struct racers *)(uintptr_t)runner->who;

	runner->who = 1;
	pthread_barrier_wait(&r->barrier);
	return run_in_thread(runner);
}

static void push_made(enum ssc_op op, enum fake_how how, enum ssc_err err, const char *fh)
{
	struct fake_step step = {.op = op, .how = how, .err = err, .fh = {.len = 4}};

	memcpy(step.fh.data, fh, 4);
	fake_upstream_push(fake, &step);
}

struct outcome {
	unsigned int n_joined, n_anew, n_timed_out;
};

static void count(struct outcome *o, struct runner *runner)
{
	if (runner->err == SSC_E_TIMEDOUT) {
		o->n_timed_out++;
	} else {
		ck_assert_int_eq(runner->err, SSC_OK);
		if (memcmp(runner->call->res.object.fh.data, "late", 4) == 0)
			o->n_joined++;
		else
			o->n_anew++;
	}
	ssc_call_put(runner->call);
}

/* One late call, several retries at once, its outcome coming in the middle. */
static void race(struct racers *r, struct outcome *o)
{
	struct runner runners[RETRIES];
	pthread_t releaser, ager;
	int i;

	push_made(SSC_OP_MKDIR, FAKE_LATE, SSC_OK, "late");
	r->index = fake_upstream_n_calls(fake, SSC_OP_N);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	for (i = 0; i < RETRIES; i++)
		push_made(SSC_OP_MKDIR, FAKE_REPLY, SSC_OK, "anew");
	pthread_barrier_init(&r->barrier, NULL, RETRIES + 2);
	ck_assert_int_eq(pthread_create(&releaser, NULL, release_late, r), 0);
	ck_assert_int_eq(pthread_create(&ager, NULL, age, r), 0);
	for (i = 0; i < RETRIES; i++) {
		runners[i] =
			(struct runner){.who = (uintptr_t)r, .call = new_call(SSC_OP_MKDIR, "d")};
		ck_assert_int_eq(pthread_create(&runners[i].thread, NULL, retry, &runners[i]), 0);
	}
	pthread_join(releaser, NULL);
	pthread_join(ager, NULL);
	for (i = 0; i < RETRIES; i++) {
		pthread_join(runners[i].thread, NULL);
		count(o, &runners[i]);
	}
	pthread_barrier_destroy(&r->barrier);
	while (fake_upstream_n_left(fake) > 0) /* what was not needed */
		run(1, new_call(SSC_OP_MKDIR, "used up"));
}

START_TEST(one_retry_gets_the_outcome_whatever_comes_first)
{
	struct racers r = {.random = unit_seed("one_retry_gets_the_outcome")};
	int round;

	if (_i)
		fake_upstream_use_worker(fake);
	for (round = 0; round < ROUNDS; round++) {
		struct outcome o = {0};

		unit_random(&r.random);
		race(&r, &o);
		ck_assert_uint_eq(o.n_joined, 1);
		ck_assert_uint_eq(o.n_anew, RETRIES - 1);
		ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	}
}
END_TEST

START_TEST(aging_at_the_same_time_loses_nothing_else)
{
	struct racers r = {.random = unit_seed("aging_at_the_same_time"), .ages = true};
	int round;

	for (round = 0; round < ROUNDS; round++) {
		struct outcome o = {0};

		unit_random(&r.random);
		race(&r, &o);
		/* The clock moved past the limit of who waits, or past the life of the outcome. */
		ck_assert_uint_le(o.n_joined, 1);
		ck_assert_uint_eq(o.n_joined + o.n_anew + o.n_timed_out, RETRIES);
		fake_clock_advance(KEEP_NS);
		ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	}
}
END_TEST

enum { THREADS = 8, CALLS = 200 };

struct client {
	pthread_t thread;
	uint64_t random;
	unsigned int n_wrong;
};

/* Each call is answered at once, late at once, or as given up; names are shared between clients. */
static void *live(void *arg)
{
	struct client *c = arg;
	char name[8];
	int i;

	for (i = 0; i < CALLS; i++) {
		enum ssc_op op = unit_random(&c->random) % 2 ? SSC_OP_MKDIR : SSC_OP_RMDIR;
		enum ssc_err err;

		snprintf(name, sizeof(name), "%u", (unsigned int)(unit_random(&c->random) % 5));
		err = run(unit_random(&c->random) % 2, new_call(op, name));
		c->n_wrong += err != SSC_OK && err != SSC_E_TIMEDOUT && err != SSC_E_CONN;
		if (i % 50 == 0)
			fake_clock_advance(KEEP_NS / 2);
	}
	return NULL;
}

START_TEST(many_clients_on_few_names)
{
	uint64_t random = unit_seed("many_clients_on_few_names");
	struct client clients[THREADS];
	int i;

	fake_upstream_use_worker(fake);
	for (i = 0; i < THREADS * CALLS; i++) {
		uint64_t what = unit_random(&random) % 4;

		push_made(SSC_OP_N, what == 0 ? FAKE_LATE_AT_ONCE : FAKE_REPLY,
			  what == 1 ? SSC_E_CONN : SSC_OK, "anew");
	}
	for (i = 0; i < THREADS; i++) {
		clients[i] = (struct client){.random = random + i};
		ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, live, &clients[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(clients[i].thread, NULL);
		ck_assert_uint_eq(clients[i].n_wrong, 0);
	}
	while (fake_upstream_n_left(fake) > 0)
		run(99, new_call(SSC_OP_GETATTR, NULL));
	fake_clock_advance(KEEP_NS);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(stop_among_calls_of_many_threads)
{
	uint64_t random = unit_seed("stop_among_calls_of_many_threads");
	struct runner runners[THREADS];
	int round, i;

	/* The fake cannot be started again, so each round has its own. */
	for (round = 0; round < 40; round++) {
		for (i = 0; i < THREADS; i++)
			push_made(SSC_OP_MKDIR, unit_random(&random) % 2 ? FAKE_HOLD : FAKE_LATE,
				  SSC_OK, "late");
		for (i = 0; i < THREADS; i++)
			start(&runners[i], 1, new_call(SSC_OP_MKDIR, i % 2 ? "a" : "b"));
		fake_upstream_wait_calls(fake, 1);
		spin(unit_random(&random) % 9);
		fake_upstream_ops(fake)->ops->stop(fake_upstream_ops(fake));
		for (i = 0; i < THREADS; i++) {
			enum ssc_err err = join_runner(&runners[i]);

			ck_assert(err == SSC_E_SHUTDOWN || err == SSC_E_TIMEDOUT);
		}
		ssc_caller_free(caller);
		fake_upstream_free(fake);
		fake = fake_upstream_new();
		caller = ssc_caller_new(fake_upstream_ops(fake), LIMIT_NS);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync_race");
	TCase *races = add_case(suite, "races");

	tcase_set_timeout(races, 240);
	tcase_add_loop_test(races, one_retry_gets_the_outcome_whatever_comes_first, 0, 2);
	tcase_add_test(races, aging_at_the_same_time_loses_nothing_else);
	tcase_add_test(races, many_clients_on_few_names);
	tcase_add_test(races, stop_among_calls_of_many_threads);
	return unit_main(suite);
}
