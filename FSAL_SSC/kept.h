/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * kept.h - the latest attributes of one object that came along with some reply.
 *
 * Why        The cache above asks for attributes after each WRITE. The WRITE's own reply held them,
 *            so asking the upstream again would nearly double the calls.
 * Order      Calls on one object overlap, and their replies may arrive in another order than the
 *            server worked in. Of two replies, that of a call sent after the other had arrived is the
 *            newer one. Between overlapping calls ctime decides. Where that is equal, because a
 *            server's clock has ticks, two that differ only as writes make them differ are merged;
 *            otherwise nobody knows, and nothing is kept until a call sent after that is answered.
 * Locking    one leaf mutex for each object. Threads any. Nothing blocks.
 */
#ifndef SSC_KEPT_H
#define SSC_KEPT_H

#include <pthread.h>

#include "ssc/base.h"

struct ssc_kept {
	pthread_mutex_t lock;
	/* guarded by lock */
	bool is_valid;
	uint64_t n_arrived;   /* replies so far: a call's ticket is this number when it is sent */
	uint64_t valid_since; /* n_arrived when attrs came */
	uint64_t floor;       /* replies to calls with lower tickets make nothing valid */
	uint64_t shrunk;      /* n_arrived of the last reply that may have cut the file off */
	uint64_t at_ns;
	bool is_known; /* attrs were those of the object at some time */
	struct ssc_attrs attrs;
};

void ssc_kept_init(struct ssc_kept *kept) SSC_NONNULL;
void ssc_kept_fini(struct ssc_kept *kept) SSC_NONNULL;

/** @brief A call is about to be sent: the ticket for its ssc_kept_arrived. */
uint64_t ssc_kept_ticket(struct ssc_kept *kept) SSC_NONNULL;

/**
 * @brief The reply to the call with @ticket is there.
 *
 * @param attrs         the object after the call, NULL when the reply had none
 * @param is_shrinking  the call may have made the file shorter
 */
void ssc_kept_arrived(struct ssc_kept *kept, uint64_t ticket, const struct ssc_attrs *attrs,
		      bool is_shrinking) __attribute__((nonnull(1)));

/** @brief The object may have changed in a way that no reply told. */
void ssc_kept_forget(struct ssc_kept *kept) SSC_NONNULL;

/**
 * @brief A reply about something else showed the object with @attrs; when its call was sent is not
 *        known here. True when that is what is kept now: it was already, or what was kept is older.
 */
bool ssc_kept_confirm(struct ssc_kept *kept, const struct ssc_attrs *attrs) SSC_NONNULL;

/** @brief Copy out what is kept, if it came after @since_ns. */
bool ssc_kept_get(struct ssc_kept *kept, uint64_t since_ns, struct ssc_attrs *attrs) SSC_NONNULL;

/** @brief Copy out the last that is known, however old. False: nothing ever was. */
bool ssc_kept_last(struct ssc_kept *kept, struct ssc_attrs *attrs) SSC_NONNULL;

#endif /* SSC_KEPT_H */
