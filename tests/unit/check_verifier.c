/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_verifier.c - generations and values of the write verifier.
 */
#include <string.h>

#include "ssc/verifier.h"
#include "unit.h"

static struct ssc_verifier v;

static const uint8_t verf_a[8] = "AAAAAAA";
static const uint8_t verf_b[8] = "AAAAAAB";

static void setup(void)
{
	ssc_verifier_init(&v, 42);
}

static void teardown(void)
{
	ssc_verifier_fini(&v);
}

static uint64_t value_of(uint64_t generation)
{
	uint8_t bytes[8];
	uint64_t value;

	ssc_verifier_value(&v, generation, bytes);
	memcpy(&value, bytes, 8);
	return value;
}

START_TEST(the_first_generation_is_1)
{
	ck_assert_uint_eq(ssc_verifier_generation(&v), 1);
}
END_TEST

START_TEST(the_first_verifier_seen_changes_nothing)
{
	ck_assert_uint_eq(ssc_verifier_note(&v, verf_a), 1);
	ck_assert_uint_eq(ssc_verifier_note(&v, verf_a), 1);
	ck_assert_uint_eq(ssc_verifier_generation(&v), 1);
}
END_TEST

START_TEST(the_first_verifier_may_be_all_zero)
{
	static const uint8_t zero[8];

	ck_assert_uint_eq(ssc_verifier_note(&v, zero), 1);
	ck_assert_uint_eq(ssc_verifier_note(&v, verf_a), 2);
}
END_TEST

START_TEST(another_verifier_moves_the_generation)
{
	ssc_verifier_note(&v, verf_a);
	ck_assert_uint_eq(ssc_verifier_note(&v, verf_b), 2);
	ck_assert_uint_eq(ssc_verifier_note(&v, verf_b), 2);
	ck_assert_uint_eq(ssc_verifier_generation(&v), 2);
}
END_TEST

START_TEST(an_old_verifier_that_returns_gets_a_new_value)
{
	uint64_t first = ssc_verifier_note(&v, verf_a);
	uint64_t second = ssc_verifier_note(&v, verf_b);
	uint64_t third = ssc_verifier_note(&v, verf_a);

	ck_assert_uint_eq(third, 3);
	ck_assert_uint_ne(value_of(third), value_of(first));
	ck_assert_uint_ne(value_of(third), value_of(second));
}
END_TEST

START_TEST(reset_moves_the_generation)
{
	ssc_verifier_note(&v, verf_a);
	ck_assert_uint_eq(ssc_verifier_reset(&v), 2);
	ck_assert_uint_eq(ssc_verifier_reset(&v), 3);
	ck_assert_uint_eq(ssc_verifier_note(&v, verf_a), 3); /* no change upstream */
}
END_TEST

/* The interleaving that the header's "Why" is about. */
START_TEST(a_write_answered_after_a_restart_was_seen_keeps_its_own_value)
{
	uint64_t write = ssc_verifier_note(&v, verf_a);  /* upstream answered, client not yet */
	uint64_t other = ssc_verifier_note(&v, verf_b);  /* another call sees the restart */
	uint64_t write_value = value_of(write);          /* now the client is answered */
	uint64_t commit = ssc_verifier_note(&v, verf_b); /* and sends COMMIT */

	ck_assert_uint_eq(commit, other);
	ck_assert_uint_ne(value_of(commit), write_value); /* so it sends the data again */
}
END_TEST

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

START_TEST(values_never_repeat)
{
	enum { N = 100000 };
	uint64_t *values = calloc(N, sizeof(*values));
	int i;

	for (i = 0; i < N; i++)
		values[i] = value_of(i + 1);
	qsort(values, N, sizeof(*values), by_value);
	for (i = 1; i < N; i++)
		ck_assert_uint_ne(values[i - 1], values[i]);
	free(values);
}
END_TEST

