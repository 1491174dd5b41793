/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fuzz_handle_key.c - file handles as any client may send them.
 *
 * What the check lets pass must be a handle that we could have made: made again from its parts it
 * has the same bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "handle_key.h"

#define UPSTREAM_ID 0x1234567u
#define PATH_HASH   0x0123456789abcdefull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *wire = malloc(size ? size : 1);
	struct ssc_key again;
	struct ssc_fh fh;

	memcpy(wire, data, size);
	if (ssc_key_check(wire, size, UPSTREAM_ID, PATH_HASH) == SSC_OK) {
		if (ssc_key_form(wire) == SSC_KEY_ROOT) {
			ssc_key_make_root(UPSTREAM_ID, PATH_HASH, &again);
		} else {
			ssc_key_fh(wire, size, &fh);
			assert(fh.len > 0 && fh.len <= SSC_FH_MAX);
			ssc_key_make_object(UPSTREAM_ID, &fh, &again);
		}
		assert(again.len == size && memcmp(again.data, wire, size) == 0);
	}
	free(wire);
	return 0;
}
