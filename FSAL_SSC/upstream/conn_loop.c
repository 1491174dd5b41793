/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * conn_loop.c - the thread of one connection.
 *
 *            start           address            handshake         NULL answered
 *    IDLE ----------> LOCATING -----> CONNECTING -------> PROBING -------------> UP
 *     ^   back-off       |                |  next address    |                    |
 *     '------------------'----------------'------------------'--------------------'
 *                        failure, deadline of the step, broken, dead limit
 *
 * A listening socket proves little: a stopped server's kernel still shakes hands. Hence the NULL
 * call before the connection counts as up. The first connection of an upstream is kept up at all
 * times, since it is also what tells that a lost server is back; the others open on demand.
 * The loop thread holds the pump in every state but UP; there it holds it while calls are in flight
 * and nobody else drives. All transitions happen here, under conn.lock.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"
#include "ssc/clock.h"
#include "ssc/log.h"

/* First and longest pause between attempts: soon enough for a restart to go unnoticed, rare enough
 * that hundreds of exports of a dead server cost nothing. */
#define BACKOFF_FIRST_NS (50 * SSC_NS_PER_MS)
#define BACKOFF_MAX_NS   (2 * SSC_NS_PER_S)

/* A call is lost when it waits for so many dead limits while others are answered: a server may be
 * slow with one, a COMMIT say. */
#define LOST_FACTOR 2

/* An idle loop thread looks around so often. */
#define IDLE_WAKE_NS (5 * SSC_NS_PER_S)

/* As the host's own threads have. */
#define LOOP_STACK_BYTES (8 * 1024 * 1024)

struct loop {
	struct ssc_conn *conn;
	bool have_pump;
};

static enum ssc_conn_state state_of(struct ssc_conn *conn)
{
	return atomic_load(&conn->state);
}

static void set_state(struct ssc_conn *conn, enum ssc_conn_state state)
{
	pthread_mutex_lock(&conn->lock);
	atomic_store(&conn->state, state);
	pthread_mutex_unlock(&conn->lock);
}

/* ---- steps of connecting ---- */

/* Close whatever there is; calls in flight go back to ready. Holds the pump. */
static void tear_down(struct ssc_conn *conn, enum ssc_conn_state next)
{
	CDS_LIST_HEAD(comp);

	pthread_mutex_lock(&conn->lock);
	ssc_conn_close_locked(conn, &comp);
	if (conn->in_budget_queue) /* those behind us need not wait until we are back */
		ssc_budget_leave(conn->up->cfg.budget, &conn->budget_waiter);
	conn->in_budget_queue = false;
	conn->broken = false;
	conn->bad_reply = false;
	atomic_store(&conn->is_asking, false);
	atomic_store(&conn->state, next);
	pthread_mutex_unlock(&conn->lock);
	ssc_conn_run(conn, &comp, NULL);
}

static void fail(struct ssc_conn *conn, const char *why)
{
	const bool was_up = state_of(conn) == SSC_CONN_UP;

	if (conn->locate) {
		ssc_locate_drop(conn->locate);
		conn->locate = NULL;
	}
	tear_down(conn, SSC_CONN_IDLE);
	conn->backoff_ns = was_up ? BACKOFF_FIRST_NS : conn->backoff_ns * 2;
	if (conn->backoff_ns < BACKOFF_FIRST_NS)
		conn->backoff_ns = BACKOFF_FIRST_NS;
	if (conn->backoff_ns > BACKOFF_MAX_NS)
		conn->backoff_ns = BACKOFF_MAX_NS;
	/* What worked a moment ago may be back at once. */
	conn->retry_ns = ssc_clock_now_ns() + (was_up ? 0 : conn->backoff_ns);
	ssc_upstream_note_down(conn->up, conn, why);
}

