/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_key.h - by what servers are told apart: address, port, protocol version, connection keys.
 *
 * Object     struct ssc_source_key: a value without padding, compared and hashed as bytes.
 * Addresses  IPv4, and IPv6 that holds an IPv4 address (::ffff:a.b.c.d), are one and the same. The scope
 *            counts for link-local addresses only, the flow label never.
 * Threads    any; nothing is shared.
 * Source     RFC 4291 2.5.5.2 (IPv4-mapped), 2.5.6 (link-local).
 */
#ifndef SSC_SOURCE_KEY_H
#define SSC_SOURCE_KEY_H

#include "ssc/base.h"

struct sockaddr;

enum ssc_source_version { SSC_SOURCE_V3 = 3, SSC_SOURCE_V4_2 = 42 };

struct ssc_source_key {
	uint8_t addr[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint64_t conn;    /* of the connection keys; those who disagree on them share nothing */
	uint32_t scope;   /* of a link-local address, else 0 */
	uint16_t port;    /* host's byte order */
	uint8_t version;  /* enum ssc_source_version */
	uint8_t zero;
};

/* "[", address, "%", scope, "]:", port, " v4.2", NUL. */
#define SSC_SOURCE_KEY_STR_MAX 80

/**
 * @brief The key of the server at @addr of @len bytes. @conn: any number that is equal for those whose
 *        connection keys are equal, such as a hash of them.
 *
 * Errors: SSC_E_INVAL: neither IPv4 nor IPv6, too short, port 0, or the address that means "any".
 */
enum ssc_err ssc_source_key_init(struct ssc_source_key *key, const struct sockaddr *addr,
				 size_t len, enum ssc_source_version version,
				 uint64_t conn) SSC_NONNULL SSC_MUST_CHECK;

bool ssc_source_key_equal(const struct ssc_source_key *a,
			  const struct ssc_source_key *b) SSC_NONNULL;

/** @brief 64 bits that cannot be foreseen without @secret. */
uint64_t ssc_source_key_hash(const struct ssc_source_key *key, uint64_t secret) SSC_NONNULL;

/** @brief For people: "192.0.2.7:2049 v4.2", "[2001:db8::7]:2049 v3". @return @text. */
const char *ssc_source_key_str(const struct ssc_source_key *key,
			       char text[SSC_SOURCE_KEY_STR_MAX]) SSC_NONNULL;

#endif /* SSC_SOURCE_KEY_H */
