/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42.h - the NFSv4.2 test client: what its files share.
 *
 * nfs42.c       main, options, single operations
 * nfs42_pipe.c  data through the client, many blocks in flight
 * nfs42_copy.c  server-side copy, many at once, latency meanwhile
 * nfs42_small.c a small copy and the same by READ and WRITE, in turns
 */
#ifndef NFS42_H
#define NFS42_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ssc/nfs4_file.h"

struct options {
	bool async, poll, no_commit, force;
	bool keep; /* what the destination holds */
	uint32_t depth, block, stable;
	uint64_t chunk, src_off, dst_off, count, seed, bounce_ms;
	int64_t cancel_ms; /* < 0: not */
	double wait_s;     /* for the end of an asynchronous copy */
};

struct tool {
	struct ssc_nfs4_who who;
	struct options opt;
	atomic_bool is_over;
};

/** @brief Print @what and @outcome to stderr. @return 1, or 0 when it is OK. */
int tool_fail(const char *what, const char *path, uint32_t outcome);

double tool_now(void);

/** @brief A size; k, M and G are powers of 1024. */
uint64_t tool_number(const char *text);

/** @brief Processor seconds of this process. */
double tool_cpu(void);

/* ---- nfs42_pipe.c ---- */

/* Where blocks come from and go to. A side that is NULL or -1 is another kind. */
struct pipe_job {
	struct tool *t;
	const struct ssc_nfs4_file *src, *dst; /* files of the server */
	int src_fd, dst_fd;                    /* local files; -1 */
	bool is_pattern, is_sum;               /* made here; only hashed */
	uint64_t src_off, dst_off, bytes;
	/* results */
	uint32_t outcome;
	const char *failed; /* which operation */
	uint64_t done_bytes, n_calls, sum;
};

/** @brief Run it to its end. @return 0, or 1 with a line on stderr. */
int pipe_run(struct pipe_job *job);

int cmd_put(struct tool *t, char **arg);
int cmd_get(struct tool *t, char **arg);
int cmd_sum(struct tool *t, char **arg);
int cmd_fill(struct tool *t, char **arg);
int cmd_rwcopy(struct tool *t, char **arg);

/** @brief The whole of an rwcopy, from open to close, for cmd_copies. */
int rwcopy(struct tool *t, const char *src, const char *dst, uint64_t *bytes, uint64_t *n_calls);

/* ---- nfs42_copy.c ---- */

int cmd_copy(struct tool *t, char **arg);
int cmd_clone(struct tool *t, char **arg);
int cmd_copies(struct tool *t, char **arg);
int cmd_getattr_loop(struct tool *t, char **arg);

/* ---- nfs42_small.c ---- */

int cmd_small(struct tool *t, char **arg);

#endif /* NFS42_H */
