/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_callback.c - the back channel: calls of the server, and our answers.
 *
 * CB_SEQUENCE leads each compound; the reply to the last one of each slot is kept and given again when
 * the server repeats it. CB_OFFLOAD is handed to the user and kept for those who wait for it. We hold no
 * delegation, layout or lock, so whatever else is recalled does not exist.
 * A callback may overtake the reply to the COPY that it belongs to; those who wait look at what was
 * kept (client.offload) by the stateid, so the order does not matter.
 * Threads: the client's only; the kept CB_OFFLOADs under client.lock. Source: RFC 8881 20, RFC 7862 16.
 */
#include <string.h>

#include "nfs4_internal.h"

enum {
	CB_GETATTR = 3,
	CB_RECALL = 4,
	CB_LAYOUTRECALL = 5,
	CB_PUSH_DELEG = 7,
	CB_RECALL_ANY = 8,
	CB_RECALL_SLOT = 10,
	CB_SEQUENCE = 11,
	CB_LAST = 15,
	CB_ILLEGAL = 10044
};

#define CB_TAG_MAX    128
#define REFERRING_MAX 64

/* Header of a reply: mark, xid, REPLY, accepted, verifier of two words, how it was accepted. */
#define HEADER_BYTES 28

/* A result of ours is at most CB_SEQUENCE's: status, session, four numbers, and its number. */
#define RESULT_BYTES 44

struct answer {
	uint8_t *at;
	const uint8_t *end;
};

static void put_u32(struct answer *a, uint32_t v)
{
	if (a->end - a->at < 4)
		return; /* RESULT_BYTES was left, so it cannot be */
	*a->at++ = v >> 24;
	*a->at++ = v >> 16;
	*a->at++ = v >> 8;
	*a->at++ = v;
}

static void set_u32(uint8_t *at, uint32_t v)
{
	struct answer a = {at, at + 4};

	put_u32(&a, v);
}

static void put_bytes(struct answer *a, const void *bytes, uint32_t len)
{
	const size_t room = len + (-len & 3u);

	if ((size_t)(a->end - a->at) < room)
		return;
	memset(a->at, 0, room);
	memcpy(a->at, bytes, len);
	a->at += room;
}

void ssc_nfs4_callback_reset(struct ssc_nfs4_client *c)
{
	for (int i = 0; i < SSC_NFS4_CB_SLOTS; i++)
		c->cb_slot[i].seqid = 0;
}

/* ---- CB_OFFLOAD ---- */

static void keep_offload(struct ssc_nfs4_client *c, const struct ssc_cb_offload_args *args)
{
	struct ssc_nfs4_offload *o = &c->offload[0];

	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < SSC_NFS4_OFFLOADS; i++) {
		if (!c->offload[i].is_used) {
			o = &c->offload[i];
			break;
		}
		if (c->offload[i].order < o->order)
			o = &c->offload[i];
	}
	o->is_used = true;
	o->order = c->offload_order++;
	o->args = *args;
	c->info.n_callbacks++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static uint32_t offload(struct ssc_nfs4_client *c, struct ssc_xdr *x)
{
	struct ssc_cb_offload_args args;
	struct ssc_xio_mem mem;
	uint32_t answer = SSC_ST4_OK;

	ssc_xio_decode(&mem, x->at, (size_t)(x->end - x->at));
	if (!ssc_xio_cb_offload_args(&mem.io, &args))
		return SSC_ST4_BADXDR;
	x->at = mem.at;
	if (c->cfg.offload)
		answer = c->cfg.offload(c->cfg.ctx, &args);
	if (answer == SSC_ST4_OK)
		keep_offload(c, &args);
	return answer;
}

/* ---- CB_SEQUENCE ---- */

static void skip_referring_calls(struct ssc_xdr *x)
{
	uint32_t n_lists = ssc_xdr_u32(x);

	if (n_lists > REFERRING_MAX)
		ssc_xdr_fail(x);
	for (uint32_t i = 0; i < n_lists && ssc_xdr_ok(x); i++) {
		uint32_t n;

		(void)ssc_xdr_fixed(x, SSC_NFS4_SESSION_BYTES);
		n = ssc_xdr_u32(x);
		if (n > REFERRING_MAX)
			ssc_xdr_fail(x);
		else
			(void)ssc_xdr_fixed(x, 8 * n);
	}
}

