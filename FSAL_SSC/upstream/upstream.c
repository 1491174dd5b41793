/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * upstream.c - one server: its connections as one ops table.
 *
 * Choice    The first connected one that has little in flight, so that one reader finds many small
 *           replies at a time; else the one with the least. With none connected the first, whose
 *           calls wait. A further connection is opened when the others are busy.
 * Breaker   Each caller that waits holds a thread of the host, and a dead upstream must not use them
 *           up. Of one that is away waiting_max callers wait, until it has been away for dead_ns;
 *           of a silent one (silence.c) none. The others are answered DOWN at once. Reconnecting
 *           goes on meanwhile.
 * Limits    FSINFO and PATHCONF are asked once the root handle is known, by the caller of root.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "libnfs_compat.h"
#include "ssc/clock.h"
#include "ssc/log.h"

/* Below this a connection is not busy: 50 requests of 4 KiB. */
#define LITTLE_BYTES (256 * 1024)

/* Another connection pays when so much is on its way on those that are open. */
#define SPREAD_BYTES (2 * 1024 * 1024)

/* A submitter inside submit sees stop within a slice of driving: so often stop looks. */
#define STOP_POLL_NS (2 * SSC_NS_PER_MS)

static struct ssc_upstream_nfs3 *of(struct ssc_upstream *up)
{
	return (struct ssc_upstream_nfs3 *)up; /* base is the first member */
}

/* ---- late writes ---- */

void ssc_upstream_late_write_add(struct ssc_upstream_nfs3 *up, struct ssc_call *call)
{
	pthread_mutex_lock(&up->lock);
	cds_list_add(&ssc_priv(call)->wlink, &up->late_writes);
	ssc_priv(call)->is_late_write = true;
	atomic_fetch_add(&up->n_late_writes, 1);
	pthread_mutex_unlock(&up->lock);
}

void ssc_upstream_late_write_del(struct ssc_upstream_nfs3 *up, struct ssc_call *call)
{
	pthread_mutex_lock(&up->lock);
	cds_list_del(&ssc_priv(call)->wlink);
	ssc_priv(call)->is_late_write = false;
	atomic_fetch_sub(&up->n_late_writes, 1);
	pthread_mutex_unlock(&up->lock);
	for (unsigned int i = 0; i < up->n_conns; i++)
		ssc_conn_kick(&up->conns[i]); /* those that waited for it */
}

static bool overlaps(const struct ssc_call *a, const struct ssc_call *b)
{
	const uint64_t at = a->arg.io.offset, other = b->arg.io.offset;

	/* Distances, since sums may wrap. */
	return a->fh.len == b->fh.len && memcmp(a->fh.data, b->fh.data, a->fh.len) == 0 &&
	       (at <= other ? other - at < a->arg.io.count : at - other < b->arg.io.count);
}

bool ssc_upstream_write_must_wait(struct ssc_upstream_nfs3 *up, struct ssc_call *call)
{
	struct ssc_call_priv *p;
	bool must = false;

	if (atomic_load(&up->n_late_writes) == 0)
		return false;
	pthread_mutex_lock(&up->lock);
	cds_list_for_each_entry(p, &up->late_writes, wlink)
	{
		if (overlaps(p->call, call)) {
			must = true;
			break;
		}
	}
	pthread_mutex_unlock(&up->lock);
	return must;
}

/* ---- up and down ---- */

void ssc_upstream_note_up(struct ssc_upstream_nfs3 *up, struct ssc_conn *conn)
{
	char addr[64];

	pthread_mutex_lock(&up->lock);
	pthread_cond_broadcast(&up->root_cond);
	pthread_mutex_unlock(&up->lock);
	ssc_upstream_note_reply(up);
	if (atomic_exchange(&up->down_since_ns, 0) != 0)
		ssc_log_event("%s: upstream %s is there (%s)", up->cfg.name, up->cfg.server,
			      ssc_sock_str(&conn->where.addrs[conn->addr_at], addr, sizeof(addr)));
}

static bool is_any_up(struct ssc_upstream_nfs3 *up)
{
	for (unsigned int i = 0; i < up->n_conns; i++) {
		if (atomic_load(&up->conns[i].state) == SSC_CONN_UP)
			return true;
	}
	return false;
}

