/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_timer.c - deadlines: their order, changing them, and disarming what fires.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "fake_clock.h"
#include "ssc/clock.h"
#include "ssc/timer.h"
#include "unit.h"

enum { MANY = 5000 };

struct item {
	struct ssc_timer timer; /* first */
	unsigned int id;
	atomic_uint n_fired;
};

static struct ssc_timers *timers;
static unsigned int order[MANY]; /* ids; written by the timer thread, read after settle */
static atomic_uint n_order;
static sem_t in_fire, may_end;
static uint64_t again_ns;

static void fire(struct ssc_timer *timer)
{
	struct item *item = (struct item *)timer;
	unsigned int nth = atomic_fetch_add(&n_order, 1);

	if (nth < MANY)
		order[nth] = item->id;
	atomic_fetch_add(&item->n_fired, 1);
}

static void item_init(struct item *item, unsigned int id, void (*fn)(struct ssc_timer *))
{
	item->id = id;
	atomic_store(&item->n_fired, 0);
	ssc_timer_init(&item->timer, timers, fn);
}

static void setup(void)
{
	fake_clock_start(1000);
	sem_init(&in_fire, 0, 0);
	sem_init(&may_end, 0, 0);
	atomic_store(&n_order, 0);
	timers = ssc_timers_new();
	ck_assert_ptr_nonnull(timers);
}

static void teardown(void)
{
	ssc_timers_free(timers);
	sem_destroy(&in_fire);
	sem_destroy(&may_end);
	fake_clock_stop();
}

static void post(struct ssc_timer *timer)
{
	(void)timer;
	sem_post(&in_fire);
}

/* What is due now has run when this returns: one timer more is due a ns later. Moves the clock. */
static void settle(void)
{
	struct ssc_timer last;

	ssc_timer_init(&last, timers, post);
	fake_clock_advance(1);
	ssc_timer_arm(&last, ssc_clock_now_ns());
	sem_wait(&in_fire);
	ssc_timer_disarm(&last);
}

START_TEST(nothing_to_free)
{
	ssc_timers_free(NULL);
}
END_TEST

START_TEST(it_fires_once_when_its_time_has_come)
{
	struct item item;

	item_init(&item, 1, fire);
	ssc_timer_arm(&item.timer, 1500);
	fake_clock_advance(400);
	settle();
	ck_assert_uint_eq(atomic_load(&item.n_fired), 0);
	fake_clock_advance(99);
	settle();
	ck_assert_uint_eq(atomic_load(&item.n_fired), 1);
	fake_clock_advance(100000);
	settle();
	ck_assert_uint_eq(atomic_load(&item.n_fired), 1);
}
END_TEST

START_TEST(a_time_that_has_passed_is_now)
{
	struct item item;

	item_init(&item, 1, fire);
	ssc_timer_arm(&item.timer, 0);
	settle();
	ck_assert_uint_eq(atomic_load(&item.n_fired), 1);
}
END_TEST

START_TEST(the_order_is_that_of_the_times)
{
	static const unsigned int at[] = {5, 2, 9, 1, 7, 3, 8, 6, 4, 0};
	struct item items[10];

	for (unsigned int i = 0; i < 10; i++) {
		item_init(&items[i], at[i], fire);
		ssc_timer_arm(&items[i].timer, 2000 + at[i]);
	}
	fake_clock_advance(5000);
	settle();
	ck_assert_uint_eq(atomic_load(&n_order), 10);
	for (unsigned int i = 0; i < 10; i++)
		ck_assert_uint_eq(order[i], i);
}
END_TEST

START_TEST(arming_again_moves_it_both_ways)
{
	struct item a, b, c;

	item_init(&a, 1, fire);
	item_init(&b, 2, fire);
	item_init(&c, 3, fire);
	ssc_timer_arm(&a.timer, 2000);
	ssc_timer_arm(&b.timer, 3000);
	ssc_timer_arm(&c.timer, 4000);
	ssc_timer_arm(&a.timer, 5000);
	ssc_timer_arm(&c.timer, 2500);
	fake_clock_advance(1200);
	settle();
	ck_assert_uint_eq(atomic_load(&n_order), 0);
	fake_clock_advance(10000);
	settle();
	ck_assert_uint_eq(atomic_load(&n_order), 3);
	ck_assert_uint_eq(order[0], 3);
	ck_assert_uint_eq(order[1], 2);
	ck_assert_uint_eq(order[2], 1);
}
END_TEST

