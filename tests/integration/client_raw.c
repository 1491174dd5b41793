/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * client_raw.c - the test client's single calls on a file's handle: what each answer was, verbatim.
 *
 * The handle is taken once, from libnfs' open of the file; from then on calls name it directly, so
 * that an answer is about it and not about its path. Over v4 they carry the anonymous stateid.
 * A call that is not answered within REPLY_MS ends the command with an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <nfsc/libnfs-raw-nfs4.h>

#define REPLY_MS  120000
#define DEPTH_MAX 512
#define PIECE     512
#define STRIDE    4096

/* NFS3ERR_JUKEBOX and NFS4ERR_DELAY are the same number. */
#define ST_JUKEBOX 10008u

/* Exported by libnfs 4.0.0, declared only in its private header. */
struct nfs_fh {
	int len;
	char *val;
};
struct nfs_fh *nfs_get_fh(struct nfsfh *nfsfh);
const struct nfs_fh *nfs_get_rootfh(struct nfs_context *nfs);

enum raw_op { RAW_GETATTR, RAW_WRITE, RAW_COMMIT };

struct raw {
	struct client *c;
	struct rpc_context *rpc;
	struct nfsfh *open; /* NULL: the root, which needs none */
	const struct nfs_fh *fh;
	bool is_v4;
	unsigned n_waiting;
};

/* One call, while it is under way and after. */
struct call {
	struct raw *raw;
	uint64_t offset;
	uint64_t sent_ms, took_ms;
	bool done, is_taken;
	uint32_t status; /* nfsstat3 or nfsstat4; UINT32_MAX: not even an RPC reply */
	uint8_t verf[8];
};

static const char *status_name(uint32_t status, char buf[16])
{
	switch (status) {
	case 0:
		return "OK";
	case 5:
		return "IO";
	case 70:
		return "STALE";
	case 10001:
		return "BADHANDLE";
	case ST_JUKEBOX:
		return "JUKEBOX";
	case UINT32_MAX:
		return "RPC";
	}
	snprintf(buf, 16, "%u", status);
	return buf;
}

static void finish(struct call *call, uint32_t status)
{
	call->status = status;
	call->took_ms = client_now_ms() - call->sent_ms;
	call->done = true;
	call->raw->n_waiting--;
}

static void getattr3_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	GETATTR3res *res = data;

	(void)rpc;
	finish(private_data, status == RPC_STATUS_SUCCESS ? res->status : UINT32_MAX);
}

static void write3_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct call *call = private_data;
	WRITE3res *res = data;

	(void)rpc;
	if (status == RPC_STATUS_SUCCESS && res->status == NFS3_OK)
		memcpy(call->verf, res->WRITE3res_u.resok.verf, sizeof(call->verf));
	finish(call, status == RPC_STATUS_SUCCESS ? res->status : UINT32_MAX);
}

static void commit3_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct call *call = private_data;
	COMMIT3res *res = data;

	(void)rpc;
	if (status == RPC_STATUS_SUCCESS && res->status == NFS3_OK)
		memcpy(call->verf, res->COMMIT3res_u.resok.verf, sizeof(call->verf));
	finish(call, status == RPC_STATUS_SUCCESS ? res->status : UINT32_MAX);
}

static void compound_cb(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct call *call = private_data;
	COMPOUND4res *res = data;
	nfs_resop4 *last;

	(void)rpc;
	if (status != RPC_STATUS_SUCCESS) {
		finish(call, UINT32_MAX);
		return;
	}
	if (res->status == NFS4_OK && res->resarray.resarray_len == 2) {
		last = &res->resarray.resarray_val[1];
		if (last->resop == OP_WRITE)
			memcpy(call->verf, last->nfs_resop4_u.opwrite.WRITE4res_u.resok4.writeverf,
			       sizeof(call->verf));
		if (last->resop == OP_COMMIT)
			memcpy(call->verf,
			       last->nfs_resop4_u.opcommit.COMMIT4res_u.resok4.writeverf,
			       sizeof(call->verf));
	}
	finish(call, res->status);
}

static int send3(struct call *call, enum raw_op op, char *data)
{
	struct raw *raw = call->raw;
	nfs_fh3 fh = {{(u_int)raw->fh->len, raw->fh->val}};
	GETATTR3args getattr = {.object = fh};
	COMMIT3args commit = {.file = fh};
	WRITE3args write = {
		.file = fh,
		.offset = call->offset,
		.count = PIECE,
		.stable = UNSTABLE,
		.data = {PIECE, data},
	};

	switch (op) {
	case RAW_GETATTR:
		return rpc_nfs3_getattr_async(raw->rpc, getattr3_cb, &getattr, call);
	case RAW_WRITE:
		return rpc_nfs3_write_async(raw->rpc, write3_cb, &write, call);
	case RAW_COMMIT:
		return rpc_nfs3_commit_async(raw->rpc, commit3_cb, &commit, call);
	}
	return -1;
}

