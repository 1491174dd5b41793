/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * compound_xdr.c - see compound_xdr.h.
 *
 * Operations beside ours are decoded and encoded by the inline procedures of the server's headers,
 * which the server itself is built of, with what it keeps in the stream (look-ahead flags, buffers
 * that READ refers to) untouched.
 *
 * Half-decoded compounds: the server frees the arguments of a compound that could not be decoded by
 * the same procedure. The array was cleared when it was made, so an operation that was never reached
 * has number 0 and no memory, and one that failed within its arguments has them to be freed.
 */
#include "config.h"

#include "fsal.h"
#include "nfs4.h"
#include "nfs_proto_functions.h"

#include "compound_xdr.h"
#include "mended.h"

#define MINOR_WITH_COPY 2

/* The host's stream as ours. */
struct host_xio {
	struct ssc_xio io;
	XDR *xdrs;
};

static bool word_decode(struct ssc_xio *io, uint32_t *word)
{
	return XDR_GETUINT32(((struct host_xio *)io)->xdrs, word);
}

static bool word_encode(struct ssc_xio *io, uint32_t *word)
{
	return XDR_PUTUINT32(((struct host_xio *)io)->xdrs, *word);
}

static bool bytes_decode(struct ssc_xio *io, void *bytes, uint32_t len)
{
	return xdr_opaque_decode(((struct host_xio *)io)->xdrs, bytes, len);
}

static bool bytes_encode(struct ssc_xio *io, void *bytes, uint32_t len)
{
	return xdr_opaque_encode(((struct host_xio *)io)->xdrs, bytes, len);
}

/* ---- arguments ---- */

/* What the union of an operation of ours holds. */
struct own_args {
	void *args;
};

static struct own_args *own_args_of(struct nfs_argop4 *op)
{
	return (struct own_args *)&op->nfs_argop4_u;
}

static const void *args_of(const struct nfs_argop4 *op)
{
	return ((const struct own_args *)&op->nfs_argop4_u)->args;
}

/* 0: not an operation of ours. */
static size_t args_bytes(unsigned int op)
{
	switch (op) {
	case SSC_OP42_COPY:
		return sizeof(struct ssc_copy_args);
	case SSC_OP42_COPY_NOTIFY:
		return sizeof(struct ssc_copy_notify_args);
	case SSC_OP42_OFFLOAD_CANCEL:
	case SSC_OP42_OFFLOAD_STATUS:
		return sizeof(struct ssc_offload_args);
	case SSC_OP42_CLONE:
		return sizeof(struct ssc_clone_args);
	}
	return 0;
}

static bool xio_args(struct ssc_xio *io, unsigned int op, void *args)
{
	switch (op) {
	case SSC_OP42_COPY:
		return ssc_xio_copy_args(io, args);
	case SSC_OP42_COPY_NOTIFY:
		return ssc_xio_copy_notify_args(io, args);
	case SSC_OP42_OFFLOAD_CANCEL:
	case SSC_OP42_OFFLOAD_STATUS:
		return ssc_xio_offload_args(io, args);
	case SSC_OP42_CLONE:
		return ssc_xio_clone_args(io, args);
	}
	return false;
}

static bool decode_own(XDR *xdrs, struct nfs_argop4 *op, size_t bytes)
{
	struct host_xio host = {{true, word_decode, bytes_decode}, xdrs};

	own_args_of(op)->args = gsh_calloc(1, bytes);
	return xio_args(&host.io, op->argop, own_args_of(op)->args);
}

static bool argop(XDR *xdrs, void *arg)
{
	struct nfs_argop4 *op = arg;
	size_t bytes;

	if (!xdr_nfs_argop4(xdrs, op))
		return false;
	bytes = args_bytes(op->argop);
	if (bytes == 0)
		return true;
	if (xdrs->x_op == XDR_DECODE)
		return decode_own(xdrs, op, bytes);
	if (xdrs->x_op == XDR_FREE) {
		gsh_free(own_args_of(op)->args);
		own_args_of(op)->args = NULL;
		return true;
	}
	return false;
}

static bool argop_stock(XDR *xdrs, void *arg)
{
	return xdr_nfs_argop4(xdrs, arg);
}