void ssc_upstream_note_down(struct ssc_upstream_nfs3 *up, struct ssc_conn *conn, const char *why)
{
	const uint64_t now = ssc_clock_now_ns();
	uint64_t since;

	if (is_any_up(up))
		return; /* one lost connection of several */
	since = 0;
	if (atomic_compare_exchange_strong(&up->down_since_ns, &since, now ? now : 1) ||
	    !conn->complained)
		ssc_log_event("%s: upstream %s is away: %s; clients wait, trying again",
			      up->cfg.name, up->cfg.server, why);
	else
		ssc_log_warn("%s: upstream %s is still away: %s", up->cfg.name, up->cfg.server,
			     why);
	conn->complained = true;
	/* Another one came up meanwhile: its note_up may have cleared what was not set yet. */
	if (is_any_up(up))
		atomic_store(&up->down_since_ns, 0);
	pthread_mutex_lock(&up->lock);
	pthread_cond_broadcast(&up->root_cond);
	pthread_mutex_unlock(&up->lock);
}

static bool is_silent(struct ssc_upstream *base)
{
	return atomic_load(&of(base)->silent);
}

/* ---- submit ---- */

static struct ssc_conn *choose(struct ssc_upstream_nfs3 *up)
{
	struct ssc_conn *best = NULL, *closed = NULL;
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < up->n_conns; i++) {
		struct ssc_conn *conn = &up->conns[i];
		uint64_t load = atomic_load(&conn->load);

		if (atomic_load(&conn->state) != SSC_CONN_UP) {
			if (!closed)
				closed = conn;
		} else if (load < LITTLE_BYTES) {
			return conn;
		} else if (load < least) {
			least = load;
			best = conn;
		}
	}
	if (!best)
		return &up->conns[0];
	if (closed && least > SPREAD_BYTES && !atomic_exchange(&closed->wanted, true))
		ssc_conn_kick(closed);
	return best;
}

static bool is_refused(struct ssc_upstream_nfs3 *up, const struct ssc_conn *conn)
{
	const uint64_t since = atomic_load(&up->down_since_ns);
	const bool away = atomic_load(&conn->state) != SSC_CONN_UP;

	if (atomic_load(&up->silent))
		return true;
	if (!away)
		return false;
	if (since != 0 && ssc_clock_now_ns() - since >= up->cfg.dead_ns)
		return true;
	return atomic_load(&up->n_unanswered) >= (int)up->cfg.waiting_max;
}

static void answer_now(struct ssc_call *call, enum ssc_err err)
{
	call->err = err;
	call->done(call);
}

static void submit(struct ssc_upstream *base, struct ssc_call *call)
{
	struct ssc_upstream_nfs3 *up = of(base);
	struct ssc_conn *conn;

	atomic_fetch_add(&up->users, 1);
	if (atomic_load(&up->stopping)) {
		answer_now(call, SSC_E_SHUTDOWN);
		goto out;
	}
	conn = choose(up);
	if (is_refused(up, conn)) {
		atomic_fetch_add(&up->n.refused, 1);
		answer_now(call, SSC_E_DOWN);
		goto out;
	}
	ssc_conn_submit(conn, call);
out:
	atomic_fetch_sub(&up->users, 1);
}

/* ---- root and limits ---- */

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	enum ssc_err err;
};

static void wake(struct ssc_call *call)
{
	struct waiter *w = call->ctx;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	w->err = call->err;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/*
 * A call of our own, waited for. NULL when it failed: then its fields may still change, by a late
 * reply. Else the caller puts it.
 */
static struct ssc_call *ask(struct ssc_upstream_nfs3 *up, enum ssc_op op, const struct ssc_fh *fh,
			    uint64_t answer_by_ns)
{
	struct ssc_call *call = ssc_call_new(&up->base, op);
	struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

	call->fh = *fh;
	call->answer_by_ns = answer_by_ns;
	call->done = wake;
	call->done_only_wakes = true;
	call->ctx = &w;
	submit(&up->base, call);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.cond, &w.lock);
	pthread_mutex_unlock(&w.lock);
	if (w.err == SSC_OK)
		return call;
	ssc_call_put(call);
	return NULL;
}

static uint32_t lower(uint32_t bound, uint32_t server)
{
	return server != 0 && server < bound ? server : bound;
}

static void learn_limits(struct ssc_upstream_nfs3 *up, const struct ssc_fh *root, uint64_t by)
{
	struct ssc_call *info = ask(up, SSC_OP_FSINFO, root, by);
	struct ssc_call *conf = ask(up, SSC_OP_PATHCONF, root, by);
	struct ssc_upstream_limits *l = &up->limits;

	pthread_mutex_lock(&up->lock);
	if (info) {
		l->read_max_bytes = lower(up->cfg.read_max_bytes, info->res.fsinfo.rtmax);
		l->write_max_bytes = lower(up->cfg.write_max_bytes, info->res.fsinfo.wtmax);
		/* dtpref is a wish, not a bound, but more than it is not worth asking for. */
		l->readdir_max_bytes = up->cfg.readdir_max_bytes;
		if (info->res.fsinfo.maxfilesize)
			l->file_size_max = info->res.fsinfo.maxfilesize;
		l->time_delta = info->res.fsinfo.time_delta;
		l->known = true;
	}
	if (conf) {
		l->name_max = lower(SSC_NAME_MAX, conf->res.pathconf.name_max);
		l->link_max = conf->res.pathconf.linkmax;
	}
	pthread_mutex_unlock(&up->lock);
	ssc_call_put(info);
	ssc_call_put(conf);
}