START_TEST(arm_earlier_never_makes_it_later)
{
	struct item a;

	item_init(&a, 1, fire);
	ssc_timer_arm_earlier(&a.timer, 3000);
	ssc_timer_arm_earlier(&a.timer, 9000);
	ssc_timer_arm_earlier(&a.timer, 2000);
	ssc_timer_arm_earlier(&a.timer, 2500);
	fake_clock_advance(900);
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 0);
	fake_clock_advance(200);
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 1);
	ssc_timer_arm_earlier(&a.timer, 4000); /* not armed: as arm */
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 1);
	fake_clock_advance(5000);
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 2);
}
END_TEST

START_TEST(a_disarmed_one_does_not_fire)
{
	struct item a, b;

	item_init(&a, 1, fire);
	item_init(&b, 2, fire);
	ssc_timer_disarm(&a.timer); /* not armed: nothing */
	ssc_timer_arm(&a.timer, 2000);
	ssc_timer_arm(&b.timer, 2000);
	ssc_timer_disarm(&a.timer);
	ssc_timer_disarm(&a.timer);
	fake_clock_advance(2000);
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 0);
	ck_assert_uint_eq(atomic_load(&b.n_fired), 1);
}
END_TEST

static void fire_again(struct ssc_timer *timer)
{
	fire(timer);
	if (atomic_load(&((struct item *)timer)->n_fired) < 3)
		ssc_timer_arm(timer, again_ns);
}

START_TEST(it_may_arm_itself)
{
	struct item a;

	item_init(&a, 1, fire_again);
	again_ns = 0;
	ssc_timer_arm(&a.timer, 0);
	while (atomic_load(&a.n_fired) < 3)
		settle();
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 3);
}
END_TEST

static void fire_disarm(struct ssc_timer *timer)
{
	ssc_timer_arm(timer, 0);
	ssc_timer_disarm(timer); /* would wait for itself */
	fire(timer);
}

START_TEST(it_may_disarm_itself)
{
	struct item a;

	item_init(&a, 1, fire_disarm);
	ssc_timer_arm(&a.timer, 0);
	settle();
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 1);
}
END_TEST

static void fire_free(struct ssc_timer *timer)
{
	atomic_fetch_add(&n_order, 1);
	free(timer); /* first in its item */
}

START_TEST(it_may_free_itself)
{
	for (unsigned int i = 0; i < 100; i++) {
		struct item *item = malloc(sizeof(*item));

		item_init(item, i, fire_free);
		ssc_timer_arm(&item->timer, i);
	}
	settle();
	ck_assert_uint_eq(atomic_load(&n_order), 100);
}
END_TEST

static void fire_slowly(struct ssc_timer *timer)
{
	sem_post(&in_fire);
	sem_wait(&may_end);
	ssc_timer_arm(timer, again_ns); /* while somebody waits to disarm it */
	fire(timer);
}

static atomic_bool is_disarmed;

static void *disarm(void *arg)
{
	ssc_timer_disarm(arg);
	atomic_store(&is_disarmed, true);
	return NULL;
}

START_TEST(disarming_waits_for_the_end_and_wins)
{
	struct item a;
	pthread_t thread;

	item_init(&a, 1, fire_slowly);
	again_ns = UINT64_MAX;
	atomic_store(&is_disarmed, false);
	ssc_timer_arm(&a.timer, 0);
	sem_wait(&in_fire);
	pthread_create(&thread, NULL, disarm, &a.timer);
	for (int i = 0; i < 100; i++)
		sched_yield();
	ck_assert(!atomic_load(&is_disarmed));
	sem_post(&may_end);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(atomic_load(&a.n_fired), 1);
	ck_assert_uint_eq(a.timer.place, 0);
	settle();
	ck_assert_uint_eq(atomic_load(&a.n_fired), 1);
}
END_TEST

