/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_basic.c - copies that go well: what they ask of the files, and how they end.
 */
#include <pthread.h>

#include "copy_unit.h"

/* The four kinds of pairs: bit 0 the source blocks, bit 1 the destination. */
static void blocking_pair(int i)
{
	copy_unit_block(i & 1, i & 2);
}

static void sizes(uint64_t src_size, uint64_t dst_size)
{
	copy_unit_files(src_size, dst_size);
	copy_unit_fill(&src, 0, src_size, 1);
	copy_unit_fill(&dst, 0, dst_size, 2);
}

START_TEST(a_small_copy_asks_for_no_more_than_it_needs)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(4 * KIB, 0);
	blocking_pair(_i);
	fake_file_can_commit(&dst);
	spec = copy_unit_spec(0, 0, 4 * KIB);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 4 * KIB);
	ck_assert(result.is_eof); /* the read said so */
	ck_assert_uint_eq(src.n_reads, 1);
	ck_assert_uint_eq(dst.n_writes, 1);
	ck_assert_uint_eq(dst.n_commits, 0);
}
END_TEST

START_TEST(a_copy_that_wants_it_commits_once_at_the_end)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(MIB, 0);
	blocking_pair(_i);
	fake_file_can_commit(&dst);
	dst.commit_status = SSC_NFS4ERR_IO;
	spec = copy_unit_spec(0, 0, MIB);
	spec.commit = true;
	result = copy_unit_copy(&spec); /* the fake asserts that nothing else is in flight */
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, MIB);
	ck_assert_uint_eq(result.commit_status, SSC_NFS4ERR_IO);
	ck_assert_uint_eq(dst.n_commits, 1);
}
END_TEST

START_TEST(nothing_written_is_not_committed)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(10, 0);
	blocking_pair(_i);
	fake_file_can_commit(&dst);
	spec = copy_unit_spec(10, 0, 100);
	spec.commit = true;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 0);
	ck_assert(result.is_eof);
	ck_assert_uint_eq(dst.n_commits, 0);
	ck_assert_uint_eq(dst.n_writes, 0);
	ck_assert_uint_eq(dst.size, 0);
}
END_TEST

START_TEST(the_window_is_used_and_not_exceeded)
{
	struct fake_crew *crew = fake_crew_new(1, 1);
	struct copy_run run;
	struct ssc_copy_spec spec;

	sizes(4 * MIB, 0);
	src.crew = crew;
	fake_crew_hold(crew, true);
	spec = copy_unit_spec(0, 0, 4 * MIB);
	copy_unit_start(&run, &spec);
	ck_assert_uint_eq(fake_crew_waiting(crew), 4); /* submitted by start itself */
	fake_crew_hold(crew, false);
	copy_unit_finish(&run);
	copy_unit_verify(&run);
	copy_unit_fini(&run);
	ck_assert_uint_eq(run.result.bytes, 4 * MIB);
	ck_assert_uint_eq(src.peak_running, 4);
	ck_assert_uint_eq(src.longest_io, 128 * KIB);
	ck_assert_uint_eq(src.n_reads, 32);
	fake_crew_free(crew);
}
END_TEST

START_TEST(both_sides_bound_the_chunk)
{
	struct ssc_copy_spec spec;

	sizes(MIB, 0);
	blocking_pair(_i);
	src.file.io_max = 64 * KIB;
	dst.file.io_max = 32 * KIB;
	spec = copy_unit_spec(0, 0, MIB);
	ck_assert_uint_eq(copy_unit_copy(&spec).bytes, MIB);
	ck_assert_uint_eq(src.longest_io, 32 * KIB);
	ck_assert_uint_eq(dst.longest_io, 32 * KIB);
}
END_TEST

START_TEST(chunks_do_not_share_blocks_of_the_destination)
{
	struct ssc_copy_spec spec;

	sizes(MIB, 0);
	blocking_pair(_i);
	spec = copy_unit_spec(0, 1000, MIB);
	ck_assert_uint_eq(copy_unit_copy(&spec).bytes, MIB);
	ck_assert_uint_eq(src.n_reads, 9); /* the first is 1000 bytes short of a chunk */
	ck_assert_uint_eq(dst.n_writes, 9);
}
END_TEST

START_TEST(a_count_beyond_the_source_ends_with_it)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(300 * KIB + 1, 10);
	blocking_pair(_i & 3);
	src.hides_eof = _i & 4;
	spec = copy_unit_spec(1, 5, UINT64_MAX - 5);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 300 * KIB);
	ck_assert(result.is_eof);
	ck_assert(!result.is_stopped);
	ck_assert_uint_eq(dst.size, 300 * KIB + 5);
	ck_assert_uint_eq(dst.write_end, 300 * KIB + 5);
}
END_TEST

