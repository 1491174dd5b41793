/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * xdr.h - a checked cursor over bytes from the wire: the only code that takes them apart.
 *
 * A read past the end, or a length over its bound, makes the cursor bad for good: it then yields
 * zeros and nothing else is read, so a decoder asks once at its end. Nothing is allocated or copied,
 * except where a function says so; pointers given out lie in the bytes of the cursor.
 * Threads: any, one at a time per cursor. Source: RFC 4506 (XDR).
 */
#ifndef SSC_XDR_H
#define SSC_XDR_H

#include "ssc/base.h"

struct ssc_xdr {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

void ssc_xdr_init(struct ssc_xdr *x, const void *bytes, size_t len) SSC_NONNULL;

/** @brief Whether all that was read was there and in range. Bytes may be left. */
static inline bool ssc_xdr_ok(const struct ssc_xdr *x)
{
	return !x->is_bad;
}

uint32_t ssc_xdr_u32(struct ssc_xdr *x) SSC_NONNULL;
uint64_t ssc_xdr_u64(struct ssc_xdr *x) SSC_NONNULL;

/** @brief RFC 4506 4.4: 0 or 1; anything else is bad. */
bool ssc_xdr_bool(struct ssc_xdr *x) SSC_NONNULL;

/** @brief @len bytes and their padding; NULL when they are not there. Length 0 is not NULL. */
const void *ssc_xdr_fixed(struct ssc_xdr *x, size_t len) SSC_NONNULL;

/** @brief A counted opaque of at most @max bytes; NULL (and *len 0) when it is longer or cut. */
const void *ssc_xdr_opaque(struct ssc_xdr *x, size_t max, uint32_t *len) SSC_NONNULL;

/** @brief Copy @len fixed bytes to @to; zeros when they are not there. */
void ssc_xdr_copy(struct ssc_xdr *x, void *to, size_t len) SSC_NONNULL;

/** @brief What was read is out of range. */
void ssc_xdr_fail(struct ssc_xdr *x) SSC_NONNULL;

#endif /* SSC_XDR_H */
