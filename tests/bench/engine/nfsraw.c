/* SPDX-License-Identifier: LGPL-3.0-or-later OR GPL-2.0-only */
/*
 * nfsraw.c - connection, event loop and retries of the measuring client.
 *
 * libnfs 4.0.0 needs help in four places, all here: it leaves Nagle on (a pipelined pair then
 * waits 40 ms for an ACK), it sends only when polled, its calls for NFSv4 are encoded into 4096
 * bytes whatever they carry, and it frees each 1 MiB buffer to a heap that glibc then trims and
 * faults in again. Its timeouts and its reconnect are never used: an answer that stays out for
 * SILENCE_MS ends the connection and every operation with it.
 */
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "nfsraw_private.h"

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

/* Longer than any pause that a server under test may make, so that a pause shows as latency. */
#define SILENCE_MS 90000
/* Total time that one operation may be told to come back later. */
#define RETRY_MAX_NS     (60ULL * 1000000000ULL)
#define BACKOFF_FIRST_NS (5ULL * 1000000ULL)
#define BACKOFF_MAX_NS   (500ULL * 1000000ULL)

static __thread size_t pdu_hint_bytes;

/* Private functions of libnfs 4.0.0 that its shared object exports. */
struct rpc_pdu;
struct rpc_pdu *rpc_allocate_pdu2(struct rpc_context *rpc, int program, int version, int procedure,
				  rpc_cb cb, void *private_data, zdrproc_t decode_fn,
				  int decode_size, size_t alloc_hint);
struct rpc_pdu *rpc_allocate_pdu(struct rpc_context *rpc, int program, int version, int procedure,
				 rpc_cb cb, void *private_data, zdrproc_t decode_fn,
				 int decode_size);

/*
 * Takes the place of libnfs' own function of this name for calls from within libnfs: it comes
 * earlier in the search order. The only way to give a COMPOUND more room than 4096 bytes.
 */
struct rpc_pdu *rpc_allocate_pdu(struct rpc_context *rpc, int program, int version, int procedure,
				 rpc_cb cb, void *private_data, zdrproc_t decode_fn,
				 int decode_size)
{
	size_t hint = pdu_hint_bytes;

	pdu_hint_bytes = 0;
	return rpc_allocate_pdu2(rpc, program, version, procedure, cb, private_data, decode_fn,
				 decode_size, hint);
}

