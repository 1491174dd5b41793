/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * cb_channel.h - the server's sessions and their back channels, as far as callbacks of ours need them.
 *
 * The server keeps one channel in each session (cb_chan): a client handle over the connection that
 * CREATE_SESSION came in by. Stock 4.3 never replaces it, does not see that the connection is gone, and
 * crashes when it then sends with a deadline. So a channel is looked at before use, taken down when its
 * connection is dead (the client is then told CB_PATH_DOWN by SEQUENCE), and made again when the client
 * answers that with BIND_CONN_TO_SESSION.
 *
 * References A session is held only while a callback is on its way, never while a copy runs: the
 *            server refuses DESTROY_CLIENTID while any of the client's sessions is in memory.
 * Locking    cb_chan.mtx of a session, and its cb_mutex for the slots; neither within the other. The
 *            server may hold the former for seconds, so we only try it where a thread must not wait.
 * Threads    any.
 * Source     RFC 8881 2.10.3.1, 2.10.8, 18.34; RFC 8881 20.9 (slots of CB_SEQUENCE).
 */
#ifndef SSC_CB_CHANNEL_H
#define SSC_CB_CHANNEL_H

#include "config.h"

#include "sal_data.h"

#include "op_bind.h"

/* A client has one session, or a few after it was reset. */
#define SSC_CHANNEL_SESSIONS 8

/* Bytes of the largest callback of ours, RPC header with AUTH_SYS included; see cb_offload.c. */
#define SSC_CHANNEL_REQUEST_BYTES 1024

/** @brief Whether a callback can be sent over @session now. Does not block. */
bool ssc_channel_is_up(nfs41_session_t *session);

/**
 * @brief References on sessions of @client with a back channel that is up, that of @first_id in front.
 *        Their number; the caller puts them. Does not block.
 */
unsigned int ssc_channel_sessions(clientid4 client, const char *first_id,
				  nfs41_session_t *sessions[SSC_CHANNEL_SESSIONS]);

/** @brief Drop a reference on a session. */
void ssc_channel_put(nfs41_session_t *session);

/** @brief Whether the server does not know @client any more, or lets nothing come back of it. */
bool ssc_channel_is_client_gone(clientid4 client);

/** @brief Whether the connection behind @clnt is gone. The caller keeps @clnt alive. */
bool ssc_channel_is_dead(CLIENT *clnt);

/** @brief Take @session's channel down, if @clnt is still what it uses. Locks: none of the caller's. */
void ssc_channel_take_down(nfs41_session_t *session, CLIENT *clnt);

/* Of one callback on a back channel. */
struct ssc_channel_slot {
	uint32_t slot, sequence, highest;
};

/** @brief Reserve a slot. False: all are in use. */
bool ssc_channel_slot_take(nfs41_session_t *session, struct ssc_channel_slot *slot);

/**
 * @brief Give it back. @back: by how much the sequence goes back: 0 when the client has seen the
 *        request or may have, 1 when it has not, 2 when it waits for the one before.
 */
void ssc_channel_slot_give(nfs41_session_t *session, const struct ssc_channel_slot *slot,
			   uint32_t back);

/** @brief The row of BIND_CONN_TO_SESSION: the server's own, then the channel is made. */
enum nfs_req_result ssc_op_bind_conn(struct nfs_argop4 *op, compound_data_t *data,
				     struct nfs_resop4 *resp);

#endif /* SSC_CB_CHANNEL_H */
