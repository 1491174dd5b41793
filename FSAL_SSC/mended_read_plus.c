/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * mended_read_plus.c - READ_PLUS made of the server's READ; see mended.h.
 *
 * READ runs on the same arguments, which are laid out alike, and puts its result where ours goes: it
 * may still do so when it has returned, from the thread that completes it. Then the data is taken out
 * of its result. Holes are not looked for: zeros are sent as data, which RFC 7862 15.10.3 leaves to
 * the server.
 *
 * The data is not copied: the reply that goes out refers to it. A reply kept in a session's slot may
 * be sent again, and so twice at a time. (READ gives its data away with the first reply; a repeated
 * one is empty.)
 *
 * References  of the data   taken in                         dropped in
 *             result        take_data                        ssc_mended_read_plus_free
 *             each reply    ssc_mended_read_plus_encode      reply_sent, from the thread that sent it
 */
#include "mended.h"

#include <stdatomic.h>

#include "op_bind.h"

/* That a segment needs more than READ's result: a count of segments, its kind and its offset. */
#define SEGMENT_BYTES (2 * BYTES_PER_XDR_UNIT + sizeof(offset4))

/* What the server adds up for READ itself: number, status, end of file, length; and it keeps room
 * for the number and status of one more operation. */
#define READ_BYTES (4 * BYTES_PER_XDR_UNIT + 2 * BYTES_PER_XDR_UNIT)

struct data {
	atomic_uint refs;
	uint32_t len; /* not 0 */
	char *bytes;  /* with room for padding */
};

struct result {
	READ4res read; /* begins with the status; holds no data once that was taken */
	offset4 offset;
	struct data *data;
	bool want_none;     /* a count of 0 was asked for */
	const void *marker; /* &ours, once complete */
};

/*
 * Only a complete result of ours has this: what failed before it came to us, and what the server made
 * before it had this module, is the server's to encode and free. It writes nothing so far back.
 */
static const char ours;

_Static_assert(offsetof(struct result, marker) >=
		       offsetof(READ_PLUS4res, rpr_resok4.rpr_contents.data) + sizeof(data4),
	       "the marker lies behind what the server fills in");

_Static_assert(sizeof(struct result) <= sizeof(((struct nfs_resop4 *)0)->nfs_resop4_u),
	       "a result has its place in the reply");
_Static_assert(sizeof(READ_PLUS4args) == sizeof(READ4args) &&
		       offsetof(READ_PLUS4args, rpa_stateid) == offsetof(READ4args, stateid) &&
		       offsetof(READ_PLUS4args, rpa_offset) == offsetof(READ4args, offset) &&
		       offsetof(READ_PLUS4args, rpa_count) == offsetof(READ4args, count),
	       "READ_PLUS has the arguments of READ");

static struct result *result_in(struct nfs_resop4 *resp)
{
	return (struct result *)&resp->nfs_resop4_u;
}

static void put_data(struct data *data)
{
	if (atomic_fetch_sub(&data->refs, 1) > 1)
		return;
	gsh_free(data->bytes);
	gsh_free(data);
}

static void take_data(struct result *res)
{
	READ4resok *read = &res->read.READ4res_u.resok4;

	if (read->data.data_len != 0 && !res->want_none) {
		res->data = gsh_calloc(1, sizeof(*res->data));
		res->data->refs = 1;
		res->data->len = read->data.data_len;
		res->data->bytes = read->data.data_val;
		memset(&res->data->bytes[res->data->len], 0,
		       RNDUP(res->data->len) - res->data->len);
	} else {
		gsh_free(read->data.data_val);
		/* One byte was read for a count of 0: it may have been the last one, not the end. */
		read->eof = read->eof && read->data.data_len == 0;
	}
	read->data.data_val = NULL;
	read->data.data_len = 0;
}

static enum nfs_req_result complete(enum nfs_req_result rc, const struct nfs_argop4 *op,
				    struct nfs_resop4 *resp)
{
	struct result *res = result_in(resp);

	resp->resop = NFS4_OP_READ_PLUS; /* READ wrote its own number */
	if (res->read.status == NFS4_OK) {
		take_data(res);
		res->offset = op->nfs_argop4_u.opread.offset;
		res->marker = &ours;
	}
	return rc;
}

/*
 * A reply may be shorter than asked for, so a count that READ would have room for is cut by what the
 * segment needs. What cannot be answered at all is refused here: READ would do so when it has found
 * the state already, which it then keeps for ever.
 */
