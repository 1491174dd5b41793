/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_many.c - many copies at once: the budget, turns, and what may happen at the same time.
 */
#include <pthread.h>
#include <stdlib.h>

#include "copy_unit.h"

enum { N_COPIES = 64, SIZE = 256 * KIB };

static struct fake_file from[N_COPIES], to[N_COPIES];
static struct copy_run runs[N_COPIES];
static struct fake_crew *crew;

static void setup(void)
{
	int i;

	copy_unit_setup();
	crew = fake_crew_new(4, 1);
	for (i = 0; i < N_COPIES; i++) {
		fake_file_init(&from[i], SIZE);
		fake_file_init(&to[i], 0);
		copy_unit_fill(&from[i], 0, SIZE, i);
	}
}

static void teardown(void)
{
	int i;

	copy_unit_teardown();
	fake_crew_free(crew);
	for (i = 0; i < N_COPIES; i++) {
		fake_file_fini(&from[i]);
		fake_file_fini(&to[i]);
	}
}

static struct ssc_copy_spec spec_of(int i)
{
	return (struct ssc_copy_spec){.src = &from[i].file,
				      .dst = &to[i].file,
				      .count = SIZE,
				      .commit = true};
}

static void start(int i)
{
	struct ssc_copy_spec spec = spec_of(i);

	copy_unit_start(&runs[i], &spec);
}

static void finish(int i)
{
	copy_unit_finish(&runs[i]);
	copy_unit_verify(&runs[i]);
	copy_unit_fini(&runs[i]);
}

static void engine_with(uint32_t chunk, unsigned int inflight, uint64_t budget,
			unsigned int workers)
{
	struct ssc_copy_engine_config cfg = copy_unit_config();

	cfg.chunk_bytes = chunk;
	cfg.inflight = inflight;
	cfg.inflight_bytes = budget;
	cfg.workers = workers;
	copy_unit_engine(&cfg);
}

static uint64_t peak(void)
{
	struct ssc_copy_engine_stats stats;

	ssc_copy_engine_stats(engine, &stats);
	ck_assert_uint_eq(stats.inflight_bytes, 0);
	return stats.peak_bytes;
}

/* ---- the budget ---- */

START_TEST(sixty_four_copies_stay_within_the_budget)
{
	uint64_t budget = _i & 8 ? 100 * KIB : MIB; /* the small one: one large chunk at a time */
	int i;

	engine_with(128 * KIB, 4, budget, 2);
	for (i = 0; i < N_COPIES; i++) {
		from[i].file.is_blocking = _i & 1;
		to[i].file.is_blocking = _i & 2;
		from[i].crew = (_i & 4) && !(_i & 1) ? crew : NULL;
		to[i].crew = (_i & 4) && !(_i & 2) ? crew : NULL;
		start(i);
	}
	for (i = 0; i < N_COPIES; i++) {
		finish(i);
		ck_assert_uint_eq(runs[i].result.status, SSC_NFS4_OK);
		ck_assert_uint_eq(runs[i].result.bytes, SIZE);
	}
	ck_assert_uint_le(peak(), _i & 8 ? 128 * KIB : MIB);
}
END_TEST

START_TEST(a_copy_that_waits_is_served_in_its_turn)
{
	int i;

	/* Room for two chunks: 0 takes both and goes on wanting, 1 and 2 wait behind. */
	engine_with(128 * KIB, 8, 256 * KIB, 1);
	for (i = 0; i < 3; i++) {
		from[i].crew = crew;
		to[i].crew = crew;
	}
	fake_crew_hold(crew, true);
	for (i = 0; i < 3; i++)
		start(i);
	ck_assert_uint_eq(fake_crew_waiting(crew), 2);
	ck_assert_uint_eq(from[0].n_reads, 2);
	ck_assert_uint_eq(from[1].n_reads + from[2].n_reads, 0);
	fake_crew_hold(crew, false);
	for (i = 0; i < 3; i++) {
		finish(i);
		ck_assert_uint_eq(runs[i].result.bytes, SIZE);
	}
	ck_assert_uint_eq(peak(), 256 * KIB);
}
END_TEST

