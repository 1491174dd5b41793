/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_export.h - which exports take part in server-side copy: re-exports, and those stacked by us.
 *
 * A stacked export is the inner FSAL's own. We keep a note of it, and put ourselves before three of its
 * methods, which are a table of its own:
 *     prepare_unexport    its copies end first
 *     release             the note goes
 *     get_write_verifier  another value after a commit that we made for a client has failed
 *
 * Lifetime   a note lives from the stack's creation until its release; who holds a reference on the
 *            export may use what it found.
 * Threads    any. Locks: module.lock for a moment; nothing blocks.
 */
#ifndef SSC_COPY_EXPORT_H
#define SSC_COPY_EXPORT_H

#include "glue.h"

enum ssc_copy_kind {
	SSC_COPY_NOT,      /* another FSAL's export, or Allow_Copy = false */
	SSC_COPY_REEXPORT, /* exp is it */
	SSC_COPY_STACKED
};

/** @brief The export below the server's cache. */
struct fsal_export *ssc_copy_export_below(const struct gsh_export *gsh_export);

/** @brief What @gsh_export is to us. *exp is set for a re-export. */
enum ssc_copy_kind ssc_copy_export_kind(struct gsh_export *gsh_export, struct ssc_export **exp);

/**
 * @brief What was acknowledged as unstable on @gsh_export may be lost: its clients are to see another
 *        write verifier from now on.
 */
void ssc_copy_export_reset_verifier(struct gsh_export *gsh_export);

/* ---- for stack.c ---- */

/** @brief @inner was made by stacking. */
void ssc_copy_export_stacked(struct fsal_export *inner, bool allow_copy);

/** @brief Allow_Copy may have changed. */
void ssc_copy_export_updated(struct fsal_export *inner, bool allow_copy);

#endif /* SSC_COPY_EXPORT_H */
