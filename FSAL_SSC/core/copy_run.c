/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_run.c - one copy: which chunks begin, what they add up to, and how it ends.
 *
 *     MOVING -> TAIL -> COMMIT -> ENDED -> DONE
 *     MOVING  chunks begin as there is room: by one thread at a time (is_planning), on whatever
 *             thread, or in a turn if asking the source for its data or reading it blocks
 *     TAIL    none is in flight. If the count ends in zeros that were skipped, and nothing written
 *             gives the destination that size, the last block of them is written now
 *     COMMIT  the count is final
 *     ENDED   whoever comes by calls done, but a thread within start or cancel
 *
 * What ends the copy is a position: end_pos. It falls when a read meets the end or any io fails, and
 * the lowest decides on the status, so the order in which completions come does not matter. Chunks
 * at or beyond it are dropped at their next step; those below go on.
 *
 * DELAY      A chunk waits in delayed with its buffer. An error or cancel ends the waiting.
 * Locks      copy.lock. The budget's wake takes none: it may come within take and give.
 */
#include <stdlib.h>
#include <string.h>

#include "copy_internal.h"
#include "ssc/clock.h"
#include "ssc/nfs42.h"

#define RUN_AHEAD      4 /* windows: how many chunks may be listed beyond the first unfinished one */
#define BACKOFF_MIN_NS (10 * SSC_NS_PER_MS)
#define BACKOFF_MAX_NS SSC_NS_PER_S

/* ---- where it ends ---- */

static bool is_unwanted_locked(const struct ssc_copy *copy, const struct ssc_copy_chunk *chunk)
{
	if (chunk->backoff_ns != 0 && copy->is_cancelled)
		return true;
	if (chunk->kind > SSC_COPY_CHUNK_ZERO)
		return false;
	return chunk->pos + chunk->n_moved >= copy->end_pos ||
	       (chunk->backoff_ns != 0 && copy->status != SSC_NFS4_OK);
}

/* Those that wait for the timer and need not any more. */
static void wake_unwanted_locked(struct ssc_copy *copy)
{
	struct ssc_copy_chunk *chunk, *next;

	for (chunk = TAILQ_FIRST(&copy->delayed); chunk != NULL; chunk = next) {
		next = TAILQ_NEXT(chunk, in_wait);
		if (!is_unwanted_locked(copy, chunk))
			continue;
		TAILQ_REMOVE(&copy->delayed, chunk, in_wait);
		TAILQ_INSERT_TAIL(&copy->ready, chunk, in_wait);
	}
	if (!TAILQ_EMPTY(&copy->ready))
		ssc_copy_engine_queue(copy);
}

void ssc_copy_end_at_locked(struct ssc_copy *copy, uint64_t pos, uint32_t status, bool eof)
{
	if (pos > copy->end_pos)
		return;
	/* The last byte wanted may be the last there is; errors beyond that one are of no interest. */
	if (pos == copy->end_pos && !eof)
		return;
	copy->end_pos = pos;
	copy->status = status;
	copy->is_eof = eof;
	wake_unwanted_locked(copy);
}

void ssc_copy_end_at(struct ssc_copy *copy, uint64_t pos, uint32_t status, bool eof)
{
	pthread_mutex_lock(&copy->lock);
	ssc_copy_end_at_locked(copy, pos, status, eof);
	pthread_mutex_unlock(&copy->lock);
}

bool ssc_copy_is_unwanted(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;
	bool is_unwanted;

	pthread_mutex_lock(&copy->lock);
	is_unwanted = is_unwanted_locked(copy, chunk);
	if (is_unwanted && chunk->kind <= SSC_COPY_CHUNK_ZERO &&
	    chunk->pos + chunk->n_moved < copy->end_pos) {
		/* Given up while it waited; an error that made us do so stays the copy's. */
		copy->end_pos = chunk->pos + chunk->n_moved;
		copy->is_eof = false;
		wake_unwanted_locked(copy);
	}
	pthread_mutex_unlock(&copy->lock);
	return is_unwanted;
}

/* ---- counting ---- */

static uint64_t prefix_locked(const struct ssc_copy *copy)
{
	const struct ssc_copy_chunk *first = TAILQ_FIRST(&copy->chunks);

	return ssc_min64(first != NULL ? first->pos : copy->plan_pos, copy->end_pos);
}

/* Of the prefix, what lies within the size that the destination has by now. */
static uint64_t real_locked(const struct ssc_copy *copy)
{
	uint64_t offset = copy->spec.dst_offset;

	return ssc_min64(prefix_locked(copy),
			 copy->real_end > offset ? copy->real_end - offset : 0);
}

