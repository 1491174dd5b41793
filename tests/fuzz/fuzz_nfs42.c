/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fuzz_nfs42.c - arguments and results of the COPY family from a peer.
 *
 * Input: one byte for the structure, then its bytes. What was decoded is encoded, decoded and encoded
 * again: both encodings must be the same, and no longer than what came (a long list of servers is
 * cut, padding is cleared). Names of servers are not kept, so a list with one cannot be encoded.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ssc/nfs42.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union any {
	struct ssc_copy_args copy_args;
	struct ssc_copy_res copy_res;
	struct ssc_copy_notify_args notify_args;
	struct ssc_copy_notify_res notify_res;
	struct ssc_offload_args offload_args;
	struct ssc_offload_cancel_res cancel_res;
	struct ssc_offload_status_res status_res;
	struct ssc_clone_args clone_args;
	struct ssc_clone_res clone_res;
	struct ssc_cb_offload_args cb_args;
};

static bool codec(struct ssc_xio *io, unsigned int which, union any *value)
{
	switch (which % 10) {
	case 0:
		return ssc_xio_copy_args(io, &value->copy_args);
	case 1:
		return ssc_xio_copy_res(io, &value->copy_res);
	case 2:
		return ssc_xio_copy_notify_args(io, &value->notify_args);
	case 3:
		return ssc_xio_copy_notify_res(io, &value->notify_res);
	case 4:
		return ssc_xio_offload_args(io, &value->offload_args);
	case 5:
		return ssc_xio_offload_cancel_res(io, &value->cancel_res);
	case 6:
		return ssc_xio_offload_status_res(io, &value->status_res);
	case 7:
		return ssc_xio_clone_args(io, &value->clone_args);
	case 8:
		return ssc_xio_clone_res(io, &value->clone_res);
	}
	return ssc_xio_cb_offload_args(io, &value->cb_args);
}

static bool has_name(const struct ssc_netlocs *locs)
{
	for (uint32_t i = 0; i < locs->n; i++) {
		if (locs->loc[i].type != SSC_NL4_NETADDR)
			return true;
	}
	return false;
}

static bool can_encode(unsigned int which, const union any *value)
{
	switch (which % 10) {
	case 0:
		return !has_name(&value->copy_args.sources);
	case 2:
		return value->notify_args.destination.type == SSC_NL4_NETADDR;
	case 3:
		return value->notify_res.status || !has_name(&value->notify_res.sources);
	}
	return true;
}

/* In a block of its own of @room bytes; the caller frees it. */
static uint8_t *encode(unsigned int which, union any *value, size_t room, size_t *len)
{
	uint8_t *block = malloc(room + 1);
	struct ssc_xio_mem mem;

	ssc_xio_encode(&mem, block, room);
	if (!codec(&mem.io, which, value)) {
		assert(!can_encode(which, value));
		free(block);
		return NULL;
	}
	*len = (size_t)(mem.at - block);
	return block;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union any value, again;
	struct ssc_xio_mem mem;
	uint8_t *first, *second;
	size_t len, second_len;
	bool is_ok;

	if (size < 1)
		return 0;
	memset(&value, 0xee, sizeof(value)); /* decoding relies on nothing in it */
	memset(&again, 0x11, sizeof(again));
	ssc_xio_decode(&mem, data + 1, size - 1);
	is_ok = codec(&mem.io, data[0], &value);
	assert(mem.at <= mem.end);
	if (!is_ok)
		return 0;
	first = encode(data[0], &value, (size_t)(mem.at - (data + 1)), &len);
	if (!first)
		return 0;
	ssc_xio_decode(&mem, first, len);
	is_ok = codec(&mem.io, data[0], &again);
	assert(is_ok && mem.at == mem.end);
	second = encode(data[0], &again, len, &second_len);
	assert(second && second_len == len && memcmp(first, second, len) == 0);
	free(first);
	free(second);
	return 0;
}
