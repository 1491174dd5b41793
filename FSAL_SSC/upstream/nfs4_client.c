/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_client.c - what other threads call: see nfs4_client.h.
 *
 * Nothing here touches the connection: a call goes into the queue and the thread is kicked, once per
 * edge from empty. Those who wait for a call sleep on a condition of their own, and the thread ends
 * every call by its deadline, so they need none themselves.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ssc/log.h"

#include "nfs4_internal.h"

#define STACK_BYTES    (8 * 1024 * 1024)

#define RETRY_FIRST_NS (20 * SSC_NS_PER_MS)
#define RETRY_MAX_NS   (1000 * SSC_NS_PER_MS)

void ssc_nfs4_config_init(struct ssc_nfs4_config *cfg)
{
	*cfg = (struct ssc_nfs4_config){
		.port = 2049,
		.minor_version = 2,
		.n_slots = 64,
		.want_back_channel = true,
		.connect_ns = 10 * SSC_NS_PER_S,
		.answer_ns = 60 * SSC_NS_PER_S,
		.dead_ns = 60 * SSC_NS_PER_S,
		.patience_ns = 10 * SSC_NS_PER_S,
	};
}

static bool read_address(const char *text, uint16_t port, union ssc_sockaddr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &addr->in.sin_addr) == 1)
		addr->sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &addr->in6.sin6_addr) == 1)
		addr->sa.sa_family = AF_INET6;
	else
		return false;
	ssc_sock_set_port(addr, port);
	return true;
}

/* Two clients must never have the same, on whatever host and in whatever process. */
static void make_owner(struct ssc_nfs4_client *c)
{
	static atomic_uint number;
	struct timespec ts;
	char host[64] = "?";

	(void)gethostname(host, sizeof(host) - 1);
	clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(c->owner, sizeof(c->owner), "FSAL_SSC %s %d %lld.%09ld %u", host, (int)getpid(),
		 (long long)ts.tv_sec, ts.tv_nsec, atomic_fetch_add(&number, 1));
}

static void init(struct ssc_nfs4_client *c)
{
	pthread_mutex_init(&c->lock, NULL);
	ssc_clock_cond_init(&c->changed);
	CDS_INIT_LIST_HEAD(&c->queue);
	CDS_INIT_LIST_HEAD(&c->ready);
	CDS_INIT_LIST_HEAD(&c->done);
	c->fd = -1;
	c->state = SSC_NFS4_IDLE;
	c->down_since_ns = ssc_clock_now_ns();
	c->next_deadline_ns = c->wake_by_ns = UINT64_MAX;
	c->last_error = ssc_nfs4_local(SSC_E_DOWN);
	c->info.lease_s = 90;
	c->slot_limit = UINT32_MAX;
	c->xid = (uint32_t)ssc_base_mix(c->down_since_ns) >> SSC_NFS4_XID_BITS;
	ssc_nfs4_new_verifier(c);
	make_owner(c);
}

/* Signals are the host's; the stack is not to depend on a limit that it was started with. */
static bool start_thread(struct ssc_nfs4_client *c)
{
	sigset_t all, old;
	pthread_attr_t attr;
	bool ok;

	if (pthread_attr_init(&attr) != 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
	     pthread_create(&c->thread, &attr, ssc_nfs4_loop, c) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (ok)
		pthread_setname_np(c->thread, "ssc_nfs4");
	return ok;
}

enum ssc_err ssc_nfs4_client_new(const struct ssc_nfs4_config *cfg, struct ssc_nfs4_client **out)
{
	struct ssc_nfs4_client *c;
	enum ssc_err err = SSC_E_INVAL;

	*out = NULL;
	c = aligned_alloc(64, (sizeof(*c) + 63) & ~(size_t)63);
	if (!c)
		abort();
	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	c->cfg.server = NULL; /* borrowed */
	if (c->cfg.n_slots < 1 || c->cfg.n_slots > SSC_NFS4_SLOTS_MAX)
		goto err_free;
	if (!cfg->connect && (!cfg->server || !read_address(cfg->server, cfg->port, &c->addr)))
		goto err_free;
	if (cfg->connect)
		snprintf(c->name, sizeof(c->name), "test");
	else
		ssc_sock_str(&c->addr, c->name, sizeof(c->name));
	err = SSC_E_DOWN;
	c->evfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->evfd < 0)
		goto err_free;
	init(c);
	if (!start_thread(c))
		goto err_close;
	*out = c;
	return SSC_OK;
err_close:
	close(c->evfd);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
err_free:
	free(c);
	return err;
}

static void kick(struct ssc_nfs4_client *c)
{
	pthread_mutex_lock(&c->lock);
	ssc_nfs4_kick_locked(c);
	pthread_mutex_unlock(&c->lock);
}

