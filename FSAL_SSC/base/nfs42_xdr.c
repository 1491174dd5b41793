/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42_xdr.c - see nfs42.h. One procedure per structure, for both ways: what is said once cannot
 * differ between them. Members follow RFC 7863 line by line.
 *
 * Decoding   into a structure that need not be cleared: each procedure sets all members that the
 *            wire has, and clears those of arms that it does not have.
 */
#include <arpa/inet.h>
#include <string.h>

#include "ssc/nfs42.h"

/* RFC 8881 3.2: stable_how4 ends with FILE_SYNC4. */
#define STABLE_HOW_MAX 2

/* ---- memory ---- */

static struct ssc_xio_mem *mem_of(struct ssc_xio *io)
{
	return (struct ssc_xio_mem *)io;
}

static size_t left_in(const struct ssc_xio_mem *mem)
{
	return (size_t)(mem->end - mem->at);
}

static bool word_from_mem(struct ssc_xio *io, uint32_t *word)
{
	struct ssc_xio_mem *mem = mem_of(io);

	if (left_in(mem) < sizeof(*word))
		return false;
	memcpy(word, mem->at, sizeof(*word));
	*word = ntohl(*word);
	mem->at += sizeof(*word);
	return true;
}

static bool word_to_mem(struct ssc_xio *io, uint32_t *word)
{
	struct ssc_xio_mem *mem = mem_of(io);
	const uint32_t wire = htonl(*word);

	if (left_in(mem) < sizeof(wire))
		return false;
	memcpy(mem->at, &wire, sizeof(wire));
	mem->at += sizeof(wire);
	return true;
}

/* RFC 4506 4.9: opaques are filled up to whole words. */
static size_t padding_of(uint32_t len)
{
	return -(size_t)len % 4;
}

static bool bytes_from_mem(struct ssc_xio *io, void *bytes, uint32_t len)
{
	struct ssc_xio_mem *mem = mem_of(io);
	const size_t padding = padding_of(len);

	if (left_in(mem) < len || left_in(mem) - len < padding)
		return false;
	memcpy(bytes, mem->at, len);
	mem->at += len + padding;
	return true;
}

static bool bytes_to_mem(struct ssc_xio *io, void *bytes, uint32_t len)
{
	struct ssc_xio_mem *mem = mem_of(io);
	const size_t padding = padding_of(len);

	if (left_in(mem) < len || left_in(mem) - len < padding)
		return false;
	memcpy(mem->at, bytes, len);
	memset(mem->at + len, 0, padding);
	mem->at += len + padding;
	return true;
}

void ssc_xio_decode(struct ssc_xio_mem *mem, const void *bytes, size_t len)
{
	mem->io = (struct ssc_xio){true, word_from_mem, bytes_from_mem};
	mem->at = (uint8_t *)(uintptr_t)bytes; /* only read from, see the procedures above */
	mem->end = mem->at + len;
}

void ssc_xio_encode(struct ssc_xio_mem *mem, void *bytes, size_t room)
{
	mem->io = (struct ssc_xio){false, word_to_mem, bytes_to_mem};
	mem->at = bytes;
	mem->end = mem->at + room;
}

/* ---- pieces ---- */

bool ssc_xio_u32(struct ssc_xio *io, uint32_t *value)
{
	return io->word(io, value);
}

bool ssc_xio_u64(struct ssc_xio *io, uint64_t *value)
{
	uint32_t high = (uint32_t)(*value >> 32), low = (uint32_t)*value;

	if (!io->word(io, &high) || !io->word(io, &low))
		return false;
	*value = (uint64_t)high << 32 | low;
	return true;
}

bool ssc_xio_bool(struct ssc_xio *io, bool *value)
{
	uint32_t word = io->is_decoding ? 0 : *value;

	if (!io->word(io, &word) || word > 1)
		return false;
	*value = word;
	return true;
}

bool ssc_xio_opaque(struct ssc_xio *io, void *bytes, uint32_t *len, uint32_t max)
{
	return io->word(io, len) && *len <= max && io->bytes(io, bytes, *len);
}

bool ssc_xio_stateid(struct ssc_xio *io, struct ssc_stateid *stateid)
{
	return io->word(io, &stateid->seqid) &&
	       io->bytes(io, stateid->other, sizeof(stateid->other));
}

/* Text in a buffer of @max bytes and a NUL. A NUL within would cut it, so it is refused. */
static bool xio_text(struct ssc_xio *io, char *text, uint32_t max)
{
	uint32_t len = io->is_decoding ? 0 : (uint32_t)strnlen(text, (size_t)max + 1);

	if (!ssc_xio_opaque(io, text, &len, max))
		return false;
	if (!io->is_decoding)
		return true;
	text[len] = '\0';
	return memchr(text, '\0', len) == NULL;
}

static bool skip_name(struct ssc_xio *io)
{
	char name[SSC_NETLOC_NAME_MAX];
	uint32_t len;

	return io->is_decoding && ssc_xio_opaque(io, name, &len, sizeof(name));
}

static bool xio_netloc(struct ssc_xio *io, struct ssc_netloc *loc)
{
	uint32_t type = io->is_decoding ? 0 : (uint32_t)loc->type;

	if (!io->word(io, &type))
		return false;
	if (io->is_decoding) {
		memset(loc, 0, sizeof(*loc));
		loc->type = (enum ssc_netloc_type)type;
	}
	switch (type) {
	case SSC_NL4_NAME:
	case SSC_NL4_URL:
		return skip_name(io);
	case SSC_NL4_NETADDR:
		return xio_text(io, loc->netid, SSC_NETID_MAX) &&
		       xio_text(io, loc->uaddr, SSC_UADDR_MAX);
	}
	return false;
}

