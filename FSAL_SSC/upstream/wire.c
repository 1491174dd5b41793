/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * wire.c - see wire.h.
 *
 * Receiving goes through one buffer:  [ understood | not yet understood | room ]
 * A record in one fragment, as all servers send, is handed over where it lies. Further fragments are
 * moved together in place: the mark of each next one is cut out of the buffer.
 * While data is placed, the buffer is empty and bytes go from the socket to their place (or, when
 * nobody wants them any more, into the buffer and away).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ssc/xdr.h"
#include "wire.h"

#define LAST_FRAGMENT 0x80000000u

/* Data of at least so much is sent from, or received into, where it lies. */
#define DIRECT_BYTES (32 * 1024)

/* Enough of a READ reply to know where its data begins: header 24, attributes 88, rest 12, verifier. */
#define PEEK_BYTES 256

/* A small buffer grows when a record needs it. */
#define RX_FIRST_BYTES (64 * 1024)

#define PARTS_MAX      20 /* header, data in up to 16 pieces, padding */

/* One receive call after the other, before others get the lock. */
#define ROUNDS_MAX 64

struct ssc_wire {
	int fd;
	const struct ssc_wire_ops *ops;
	void *ctx;
	/* not sent yet: tx[tx_at..tx_len) */
	uint8_t *tx;
	size_t tx_at, tx_len, tx_size;
	/* received, not understood: rx[rx_at..rx_len), beginning with a record's first mark */
	uint8_t *rx;
	size_t rx_at, rx_len, rx_size;
	size_t joined; /* bytes of that record behind its first mark, of fragments already joined */
	/* while data is placed */
	bool placing;
	uint32_t xid;
	struct iovec part[PARTS_MAX]; /* what is left to be filled */
	int n_parts;
	size_t left; /* bytes of data and padding to come */
	uint8_t pad[4];
	uint8_t head[1024]; /* the results before the data */
	size_t head_len;
	size_t lowat; /* bytes that must have come before poll() tells of any */
};

struct ssc_wire *ssc_wire_new(int fd, const struct ssc_wire_ops *ops, void *ctx)
{
	struct ssc_wire *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->fd = fd;
	w->lowat = 1;
	w->ops = ops;
	w->ctx = ctx;
	return w;
}

void ssc_wire_free(struct ssc_wire *w)
{
	if (!w)
		return;
	close(w->fd);
	free(w->tx);
	free(w->rx);
	free(w);
}

/* ---- out ---- */

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
	return p + 4;
}

size_t ssc_wire_header(uint8_t *buf, uint32_t xid, const struct ssc_wire_procedure *proc,
		       const struct ssc_cred *cred)
{
	uint8_t *p = buf + 4; /* the record mark is known when it is sent */

	p = put_u32(p, xid);
	p = put_u32(p, 0); /* CALL */
	p = put_u32(p, 2); /* RPC version */
	p = put_u32(p, proc->program);
	p = put_u32(p, proc->version);
	p = put_u32(p, proc->number);
	p = put_u32(p, 1); /* AUTH_SYS */
	p = put_u32(p, 20 + 4 * cred->n_groups);
	p = put_u32(p, 0); /* stamp */
	p = put_u32(p, 0); /* machine name: none */
	p = put_u32(p, cred->uid);
	p = put_u32(p, cred->gid);
	p = put_u32(p, cred->n_groups);
	for (uint32_t i = 0; i < cred->n_groups; i++)
		p = put_u32(p, cred->groups[i]);
	p = put_u32(p, 0); /* verifier AUTH_NONE */
	p = put_u32(p, 0);
	return (size_t)(p - buf);
}

static void keep(struct ssc_wire *w, const void *data, size_t len)
{
	if (w->tx_size - w->tx_len < len && w->tx_at > 0) {
		memmove(w->tx, w->tx + w->tx_at, w->tx_len - w->tx_at);
		w->tx_len -= w->tx_at;
		w->tx_at = 0;
	}
	if (w->tx_size - w->tx_len < len) {
		w->tx_size = (w->tx_len + len) * 2;
		w->tx = realloc(w->tx, w->tx_size);
		if (!w->tx)
			abort();
	}
	memcpy(w->tx + w->tx_len, data, len);
	w->tx_len += len;
}