START_TEST(a_source_cut_meanwhile_gives_a_clean_prefix)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(MIB, 0);
	blocking_pair(_i);
	src.shrink_at = 600 * KIB;
	src.shrink_to = 500 * KIB;
	spec = copy_unit_spec(0, 0, MIB);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert(result.is_eof);
	/* Blocks read before the cut may be there, so up to the chunk that met it. */
	ck_assert_uint_ge(result.bytes, 500 * KIB);
	ck_assert_uint_le(result.bytes, 512 * KIB);
}
END_TEST

START_TEST(two_ranges_of_one_file)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(MIB, 0);
	blocking_pair(_i & 1);
	spec = copy_unit_spec(3, 600 * KIB, 500 * KIB);
	spec.dst = &src.file;
	spec.dst_size = src.size;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 500 * KIB);
	ck_assert(memcmp(src.data + 3, src.data + 600 * KIB, 500 * KIB) == 0);
}
END_TEST

/* ---- holes ---- */

START_TEST(known_holes_are_neither_read_nor_written)
{
	static const struct fake_extent extents[] = {{0, 4 * KIB},
						     {300 * KIB, 304 * KIB},
						     {900 * KIB, 910 * KIB}};
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(MIB, 0);
	blocking_pair(_i);
	copy_unit_fill(&src, 0, 4 * KIB, 1);
	copy_unit_fill(&src, 300 * KIB, 304 * KIB, 1);
	/* The last piece is zeros that are data: they stay data. */
	fake_file_set_extents(&src, extents, 3);
	spec = copy_unit_spec(0, 0, 10 * MIB);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, MIB);
	ck_assert(result.is_eof);
	ck_assert_uint_eq(src.bytes_read, 18 * KIB);
	ck_assert_uint_eq(dst.bytes_written, 22 * KIB); /* the last block gives the size */
	ck_assert_uint_eq(dst.size, MIB);
	ck_assert_uint_eq(src.n_next_data, 4);
}
END_TEST

START_TEST(a_count_that_ends_in_a_known_hole)
{
	static const struct fake_extent extents[] = {{0, 4 * KIB}, {900 * KIB, 910 * KIB}};
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(MIB, 0);
	blocking_pair(_i);
	copy_unit_fill(&src, 0, 4 * KIB, 1);
	fake_file_set_extents(&src, extents, 2);
	spec = copy_unit_spec(0, 7, 500001);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.bytes, 500001);
	ck_assert(!result.is_eof && !result.is_stopped);
	ck_assert_uint_eq(dst.size, 500008);
	ck_assert_uint_lt(dst.bytes_written, 9 * KIB);
}
END_TEST

START_TEST(a_source_that_is_one_hole)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(MIB, 0);
	blocking_pair(_i);
	fake_file_set_extents(&src, NULL, 0);
	fake_file_can_commit(&dst);
	spec = copy_unit_spec(100, 0, UINT64_MAX / 2);
	spec.commit = true;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.bytes, MIB - 100);
	ck_assert(result.is_eof);
	ck_assert_uint_eq(src.n_reads, 0);
	ck_assert_uint_eq(dst.n_writes, 1);
	ck_assert_uint_eq(dst.n_commits, 1);
	ck_assert_uint_eq(dst.size, MIB - 100);
}
END_TEST

/* Beyond its size nothing is done, within it the old bytes must go. */
START_TEST(known_holes_within_the_destination)
{
	static const struct fake_extent extents[] = {{0, 4 * KIB}};
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	bool can_punch = _i & 4, refuses = _i & 8;

	copy_unit_files(2 * MIB, 0);
	fake_file_fini(&dst);
	fake_file_init(&dst, MIB);
	copy_unit_fill(&dst, 0, MIB, 2);
	copy_unit_fill(&src, 0, 4 * KIB, 1);
	fake_file_set_extents(&src, extents, 1);
	blocking_pair(_i & 3);
	if (can_punch)
		fake_file_can_punch(&dst);
	dst.punch_status = refuses ? SSC_NFS4ERR_NOTSUPP : SSC_NFS4_OK;
	spec = copy_unit_spec(0, 0, 2 * MIB);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 2 * MIB);
	ck_assert_uint_eq(dst.size, 2 * MIB);
	ck_assert_uint_eq(src.bytes_read, 4 * KIB);
	if (can_punch && !refuses)
		ck_assert_uint_le(dst.bytes_written, 8 * KIB);
	else
		ck_assert_uint_eq(dst.bytes_written, MIB + 4 * KIB);
}
END_TEST