/* Where the MOUNT service is: the address that NFS was found at, with its own port. */
static enum ssc_err mount_once(struct ssc_upstream_nfs3 *up, uint64_t by, struct ssc_fh *fh)
{
	const struct ssc_oneshot o = {up->cfg.use_privileged_port, by, &up->stopping};
	union ssc_sockaddr to;
	uint16_t port = up->cfg.mount_port;
	enum ssc_err err = SSC_OK;

	pthread_mutex_lock(&up->conns[0].lock);
	to = up->conns[0].peer;
	pthread_mutex_unlock(&up->conns[0].lock);
	ssc_conn_kick(&up->conns[0]); /* to what was queued meanwhile */
	if (to.sa.sa_family == AF_UNSPEC)
		return SSC_E_DOWN; /* never reached so far */
	if (port == 0)
		err = ssc_oneshot_getport(&o, &to, MOUNT_PROGRAM, MOUNT_V3, &port);
	if (err == SSC_OK) {
		ssc_sock_set_port(&to, port);
		err = ssc_oneshot_mount(&o, &to, up->cfg.remote_path, fh);
	}
	if (err != SSC_OK && err != SSC_E_SHUTDOWN)
		ssc_log_warn("%s: MOUNT of %s at %s: %s%s", up->cfg.name, up->cfg.remote_path,
			     up->cfg.server, ssc_err_str(err),
			     err == SSC_E_ACCES ? " (does the upstream's export admit this host?)"
						: "");
	return err;
}

/* Until the first connection is up, an attempt failed, or the deadline. */
static enum ssc_err wait_up_locked(struct ssc_upstream_nfs3 *up, uint64_t by)
{
	while (atomic_load(&up->conns[0].state) != SSC_CONN_UP) {
		if (atomic_load(&up->stopping))
			return SSC_E_SHUTDOWN;
		/* After a failed attempt it is the client that waits, not a thread of the host. */
		if (ssc_clock_now_ns() >= by || atomic_load(&up->down_since_ns) != 0)
			return SSC_E_DOWN;
		ssc_clock_wait(&up->root_cond, &up->lock, by);
	}
	return SSC_OK;
}

static enum ssc_err root(struct ssc_upstream *base, bool refresh, uint64_t by, struct ssc_fh *fh)
{
	struct ssc_upstream_nfs3 *up = of(base);
	struct ssc_fh found = {0};
	enum ssc_err err = SSC_OK;
	unsigned int seen;

	atomic_fetch_add(&up->users, 1);
	pthread_mutex_lock(&up->lock);
	seen = up->n_mounts;
	while (up->root_busy && !atomic_load(&up->stopping) && ssc_clock_now_ns() < by)
		ssc_clock_wait(&up->root_cond, &up->lock, by);
	/* A mount that ended while we waited is as fresh as one of our own. */
	if (up->root_known && (!refresh || up->n_mounts != seen))
		goto known;
	if (up->root_busy) {
		err = atomic_load(&up->stopping) ? SSC_E_SHUTDOWN : SSC_E_TIMEDOUT;
		goto out;
	}
	up->root_busy = true;
	err = wait_up_locked(up, by);
	pthread_mutex_unlock(&up->lock);
	if (err == SSC_OK)
		err = mount_once(up, by, &found);
	if (err == SSC_OK)
		learn_limits(up, &found, by);
	pthread_mutex_lock(&up->lock);
	up->root_busy = false;
	if (err == SSC_OK) {
		up->root = found;
		up->root_known = true;
		up->n_mounts++;
	}
	pthread_cond_broadcast(&up->root_cond);
known:
	if (err == SSC_OK)
		*fh = up->root;
out:
	pthread_mutex_unlock(&up->lock);
	atomic_fetch_sub(&up->users, 1);
	return err;
}

static void limits(struct ssc_upstream *base, struct ssc_upstream_limits *out)
{
	struct ssc_upstream_nfs3 *up = of(base);

	pthread_mutex_lock(&up->lock);
	*out = up->limits;
	pthread_mutex_unlock(&up->lock);
}

/* ---- life ---- */

