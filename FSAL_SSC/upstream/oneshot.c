/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * oneshot.c - MOUNT and portmapper calls: one call on a connection of its own, then it is closed.
 *
 * They are rare (at start, and when a root handle has become stale), and go to other ports than
 * NFS, so they block their caller, with a deadline, instead of taking part in the loop.
 * Threads: any but loop threads. No locks held or taken. Source: RFC 1813 5.2.1, RFC 1833 3.2.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "libnfs_compat.h"
#include "ssc/clock.h"
#include "ssc/log.h"
#include "ssc/xdr.h"

/* So often a waiting query looks whether it shall stop. */
#define SLICE_MS  100

#define PMAP_PORT 111

struct query {
	const struct ssc_wire_procedure *proc;
	zdrproc_t encode;
	void *args;
	void (*take)(struct query *q, struct ssc_xdr *x); /* the results of an accepted call */
	bool answered;
	enum ssc_err err;
	/* results */
	uint16_t port;
	struct ssc_fh fh;
};

/* The only call of its connection. */
#define QUERY_XID 1

static bool out_of_time(const struct ssc_oneshot *o, enum ssc_err *err)
{
	if (o->stop && atomic_load(o->stop))
		*err = SSC_E_SHUTDOWN;
	else if (ssc_clock_now_ns() >= o->answer_by_ns)
		*err = SSC_E_TIMEDOUT;
	else
		return false;
	return true;
}

/* @return false when there is no connection; then *err tells why. */
static bool wait_connected(const struct ssc_oneshot *o, int fd, enum ssc_err *err)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	while (!out_of_time(o, err)) {
		if (poll(&pfd, 1, SLICE_MS) <= 0)
			continue;
		*err = SSC_E_DOWN;
		return ssc_sock_error(fd) == 0;
	}
	return false;
}

static void replied(void *ctx, uint32_t xid, enum ssc_err err, const void *results, size_t len,
		    bool is_placed, const char *what)
{
	struct query *q = ctx;
	struct ssc_xdr x;

	(void)is_placed, (void)what;
	if (q->answered || xid != QUERY_XID)
		return;
	q->answered = true;
	q->err = err ? SSC_E_PROTO : SSC_OK; /* refused as such */
	ssc_xdr_init(&x, results, len);
	if (q->err == SSC_OK)
		q->take(q, &x);
	if (!ssc_xdr_ok(&x))
		q->err = SSC_E_PROTO;
}

static bool no_place(void *ctx, uint32_t xid, const void *results, size_t len, size_t total,
		     struct ssc_wire_place *place)
{
	(void)ctx, (void)xid, (void)results, (void)len, (void)total, (void)place;
	return false;
}

static bool not_still(void *ctx, uint32_t xid)
{
	(void)ctx, (void)xid;
	return false;
}

static const struct ssc_wire_ops ops = {.reply = replied, .place = no_place, .still = not_still};

static enum ssc_err send_query(struct ssc_wire *w, const struct query *q)
{
	static const struct ssc_cred root;
	uint8_t buf[SSC_WIRE_CALL_MAX];
	size_t len = ssc_wire_header(buf, QUERY_XID, q->proc, &root);
	ZDR zdr;

	libnfs_zdrmem_create(&zdr, (char *)buf + len, sizeof(buf) - len, ZDR_ENCODE);
	if (!q->encode(&zdr, q->args))
		return SSC_E_NAMETOOLONG;
	return ssc_wire_send(w, buf, len + (size_t)zdr.pos, NULL, 0, 0, false);
}

static enum ssc_err await_reply(const struct ssc_oneshot *o, struct ssc_wire *w, int fd,
				struct query *q)
{
	enum ssc_err err = SSC_E_DOWN;

