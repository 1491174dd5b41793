/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sock.c - TCP sockets: source port, options, connecting without waiting.
 *
 * Without TCP_NODELAY a pipelined pair of requests waits 40 ms for a delayed acknowledgement; without
 * keepalive and a user timeout a peer that is gone is missed late.
 * Threads: any; nothing here blocks. No locks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

/* Below 512 live services that an admin may start after us. */
#define PRIVILEGED_LOW  512
#define PRIVILEGED_HIGH 1023

const char *ssc_sock_str(const union ssc_sockaddr *addr, char *buf, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (addr->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, text, sizeof(text));
		snprintf(buf, size, "[%s]:%u", text, ntohs(addr->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &addr->in.sin_addr, text, sizeof(text));
		snprintf(buf, size, "%s:%u", text, ntohs(addr->in.sin_port));
	}
	return buf;
}

void ssc_sock_set_port(union ssc_sockaddr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else
		addr->in.sin_port = htons(port);
}

static socklen_t addr_len(const union ssc_sockaddr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

static bool bind_port(int fd, int family, uint16_t port)
{
	union ssc_sockaddr local = {.sa.sa_family = family};

	ssc_sock_set_port(&local, port);
	return bind(fd, &local.sa, addr_len(&local)) == 0;
}

/* Many clients start at the same end; each process starts somewhere of its own. */
static void bind_privileged(int fd, int family)
{
	const unsigned int n = PRIVILEGED_HIGH - PRIVILEGED_LOW + 1;
	static atomic_uint next;
	unsigned int start = (unsigned int)getpid() * 31 + atomic_fetch_add(&next, 1);

	for (unsigned int i = 0; i < n; i++) {
		if (bind_port(fd, family, PRIVILEGED_LOW + (start + i) % n))
			return;
		if (errno == EACCES)
			return; /* not root: the kernel picks a port at connect */
	}
}

int ssc_sock_connect(const union ssc_sockaddr *addr, bool privileged, uint16_t *port)
{
	const int family = addr->sa.sa_family;
	const struct linger reset = {.l_onoff = 1, .l_linger = 0};
	union ssc_sockaddr local;
	socklen_t len = sizeof(local);
	const int one = 1;
	int fd;

	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	/*
	 * A connection is only closed when it is of no more use. A reset leaves no TIME_WAIT behind,
	 * so that the next one can have the same source port: some servers know a repeated request
	 * only when it comes from there.
	 */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!(*port && bind_port(fd, family, *port)) && privileged)
		bind_privileged(fd, family);
	if (connect(fd, &addr->sa, addr_len(addr)) != 0 && errno != EINPROGRESS) {
		int err = errno;

		close(fd);
		*port = 0; /* do not insist on a port that may be the cause */
		return -err;
	}
	if (getsockname(fd, &local.sa, &len) == 0)
		*port = ntohs(family == AF_INET6 ? local.in6.sin6_port : local.in.sin_port);
	return fd;
}

void ssc_sock_tune(int fd, uint64_t dead_ns)
{
	const int one = 1;
	const unsigned int dead_ms = dead_ns / SSC_NS_PER_MS;
	int idle_s = dead_ms / 1000 / 2;
	int step_s;

	if (idle_s < 1)
		idle_s = 1;
	step_s = idle_s / 3 ? idle_s / 3 : 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step_s, sizeof(step_s));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof(dead_ms));
}

int ssc_sock_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
		return errno;
	return err;
}
