/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_copy_random.c - random files, offsets, sizes, chunk sizes, kinds of file and faults: whatever
 * happens, the count is true and nothing else has changed.
 */
#include "copy_unit.h"

enum { SIZE_MAX_BYTES = 700 * KIB };

static uint64_t state;

static uint64_t draw(uint64_t n)
{
	return unit_random(&state) % n;
}

/* Sizes that lie near a border of blocks or chunks as often as not. */
static uint64_t draw_size(uint64_t max)
{
	uint64_t size = draw(max + 1);

	if (draw(2) == 0)
		size = size / 4096 * 4096 + draw(3) - 1;
	return size > max ? max : size;
}

static void draw_engine(void)
{
	static const uint32_t chunks[] = {4096, 10000, 65536, 128 * KIB, 200001, MIB};
	struct ssc_copy_engine_config cfg = copy_unit_config();

	cfg.chunk_bytes = chunks[draw(6)];
	cfg.inflight = 1 + draw(9);
	cfg.workers = 1 + draw(4);
	if (draw(4) == 0)
		cfg.inflight_bytes = draw(2 * MIB);
	copy_unit_engine(&cfg);
}

/* Pieces of data and holes; those that it knows, if it is to. */
static void draw_source(uint64_t size)
{
	struct fake_extent extents[64];
	unsigned int n = 0;
	uint64_t at = 0;

	while (at < size && n < 64) {
		uint64_t hole = draw(3) == 0 ? 0 : draw_size(200 * KIB);
		uint64_t data = 1 + draw_size(draw(2) == 0 ? 8 * KIB : 200 * KIB);

		if (hole > size - at)
			hole = size - at;
		at += hole;
		if (data > size - at)
			data = size - at;
		if (data == 0)
			break;
		copy_unit_fill(&src, at, at + data, state);
		extents[n++] = (struct fake_extent){at, at + data};
		at += data;
	}
	if (draw(2) == 0)
		fake_file_set_extents(&src, extents, n);
}

static void draw_files(struct fake_crew *crew)
{
	copy_unit_files(draw_size(SIZE_MAX_BYTES), draw(3) == 0 ? 0 : draw_size(SIZE_MAX_BYTES));
	draw_source(src.size);
	copy_unit_fill(&dst, 0, dst.size, ~state);
	copy_unit_block(draw(2), draw(2));
	src.crew = draw(2) ? crew : NULL;
	dst.crew = draw(2) ? crew : NULL;
	src.random = draw(2) ? state : 0;
	dst.random = draw(2) ? state + 1 : 0;
	src.hides_eof = draw(4) == 0;
	src.file.io_max = draw(3) == 0 ? 1 + draw(100 * KIB) : 0;
	dst.file.io_max = draw(3) == 0 ? 1000 + draw(100 * KIB) : 0;
	if (src.file.io_max != 0 && src.file.io_max < 1000)
		src.file.io_max += 1000;
	if (draw(2) == 0)
		fake_file_can_punch(&dst);
	dst.punch_status = draw(4) == 0 ? SSC_NFS4ERR_NOTSUPP : SSC_NFS4_OK;
	src.next_data_status = draw(8) == 0 ? SSC_NFS4ERR_IO : SSC_NFS4_OK;
	if (draw(2) == 0)
		fake_file_can_commit(&dst);
}

static struct ssc_copy_spec draw_spec(void)
{
	struct ssc_copy_spec spec = copy_unit_spec(draw(2) ? 0 : draw_size(src.size + 10),
						   draw(2) ? 0 : draw_size(SIZE_MAX_BYTES),
						   1 + draw_size(SIZE_MAX_BYTES));

	if (draw(4) == 0)
		spec.count = UINT64_MAX / 2;
	spec.commit = draw(2);
	return spec;
}

static void draw_faults(const struct ssc_copy_spec *spec)
{
	uint64_t count = spec->count < SIZE_MAX_BYTES ? spec->count : SIZE_MAX_BYTES;

	if (draw(3) == 0)
		src.fail_read_at = spec->src_offset + draw(count);
	if (draw(3) == 0)
		dst.fail_write_at = spec->dst_offset + draw(count);
	if (draw(8) == 0) {
		dst.zero_write_at = spec->dst_offset + draw(count);
		dst.n_zero_writes = 1 + draw(2);
	}
}

/* Up to where a copy without faults comes. */
static uint64_t wanted(const struct ssc_copy_spec *spec)
{
	uint64_t there = src.size > spec->src_offset ? src.size - spec->src_offset : 0;

	return there < spec->count ? there : spec->count;
}

