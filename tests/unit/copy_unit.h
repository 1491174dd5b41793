/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_unit.h - an engine, two fake files, one copy between them, and what must be true after it.
 *
 * The clock is the fake one; waiting for a copy moves it 20 ms per real one or so.
 */
#ifndef SSC_COPY_UNIT_H
#define SSC_COPY_UNIT_H

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fake_clock.h"
#include "fake_file.h"
#include "ssc/clock.h"
#include "ssc/nfs42.h"
#include "unit.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* One copy on its way. */
struct copy_run {
	struct ssc_copy *copy;
	struct ssc_copy_spec spec;
	struct ssc_copy_result result;
	sem_t is_done;
	atomic_uint n_done;
	pthread_t starter;
	atomic_bool is_starting;
	atomic_bool was_within; /* done came within start */
	uint8_t *before;        /* the destination as it was */
	uint64_t before_size;
};

static struct ssc_timers *timers;
static struct ssc_copy_engine *engine;
static struct fake_file src, dst;

static inline struct ssc_copy_engine_config copy_unit_config(void)
{
	return (struct ssc_copy_engine_config){
		.workers = 3,
		.chunk_bytes = 128 * KIB,
		.inflight = 4,
		.inflight_bytes = 16 * MIB,
		.timers = timers,
		.worker_begin = fake_file_worker_begin,
		.worker_end = fake_file_worker_end,
	};
}

static inline void copy_unit_engine(const struct ssc_copy_engine_config *cfg)
{
	ssc_copy_engine_free(engine);
	engine = ssc_copy_engine_new(cfg);
	ck_assert_ptr_nonnull(engine);
}

static inline void copy_unit_setup(void)
{
	struct ssc_copy_engine_config cfg;

	fake_clock_start(SSC_NS_PER_S);
	timers = ssc_timers_new();
	ck_assert_ptr_nonnull(timers);
	cfg = copy_unit_config();
	engine = NULL;
	copy_unit_engine(&cfg);
	fake_file_init(&src, 0);
	fake_file_init(&dst, 0);
}

static inline void copy_unit_teardown(void)
{
	ssc_copy_engine_free(engine);
	ssc_timers_free(timers);
	fake_file_fini(&src);
	fake_file_fini(&dst);
	fake_clock_stop();
}

/* Other files of new sizes in place of the two. */
static inline void copy_unit_files(uint64_t src_size, uint64_t dst_size)
{
	fake_file_fini(&src);
	fake_file_fini(&dst);
	fake_file_init(&src, src_size);
	fake_file_init(&dst, dst_size);
}

/* Nowhere zero, and no two blocks alike. */
static inline void copy_unit_fill(struct fake_file *f, uint64_t from, uint64_t to, uint64_t seed)
{
	uint64_t state = seed, word = 0, i;

	for (i = from; i < to; i++) {
		word = i % 8 == 0 || i == from ? unit_random(&state) : word >> 8;
		f->data[i] = (uint8_t)word != 0 ? (uint8_t)word : 1;
	}
}

static inline struct ssc_copy_spec copy_unit_spec(uint64_t src_offset, uint64_t dst_offset,
						  uint64_t count)
{
	return (struct ssc_copy_spec){
		.src = &src.file,
		.dst = &dst.file,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.count = count,
		.dst_size = dst.size,
	};
}

static inline void copy_unit_done(struct ssc_copy *copy, void *ctx)
{
	struct copy_run *run = ctx;

	if (atomic_load(&run->is_starting) && pthread_equal(pthread_self(), run->starter))
		atomic_store(&run->was_within, true);
	ssc_copy_get_result(copy, &run->result);
	atomic_fetch_add(&run->n_done, 1);
	sem_post(&run->is_done);
}

static inline void copy_unit_start(struct copy_run *run, const struct ssc_copy_spec *spec)
{
	struct fake_file *to = (struct fake_file *)spec->dst;

	memset(run, 0, sizeof(*run));
	run->spec = *spec;
	run->spec.done = copy_unit_done;
	run->spec.ctx = run;
	run->before_size = to->size;
	run->before = malloc(to->size + 1);
	ck_assert_ptr_nonnull(run->before);
	memcpy(run->before, to->data, to->size);
	run->starter = pthread_self();
	sem_init(&run->is_done, 0, 0);
	atomic_store(&run->is_starting, true);
	run->copy = ssc_copy_start(engine, &run->spec);
	atomic_store(&run->is_starting, false);
}

