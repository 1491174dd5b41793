/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_server.c - sockets, faults, held calls and the reply cache of the scripted NFS server.
 *
 * One thread does everything to descriptors; it holds the lock but for poll. Other threads change
 * lists under the lock and kick it, or give it a command and wait until it has carried it out.
 * Records and replies are a few MiB at most and calls some thousands, so lists are searched.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nfs3_internal.h"

#define RECORD_MAX    (4u << 20)
#define LAST_FRAGMENT 0x80000000u

/* ---- buffers ---- */

static void append(struct nfs3_bytes *to, const void *data, size_t len)
{
	if (len == 0)
		return;
	to->data = realloc(to->data, to->len + len);
	if (!to->data)
		abort();
	memcpy(to->data + to->len, data, len);
	to->len += len;
}

static void consume(struct nfs3_bytes *from, size_t len)
{
	memmove(from->data, from->data + len, from->len - len);
	from->len -= len;
}

static void clear(struct nfs3_bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

/* ---- connections ---- */

static void close_conn(struct nfs3_conn *conn)
{
	if (conn->fd >= 0)
		close(conn->fd);
	clear(&conn->in);
	clear(&conn->out);
	clear(&conn->later);
	memset(conn, 0, sizeof(*conn));
	conn->fd = -1;
}

static struct nfs3_conn *find_conn(struct nfs3_server *s, uint64_t id)
{
	int i;

	for (i = 0; i < NFS3_CONNS_MAX; i++) {
		if (s->conns[i].fd >= 0 && s->conns[i].id == id)
			return &s->conns[i];
	}
	return NULL;
}

static void flush(struct nfs3_conn *conn)
{
	while (conn->out.len > 0) {
		ssize_t n =
			send(conn->fd, conn->out.data, conn->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_conn(conn);
			return;
		}
		consume(&conn->out, (size_t)n);
	}
	if (conn->closes)
		close_conn(conn);
}

/* @conn may be NULL: then it was closed in the meantime. */
static void reply_to(struct nfs3_conn *conn, const struct nfs3_bytes *reply)
{
	if (!conn)
		return;
	append(conn->is_split ? &conn->later : &conn->out, reply->data, reply->len);
	flush(conn);
}

static void accept_all(struct nfs3_server *s)
{
	const int one = 1;
	int fd, i;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		for (i = 0; i < NFS3_CONNS_MAX && s->conns[i].fd >= 0; i++)
			;
		if (i == NFS3_CONNS_MAX)
			abort();
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		s->conns[i].fd = fd;
		s->conns[i].id = ++s->n_conns;
	}
}

/* ---- calls ---- */

static struct nfs3_cached *find_cached(struct nfs3_server *s, const struct nfs3_call *call)
{
	unsigned int i;

	for (i = 0; s->caches && i < s->n_cached && i < NFS3_CACHE_MAX; i++) {
		if (s->cache[i].xid == call->xid && s->cache[i].proc == call->proc)
			return &s->cache[i];
	}
	return NULL;
}

static void remember(struct nfs3_server *s, const struct nfs3_call *call,
		     const struct nfs3_enc *enc)
{
	struct nfs3_cached *slot = &s->cache[s->n_cached++ % NFS3_CACHE_MAX];

	clear(&slot->reply);
	slot->xid = call->xid;
	slot->proc = call->proc;
	append(&slot->reply, enc->buf, enc->len);
}

