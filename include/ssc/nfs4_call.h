/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_call.h - one NFSv4.2 COMPOUND: operations are appended, results are taken in the same order.
 *
 * Object     struct ssc_nfs4_call, in memory of the caller's. SEQUENCE is not appended: the client
 *            (nfs4_client.h) puts it in front, and takes its result.
 * Lifetime   init -> arg... -> submit -> done -> res... -> fini, or init again after fini.
 *            Between submit and done it is the client's, and so are the buffers that it names.
 *            After that the reply is the call's own copy: res may run on any thread.
 * Args       An argument that does not fit makes the call bad: submit ends it with SSC_E_INVAL.
 * Results    Each returns an outcome (nfs4_status.h): that of its operation; or, if the compound did
 *            not come so far, what ended it. Lengths are checked; nothing is set but on success.
 * Threads    any, one at a time per call. Nothing blocks.
 * Source     RFC 8881 18, RFC 7862 15, RFC 7863 (XDR).
 */
#ifndef SSC_NFS4_CALL_H
#define SSC_NFS4_CALL_H

#include <sys/uio.h>
#include <urcu/list.h>

#include "ssc/nfs42.h"
#include "ssc/nfs4_status.h"
#include "ssc/xdr.h"

enum ssc_op4 {
	SSC_OP4_CLOSE = 4,
	SSC_OP4_COMMIT = 5,
	SSC_OP4_GETATTR = 9,
	SSC_OP4_GETFH = 10,
	SSC_OP4_LOOKUP = 15,
	SSC_OP4_OPEN = 18,
	SSC_OP4_PUTFH = 22,
	SSC_OP4_PUTROOTFH = 24,
	SSC_OP4_READ = 25,
	SSC_OP4_REMOVE = 28,
	SSC_OP4_RESTOREFH = 31,
	SSC_OP4_SAVEFH = 32,
	SSC_OP4_SETATTR = 34,
	SSC_OP4_WRITE = 38,
	SSC_OP4_BIND_CONN_TO_SESSION = 41,
	SSC_OP4_EXCHANGE_ID = 42,
	SSC_OP4_CREATE_SESSION = 43,
	SSC_OP4_DESTROY_SESSION = 44,
	SSC_OP4_SEQUENCE = 53,
	SSC_OP4_DESTROY_CLIENTID = 57,
	SSC_OP4_RECLAIM_COMPLETE = 58,
	SSC_OP4_ALLOCATE = 59,
	SSC_OP4_COPY = 60,
	SSC_OP4_COPY_NOTIFY = 61,
	SSC_OP4_DEALLOCATE = 62,
	SSC_OP4_IO_ADVISE = 63,
	SSC_OP4_OFFLOAD_CANCEL = 66,
	SSC_OP4_OFFLOAD_STATUS = 67,
	SSC_OP4_READ_PLUS = 68,
	SSC_OP4_SEEK = 69,
	SSC_OP4_CLONE = 71
};

/* Attribute numbers, RFC 8881 5 and RFC 7862 12. */
enum ssc_attr4 {
	SSC_ATTR4_SUPPORTED = 0,
	SSC_ATTR4_TYPE = 1,
	SSC_ATTR4_CHANGE = 3,
	SSC_ATTR4_SIZE = 4,
	SSC_ATTR4_FSID = 8,
	SSC_ATTR4_LEASE_TIME = 10,
	SSC_ATTR4_FILEID = 20,
	SSC_ATTR4_MAXREAD = 30,
	SSC_ATTR4_MAXWRITE = 31,
	SSC_ATTR4_MODE = 33,
	SSC_ATTR4_NUMLINKS = 35,
	SSC_ATTR4_OWNER = 36,
	SSC_ATTR4_OWNER_GROUP = 37,
	SSC_ATTR4_SPACE_USED = 45,
	SSC_ATTR4_TIME_ACCESS = 47,
	SSC_ATTR4_TIME_METADATA = 52,
	SSC_ATTR4_TIME_MODIFY = 53,
	SSC_ATTR4_CLONE_BLKSIZE = 77,
	SSC_ATTR4_SPACE_FREED = 78,
	SSC_ATTR4_CHANGE_ATTR_TYPE = 79,
	SSC_ATTR4_MODE_UMASK = 81
};

#define SSC_BITMAP_WORDS 3

struct ssc_bitmap {
	uint32_t word[SSC_BITMAP_WORDS];
};

static inline void ssc_bitmap_set(struct ssc_bitmap *map, uint32_t bit)
{
	map->word[bit / 32] |= 1u << bit % 32;
}