START_TEST(zeros_are_found_in_a_source_that_knows_no_holes)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(4 * MIB, 0);
	blocking_pair(_i);
	copy_unit_fill(&src, 0, 4 * KIB, 1);
	copy_unit_fill(&src, 2 * MIB, 2 * MIB + 10, 1);
	spec = copy_unit_spec(0, 0, 4 * MIB);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 4 * MIB);
	ck_assert_uint_eq(src.bytes_read, 4 * MIB);
	ck_assert_uint_eq(dst.size, 4 * MIB);
	ck_assert_uint_le(dst.bytes_written, 12 * KIB);
}
END_TEST

START_TEST(zeros_within_the_destination_are_written_or_punched)
{
	struct ssc_copy_spec spec;
	bool can_punch = _i & 4;

	copy_unit_files(MIB, 0);
	fake_file_fini(&dst);
	fake_file_init(&dst, 500 * KIB);
	copy_unit_fill(&dst, 0, 500 * KIB, 2);
	blocking_pair(_i & 3);
	copy_unit_fill(&src, 0, 4 * KIB, 1);
	if (can_punch)
		fake_file_can_punch(&dst);
	spec = copy_unit_spec(0, 0, MIB);
	ck_assert_uint_eq(copy_unit_copy(&spec).bytes, MIB);
	ck_assert_uint_eq(dst.size, MIB);
	if (can_punch)
		ck_assert_uint_lt(dst.bytes_written, 64 * KIB);
	else
		ck_assert_uint_eq(dst.bytes_written, 504 * KIB);
}
END_TEST

/* ---- ends before the end ---- */

START_TEST(a_slice_stops_when_its_time_is_over)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	sizes(MIB, 0);
	blocking_pair(_i);
	spec = copy_unit_spec(0, 0, MIB);
	spec.stop_ns = ssc_clock_now_ns(); /* over already: one chunk all the same */
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, 128 * KIB);
	ck_assert(result.is_stopped);
	ck_assert(!result.is_eof);
	spec = copy_unit_spec(result.bytes, result.bytes, MIB);
	spec.stop_ns = ssc_clock_now_ns() + SSC_NS_PER_S;
	ck_assert_uint_eq(copy_unit_copy(&spec).bytes, MIB - 128 * KIB);
}
END_TEST

START_TEST(a_copy_that_is_done_can_still_be_asked)
{
	struct copy_run run;
	struct ssc_copy_result again;
	struct ssc_copy_spec spec;

	sizes(MIB, 0);
	blocking_pair(_i);
	spec = copy_unit_spec(0, 0, MIB);
	copy_unit_start(&run, &spec);
	ck_assert(copy_unit_wait(&run.is_done, 20000));
	ssc_copy_cancel(run.copy);
	ck_assert_uint_eq(ssc_copy_progress(run.copy), MIB);
	ssc_copy_get_result(run.copy, &again);
	ck_assert_uint_eq(again.bytes, MIB);
	ck_assert(!again.is_stopped);
	ssc_copy_put(run.copy);
	ck_assert_uint_eq(atomic_load(&run.n_done), 1);
	copy_unit_fini(&run);
}
END_TEST

/* ---- files that are only numbers ---- */

static _Atomic uint64_t n_null_reads, n_null_bytes;

static void null_io(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	uint32_t i;

	(void)file;
	n_null_reads += !io->is_write;
	if (io->is_write)
		n_null_bytes += io->len;
	for (i = 0; !io->is_write && i < io->len; i += 32 * KIB)
		((uint8_t *)io->data)[i] = 1; /* nowhere zeros enough */
	io->complete(io, SSC_NFS4_OK, io->len, false);
}

#define TIB (1ull << 40)

/* 4 KiB of data at the beginning of each of 8 TiB. */
static uint32_t null_next_data(struct ssc_copy_file *file, uint64_t offset, uint64_t *start,
			       uint64_t *end)
{
	(void)file;
	*start = offset % TIB < 4 * KIB ? offset : (offset / TIB + 1) * TIB;
	*end = *start / TIB * TIB + 4 * KIB;
	if (*start >= 8 * TIB)
		*start = *end = offset > 8 * TIB ? offset : 8 * TIB;
	return SSC_NFS4_OK;
}

static uint32_t null_punch(struct ssc_copy_file *file, uint64_t offset, uint64_t len)
{
	(void)file;
	(void)offset;
	(void)len;
	return SSC_NFS4_OK;
}

static const struct ssc_copy_file_ops null_ops = {.read = null_io, .write = null_io},
				      hole_ops = {.read = null_io,
						  .write = null_io,
						  .next_data = null_next_data,
						  .punch = null_punch};

