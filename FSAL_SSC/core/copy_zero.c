/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_zero.c - find runs of zeros that are worth a hole.
 *
 * Blocks are aligned where they go, because that is where a hole is to be. Data rarely begins with a
 * zero word, so a block of data costs one cache line. Pure functions.
 */
#include <string.h>

#include "copy_internal.h"

bool ssc_copy_zero_is(const uint8_t *data, size_t len)
{
	static const uint8_t zeros[16];

	if (len <= sizeof(zeros))
		return memcmp(data, zeros, len) == 0;
	/* Each byte equals the one 16 before it, and the first 16 are zero. */
	return memcmp(data, zeros, sizeof(zeros)) == 0 &&
	       memcmp(data, data + sizeof(zeros), len - sizeof(zeros)) == 0;
}

static size_t block_end(size_t i, size_t len, uint64_t at)
{
	size_t end = i + SSC_COPY_BLOCK_BYTES - (size_t)((at + i) % SSC_COPY_BLOCK_BYTES);

	return end < len ? end : len;
}

size_t ssc_copy_zero_run(const uint8_t *data, size_t len, uint64_t at, bool *is_zero)
{
	bool in_zeros = false;
	size_t begin = 0, i, end;

	*is_zero = false;
	for (i = 0; i < len; i = end) {
		end = block_end(i, len, at);
		if (!ssc_copy_zero_is(data + i, end - i)) {
			if (in_zeros && i - begin >= SSC_COPY_HOLE_MIN_BYTES)
				break; /* only at the beginning: others return below */
			in_zeros = false;
			continue;
		}
		if (!in_zeros)
			begin = i;
		in_zeros = true;
		if (begin > 0 && end - begin >= SSC_COPY_HOLE_MIN_BYTES)
			return begin; /* the next call measures it */
	}
	if (!in_zeros || begin > 0)
		return len;
	*is_zero = i >= SSC_COPY_HOLE_MIN_BYTES || (i == len && len >= SSC_COPY_BLOCK_BYTES);
	return *is_zero ? i : len;
}