/* @return status; *slot is set when the call is new, or is_replay says that it is the last again. */
static uint32_t sequence(struct ssc_nfs4_client *c, struct ssc_xdr *x, struct answer *a,
			 struct ssc_nfs4_cb_slot **slot, bool *is_replay)
{
	uint8_t session[SSC_NFS4_SESSION_BYTES];
	uint32_t seqid, at;

	ssc_xdr_copy(x, session, sizeof(session));
	seqid = ssc_xdr_u32(x);
	at = ssc_xdr_u32(x);
	(void)ssc_xdr_u32(x);  /* highest slot */
	(void)ssc_xdr_bool(x); /* cache this: always */
	skip_referring_calls(x);
	if (!ssc_xdr_ok(x))
		return SSC_ST4_BADXDR;
	if (!c->has_session || memcmp(session, c->session, sizeof(session)) != 0)
		return SSC_ST4_BADSESSION;
	if (at >= c->cb_slots)
		return SSC_ST4_BADSLOT;
	*slot = &c->cb_slot[at];
	*is_replay = seqid == (*slot)->seqid && seqid != 0;
	if (*is_replay)
		return SSC_ST4_OK;
	if (seqid != (*slot)->seqid + 1) {
		*slot = NULL;
		return SSC_ST4_SEQ_MISORDERED;
	}
	(*slot)->seqid = seqid;
	(*slot)->len = 0;
	put_u32(a, CB_SEQUENCE);
	put_u32(a, SSC_ST4_OK);
	put_bytes(a, session, sizeof(session));
	put_u32(a, seqid);
	put_u32(a, at);
	put_u32(a, c->cb_slots - 1);
	put_u32(a, c->cb_slots - 1);
	return SSC_ST4_OK;
}

/* ---- the compound ---- */

static uint32_t recall_slot(struct ssc_nfs4_client *c, struct ssc_xdr *x)
{
	uint32_t target = ssc_xdr_u32(x);

	if (!ssc_xdr_ok(x))
		return SSC_ST4_BADXDR;
	c->slot_limit = target < UINT32_MAX ? target + 1 : target;
	return SSC_ST4_OK;
}

static uint32_t one_op(struct ssc_nfs4_client *c, uint32_t op, struct ssc_xdr *x)
{
	struct ssc_bitmap map;

	switch (op) {
	case CB_GETATTR:
		return SSC_ST4_BADHANDLE;
	case CB_RECALL:
		return SSC_ST4_BAD_STATEID;
	case CB_LAYOUTRECALL:
		return SSC_ST4_NOMATCHING_LAYOUT;
	case CB_PUSH_DELEG:
		return SSC_ST4_REJECT_DELEG;
	case CB_RECALL_ANY:
		(void)ssc_xdr_u32(x);
		return ssc_nfs4_read_bitmap(x, &map) ? SSC_ST4_OK : SSC_ST4_BADXDR;
	case CB_RECALL_SLOT:
		return recall_slot(c, x);
	case CB_SEQUENCE:
		return SSC_ST4_SEQUENCE_POS;
	case SSC_OP42_CB_OFFLOAD:
		return offload(c, x);
	default:
		return op < CB_GETATTR || op > CB_LAST ? SSC_ST4_OP_ILLEGAL : SSC_ST4_NOTSUPP;
	}
}

/* Results behind CB_SEQUENCE's. @return status of the last. */
static uint32_t other_ops(struct ssc_nfs4_client *c, struct ssc_xdr *x, struct answer *a,
			  uint32_t n, uint32_t *n_done)
{
	uint32_t status = SSC_ST4_OK;

	for (; n > 0 && status == SSC_ST4_OK; n--) {
		uint32_t op = ssc_xdr_u32(x);

		if (a->end - a->at < RESULT_BYTES)
			status = SSC_ST4_TOO_MANY_OPS;
		else if (!ssc_xdr_ok(x))
			status = SSC_ST4_BADXDR;
		else
			status = one_op(c, op, x);
		put_u32(a, status == SSC_ST4_OP_ILLEGAL ? CB_ILLEGAL : op);
		put_u32(a, status);
		(*n_done)++;
	}
	return status;
}

