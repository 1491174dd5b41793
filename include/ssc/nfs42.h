/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42.h - the COPY family of NFSv4.2 as it is on the wire: types, and one codec for both ways.
 *
 * Why own types: the host's headers follow a draft that differs from the RFC.
 *
 * Object     struct ssc_xio: a stream that a procedure reads from or writes to, word by word. Two are
 *            made here, over memory; the host's stream is wrapped where its headers are known.
 *            Each ssc_xio_ procedure below encodes or decodes its structure, as the stream says.
 * Decoding   Nothing is allocated. Lists and opaques have fixed bounds; what exceeds them is a bad
 *            stream, except a longer list of source servers: the rest of it is read, checked and left
 *            out, and n_all says how many there were.
 * Errors     false: cut, out of bounds, or no room. The structure is then of no use.
 * Threads    any, one at a time per stream. Nothing blocks.
 * Source     RFC 7863 (XDR), RFC 7862 15 (operations) and 16 (callbacks), RFC 4506.
 */
#ifndef SSC_NFS42_H
#define SSC_NFS42_H

#include "ssc/base.h"

/* Operation numbers, RFC 7863. */
enum ssc_op42 {
	SSC_OP42_COPY = 60,
	SSC_OP42_COPY_NOTIFY = 61,
	SSC_OP42_OFFLOAD_CANCEL = 66,
	SSC_OP42_OFFLOAD_STATUS = 67,
	SSC_OP42_CLONE = 71,
	SSC_OP42_CB_OFFLOAD = 15 /* a callback's number */
};

/* Status codes that the copy core knows by name; any nfsstat4 may pass through it. */
enum ssc_nfsstat4 {
	SSC_NFS4_OK = 0,
	SSC_NFS4ERR_IO = 5,
	SSC_NFS4ERR_INVAL = 22,
	SSC_NFS4ERR_FBIG = 27,
	SSC_NFS4ERR_NOTSUPP = 10004,
	SSC_NFS4ERR_SERVERFAULT = 10006,
	SSC_NFS4ERR_DELAY = 10008,
	SSC_NFS4ERR_ADMIN_REVOKED = 10047,
	SSC_NFS4ERR_BAD_STATEID = 10025,
	SSC_NFS4ERR_COMPLETE_ALREADY = 10054,
	SSC_NFS4ERR_OFFLOAD_DENIED = 10091,
	SSC_NFS4ERR_OFFLOAD_NO_REQS = 10094
};

#define SSC_STATEID_OTHER_BYTES 12
#define SSC_NETID_MAX           16   /* "tcp6", "rdma6" */
#define SSC_UADDR_MAX           64   /* an IPv6 address and ".255.255" are 53 */
#define SSC_NETLOC_NAME_MAX     1024 /* of a name or URL, which we cannot use but must read */
#define SSC_NETLOCS_MAX         8    /* of those kept */
#define SSC_NETLOCS_READ_MAX    64   /* of those read at all */
#define SSC_VERIFIER_BYTES      8

struct ssc_stateid {
	uint32_t seqid;
	uint8_t other[SSC_STATEID_OTHER_BYTES];
};

/* RFC 7862 4.1.2: netloc_type4. */
enum ssc_netloc_type { SSC_NL4_NAME = 1, SSC_NL4_URL = 2, SSC_NL4_NETADDR = 3 };

struct ssc_netloc {
	enum ssc_netloc_type type;
	/* NETADDR; text, NUL ended. Of the other types nothing is kept, so encoding them fails. */
	char netid[SSC_NETID_MAX + 1];
	char uaddr[SSC_UADDR_MAX + 1];
};

struct ssc_netlocs {
	uint32_t n;     /* kept: at most SSC_NETLOCS_MAX */
	uint32_t n_all; /* that were in the list; set by decoding */
	struct ssc_netloc loc[SSC_NETLOCS_MAX];
};

/* RFC 7862 15.2.1. */
struct ssc_copy_args {
	struct ssc_stateid src_stateid, dst_stateid;
	uint64_t src_offset, dst_offset;
	uint64_t count; /* 0: to the end of the source */
	bool consecutive, synchronous;
	struct ssc_netlocs sources; /* empty: the source is this server's */
};

/* write_response4, RFC 7862 15.2.2. */
struct ssc_write_response {
	bool has_callback_id;
	struct ssc_stateid callback_id; /* of an asynchronous copy */
	uint64_t count;
	uint32_t committed; /* stable_how4 */
	uint8_t verf[SSC_VERIFIER_BYTES];
};

