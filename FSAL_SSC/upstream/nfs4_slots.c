/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_slots.c - calls in the slots of the session: issuing, sending again, ending.
 *
 * A place of a call:
 *     free -> busy, sent -> (reply) -> free
 *     busy, sent -> (connection lost) -> busy, not sent -> sent again, same slot and sequence
 *     busy -> (its time is over) -> busy without call: what its sequence came to must still be found
 *     out, by the reply or, after a loss, by a SEQUENCE alone -> free
 * Slots are taken lowest first, so that a server that lowers its limit finds the high ones idle.
 * Threads: the client's only. Source: RFC 8881 2.10.6, 18.46.
 */
#include <string.h>

#include "nfs4_internal.h"

/* Data of so much is received in place, see wire.c. */
#define LONG_READ_BYTES (32 * 1024)

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
	return p + 4;
}

static uint32_t next_xid(struct ssc_nfs4_client *c, uint32_t at)
{
	c->xid++;
	return c->xid << SSC_NFS4_XID_BITS | at;
}

static bool is_long_read(const struct ssc_nfs4_call *call)
{
	return call->read_iov && call->read_max >= LONG_READ_BYTES;
}

/* ---- places ---- */

uint32_t ssc_nfs4_free_slot(const struct ssc_nfs4_client *c)
{
	const uint32_t n = c->n_slots < c->slot_limit ? c->n_slots : c->slot_limit;

	for (uint32_t at = 0; at < n; at++)
		if (!c->place[at].is_busy)
			return at;
	return SSC_NFS4_PLACES;
}

static uint32_t free_bare(const struct ssc_nfs4_client *c)
{
	for (uint32_t at = SSC_NFS4_SLOTS_MAX; at < SSC_NFS4_SETUP_AT; at++)
		if (!c->place[at].is_busy)
			return at;
	return SSC_NFS4_PLACES;
}

static uint32_t highest_slot(const struct ssc_nfs4_client *c)
{
	for (uint32_t at = c->n_slots; at > 0; at--)
		if (c->place[at - 1].is_busy)
			return at - 1;
	return 0;
}

static void attach(struct ssc_nfs4_client *c, uint32_t at, struct ssc_nfs4_call *call)
{
	struct ssc_nfs4_place *p = &c->place[at];

	p->is_busy = true;
	p->is_sent = p->is_resent = false;
	p->retry_ns = 0;
	p->call = call;
	c->n_long_reads += is_long_read(call);
	if (!ssc_nfs4_is_slot(at))
		return;
	c->n_busy++;
	if (c->n_busy > c->info.max_in_flight) {
		pthread_mutex_lock(&c->lock);
		c->info.max_in_flight = c->n_busy;
		pthread_mutex_unlock(&c->lock);
	}
}

struct ssc_nfs4_call *ssc_nfs4_detach(struct ssc_nfs4_client *c, uint32_t at)
{
	struct ssc_nfs4_call *call = c->place[at].call;

	c->place[at].call = NULL;
	if (call)
		c->n_long_reads -= is_long_read(call);
	return call;
}

void ssc_nfs4_release(struct ssc_nfs4_client *c, uint32_t at, bool used)
{
	struct ssc_nfs4_place *p = &c->place[at];

	p->is_busy = p->is_sent = false;
	if (!ssc_nfs4_is_slot(at))
		return;
	c->n_busy--;
	if (used)
		p->seqid++;
}

/* ---- sending ---- */

static uint8_t *put_sequence(struct ssc_nfs4_client *c, uint8_t *to, uint32_t at, bool cache)
{
	to = put_u32(to, SSC_OP4_SEQUENCE);
	memcpy(to, c->session, sizeof(c->session));
	to = put_u32(to + sizeof(c->session), c->place[at].seqid);
	to = put_u32(to, at);
	to = put_u32(to, highest_slot(c));
	return put_u32(to, cache);
}

/* Data of WRITE, its padding, and the operations behind it: as pieces of one record. */
static int gather(const struct ssc_nfs4_call *call, const uint8_t *tail, size_t tail_len,
		  struct iovec *part, size_t *bytes)
{
	static const uint8_t zeros[4];
	int n = 0;

	*bytes = 0;
	for (int i = 0; i < call->n_iov && *bytes < call->write_bytes; i++) {
		size_t left = call->write_bytes - *bytes;

		part[n] = call->iov[i];
		if (part[n].iov_len > left)
			part[n].iov_len = left;
		*bytes += part[n++].iov_len;
	}
	if (tail_len == 0)
		return n; /* the wire pads */
	part[n++] = (struct iovec){(void *)zeros, -*bytes & 3};
	part[n++] = (struct iovec){(void *)tail, tail_len};
	*bytes += (-*bytes & 3) + tail_len;
	return n;
}

