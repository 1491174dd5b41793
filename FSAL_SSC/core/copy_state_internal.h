/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_state_internal.h - what copy_state.c and copy_state_gone.c share; nobody else includes it.
 *
 * Copy states and their table, see copy_state.h, and the few procedures that both files need. Each
 * procedure named _locked is called with table.lock held, and says so when it drops it meanwhile.
 */
#ifndef SSC_COPY_STATE_INTERNAL_H
#define SSC_COPY_STATE_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "ssc/copy_state.h"

/* A few entries in each with the default limits. */
#define SSC_COPY_BUCKETS 256

enum ssc_copy_phase { SSC_COPY_RUNNING, SSC_COPY_ENDED, SSC_COPY_TOLD };

struct ssc_copy_state {
	/* constant */
	struct ssc_copy_table *table;
	uint64_t client;
	uint32_t src_export, dst_export;
	const struct ssc_copy_state_ops *ops;
	void *ctx;
	struct ssc_stateid stateid;
	uint64_t serial;

	/* constant once it has ended */
	struct ssc_copy_outcome outcome;

	/* guarded by table.lock */
	enum ssc_copy_phase phase;
	unsigned int refs;
	bool is_known;     /* to its client, so in by_key */
	bool is_cancelled; /* ops.cancel was called or is about to be */
	bool is_revoked;   /* by the administrator */
	bool is_sending;   /* a callback is on its way */
	bool is_poked;     /* while one was */
	bool wants_room;   /* the last one was told NO_ROOM */
	uint64_t seen;     /* the largest count that was reported */
	uint64_t ended_ns;
	uint64_t next_try_ns;             /* ENDED and not sending */
	uint64_t retry_ns, room_ns;       /* until the next try, after AGAIN and NO_ROOM */
	TAILQ_ENTRY(ssc_copy_state) link; /* running or kept */
	LIST_ENTRY(ssc_copy_state) by_key;
	SLIST_ENTRY(ssc_copy_state) dead;
};

TAILQ_HEAD(ssc_copy_state_list, ssc_copy_state);
LIST_HEAD(ssc_copy_state_bucket, ssc_copy_state);
SLIST_HEAD(ssc_copy_dead_list, ssc_copy_state);

struct ssc_copy_table {
	/* constant */
	struct ssc_copy_table_config cfg;
	uint64_t secret[2];

	struct ssc_timer timer;
	pthread_mutex_t lock;
	pthread_cond_t ended; /* a running one has */
	/* guarded by lock */
	uint64_t refs;   /* the owner and every state */
	uint64_t serial; /* of the newest state */
	bool is_stopped; /* no new ones */
	bool is_closed;  /* the owner is gone */
	struct ssc_copy_state_list running, kept;
	struct ssc_copy_state_bucket by_key[SSC_COPY_BUCKETS];
	struct ssc_copy_table_stats stats;
};

/* Owns: @n references on the table, of states that were freed or of the owner. */
void ssc_copy_table_put(struct ssc_copy_table *table, uint64_t n);

/* Its client knows it no more; the copy and a callback on its way go on. */
void ssc_copy_forget_locked(struct ssc_copy_state *state, struct ssc_copy_dead_list *dead);

/* Drops the lock while it calls ops.cancel. */
void ssc_copy_cancel_locked(struct ssc_copy_state *state, struct ssc_copy_dead_list *dead);

/* Unlock and free what lost its last reference; the table may be gone after it. */
void ssc_copy_unlock_and_bury(struct ssc_copy_table *table, struct ssc_copy_dead_list *dead);

#endif /* SSC_COPY_STATE_INTERNAL_H */
