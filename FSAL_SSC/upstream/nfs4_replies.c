/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_replies.c - replies of the server: what SEQUENCE says, and whose the rest is.
 *
 * SEQUENCE's result must name the session, slot and sequence that were sent; a server that mixes them
 * up may mix up data too, so the connection is given up. What SEQUENCE's own errors mean for the slot,
 * and so for the call:
 *     DELAY                                 not begun: the same again, later
 *     BADSLOT, BAD_HIGH_SLOT                not begun: in a lower slot
 *     BADSESSION, DEADSESSION               a new session
 *     SEQ_MISORDERED                        we have lost count: a new session
 *     CONN_NOT_BOUND_TO_SESSION             bind, and the same again
 *     RETRY_UNCACHED_REP, SEQ_FALSE_RETRY   done before, and the reply is lost
 *     EXPIRED, STALE_CLIENTID               a new client id
 *     others                                not begun, the caller's business
 * Threads: the client's only. Source: RFC 8881 18.46.
 */
#include <stdlib.h>
#include <string.h>

#include "nfs4_internal.h"

#define TAG_MAX           1024

#define SEQUENCE_RETRY_NS (100 * SSC_NS_PER_MS)

/* A fresh session for the sake of the back channel, not more often than this. */
#define FRESH_NS             (10 * SSC_NS_PER_S)

#define CB_PATH_DOWN         0x001u
#define CB_PATH_DOWN_SESSION 0x200u

struct sequence {
	uint8_t session[SSC_NFS4_SESSION_BYTES];
	uint32_t seqid, slot, highest, target, flags;
};

/* Hand @call what follows in @x: @n results. */
static void give(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call, uint32_t status, uint32_t n,
		 const struct ssc_xdr *x, bool is_placed)
{
	const size_t len = (size_t)(x->end - x->at);

	if (len <= sizeof(call->reply_room))
		call->reply = call->reply_room;
	else
		call->reply = malloc(len);
	if (!call->reply)
		abort();
	memcpy(call->reply, x->at, len);
	ssc_xdr_init(&call->in, call->reply, len);
	call->n_results = n;
	call->is_placed = is_placed;
	ssc_nfs4_end(c, call, status);
}

/* The reply of the call at @at is nonsense. */
static void wrong(struct ssc_nfs4_client *c, uint32_t at, const char *why)
{
	if (c->place[at].call)
		c->place[at].call->n_wrong++;
	ssc_nfs4_broken(c, why);
}

static bool take_sequence(struct ssc_nfs4_client *c, uint32_t at, struct ssc_xdr *x)
{
	const struct ssc_nfs4_place *p = &c->place[at];
	struct sequence s;

	ssc_xdr_copy(x, s.session, sizeof(s.session));
	s.seqid = ssc_xdr_u32(x);
	s.slot = ssc_xdr_u32(x);
	s.highest = ssc_xdr_u32(x);
	s.target = ssc_xdr_u32(x);
	s.flags = ssc_xdr_u32(x);
	if (!ssc_xdr_ok(x) || memcmp(s.session, c->session, sizeof(s.session)) != 0 ||
	    s.slot != at || s.seqid != p->seqid)
		return false;
	c->slot_limit = s.target < s.highest ? s.target + 1 : s.highest + 1;
	if (s.target == UINT32_MAX || s.highest == UINT32_MAX)
		c->slot_limit = UINT32_MAX;
	if (p->sent_ns > c->renewed_ns)
		c->renewed_ns = p->sent_ns;
	if (s.flags & (CB_PATH_DOWN | CB_PATH_DOWN_SESSION) && c->cfg.want_back_channel &&
	    p->sent_ns > c->session_ns + FRESH_NS)
		c->wants_fresh = true;
	pthread_mutex_lock(&c->lock);
	c->info.n_replies++;
	c->info.status_flags = s.flags;
	c->info.n_slots = c->n_slots < c->slot_limit ? c->n_slots : c->slot_limit;
	pthread_mutex_unlock(&c->lock);
	return true;
}

/* The call of a slot was not begun, or it does not matter if it was. */
static void once_more(struct ssc_nfs4_client *c, uint32_t at, bool used)
{
	struct ssc_nfs4_call *call = ssc_nfs4_detach(c, at);

	ssc_nfs4_release(c, at, used);
	if (!call)
		return;
	if (call == &c->setup) {
		ssc_nfs4_end(c, call, ssc_nfs4_local(SSC_E_CONN));
		return;
	}
	atomic_fetch_add(&c->n_waiting, 1);
	cds_list_add(&call->link, &c->ready);
}

static void lost_reply(struct ssc_nfs4_client *c, uint32_t at)
{
	struct ssc_nfs4_call *call = c->place[at].call;

	if (!call || !call->is_unsafe) {
		once_more(c, at, true);
		return;
	}
	ssc_nfs4_detach(c, at);
	ssc_nfs4_release(c, at, true);
	ssc_nfs4_end(c, call, ssc_nfs4_local(SSC_E_CONN));
}

