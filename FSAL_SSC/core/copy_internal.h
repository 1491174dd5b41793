/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_internal.h - the parts of the copy engine among themselves.
 *
 * Parts      copy_engine.c  threads, turns, buffers; copy_here.c  what a thread has yet to do;
 *            copy_run.c  one copy from start to done; copy_plan.c  what begins next; copy_chunk.c  one
 *            chunk; copy_zero.c  zeros.
 * Chunk      PLANNED -> read, read on -> write, write on -> OVER. One thread at a time has it: who
 *            planned it, then who completed its io, or who took it from ready or delayed.
 * Positions  pos and everything named _pos count from the beginning of the range, 0 to count.
 * References of a copy: caller; the engine, until done has returned; its place in a queue of turns; a
 *            wake of the budget that has not been looked at; who goes on after a chunk is over. A
 *            chunk in flight keeps done away; from then on only the copy itself may be looked at,
 *            not its files.
 * Locks      copy.lock, then engine.lock or the budget's or the timers' (leaves). Neither is held
 *            while a file's function or done runs.
 */
#ifndef SSC_COPY_INTERNAL_H
#define SSC_COPY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "ssc/budget.h"
#include "ssc/copy_engine.h"

#define SSC_COPY_BLOCK_BYTES \
	4096 /* zeros are looked for in blocks of this, aligned in the destination */

/* A run of zeros shorter than this is written: a hole costs more calls than it saves. */
#define SSC_COPY_HOLE_MIN_BYTES 65536

/* The structure of @type whose @member is at @ptr. */
#define ssc_copy_of(ptr, type, member) ((type *)((uint8_t *)(ptr)-offsetof(type, member)))

static inline uint64_t ssc_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t ssc_max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- what a thread has yet to do (copy_here.c) ---- */

/* Something to run soon on this thread. Embedded in what it is about. */
struct ssc_copy_work {
	struct ssc_copy_work *next;
	void (*run)(struct ssc_copy_work *work);
};

/** @brief Run @work on this thread: now, or when the function that runs now has returned. */
void ssc_copy_here_run(struct ssc_copy_work *work) SSC_NONNULL;

/** @brief As ssc_copy_here_run, and let every copy that ends by it have its done on another thread. */
void ssc_copy_here_run_quietly(struct ssc_copy_work *work) SSC_NONNULL;

/** @brief Run @done on this thread when nothing else is left to do. False: not on this thread. */
bool ssc_copy_here_last(struct ssc_copy_work *done) SSC_NONNULL SSC_MUST_CHECK;

/** @brief This thread is a worker, files may block it. */
void ssc_copy_here_set_worker(void);
bool ssc_copy_here_is_worker(void);

/* ---- the engine (copy_engine.c) ---- */

struct ssc_copy_buffer {
	SLIST_ENTRY(ssc_copy_buffer) next;
	uint8_t *data;
	uint32_t bytes;
};

SLIST_HEAD(ssc_copy_buffers, ssc_copy_buffer);

struct ssc_copy_thread;

/* Copies that want a turn, and the threads that wait to give it. */
struct ssc_copy_queue {
	TAILQ_HEAD(, ssc_copy) copies;
	SLIST_HEAD(, ssc_copy_thread) idle;
};

struct ssc_copy_engine {
	/* constant */
	struct ssc_copy_engine_config cfg; /* made sane */
	struct ssc_budget *budget;
	uint8_t *zeros;   /* chunk_bytes of them, never written */
	uint32_t cost[2]; /* bytes of a small and of a large buffer */
	unsigned int n_threads;
	struct ssc_copy_thread *threads;

	/* atomic */
	_Atomic uint64_t n_copies, bytes_read, bytes_written, bytes_skipped, n_retries;

	pthread_mutex_t lock;
	/* guarded by lock */
	pthread_cond_t left; /* n_alive fell */
	unsigned int n_alive, n_running;
	bool is_stopping;
	struct ssc_copy_queue blocking,
		light; /* of copies with a file that blocks; of the others */
	struct ssc_copy_buffers spare[2];
	uint64_t buffer_bytes; /* in use and spare */
	uint64_t used_bytes, peak_bytes;
};

/** @brief A copy begins; the engine cannot be freed before it leaves. */
void ssc_copy_engine_enter(struct ssc_copy_engine *engine) SSC_NONNULL;

/** @brief It is over: no longer counted as running. */
void ssc_copy_engine_over(struct ssc_copy_engine *engine) SSC_NONNULL;

/** @brief It is freed. The engine may be gone when this returns. */
void ssc_copy_engine_leave(struct ssc_copy_engine *engine) SSC_NONNULL;

