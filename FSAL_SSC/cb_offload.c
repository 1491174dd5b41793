/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * cb_offload.c - see cb_offload.h.
 *
 * A call goes out by the client handle's own `call`, not by CLNT_CALL_BACK: the latter makes libntirpc
 * 4.3 watch a deadline, for which it follows a pointer that a closed connection has cleared. The
 * deadline is ours: a timer ticks while calls are in flight, and also sees dead connections.
 *
 * Life of a call
 *     in flight   in `calls`; the reply or the tick, whichever comes first, takes it out
 *     replied     judged, told, released by libntirpc
 *     given up    told; taken out of libntirpc's table of xids, so that no later reply finds it. One
 *                 that has found it just before may still be at it, so it lingers for a while.
 * `is_over`, under the lock, decides who of the two tells.
 *
 * A reply is untrusted: it has fixed bounds, and whatever is wrong with it costs one attempt.
 */
#include "config.h"

#include <sys/queue.h>

#include "fsal.h"
#include "nfs_core.h"
#include "nfs_proto_functions.h"

#include "ssc/clock.h"

#include "cb_channel.h"
#include "cb_offload.h"

/* A client that has not answered by then has lost it or will not: as long as the server waits. */
#define ANSWER_NS (15 * SSC_NS_PER_S)

/* How often calls in flight and clients are looked at. */
#define TICK_NS SSC_NS_PER_S

/* A thread that has looked a call up needs microseconds for it. */
#define LINGER_NS (30 * SSC_NS_PER_S)

/* Arguments: 20 words and 16 bytes twice for CB_SEQUENCE, a handle of 128, 14 words; all in all 332. */
#define ARGS_MAX 512

struct ssc_cb_target {
	uint64_t client;
	char session_id[NFS4_SESSIONID_SIZE];
	uint32_t slot, sequence; /* of the COPY */
	uint32_t minorversion;
};

/* What came back; zeros where the reply did not go so far. */
struct reply {
	uint32_t status; /* of the compound */
	uint32_t n_results;
	uint32_t sequence_status;
	bool is_other_sequence; /* not that of the request */
	uint32_t offload_op, offload_status;
};

struct call {
	struct clnt_req req;
	LIST_ENTRY(call) link; /* in calls or lingering; guarded by the lock */
	bool is_over;          /* guarded by the lock */
	uint64_t until_ns;     /* of the answer; then of lingering */
	/* constant once sent */
	nfs41_session_t *session; /* a reference */
	CLIENT *clnt;             /* kept by req */
	AUTH *auth;               /* a reference */
	struct ssc_channel_slot slot;
	bool is_busy; /* a session had no slot, or another call is being sent; before it is sent */
	void (*done)(void *ctx, enum ssc_copy_told told);
	void *ctx;
	uint32_t args_len;
	uint8_t args[ARGS_MAX];
	/* the receiving thread's */
	struct reply reply;
};

LIST_HEAD(call_list, call);

static struct {
	pthread_mutex_t lock;
	struct ssc_timer timer;
	/* guarded by lock */
	struct ssc_timers *timers;    /* NULL: not started, or stopped */
	struct ssc_copy_table *table; /* likewise */
	struct call_list calls, lingering;
} cb = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- on the wire ---- */

static bool put(struct ssc_xio *io, uint32_t word)
{
	return ssc_xio_u32(io, &word);
}

static bool put_bytes(struct ssc_xio *io, const void *bytes, uint32_t len)
{
	return io->bytes(io, (void *)bytes, len);
}

static bool put_sequence(struct ssc_xio *io, const struct ssc_cb_target *target,
			 const struct call *call)
{
	return put(io, NFS4_OP_CB_SEQUENCE) &&
	       put_bytes(io, call->session->session_id, NFS4_SESSIONID_SIZE) &&
	       put(io, call->slot.sequence) && put(io, call->slot.slot) &&
	       put(io, call->slot.highest) && put(io, false) && /* not to be cached */
	       /* RFC 8881 2.10.6.3: one list with one call, the COPY. */
	       put(io, 1) && put_bytes(io, target->session_id, NFS4_SESSIONID_SIZE) && put(io, 1) &&
	       put(io, target->sequence) && put(io, target->slot);
}