/* At most so many real milliseconds, for each of which the fake clock goes on by @step_ms. */
static inline bool copy_unit_wait_by(sem_t *sem, unsigned int ms, unsigned int step_ms)
{
	for (; sem_trywait(sem) != 0; ms--) {
		struct timespec ts;

		if (ms == 0)
			return false;
		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += SSC_NS_PER_MS;
		if (ts.tv_nsec >= (long)SSC_NS_PER_S) {
			ts.tv_nsec -= (long)SSC_NS_PER_S;
			ts.tv_sec++;
		}
		if (sem_timedwait(sem, &ts) == 0)
			return true;
		fake_clock_advance(step_ms * SSC_NS_PER_MS);
	}
	return true;
}

static inline bool copy_unit_wait(sem_t *sem, unsigned int ms)
{
	return copy_unit_wait_by(sem, ms, 20);
}

static inline void copy_unit_finish(struct copy_run *run)
{
	ck_assert_msg(copy_unit_wait(&run->is_done, 20000), "a copy hangs");
	ssc_copy_put(run->copy);
	ck_assert_uint_eq(atomic_load(&run->n_done), 1);
	ck_assert(!atomic_load(&run->was_within));
}

static inline void copy_unit_fini(struct copy_run *run)
{
	sem_destroy(&run->is_done);
	free(run->before);
}

static inline uint8_t copy_unit_old(const struct copy_run *run, uint64_t at)
{
	return at < run->before_size ? run->before[at] : 0;
}

/* Byte by byte, without ck_assert: check writes a line for each. */
static inline void copy_unit_verify_bytes(const struct copy_run *run, uint64_t i, uint64_t end)
{
	const struct ssc_copy_spec *spec = &run->spec;
	const struct fake_file *from = (const struct fake_file *)spec->src;
	const struct fake_file *to = (const struct fake_file *)spec->dst;

	for (; i < end; i++) {
		bool is_in = i >= spec->dst_offset && i - spec->dst_offset < spec->count;
		uint64_t at = is_in ? spec->src_offset + (i - spec->dst_offset) : 0;
		bool is_copied = is_in && at < from->room && to->data[i] == from->data[at];

		if (!is_copied && is_in && i - spec->dst_offset < run->result.bytes)
			ck_abort_msg("byte %llu is not the source's", (unsigned long long)i);
		if (!is_copied && to->data[i] != copy_unit_old(run, i))
			ck_abort_msg("byte %llu is neither's", (unsigned long long)i);
	}
}

/* What holds however a copy has ended. Bytes of the range beyond the count are old or copied. */
static inline void copy_unit_verify(const struct copy_run *run)
{
	const struct ssc_copy_spec *spec = &run->spec;
	const struct fake_file *from = (const struct fake_file *)spec->src;
	const struct fake_file *to = (const struct fake_file *)spec->dst;
	const struct ssc_copy_result *result = &run->result;
	uint64_t good = result->bytes;

	ck_assert_uint_le(result->bytes, spec->count);
	if (result->bytes > 0)
		ck_assert_uint_ge(to->size, spec->dst_offset + result->bytes);
	ck_assert_uint_ge(to->size, run->before_size);
	/* What is right as a whole need not be looked at byte by byte. */
	if (good > 0 &&
	    (spec->src_offset + good > from->room ||
	     memcmp(to->data + spec->dst_offset, from->data + spec->src_offset, good) != 0))
		good = 0;
	copy_unit_verify_bytes(run, 0, spec->dst_offset < to->size ? spec->dst_offset : to->size);
	copy_unit_verify_bytes(run, spec->dst_offset + good, to->size);
	ck_assert_uint_eq(from->n_misplaced, 0);
	ck_assert_uint_eq(to->n_misplaced, 0);
	if (result->bytes < spec->count && result->status == SSC_NFS4_OK)
		ck_assert(result->is_eof != result->is_stopped);
	if (result->status != SSC_NFS4_OK)
		ck_assert(!result->is_stopped && !result->is_eof);
}

/* Run one copy to its end. */
static inline struct ssc_copy_result copy_unit_copy(const struct ssc_copy_spec *spec)
{
	struct copy_run run;

	copy_unit_start(&run, spec);
	copy_unit_finish(&run);
	copy_unit_verify(&run);
	copy_unit_fini(&run);
	return run.result;
}

/* For random loops: at most @max rounds, and at most two real seconds, which a slow machine needs. */
static inline bool copy_unit_goes_on(int round, int max)
{
	static struct timespec begin;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (round == 0)
		begin = now;
	return round < max && now.tv_sec - begin.tv_sec < 2;
}

static inline void copy_unit_block(bool src_blocks, bool dst_blocks)
{
	src.file.is_blocking = src_blocks;
	dst.file.is_blocking = dst_blocks;
}

#endif /* SSC_COPY_UNIT_H */
