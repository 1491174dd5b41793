/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * locate.c - from the name in the configuration to socket addresses with a port.
 *
 * getaddrinfo may block for as long as DNS likes, and a portmapper may not answer: so both run on a
 * thread of their own, and whoever waits can walk away. The job is shared by two holders (the one
 * who asked, the thread); the last one frees it. Numeric addresses with a known port need no thread.
 */
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "libnfs_compat.h"
#include "ssc/clock.h"

struct ssc_locate {
	/* constant */
	char *server;
	uint16_t port;
	bool privileged;
	uint64_t by_ns; /* who asked gives up then */
	int wake_fd;
	/* atomic */
	atomic_int holders;
	atomic_bool done;
	atomic_bool dropped;
	/* the thread's until done */
	struct ssc_locate_result result;
};

static bool resolve(const char *server, uint16_t port, int flags, struct ssc_locate_result *result)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_protocol = IPPROTO_TCP,
		.ai_flags = AI_NUMERICSERV | flags,
	};
	struct addrinfo *list, *a;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(server, service, &hints, &list);
	if (rc != 0) {
		snprintf(result->why, sizeof(result->why), "%s", gai_strerror(rc));
		return false;
	}
	for (a = list; a && result->n_addrs < SSC_ADDRS_MAX; a = a->ai_next) {
		if ((a->ai_family == AF_INET || a->ai_family == AF_INET6) &&
		    a->ai_addrlen <= sizeof(union ssc_sockaddr))
			memcpy(&result->addrs[result->n_addrs++], a->ai_addr, a->ai_addrlen);
	}
	freeaddrinfo(list);
	if (result->n_addrs == 0)
		snprintf(result->why, sizeof(result->why), "no IPv4 or IPv6 address");
	return result->n_addrs > 0;
}

/* A share of the time left: one silent address must not use up that of the others, nor all of it. */
static uint64_t share_by(const struct ssc_locate *job, int n_addrs_left)
{
	const uint64_t now = ssc_clock_now_ns();

	return now < job->by_ns ? now + (job->by_ns - now) / (unsigned int)(n_addrs_left + 1) : now;
}

/* Ask each address' portmapper; those that do not know NFSv3 are left out. */
static void find_ports(struct ssc_locate *job)
{
	struct ssc_locate_result *r = &job->result;
	struct ssc_oneshot o = {.privileged = job->privileged, .stop = &job->dropped};
	int kept = 0;

	for (int i = 0; i < r->n_addrs; i++) {
		uint16_t port = 0;

		o.answer_by_ns = share_by(job, r->n_addrs - i);
		if (ssc_oneshot_getport(&o, &r->addrs[i], NFS_PROGRAM, NFS_V3, &port) != SSC_OK)
			continue;
		r->addrs[kept] = r->addrs[i];
		ssc_sock_set_port(&r->addrs[kept++], port);
	}
	r->n_addrs = kept;
	r->ok = kept > 0;
	if (!r->ok)
		snprintf(r->why, sizeof(r->why), "no portmapper there knows NFSv3 (set Port)");
}

static void put(struct ssc_locate *job)
{
	if (atomic_fetch_sub(&job->holders, 1) > 1)
		return;
	close(job->wake_fd);
	free(job->server);
	free(job);
}

static void *run(void *arg)
{
	struct ssc_locate *job = arg;
	const uint64_t one = 1;

	ssize_t n;

	job->result.ok = resolve(job->server, job->port, 0, &job->result);
	if (job->result.ok && job->port == 0)
		find_ports(job);
	atomic_store(&job->done, true);
	n = write(job->wake_fd, &one, sizeof(one)); /* fails on a full counter: it wakes anyway */
	(void)n;
	put(job);
	return NULL;
}

struct ssc_locate *ssc_locate_start(const char *server, uint16_t port, bool privileged,
				    uint64_t timeout_ns, int wake_fd)
{
	struct ssc_locate *job = calloc(1, sizeof(*job));
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	if (!job)
		abort();
	job->server = strdup(server);
	if (!job->server)
		abort();
	job->port = port;
	job->privileged = privileged;
	job->by_ns = ssc_clock_now_ns() + timeout_ns;
	job->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
	atomic_store(&job->holders, 2);
	if (port != 0 && resolve(server, port, AI_NUMERICHOST, &job->result)) {
		job->result.ok = true;
		atomic_store(&job->done, true);
		put(job);
		return job;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, run, job);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		return job;
	put(job);
	put(job);
	return NULL;
}

bool ssc_locate_poll(struct ssc_locate *job, struct ssc_locate_result *result)
{
	if (!atomic_load(&job->done))
		return false;
	*result = job->result;
	return true;
}

void ssc_locate_drop(struct ssc_locate *job)
{
	atomic_store(&job->dropped, true);
	put(job);
}
