/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * conn.c - one connection: submissions, calls in flight, deadlines, completions.
 *
 * A call's way:  q -> ready -> flight -> (completion list) -> done
 *                      ^--------' connection lost: again, with the same xid
 * q is wait-free. Whoever holds the lock empties it: a submitter whose trylock fails leaves its call
 * to the holder. So whoever held the lock, for whatever reason, looks at q again after unlocking and
 * before it sleeps (combine, or the loop thread in front of poll), or wakes the loop thread.
 * What completes is collected under the lock and run after it. A completion that may take the
 * host's locks runs on its own submitter's thread or on the loop thread, never on another
 * submitter's: that one may hold those locks itself (see ssc_call.done_only_wakes).
 *
 * Deadlines are looked for only when the earliest one noted has passed: with calls that live for
 * milliseconds and deadlines of seconds that is a scan every few seconds, not one per call.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "ssc/clock.h"
#include "ssc/log.h"

/* READs of at least so much have their data received where it belongs. */
#define LONG_READ_BYTES (32 * 1024)

/* Requests are kept back while the socket has so much to take. */
#define UNSENT_MAX (256 * 1024)

/* An undecodable reply is asked for again so often, then the call fails. */
#define BAD_REPLIES_MAX 2

void ssc_conn_kick(struct ssc_conn *conn)
{
	const uint64_t one = 1;

	if (!atomic_exchange(&conn->kicked, true)) {
		/* Cannot fail: the counter is read back to 0 before the flag is. */
		ssize_t n = write(conn->evfd, &one, sizeof(one));
		(void)n;
	}
}

bool ssc_conn_pump_try(struct ssc_conn *conn)
{
	int free_pump = 0;

	return atomic_compare_exchange_strong(&conn->pump, &free_pump, 1);
}

/*
 * The submitter counts its call into n_flight, then looks at pump; we free pump, then look at
 * n_flight: one of the two sees the other (both are sequentially consistent).
 */
void ssc_conn_pump_release(struct ssc_conn *conn)
{
	atomic_store(&conn->pump, 0);
	if (atomic_load(&conn->n_flight) > 0 || atomic_load(&conn->pump_wanted))
		ssc_conn_kick(conn);
}

/* ---- completion ---- */

static void give_budget(struct ssc_conn *conn, struct ssc_call_priv *p)
{
	if (p->has_budget) {
		p->has_budget = false;
		ssc_budget_give(conn->up->cfg.budget, p->load_bytes);
	}
}

static void leave_budget_queue_locked(struct ssc_conn *conn)
{
	if (conn->in_budget_queue)
		ssc_budget_leave(conn->up->cfg.budget, &conn->budget_waiter);
	conn->in_budget_queue = false;
}

static bool is_long_read(const struct ssc_call *call)
{
	return call->op == SSC_OP_READ && call->arg.io.count >= LONG_READ_BYTES;
}

/* Out of whatever list it is in. */
static void leave_place_locked(struct ssc_conn *conn, struct ssc_call_priv *p)
{
	switch (p->place) {
	case SSC_CALL_READY:
		cds_list_del(&p->link);
		if (--conn->n_ready == 0)
			leave_budget_queue_locked(conn); /* nobody is left to use the room */
		break;
	case SSC_CALL_FLIGHT:
		atomic_fetch_sub(&conn->n_flight, 1);
		conn->n_long_reads -= is_long_read(p->call);
		cds_list_del(&p->xlink);
		cds_list_del(&p->link);
		break;
	case SSC_CALL_NEW:
	case SSC_CALL_FINISHED:
		break;
	}
}

void ssc_conn_finish_locked(struct ssc_conn *conn, struct ssc_call *call,
			    struct cds_list_head *comp)
{
	struct ssc_call_priv *p = ssc_priv(call);

	leave_place_locked(conn, p);
	p->place = SSC_CALL_FINISHED;
	atomic_fetch_sub(&conn->load, p->load_bytes);
	give_budget(conn, p);
	if (p->is_late_write)
		ssc_upstream_late_write_del(conn->up, call);
	if (p->answered) {
		/* The loop thread tells late, after the done(TIMEDOUT) that clink may stand for. */
		cds_list_add_tail(&p->link, &conn->late);
		ssc_conn_kick(conn);
	} else {
		call->retried = p->n_sent > 1;
		atomic_fetch_sub(&conn->up->n_unanswered, 1);
		cds_list_add_tail(&p->clink, comp);
	}
}