/* The whole reply, with the envelope; carried out unless @kind says otherwise. */
static void execute(struct nfs3_server *s, struct nfs3_call *call, struct nfs3_record *record,
		    const struct nfs3_fault *fault, struct nfs3_bytes *reply)
{
	struct nfs3_cached *cached = find_cached(s, call);
	struct nfs3_enc enc;
	struct nfs3_ctx ctx = {.tree = &s->tree,
			       .args = &call->args,
			       .res = &enc,
			       .kind = fault->kind,
			       .record = record,
			       .verifier = s->verifier,
			       .cookie_verifier = s->cookie_verifier,
			       .strict_cookies = s->strict_cookies,
			       .rtmax = s->rtmax,
			       .wtmax = s->wtmax};
	size_t stat_at;

	if (cached) {
		record->replayed = true;
		append(reply, cached->reply.data, cached->reply.len);
		return;
	}
	nfs3_rpc_begin(&enc, call->xid, &stat_at);
	if (!call->is_ours) {
		nfs3_enc_patch_u32(&enc, stat_at, 1); /* PROG_UNAVAIL */
	} else if (fault->kind == NFS3_STATUS) {
		nfs3_procs_fail(&ctx, call->proc, fault->status);
	} else if (!call->is_nothing) {
		record->executed = true;
		if (!nfs3_procs_run(&ctx, call->proc)) {
			enc.len = stat_at + 4;
			nfs3_enc_patch_u32(&enc, stat_at, 4); /* GARBAGE_ARGS */
		}
	}
	if (call->proc == NFS3_WRITE && s->flips && ++s->n_writes % s->flips == 0)
		s->verifier++;
	nfs3_rpc_spoil(&enc, stat_at, fault->kind);
	nfs3_rpc_end(&enc, fault->kind);
	if (s->caches && record->executed)
		remember(s, call, &enc);
	append(reply, enc.buf, enc.len);
	free(enc.buf);
}

static struct nfs3_fault take_fault(struct nfs3_server *s, const struct nfs3_call *call)
{
	struct nfs3_fault none = {.kind = NFS3_FAULT_NONE}, fault;
	unsigned int i;

	for (i = 0; i < s->n_faults; i++) {
		struct nfs3_fault *f = &s->faults[i];

		if (call->is_nothing ? f->proc != NFS3_NULL
				     : f->proc != call->proc && f->proc != NFS3_ANY)
			continue;
		if (f->skip > 0) {
			f->skip--;
			continue;
		}
		fault = *f;
		if (f->times > 1) {
			f->times--;
		} else {
			s->n_faults--;
			memmove(f, f + 1, (s->n_faults - i) * sizeof(*f));
		}
		return fault;
	}
	return none;
}

static struct nfs3_held *hold(struct nfs3_server *s, uint64_t conn, size_t at)
{
	struct nfs3_held *h;

	if (s->n_held == NFS3_HELD_MAX)
		abort();
	h = &s->held[s->n_held++];
	memset(h, 0, sizeof(*h));
	h->conn = conn;
	h->at = at;
	return h;
}

static size_t note_call(struct nfs3_server *s, const struct nfs3_call *call, uint64_t conn)
{
	struct nfs3_record *r;

	s->records = realloc(s->records, (s->n_records + 1) * sizeof(*s->records));
	if (!s->records)
		abort();
	r = &s->records[s->n_records];
	memset(r, 0, sizeof(*r));
	r->proc = call->proc;
	r->xid = call->xid;
	r->connection = conn;
	r->uid = call->uid;
	r->gid = call->gid;
	r->n_groups = call->n_groups;
	memcpy(r->groups, call->groups, sizeof(r->groups));
	return s->n_records++;
}

/* Send half now; the rest, and what comes behind it, waits in the connection. */
static void split_reply(struct nfs3_server *s, struct nfs3_conn *conn,
			const struct nfs3_bytes *reply, size_t at)
{
	append(&conn->out, reply->data, reply->len / 2);
	append(&conn->later, reply->data + reply->len / 2, reply->len - reply->len / 2);
	conn->is_split = true;
	hold(s, conn->id, at)->is_split = true;
	flush(conn);
}