/* One that waits for the budget when its time is over, or is cancelled, leaves the queue. */
START_TEST(who_needs_no_room_any_more_makes_room)
{
	struct ssc_copy_spec spec;

	engine_with(128 * KIB, 1, 128 * KIB, 1);
	from[0].crew = from[2].crew = crew;
	fake_crew_hold(crew, true);
	start(0); /* has all of it, and cannot go on */
	spec = spec_of(1);
	from[1].file.is_blocking = _i & 1;
	spec.stop_ns = _i & 2 ? ssc_clock_now_ns() + SSC_NS_PER_S : 0;
	copy_unit_start(&runs[1], &spec);
	start(2);
	ck_assert(!copy_unit_wait(&runs[1].is_done, 100)); /* none begun: it still waits */
	ssc_copy_cancel(runs[1].copy);
	finish(1);
	ck_assert(runs[1].result.is_stopped);
	ck_assert_uint_eq(runs[1].result.bytes, 0);
	fake_crew_hold(crew, false);
	finish(0);
	finish(2);
	ck_assert_uint_eq(runs[2].result.bytes, SIZE);
}
END_TEST

START_TEST(time_ends_the_waiting_for_room)
{
	struct fake_crew *own = fake_crew_new(1, 2);
	struct ssc_copy_spec spec;

	/* 1 gets one chunk through, then stands behind 0, which hangs. */
	engine_with(128 * KIB, 1, 128 * KIB, 1);
	from[0].crew = crew;
	to[1].crew = own;
	fake_crew_hold(own, true);
	spec = spec_of(1);
	spec.stop_ns = ssc_clock_now_ns() + 100 * SSC_NS_PER_S;
	copy_unit_start(&runs[1], &spec);
	fake_crew_hold(crew, true);
	start(0);
	fake_crew_hold(own, false);
	while (fake_crew_waiting(crew) == 0)
		sched_yield();
	ck_assert(!copy_unit_wait(&runs[1].is_done, 20));
	fake_clock_advance(100 * SSC_NS_PER_S);
	finish(1);
	ck_assert(runs[1].result.is_stopped);
	ck_assert_uint_eq(runs[1].result.bytes, 128 * KIB);
	fake_crew_hold(crew, false);
	finish(0);
	fake_crew_free(own);
}
END_TEST

/* The same, but it began to wait while a chunk was in flight, which is over by then. */
START_TEST(time_ends_the_waiting_for_more_room)
{
	static const struct fake_extent extents[] = {{0, 4 * KIB}, {64 * KIB, SIZE}};
	struct fake_crew *own = fake_crew_new(1, 2);
	struct ssc_copy_spec spec;

	/* 0 has 128 KiB and hangs, 1 has a buffer of 64 KiB and needs one of 128 KiB next. */
	engine_with(128 * KIB, 2, 192 * KIB, 1);
	from[0].crew = crew;
	fake_crew_hold(crew, true);
	spec = spec_of(0);
	spec.count = 128 * KIB;
	copy_unit_start(&runs[0], &spec);
	from[1].crew = own;
	fake_crew_hold(own, true);
	memset(from[1].data + 4 * KIB, 0, 60 * KIB);
	fake_file_set_extents(&from[1], extents, 2);
	spec = spec_of(1);
	spec.stop_ns = ssc_clock_now_ns() + 100 * SSC_NS_PER_S;
	copy_unit_start(&runs[1], &spec);
	fake_crew_hold(own, false);
	ck_assert(!copy_unit_wait(&runs[1].is_done, 20));
	fake_clock_advance(100 * SSC_NS_PER_S);
	finish(1);
	ck_assert(runs[1].result.is_stopped);
	ck_assert_uint_eq(runs[1].result.bytes, 64 * KIB);
	fake_crew_hold(crew, false);
	finish(0);
	fake_crew_free(own);
}
END_TEST

/* Cancelled with a chunk in flight that hangs: those behind it in the queue need not wait for that. */
START_TEST(who_is_cancelled_makes_room_at_once)
{
	struct ssc_copy_spec spec;

	engine_with(128 * KIB, 2, 192 * KIB, 1);
	from[0].crew = crew;
	fake_crew_hold(crew, true);
	start(0); /* has 128 KiB, waits for 128 more */
	spec = spec_of(1);
	spec.count = 4 * KIB;
	from[1].file.is_blocking = _i;
	copy_unit_start(&runs[1], &spec);
	ck_assert(!copy_unit_wait(&runs[1].is_done, 20));
	ssc_copy_cancel(runs[0].copy);
	finish(1);
	ck_assert_uint_eq(runs[1].result.bytes, 4 * KIB);
	ck_assert_uint_eq(atomic_load(&runs[0].n_done), 0);
	fake_crew_hold(crew, false);
	finish(0);
}
END_TEST

/* ---- turns ---- */

static void endless_io(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	(void)file;
	io->complete(io, SSC_NFS4_OK, io->len, false);
}

