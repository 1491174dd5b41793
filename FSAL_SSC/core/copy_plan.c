/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_plan.c - which chunk of a copy begins next, and when.
 *
 * One thread plans at a time (is_planning), because the source is asked for its data without the
 * lock. It goes from plan_pos on: holes beyond the destination's size take no chunk, holes within it
 * a ZERO chunk, all else DATA chunks with a buffer.
 *
 * Window     cfg.inflight chunks that are not over. Those that are over stay in the list until all
 *            before them are, so the list is bounded too, or one slow chunk would let the copy run far
 *            ahead of what counts.
 * Budget     Without room the copy waits in the budget's queue, no thread does. A wake must be
 *            answered by taking or leaving, so whoever finds that no more is wanted leaves.
 * Locks      copy.lock. The wake takes none: it may come within take, give or leave.
 */
#include <stdlib.h>
#include <string.h>

#include "copy_internal.h"
#include "ssc/clock.h"
#include "ssc/nfs42.h"

#define RUN_AHEAD 4 /* windows: bound of the list */

void ssc_copy_plan_leave_locked(struct ssc_copy *copy)
{
	if (copy->must_leave)
		ssc_budget_leave(copy->engine->budget, &copy->waiter);
	copy->must_leave = false;
	copy->is_waiting = false;
}

bool ssc_copy_plan_wants_locked(struct ssc_copy *copy)
{
	const struct ssc_copy_spec *spec = &copy->spec;

	if (copy->phase != SSC_COPY_MOVING || copy->is_stopping || copy->plan_pos >= copy->end_pos)
		return false;
	if (spec->stop_ns != 0 && copy->n_begun > 0 && ssc_clock_now_ns() >= spec->stop_ns)
		copy->is_stopping = true;
	return !copy->is_stopping;
}

static bool has_room_locked(const struct ssc_copy *copy)
{
	unsigned int inflight = copy->engine->cfg.inflight;

	return copy->n_flight < inflight && copy->n_listed / RUN_AHEAD < inflight;
}

bool ssc_copy_plan_can_locked(struct ssc_copy *copy)
{
	return !copy->is_planning && !copy->is_waiting && ssc_copy_plan_wants_locked(copy) &&
	       has_room_locked(copy);
}

struct ssc_copy_chunk *ssc_copy_plan_chunk_locked(struct ssc_copy *copy,
						  enum ssc_copy_chunk_kind kind, uint64_t pos,
						  uint64_t len)
{
	struct ssc_copy_chunk *chunk = TAILQ_FIRST(&copy->spare);

	if (chunk != NULL) {
		TAILQ_REMOVE(&copy->spare, chunk, in_order);
	} else {
		chunk = aligned_alloc(_Alignof(struct ssc_copy_chunk), sizeof(*chunk));
		if (chunk == NULL)
			abort();
	}
	memset(chunk, 0, sizeof(*chunk));
	chunk->copy = copy;
	chunk->kind = kind;
	chunk->pos = pos;
	chunk->len = len;
	copy->n_flight++;
	if (kind <= SSC_COPY_CHUNK_ZERO) {
		TAILQ_INSERT_TAIL(&copy->chunks, chunk, in_order);
		copy->n_listed++;
		copy->n_begun++;
		copy->plan_pos = pos + len;
	}
	return chunk;
}

/* Ask the source where its data lies. Without the lock meanwhile; is_planning keeps others away. */
static void look_ahead_locked(struct ssc_copy *copy)
{
	struct ssc_copy_file *src = copy->spec.src;
	uint64_t from = copy->spec.src_offset + copy->plan_pos, start = 0, end = 0;
	uint32_t status;

	pthread_mutex_unlock(&copy->lock);
	status = src->ops->next_data(src, from, &start, &end);
	pthread_mutex_lock(&copy->lock);
	if (status == SSC_NFS4_OK && end <= start) {
		/* A hole, if anything, up to the end of the file. */
		copy->data_pos = copy->data_end_pos = UINT64_MAX;
		ssc_copy_end_at_locked(copy, ssc_max64(start, from) - copy->spec.src_offset,
				       SSC_NFS4_OK, true);
	} else if (status == SSC_NFS4_OK && end > from) {
		copy->data_pos = ssc_max64(start, from) - copy->spec.src_offset;
		copy->data_end_pos = end - copy->spec.src_offset;
	} else {
		copy->knows_holes = false;
	}
}