static void sequence_failed(struct ssc_nfs4_client *c, uint32_t at, uint32_t status, uint32_t n,
			    const struct ssc_xdr *x)
{
	struct ssc_nfs4_place *p = &c->place[at];
	const bool was_resent = p->is_resent;
	struct ssc_nfs4_call *call = p->call;

	if (call && status != SSC_ST4_DELAY && !was_resent)
		call->n_wrong++; /* whatever follows, it must not go on for ever */
	switch (status) {
	case SSC_ST4_DELAY:
		if (p->call == &c->setup)
			break; /* setup has its own patience */
		p->is_sent = false;
		p->retry_ns = ssc_clock_now_ns() + SEQUENCE_RETRY_NS;
		if (p->call)
			p->call->n_sent--; /* patience is not what SENDS_MAX bounds */
		return;
	case SSC_ST4_BADSLOT:
	case SSC_ST4_BAD_HIGH_SLOT:
		c->slot_limit = at > 0 ? at : 1;
		once_more(c, at, false);
		if (at == 0)
			ssc_nfs4_session_lost(c, "the server refuses slot 0");
		return;
	case SSC_ST4_SEQ_MISORDERED:
	case SSC_ST4_BADSESSION:
	case SSC_ST4_DEADSESSION:
		if (!was_resent)
			once_more(c, at, false);
		ssc_nfs4_session_lost(c, ssc_nfs4_outcome_str(status));
		return;
	case SSC_ST4_EXPIRED:
	case SSC_ST4_STALE_CLIENTID:
		if (!was_resent)
			once_more(c, at, false);
		ssc_nfs4_client_lost(c, ssc_nfs4_outcome_str(status));
		return;
	case SSC_ST4_CONN_NOT_BOUND_TO_SESSION:
		p->is_sent = false;
		c->is_bound = false;
		if (c->state == SSC_NFS4_UP)
			ssc_nfs4_next_step(c);
		return;
	case SSC_ST4_RETRY_UNCACHED_REP:
	case SSC_ST4_SEQ_FALSE_RETRY:
		lost_reply(c, at);
		return;
	default:
		break;
	}
	ssc_nfs4_detach(c, at);
	ssc_nfs4_release(c, at, false);
	if (call)
		give(c, call, status, n, x, false);
}

static void slot_reply(struct ssc_nfs4_client *c, uint32_t at, uint32_t status, uint32_t n,
		       struct ssc_xdr *x, bool is_placed)
{
	struct ssc_nfs4_call *call;
	uint32_t first;

	if (n == 0) { /* the compound as such was refused */
		sequence_failed(c, at, status, n, x);
		return;
	}
	if (ssc_xdr_u32(x) != SSC_OP4_SEQUENCE) {
		wrong(c, at, "a reply without SEQUENCE");
		return;
	}
	first = ssc_xdr_u32(x);
	if (!ssc_xdr_ok(x) || (first && (first != status || n != 1))) {
		wrong(c, at, "a reply that makes no sense");
		return;
	}
	if (first) {
		sequence_failed(c, at, first, 0, x);
		return;
	}
	if (!take_sequence(c, at, x)) {
		wrong(c, at, "a reply of another session, slot or sequence");
		return;
	}
	if (status == SSC_ST4_RETRY_UNCACHED_REP) { /* said by the operation behind SEQUENCE */
		lost_reply(c, at);
		return;
	}
	call = ssc_nfs4_detach(c, at);
	ssc_nfs4_release(c, at, true);
	if (call)
		give(c, call, status, n - 1, x, is_placed);
}

static void reply(void *client, uint32_t xid, enum ssc_err err, const void *results, size_t len,
		  bool is_placed, const char *what)
{
	const uint32_t at = xid & ((1u << SSC_NFS4_XID_BITS) - 1);
	struct ssc_nfs4_client *c = client;
	struct ssc_nfs4_call *call;
	uint32_t status, n, tag;
	struct ssc_xdr x;

	(void)what;
	c->last_rx_ns = ssc_clock_now_ns();
	if (at >= SSC_NFS4_PLACES || !c->place[at].is_sent || c->place[at].xid != xid)
		return; /* the NULL call's, or of one that nobody waits for */
	if (err) {      /* refused before the compound was looked at */
		call = ssc_nfs4_detach(c, at);
		ssc_nfs4_release(c, at, false);
		if (call)
			ssc_nfs4_end(c, call, ssc_nfs4_local(err));
		return;
	}
	ssc_xdr_init(&x, results, len);
	status = ssc_xdr_u32(&x);
	(void)ssc_xdr_opaque(&x, TAG_MAX, &tag);
	n = ssc_xdr_u32(&x);
	if (!ssc_xdr_ok(&x) || status & SSC_NFS4_LOCAL || (n == 0 && status == SSC_ST4_OK)) {
		wrong(c, at, "a reply that makes no sense");
		return;
	}
	if (ssc_nfs4_is_slot(at)) {
		slot_reply(c, at, status, n, &x, is_placed);
		return;
	}
	call = ssc_nfs4_detach(c, at);
	ssc_nfs4_release(c, at, false);
	if (call)
		give(c, call, status, n, &x, is_placed);
}

static const struct ssc_nfs4_call *call_of(const struct ssc_nfs4_client *c, uint32_t xid)
{
	const uint32_t at = xid & ((1u << SSC_NFS4_XID_BITS) - 1);

	if (at >= SSC_NFS4_PLACES || !c->place[at].is_sent || c->place[at].xid != xid)
		return NULL;
	return c->place[at].call;
}

static bool place(void *client, uint32_t xid, const void *results, size_t len, size_t total,
		  struct ssc_wire_place *p)
{
	const struct ssc_nfs4_call *call = call_of(client, xid);

	(void)total;
	return call && ssc_nfs4_find_place(call, results, len, p);
}

static bool still(void *client, uint32_t xid)
{
	return call_of(client, xid) != NULL;
}

const struct ssc_wire_ops ssc_nfs4_wire_ops = {
	.reply = reply,
	.place = place,
	.still = still,
	.call = ssc_nfs4_callback,
};
