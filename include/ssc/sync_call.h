/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_call.h - a call that the calling thread waits for, with the retries of clients made safe.
 *
 * Object     struct ssc_caller: one upstream plus the table of calls whose callers were told to
 *            come back (answer limit) while the upstream still works on them.
 * Join       A client that got JUKEBOX sends the same request again. For calls that are not
 *            idempotent the second one must not be sent beside the first: it *joins* it. The key is
 *            caller id, operation, handles, names, arguments and credentials. One retry gets the
 *            outcome; a twin of it is a request of its own. A retry waits as long as any call, but
 *            not at all while the upstream is silent. When the outcome is unknown (connection
 *            given up), the retry is sent anew, and known to be a repetition perhaps. SETATTR and
 *            CREATE UNCHECKED wait for the first to be over and are then sent anew in any case.
 *            A client may have given up: another request for the same name makes an outcome void.
 * References holder       taken in                      dropped in
 *            join table   ssc_caller_run (timed out,    claimed by the retry, aged out (120 s after
 *                         or outcome unknown)           its outcome), or pushed out by a newer one
 * Decisions  EXIST or NOENT of a call that was perhaps carried out before (sent twice, or a retry
 *            whose first outcome is unknown):
 *              CREATE EXCLUSIVE  EXIST  -> LOOKUP; our verifier in its times: OK; else EXIST
 *              CREATE GUARDED    EXIST  -> LOOKUP; an empty file, one name, mode and owner: OK
 *              MKDIR             EXIST  -> LOOKUP; a directory without others in it, mode and owner: OK
 *              SYMLINK           EXIST  -> LOOKUP + READLINK; the same target: OK
 *              MKNOD             EXIST  -> LOOKUP; type, device, one name, mode and owner: OK
 *              LINK              EXIST  -> LOOKUP; the same handle: OK
 *              REMOVE, RMDIR     NOENT  -> OK
 *              RENAME            NOENT  -> LOOKUP of the new name; the renamed object's handle: OK
 *            anything else is answered as it came. Mode counts when it was asked for; owner is who was
 *            asked for, else the caller, and anybody when root asked (squashed upstream) for a mode.
 *            When such a LOOKUP gets no answer now, the client is told to come back and it is
 *            decided then.
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

/**
 * @brief Have @fn told of each call that was carried out after its caller was told to come back, and
 *        that is not idempotent. Init only: before the first call.
 *
 * @fn runs on a thread of the upstream with no lock held, must not block, and reads @call only.
 */
void ssc_caller_on_late(struct ssc_caller *caller,
			void (*fn)(void *ctx, const struct ssc_call *call), void *ctx)
	__attribute__((nonnull(1)));

/** @brief Free, after the upstream was stopped. */
void ssc_caller_free(struct ssc_caller *caller);

/** @brief Change the answer limit; calls already waiting keep theirs. Any thread. */
void ssc_caller_set_timeout(struct ssc_caller *caller, uint64_t timeout_ns) SSC_NONNULL;

/**
 * @brief Carry out *@callp and wait for the answer.
 *
 * done, late, ctx, answer_by_ns and what drives the call are set here. When the request joins an
 * earlier one, *@callp is put and replaced by that one, whose result is the caller's to read and
 * put. After SSC_E_TIMEDOUT the result fields may not be read, only put.
 *
 * @param who  tells one client from another (a hash of its address): only the same one joins
 *
 * Blocks: at most the answer limit (twice that for a decision that needs more calls).
 * Errors: what the server said; SSC_E_TIMEDOUT, SSC_E_DOWN and SSC_E_CONN (given up in flight,
 *         outcome unknown): the client should come back; SSC_E_PROTO, SSC_E_AUTH, SSC_E_SHUTDOWN.
 */
enum ssc_err ssc_caller_run(struct ssc_caller *caller, uint64_t who,
			    struct ssc_call **callp) SSC_NONNULL;

/* What a name was before a call whose outcome its client has not heard. */
struct ssc_before {
	enum {
		SSC_BEFORE_SAME,   /* there is no such call */
		SSC_BEFORE_ABSENT, /* it makes the name (CREATE) */
		SSC_BEFORE_OBJECT  /* it takes the name from object (REMOVE, RMDIR, RENAME) */
	} what;
	bool is_pending;      /* it is not over: the name may change any moment */
	bool is_dir;          /* it is an RMDIR */
	struct ssc_fh object; /* rename.object of the call, len 0 when it was not given */
};

/**
 * @brief What @name in @dir was before a call for which @who was told to come back.
 *
 * The host looks a name up before it removes, moves or creates it. So must the retry of such a call,
 * which finds the name as the first sending left it, and would fail before it comes here to take
 * that one's outcome. While the call is not over for its client, the state before it is as good an
 * answer to that client as the one after; for half a minute, in case that it was given up.
 */
struct ssc_before ssc_caller_before(struct ssc_caller *caller, uint64_t who,
				    const struct ssc_fh *dir, const char *name) SSC_NONNULL;

/** @brief Number of entries in the join table, for tests and figures. */
size_t ssc_caller_n_late(struct ssc_caller *caller) SSC_NONNULL;

#endif /* SSC_SYNC_CALL_H */
