/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_faults.c - errors of all kinds, and files that do not do what they say.
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

/* ---- errors ---- */

/* Each loop: a chunk, and how far into it the fault is; for all kinds of files. */
static void each_error(int i, bool is_read)
{
	static const uint64_t within[] = {0, 5000, CHUNK - 1};
	uint64_t at = (uint64_t)i * CHUNK;
	unsigned int w;
	int kind;

	for (kind = 0; kind < 8; kind++) {
		for (w = 0; w < 3; w++) {
			struct ssc_copy_spec spec;
			struct ssc_copy_result result;

			copy_unit_files(SIZE, 0);
			copy_unit_fill(&src, 0, SIZE, 1);
			kinds(kind);
			*(is_read ? &src.fail_read_at : &dst.fail_write_at) = at + within[w];
			src.fail_status = dst.fail_status = 28; /* NFS4ERR_NOSPC */
			spec = copy_unit_spec(0, 0, SIZE);
			result = copy_unit_copy(&spec);
			ck_assert_uint_eq(result.status, 28);
			ck_assert_uint_eq(result.bytes, at + within[w]);
		}
	}
}

START_TEST(a_read_error_ends_the_count_where_it_is)
{
	each_error(_i, true);
}
END_TEST

START_TEST(a_write_error_ends_the_count_where_it_is)
{
	each_error(_i, false);
}
END_TEST

START_TEST(the_lowest_error_is_the_copys)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	kinds(_i);
	src.fail_read_at = 3 * CHUNK;
	src.fail_status = SSC_NFS4ERR_IO;
	dst.fail_write_at = 2 * CHUNK + 17;
	dst.fail_status = 28;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, 28);
	ck_assert_uint_eq(result.bytes, 2 * CHUNK + 17);
}
END_TEST

START_TEST(an_error_beyond_the_end_is_none)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	kinds(_i);
	src.fail_read_at = SIZE + CHUNK;
	spec = copy_unit_spec(0, 0, UINT64_MAX);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, SIZE);
	ck_assert(result.is_eof);
}
END_TEST

START_TEST(a_write_that_moves_nothing_is_tried_once_more)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	kinds(_i);
	dst.zero_write_at = 3 * CHUNK;
	dst.n_zero_writes = 1;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4_OK);
	ck_assert_uint_eq(result.bytes, SIZE);
}
END_TEST

START_TEST(a_write_that_moves_nothing_twice_is_an_error)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	kinds(_i);
	dst.zero_write_at = 3 * CHUNK;
	dst.n_zero_writes = UINT32_MAX;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_IO);
	ck_assert_uint_eq(result.bytes, 3 * CHUNK);
}
END_TEST

START_TEST(what_was_written_before_an_error_is_committed)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	bool is_first = _i & 8;

	kinds(_i & 7);
	fake_file_can_commit(&dst);
	dst.fail_write_at = is_first ? 0 : CHUNK;
	spec = copy_unit_spec(0, 0, SIZE);
	spec.commit = true;
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_IO);
	ck_assert_uint_eq(dst.n_commits, is_first ? 0 : 1);
	ck_assert_uint_eq(result.commit_status, SSC_NFS4_OK);
}
END_TEST

/* ---- zeros that count must be there ---- */

START_TEST(zeros_before_an_error_count_only_with_their_size)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(SIZE, 0);
	copy_unit_fill(&src, 0, 100, 1);
	kinds(_i);
	src.fail_read_at = 5 * CHUNK + 3;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_IO);
	ck_assert_uint_eq(result.bytes, 5 * CHUNK + 3);
	ck_assert_uint_eq(dst.size, 5 * CHUNK + 3);
	ck_assert_uint_lt(dst.bytes_written, CHUNK);
}
END_TEST