/* A giant and small copies on one worker: the small ones must not wait for its end. */
START_TEST(a_giant_does_not_starve_small_copies)
{
	static const struct ssc_copy_file_ops endless_ops = {.read = endless_io,
							     .write = endless_io};
	struct ssc_copy_file giant = {.ops = &endless_ops, .is_blocking = true};
	struct ssc_copy_spec spec = {.src = &giant,
				     .dst = &giant,
				     .count = 1ull << 60,
				     .dst_size = 1ull << 61};
	struct copy_run run = {.spec = spec};
	int i;

	engine_with(16 * KIB, 4, 48 * KIB, 1);
	sem_init(&run.is_done, 0, 0);
	spec.done = copy_unit_done;
	spec.ctx = &run;
	run.copy = ssc_copy_start(engine, &spec);
	for (i = 0; i < 16; i++) {
		from[i].file.is_blocking = i & 1;
		to[i].file.is_blocking = i & 2;
		from[i].crew = i & 4 ? crew : NULL;
		start(i);
		finish(i);
		ck_assert_uint_eq(runs[i].result.bytes, SIZE);
	}
	ck_assert_uint_eq(atomic_load(&run.n_done), 0);
	ssc_copy_cancel(run.copy);
	copy_unit_finish(&run);
	copy_unit_fini(&run);
	ck_assert(run.result.is_stopped);
	ck_assert_uint_eq(run.result.bytes % (16 * KIB), 0);
}
END_TEST

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void gated_read(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	(void)file;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	io->complete(io, SSC_NFS4_OK, 0, true);
}

/* All workers are stuck in a hung file system; a copy without one needs none of them. */
START_TEST(files_that_hang_do_not_hold_up_the_others)
{
	struct ssc_copy_spec spec = spec_of(1);

	engine_with(16 * KIB, 4, MIB, 1);
	pthread_mutex_lock(&gate);
	from[0].file.is_blocking = true;
	from[0].ops.read = gated_read;
	start(0);
	from[1].delay_at = 0;
	from[1].n_delays = 3;
	spec.patience_ns = 100 * SSC_NS_PER_S;
	copy_unit_start(&runs[1], &spec);
	finish(1);
	ck_assert_uint_eq(runs[1].result.bytes, SIZE);
	pthread_mutex_unlock(&gate);
	finish(0);
}
END_TEST

/* Copies with the same work end at about the same time, however few workers there are. */
START_TEST(all_copies_go_on_together)
{
	uint64_t least = SIZE;
	int i;

	engine_with(16 * KIB, 4, 4 * MIB, 1);
	pthread_mutex_lock(&gate);
	for (i = 0; i < 8; i++) {
		from[i].file.is_blocking = to[i].file.is_blocking = true;
		if (i == 0)
			from[i].ops.read =
				gated_read; /* nothing moves before all stand in the queue */
		start(i);
	}
	pthread_mutex_unlock(&gate);
	finish(1);
	for (i = 2; i < 8; i++)
		if (ssc_copy_progress(runs[i].copy) < least)
			least = ssc_copy_progress(runs[i].copy);
	ck_assert_uint_ge(least, SIZE - 64 * KIB);
	finish(0);
	for (i = 2; i < 8; i++)
		finish(i);
}
END_TEST

/* ---- races ---- */

static atomic_uint n_put;

/* The last reference may go within done, and the engine right after it. */
static void done_and_put(struct ssc_copy *copy, void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&n_put, 1);
	ssc_copy_put(copy);
}

START_TEST(the_engine_can_go_as_soon_as_all_is_put)
{
	int round, i;

	for (round = 0; copy_unit_goes_on(round, 200); round++) {
		atomic_store(&n_put, 0);
		for (i = 0; i < 4; i++) {
			struct ssc_copy_spec spec = spec_of(i);

			from[i].file.is_blocking = round & 1;
			to[i].file.is_blocking = round & 2;
			from[i].crew = (round & 4) && !(round & 1) ? crew : NULL;
			to[i].crew = (round & 8) && !(round & 2) ? crew : NULL;
			spec.dst_size = to[i].size;
			spec.done = done_and_put;
			ssc_copy_start(engine, &spec);
		}
		while (atomic_load(&n_put) < 4)
			sched_yield();
		engine_with(128 * KIB, 4, 300 * KIB, 2);
	}
}
END_TEST

struct chain {
	atomic_uint left;
	sem_t is_over;
};

