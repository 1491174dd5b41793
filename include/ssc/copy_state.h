/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_state.h - asynchronous copies as clients know them: copy stateids, progress, outcome, callback.
 *
 * Object     struct ssc_copy_table, one per module: all copy states. struct ssc_copy_state: one copy.
 * States     RUNNING -> ENDED (outcome known, callback owed) -> TOLD (callback answered) -> gone
 *            cancelled by its client: gone at once for the client, no callback; the copy itself ends
 *            in its own time.
 *            A state that is ENDED or TOLD stays for keep_ns, so that OFFLOAD_STATUS finds it, also
 *            after an OFFLOAD_CANCEL that came too late; a callback that cannot be sent now is tried
 *            again when retry_ns passed or poke says so. Never are two of one copy on their way.
 * Limits     max in all, max per client, counted until the copy ends, cancelled or not; above them
 *            NULL, and the caller serves the request synchronously. States kept after the end are
 *            bounded too: the oldest of those that were told goes, else the oldest.
 * References holder              taken in            dropped in
 *            the table           new                 gone
 *            the running copy    new                 ssc_copy_state_end
 *            a callback on its way  ops.send         ssc_copy_state_told
 * Threads    any. Locking: one mutex of the table; the ops run without it.
 * Source     RFC 7862 4.8, 15.8, 15.9, 16.1; RFC 8881 8.2.2.
 */
#ifndef SSC_COPY_STATE_H
#define SSC_COPY_STATE_H

#include "ssc/nfs42.h"
#include "ssc/timer.h"

struct ssc_copy_table;
struct ssc_copy_state;

struct ssc_copy_outcome {
	uint32_t status; /* nfsstat4 */
	uint64_t count;
	uint32_t committed; /* stable_how4 */
	uint8_t verf[SSC_VERIFIER_BYTES];
};

struct ssc_copy_state_ops {
	/** @brief Contiguous bytes so far of the copy behind @ctx. Must not block. */
	uint64_t (*progress)(void *ctx);
	/**
	 * @brief End it early. Its end is reported all the same. Must not block. Comes at most once,
	 *        perhaps before ssc_copy_state_new has returned.
	 */
	void (*cancel)(void *ctx);
	/**
	 * @brief Send CB_OFFLOAD. Ends with ssc_copy_state_told, exactly once, within or later.
	 *        Runs on the timer thread or on that of ssc_copy_state_end. What it is given stays
	 *        until then.
	 */
	void (*send)(void *ctx, struct ssc_copy_state *state, const struct ssc_stateid *stateid,
		     const struct ssc_copy_outcome *outcome);
	/** @brief The state is gone and nothing of it runs: free @ctx. */
	void (*free)(void *ctx);
};

struct ssc_copy_table_config {
	uint32_t max;            /* Copy_Max */
	uint32_t max_per_client; /* Copy_Max_Per_Client */
	uint32_t kept_max;       /* of states kept after the end, > 0 */
	uint64_t keep_ns;
	uint64_t retry_ns; /* between attempts of a callback; doubles up to keep_ns / 4 */
	/*
	 * The upper half of every client id of the host, which its stateids have at bytes 4 to 7 of
	 * other. Ours never do, so that none can be taken for the other.
	 */
	uint32_t instance;
	struct ssc_timers *timers; /* borrowed */
};

/** @brief What became of a callback. */
enum ssc_copy_told {
	SSC_TOLD_OK,      /* answered, with whatever status but DELAY */
	SSC_TOLD_AGAIN,   /* DELAY, or it could not be sent: later */
	SSC_TOLD_NO_ROOM, /* not sent: its client takes no more now; when another of its is over */
};

struct ssc_copy_table *ssc_copy_table_new(const struct ssc_copy_table_config *cfg) SSC_NONNULL;

/**
 * @brief Frees the states that are kept; no callback is sent from now on. Copies that have not ended and
 *        callbacks that were not answered may do so later. NULL is allowed.
 */
void ssc_copy_table_free(struct ssc_copy_table *table);

/**
 * @brief A new RUNNING state for @client (its clientid4), with a stateid of seqid 1, not usable by
 *        others. NULL: over a limit, or stopped; nothing of @ctx was taken then.
 */
struct ssc_copy_state *ssc_copy_state_new(struct ssc_copy_table *table, uint64_t client,
					  uint32_t src_export, uint32_t dst_export,
					  const struct ssc_copy_state_ops *ops, void *ctx,
					  struct ssc_stateid *stateid) SSC_MUST_CHECK;

/** @brief The copy has ended: keeps the outcome, sends the callback unless it was cancelled. */
void ssc_copy_state_end(struct ssc_copy_state *state,
			const struct ssc_copy_outcome *outcome) SSC_NONNULL;

/** @brief See ops.send. */
void ssc_copy_state_told(struct ssc_copy_state *state, enum ssc_copy_told told) SSC_NONNULL;

/** @brief OFFLOAD_STATUS. */
void ssc_copy_table_status(struct ssc_copy_table *table, uint64_t client,
			   const struct ssc_stateid *stateid,
			   struct ssc_offload_status_res *res) SSC_NONNULL;

/**
 * @brief OFFLOAD_CANCEL: nfsstat4. NFS4ERR_COMPLETE_ALREADY for a copy that has ended: nothing changes
 *        then, a callback that is owed is sent.
 */
uint32_t ssc_copy_table_cancel(struct ssc_copy_table *table, uint64_t client,
			       const struct ssc_stateid *stateid) SSC_NONNULL;

/** @brief The client has a back channel again: send what is owed to it. */
void ssc_copy_table_poke(struct ssc_copy_table *table, uint64_t client) SSC_NONNULL;

/** @brief The client is gone: its copies end, its states go, no callbacks. */
void ssc_copy_table_client_gone(struct ssc_copy_table *table, uint64_t client) SSC_NONNULL;

/**
 * @brief The smallest client above *@client that has states, in *@client. False: none.
 *
 * Begin with 0; for who looks regularly whether clients are gone.
 */
bool ssc_copy_table_next_client(struct ssc_copy_table *table,
				uint64_t *client) SSC_NONNULL SSC_MUST_CHECK;

/**
 * @brief Cancel the copies from or to @export_id (callbacks say ADMIN_REVOKED) and wait until they ended, at
 *        most until @until_ns. False: some still run.
 */
bool ssc_copy_table_end_export(struct ssc_copy_table *table, uint32_t export_id, uint64_t until_ns);

/** @brief As end_export for all; new ones are refused from now on. */
bool ssc_copy_table_stop(struct ssc_copy_table *table, uint64_t until_ns);

struct ssc_copy_table_stats {
	uint32_t running, kept;
	uint64_t started, refused, cancelled;
	uint64_t callbacks_sent, callbacks_again; /* again: of those sent, not SSC_TOLD_OK */
};

void ssc_copy_table_stats(struct ssc_copy_table *table,
			  struct ssc_copy_table_stats *stats) SSC_NONNULL;

#endif /* SSC_COPY_STATE_H */