START_TEST(a_size_that_cannot_be_given_takes_the_zeros_back)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(SIZE, 0);
	copy_unit_fill(&src, 0, 3 * CHUNK, 1);
	kinds(_i & 7);
	dst.fail_write_at = SIZE - 1;
	dst.fail_status = 28;
	if (_i & 8)
		fake_file_set_extents(&src, &(struct fake_extent){0, 3 * CHUNK}, 1);
	spec = copy_unit_spec(0, 0, 2 * SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, 28);
	/* The short write before the error has made all but one byte real. */
	ck_assert_uint_eq(result.bytes, SIZE - 1);
	ck_assert_uint_eq(dst.size, SIZE - 1);
}
END_TEST

START_TEST(a_size_that_cannot_be_given_at_all)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	copy_unit_files(SIZE, 0);
	copy_unit_fill(&src, 0, 3 * CHUNK, 1);
	kinds(_i);
	dst.fail_write_at = SIZE - 4096;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_IO);
	ck_assert_uint_eq(result.bytes, 3 * CHUNK);
	ck_assert_uint_eq(dst.size, 3 * CHUNK);
}
END_TEST

/* ---- files that lie ---- */

static uint32_t backward_next_data(struct ssc_copy_file *file, uint64_t offset, uint64_t *start,
				   uint64_t *end)
{
	(void)file;
	*start = offset / 2;
	*end = offset == 0 ? 4096 : offset; /* never gets on */
	return SSC_NFS4_OK;
}

START_TEST(a_source_that_lies_about_its_data_is_read)
{
	struct ssc_copy_spec spec;

	kinds(_i);
	src.ops.next_data = backward_next_data;
	spec = copy_unit_spec(0, 0, SIZE);
	ck_assert_uint_eq(copy_unit_copy(&spec).bytes, SIZE);
}
END_TEST

static void boasting_io(struct ssc_copy_file *file, struct ssc_copy_io *io)
{
	(void)file;
	io->complete(io, SSC_NFS4_OK, io->len + 1, false);
}

START_TEST(a_file_that_moves_more_than_it_was_asked_is_not_believed)
{
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;

	kinds(_i & 3);
	*(_i & 4 ? &src.ops.read : &dst.ops.write) = boasting_io;
	spec = copy_unit_spec(0, 0, SIZE);
	result = copy_unit_copy(&spec);
	ck_assert_uint_eq(result.status, SSC_NFS4ERR_SERVERFAULT);
	ck_assert_uint_eq(result.bytes, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_faults");
	TCase *errors = tcase_create("errors");

	tcase_add_checked_fixture(errors, setup, teardown);
	tcase_add_loop_test(errors, a_read_error_ends_the_count_where_it_is, 0, N_CHUNKS);
	tcase_add_loop_test(errors, a_write_error_ends_the_count_where_it_is, 0, N_CHUNKS);
	tcase_add_loop_test(errors, the_lowest_error_is_the_copys, 0, 8);
	tcase_add_loop_test(errors, an_error_beyond_the_end_is_none, 0, 8);
	tcase_add_loop_test(errors, a_write_that_moves_nothing_is_tried_once_more, 0, 8);
	tcase_add_loop_test(errors, a_write_that_moves_nothing_twice_is_an_error, 0, 8);
	tcase_add_loop_test(errors, what_was_written_before_an_error_is_committed, 0, 16);
	tcase_add_loop_test(errors, zeros_before_an_error_count_only_with_their_size, 0, 8);
	tcase_add_loop_test(errors, a_size_that_cannot_be_given_takes_the_zeros_back, 0, 16);
	tcase_add_loop_test(errors, a_size_that_cannot_be_given_at_all, 0, 8);
	tcase_add_loop_test(errors, a_source_that_lies_about_its_data_is_read, 0, 8);
	tcase_add_loop_test(errors, a_file_that_moves_more_than_it_was_asked_is_not_believed, 0, 8);
	tcase_set_timeout(errors, 30);
	suite_add_tcase(suite, errors);
	return unit_main(suite);
}
