/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * stateid.c - see stateid.h.
 */
#include "nfs_core.h"

#include "stateid.h"

_Static_assert(SSC_STATEID_OTHER_BYTES == OTHERSIZE, "one size of stateid");

static bool is_all(const struct ssc_stateid *stateid, uint8_t byte)
{
	for (size_t i = 0; i < sizeof(stateid->other); i++) {
		if (stateid->other[i] != byte)
			return false;
	}
	return true;
}

/* The state with @other on the file; st_lock is held. */
static struct state_t *find_locked(struct fsal_obj_handle *obj, const void *other)
{
	struct glist_head *node;

	glist_for_each(node, &obj->state_hdl->file.list_of_states)
	{
		struct state_t *state = glist_entry(node, struct state_t, state_list);

		if (memcmp(state->stateid_other, other, OTHERSIZE) == 0)
			return state;
	}
	return NULL;
}

/* The client that @state was given to; NULL while it is torn down. */
static const nfs_client_id_t *client_of(struct state_t *state)
{
	const nfs_client_id_t *client = NULL;

	PTHREAD_MUTEX_lock(&state->state_mutex);
	if (state->state_owner != NULL)
		client = state->state_owner->so_owner.so_nfs4_owner.so_clientrec;
	PTHREAD_MUTEX_unlock(&state->state_mutex);
	return client;
}

/* RFC 8881 8.2.2: 0 stands for the latest; serial number arithmetic else. */
static nfsstat4 check_seqid(const struct state_t *state, uint32_t seqid)
{
	int32_t diff = (int32_t)(seqid - state->state_seqid);

	if (seqid == 0 || diff == 0)
		return NFS4_OK;
	return diff < 0 ? NFS4ERR_OLD_STATEID : NFS4ERR_BAD_STATEID;
}

static nfsstat4 check_share(const struct state_t *open, enum ssc_stateid_use use)
{
	const struct state_share *share = &open->state_data.share;

	if (use == SSC_STATEID_WRITE)
		return share->share_access & OPEN4_SHARE_ACCESS_WRITE ? NFS4_OK : NFS4ERR_OPENMODE;
	/* As for READ: a file open for writing only may be read unless the client denied that. */
	if (share->share_access & OPEN4_SHARE_ACCESS_READ)
		return NFS4_OK;
	return share->share_deny & OPEN4_SHARE_DENY_READ ? NFS4ERR_OPENMODE : NFS4_OK;
}

/* Whether what @state stands for includes @use; st_lock is held. */
static nfsstat4 check_mode(struct fsal_obj_handle *obj, struct state_t *state,
			   enum ssc_stateid_use use)
{
	switch (state->state_type) {
	case STATE_TYPE_SHARE:
		return check_share(state, use);
	case STATE_TYPE_LOCK:
		state = find_locked(obj, state->state_data.lock.openstate_key);
		if (state == NULL || state->state_type != STATE_TYPE_SHARE)
			return NFS4ERR_BAD_STATEID;
		return check_share(state, use);
	case STATE_TYPE_DELEG:
		if (use == SSC_STATEID_READ ||
		    state->state_data.deleg.sd_type == OPEN_DELEGATE_WRITE)
			return NFS4_OK;
		return NFS4ERR_BAD_STATEID;
	default:
		return NFS4ERR_BAD_STATEID;
	}
}

static nfsstat4 check_state_locked(const compound_data_t *data, struct fsal_obj_handle *obj,
				   const struct ssc_stateid *stateid, enum ssc_stateid_use use)
{
	struct state_t *state = find_locked(obj, stateid->other);
	nfsstat4 status;

	if (state == NULL || data->session == NULL ||
	    client_of(state) != data->session->clientid_record)
		return NFS4ERR_BAD_STATEID;
	status = check_seqid(state, stateid->seqid);
	if (status != NFS4_OK)
		return status;
	return check_mode(obj, state, use);
}

/* RFC 8881 16.2.3.1.2. */
static bool resolve_current(const compound_data_t *data, bool is_saved, struct ssc_stateid *stateid)
{
	const stateid4 *current = is_saved ? &data->saved_stateid : &data->current_stateid;

	if (!(is_saved ? data->saved_stateid_valid : data->current_stateid_valid))
		return false;
	stateid->seqid = current->seqid;
	memcpy(stateid->other, current->other, sizeof(stateid->other));
	return true;
}

static bool is_of_this_run(const struct ssc_stateid *stateid)
{
	uint64_t clientid;

	/* The server makes `other` of the client id, whose upper half is when it was started. */
	memcpy(&clientid, stateid->other, sizeof(clientid));
	return clientid >> 32 == (uint32_t)nfs_ServerEpoch;
}

nfsstat4 ssc_stateid_check(compound_data_t *data, struct fsal_obj_handle *obj, bool is_saved,
			   const struct ssc_stateid *stateid, enum ssc_stateid_use use,
			   struct ssc_stateid_found *found)
{
	nfsstat4 status;

	*found = (struct ssc_stateid_found){.stateid = *stateid};
	if (is_all(stateid, 0)) {
		found->is_special = stateid->seqid == 0;
		if (found->is_special)
			return NFS4_OK;
		if (stateid->seqid != 1 || !resolve_current(data, is_saved, &found->stateid))
			return NFS4ERR_BAD_STATEID;
	} else if (is_all(stateid, UINT8_MAX)) {
		found->is_special = found->bypass = stateid->seqid == UINT32_MAX;
		return found->is_special ? NFS4_OK : NFS4ERR_BAD_STATEID;
	}
	if (!is_of_this_run(&found->stateid))
		return NFS4ERR_STALE_STATEID;

	PTHREAD_MUTEX_lock(&obj->state_hdl->st_lock);
	status = check_state_locked(data, obj, &found->stateid, use);
	PTHREAD_MUTEX_unlock(&obj->state_hdl->st_lock);
	return status;
}

bool ssc_stateid_is_alive(struct fsal_obj_handle *obj, const struct ssc_stateid_found *found)
{
	bool is_alive;

	if (found->is_special)
		return true;
	PTHREAD_MUTEX_lock(&obj->state_hdl->st_lock);
	is_alive = find_locked(obj, found->stateid.other) != NULL;
	PTHREAD_MUTEX_unlock(&obj->state_hdl->st_lock);
	return is_alive;
}
