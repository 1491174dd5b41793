/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * ahead.h - pages of listings, asked for before the server above wants them.
 *
 * Why        A large directory is read page by page, and while the server above makes objects of one
 *            page the upstream has nothing to do. So the next page is asked for at that time.
 * What       a few pages per export; a new one takes the place of the oldest. Each is good for one taker
 *            who wants the same directory, cookie, verifier and identity, soon.
 * Staleness  the server above believes a page to be as the directory was when it asked. So a page is
 *            void when anything changed since it was asked for: names, by requests of this export (the
 *            caller counts them), or the directory itself, by its times before, in, and after the reply.
 * Locking    one leaf mutex for each export; nothing is held while the upstream works, but that a taker
 *            waits until the page's deadline at most. Threads any. Needs neither Ganesha nor libnfs.
 */
#ifndef SSC_AHEAD_H
#define SSC_AHEAD_H

#include "ssc/upstream.h"

struct ssc_ahead;

/* A page of a directory. */
struct ssc_ahead_page {
	const struct ssc_fh *dir;
	const struct ssc_cred *cred;
	uint64_t cookie;
	uint8_t verf[SSC_VERF_BYTES];
	uint64_t n_changes;            /* the caller's count of changes */
	const struct ssc_attrs *attrs; /* the directory, as the last reply showed it */
};

/** @brief For the calls to @up. Never NULL. */
struct ssc_ahead *ssc_ahead_new(struct ssc_upstream *up) SSC_NONNULL;

/** @brief After the upstream has stopped. NULL is allowed. */
void ssc_ahead_free(struct ssc_ahead *ahead);

/** @brief Ask for @page. @ticket is given back by take. Blocks: no. */
void ssc_ahead_ask(struct ssc_ahead *ahead, const struct ssc_ahead_page *page, uint32_t max_bytes,
		   uint64_t answer_by_ns, uint64_t ticket) SSC_NONNULL;

/**
 * @brief The reply to @page, if it was asked for; the caller puts it. NULL: ask.
 *
 * Blocks: until the deadline of its ask at most.
 */
struct ssc_call *ssc_ahead_take(struct ssc_ahead *ahead, const struct ssc_ahead_page *page,
				uint64_t *ticket) SSC_NONNULL SSC_MUST_CHECK;

#endif /* SSC_AHEAD_H */
