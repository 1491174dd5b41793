/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42.h - the operations of NFSv4 that this module serves in the server's place.
 *
 * Constant. Each function is called as the server calls its own; see op_bind.h for what a row means.
 */
#ifndef SSC_NFS42_ROWS_H
#define SSC_NFS42_ROWS_H

#include "op_bind.h"

extern const struct ssc_op_row ssc_nfs42_rows[];
extern const size_t ssc_nfs42_n_rows;

#endif /* SSC_NFS42_ROWS_H */