static enum ssc_err send_compound(struct ssc_nfs4_client *c, uint32_t at)
{
	static const struct ssc_wire_procedure compound = {SSC_NFS4_PROGRAM, 4, 1};
	struct ssc_nfs4_place *p = &c->place[at];
	const struct ssc_nfs4_call *call = p->call;
	const size_t args = call ? (size_t)(call->out.at - call->args) : 0;
	const size_t head = call && call->iov ? call->data_at : args;
	const uint32_t n_ops = call ? call->n_ops : 0;
	struct iovec part[17];
	uint8_t buf[SSC_WIRE_CALL_MAX];
	uint8_t *to;
	size_t bytes = 0;
	int n = 0;

	to = buf + ssc_wire_header(buf, p->xid, &compound, call ? &call->cred : &c->cfg.cred);
	to = put_u32(to, 0); /* tag */
	to = put_u32(to, c->cfg.minor_version);
	to = put_u32(to, n_ops + ssc_nfs4_is_slot(at));
	if (ssc_nfs4_is_slot(at))
		to = put_sequence(c, to, at, call && call->is_unsafe);
	if (call)
		memcpy(to, call->args, args);
	if (call && call->iov)
		n = gather(call, to + head, args - head, part, &bytes);
	return ssc_wire_send(c->wire, buf, (size_t)(to - buf) + head, part, n, bytes, true);
}

static void send_place(struct ssc_nfs4_client *c, uint32_t at, uint64_t now)
{
	struct ssc_nfs4_place *p = &c->place[at];
	enum ssc_err err;

	p->xid = next_xid(c, at);
	p->sent_ns = now;
	p->is_sent = true;
	if (p->call && p->call->n_sent++ > 0) {
		pthread_mutex_lock(&c->lock);
		c->info.n_resent++;
		pthread_mutex_unlock(&c->lock);
	}
	err = send_compound(c, at);
	if (err == SSC_E_CONN)
		ssc_nfs4_broken(c, "the connection broke while sending");
	else if (err) { /* nothing of it was sent */
		ssc_nfs4_end(c, ssc_nfs4_detach(c, at), ssc_nfs4_local(err));
		ssc_nfs4_release(c, at, false);
	}
}

void ssc_nfs4_issue_own(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call, uint32_t at)
{
	const uint64_t now = ssc_clock_now_ns();

	attach(c, at, call);
	call->deadline_ns = now + (call->timeout_ns ? call->timeout_ns : c->cfg.connect_ns);
	if (call->deadline_ns < c->next_deadline_ns)
		c->next_deadline_ns = call->deadline_ns;
	send_place(c, at, now);
}

void ssc_nfs4_send_null(struct ssc_nfs4_client *c)
{
	static const struct ssc_wire_procedure null = {SSC_NFS4_PROGRAM, 4, 0};
	uint8_t buf[SSC_WIRE_CALL_MAX];
	size_t len = ssc_wire_header(buf, next_xid(c, SSC_NFS4_XID_NULL), &null, &c->cfg.cred);

	if (ssc_wire_send(c->wire, buf, len, NULL, 0, 0, false) != SSC_OK)
		ssc_nfs4_broken(c, "the connection broke while sending");
}

/* ---- issuing ---- */

static void put_back(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	atomic_fetch_add(&c->n_waiting, 1);
	cds_list_add(&call->link, &c->ready);
}

static void send_again(struct ssc_nfs4_client *c, uint64_t now)
{
	for (uint32_t at = 0; at < c->n_slots && !c->why; at++) {
		struct ssc_nfs4_place *p = &c->place[at];

		if (!p->is_busy || p->is_sent)
			continue;
		if (p->retry_ns > now) {
			ssc_nfs4_wake_by(c, p->retry_ns);
			continue;
		}
		if (p->call && ssc_nfs4_is_hopeless(p->call))
			ssc_nfs4_end(c, ssc_nfs4_detach(c, at), ssc_nfs4_local(SSC_E_PROTO));
		send_place(c, at, now);
	}
}

/* Some servers drop the connection of one who asks for more than the session grants. */
static bool is_too_large(const struct ssc_nfs4_client *c, const struct ssc_nfs4_call *call)
{
	return call->write_bytes > c->io_max || (call->read_iov && call->read_max > c->io_max);
}

