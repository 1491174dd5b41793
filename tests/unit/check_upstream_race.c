/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_race.c - many submitters of one connection: no call is forgotten, none waits for
 * the loop thread's next look around.
 *
 * A submitter that finds the lock taken leaves its call to the holder. To meet the moments around an
 * unlock often, unlocking is slow here: the linker lets every pthread_mutex_unlock of the code under
 * test go through the one below (--wrap).
 */
#include "upstream_unit.h"

#define N_THREADS     6
#define N_ROUNDS      800
#define SLOW_ONE_OF   8
#define SLOW_NS       (20 * 1000)
#define MUCH_TOO_LATE (2 * SSC_NS_PER_S) /* the loop thread looks around every 5 s */

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	static atomic_uint n;
	const struct timespec pause = {.tv_nsec = SLOW_NS};

	if (atomic_fetch_add(&n, 1) % SLOW_ONE_OF == 0)
		nanosleep(&pause, NULL);
	return __real_pthread_mutex_unlock(lock);
}

struct asker {
	pthread_t thread;
	bool drives, only_wakes;
	unsigned int n_failed;
	uint64_t longest_ns;
};

static void *ask_in_turn(void *arg)
{
	struct asker *asker = arg;

	for (unsigned int i = 0; i < N_ROUNDS; i++) {
		struct asked *a = ask(SSC_OP_GETATTR, NULL);
		uint64_t begin = ssc_clock_now_ns();

		a->call->drive_ns = asker->drives ? 50 * MS : 0;
		a->call->done_only_wakes = asker->only_wakes;
		submit_for(a, 20 * SSC_NS_PER_S);
		if (wait_done(a) != SSC_OK)
			asker->n_failed++;
		if (a->done_ns - begin > asker->longest_ns)
			asker->longest_ns = a->done_ns - begin;
		forget(a);
	}
	return NULL;
}

static const struct {
	const char *what;
	bool drives[2], only_wakes[2]; /* of threads with even and odd numbers */
} mixes[] = {
	{"all drive", {true, true}, {true, true}},
	{"all drive, done is their own", {true, true}, {false, false}},
	{"some drive", {true, false}, {true, false}},
	{"none drives", {false, false}, {true, false}},
};

START_TEST(no_call_is_forgotten)
{
	struct asker askers[N_THREADS] = {0};
	int i;

	for (i = 0; i < N_THREADS; i++) {
		askers[i].drives = mixes[_i].drives[i % 2];
		askers[i].only_wakes = mixes[_i].only_wakes[i % 2];
		ck_assert_int_eq(pthread_create(&askers[i].thread, NULL, ask_in_turn, &askers[i]),
				 0);
	}
	for (i = 0; i < N_THREADS; i++)
		pthread_join(askers[i].thread, NULL);
	for (i = 0; i < N_THREADS; i++) {
		ck_assert_uint_eq(askers[i].n_failed, 0);
		ck_assert_msg(askers[i].longest_ns < MUCH_TOO_LATE, "%s: a call took %llu ms",
			      mixes[_i].what, (unsigned long long)(askers[i].longest_ns / MS));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_race");
	TCase *races = add_case(suite, "races", setup_both);

	tcase_add_loop_test(races, no_call_is_forgotten, 0, sizeof(mixes) / sizeof(mixes[0]));
	return unit_main(suite);
}