/* The time a copy takes follows the data: chunk by chunk this would take hours. */
START_TEST(huge_holes_cost_nothing)
{
	struct ssc_copy_file from = {.ops = &hole_ops, .is_blocking = _i & 1}, to = from;
	struct copy_run run = {.spec = {0}};
	struct ssc_copy_spec spec = {.src = &from,
				     .dst = &to,
				     .count = UINT64_MAX,
				     .dst_size = _i & 2 ? 16 * TIB : 0,
				     .done = copy_unit_done,
				     .ctx = &run};

	n_null_reads = n_null_bytes = 0;
	sem_init(&run.is_done, 0, 0);
	run.copy = ssc_copy_start(engine, &spec);
	copy_unit_finish(&run);
	copy_unit_fini(&run);
	ck_assert_uint_eq(run.result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(run.result.bytes, 8 * TIB);
	ck_assert(run.result.is_eof);
	ck_assert_uint_eq(n_null_reads, 8);
	ck_assert_uint_eq(n_null_bytes, 8 * 4 * KIB + (_i & 2 ? 0 : 4 * KIB));
}
END_TEST

/* ---- depth ---- */

static void *copy_ten_gib(void *arg)
{
	static struct ssc_copy_file from, to;
	struct ssc_copy_spec spec = {.src = &from, .dst = &to, .count = 10ull << 30};
	struct copy_run *run = arg;

	from = to = (struct ssc_copy_file){.ops = &null_ops};
	spec.done = copy_unit_done;
	spec.ctx = run;
	run->copy = ssc_copy_start(engine, &spec);
	return NULL;
}

START_TEST(ten_gib_completed_within_the_calls_need_little_stack)
{
	struct copy_run run = {.spec = {0}};
	pthread_attr_t attr;
	pthread_t thread;

	n_null_reads = n_null_bytes = 0;
	sem_init(&run.is_done, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * KIB);
	ck_assert_int_eq(pthread_create(&thread, &attr, copy_ten_gib, &run), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	copy_unit_finish(&run);
	copy_unit_fini(&run);
	ck_assert_uint_eq(run.result.bytes, 10ull << 30);
	ck_assert_uint_eq(n_null_bytes, 10ull << 30);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_basic");
	TCase *plain = tcase_create("plain");
	TCase *holes = tcase_create("holes");
	TCase *ends = tcase_create("ends");

	tcase_add_checked_fixture(plain, copy_unit_setup, copy_unit_teardown);
	tcase_add_loop_test(plain, a_small_copy_asks_for_no_more_than_it_needs, 0, 4);
	tcase_add_loop_test(plain, a_copy_that_wants_it_commits_once_at_the_end, 0, 4);
	tcase_add_loop_test(plain, nothing_written_is_not_committed, 0, 4);
	tcase_add_test(plain, the_window_is_used_and_not_exceeded);
	tcase_add_loop_test(plain, both_sides_bound_the_chunk, 0, 4);
	tcase_add_loop_test(plain, chunks_do_not_share_blocks_of_the_destination, 0, 4);
	tcase_add_loop_test(plain, a_count_beyond_the_source_ends_with_it, 0, 8);
	tcase_add_loop_test(plain, a_source_cut_meanwhile_gives_a_clean_prefix, 0, 4);
	tcase_add_loop_test(plain, two_ranges_of_one_file, 0, 2);
	suite_add_tcase(suite, plain);
	tcase_add_checked_fixture(holes, copy_unit_setup, copy_unit_teardown);
	tcase_add_loop_test(holes, known_holes_are_neither_read_nor_written, 0, 4);
	tcase_add_loop_test(holes, a_count_that_ends_in_a_known_hole, 0, 4);
	tcase_add_loop_test(holes, a_source_that_is_one_hole, 0, 4);
	tcase_add_loop_test(holes, known_holes_within_the_destination, 0, 16);
	tcase_add_loop_test(holes, huge_holes_cost_nothing, 0, 4);
	tcase_add_loop_test(holes, zeros_are_found_in_a_source_that_knows_no_holes, 0, 4);
	tcase_add_loop_test(holes, zeros_within_the_destination_are_written_or_punched, 0, 8);
	suite_add_tcase(suite, holes);
	tcase_add_checked_fixture(ends, copy_unit_setup, copy_unit_teardown);
	tcase_add_loop_test(ends, a_slice_stops_when_its_time_is_over, 0, 4);
	tcase_add_loop_test(ends, a_copy_that_is_done_can_still_be_asked, 0, 4);
	tcase_add_test(ends, ten_gib_completed_within_the_calls_need_little_stack);
	tcase_set_timeout(ends, 30);
	suite_add_tcase(suite, ends);
	return unit_main(suite);
}