/* The body of the reply: status, tag, results. @return slot that it is to be kept in, or NULL. */
static struct ssc_nfs4_cb_slot *compound(struct ssc_nfs4_client *c, struct ssc_xdr *x,
					 struct answer *a, bool *is_replay)
{
	struct ssc_nfs4_cb_slot *slot = NULL;
	uint8_t *const status_at = a->at;
	uint32_t tag_len, n, minor, op, status, n_done = 0;
	const void *tag = ssc_xdr_opaque(x, CB_TAG_MAX, &tag_len);
	uint8_t *n_at;

	minor = ssc_xdr_u32(x);
	(void)ssc_xdr_u32(x); /* callback_ident, of 4.0 */
	n = ssc_xdr_u32(x);
	op = n > 0 ? ssc_xdr_u32(x) : 0;
	put_u32(a, 0);
	put_u32(a, tag_len);
	if (tag)
		put_bytes(a, tag, tag_len);
	n_at = a->at;
	put_u32(a, 0);
	if (!tag || (n > 0 && !ssc_xdr_ok(x)))
		status = SSC_ST4_BADXDR;
	else if (minor != c->cfg.minor_version)
		status = SSC_ST4_MINOR_VERS_MISMATCH;
	else if (n == 0)
		status = SSC_ST4_OK;
	else if (op != CB_SEQUENCE) {
		status = SSC_ST4_OP_NOT_IN_SESSION;
		put_u32(a, op);
		put_u32(a, status);
		n_done = 1;
	} else {
		status = sequence(c, x, a, &slot, is_replay);
		n_done = 1;
		if (*is_replay)
			return slot;
		if (status) {
			put_u32(a, CB_SEQUENCE);
			put_u32(a, status);
		} else {
			status = other_ops(c, x, a, n - 1, &n_done);
		}
	}
	set_u32(status_at, status);
	set_u32(n_at, n_done);
	return slot;
}

static void send_answer(struct ssc_nfs4_client *c, uint8_t *buf, size_t len)
{
	if (ssc_wire_send(c->wire, buf, len, NULL, 0, 0, false) != SSC_OK)
		ssc_nfs4_broken(c, "the connection broke while sending");
}

void ssc_nfs4_callback(void *client, uint32_t xid, const void *bytes, size_t len)
{
	uint8_t buf[HEADER_BYTES + SSC_NFS4_CB_REPLY_MAX];
	struct answer a = {buf + 4, buf + sizeof(buf)};
	uint32_t version, program, proc, skipped, accept = 0;
	struct ssc_nfs4_client *c = client;
	struct ssc_nfs4_cb_slot *slot = NULL;
	bool is_replay = false;
	struct ssc_xdr x;

	ssc_xdr_init(&x, bytes, len);
	version = ssc_xdr_u32(&x);
	program = ssc_xdr_u32(&x);
	(void)ssc_xdr_u32(&x); /* its version: 1, or 4 where the RFC was read by the letter */
	proc = ssc_xdr_u32(&x);
	for (int i = 0; i < 2;
	     i++) { /* credentials and verifier: the connection is what we trust */
		(void)ssc_xdr_u32(&x);
		(void)ssc_xdr_opaque(&x, 400, &skipped);
	}
	if (!ssc_xdr_ok(&x) || version != 2) {
		ssc_nfs4_broken(c, "the server sends what is no call");
		return;
	}
	if (program != SSC_NFS4_CB_PROGRAM)
		accept = 1; /* PROG_UNAVAIL */
	else if (proc > 1)
		accept = 3; /* PROC_UNAVAIL */
	put_u32(&a, xid);
	put_u32(&a, 1);
	put_u32(&a, 0);
	put_u32(&a, 0);
	put_u32(&a, 0);
	put_u32(&a, accept);
	if (accept == 0 && proc == 1)
		slot = compound(c, &x, &a, &is_replay);
	if (is_replay) {
		memcpy(buf + HEADER_BYTES, slot->reply, slot->len);
		a.at = buf + HEADER_BYTES + slot->len;
	} else if (slot) {
		slot->len = (size_t)(a.at - buf) - HEADER_BYTES;
		memcpy(slot->reply, buf + HEADER_BYTES, slot->len);
	}
	send_answer(c, buf, (size_t)(a.at - buf));
}
