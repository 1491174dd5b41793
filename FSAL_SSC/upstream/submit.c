/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * submit.c - one call into a connection, from the submitter's side.
 *
 * The submitter queues its call, and sends it if the lock is free. If it may wait (drive_ns) it then
 * either drives: holds the pump, polls and reads until its own call is answered; or, when somebody
 * else reads already, sleeps until the reader has come to its call, and runs done itself.
 * Threads: any. Takes conn.lock; waits with no lock held.
 */
#include <poll.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"
#include "ssc/clock.h"

/* What a call without data counts for when the least loaded connection is chosen. */
#define LOAD_SMALL 512

/* A driver looks up from poll() so often, to see whether it should let go. */
#define DRIVE_SLICE_MS 50

void ssc_futex_wake(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Sleep while *@word is @value, until @until_ns on the monotonic clock at most. */
static void futex_wait(atomic_uint *word, unsigned int value, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = until_ns / SSC_NS_PER_S,
				       .tv_nsec = until_ns % SSC_NS_PER_S};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

/* ---- a submitter that may wait ---- */

static bool is_finished(struct ssc_call_priv *p)
{
	return atomic_load_explicit(&p->wait, memory_order_acquire) >= SSC_WAIT_MINE;
}

/* Poll and read on the submitter's thread until its call is answered or its time is up. */
static void drive(struct ssc_conn *conn, struct ssc_call *call, uint64_t until)
{
	struct ssc_call_priv *p = ssc_priv(call);
	bool alive = true;

	while (alive && !is_finished(p) && !atomic_load(&conn->pump_wanted)) {
		struct pollfd pfd = {.fd = conn->fd, .events = POLLIN};
		uint64_t now = ssc_clock_now_ns();
		uint64_t left_ms =
			now < until ? (until - now + SSC_NS_PER_MS - 1) / SSC_NS_PER_MS : 0;
		bool kick;
		CDS_LIST_HEAD(comp);

		if (left_ms == 0)
			break;
		if (poll(&pfd, 1, left_ms < DRIVE_SLICE_MS ? (int)left_ms : DRIVE_SLICE_MS) <= 0)
			continue;
		pthread_mutex_lock(&conn->lock);
		alive = !conn->broken && ssc_conn_service_locked(conn, pfd.revents, &comp);
		ssc_conn_drain_locked(conn, &comp);
		kick = ssc_conn_needs_loop_locked(conn);
		pthread_mutex_unlock(&conn->lock);
		if (kick)
			ssc_conn_kick(conn);
		ssc_conn_combine(conn, &comp); /* left to us while we held the lock */
		ssc_conn_run(conn, &comp, call);
	}
	if (!alive)
		atomic_store(&conn->pump_wanted, true);
}

/* Somebody else reads: sleep until it comes to our call. */
static void await(struct ssc_call *call, uint64_t until)
{
	struct ssc_call_priv *p = ssc_priv(call);
	unsigned int was = SSC_WAIT_NOT;

	if (!atomic_compare_exchange_strong(&p->wait, &was, (unsigned int)SSC_WAIT_HERE))
		return;
	while (atomic_load(&p->wait) == SSC_WAIT_HERE && ssc_clock_now_ns() < until)
		futex_wait(&p->wait, SSC_WAIT_HERE, until);
	was = SSC_WAIT_HERE;
	if (atomic_compare_exchange_strong(&p->wait, &was, (unsigned int)SSC_WAIT_NOT))
		return; /* time is up: done will run elsewhere */
	if (was == SSC_WAIT_MINE)
		ssc_conn_run_done(p);
}

/* See that somebody reads the replies; perhaps that is us for a while. */
static void see_to_replies(struct ssc_conn *conn, struct ssc_call *call)
{
	const uint64_t until = ssc_clock_now_ns() + call->drive_ns;
	struct ssc_call_priv *p = ssc_priv(call);

	if (call->drive_ns > 0 && atomic_load(&conn->state) == SSC_CONN_UP) {
		if (!is_finished(p) && ssc_conn_pump_try(conn)) {
			/* The state cannot change while we hold the pump. */
			if (atomic_load(&conn->state) == SSC_CONN_UP)
				drive(conn, call, until);
			ssc_conn_pump_release(conn);
		}
		if (!is_finished(p))
			await(call, until);
	}
	/* Others' calls that we sent may have nobody to read their replies either. */
	if (atomic_load(&conn->n_flight) > 0 && atomic_load(&conn->pump) == 0)
		ssc_conn_kick(conn);
}

void ssc_conn_submit(struct ssc_conn *conn, struct ssc_call *call)
{
	struct ssc_call_priv *p = ssc_priv(call);
	CDS_LIST_HEAD(comp);

	p->call = call;
	p->conn = conn;
	p->load_bytes = LOAD_SMALL;
	if (ssc_call_moves_data(call))
		p->load_bytes += call->arg.io.count;
	atomic_fetch_add(&conn->up->n_unanswered, 1);
	atomic_fetch_add(&conn->load, p->load_bytes);
	ssc_call_get(call); /* the upstream's, until done or late */
	ssc_call_get(call); /* this function's: done may drop the submitter's */
	cds_wfcq_node_init(&p->qnode);
	SSC_TSAN_RELEASE(p);
	cds_wfcq_enqueue(&conn->q_head, &conn->q_tail, &p->qnode);
	ssc_conn_combine(conn, &comp);
	ssc_conn_run(conn, &comp, call);
	see_to_replies(conn, call);
	ssc_call_put(call);
}
