/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_internal.h - between nfs3_control.c (for tests), nfs3_server.c (sockets, held calls), nfs3_rpc.c (envelope, faults), nfs3_procs.c and
 * nfs3_names.c (procedures) and nfs3_pieces.c (fields).
 */
#ifndef SSC_NFS3_INTERNAL_H
#define SSC_NFS3_INTERNAL_H

#include <pthread.h>

#include "nfs3_server.h"
#include "nfs3_tree.h"
#include "nfs3_wire.h"

/* RFC 1813 2.6 */
enum nfs3_status {
	ST_OK = 0,
	ST_NOENT = 2,
	ST_ACCES = 13,
	ST_EXIST = 17,
	ST_NOTDIR = 20,
	ST_ISDIR = 21,
	ST_INVAL = 22,
	ST_FBIG = 27,
	ST_NOTEMPTY = 66,
	ST_STALE = 70,
	ST_BAD_COOKIE = 10003,
	ST_NOTSUPP = 10004
};

#define NFS3_LENGTH_HUGE 0xfffffff0u

struct nfs3_sattr {
	bool set_mode, set_uid, set_gid, set_size;
	uint32_t mode, uid, gid, atime_how, mtime_how;
	uint64_t size;
	struct nfs3_time atime, mtime;
};

/* One call while it is carried out. */
struct nfs3_ctx {
	struct nfs3_tree *tree;
	struct nfs3_dec *args;
	struct nfs3_enc *res; /* behind the envelope */
	enum nfs3_fault_kind kind;
	struct nfs3_record *record; /* cred is in it; offset and count go there */
	uint64_t verifier, cookie_verifier;
	bool strict_cookies;
	uint32_t rtmax, wtmax;
};

/** @brief Carry out @proc. False: its arguments cannot be decoded (GARBAGE_ARGS). */
bool nfs3_procs_run(struct nfs3_ctx *ctx, enum nfs3_proc proc);

/** @brief A result of nothing but @status, and no attributes. */
void nfs3_procs_fail(struct nfs3_ctx *ctx, enum nfs3_proc proc, uint32_t status);

/* ---- nfs3_server.c ---- */

#define NFS3_CONNS_MAX  64
#define NFS3_FAULTS_MAX 256
#define NFS3_HELD_MAX   1024
#define NFS3_CACHE_MAX  512

enum nfs3_command {
	NFS3_CMD_NONE,
	NFS3_CMD_DOWN,
	NFS3_CMD_UP,
	NFS3_CMD_CRASH,
	NFS3_CMD_FREEZE,
	NFS3_CMD_THAW,
	NFS3_CMD_STOP
};

struct nfs3_bytes {
	uint8_t *data;
	size_t len;
};

struct nfs3_conn {
	int fd; /* -1: none */
	uint64_t id;
	struct nfs3_bytes in, out;
	struct nfs3_bytes later; /* replies behind one whose second half is held */
	bool is_split;
	bool closes; /* once out is empty */
};

struct nfs3_held {
	uint64_t conn;
	struct nfs3_bytes record; /* to be carried out; or */
	bool is_split;            /* the other half of a reply waits in its connection; or */
	struct nfs3_bytes reply;  /* to be sent */
	size_t at;                /* of the call's record */
};

struct nfs3_cached {
	uint32_t xid;
	enum nfs3_proc proc;
	struct nfs3_bytes reply;
};

struct nfs3_server {
	char address[16];
	uint16_t port;
	pthread_t thread;
	int evfd;
	pthread_mutex_t lock;
	/* guarded by lock */
	pthread_cond_t changed;
	enum nfs3_command command;
	int listener; /* -1: down */
	struct nfs3_conn conns[NFS3_CONNS_MAX];
	unsigned int n_conns; /* accepted so far */
	struct nfs3_fault faults[NFS3_FAULTS_MAX];
	unsigned int n_faults;
	struct nfs3_held held[NFS3_HELD_MAX];
	unsigned int n_held;
	bool releases;
	bool frozen;
	bool caches;
	struct nfs3_cached cache[NFS3_CACHE_MAX];
	unsigned int n_cached; /* ever; the oldest is overwritten */
	struct nfs3_record *records;
	unsigned int n_records;
	struct nfs3_tree tree;
	uint64_t verifier, cookie_verifier;
	bool strict_cookies;
	unsigned int flips, n_writes; /* see nfs3_server_set_flips */
	uint32_t rtmax, wtmax;
};