/* Starts the next copy within done. */
static void done_and_start(struct ssc_copy *copy, void *ctx)
{
	struct chain *chain = ctx;
	struct ssc_copy_spec spec = spec_of(0);

	ssc_copy_put(copy);
	if (atomic_fetch_sub(&chain->left, 1) == 1) {
		sem_post(&chain->is_over);
		return;
	}
	spec.count = 10;
	spec.done = done_and_start;
	spec.ctx = chain;
	ssc_copy_start(engine, &spec);
}

START_TEST(done_may_start_another)
{
	struct ssc_copy_spec spec = spec_of(0);
	struct chain chain = {.left = 3000};

	sem_init(&chain.is_over, 0, 0);
	from[0].file.is_blocking = _i & 1;
	to[0].file.is_blocking = _i & 2;
	from[0].crew = (_i & 4) && !(_i & 1) ? crew : NULL;
	spec.count = 10;
	spec.done = done_and_start;
	spec.ctx = &chain;
	ssc_copy_start(engine, &spec);
	ck_assert(copy_unit_wait(&chain.is_over, 20000));
	sem_destroy(&chain.is_over);
}
END_TEST

static void *cancel_all(void *arg)
{
	uint64_t random = (uint64_t)(uintptr_t)arg;
	int i;

	for (i = 0; i < N_COPIES; i++) {
		int victim = unit_random(&random) % N_COPIES;
		uint64_t seen = ssc_copy_progress(runs[victim].copy);

		if (unit_random(&random) % 2 == 0)
			ssc_copy_cancel(runs[victim].copy);
		ck_assert_uint_ge(ssc_copy_progress(runs[victim].copy), seen);
	}
	return NULL;
}

/* Everything at once: kinds, completions in random order, delays, a tight budget, cancels. */
START_TEST(cancels_from_everywhere)
{
	uint64_t random = unit_seed("cancels_from_everywhere");
	int round, i;

	for (round = 0; copy_unit_goes_on(round, 20); round++) {
		pthread_t threads[2];

		engine_with(32 * KIB, 1 + unit_random(&random) % 5,
			    64 * KIB + unit_random(&random) % MIB, 1 + unit_random(&random) % 3);
		for (i = 0; i < N_COPIES; i++) {
			uint64_t bits = unit_random(&random);
			struct ssc_copy_spec spec = spec_of(i);

			from[i].file.is_blocking = bits & 1;
			to[i].file.is_blocking = bits & 2;
			from[i].crew = bits & 4 ? crew : NULL;
			to[i].crew = bits & 8 ? crew : NULL;
			from[i].delay_at = unit_random(&random) % SIZE;
			from[i].n_delays = bits & 16 ? 2 : 0;
			spec.patience_ns = 1000 * SSC_NS_PER_S;
			spec.dst_size = to[i].size;
			copy_unit_start(&runs[i], &spec);
		}
		for (i = 0; i < 2; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, cancel_all,
							(void *)(uintptr_t)(random + i)),
					 0);
		for (i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		for (i = 0; i < N_COPIES; i++)
			finish(i);
		peak();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_many");
	TCase *budget = tcase_create("budget");
	TCase *turns = tcase_create("turns");
	TCase *races = tcase_create("races");

	tcase_add_checked_fixture(budget, setup, teardown);
	tcase_add_loop_test(budget, sixty_four_copies_stay_within_the_budget, 0, 16);
	tcase_add_test(budget, a_copy_that_waits_is_served_in_its_turn);
	tcase_add_loop_test(budget, who_needs_no_room_any_more_makes_room, 0, 4);
	tcase_add_test(budget, time_ends_the_waiting_for_room);
	tcase_add_test(budget, time_ends_the_waiting_for_more_room);
	tcase_add_loop_test(budget, who_is_cancelled_makes_room_at_once, 0, 2);
	tcase_set_timeout(budget, 30);
	suite_add_tcase(suite, budget);
	tcase_add_checked_fixture(turns, setup, teardown);
	tcase_add_test(turns, a_giant_does_not_starve_small_copies);
	tcase_add_test(turns, files_that_hang_do_not_hold_up_the_others);
	tcase_add_test(turns, all_copies_go_on_together);
	suite_add_tcase(suite, turns);
	tcase_add_checked_fixture(races, setup, teardown);
	tcase_add_test(races, the_engine_can_go_as_soon_as_all_is_put);
	tcase_add_loop_test(races, done_may_start_another, 0, 8);
	tcase_add_test(races, cancels_from_everywhere);
	tcase_set_timeout(races, 30);
	suite_add_tcase(suite, races);
	return unit_main(suite);
}