bool ssc_compound_args(XDR *xdrs, void *args)
{
	COMPOUND4args *compound = args;

	if (!xdr_utf8str_cs(xdrs, &compound->tag) ||
	    !inline_xdr_u_int32_t(xdrs, &compound->minorversion))
		return false;
	/* A session's reply cache needs no checksum of the request: as the server has it. */
	if (compound->minorversion > 0)
		xdrs->x_flags &= ~XDR_FLAG_CKSUM;
	return xdr_array(xdrs, (char **)&compound->argarray.argarray_val,
			 &compound->argarray.argarray_len, XDR_ARRAY_MAXLEN, sizeof(nfs_argop4),
			 compound->minorversion >= MINOR_WITH_COPY ? argop : argop_stock);
}

const struct ssc_copy_args *ssc_copy_args_of(const struct nfs_argop4 *op)
{
	return args_of(op);
}

const struct ssc_copy_notify_args *ssc_copy_notify_args_of(const struct nfs_argop4 *op)
{
	return args_of(op);
}

const struct ssc_offload_args *ssc_offload_args_of(const struct nfs_argop4 *op)
{
	return args_of(op);
}

const struct ssc_clone_args *ssc_clone_args_of(const struct nfs_argop4 *op)
{
	return args_of(op);
}

/* ---- results ---- */

/* All begin with their status, as the host's do, which reads and changes it there. */
#define ASSERT_RESULT(type)                                                                \
	_Static_assert(offsetof(type, status) == 0 &&                                      \
			       sizeof(type) <= sizeof(((nfs_resop4 *)NULL)->nfs_resop4_u), \
		       #type " is no result of the host's kind")

ASSERT_RESULT(struct ssc_copy_res);
ASSERT_RESULT(struct ssc_offload_cancel_res);
ASSERT_RESULT(struct ssc_offload_status_res);
ASSERT_RESULT(struct ssc_clone_res);

static bool resop(XDR *xdrs, void *arg)
{
	struct nfs_resop4 *op = arg;
	struct host_xio host = {{false, word_encode, bytes_encode}, xdrs};
	uint32_t number = op->resop;

	if (xdrs->x_op == XDR_ENCODE && number == NFS4_OP_READ_PLUS)
		return ssc_mended_read_plus_encode(xdrs, op);
	if (xdrs->x_op != XDR_ENCODE || args_bytes(number) == 0)
		return xdr_nfs_resop4(xdrs, op);
	if (!ssc_xio_u32(&host.io, &number))
		return false;
	switch (number) {
	case SSC_OP42_COPY:
		return ssc_xio_copy_res(&host.io, ssc_copy_res_of(op));
	case SSC_OP42_OFFLOAD_STATUS:
		return ssc_xio_offload_status_res(&host.io, ssc_offload_status_res_of(op));
	default: /* the others are a status and no more; COPY_NOTIFY is always refused */
		return ssc_xio_clone_res(&host.io, ssc_clone_res_of(op));
	}
}

bool ssc_compound_res(XDR *xdrs, void *res)
{
	COMPOUND4res *compound = &(*(struct COMPOUND4res_extended **)res)->res_compound4;

	return xdr_nfsstat4(xdrs, &compound->status) && xdr_utf8str_cs(xdrs, &compound->tag) &&
	       xdr_array(xdrs, (char **)&compound->resarray.resarray_val,
			 &compound->resarray.resarray_len, XDR_ARRAY_MAXLEN, sizeof(nfs_resop4),
			 resop);
}

struct ssc_copy_res *ssc_copy_res_of(struct nfs_resop4 *op)
{
	return (struct ssc_copy_res *)&op->nfs_resop4_u;
}

struct ssc_offload_cancel_res *ssc_offload_cancel_res_of(struct nfs_resop4 *op)
{
	return (struct ssc_offload_cancel_res *)&op->nfs_resop4_u;
}

struct ssc_offload_status_res *ssc_offload_status_res_of(struct nfs_resop4 *op)
{
	return (struct ssc_offload_status_res *)&op->nfs_resop4_u;
}

struct ssc_clone_res *ssc_clone_res_of(struct nfs_resop4 *op)
{
	return (struct ssc_clone_res *)&op->nfs_resop4_u;
}
