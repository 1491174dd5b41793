/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * upstream.h - a server that we re-export, seen from above: calls go in, completions come out.
 *
 * Object     struct ssc_upstream: one server and export path behind an ops table. upstream/ has the
 *            one for NFSv3 servers, tests/fakes/ a scripted one.
 *            struct ssc_call: one request with its arguments and, later, its result.
 * Lifetime   ssc_call_new (1 reference) -> fill in -> submit -> done -> ssc_call_put.
 * References holder          taken in        dropped in
 *            submitter       ssc_call_new    ssc_call_put
 *            upstream        submit          after done, or after late when the call is late
 * Deadline   A call whose answer_by_ns passes completes with SSC_E_TIMEDOUT when it was sent, and
 *            with SSC_E_DOWN when it never was. After TIMEDOUT its real outcome is always reported
 *            by late(), once, whenever that is known (a reply, SSC_E_CONN when the connection was
 *            given up, SSC_E_SHUTDOWN by stop). Between done and late the submitter reads no
 *            result field. A late WRITE is never sent again, and later WRITEs to its range wait
 *            for it.
 * Re-sending A call that was in flight when its connection broke is sent again on the next one,
 *            with the same xid; then retried is true, and SSC_E_EXIST or SSC_E_NOENT of a call that
 *            changes the name space may be the work of its first sending (see sync_call.h).
 * Buffers    Names are copied. READ and WRITE borrow iov[] and what it points to until done.
 * Threads    submit: any. done: any thread, also the submitting one before submit returns; unless
 *            done_only_wakes it is never another submitter's. late: a thread of the upstream's.
 *            They run with no lock of the upstream held and must not block.
 * Units      bytes; ns on the clock of clock.h.
 * Source     RFC 1813 3.3 for the procedures.
 */
#ifndef SSC_UPSTREAM_H
#define SSC_UPSTREAM_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "ssc/base.h"

struct ssc_upstream;

enum ssc_op {
	SSC_OP_NULL = 0,
	SSC_OP_GETATTR,
	SSC_OP_SETATTR,
	SSC_OP_LOOKUP,
	SSC_OP_READLINK,
	SSC_OP_READ,
	SSC_OP_WRITE,
	SSC_OP_CREATE,
	SSC_OP_MKDIR,
	SSC_OP_SYMLINK,
	SSC_OP_MKNOD,
	SSC_OP_REMOVE,
	SSC_OP_RMDIR,
	SSC_OP_RENAME,
	SSC_OP_LINK,
	SSC_OP_READDIRPLUS,
	SSC_OP_FSSTAT,
	SSC_OP_FSINFO,
	SSC_OP_PATHCONF,
	SSC_OP_COMMIT,
	SSC_OP_N /* number of values, not a value */
};

/* RFC 1813 3.3.7 stable_how, same numbers. */
enum ssc_stable { SSC_UNSTABLE = 0, SSC_DATA_SYNC = 1, SSC_FILE_SYNC = 2 };

/* RFC 1813 3.3.8 createmode3, same numbers. */
enum ssc_create_how { SSC_CREATE_UNCHECKED = 0, SSC_CREATE_GUARDED = 1, SSC_CREATE_EXCLUSIVE = 2 };

#define SSC_VERF_BYTES 8 /* RFC 1813: write, create and cookie verifiers are 8 bytes */

/* One entry of a directory. attrs and fh are what the server chose to send along. */
struct ssc_dirent {
	uint64_t cookie;
	uint64_t fileid;
	const char *name; /* points into the call's result, NUL ended, no '/', not empty */
	bool has_attrs;
	struct ssc_attrs attrs;
	struct ssc_fh fh; /* len 0: not sent */
};

