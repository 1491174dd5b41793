/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_results.c - results of NFSv4.2 operations, taken apart. See nfs4_call.h.
 *
 * A compound ends with the first operation that fails, so a result that is missing is owed to the
 * compound's status; one that is missing although that is OK, or that is another operation's, breaks
 * the protocol.
 */
#include <string.h>

#include "nfs4_internal.h"

#define STATUS_PROTO ssc_nfs4_local(SSC_E_PROTO)

uint32_t ssc_nfs4_take(struct ssc_nfs4_call *call, uint32_t op)
{
	uint32_t have, status;

	if (ssc_nfs4_local_err(call->outcome))
		return call->outcome;
	if (!ssc_xdr_ok(&call->in))
		return STATUS_PROTO;
	if (call->n_results == 0)
		return call->outcome ? call->outcome : STATUS_PROTO;
	call->n_results--;
	have = ssc_xdr_u32(&call->in);
	status = ssc_xdr_u32(&call->in);
	/* An operation that the server does not know comes back under another number, and fails. */
	if (!ssc_xdr_ok(&call->in) || (have != op && status != SSC_ST4_OP_ILLEGAL) ||
	    status & SSC_NFS4_LOCAL) {
		ssc_xdr_fail(&call->in);
		return STATUS_PROTO;
	}
	return status;
}

uint32_t ssc_nfs4_taken(struct ssc_nfs4_call *call, uint32_t status)
{
	return ssc_nfs4_local_err(status) || ssc_xdr_ok(&call->in) ? status : STATUS_PROTO;
}

static void read_stateid(struct ssc_xdr *x, struct ssc_stateid *stateid)
{
	stateid->seqid = ssc_xdr_u32(x);
	ssc_xdr_copy(x, stateid->other, sizeof(stateid->other));
}

/* change_info4: whether it was atomic, before, after. */
static void skip_change_info(struct ssc_xdr *x)
{
	(void)ssc_xdr_bool(x);
	(void)ssc_xdr_u64(x);
	(void)ssc_xdr_u64(x);
}

uint32_t ssc_nfs4_res(struct ssc_nfs4_call *call, uint32_t op)
{
	return ssc_nfs4_take(call, op);
}

uint32_t ssc_nfs4_res_getfh(struct ssc_nfs4_call *call, struct ssc_fh *fh)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_GETFH);
	uint32_t len;
	const void *p;

	if (status)
		return status;
	p = ssc_xdr_opaque(&call->in, SSC_FH_MAX, &len);
	if (!p || len == 0)
		return STATUS_PROTO;
	fh->len = (uint8_t)len;
	memcpy(fh->data, p, len);
	return SSC_ST4_OK;
}

/* The attributes that were set follow also when it failed. */
uint32_t ssc_nfs4_res_setattr(struct ssc_nfs4_call *call)
{
	const uint32_t n = call->n_results;
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_SETATTR);
	struct ssc_bitmap map;

	if (!ssc_nfs4_local_err(status) && call->n_results < n)
		(void)ssc_nfs4_read_bitmap(&call->in, &map);
	return ssc_nfs4_taken(call, status);
}

static void skip_ace(struct ssc_xdr *x)
{
	uint32_t len;

	(void)ssc_xdr_fixed(x, 12); /* type, flags, mask */
	(void)ssc_xdr_opaque(x, 1024, &len);
}

/* open_delegation4; we ask for none, but a server is free to give one. */
static void skip_delegation(struct ssc_xdr *x, uint32_t type)
{
	struct ssc_stateid stateid;

	switch (type) {
	case 0: /* NONE */
		return;
	case 1: /* READ */
		read_stateid(x, &stateid);
		(void)ssc_xdr_bool(x);
		skip_ace(x);
		return;
	case 2: /* WRITE: a space limit of either kind takes 12 bytes */
		read_stateid(x, &stateid);
		(void)ssc_xdr_bool(x);
		(void)ssc_xdr_fixed(x, 12);
		skip_ace(x);
		return;
	case 3: /* NONE_EXT; contention and resource have a word more */
		type = ssc_xdr_u32(x);
		if (type == 1 || type == 2)
			(void)ssc_xdr_bool(x);
		return;
	default:
		ssc_xdr_fail(x);
	}
}

