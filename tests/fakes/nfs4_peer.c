/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_peer.c - see nfs4_peer.h: connections, records, what becomes of a request.
 *
 * One connection at a time: a new one closes the one before. The lock is held while a request is done,
 * so that releases from other threads do not mix with it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nfs4_peer_internal.h"

#define IN_MAX (2 * PEER_REPLY_MAX)

void peer_wrong(struct nfs4_peer *peer, const char *what)
{
	snprintf(peer->wrong, sizeof(peer->wrong), "%s", what);
	atomic_fetch_add(&peer->n_wrong, 1);
}

/* ---- out ---- */

static void write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		struct pollfd pfd = {.fd = fd, .events = POLLOUT};
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return; /* the client is gone */
		} else if (poll(&pfd, 1, 5000) <= 0) {
			return;
		}
	}
}

static void put_at(uint8_t *at, uint32_t v)
{
	v = htonl(v);
	memcpy(at, &v, 4);
}

/* A record with the header of an accepted reply in front of @len bytes of results at out + 28. */
static void send_reply(struct nfs4_peer *peer, uint32_t xid, uint8_t *out, size_t len)
{
	const uint32_t head[7] = {0x80000000u | (uint32_t)(24 + len), xid, 1, 0, 0, 0, 0};

	for (int i = 0; i < 7; i++)
		put_at(out + 4 * i, head[i]);
	if (peer->fd >= 0)
		write_all(peer->fd, out, len + PEER_HEADER);
}

void peer_send(struct nfs4_peer *peer, const void *bytes, size_t len)
{
	pthread_mutex_lock(&peer->lock);
	if (peer->fd >= 0)
		write_all(peer->fd, bytes, len);
	pthread_mutex_unlock(&peer->lock);
}

static void close_connection(struct nfs4_peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
	peer->in_len = 0;
}

/* The mark promises all of it. */
static void cut_reply(struct nfs4_peer *peer, uint32_t xid, size_t len)
{
	int fd = peer->fd;

	peer->fd = -1;
	send_reply(peer, xid, peer->out, len); /* only the header is made */
	peer->fd = fd;
	write_all(fd, peer->out, PEER_HEADER + peer->cut_after);
	peer->cut_after = 0;
	close_connection(peer);
}

/* ---- what becomes of a request ---- */

static void hold(struct nfs4_peer *peer, const struct nfs4_request *rq, size_t len)
{
	struct peer_held *h = &peer->held[peer->n_held];

	if (peer->n_held == PEER_HELD_MAX) {
		peer_wrong(peer, "too many held");
		return;
	}
	peer->n_held++;
	h->slot = rq->slot;
	h->len = len;
	h->reply = malloc(len + PEER_HEADER);
	memcpy(h->reply, peer->out, len + PEER_HEADER);
	put_at(h->reply + 4, rq->xid);
	if (rq->has_sequence)
		peer->slot[rq->slot].is_busy = true;
	pthread_cond_broadcast(&peer->cond);
}

uint32_t peer_release(struct nfs4_peer *peer, bool latest_first)
{
	uint32_t n, i;

	pthread_mutex_lock(&peer->lock);
	n = peer->n_held;
	for (i = 0; i < n; i++) {
		struct peer_held *h = &peer->held[latest_first ? n - 1 - i : i];
		uint32_t xid;

		memcpy(&xid, h->reply + 4, 4);
		peer->slot[h->slot].is_busy = false;
		send_reply(peer, ntohl(xid), h->reply, h->len);
		free(h->reply);
	}
	peer->n_held = 0;
	pthread_mutex_unlock(&peer->lock);
	return n;
}

uint32_t peer_n_held(struct nfs4_peer *peer)
{
	uint32_t n;

	pthread_mutex_lock(&peer->lock);
	n = peer->n_held;
	pthread_mutex_unlock(&peer->lock);
	return n;
}

static void take_request(struct nfs4_peer *peer, const uint8_t *bytes, size_t len)
{
	struct nfs4_request rq;
	enum peer_action action = PEER_ANSWER;
	size_t out_len;

	if (!peer_parse(peer, bytes, len, &rq))
		return; /* a NULL call, or a reply to a callback */
	if (peer->hooks.before)
		action = peer->hooks.before(peer, &rq);
	if (action == PEER_CLOSE)
		close_connection(peer);
	if (action == PEER_CLOSE || action == PEER_LOSE)
		return;
	out_len = peer_do(peer, bytes, len, &rq);
	if (peer->hooks.after)
		peer->hooks.after(peer, &rq, peer->out + PEER_HEADER, &out_len, PEER_REPLY_MAX);
	if (action == PEER_ANSWER && peer->cut_after)
		cut_reply(peer, rq.xid, out_len);
	else if (action == PEER_ANSWER)
		send_reply(peer, rq.xid, peer->out, out_len);
	else if (action == PEER_CLOSE_AFTER)
		close_connection(peer);
	else if (action == PEER_HOLD)
		hold(peer, &rq, out_len);
}

/* ---- in ---- */

static void take_records(struct nfs4_peer *peer)
{
	size_t at = 0;

	while (peer->fd >= 0 && peer->in_len - at >= 4) {
		uint32_t mark;
		size_t len;

		memcpy(&mark, peer->in + at, 4);
		mark = ntohl(mark);
		len = mark & 0x7fffffffu;
		if (!(mark >> 31) || len > PEER_REPLY_MAX) {
			peer_wrong(peer, "a record that is too long, or in fragments");
			close_connection(peer);
			return;
		}
		if (peer->in_len - at - 4 < len)
			break;
		take_request(peer, peer->in + at + 4, len);
		at += 4 + len;
	}
	if (peer->fd < 0)
		return;
	memmove(peer->in, peer->in + at, peer->in_len - at);
	peer->in_len -= at;
}

