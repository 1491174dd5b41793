/* SPDX-License-Identifier: LGPL-3.0-or-later OR GPL-2.0-only */
/*
 * nfsraw_private.h - between nfsraw.c (connection, retries) and the two protocol files.
 */
#ifndef NFSRAW_PRIVATE_H
#define NFSRAW_PRIVATE_H

#include <stddef.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>

#include "nfsraw.h"

struct nfsraw {
	/* constant after nfsraw_open */
	int version;
	struct nfsraw_fh root;
	uint64_t clientid; /* v4 */

	struct rpc_context *rpc;
	struct nfsraw_op *retry; /* sorted by nothing: few entries */
	unsigned int n_inflight;
	uint64_t last_progress_ns;
	uint64_t next_owner;
	bool is_in_service;
	int dead; /* errno once the connection is lost */
	char error[256];
};

/* Encode and queue one op. Returns 0, or an errno when libnfs would not take it. */
int nfsraw3_send(struct nfsraw *nr, struct nfsraw_op *op);
int nfsraw4_send(struct nfsraw *nr, struct nfsraw_op *op);

/* Called once per answer by the protocol files: error 0, EAGAIN (retry later) or final. */
void nfsraw_answer(struct nfsraw_op *op, int error);

int nfsraw3_mount(struct nfsraw *nr, const struct nfsraw_target *target);
int nfsraw4_mount(struct nfsraw *nr, const struct nfsraw_target *target);

/* TCP connection of its own to one program; NULL with nr->error set on failure. */
struct rpc_context *nfsraw_dial(struct nfsraw *nr, const struct nfsraw_target *target, int port,
				int program, int version);
/* Run rpc until *is_done, bounded. Returns 0 or an errno. */
int nfsraw_spin(struct nfsraw *nr, struct rpc_context *rpc, const bool *is_done);

/* Copy a handle from the wire; false when it is too long or empty. */
bool nfsraw_fh_set(struct nfsraw_fh *fh, const char *data, unsigned int len);

/* Room that the next NFSv4 call needs beyond libnfs' fixed 4096 bytes. */
void nfsraw_pdu_hint(size_t hint_bytes);

#endif
