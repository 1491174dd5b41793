/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * libnfs_compat.h - libnfs as this layer uses it: its raw asynchronous API, version 4.0.0.
 *
 * Nothing of libnfs is included outside FSAL_SSC/upstream/. What is declared here is exported by
 * the library (soname libnfs.so.13) but declared only in a header that it does not install.
 *
 * Not used, with reason:
 *   rpc_set_autoreconnect  a reply that was cut off is glued to the next connection's bytes and
 *                          handed over as a success (fixed in 5.0.3)
 *   rpc_set_timeout        leaves half a request on the wire, after which no reply fits (5.0.3)
 *   rpc_connect_*          resolves while it blocks, and picks the source port itself
 */
#ifndef SSC_LIBNFS_COMPAT_H
#define SSC_LIBNFS_COMPAT_H

#include <sys/time.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <nfsc/libnfs-raw-portmap.h>

struct rpc_pdu;

struct rpc_pdu *rpc_allocate_pdu2(struct rpc_context *rpc, int program, int version, int procedure,
				  rpc_cb cb, void *private_data, zdrproc_t decode_fn,
				  int decode_size, size_t alloc_hint);
void rpc_set_autoreconnect(struct rpc_context *rpc, int num_retries);
void rpc_set_timeout(struct rpc_context *rpc, int timeout_ms);
int rpc_queue_pdu(struct rpc_context *rpc, struct rpc_pdu *pdu);
void rpc_free_pdu(struct rpc_context *rpc, struct rpc_pdu *pdu);

/*
 * Room for arguments that libnfs gives every request but WRITE. A symlink's target can need more:
 * such a request is built by rpc_allocate_pdu2 with a hint (ssc_pdu_zdr).
 */
#define SSC_LIBNFS_ARGS_BYTES 4096

/* Larger records are refused by the library: 1 MiB of data and 4096 bytes around it. */
#define SSC_LIBNFS_IO_MAX (1024 * 1024)

/* ---- calls.c ---- */

struct ssc_procedure {
	int program;
	int version;
	int number;
	zdrproc_t encode; /* of its arguments; NULL: there are none */
};

/**
 * @brief Queue a call whose reply is handed to @cb undecoded, as struct ssc_reply_bytes.
 *
 * @more: bytes of arguments beyond SSC_LIBNFS_ARGS_BYTES. @return 0, or -1: @cb will not run.
 */
int ssc_calls_send(struct rpc_context *rpc, const struct ssc_procedure *proc, rpc_cb cb,
		   void *private_data, void *args, size_t more);

#endif /* SSC_LIBNFS_COMPAT_H */
