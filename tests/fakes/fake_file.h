/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_file.h - a file in memory as one side of a copy, with a script of what goes wrong.
 *
 * Object     struct fake_file: bytes, data extents, script, what was asked of it. Fields of the script are
 *            set before the copy starts (or under lock); counts are read after it is over.
 *            struct fake_crew: threads that complete reads and writes later, in random order.
 * Threads    any. One mutex per file, never held while a completion runs.
 */
#ifndef SSC_FAKE_FILE_H
#define SSC_FAKE_FILE_H

#include <pthread.h>

#include "ssc/copy_engine.h"

#define FAKE_FILE_NEVER UINT64_MAX

struct fake_crew;

/** @brief @n threads; what they are given they complete in an order made of @seed. */
struct fake_crew *fake_crew_new(unsigned int n, uint64_t seed);

/** @brief After all was completed. NULL is allowed. */
void fake_crew_free(struct fake_crew *crew);

/** @brief Hold completions back, or let them go on: to have many in flight at once. */
void fake_crew_hold(struct fake_crew *crew, bool is_held);

/** @brief Completions that wait now. */
unsigned int fake_crew_waiting(struct fake_crew *crew);

struct fake_extent {
	uint64_t start, end;
};

struct fake_file {
	struct ssc_copy_file file; /* first */
	struct ssc_copy_file_ops ops;
	pthread_mutex_t lock;
	uint8_t *data;
	uint64_t size, room;
	uint8_t *was_written; /* per byte: 1 written, 2 punched, since the beginning; room of them */

	/* script */
	struct fake_crew *crew;               /* NULL: completes within the call */
	uint64_t random;                      /* not 0: short reads and writes of random lengths */
	bool hides_eof;                       /* the end shows only as 0 bytes */
	uint64_t fail_read_at, fail_write_at; /* the io that contains this offset ends before it,
						 then one that begins there fails with fail_status */
	uint32_t fail_status;
	uint32_t commit_status;
	uint64_t delay_at; /* ios that contain this offset get DELAY, n_delays times */
	unsigned int n_delays;
	unsigned int n_commit_delays;
	unsigned int n_zero_writes; /* writes that say OK and 0 bytes, at zero_write_at */
	uint64_t zero_write_at;
	uint64_t shrink_at, shrink_to; /* a read that contains shrink_at cuts the file first */
	struct fake_extent *extents;   /* with n_extents: what next_data says; sorted, not empty */
	unsigned int n_extents;
	uint32_t next_data_status, punch_status;

	/* what was asked of it, under lock */
	unsigned int n_reads, n_writes, n_commits, n_punches, n_next_data;
	uint64_t bytes_read, bytes_written;
	uint32_t longest_io;
	unsigned int n_running, peak_running; /* reads and writes not completed */
	unsigned int n_misplaced; /* calls of a blocking file outside of the engine's threads */
	uint64_t read_end, write_end;
};

void fake_file_init(struct fake_file *f, uint64_t size);
void fake_file_fini(struct fake_file *f);

/** @brief Let it know its holes. */
void fake_file_set_extents(struct fake_file *f, const struct fake_extent *extents, unsigned int n);

/** @brief Let it punch. */
void fake_file_can_punch(struct fake_file *f);

/** @brief Let it have a commit. */
void fake_file_can_commit(struct fake_file *f);

/** @brief For ssc_copy_engine_config: tells a blocking file who may call it. */
void fake_file_worker_begin(void);
void fake_file_worker_end(void);

#endif /* SSC_FAKE_FILE_H */
