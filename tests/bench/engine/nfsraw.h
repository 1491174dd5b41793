/* SPDX-License-Identifier: LGPL-3.0-or-later OR GPL-2.0-only */
/*
 * nfsraw.h - one connection to an NFSv3 or NFSv4.0 server, for measuring.
 *
 * Thin layer over the raw calls of libnfs: every operation here is one RPC whose cost and answer
 * are visible, so that a benchmark counts what it thinks it counts. Used by the fio engine and
 * by meta.c; no part of it goes into the module.
 *
 * Ownership  the caller owns struct nfsraw_op and all it points to until done() was called.
 * Threads    one thread per connection; nothing here is shared.
 * Retries    JUKEBOX, DELAY and GRACE are retried with back-off inside; all else is handed out.
 * Errors     positive errno values; a lost or silent connection fails every operation.
 * Source     RFC 1813, RFC 7530.
 */
#ifndef NFSRAW_H
#define NFSRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest file handle of NFSv4; NFSv3 has 64. */
#define NFSRAW_FH_MAX 128
/* Largest READ or WRITE: libnfs 4.0.0 refuses replies over 1 MiB of data. */
#define NFSRAW_IO_MAX (1024 * 1024)

struct nfsraw;

enum nfsraw_kind {
	NFSRAW_READ,
	NFSRAW_WRITE,
	NFSRAW_COMMIT,
	NFSRAW_LOOKUP,
	NFSRAW_GETATTR,
	NFSRAW_ACCESS,
	/* CREATE over v3; OPEN with create (UNCHECKED) over v4 */
	NFSRAW_CREATE,
	/* v4 only: OPEN of an existing file */
	NFSRAW_OPEN,
	/* v4 only */
	NFSRAW_OPEN_CONFIRM,
	NFSRAW_CLOSE,
	NFSRAW_REMOVE,
	NFSRAW_RMDIR,
	NFSRAW_MKDIR,
	NFSRAW_READDIR,
};

struct nfsraw_fh {
	uint32_t len;
	char data[NFSRAW_FH_MAX];
};

/* v4 open owner and the stateid of its one open file; over v3 it stays unused. */
struct nfsraw_state {
	uint64_t owner;
	uint32_t owner_seqid;
	uint32_t seqid;
	char other[12];
	bool want_confirm;
};

struct nfsraw_op {
	/* in: filled by the caller */
	enum nfsraw_kind kind;
	const struct nfsraw_fh *fh; /* the object, or the directory when name is used */
	const char *name;
	struct nfsraw_state *state;
	uint64_t offset;      /* READDIR: cookie */
	uint32_t count_bytes; /* READDIR: size of the answer wanted */
	void *buf;
	bool is_stable;
	char verf[8]; /* READDIR: cookie verifier, in and out */
	void (*done)(struct nfsraw_op *op);
	void *priv;

	/* out: valid when done() runs; all but error only if error is 0 */
	int error;
	uint32_t done_bytes; /* READDIR: entries */
	bool is_eof;
	uint64_t cookie;
	uint64_t size_bytes;
	struct nfsraw_fh out_fh;

	/* private to nfsraw */
	struct nfsraw *nr;
	struct nfsraw_op *next;
	uint64_t start_ns;
	uint64_t due_ns;
	uint64_t backoff_ns;
};

struct nfsraw_target {
	char host[64];
	char path[1024];
	int port;
	int mount_port;
	int version;
	int uid; /* -1: the caller's own */
	int gid;
};

/* Read nfs://HOST/PATH?nfsport=N&mountport=N&version=3|4&uid=N&gid=N. Returns 0 or an errno. */
int nfsraw_parse_url(const char *url, struct nfsraw_target *target);

/* Connect and mount; root is then the handle of target->path. Returns 0 or an errno. */
int nfsraw_open(const struct nfsraw_target *target, struct nfsraw **out);
void nfsraw_close(struct nfsraw *nr);

const struct nfsraw_fh *nfsraw_root(const struct nfsraw *nr);
int nfsraw_version(const struct nfsraw *nr);
/* Human text of the last failure. */
const char *nfsraw_error(const struct nfsraw *nr);

/* A fresh owner for one open file at a time. */
void nfsraw_state_init(struct nfsraw *nr, struct nfsraw_state *state);

/*
 * Start op. Sent at once unless called from a done(), then when that round of answers is through.
 * done() runs from nfsraw_poll(), or from here when the connection is lost.
 */
void nfsraw_submit(struct nfsraw *nr, struct nfsraw_op *op);

/* Wait at most timeout_ms for something to happen and handle it. Returns 0, or an errno when lost. */
int nfsraw_poll(struct nfsraw *nr, int timeout_ms);

/* Submit and wait. Overwrites done and priv. Returns op->error. */
int nfsraw_call(struct nfsraw *nr, struct nfsraw_op *op);

/* LOOKUP along a path with slashes, relative to the root. dir receives the last directory. */
int nfsraw_walk(struct nfsraw *nr, const char *path, struct nfsraw_fh *dir, const char **leaf);

#endif
