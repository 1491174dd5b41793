/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_loop.c - the thread of an NFSv4.2 client: its connection, its deadlines, its completions.
 *
 * One turn: take what was handed in; look at the time (connection, setup, silence, calls); issue what
 * can be; run completions; wait for the socket, a kick, or the next time that matters; read.
 * Completions run at the end of a turn only, so that done may submit whatever it likes.
 * Only here is the connection made and closed; others call ssc_nfs4_broken and it is closed at the
 * next turn.
 * Threads: the client's only, but for ssc_nfs4_kick_locked.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ssc/log.h"

#include "nfs4_internal.h"

#define BACKOFF_FIRST_NS (50 * SSC_NS_PER_MS)
#define BACKOFF_MAX_NS   (5 * SSC_NS_PER_S)

/* DESTROY_SESSION and DESTROY_CLIENTID at the end. */
#define SHUT_NS (2 * SSC_NS_PER_S)

void ssc_nfs4_kick_locked(struct ssc_nfs4_client *c)
{
	const uint64_t one = 1;

	if (c->is_kicked)
		return;
	c->is_kicked = true;
	if (write(c->evfd, &one, sizeof(one)) < 0) {
		/* The counter cannot overflow: it is read before the next kick. */
	}
}

void ssc_nfs4_wake_by(struct ssc_nfs4_client *c, uint64_t at_ns)
{
	if (at_ns < c->wake_by_ns)
		c->wake_by_ns = at_ns;
}

void ssc_nfs4_broken(struct ssc_nfs4_client *c, const char *why)
{
	if (!c->why)
		c->why = why;
}

void ssc_nfs4_end(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call, uint32_t outcome)
{
	call->outcome = outcome;
	cds_list_add_tail(&call->link, &c->done);
}

/* ---- connection ---- */

static void retry_later(struct ssc_nfs4_client *c, const char *why)
{
	c->backoff_ns = c->backoff_ns ? c->backoff_ns * 2 : BACKOFF_FIRST_NS;
	if (c->backoff_ns > BACKOFF_MAX_NS)
		c->backoff_ns = BACKOFF_MAX_NS;
	c->state = SSC_NFS4_IDLE;
	c->retry_ns = ssc_clock_now_ns() + c->backoff_ns;
	if (!c->complained)
		ssc_log_event("nfs4 %s: no session: %s; trying again", c->name, why);
	c->complained = true;
}

static void close_connection(struct ssc_nfs4_client *c)
{
	const char *why = c->why;
	const bool was_up = c->state == SSC_NFS4_UP;

	if (c->wire)
		ssc_wire_free(c->wire);
	else if (c->fd >= 0)
		close(c->fd);
	c->wire = NULL;
	c->fd = -1;
	c->why = NULL;
	c->is_bound = false;
	ssc_nfs4_unsend(c);
	pthread_mutex_lock(&c->lock);
	c->info.is_up = false;
	pthread_mutex_unlock(&c->lock);
	if (!c->down_since_ns)
		c->down_since_ns = ssc_clock_now_ns();
	/*
	 * A server may say that a back channel is bound to the next connection and still use the old
	 * one (Ganesha 4.3 does). A session that begins with a connection is sure to have its back channel.
	 */
	if (was_up && c->cfg.want_back_channel)
		c->wants_fresh = true;
	retry_later(c, why);
}

static void connected(struct ssc_nfs4_client *c)
{
	ssc_sock_tune(c->fd, c->cfg.dead_ns);
	c->wire = ssc_wire_new(c->fd, &ssc_nfs4_wire_ops, c);
	c->last_rx_ns = ssc_clock_now_ns();
	pthread_mutex_lock(&c->lock);
	c->info.n_connections++;
	pthread_mutex_unlock(&c->lock);
	ssc_nfs4_next_step(c);
}

static void start_connecting(struct ssc_nfs4_client *c)
{
	if (c->cfg.connect)
		c->fd = c->cfg.connect(c->cfg.ctx);
	else
		c->fd = ssc_sock_connect(&c->addr, c->cfg.use_privileged_port, &c->local_port);
	if (c->fd < 0) {
		retry_later(c, strerror(-c->fd));
		c->fd = -1;
		return;
	}
	c->state = SSC_NFS4_CONNECTING;
	c->step_by_ns = ssc_clock_now_ns() + c->cfg.connect_ns;
	if (c->cfg.connect)
		connected(c);
}

static void check_connected(struct ssc_nfs4_client *c)
{
	int err = ssc_sock_error(c->fd);

	if (err == 0)
		connected(c);
	else
		ssc_nfs4_broken(c, strerror(err));
}

/* ---- time ---- */