static void try_address(struct ssc_conn *conn)
{
	char addr[64], why[96] = "no address";

	for (; conn->addr_at < conn->where.n_addrs; conn->addr_at++) {
		const union ssc_sockaddr *to = &conn->where.addrs[conn->addr_at];
		int fd = ssc_sock_connect(to, conn->up->cfg.use_privileged_port, &conn->local_port);

		if (fd >= 0) {
			pthread_mutex_lock(&conn->lock);
			conn->fd = fd;
			atomic_store(&conn->state, SSC_CONN_CONNECTING);
			pthread_mutex_unlock(&conn->lock);
			conn->step_by_ns = ssc_clock_now_ns() + conn->up->cfg.connect_ns;
			return;
		}
		snprintf(why, sizeof(why), "%s: %s", ssc_sock_str(to, addr, sizeof(addr)),
			 strerror(-fd));
	}
	fail(conn, why);
}

static void next_address(struct ssc_conn *conn, const char *cause)
{
	char addr[64], why[96];

	snprintf(why, sizeof(why), "%s: %s",
		 ssc_sock_str(&conn->where.addrs[conn->addr_at], addr, sizeof(addr)), cause);
	if (conn->addr_at + 1 >= conn->where.n_addrs) {
		fail(conn, why);
		return;
	}
	tear_down(conn, SSC_CONN_IDLE);
	conn->addr_at++;
	try_address(conn);
}

static void check_located(struct ssc_conn *conn)
{
	char why[128];

	if (!ssc_locate_poll(conn->locate, &conn->where)) {
		if (ssc_clock_now_ns() >= conn->step_by_ns)
			fail(conn, "the name look-up takes too long");
		return;
	}
	ssc_locate_drop(conn->locate);
	conn->locate = NULL;
	if (!conn->where.ok) {
		snprintf(why, sizeof(why), "look-up: %s", conn->where.why);
		fail(conn, why);
		return;
	}
	conn->addr_at = 0;
	try_address(conn);
}

static void start_locating(struct ssc_conn *conn)
{
	const struct ssc_upstream_config *cfg = &conn->up->cfg;

	set_state(conn, SSC_CONN_LOCATING);
	conn->step_by_ns = ssc_clock_now_ns() + cfg->connect_ns;
	conn->locate = ssc_locate_start(cfg->server, cfg->port, cfg->use_privileged_port,
					cfg->connect_ns, conn->evfd);
	if (conn->locate)
		check_located(conn); /* a numeric address is there at once */
	else
		fail(conn, "no thread for the name look-up");
}

/* Shaken hands: ask whether an NFS server is behind the socket. */
static void start_probe(struct ssc_conn *conn)
{
	ssc_sock_tune(conn->fd, conn->up->cfg.dead_ns);
	pthread_mutex_lock(&conn->lock);
	ssc_conn_wire_locked(conn);
	ssc_conn_null_locked(conn);
	atomic_store(&conn->state, SSC_CONN_PROBING);
	pthread_mutex_unlock(&conn->lock);
	conn->step_by_ns = ssc_clock_now_ns() + conn->up->cfg.connect_ns;
}

static void check_connected(struct ssc_conn *conn, int revents)
{
	int err;

	if (revents == 0) {
		if (ssc_clock_now_ns() >= conn->step_by_ns)
			next_address(conn, "no answer to the TCP connection");
		return;
	}
	err = ssc_sock_error(conn->fd);
	if (err)
		next_address(conn, strerror(err));
	else
		start_probe(conn);
}

static void check_probed(struct ssc_conn *conn, int revents)
{
	char why[sizeof(conn->why)];
	bool alive = true;
	CDS_LIST_HEAD(comp);

	pthread_mutex_lock(&conn->lock);
	if (revents && !conn->broken)
		(void)ssc_conn_service_locked(conn, revents, &comp);
	alive = !conn->broken;
	snprintf(why, sizeof(why), "%s", conn->why);
	if (alive && conn->probe_ok) {
		conn->last_rx_ns = conn->last_heard_ns = ssc_clock_now_ns();
		conn->peer = conn->where.addrs[conn->addr_at];
		atomic_store(&conn->state, SSC_CONN_UP);
	}
	pthread_mutex_unlock(&conn->lock);
	if (state_of(conn) == SSC_CONN_UP) {
		conn->backoff_ns = 0;
		conn->complained = false;
		atomic_fetch_add(&conn->up->n.connects, 1);
		ssc_upstream_note_up(conn->up, conn);
	} else if (!alive || conn->probe_done) {
		next_address(conn, why);
	} else if (ssc_clock_now_ns() >= conn->step_by_ns) {
		next_address(conn, "connected, but no NFS server answers");
	}
}