/* Take @n bytes off the front of @part. @return how many parts are left; *first: where they begin. */
static int advance(struct iovec *part, int n_parts, size_t n, int *first)
{
	int i = 0;

	while (i < n_parts && n >= part[i].iov_len)
		n -= part[i++].iov_len;
	if (i < n_parts) {
		part[i].iov_base = (char *)part[i].iov_base + n;
		part[i].iov_len -= n;
	}
	*first = i;
	return n_parts - i;
}

/* @return bytes sent, 0 when the socket is full, -1 when it is broken. */
static ssize_t send_parts(struct ssc_wire *w, struct iovec *part, int n_parts)
{
	struct msghdr msg = {.msg_iov = part, .msg_iovlen = (size_t)n_parts};
	ssize_t n;

	do
		n = sendmsg(w->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return n;
}

enum ssc_err ssc_wire_flush(struct ssc_wire *w)
{
	while (w->tx_at < w->tx_len) {
		struct iovec part = {w->tx + w->tx_at, w->tx_len - w->tx_at};
		ssize_t n = send_parts(w, &part, 1);

		if (n < 0)
			return SSC_E_CONN;
		if (n == 0)
			return SSC_OK;
		w->tx_at += (size_t)n;
	}
	w->tx_at = w->tx_len = 0;
	if (w->tx_size > SSC_WIRE_RECORD_MAX) { /* a burst is no reason to keep its memory */
		free(w->tx);
		w->tx = NULL;
		w->tx_size = 0;
	}
	return SSC_OK;
}

size_t ssc_wire_unsent(const struct ssc_wire *w)
{
	return w->tx_len - w->tx_at;
}

/* Header, data and padding as parts of one message. */
static int gather(struct iovec part[PARTS_MAX], uint8_t *buf, size_t len, const struct iovec *iov,
		  int n_iov, size_t bytes)
{
	static const uint8_t zeros[4];
	const size_t padding = -bytes & 3;
	int n = 0;

	part[n++] = (struct iovec){buf, len};
	for (int i = 0; i < n_iov && bytes > 0 && n < PARTS_MAX - 1; i++) {
		size_t take = iov[i].iov_len < bytes ? iov[i].iov_len : bytes;

		part[n++] = (struct iovec){iov[i].iov_base, take};
		bytes -= take;
	}
	if (bytes > 0)
		return -1; /* more pieces than a request of the host has */
	if (padding > 0)
		part[n++] = (struct iovec){(void *)zeros, padding};
	return n;
}

enum ssc_err ssc_wire_send(struct ssc_wire *w, uint8_t *buf, size_t len, const struct iovec *iov,
			   int n_iov, size_t bytes, bool hold)
{
	const size_t total = len + bytes + (-bytes & 3);
	struct iovec part[PARTS_MAX];
	int n = gather(part, buf, len, iov, n_iov, bytes);
	ssize_t sent = 0;
	int first = 0;

	if (n < 0)
		return SSC_E_INVAL;
	put_u32(buf, LAST_FRAGMENT | (uint32_t)(total - 4));
	if (bytes >= DIRECT_BYTES && ssc_wire_flush(w) != SSC_OK)
		return SSC_E_CONN;
	if (bytes >= DIRECT_BYTES && ssc_wire_unsent(w) == 0)
		sent = send_parts(w, part, n);
	if (sent < 0)
		return SSC_E_CONN;
	n = advance(part, n, (size_t)sent, &first);
	for (int i = 0; i < n; i++)
		keep(w, part[first + i].iov_base, part[first + i].iov_len);
	return hold ? SSC_OK : ssc_wire_flush(w);
}

/* ---- in ---- */

/* @return what the header says; x stands behind it on SSC_OK. */
static enum ssc_err read_header(struct ssc_xdr *x, const char **what)
{
	static const char *const refusals[] = {
		"",
		"program not available",
		"program version not available",
		"procedure not available",
		"garbage arguments",
		"system error",
	};
	uint32_t stat, len;

	*what = "";
	if (ssc_xdr_u32(x) != 0) { /* MSG_DENIED: wrong RPC version, or credentials */
		stat = ssc_xdr_u32(x);
		*what = stat == 1 ? "RPC credentials refused" : "RPC version refused";
		return stat == 1 ? SSC_E_AUTH : SSC_E_PROTO;
	}
	(void)ssc_xdr_u32(x); /* flavor of the verifier */
	(void)ssc_xdr_opaque(x, 400, &len);
	stat = ssc_xdr_u32(x);
	if (!ssc_xdr_ok(x) || stat == 0)
		return SSC_OK;
	*what = stat < sizeof(refusals) / sizeof(refusals[0]) ? refusals[stat] : "unknown refusal";
	return SSC_E_PROTO;
}

/* A whole record. @return SSC_E_PROTO when it is no RPC reply. */
static enum ssc_err take_record(struct ssc_wire *w, const uint8_t *bytes, size_t len)
{
	const char *what;
	struct ssc_xdr x;
	enum ssc_err err;
	uint32_t xid, type;

	ssc_xdr_init(&x, bytes, len);
	xid = ssc_xdr_u32(&x);
	type = ssc_xdr_u32(&x);
	if (!ssc_xdr_ok(&x) || type > 1)
		return SSC_E_PROTO;
	if (type == 0) { /* CALL */
		if (!w->ops->call)
			return SSC_E_PROTO;
		w->ops->call(w->ctx, xid, x.at, (size_t)(x.end - x.at));
		return SSC_OK;
	}
	err = read_header(&x, &what);
	if (!ssc_xdr_ok(&x))
		return SSC_E_PROTO;
	w->ops->reply(w->ctx, xid, err, x.at, (size_t)(x.end - x.at), false, what);
	return SSC_OK;
}

static bool note_place(struct ssc_wire *w, const struct ssc_wire_place *place,
		       const uint8_t *results, size_t have, size_t total)
{
	const size_t padding = -place->count & 3;
	uint8_t *pad = w->pad;
	int first;

	if (place->head > sizeof(w->head) || place->head > have ||
	    total != place->head + place->count + padding || place->n_iov > PARTS_MAX - 1)
		return false;
	memcpy(w->head, results, place->head);
	w->head_len = place->head;
	w->n_parts = 0;
	w->left = place->count;
	for (int i = 0; i < place->n_iov && w->left > 0; i++) {
		size_t take = place->iov[i].iov_len < w->left ? place->iov[i].iov_len : w->left;

		w->part[w->n_parts++] = (struct iovec){place->iov[i].iov_base, take};
		w->left -= take;
	}
	if (w->left > 0)
		return false;
	w->part[w->n_parts++] = (struct iovec){pad, padding};
	w->left = place->count + padding;
	/* What is in the buffer already goes to its place now. */
	have -= place->head;
	results += place->head;
	for (int i = 0; i < w->n_parts && have > 0; i++) {
		size_t n = w->part[i].iov_len < have ? w->part[i].iov_len : have;

		memcpy(w->part[i].iov_base, results, n);
		results += n;
		have -= n;
		w->left -= n;
	}
	w->n_parts = advance(w->part, w->n_parts, place->count + padding - w->left, &first);
	memmove(w->part, w->part + first, (size_t)w->n_parts * sizeof(w->part[0]));
	w->placing = true;
	return true;
}

/* The beginning of a long record: can its data go straight to its place? */
static bool try_place(struct ssc_wire *w, const uint8_t *bytes, size_t have, size_t total)
{
	struct ssc_wire_place place;
	const char *what;
	struct ssc_xdr x;
	size_t before;
	uint32_t xid;

	ssc_xdr_init(&x, bytes, have);
	xid = ssc_xdr_u32(&x);
	if (ssc_xdr_u32(&x) != 1 || read_header(&x, &what) != SSC_OK || !ssc_xdr_ok(&x))
		return false;
	before = (size_t)(x.at - bytes);
	if (!w->ops->place(w->ctx, xid, x.at, have - before, total - before, &place))
		return false;
	w->xid = xid;
	return note_place(w, &place, x.at, have - before, total - before);
}

/* All records that are whole. @return SSC_E_PROTO: what is there makes no sense. */
static enum ssc_err take_records(struct ssc_wire *w)
{
	while (w->rx_len - w->rx_at >= 4 + w->joined) {
		uint8_t *record = w->rx + w->rx_at + 4; /* behind the first mark */
		const size_t have = w->rx_len - w->rx_at - 4 - w->joined;
		uint8_t *mark = w->joined ? record + w->joined : record - 4;
		size_t behind = w->joined ? 4 : 0; /* the mark of a further fragment */
		struct ssc_xdr x;
		uint32_t word;
		size_t len;

		if (have < behind)
			break;
		ssc_xdr_init(&x, mark, 4);
		word = ssc_xdr_u32(&x);
		len = word & ~LAST_FRAGMENT;
		if (len + w->joined > SSC_WIRE_RECORD_MAX)
			return SSC_E_PROTO;
		if (have - behind < len) {
			if ((word & LAST_FRAGMENT) && w->joined == 0 && len >= DIRECT_BYTES &&
			    try_place(w, record, have, len))
				w->rx_at = w->rx_len = 0;
			break;
		}
		if (behind) { /* cut its mark out */
			memmove(mark, mark + 4, have - 4);
			w->rx_len -= 4;
		}
		w->joined += len;
		if (!(word & LAST_FRAGMENT)) {
			if (len == 0)
				return SSC_E_PROTO; /* such a peer can go on for ever */
			continue;
		}
		len = w->joined;
		w->joined = 0;
		w->rx_at += 4 + len;
		if (take_record(w, record, len) != SSC_OK)
			return SSC_E_PROTO;
	}
	if (w->rx_at == w->rx_len)
		w->rx_at = w->rx_len = 0;
	return SSC_OK;
}

/* Room behind what is there, for the rest of the record or for PEEK_BYTES at least. */
static void make_room(struct ssc_wire *w)
{
	const size_t kept = w->rx_len - w->rx_at;
	size_t want = RX_FIRST_BYTES;

	if (w->rx_at > 0) {
		memmove(w->rx, w->rx + w->rx_at, kept);
		w->rx_at = 0;
		w->rx_len = kept;
	}
	while (want < kept + RX_FIRST_BYTES / 2)
		want *= 2;
	if (want > w->rx_size) {
		w->rx = realloc(w->rx, want);
		if (!w->rx)
			abort();
		w->rx_size = want;
	}
}

/* @return bytes received, 0 when there are none now, -1 when the connection is over. */
static ssize_t receive_parts(struct ssc_wire *w, struct iovec *part, int n_parts)
{
	struct msghdr msg = {.msg_iov = part, .msg_iovlen = (size_t)n_parts};
	ssize_t n;

	do
		n = recvmsg(w->fd, &msg, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return n > 0 ? n : -1;
}

static ssize_t receive_data(struct ssc_wire *w)
{
	ssize_t n;
	int first;

	if (w->ops->still(w->ctx, w->xid)) {
		n = receive_parts(w, w->part, w->n_parts);
		if (n <= 0)
			return n;
		w->n_parts = advance(w->part, w->n_parts, (size_t)n, &first);
		memmove(w->part, w->part + first, (size_t)w->n_parts * sizeof(w->part[0]));
	} else {
		struct iovec away = {w->rx, w->left < w->rx_size ? w->left : w->rx_size};

		n = receive_parts(w, &away, 1);
		if (n <= 0)
			return n;
		w->n_parts = 0; /* never again into a place that somebody took back */
	}
	w->left -= (size_t)n;
	if (w->left == 0) {
		w->placing = false;
		w->ops->reply(w->ctx, w->xid, SSC_OK, w->head, w->head_len, true, "");
	}
	return n;
}

static enum ssc_err receive(struct ssc_wire *w, bool want_places)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		struct iovec room;
		ssize_t n;

		if (w->placing) {
			n = receive_data(w);
			if (n <= 0)
				return n < 0 ? SSC_E_CONN : SSC_OK;
			continue;
		}
		make_room(w);
		room = (struct iovec){w->rx + w->rx_len, w->rx_size - w->rx_len};
		if (want_places && w->rx_len < PEEK_BYTES)
			room.iov_len = PEEK_BYTES - w->rx_len;
		n = receive_parts(w, &room, 1);
		if (n <= 0)
			return n < 0 ? SSC_E_CONN : SSC_OK;
		w->rx_len += (size_t)n;
		if (take_records(w) != SSC_OK)
			return SSC_E_PROTO;
		/* Less than there was room for: the socket is empty, and asking costs a call. */
		if ((size_t)n < room.iov_len && !w->placing)
			return SSC_OK;
	}
	return SSC_OK;
}

/*
 * While data is placed nothing can be done before the rest of it is there, so waking up for each
 * piece that arrives is vain. Never more than what is left: the server may send nothing else. The kernel
 * tells earlier when its buffer is full, and of the end of the connection at once.
 */
static void set_lowat(struct ssc_wire *w)
{
	const size_t want = w->placing ? w->left : 1;
	const int bytes = (int)want; /* at most a record */

	if (want == w->lowat)
		return;
	w->lowat = want;
	/* Without it each piece wakes us, as before. */
	(void)setsockopt(w->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

enum ssc_err ssc_wire_receive(struct ssc_wire *w, bool want_places)
{
	enum ssc_err err = receive(w, want_places);

	set_lowat(w);
	return err;
}