struct ssc_call {
	/* Set by the submitter, constant while submitted */
	enum ssc_op op;
	struct ssc_cred cred;
	struct ssc_fh fh; /* the object; of a name operation, the directory */
	union {
		struct {
			struct ssc_sattr set;
		} setattr;
		struct {
			uint64_t offset;
			uint32_t count;         /* sum of iov, at most the upstream's limit */
			enum ssc_stable stable; /* WRITE only */
			const struct iovec *iov;
			int n_iov;
		} io; /* READ, WRITE, COMMIT (offset and count; 0, 0 = whole file) */
		struct {
			enum ssc_create_how how;
			struct ssc_sattr set;         /* not of EXCLUSIVE */
			uint8_t verf[SSC_VERF_BYTES]; /* EXCLUSIVE only */
		} create;
		struct {
			struct ssc_sattr set;
			enum ssc_ftype type; /* MKNOD */
			uint32_t rdev_major;
			uint32_t rdev_minor;
		} make; /* MKDIR, SYMLINK (target is text), MKNOD */
		struct {
			struct ssc_fh
				to_dir; /* RENAME: target directory; LINK: directory of the new name */
			struct ssc_fh object; /* RENAME, REMOVE, RMDIR: what is meant, if known (len
						 0: not); tells a retry's NOENT from another's.
						 Not sent. */
		} rename; /* RENAME: name -> text in to_dir; LINK: fh gets the name `name` in to_dir */
		struct {
			uint64_t cookie;
			uint8_t verf[SSC_VERF_BYTES];
			uint32_t max_bytes; /* of the reply */
		} readdir;
	} arg;
	char *name;            /* owned; ssc_call_set_name */
	char *text;            /* owned; target of SYMLINK, new name of RENAME; ssc_call_set_text */
	uint64_t answer_by_ns; /* deadline; 0 = none, then only the dead limit ends it */
	uint64_t drive_ns;     /* submit may block so long and drive the connection itself, which
				  spares two changes of thread when nobody else drives it */
	bool done_only_wakes;  /* done just wakes a waiter: it may run on another submitter's
				  thread, which may hold locks of the host */
	void (*done)(struct ssc_call *call);
	void (*late)(struct ssc_call *call); /* may be NULL */
	void *ctx;                           /* the submitter's */

	/* Result: written before done (or late), then constant */
	enum ssc_err err;
	bool retried;   /* sent more than once */
	bool has_attrs; /* attrs are those of fh after the operation (RENAME, LINK: see res) */
	struct ssc_attrs attrs;
	union {
		struct {
			struct ssc_fh fh; /* len 0: server sent none, look the name up */
			bool has_attrs;
			struct ssc_attrs attrs;
		} object; /* LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD: the object found or made */
		struct {
			uint32_t count;
			bool eof;
			enum ssc_stable committed;
			uint8_t verf[SSC_VERF_BYTES];
		} io; /* READ: count, eof. WRITE: count, committed, verf. COMMIT: verf */
		struct {
			char *target; /* READLINK; owned by the call, NUL ended */
		} link;
		struct {
			struct ssc_dirent *ents; /* owned by the call */
			uint32_t n_ents;
			bool eof;
			uint8_t verf[SSC_VERF_BYTES];
		} readdir;
		struct {
			uint64_t total_bytes, free_bytes, avail_bytes;
			uint64_t total_files, free_files, avail_files;
		} fsstat;
		struct {
			uint32_t rtmax, wtmax, dtpref;
			uint64_t maxfilesize;
			struct ssc_time time_delta;
			bool can_link, can_symlink, homogeneous, can_settime;
		} fsinfo;
		struct {
			uint32_t linkmax, name_max;
			bool no_trunc, chown_restricted, case_insensitive, case_preserving;
		} pathconf;
	} res;

	/* The upstream's; others keep out */
	atomic_int refs;
	struct ssc_upstream *up;
	void *result_mem; /* freed with the call: where names of a READDIRPLUS lie */
};

/* What one upstream can do, known after its first contact; before that, safe defaults. */
struct ssc_upstream_limits {
	uint32_t read_max_bytes;
	uint32_t write_max_bytes;
	uint32_t readdir_max_bytes;
	uint32_t name_max;
	uint32_t link_max;
	uint64_t file_size_max;
	struct ssc_time time_delta;
	bool known; /* the server was asked */
};

struct ssc_upstream_ops {
	/**
	 * @brief Start @call. Its done runs exactly once, whatever happens.
	 *
	 * Owns: takes a reference of its own. Blocks: at most call->drive_ns. Locks: none of ours
	 * held by the caller.
	 */
	void (*submit)(struct ssc_upstream *up, struct ssc_call *call);

	/**
	 * @brief The handle of the export's root, asked from the server's MOUNT service when
	 *        @refresh is true or it is not known yet.
	 *
	 * Blocks: until @answer_by_ns at most; concurrent callers share one attempt.
	 * Errors: SSC_E_TIMEDOUT, SSC_E_DOWN, SSC_E_ACCES (not exported to us), SSC_E_NOENT,
	 *         SSC_E_PROTO, SSC_E_SHUTDOWN.
	 */
	enum ssc_err (*root)(struct ssc_upstream *up, bool refresh, uint64_t answer_by_ns,
			     struct ssc_fh *fh);

	/** @brief Copy the limits out. Blocks: no. Any thread. */
	void (*limits)(struct ssc_upstream *up, struct ssc_upstream_limits *limits);

	/**
	 * @brief Whether calls are answered SSC_E_DOWN at once for now: one got no answer in time,
	 *        and nothing came since. Waiting for an earlier call is as pointless. Any thread.
	 */
	bool (*is_silent)(struct ssc_upstream *up);

