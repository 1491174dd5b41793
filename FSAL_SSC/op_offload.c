/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_offload.c - see op_offload.h.
 */
#include "nfs_proto_functions.h"

#include "compound_xdr.h"
#include "copy_service.h"
#include "op_offload.h"

static enum nfs_req_result result_of(uint32_t status)
{
	return status == NFS4_OK ? NFS_REQ_OK : NFS_REQ_ERROR;
}

/* Whose copies a request may ask for. False: it is in no session. */
static bool client_of(const compound_data_t *data, uint64_t *client)
{
	if (data->session == NULL)
		return false;
	*client = data->session->clientid;
	return true;
}

enum nfs_req_result ssc_op_offload_status(struct nfs_argop4 *op, compound_data_t *data,
					  struct nfs_resop4 *resp)
{
	const struct ssc_offload_args *args = ssc_offload_args_of(op);
	struct ssc_offload_status_res *res = ssc_offload_status_res_of(resp);
	struct ssc_copy_table *table = ssc_copy_service_table();
	uint64_t client;

	resp->resop = NFS4_OP_OFFLOAD_STATUS;
	memset(res, 0, sizeof(*res));
	if (args == NULL)
		res->status = NFS4ERR_DELAY;
	else if (table == NULL || !client_of(data, &client))
		res->status = NFS4ERR_BAD_STATEID;
	else
		ssc_copy_table_status(table, client, &args->stateid, res);
	return result_of(res->status);
}

enum nfs_req_result ssc_op_offload_cancel(struct nfs_argop4 *op, compound_data_t *data,
					  struct nfs_resop4 *resp)
{
	const struct ssc_offload_args *args = ssc_offload_args_of(op);
	struct ssc_offload_cancel_res *res = ssc_offload_cancel_res_of(resp);
	struct ssc_copy_table *table = ssc_copy_service_table();
	uint64_t client;

	resp->resop = NFS4_OP_OFFLOAD_CANCEL;
	if (args == NULL)
		res->status = NFS4ERR_DELAY;
	else if (table == NULL || !client_of(data, &client))
		res->status = NFS4ERR_BAD_STATEID;
	else
		res->status = ssc_copy_table_cancel(table, client, &args->stateid);
	return result_of(res->status);
}

enum nfs_req_result ssc_op_copy_notify(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp)
{
	(void)op;
	(void)data;
	resp->resop = NFS4_OP_COPY_NOTIFY;
	resp->nfs_resop4_u.opaccess.status = NFS4ERR_NOTSUPP;
	return NFS_REQ_ERROR;
}
