/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_wire.c - the two XDR cursors.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "nfs3_wire.h"

static size_t padded(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

const uint8_t *nfs3_dec_fixed(struct nfs3_dec *dec, size_t len)
{
	const uint8_t *p = dec->p;

	if (dec->bad || padded(len) > dec->left) {
		dec->bad = true;
		return NULL;
	}
	dec->p += padded(len);
	dec->left -= padded(len);
	return p;
}

uint32_t nfs3_dec_u32(struct nfs3_dec *dec)
{
	const uint8_t *p = nfs3_dec_fixed(dec, 4);
	uint32_t value;

	if (!p)
		return 0;
	memcpy(&value, p, 4);
	return ntohl(value);
}

uint64_t nfs3_dec_u64(struct nfs3_dec *dec)
{
	uint64_t high = nfs3_dec_u32(dec);

	return high << 32 | nfs3_dec_u32(dec);
}

const uint8_t *nfs3_dec_opaque(struct nfs3_dec *dec, size_t max, size_t *len)
{
	const uint8_t *p;

	*len = nfs3_dec_u32(dec);
	if (*len > max)
		dec->bad = true;
	p = nfs3_dec_fixed(dec, *len);
	if (!p)
		*len = 0;
	return p;
}

void nfs3_dec_string(struct nfs3_dec *dec, char *text, size_t size)
{
	size_t len;
	const uint8_t *p = nfs3_dec_opaque(dec, size - 1, &len);

	if (p)
		memcpy(text, p, len);
	text[len] = '\0';
}

static uint8_t *room(struct nfs3_enc *enc, size_t len)
{
	uint8_t *p;

	if (enc->size - enc->len < len) {
		enc->size = (enc->len + len) * 2 + 256;
		enc->buf = realloc(enc->buf, enc->size);
		if (!enc->buf)
			abort();
	}
	p = enc->buf + enc->len;
	enc->len += len;
	return p;
}

void nfs3_enc_u32(struct nfs3_enc *enc, uint32_t value)
{
	value = htonl(value);
	memcpy(room(enc, 4), &value, 4);
}

void nfs3_enc_u64(struct nfs3_enc *enc, uint64_t value)
{
	nfs3_enc_u32(enc, (uint32_t)(value >> 32));
	nfs3_enc_u32(enc, (uint32_t)value);
}

void nfs3_enc_fixed(struct nfs3_enc *enc, const void *data, size_t len)
{
	uint8_t *p = room(enc, padded(len));

	if (len > 0)
		memcpy(p, data, len);
	memset(p + len, 0, padded(len) - len);
}

void nfs3_enc_opaque(struct nfs3_enc *enc, const void *data, size_t len)
{
	nfs3_enc_u32(enc, (uint32_t)len);
	nfs3_enc_fixed(enc, data, len);
}

void nfs3_enc_patch_u32(struct nfs3_enc *enc, size_t at, uint32_t value)
{
	value = htonl(value);
	memcpy(enc->buf + at, &value, 4);
}