/* ---- up ---- */

/*
 * When the connection is given up if nothing comes. Replies to others do not help a call whose own
 * was lost, and which would hold up later WRITEs to its range and retries of its client for ever.
 */
static uint64_t dead_time_locked(struct ssc_conn *conn)
{
	const uint64_t dead = conn->up->cfg.dead_ns;
	struct ssc_call_priv *oldest;
	uint64_t silent_since;

	if (cds_list_empty(&conn->flight))
		return UINT64_MAX;
	oldest = cds_list_first_entry(&conn->flight, struct ssc_call_priv, link);
	silent_since = oldest->sent_ns > conn->last_rx_ns ? oldest->sent_ns : conn->last_rx_ns;
	if (silent_since + dead < oldest->sent_ns + LOST_FACTOR * dead)
		return silent_since + dead;
	return oldest->sent_ns + LOST_FACTOR * dead;
}

static void serve(struct loop *l, int revents)
{
	struct ssc_conn *conn = l->conn;
	const uint64_t now = ssc_clock_now_ns();
	CDS_LIST_HEAD(comp);
	char why[sizeof(conn->why)];
	bool alive;

	pthread_mutex_lock(&conn->lock);
	if (!l->have_pump && (revents & (POLLRDHUP | POLLHUP | POLLERR)) && !conn->broken) {
		conn->broken = true;
		snprintf(conn->why, sizeof(conn->why), "closed by the server");
	}
	if (!conn->broken && now >= dead_time_locked(conn)) {
		conn->broken = true;
		snprintf(conn->why, sizeof(conn->why), "no reply within Upstream_Dead_Ms");
	}
	alive = !conn->broken;
	if (alive && (l->have_pump || (revents & POLLOUT)) && revents)
		alive = ssc_conn_service_locked(conn, l->have_pump ? revents : revents & POLLOUT,
						&comp);
	if (alive)
		ssc_conn_ask_locked(conn, now);
	ssc_conn_drain_locked(conn, &comp);
	snprintf(why, sizeof(why), "%s", conn->why);
	pthread_mutex_unlock(&conn->lock);
	ssc_conn_run(conn, &comp, NULL);
	if (alive)
		return;
	if (!l->have_pump) {
		atomic_store(&conn->pump_wanted, true); /* the driver lets go and kicks us */
		return;
	}
	fail(conn, why);
}

/* Hold the pump when it is needed, and not longer. */
static void mind_the_pump(struct loop *l)
{
	struct ssc_conn *conn = l->conn;
	const bool up = state_of(conn) == SSC_CONN_UP;
	const bool want = !up || conn->broken || atomic_load(&conn->is_asking) ||
			  atomic_load(&conn->n_flight) > 0;

	if (want && !l->have_pump) {
		l->have_pump = ssc_conn_pump_try(conn);
		if (l->have_pump)
			atomic_store(&conn->pump_wanted, false);
	} else if (!want && l->have_pump) {
		l->have_pump = false;
		ssc_conn_pump_release(conn);
	}
}

/* What a step leads to at once, without waiting for an event. */
static void start_if_due(struct ssc_conn *conn)
{
	bool needed;

	if (state_of(conn) != SSC_CONN_IDLE || ssc_clock_now_ns() < conn->retry_ns)
		return;
	pthread_mutex_lock(&conn->lock);
	needed = conn->index == 0 || conn->n_ready > 0 || atomic_load(&conn->wanted);
	pthread_mutex_unlock(&conn->lock);
	if (needed)
		start_locating(conn);
}

static void step(struct loop *l, int revents)
{
	struct ssc_conn *conn = l->conn;

	switch (state_of(conn)) {
	case SSC_CONN_IDLE:
		start_if_due(conn);
		break;
	case SSC_CONN_LOCATING:
		check_located(conn);
		break;
	case SSC_CONN_CONNECTING:
		check_connected(conn, revents);
		break;
	case SSC_CONN_PROBING:
		check_probed(conn, revents);
		break;
	case SSC_CONN_UP:
		serve(l, revents);
		break;
	case SSC_CONN_STOPPED:
		break;
	}
}

