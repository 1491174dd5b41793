/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * base.h - the vocabulary that all layers share: results, file attributes, handles, credentials.
 *
 * Plain C types only. Neither Ganesha's nor libnfs' headers may be included here or in any other
 * header below include/ssc, because those two cannot meet in one translation unit.
 *
 * Lock order of the whole module, outermost first. No lock is held across a network wait.
 *     handle.obj_lock (host)      share reservations of one file
 *     upstream.lock               connection choice, join table
 *     conn.lock                   one connection, its calls in flight
 *     budget.lock, verifier.lock  leaves
 * A completion (ssc_call.done) runs with none of ours held.
 *
 * Units: sizes and offsets in bytes, durations in ns (on the monotonic clock) unless a name says
 * otherwise.
 */
#ifndef SSC_BASE_H
#define SSC_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SSC_MUST_CHECK       __attribute__((warn_unused_result))
#define SSC_NONNULL          __attribute__((nonnull))
#define SSC_PRINTF(fmt, arg) __attribute__((format(printf, fmt, arg)))

#define SSC_NS_PER_S         1000000000ull
#define SSC_NS_PER_MS        1000000ull

/* RFC 1813 2.3.3 allows 64 bytes; RFC 8881 3.2 allows 128. */
#define SSC_FH_MAX  128
#define SSC_FH3_MAX 64

/* Longest name of a directory entry. POSIX file systems stop here, and so does libnfs' caller. */
#define SSC_NAME_MAX 255

/* PATH_MAX less its NUL: what Linux accepts as the target of a symbolic link. */
#define SSC_LINK_MAX 4095

/* RFC 5531 appendix A: AUTH_SYS carries 16 supplementary groups at most. */
#define SSC_GROUPS_MAX 16

/*
 * Result of everything that can fail. Those down to SSC_E_JUKEBOX are what an NFS server can
 * answer; errmap.h translates them. The last group is born here.
 */
enum ssc_err {
	SSC_OK = 0,
	SSC_E_PERM,
	SSC_E_NOENT,
	SSC_E_IO,
	SSC_E_NXIO,
	SSC_E_ACCES,
	SSC_E_EXIST,
	SSC_E_XDEV,
	SSC_E_NODEV,
	SSC_E_NOTDIR,
	SSC_E_ISDIR,
	SSC_E_INVAL,
	SSC_E_FBIG,
	SSC_E_NOSPC,
	SSC_E_ROFS,
	SSC_E_MLINK,
	SSC_E_NAMETOOLONG,
	SSC_E_NOTEMPTY,
	SSC_E_DQUOT,
	SSC_E_STALE,
	SSC_E_BADHANDLE,
	SSC_E_NOT_SYNC,
	SSC_E_BAD_COOKIE,
	SSC_E_NOTSUPP,
	SSC_E_TOOSMALL,
	SSC_E_SERVERFAULT,
	SSC_E_BADTYPE,
	SSC_E_JUKEBOX,
	/* Not from a peer: */
	SSC_E_TIMEDOUT, /* a deadline passed; sent, so it may still take effect upstream */
	SSC_E_DOWN,     /* the upstream is not reachable now; nothing was sent */
	SSC_E_CONN,     /* the connection broke while the call was in flight */
	SSC_E_PROTO,    /* the peer's reply breaks the protocol */
	SSC_E_AUTH,     /* the peer refused our RPC credentials */
	SSC_E_SHUTDOWN, /* we are stopping */
	SSC_E_N         /* number of values, not a value */
};

enum ssc_ftype {
	SSC_FT_NONE = 0,
	SSC_FT_REG,
	SSC_FT_DIR,
	SSC_FT_BLK,
	SSC_FT_CHR,
	SSC_FT_LNK,
	SSC_FT_SOCK,
	SSC_FT_FIFO
};

struct ssc_time {
	int64_t s;
	uint32_t ns;
};

/* Attributes as an NFSv3 server gives them (RFC 1813 2.3.5), all valid or none. */
struct ssc_attrs {
	enum ssc_ftype type;
	uint32_t mode; /* permission bits, set-id and sticky; no file type */
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint64_t size;
	uint64_t used; /* bytes on disk */
	uint32_t rdev_major;
	uint32_t rdev_minor;
	uint64_t fsid;
	uint64_t fileid;
	struct ssc_time atime;
	struct ssc_time mtime;
	struct ssc_time ctime;
};

enum ssc_time_how { SSC_TIME_KEEP = 0, SSC_TIME_SERVER, SSC_TIME_CLIENT };

/* Attributes to set (RFC 1813 2.5.3). All zero sets nothing. */
struct ssc_sattr {
	bool set_mode;
	bool set_uid;
	bool set_gid;
	bool set_size;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	uint64_t size;
	enum ssc_time_how atime_how;
	enum ssc_time_how mtime_how;
	struct ssc_time atime;
	struct ssc_time mtime;
};

/* A server's opaque file handle. */
struct ssc_fh {
	uint8_t len;
	uint8_t data[SSC_FH_MAX];
};

/* Whom a call is made for: AUTH_SYS as it goes on the wire. */
struct ssc_cred {
	uint32_t uid;
	uint32_t gid;
	uint32_t n_groups;
	uint32_t groups[SSC_GROUPS_MAX];
};

/** @brief Name of @err for logs, "NOENT" for SSC_E_NOENT. Never NULL. Any thread. */
const char *ssc_err_str(enum ssc_err err);

/** @brief 64-bit FNV-1a over @len bytes at @data, continued from @seed (0 to begin). Any thread. */
uint64_t ssc_base_hash(const void *data, size_t len, uint64_t seed);

/** @brief Spread @x over 64 bits. A bijection: distinct inputs never collide. Any thread. */
uint64_t ssc_base_mix(uint64_t x);

#endif /* SSC_BASE_H */