static bool make_args(struct call *call, const struct ssc_cb_target *target,
		      const struct ssc_cb_offload_args *offload)
{
	struct ssc_cb_offload_args copy = *offload;
	struct ssc_xio_mem mem;
	bool fits;

	ssc_xio_encode(&mem, call->args, sizeof(call->args));
	fits = put(&mem.io, 0) &&                                       /* no tag */
	       put(&mem.io, target->minorversion) && put(&mem.io, 0) && /* callback_ident */
	       put(&mem.io, 2) && put_sequence(&mem.io, target, call) &&
	       put(&mem.io, SSC_OP42_CB_OFFLOAD) && ssc_xio_cb_offload_args(&mem.io, &copy);
	call->args_len = mem.at - call->args;
	return fits;
}

static bool xdr_args(XDR *xdrs, void *arg)
{
	struct call *call = arg;

	return xdr_opaque_encode(xdrs, (char *)call->args, call->args_len);
}

static bool skip_opaque(XDR *xdrs, uint32_t max)
{
	uint32_t len, word;

	if (!XDR_GETUINT32(xdrs, &len) || len > max)
		return false;
	for (uint32_t i = 0; i < len; i += sizeof(word))
		if (!XDR_GETUINT32(xdrs, &word))
			return false;
	return true;
}

static bool get_sequence(XDR *xdrs, struct call *call)
{
	struct reply *reply = &call->reply;
	char session_id[NFS4_SESSIONID_SIZE];
	uint32_t sequence, slot, highest, target_highest;

	if (reply->sequence_status != NFS4_OK)
		return true;
	if (!xdr_opaque_decode(xdrs, session_id, NFS4_SESSIONID_SIZE) ||
	    !XDR_GETUINT32(xdrs, &sequence) || !XDR_GETUINT32(xdrs, &slot) ||
	    !XDR_GETUINT32(xdrs, &highest) || !XDR_GETUINT32(xdrs, &target_highest))
		return false;
	reply->is_other_sequence =
		memcmp(session_id, call->session->session_id, NFS4_SESSIONID_SIZE) != 0 ||
		sequence != call->slot.sequence || slot != call->slot.slot;
	return true;
}

static bool xdr_reply(XDR *xdrs, void *arg)
{
	struct call *call = arg;
	struct reply *reply = &call->reply;
	uint32_t op;

	if (xdrs->x_op != XDR_DECODE)
		return true;
	if (!XDR_GETUINT32(xdrs, &reply->status) || !skip_opaque(xdrs, NFS4_OPAQUE_LIMIT) ||
	    !XDR_GETUINT32(xdrs, &reply->n_results))
		return false;
	if (reply->n_results == 0)
		return true;
	if (!XDR_GETUINT32(xdrs, &op) || op != NFS4_OP_CB_SEQUENCE ||
	    !XDR_GETUINT32(xdrs, &reply->sequence_status) || !get_sequence(xdrs, call))
		return false;
	if (reply->n_results == 1 || reply->sequence_status != NFS4_OK)
		return true;
	return XDR_GETUINT32(xdrs, &reply->offload_op) &&
	       XDR_GETUINT32(xdrs, &reply->offload_status);
}

/* ---- the end of a call ---- */

/*
 * What CB_SEQUENCE's status says of the slot (RFC 8881 20.9.3): a request that was refused there has
 * not used its number. After SEQ_MISORDERED the client waits for the one before, if a request was lost;
 * each attempt steps back once more, and one that has no number left gives the channel up.
 */
static uint32_t judge_sequence(struct call *call)
{
	switch (call->reply.sequence_status) {
	case NFS4_OK:
	case NFS4ERR_RETRY_UNCACHED_REP:
	case NFS4ERR_SEQ_FALSE_RETRY:
		return 0;
	case NFS4ERR_SEQ_MISORDERED:
		if (call->slot.sequence >= 2)
			return 2;
		ssc_channel_take_down(call->session, call->clnt);
		return 1;
	case NFS4ERR_BADSESSION:
	case NFS4ERR_BADSLOT:
	case NFS4ERR_BAD_HIGH_SLOT:
	case NFS4ERR_DEADSESSION:
	case NFS4ERR_CONN_NOT_BOUND_TO_SESSION:
		ssc_channel_take_down(call->session, call->clnt);
		return 1;
	default:
		return 1;
	}
}