/* ---- waiting ---- */

static short events_wanted(struct loop *l)
{
	struct ssc_conn *conn = l->conn;
	short events = 0;

	switch (state_of(conn)) {
	case SSC_CONN_CONNECTING:
		return POLLOUT;
	case SSC_CONN_PROBING:
	case SSC_CONN_UP:
		pthread_mutex_lock(&conn->lock);
		if (conn->wire && !conn->broken && ssc_wire_unsent(conn->wire) > 0)
			events = POLLOUT;
		pthread_mutex_unlock(&conn->lock);
		/* Without the pump only the end of the connection is of interest. */
		return events | (l->have_pump ? POLLIN : POLLRDHUP);
	case SSC_CONN_IDLE:
	case SSC_CONN_LOCATING:
	case SSC_CONN_STOPPED:
		break;
	}
	return 0;
}

static uint64_t wake_time(struct loop *l, uint64_t now)
{
	struct ssc_conn *conn = l->conn;
	uint64_t by = now + IDLE_WAKE_NS;

	pthread_mutex_lock(&conn->lock);
	if (conn->next_deadline_ns < by)
		by = conn->next_deadline_ns;
	if (state_of(conn) == SSC_CONN_UP && !cds_list_empty(&conn->flight)) {
		uint64_t dead = conn->broken ? UINT64_MAX : dead_time_locked(conn);
		uint64_t ask = ssc_conn_ask_time_locked(conn);

		if (dead < by)
			by = dead;
		if (ask < by)
			by = ask;
	} else if (state_of(conn) == SSC_CONN_IDLE) {
		if ((conn->index == 0 || conn->n_ready > 0 || atomic_load(&conn->wanted)) &&
		    conn->retry_ns < by)
			by = conn->retry_ns;
	} else if (state_of(conn) != SSC_CONN_UP && conn->step_by_ns < by) {
		by = conn->step_by_ns;
	}
	conn->wake_by_ns = by;
	pthread_mutex_unlock(&conn->lock);
	return by;
}

