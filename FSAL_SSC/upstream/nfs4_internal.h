/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_internal.h - the NFSv4.2 client: what its files share.
 *
 * nfs4_call.c     arguments            nfs4_results.c, nfs4_attrs.c  results
 * nfs4_client.c   what other threads call: new, free, submit, run, figures
 * nfs4_loop.c     its thread: connection, deadlines, completions
 * nfs4_slots.c    calls in slots: issuing, sending again, ending
 * nfs4_replies.c  replies: SEQUENCE's result, and whose the rest is
 * nfs4_setup.c    EXCHANGE_ID, CREATE_SESSION, BIND_CONN_TO_SESSION, RECLAIM_COMPLETE, DESTROY_*
 * nfs4_callback.c the back channel
 * nfs4_file.c     whole calls that wait: open, read, copy...
 *
 * Locking: client.lock is a leaf, for the queue in, the figures out and the offloads that came. The
 * rest is the thread's own. Nothing is called with it held.
 */
#ifndef SSC_NFS4_INTERNAL_H
#define SSC_NFS4_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "ssc/clock.h"
#include "ssc/nfs4_client.h"

#include "internal.h"
#include "wire.h"

#define SSC_NFS4_PROGRAM       100003
#define SSC_NFS4_SESSION_BYTES 16

/* Calls without SEQUENCE at a time; the last two are the client's own. */
#define SSC_NFS4_BARES    8
#define SSC_NFS4_SETUP_AT (SSC_NFS4_SLOTS_MAX + SSC_NFS4_BARES)
#define SSC_NFS4_PLACES   (SSC_NFS4_SETUP_AT + 1)

/* The low bits of an xid say which place it belongs to; a NULL call has the last number. */
#define SSC_NFS4_XID_BITS 8
#define SSC_NFS4_XID_NULL 255
_Static_assert(SSC_NFS4_PLACES <= SSC_NFS4_XID_NULL, "places and xids");

/* So often a call may be answered by nonsense, or by the loss of the session. */
#define SSC_NFS4_WRONG_MAX 5

/* And so often it is sent at all, whatever its deadline: a server may die of it each time. */
#define SSC_NFS4_SENDS_MAX 100

/* Calls wait in the queue when so much is unsent. */
#define SSC_NFS4_UNSENT_MAX (256 * 1024)

/* Headers round the data of a READ or WRITE. */
#define SSC_NFS4_OVERHEAD     4096

#define SSC_NFS4_OFFLOADS     64
#define SSC_NFS4_CB_SLOTS     16
#define SSC_NFS4_CB_PROGRAM   0x40000000u
#define SSC_NFS4_CB_REPLY_MAX 768

enum ssc_nfs4_state {
	SSC_NFS4_IDLE,       /* no connection; the next attempt at retry_ns */
	SSC_NFS4_CONNECTING, /* TCP handshake */
	SSC_NFS4_SETUP,      /* one step of setup is under way, or waits for retry_ns */
	SSC_NFS4_UP
};

/* A slot of the session, or a place for a call without. */
struct ssc_nfs4_place {
	bool is_busy;
	bool is_sent; /* on the present connection */
	bool is_resent;
	struct ssc_nfs4_call
		*call; /* NULL while busy: nobody waits, but the sequence must be known */
	uint32_t xid;
	uint32_t seqid;   /* of a slot: to be used next, or in use */
	uint64_t sent_ns; /* of the first time */
	uint64_t retry_ns;
};

struct ssc_nfs4_cb_slot {
	uint32_t seqid; /* last one seen */
	size_t len;     /* of the reply to it, behind the xid */
	uint8_t reply[SSC_NFS4_CB_REPLY_MAX];
};

struct ssc_nfs4_offload {
	bool is_used;
	uint64_t order;
	struct ssc_cb_offload_args args;
};

struct ssc_nfs4_client {
	/* constant */
	struct ssc_nfs4_config cfg;
	union ssc_sockaddr addr;
	char name[64];
	char owner[128];
	int evfd;
	pthread_t thread;
	/* atomic */
	atomic_bool stopping, wants_disconnect;
	atomic_uint n_waiting; /* calls in queue and ready */

	/* guarded by lock */
	pthread_mutex_t lock __attribute__((aligned(64)));
	pthread_cond_t changed;     /* info.is_up, last_error, offloads */
	struct cds_list_head queue; /* calls handed in */
	bool is_kicked;
	struct ssc_nfs4_info info;
	uint32_t last_error; /* outcome of the last setup that failed */
	struct ssc_nfs4_offload offload[SSC_NFS4_OFFLOADS];
	uint64_t offload_order;

	/* thread only */
	enum ssc_nfs4_state state __attribute__((aligned(64)));
	int fd;
	struct ssc_wire *wire;
	uint16_t local_port;
	const char *why; /* the connection is to be closed */
	char why_text[64];
	uint64_t step_by_ns, retry_ns, backoff_ns;
	uint64_t down_since_ns; /* 0: not down */
	uint64_t last_rx_ns, renewed_ns, next_deadline_ns, wake_by_ns, look_ns, shut_by_ns;
	uint32_t xid;
	bool complained, is_finished;
	/* the client id */
	bool has_client, is_complete;
	uint64_t clientid;
	uint32_t cs_seqid;
	uint8_t verifier[8];
	/* the session */
	bool has_session, is_bound, wants_fresh; /* a session of its own for this connection */
	uint8_t session[SSC_NFS4_SESSION_BYTES];
	uint8_t old_session[SSC_NFS4_SESSION_BYTES];
	bool has_old_session;
	uint64_t session_ns; /* when it was made */
	uint32_t n_slots;    /* granted */
	uint32_t slot_limit; /* by the server's later word */
	uint32_t cb_slots;
	uint32_t io_max;
	/* calls */
	struct cds_list_head ready;
	struct cds_list_head done;
	struct ssc_nfs4_place place[SSC_NFS4_PLACES];
	uint32_t n_busy; /* slots */
	uint32_t n_long_reads;
	struct ssc_nfs4_call setup;
	struct ssc_nfs4_call renew;
	bool setup_busy, renew_busy;
	void (*setup_take)(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call);
	struct ssc_nfs4_cb_slot cb_slot[SSC_NFS4_CB_SLOTS];
};

