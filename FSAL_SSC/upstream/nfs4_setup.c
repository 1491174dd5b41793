/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_setup.c - the way to a session, and the way out.
 *
 * What is there already is kept; each step makes the next thing that is missing:
 *     client id             EXCHANGE_ID
 *     session               CREATE_SESSION (binds the connection, too)
 *     this connection's     BIND_CONN_TO_SESSION
 *     after a new client id RECLAIM_COMPLETE and, in the same compound, the lease time
 *     a session before it   DESTROY_SESSION
 * So a first session costs three round trips, and a lost connection one. One step is under way at a
 * time, in client.setup. A server that asks for patience gets it; anything else that goes wrong costs
 * the connection, and the next attempt comes later.
 * A lost client id is asked for anew with a new verifier, as after a restart of ours: all state is gone
 * either way, and a server that has kept the old one cannot mistake us for it.
 * Threads: the client's only. Source: RFC 8881 18.34 to 18.37, 18.50, 18.51.
 */
#include <stdio.h>
#include <string.h>

#include "ssc/log.h"

#include "nfs4_internal.h"

#define STEP_DELAY_NS      (200 * SSC_NS_PER_MS)
#define LEASE_DEFAULT_S    90

#define USE_NON_PNFS       0x00010000u
#define EXCHANGE_CONFIRMED 0x80000000u
#define SESSION_BACK_CHAN  0x2u

/* channel_attrs4 of the back channel: a few small calls. */
#define CB_BYTES_MAX 4096
#define CB_OPS_MAX   8

void ssc_nfs4_new_verifier(struct ssc_nfs4_client *c)
{
	static atomic_uint_fast64_t last;
	uint64_t now = ssc_clock_now_ns() + (atomic_fetch_add(&last, 1) << 48);

	for (int i = 0; i < 8; i++)
		c->verifier[i] = now >> 8 * i & 0xff;
}

/* ---- what went wrong ---- */

static void set_error(struct ssc_nfs4_client *c, uint32_t outcome)
{
	pthread_mutex_lock(&c->lock);
	c->last_error = outcome;
	pthread_mutex_unlock(&c->lock);
}

/* @return true when the step is to be made again after a while, on this connection. */
static bool wants_patience(uint32_t outcome)
{
	return outcome == SSC_ST4_DELAY || outcome == SSC_ST4_GRACE;
}

static void failed(struct ssc_nfs4_client *c, const char *step, uint32_t outcome)
{
	set_error(c, outcome);
	if (c->shut_by_ns) {
		c->is_finished = true;
		return;
	}
	if (wants_patience(outcome)) {
		c->retry_ns = ssc_clock_now_ns() + STEP_DELAY_NS;
		return;
	}
	snprintf(c->why_text, sizeof(c->why_text), "%s: %s", step, ssc_nfs4_outcome_str(outcome));
	ssc_nfs4_broken(c, c->why_text);
}

void ssc_nfs4_session_lost(struct ssc_nfs4_client *c, const char *why)
{
	if (!c->has_session)
		return;
	ssc_log_event("nfs4 %s: the session is lost: %s", c->name, why);
	c->has_session = c->is_bound = c->wants_fresh = false;
	ssc_nfs4_drop_session(c);
	if (c->state == SSC_NFS4_UP)
		c->state = SSC_NFS4_SETUP;
	c->retry_ns = 0;
}

void ssc_nfs4_client_lost(struct ssc_nfs4_client *c, const char *why)
{
	if (!c->has_client)
		return;
	ssc_nfs4_session_lost(c, why);
	ssc_log_event("nfs4 %s: the client id is lost, and all open state: %s", c->name, why);
	c->has_client = c->has_old_session = c->is_complete = false;
	ssc_nfs4_new_verifier(c);
}

/* ---- EXCHANGE_ID ---- */

static void take_exchange_id(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_EXCHANGE_ID), len;
	uint64_t clientid;
	uint32_t seqid;

	if (status) {
		failed(c, "EXCHANGE_ID", status);
		return;
	}
	clientid = ssc_xdr_u64(&call->in);
	seqid = ssc_xdr_u32(&call->in);
	(void)ssc_xdr_u32(&call->in);    /* flags */
	if (ssc_xdr_u32(&call->in) != 0) /* SP4_NONE is what we asked for */
		ssc_xdr_fail(&call->in);
	(void)ssc_xdr_u64(&call->in); /* so_minor_id, so_major_id, server scope */
	(void)ssc_xdr_opaque(&call->in, 1024, &len);
	(void)ssc_xdr_opaque(&call->in, 1024, &len);
	if (!ssc_xdr_ok(&call->in)) {
		failed(c, "EXCHANGE_ID", ssc_nfs4_local(SSC_E_PROTO));
		return;
	}
	c->clientid = clientid;
	c->cs_seqid = seqid;
	c->has_client = true;
	pthread_mutex_lock(&c->lock);
	c->info.clientid = clientid;
	c->info.generation++;
	pthread_mutex_unlock(&c->lock);
}