/** @brief What a buffer for @bytes takes of the budget. */
uint32_t ssc_copy_buffer_cost(struct ssc_copy_engine *engine, uint64_t bytes) SSC_NONNULL;

/** @brief A buffer of @cost bytes, which were taken from the budget. */
struct ssc_copy_buffer *ssc_copy_buffer_get(struct ssc_copy_engine *engine,
					    uint32_t cost) SSC_NONNULL;

/** @brief Give a buffer back, and its bytes to the budget. NULL is allowed. No lock is held. */
void ssc_copy_buffer_put(struct ssc_copy_engine *engine, struct ssc_copy_buffer *buffer);

/** @brief Let a thread of the engine's call ssc_copy_turn soon. Locks: the copy's may be held. */
void ssc_copy_engine_queue(struct ssc_copy *copy) SSC_NONNULL;

/* ---- one copy (copy_run.c) ---- */

enum ssc_copy_chunk_kind {
	SSC_COPY_CHUNK_DATA,  /* read, then written but for its zeros */
	SSC_COPY_CHUNK_ZERO,  /* a hole of the source, inside the destination */
	SSC_COPY_CHUNK_TAIL,  /* zeros that give the destination its size; written in any case */
	SSC_COPY_CHUNK_COMMIT /* has no range */
};

struct ssc_copy_chunk {
	struct ssc_copy_io io;
	struct ssc_copy_work work;
	/* of the thread that has it */
	struct ssc_copy *copy;
	struct ssc_copy_buffer *buffer; /* DATA only, until over */
	enum ssc_copy_chunk_kind kind;
	uint64_t pos, len;        /* len shrinks when the source or its readability ends within */
	uint64_t n_read, n_moved; /* moved: written, punched or skipped */
	uint64_t run_end;         /* n_moved up to here is all zeros or all to be written */
	bool run_is_zero;
	bool is_scanned;   /* for zeros */
	uint64_t wrote_to; /* end of the last write, in the destination */
	unsigned int n_stalls;
	uint64_t backoff_ns; /* 0: not waiting for a transient error */
	uint32_t status;     /* what completed */
	uint32_t bytes;
	bool eof;
	/* guarded by copy.lock */
	bool is_over;
	uint64_t due_ns;
	TAILQ_ENTRY(ssc_copy_chunk) in_order; /* copy.chunks or copy.spare */
	TAILQ_ENTRY(ssc_copy_chunk) in_wait;  /* copy.ready or copy.delayed */
};

TAILQ_HEAD(ssc_copy_chunks, ssc_copy_chunk);

enum ssc_copy_phase {
	SSC_COPY_MOVING, /* chunks begin, are in flight */
	SSC_COPY_TAIL,   /* the last zeros are being written */
	SSC_COPY_COMMIT, /* the commit is in flight */
	SSC_COPY_ENDED,  /* the result is there, done is to run */
	SSC_COPY_DONE    /* somebody runs it or has */
};

struct ssc_copy {
	/* constant */
	struct ssc_copy_engine *engine;
	struct ssc_copy_spec spec;
	uint32_t chunk_bytes;
	bool src_blocks, dst_blocks;

	_Atomic unsigned int refs;
	_Atomic uint64_t progress;
	_Atomic uint64_t delay_ns;      /* since when nothing but DELAY was heard; 0: not */
	struct ssc_copy_work go_work;   /* start only */
	struct ssc_copy_work done_work; /* once */
	struct ssc_copy_work wake_work; /* has_wake */
	atomic_bool has_wake;
	atomic_bool can_punch;   /* dst.punch was not refused yet */
	atomic_bool has_punched; /* and it worked once */
	struct ssc_timer timer;
	struct ssc_budget_waiter waiter;

	/* guarded by engine.lock */
	bool is_queued;
	TAILQ_ENTRY(ssc_copy) in_queue;

	pthread_mutex_t lock;
	/* guarded by lock */
	enum ssc_copy_phase phase;
	bool is_planning, plan_again; /* one thread plans at a time */
	bool is_waiting;              /* for the budget; its wake will come */
	bool must_leave;              /* the budget: it waited once */
	bool has_timer;               /* was armed once */
	bool is_stopping;             /* by stop_ns or cancel */
	bool is_cancelled;
	bool is_eof;
	bool has_written; /* commit is of use */
	bool knows_holes; /* src.next_data answers */
	uint32_t status;  /* of what lies at end_pos */
	uint32_t commit_status;
	unsigned int n_begun;
	unsigned int n_flight;           /* chunks that are not over */
	unsigned int n_listed;           /* in chunks */
	uint64_t plan_pos;               /* all before it is in chunks, or done */
	uint64_t end_pos;                /* nothing at or beyond it counts any more */
	uint64_t data_pos, data_end_pos; /* what next_data said last, when knows_holes */
	uint64_t real_end;               /* the destination has this size at least */
	uint64_t bytes;                  /* of the result, from COMMIT on */
	struct ssc_copy_chunks chunks;   /* in order, from the first that is not over */
	struct ssc_copy_chunks ready;    /* wait for a thread of the engine */
	struct ssc_copy_chunks delayed;  /* wait for the timer */
	struct ssc_copy_chunks spare;
	struct ssc_copy_chunk first; /* what a small copy needs */
};