/* plan_pos is in a hole. NULL: it needed no chunk. */
static struct ssc_copy_chunk *plan_hole_locked(struct ssc_copy *copy)
{
	uint64_t at = copy->spec.dst_offset + copy->plan_pos;
	uint64_t len = ssc_min64(copy->data_pos, copy->end_pos) - copy->plan_pos;

	if (at >= copy->spec.dst_size) {
		atomic_fetch_add_explicit(&copy->engine->bytes_skipped, len, memory_order_relaxed);
		copy->plan_pos += len;
		return NULL;
	}
	/* One call for all of it only where that works; else many chunks write at the same time. */
	if (!atomic_load(&copy->has_punched) || !atomic_load(&copy->can_punch))
		len = ssc_min64(len, copy->chunk_bytes);
	return ssc_copy_plan_chunk_locked(copy, SSC_COPY_CHUNK_ZERO, copy->plan_pos, len);
}

/* While it waits with nothing in flight, nothing else would make us look at the time. */
static void watch_time_locked(struct ssc_copy *copy)
{
	if (copy->spec.stop_ns != 0 && copy->n_begun > 0 && copy->n_flight == 0) {
		copy->has_timer = true;
		ssc_timer_arm_earlier(&copy->timer, copy->spec.stop_ns);
	}
}

/* NULL: no room in the budget now. */
static struct ssc_copy_chunk *plan_data_locked(struct ssc_copy *copy)
{
	uint64_t left = copy->end_pos - copy->plan_pos;
	uint64_t len = ssc_min64(left, copy->chunk_bytes);
	struct ssc_copy_chunk *chunk;
	uint32_t cost;

	/* Let two chunks not share a block of the destination, if it can be helped. */
	if (len < left && len > SSC_COPY_BLOCK_BYTES)
		len -= (copy->spec.dst_offset + copy->plan_pos + len) % SSC_COPY_BLOCK_BYTES;
	if (copy->knows_holes)
		len = ssc_min64(len, copy->data_end_pos - copy->plan_pos);
	cost = ssc_copy_buffer_cost(copy->engine, len);
	if (!ssc_budget_take(copy->engine->budget, cost, &copy->waiter)) {
		copy->must_leave = true;
		copy->is_waiting = true;
		watch_time_locked(copy);
		return NULL;
	}
	chunk = ssc_copy_plan_chunk_locked(copy, SSC_COPY_CHUNK_DATA, copy->plan_pos, len);
	chunk->is_scanned = !copy->knows_holes;
	chunk->buffer = ssc_copy_buffer_get(copy->engine, cost);
	return chunk;
}

/* The next chunk, or NULL when none can begin now. On a worker, if the source blocks. */
struct ssc_copy_chunk *ssc_copy_plan_next_locked(struct ssc_copy *copy)
{
	struct ssc_copy_chunk *chunk = NULL;

	if (!ssc_copy_plan_can_locked(copy)) {
		if (copy->is_planning)
			return NULL;
		/* A place in the queue that we do not need holds up those behind it. */
		if (!ssc_copy_plan_wants_locked(copy))
			ssc_copy_plan_leave_locked(copy);
		else if (copy->is_waiting)
			watch_time_locked(copy);
		return NULL;
	}
	copy->is_planning = true;
	while (chunk == NULL && ssc_copy_plan_wants_locked(copy) && has_room_locked(copy)) {
		if (copy->knows_holes && copy->plan_pos >= copy->data_end_pos) {
			look_ahead_locked(copy);
		} else if (copy->knows_holes && copy->plan_pos < copy->data_pos) {
			chunk = plan_hole_locked(copy);
		} else {
			chunk = plan_data_locked(copy);
			break;
		}
	}
	copy->is_planning = false;
	return chunk;
}

void ssc_copy_plan_wake_run(struct ssc_copy_work *work)
{
	struct ssc_copy *copy = ssc_copy_of(work, struct ssc_copy, wake_work);

	atomic_store(&copy->has_wake, false);
	pthread_mutex_lock(&copy->lock);
	copy->is_waiting = false;
	pthread_mutex_unlock(&copy->lock);
	ssc_copy_go(copy);
	ssc_copy_put(copy);
}

/* Takes no lock: it may come while this or another copy's is held, within take, give or leave. */
void ssc_copy_plan_wake(struct ssc_budget_waiter *waiter)
{
	struct ssc_copy *copy = ssc_copy_of(waiter, struct ssc_copy, waiter);

	if (atomic_exchange(&copy->has_wake, true))
		return; /* it is yet to run, and will do for this one too */
	atomic_fetch_add(&copy->refs, 1);
	ssc_copy_here_run(&copy->wake_work);
}
