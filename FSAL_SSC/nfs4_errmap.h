/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_errmap.h - results as the status of an NFSv4.2 operation. The server's own map is not reachable.
 *
 * Threads any; nothing blocks. Source: RFC 8881 15.1, RFC 7862 11.
 */
#ifndef SSC_NFS4_ERRMAP_H
#define SSC_NFS4_ERRMAP_H

#include "glue.h"

/** @brief Of a method of the server's. */
nfsstat4 ssc_nfs4_of_fsal(fsal_status_t status);

/** @brief Of a call to an upstream. */
nfsstat4 ssc_nfs4_of_err(enum ssc_err err);

#endif /* SSC_NFS4_ERRMAP_H */
