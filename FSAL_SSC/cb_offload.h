/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * cb_offload.h - tells a client that its asynchronous copy has ended: CB_OFFLOAD on a back channel.
 *
 * Object     struct ssc_cb_target: whom a copy's callback goes to, taken from the COPY request.
 *            What is on its way, and the timer that looks after it, are this file's own: one per module.
 * Sending    CB_COMPOUND { CB_SEQUENCE, CB_OFFLOAD }, over the session that the COPY came in by, or another one
 *            of the same client. The referring call is that COPY, so that a client which meets the
 *            callback before the reply can wait for the latter.
 * Answers    One attempt is made, and its outcome told exactly once. Trying again is copy_state.h's.
 * Clients    that are gone (expired, destroyed) are looked for once a second while there are states of
 *            them, and the table told. One that has bound a connection again is told as well.
 * Threads    any, unless said otherwise. Nothing blocks on the network.
 * Source     RFC 7862 16.1; RFC 8881 2.10.6.3, 20.9.
 */
#ifndef SSC_CB_OFFLOAD_H
#define SSC_CB_OFFLOAD_H

#include "config.h"

#include "nfs_proto_data.h"

#include "ssc/copy_state.h"

struct ssc_cb_target;

/** @brief Begin, with @timers and @table borrowed until ssc_cb_stop has returned. Init only. */
void ssc_cb_start(struct ssc_timers *timers, struct ssc_copy_table *table);

/**
 * @brief What is on its way counts as not sent, and no more is sent. Idempotent; also without start.
 *
 * To be called when the server's RPC threads have ended, before the table is freed.
 */
void ssc_cb_stop(void);

/** @brief Who sent @data, a compound of NFSv4.1 or later with a session. Not NULL. */
struct ssc_cb_target *ssc_cb_target_new(const compound_data_t *data);

/** @brief No send is on its way. NULL is allowed. */
void ssc_cb_target_free(struct ssc_cb_target *target);

/**
 * @brief Send, and call @done exactly once: within, or later on the timer thread or one of the
 *        server's that receive. It runs without a lock of ours, and there is no op_ctx.
 */
void ssc_cb_offload_send(struct ssc_cb_target *target, const struct ssc_fh *fh,
			 const struct ssc_stateid *stateid, const struct ssc_copy_outcome *outcome,
			 void (*done)(void *ctx, enum ssc_copy_told told), void *ctx);

/** @brief The client can be reached again: send what is owed to it. */
void ssc_cb_client_is_back(uint64_t client);

#endif /* SSC_CB_OFFLOAD_H */