static void count_locked(struct ssc_copy *copy)
{
	uint64_t real = real_locked(copy);

	/* An end that was found below what was counted already does not take it back. */
	if (real > atomic_load_explicit(&copy->progress, memory_order_relaxed))
		atomic_store_explicit(&copy->progress, real, memory_order_relaxed);
}

void ssc_copy_chunk_over(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;

	atomic_fetch_add(&copy->refs, 1); /* with n_flight 0 others may end it */
	ssc_copy_buffer_put(copy->engine, chunk->buffer);
	pthread_mutex_lock(&copy->lock);
	copy->n_flight--;
	chunk->is_over = true;
	copy->real_end = ssc_max64(copy->real_end, chunk->wrote_to);
	copy->has_written = copy->has_written || chunk->wrote_to > 0;
	if (chunk->kind == SSC_COPY_CHUNK_COMMIT)
		copy->commit_status = chunk->status;
	if (chunk->kind > SSC_COPY_CHUNK_ZERO)
		TAILQ_INSERT_HEAD(&copy->spare, chunk, in_order);
	while ((chunk = TAILQ_FIRST(&copy->chunks)) != NULL && chunk->is_over) {
		TAILQ_REMOVE(&copy->chunks, chunk, in_order);
		TAILQ_INSERT_HEAD(&copy->spare, chunk, in_order);
		copy->n_listed--;
	}
	count_locked(copy);
	pthread_mutex_unlock(&copy->lock);
	ssc_copy_go(copy);
	ssc_copy_put(copy);
}

/* ---- steps that chunks ask for ---- */

bool ssc_copy_punch(struct ssc_copy *copy, uint64_t offset, uint64_t len)
{
	struct ssc_copy_file *dst = copy->spec.dst;

	if (!atomic_load(&copy->can_punch))
		return false;
	if (dst->ops->punch(dst, offset, len) != SSC_NFS4_OK) {
		/* If it is more than that it does not know how, writing will say so. */
		atomic_store(&copy->can_punch, false);
		return false;
	}
	atomic_store(&copy->has_punched, true);
	return true;
}

void ssc_copy_hop(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;

	pthread_mutex_lock(&copy->lock);
	TAILQ_INSERT_TAIL(&copy->ready, chunk, in_wait);
	ssc_copy_engine_queue(copy);
	pthread_mutex_unlock(&copy->lock);
}

void ssc_copy_moved(struct ssc_copy *copy)
{
	if (atomic_load_explicit(&copy->delay_ns, memory_order_relaxed) != 0)
		atomic_store_explicit(&copy->delay_ns, 0, memory_order_relaxed);
}

bool ssc_copy_delay(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;
	uint64_t now = ssc_clock_now_ns(), since, until;

	pthread_mutex_lock(&copy->lock);
	since = atomic_load_explicit(&copy->delay_ns, memory_order_relaxed);
	if (since == 0) {
		since = ssc_max64(now, 1);
		atomic_store_explicit(&copy->delay_ns, since, memory_order_relaxed);
	}
	until = since + ssc_min64(copy->spec.patience_ns, UINT64_MAX - since);
	if (now >= until) {
		pthread_mutex_unlock(&copy->lock);
		return false;
	}
	atomic_fetch_add_explicit(&copy->engine->n_retries, 1, memory_order_relaxed);
	chunk->backoff_ns = chunk->backoff_ns == 0
				    ? BACKOFF_MIN_NS
				    : ssc_min64(2 * chunk->backoff_ns, BACKOFF_MAX_NS);
	chunk->due_ns = ssc_min64(now + chunk->backoff_ns, until);
	TAILQ_INSERT_TAIL(&copy->delayed, chunk, in_wait);
	copy->has_timer = true;
	ssc_timer_arm_earlier(&copy->timer, chunk->due_ns);
	wake_unwanted_locked(copy);
	pthread_mutex_unlock(&copy->lock);
	return true;
}

/* On the timer's thread, so the work is left to others. */
static void timer_fire(struct ssc_timer *timer)
{
	struct ssc_copy *copy = ssc_copy_of(timer, struct ssc_copy, timer);
	uint64_t now = ssc_clock_now_ns(), next_ns = UINT64_MAX;
	struct ssc_copy_chunk *chunk, *next;

	pthread_mutex_lock(&copy->lock);
	for (chunk = TAILQ_FIRST(&copy->delayed); chunk != NULL; chunk = next) {
		next = TAILQ_NEXT(chunk, in_wait);
		if (chunk->due_ns > now) {
			next_ns = ssc_min64(next_ns, chunk->due_ns);
			continue;
		}
		TAILQ_REMOVE(&copy->delayed, chunk, in_wait);
		TAILQ_INSERT_TAIL(&copy->ready, chunk, in_wait);
	}
	if (next_ns != UINT64_MAX)
		ssc_timer_arm_earlier(timer, next_ns);
	ssc_copy_engine_queue(copy);
	pthread_mutex_unlock(&copy->lock);
}

