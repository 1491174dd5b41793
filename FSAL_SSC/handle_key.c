/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * handle_key.c - makes and checks the bytes described in handle_key.h. Needs neither Ganesha nor
 * libnfs. Threads: any.
 */
#include <ctype.h>
#include <string.h>

#include "handle_key.h"

static void put_head(uint32_t upstream_id, enum ssc_key_form form, uint8_t *data)
{
	uint32_t head = upstream_id << 2 | (uint32_t)form;

	for (int i = 0; i < SSC_KEY_HEAD_BYTES; i++)
		data[i] = (uint8_t)(head >> (24 - 8 * i));
}

static uint32_t head_of(const uint8_t *data)
{
	uint32_t head = 0;

	for (int i = 0; i < SSC_KEY_HEAD_BYTES; i++)
		head = head << 8 | data[i];
	return head;
}

static void put_hash(uint64_t hash, uint8_t *data)
{
	for (int i = 0; i < 8; i++)
		data[i] = (uint8_t)(hash >> (56 - 8 * i));
}

void ssc_key_make_object(uint32_t upstream_id, const struct ssc_fh *fh, struct ssc_key *key)
{
	put_head(upstream_id, SSC_KEY_OBJECT, key->data);
	memcpy(key->data + SSC_KEY_HEAD_BYTES, fh->data, fh->len);
	key->len = (uint8_t)(SSC_KEY_HEAD_BYTES + fh->len);
}

void ssc_key_make_root(uint32_t upstream_id, uint64_t path_hash, struct ssc_key *key)
{
	put_head(upstream_id, SSC_KEY_ROOT, key->data);
	put_hash(path_hash, key->data + SSC_KEY_HEAD_BYTES);
	key->len = SSC_KEY_ROOT_BYTES;
}

enum ssc_err ssc_key_check(const void *data, size_t len, uint32_t upstream_id, uint64_t path_hash)
{
	const uint8_t *bytes = data;
	uint8_t hash[8];
	uint32_t head;

	if (len <= SSC_KEY_HEAD_BYTES || len > SSC_KEY_MAX)
		return SSC_E_BADHANDLE;
	head = head_of(bytes);
	switch (head & 3) {
	case SSC_KEY_OBJECT:
		break;
	case SSC_KEY_ROOT:
		if (len != SSC_KEY_ROOT_BYTES)
			return SSC_E_BADHANDLE;
		put_hash(path_hash, hash);
		if (memcmp(hash, bytes + SSC_KEY_HEAD_BYTES, sizeof(hash)) != 0)
			return SSC_E_STALE;
		break;
	default:
		return SSC_E_BADHANDLE;
	}
	return head >> 2 == upstream_id ? SSC_OK : SSC_E_STALE;
}

enum ssc_key_form ssc_key_form(const void *data)
{
	return head_of(data) & 3;
}

void ssc_key_fh(const void *data, size_t len, struct ssc_fh *fh)
{
	fh->len = (uint8_t)(len - SSC_KEY_HEAD_BYTES);
	memcpy(fh->data, (const uint8_t *)data + SSC_KEY_HEAD_BYTES, fh->len);
}

uint32_t ssc_key_upstream_id(const char *server, uint16_t port)
{
	const uint8_t tail[3] = {'|', (uint8_t)(port >> 8), (uint8_t)port};
	uint64_t hash = 0;
	uint32_t id;

	/* Names of hosts do not distinguish case, so neither do we (nor hexadecimal digits). */
	for (const char *c = server; *c != 0; c++) {
		uint8_t lower = (uint8_t)tolower((unsigned char)*c);

		hash = ssc_base_hash(&lower, 1, hash);
	}
	hash = ssc_base_mix(ssc_base_hash(tail, sizeof(tail), hash));
	id = (uint32_t)(hash >> 32) & SSC_UPSTREAM_ID_MAX;
	return id != 0 ? id : 1;
}