static void put_exchange_id(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	ssc_nfs4_arg(call, SSC_OP4_EXCHANGE_ID);
	ssc_nfs4_put_fixed(call, c->verifier, sizeof(c->verifier));
	ssc_nfs4_put_opaque(call, c->owner, strlen(c->owner));
	ssc_nfs4_put_u32(call, USE_NON_PNFS);
	ssc_nfs4_put_u32(call, 0); /* SP4_NONE */
	ssc_nfs4_put_u32(call, 0); /* no implementation id */
}

/* ---- CREATE_SESSION ---- */

struct channel {
	uint32_t request_max, response_max, cached_max, n_ops, n_requests;
};

static void put_channel(struct ssc_nfs4_call *call, const struct channel *ch)
{
	ssc_nfs4_put_u32(call, 0); /* header padding */
	ssc_nfs4_put_u32(call, ch->request_max);
	ssc_nfs4_put_u32(call, ch->response_max);
	ssc_nfs4_put_u32(call, ch->cached_max);
	ssc_nfs4_put_u32(call, ch->n_ops);
	ssc_nfs4_put_u32(call, ch->n_requests);
	ssc_nfs4_put_u32(call, 0); /* no RDMA */
}

static void put_create_session(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	const struct channel fore = {
		.request_max = SSC_NFS4_IO_MAX + SSC_NFS4_OVERHEAD,
		.response_max = SSC_NFS4_IO_MAX + SSC_NFS4_OVERHEAD,
		.cached_max = SSC_NFS4_OVERHEAD,
		.n_ops = 64,
		.n_requests = c->cfg.n_slots,
	};
	const struct channel back = {
		.request_max = CB_BYTES_MAX,
		.response_max = CB_BYTES_MAX,
		.cached_max = SSC_NFS4_CB_REPLY_MAX,
		.n_ops = CB_OPS_MAX,
		.n_requests = SSC_NFS4_CB_SLOTS,
	};

	ssc_nfs4_arg(call, SSC_OP4_CREATE_SESSION);
	ssc_nfs4_put_u64(call, c->clientid);
	ssc_nfs4_put_u32(call, c->cs_seqid);
	ssc_nfs4_put_u32(call, c->cfg.want_back_channel ? SESSION_BACK_CHAN : 0);
	put_channel(call, &fore);
	put_channel(call, &back);
	ssc_nfs4_put_u32(call, SSC_NFS4_CB_PROGRAM);
	ssc_nfs4_put_u32(call, 1); /* one flavor for callbacks: AUTH_NONE */
	ssc_nfs4_put_u32(call, 0);
}

static void read_channel(struct ssc_xdr *x, struct channel *ch)
{
	uint32_t n;

	(void)ssc_xdr_u32(x);
	ch->request_max = ssc_xdr_u32(x);
	ch->response_max = ssc_xdr_u32(x);
	ch->cached_max = ssc_xdr_u32(x);
	ch->n_ops = ssc_xdr_u32(x);
	ch->n_requests = ssc_xdr_u32(x);
	n = ssc_xdr_u32(x);
	if (n > 1)
		ssc_xdr_fail(x);
	else if (n == 1)
		(void)ssc_xdr_u32(x);
}

static uint32_t io_max(const struct channel *fore)
{
	uint32_t max =
		fore->request_max < fore->response_max ? fore->request_max : fore->response_max;

	if (max >= SSC_NFS4_IO_MAX + SSC_NFS4_OVERHEAD / 2)
		return SSC_NFS4_IO_MAX;
	return max > SSC_NFS4_OVERHEAD ? (max - SSC_NFS4_OVERHEAD / 2) & ~4095u : 0;
}

