/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_delay.c - transient errors that pass or do not, and cancelling.
 */
#include "copy_unit.h"

enum { CHUNK = 128 * KIB, N_CHUNKS = 7, SIZE = N_CHUNKS * CHUNK };

static struct fake_crew *crew;

static void setup(void)
{
	copy_unit_setup();
	crew = fake_crew_new(2, 1);
	copy_unit_files(SIZE, 0);
	copy_unit_fill(&src, 0, SIZE, 1);
}

static void teardown(void)
{
	copy_unit_teardown();
	fake_crew_free(crew);
}

/* Bits: the source blocks, the destination blocks, those that do not are completed by the crew. */
static void kinds(int i)
{
	copy_unit_block(i & 1, i & 2);
	src.crew = (i & 4) && !(i & 1) ? crew : NULL;
	dst.crew = (i & 4) && !(i & 2) ? crew : NULL;
}

/* ---- transient errors ---- */

START_TEST(without_patience_delay_is_an_error)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	kinds(_i & 7);
	*(_i & 8 ? &src.delay_at : &dst.delay_at) = 4 * CHUNK + 5;
	*(_i & 8 ? &src.n_delays : &dst.n_delays) = 1;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_DELAY);
	ck_assert_uint_eq(result.bytes, 4 * CHUNK);
}
END_TEST

START_TEST(delay_for_a_while_is_waited_for)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	struct ssc_copy_engine_stats stats;
	uint64_t begin = ssc_clock_now_ns(), took;

	kinds(_i & 7);
	*(_i & 8 ? &src.delay_at : &dst.delay_at) = 6 * CHUNK + 5;
	*(_i & 8 ? &src.n_delays : &dst.n_delays) = 5;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.patience_ns = 10 * SSC_NS_PER_S;
	result = copy_unit_copy(&spec);
	took = ssc_clock_now_ns() - begin;
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, SIZE);
	ssc_copy_engine_stats(engine, &stats);
	ck_assert_uint_eq(stats.retries, 5);
	ck_assert_uint_ge(took, (10 + 20 + 40 + 80 + 160) * SSC_NS_PER_MS);
	ck_assert_uint_lt(took, 2 * SSC_NS_PER_S);
}
END_TEST

START_TEST(delay_for_ever_ends_with_the_patience)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	struct ssc_copy_engine_stats stats;
	uint64_t begin = ssc_clock_now_ns(), took;

	kinds(_i & 3);
	*(_i & 4 ? &src.delay_at : &dst.delay_at) = 2 * CHUNK + 5;
	*(_i & 4 ? &src.n_delays : &dst.n_delays) = UINT32_MAX;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.patience_ns = 3 * SSC_NS_PER_S;
	result = copy_unit_copy(&spec);
	took = ssc_clock_now_ns() - begin;
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_DELAY);
	ck_assert_uint_eq(result.bytes, 2 * CHUNK);
	ck_assert_uint_ge(took, 3 * SSC_NS_PER_S);
	ck_assert_uint_lt(took, 5 * SSC_NS_PER_S);
	ssc_copy_engine_stats(engine, &stats);
	/* 10 ms, doubled to 1 s: 7 of them are 1.27 s, then each second. */
	ck_assert_uint_ge(stats.retries, 6);
	ck_assert_uint_le(stats.retries, 12);
}
END_TEST

START_TEST(an_error_elsewhere_ends_the_waiting)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	uint64_t begin = ssc_clock_now_ns();

	kinds(_i);
	src.delay_at = CHUNK;
	src.n_delays = UINT32_MAX;
	dst.fail_write_at = 2 * CHUNK;
	dst.fail_status = 28;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.patience_ns = UINT64_MAX;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, 28);
	ck_assert_uint_eq(result.bytes, CHUNK);
	ck_assert_uint_lt(ssc_clock_now_ns() - begin, SSC_NS_PER_S);
}
END_TEST

START_TEST(one_slow_chunk_does_not_let_the_copy_run_away)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(8 * MIB, 0);
	copy_unit_fill(&src, 0, 8 * MIB, 1);
	kinds(_i);
	src.delay_at = 0;
	src.n_delays = UINT32_MAX;
	spec = copy_unit_spec(0, 0, 8 * MIB);
	spec.patience_ns = 2 * SSC_NS_PER_S;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_DELAY);
	ck_assert_uint_eq(result.bytes, 0);
	ck_assert_uint_le(dst.write_end, 17 * CHUNK); /* four windows of four */
}
END_TEST

START_TEST(a_commit_is_waited_for_too)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	bool is_for_ever = _i & 4;

	kinds(_i & 3);
	fake_file_can_commit(&dst);
	dst.n_commit_delays = is_for_ever ? UINT32_MAX : 3;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.commit = true;
	spec.patience_ns = SSC_NS_PER_S;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, SIZE);
	ck_assert_uint_eq(result.commit_status, is_for_ever ? SSC_NFS4ERR_DELAY : SSC_NFS4_OK);
}
END_TEST

/* ---- cancelling ---- */