/* The late outcome was kept apart while done(TIMEDOUT) might still read the call. */
static void take_shadow(struct ssc_call *call, struct ssc_call *shadow)
{
	call->err = shadow->err;
	call->has_attrs = shadow->has_attrs;
	call->attrs = shadow->attrs;
	call->res = shadow->res;
	call->result_mem = shadow->result_mem;
	memset(&shadow->res, 0, sizeof(shadow->res)); /* what it owned is the call's now */
	shadow->result_mem = NULL;
	ssc_call_put(shadow);
}

/*
 * p->answered is constant here: such a call is in a completion list of the loop thread only.
 * Once p->wait is OVER the submitter may go, so the call is ours alone but for its reference.
 */
void ssc_conn_run_done(struct ssc_call_priv *p)
{
	struct ssc_call *call = p->call;
	const bool is_over = !p->answered;

	if (atomic_exchange(&p->wait, SSC_WAIT_OVER) == SSC_WAIT_HERE)
		ssc_futex_wake(&p->wait);
	call->done(call);
	if (is_over)
		ssc_call_put(call);
}

/* Leave done to the submitter that sleeps. @return false when it does not, or must not run it. */
static bool hand_over(struct ssc_call_priv *p)
{
	unsigned int here = SSC_WAIT_HERE;

	if (p->answered ||
	    !atomic_compare_exchange_strong(&p->wait, &here, (unsigned int)SSC_WAIT_MINE))
		return false;
	ssc_futex_wake(&p->wait); /* p may be gone by now; waking an unused address is harmless */
	return true;
}

void ssc_conn_run_late(struct ssc_conn *conn, struct cds_list_head *late)
{
	struct ssc_call_priv *p, *next;

	cds_list_for_each_entry_safe(p, next, late, link)
	{
		struct ssc_call *call = p->call;

		cds_list_del(&p->link);
		take_shadow(call, p->shadow);
		p->shadow = NULL;
		call->retried = p->n_sent > 1;
		atomic_fetch_add(&conn->up->n.late, 1);
		if (call->late)
			call->late(call);
		ssc_call_put(call);
	}
}

void ssc_conn_run(struct ssc_conn *conn, struct cds_list_head *comp, struct ssc_call *own)
{
	struct ssc_call_priv *p, *next;
	CDS_LIST_HEAD(deferred);

	cds_list_for_each_entry_safe(p, next, comp, clink)
	{
		cds_list_del(&p->clink);
		if (p->call != own && hand_over(p))
			continue;
		if (!own || p->call == own || p->call->done_only_wakes)
			ssc_conn_run_done(p);
		else
			cds_list_add_tail(&p->clink, &deferred);
	}
	if (cds_list_empty(&deferred))
		return;
	pthread_mutex_lock(&conn->lock);
	cds_list_splice(&deferred, conn->deferred.prev);
	pthread_mutex_unlock(&conn->lock);
	ssc_conn_kick(conn);
}

/* ---- deadlines ---- */

static void note_deadline_locked(struct ssc_conn *conn, uint64_t by)
{
	if (by == 0)
		return;
	if (by < conn->next_deadline_ns)
		conn->next_deadline_ns = by;
	if (by < conn->wake_by_ns)
		ssc_conn_kick(conn);
}

/* A late outcome goes to a call of its own while done(TIMEDOUT) may still read the first one. */
static struct ssc_call *shadow_of(struct ssc_call_priv *p, enum ssc_err err)
{
	p->shadow = ssc_call_new(p->call->up, p->call->op);
	p->shadow->err = err;
	return p->shadow;
}

/* @p got no answer in time. Is it the server, or this call? */
static void note_silence_locked(struct ssc_conn *conn, const struct ssc_call_priv *p)
{
	if (atomic_load(&conn->state) != SSC_CONN_UP ||
	    (p->place == SSC_CALL_FLIGHT && ssc_conn_is_unheard_locked(conn)))
		ssc_upstream_note_silence(conn->up);
}

static void timeout_locked(struct ssc_conn *conn, struct ssc_call_priv *p,
			   struct cds_list_head *comp)
{
	struct ssc_call *call = p->call;

