/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_peer_ops.c - operations of the NFSv4.2 peer: client ids, sessions, slots, and a little I/O.
 *
 * Written from the RFC alone, apart from the client's own codec, so that a fault in the one does not
 * hide in the other.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_peer_internal.h"
#include "ssc/xdr.h"

enum { OK = 0, DELAY = 10008, BADSESSION = 10052, BADSLOT = 10053, STALE_CLIENTID = 10022 };
enum { SEQ_MISORDERED = 10063, RETRY_UNCACHED = 10068, NOTSUPP = 10004, MISMATCH = 10021 };

struct out {
	uint8_t *at;
};

static void put(struct out *o, uint32_t v)
{
	v = htonl(v);
	memcpy(o->at, &v, 4);
	o->at += 4;
}

static void put64(struct out *o, uint64_t v)
{
	put(o, (uint32_t)(v >> 32));
	put(o, (uint32_t)v);
}

static void put_bytes(struct out *o, const void *bytes, size_t len)
{
	memcpy(o->at, bytes, len);
	memset(o->at + len, 0, -len & 3);
	o->at += len + (-len & 3);
}

static bool is_null_call(struct nfs4_peer *peer, uint32_t xid, uint32_t proc)
{
	if (proc != 0)
		return false;
	(void)xid; /* silence is as good as an answer for the tests that count these */
	atomic_fetch_add(&peer->n_nulls, 1);
	return true;
}

/* Credentials and verifier. */
static void skip_auth(struct ssc_xdr *x)
{
	uint32_t len;

	for (int i = 0; i < 2; i++) {
		(void)ssc_xdr_u32(x);
		(void)ssc_xdr_opaque(x, 400, &len);
	}
}

static void peek_first_op(struct ssc_xdr x, struct nfs4_request *rq)
{
	uint32_t len;

	rq->first_op = rq->second_op = ssc_xdr_u32(&x);
	if (rq->first_op == 22) { /* PUTFH: what it is for is more telling */
		(void)ssc_xdr_opaque(&x, 128, &len);
		if (rq->n_ops > 1u + rq->has_sequence)
			rq->first_op = rq->second_op = ssc_xdr_u32(&x);
	}
}

bool peer_parse(struct nfs4_peer *peer, const uint8_t *bytes, size_t len, struct nfs4_request *rq)
{
	uint32_t type, proc, tag;
	struct ssc_xdr x, peek;

	memset(rq, 0, sizeof(*rq));
	rq->raw_n = -1;
	ssc_xdr_init(&x, bytes, len);
	rq->xid = ssc_xdr_u32(&x);
	type = ssc_xdr_u32(&x);
	if (type == 1) { /* the client answers a callback */
		peer->cb_len = len < sizeof(peer->cb_reply) ? len : sizeof(peer->cb_reply);
		memcpy(peer->cb_reply, bytes, peer->cb_len);
		return false;
	}
	(void)ssc_xdr_fixed(&x, 12); /* RPC version, program, version */
	proc = ssc_xdr_u32(&x);
	skip_auth(&x);
	if (is_null_call(peer, rq->xid, proc))
		return false;
	(void)ssc_xdr_opaque(&x, 16, &tag);
	rq->minor = ssc_xdr_u32(&x);
	rq->n_ops = ssc_xdr_u32(&x);
	peek = x;
	if (ssc_xdr_u32(&peek) == 53) {
		rq->has_sequence = true;
		(void)ssc_xdr_fixed(&peek, 16);
		rq->seqid = ssc_xdr_u32(&peek);
		rq->slot = ssc_xdr_u32(&peek);
		rq->highest = ssc_xdr_u32(&peek);
		rq->wants_cache = ssc_xdr_bool(&peek);
		x = peek;
	}
	peek_first_op(x, rq);
	rq->number = atomic_fetch_add(&peer->n_requests, 1) + 1;
	if (!ssc_xdr_ok(&x))
		peer_wrong(peer, "a compound that is cut");
	return true;
}