	/**
	 * @brief Take no new calls; those unanswered complete with SSC_E_SHUTDOWN. Idempotent.
	 *
	 * Blocks: until no done or late can run any more, a second at most.
	 */
	void (*stop)(struct ssc_upstream *up);

	/** @brief Free. Only after stop, and when the submitters put their calls. */
	void (*free)(struct ssc_upstream *up);
};

/* Embedded first in every implementation. */
struct ssc_upstream {
	const struct ssc_upstream_ops *ops;
	size_t call_priv_bytes; /* room that the implementation wants behind each call */
};

/**
 * @brief A zeroed call of @op for @up, with one reference. Never NULL: memory runs out = abort,
 *        as in the host.
 */
struct ssc_call *ssc_call_new(struct ssc_upstream *up, enum ssc_op op) SSC_NONNULL;

/** @brief Another reference. */
struct ssc_call *ssc_call_get(struct ssc_call *call) SSC_NONNULL;

/** @brief Drop one; the last frees the call with its names and result. NULL is allowed. */
void ssc_call_put(struct ssc_call *call);

/**
 * @brief Copy @name as the call's name. SSC_E_NAMETOOLONG over SSC_NAME_MAX, SSC_E_INVAL when it
 *        is empty or holds '/'.
 */
enum ssc_err ssc_call_set_name(struct ssc_call *call, const char *name) SSC_NONNULL SSC_MUST_CHECK;

/**
 * @brief Copy @text: a symlink's target (at most SSC_LINK_MAX) or RENAME's new name (as set_name).
 */
enum ssc_err ssc_call_set_text(struct ssc_call *call, const char *text) SSC_NONNULL SSC_MUST_CHECK;

/** @brief The implementation's room behind @call, zeroed at birth. */
void *ssc_call_priv(struct ssc_call *call) SSC_NONNULL;

/** @brief "LOOKUP" and so on, for logs. Never NULL. */
const char *ssc_op_str(enum ssc_op op);

/**
 * @brief Whether carrying @call out twice does the same as once, also when its client has gone on
 *        in between (RFC 1813 4.8): not what changes the name space or cuts a file off.
 */
bool ssc_call_is_idempotent(const struct ssc_call *call) SSC_NONNULL;

/* ---- the implementation for NFSv3 servers (FSAL_SSC/upstream/) ---- */

struct ssc_upstream_config {
	const char *name;        /* for logs: "export 7" */
	const char *server;      /* name, IPv4 or IPv6 address */
	const char *remote_path; /* what the server's MOUNT service knows */
	uint16_t port;           /* of NFS; 0 = ask the portmapper */
	uint16_t mount_port;     /* of MOUNT; 0 = ask the portmapper */
	uint32_t connections;
	uint32_t read_max_bytes; /* upper bounds; the server's FSINFO may lower them */
	uint32_t write_max_bytes;
	uint32_t readdir_max_bytes;
	uint64_t dead_ns;    /* no reply for so long: the connection is given up; one call among
				      others that are answered: twice as long */
	uint64_t connect_ns; /* one attempt to connect takes at most so long */
	bool use_privileged_port;  /* source port below 1024 */
	uint32_t waiting_max;      /* calls kept waiting while the upstream is away */
	struct ssc_budget *budget; /* borrowed; of bytes in flight. NULL = none */
};

/** @brief Live figures of one upstream; each field only grows, but for the last three. */
struct ssc_upstream_stats {
	uint64_t calls; /* handed to the network, re-sent ones counted each time */
	uint64_t replies;
	uint64_t resent;   /* after a broken connection */
	uint64_t timeouts; /* answered TIMEDOUT */
	uint64_t late;     /* whose reply came after that */
	uint64_t refused;  /* answered DOWN at once */
	uint64_t bad_replies;
	uint64_t connects;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t per_op[SSC_OP_N];
	uint32_t in_flight;
	uint32_t waiting;
	bool up;
};

/**
 * @brief An upstream that speaks NFSv3. Its threads start here, its connection is made in the background:
 *        a server that is down is no error.
 *
 * Owns:   @cfg and its strings are copied. *out is freed by ops->stop, then ops->free.
 * Blocks: no.
 * Errors: SSC_E_SERVERFAULT (no thread can be had, logged).
 */
enum ssc_err ssc_upstream_nfs3_new(const struct ssc_upstream_config *cfg,
				   struct ssc_upstream **out) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Copy the figures of one made by ssc_upstream_nfs3_new. Any thread, does not block. */
void ssc_upstream_nfs3_stats(struct ssc_upstream *up, struct ssc_upstream_stats *stats) SSC_NONNULL;

#endif /* SSC_UPSTREAM_H */
