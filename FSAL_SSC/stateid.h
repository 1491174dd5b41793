/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * stateid.h - whether a stateid allows its client to read or write a file.
 *
 * Stricter than the server's own check, which is not reachable: a stateid is good only for the client
 * it was given to. The file's own list of states is searched, so a stateid of another file is bad.
 * Nothing is remembered and no reference is kept: states may go at any time, so who goes on for long
 * asks again.
 *
 * Threads    the server's workers; ssc_stateid_is_alive: any.
 * Locks      takes the file's st_lock for a moment. Blocks: while another holds that.
 * Source     RFC 8881 8.2 (stateids), 8.2.3 (special ones), 9.1.2 (I/O); RFC 7862 15.2.3.
 */
#ifndef SSC_STATEID_H
#define SSC_STATEID_H

#include "glue.h"
#include "nfs_proto_data.h"

#include "ssc/nfs42.h"

enum ssc_stateid_use { SSC_STATEID_READ, SSC_STATEID_WRITE };

struct ssc_stateid_found {
	bool is_special;            /* all zeros or all ones: nobody's */
	bool bypass;                /* all ones: READ may ignore share reservations */
	struct ssc_stateid stateid; /* with "current" resolved */
};

/**
 * @brief Check @stateid for @use on @obj, which is the saved file when @is_saved, else the current.
 *
 * The special stateid "current" means what the compound last worked on with that file handle.
 * @return an nfsstat4: NFS4_OK; BAD_STATEID, OLD_STATEID, STALE_STATEID, OPENMODE
 */
nfsstat4 ssc_stateid_check(compound_data_t *data, struct fsal_obj_handle *obj, bool is_saved,
			   const struct ssc_stateid *stateid, enum ssc_stateid_use use,
			   struct ssc_stateid_found *found);

/** @brief Whether @obj still has a state that @found named. True for special ones. */
bool ssc_stateid_is_alive(struct fsal_obj_handle *obj, const struct ssc_stateid_found *found);

#endif /* SSC_STATEID_H */