static int send4(struct call *call, enum raw_op op, char *data)
{
	static uint32_t wanted = 1u << FATTR4_SIZE;
	struct raw *raw = call->raw;
	nfs_argop4 ops[2];
	COMPOUND4args args = {.argarray = {2, ops}};

	memset(ops, 0, sizeof(ops)); /* and with it the anonymous stateid */
	ops[0].argop = OP_PUTFH;
	ops[0].nfs_argop4_u.opputfh.object.nfs_fh4_len = (u_int)raw->fh->len;
	ops[0].nfs_argop4_u.opputfh.object.nfs_fh4_val = raw->fh->val;
	switch (op) {
	case RAW_GETATTR:
		ops[1].argop = OP_GETATTR;
		ops[1].nfs_argop4_u.opgetattr.attr_request.bitmap4_len = 1;
		ops[1].nfs_argop4_u.opgetattr.attr_request.bitmap4_val = &wanted;
		break;
	case RAW_WRITE:
		ops[1].argop = OP_WRITE;
		ops[1].nfs_argop4_u.opwrite.offset = call->offset;
		ops[1].nfs_argop4_u.opwrite.stable = UNSTABLE4;
		ops[1].nfs_argop4_u.opwrite.data.data_len = PIECE;
		ops[1].nfs_argop4_u.opwrite.data.data_val = data;
		break;
	case RAW_COMMIT:
		ops[1].argop = OP_COMMIT;
		break;
	}
	return rpc_nfs4_compound_async(raw->rpc, compound_cb, &args, call);
}

static int raw_send(struct call *call, enum raw_op op)
{
	static char data[PIECE];
	int err;

	client_pattern((uint8_t *)data, sizeof(data), call->offset, 1);
	call->done = false;
	call->sent_ms = client_now_ms();
	err = call->raw->is_v4 ? send4(call, op, data) : send3(call, op, data);
	if (err)
		fprintf(stderr, "raw call: %s\n", rpc_get_error(call->raw->rpc));
	else
		call->raw->n_waiting++;
	return err;
}

/* Let replies come for @ms at most. */
static int raw_service(struct raw *raw, int ms)
{
	struct pollfd pfd = {.fd = rpc_get_fd(raw->rpc),
			     .events = (short)rpc_which_events(raw->rpc)};

	if (poll(&pfd, 1, ms) <= 0)
		return 0;
	if (rpc_service(raw->rpc, pfd.revents) < 0) {
		fprintf(stderr, "raw call: %s\n", rpc_get_error(raw->rpc));
		return -1;
	}
	return 0;
}

static int raw_wait(struct call *call)
{
	while (!call->done) {
		if (raw_service(call->raw, 100))
			return 1;
		if (client_now_ms() - call->sent_ms > REPLY_MS) {
			fprintf(stderr, "raw call: no reply\n");
			return 1;
		}
	}
	return 0;
}

static int raw_open(struct raw *raw, struct client *c, const char *path, bool for_write)
{
	int err = 0;

	if (for_write)
		err = client_open_for_write(c, path, &raw->open);
	else if (strcmp(path, "/"))
		err = CALL(c, nfs_open(c->nfs, path, O_RDONLY, &raw->open));
	if (err)
		return client_fail(c, "open", path, err);
	raw->c = c;
	raw->rpc = nfs_get_rpc_context(c->nfs);
	raw->fh = raw->open ? nfs_get_fh(raw->open) : nfs_get_rootfh(c->nfs);
	raw->is_v4 = c->is_v4;
	return 0;
}

/* ---- getattrs ---- */

/* Between two calls of one slot; longer when it was told to come back, as real clients do. */
#define GETATTR_PAUSE_MS 50
#define JUKEBOX_PAUSE_MS 1000

struct run {
	uint32_t status;
	unsigned long n;
	uint64_t longest_ms;
};

static void run_print(const struct run *run)
{
	char buf[16];

	if (run->n)
		printf("%s calls=%lu longest_ms=%llu\n", status_name(run->status, buf), run->n,
		       (unsigned long long)run->longest_ms);
	fflush(stdout);
}

static void run_add(struct run *run, const struct call *call)
{
	if (run->n && run->status != call->status) {
		run_print(run);
		run->n = 0;
		run->longest_ms = 0;
	}
	run->status = call->status;
	run->n++;
	if (call->took_ms > run->longest_ms)
		run->longest_ms = call->took_ms;
}

static volatile sig_atomic_t is_told_to_end;

static void on_term(int signo)
{
	(void)signo;
	is_told_to_end = 1;
}