static void use_session(struct ssc_nfs4_client *c, const struct channel *fore,
			const struct channel *back, bool has_back)
{
	for (uint32_t at = 0; at < SSC_NFS4_SLOTS_MAX; at++)
		c->place[at].seqid = 1;
	c->n_slots = fore->n_requests < c->cfg.n_slots ? fore->n_requests : c->cfg.n_slots;
	c->slot_limit = UINT32_MAX;
	c->cb_slots = back->n_requests < SSC_NFS4_CB_SLOTS ? back->n_requests : SSC_NFS4_CB_SLOTS;
	c->io_max = io_max(fore);
	c->session_ns = ssc_clock_now_ns();
	c->has_session = c->is_bound = true;
	c->wants_fresh = false;
	ssc_nfs4_callback_reset(c);
	pthread_mutex_lock(&c->lock);
	memcpy(c->info.session, c->session, sizeof(c->session));
	c->info.n_sessions++;
	c->info.n_slots = c->n_slots;
	c->info.io_max = c->io_max;
	c->info.has_back_channel = has_back;
	pthread_mutex_unlock(&c->lock);
}

static void take_create_session(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_CREATE_SESSION);
	uint8_t session[SSC_NFS4_SESSION_BYTES];
	struct channel fore, back;
	uint32_t seqid, flags;

	if (status) {
		if (!ssc_nfs4_local_err(status) && !wants_patience(status))
			ssc_nfs4_client_lost(c, ssc_nfs4_outcome_str(status));
		failed(c, "CREATE_SESSION", status);
		return;
	}
	ssc_xdr_copy(&call->in, session, sizeof(session));
	seqid = ssc_xdr_u32(&call->in);
	flags = ssc_xdr_u32(&call->in);
	read_channel(&call->in, &fore);
	read_channel(&call->in, &back);
	if (!ssc_xdr_ok(&call->in) || seqid != c->cs_seqid || fore.n_requests == 0 ||
	    fore.n_ops < 2 || fore.request_max < 1024 || fore.response_max < 1024) {
		failed(c, "CREATE_SESSION", ssc_nfs4_local(SSC_E_PROTO));
		return;
	}
	c->cs_seqid++;
	memcpy(c->session, session, sizeof(session));
	use_session(c, &fore, &back, flags & SESSION_BACK_CHAN);
}

/* ---- BIND_CONN_TO_SESSION ---- */

static void put_bind(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	ssc_nfs4_arg(call, SSC_OP4_BIND_CONN_TO_SESSION);
	ssc_nfs4_put_fixed(call, c->session, sizeof(c->session));
	ssc_nfs4_put_u32(call, c->cfg.want_back_channel ? 3 : 1); /* CDFC4_FORE_OR_BOTH, _FORE */
	ssc_nfs4_put_u32(call, 0);
}

static void take_bind(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_BIND_CONN_TO_SESSION);

	if (!status) {
		c->is_bound = true;
	} else if (status == SSC_ST4_EXPIRED || status == SSC_ST4_STALE_CLIENTID) {
		ssc_nfs4_client_lost(c, ssc_nfs4_outcome_str(status));
	} else if (ssc_nfs4_local_err(status) || wants_patience(status)) {
		failed(c, "BIND_CONN_TO_SESSION", status);
	} else {
		ssc_nfs4_session_lost(c, ssc_nfs4_outcome_str(status));
	}
}

/* ---- RECLAIM_COMPLETE and the lease ---- */

static void put_complete(struct ssc_nfs4_call *call)
{
	struct ssc_bitmap lease = {{0}};

	ssc_bitmap_set(&lease, SSC_ATTR4_LEASE_TIME);
	ssc_nfs4_arg(call, SSC_OP4_RECLAIM_COMPLETE);
	ssc_nfs4_put_u32(call, 0); /* of all file systems */
	ssc_nfs4_arg(call, SSC_OP4_PUTROOTFH);
	ssc_nfs4_arg_getattr(call, &lease);
}

static void take_complete(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_res(call, SSC_OP4_RECLAIM_COMPLETE);
	uint32_t lease_s = LEASE_DEFAULT_S;
	struct ssc_nfs4_attrs attrs;

	if (ssc_nfs4_local_err(status) || wants_patience(status)) {
		failed(c, "RECLAIM_COMPLETE", status);
		return;
	}
	/* What it says otherwise, that there is nothing to reclaim, suits us. */
	c->is_complete = true;
	if (ssc_nfs4_res(call, SSC_OP4_PUTROOTFH) == SSC_ST4_OK &&
	    ssc_nfs4_res_getattr(call, &attrs) == SSC_ST4_OK && attrs.lease_s > 0)
		lease_s = attrs.lease_s;
	pthread_mutex_lock(&c->lock);
	c->info.lease_s = lease_s;
	pthread_mutex_unlock(&c->lock);
}

