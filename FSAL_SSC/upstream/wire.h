/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * wire.h - ONC RPC over one TCP connection: calls out, replies in.
 *
 * Object     struct ssc_wire: a connected, non-blocking socket with what is not sent yet and what is
 *            not understood yet. It knows records and RPC headers, and nothing of NFS.
 * Why not libnfs' own: it copies all data once more each way (a third of the CPU of 1 MiB I/O), scans
 *            a table of 1024 lists per call to it, follows lengths of a header that it does not
 *            check, and collects fragments without bound. Its XDR encoders are used all the same.
 * Sending    Small requests are gathered and leave as one; data of large ones leaves straight from
 *            the caller's buffers. What the socket does not take is copied and kept, so nothing is
 *            borrowed after ssc_wire_send has returned.
 * Receiving  A reply is handed over with its results undecoded. Data of a large READ may be received
 *            straight into its place: see ssc_wire_ops.place.
 * Threads    one at a time (the holder of conn.lock). Nothing blocks.
 * Source     RFC 5531 9 and 11, appendix A (AUTH_SYS).
 */
#ifndef SSC_WIRE_H
#define SSC_WIRE_H

#include <sys/uio.h>

#include "ssc/base.h"

/* Largest record that is taken: 1 MiB of data and room for what stands round it. */
#define SSC_WIRE_RECORD_MAX (1024 * 1024 + 64 * 1024)

/* Room for a call: header, credentials, and arguments without WRITE's data: a name of 4095 bytes. */
#define SSC_WIRE_CALL_MAX 8192

struct ssc_wire_procedure {
	uint32_t program, version, number;
};

/* Where the data of a READ goes; the wire's from place to placed. */
struct ssc_wire_place {
	const struct iovec *iov;
	int n_iov;
	uint32_t count; /* bytes of data in the reply */
	size_t head;    /* where they begin, counted from the first byte of the results */
};

struct ssc_wire_ops {
	/**
	 * @brief A reply came. @err: SSC_OK; SSC_E_PROTO, SSC_E_AUTH: the server refused the call,
	 *        and @what says how. @results, @len: what follows the header, only on SSC_OK.
	 */
	void (*reply)(void *ctx, uint32_t xid, enum ssc_err err, const void *results, size_t len,
		      bool is_placed, const char *what);

	/**
	 * @brief @len bytes of the results of a long reply are there, @total will be. True, and
	 *        *place, when the rest is data that shall go to its place; then reply is told so
	 *        (is_placed) and gets place.head bytes of results.
	 */
	bool (*place)(void *ctx, uint32_t xid, const void *results, size_t len, size_t total,
		      struct ssc_wire_place *place);

	/** @brief Whether the place given for @xid may still be written to. */
	bool (*still)(void *ctx, uint32_t xid);

	/**
	 * @brief A call came in, over a connection that is the server's back channel: @bytes are what
	 *        follows the word CALL. NULL: calls are a breach of protocol.
	 */
	void (*call)(void *ctx, uint32_t xid, const void *bytes, size_t len);
};

struct ssc_wire;

/** @brief For the connected socket @fd, which becomes the wire's. Never NULL. */
struct ssc_wire *ssc_wire_new(int fd, const struct ssc_wire_ops *ops, void *ctx);

/** @brief Close the socket and free. NULL is allowed. */
void ssc_wire_free(struct ssc_wire *w);

/**
 * @brief Begin a call: the header with @cred is put into @buf of SSC_WIRE_CALL_MAX bytes.
 * @return its length; the arguments are encoded behind it.
 */
size_t ssc_wire_header(uint8_t *buf, uint32_t xid, const struct ssc_wire_procedure *proc,
		       const struct ssc_cred *cred);

/**
 * @brief Send the call of @len bytes in @buf, followed by @bytes of @iov and their padding. Or the
 *        reply to one that came in: @buf has room for the record mark in front.
 *
 * @hold: more will follow at once, gather it. Errors: SSC_E_CONN.
 */
enum ssc_err ssc_wire_send(struct ssc_wire *w, uint8_t *buf, size_t len, const struct iovec *iov,
			   int n_iov, size_t bytes, bool hold) SSC_MUST_CHECK;

/** @brief Send what was gathered or left over. Errors: SSC_E_CONN. */
enum ssc_err ssc_wire_flush(struct ssc_wire *w) SSC_MUST_CHECK;

/** @brief Bytes that the socket has not taken: poll for POLLOUT, then flush. */
size_t ssc_wire_unsent(const struct ssc_wire *w);

/**
 * @brief Read what is there, and call ops for each reply.
 *
 * @want_places: long READs are under way: read little first, so that their data can be placed.
 * Errors: SSC_E_CONN (closed, broken), SSC_E_PROTO (no RPC, or a record that is too long).
 */
enum ssc_err ssc_wire_receive(struct ssc_wire *w, bool want_places) SSC_MUST_CHECK;

#endif /* SSC_WIRE_H */