static void deliver(struct nfs3_server *s, struct nfs3_conn *conn, enum nfs3_fault_kind kind,
		    struct nfs3_bytes *reply, size_t at)
{
	switch (kind) {
	case NFS3_DROP_EXECUTED:
		close_conn(conn);
		break;
	case NFS3_DROP_INSIDE:
		append(&conn->out, reply->data, reply->len / 2);
		conn->closes = true;
		flush(conn);
		break;
	case NFS3_DROP_AFTER_REPLY:
		append(&conn->out, reply->data, reply->len);
		conn->closes = true;
		flush(conn);
		break;
	case NFS3_HOLD_EXECUTED:
		append(&hold(s, conn->id, at)->reply, reply->data, reply->len);
		break;
	case NFS3_HOLD_HALF:
		split_reply(s, conn, reply, at);
		break;
	default:
		reply_to(conn, reply);
		break;
	}
}

/* May close the connection. */
static void take_record(struct nfs3_server *s, struct nfs3_conn *conn, const uint8_t *data,
			size_t len)
{
	struct nfs3_call call;
	struct nfs3_fault fault;
	struct nfs3_bytes reply = {0};
	size_t at;

	if (!nfs3_rpc_parse(data, len, &call)) {
		close_conn(conn);
		return;
	}
	at = note_call(s, &call, conn->id);
	fault = take_fault(s, &call);
	if (fault.kind == NFS3_DROP_BEFORE) {
		close_conn(conn);
	} else if (fault.kind == NFS3_HOLD) {
		append(&hold(s, conn->id, at)->record, data, len);
	} else {
		execute(s, &call, &s->records[at], &fault, &reply);
		deliver(s, conn, fault.kind, &reply, at);
		clear(&reply);
	}
	pthread_cond_broadcast(&s->changed);
}

static void release_one(struct nfs3_server *s, struct nfs3_held *h)
{
	static const struct nfs3_fault none = {.kind = NFS3_FAULT_NONE};
	struct nfs3_conn *conn = find_conn(s, h->conn);
	struct nfs3_call call;

	if (h->record.len > 0 && nfs3_rpc_parse(h->record.data, h->record.len, &call))
		execute(s, &call, &s->records[h->at], &none, &h->reply);
	if (h->is_split && conn) {
		append(&conn->out, conn->later.data, conn->later.len);
		clear(&conn->later);
		conn->is_split = false;
		flush(conn);
	} else if (!h->is_split) {
		reply_to(conn, &h->reply);
	}
	clear(&h->record);
	clear(&h->reply);
}

static void release_all(struct nfs3_server *s)
{
	unsigned int i;

	for (i = 0; i < s->n_held; i++)
		release_one(s, &s->held[i]);
	s->n_held = 0;
	s->releases = false;
	pthread_cond_broadcast(&s->changed);
}

static void receive(struct nfs3_server *s, struct nfs3_conn *conn)
{
	uint8_t piece[256 * 1024];
	const uint64_t id = conn->id;
	ssize_t n = recv(conn->fd, piece, sizeof(piece), MSG_DONTWAIT);
	uint32_t mark;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close_conn(conn);
		return;
	}
	append(&conn->in, piece, (size_t)n);
	while (conn->fd >= 0 && conn->id == id && conn->in.len >= 4) {
		struct nfs3_bytes record = {0};

		memcpy(&mark, conn->in.data, 4);
		mark = ntohl(mark);
		if (!(mark & LAST_FRAGMENT) || (mark & ~LAST_FRAGMENT) > RECORD_MAX) {
			close_conn(conn);
			return;
		}
		mark &= ~LAST_FRAGMENT;
		if (conn->in.len < 4 + (size_t)mark)
			return;
		append(&record, conn->in.data + 4, mark);
		consume(&conn->in, 4 + (size_t)mark);
		take_record(s, conn, record.data, record.len);
		clear(&record);
	}
}

/* ---- the thread ---- */

static void open_listener(struct nfs3_server *s)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(s->port)};
	socklen_t len = sizeof(sin);
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || inet_pton(AF_INET, s->address, &sin.sin_addr) != 1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(fd, (struct sockaddr *)&sin, sizeof(sin)) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&sin, &len) != 0)
		abort();
	s->port = ntohs(sin.sin_port);
	s->listener = fd;
}