/* ---- DESTROY_SESSION, DESTROY_CLIENTID ---- */

static void put_destroy_session(struct ssc_nfs4_call *call, const uint8_t *session)
{
	ssc_nfs4_arg(call, SSC_OP4_DESTROY_SESSION);
	ssc_nfs4_put_fixed(call, session, SSC_NFS4_SESSION_BYTES);
}

static void take_destroy_session(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_DESTROY_SESSION);

	if (ssc_nfs4_local_err(status) || wants_patience(status))
		failed(c, "DESTROY_SESSION", status);
	else if (c->has_old_session)
		c->has_old_session = false;
	else
		c->has_session = c->is_bound = false;
}

static void take_destroy_clientid(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	(void)call; /* it ends by itself if this did not do it */
	c->has_client = false;
}

/* ---- steps ---- */

static void step_done(struct ssc_nfs4_call *call)
{
	struct ssc_nfs4_client *c = call->ctx;

	c->setup_busy = false;
	c->retry_ns = 0;
	c->setup_take(c, call);
	ssc_nfs4_call_fini(call);
	if (!c->why && !c->is_finished && ssc_clock_now_ns() >= c->retry_ns)
		ssc_nfs4_next_step(c);
}

static void begin(struct ssc_nfs4_client *c)
{
	c->state = SSC_NFS4_SETUP;
	c->setup_busy = true;
	ssc_nfs4_call_init(&c->setup, &c->cfg.cred);
	c->setup.done = step_done;
	c->setup.ctx = c;
	c->setup.is_bare = true;
}

static void issue(struct ssc_nfs4_client *c,
		  void (*take)(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call))
{
	uint32_t at = c->setup.is_bare ? SSC_NFS4_SETUP_AT : ssc_nfs4_free_slot(c);

	c->setup_take = take;
	if (at != SSC_NFS4_PLACES) {
		ssc_nfs4_issue_own(c, &c->setup, at);
		return;
	}
	c->setup_busy = false;
	ssc_nfs4_broken(c, "no slot is free"); /* all of them wait to be sent again */
}

static void be_up(struct ssc_nfs4_client *c)
{
	const uint64_t now = ssc_clock_now_ns();
	const bool was_down = c->down_since_ns != 0;

	c->state = SSC_NFS4_UP;
	c->down_since_ns = 0;
	c->backoff_ns = 0;
	c->renewed_ns = now;
	c->look_ns = now;
	pthread_mutex_lock(&c->lock);
	c->info.is_up = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (was_down)
		ssc_log_info("nfs4 %s: session up, %u slots", c->name, c->n_slots);
	if (c->complained)
		ssc_log_event("nfs4 %s: found again", c->name);
	c->complained = false;
}

static void next_out(struct ssc_nfs4_client *c)
{
	begin(c);
	if (c->has_old_session || c->has_session) {
		put_destroy_session(&c->setup, c->has_old_session ? c->old_session : c->session);
		issue(c, take_destroy_session);
	} else if (c->has_client) {
		ssc_nfs4_arg(&c->setup, SSC_OP4_DESTROY_CLIENTID);
		ssc_nfs4_put_u64(&c->setup, c->clientid);
		issue(c, take_destroy_clientid);
	} else {
		c->setup_busy = false;
		c->is_finished = true;
	}
}

void ssc_nfs4_next_step(struct ssc_nfs4_client *c)
{
	if (!c->wire)
		return;
	if (c->shut_by_ns) {
		next_out(c);
		return;
	}
	if (c->state == SSC_NFS4_UP && c->wants_fresh && c->has_session) {
		memcpy(c->old_session, c->session, sizeof(c->session));
		c->has_old_session = true;
		c->has_session = c->wants_fresh = false;
	}
	begin(c);
	if (!c->has_client) {
		put_exchange_id(c, &c->setup);
		issue(c, take_exchange_id);
	} else if (!c->has_session) {
		put_create_session(c, &c->setup);
		issue(c, take_create_session);
	} else if (!c->is_bound) {
		put_bind(c, &c->setup);
		issue(c, take_bind);
	} else if (!c->is_complete) {
		c->setup.is_bare = false;
		put_complete(&c->setup);
		issue(c, take_complete);
	} else if (c->has_old_session) {
		put_destroy_session(&c->setup, c->old_session);
		issue(c, take_destroy_session);
	} else {
		c->setup_busy = false;
		be_up(c);
	}
}