static enum ssc_copy_told judge(struct call *call, uint32_t *back)
{
	const struct reply *reply = &call->reply;

	*back = 0;
	if (call->req.cc_error.re_status == RPC_CANTDECODERES || reply->is_other_sequence) {
		LogWarn(COMPONENT_NFS_CB, "a client's answer to CB_OFFLOAD makes no sense");
		return SSC_TOLD_AGAIN;
	}
	if (call->req.cc_error.re_status != RPC_SUCCESS) {
		/* Refused by its RPC layer: credentials, program, version. */
		ssc_channel_take_down(call->session, call->clnt);
		*back = 1;
		return SSC_TOLD_AGAIN;
	}
	if (reply->n_results == 0) {
		*back = 1;
		return SSC_TOLD_AGAIN;
	}
	if (reply->sequence_status != NFS4_OK) {
		*back = judge_sequence(call);
		return SSC_TOLD_AGAIN;
	}
	if (reply->n_results == 1)
		return reply->status == NFS4ERR_DELAY ? SSC_TOLD_AGAIN : SSC_TOLD_OK;
	return reply->offload_op == SSC_OP42_CB_OFFLOAD && reply->offload_status == NFS4ERR_DELAY
		       ? SSC_TOLD_AGAIN
		       : SSC_TOLD_OK;
}

static void tell(struct call *call, enum ssc_copy_told told, uint32_t back)
{
	ssc_channel_slot_give(call->session, &call->slot, back);
	ssc_channel_put(call->session);
	call->session = NULL;
	call->done(call->ctx, told);
}

static void call_free(struct clnt_req *req, size_t size)
{
	struct call *call = container_of(req, struct call, req);

	(void)size;
	AUTH_DESTROY(call->auth);
	gsh_free(call);
}

/* Whoever is first. */
static bool take_over(struct call *call)
{
	bool is_first;

	pthread_mutex_lock(&cb.lock);
	is_first = !call->is_over;
	call->is_over = true;
	if (is_first)
		LIST_REMOVE(call, link);
	pthread_mutex_unlock(&cb.lock);
	return is_first;
}

/* A reply has come; on one of the server's threads. */
static void replied(struct clnt_req *req)
{
	struct call *call = container_of(req, struct call, req);
	enum ssc_copy_told told;
	uint32_t back;

	if (!take_over(call))
		return; /* given up: the tick frees it */
	told = judge(call, &back);
	LogDebug(COMPONENT_NFS_CB, "CB_OFFLOAD answered: rpc %d, CB_SEQUENCE %u, CB_OFFLOAD %u",
		 req->cc_error.re_status, call->reply.sequence_status, call->reply.offload_status);
	tell(call, told, back);
	clnt_req_release(req);
}

/* ---- the tick ---- */

/* Nobody finds it by its xid any more, and it is in no list: as clnt_req_release does it. */
static void bury(struct call *call)
{
	CLIENT *clnt = call->clnt;

	clnt_req_fini(&call->req);
	call_free(&call->req, 0);
	CLNT_RELEASE(clnt, CLNT_RELEASE_FLAG_NONE);
}

static void give_up(struct call *call)
{
	LogEvent(COMPONENT_NFS_CB,
		 "no answer to CB_OFFLOAD from client %" PRIx64 "; trying again later",
		 call->session->clientid);
	clnt_req_reset(&call->req);
	ssc_channel_take_down(call->session, call->clnt);
	/* It may have seen it and may not: the number counts as used, as in the server's own calls. */
	tell(call, SSC_TOLD_AGAIN, 0);
}

/* Take those from @from that are over at @now_ns, or have a dead connection. */
static void sort_out(struct call_list *from, struct call_list *to, uint64_t now_ns, bool all)
{
	struct call *call, *next;

	for (call = LIST_FIRST(from); call != NULL; call = next) {
		next = LIST_NEXT(call, link);
		if (!all && call->until_ns > now_ns &&
		    (call->is_over || !ssc_channel_is_dead(call->clnt)))
			continue;
		LIST_REMOVE(call, link);
		LIST_INSERT_HEAD(to, call, link);
	}
}