static void check_good(const struct ssc_copy_spec *spec, const struct ssc_copy_result *result)
{
	ck_assert_uint_eq(result->status, SSC_NFS4_OK);
	ck_assert_uint_eq(result->bytes, wanted(spec));
	ck_assert_uint_eq(result->commit_status, SSC_NFS4_OK);
	if (result->bytes < spec->count)
		ck_assert(result->is_eof);
	if (result->bytes > 0 && dst.size > spec->dst_size)
		ck_assert_uint_eq(dst.size, spec->dst_offset + result->bytes);
	if (!spec->commit || result->bytes == 0)
		ck_assert_uint_eq(dst.n_commits, 0);
}

static void check_budget(void)
{
	struct ssc_copy_engine_stats stats;

	ssc_copy_engine_stats(engine, &stats);
	ck_assert_uint_eq(stats.inflight_bytes, 0);
	ck_assert_uint_eq(stats.running, 0);
}

START_TEST(every_layout_is_copied)
{
	struct fake_crew *crew;
	int round;

	state = unit_seed("every_layout_is_copied");
	crew = fake_crew_new(4, state);
	for (round = 0; copy_unit_goes_on(round, 400); round++) {
		struct ssc_copy_result result;
		struct ssc_copy_spec spec;

		draw_engine();
		draw_files(crew);
		spec = draw_spec();
		result = copy_unit_copy(&spec);
		check_good(&spec, &result);
		check_budget();
	}
	fake_crew_free(crew);
}
END_TEST

START_TEST(every_fault_leaves_a_true_count)
{
	struct fake_crew *crew;
	int round;

	state = unit_seed("every_fault_leaves_a_true_count");
	crew = fake_crew_new(4, state);
	for (round = 0; copy_unit_goes_on(round, 400); round++) {
		struct ssc_copy_result result;
		struct ssc_copy_spec spec;

		draw_engine();
		draw_files(crew);
		spec = draw_spec();
		draw_faults(&spec);
		result = copy_unit_copy(&spec);
		if (result.status == SSC_NFS4_OK)
			check_good(&spec, &result);
		else
			ck_assert_uint_lt(result.bytes, wanted(&spec));
		check_budget();
	}
	fake_crew_free(crew);
}
END_TEST

START_TEST(every_delay_is_waited_for)
{
	struct fake_crew *crew;
	int round;

	state = unit_seed("every_delay_is_waited_for");
	crew = fake_crew_new(4, state);
	for (round = 0; copy_unit_goes_on(round, 60); round++) {
		struct ssc_copy_result result;
		struct ssc_copy_spec spec;

		draw_engine();
		draw_files(crew);
		spec = draw_spec();
		spec.patience_ns = 3600 * SSC_NS_PER_S;
		src.delay_at = spec.src_offset + draw(wanted(&spec) + 1);
		src.n_delays = draw(3);
		dst.delay_at = spec.dst_offset + draw(wanted(&spec) + 1);
		dst.n_delays = draw(3);
		dst.n_commit_delays = draw(2);
		result = copy_unit_copy(&spec);
		check_good(&spec, &result);
		check_budget();
	}
	fake_crew_free(crew);
}
END_TEST

START_TEST(a_cancelled_copy_has_a_true_count)
{
	struct fake_crew *crew;
	int round;

	state = unit_seed("a_cancelled_copy_has_a_true_count");
	crew = fake_crew_new(4, state);
	for (round = 0; copy_unit_goes_on(round, 300); round++) {
		struct ssc_copy_spec spec;
		struct copy_run run;
		uint64_t spins, seen;

		draw_engine();
		draw_files(crew);
		spec = draw_spec();
		draw_faults(&spec);
		if (draw(4) == 0) {
			spec.patience_ns = UINT64_MAX;
			src.delay_at = spec.src_offset + draw(wanted(&spec) + 1);
			src.n_delays = UINT32_MAX;
			dst.delay_at = spec.dst_offset + draw(wanted(&spec) + 1);
			dst.n_delays = UINT32_MAX;
			dst.n_commit_delays = draw(2) ? UINT32_MAX : 0;
		}
		spins = draw(3) == 0 ? 0 : draw(20000);
		copy_unit_start(&run, &spec);
		while (spins-- > 0)
			atomic_signal_fence(memory_order_seq_cst);
		ssc_copy_cancel(run.copy);
		seen = ssc_copy_progress(run.copy);
		ssc_copy_cancel(run.copy);
		copy_unit_finish(&run);
		copy_unit_verify(&run);
		ck_assert_uint_le(seen, run.result.bytes);
		copy_unit_fini(&run);
		check_budget();
	}
	fake_crew_free(crew);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("copy_random");
	TCase *stress = tcase_create("stress");

	tcase_add_checked_fixture(stress, copy_unit_setup, copy_unit_teardown);
	tcase_add_test(stress, every_layout_is_copied);
	tcase_add_test(stress, every_fault_leaves_a_true_count);
	tcase_add_test(stress, every_delay_is_waited_for);
	tcase_add_test(stress, a_cancelled_copy_has_a_true_count);
	tcase_set_timeout(stress, 60);
	suite_add_tcase(suite, stress);
	return unit_main(suite);
}
