/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_clone.h - CLONE of NFSv4.2: one file shares the blocks of another, at once or not at all.
 *
 * No method of an FSAL does that, and a plain copy is no clone. For files of a local file system (a stacked
 * FSAL VFS) the file system is asked itself; everywhere else, and where it cannot share blocks, the answer
 * is NOTSUPP, upon which clients take COPY.
 *
 * Blocks     while the file system works, which is not long: no data is moved.
 * Threads    the server's workers.
 * Source     RFC 7862 15.13. A row of op_bind.h.
 */
#ifndef SSC_OP_CLONE_H
#define SSC_OP_CLONE_H

#include "glue.h"
#include "nfs_proto_data.h"

enum nfs_req_result ssc_op_clone(struct nfs_argop4 *op, compound_data_t *data,
				 struct nfs_resop4 *resp);

#endif /* SSC_OP_CLONE_H */
