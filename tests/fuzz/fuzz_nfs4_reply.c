/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fuzz_nfs4_reply.c - what a server may send to the NFSv4.2 client: replies, results, callbacks.
 *
 * Input: one byte of kind, then
 *     even  results of a compound, taken as the operations that the bytes themselves name
 *     odd   bytes of the connection: records of replies and calls, with two READs (slots 0 and 1, one of
 *           them to be received in place) and a call without SEQUENCE in flight
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../FSAL_SSC/upstream/nfs4_internal.h"
#include "ssc/log.h"

#define LONG_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ssc_cred nobody;
static const struct ssc_stateid any;

/* ---- results ---- */

static uint32_t take_one(struct ssc_nfs4_call *call, uint32_t op)
{
	union {
		struct ssc_fh fh;
		struct ssc_nfs4_attrs attrs;
		struct ssc_nfs4_open_res open;
		struct ssc_nfs4_read_res read;
		struct ssc_nfs4_read_plus_res plus;
		struct ssc_nfs4_seek_res seek;
		struct ssc_write_response write;
		uint8_t verf[8];
		uint32_t hints;
		struct ssc_copy_res copy;
		struct ssc_copy_notify_res notify;
		struct ssc_offload_status_res status;
	} u;
	uint32_t outcome;

	switch (op) {
	case SSC_OP4_GETFH:
		return ssc_nfs4_res_getfh(call, &u.fh);
	case SSC_OP4_GETATTR:
		outcome = ssc_nfs4_res_getattr(call, &u.attrs);
		assert(outcome || (strlen(u.attrs.owner) <= SSC_OWNER_MAX &&
				   strlen(u.attrs.group) <= SSC_OWNER_MAX));
		return outcome;
	case SSC_OP4_SETATTR:
		return ssc_nfs4_res_setattr(call);
	case SSC_OP4_OPEN:
		return ssc_nfs4_res_open(call, &u.open);
	case SSC_OP4_CLOSE:
		return ssc_nfs4_res_close(call);
	case SSC_OP4_REMOVE:
		return ssc_nfs4_res_remove(call);
	case SSC_OP4_READ:
		outcome = ssc_nfs4_res_read(call, &u.read);
		assert(outcome || u.read.count <= call->read_max);
		return outcome;
	case SSC_OP4_READ_PLUS:
		outcome = ssc_nfs4_res_read_plus(call, &u.plus);
		assert(outcome || u.plus.n <= SSC_SEGMENTS_MAX);
		return outcome;
	case SSC_OP4_SEEK:
		return ssc_nfs4_res_seek(call, &u.seek);
	case SSC_OP4_WRITE:
		return ssc_nfs4_res_write(call, &u.write);
	case SSC_OP4_COMMIT:
		return ssc_nfs4_res_commit(call, u.verf);
	case SSC_OP4_IO_ADVISE:
		return ssc_nfs4_res_io_advise(call, &u.hints);
	case SSC_OP4_COPY:
		return ssc_nfs4_res_copy(call, &u.copy);
	case SSC_OP4_COPY_NOTIFY:
		return ssc_nfs4_res_copy_notify(call, &u.notify);
	case SSC_OP4_OFFLOAD_STATUS:
		return ssc_nfs4_res_offload_status(call, &u.status);
	default:
		return ssc_nfs4_res(call, op);
	}
}

static void fuzz_results(const uint8_t *data, size_t size)
{
	/* In memory of its own size, so that a byte too far is seen. */
	uint8_t *copy = malloc(size + 1), *buf = malloc(300);
	const struct iovec iov = {buf, 300};
	struct ssc_nfs4_call call;

	memcpy(copy, data, size);
	ssc_nfs4_call_init(&call, &nobody);
	ssc_nfs4_arg_read(&call, &any, 0, 300, &iov, 1);
	call.write_bytes = 100;
	call.n_results = 20;
	ssc_xdr_init(&call.in, copy, size);
	while (call.n_results > 0) {
		struct ssc_xdr peek = call.in;

		if (ssc_nfs4_local_err(take_one(&call, ssc_xdr_u32(&peek))))
			break;
	}
	ssc_nfs4_call_fini(&call);
	free(copy);
	free(buf);
}

/* ---- the connection ---- */