/* ---- sessions ---- */

static uint32_t exchange_id(struct nfs4_peer *peer, struct ssc_xdr *x, struct out *o)
{
	uint32_t len;

	(void)ssc_xdr_fixed(x, 8);
	if (!ssc_xdr_opaque(x, 1024, &len) || len == 0)
		peer_wrong(peer, "no client owner");
	(void)ssc_xdr_fixed(x, 12); /* flags, SP4_NONE, no implementation id */
	atomic_fetch_add(&peer->n_exchange, 1);
	peer->clientid++;
	peer->cs_seqid = 7;
	peer->has_client = true;
	peer->has_session = false;
	put(o, 42);
	put(o, OK);
	put64(o, peer->clientid);
	put(o, peer->cs_seqid);
	put(o, 0x00010000u);
	put(o, 0);
	put64(o, 1);
	put(o, 4);
	put_bytes(o, "peer", 4);
	put(o, 5);
	put_bytes(o, "scope", 5);
	put(o, 0);
	return OK;
}

static void put_channel(struct out *o, uint32_t max, uint32_t n)
{
	const uint32_t v[7] = {0, max, max, 4096, 64, n, 0};

	for (int i = 0; i < 7; i++)
		put(o, v[i]);
}

static uint32_t create_session(struct nfs4_peer *peer, struct ssc_xdr *x, struct out *o)
{
	uint64_t clientid = ssc_xdr_u64(x);
	uint32_t seqid = ssc_xdr_u32(x), flags = ssc_xdr_u32(x);
	uint32_t status = OK;

	(void)ssc_xdr_fixed(x, 56 + 12); /* channels, program, one AUTH_NONE */
	atomic_fetch_add(&peer->n_create, 1);
	if (!peer->has_client || clientid != peer->clientid)
		status = STALE_CLIENTID;
	else if (seqid != peer->cs_seqid && seqid + 1 != peer->cs_seqid)
		status = SEQ_MISORDERED;
	put(o, 43);
	put(o, status);
	if (status)
		return status;
	if (seqid == peer->cs_seqid) { /* else it is the last one again */
		peer->cs_seqid++;
		memset(peer->session, 0x40 + (int)++peer->n_sessions, sizeof(peer->session));
		memset(peer->slot, 0, sizeof(peer->slot));
	}
	peer->has_session = true;
	put_bytes(o, peer->session, 16);
	put(o, seqid);
	put(o, flags & 2);
	put_channel(o, peer->request_max, peer->n_slots);
	put_channel(o, 4096, 4);
	return OK;
}

static uint32_t bind_connection(struct nfs4_peer *peer, struct ssc_xdr *x, struct out *o)
{
	const void *id = ssc_xdr_fixed(x, 16);
	uint32_t status = OK;

	(void)ssc_xdr_fixed(x, 8);
	atomic_fetch_add(&peer->n_bind, 1);
	if (!id || !peer->has_session || memcmp(id, peer->session, 16) != 0)
		status = BADSESSION;
	put(o, 41);
	put(o, status);
	if (status)
		return status;
	put_bytes(o, id, 16);
	put(o, 3);
	put(o, 0);
	return OK;
}

/* ---- slots ---- */

static uint32_t check_slot(struct nfs4_peer *peer, const void *id, const struct nfs4_request *rq)
{
	struct peer_slot *s = &peer->slot[rq->slot % PEER_SLOTS_MAX];

	if (rq->sequence_status)
		return rq->sequence_status;
	if (!id || !peer->has_session || memcmp(id, peer->session, 16) != 0)
		return BADSESSION;
	if (rq->slot >= peer->n_slots) {
		peer_wrong(peer, "a slot that was not granted");
		return BADSLOT;
	}
	if (rq->highest < rq->slot)
		peer_wrong(peer, "highest slot is lower than the slot");
	if (s->is_busy)
		peer_wrong(peer, "a slot in use is used");
	if (rq->seqid == s->seqid)
		return s->len ? OK : RETRY_UNCACHED;
	if (rq->seqid != s->seqid + 1) {
		peer_wrong(peer, "sequence out of order");
		return SEQ_MISORDERED;
	}
	return OK;
}