	atomic_fetch_add(&conn->up->n.timeouts, 1);
	note_silence_locked(conn, p);
	if (p->n_sent == 0) {
		call->err = SSC_E_DOWN; /* never sent: it cannot take effect */
		ssc_conn_finish_locked(conn, call, comp);
		return;
	}
	call->err = SSC_E_TIMEDOUT;
	p->answered = true;
	atomic_fetch_sub(&conn->up->n_unanswered, 1);
	cds_list_add_tail(&p->clink, comp);
	/*
	 * The buffer is the submitter's again. What the socket had not taken of a WRITE was copied, but
	 * as long as it counted others would wait for the server that holds it. A silent server gets
	 * nothing new, so what it holds beyond the bound is never more than the bound once.
	 */
	give_budget(conn, p);
	if (p->place == SSC_CALL_FLIGHT) {
		if (call->op == SSC_OP_WRITE)
			ssc_upstream_late_write_add(conn->up, call);
	} else {
		/* It was in flight on a connection that broke. Nobody waits: not sent again. */
		shadow_of(p, SSC_E_CONN);
		ssc_conn_finish_locked(conn, call, comp);
	}
}

static void timeouts_of(struct ssc_conn *conn, struct cds_list_head *list, uint64_t now,
			struct cds_list_head *comp)
{
	struct ssc_call_priv *p, *next;

	cds_list_for_each_entry_safe(p, next, list, link)
	{
		uint64_t by = p->call->answer_by_ns;

		if (by == 0 || p->answered)
			continue;
		if (by <= now)
			timeout_locked(conn, p, comp);
		else if (by < conn->next_deadline_ns)
			conn->next_deadline_ns = by;
	}
}

void ssc_conn_timeouts_locked(struct ssc_conn *conn, uint64_t now, struct cds_list_head *comp)
{
	if (now < conn->next_deadline_ns)
		return;
	conn->next_deadline_ns = UINT64_MAX;
	timeouts_of(conn, &conn->ready, now, comp);
	timeouts_of(conn, &conn->flight, now, comp);
}

/* ---- submission ---- */

/* @blocked: somebody before it in the list already waits for room. */
static bool budget_ok_locked(struct ssc_conn *conn, struct ssc_call_priv *p, bool *blocked)
{
	struct ssc_budget *budget = conn->up->cfg.budget;

	if (!budget || p->has_budget || !ssc_call_moves_data(p->call))
		return true;
	if (!*blocked)
		p->has_budget = ssc_budget_take(budget, p->load_bytes, &conn->budget_waiter);
	*blocked = !p->has_budget;
	conn->in_budget_queue = *blocked;
	return p->has_budget;
}

static bool issue_locked(struct ssc_conn *conn, struct ssc_call_priv *p, uint64_t now)
{
	struct ssc_call *call = p->call;

	if (p->n_sent == 0)
		p->xid = atomic_fetch_add(&conn->up->xid, 1);
	call->err = ssc_calls_issue(conn->wire, p->xid, call);
	if (call->err)
		return false;
	if (p->n_sent++ > 0)
		atomic_fetch_add(&conn->up->n.resent, 1);
	atomic_fetch_add(&conn->up->n.calls, 1);
	atomic_fetch_add(&conn->up->n.per_op[call->op], 1);
	p->sent_ns = now;
	cds_list_move(&p->link, conn->flight.prev);
	conn->n_ready--;
	p->place = SSC_CALL_FLIGHT;
	cds_list_add(&p->xlink, &conn->by_xid[p->xid % SSC_XID_LISTS]);
	conn->n_long_reads += is_long_read(call);
	atomic_fetch_add(&conn->n_flight, 1);
	return true;
}

void ssc_conn_broken_locked(struct ssc_conn *conn, const char *why)
{
	conn->broken = true;
	snprintf(conn->why, sizeof(conn->why), "%s", why ? why : "unknown cause");
}

static void issue_ready_locked(struct ssc_conn *conn, struct cds_list_head *comp)
{
	const uint64_t now = ssc_clock_now_ns();
	struct ssc_call_priv *p, *next;
	bool blocked = false;

	cds_list_for_each_entry_safe(p, next, &conn->ready, link)
	{
		if (ssc_wire_unsent(conn->wire) > UNSENT_MAX)
			break; /* the rest keeps its own buffers until the socket takes more */
		if (p->call->op == SSC_OP_WRITE && p->n_sent == 0 &&
		    ssc_upstream_write_must_wait(conn->up, p->call))
			continue;
		if (!budget_ok_locked(conn, p, &blocked) || issue_locked(conn, p, now))
			continue;
		if (p->call->err == SSC_E_CONN) {
			ssc_conn_broken_locked(conn, "connection lost while sending");
			return;
		}
		ssc_conn_finish_locked(conn, p->call, comp);
	}
	if (!blocked)
		leave_budget_queue_locked(conn);
	if (ssc_wire_flush(conn->wire) != SSC_OK)
		ssc_conn_broken_locked(conn, "connection lost while sending");
}

