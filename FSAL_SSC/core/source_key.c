/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_key.c - the one form of a server's address, so that equal servers have equal bytes.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "ssc/source_key.h"

_Static_assert(sizeof(struct ssc_source_key) == 32, "keys are compared as bytes: no padding");

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_ipv4(const uint8_t *addr)
{
	return memcmp(addr, mapped, sizeof(mapped)) == 0;
}

static bool is_any(const uint8_t *addr)
{
	static const uint8_t any[16];

	return memcmp(addr, any, 16) == 0 || (is_ipv4(addr) && memcmp(addr + 12, any, 4) == 0);
}

enum ssc_err ssc_source_key_init(struct ssc_source_key *key, const struct sockaddr *addr,
				 size_t len, enum ssc_source_version version, uint64_t conn)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	/* The caller's address need not be aligned for more than its family. */
	memset(key, 0, sizeof(*key));
	if (len >= sizeof(in) && addr->sa_family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		memcpy(key->addr, mapped, sizeof(mapped));
		memcpy(key->addr + 12, &in.sin_addr, 4);
		key->port = ntohs(in.sin_port);
	} else if (len >= sizeof(in6) && addr->sa_family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		memcpy(key->addr, &in6.sin6_addr, 16);
		key->port = ntohs(in6.sin6_port);
		if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
			key->scope = in6.sin6_scope_id;
	} else {
		return SSC_E_INVAL;
	}
	key->version = (uint8_t)version;
	key->conn = conn;
	return key->port == 0 || is_any(key->addr) ? SSC_E_INVAL : SSC_OK;
}

bool ssc_source_key_equal(const struct ssc_source_key *a, const struct ssc_source_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

uint64_t ssc_source_key_hash(const struct ssc_source_key *key, uint64_t secret)
{
	uint64_t words[sizeof(*key) / 8], hash = secret;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = ssc_base_mix(hash ^ words[i]);
	return hash;
}

static const char *version_str(const struct ssc_source_key *key)
{
	switch ((enum ssc_source_version)key->version) {
	case SSC_SOURCE_V3:
		return "v3";
	case SSC_SOURCE_V4_2:
		return "v4.2";
	}
	return "v?";
}

const char *ssc_source_key_str(const struct ssc_source_key *key, char text[SSC_SOURCE_KEY_STR_MAX])
{
	char addr[INET6_ADDRSTRLEN], scope[16] = "";

	if (is_ipv4(key->addr)) {
		inet_ntop(AF_INET, key->addr + 12, addr, sizeof(addr));
		snprintf(text, SSC_SOURCE_KEY_STR_MAX, "%s:%u %s", addr, key->port,
			 version_str(key));
		return text;
	}
	inet_ntop(AF_INET6, key->addr, addr, sizeof(addr));
	if (key->scope != 0)
		snprintf(scope, sizeof(scope), "%%%u", key->scope);
	snprintf(text, SSC_SOURCE_KEY_STR_MAX, "[%s%s]:%u %s", addr, scope, key->port,
		 version_str(key));
	return text;
}