/** @brief Do all that can be done on this thread now. The caller has a reference. Locks: none. */
void ssc_copy_go(struct ssc_copy *copy) SSC_NONNULL;

/** @brief One turn of a copy on a thread of the engine. */
void ssc_copy_turn(struct ssc_copy *copy) SSC_NONNULL;

/** @brief @chunk is over: count it, and do what follows. It is gone. Locks: none. */
void ssc_copy_chunk_over(struct ssc_copy_chunk *chunk) SSC_NONNULL;

/** @brief The copy ends at @pos, if no lower end is known, because of @status or @eof. */
void ssc_copy_end_at(struct ssc_copy *copy, uint64_t pos, uint32_t status, bool eof) SSC_NONNULL;

void ssc_copy_end_at_locked(struct ssc_copy *copy, uint64_t pos, uint32_t status,
			    bool eof) SSC_NONNULL;

/** @brief Whether @chunk, which could go on, shall not. Locks: none. */
bool ssc_copy_is_unwanted(struct ssc_copy_chunk *chunk) SSC_NONNULL;

/** @brief Punch a hole. False: write the zeros. On a worker, if the destination blocks. */
bool ssc_copy_punch(struct ssc_copy *copy, uint64_t offset, uint64_t len) SSC_NONNULL;

/** @brief Let a thread of the engine run @chunk. */
void ssc_copy_hop(struct ssc_copy_chunk *chunk) SSC_NONNULL;

/** @brief Run @chunk again later, after DELAY. False: patience is over. */
bool ssc_copy_delay(struct ssc_copy_chunk *chunk) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Bytes have moved: patience begins anew. */
void ssc_copy_moved(struct ssc_copy *copy) SSC_NONNULL;

/* ---- what begins next (copy_plan.c) ---- */

/** @brief Whether chunks are still to begin. Looks at the time. */
bool ssc_copy_plan_wants_locked(struct ssc_copy *copy) SSC_NONNULL;

/** @brief And whether one may begin now. */
bool ssc_copy_plan_can_locked(struct ssc_copy *copy) SSC_NONNULL;

/**
 * @brief The next chunk, or NULL when none can begin now.
 *
 * On a worker, if the source blocks and ssc_copy_plan_can_locked. Locks: drops the copy's meanwhile.
 */
struct ssc_copy_chunk *ssc_copy_plan_next_locked(struct ssc_copy *copy) SSC_NONNULL;

/** @brief A chunk in flight. DATA needs a buffer too. */
struct ssc_copy_chunk *ssc_copy_plan_chunk_locked(struct ssc_copy *copy,
						  enum ssc_copy_chunk_kind kind, uint64_t pos,
						  uint64_t len) SSC_NONNULL;

/** @brief Wait for the budget no more. */
void ssc_copy_plan_leave_locked(struct ssc_copy *copy) SSC_NONNULL;

/** @brief There is room in the budget: of the waiter and of wake_work. */
void ssc_copy_plan_wake(struct ssc_budget_waiter *waiter) SSC_NONNULL;
void ssc_copy_plan_wake_run(struct ssc_copy_work *work) SSC_NONNULL;

/* ---- one chunk (copy_chunk.c) ---- */

/** @brief Take the next step, on this thread or another. @chunk is not the caller's any more. */
void ssc_copy_chunk_run(struct ssc_copy_chunk *chunk) SSC_NONNULL;

/* ---- zeros (copy_zero.c) ---- */

/** @brief Whether @len bytes are all zero. True of none. */
bool ssc_copy_zero_is(const uint8_t *data, size_t len) SSC_NONNULL;

/**
 * @brief Length of the run that @data begins with: all zeros worth a hole, or bytes to be written.
 *
 * @at: where data[0] goes in the destination. Zeros are worth it from SSC_COPY_HOLE_MIN_BYTES on, or
 * when @len is at least a block and all of it. @len > 0.
 */
size_t ssc_copy_zero_run(const uint8_t *data, size_t len, uint64_t at, bool *is_zero) SSC_NONNULL;

#endif /* SSC_COPY_INTERNAL_H */
