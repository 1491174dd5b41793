/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_copy.h - COPY of NFSv4.2 within this server.
 *
 * Checks     in this order: handles and types, exports that take part, ranges, the destination's stateid
 *            and rights, the source's with its own export's identity; only then anything is done.
 * Waiting    No thread of the server's waits for a copy: the compound is suspended, and resumed when
 *            the copy is over. Short answers are legal, and clients ask for the rest.
 * Source     RFC 7862 15.2.
 */
#ifndef SSC_OP_COPY_H
#define SSC_OP_COPY_H

#include "copy_side.h"
#include "nfs_proto_data.h"

/* What the checks of a COPY have found, and what is to be done. */
struct ssc_copy_plan {
	struct ssc_copy_side *src, *dst; /* owned */
	uint64_t src_offset, dst_offset;
	uint64_t count;    /* > 0: what there is to copy */
	uint64_t dst_size; /* of the destination now; UINT64_MAX: not asked for */
	bool must_commit;  /* the export wants everything on disk at once */
	/* while it is checked */
	bool is_strict;
	bool is_same; /* both sides are one file */
};

/** @brief The operation, and what goes on with it after it was suspended. Rows of op_bind.h. */
enum nfs_req_result ssc_op_copy(struct nfs_argop4 *op, compound_data_t *data,
				struct nfs_resop4 *resp);
enum nfs_req_result ssc_op_copy_resume(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp);

/* ---- copy_check.c ---- */

/**
 * @brief Check a COPY, and make both sides.
 *
 * *plan is zeroed by the caller, who frees the sides in any case. count stays 0 when there is nothing
 * to copy. @is_strict: a range beyond the source's end is INVAL; else it is cut there.
 * Blocks: for the sizes, at most as long as a GETATTR does.
 */
nfsstat4 ssc_copy_check(compound_data_t *data, const struct ssc_copy_args *args, bool is_strict,
			struct ssc_copy_plan *plan);

/* ---- copy_async.c ---- */

/**
 * @brief Serve @plan asynchronously, if the client can be called back and no limit is reached.
 *
 * True: *stateid names the copy, and the sides of @plan are taken.
 */
bool ssc_copy_async_start(compound_data_t *data, struct ssc_copy_plan *plan,
			  struct ssc_stateid *stateid);

#endif /* SSC_OP_COPY_H */
