/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_status.h - how an NFSv4 call ended, as one number.
 *
 * An outcome is a status of the server (nfsstat4), or, with SSC_NFS4_LOCAL set, an enum ssc_err of
 * ours: the server has not answered, or not in a way that could be understood.
 * Source: RFC 8881 15.1, RFC 7862 11, RFC 8276 9.
 */
#ifndef SSC_NFS4_STATUS_H
#define SSC_NFS4_STATUS_H

#include "ssc/base.h"

#define SSC_NFS4_LOCAL 0x80000000u

#define SSC_NFS4_STATUSES(X)                \
	X(OK, 0)                            \
	X(PERM, 1)                          \
	X(NOENT, 2)                         \
	X(IO, 5)                            \
	X(NXIO, 6)                          \
	X(ACCESS, 13)                       \
	X(EXIST, 17)                        \
	X(XDEV, 18)                         \
	X(NOTDIR, 20)                       \
	X(ISDIR, 21)                        \
	X(INVAL, 22)                        \
	X(FBIG, 27)                         \
	X(NOSPC, 28)                        \
	X(ROFS, 30)                         \
	X(MLINK, 31)                        \
	X(NAMETOOLONG, 63)                  \
	X(NOTEMPTY, 66)                     \
	X(DQUOT, 69)                        \
	X(STALE, 70)                        \
	X(BADHANDLE, 10001)                 \
	X(BAD_COOKIE, 10003)                \
	X(NOTSUPP, 10004)                   \
	X(TOOSMALL, 10005)                  \
	X(SERVERFAULT, 10006)               \
	X(BADTYPE, 10007)                   \
	X(DELAY, 10008)                     \
	X(SAME, 10009)                      \
	X(DENIED, 10010)                    \
	X(EXPIRED, 10011)                   \
	X(LOCKED, 10012)                    \
	X(GRACE, 10013)                     \
	X(FHEXPIRED, 10014)                 \
	X(SHARE_DENIED, 10015)              \
	X(WRONGSEC, 10016)                  \
	X(CLID_INUSE, 10017)                \
	X(RESOURCE, 10018)                  \
	X(MOVED, 10019)                     \
	X(NOFILEHANDLE, 10020)              \
	X(MINOR_VERS_MISMATCH, 10021)       \
	X(STALE_CLIENTID, 10022)            \
	X(STALE_STATEID, 10023)             \
	X(OLD_STATEID, 10024)               \
	X(BAD_STATEID, 10025)               \
	X(BAD_SEQID, 10026)                 \
	X(NOT_SAME, 10027)                  \
	X(LOCK_RANGE, 10028)                \
	X(SYMLINK, 10029)                   \
	X(RESTOREFH, 10030)                 \
	X(LEASE_MOVED, 10031)               \
	X(ATTRNOTSUPP, 10032)               \
	X(NO_GRACE, 10033)                  \
	X(RECLAIM_BAD, 10034)               \
	X(RECLAIM_CONFLICT, 10035)          \
	X(BADXDR, 10036)                    \
	X(LOCKS_HELD, 10037)                \
	X(OPENMODE, 10038)                  \
	X(BADOWNER, 10039)                  \
	X(BADCHAR, 10040)                   \
	X(BADNAME, 10041)                   \
	X(BAD_RANGE, 10042)                 \
	X(LOCK_NOTSUPP, 10043)              \
	X(OP_ILLEGAL, 10044)                \
	X(DEADLOCK, 10045)                  \
	X(FILE_OPEN, 10046)                 \
	X(ADMIN_REVOKED, 10047)             \
	X(CB_PATH_DOWN, 10048)              \
	X(BADIOMODE, 10049)                 \
	X(BADLAYOUT, 10050)                 \
	X(BAD_SESSION_DIGEST, 10051)        \
	X(BADSESSION, 10052)                \
	X(BADSLOT, 10053)                   \
	X(COMPLETE_ALREADY, 10054)          \
	X(CONN_NOT_BOUND_TO_SESSION, 10055) \
	X(DELEG_ALREADY_WANTED, 10056)      \
	X(BACK_CHAN_BUSY, 10057)            \
	X(LAYOUTTRYLATER, 10058)            \
	X(LAYOUTUNAVAILABLE, 10059)         \
	X(NOMATCHING_LAYOUT, 10060)         \
	X(RECALLCONFLICT, 10061)            \
	X(UNKNOWN_LAYOUTTYPE, 10062)        \
	X(SEQ_MISORDERED, 10063)            \
	X(SEQUENCE_POS, 10064)              \
	X(REQ_TOO_BIG, 10065)               \
	X(REP_TOO_BIG, 10066)               \
	X(REP_TOO_BIG_TO_CACHE, 10067)      \
	X(RETRY_UNCACHED_REP, 10068)        \
	X(UNSAFE_COMPOUND, 10069)           \
	X(TOO_MANY_OPS, 10070)              \
	X(OP_NOT_IN_SESSION, 10071)         \
	X(HASH_ALG_UNSUPP, 10072)           \
	X(CLIENTID_BUSY, 10074)             \
	X(PNFS_IO_HOLE, 10075)              \
	X(SEQ_FALSE_RETRY, 10076)           \
	X(BAD_HIGH_SLOT, 10077)             \
	X(DEADSESSION, 10078)               \
	X(ENCR_ALG_UNSUPP, 10079)           \
	X(PNFS_NO_LAYOUT, 10080)            \
	X(NOT_ONLY_OP, 10081)               \
	X(WRONG_CRED, 10082)                \
	X(WRONG_TYPE, 10083)                \
	X(DIRDELEG_UNAVAIL, 10084)          \
	X(REJECT_DELEG, 10085)              \
	X(RETURNCONFLICT, 10086)            \
	X(DELEG_REVOKED, 10087)             \
	X(PARTNER_NOTSUPP, 10088)           \
	X(PARTNER_NO_AUTH, 10089)           \
	X(UNION_NOTSUPP, 10090)             \
	X(OFFLOAD_DENIED, 10091)            \
	X(WRONG_LFS, 10092)                 \
	X(BADLABEL, 10093)                  \
	X(OFFLOAD_NO_REQS, 10094)           \
	X(NOXATTR, 10095)                   \
	X(XATTR2BIG, 10096)

#define SSC_NFS4_ENUM_(name, number) SSC_ST4_##name = number,
enum ssc_st4 { SSC_NFS4_STATUSES(SSC_NFS4_ENUM_) };
#undef SSC_NFS4_ENUM_

static inline uint32_t ssc_nfs4_local(enum ssc_err err)
{
	return SSC_NFS4_LOCAL | (uint32_t)err;
}

/** @brief What is wrong on our side of @outcome; SSC_OK when the server has answered. */
static inline enum ssc_err ssc_nfs4_local_err(uint32_t outcome)
{
	return outcome & SSC_NFS4_LOCAL ? (enum ssc_err)(outcome & ~SSC_NFS4_LOCAL) : SSC_OK;
}

/** @brief "OK", "STALE", "local CONN"; "?" for a number that no RFC has. Never NULL. Any thread. */
const char *ssc_nfs4_outcome_str(uint32_t outcome);

#endif /* SSC_NFS4_STATUS_H */