/* ---- the end ---- */

/* Zeros that were skipped count only if the destination reaches as far: its last block, or NULL. */
static struct ssc_copy_chunk *plan_tail_locked(struct ssc_copy *copy)
{
	uint64_t end_pos = prefix_locked(copy), pos = real_locked(copy);
	uint64_t last = copy->spec.dst_offset + end_pos - 1, block;

	if (pos == end_pos)
		return NULL;
	block = last - last % SSC_COPY_BLOCK_BYTES;
	if (block > copy->spec.dst_offset)
		pos = ssc_max64(pos, block - copy->spec.dst_offset);
	return ssc_copy_plan_chunk_locked(copy, SSC_COPY_CHUNK_TAIL, pos, end_pos - pos);
}

static struct ssc_copy_chunk *plan_commit_locked(struct ssc_copy *copy)
{
	const struct ssc_copy_spec *spec = &copy->spec;

	copy->bytes = real_locked(copy);
	copy->is_eof = copy->is_eof && copy->bytes == copy->end_pos;
	if (!spec->commit || spec->dst->ops->commit == NULL || copy->bytes == 0 ||
	    !(copy->has_written || atomic_load(&copy->has_punched)))
		return NULL;
	return ssc_copy_plan_chunk_locked(copy, SSC_COPY_CHUNK_COMMIT, 0, 1);
}

/* Go through the phases; a chunk that one of them needs, or NULL. */
static struct ssc_copy_chunk *end_locked(struct ssc_copy *copy)
{
	struct ssc_copy_chunk *chunk;

	if (copy->n_flight > 0 || copy->phase >= SSC_COPY_ENDED)
		return NULL;
	if (copy->phase == SSC_COPY_MOVING) {
		if (copy->is_planning || ssc_copy_plan_wants_locked(copy))
			return NULL;
		ssc_copy_plan_leave_locked(copy);
		copy->phase = SSC_COPY_TAIL;
		chunk = plan_tail_locked(copy);
		if (chunk != NULL)
			return chunk;
	}
	if (copy->phase == SSC_COPY_TAIL) {
		copy->phase = SSC_COPY_COMMIT;
		chunk = plan_commit_locked(copy);
		if (chunk != NULL)
			return chunk;
	}
	copy->phase = SSC_COPY_ENDED;
	return NULL;
}

static void done_run(struct ssc_copy_work *work)
{
	struct ssc_copy *copy = ssc_copy_of(work, struct ssc_copy, done_work);

	if (copy->has_timer)
		ssc_timer_disarm(&copy->timer);
	ssc_copy_engine_over(copy->engine);
	copy->spec.done(copy, copy->spec.ctx);
	ssc_copy_put(copy);
}

/* Do all that can be done on this thread now. */
void ssc_copy_go(struct ssc_copy *copy)
{
	struct ssc_copy_chunk *chunk;

	pthread_mutex_lock(&copy->lock);
	for (;;) {
		if (copy->src_blocks && ssc_copy_plan_can_locked(copy)) {
			ssc_copy_engine_queue(copy);
			break;
		}
		chunk = ssc_copy_plan_next_locked(
			copy); /* of a source that blocks only: nothing to plan */
		if (chunk == NULL)
			chunk = end_locked(copy);
		if (chunk == NULL)
			break;
		pthread_mutex_unlock(&copy->lock);
		ssc_copy_chunk_run(chunk);
		pthread_mutex_lock(&copy->lock);
	}
	if (copy->phase == SSC_COPY_ENDED) {
		if (ssc_copy_here_last(&copy->done_work))
			copy->phase = SSC_COPY_DONE;
		else
			ssc_copy_engine_queue(copy);
	}
	pthread_mutex_unlock(&copy->lock);
}

static void go_run(struct ssc_copy_work *work)
{
	struct ssc_copy *copy = ssc_copy_of(work, struct ssc_copy, go_work);

	ssc_copy_go(copy);
	ssc_copy_put(copy);
}

