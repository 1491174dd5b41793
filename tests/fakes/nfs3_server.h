/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_server.h - an NFSv3 and MOUNT server on loopback, in this process, that fails on request.
 *
 * Object     struct nfs3_server: a tree in memory, one listening port for both programs, and one
 *            thread that serves all connections. Export "/export"; anything else is refused.
 * Faults     a list; the first one that fits a call is used up by it. skip lets calls pass first.
 * Held       a call with a HOLD fault waits for nfs3_server_release (others go on).
 * Replies    with the reply cache on, a call with an xid that was seen is answered from it.
 * Threads    every function may be called from any thread while the server runs.
 * Source     RFC 1813; RFC 5531 for the envelope.
 */
#ifndef SSC_NFS3_SERVER_H
#define SSC_NFS3_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFS3_EXPORT "/export"

enum nfs3_proc {
	NFS3_NULL,
	NFS3_GETATTR,
	NFS3_SETATTR,
	NFS3_LOOKUP,
	NFS3_ACCESS,
	NFS3_READLINK,
	NFS3_READ,
	NFS3_WRITE,
	NFS3_CREATE,
	NFS3_MKDIR,
	NFS3_SYMLINK,
	NFS3_MKNOD,
	NFS3_REMOVE,
	NFS3_RMDIR,
	NFS3_RENAME,
	NFS3_LINK,
	NFS3_READDIR,
	NFS3_READDIRPLUS,
	NFS3_FSSTAT,
	NFS3_FSINFO,
	NFS3_PATHCONF,
	NFS3_COMMIT,
	NFS3_MNT, /* of the MOUNT program */
	NFS3_N_PROCS,
	NFS3_ANY = NFS3_N_PROCS /* all but the two NULLs, which probe connections */
};

enum nfs3_fault_kind {
	NFS3_FAULT_NONE,
	/* The connection */
	NFS3_DROP_BEFORE,      /* closed when the call has arrived; not carried out */
	NFS3_DROP_EXECUTED,    /* carried out, closed without a reply */
	NFS3_DROP_INSIDE,      /* carried out, closed after half the reply */
	NFS3_DROP_AFTER_REPLY, /* carried out, closed behind the reply */
	/* Time */
	NFS3_HOLD,          /* not carried out before it is released */
	NFS3_HOLD_EXECUTED, /* carried out; the reply waits for the release */
	NFS3_HOLD_HALF,     /* carried out; half the reply, the rest at the release */
	/* The envelope */
	NFS3_WRONG_XID,
	NFS3_TRUNCATED,  /* the record ends four bytes early */
	NFS3_FRAGMENTS,  /* no fault: one record in many fragments */
	NFS3_GARBAGE,    /* right xid, accepted, then 0xff */
	NFS3_DENIED,     /* AUTH_TOOWEAK */
	NFS3_SYSTEM_ERR, /* accepted, SYSTEM_ERR */
	/* The result; where the procedure has no such field it is answered rightly */
	NFS3_STATUS,        /* fault.status, not carried out */
	NFS3_DATA_TOO_LONG, /* READ: more data than asked for. READLINK: 5000 bytes */
	NFS3_WRONG_COUNT,   /* READ: count is not the length. WRITE: more than was sent */
	NFS3_LONG_FH,       /* 65 bytes */
	NFS3_EMPTY_FH,
	NFS3_LONG_NAME, /* READDIRPLUS: 300 bytes */
	NFS3_SLASH_NAME,
	NFS3_EMPTY_NAME,
	NFS3_HUGE_LENGTH, /* a length of 2^32 - 16 in front of data, handle, name or target */
	NFS3_BAD_TYPE,    /* attributes with file type 99 */
	NFS3_NO_ATTRS,    /* no fault: optional attributes and handles left out */
	NFS3_LESS_STABLE  /* WRITE: UNSTABLE whatever was asked for */
};

struct nfs3_fault {
	enum nfs3_proc proc;
	enum nfs3_fault_kind kind;
	uint32_t status; /* of NFS3_STATUS: nfsstat3 */
	unsigned int skip;
	unsigned int times; /* 0 counts as 1 */
};

