/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42.c - see nfs42.h. One row for each operation, and no code.
 */
#include "config.h"

#include "fsal.h"
#include "nfs_exports.h"

#include "cb_channel.h"
#include "compound_xdr.h"
#include "mended.h"
#include "nfs42.h"
#include "op_clone.h"
#include "op_copy.h"
#include "op_offload.h"

const struct ssc_op_row ssc_nfs42_rows[] = {
	{.op = NFS4_OP_BIND_CONN_TO_SESSION, .funct = ssc_op_bind_conn},
	{.op = NFS4_OP_GETATTR, .funct = ssc_mended_getattr},
	{.op = NFS4_OP_READDIR, .funct = ssc_mended_readdir},
	{.op = NFS4_OP_IO_ADVISE, .funct = ssc_mended_io_advise},
	{.op = NFS4_OP_READ_PLUS,
	 .funct = ssc_mended_read_plus,
	 .resume = ssc_mended_read_plus_resume,
	 .free_res = ssc_mended_read_plus_free,
	 .exp_perm_flags = EXPORT_OPTION_READ_ACCESS},
	{.op = NFS4_OP_SEEK,
	 .funct = ssc_mended_seek,
	 .resume = ssc_mended_seek_resume,
	 .exp_perm_flags = EXPORT_OPTION_READ_ACCESS},
	/* The server's own are called without a file handle too, and look into the export that is not
	   there; and they write where an export is read-only. */
	{.op = NFS4_OP_ALLOCATE, .exp_perm_flags = EXPORT_OPTION_WRITE_ACCESS},
	{.op = NFS4_OP_DEALLOCATE, .exp_perm_flags = EXPORT_OPTION_WRITE_ACCESS},
	{.op = NFS4_OP_COPY,
	 .funct = ssc_op_copy,
	 .resume = ssc_op_copy_resume,
	 .resp_size = SSC_COPY_RES_WIRE_MAX},
	{.op = NFS4_OP_COPY_NOTIFY, .funct = ssc_op_copy_notify, .resp_size = SSC_STATUS_RES_WIRE},
	{.op = NFS4_OP_OFFLOAD_CANCEL,
	 .funct = ssc_op_offload_cancel,
	 .resp_size = SSC_STATUS_RES_WIRE},
	{.op = NFS4_OP_OFFLOAD_STATUS,
	 .funct = ssc_op_offload_status,
	 .resp_size = SSC_OFFLOAD_STATUS_RES_WIRE_MAX},
	{.op = NFS4_OP_CLONE, .funct = ssc_op_clone, .resp_size = SSC_STATUS_RES_WIRE},
};

const size_t ssc_nfs42_n_rows = sizeof(ssc_nfs42_rows) / sizeof(ssc_nfs42_rows[0]);
