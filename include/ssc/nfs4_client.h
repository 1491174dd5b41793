/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_client.h - an NFSv4.2 client of one server: a client id, a session, a connection.
 *
 * Object     struct ssc_nfs4_client with one thread, which alone touches the connection, the slots and
 *            the state of the session. Others hand calls in through a queue.
 * Lifetime   new (connects on its own from then on) -> submit... -> free.
 * Recovery   A lost connection is made again and bound to the session; calls in flight are sent again
 *            with their slot and sequence, so that the server can tell. When the session or the client
 *            id is lost, new ones are made; calls that are safe to repeat are sent again, and the
 *            others end with SSC_E_CONN. With the client id goes all open state: see generation.
 * Deadlines  Every call ends by its own. Without a connection calls wait for patience_ns after it was
 *            lost, and then end with SSC_E_DOWN (never sent) or SSC_E_CONN.
 * Bounds     slots (what the session grants, at most SSC_NFS4_SLOTS_MAX) in flight; SSC_NFS4_QUEUE_MAX
 *            waiting, more end with SSC_E_JUKEBOX.
 * Threads    any. done and offload run on the client's thread, with no lock held: they must not block,
 *            and may submit.
 * Source     RFC 8881 2.10 (sessions), 8.4 (recovery), 18.35, 18.36, 18.46; 20.9 (CB_SEQUENCE).
 */
#ifndef SSC_NFS4_CLIENT_H
#define SSC_NFS4_CLIENT_H

#include "ssc/nfs4_call.h"

#define SSC_NFS4_SLOTS_MAX 128
#define SSC_NFS4_QUEUE_MAX 4096
#define SSC_NFS4_IO_MAX    (1024 * 1024)

struct ssc_nfs4_config {
	const char *server; /* an IPv4 or IPv6 address as text */
	uint16_t port;
	bool use_privileged_port;
	bool want_back_channel;
	uint32_t minor_version; /* 1 or 2 */
	uint32_t n_slots;       /* asked for */
	struct ssc_cred cred;   /* for what the client does on its own */
	uint64_t connect_ns;    /* for each step of coming up */
	uint64_t answer_ns;     /* for a call that has no timeout of its own */
	uint64_t dead_ns;       /* a connection that is silent for so long is given up */
	uint64_t patience_ns;
	/**
	 * A CB_OFFLOAD came; its answer is returned: OK, DELAY, BAD_STATEID... NULL: always OK. What is
	 * answered with OK can also be had from ssc_nfs4_offload_wait.
	 */
	uint32_t (*offload)(void *ctx, const struct ssc_cb_offload_args *args);
	/** Instead of connecting: a connected, non-blocking descriptor or -errno. For tests. */
	int (*connect)(void *ctx);
	void *ctx;
};

/* Port 2049, version 2, 64 slots, root, back channel; 10 s, 60 s, 60 s, 10 s. */
void ssc_nfs4_config_init(struct ssc_nfs4_config *cfg);

struct ssc_nfs4_client;

/** @brief Errors: SSC_E_INVAL (no address), SSC_E_DOWN (no thread or descriptor). */
enum ssc_err ssc_nfs4_client_new(const struct ssc_nfs4_config *cfg,
				 struct ssc_nfs4_client **out) SSC_NONNULL SSC_MUST_CHECK;

/**
 * @brief End it: calls under way end with SSC_E_SHUTDOWN, session and client id are destroyed if the
 *        server answers within 2 s. No other thread may use it any more. Blocks. NULL is allowed.
 */
void ssc_nfs4_client_free(struct ssc_nfs4_client *client);

/** @brief Wait for a session. Outcome OK, or why there is none at @until_ns. Blocks. */
uint32_t ssc_nfs4_client_wait(struct ssc_nfs4_client *client, uint64_t until_ns);

/**
 * @brief Start @call; its done will run exactly once, perhaps before this returns. One that reads or
 *        writes more than info.io_max bytes ends with SSC_E_INVAL.
 */
void ssc_nfs4_submit(struct ssc_nfs4_client *client, struct ssc_nfs4_call *call) SSC_NONNULL;

/**
 * @brief Submit @call and wait for its end; DELAY and GRACE of its own operations are retried until
 *        its time is over. Its done and ctx are overwritten. Blocks: not on the client's thread.
 * @return the call's outcome.
 */
uint32_t ssc_nfs4_run(struct ssc_nfs4_client *client, struct ssc_nfs4_call *call) SSC_NONNULL;

/** @brief The same without retries. */
uint32_t ssc_nfs4_run_once(struct ssc_nfs4_client *client, struct ssc_nfs4_call *call) SSC_NONNULL;

/**
 * @brief Wait for the CB_OFFLOAD of @stateid, which may have come before. True and *args when it came
 *        by @until_ns. Of those that nobody waits for the last 64 are kept. Blocks.
 */
bool ssc_nfs4_offload_wait(struct ssc_nfs4_client *client, const struct ssc_stateid *stateid,
			   uint64_t until_ns, struct ssc_cb_offload_args *args) SSC_NONNULL;

struct ssc_nfs4_info {
	bool is_up;
	uint64_t clientid;
	uint8_t session[16];
	uint32_t n_slots; /* that may be used now */
	uint32_t lease_s;
	uint32_t io_max;        /* bytes of one READ or WRITE */
	bool has_back_channel;  /* the server said so */
	uint32_t generation;    /* client ids had: open state of an earlier one is gone */
	uint32_t n_connections; /* that came up */
	uint32_t n_sessions;
	uint32_t status_flags; /* sr_status_flags of the last SEQUENCE */
	uint64_t n_calls, n_replies, n_resent, n_timeouts, n_callbacks;
	uint32_t max_in_flight;
};

void ssc_nfs4_client_info(struct ssc_nfs4_client *client, struct ssc_nfs4_info *info) SSC_NONNULL;

/** @brief Drop the connection, as if it had broken: for tests of recovery. */
void ssc_nfs4_client_disconnect(struct ssc_nfs4_client *client) SSC_NONNULL;

#endif /* SSC_NFS4_CLIENT_H */