uint32_t ssc_nfs4_res_open(struct ssc_nfs4_call *call, struct ssc_nfs4_open_res *res)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_OPEN);
	struct ssc_nfs4_open_res got;
	struct ssc_bitmap map;

	if (status)
		return status;
	read_stateid(&call->in, &got.stateid);
	skip_change_info(&call->in);
	got.rflags = ssc_xdr_u32(&call->in);
	(void)ssc_nfs4_read_bitmap(&call->in, &map);
	got.delegation = ssc_xdr_u32(&call->in);
	skip_delegation(&call->in, got.delegation);
	if (ssc_xdr_ok(&call->in))
		*res = got;
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_close(struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_CLOSE);
	struct ssc_stateid stateid;

	if (!status)
		read_stateid(&call->in, &stateid);
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_remove(struct ssc_nfs4_call *call)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_REMOVE);

	if (!status)
		skip_change_info(&call->in);
	return ssc_nfs4_taken(call, status);
}

static void scatter(const struct iovec *iov, int n_iov, const uint8_t *data, size_t len)
{
	for (int i = 0; i < n_iov && len > 0; i++) {
		size_t n = iov[i].iov_len < len ? iov[i].iov_len : len;

		memcpy(iov[i].iov_base, data, n);
		data += n;
		len -= n;
	}
}

uint32_t ssc_nfs4_res_read(struct ssc_nfs4_call *call, struct ssc_nfs4_read_res *res)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_READ);
	const void *data = NULL;
	uint32_t count;
	bool is_eof;

	if (status)
		return status;
	is_eof = ssc_xdr_bool(&call->in);
	if (call->is_placed)
		count = ssc_xdr_u32(&call->in);
	else
		data = ssc_xdr_opaque(&call->in, call->read_max, &count);
	if (count > call->read_max)
		ssc_xdr_fail(&call->in);
	if (!ssc_xdr_ok(&call->in))
		return STATUS_PROTO;
	if (data)
		scatter(call->read_iov, call->n_read_iov, data, count);
	*res = (struct ssc_nfs4_read_res){.is_eof = is_eof, .count = count};
	return SSC_ST4_OK;
}

bool ssc_nfs4_find_place(const struct ssc_nfs4_call *call, const void *results, size_t len,
			 struct ssc_wire_place *place)
{
	uint32_t op, n, skipped;
	struct ssc_xdr x;

	ssc_xdr_init(&x, results, len);
	if (!call->read_iov || ssc_xdr_u32(&x) != SSC_ST4_OK)
		return false;
	(void)ssc_xdr_opaque(&x, 64, &skipped); /* tag */
	n = ssc_xdr_u32(&x);
	for (op = 0; n > 0 && ssc_xdr_ok(&x); n--) {
		op = ssc_xdr_u32(&x);
		if (ssc_xdr_u32(&x) != SSC_ST4_OK)
			return false;
		if (op == SSC_OP4_SEQUENCE)
			(void)ssc_xdr_fixed(&x, SSC_NFS4_SESSION_BYTES + 20);
		else if (op != SSC_OP4_PUTFH)
			break;
	}
	if (op != SSC_OP4_READ || n != 1)
		return false; /* data in the middle has no place */
	(void)ssc_xdr_bool(&x);
	place->count = ssc_xdr_u32(&x);
	if (!ssc_xdr_ok(&x) || place->count > call->read_max)
		return false;
	place->iov = call->read_iov;
	place->n_iov = call->n_read_iov;
	place->head = (size_t)(x.at - (const uint8_t *)results);
	return true;
}

static void read_segment(struct ssc_xdr *x, struct ssc_nfs4_segment *s)
{
	const uint32_t type = ssc_xdr_u32(x); /* NFS4_CONTENT_DATA, NFS4_CONTENT_HOLE */
	uint32_t len;

	s->is_hole = type == 1;
	s->offset = ssc_xdr_u64(x);
	s->data = NULL;
	if (s->is_hole) {
		s->len = ssc_xdr_u64(x);
		return;
	}
	s->data = ssc_xdr_opaque(x, SSC_NFS4_IO_MAX, &len);
	s->len = len;
	if (type > 1)
		ssc_xdr_fail(x);
}

