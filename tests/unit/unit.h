/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * unit.h - what every unit test binary needs: a main, and seeds that can be given again.
 *
 * Environment: SSC_SEED repeats a run of the stress tests; CK_FORK=no for sanitizers (check's own).
 */
#ifndef SSC_UNIT_H
#define SSC_UNIT_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Printed, so that a failure can be repeated with SSC_SEED. */
static inline uint64_t unit_seed(const char *test)
{
	const char *given = getenv("SSC_SEED");
	struct timespec ts;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &ts);
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)ts.tv_sec * 1000000007u + ts.tv_nsec;
	printf("%s: SSC_SEED=%llu\n", test, (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* splitmix64: small, and good enough to choose delays and sizes. */
static inline uint64_t unit_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline int unit_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif /* SSC_UNIT_H */
