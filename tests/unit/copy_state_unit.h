/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_state_unit.h - copies that do nothing but end when they are told, for tests of their states.
 *
 * A copy's callbacks are answered at once as its answer says, or kept until the test answers.
 */
#ifndef SSC_COPY_STATE_UNIT_H
#define SSC_COPY_STATE_UNIT_H

#include <stdatomic.h>
#include <string.h>

#include "fake_clock.h"
#include "ssc/clock.h"
#include "ssc/copy_state.h"
#include "unit.h"

#define START_NS (1000 * SSC_NS_PER_S)
#define KEEP_NS  (600 * SSC_NS_PER_S)
#define RETRY_NS SSC_NS_PER_S

enum answer { ANSWER_OK, ANSWER_AGAIN, ANSWER_NO_ROOM, ANSWER_LATER };

struct copy {
	struct ssc_copy_state *state;
	struct ssc_stateid stateid;
	_Atomic uint64_t progress;
	_Atomic enum answer answer;
	atomic_uint n_cancelled, n_sent, n_on_way, n_freed;
	struct ssc_copy_outcome told; /* of the last callback; read when none is on its way */
	struct ssc_stateid told_stateid;
};

static inline uint64_t copy_progress(void *ctx)
{
	struct copy *copy = ctx;

	ck_assert_uint_eq(atomic_load(&copy->n_freed), 0);
	return atomic_load(&copy->progress);
}

static inline void copy_cancel(void *ctx)
{
	struct copy *copy = ctx;

	ck_assert_uint_eq(atomic_load(&copy->n_freed), 0);
	ck_assert_uint_eq(atomic_fetch_add(&copy->n_cancelled, 1), 0);
}

static inline void copy_answer(struct copy *copy, struct ssc_copy_state *state,
			       enum ssc_copy_told told)
{
	atomic_fetch_sub(&copy->n_on_way, 1);
	ssc_copy_state_told(state, told);
}

static inline void copy_send(void *ctx, struct ssc_copy_state *state,
			     const struct ssc_stateid *stateid,
			     const struct ssc_copy_outcome *outcome)
{
	struct copy *copy = ctx;

	ck_assert_uint_eq(atomic_load(&copy->n_freed), 0);
	ck_assert_uint_eq(atomic_fetch_add(&copy->n_on_way, 1), 0); /* never two */
	copy->told = *outcome;
	copy->told_stateid = *stateid;
	copy->state = state;
	atomic_fetch_add(&copy->n_sent, 1);
	switch (atomic_load(&copy->answer)) {
	case ANSWER_OK:
		copy_answer(copy, state, SSC_TOLD_OK);
		break;
	case ANSWER_AGAIN:
		copy_answer(copy, state, SSC_TOLD_AGAIN);
		break;
	case ANSWER_NO_ROOM:
		copy_answer(copy, state, SSC_TOLD_NO_ROOM);
		break;
	case ANSWER_LATER:
		break;
	}
}

static inline void copy_free(void *ctx)
{
	struct copy *copy = ctx;

	ck_assert_uint_eq(atomic_fetch_add(&copy->n_freed, 1), 0);
}

static const struct ssc_copy_state_ops copy_ops = {
	.progress = copy_progress,
	.cancel = copy_cancel,
	.send = copy_send,
	.free = copy_free,
};

static inline bool copy_start(struct copy *copy, struct ssc_copy_table *table, uint64_t client,
			      uint32_t src_export, uint32_t dst_export)
{
	memset(copy, 0, sizeof(*copy));
	copy->state = ssc_copy_state_new(table, client, src_export, dst_export, &copy_ops, copy,
					 &copy->stateid);
	return copy->state != NULL;
}

static inline void copy_end(struct copy *copy, uint32_t status, uint64_t count)
{
	struct ssc_copy_outcome outcome = {.status = status,
					   .count = count,
					   .committed = 2,
					   .verf = "verifie"};

	ssc_copy_state_end(copy->state, &outcome);
}

static inline uint32_t copy_status(struct copy *copy, struct ssc_copy_table *table, uint64_t client,
				   struct ssc_offload_status_res *res)
{
	ssc_copy_table_status(table, client, &copy->stateid, res);
	return res->status;
}

#endif /* SSC_COPY_STATE_UNIT_H */
