/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * mended_advise.c - IO_ADVISE; see mended.h.
 *
 * RFC 7862 15.5: the answer is the set of hints that are followed, and that may be empty.
 */
#include "mended.h"

#include <string.h>

#include "stateid.h"

static nfsstat4 check_file(const compound_data_t *data)
{
	if (data->currentFH.nfs_fh4_len == 0)
		return NFS4ERR_NOFILEHANDLE;
	if (data->current_filetype == DIRECTORY)
		return NFS4ERR_ISDIR;
	if (data->current_filetype != REGULAR_FILE || data->current_obj == NULL)
		return NFS4ERR_INVAL;
	return NFS4_OK;
}

static nfsstat4 check_stateid(compound_data_t *data, const stateid4 *wire)
{
	struct ssc_stateid stateid = {.seqid = wire->seqid};
	struct ssc_stateid_found found;
	nfsstat4 status;

	memcpy(stateid.other, wire->other, sizeof(stateid.other));
	status = ssc_stateid_check(data, data->current_obj, false, &stateid, SSC_STATEID_READ,
				   &found);
	/* Advice is no I/O: how the file was opened does not matter. */
	return status == NFS4ERR_OPENMODE ? NFS4_OK : status;
}

enum nfs_req_result ssc_mended_io_advise(struct nfs_argop4 *op, compound_data_t *data,
					 struct nfs_resop4 *resp)
{
	IO_ADVISE4res *res = &resp->nfs_resop4_u.opio_advise;

	resp->resop = NFS4_OP_IO_ADVISE;
	res->iaa_status = check_file(data);
	if (res->iaa_status == NFS4_OK)
		res->iaa_status = check_stateid(data, &op->nfs_argop4_u.opio_advise.iaa_stateid);
	if (res->iaa_status == NFS4_OK)
		res->iaa_hints.bitmap4_len = 0;
	return res->iaa_status == NFS4_OK ? NFS_REQ_OK : NFS_REQ_ERROR;
}