static void stop(struct ssc_upstream *base)
{
	struct ssc_upstream_nfs3 *up = of(base);
	const struct timespec pause = {.tv_nsec = STOP_POLL_NS};

	if (atomic_exchange(&up->stopping, true))
		return;
	pthread_mutex_lock(&up->lock);
	pthread_cond_broadcast(&up->root_cond);
	pthread_mutex_unlock(&up->lock);
	for (unsigned int i = 0; i < up->n_conns; i++)
		ssc_conn_join(&up->conns[i]);
	/* Every wait inside submit and root looks at stopping, or ends with its calls. */
	while (atomic_load(&up->users) > 0)
		nanosleep(&pause, NULL);
	for (unsigned int i = 0; i < up->n_conns; i++)
		ssc_conn_flush(&up->conns[i]);
}

static void destroy(struct ssc_upstream *base)
{
	struct ssc_upstream_nfs3 *up = of(base);

	for (unsigned int i = 0; i < up->n_conns; i++)
		ssc_conn_fini(&up->conns[i]);
	pthread_cond_destroy(&up->root_cond);
	pthread_mutex_destroy(&up->lock);
	free((char *)up->cfg.name);
	free((char *)up->cfg.server);
	free((char *)up->cfg.remote_path);
	free(up);
}

static const struct ssc_upstream_ops ops = {
	.submit = submit,
	.root = root,
	.limits = limits,
	.is_silent = is_silent,
	.stop = stop,
	.free = destroy,
};

static const char *copy(const char *s)
{
	char *c = strdup(s);

	if (!c)
		abort();
	return c;
}

enum ssc_err ssc_upstream_nfs3_new(const struct ssc_upstream_config *cfg, struct ssc_upstream **out)
{
	struct ssc_upstream_nfs3 *up;
	unsigned int n = cfg->connections;
	uint32_t xid = 0;

	up = aligned_alloc(64, (sizeof(*up) + 63) / 64 * 64);
	if (!up)
		abort();
	memset(up, 0, sizeof(*up));
	up->base.ops = &ops;
	up->base.call_priv_bytes = sizeof(struct ssc_call_priv);
	up->cfg = *cfg;
	up->cfg.name = copy(cfg->name);
	up->cfg.server = copy(cfg->server);
	up->cfg.remote_path = copy(cfg->remote_path);
	up->limits = (struct ssc_upstream_limits){
		.read_max_bytes = cfg->read_max_bytes,
		.write_max_bytes = cfg->write_max_bytes,
		.readdir_max_bytes = cfg->readdir_max_bytes,
		.name_max = SSC_NAME_MAX,
		.link_max = 1024,
		.file_size_max = INT64_MAX,
		.time_delta = {.ns = 1},
	};
	/* Not from the clock: a restarted server must not meet another's reply cache entries. */
	if (getrandom(&xid, sizeof(xid), GRND_NONBLOCK) != sizeof(xid))
		xid = (uint32_t)ssc_clock_now_ns();
	atomic_init(&up->xid, xid);
	pthread_mutex_init(&up->lock, NULL);
	ssc_clock_cond_init(&up->root_cond);
	CDS_INIT_LIST_HEAD(&up->late_writes);
	if (n < 1 || n > SSC_CONNECTIONS_MAX)
		n = 1;
	for (unsigned int i = 0; i < n; i++) {
		if (!ssc_conn_start(&up->conns[i], up, i)) {
			ssc_log_crit("%s: cannot start a thread: %s", cfg->name, strerror(errno));
			stop(&up->base);
			destroy(&up->base);
			return SSC_E_SERVERFAULT;
		}
		up->n_conns = i + 1;
	}
	*out = &up->base;
	return SSC_OK;
}

void ssc_upstream_nfs3_stats(struct ssc_upstream *base, struct ssc_upstream_stats *s)
{
	struct ssc_upstream_nfs3 *up = of(base);
	struct ssc_upstream_counters *n = &up->n;

	memset(s, 0, sizeof(*s));
	s->calls = atomic_load(&n->calls);
	s->replies = atomic_load(&n->replies);
	s->resent = atomic_load(&n->resent);
	s->timeouts = atomic_load(&n->timeouts);
	s->late = atomic_load(&n->late);
	s->refused = atomic_load(&n->refused);
	s->bad_replies = atomic_load(&n->bad_replies);
	s->connects = atomic_load(&n->connects);
	s->bytes_read = atomic_load(&n->bytes_read);
	s->bytes_written = atomic_load(&n->bytes_written);
	for (int i = 0; i < SSC_OP_N; i++)
		s->per_op[i] = atomic_load(&n->per_op[i]);
	s->waiting = atomic_load(&up->n_unanswered);
	for (unsigned int i = 0; i < up->n_conns; i++) {
		s->in_flight += atomic_load(&up->conns[i].n_flight);
		s->up |= atomic_load(&up->conns[i].state) == SSC_CONN_UP;
	}
}