void ssc_nfs4_client_free(struct ssc_nfs4_client *c)
{
	if (!c)
		return;
	atomic_store(&c->stopping, true);
	kick(c);
	pthread_join(c->thread, NULL);
	close(c->evfd);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void ssc_nfs4_client_disconnect(struct ssc_nfs4_client *c)
{
	atomic_store(&c->wants_disconnect, true);
	kick(c);
}

uint32_t ssc_nfs4_client_wait(struct ssc_nfs4_client *c, uint64_t until_ns)
{
	uint32_t outcome;

	pthread_mutex_lock(&c->lock);
	while (!c->info.is_up && ssc_clock_now_ns() < until_ns)
		ssc_clock_wait(&c->changed, &c->lock, until_ns);
	outcome = c->info.is_up ? SSC_ST4_OK : c->last_error;
	pthread_mutex_unlock(&c->lock);
	return outcome;
}

void ssc_nfs4_client_info(struct ssc_nfs4_client *c, struct ssc_nfs4_info *info)
{
	pthread_mutex_lock(&c->lock);
	*info = c->info;
	pthread_mutex_unlock(&c->lock);
}

/* ---- calls ---- */

void ssc_nfs4_submit(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	call->n_sent = call->n_wrong = 0;
	if (atomic_fetch_add(&c->n_waiting, 1) >= SSC_NFS4_QUEUE_MAX) {
		atomic_fetch_sub(&c->n_waiting, 1);
		call->outcome = ssc_nfs4_local(SSC_E_JUKEBOX);
		call->done(call);
		return;
	}
	pthread_mutex_lock(&c->lock);
	cds_list_add_tail(&call->link, &c->queue);
	/* On the thread itself the queue is looked at before it sleeps. */
	if (!pthread_equal(pthread_self(), c->thread))
		ssc_nfs4_kick_locked(c);
	pthread_mutex_unlock(&c->lock);
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool is_done;
};

static void wake(struct ssc_nfs4_call *call)
{
	struct waiter *w = call->ctx;

	pthread_mutex_lock(&w->lock);
	w->is_done = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

uint32_t ssc_nfs4_run_once(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	struct waiter w = {.is_done = false};

	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.cond, NULL);
	call->done = wake;
	call->ctx = &w;
	ssc_nfs4_submit(c, call);
	pthread_mutex_lock(&w.lock);
	while (!w.is_done) /* the thread ends it by its deadline */
		pthread_cond_wait(&w.cond, &w.lock);
	pthread_mutex_unlock(&w.lock);
	pthread_cond_destroy(&w.cond);
	pthread_mutex_destroy(&w.lock);
	return call->outcome;
}

static bool wants_retry(uint32_t outcome)
{
	return outcome == SSC_ST4_DELAY || outcome == SSC_ST4_GRACE ||
	       outcome == ssc_nfs4_local(SSC_E_JUKEBOX);
}

uint32_t ssc_nfs4_run(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call)
{
	const uint64_t limit = call->timeout_ns ? call->timeout_ns : c->cfg.answer_ns;
	const uint64_t until = ssc_clock_now_ns() + limit;
	uint64_t pause = RETRY_FIRST_NS;

	while (wants_retry(ssc_nfs4_run_once(c, call)) && ssc_clock_now_ns() + pause < until) {
		struct timespec ts = {.tv_nsec = (long)(pause % SSC_NS_PER_S)};

		nanosleep(&ts, NULL);
		pause = pause * 2 < RETRY_MAX_NS ? pause * 2 : RETRY_MAX_NS - 1;
		ssc_nfs4_call_fini(call); /* its reply; the arguments stay */
	}
	return call->outcome;
}

/* ---- offloads ---- */

static bool find_offload(struct ssc_nfs4_client *c, const struct ssc_stateid *stateid,
			 struct ssc_cb_offload_args *args)
{
	for (int i = 0; i < SSC_NFS4_OFFLOADS; i++) {
		struct ssc_nfs4_offload *o = &c->offload[i];

		if (!o->is_used ||
		    memcmp(o->args.stateid.other, stateid->other, sizeof(stateid->other)) != 0)
			continue;
		*args = o->args;
		o->is_used = false;
		return true;
	}
	return false;
}

bool ssc_nfs4_offload_wait(struct ssc_nfs4_client *c, const struct ssc_stateid *stateid,
			   uint64_t until_ns, struct ssc_cb_offload_args *args)
{
	bool found;

	pthread_mutex_lock(&c->lock);
	while (!(found = find_offload(c, stateid, args)) && ssc_clock_now_ns() < until_ns)
		ssc_clock_wait(&c->changed, &c->lock, until_ns);
	pthread_mutex_unlock(&c->lock);
	return found;
}