static void serve(struct nfs4_peer *peer)
{
	ssize_t n = recv(peer->fd, peer->in + peer->in_len, IN_MAX - peer->in_len, MSG_DONTWAIT);

	if (n > 0) {
		peer->in_len += (size_t)n;
		take_records(peer);
	} else if (n == 0 || errno != EAGAIN) {
		close_connection(peer);
	}
}

static void *loop(void *arg)
{
	struct nfs4_peer *peer = arg;

	while (!atomic_load(&peer->stopping)) {
		struct pollfd pfd[2] = {{.fd = peer->kick[0], .events = POLLIN},
					{.events = POLLIN}};
		char byte;

		pthread_mutex_lock(&peer->lock);
		if (peer->next_fd >= 0) {
			close_connection(peer);
			peer->fd = peer->next_fd;
			peer->next_fd = -1;
			for (int i = 0; i < PEER_SLOTS_MAX; i++)
				peer->slot[i].is_busy = false;
		}
		pfd[1].fd = peer->fd;
		pthread_mutex_unlock(&peer->lock);
		if (poll(pfd, 2, 1000) <= 0)
			continue;
		if (pfd[0].revents && read(peer->kick[0], &byte, 1) < 0)
			break;
		if (!pfd[1].revents)
			continue;
		pthread_mutex_lock(&peer->lock);
		if (peer->fd == pfd[1].fd && peer->next_fd < 0)
			serve(peer);
		pthread_mutex_unlock(&peer->lock);
	}
	return NULL;
}

/* ---- the test's side ---- */

void peer_before(struct nfs4_peer *peer,
		 enum peer_action (*before)(struct nfs4_peer *peer, struct nfs4_request *rq))
{
	pthread_mutex_lock(&peer->lock);
	peer->hooks.before = before;
	pthread_mutex_unlock(&peer->lock);
}

void peer_after(struct nfs4_peer *peer,
		void (*after)(struct nfs4_peer *peer, const struct nfs4_request *rq, uint8_t *reply,
			      size_t *len, size_t room))
{
	pthread_mutex_lock(&peer->lock);
	peer->hooks.after = after;
	pthread_mutex_unlock(&peer->lock);
}

static void kick(struct nfs4_peer *peer)
{
	if (write(peer->kick[1], "", 1) < 0)
		abort();
}

int peer_connect(void *arg)
{
	struct nfs4_peer *peer = arg;
	int fds[2];

	if (atomic_load(&peer->refuses))
		return -ECONNREFUSED;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	pthread_mutex_lock(&peer->lock);
	if (peer->next_fd >= 0)
		close(peer->next_fd);
	peer->next_fd = fds[1];
	pthread_mutex_unlock(&peer->lock);
	atomic_fetch_add(&peer->n_connects, 1);
	kick(peer);
	return fds[0];
}

struct nfs4_peer *peer_new(void)
{
	struct nfs4_peer *peer = calloc(1, sizeof(*peer));

	if (!peer || pipe(peer->kick) != 0)
		abort();
	peer->n_slots = 16;
	peer->request_max = (1 << 20) + 4096;
	peer->lease_s = 90;
	peer->target_slot = UINT32_MAX;
	peer->fd = peer->next_fd = -1;
	peer->clientid = 0x1122334455667788ull;
	peer->in = malloc(IN_MAX);
	peer->out = malloc(PEER_REPLY_MAX + PEER_HEADER);
	pthread_mutex_init(&peer->lock, NULL);
	pthread_cond_init(&peer->cond, NULL);
	if (!peer->in || !peer->out || pthread_create(&peer->thread, NULL, loop, peer) != 0)
		abort();
	return peer;
}

void peer_free(struct nfs4_peer *peer)
{
	atomic_store(&peer->stopping, true);
	kick(peer);
	pthread_join(peer->thread, NULL);
	peer_release(peer, false);
	close_connection(peer);
	if (peer->next_fd >= 0)
		close(peer->next_fd);
	close(peer->kick[0]);
	close(peer->kick[1]);
	free(peer->in);
	free(peer->out);
	pthread_cond_destroy(&peer->cond);
	pthread_mutex_destroy(&peer->lock);
	free(peer);
}

bool peer_wait(atomic_uint *count, uint32_t n)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	for (int i = 0; i < 5000 && atomic_load(count) < n; i++)
		nanosleep(&ts, NULL);
	return atomic_load(count) >= n;
}

size_t peer_take_answer(struct nfs4_peer *peer, uint8_t *buf, size_t room)
{
	const struct timespec ts = {.tv_nsec = 1000000};
	size_t len = 0;

	for (int i = 0; i < 5000 && len == 0; i++) {
		pthread_mutex_lock(&peer->lock);
		len = peer->cb_len < room ? peer->cb_len : room;
		memcpy(buf, peer->cb_reply, len);
		peer->cb_len = 0;
		pthread_mutex_unlock(&peer->lock);
		if (len == 0)
			nanosleep(&ts, NULL);
	}
	return len;
}

void peer_forget_session(struct nfs4_peer *peer)
{
	atomic_store(&peer->forget_session, true);
}

void peer_forget_client(struct nfs4_peer *peer)
{
	atomic_store(&peer->forget_client, true);
}