static void go_down(struct nfs3_server *s)
{
	int i;

	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
	for (i = 0; i < NFS3_CONNS_MAX; i++)
		close_conn(&s->conns[i]);
}

void nfs3_server_lose_memory(struct nfs3_server *s)
{
	unsigned int i;

	for (i = 0; i < s->n_held; i++) {
		clear(&s->held[i].record);
		clear(&s->held[i].reply);
	}
	s->n_held = 0;
	for (i = 0; i < NFS3_CACHE_MAX; i++)
		clear(&s->cache[i].reply);
	s->n_cached = 0;
}

static void obey(struct nfs3_server *s)
{
	if (s->command == NFS3_CMD_DOWN || s->command == NFS3_CMD_CRASH ||
	    s->command == NFS3_CMD_STOP)
		go_down(s);
	if (s->command == NFS3_CMD_CRASH) {
		nfs3_server_lose_memory(s);
		nfs3_tree_crash(&s->tree);
		s->verifier += 0x9e3779b97f4a7c15ull;
	}
	if (s->command == NFS3_CMD_FREEZE || s->command == NFS3_CMD_THAW)
		s->frozen = s->command == NFS3_CMD_FREEZE;
	if ((s->command == NFS3_CMD_UP || s->command == NFS3_CMD_CRASH) && s->listener < 0)
		open_listener(s);
}

static unsigned int fill_pollfds(struct nfs3_server *s, struct pollfd *pfd, uint64_t *ids)
{
	unsigned int n = 0;
	int i;

	pfd[n] = (struct pollfd){.fd = s->evfd, .events = POLLIN};
	ids[n++] = 0;
	if (s->frozen)
		return n;
	pfd[n] = (struct pollfd){.fd = s->listener, .events = POLLIN};
	ids[n++] = 0;
	for (i = 0; i < NFS3_CONNS_MAX; i++) {
		if (s->conns[i].fd < 0)
			continue;
		pfd[n] = (struct pollfd){.fd = s->conns[i].fd, .events = POLLIN};
		if (s->conns[i].out.len > 0)
			pfd[n].events |= POLLOUT;
		ids[n++] = s->conns[i].id;
	}
	return n;
}

static void serve_events(struct nfs3_server *s, const struct pollfd *pfd, const uint64_t *ids,
			 unsigned int n)
{
	struct nfs3_conn *conn;
	unsigned int i;
	uint64_t kicks;

	if (pfd[0].revents && read(s->evfd, &kicks, sizeof(kicks)) < 0)
		abort();
	if (n > 1 && pfd[1].revents && s->listener >= 0) {
		accept_all(s);
		pthread_cond_broadcast(&s->changed);
	}
	for (i = 2; i < n; i++) {
		conn = find_conn(s, ids[i]);
		if (conn && (pfd[i].revents & POLLOUT))
			flush(conn);
		conn = find_conn(s, ids[i]);
		if (conn && (pfd[i].revents & ~POLLOUT))
			receive(s, conn);
	}
}

void *nfs3_server_run(void *arg)
{
	struct nfs3_server *s = arg;
	struct pollfd pfd[NFS3_CONNS_MAX + 2];
	uint64_t ids[NFS3_CONNS_MAX + 2];
	bool stops = false;
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	while (!stops) {
		n = fill_pollfds(s, pfd, ids);
		pthread_mutex_unlock(&s->lock);
		if (poll(pfd, n, -1) < 0 && errno != EINTR)
			abort();
		pthread_mutex_lock(&s->lock);
		serve_events(s, pfd, ids, n);
		if (s->releases && !s->frozen)
			release_all(s);
		obey(s);
		stops = s->command == NFS3_CMD_STOP;
		if (s->command != NFS3_CMD_NONE) {
			s->command = NFS3_CMD_NONE;
			pthread_cond_broadcast(&s->changed);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
