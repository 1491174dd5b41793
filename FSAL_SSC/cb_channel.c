/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * cb_channel.c - see cb_channel.h.
 *
 * Finding a session. The server's table of sessions is not exported, that of confirmed clients is. Under
 * its latch the client's record cannot go, under the record's cid_mutex no session in its list can be
 * freed; a session that is being freed has no references left and waits for that mutex to leave the
 * list, so a reference is taken only where there is one. The server takes the latch with cid_mutex
 * held nowhere that we know of; to be sure, cid_mutex is only tried under the latch.
 *
 * Dropping a session. dec_session_ref is not exported, but compound_data_Free drops the one of a
 * compound: an empty compound is made for that.
 *
 * Whether a connection is dead is written in the transport behind the client handle, which lies behind
 * the public part of the handle. What is found there is believed only if it has the file descriptor
 * that the handle itself gives; otherwise the connection counts as alive, and a deadline finds out.
 */
#include "config.h"

#include "fsal.h"
#include "hashtable.h"
#include "nfs_core.h"
#include "nfs_proto_functions.h"
#include "nfs_rpc_callback.h"

#include "cb_channel.h"
#include "cb_offload.h"

#define TRIES 1000 /* of a lock that is held for moments, with a yield after each */

/* Where libntirpc 4.3 has the transport of a client handle; see ssc_channel_is_dead. */
_Static_assert(sizeof(CLIENT) == 0x68, "the transport follows the public part of the handle");

/* ---- connections ---- */

static SVCXPRT *xprt_of(CLIENT *clnt)
{
	SVCXPRT *xprt;
	int fd = -1;

	memcpy(&xprt, clnt + 1, sizeof(xprt));
	if (xprt == NULL || ((uintptr_t)xprt & (sizeof(void *) - 1)) != 0 ||
	    !CLNT_CONTROL(clnt, CLGET_FD, &fd) || xprt->xp_fd != fd)
		return NULL;
	return xprt;
}

bool ssc_channel_is_dead(CLIENT *clnt)
{
	SVCXPRT *xprt = xprt_of(clnt);

	return xprt != NULL &&
	       (__atomic_load_n(&xprt->xp_flags, __ATOMIC_ACQUIRE) & SVC_XPRT_FLAG_DESTROYED) != 0;
}

/*
 * chan->mtx is held. The authenticator stays for the next connection: the server keeps the parameters
 * that it was made of nowhere else.
 */
static void take_down_locked(nfs41_session_t *session)
{
	rpc_call_channel_t *chan = &session->cb_chan;

	atomic_clear_uint32_t_bits(&session->flags, session_bc_up);
	if (chan->clnt != NULL)
		CLNT_DESTROY(chan->clnt);
	chan->clnt = NULL;
}

void ssc_channel_take_down(nfs41_session_t *session, CLIENT *clnt)
{
	rpc_call_channel_t *chan = &session->cb_chan;

	for (int i = 0; i < TRIES; i++) {
		if (pthread_mutex_trylock(&chan->mtx) == 0) {
			if (chan->clnt == clnt)
				take_down_locked(session);
			pthread_mutex_unlock(&chan->mtx);
			return;
		}
		sched_yield();
	}
	/* Whoever uses it next finds out by himself. */
}

static bool is_marked_up(nfs41_session_t *session)
{
	const channel_attrs4 *attrs = &session->back_channel_attrs;

	return (atomic_fetch_uint32_t(&session->flags) & session_bc_up) != 0 &&
	       attrs->ca_maxoperations >= 2 && /* CB_SEQUENCE and ours */
	       attrs->ca_maxrequestsize >= SSC_CHANNEL_REQUEST_BYTES && attrs->ca_maxrequests > 0;
}

bool ssc_channel_is_up(nfs41_session_t *session)
{
	rpc_call_channel_t *chan = &session->cb_chan;
	bool is_up;

	if (session == NULL || !is_marked_up(session))
		return false;
	if (pthread_mutex_trylock(&chan->mtx) != 0)
		return true; /* as far as we can tell */
	is_up = chan->clnt != NULL && chan->auth != NULL;
	if (is_up && ssc_channel_is_dead(chan->clnt)) {
		take_down_locked(session);
		is_up = false;
	}
	pthread_mutex_unlock(&chan->mtx);
	return is_up;
}

/* ---- sessions ---- */

void ssc_channel_put(nfs41_session_t *session)
{
	compound_data_t *data = gsh_calloc(1, sizeof(*data));

	data->session = session;
	data->slotid = UINT32_MAX; /* none in use */
	compound_data_Free(data);
}