static void put_sequence(struct nfs4_peer *peer, const struct nfs4_request *rq, struct out *o)
{
	const uint32_t target = atomic_load(&peer->target_slot);

	put(o, 53);
	put(o, OK);
	put_bytes(o, peer->session, 16);
	put(o, rq->seqid);
	put(o, rq->slot);
	put(o, peer->n_slots - 1);
	put(o, target < peer->n_slots ? target : peer->n_slots - 1);
	put(o, atomic_load(&peer->status_flags));
}

/* ---- the others ---- */

static void put_data(struct out *o, uint64_t offset, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		o->at[i] = (uint8_t)((offset + i) * 31 >> 3);
	memset(o->at + count, 0, -count & 3);
	o->at += count + (-count & 3);
}

static uint32_t input_output(uint32_t op, struct ssc_xdr *x, struct out *o, struct nfs4_request *rq)
{
	switch (op) {
	case 25: /* READ */
		(void)ssc_xdr_fixed(x, 16);
		rq->io_offset = ssc_xdr_u64(x);
		rq->io_count = ssc_xdr_u32(x);
		put(o, OK);
		put(o, 0);
		put(o, rq->io_count);
		put_data(o, rq->io_offset, rq->io_count);
		return OK;
	case 38: /* WRITE */
		(void)ssc_xdr_fixed(x, 16);
		rq->io_offset = ssc_xdr_u64(x);
		(void)ssc_xdr_u32(x);
		(void)ssc_xdr_opaque(x, 1 << 20, &rq->io_count);
		put(o, OK);
		put(o, rq->io_count);
		put(o, 0);
		put_bytes(o, "verifier", 8);
		return OK;
	case 5: /* COMMIT */
		(void)ssc_xdr_fixed(x, 12);
		put(o, OK);
		put_bytes(o, "verifier", 8);
		return OK;
	default:
		put(o, NOTSUPP);
		return NOTSUPP;
	}
}

static uint32_t other(struct nfs4_peer *peer, uint32_t op, struct ssc_xdr *x, struct out *o,
		      struct nfs4_request *rq)
{
	uint32_t len;

	if (op == 42)
		return exchange_id(peer, x, o);
	if (op == 43)
		return create_session(peer, x, o);
	if (op == 41)
		return bind_connection(peer, x, o);
	put(o, op);
	switch (op) {
	case 44: /* DESTROY_SESSION */
		(void)ssc_xdr_fixed(x, 16);
		atomic_fetch_add(&peer->n_destroy_session, 1);
		put(o, OK);
		return OK;
	case 57: /* DESTROY_CLIENTID */
		(void)ssc_xdr_u64(x);
		atomic_fetch_add(&peer->n_destroy_client, 1);
		put(o, OK);
		return OK;
	case 58: /* RECLAIM_COMPLETE */
		(void)ssc_xdr_bool(x);
		atomic_fetch_add(&peer->n_complete, 1);
		put(o, OK);
		return OK;
	case 22:
		(void)ssc_xdr_opaque(x, 128, &len);
		put(o, OK);
		return OK;
	case 24:
		put(o, OK);
		return OK;
	case 9: /* GETATTR: of lease_time, whatever was asked */
		for (len = ssc_xdr_u32(x); len > 0; len--)
			(void)ssc_xdr_u32(x);
		put(o, OK);
		put(o, 1);
		put(o, 1u << 10);
		put(o, 4);
		put(o, peer->lease_s);
		return OK;
	default:
		return input_output(op, x, o, rq);
	}
}

static uint32_t do_ops(struct nfs4_peer *peer, struct ssc_xdr *x, struct out *o,
		       struct nfs4_request *rq, uint32_t *n_done)
{
	uint32_t status = OK;