void nfsraw_pdu_hint(size_t hint_bytes)
{
	pdu_hint_bytes = hint_bytes;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

bool nfsraw_fh_set(struct nfsraw_fh *fh, const char *data, unsigned int len)
{
	if (len == 0 || len > NFSRAW_FH_MAX)
		return false;
	memcpy(fh->data, data, len);
	fh->len = len;
	return true;
}

/* Copy [from, to) into a field of size bytes; false when it does not fit or is empty. */
static bool copy_part(char *field, size_t size, const char *from, const char *to)
{
	size_t len = (size_t)(to - from);

	if (len == 0 || len >= size)
		return false;
	memcpy(field, from, len);
	field[len] = '\0';
	return true;
}

static int parse_option(struct nfsraw_target *target, const char *arg)
{
	static const struct {
		const char *key;
		size_t offset;
	} keys[] = {
		{"nfsport=", offsetof(struct nfsraw_target, port)},
		{"mountport=", offsetof(struct nfsraw_target, mount_port)},
		{"version=", offsetof(struct nfsraw_target, version)},
		{"uid=", offsetof(struct nfsraw_target, uid)},
		{"gid=", offsetof(struct nfsraw_target, gid)},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t len = strlen(keys[i].key);
		char *end;
		long value;

		if (strncmp(arg, keys[i].key, len) != 0)
			continue;
		value = strtol(arg + len, &end, 10);
		if (end == arg + len || (*end != '\0' && *end != '&') || value < 0 ||
		    value > INT32_MAX)
			return EINVAL;
		*(int *)((char *)target + keys[i].offset) = (int)value;
		return 0;
	}
	return EINVAL;
}

int nfsraw_parse_url(const char *url, struct nfsraw_target *target)
{
	const char *host, *path, *args;

	*target = (struct nfsraw_target){
		.port = 2049, .mount_port = 20048, .version = 3, .uid = -1, .gid = -1};
	if (strncmp(url, "nfs://", 6) != 0)
		return EINVAL;
	host = url + 6;
	path = strchr(host, '/');
	if (!path)
		return EINVAL;
	args = strchrnul(path, '?');
	if (!copy_part(target->host, sizeof(target->host), host, path) ||
	    !copy_part(target->path, sizeof(target->path), path, args))
		return EINVAL;
	while (*args) {
		int error = parse_option(target, args + 1);

		if (error)
			return error;
		args = strchrnul(args + 1, '&');
	}
	return target->version == 3 || target->version == 4 ? 0 : EINVAL;
}

int nfsraw_spin(struct nfsraw *nr, struct rpc_context *rpc, const bool *is_done)
{
	uint64_t end_ns = now_ns() + SILENCE_MS * 1000000ULL;

	while (!*is_done) {
		struct pollfd pfd = {.fd = rpc_get_fd(rpc), .events = (short)rpc_which_events(rpc)};

		if (now_ns() > end_ns)
			return ETIMEDOUT;
		if (poll(&pfd, 1, 1000) < 0 && errno != EINTR)
			return errno;
		if (pfd.revents && rpc_service(rpc, pfd.revents) < 0) {
			snprintf(nr->error, sizeof(nr->error), "%s", rpc_get_error(rpc));
			return EIO;
		}
	}
	return 0;
}

struct dial {
	bool is_done;
	int status;
};

static void dial_cb(struct rpc_context *rpc, int status, void *data, void *priv)
{
	struct dial *dial = priv;

	(void)rpc;
	(void)data;
	dial->status = status;
	dial->is_done = true;
}

struct rpc_context *nfsraw_dial(struct nfsraw *nr, const struct nfsraw_target *target, int port,
				int program, int version)
{
	struct rpc_context *rpc = rpc_init_context();
	struct dial dial = {false, RPC_STATUS_ERROR};
	int one = 1;

	if (!rpc) {
		snprintf(nr->error, sizeof(nr->error), "no memory for a context");
		return NULL;
	}
	if (target->uid >= 0)
		rpc_set_uid(rpc, target->uid);
	if (target->gid >= 0)
		rpc_set_gid(rpc, target->gid);
	if (rpc_connect_port_async(rpc, target->host, port, program, version, dial_cb, &dial) < 0)
		goto err_context;
	if (nfsraw_spin(nr, rpc, &dial.is_done) != 0 || dial.status != RPC_STATUS_SUCCESS)
		goto err_context;
	if (setsockopt(rpc_get_fd(rpc), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
		goto err_context;
	return rpc;

err_context:
	snprintf(nr->error, sizeof(nr->error), "%s:%d: no connection: %s", target->host, port,
		 rpc_get_error(rpc) ? rpc_get_error(rpc) : "unknown");
	/* Its callback may still be pending and points to this frame: run it now, not later. */
	rpc_destroy_context(rpc);
	return NULL;
}

int nfsraw_open(const struct nfsraw_target *target, struct nfsraw **out)
{
	struct nfsraw *nr = calloc(1, sizeof(*nr));
	int error;

	*out = nr;
	if (!nr)
		return ENOMEM;
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 16 << 20);
	nr->version = target->version;
	nr->rpc = nfsraw_dial(nr, target, target->port, NFS_PROGRAM, target->version);
	if (!nr->rpc) {
		nr->dead = ECONNREFUSED;
		return nr->dead;
	}
	nr->last_progress_ns = now_ns();
	error = nr->version == 3 ? nfsraw3_mount(nr, target) : nfsraw4_mount(nr, target);
	if (error)
		nr->dead = error;
	return error;
}

static void lose(struct nfsraw *nr, int error)
{
	struct rpc_context *rpc = nr->rpc;
	struct nfsraw_op *op;

	if (!nr->dead) {
		nr->dead = error;
		if (rpc)
			snprintf(nr->error, sizeof(nr->error), "connection lost: %s",
				 rpc_get_error(rpc) ? rpc_get_error(rpc) : "no answer");
	}
	/* Destroying the context runs the callback of every call that is out. */
	nr->rpc = NULL;
	if (rpc)
		rpc_destroy_context(rpc);
	while ((op = nr->retry)) {
		nr->retry = op->next;
		op->error = nr->dead;
		op->done(op);
	}
}

void nfsraw_close(struct nfsraw *nr)
{
	if (!nr)
		return;
	lose(nr, ECONNABORTED);
	free(nr);
}

const struct nfsraw_fh *nfsraw_root(const struct nfsraw *nr)
{
	return &nr->root;
}

int nfsraw_version(const struct nfsraw *nr)
{
	return nr->version;
}

const char *nfsraw_error(const struct nfsraw *nr)
{
	return nr && nr->error[0] ? nr->error : "no detail";
}

void nfsraw_state_init(struct nfsraw *nr, struct nfsraw_state *state)
{
	*state = (struct nfsraw_state){.owner = ++nr->next_owner};
}

void nfsraw_answer(struct nfsraw_op *op, int error)
{
	struct nfsraw *nr = op->nr;
	uint64_t now = now_ns();

	nr->n_inflight--;
	nr->last_progress_ns = now;
	if (error == EAGAIN && !nr->dead && now - op->start_ns < RETRY_MAX_NS) {
		op->backoff_ns = op->backoff_ns ? op->backoff_ns * 2 : BACKOFF_FIRST_NS;
		if (op->backoff_ns > BACKOFF_MAX_NS)
			op->backoff_ns = BACKOFF_MAX_NS;
		op->due_ns = now + op->backoff_ns;
		op->next = nr->retry;
		nr->retry = op;
		return;
	}
	op->error = error == EAGAIN ? ETIMEDOUT : error;
	op->done(op);
}

static void send_op(struct nfsraw *nr, struct nfsraw_op *op)
{
	int error = nr->dead;

	nr->n_inflight++;
	if (!error)
		error = nr->version == 3 ? nfsraw3_send(nr, op) : nfsraw4_send(nr, op);
	if (error) {
		nfsraw_answer(op, error);
		return;
	}
	if (nr->is_in_service)
		return;
	nr->is_in_service = true;
	error = rpc_service(nr->rpc, POLLOUT);
	nr->is_in_service = false;
	if (error < 0)
		lose(nr, EIO);
}

void nfsraw_submit(struct nfsraw *nr, struct nfsraw_op *op)
{
	op->nr = nr;
	op->next = NULL;
	op->backoff_ns = 0;
	op->start_ns = now_ns();
	/* The silence is measured from the first call of a busy period. */
	if (nr->n_inflight == 0)
		nr->last_progress_ns = op->start_ns;
	send_op(nr, op);
}

/* Re-send what is due. Returns the milliseconds until the next one, or at most max_ms. */
static int run_retries(struct nfsraw *nr, int max_ms)
{
	struct nfsraw_op *list = nr->retry;
	uint64_t now;

	if (!list)
		return max_ms;
	now = now_ns();
	nr->retry = NULL;
	while (list) {
		struct nfsraw_op *op = list;

		list = op->next;
		if (op->due_ns <= now || nr->dead) {
			op->next = NULL;
			send_op(nr, op);
			continue;
		}
		if ((uint64_t)max_ms > (op->due_ns - now) / 1000000 + 1)
			max_ms = (int)((op->due_ns - now) / 1000000 + 1);
		op->next = nr->retry;
		nr->retry = op;
	}
	return max_ms;
}

int nfsraw_poll(struct nfsraw *nr, int timeout_ms)
{
	struct pollfd pfd;
	int rc;

	timeout_ms = run_retries(nr, timeout_ms);
	if (nr->dead)
		return nr->dead;
	pfd.fd = rpc_get_fd(nr->rpc);
	pfd.events = (short)rpc_which_events(nr->rpc);
	pfd.revents = 0;
	rc = poll(&pfd, 1, timeout_ms);
	if (rc < 0 && errno != EINTR) {
		lose(nr, errno);
		return nr->dead;
	}
	if (rc > 0) {
		nr->is_in_service = true;
		rc = rpc_service(nr->rpc, pfd.revents);
		/* What the callbacks queued leaves now, not after the next poll. */
		if (rc >= 0 && rpc_which_events(nr->rpc) & POLLOUT)
			rc = rpc_service(nr->rpc, POLLOUT);
		nr->is_in_service = false;
		if (rc < 0)
			lose(nr, EIO);
	} else if (nr->n_inflight > 0 &&
		   now_ns() - nr->last_progress_ns > SILENCE_MS * 1000000ULL) {
		lose(nr, ETIMEDOUT);
	}
	return nr->dead;
}

static void call_done(struct nfsraw_op *op)
{
	*(bool *)op->priv = true;
}

int nfsraw_call(struct nfsraw *nr, struct nfsraw_op *op)
{
	bool is_done = false;

	op->done = call_done;
	op->priv = &is_done;
	nfsraw_submit(nr, op);
	while (!is_done)
		nfsraw_poll(nr, 1000);
	return op->error;
}

int nfsraw_walk(struct nfsraw *nr, const char *path, struct nfsraw_fh *dir, const char **leaf)
{
	*dir = nr->root;
	for (;;) {
		char name[256];
		const char *slash;
		struct nfsraw_op op = {.kind = NFSRAW_LOOKUP, .fh = dir, .name = name};
		int error;

		while (*path == '/')
			path++;
		slash = strchr(path, '/');
		if (!slash)
			break;
		if (!copy_part(name, sizeof(name), path, slash))
			return ENAMETOOLONG;
		error = nfsraw_call(nr, &op);
		if (error)
			return error;
		*dir = op.out_fh;
		path = slash;
	}
	*leaf = path;
	return 0;
}