static bool session_get(nfs41_session_t *session)
{
	int32_t refs = __atomic_load_n(&session->refcount, __ATOMIC_RELAXED);

	while (refs > 0)
		if (__atomic_compare_exchange_n(&session->refcount, &refs, refs + 1, true,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* cid_mutex is held. */
static unsigned int collect(nfs_client_id_t *record, const char *first_id,
			    nfs41_session_t *sessions[SSC_CHANNEL_SESSIONS])
{
	struct glist_head *link;
	unsigned int n = 0;

	glist_for_each(link, &record->cid_cb.v41.cb_session_list)
	{
		nfs41_session_t *session = glist_entry(link, nfs41_session_t, session_link);

		if (n == SSC_CHANNEL_SESSIONS)
			break;
		if (!is_marked_up(session) || !session_get(session))
			continue;
		sessions[n] = session;
		if (memcmp(session->session_id, first_id, NFS4_SESSIONID_SIZE) == 0) {
			sessions[n] = sessions[0];
			sessions[0] = session;
		}
		n++;
	}
	return n;
}

/* The record of @client if it is confirmed, with the table's latch held; NULL without it. */
static nfs_client_id_t *record_latch(clientid4 *client, struct hash_latch *latch)
{
	struct gsh_buffdesc key = {.addr = client, .len = sizeof(*client)};
	struct gsh_buffdesc value;
	hash_error_t rc = hashtable_getlatch(ht_confirmed_client_id, &key, &value, false, latch);

	if (rc == HASHTABLE_SUCCESS)
		return value.addr;
	if (rc == HASHTABLE_ERROR_NO_SUCH_KEY)
		hashtable_releaselatched(ht_confirmed_client_id, latch);
	return NULL;
}

unsigned int ssc_channel_sessions(clientid4 client, const char *first_id,
				  nfs41_session_t *sessions[SSC_CHANNEL_SESSIONS])
{
	struct hash_latch latch;
	nfs_client_id_t *record;
	unsigned int n = 0;

	for (int i = 0; i < TRIES; i++) {
		bool is_locked;

		record = record_latch(&client, &latch);
		if (record == NULL)
			return 0;
		is_locked = pthread_mutex_trylock(&record->cid_mutex) == 0;
		if (is_locked) {
			if (record->cid_minorversion > 0)
				n = collect(record, first_id, sessions);
			pthread_mutex_unlock(&record->cid_mutex);
		}
		hashtable_releaselatched(ht_confirmed_client_id, &latch);
		if (is_locked)
			break;
		sched_yield();
	}
	return n;
}

bool ssc_channel_is_client_gone(clientid4 client)
{
	struct hash_latch latch;
	nfs_client_id_t *record = record_latch(&client, &latch);
	bool is_gone;

	if (record == NULL)
		return true;
	is_gone = record->cid_confirmed != CONFIRMED_CLIENT_ID;
	hashtable_releaselatched(ht_confirmed_client_id, &latch);
	return is_gone;
}

/* ---- slots ---- */

bool ssc_channel_slot_take(nfs41_session_t *session, struct ssc_channel_slot *slot)
{
	uint32_t n = MIN(session->back_channel_attrs.ca_maxrequests, session->nb_slots);
	bool is_found = false;

	pthread_mutex_lock(&session->cb_mutex);
	for (uint32_t i = 0; i < n; i++) {
		if (session->bc_slots[i].in_use) {
			slot->highest = i;
		} else if (!is_found) {
			is_found = true;
			slot->slot = slot->highest = i;
		}
	}
	if (is_found) {
		session->bc_slots[slot->slot].in_use = true;
		slot->sequence = ++session->bc_slots[slot->slot].sequence;
	}
	pthread_mutex_unlock(&session->cb_mutex);
	return is_found;
}

void ssc_channel_slot_give(nfs41_session_t *session, const struct ssc_channel_slot *slot,
			   uint32_t back)
{
	pthread_mutex_lock(&session->cb_mutex);
	session->bc_slots[slot->slot].in_use = false;
	session->bc_slots[slot->slot].sequence -= back;
	pthread_cond_broadcast(&session->cb_cond);
	pthread_mutex_unlock(&session->cb_mutex);
}

/* ---- BIND_CONN_TO_SESSION ---- */

/* Let @session's callbacks go over @xprt, unless they go over one that is alive. True: now they do. */
static bool rebind(nfs41_session_t *session, SVCXPRT *xprt)
{
	rpc_call_channel_t *chan = &session->cb_chan;
	bool is_new = false;
	CLIENT *clnt;

	/* Never asked for when the session was made; the server does not do it over RDMA. */
	if (session->cb_program == 0 || svc_get_xprt_type(xprt) == XPRT_RDMA)
		return false;
	pthread_mutex_lock(&chan->mtx);
	if (chan->clnt != NULL && !ssc_channel_is_dead(chan->clnt) &&
	    (atomic_fetch_uint32_t(&session->flags) & session_bc_up) != 0)
		goto unlock;
	clnt = clnt_vc_ncreate_svc(xprt, session->cb_program, NFS_CB, CLNT_CREATE_FLAG_NONE);
	if (CLNT_FAILURE(clnt)) {
		CLNT_DESTROY(clnt);
		goto unlock;
	}
	take_down_locked(session);
	chan->type = RPC_CHAN_V41;
	chan->source.session = session;
	if (chan->auth == NULL)
		chan->auth = authnone_ncreate();
	chan->clnt = clnt;
	atomic_set_uint32_t_bits(&session->flags, session_bc_up);
	is_new = true;
unlock:
	pthread_mutex_unlock(&chan->mtx);
	return is_new;
}

enum nfs_req_result ssc_op_bind_conn(struct nfs_argop4 *op, compound_data_t *data,
				     struct nfs_resop4 *resp)
{
	enum nfs_req_result result = ssc_op_stock(NFS4_OP_BIND_CONN_TO_SESSION, op, data, resp);

	if (result == NFS_REQ_OK && data->session != NULL &&
	    op->nfs_argop4_u.opbind_conn_to_session.bctsa_dir != CDFC4_FORE &&
	    rebind(data->session, data->req->rq_xprt)) {
		LogInfo(COMPONENT_NFS_CB, "back channel of client %" PRIx64 " is up again",
			data->session->clientid);
		ssc_cb_client_is_back(data->session->clientid);
	}
	return result;
}
