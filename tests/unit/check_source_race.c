/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_source_race.c - everything that can be done with sources, at the same time, on the real clock.
 *
 * Meant for the sanitizers; what is checked holds without them as well. A mount that is used after its
 * unmounting is seen by the fake, and by the address sanitizer, since it was freed.
 */
#include <sched.h>

#include "source_unit.h"

enum { THREADS = 64, SOURCES = 200, STEPS = 500, STORM_MAX = 128, ROUNDS = 300 };

enum storm {
	STORM_PLAIN,      /* gets and puts only: never two attempts of one source */
	STORM_PURGED,     /* purges, warming, cancelled waits */
	STORM_HURRIED,    /* the same, with no idle time at all */
	STORM_STOPPED,    /* the same, stopped in the middle */
	STORM_ONE_SOURCE, /* as plain, all want the same */
	STORMS
};

struct thread {
	pthread_t thread;
	uint64_t seed;
	unsigned int n_asked, n_got, n_refused, n_failed, n_late, n_shut, n_tried;
};

static struct thread threads[THREADS];
static enum storm storm;
static uint64_t delay_state;
static pthread_barrier_t barrier;

static void race_setup(void)
{
	timers = ssc_timers_new();
	ck_assert_ptr_nonnull(timers);
}

static void race_teardown(void)
{
	ssc_timers_free(timers);
	fake_source_reset();
}

static void race_start(uint64_t idle_ns, uint32_t max)
{
	struct ssc_source_cache_config cfg;

	ssc_source_cache_config_init(&cfg);
	cfg.idle_ns = idle_ns;
	cfg.max = max;
	cfg.n_threads = 8;
	cfg.ops = &fake_source_ops;
	cfg.timers = timers;
	cache = ssc_source_cache_new(&cfg);
}

static void spin(uint64_t n)
{
	while (n-- > 0)
		sched_yield();
}

/* ---- the storm ---- */

static bool is_plain(void)
{
	return storm == STORM_PLAIN || storm == STORM_ONE_SOURCE;
}

static void note(struct thread *t, enum ssc_err err)
{
	t->n_asked++;
	t->n_got += err == SSC_OK;
	t->n_refused += err == SSC_E_JUKEBOX;
	t->n_failed += err == SSC_E_DOWN;
	t->n_late += err == SSC_E_TIMEDOUT;
	t->n_shut += err == SSC_E_SHUTDOWN;
}

static void read_and_put(struct thread *t, struct ssc_source *source, unsigned int id)
{
	fake_source_check(source, id);
	ssc_source_add_bytes(source, 1);
	spin(unit_random(&t->seed) % 4);
	fake_source_check(source, id);
	switch (unit_random(&t->seed) % 16) {
	case 0:
		ssc_source_put_dead(source);
		break;
	case 1:
		ssc_source_pin(source);
		ssc_source_put(source);
		spin(1);
		fake_source_check(source, id);
		ssc_source_unpin(source);
		break;
	default:
		ssc_source_put(source);
		break;
	}
}

static void ask_and_use(struct thread *t, unsigned int id)
{
	bool may_cancel = !is_plain() && unit_random(&t->seed) % 4 == 0;
	struct asker asker;

	ask_cancellable(&asker, id, may_cancel);
	spin(unit_random(&t->seed) % 4);
	if (may_cancel && ssc_source_cache_cancel(cache, &asker.wait)) {
		ck_assert(!is_done(&asker));
		return;
	}
	note(t, asker_await(&asker));
	if (asker.err == SSC_OK)
		read_and_put(t, asker.source, id);
}

static void get_and_use(struct thread *t, unsigned int id)
{
	struct ssc_source_key key = fake_source_key(id);
	struct ssc_source *source;
	enum ssc_err err = ssc_source_cache_get(cache, &key, &source);

	note(t, err);
	if (err == SSC_OK)
		read_and_put(t, source, id);
}

static void try_and_use(struct thread *t, unsigned int id)
{
	struct ssc_source *source = try_get(id);

	if (source == NULL)
		return;
	t->n_tried++;
	read_and_put(t, source, id);
}

static void disturb(struct thread *t, unsigned int id)
{
	struct ssc_source_key key = fake_source_key(id);
	struct ssc_source_info infos[8];
	unsigned int n_seen = 0;

	switch (is_plain() ? 2 : unit_random(&t->seed) % 4) {
	case 0:
		ssc_source_cache_warm(cache, &key);
		break;
	case 1:
		ssc_source_cache_purge(cache, NULL, &n_seen);
		break;
	case 2:
		ck_assert_uint_le(ssc_source_cache_list(cache, infos, 8), 2 * STORM_MAX);
		break;
	case 3:
		ck_assert_uint_le(stats().n_sources, STORM_MAX);
		break;
	}
}

static void *run_storm(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < STEPS; i++) {
		unsigned int id =
			1 + unit_random(&t->seed) % (storm == STORM_ONE_SOURCE ? 1 : SOURCES);
		uint64_t what = unit_random(&t->seed) % 100;

		if (what < 40)
			get_and_use(t, id);
		else if (what < 75)
			ask_and_use(t, id);
		else if (what < 95)
			try_and_use(t, 1 + id % 8);
		else
			disturb(t, id);
	}
	return NULL;
}

