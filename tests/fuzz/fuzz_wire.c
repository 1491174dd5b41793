/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fuzz_wire.c - bytes of a connection, in pieces, through records and RPC headers.
 *
 * Input: one byte for the size of the pieces, then what the peer sends. READs of any size are taken to
 * be in flight under all xids; their data must land in its place and nowhere else.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../FSAL_SSC/upstream/internal.h"
#include "../../FSAL_SSC/upstream/wire.h"

#define PLACE_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each in a block of its own, so that a byte too far is seen. */
static uint8_t *place_a, *place_b;
static struct ssc_call *call;

static void reply(void *ctx, uint32_t xid, enum ssc_err err, const void *results, size_t len,
		  bool is_placed, const char *what)
{
	struct ssc_call *into = ssc_call_new(call->up, SSC_OP_READ);

	(void)ctx, (void)xid;
	assert(what != NULL);
	into->arg = call->arg;
	if (err == SSC_OK && ssc_reply_decode(call, results, len, is_placed, into) == SSC_OK)
		assert(into->res.io.count <= call->arg.io.count);
	ssc_call_put(into);
}

static bool place(void *ctx, uint32_t xid, const void *results, size_t len, size_t total,
		  struct ssc_wire_place *p)
{
	(void)ctx, (void)xid;
	assert(len <= total);
	return ssc_reply_place(call, results, len, p);
}

static bool still(void *ctx, uint32_t xid)
{
	(void)ctx;
	return xid % 4 != 3; /* some are taken back at once */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ssc_wire_ops ops = {.reply = reply, .place = place, .still = still};
	struct ssc_upstream up = {.call_priv_bytes = 0};
	struct iovec iov[2];
	struct ssc_wire *w;
	size_t step;
	int fds[2];

	if (size < 1 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
		return 0;
	step = data[0] ? data[0] * 16u : 1;
	place_a = malloc(PLACE_BYTES / 2);
	place_b = malloc(PLACE_BYTES / 2);
	iov[0] = (struct iovec){place_a, PLACE_BYTES / 2};
	iov[1] = (struct iovec){place_b, PLACE_BYTES / 2};
	call = ssc_call_new(&up, SSC_OP_READ);
	call->arg.io.iov = iov;
	call->arg.io.n_iov = 2;
	call->arg.io.count = PLACE_BYTES;
	w = ssc_wire_new(fds[0], &ops, NULL);
	for (size_t at = 1; at < size; at += step) {
		size_t n = size - at < step ? size - at : step;

		if (write(fds[1], data + at, n) != (ssize_t)n ||
		    ssc_wire_receive(w, at % 2) != SSC_OK)
			break;
	}
	ssc_wire_free(w);
	close(fds[1]);
	ssc_call_put(call);
	free(place_a);
	free(place_b);
	return 0;
}
