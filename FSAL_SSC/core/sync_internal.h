/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_internal.h - what sync_call.c (table, waiting), sync_key.c (same request?) and sync_decide.c
 * (was it our own first sending?) share.
 */
#ifndef SSC_SYNC_INTERNAL_H
#define SSC_SYNC_INTERNAL_H

#include "ssc/sync_call.h"

/* ---- sync_key.c ---- */

#define SSC_SYNC_NAMES 2 /* RENAME changes two names, nothing more */

/** @brief Hash of the request that @call is when it comes from @who. */
uint64_t ssc_sync_key_hash(uint64_t who, const struct ssc_call *call) SSC_NONNULL;

/** @brief Whether two handles are the same bytes. */
bool ssc_sync_fh_equal(const struct ssc_fh *a, const struct ssc_fh *b) SSC_NONNULL;

/** @brief Whether @a and @b ask for the same thing. False for idempotent calls. */
bool ssc_sync_key_equal(const struct ssc_call *a, const struct ssc_call *b) SSC_NONNULL;

/**
 * @brief Whether a retry may be carried out again once the first is over, with the same outcome: it
 *        has to wait for the first, but needs not its result. So with what cuts a file off.
 */
bool ssc_sync_is_repeatable(const struct ssc_call *call) SSC_NONNULL;

/** @brief Hashes of the names in their directories that @call changes; 0 where there is none. */
void ssc_sync_names(const struct ssc_call *call, uint64_t names[SSC_SYNC_NAMES]) SSC_NONNULL;

/** @brief Whether some name is in both. */
bool ssc_sync_names_meet(const uint64_t a[SSC_SYNC_NAMES],
			 const uint64_t b[SSC_SYNC_NAMES]) SSC_NONNULL;

/* ---- sync_decide.c ---- */

/**
 * @brief What to answer to @call, which was perhaps carried out before and now got @err (EXIST or
 *        NOENT), by the table in ssc/sync_call.h. With SSC_OK the call's result is filled in.
 *
 * Blocks: until @until_ns at most.
 * Errors: @err; or TIMEDOUT, DOWN, CONN, JUKEBOX, SHUTDOWN when it cannot be decided now.
 */
enum ssc_err ssc_sync_decide(struct ssc_caller *caller, struct ssc_call *call, enum ssc_err err,
			     uint64_t until_ns) SSC_NONNULL SSC_MUST_CHECK;

/* ---- sync_call.c ---- */

/** @brief A call for ssc_sync_ask: of @op, by the same caller as @call. */
struct ssc_call *ssc_sync_ask_new(struct ssc_caller *caller, enum ssc_op op,
				  const struct ssc_call *call) SSC_NONNULL;

/** @brief Carry out @ask, which is idempotent, and wait for its answer until @until_ns at most. */
enum ssc_err ssc_sync_ask(struct ssc_caller *caller, struct ssc_call *ask,
			  uint64_t until_ns) SSC_NONNULL SSC_MUST_CHECK;

#endif /* SSC_SYNC_INTERNAL_H */