static bool xio_netlocs(struct ssc_xio *io, struct ssc_netlocs *locs)
{
	struct ssc_netloc left_out;
	uint32_t n = io->is_decoding ? 0 : locs->n;

	if (!io->is_decoding && n > SSC_NETLOCS_MAX)
		return false;
	if (!io->word(io, &n) || n > SSC_NETLOCS_READ_MAX)
		return false;
	if (io->is_decoding) {
		locs->n_all = n;
		locs->n = n < SSC_NETLOCS_MAX ? n : SSC_NETLOCS_MAX;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!xio_netloc(io, i < SSC_NETLOCS_MAX ? &locs->loc[i] : &left_out))
			return false;
	}
	return true;
}

/* What is either there once or not: an array of at most one. */
static bool xio_is_there(struct ssc_xio *io, bool *is_there)
{
	return ssc_xio_bool(io, is_there);
}

static bool xio_write_response(struct ssc_xio *io, struct ssc_write_response *response)
{
	if (!xio_is_there(io, &response->has_callback_id))
		return false;
	if (response->has_callback_id && !ssc_xio_stateid(io, &response->callback_id))
		return false;
	return ssc_xio_u64(io, &response->count) && io->word(io, &response->committed) &&
	       response->committed <= STABLE_HOW_MAX &&
	       io->bytes(io, response->verf, sizeof(response->verf));
}

static bool xio_requirements(struct ssc_xio *io, struct ssc_copy_res *res)
{
	return ssc_xio_bool(io, &res->consecutive) && ssc_xio_bool(io, &res->synchronous);
}

/* ---- COPY ---- */

bool ssc_xio_copy_args(struct ssc_xio *io, struct ssc_copy_args *args)
{
	return ssc_xio_stateid(io, &args->src_stateid) && ssc_xio_stateid(io, &args->dst_stateid) &&
	       ssc_xio_u64(io, &args->src_offset) && ssc_xio_u64(io, &args->dst_offset) &&
	       ssc_xio_u64(io, &args->count) && ssc_xio_bool(io, &args->consecutive) &&
	       ssc_xio_bool(io, &args->synchronous) && xio_netlocs(io, &args->sources);
}

bool ssc_xio_copy_res(struct ssc_xio *io, struct ssc_copy_res *res)
{
	if (io->is_decoding)
		memset(res, 0, sizeof(*res));
	if (!io->word(io, &res->status))
		return false;
	if (res->status == SSC_NFS4_OK)
		return xio_write_response(io, &res->response) && xio_requirements(io, res);
	if (res->status == SSC_NFS4ERR_OFFLOAD_NO_REQS)
		return xio_requirements(io, res);
	return true;
}

/* ---- COPY_NOTIFY ---- */

bool ssc_xio_copy_notify_args(struct ssc_xio *io, struct ssc_copy_notify_args *args)
{
	return ssc_xio_stateid(io, &args->src_stateid) && xio_netloc(io, &args->destination);
}

bool ssc_xio_copy_notify_res(struct ssc_xio *io, struct ssc_copy_notify_res *res)
{
	uint64_t seconds;

	if (io->is_decoding)
		memset(res, 0, sizeof(*res));
	if (!io->word(io, &res->status))
		return false;
	if (res->status != SSC_NFS4_OK)
		return true;
	seconds = (uint64_t)res->lease_s;
	if (!ssc_xio_u64(io, &seconds) || !io->word(io, &res->lease_ns))
		return false;
	res->lease_s = (int64_t)seconds;
	return ssc_xio_stateid(io, &res->stateid) && xio_netlocs(io, &res->sources);
}

/* ---- OFFLOAD_CANCEL, OFFLOAD_STATUS ---- */

bool ssc_xio_offload_args(struct ssc_xio *io, struct ssc_offload_args *args)
{
	return ssc_xio_stateid(io, &args->stateid);
}

bool ssc_xio_offload_cancel_res(struct ssc_xio *io, struct ssc_offload_cancel_res *res)
{
	return io->word(io, &res->status);
}

bool ssc_xio_offload_status_res(struct ssc_xio *io, struct ssc_offload_status_res *res)
{
	if (io->is_decoding)
		memset(res, 0, sizeof(*res));
	if (!io->word(io, &res->status))
		return false;
	if (res->status != SSC_NFS4_OK)
		return true;
	return ssc_xio_u64(io, &res->count) && xio_is_there(io, &res->is_complete) &&
	       (!res->is_complete || io->word(io, &res->complete));
}

/* ---- CLONE ---- */

bool ssc_xio_clone_args(struct ssc_xio *io, struct ssc_clone_args *args)
{
	return ssc_xio_stateid(io, &args->src_stateid) && ssc_xio_stateid(io, &args->dst_stateid) &&
	       ssc_xio_u64(io, &args->src_offset) && ssc_xio_u64(io, &args->dst_offset) &&
	       ssc_xio_u64(io, &args->count);
}

bool ssc_xio_clone_res(struct ssc_xio *io, struct ssc_clone_res *res)
{
	return io->word(io, &res->status);
}

/* ---- CB_OFFLOAD ---- */

bool ssc_xio_cb_offload_args(struct ssc_xio *io, struct ssc_cb_offload_args *args)
{
	uint32_t len;

	if (io->is_decoding)
		memset(args, 0, sizeof(*args));
	len = args->fh.len;
	if (!ssc_xio_opaque(io, args->fh.data, &len, sizeof(args->fh.data)))
		return false;
	args->fh.len = (uint8_t)len;
	if (!ssc_xio_stateid(io, &args->stateid) || !io->word(io, &args->status))
		return false;
	if (args->status == SSC_NFS4_OK)
		return xio_write_response(io, &args->response);
	return ssc_xio_u64(io, &args->count);
}