static void done(struct ssc_nfs4_call *call)
{
	ssc_nfs4_call_fini(call);
}

static void in_flight(struct ssc_nfs4_client *c, struct ssc_nfs4_call *call, uint32_t at,
		      const struct iovec *iov)
{
	struct ssc_nfs4_place *p = &c->place[at];

	ssc_nfs4_call_init(call, &nobody);
	if (iov)
		ssc_nfs4_arg_read(call, &any, 0, (uint32_t)iov->iov_len, iov, 1);
	else
		call->is_bare = true;
	call->done = done;
	call->deadline_ns = UINT64_MAX;
	call->n_sent = 1;
	*p = (struct ssc_nfs4_place){
		.is_busy = true,
		.is_sent = true,
		.call = call,
		.seqid = 1,
		.xid = 1u << SSC_NFS4_XID_BITS | at,
	};
	c->n_busy += at < SSC_NFS4_SLOTS_MAX;
	c->n_long_reads += iov && iov->iov_len >= 32768;
}

static struct ssc_nfs4_client *a_client(int fd)
{
	struct ssc_nfs4_client *c = calloc(1, sizeof(*c));

	assert(c);
	ssc_nfs4_config_init(&c->cfg);
	pthread_mutex_init(&c->lock, NULL);
	ssc_clock_cond_init(&c->changed);
	CDS_INIT_LIST_HEAD(&c->queue);
	CDS_INIT_LIST_HEAD(&c->ready);
	CDS_INIT_LIST_HEAD(&c->done);
	c->fd = fd;
	c->wire = ssc_wire_new(fd, &ssc_nfs4_wire_ops, c);
	c->state = SSC_NFS4_UP;
	c->has_client = c->has_session = c->is_bound = c->is_complete = true;
	c->n_slots = 4;
	c->slot_limit = UINT32_MAX;
	c->cb_slots = 2;
	c->xid = 1;
	memset(c->session, 'S', sizeof(c->session));
	for (uint32_t at = 0; at < SSC_NFS4_SLOTS_MAX; at++)
		c->place[at].seqid = 1;
	return c;
}

static void run_done(struct ssc_nfs4_client *c)
{
	struct ssc_nfs4_call *call, *next;

	cds_list_for_each_entry_safe(call, next, &c->done, link)
	{
		cds_list_del(&call->link);
		call->done(call);
	}
}

static void fuzz_connection(const uint8_t *data, size_t size)
{
	static struct ssc_nfs4_call calls[3];
	uint8_t *small = malloc(100), *large = malloc(LONG_BYTES);
	const struct iovec iov[2] = {{small, 100}, {large, LONG_BYTES}};
	struct ssc_nfs4_client *c;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
		abort();
	c = a_client(fds[0]);
	in_flight(c, &calls[0], 0, &iov[0]);
	in_flight(c, &calls[1], 1, &iov[1]);
	in_flight(c, &calls[2], SSC_NFS4_SLOTS_MAX, NULL);
	for (size_t at = 0; at < size && !c->why; at += 1000) {
		size_t n = size - at < 1000 ? size - at : 1000;

		if (write(fds[1], data + at, n) != (ssize_t)n ||
		    ssc_wire_receive(c->wire, c->n_long_reads > 0) != SSC_OK)
			break;
		run_done(c);
		if (c->state == SSC_NFS4_UP)
			ssc_nfs4_pump(c, ssc_clock_now_ns());
	}
	assert(c->n_busy <= 4 && c->n_long_reads <= 2);
	ssc_nfs4_broken(c, "over");
	ssc_nfs4_unsend(c);
	ssc_nfs4_end_all(c, SSC_E_SHUTDOWN, SSC_E_SHUTDOWN);
	run_done(c);
	ssc_wire_free(c->wire);
	close(fds[1]);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
	free(small);
	free(large);
}

static void no_log(enum ssc_log_level level, const char *fmt, va_list args)
{
	(void)level, (void)fmt, (void)args;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ssc_log_set(no_log, SSC_LOG_CRIT);
	if (size < 1)
		return 0;
	if (data[0] % 2)
		fuzz_connection(data + 1, size - 1);
	else
		fuzz_results(data + 1, size - 1);
	return 0;
}