bool ssc_conn_needs_loop_locked(struct ssc_conn *conn)
{
	if (conn->broken)
		return true;
	if (atomic_load(&conn->state) != SSC_CONN_UP)
		return conn->n_ready > 0;
	return ssc_wire_unsent(conn->wire) > 0;
}

void ssc_conn_drain_locked(struct ssc_conn *conn, struct cds_list_head *comp)
{
	struct cds_wfcq_node *node;

	while ((node = __cds_wfcq_dequeue_blocking(&conn->q_head, &conn->q_tail)) != NULL) {
		struct ssc_call_priv *p = caa_container_of(node, struct ssc_call_priv, qnode);

		SSC_TSAN_ACQUIRE(p);
		if (atomic_load(&conn->state) == SSC_CONN_STOPPED) {
			p->call->err = SSC_E_SHUTDOWN;
			ssc_conn_finish_locked(conn, p->call, comp);
			continue;
		}
		p->place = SSC_CALL_READY;
		cds_list_add_tail(&p->link, &conn->ready);
		conn->n_ready++;
		note_deadline_locked(conn, p->call->answer_by_ns);
	}
	if (conn->n_ready > 0 && atomic_load(&conn->state) == SSC_CONN_UP && !conn->broken)
		issue_ready_locked(conn, comp);
}

/*
 * The enqueue of a submitter comes before its trylock, our unlock before this look at q: without the
 * fence the look could be older, and neither would see the other.
 */
bool ssc_conn_has_queued(struct ssc_conn *conn)
{
	cmm_smp_mb();
	return !cds_wfcq_empty(&conn->q_head, &conn->q_tail);
}

void ssc_conn_combine(struct ssc_conn *conn, struct cds_list_head *comp)
{
	while (ssc_conn_has_queued(conn)) {
		bool kick;

		if (pthread_mutex_trylock(&conn->lock) != 0)
			return;
		ssc_conn_drain_locked(conn, comp);
		kick = ssc_conn_needs_loop_locked(conn);
		pthread_mutex_unlock(&conn->lock);
		if (kick)
			ssc_conn_kick(conn);
	}
}

/* ---- replies ---- */

/* The connection of a call in flight is gone: the next one gets it, if somebody still waits. */
static void lost_locked(struct ssc_conn *conn, struct ssc_call *call, struct cds_list_head *comp)
{
	struct ssc_call_priv *p = ssc_priv(call);

	if (p->answered) {
		shadow_of(p, SSC_E_CONN);
		ssc_conn_finish_locked(conn, call, comp);
		return;
	}
	leave_place_locked(conn, p);
	give_budget(conn, p); /* others have a use for the room until it is sent again */
	p->place = SSC_CALL_READY;
	conn->n_ready++;
	cds_list_add(&p->link, &conn->ready); /* before what was never sent */
}

static void count_reply(struct ssc_conn *conn, const struct ssc_call *result)
{
	struct ssc_upstream_counters *n = &conn->up->n;

	atomic_fetch_add(&n->replies, 1);
	if (result->err)
		return;
	if (result->op == SSC_OP_READ)
		atomic_fetch_add(&n->bytes_read, result->res.io.count);
	else if (result->op == SSC_OP_WRITE)
		atomic_fetch_add(&n->bytes_written, result->res.io.count);
}

static void answer_locked(struct ssc_conn *conn, struct ssc_call *call, enum ssc_err err,
			  const void *results, size_t len, bool is_placed, const char *what)
{
	struct ssc_call_priv *p = ssc_priv(call);
	struct ssc_call *into = p->answered ? shadow_of(p, err) : call;

	into->err = err ? err : ssc_reply_decode(call, results, len, is_placed, into);
	count_reply(conn, into);
	if (into->err == SSC_E_PROTO || into->err == SSC_E_AUTH) {
		atomic_fetch_add(&conn->up->n.bad_replies, 1);
		ssc_log_warn("%s: %s answered %s wrongly: %s", conn->up->cfg.name,
			     conn->up->cfg.server, ssc_op_str(call->op),
			     what[0] ? what : "a value out of range");
	}
	ssc_conn_finish_locked(conn, call, conn->comp);
}

