/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * xdr.c - see xdr.h.
 */
#include <string.h>

#include "ssc/xdr.h"

void ssc_xdr_init(struct ssc_xdr *x, const void *bytes, size_t len)
{
	x->at = bytes;
	x->end = x->at + len;
	x->is_bad = false;
}

void ssc_xdr_fail(struct ssc_xdr *x)
{
	x->is_bad = true;
	x->at = x->end;
}

const void *ssc_xdr_fixed(struct ssc_xdr *x, size_t len)
{
	const size_t left = (size_t)(x->end - x->at);
	const size_t padding = -len & 3;
	const void *p = x->at;

	if (x->is_bad || len > left || padding > left - len) {
		ssc_xdr_fail(x);
		return NULL;
	}
	x->at += len + padding;
	return p;
}

uint32_t ssc_xdr_u32(struct ssc_xdr *x)
{
	const uint8_t *p = ssc_xdr_fixed(x, 4);

	if (!p)
		return 0;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t ssc_xdr_u64(struct ssc_xdr *x)
{
	uint64_t high = ssc_xdr_u32(x);
	uint32_t low = ssc_xdr_u32(x);

	return x->is_bad ? 0 : high << 32 | low;
}

bool ssc_xdr_bool(struct ssc_xdr *x)
{
	uint32_t v = ssc_xdr_u32(x);

	if (v > 1)
		ssc_xdr_fail(x);
	return v == 1;
}

const void *ssc_xdr_opaque(struct ssc_xdr *x, size_t max, uint32_t *len)
{
	uint32_t n = ssc_xdr_u32(x);
	const void *p = NULL;

	if (n > max)
		ssc_xdr_fail(x);
	else
		p = ssc_xdr_fixed(x, n);
	*len = p ? n : 0;
	return p;
}

void ssc_xdr_copy(struct ssc_xdr *x, void *to, size_t len)
{
	const void *p = ssc_xdr_fixed(x, len);

	if (p)
		memcpy(to, p, len);
	else
		memset(to, 0, len);
}