/* Enough is enough. */
static inline bool ssc_nfs4_is_hopeless(const struct ssc_nfs4_call *call)
{
	return call->n_wrong >= SSC_NFS4_WRONG_MAX || call->n_sent >= SSC_NFS4_SENDS_MAX;
}

static inline bool ssc_nfs4_is_slot(uint32_t at)
{
	return at < SSC_NFS4_SLOTS_MAX;
}

/* ---- nfs4_call.c ---- */

void ssc_nfs4_put_u32(struct ssc_nfs4_call *call, uint32_t v);
void ssc_nfs4_put_u64(struct ssc_nfs4_call *call, uint64_t v);
void ssc_nfs4_put_fixed(struct ssc_nfs4_call *call, const void *bytes, size_t len);
void ssc_nfs4_put_opaque(struct ssc_nfs4_call *call, const void *bytes, size_t len);

/* ---- nfs4_results.c ---- */

/** @brief Take the header of the next result, which must be @op's. */
uint32_t ssc_nfs4_take(struct ssc_nfs4_call *call, uint32_t op);
/** @brief @status, or that the results make no sense. */
uint32_t ssc_nfs4_taken(struct ssc_nfs4_call *call, uint32_t status);
/** @brief Where the data of @call's READ goes (struct ssc_wire_ops). */
bool ssc_nfs4_find_place(const struct ssc_nfs4_call *call, const void *results, size_t len,
			 struct ssc_wire_place *place);

/* ---- nfs4_attrs.c ---- */

bool ssc_nfs4_read_bitmap(struct ssc_xdr *x, struct ssc_bitmap *map);

/* ---- nfs4_loop.c ---- */

void *ssc_nfs4_loop(void *client);
/** @brief Let the thread look at the queue. Lock held. */
void ssc_nfs4_kick_locked(struct ssc_nfs4_client *c);
/** @brief The connection is of no more use; it is closed at the next turn. */
void ssc_nfs4_broken(struct ssc_nfs4_client *c, const char *why);
/** @brief @call is over: done runs at the end of the turn. */
void ssc_nfs4_end(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call, uint32_t outcome);
/** @brief Let the thread look again at @at_ns at the latest. */
void ssc_nfs4_wake_by(struct ssc_nfs4_client *c, uint64_t at_ns);

/* ---- nfs4_slots.c ---- */

/** @brief Issue what can be. */
void ssc_nfs4_pump(struct ssc_nfs4_client *c, uint64_t now);
/** @brief Issue @call, of the client's own, at once in place @at. */
void ssc_nfs4_issue_own(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call, uint32_t at);
/** @brief The lowest slot that is free, or SSC_NFS4_PLACES. */
uint32_t ssc_nfs4_free_slot(const struct ssc_nfs4_client *c);
/** @brief The connection is closed: nothing of it is in flight any more. */
void ssc_nfs4_unsend(struct ssc_nfs4_client *c);
/** @brief The session is gone: its calls are put back, or over. */
void ssc_nfs4_drop_session(struct ssc_nfs4_client *c);
/** @brief End calls whose time is over, and find out when the next one's is. */
void ssc_nfs4_expire(struct ssc_nfs4_client *c, uint64_t now);
/** @brief End all calls but the client's own: those never sent with @unsent, others with @sent. */
void ssc_nfs4_end_all(struct ssc_nfs4_client *c, enum ssc_err unsent, enum ssc_err sent);
/** @brief NULL call: is anybody there? */
void ssc_nfs4_send_null(struct ssc_nfs4_client *c);
/** @brief Take @call out of the place where it waits for its reply. */
struct ssc_nfs4_call *ssc_nfs4_detach(struct ssc_nfs4_client *c, uint32_t at);
/** @brief A place is free again; @used: the slot's sequence was taken up by the server. */
void ssc_nfs4_release(struct ssc_nfs4_client *c, uint32_t at, bool used);

/* ---- nfs4_replies.c ---- */

extern const struct ssc_wire_ops ssc_nfs4_wire_ops;

/* ---- nfs4_setup.c ---- */

/** @brief Do the next step towards a session (or, when stopping, towards none), or be up. */
void ssc_nfs4_next_step(struct ssc_nfs4_client *c);
/** @brief The session is gone. */
void ssc_nfs4_session_lost(struct ssc_nfs4_client *c, const char *why);
/** @brief The client id is gone, and with it the session and all state. */
void ssc_nfs4_client_lost(struct ssc_nfs4_client *c, const char *why);
void ssc_nfs4_new_verifier(struct ssc_nfs4_client *c);

/* ---- nfs4_callback.c ---- */

/** @brief A call came in (struct ssc_wire_ops). */
void ssc_nfs4_callback(void *client, uint32_t xid, const void *bytes, size_t len);
void ssc_nfs4_callback_reset(struct ssc_nfs4_client *c);

#endif /* SSC_NFS4_INTERNAL_H */