static struct ssc_call_priv *find_locked(struct ssc_conn *conn, uint32_t xid)
{
	struct ssc_call_priv *p;

	cds_list_for_each_entry(p, &conn->by_xid[xid % SSC_XID_LISTS], xlink)
	{
		if (p->xid == xid)
			return p;
	}
	return NULL;
}

static void null_replied_locked(struct ssc_conn *conn, enum ssc_err err, const char *what)
{
	conn->probe_done = true;
	conn->probe_ok = err == SSC_OK;
	if (err != SSC_OK)
		snprintf(conn->why, sizeof(conn->why), "NFSv3 NULL: %s", what);
	atomic_store(&conn->is_asking, false);
}

static void wire_reply(void *ctx, uint32_t xid, enum ssc_err err, const void *results, size_t len,
		       bool is_placed, const char *what)
{
	struct ssc_conn *conn = ctx;
	struct ssc_call_priv *p = find_locked(conn, xid);

	/* One that nobody waits for: an answer to what an earlier connection asked, or nonsense. */
	if (!p && xid != conn->null_xid)
		return;
	conn->last_heard_ns = ssc_clock_now_ns();
	if (err == SSC_OK)
		ssc_upstream_note_reply(conn->up);
	if (!p) { /* asking must not keep a connection alive that loses replies: see silence.c */
		null_replied_locked(conn, err, what);
		return;
	}
	conn->last_rx_ns = conn->last_heard_ns;
	answer_locked(conn, p->call, err, results, len, is_placed, what);
}

static bool wire_place(void *ctx, uint32_t xid, const void *results, size_t len, size_t total,
		       struct ssc_wire_place *place)
{
	struct ssc_call_priv *p = find_locked(ctx, xid);

	(void)total;
	return p && !p->answered && ssc_reply_place(p->call, results, len, place);
}

static bool wire_still(void *ctx, uint32_t xid)
{
	struct ssc_call_priv *p = find_locked(ctx, xid);

	return p && !p->answered;
}

static const struct ssc_wire_ops wire_ops = {
	.reply = wire_reply,
	.place = wire_place,
	.still = wire_still,
};

void ssc_conn_wire_locked(struct ssc_conn *conn)
{
	conn->wire = ssc_wire_new(conn->fd, &wire_ops, conn);
	conn->probe_done = conn->probe_ok = false;
}

void ssc_conn_null_locked(struct ssc_conn *conn)
{
	conn->null_xid = atomic_fetch_add(&conn->up->xid, 1);
	if (ssc_calls_null(conn->wire, conn->null_xid) != SSC_OK)
		ssc_conn_broken_locked(conn, "connection lost while sending");
}

/* @return false when the connection is of no more use. */
bool ssc_conn_service_locked(struct ssc_conn *conn, int revents, struct cds_list_head *comp)
{
	enum ssc_err err = SSC_OK;

	conn->comp = comp;
	if (revents & POLLOUT)
		err = ssc_wire_flush(conn->wire);
	/* A hang-up may come with replies that were sent before it. */
	if (err == SSC_OK && (revents & (POLLIN | POLLHUP | POLLERR)))
		err = ssc_wire_receive(conn->wire, conn->n_long_reads > 0);
	conn->comp = NULL;
	if (err == SSC_E_PROTO) {
		conn->bad_reply = true;
		ssc_conn_broken_locked(conn, "a reply that cannot be decoded");
	} else if (err != SSC_OK || (revents & POLLERR)) {
		ssc_conn_broken_locked(conn, "connection closed by the server");
	}
	return !conn->broken;
}

void ssc_conn_close_locked(struct ssc_conn *conn, struct cds_list_head *comp)
{
	struct ssc_call_priv *p;

	if (conn->wire)
		ssc_wire_free(conn->wire);
	else if (conn->fd >= 0)
		close(conn->fd);
	conn->wire = NULL;
	conn->fd = -1;
	conn->comp = comp;
	/* Last one first: each goes to the front of ready. */
	while (!cds_list_empty(&conn->flight)) {
		p = cds_list_entry(conn->flight.prev, struct ssc_call_priv, link);
		if (conn->bad_reply && !p->answered && p->n_sent > BAD_REPLIES_MAX)
			answer_locked(conn, p->call, SSC_E_PROTO, NULL, 0, false,
				      "a reply that has no sense");
		else
			lost_locked(conn, p->call, comp);
	}
	conn->comp = NULL;
}
