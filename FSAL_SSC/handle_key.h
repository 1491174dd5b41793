/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * handle_key.h - the bytes that name an object: in the server's cache and in clients' file handles.
 *
 * Bytes      4   big-endian: upstream id (30 bits), form (2 bits)
 *            n   form OBJECT: the upstream's file handle (1 to 64 bytes of NFSv3; up to 119 fit)
 *            8   form ROOT: hash of the path that the upstream exports
 * Why        The cache above keys objects by these bytes for all exports of the module, so the
 *            upstream is part of them. They hold all there is to know, so a client's handle works
 *            after a restart. The root has a form of its own, so that it is known while the upstream
 *            is away and stays the same when the upstream returns with other handles.
 * Order      bytes, never words: the same on every machine.
 * Limits     Ganesha leaves us 59 bytes of an NFSv3 handle, 123 of an NFSv4 one.
 */
#ifndef SSC_HANDLE_KEY_H
#define SSC_HANDLE_KEY_H

#include "ssc/base.h"

#define SSC_KEY_HEAD_BYTES  4
#define SSC_KEY_ROOT_BYTES  12
#define SSC_KEY_MAX         (SSC_KEY_HEAD_BYTES + SSC_FH_MAX)

#define SSC_UPSTREAM_ID_MAX 0x3fffffffu

enum ssc_key_form { SSC_KEY_OBJECT = 0, SSC_KEY_ROOT = 1 };

struct ssc_key {
	uint8_t len;
	uint8_t data[SSC_KEY_MAX];
};

void ssc_key_make_object(uint32_t upstream_id, const struct ssc_fh *fh,
			 struct ssc_key *key) SSC_NONNULL;
void ssc_key_make_root(uint32_t upstream_id, uint64_t path_hash, struct ssc_key *key) SSC_NONNULL;

/**
 * @brief Check @len bytes at @data that came from a client.
 *
 * Errors: SSC_E_BADHANDLE (not made by us), SSC_E_STALE (of another upstream, or another root)
 */
enum ssc_err ssc_key_check(const void *data, size_t len, uint32_t upstream_id,
			   uint64_t path_hash) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Form of a key that was checked or made here. */
enum ssc_key_form ssc_key_form(const void *data) SSC_NONNULL;

/** @brief The upstream's handle in @len bytes at @data of form OBJECT. */
void ssc_key_fh(const void *data, size_t len, struct ssc_fh *fh) SSC_NONNULL;

/** @brief Number for @server and @port, the same however the name is written. Never 0. */
uint32_t ssc_key_upstream_id(const char *server, uint16_t port) SSC_NONNULL;

#endif /* SSC_HANDLE_KEY_H */