/** @brief What the server's thread runs. */
void *nfs3_server_run(void *server);

/** @brief Forget held calls and the reply cache. Lock held. */
void nfs3_server_lose_memory(struct nfs3_server *s);

/* ---- nfs3_rpc.c ---- */

/* The envelope of one call. */
struct nfs3_call {
	uint32_t xid;
	enum nfs3_proc proc;
	bool is_ours;    /* a program, version and procedure that we have */
	bool is_nothing; /* without arguments and result: UMNT, NULL */
	uint32_t uid, gid, n_groups, groups[16];
	struct nfs3_dec args;
};

/** @brief Take a record apart. False: it is no call at all. */
bool nfs3_rpc_parse(const uint8_t *record, size_t len, struct nfs3_call *call);

/** @brief Begin a reply with room for the record mark; *@stat_at is where the accept status is. */
void nfs3_rpc_begin(struct nfs3_enc *reply, uint32_t xid, size_t *stat_at);

/** @brief Make the envelope wrong in the way of @kind, if it is one of those kinds. */
void nfs3_rpc_spoil(struct nfs3_enc *reply, size_t stat_at, enum nfs3_fault_kind kind);

/** @brief Write the record marks: one fragment, or several when @kind says so. */
void nfs3_rpc_end(struct nfs3_enc *reply, enum nfs3_fault_kind kind);

/* ---- nfs3_pieces.c ---- */

void nfs3_put_u32(struct nfs3_ctx *c, uint32_t value);
void nfs3_put_time(struct nfs3_ctx *c, struct nfs3_time t);
void nfs3_put_attrs(struct nfs3_ctx *c, const struct nfs3_node *n);
void nfs3_put_post_attrs(struct nfs3_ctx *c, const struct nfs3_node *n);
void nfs3_put_wcc(struct nfs3_ctx *c, const struct nfs3_node *n);
void nfs3_put_fh(struct nfs3_ctx *c, uint32_t node);
void nfs3_put_post_fh(struct nfs3_ctx *c, uint32_t node);

/** @brief NULL when the handle is of nothing that is there. */
struct nfs3_node *nfs3_get_node(struct nfs3_ctx *c);
void nfs3_get_name(struct nfs3_ctx *c, char name[NFS3_TREE_NAME_BYTES]);
void nfs3_get_sattr(struct nfs3_ctx *c, struct nfs3_sattr *s);

/** @brief Set attributes; the status. */
uint32_t nfs3_apply(struct nfs3_ctx *c, struct nfs3_node *n, const struct nfs3_sattr *s);

/** @brief ST_OK for a directory. */
uint32_t nfs3_check_dir(const struct nfs3_node *dir);

/* ---- nfs3_names.c: each returns a status, and has encoded the result when that is ST_OK ---- */

uint32_t nfs3_do_lookup(struct nfs3_ctx *c);
uint32_t nfs3_do_create(struct nfs3_ctx *c);
uint32_t nfs3_do_mkdir(struct nfs3_ctx *c);
uint32_t nfs3_do_symlink(struct nfs3_ctx *c);
uint32_t nfs3_do_mknod(struct nfs3_ctx *c);
uint32_t nfs3_do_remove(struct nfs3_ctx *c, bool is_rmdir);
uint32_t nfs3_do_rename(struct nfs3_ctx *c);
uint32_t nfs3_do_link(struct nfs3_ctx *c);
uint32_t nfs3_do_readdirplus(struct nfs3_ctx *c);

#endif /* SSC_NFS3_INTERNAL_H */
