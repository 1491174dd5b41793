/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42_unit.h - messages of the COPY family, put down by hand, and both ways through one codec.
 *
 * Tags in the tests are sections of RFC 7862: 15.2 COPY, 15.3 COPY_NOTIFY, 15.8 OFFLOAD_CANCEL, 15.9
 * OFFLOAD_STATUS, 15.13 CLONE, 16.1 CB_OFFLOAD.
 */
#ifndef SSC_NFS42_UNIT_H
#define SSC_NFS42_UNIT_H

#include <string.h>

#include "ssc/nfs42.h"
#include "unit.h"

#define ROOM 8192

typedef bool (*codec)(struct ssc_xio *io, void *value);

struct message {
	uint8_t bytes[ROOM];
	size_t len;
};

/* Bytes as hexadecimal digits; anything else is skipped. */
static inline struct message hex(const char *digits)
{
	struct message m = {.len = 0};
	unsigned int n = 0, byte = 0;

	for (; *digits; digits++) {
		const char *at = strchr("0123456789abcdef", *digits);

		if (!at)
			continue;
		byte = byte << 4 | (unsigned int)(at - "0123456789abcdef");
		if (++n % 2 == 0)
			m.bytes[m.len++] = (uint8_t)byte;
	}
	return m;
}

static inline void word(struct message *m, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		m->bytes[m->len++] = (uint8_t)(value >> shift);
}

static inline void text(struct message *m, const char *s, size_t len)
{
	word(m, (uint32_t)len);
	memcpy(m->bytes + m->len, s, len);
	m->len += len;
	while (m->len % 4 != 0)
		m->bytes[m->len++] = 0;
}

static inline void netaddr(struct message *m, const char *netid, const char *uaddr)
{
	word(m, SSC_NL4_NETADDR);
	text(m, netid, strlen(netid));
	text(m, uaddr, strlen(uaddr));
}

static inline void set_word(struct message *m, size_t at, uint32_t value)
{
	struct message w = {.len = 0};

	word(&w, value);
	memcpy(m->bytes + at, w.bytes, 4);
}

/* ---- every structure by one name ---- */

#define CODECS(X)                                            \
	X(copy_args, struct ssc_copy_args)                   \
	X(copy_res, struct ssc_copy_res)                     \
	X(copy_notify_args, struct ssc_copy_notify_args)     \
	X(copy_notify_res, struct ssc_copy_notify_res)       \
	X(offload_args, struct ssc_offload_args)             \
	X(offload_cancel_res, struct ssc_offload_cancel_res) \
	X(offload_status_res, struct ssc_offload_status_res) \
	X(clone_args, struct ssc_clone_args)                 \
	X(clone_res, struct ssc_clone_res)                   \
	X(cb_offload_args, struct ssc_cb_offload_args)

#define WRAP(name, type)                                         \
	static inline bool name(struct ssc_xio *io, void *value) \
	{                                                        \
		return ssc_xio_##name(io, (type *)value);        \
	}
CODECS(WRAP)

union any {
#define MEMBER(name, type) type name;
	CODECS(MEMBER)
};

/* Decodes from a block of its own of exactly that size, so that a byte too far is seen. */
static inline bool decode(codec codec, const struct message *m, size_t len, union any *value)
{
	struct ssc_xio_mem mem;
	uint8_t *block = malloc(len ? len : 1);
	bool is_ok;

	memcpy(block, m->bytes, len);
	memset(value, 0xee, sizeof(*value));
	ssc_xio_decode(&mem, block, len);
	is_ok = codec(&mem.io, value) && mem.at == mem.end;
	free(block);
	return is_ok;
}

static inline bool encode(codec codec, union any *value, struct message *m, size_t room)
{
	struct ssc_xio_mem mem;
	uint8_t *block = malloc(room ? room : 1);
	bool is_ok;

	memset(block, 0xdd, room);
	ssc_xio_encode(&mem, block, room);
	is_ok = codec(&mem.io, value);
	m->len = (size_t)(mem.at - block);
	ck_assert_uint_le(m->len, room);
	memcpy(m->bytes, block, m->len);
	free(block);
	return is_ok;
}

/* @golden says the same as what it decodes to, and every cut or smaller room is refused. */
static inline void check_both_ways(codec codec, const struct message *golden, union any *value)
{
	union any cut;
	struct message again;

	ck_assert(decode(codec, golden, golden->len, value));
	ck_assert(encode(codec, value, &again, ROOM));
	ck_assert_uint_eq(again.len, golden->len);
	ck_assert_mem_eq(again.bytes, golden->bytes, golden->len);
	ck_assert(encode(codec, value, &again, golden->len));
	for (size_t len = 0; len < golden->len; len++) {
		ck_assert(!decode(codec, golden, len, &cut));
		ck_assert(!encode(codec, value, &again, len));
	}
}

#define SRC_STATEID "00000007 6162636465666768696a6b6c"
#define DST_STATEID "fffffffe 4142434445464748494a4b4c"

#endif /* SSC_NFS42_UNIT_H */