	while (!q->answered) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};

		if (ssc_wire_unsent(w) > 0)
			pfd.events |= POLLOUT;
		if (out_of_time(o, &err))
			return err;
		if (poll(&pfd, 1, SLICE_MS) <= 0)
			continue;
		if (ssc_wire_flush(w) != SSC_OK)
			return SSC_E_DOWN;
		err = ssc_wire_receive(w, false);
		if (err != SSC_OK && !q->answered)
			return err == SSC_E_PROTO ? SSC_E_PROTO : SSC_E_DOWN;
	}
	return q->err;
}

/* Connect to @to, send the query, wait for its answer. */
static enum ssc_err run(const struct ssc_oneshot *o, const union ssc_sockaddr *to, struct query *q)
{
	enum ssc_err err = SSC_E_DOWN;
	struct ssc_wire *w;
	uint16_t port = 0;
	int fd = ssc_sock_connect(to, o->privileged, &port);

	if (fd < 0)
		return SSC_E_DOWN;
	if (!wait_connected(o, fd, &err)) {
		close(fd);
		return err;
	}
	w = ssc_wire_new(fd, &ops, q);
	err = send_query(w, q);
	if (err == SSC_OK)
		err = await_reply(o, w, fd, q);
	else if (err == SSC_E_CONN)
		err = SSC_E_DOWN;
	ssc_wire_free(w);
	return err;
}

/* RFC 1833 3.2: PMAPPROC_GETPORT answers 0 for a program that it does not know. */
static void take_port(struct query *q, struct ssc_xdr *x)
{
	uint32_t port = ssc_xdr_u32(x);

	q->err = port > 0 && port <= UINT16_MAX ? SSC_OK : SSC_E_NOENT;
	q->port = (uint16_t)port;
}

enum ssc_err ssc_oneshot_getport(const struct ssc_oneshot *o, const union ssc_sockaddr *server,
				 uint32_t program, uint32_t version, uint16_t *port)
{
	static const struct ssc_wire_procedure getport = {PMAP_PROGRAM, PMAP_V2, PMAP2_GETPORT};
	pmap2_mapping args = {.prog = program, .vers = version, .prot = IPPROTO_TCP};
	struct query q = {
		.proc = &getport,
		.encode = (zdrproc_t)zdr_pmap2_mapping,
		.args = &args,
		.take = take_port,
	};
	union ssc_sockaddr to = *server;
	enum ssc_err err;

	ssc_sock_set_port(&to, PMAP_PORT);
	err = run(o, &to, &q);
	if (err == SSC_OK)
		*port = q.port;
	return err;
}

static enum ssc_err mount_status(uint32_t status)
{
	/* RFC 1813 5.1.5: the numbers are those of nfsstat3; PERM means "not exported to you". */
	return status == MNT3ERR_PERM ? SSC_E_ACCES : ssc_reply_status(status);
}

/* The list of authentication flavors follows: AUTH_SYS is what we have. */
static void take_root(struct query *q, struct ssc_xdr *x)
{
	uint32_t len;
	const void *fh;

	q->err = mount_status(ssc_xdr_u32(x));
	if (q->err != SSC_OK)
		return;
	fh = ssc_xdr_opaque(x, SSC_FH3_MAX, &len);
	if (len == 0) {
		ssc_xdr_fail(x);
		return;
	}
	q->fh.len = (uint8_t)len;
	memcpy(q->fh.data, fh, len);
}

enum ssc_err ssc_oneshot_mount(const struct ssc_oneshot *o, const union ssc_sockaddr *mountd,
			       const char *path, struct ssc_fh *fh)
{
	static const struct ssc_wire_procedure mnt = {MOUNT_PROGRAM, MOUNT_V3, MOUNT3_MNT};
	struct query q = {
		.proc = &mnt,
		.encode = (zdrproc_t)zdr_dirpath,
		.args = &path,
		.take = take_root,
	};
	enum ssc_err err = run(o, mountd, &q);

	if (err == SSC_OK)
		*fh = q.fh;
	return err;
}