uint32_t ssc_nfs4_res_read_plus(struct ssc_nfs4_call *call, struct ssc_nfs4_read_plus_res *res)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_READ_PLUS);

	if (status)
		return status;
	res->is_eof = ssc_xdr_bool(&call->in);
	res->n = 0;
	for (uint32_t n = ssc_xdr_u32(&call->in); n > 0 && ssc_xdr_ok(&call->in); n--) {
		struct ssc_nfs4_segment s;

		read_segment(&call->in, &s);
		if (res->n < SSC_SEGMENTS_MAX)
			res->segment[res->n++] = s;
		else
			res->is_eof = false;
	}
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_seek(struct ssc_nfs4_call *call, struct ssc_nfs4_seek_res *res)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_SEEK);

	if (status)
		return status;
	res->is_eof = ssc_xdr_bool(&call->in);
	res->offset = ssc_xdr_u64(&call->in);
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_write(struct ssc_nfs4_call *call, struct ssc_write_response *res)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_WRITE);

	if (status)
		return status;
	memset(res, 0, sizeof(*res));
	res->count = ssc_xdr_u32(&call->in);
	res->committed = ssc_xdr_u32(&call->in);
	ssc_xdr_copy(&call->in, res->verf, sizeof(res->verf));
	if (res->committed > 2 || res->count > call->write_bytes)
		ssc_xdr_fail(&call->in);
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_commit(struct ssc_nfs4_call *call, uint8_t verf[SSC_VERIFIER_BYTES])
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_COMMIT);

	if (!status)
		ssc_xdr_copy(&call->in, verf, SSC_VERIFIER_BYTES);
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_io_advise(struct ssc_nfs4_call *call, uint32_t *hints)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_IO_ADVISE);
	struct ssc_bitmap map;

	if (status)
		return status;
	if (ssc_nfs4_read_bitmap(&call->in, &map))
		*hints = map.word[0];
	return ssc_nfs4_taken(call, status);
}

/*
 * The COPY family has a codec of its own, whose results begin with their status: step back to it.
 * It decodes the body where there is one. @n: results that there were before this one.
 */
static bool begin_decode(struct ssc_nfs4_call *call, uint32_t status, uint32_t n,
			 struct ssc_xio_mem *mem)
{
	const uint8_t *at = call->in.at - 4;

	if (ssc_nfs4_local_err(status) || call->n_results == n)
		return false;
	ssc_xio_decode(mem, at, (size_t)(call->in.end - at));
	return true;
}

static uint32_t end_decode(struct ssc_nfs4_call *call, uint32_t status,
			   const struct ssc_xio_mem *mem, bool ok)
{
	if (ok)
		call->in.at = mem->at;
	else
		ssc_xdr_fail(&call->in);
	return ssc_nfs4_taken(call, status);
}

uint32_t ssc_nfs4_res_copy(struct ssc_nfs4_call *call, struct ssc_copy_res *res)
{
	const uint32_t n = call->n_results;
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_COPY);
	struct ssc_xio_mem mem;

	if (!begin_decode(call, status, n, &mem))
		return status;
	return end_decode(call, status, &mem, ssc_xio_copy_res(&mem.io, res));
}

uint32_t ssc_nfs4_res_copy_notify(struct ssc_nfs4_call *call, struct ssc_copy_notify_res *res)
{
	const uint32_t n = call->n_results;
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_COPY_NOTIFY);
	struct ssc_xio_mem mem;

	if (!begin_decode(call, status, n, &mem))
		return status;
	return end_decode(call, status, &mem, ssc_xio_copy_notify_res(&mem.io, res));
}

uint32_t ssc_nfs4_res_offload_status(struct ssc_nfs4_call *call, struct ssc_offload_status_res *res)
{
	const uint32_t n = call->n_results;
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_OFFLOAD_STATUS);
	struct ssc_xio_mem mem;

	if (!begin_decode(call, status, n, &mem))
		return status;
	return end_decode(call, status, &mem, ssc_xio_offload_status_res(&mem.io, res));
}