void ssc_copy_turn(struct ssc_copy *copy)
{
	struct ssc_copy_chunk *chunk;

	pthread_mutex_lock(&copy->lock);
	chunk = TAILQ_FIRST(&copy->ready);
	if (chunk != NULL)
		TAILQ_REMOVE(&copy->ready, chunk, in_wait);
	else if (copy->src_blocks)
		chunk = ssc_copy_plan_next_locked(copy);
	if (!TAILQ_EMPTY(&copy->ready) || (copy->src_blocks && ssc_copy_plan_can_locked(copy)))
		ssc_copy_engine_queue(copy);
	pthread_mutex_unlock(&copy->lock);
	if (chunk != NULL)
		ssc_copy_chunk_run(chunk);
	else
		ssc_copy_go(copy);
}

/* ---- what callers see ---- */

static uint32_t chunk_bytes_of(const struct ssc_copy_engine *engine,
			       const struct ssc_copy_spec *spec)
{
	uint32_t bytes = engine->cfg.chunk_bytes;

	if (spec->src->io_max != 0 && bytes > spec->src->io_max)
		bytes = spec->src->io_max;
	if (spec->dst->io_max != 0 && bytes > spec->dst->io_max)
		bytes = spec->dst->io_max;
	return bytes;
}

static struct ssc_copy *copy_new(struct ssc_copy_engine *engine, const struct ssc_copy_spec *spec)
{
	struct ssc_copy *copy = aligned_alloc(_Alignof(struct ssc_copy), sizeof(*copy));

	if (copy == NULL)
		abort();
	memset(copy, 0, sizeof(*copy));
	copy->engine = engine;
	copy->spec = *spec;
	copy->chunk_bytes = chunk_bytes_of(engine, spec);
	copy->src_blocks = spec->src->is_blocking;
	copy->dst_blocks = spec->dst->is_blocking;
	copy->refs = 3; /* the caller's, ours until done has returned, and of go_work */
	copy->go_work.run = go_run;
	copy->done_work.run = done_run;
	copy->wake_work.run = ssc_copy_plan_wake_run;
	copy->can_punch = spec->dst->ops->punch != NULL;
	copy->knows_holes = spec->src->ops->next_data != NULL;
	copy->waiter.wake = ssc_copy_plan_wake;
	copy->end_pos = spec->count;
	copy->real_end = spec->dst_size;
	ssc_timer_init(&copy->timer, engine->cfg.timers, timer_fire);
	pthread_mutex_init(&copy->lock, NULL);
	TAILQ_INIT(&copy->chunks);
	TAILQ_INIT(&copy->ready);
	TAILQ_INIT(&copy->delayed);
	TAILQ_INIT(&copy->spare);
	TAILQ_INSERT_HEAD(&copy->spare, &copy->first, in_order);
	return copy;
}

struct ssc_copy *ssc_copy_start(struct ssc_copy_engine *engine, const struct ssc_copy_spec *spec)
{
	struct ssc_copy *copy = copy_new(engine, spec);

	ssc_copy_engine_enter(engine);
	ssc_copy_here_run_quietly(&copy->go_work);
	return copy;
}

void ssc_copy_cancel(struct ssc_copy *copy)
{
	pthread_mutex_lock(&copy->lock);
	if (copy->phase < SSC_COPY_ENDED && !copy->is_cancelled) {
		copy->is_cancelled = true;
		copy->is_stopping = true;
		wake_unwanted_locked(copy);
		ssc_copy_engine_queue(copy); /* it may be over by this, and done is not for here */
	}
	pthread_mutex_unlock(&copy->lock);
}

uint64_t ssc_copy_progress(struct ssc_copy *copy)
{
	return atomic_load_explicit(&copy->progress, memory_order_relaxed);
}

void ssc_copy_get_result(struct ssc_copy *copy, struct ssc_copy_result *result)
{
	pthread_mutex_lock(&copy->lock);
	result->status = copy->status;
	result->bytes = copy->bytes;
	result->is_eof = copy->is_eof;
	result->is_stopped =
		copy->status == SSC_NFS4_OK && !copy->is_eof && copy->bytes < copy->spec.count;
	result->commit_status = copy->commit_status;
	pthread_mutex_unlock(&copy->lock);
}

void ssc_copy_put(struct ssc_copy *copy)
{
	struct ssc_copy_engine *engine;
	struct ssc_copy_chunk *chunk;

	if (copy == NULL || atomic_fetch_sub(&copy->refs, 1) != 1)
		return;
	engine = copy->engine;
	while ((chunk = TAILQ_FIRST(&copy->spare)) != NULL) {
		TAILQ_REMOVE(&copy->spare, chunk, in_order);
		if (chunk != &copy->first)
			free(chunk);
	}
	pthread_mutex_destroy(&copy->lock);
	free(copy);
	ssc_copy_engine_leave(engine);
}
