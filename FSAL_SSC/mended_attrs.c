/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * mended_attrs.c - GETATTR and READDIR; see mended.h.
 *
 * The server refuses a request for an attribute that may not be read, and a number without a row in
 * its table looks to it like one. Numbers above its table it leaves out as it should, and a fourth word
 * of a bitmap is not even kept. So only the gaps within the table matter. The request is changed in
 * place, as the server does with what it does not support. Attributes that can only be set are INVAL
 * by RFC 8881 18.7.3 and stay so.
 */
#include "mended.h"

#include "op_bind.h"

/* 77 clone_blksize, 78 space_freed, 79 change_attr_type, 81 mode_umask. */
#define GAPS_FIRST  64
#define GAP(number) (1U << ((number)-GAPS_FIRST))
#define GAPS        (GAP(77) | GAP(78) | GAP(79) | GAP(81))

static void leave_out(struct bitmap4 *wanted, uint32_t gaps)
{
	if (wanted->bitmap4_len > GAPS_FIRST / 32)
		wanted->map[GAPS_FIRST / 32] &= ~gaps;
}

enum nfs_req_result ssc_mended_getattr(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp)
{
	struct bitmap4 *wanted = &op->nfs_argop4_u.opgetattr.attr_request;
	enum nfs_req_result result;

	leave_out(wanted, GAPS & ~GAP(77));
	if (ssc_mended_blksize(wanted, data, resp, &result))
		return result;
	leave_out(wanted, GAPS);
	return ssc_op_stock(NFS4_OP_GETATTR, op, data, resp);
}

enum nfs_req_result ssc_mended_readdir(struct nfs_argop4 *op, compound_data_t *data,
				       struct nfs_resop4 *resp)
{
	leave_out(&op->nfs_argop4_u.opreaddir.attr_request, GAPS);
	return ssc_op_stock(NFS4_OP_READDIR, op, data, resp);
}
