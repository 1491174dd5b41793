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
	struct rpc_context *rpc;
	bool answered;
	enum ssc_err err;
	/* results */
	uint16_t port;
	struct ssc_fh fh;
};

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

static enum ssc_err serve(const struct ssc_oneshot *o, struct query *q)
{
	enum ssc_err err = SSC_E_DOWN;

	while (!q->answered) {
		struct pollfd pfd = {.fd = rpc_get_fd(q->rpc), .events = rpc_which_events(q->rpc)};

		if (out_of_time(o, &err))
			return err;
		if (poll(&pfd, 1, SLICE_MS) > 0 && rpc_service(q->rpc, pfd.revents) < 0 &&
		    !q->answered)
			return SSC_E_DOWN;
	}
	return q->err;
}

/* Connect to @to, let @ask queue the call, wait for its answer. */
static enum ssc_err run(const struct ssc_oneshot *o, const union ssc_sockaddr *to, struct query *q,
			int (*ask)(struct query *q, const void *arg), const void *arg)
{
	enum ssc_err err = SSC_E_DOWN;
	uint16_t port = 0;
	int fd = ssc_sock_connect(to, o->privileged, &port);

	if (fd < 0)
		return SSC_E_DOWN;
	if (!wait_connected(o, fd, &err)) {
		close(fd);
		return err;
	}
	q->rpc = ssc_rpc_new();
	if (!q->rpc) {
		close(fd);
		return SSC_E_SERVERFAULT;
	}
	rpc_set_fd(q->rpc, fd); /* closed with the context */
	err = SSC_E_DOWN;
	if (rpc_service(q->rpc, POLLOUT) == 0 && ask(q, arg) == 0)
		err = serve(o, q);
	q->answered = true; /* callbacks of the destruction are of no interest */
	rpc_destroy_context(q->rpc);
	return err;
}

/* A callback without a result: the peer answered wrongly, or its connection is gone. */
static enum ssc_err failure(int status, const void *data)
{
	const char *text = status == RPC_STATUS_ERROR && data ? data : "";

	if (strstr(text, "Server responded") || strstr(text, "not accepted") ||
	    strstr(text, "Message rejected"))
		return SSC_E_PROTO;
	return SSC_E_DOWN;
}

static void getport_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct query *q = private_data;

	(void)rpc;
	if (q->answered)
		return;
	q->answered = true;
	if (status != RPC_STATUS_SUCCESS) {
		q->err = failure(status, data);
		return;
	}
	q->err = SSC_E_NOENT;
	if (*(uint32_t *)data > 0 && *(uint32_t *)data <= UINT16_MAX) {
		q->port = *(uint32_t *)data;
		q->err = SSC_OK;
	}
}

static int ask_getport(struct query *q, const void *arg)
{
	const uint32_t *what = arg;

	return rpc_pmap2_getport_async(q->rpc, what[0], what[1], IPPROTO_TCP, getport_cb, q);
}

enum ssc_err ssc_oneshot_getport(const struct ssc_oneshot *o, const union ssc_sockaddr *server,
				 uint32_t program, uint32_t version, uint16_t *port)
{
	const uint32_t what[2] = {program, version};
	union ssc_sockaddr to = *server;
	struct query q = {0};
	enum ssc_err err;

	ssc_sock_set_port(&to, PMAP_PORT);
	err = run(o, &to, &q, ask_getport, what);
	if (err == SSC_OK)
		*port = q.port;
	return err;
}

static enum ssc_err mount_status(uint32_t status)
{
	/* RFC 1813 5.1.5: the numbers are those of nfsstat3; PERM means "not exported to you". */
	return status == MNT3ERR_PERM ? SSC_E_ACCES : ssc_reply_status(status);
}

static void mount_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct query *q = private_data;
	const struct ssc_reply_bytes *reply = data;
	struct ssc_xdr x;
	uint32_t len;
	const void *fh;

	(void)rpc;
	if (q->answered)
		return;
	q->answered = true;
	if (status != RPC_STATUS_SUCCESS) {
		q->err = failure(status, data);
		return;
	}
	ssc_xdr_init(&x, reply->bytes, reply->len);
	q->err = mount_status(ssc_xdr_u32(&x));
	fh = q->err == SSC_OK ? ssc_xdr_opaque(&x, SSC_FH3_MAX, &len) : NULL;
	/* The list of authentication flavors follows: AUTH_SYS is what we have. */
	if (!ssc_xdr_ok(&x) || (q->err == SSC_OK && len == 0)) {
		q->err = SSC_E_PROTO;
	} else if (q->err == SSC_OK) {
		q->fh.len = (uint8_t)len;
		memcpy(q->fh.data, fh, len);
	}
}

static int ask_mount(struct query *q, const void *arg)
{
	static const struct ssc_procedure mnt = {MOUNT_PROGRAM, MOUNT_V3, MOUNT3_MNT,
						 (zdrproc_t)zdr_dirpath};
	const char *path = arg;

	return ssc_calls_send(q->rpc, &mnt, mount_cb, q, &path, strlen(path));
}

enum ssc_err ssc_oneshot_mount(const struct ssc_oneshot *o, const union ssc_sockaddr *mountd,
			       const char *path, struct ssc_fh *fh)
{
	struct query q = {0};
	enum ssc_err err = run(o, mountd, &q, ask_mount, path);

	if (err == SSC_OK)
		*fh = q.fh;
	return err;
}