START_TEST(every_bit_of_a_value_depends_on_the_generation)
{
	uint64_t ever_set = 0;
	uint64_t ever_clear = 0;
	uint64_t generation;

	for (generation = 1; generation <= 100; generation++) {
		ever_set |= value_of(generation);
		ever_clear |= ~value_of(generation);
	}
	ck_assert_uint_eq(ever_set, UINT64_MAX);
	ck_assert_uint_eq(ever_clear, UINT64_MAX);
}
END_TEST

START_TEST(instances_have_other_values)
{
	uint64_t mine[100];
	int i, j;

	for (i = 0; i < 100; i++)
		mine[i] = value_of(i + 1);
	teardown();
	ssc_verifier_init(&v, 43); /* even the next number */
	for (i = 0; i < 100; i++)
		for (j = 0; j < 100; j++)
			ck_assert_uint_ne(value_of(i + 1), mine[j]);
}
END_TEST

enum { THREADS = 8, ROUNDS = 2000 };

struct noter {
	uint64_t random;
	uint64_t n_moves; /* what this thread knows it moved */
	bool went_back;
};

static void *note_and_reset(void *arg)
{
	struct noter *n = arg;
	uint64_t last = 0;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t generation;

		switch (unit_random(&n->random) % 4) {
		case 0:
			generation = ssc_verifier_reset(&v);
			n->n_moves++;
			break;
		case 1:
			generation = ssc_verifier_note(&v, verf_b);
			break;
		default:
			generation = ssc_verifier_note(&v, verf_a);
			break;
		}
		n->went_back |= generation < last;
		last = generation;
		n->went_back |= ssc_verifier_generation(&v) < last;
	}
	return NULL;
}

START_TEST(generations_only_grow_under_threads)
{
	uint64_t seed = unit_seed("generations_only_grow_under_threads");
	struct noter noters[THREADS];
	pthread_t threads[THREADS];
	uint64_t n_resets = 0;
	int i;

	for (i = 0; i < THREADS; i++) {
		noters[i] = (struct noter){.random = seed + i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, note_and_reset, &noters[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert(!noters[i].went_back);
		n_resets += noters[i].n_moves;
	}
	ck_assert_uint_gt(ssc_verifier_generation(&v), n_resets);
	ck_assert_uint_le(ssc_verifier_generation(&v), 1 + THREADS * ROUNDS);
}
END_TEST

static void *reset_many(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++)
		ssc_verifier_reset(&v);
	return NULL;
}

START_TEST(no_reset_is_lost_under_threads)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, reset_many, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(ssc_verifier_generation(&v), 1 + THREADS * ROUNDS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verifier");
	TCase *happy = tcase_create("happy");
	TCase *values = tcase_create("values");
	TCase *races = tcase_create("races");

	tcase_add_checked_fixture(happy, setup, teardown);
	tcase_add_test(happy, the_first_generation_is_1);
	tcase_add_test(happy, the_first_verifier_seen_changes_nothing);
	tcase_add_test(happy, the_first_verifier_may_be_all_zero);
	tcase_add_test(happy, another_verifier_moves_the_generation);
	tcase_add_test(happy, an_old_verifier_that_returns_gets_a_new_value);
	tcase_add_test(happy, reset_moves_the_generation);
	tcase_add_test(happy, a_write_answered_after_a_restart_was_seen_keeps_its_own_value);
	suite_add_tcase(suite, happy);
	tcase_add_checked_fixture(values, setup, teardown);
	tcase_add_test(values, values_never_repeat);
	tcase_add_test(values, every_bit_of_a_value_depends_on_the_generation);
	tcase_add_test(values, instances_have_other_values);
	suite_add_tcase(suite, values);
	tcase_add_checked_fixture(races, setup, teardown);
	tcase_add_test(races, generations_only_grow_under_threads);
	tcase_add_test(races, no_reset_is_lost_under_threads);
	suite_add_tcase(suite, races);
	return unit_main(suite);
}
