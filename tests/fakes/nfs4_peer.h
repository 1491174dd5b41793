/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_peer.h - a small NFSv4.2 server at the other end of a socket pair, for tests of the client.
 *
 * It keeps the rules of client ids, sessions and slots, and counts what the client does against them.
 * A hook sees each request before it is done and says what becomes of it; another may change the
 * reply. Of operations it knows those of sessions, PUTFH, PUTROOTFH, GETATTR (lease_time), READ,
 * WRITE and COMMIT; for others the hook gives the results.
 *
 * Threads    its own, which runs the hooks; functions here may be called from any.
 * Source     RFC 8881 2.10, 18.35 to 18.51.
 */
#ifndef NFS4_PEER_H
#define NFS4_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_SLOTS_MAX 64
#define PEER_REPLY_MAX (1024 * 1024 + 4096)
#define PEER_CACHE_MAX 512
#define PEER_HELD_MAX  64

struct nfs4_peer;

struct nfs4_request {
	uint32_t xid, minor, n_ops;
	uint32_t second_op; /* behind SEQUENCE */
	uint32_t first_op;  /* the same, but behind PUTFH */
	bool has_sequence, wants_cache;
	uint32_t seqid, slot, highest;
	uint64_t number; /* of compounds of this peer, from 1 */
	uint32_t io_count;
	uint64_t io_offset;
	/* results behind SEQUENCE's, given by the hook instead of the peer's own; -1: not */
	int raw_n;
	uint32_t raw_status;
	const void *raw;
	size_t raw_len;
	uint32_t sequence_status; /* set by the hook: what SEQUENCE fails with */
};

enum peer_action {
	PEER_ANSWER,
	PEER_DROP,        /* do it, and lose the reply */
	PEER_LOSE,        /* lose the request */
	PEER_CLOSE,       /* close the connection, the request not done */
	PEER_CLOSE_AFTER, /* do it, and close instead of answering */
	PEER_HOLD         /* do it, and answer on peer_release */
};

struct nfs4_peer_hooks {
	enum peer_action (*before)(struct nfs4_peer *peer, struct nfs4_request *rq);
	/* @reply: from the compound's status on; may be changed, and cut or grown within room. */
	void (*after)(struct nfs4_peer *peer, const struct nfs4_request *rq, uint8_t *reply,
		      size_t *len, size_t room);
};

struct nfs4_peer {
	/* set by the test before the client is made */
	uint32_t n_slots; /* granted, 16 */
	/* RETRY_UNCACHED_REP comes from the operation behind SEQUENCE, as from Linux and Ganesha. */
	bool is_uncached_later;
	uint32_t request_max;         /* and of replies; 1 MiB and 4096 */
	uint32_t lease_s;             /* 90 */
	_Atomic uint32_t target_slot; /* sr_target_highest_slotid; UINT32_MAX: all */
	_Atomic uint32_t status_flags;
	size_t cut_after;    /* set by a hook: send so many bytes of this reply, and close */
	atomic_bool refuses; /* connections */

	/* counted */
	atomic_uint n_connects, n_requests, n_nulls, n_exchange, n_create, n_bind, n_complete;
	atomic_uint n_destroy_session, n_destroy_client, n_done; /* compounds done */
	atomic_uint n_wrong; /* breaches by the client; the last one is named */
	char wrong[128];
	_Atomic uint32_t max_busy;

	/* private */
	struct nfs4_peer_hooks hooks;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	atomic_bool stopping, forget_session, forget_client;
	int fd, next_fd, kick[2];
	uint64_t clientid;
	uint32_t cs_seqid;
	uint8_t session[16];
	bool has_client, has_session;
	uint32_t n_sessions;
	struct peer_slot {
		uint32_t seqid;
		bool is_busy; /* its reply is held */
		size_t len;   /* of the cached reply; 0: none */
		uint8_t reply[PEER_CACHE_MAX];
	} slot[PEER_SLOTS_MAX];
	struct peer_held {
		bool is_used;
		uint32_t slot;
		size_t len;
		uint8_t *reply;
	} held[PEER_HELD_MAX];
	uint32_t n_held;
	uint8_t *in, *out;
	size_t in_len;
	uint8_t cb_reply[2048];
	size_t cb_len;
};

struct nfs4_peer *peer_new(void);
void peer_free(struct nfs4_peer *peer);

/** @brief Set a hook from the next request on; NULL: none. */
void peer_before(struct nfs4_peer *peer,
		 enum peer_action (*before)(struct nfs4_peer *peer, struct nfs4_request *rq));
void peer_after(struct nfs4_peer *peer,
		void (*after)(struct nfs4_peer *peer, const struct nfs4_request *rq, uint8_t *reply,
			      size_t *len, size_t room));

/** @brief For struct ssc_nfs4_config.connect, with ctx the peer. */
int peer_connect(void *peer);

/** @brief Answer what was held: the oldest first, or the latest first. @return how many. */
uint32_t peer_release(struct nfs4_peer *peer, bool latest_first);
uint32_t peer_n_held(struct nfs4_peer *peer);

/** @brief Wait up to 5 s for *@count to be at least @n. */
bool peer_wait(atomic_uint *count, uint32_t n);

/** @brief Send bytes to the client as they are. */
void peer_send(struct nfs4_peer *peer, const void *bytes, size_t len);

/** @brief Wait up to 5 s for a reply of the client's to a call of ours; its bytes without the mark. */
size_t peer_take_answer(struct nfs4_peer *peer, uint8_t *buf, size_t room);

/* As if it had restarted: the session, or all, is forgotten before the next request. */
void peer_forget_session(struct nfs4_peer *peer);
void peer_forget_client(struct nfs4_peer *peer);

#endif /* NFS4_PEER_H */