static void read_kicks(struct ssc_conn *conn)
{
	uint64_t n;

	if (read(conn->evfd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		ssc_log_warn("reading an eventfd: %s", strerror(errno));
	atomic_store(&conn->kicked, false);
}

static int wait_events(struct loop *l)
{
	struct ssc_conn *conn = l->conn;
	const uint64_t now = ssc_clock_now_ns();
	const uint64_t by = wake_time(l, now);
	struct pollfd pfd[2] = {{.fd = conn->evfd, .events = POLLIN},
				{.fd = conn->fd, .events = events_wanted(l)}};
	int ms = by > now ? (int)((by - now + SSC_NS_PER_MS - 1) / SSC_NS_PER_MS) : 0;

	if (pfd[1].events == 0)
		pfd[1].fd = -1;
	if (ssc_conn_has_queued(conn))
		ms = 0; /* left to us while we held the lock */
	if (poll(pfd, 2, ms) <= 0)
		return 0;
	if (pfd[0].revents)
		read_kicks(conn);
	return pfd[1].fd >= 0 ? pfd[1].revents : 0;
}

/* Calls that others completed for us, timeouts, late outcomes: in this order. */
static void complete(struct ssc_conn *conn)
{
	CDS_LIST_HEAD(comp);
	CDS_LIST_HEAD(late);

	pthread_mutex_lock(&conn->lock);
	ssc_conn_drain_locked(conn, &comp);
	ssc_conn_timeouts_locked(conn, ssc_clock_now_ns(), &comp);
	cds_list_splice(&conn->deferred, comp.prev);
	CDS_INIT_LIST_HEAD(&conn->deferred);
	cds_list_splice(&conn->late, &late);
	CDS_INIT_LIST_HEAD(&conn->late);
	pthread_mutex_unlock(&conn->lock);
	ssc_conn_run(conn, &comp, NULL);
	ssc_conn_run_late(conn, &late);
	ssc_conn_combine(conn, &comp); /* what came while we held the lock */
	ssc_conn_run(conn, &comp, NULL);
}

/* ---- the end ---- */

static void finish_all(struct ssc_conn *conn)
{
	struct ssc_call_priv *p, *next;
	CDS_LIST_HEAD(comp);

	pthread_mutex_lock(&conn->lock);
	cds_list_for_each_entry_safe(p, next, &conn->ready, link)
	{
		p->call->err = SSC_E_SHUTDOWN;
		ssc_conn_finish_locked(conn, p->call, &comp);
	}
	if (conn->in_budget_queue)
		ssc_budget_leave(conn->up->cfg.budget, &conn->budget_waiter);
	conn->in_budget_queue = false;
	pthread_mutex_unlock(&conn->lock);
	ssc_conn_run(conn, &comp, NULL);
	complete(conn);
}

void ssc_conn_flush(struct ssc_conn *conn)
{
	complete(conn);
}

void *ssc_conn_loop(void *arg)
{
	struct loop l = {.conn = arg, .have_pump = ssc_conn_pump_try(arg)};
	struct ssc_conn *conn = l.conn;
	int revents = 0;

	while (!atomic_load(&conn->up->stopping)) {
		mind_the_pump(&l);
		step(&l, revents);
		complete(conn);
		mind_the_pump(&l);
		revents = wait_events(&l);
	}
	atomic_store(&conn->pump_wanted, true);
	while (!l.have_pump && !(l.have_pump = ssc_conn_pump_try(conn)))
		(void)wait_events(&l); /* a driver lets go within its slice, and kicks */
	if (conn->locate)
		ssc_locate_drop(conn->locate);
	conn->locate = NULL;
	complete(conn);
	tear_down(conn, SSC_CONN_STOPPED);
	finish_all(conn);
	return NULL;
}

static void budget_wake(struct ssc_budget_waiter *w)
{
	ssc_conn_kick(caa_container_of(w, struct ssc_conn, budget_waiter));
}

bool ssc_conn_start(struct ssc_conn *conn, struct ssc_upstream_nfs3 *up, unsigned int index)
{
	pthread_attr_t attr;
	sigset_t all, old;
	char name[16];
	int rc;

	conn->up = up;
	conn->index = index;
	conn->fd = -1;
	conn->next_deadline_ns = UINT64_MAX;
	conn->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (conn->evfd < 0)
		return false;
	cds_wfcq_init(&conn->q_head, &conn->q_tail);
	CDS_INIT_LIST_HEAD(&conn->ready);
	CDS_INIT_LIST_HEAD(&conn->flight);
	CDS_INIT_LIST_HEAD(&conn->deferred);
	CDS_INIT_LIST_HEAD(&conn->late);
	for (unsigned int i = 0; i < SSC_XID_LISTS; i++)
		CDS_INIT_LIST_HEAD(&conn->by_xid[i]);
	pthread_mutex_init(&conn->lock, NULL);
	conn->budget_waiter.wake = budget_wake;

	/* The host waits for its signals in one thread: none may land in ours. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, LOOP_STACK_BYTES);
	pthread_mutex_lock(&conn->lock); /* conn->thread is written before the thread reads it */
	rc = pthread_create(&conn->thread, &attr, ssc_conn_loop, conn);
	pthread_mutex_unlock(&conn->lock);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		pthread_mutex_destroy(&conn->lock);
		cds_wfcq_destroy(&conn->q_head, &conn->q_tail);
		close(conn->evfd);
		return false;
	}
	snprintf(name, sizeof(name), "ssc_up_%u", index);
	pthread_setname_np(conn->thread, name);
	return true;
}

void ssc_conn_join(struct ssc_conn *conn)
{
	ssc_conn_kick(conn);
	pthread_join(conn->thread, NULL);
}

void ssc_conn_fini(struct ssc_conn *conn)
{
	cds_wfcq_destroy(&conn->q_head, &conn->q_tail);
	pthread_mutex_destroy(&conn->lock);
	close(conn->evfd);
}