/* One call as it came. */
struct nfs3_record {
	enum nfs3_proc proc;
	uint32_t xid;
	uint64_t connection; /* counted from 1 */
	bool executed;
	bool replayed; /* answered from the reply cache */
	uint32_t uid, gid, n_groups, groups[16];
	uint64_t offset; /* READ, WRITE, COMMIT */
	uint32_t count;
	uint64_t verifier; /* WRITE: what it was answered with */
};

struct nfs3_server;

/** @brief Listen on @address (127.x.y.z) at a free port, and serve. Aborts when it cannot. */
struct nfs3_server *nfs3_server_new(const char *address);

/** @brief The same, but nobody listens before nfs3_server_up. */
struct nfs3_server *nfs3_server_new_down(const char *address);

void nfs3_server_free(struct nfs3_server *server);

uint16_t nfs3_server_port(struct nfs3_server *server);

/** @brief Close all connections and the listening socket; the tree stays. */
void nfs3_server_down(struct nfs3_server *server);
void nfs3_server_up(struct nfs3_server *server);

/** @brief Down, lose what is not stable and the reply cache, change the write verifier, up. */
void nfs3_server_crash(struct nfs3_server *server);

/** @brief Stop or go on reading, as SIGSTOP does: connections stay, also new ones are taken. */
void nfs3_server_freeze(struct nfs3_server *server, bool frozen);

void nfs3_server_fault(struct nfs3_server *server, const struct nfs3_fault *fault);

/** @brief Forget the faults that were not used up; returns how many calls they were for. */
unsigned int nfs3_server_clear_faults(struct nfs3_server *server);

/** @brief Let all held calls go on. */
void nfs3_server_release(struct nfs3_server *server);

void nfs3_server_set_reply_cache(struct nfs3_server *server, bool on);
void nfs3_server_set_verifier(struct nfs3_server *server, uint64_t verifier);

/** @brief Change the verifier after every @n WRITEs, as if it had restarted; 0: no more. */
void nfs3_server_set_flips(struct nfs3_server *server, unsigned int n);

/** @brief Of directories. Cookies that come with another one are refused (BAD_COOKIE). */
void nfs3_server_set_cookie_verifier(struct nfs3_server *server, uint64_t verifier);

/** @brief All handles are so long from now on: 24 to 64 bytes. Those given out are stale. */
void nfs3_server_set_fh_bytes(struct nfs3_server *server, size_t n);

/** @brief Make a directory in the root that is of another file system, with the root's file id. */
void nfs3_server_add_filesystem(struct nfs3_server *server, const char *name, uint64_t fsid);

/** @brief What FSINFO says; 0 keeps a figure. */
void nfs3_server_set_limits(struct nfs3_server *server, uint32_t rtmax, uint32_t wtmax);

/** @brief Calls of @proc that came (NFS3_ANY: all but NULL), each sending counted. */
unsigned int nfs3_server_n_calls(struct nfs3_server *server, enum nfs3_proc proc);

/** @brief Calls of @proc that were carried out. */
unsigned int nfs3_server_n_executed(struct nfs3_server *server, enum nfs3_proc proc);

/** @brief Connections accepted so far. */
unsigned int nfs3_server_n_connections(struct nfs3_server *server);

/** @brief Calls held now. */
unsigned int nfs3_server_n_held(struct nfs3_server *server);

/** @brief The @nth call of @proc, from 0. Aborts when there were fewer. */
struct nfs3_record nfs3_server_record(struct nfs3_server *server, enum nfs3_proc proc,
				      unsigned int nth);

/** @brief Wait until @n calls of @proc came. False after 20 s. */
bool nfs3_server_wait_calls(struct nfs3_server *server, enum nfs3_proc proc, unsigned int n);

/** @brief Wait until @n connections were accepted. False after 20 s. */
bool nfs3_server_wait_connections(struct nfs3_server *server, unsigned int n);

/** @brief Look into the tree: the data of @name in the root. False: no such file. */
bool nfs3_server_peek(struct nfs3_server *server, const char *name, void *data, size_t size,
		      size_t *len);

/** @brief Make a file with stable data in the root, behind everybody's back. */
void nfs3_server_poke(struct nfs3_server *server, const char *name, const void *data, size_t len);

/** @brief The handle of the root, as MOUNT gives it. */
size_t nfs3_server_root(struct nfs3_server *server, uint8_t *fh, size_t size);

#endif /* SSC_NFS3_SERVER_H */