/* Take the answer of @call, if there is one to take, and ask again before @end. */
static int getattrs_turn(struct call *call, struct run *run, uint64_t end, bool *busy)
{
	uint64_t now = client_now_ms();
	uint64_t pause = call->status == ST_JUKEBOX ? JUKEBOX_PAUSE_MS : GETATTR_PAUSE_MS;

	if (!call->done && now - call->sent_ms > REPLY_MS) {
		fprintf(stderr, "getattrs: no reply\n");
		return 1;
	}
	if (call->done && call->sent_ms && !call->is_taken) {
		run_add(run, call);
		call->is_taken = true;
	}
	if (call->done && (now >= end || is_told_to_end))
		return 0;
	*busy = true;
	if (!call->done || now - call->sent_ms < pause)
		return 0;
	call->is_taken = false;
	return raw_send(call, RAW_GETATTR);
}

int client_getattrs(struct client *c, const char *path, double seconds, unsigned depth)
{
	static struct call calls[DEPTH_MAX];
	uint64_t end = client_now_ms() + (uint64_t)(seconds * 1000);
	struct run run = {0};
	struct raw raw = {0};
	bool busy = true;

	if (depth < 1 || depth > DEPTH_MAX || raw_open(&raw, c, path, false))
		return 1;
	for (unsigned i = 0; i < depth; i++)
		calls[i] = (struct call){.raw = &raw, .done = true};
	signal(SIGTERM, on_term);
	while (busy) {
		busy = false;
		for (unsigned i = 0; i < depth; i++) {
			if (getattrs_turn(&calls[i], &run, end, &busy))
				return 1;
		}
		if (busy && raw_service(&raw, GETATTR_PAUSE_MS / 5))
			return 1;
	}
	run_print(&run);
	return 0;
}

/* ---- verifiers ---- */

static void verf_print(const char *what, const struct call *call)
{
	printf("%s ", what);
	for (size_t i = 0; i < sizeof(call->verf); i++)
		printf("%02x", call->verf[i]);
	printf("\n");
	fflush(stdout);
}

/* One call that comes back while it is asked to, as CALL() does. */
static int raw_call(struct call *call, enum raw_op op)
{
	struct client *c = call->raw->c;
	char buf[16];

	client_call_begins(c);
	for (;;) {
		if (raw_send(call, op) || raw_wait(call))
			return 1;
		if (call->status != ST_JUKEBOX || client_now_ms() >= c->give_up_ms)
			break;
		c->n_retries++;
		usleep(100 * 1000);
	}
	if (call->status)
		fprintf(stderr, "raw call: %s\n", status_name(call->status, buf));
	return call->status != 0;
}

int client_verifiers(struct client *c, const char *path, const char *go)
{
	uint64_t end = client_now_ms() + REPLY_MS;
	struct raw raw = {0};
	struct call call = {.raw = &raw};

	if (raw_open(&raw, c, path, true) || raw_call(&call, RAW_WRITE))
		return 1;
	verf_print("write", &call);
	while (access(go, F_OK) && client_now_ms() < end)
		usleep(20 * 1000);
	if (raw_call(&call, RAW_COMMIT))
		return 1;
	verf_print("commit", &call);
	nfs_close(c->nfs, raw.open);
	return 0;
}

/* Take the answer of @call, if there is one to take, and write the next piece. */
static int writes_turn(struct call *call, unsigned long n, unsigned long *n_sent,
		       unsigned long *n_done)
{
	char what[32], buf[16];

	if (!call->done)
		return 0;
	if (call->sent_ms && call->status) {
		fprintf(stderr, "write: %s\n", status_name(call->status, buf));
		return 1;
	}
	if (call->sent_ms) {
		snprintf(what, sizeof(what), "%llu", (unsigned long long)call->offset);
		verf_print(what, call);
		(*n_done)++;
	}
	call->sent_ms = 0;
	if (*n_sent == n)
		return 0;
	call->offset = (uint64_t)(*n_sent)++ * STRIDE;
	return raw_send(call, RAW_WRITE);
}

int client_writes(struct client *c, const char *path, unsigned long n, unsigned depth)
{
	static struct call calls[DEPTH_MAX];
	unsigned long n_sent = 0, n_done = 0;
	struct raw raw = {0};

	if (depth < 1 || depth > DEPTH_MAX || raw_open(&raw, c, path, true))
		return 1;
	for (unsigned i = 0; i < depth; i++)
		calls[i] = (struct call){.raw = &raw, .done = true};
	while (n_done < n) {
		for (unsigned i = 0; i < depth; i++) {
			if (writes_turn(&calls[i], n, &n_sent, &n_done))
				return 1;
		}
		if (raw.n_waiting && raw_service(&raw, 100))
			return 1;
	}
	nfs_close(c->nfs, raw.open);
	return 0;
}