static inline bool ssc_bitmap_has(const struct ssc_bitmap *map, uint32_t bit)
{
	return map->word[bit / 32] >> bit % 32 & 1;
}

/* type, change, size, fsid, fileid, mode, numlinks, space_used, three times */
extern const struct ssc_bitmap ssc_nfs4_usual_attrs;

#define SSC_OWNER_MAX 127

struct ssc_nfs4_attrs {
	struct ssc_bitmap mask; /* of what is set below */
	struct ssc_bitmap supported;
	uint32_t type; /* enum ssc_ftype is the same */
	uint32_t mode, numlinks, lease_s, clone_blksize, change_type;
	uint64_t change, size, fsid[2], fileid, space_used, maxread, maxwrite;
	struct ssc_time atime, mtime, ctime;
	char owner[SSC_OWNER_MAX + 1], group[SSC_OWNER_MAX + 1];
};

struct ssc_nfs4_sattr {
	bool set_size, set_mode;
	uint64_t size;
	uint32_t mode;
};

enum ssc_open4_access { SSC_OPEN4_READ = 1, SSC_OPEN4_WRITE = 2, SSC_OPEN4_BOTH = 3 };

struct ssc_nfs4_open_args {
	uint32_t access; /* enum ssc_open4_access; no delegation is wanted */
	uint32_t deny;   /* the same bits */
	uint64_t clientid;
	uint64_t owner; /* which open owner of the client's */
	bool create;    /* UNCHECKED4, with sattr */
	struct ssc_nfs4_sattr sattr;
	const char *name; /* CLAIM_NULL; NULL: CLAIM_FH */
};

struct ssc_nfs4_open_res {
	struct ssc_stateid stateid;
	uint32_t rflags;
	uint32_t delegation; /* open_delegation_type4 */
};

struct ssc_nfs4_read_res {
	bool is_eof;
	uint32_t count; /* bytes that are in the buffers now */
};

#define SSC_SEGMENTS_MAX 16

struct ssc_nfs4_segment {
	bool is_hole;
	uint64_t offset, len;
	const void *data; /* in the reply: until fini */
};

struct ssc_nfs4_read_plus_res {
	bool is_eof; /* never when segments were left out */
	uint32_t n;
	struct ssc_nfs4_segment segment[SSC_SEGMENTS_MAX];
};

struct ssc_nfs4_seek_res {
	bool is_eof;
	uint64_t offset;
};

/* Arguments of all operations of a call but for WRITE's data. */
#define SSC_NFS4_ARGS_BYTES 6144

/* A longer reply is kept in memory of its own. */
#define SSC_NFS4_REPLY_BYTES 768

struct ssc_nfs4_call {
	/* the caller's, before submit */
	struct ssc_cred cred;
	uint64_t timeout_ns; /* until done comes, whatever happens; 0: as the client has it */
	bool is_bare;        /* no SEQUENCE in front */
	bool is_unsafe; /* doing it twice is not the same as once; set by args where it is so */
	void (*done)(struct ssc_nfs4_call *call);
	void *ctx;

	/* the client's, at done: the compound's status, or a local outcome */
	uint32_t outcome;

	/* private */
	uint32_t n_ops;
	bool is_bad;
	struct ssc_xio_mem out;
	size_t data_at; /* where WRITE's data goes in args */
	const struct iovec *iov;
	int n_iov;
	size_t write_bytes;
	const struct iovec *read_iov;
	int n_read_iov;
	uint32_t read_max;
	bool is_placed; /* READ's data is in read_iov, and not in the reply */
	struct ssc_xdr in;
	uint32_t n_results;
	void *reply; /* reply_room, or allocated */
	struct cds_list_head link;
	uint64_t deadline_ns, retry_ns;
	uint32_t n_sent, n_wrong;
	uint8_t args[SSC_NFS4_ARGS_BYTES];
	uint8_t reply_room[SSC_NFS4_REPLY_BYTES];
};

void ssc_nfs4_call_init(struct ssc_nfs4_call *call, const struct ssc_cred *cred) SSC_NONNULL;
void ssc_nfs4_call_fini(struct ssc_nfs4_call *call) SSC_NONNULL;

/* ---- arguments ---- */

