/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_errmap.c - see nfs4_errmap.h.
 */
#include "nfs4_errmap.h"

static const struct {
	fsal_errors_t fsal;
	nfsstat4 nfs4;
} map[] = {
	{ERR_FSAL_NO_ERROR, NFS4_OK},
	{ERR_FSAL_PERM, NFS4ERR_PERM},
	{ERR_FSAL_NOENT, NFS4ERR_NOENT},
	{ERR_FSAL_IO, NFS4ERR_IO},
	{ERR_FSAL_NXIO, NFS4ERR_NXIO},
	{ERR_FSAL_NOMEM, NFS4ERR_DELAY},
	{ERR_FSAL_ACCESS, NFS4ERR_ACCESS},
	{ERR_FSAL_SEC, NFS4ERR_PERM},
	{ERR_FSAL_INVAL, NFS4ERR_INVAL},
	{ERR_FSAL_FBIG, NFS4ERR_FBIG},
	{ERR_FSAL_NOSPC, NFS4ERR_NOSPC},
	{ERR_FSAL_ROFS, NFS4ERR_ROFS},
	{ERR_FSAL_DQUOT, NFS4ERR_DQUOT},
	{ERR_FSAL_NO_QUOTA, NFS4ERR_DQUOT},
	{ERR_FSAL_STALE, NFS4ERR_STALE},
	{ERR_FSAL_FHEXPIRED, NFS4ERR_FHEXPIRED},
	{ERR_FSAL_BADHANDLE, NFS4ERR_BADHANDLE},
	{ERR_FSAL_NOTSUPP, NFS4ERR_NOTSUPP},
	{ERR_FSAL_DELAY, NFS4ERR_DELAY},
	{ERR_FSAL_TIMEOUT, NFS4ERR_DELAY},
	{ERR_FSAL_BLOCKED, NFS4ERR_DELAY},
	{ERR_FSAL_INTERRUPT, NFS4ERR_DELAY},
	{ERR_FSAL_LOCKED, NFS4ERR_LOCKED},
	/* To a client that only copies, another's reservation is a lock. */
	{ERR_FSAL_SHARE_DENIED, NFS4ERR_LOCKED},
	{ERR_FSAL_UNION_NOTSUPP, NFS4ERR_UNION_NOTSUPP},
	{ERR_FSAL_ISDIR, NFS4ERR_WRONG_TYPE},
	{ERR_FSAL_BADTYPE, NFS4ERR_WRONG_TYPE},
};

nfsstat4 ssc_nfs4_of_fsal(fsal_status_t status)
{
	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
		if (map[i].fsal == status.major)
			return map[i].nfs4;
	}
	return NFS4ERR_SERVERFAULT;
}

nfsstat4 ssc_nfs4_of_err(enum ssc_err err)
{
	return ssc_nfs4_of_fsal(ssc_fsal_status(err));
}