/* Somebody waits for an answer, and nothing at all comes: ask whether anybody is there, then give up. */
static void check_silence(struct ssc_nfs4_client *c, uint64_t now)
{
	uint64_t oldest = UINT64_MAX, given_up = UINT64_MAX;

	c->look_ns = now + c->cfg.dead_ns / 8;
	for (uint32_t at = 0; at < SSC_NFS4_PLACES; at++) {
		const struct ssc_nfs4_place *p = &c->place[at];

		if (!p->is_busy || !p->is_sent)
			continue;
		if (p->sent_ns < oldest)
			oldest = p->sent_ns;
		if (!p->call && p->sent_ns < given_up)
			given_up = p->sent_ns;
	}
	/* A slot that nobody waits for is found out about by asking on another connection. */
	if (given_up != UINT64_MAX && now >= given_up + 2 * c->cfg.dead_ns) {
		ssc_nfs4_broken(c, "a call was not answered for too long");
		return;
	}
	if (oldest == UINT64_MAX)
		return;
	if (oldest < c->last_rx_ns)
		oldest = c->last_rx_ns;
	if (now >= oldest + c->cfg.dead_ns)
		ssc_nfs4_broken(c, "no answer");
	else if (now >= oldest + c->cfg.dead_ns / 2)
		ssc_nfs4_send_null(c);
}

static uint64_t renewal_time(const struct ssc_nfs4_client *c)
{
	return c->renewed_ns + c->info.lease_s * SSC_NS_PER_S / 3;
}

static void renewed(struct ssc_nfs4_call *call)
{
	struct ssc_nfs4_client *c = call->ctx;

	c->renew_busy = false;
	if (call->outcome)
		c->renewed_ns = ssc_clock_now_ns(); /* not again at once */
	ssc_nfs4_call_fini(call);
}

/* A SEQUENCE alone renews the lease, and tells whether the session is still there. */
static void renew(struct ssc_nfs4_client *c)
{
	uint32_t at = ssc_nfs4_free_slot(c);

	if (c->renew_busy || at == SSC_NFS4_PLACES || c->wants_fresh)
		return;
	c->renew_busy = true;
	ssc_nfs4_call_init(&c->renew, &c->cfg.cred);
	c->renew.done = renewed;
	c->renew.ctx = c;
	c->renew.timeout_ns = c->cfg.dead_ns;
	ssc_nfs4_issue_own(c, &c->renew, at);
}

static void check_time(struct ssc_nfs4_client *c, uint64_t now)
{
	switch (c->state) {
	case SSC_NFS4_IDLE:
		if (now >= c->retry_ns)
			start_connecting(c);
		break;
	case SSC_NFS4_CONNECTING:
		if (now >= c->step_by_ns)
			ssc_nfs4_broken(c, "no answer to the TCP connection");
		break;
	case SSC_NFS4_SETUP:
		if (!c->setup_busy && now >= c->retry_ns)
			ssc_nfs4_next_step(c);
		break;
	case SSC_NFS4_UP:
		if (now >= renewal_time(c))
			renew(c);
		if (now >= c->look_ns)
			check_silence(c, now);
		break;
	}
	if (c->down_since_ns && now >= c->down_since_ns + c->cfg.patience_ns)
		ssc_nfs4_end_all(c, SSC_E_DOWN, SSC_E_CONN);
	if (now >= c->next_deadline_ns)
		ssc_nfs4_expire(c, now);
}

static uint64_t next_time(struct ssc_nfs4_client *c)
{
	uint64_t at = c->next_deadline_ns < c->wake_by_ns ? c->next_deadline_ns : c->wake_by_ns;
	uint64_t of_state = UINT64_MAX, patience;

	switch (c->state) {
	case SSC_NFS4_IDLE:
		of_state = c->retry_ns;
		break;
	case SSC_NFS4_CONNECTING:
		of_state = c->step_by_ns;
		break;
	case SSC_NFS4_SETUP:
		of_state = c->setup_busy ? UINT64_MAX : c->retry_ns; /* a step has a deadline */
		break;
	case SSC_NFS4_UP:
		of_state = c->renew_busy ? UINT64_MAX : renewal_time(c);
		if (c->n_busy > 0 && c->look_ns < of_state)
			of_state = c->look_ns;
		break;
	}
	if (of_state < at)
		at = of_state;
	patience = c->down_since_ns + c->cfg.patience_ns;
	if (c->down_since_ns && !cds_list_empty(&c->ready) && patience < at)
		at = patience;
	if (c->shut_by_ns && c->shut_by_ns < at)
		at = c->shut_by_ns;
	return at;
}

/* ---- the turn ---- */

