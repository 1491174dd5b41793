/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_budget.c - the bound, its queue, and wakes that race with leaving.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "ssc/budget.h"
#include "unit.h"

enum { MAX = 100 };

struct waiter {
	struct ssc_budget_waiter w; /* first */
	unsigned int n_woken;
	unsigned int order; /* the how manieth wake of all */
};

static struct ssc_budget *b;
static struct waiter w1, w2, w3;
static unsigned int n_wakes;

static void wake(struct ssc_budget_waiter *w)
{
	struct waiter *waiter = (struct waiter *)w;

	waiter->n_woken++;
	waiter->order = ++n_wakes;
	ck_assert_uint_le(ssc_budget_used(b), MAX); /* hangs if the lock is held */
}

static void setup(void)
{
	b = ssc_budget_new(MAX);
	n_wakes = 0;
	w1 = w2 = w3 = (struct waiter){.w.wake = wake};
}

static void teardown(void)
{
	ssc_budget_leave(b, &w1.w);
	ssc_budget_leave(b, &w2.w);
	ssc_budget_leave(b, &w3.w);
	ssc_budget_give(b, ssc_budget_used(b));
	ssc_budget_free(b);
}

START_TEST(what_fits_is_taken_at_once)
{
	ck_assert(ssc_budget_take(b, 60, &w1.w));
	ck_assert(ssc_budget_take(b, 40, &w2.w));
	ck_assert_uint_eq(ssc_budget_used(b), 100);
	ssc_budget_give(b, 60);
	ck_assert_uint_eq(ssc_budget_used(b), 40);
	ck_assert_uint_eq(n_wakes, 0);
}
END_TEST

START_TEST(what_does_not_fit_waits_and_is_woken_once)
{
	ck_assert(ssc_budget_take(b, 60, &w1.w));
	ck_assert(!ssc_budget_take(b, 41, &w2.w));
	ck_assert_uint_eq(ssc_budget_used(b), 60);
	ssc_budget_give(b, 30);
	ck_assert_uint_eq(w2.n_woken, 1);
	ssc_budget_give(b, 30); /* more room is no more news */
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert(ssc_budget_take(b, 41, &w2.w));
	ck_assert_uint_eq(ssc_budget_used(b), 41);
}
END_TEST

START_TEST(giving_too_little_back_wakes_nobody)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 50, &w2.w));
	ssc_budget_give(b, 49);
	ck_assert_uint_eq(w2.n_woken, 0);
	ssc_budget_give(b, 1);
	ck_assert_uint_eq(w2.n_woken, 1);
}
END_TEST

START_TEST(waiters_are_woken_in_their_order)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 50, &w2.w));
	ck_assert(!ssc_budget_take(b, 50, &w3.w));
	ck_assert(!ssc_budget_take(b, 1, &w1.w));
	ssc_budget_give(b, 100);
	ck_assert_uint_eq(w2.order, 1);
	ck_assert_uint_eq(w3.order, 2);
	ck_assert_uint_eq(w1.n_woken, 0);         /* the two have all the room */
	ck_assert(ssc_budget_take(b, 50, &w3.w)); /* woken ones may come in any order */
	ck_assert(ssc_budget_take(b, 50, &w2.w));
	ssc_budget_give(b, 50);
	ck_assert_uint_eq(w1.n_woken, 1);
}
END_TEST

START_TEST(nobody_overtakes_a_large_request)
{
	ck_assert(ssc_budget_take(b, 60, &w1.w));
	ck_assert(!ssc_budget_take(b, 90, &w2.w));
	ck_assert(!ssc_budget_take(b, 1, &w3.w)); /* would fit, but the queue comes first */
	ssc_budget_give(b, 49);
	ck_assert_uint_eq(n_wakes, 0);
	ssc_budget_give(b, 1);
	ck_assert_uint_eq(w2.order, 1);
	ck_assert_uint_eq(w3.n_woken, 0);
	ck_assert(ssc_budget_take(b, 90, &w2.w));
	ssc_budget_give(b, 10);
	ck_assert_uint_eq(w3.n_woken, 1);
}
END_TEST

START_TEST(room_of_a_woken_waiter_is_not_stolen)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 80, &w2.w));
	ssc_budget_give(b, 100);
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert(ssc_budget_take(b, 20, &w3.w)); /* what is over is free for all */
	ck_assert(!ssc_budget_take(b, 1, &w1.w)); /* a newcomer, before the woken one is back */
	ck_assert(ssc_budget_take(b, 80, &w2.w));
	ck_assert_uint_eq(ssc_budget_used(b), 100);
}
END_TEST