static nfsstat4 fit_into_reply(compound_data_t *data, READ4args *arg)
{
	uint64_t most = atomic_fetch_uint64_t(&op_ctx->ctx_export->MaxRead);
	const channel_attrs4 *channel;
	uint32_t used;

	if (arg->count > most)
		arg->count = most;
	data->resp_size += SEGMENT_BYTES;
	if (data->session == NULL)
		return NFS4_OK;
	channel = &data->session->fore_channel_attrs;
	used = data->resp_size + READ_BYTES;
	if (channel->ca_maxresponsesize < used + BYTES_PER_XDR_UNIT)
		return NFS4ERR_REP_TOO_BIG;
	most = (channel->ca_maxresponsesize - used) & ~(BYTES_PER_XDR_UNIT - 1);
	if (arg->count > most)
		arg->count = most;
	if (data->sa_cachethis && used + RNDUP(arg->count) > channel->ca_maxresponsesize_cached)
		return NFS4ERR_REP_TOO_BIG_TO_CACHE;
	return NFS4_OK;
}

enum nfs_req_result ssc_mended_read_plus(struct nfs_argop4 *op, compound_data_t *data,
					 struct nfs_resop4 *resp)
{
	READ4args *arg = &op->nfs_argop4_u.opread;
	struct result *res = result_in(resp);
	enum nfs_req_result rc;

	memset(res, 0, sizeof(*res));
	resp->resop = NFS4_OP_READ_PLUS;
	/* READ of nothing keeps the state too, and does not say whether the end is reached. */
	res->want_none = arg->count == 0;
	if (res->want_none)
		arg->count = 1;
	res->read.status = fit_into_reply(data, arg);
	if (res->read.status != NFS4_OK)
		return NFS_REQ_ERROR;
	rc = ssc_op_stock(NFS4_OP_READ, op, data, resp);
	if (rc == NFS_REQ_ASYNC_WAIT)
		return rc; /* all of it may be another thread's by now */
	return complete(rc, op, resp);
}

enum nfs_req_result ssc_mended_read_plus_resume(struct nfs_argop4 *op, compound_data_t *data,
						struct nfs_resop4 *resp)
{
	enum nfs_req_result rc = ssc_op_stock_resume(NFS4_OP_READ, op, data, resp);

	return rc == NFS_REQ_ASYNC_WAIT ? rc : complete(rc, op, resp);
}

void ssc_mended_read_plus_free(struct nfs_resop4 *resp)
{
	struct result *res = result_in(resp);

	if (res->marker != &ours)
		ssc_op_stock_free(NFS4_OP_READ_PLUS, resp);
	else if (res->read.status == NFS4_OK && res->data != NULL)
		put_data(res->data);
}

static void reply_sent(struct xdr_uio *uio, u_int flags)
{
	(void)flags;
	if (--uio->uio_references > 0)
		return;
	put_data(uio->uio_u1);
	gsh_free(uio);
}

/* Let the reply refer to the data. */
static bool encode_data(XDR *xdrs, struct data *data)
{
	size_t padded = RNDUP(data->len);
	struct xdr_uio *uio = gsh_calloc(1, sizeof(*uio) + sizeof(uio->uio_vio[0]));

	atomic_fetch_add(&data->refs, 1);
	uio->uio_release = reply_sent;
	uio->uio_u1 = data;
	uio->uio_count = 1;
	uio->uio_vio[0] = (struct xdr_vio){
		.vio_base = (uint8_t *)data->bytes,
		.vio_head = (uint8_t *)data->bytes,
		.vio_tail = (uint8_t *)data->bytes + padded,
		.vio_wrap = (uint8_t *)data->bytes + padded,
		.vio_length = data->len,
		.vio_type = VIO_DATA,
	};
	if (xdr_putbufs(xdrs, uio, UIO_FLAG_NONE))
		return true;
	put_data(data);
	gsh_free(uio);
	return false;
}

bool ssc_mended_read_plus_encode(XDR *xdrs, struct nfs_resop4 *resp)
{
	struct result *res = result_in(resp);
	uint32_t op = resp->resop, status = res->read.status, what = NFS4_CONTENT_DATA;
	uint32_t eof = res->read.READ4res_u.resok4.eof ? 1 : 0;
	uint32_t n = res->data ? 1 : 0;

	/* The status of one that is complete may still be made an error: not kept for a replay. */
	if (res->marker != &ours || status != NFS4_OK)
		return xdr_nfs_resop4(xdrs, resp);
	if (!inline_xdr_u_int32_t(xdrs, &op) || !inline_xdr_u_int32_t(xdrs, &status) ||
	    !inline_xdr_u_int32_t(xdrs, &eof) || !inline_xdr_u_int32_t(xdrs, &n))
		return false;
	if (n == 0)
		return true;
	return inline_xdr_u_int32_t(xdrs, &what) && inline_xdr_u_int64_t(xdrs, &res->offset) &&
	       inline_xdr_u_int32_t(xdrs, &res->data->len) && encode_data(xdrs, res->data);
}