static void check_storm(void)
{
	struct ssc_source_cache_stats s = stats();
	struct thread sum = {0};
	uint64_t n_attempts = 0;
	unsigned int n_most = 0;

	for (int i = 0; i < THREADS; i++) {
		sum.n_asked += threads[i].n_asked;
		sum.n_got += threads[i].n_got;
		sum.n_refused += threads[i].n_refused;
		sum.n_failed += threads[i].n_failed;
		sum.n_late += threads[i].n_late;
		sum.n_shut += threads[i].n_shut;
		sum.n_tried += threads[i].n_tried;
	}
	for (unsigned int i = 1; i <= SOURCES; i++) {
		n_attempts += fake_sources[i].n_attempts;
		n_most = fake_sources[i].n_most > n_most ? fake_sources[i].n_most : n_most;
		ck_assert_uint_eq(fake_sources[i].n_mounted, 0);
	}
	ck_assert_uint_eq(sum.n_asked,
			  sum.n_got + sum.n_refused + sum.n_failed + sum.n_late + sum.n_shut);
	ck_assert_uint_eq(s.n_sources + s.n_leaving, 0);
	ck_assert_uint_eq(s.mounts + s.failures, n_attempts);
	ck_assert_uint_eq(s.unmounts, s.mounts);
	ck_assert_uint_eq(s.mount_rpcs, FAKE_MOUNT_RPCS * s.mounts + s.failures);
	ck_assert_uint_eq(s.bytes, sum.n_got + sum.n_tried);
	ck_assert_uint_eq(s.refused, sum.n_refused);
	if (!is_plain())
		return;
	ck_assert_uint_le(n_most, 1);
	ck_assert_uint_eq(s.hits + s.misses + s.waits + s.refused, sum.n_asked + sum.n_tried);
}

START_TEST(everything_at_once)
{
	uint64_t seed = unit_seed("everything_at_once");

	storm = (enum storm)_i;
	delay_state = unit_random(&seed);
	for (unsigned int i = 1; i <= SOURCES; i++) {
		fake_sources[i].delay_state = &delay_state;
		fake_sources[i].fail_percent = i % 5 == 0 ? 50 : 5;
	}
	memset(threads, 0, sizeof(threads));
	race_start(storm == STORM_HURRIED ? 0 : SSC_NS_PER_MS, STORM_MAX);
	for (int i = 0; i < THREADS; i++) {
		threads[i].seed = unit_random(&seed);
		pthread_create(&threads[i].thread, NULL, run_storm, &threads[i]);
	}
	if (storm == STORM_STOPPED) {
		while (stats().mounts < 50)
			sched_yield();
		(void)ssc_source_cache_stop(cache, 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	ck_assert(ssc_source_cache_stop(cache, UINT64_MAX));
	check_storm();
	ssc_source_cache_free(cache);
	cache = NULL;
}
END_TEST

/* ---- two at a time ---- */

static struct asker the_asker;
static uint64_t spins;

static void *release(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	spin(spins % 4);
	fake_source_hold_mounts(1, false);
	return NULL;
}

/* One of both: it is told, and nothing else happens to it, or it is cancelled and never told. */
START_TEST(cancel_against_the_end_of_a_mount)
{
	uint64_t seed = unit_seed("cancel_against_the_end_of_a_mount");
	unsigned int n_cancelled = 0;

	race_start(0, 4);
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		bool is_cancelled;

		spins = unit_random(&seed);
		fake_source_set_err(1, i % 3 == 0 ? SSC_E_DOWN : SSC_OK);
		await_sources(0);
		fake_source_hold_mounts(1, true);
		ask_cancellable(&the_asker, 1, true);
		pthread_create(&thread, NULL, release, NULL);
		pthread_barrier_wait(&barrier);
		spin(spins / 4 % 4);
		is_cancelled = ssc_source_cache_cancel(cache, &the_asker.wait);
		if (!is_cancelled && asker_await(&the_asker) == SSC_OK)
			ssc_source_put(the_asker.source);
		pthread_join(thread, NULL);
		await_sources(0);
		ck_assert_uint_eq(atomic_load(&the_asker.n_done), !is_cancelled);
		n_cancelled += is_cancelled;
	}
	printf("%u of %d were cancelled\n", n_cancelled, ROUNDS);
	pthread_barrier_destroy(&barrier);
	cache_end();
}
END_TEST

static void *put_it(void *arg)
{
	pthread_barrier_wait(&barrier);
	spin(spins % 4);
	ssc_source_put(arg);
	return NULL;
}

/* The owner stops and frees the cache while the last user puts. */
START_TEST(the_last_put_against_the_end_of_the_cache)
{
	uint64_t seed = unit_seed("the_last_put_against_the_end_of_the_cache");

	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		race_start(SSC_NS_PER_S, 4);
		spins = unit_random(&seed);
		pthread_create(&thread, NULL, put_it, get(1));
		pthread_barrier_wait(&barrier);
		spin(spins / 4 % 4);
		(void)ssc_source_cache_stop(cache, i % 2 == 0 ? 0 : UINT64_MAX);
		ssc_source_cache_free(cache);
		cache = NULL;
		pthread_join(thread, NULL);
		fake_source_await(&fake_sources[1].n_mounted, 0);
	}
	pthread_barrier_destroy(&barrier);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source_race");
	TCase *tc = tcase_create("races");

	tcase_add_checked_fixture(tc, race_setup, race_teardown);
	tcase_set_timeout(tc, 50);
	tcase_add_loop_test(tc, everything_at_once, 0, STORMS);
	tcase_add_test(tc, cancel_against_the_end_of_a_mount);
	tcase_add_test(tc, the_last_put_against_the_end_of_the_cache);
	suite_add_tcase(suite, tc);
	return unit_main(suite);
}