/* @all: not only those whose time has come. */
static void sweep(bool all)
{
	struct call_list given_up = LIST_HEAD_INITIALIZER(given_up);
	struct call_list old = LIST_HEAD_INITIALIZER(old);
	uint64_t now_ns = ssc_clock_now_ns();
	struct call *call;

	pthread_mutex_lock(&cb.lock);
	sort_out(&cb.lingering, &old, now_ns, all);
	sort_out(&cb.calls, &given_up, now_ns, all);
	LIST_FOREACH(call, &given_up, link)
	{
		call->is_over = true;
	}
	pthread_mutex_unlock(&cb.lock);

	while ((call = LIST_FIRST(&old)) != NULL) {
		LIST_REMOVE(call, link);
		bury(call);
	}
	while ((call = LIST_FIRST(&given_up)) != NULL) {
		LIST_REMOVE(call, link);
		give_up(call);
		pthread_mutex_lock(&cb.lock);
		call->until_ns = now_ns + LINGER_NS;
		LIST_INSERT_HEAD(&cb.lingering, call, link);
		pthread_mutex_unlock(&cb.lock);
	}
}

static void arm_locked(void)
{
	if (cb.timers != NULL)
		ssc_timer_arm_earlier(&cb.timer, ssc_clock_now_ns() + TICK_NS);
}

static void tick(struct ssc_timer *timer)
{
	struct ssc_copy_table *table;
	bool is_busy = false;
	uint64_t client = 0;

	(void)timer;
	sweep(false);
	pthread_mutex_lock(&cb.lock);
	table = cb.table; /* stays until this has returned: stop disarms first */
	pthread_mutex_unlock(&cb.lock);
	while (table != NULL && ssc_copy_table_next_client(table, &client)) {
		is_busy = true;
		if (ssc_channel_is_client_gone(client)) {
			LogInfo(COMPONENT_NFS_CB,
				"client %" PRIx64 " is gone, and its copies with it", client);
			ssc_copy_table_client_gone(table, client);
		}
	}
	pthread_mutex_lock(&cb.lock);
	if (is_busy || !LIST_EMPTY(&cb.calls) || !LIST_EMPTY(&cb.lingering))
		arm_locked();
	pthread_mutex_unlock(&cb.lock);
}

void ssc_cb_start(struct ssc_timers *timers, struct ssc_copy_table *table)
{
	pthread_mutex_lock(&cb.lock);
	ssc_timer_init(&cb.timer, timers, tick);
	cb.timers = timers;
	cb.table = table;
	pthread_mutex_unlock(&cb.lock);
}

void ssc_cb_stop(void)
{
	bool was_started;

	pthread_mutex_lock(&cb.lock);
	was_started = cb.timers != NULL;
	cb.timers = NULL;
	pthread_mutex_unlock(&cb.lock);
	if (!was_started)
		return;
	ssc_timer_disarm(&cb.timer);
	pthread_mutex_lock(&cb.lock);
	cb.table = NULL;
	pthread_mutex_unlock(&cb.lock);
	sweep(true); /* gives up what is in flight */
	sweep(true); /* frees it */
}

void ssc_cb_client_is_back(uint64_t client)
{
	pthread_mutex_lock(&cb.lock);
	if (cb.timers != NULL)
		ssc_copy_table_poke(cb.table, client);
	pthread_mutex_unlock(&cb.lock);
}

/* ---- sending ---- */

struct ssc_cb_target *ssc_cb_target_new(const compound_data_t *data)
{
	struct ssc_cb_target *target = gsh_calloc(1, sizeof(*target));

	target->client = data->session->clientid;
	memcpy(target->session_id, data->session->session_id, NFS4_SESSIONID_SIZE);
	target->slot = data->slotid;
	target->sequence = data->sequence;
	target->minorversion = data->minorversion;
	pthread_mutex_lock(&cb.lock);
	arm_locked(); /* there will be a state to look after */
	pthread_mutex_unlock(&cb.lock);
	return target;
}

void ssc_cb_target_free(struct ssc_cb_target *target)
{
	gsh_free(target);
}

static bool is_started(void)
{
	bool is;

	pthread_mutex_lock(&cb.lock);
	is = cb.timers != NULL;
	pthread_mutex_unlock(&cb.lock);
	return is;
}