START_TEST(thousands_fire_in_order)
{
	uint64_t seed = unit_seed("thousands_fire_in_order");
	struct item *items = calloc(MANY, sizeof(*items));
	unsigned int n_out = 0;

	for (unsigned int i = 0; i < MANY; i++) {
		item_init(&items[i], i, fire);
		ssc_timer_arm(&items[i].timer, 10000 + unit_random(&seed) % 100000);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		uint64_t what = unit_random(&seed);

		if (what % 4 == 0) {
			ssc_timer_disarm(&items[i].timer);
			n_out++;
		} else if (what % 4 == 1) {
			ssc_timer_arm(&items[i].timer, 10000 + unit_random(&seed) % 100000);
		}
	}
	fake_clock_advance(200000);
	settle();
	ck_assert_uint_eq(atomic_load(&n_order), MANY - n_out);
	for (unsigned int i = 1; i < MANY - n_out; i++)
		ck_assert_uint_le(items[order[i - 1]].timer.at_ns, items[order[i]].timer.at_ns);
	free(items);
}
END_TEST

/* ---- races, on the real clock ---- */

enum { RACERS = 3, RACE_ITEMS = 50, RACE_ROUNDS = 3000 };

struct racer {
	uint64_t seed;
	struct item items[RACE_ITEMS];
};

static void *race(void *arg)
{
	struct racer *racer = arg;

	for (unsigned int i = 0; i < RACE_ROUNDS; i++) {
		struct ssc_timer *timer =
			&racer->items[unit_random(&racer->seed) % RACE_ITEMS].timer;
		uint64_t at_ns = ssc_clock_now_ns() + unit_random(&racer->seed) % 200000;

		switch (unit_random(&racer->seed) % 3) {
		case 0:
			ssc_timer_arm(timer, at_ns);
			break;
		case 1:
			ssc_timer_arm_earlier(timer, at_ns);
			break;
		case 2:
			ssc_timer_disarm(timer);
			timer->at_ns = 0; /* ours alone now; the sanitizer sees it otherwise */
			break;
		}
	}
	for (unsigned int i = 0; i < RACE_ITEMS; i++)
		ssc_timer_disarm(&racer->items[i].timer);
	return NULL;
}

START_TEST(arming_and_disarming_race_with_firing)
{
	uint64_t seed = unit_seed("arming_and_disarming_race_with_firing");
	static struct racer racers[RACERS];
	pthread_t threads[RACERS];

	ssc_timers_free(timers);
	fake_clock_stop();
	timers = ssc_timers_new();
	for (unsigned int i = 0; i < RACERS; i++) {
		racers[i].seed = unit_random(&seed);
		for (unsigned int j = 0; j < RACE_ITEMS; j++)
			item_init(&racers[i].items[j], 0, fire);
		pthread_create(&threads[i], NULL, race, &racers[i]);
	}
	for (unsigned int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("timer");
	TCase *tc = tcase_create("one");
	TCase *races = tcase_create("races");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, nothing_to_free);
	tcase_add_test(tc, it_fires_once_when_its_time_has_come);
	tcase_add_test(tc, a_time_that_has_passed_is_now);
	tcase_add_test(tc, the_order_is_that_of_the_times);
	tcase_add_test(tc, arming_again_moves_it_both_ways);
	tcase_add_test(tc, arm_earlier_never_makes_it_later);
	tcase_add_test(tc, a_disarmed_one_does_not_fire);
	tcase_add_test(tc, it_may_arm_itself);
	tcase_add_test(tc, it_may_disarm_itself);
	tcase_add_test(tc, it_may_free_itself);
	tcase_add_test(tc, disarming_waits_for_the_end_and_wins);
	tcase_add_test(tc, thousands_fire_in_order);
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(races, setup, teardown);
	tcase_set_timeout(races, 50);
	tcase_add_test(races, arming_and_disarming_race_with_firing);
	suite_add_tcase(suite, races);
	return unit_main(suite);
}
