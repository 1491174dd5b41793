/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * compound_xdr.h - COMPOUND on the wire, with the COPY family taken apart as the RFC has it.
 *
 * The server's own procedure reads nothing of the arguments of COPY, COPY_NOTIFY, OFFLOAD_CANCEL,
 * OFFLOAD_STATUS and CLONE, so it takes them for the next operation, and it answers these with
 * another operation's result. Here they go through nfs42.h; all others go the server's way, byte
 * for byte, but for READ_PLUS's result (see mended.h). In minor versions before 2 the five do not
 * exist, and nothing of ours happens.
 *
 * Arguments  lie in memory of their own, and the operation's union keeps its address. They are made
 *            by decoding and freed with the compound, whether it was decoded to its end or not.
 * Results    lie in the operation's union, as nfs42.h has them, and hold no memory: the server
 *            copies them as bytes, keeps them in the reply cache of a session, and encodes them
 *            again for a replay.
 * Threads    any; a compound is one thread's at a time. Nothing blocks.
 * Source     RFC 7863; RFC 8881 16.2; RFC 7862 15.
 */
#ifndef SSC_COMPOUND_XDR_H
#define SSC_COMPOUND_XDR_H

#include "config.h"

#include "nfs_core.h"
#include "nfs_proto_data.h"

#include "ssc/nfs42.h"

/* Most bytes of results on the wire, behind the number of the operation. */
#define SSC_COPY_RES_WIRE_MAX           52
#define SSC_OFFLOAD_STATUS_RES_WIRE_MAX 20
#define SSC_STATUS_RES_WIRE             4

/** @brief Decode or free the arguments of a COMPOUND. An xdrproc_t for a COMPOUND4args. */
bool ssc_compound_args(XDR *xdrs, void *args);

/** @brief Encode the results. An xdrproc_t for a pointer to a COMPOUND4res_extended. */
bool ssc_compound_res(XDR *xdrs, void *res);

/*
 * The arguments of an operation of that number. NULL: the compound was taken apart before we were
 * bound, in a server that was already running; NFS4ERR_DELAY makes the client send it again.
 */
const struct ssc_copy_args *ssc_copy_args_of(const struct nfs_argop4 *op);
const struct ssc_copy_notify_args *ssc_copy_notify_args_of(const struct nfs_argop4 *op);
const struct ssc_offload_args *ssc_offload_args_of(const struct nfs_argop4 *op);
const struct ssc_clone_args *ssc_clone_args_of(const struct nfs_argop4 *op);

/* The place of a result, zeros at first. The caller sets resop as well. */
struct ssc_copy_res *ssc_copy_res_of(struct nfs_resop4 *op);
struct ssc_offload_cancel_res *ssc_offload_cancel_res_of(struct nfs_resop4 *op);
struct ssc_offload_status_res *ssc_offload_status_res_of(struct nfs_resop4 *op);
struct ssc_clone_res *ssc_clone_res_of(struct nfs_resop4 *op);

#endif /* SSC_COMPOUND_XDR_H */