/* False: stopped. */
static bool enlist(struct call *call)
{
	bool is_enlisted;

	pthread_mutex_lock(&cb.lock);
	is_enlisted = cb.timers != NULL;
	if (is_enlisted) {
		call->until_ns = ssc_clock_now_ns() + ANSWER_NS;
		LIST_INSERT_HEAD(&cb.calls, call, link);
		arm_locked();
	}
	pthread_mutex_unlock(&cb.lock);
	return is_enlisted;
}

/* chan->mtx is held. False: this session is of no use, and the call as it was. */
static bool prepare_locked(struct call *call, rpc_call_channel_t *chan)
{
	static const struct timespec none = {0}; /* the deadline is ours */

	if (chan->clnt == NULL || chan->auth == NULL || ssc_channel_is_dead(chan->clnt))
		return false;
	clnt_req_fill(&call->req, chan->clnt, chan->auth, CB_COMPOUND, (xdrproc_t)xdr_args, call,
		      (xdrproc_t)xdr_reply, call);
	call->req.cc_free_cb = call_free;
	if (clnt_req_setup(&call->req, none) != RPC_SUCCESS) {
		clnt_req_fini(&call->req);
		return false;
	}
	call->req.cc_process_cb = replied;
	call->clnt = chan->clnt;
	call->auth = chan->auth;
	auth_get(call->auth);
	return true;
}

/* Over the session of @call, whose slot is taken. False: not possible, the call is as it was. */
static bool send_over(struct call *call)
{
	rpc_call_channel_t *chan = &call->session->cb_chan;
	bool is_mine;

	if (pthread_mutex_trylock(&chan->mtx) != 0) {
		call->is_busy = true;
		return false;
	}
	if (!prepare_locked(call, chan)) {
		CLIENT *clnt = chan->clnt;

		pthread_mutex_unlock(&chan->mtx);
		ssc_channel_take_down(call->session, clnt);
		return false;
	}
	is_mine = !enlist(call);
	/* The reply may come, and the call be gone, before this has returned. */
	if (!is_mine && CLNT_CALL_ONCE(&call->req) != RPC_SUCCESS)
		is_mine = take_over(call);
	pthread_mutex_unlock(&chan->mtx);
	if (is_mine) {
		clnt_req_reset(&call->req);
		tell(call, SSC_TOLD_AGAIN, 1);
		bury(call);
	}
	return true;
}

/* Takes over the reference on @session. False: not possible. */
static bool try_session(struct call *call, const struct ssc_cb_target *target,
			const struct ssc_cb_offload_args *offload, nfs41_session_t *session)
{
	call->session = session;
	if (!ssc_channel_slot_take(session, &call->slot)) {
		call->is_busy = true;
	} else {
		if (make_args(call, target, offload) && send_over(call))
			return true;
		ssc_channel_slot_give(session, &call->slot, 1);
	}
	ssc_channel_put(session);
	return false;
}

void ssc_cb_offload_send(struct ssc_cb_target *target, const struct ssc_fh *fh,
			 const struct ssc_stateid *stateid, const struct ssc_copy_outcome *outcome,
			 void (*done)(void *ctx, enum ssc_copy_told told), void *ctx)
{
	struct ssc_cb_offload_args offload = {
		.fh = *fh,
		.stateid = *stateid,
		.status = outcome->status,
		.response = {.count = outcome->count, .committed = outcome->committed},
		.count = outcome->count,
	};
	nfs41_session_t *sessions[SSC_CHANNEL_SESSIONS];
	struct call *call = gsh_calloc(1, sizeof(*call));
	unsigned int n, i;
	bool is_sent = false, is_busy;

	memcpy(offload.response.verf, outcome->verf, SSC_VERIFIER_BYTES);
	call->done = done;
	call->ctx = ctx;
	/* Once stopped, the server's tables may be gone as well. */
	n = is_started() ? ssc_channel_sessions(target->client, target->session_id, sessions) : 0;
	for (i = 0; i < n && !is_sent; i++)
		is_sent = try_session(call, target, &offload, sessions[i]);
	for (; i < n; i++)
		ssc_channel_put(sessions[i]);
	if (is_sent)
		return;
	is_busy = call->is_busy;
	gsh_free(call);
	done(ctx, is_busy ? SSC_TOLD_NO_ROOM : SSC_TOLD_AGAIN);
}