struct ssc_copy_res {
	uint32_t status;                    /* nfsstat4 */
	struct ssc_write_response response; /* NFS4_OK */
	bool consecutive, synchronous;      /* NFS4_OK and NFS4ERR_OFFLOAD_NO_REQS */
};

/* RFC 7862 15.3. */
struct ssc_copy_notify_args {
	struct ssc_stateid src_stateid;
	struct ssc_netloc destination;
};

struct ssc_copy_notify_res {
	uint32_t status;
	int64_t lease_s; /* nfstime4, whole seconds; 0 = endless */
	uint32_t lease_ns;
	struct ssc_stateid stateid;
	struct ssc_netlocs sources;
};

/* RFC 7862 15.8 and 15.9: both take a stateid. */
struct ssc_offload_args {
	struct ssc_stateid stateid;
};

struct ssc_offload_cancel_res {
	uint32_t status;
};

struct ssc_offload_status_res {
	uint32_t status;
	uint64_t count;
	bool is_complete;  /* osr_complete holds one status */
	uint32_t complete; /* nfsstat4 */
};

/* RFC 7862 15.13. */
struct ssc_clone_args {
	struct ssc_stateid src_stateid, dst_stateid;
	uint64_t src_offset, dst_offset, count;
};

struct ssc_clone_res {
	uint32_t status;
};

/* RFC 7862 16.1.3. */
struct ssc_cb_offload_args {
	struct ssc_fh fh; /* of the destination */
	struct ssc_stateid stateid;
	uint32_t status;                    /* NFS4_OK: response; else count */
	struct ssc_write_response response; /* without a callback_id */
	uint64_t count;                     /* bytes copied before the error */
};

/* ---- streams ---- */

struct ssc_xio {
	bool is_decoding;
	/* One 32-bit word, to or from the wire's byte order. */
	bool (*word)(struct ssc_xio *io, uint32_t *word);
	/* @len bytes and their padding. */
	bool (*bytes)(struct ssc_xio *io, void *bytes, uint32_t len);
};

/* Over memory: at is advanced, and nothing beyond end is touched. */
struct ssc_xio_mem {
	struct ssc_xio io;
	uint8_t *at;
	const uint8_t *end;
};

/** @brief Decode from @len bytes at @bytes, which are not changed. */
void ssc_xio_decode(struct ssc_xio_mem *mem, const void *bytes, size_t len) SSC_NONNULL;

/** @brief Encode into @room bytes at @bytes; mem->at is where it ended. */
void ssc_xio_encode(struct ssc_xio_mem *mem, void *bytes, size_t room) SSC_NONNULL;

/* ---- pieces ---- */

bool ssc_xio_u32(struct ssc_xio *io, uint32_t *value) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_u64(struct ssc_xio *io, uint64_t *value) SSC_NONNULL SSC_MUST_CHECK;
/** @brief 0 or 1; anything else is refused when it is decoded. */
bool ssc_xio_bool(struct ssc_xio *io, bool *value) SSC_NONNULL SSC_MUST_CHECK;
/** @brief A counted opaque of at most @max bytes in a buffer of that size. */
bool ssc_xio_opaque(struct ssc_xio *io, void *bytes, uint32_t *len,
		    uint32_t max) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_stateid(struct ssc_xio *io, struct ssc_stateid *stateid) SSC_NONNULL SSC_MUST_CHECK;

/* ---- arguments and results; results begin with their status ---- */

bool ssc_xio_copy_args(struct ssc_xio *io, struct ssc_copy_args *args) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_copy_res(struct ssc_xio *io, struct ssc_copy_res *res) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_copy_notify_args(struct ssc_xio *io,
			      struct ssc_copy_notify_args *args) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_copy_notify_res(struct ssc_xio *io,
			     struct ssc_copy_notify_res *res) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_offload_args(struct ssc_xio *io,
			  struct ssc_offload_args *args) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_offload_cancel_res(struct ssc_xio *io,
				struct ssc_offload_cancel_res *res) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_offload_status_res(struct ssc_xio *io,
				struct ssc_offload_status_res *res) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_clone_args(struct ssc_xio *io, struct ssc_clone_args *args) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_clone_res(struct ssc_xio *io, struct ssc_clone_res *res) SSC_NONNULL SSC_MUST_CHECK;
bool ssc_xio_cb_offload_args(struct ssc_xio *io,
			     struct ssc_cb_offload_args *args) SSC_NONNULL SSC_MUST_CHECK;

#endif /* SSC_NFS42_H */