START_TEST(a_waiter_that_fails_again_keeps_its_place)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 50, &w2.w));
	ck_assert(!ssc_budget_take(b, 50, &w3.w));
	ck_assert(!ssc_budget_take(b, 60, &w2.w)); /* wants more now */
	ssc_budget_give(b, 50);
	ck_assert_uint_eq(n_wakes, 0);
	ssc_budget_give(b, 10);
	ck_assert_uint_eq(w2.order, 1);
	ck_assert_uint_eq(w3.n_woken, 0);
}
END_TEST

START_TEST(who_wants_less_than_before_makes_room)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 80, &w2.w));
	ck_assert(!ssc_budget_take(b, 30, &w3.w));
	ssc_budget_give(b, 80);
	ck_assert_uint_eq(w3.n_woken, 0);
	ck_assert(ssc_budget_take(b, 50, &w2.w));
	ck_assert_uint_eq(w3.n_woken, 1);
}
END_TEST

START_TEST(a_request_over_the_bound_passes_alone)
{
	ck_assert(ssc_budget_take(b, MAX * 3, &w1.w)); /* nothing in flight: let through */
	ck_assert(!ssc_budget_take(b, 1, &w2.w));
	ssc_budget_give(b, MAX * 3);
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert(ssc_budget_take(b, 1, &w2.w));
	ck_assert(!ssc_budget_take(b, MAX * 3, &w1.w));
	ck_assert(!ssc_budget_take(b, 1, &w3.w)); /* else it would never get its turn */
	ssc_budget_give(b, 1);
	ck_assert_uint_eq(w1.n_woken, 1);
	ck_assert_uint_eq(w3.n_woken, 0);
	ck_assert(ssc_budget_take(b, MAX * 3, &w1.w));
	ck_assert_uint_eq(ssc_budget_used(b), MAX * 3);
	ssc_budget_give(b, MAX * 3);
	ck_assert_uint_eq(w3.n_woken, 1);
}
END_TEST

START_TEST(sizes_near_the_end_of_the_numbers_do_not_wrap)
{
	ck_assert(ssc_budget_take(b, 1, &w1.w));
	ck_assert(!ssc_budget_take(b, UINT64_MAX, &w2.w));
	ck_assert(!ssc_budget_take(b, UINT64_MAX, &w3.w));
	ck_assert(!ssc_budget_take(b, 2, &w1.w));
	ssc_budget_give(b, 1);
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert_uint_eq(n_wakes, 1);
}
END_TEST

START_TEST(leaving_ends_the_waiting_and_lets_the_next_through)
{
	ck_assert(ssc_budget_take(b, 60, &w1.w));
	ck_assert(!ssc_budget_take(b, 90, &w2.w));
	ck_assert(!ssc_budget_take(b, 40, &w3.w));
	ssc_budget_leave(b, &w2.w);
	ck_assert_uint_eq(w2.n_woken, 0);
	ck_assert_uint_eq(w3.n_woken, 1);
	ssc_budget_leave(b, &w2.w); /* again: nothing */
	ck_assert(ssc_budget_take(b, 40, &w3.w));
	ssc_budget_give(b, 100);
	ck_assert_uint_eq(w2.n_woken, 0);
}
END_TEST

START_TEST(a_woken_one_that_leaves_lets_the_next_through)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 100, &w2.w));
	ck_assert(!ssc_budget_take(b, 100, &w3.w));
	ssc_budget_give(b, 100);
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert_uint_eq(w3.n_woken, 0);
	ssc_budget_leave(b, &w2.w);
	ck_assert_uint_eq(w3.n_woken, 1);
}
END_TEST

START_TEST(the_last_waiter_can_leave_and_come_again)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 10, &w2.w));
	ck_assert(!ssc_budget_take(b, 10, &w3.w));
	ssc_budget_leave(b, &w3.w); /* the queue's end moves back */
	ck_assert(!ssc_budget_take(b, 10, &w3.w));
	ssc_budget_give(b, 100);
	ck_assert_uint_eq(w2.order, 1);
	ck_assert_uint_eq(w3.order, 2);
}
END_TEST

