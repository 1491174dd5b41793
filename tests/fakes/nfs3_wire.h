/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_wire.h - XDR (RFC 4506) for the scripted NFS server: one cursor to read, one to write.
 *
 * A reader that runs past its end, or meets a length over the bound given, turns bad and gives
 * zeros from then on; look at bad once, at the end. A writer grows as needed.
 */
#ifndef SSC_NFS3_WIRE_H
#define SSC_NFS3_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nfs3_dec {
	const uint8_t *p;
	size_t left;
	bool bad;
};

struct nfs3_enc {
	uint8_t *buf; /* owned, free() */
	size_t len;
	size_t size;
};

uint32_t nfs3_dec_u32(struct nfs3_dec *dec);
uint64_t nfs3_dec_u64(struct nfs3_dec *dec);

/** @brief @len bytes and their padding, in place. NULL when there are not so many. */
const uint8_t *nfs3_dec_fixed(struct nfs3_dec *dec, size_t len);

/** @brief A length of at most @max and its bytes, in place. */
const uint8_t *nfs3_dec_opaque(struct nfs3_dec *dec, size_t max, size_t *len);

/** @brief The same, copied with a NUL behind it; @size is that of @text. */
void nfs3_dec_string(struct nfs3_dec *dec, char *text, size_t size);

void nfs3_enc_u32(struct nfs3_enc *enc, uint32_t value);
void nfs3_enc_u64(struct nfs3_enc *enc, uint64_t value);

/** @brief Bytes and their padding, without a length. */
void nfs3_enc_fixed(struct nfs3_enc *enc, const void *data, size_t len);

/** @brief Length, bytes, padding. */
void nfs3_enc_opaque(struct nfs3_enc *enc, const void *data, size_t len);

/** @brief Overwrite four bytes at @at. */
void nfs3_enc_patch_u32(struct nfs3_enc *enc, size_t at, uint32_t value);

#endif /* SSC_NFS3_WIRE_H */
