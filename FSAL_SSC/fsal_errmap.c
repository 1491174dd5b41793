/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsal_errmap.c - from our results to what Ganesha understands.
 *
 * ERR_FSAL_DELAY is what makes a client come back: NFS4ERR_DELAY and NFS3ERR_JUKEBOX. It answers
 * whatever will pass: an upstream that is slow, away, or given up, and our own end, since another
 * server may take over. Never ERR_FSAL_STALE or ERR_FSAL_IO, which reach programs.
 * Threads: any.
 */
#include "glue.h"

static fsal_status_t status_delay(void)
{
	return fsalstat(ERR_FSAL_DELAY, EAGAIN);
}

fsal_status_t ssc_fsal_status(enum ssc_err err)
{
	switch (err) {
	case SSC_OK:
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	case SSC_E_PERM:
		return fsalstat(ERR_FSAL_PERM, EPERM);
	case SSC_E_NOENT:
		return fsalstat(ERR_FSAL_NOENT, ENOENT);
	case SSC_E_IO:
		return fsalstat(ERR_FSAL_IO, EIO);
	case SSC_E_NXIO:
	case SSC_E_NODEV:
		return fsalstat(ERR_FSAL_NXIO, ENXIO);
	case SSC_E_ACCES:
		return fsalstat(ERR_FSAL_ACCESS, EACCES);
	case SSC_E_AUTH:
		ssc_log_warn(
			"the upstream refused our credentials: are they allowed in its export?");
		return fsalstat(ERR_FSAL_ACCESS, EACCES);
	case SSC_E_EXIST:
		return fsalstat(ERR_FSAL_EXIST, EEXIST);
	case SSC_E_XDEV:
		return fsalstat(ERR_FSAL_XDEV, EXDEV);
	case SSC_E_NOTDIR:
		return fsalstat(ERR_FSAL_NOTDIR, ENOTDIR);
	case SSC_E_ISDIR:
		return fsalstat(ERR_FSAL_ISDIR, EISDIR);
	case SSC_E_INVAL:
	case SSC_E_NOT_SYNC: /* we send no guard, so only a broken server says it */
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	case SSC_E_FBIG:
		return fsalstat(ERR_FSAL_FBIG, EFBIG);
	case SSC_E_NOSPC:
		return fsalstat(ERR_FSAL_NOSPC, ENOSPC);
	case SSC_E_ROFS:
		return fsalstat(ERR_FSAL_ROFS, EROFS);
	case SSC_E_MLINK:
		return fsalstat(ERR_FSAL_MLINK, EMLINK);
	case SSC_E_NAMETOOLONG:
		return fsalstat(ERR_FSAL_NAMETOOLONG, ENAMETOOLONG);
	case SSC_E_NOTEMPTY:
		return fsalstat(ERR_FSAL_NOTEMPTY, ENOTEMPTY);
	case SSC_E_DQUOT:
		return fsalstat(ERR_FSAL_DQUOT, EDQUOT);
	case SSC_E_STALE:
	case SSC_E_BADHANDLE: /* it was good once: clients recover from STALE, not from BADHANDLE */
		return fsalstat(ERR_FSAL_STALE, ESTALE);
	case SSC_E_BAD_COOKIE:
		return fsalstat(ERR_FSAL_BADCOOKIE, EINVAL);
	case SSC_E_NOTSUPP:
		return fsalstat(ERR_FSAL_NOTSUPP, ENOTSUP);
	case SSC_E_TOOSMALL:
		return fsalstat(ERR_FSAL_TOOSMALL, EINVAL);
	case SSC_E_BADTYPE:
		return fsalstat(ERR_FSAL_BADTYPE, EINVAL);
	case SSC_E_SERVERFAULT:
		return fsalstat(ERR_FSAL_SERVERFAULT, EREMOTEIO);
	case SSC_E_PROTO:
		ssc_log_warn("a reply of the upstream breaks the protocol: answering SERVERFAULT");
		return fsalstat(ERR_FSAL_SERVERFAULT, EPROTO);
	case SSC_E_JUKEBOX:
	case SSC_E_TIMEDOUT:
	case SSC_E_DOWN:
	case SSC_E_CONN:
	case SSC_E_SHUTDOWN:
		return status_delay();
	case SSC_E_N:
		break;
	}
	return fsalstat(ERR_FSAL_SERVERFAULT, EINVAL);
}