START_TEST(raising_the_bound_wakes)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 50, &w2.w));
	ssc_budget_set_max(b, 149);
	ck_assert_uint_eq(w2.n_woken, 0);
	/* wake() itself asserts against MAX, which holds until the woken one takes. */
	ssc_budget_set_max(b, 150);
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert(ssc_budget_take(b, 50, &w2.w));
}
END_TEST

START_TEST(lowering_the_bound_stops_a_woken_one)
{
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 50, &w2.w));
	ssc_budget_give(b, 50);
	ck_assert_uint_eq(w2.n_woken, 1);
	ssc_budget_set_max(b, 70);
	ck_assert(!ssc_budget_take(b, 50, &w2.w));
	ssc_budget_give(b, 30);
	ck_assert_uint_eq(w2.n_woken, 2);
	ck_assert(ssc_budget_take(b, 50, &w2.w));
}
END_TEST

START_TEST(a_bound_of_zero_lets_one_through_at_a_time)
{
	ssc_budget_set_max(b, 0);
	ck_assert(ssc_budget_take(b, 10, &w1.w));
	ck_assert(!ssc_budget_take(b, 10, &w2.w));
	ssc_budget_give(b, 10);
	ck_assert_uint_eq(w2.n_woken, 1);
	ck_assert(ssc_budget_take(b, 10, &w2.w));
}
END_TEST

static void wake_and_take(struct ssc_budget_waiter *w)
{
	n_wakes++;
	ck_assert(ssc_budget_take(b, 100, w));
	ssc_budget_give(b, 100); /* wakes the next within this wake */
}

START_TEST(wake_may_take_and_give)
{
	w2.w.wake = w3.w.wake = wake_and_take;
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 100, &w2.w));
	ck_assert(!ssc_budget_take(b, 100, &w3.w));
	ssc_budget_give(b, 100);
	ck_assert_uint_eq(n_wakes, 2);
	ck_assert_uint_eq(ssc_budget_used(b), 0);
}
END_TEST

/* ---- races ---- */

static sem_t in_wake, may_end;
static atomic_bool has_left;
static unsigned int n_ended;

static void slow_wake(struct ssc_budget_waiter *w)
{
	(void)w;
	sem_post(&in_wake);
	sem_wait(&may_end);
	n_ended += !atomic_load(&has_left);
}

static void *give_all(void *arg)
{
	(void)arg;
	ssc_budget_give(b, 100);
	return NULL;
}

static void *leave_w2(void *arg)
{
	(void)arg;
	ssc_budget_leave(b, &w2.w);
	atomic_store(&has_left, true);
	return NULL;
}

START_TEST(leave_waits_for_a_wake_that_runs)
{
	pthread_t giver, leaver;

	sem_init(&in_wake, 0, 0);
	sem_init(&may_end, 0, 0);
	atomic_store(&has_left, false);
	n_ended = 0;
	w2.w.wake = slow_wake;
	ck_assert(ssc_budget_take(b, 100, &w1.w));
	ck_assert(!ssc_budget_take(b, 100, &w2.w));
	ck_assert_int_eq(pthread_create(&giver, NULL, give_all, NULL), 0);
	sem_wait(&in_wake);
	ck_assert_int_eq(pthread_create(&leaver, NULL, leave_w2, NULL), 0);
	/* It has left the queue when a newcomer fits, and then waits for the wake. */
	while (!ssc_budget_take(b, 100, &w3.w))
		sched_yield();
	ck_assert(!atomic_load(&has_left));
	sem_post(&may_end);
	pthread_join(giver, NULL);
	pthread_join(leaver, NULL);
	ck_assert_uint_eq(n_ended, 1); /* the wake ended before leave returned */
	sem_destroy(&in_wake);
	sem_destroy(&may_end);
}
END_TEST

enum { THREADS = 16, ROUNDS = 400 };

struct worker {
	struct ssc_budget_waiter w; /* first */
	sem_t woken;
	uint64_t random;
	unsigned int n_taken, n_left;
};

static _Atomic uint64_t in_use;
static atomic_bool too_much;

static void wake_worker(struct ssc_budget_waiter *w)
{
	sem_post(&((struct worker *)w)->woken);
}

static void use(struct worker *me, uint64_t bytes)
{
	uint64_t now = atomic_fetch_add(&in_use, bytes) + bytes;

	if (now > MAX && now != bytes) /* only one over the bound is alone */
		atomic_store(&too_much, true);
	me->n_taken++;
	if (unit_random(&me->random) % 4 == 0)
		sched_yield();
	atomic_fetch_sub(&in_use, bytes);
	ssc_budget_give(b, bytes);
}