START_TEST(cancel_lets_what_is_in_flight_end)
{
	struct ssc_copy_spec spec;
	struct copy_run run;

	src.crew = crew;
	fake_crew_hold(crew, true);
	spec = copy_unit_spec(0, 0, SIZE);
	copy_unit_start(&run, &spec);
	ck_assert_uint_eq(fake_crew_waiting(crew), 4);
	ssc_copy_cancel(run.copy);
	ck_assert(!copy_unit_wait(&run.is_done, 20));
	fake_crew_hold(crew, false);
	copy_unit_finish(&run);
	copy_unit_verify(&run);
	copy_unit_fini(&run);
	ck_assert(run.result.is_stopped);
	ck_assert_uint_eq(run.result.bytes, 4 * CHUNK);
	ck_assert_uint_eq(src.n_reads, 4);
}
END_TEST

START_TEST(cancel_ends_the_waiting_for_a_transient_error)
{
	struct ssc_copy_spec spec;
	struct copy_run run;

	kinds(_i & 7);
	*(_i & 8 ? &src.delay_at : &dst.delay_at) = 0;
	*(_i & 8 ? &src.n_delays : &dst.n_delays) = UINT32_MAX;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.patience_ns = UINT64_MAX;
	copy_unit_start(&run, &spec);
	ck_assert(!copy_unit_wait(&run.is_done, 20));
	ssc_copy_cancel(run.copy);
	ck_assert(copy_unit_wait_by(&run.is_done, 5000, 0)); /* no timer fires */
	sem_post(&run.is_done);
	copy_unit_finish(&run);
	copy_unit_verify(&run);
	copy_unit_fini(&run);
	ck_assert(run.result.is_stopped);
	ck_assert_uint_eq(run.result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(run.result.bytes, 0);
}
END_TEST

START_TEST(cancel_ends_the_waiting_for_a_commit)
{
	struct ssc_copy_spec spec;
	struct copy_run run;

	kinds(_i);
	fake_file_can_commit(&dst);
	dst.n_commit_delays = UINT32_MAX;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.commit = true;
	spec.patience_ns = UINT64_MAX;
	copy_unit_start(&run, &spec);
	ck_assert(!copy_unit_wait(&run.is_done, 20));
	ssc_copy_cancel(run.copy);
	copy_unit_finish(&run);
	copy_unit_fini(&run);
	ck_assert_uint_eq(run.result.bytes, SIZE);
	ck_assert(!run.result.is_stopped);
	ck_assert_uint_eq(run.result.commit_status, SSC_NFS4ERR_DELAY);
}
END_TEST

/* The source is at its end, but the size of its zeros could not be given: the end is not the count's. */
START_TEST(cancel_takes_back_zeros_that_were_not_made_real)
{
	struct ssc_copy_spec spec;
	struct copy_run run;

	kinds(_i);
	memset(src.data + CHUNK, 0, SIZE - CHUNK);
	dst.delay_at = SIZE - 1;
	dst.n_delays = UINT32_MAX;
	spec = copy_unit_spec(0, 0, 2 * SIZE);
	spec.patience_ns = UINT64_MAX;
	copy_unit_start(&run, &spec);
	ck_assert(!copy_unit_wait(&run.is_done, 20));
	ck_assert_uint_eq(ssc_copy_progress(run.copy), CHUNK);
	ssc_copy_cancel(run.copy);
	copy_unit_finish(&run);
	copy_unit_verify(&run);
	copy_unit_fini(&run);
	ck_assert_uint_eq(run.result.bytes, CHUNK);
	ck_assert(run.result.is_stopped);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_delay");
	TCase *delays = tcase_create("delays");
	TCase *cancels = tcase_create("cancels");

	tcase_add_checked_fixture(delays, setup, teardown);
	tcase_add_loop_test(delays, without_patience_delay_is_an_error, 0, 16);
	tcase_add_loop_test(delays, delay_for_a_while_is_waited_for, 0, 16);
	tcase_add_loop_test(delays, delay_for_ever_ends_with_the_patience, 0, 8);
	tcase_add_loop_test(delays, an_error_elsewhere_ends_the_waiting, 0, 8);
	tcase_add_loop_test(delays, one_slow_chunk_does_not_let_the_copy_run_away, 0, 8);
	tcase_add_loop_test(delays, a_commit_is_waited_for_too, 0, 8);
	tcase_set_timeout(delays, 30);
	suite_add_tcase(suite, delays);
	tcase_add_checked_fixture(cancels, setup, teardown);
	tcase_add_test(cancels, cancel_lets_what_is_in_flight_end);
	tcase_add_loop_test(cancels, cancel_ends_the_waiting_for_a_transient_error, 0, 16);
	tcase_add_loop_test(cancels, cancel_ends_the_waiting_for_a_commit, 0, 8);
	tcase_add_loop_test(cancels, cancel_takes_back_zeros_that_were_not_made_real, 0, 8);
	tcase_set_timeout(cancels, 30);
	suite_add_tcase(suite, cancels);
	return unit_main(suite);
}
