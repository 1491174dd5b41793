/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * mended_seek.c - SEEK with a special stateid; see mended.h.
 *
 * READ of one byte at the offset makes all checks that a READ makes (kind of file, share reservations,
 * rights, the largest offset), on its way through file systems that answer later too, and tells whether
 * the offset is before the end. Then the file system is asked, without a state. One that does not know
 * holes says NOTSUPP, as it does for a stateid of an open; clients then take all of the file for data.
 */
#include "mended.h"

#include <string.h>

#include "op_bind.h"

/* No file is larger, and signed offsets end here. */
#define LAST_OFFSET ((uint64_t)INT64_MAX - 1)

static enum nfs_req_result result_of(nfsstat4 status)
{
	return status == NFS4_OK ? NFS_REQ_OK : NFS_REQ_ERROR;
}

static bool is_special(const stateid4 *stateid)
{
	static const char zeros[OTHERSIZE];
	char ones[OTHERSIZE];

	memset(ones, 0xff, sizeof(ones));
	if (stateid->seqid == 0)
		return memcmp(stateid->other, zeros, sizeof(zeros)) == 0;
	return stateid->seqid == UINT32_MAX && memcmp(stateid->other, ones, sizeof(ones)) == 0;
}

/* Of what seek2 answers; RFC 7862 15.11 and RFC 8881 15.1. */
static nfsstat4 seek_status(fsal_status_t status)
{
	switch (status.major) {
	case ERR_FSAL_NO_ERROR:
		return NFS4_OK;
	case ERR_FSAL_NXIO:
		return NFS4ERR_NXIO;
	case ERR_FSAL_NOTSUPP:
		return NFS4ERR_NOTSUPP;
	case ERR_FSAL_UNION_NOTSUPP:
		return NFS4ERR_UNION_NOTSUPP;
	case ERR_FSAL_STALE:
	case ERR_FSAL_NOENT:
		return NFS4ERR_STALE;
	case ERR_FSAL_ACCESS:
		return NFS4ERR_ACCESS;
	case ERR_FSAL_PERM:
		return NFS4ERR_PERM;
	case ERR_FSAL_INVAL:
		return NFS4ERR_INVAL;
	case ERR_FSAL_LOCKED:
	case ERR_FSAL_SHARE_DENIED:
		return NFS4ERR_LOCKED;
	case ERR_FSAL_DELAY:
	case ERR_FSAL_TIMEOUT:
		return NFS4ERR_DELAY;
	case ERR_FSAL_IO:
		return NFS4ERR_IO;
	default:
		return NFS4ERR_SERVERFAULT;
	}
}

/* Where the next data or hole is, in a file that reaches beyond the offset. */
static nfsstat4 seek(const SEEK4args *arg, struct fsal_obj_handle *obj, seek_res4 *found)
{
	struct io_info info;
	fsal_status_t status;

	memset(&info, 0, sizeof(info));
	info.io_content.what = arg->sa_what;
	info.io_content.hole.di_offset = arg->sa_offset;
	status = obj->obj_ops->seek2(obj, NULL, &info);
	if (FSAL_IS_ERROR(status))
		return seek_status(status);
	found->sr_eof = info.io_eof;
	found->sr_offset = info.io_content.hole.di_offset;
	return NFS4_OK;
}

/* The READ is over: its result lies where that of the SEEK belongs. */
static enum nfs_req_result seek_after_read(const SEEK4args *arg, compound_data_t *data,
					   struct nfs_resop4 *resp)
{
	READ4res read = resp->nfs_resop4_u.opread;
	SEEK4res *res = &resp->nfs_resop4_u.opseek;

	resp->resop = NFS4_OP_SEEK;
	data->op_resp_size = sizeof(*res);
	res->sr_status = read.status;
	if (read.status == NFS4_OK) {
		gsh_free(read.READ4res_u.resok4.data.data_val);
		if (read.READ4res_u.resok4.data.data_len == 0)
			res->sr_status = NFS4ERR_NXIO;
		else
			res->sr_status = seek(arg, data->current_obj, &res->sr_resok4);
	}
	return result_of(res->sr_status);
}

enum nfs_req_result ssc_mended_seek(struct nfs_argop4 *op, compound_data_t *data,
				    struct nfs_resop4 *resp)
{
	const SEEK4args *arg = &op->nfs_argop4_u.opseek;
	struct nfs_argop4 read = {.argop = NFS4_OP_READ};
	enum nfs_req_result rc;

	if (!is_special(&arg->sa_stateid))
		return ssc_op_stock(NFS4_OP_SEEK, op, data, resp);
	if (arg->sa_what != NFS4_CONTENT_DATA && arg->sa_what != NFS4_CONTENT_HOLE) {
		resp->resop = NFS4_OP_SEEK;
		resp->nfs_resop4_u.opseek.sr_status = NFS4ERR_UNION_NOTSUPP;
		return NFS_REQ_ERROR;
	}
	/* The arguments of READ are looked at before it returns, its result may come later. */
	read.nfs_argop4_u.opread.stateid = arg->sa_stateid;
	read.nfs_argop4_u.opread.offset =
		arg->sa_offset < LAST_OFFSET ? arg->sa_offset : LAST_OFFSET;
	read.nfs_argop4_u.opread.count = 1;
	rc = ssc_op_stock(NFS4_OP_READ, &read, data, resp);
	if (rc == NFS_REQ_ASYNC_WAIT)
		return rc; /* all of it may be another thread's by now */
	return seek_after_read(arg, data, resp);
}

enum nfs_req_result ssc_mended_seek_resume(struct nfs_argop4 *op, compound_data_t *data,
					   struct nfs_resop4 *resp)
{
	/* Only the READ suspends. */
	enum nfs_req_result rc = ssc_op_stock_resume(NFS4_OP_READ, op, data, resp);

	if (rc == NFS_REQ_ASYNC_WAIT)
		return rc;
	return seek_after_read(&op->nfs_argop4_u.opseek, data, resp);
}