static void *work(void *arg)
{
	struct worker *me = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t bytes = 1 + unit_random(&me->random) % (MAX + MAX / 10);

		while (!ssc_budget_take(b, bytes, &me->w)) {
			if (unit_random(&me->random) % 8 == 0) {
				ssc_budget_leave(b, &me->w);
				bytes = 0;
				me->n_left++;
				while (sem_trywait(&me->woken) == 0)
					;
				break;
			}
			sem_wait(&me->woken);
		}
		if (bytes != 0)
			use(me, bytes);
	}
	ssc_budget_leave(b, &me->w);
	return NULL;
}

START_TEST(many_threads_stay_within_the_bound_and_none_starves)
{
	uint64_t seed = unit_seed("many_threads_stay_within_the_bound_and_none_starves");
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.w.wake = wake_worker, .random = seed + i};
		sem_init(&workers[i].woken, 0, 0);
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL); /* a lost wake is a hang here */
		ck_assert_uint_eq(workers[i].n_taken + workers[i].n_left, ROUNDS);
		sem_destroy(&workers[i].woken);
	}
	ck_assert(!atomic_load(&too_much));
	ck_assert_uint_eq(ssc_budget_used(b), 0);
}
END_TEST

static void *give_one_by_one(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 100; i++)
		ssc_budget_give(b, 1);
	return NULL;
}

/* Its memory is gone right after leave; the address sanitizer sees a wake that comes later. */
START_TEST(no_wake_runs_after_leave)
{
	int round;

	for (round = 0; round < 300; round++) {
		struct worker *worker = calloc(1, sizeof(*worker));
		pthread_t giver;

		worker->w.wake = wake_worker;
		sem_init(&worker->woken, 0, 0);
		ck_assert(ssc_budget_take(b, 100, &w1.w));
		ck_assert(!ssc_budget_take(b, 1 + round % 100, &worker->w));
		ck_assert_int_eq(pthread_create(&giver, NULL, give_one_by_one, NULL), 0);
		if (round % 2 != 0)
			sem_wait(&worker->woken);
		ssc_budget_leave(b, &worker->w);
		sem_destroy(&worker->woken);
		free(worker);
		pthread_join(giver, NULL);
		ck_assert_uint_eq(ssc_budget_used(b), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("budget");
	TCase *happy = tcase_create("happy");
	TCase *queue = tcase_create("queue");
	TCase *races = tcase_create("races");

	tcase_add_checked_fixture(happy, setup, teardown);
	tcase_add_test(happy, what_fits_is_taken_at_once);
	tcase_add_test(happy, what_does_not_fit_waits_and_is_woken_once);
	tcase_add_test(happy, giving_too_little_back_wakes_nobody);
	tcase_add_test(happy, a_request_over_the_bound_passes_alone);
	tcase_add_test(happy, sizes_near_the_end_of_the_numbers_do_not_wrap);
	tcase_add_test(happy, raising_the_bound_wakes);
	tcase_add_test(happy, lowering_the_bound_stops_a_woken_one);
	tcase_add_test(happy, a_bound_of_zero_lets_one_through_at_a_time);
	suite_add_tcase(suite, happy);
	tcase_add_checked_fixture(queue, setup, teardown);
	tcase_add_test(queue, waiters_are_woken_in_their_order);
	tcase_add_test(queue, nobody_overtakes_a_large_request);
	tcase_add_test(queue, room_of_a_woken_waiter_is_not_stolen);
	tcase_add_test(queue, a_waiter_that_fails_again_keeps_its_place);
	tcase_add_test(queue, who_wants_less_than_before_makes_room);
	tcase_add_test(queue, leaving_ends_the_waiting_and_lets_the_next_through);
	tcase_add_test(queue, a_woken_one_that_leaves_lets_the_next_through);
	tcase_add_test(queue, the_last_waiter_can_leave_and_come_again);
	tcase_add_test(queue, wake_may_take_and_give);
	suite_add_tcase(suite, queue);
	tcase_add_checked_fixture(races, setup, teardown);
	tcase_add_test(races, leave_waits_for_a_wake_that_runs);
	tcase_add_test(races, many_threads_stay_within_the_bound_and_none_starves);
	tcase_add_test(races, no_wake_runs_after_leave);
	tcase_set_timeout(races, 60);
	suite_add_tcase(suite, races);
	return unit_main(suite);
}
