/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * mended.h - operations that the server's own 4.3 answers wrongly, for all of its exports.
 *
 * GETATTR    an attribute number below 83 that the server has no row for (77, 78, 79, 81) fails the
 * READDIR    whole operation with INVAL. It is left out of the answer instead; but GETATTR gives 77,
 *            clone_blksize, of files that CLONE may be served for.
 * IO_ADVISE  writes the hint over the state that the stateid names; CLOSE then ends the server. Here
 *            it answers that no hint is followed, and touches nothing.
 * READ_PLUS  answers one empty segment for a full file, and loses the data. Here it answers what READ
 *            does, as one segment of data, or none at and after the end of the file.
 * SEEK       with a special stateid it answers OK with an offset that nobody set. Here it makes the
 *            checks of READ and asks the file system.
 *
 * Each is a row of the server's table of operations (see op_bind.h); what is not at fault goes to the
 * server's own function. READ_PLUS and SEEK need the right to read the export, as READ does; the server
 * asks for none.
 *
 * Threads    the server's workers.
 * Source     RFC 7862 15.5, 15.10, 15.11; RFC 8881 5.5, 18.7, 18.23.
 */
#ifndef SSC_MENDED_H
#define SSC_MENDED_H

#include "config.h"

#include "fsal.h"
#include "nfs_core.h"
#include "nfs_proto_data.h"

enum nfs_req_result ssc_mended_getattr(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp);

/**
 * @brief Answer a GETATTR of @wanted with clone_blksize, if that is asked for and the current file has it.
 *        False: it has not, or nothing of the kind was asked.
 */
bool ssc_mended_blksize(const struct bitmap4 *wanted, compound_data_t *data,
			struct nfs_resop4 *resp, enum nfs_req_result *result);

enum nfs_req_result ssc_mended_readdir(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp);

enum nfs_req_result ssc_mended_io_advise(struct nfs_argop4 *op, compound_data_t *data,
					 struct nfs_resop4 *resp);

enum nfs_req_result ssc_mended_seek(struct nfs_argop4 *op, compound_data_t *data,
				    struct nfs_resop4 *resp);
enum nfs_req_result ssc_mended_seek_resume(struct nfs_argop4 *op, compound_data_t *data,
					   struct nfs_resop4 *resp);

enum nfs_req_result ssc_mended_read_plus(struct nfs_argop4 *op, compound_data_t *data,
					 struct nfs_resop4 *resp);
enum nfs_req_result ssc_mended_read_plus_resume(struct nfs_argop4 *op, compound_data_t *data,
						struct nfs_resop4 *resp);
void ssc_mended_read_plus_free(struct nfs_resop4 *resp);

/** @brief Encode the number and result of READ_PLUS, whoever made it; may be repeated. */
bool ssc_mended_read_plus_encode(XDR *xdrs, struct nfs_resop4 *resp);

#endif /* SSC_MENDED_H */
