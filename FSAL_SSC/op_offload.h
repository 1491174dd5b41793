/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_offload.h - the small operations round COPY: OFFLOAD_STATUS, OFFLOAD_CANCEL, COPY_NOTIFY.
 *
 * Threads    the server's workers. Nothing blocks.
 * Source     RFC 7862 15.3, 15.8, 15.9. Rows of op_bind.h.
 */
#ifndef SSC_OP_OFFLOAD_H
#define SSC_OP_OFFLOAD_H

#include "glue.h"
#include "nfs_proto_data.h"

enum nfs_req_result ssc_op_offload_status(struct nfs_argop4 *op, compound_data_t *data,
					  struct nfs_resop4 *resp);
enum nfs_req_result ssc_op_offload_cancel(struct nfs_argop4 *op, compound_data_t *data,
					  struct nfs_resop4 *resp);
enum nfs_req_result ssc_op_copy_notify(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp);

#endif /* SSC_OP_OFFLOAD_H */