static void take_queue(struct ssc_nfs4_client *c, uint64_t now)
{
	struct ssc_nfs4_call *call, *next;
	CDS_LIST_HEAD(taken);
	uint64_t n = 0;

	pthread_mutex_lock(&c->lock);
	c->is_kicked = false;
	cds_list_splice(&c->queue, &taken);
	CDS_INIT_LIST_HEAD(&c->queue);
	pthread_mutex_unlock(&c->lock);
	cds_list_for_each_entry_safe(call, next, &taken, link)
	{
		cds_list_del(&call->link);
		n++;
		if (call->is_bad) {
			atomic_fetch_sub(&c->n_waiting, 1);
			ssc_nfs4_end(c, call, ssc_nfs4_local(SSC_E_INVAL));
			continue;
		}
		call->deadline_ns = now + (call->timeout_ns ? call->timeout_ns : c->cfg.answer_ns);
		if (call->deadline_ns < c->next_deadline_ns)
			c->next_deadline_ns = call->deadline_ns;
		cds_list_add_tail(&call->link, &c->ready);
	}
	if (n == 0)
		return;
	pthread_mutex_lock(&c->lock);
	c->info.n_calls += n;
	pthread_mutex_unlock(&c->lock);
}

/* What done has submitted came without a kick. */
static bool has_queued(struct ssc_nfs4_client *c)
{
	bool has;

	pthread_mutex_lock(&c->lock);
	has = !cds_list_empty(&c->queue);
	pthread_mutex_unlock(&c->lock);
	return has;
}

static void run_done(struct ssc_nfs4_client *c)
{
	while (!cds_list_empty(&c->done)) {
		struct ssc_nfs4_call *call =
			cds_list_first_entry(&c->done, struct ssc_nfs4_call, link);

		cds_list_del(&call->link);
		call->done(call); /* and it is no longer ours */
	}
}

/* @return false when all is over. */
static bool shut(struct ssc_nfs4_client *c, uint64_t now)
{
	if (!c->shut_by_ns) {
		c->shut_by_ns = now + SHUT_NS;
		c->is_finished = !c->wire || c->why || !c->is_bound;
		if (!c->is_finished && !c->setup_busy)
			ssc_nfs4_next_step(c);
	}
	ssc_nfs4_end_all(c, SSC_E_SHUTDOWN, SSC_E_SHUTDOWN);
	return !c->is_finished && !c->why && now < c->shut_by_ns;
}

static void await(struct ssc_nfs4_client *c)
{
	struct pollfd pfd[2] = {{.fd = c->evfd, .events = POLLIN}, {.fd = c->fd}};
	const uint64_t now = ssc_clock_now_ns(), at = next_time(c);
	struct timespec ts;
	uint64_t left = at > now ? at - now : 0, n;

	c->wake_by_ns = UINT64_MAX;
	if (c->why || !cds_list_empty(&c->done) || has_queued(c))
		left = 0;
	if (left > 3600 * SSC_NS_PER_S)
		left = 3600 * SSC_NS_PER_S;
	ts.tv_sec = (time_t)(left / SSC_NS_PER_S);
	ts.tv_nsec = (long)(left % SSC_NS_PER_S);
	if (c->state == SSC_NFS4_CONNECTING)
		pfd[1].events = POLLOUT;
	else if (c->wire)
		pfd[1].events = POLLIN | (ssc_wire_unsent(c->wire) > 0 ? POLLOUT : 0);
	if (ppoll(pfd, 2, &ts, NULL) <= 0)
		return;
	if (pfd[0].revents && read(c->evfd, &n, sizeof(n)) < 0) {
		/* Somebody's kick is on its way again: the descriptor does not block. */
	}
	if (!pfd[1].revents || c->why)
		return;
	if (c->state == SSC_NFS4_CONNECTING)
		check_connected(c);
	else if (ssc_wire_flush(c->wire) != SSC_OK)
		ssc_nfs4_broken(c, "the connection broke while sending");
	else
		switch (ssc_wire_receive(c->wire, c->n_long_reads > 0)) {
		case SSC_OK:
			break;
		case SSC_E_PROTO:
			ssc_nfs4_broken(c, "the server sends what is no reply");
			break;
		default:
			ssc_nfs4_broken(c, "the server closed the connection");
		}
}

void *ssc_nfs4_loop(void *client)
{
	struct ssc_nfs4_client *c = client;

	for (;;) {
		const uint64_t now = ssc_clock_now_ns();

		take_queue(c, now);
		if (atomic_exchange(&c->wants_disconnect, false) && c->wire)
			ssc_nfs4_broken(c, "asked to");
		if (atomic_load(&c->stopping) && !shut(c, now))
			break;
		if (c->why)
			close_connection(c);
		check_time(c, now);
		if (c->state == SSC_NFS4_UP && !c->shut_by_ns)
			ssc_nfs4_pump(c, now);
		run_done(c);
		await(c);
		run_done(c);
	}
	ssc_nfs4_broken(c, "stopped");
	c->complained = true; /* nobody needs to know */
	close_connection(c);
	ssc_nfs4_end_all(c, SSC_E_SHUTDOWN, SSC_E_SHUTDOWN);
	run_done(c);
	return NULL;
}