/** @brief An operation without arguments: PUTROOTFH, GETFH, SAVEFH, RESTOREFH, or any number. */
void ssc_nfs4_arg(struct ssc_nfs4_call *call, uint32_t op);
/** @brief Any operation, with its arguments as they go on the wire. */
void ssc_nfs4_arg_raw(struct ssc_nfs4_call *call, uint32_t op, const void *bytes, size_t len);
void ssc_nfs4_arg_putfh(struct ssc_nfs4_call *call, const struct ssc_fh *fh);
/** @brief LOOKUP or REMOVE of @len bytes of @name. */
void ssc_nfs4_arg_name(struct ssc_nfs4_call *call, uint32_t op, const char *name, size_t len);
void ssc_nfs4_arg_getattr(struct ssc_nfs4_call *call, const struct ssc_bitmap *mask);
void ssc_nfs4_arg_setattr(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			  const struct ssc_nfs4_sattr *sattr);
void ssc_nfs4_arg_open(struct ssc_nfs4_call *call, const struct ssc_nfs4_open_args *args);
void ssc_nfs4_arg_close(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid);
/** @brief READ into @iov, which is borrowed until done. Only one per call. */
void ssc_nfs4_arg_read(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
		       uint64_t offset, uint32_t count, const struct iovec *iov, int n_iov);
void ssc_nfs4_arg_read_plus(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			    uint64_t offset, uint32_t count);
/** @brief @what: 0 data, 1 hole. */
void ssc_nfs4_arg_seek(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
		       uint64_t offset, uint32_t what);
/** @brief WRITE of @bytes of @iov, borrowed until done. Only one per call; at most 15 pieces. */
void ssc_nfs4_arg_write(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			uint64_t offset, uint32_t stable, const struct iovec *iov, int n_iov,
			size_t bytes);
void ssc_nfs4_arg_commit(struct ssc_nfs4_call *call, uint64_t offset, uint32_t count);
/** @brief ALLOCATE or DEALLOCATE. */
void ssc_nfs4_arg_space(struct ssc_nfs4_call *call, uint32_t op, const struct ssc_stateid *stateid,
			uint64_t offset, uint64_t len);
void ssc_nfs4_arg_io_advise(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			    uint64_t offset, uint64_t count, uint32_t hints);
void ssc_nfs4_arg_copy(struct ssc_nfs4_call *call, const struct ssc_copy_args *args);
void ssc_nfs4_arg_copy_notify(struct ssc_nfs4_call *call, const struct ssc_copy_notify_args *args);
/** @brief OFFLOAD_STATUS or OFFLOAD_CANCEL. */
void ssc_nfs4_arg_offload(struct ssc_nfs4_call *call, uint32_t op,
			  const struct ssc_stateid *stateid);
void ssc_nfs4_arg_clone(struct ssc_nfs4_call *call, const struct ssc_clone_args *args);

/* ---- results ---- */

/** @brief Of an operation without results, or whose results do not matter and which is the last. */
uint32_t ssc_nfs4_res(struct ssc_nfs4_call *call, uint32_t op);
uint32_t ssc_nfs4_res_getfh(struct ssc_nfs4_call *call, struct ssc_fh *fh);
uint32_t ssc_nfs4_res_getattr(struct ssc_nfs4_call *call, struct ssc_nfs4_attrs *attrs);
uint32_t ssc_nfs4_res_setattr(struct ssc_nfs4_call *call);
uint32_t ssc_nfs4_res_open(struct ssc_nfs4_call *call, struct ssc_nfs4_open_res *res);
uint32_t ssc_nfs4_res_close(struct ssc_nfs4_call *call);
uint32_t ssc_nfs4_res_remove(struct ssc_nfs4_call *call);
/** @brief Data that could not be received in place is copied there now. */
uint32_t ssc_nfs4_res_read(struct ssc_nfs4_call *call, struct ssc_nfs4_read_res *res);
uint32_t ssc_nfs4_res_read_plus(struct ssc_nfs4_call *call, struct ssc_nfs4_read_plus_res *res);
uint32_t ssc_nfs4_res_seek(struct ssc_nfs4_call *call, struct ssc_nfs4_seek_res *res);
/** @brief Of WRITE: count, committed and verf are set. */
uint32_t ssc_nfs4_res_write(struct ssc_nfs4_call *call, struct ssc_write_response *res);
uint32_t ssc_nfs4_res_commit(struct ssc_nfs4_call *call, uint8_t verf[SSC_VERIFIER_BYTES]);
uint32_t ssc_nfs4_res_io_advise(struct ssc_nfs4_call *call, uint32_t *hints);
uint32_t ssc_nfs4_res_copy(struct ssc_nfs4_call *call, struct ssc_copy_res *res);
uint32_t ssc_nfs4_res_copy_notify(struct ssc_nfs4_call *call, struct ssc_copy_notify_res *res);
uint32_t ssc_nfs4_res_offload_status(struct ssc_nfs4_call *call,
				     struct ssc_offload_status_res *res);

#endif /* SSC_NFS4_CALL_H */