	if (rq->raw_n >= 0) {
		put_bytes(o, rq->raw, rq->raw_len);
		*n_done += (uint32_t)rq->raw_n;
		return rq->raw_status;
	}
	for (uint32_t n = rq->n_ops - rq->has_sequence; n > 0 && status == OK; n--) {
		uint32_t op = ssc_xdr_u32(x);

		status = other(peer, op, x, o, rq);
		(*n_done)++;
		if (!ssc_xdr_ok(x)) {
			peer_wrong(peer, "arguments that are cut");
			break;
		}
	}
	if (status == OK && x->at != x->end)
		peer_wrong(peer, "something behind the last operation");
	return status;
}

static void note_busy(struct nfs4_peer *peer)
{
	uint32_t n = 1;

	for (int i = 0; i < PEER_SLOTS_MAX; i++)
		n += peer->slot[i].is_busy;
	if (n > peer->max_busy)
		peer->max_busy = n;
}

/* @return length of the results. */
static size_t with_sequence(struct nfs4_peer *peer, struct ssc_xdr *x, struct out *o,
			    struct nfs4_request *rq, uint32_t *status, uint32_t *n_done)
{
	uint8_t *const begin = peer->out + PEER_HEADER;
	const void *id = (ssc_xdr_u32(x), ssc_xdr_fixed(x, 16));
	struct peer_slot *s = &peer->slot[rq->slot % PEER_SLOTS_MAX];

	(void)ssc_xdr_fixed(x, 16);
	*status = check_slot(peer, id, rq);
	*n_done = 1;
	if (*status == RETRY_UNCACHED && peer->is_uncached_later && rq->n_ops > 1) {
		put_sequence(peer, rq, o);
		put(o, rq->second_op);
		put(o, RETRY_UNCACHED);
		*n_done = 2;
		return 0;
	}
	if (*status) {
		put(o, 53);
		put(o, *status);
		return 0;
	}
	if (rq->seqid == s->seqid) {
		memcpy(begin, s->reply, s->len);
		return s->len;
	}
	note_busy(peer);
	s->seqid = rq->seqid;
	s->len = 0;
	put_sequence(peer, rq, o);
	*status = do_ops(peer, x, o, rq, n_done);
	atomic_fetch_add(&peer->n_done, 1);
	return 0;
}

static void forget(struct nfs4_peer *peer)
{
	if (atomic_exchange(&peer->forget_client, false))
		peer->has_client = peer->has_session = false;
	if (atomic_exchange(&peer->forget_session, false))
		peer->has_session = false;
}

size_t peer_do(struct nfs4_peer *peer, const uint8_t *bytes, size_t len, struct nfs4_request *rq)
{
	uint8_t *const begin = peer->out + PEER_HEADER;
	struct out o = {begin + 12}, head = {begin};
	uint32_t status = OK, n_done = 0, tag;
	struct ssc_xdr x;
	size_t cached = 0;

	forget(peer);
	ssc_xdr_init(&x, bytes, len);
	(void)ssc_xdr_fixed(&x, 24);
	skip_auth(&x);
	(void)ssc_xdr_opaque(&x, 16, &tag);
	(void)ssc_xdr_fixed(&x, 8);
	if (rq->minor != 2)
		status = MISMATCH;
	else if (rq->has_sequence)
		cached = with_sequence(peer, &x, &o, rq, &status, &n_done);
	else
		status = do_ops(peer, &x, &o, rq, &n_done);
	if (cached)
		return cached;
	put(&head, status);
	put(&head, 0);
	put(&head, n_done);
	len = (size_t)(o.at - begin);
	if (rq->has_sequence && rq->wants_cache && !(n_done == 1 && status) &&
	    rq->slot < PEER_SLOTS_MAX && len <= PEER_CACHE_MAX) {
		memcpy(peer->slot[rq->slot].reply, begin, len);
		peer->slot[rq->slot].len = len;
	}
	return len;
}