void ssc_nfs4_pump(struct ssc_nfs4_client *c, uint64_t now)
{
	send_again(c, now);
	if (c->wants_fresh && c->n_busy == 0)
		ssc_nfs4_next_step(c);
	while (!cds_list_empty(&c->ready) && c->state == SSC_NFS4_UP && !c->why &&
	       !c->wants_fresh && ssc_wire_unsent(c->wire) < SSC_NFS4_UNSENT_MAX) {
		struct ssc_nfs4_call *call =
			cds_list_first_entry(&c->ready, struct ssc_nfs4_call, link);
		uint32_t at = call->is_bare ? free_bare(c) : ssc_nfs4_free_slot(c);

		if (at == SSC_NFS4_PLACES)
			break;
		cds_list_del(&call->link);
		atomic_fetch_sub(&c->n_waiting, 1);
		if (ssc_nfs4_is_hopeless(call) || is_too_large(c, call)) {
			ssc_nfs4_end(c, call,
				     ssc_nfs4_local(is_too_large(c, call) ? SSC_E_INVAL
									  : SSC_E_PROTO));
			continue;
		}
		attach(c, at, call);
		send_place(c, at, now);
	}
	if (c->wire && !c->why && ssc_wire_flush(c->wire) != SSC_OK)
		ssc_nfs4_broken(c, "the connection broke while sending");
}

/* ---- losses ---- */

/* @call has left its place and its outcome is not known: again, or over. */
static void again_or_over(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	if (call == &c->setup || (call->is_unsafe && call->n_sent > 0))
		ssc_nfs4_end(c, call, ssc_nfs4_local(SSC_E_CONN));
	else
		put_back(c, call);
}

void ssc_nfs4_unsend(struct ssc_nfs4_client *c)
{
	for (uint32_t at = SSC_NFS4_PLACES; at-- > 0;) {
		struct ssc_nfs4_place *p = &c->place[at];
		struct ssc_nfs4_call *call = p->call;

		if (!p->is_busy)
			continue;
		p->is_sent = false;
		p->is_resent = true;
		if (ssc_nfs4_is_slot(at) && call != &c->setup)
			continue; /* with the session, which may have survived */
		call = ssc_nfs4_detach(c, at);
		if (call)
			again_or_over(c, call);
		if (!ssc_nfs4_is_slot(at))
			ssc_nfs4_release(c, at, false);
	}
}

void ssc_nfs4_drop_session(struct ssc_nfs4_client *c)
{
	for (uint32_t at = SSC_NFS4_SLOTS_MAX; at-- > 0;) {
		struct ssc_nfs4_call *call;

		if (c->place[at].is_busy) {
			call = ssc_nfs4_detach(c, at);
			if (call)
				again_or_over(c, call);
			ssc_nfs4_release(c, at, false);
		}
		c->place[at].seqid = 1;
	}
}

static bool is_own(const struct ssc_nfs4_client *c, const struct ssc_nfs4_call *call)
{
	return call == &c->setup;
}

/* @return whether it was a call whose end the server does not know of. */
static void end_place(struct ssc_nfs4_client *c, uint32_t at, uint32_t outcome)
{
	ssc_nfs4_end(c, ssc_nfs4_detach(c, at), outcome);
	if (!ssc_nfs4_is_slot(at))
		ssc_nfs4_release(c, at, false); /* a late reply finds no one */
}

void ssc_nfs4_expire(struct ssc_nfs4_client *c, uint64_t now)
{
	const uint32_t outcome = ssc_nfs4_local(SSC_E_TIMEDOUT);
	struct ssc_nfs4_call *call, *next;
	uint64_t first = UINT64_MAX;
	uint32_t n = 0;

	for (uint32_t at = 0; at < SSC_NFS4_PLACES; at++) {
		call = c->place[at].call;
		if (call && call->deadline_ns <= now) {
			end_place(c, at, outcome);
			n++;
		} else if (call && call->deadline_ns < first) {
			first = call->deadline_ns;
		}
	}
	cds_list_for_each_entry_safe(call, next, &c->ready, link)
	{
		if (call->deadline_ns <= now) {
			cds_list_del(&call->link);
			atomic_fetch_sub(&c->n_waiting, 1);
			ssc_nfs4_end(c, call, call->n_sent ? outcome : ssc_nfs4_local(SSC_E_DOWN));
			n++;
		} else if (call->deadline_ns < first) {
			first = call->deadline_ns;
		}
	}
	c->next_deadline_ns = first;
	pthread_mutex_lock(&c->lock);
	c->info.n_timeouts += n;
	pthread_mutex_unlock(&c->lock);
}

void ssc_nfs4_end_all(struct ssc_nfs4_client *c, enum ssc_err unsent, enum ssc_err sent)
{
	struct ssc_nfs4_call *call, *next;

	for (uint32_t at = 0; at < SSC_NFS4_PLACES; at++)
		if (c->place[at].call && !is_own(c, c->place[at].call))
			end_place(c, at, ssc_nfs4_local(sent));
	cds_list_for_each_entry_safe(call, next, &c->ready, link)
	{
		cds_list_del(&call->link);
		atomic_fetch_sub(&c->n_waiting, 1);
		ssc_nfs4_end(c, call, ssc_nfs4_local(call->n_sent ? sent : unsent));
	}
}
