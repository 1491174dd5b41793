/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_call.h - a call that the calling thread waits for, with the retries of clients made safe.
 *
 * Object     struct ssc_caller: one upstream plus the table of calls whose callers were told to
 *            come back (answer limit) while the upstream still works on them.
 * Join       A client that got JUKEBOX sends the same request again. For calls that change the name
 *            space, the second one must not be sent beside the first: it *joins* it. The key is
 *            caller id, operation, handles, names, arguments and credentials.
 * References holder       taken in                      dropped in
 *            join table   ssc_caller_run (timed out)    claimed by the retry, or aged out
 * Decisions  EXIST or NOENT of a call that was sent twice (connection lost in between):
 *              CREATE EXCLUSIVE  EXIST  -> LOOKUP; our verifier in its times: OK; else EXIST
 *              CREATE GUARDED    EXIST  -> LOOKUP; an empty file with the mode and owner asked for: OK
 *              MKDIR             EXIST  -> LOOKUP; an unshared directory with the mode asked for: OK
 *              SYMLINK           EXIST  -> LOOKUP + READLINK; the same target: OK
 *              MKNOD             EXIST  -> LOOKUP; the same type and device: OK
 *              LINK              EXIST  -> LOOKUP; the same handle: OK
 *              REMOVE, RMDIR     NOENT  -> OK
 *              RENAME            NOENT  -> LOOKUP of the new name; the renamed object's handle: OK
 *            anything else is answered as it came.
 * Locking    one mutex round the table, never held while waiting for the upstream.
 * Threads    any but the upstream's own.
 * Source     RFC 1813 4.8; RFC 8881 2.10.6 for what an exactly-once session would give instead.
 */
#ifndef SSC_SYNC_CALL_H
#define SSC_SYNC_CALL_H

#include "ssc/upstream.h"

struct ssc_caller;

/**
 * @brief A caller for @up. Every call waits at most @timeout_ns for its answer.
 *
 * Owns: @up is borrowed and must outlive it. Never NULL.
 */
struct ssc_caller *ssc_caller_new(struct ssc_upstream *up, uint64_t timeout_ns) SSC_NONNULL;

/** @brief Free, after the upstream was stopped. */
void ssc_caller_free(struct ssc_caller *caller);

/** @brief Change the answer limit; calls already waiting keep theirs. Any thread. */
void ssc_caller_set_timeout(struct ssc_caller *caller, uint64_t timeout_ns) SSC_NONNULL;

/**
 * @brief Carry out *@callp and wait for the answer.
 *
 * done, late, ctx and answer_by_ns of the call are set here. When the request joins an earlier one,
 * *@callp is put and replaced by that one, whose result is the caller's to read and put.
 *
 * @param who  tells one client from another (a hash of its address): only the same one joins
 *
 * Blocks: at most the answer limit (twice that for a decision that needs more calls).
 * Errors: what the server said; SSC_E_TIMEDOUT and SSC_E_DOWN (the client should come back),
 *         SSC_E_CONN (given up in flight, outcome unknown), SSC_E_PROTO, SSC_E_SHUTDOWN.
 */
enum ssc_err ssc_caller_run(struct ssc_caller *caller, uint64_t who,
			    struct ssc_call **callp) SSC_NONNULL;

/** @brief Number of entries in the join table, for tests and figures. */
size_t ssc_caller_n_late(struct ssc_caller *caller) SSC_NONNULL;

#endif /* SSC_SYNC_CALL_H */
