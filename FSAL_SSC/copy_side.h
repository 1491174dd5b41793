/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_side.h - one side of a copy: a file of this server as the copy engine sees it.
 *
 * Object     struct ssc_copy_side. Two ways to the data:
 *            upstream  a file of a re-export: READ and WRITE go to the upstream directly, past the
 *                      server's cache, from completion to completion (copy_side_upstream.c)
 *            host      a file of a stacked export: by the server's own methods, which block, so on a
 *                      worker of the engine (copy_side_host.c)
 * Identity   The caller's, as that side's export maps it, copied when the side is made.
 * References the side holds its export and its object from _new until _free.
 * Threads    _new: the request's, with op_ctx of that side's export. Others: any, with any op_ctx or none.
 * Locks      none held; host methods take the server's.
 */
#ifndef SSC_COPY_SIDE_H
#define SSC_COPY_SIDE_H

#include "ssc/copy_engine.h"

#include "copy_export.h"
#include "glue.h"

struct ssc_copy_side {
	struct ssc_copy_file file; /* must be first: what the engine is given */
	struct gsh_export *gsh_export;
	struct fsal_obj_handle *obj;
	bool bypass; /* reservations are in order: an open state was checked */
	/* host: the identity */
	struct user_cred creds; /* with a garray of its own */
	struct export_perms perms;
	/* upstream */
	struct ssc_export *exp; /* NULL: host */
	struct ssc_handle *h;
	struct ssc_cred cred;
	bool has_limit; /* calls are answered within Upstream_Timeout_Ms, or count as DELAY */
	struct ssc_fh fh;
	/* what was written */
	atomic_bool has_unstable;
	_Atomic uint64_t generation; /* the oldest verifier's that a write belongs to; 0: none */
};

/**
 * @brief A side for @obj of op_ctx's export. @exp: its re-export, NULL when stacked.
 *
 * @bypass: an open state was checked. @has_limit: the client waits for the copy.
 */
struct ssc_copy_side *ssc_copy_side_new(struct fsal_obj_handle *obj, struct ssc_export *exp,
					bool bypass, bool has_limit);

/** @brief Drop the references. NULL is allowed. Not on a thread that reads upstream replies. */
void ssc_copy_side_free(struct ssc_copy_side *side);

/**
 * @brief The destination was written to: the server's cache is to ask for its attributes anew, and the
 *        running request is answered with the verifier that its writes belong to.
 *
 * Threads: with op_ctx of the side's export; is_request: op_ctx is that of the COPY itself.
 */
void ssc_copy_side_wrote(struct ssc_copy_side *side, bool is_request);

/** @brief Enter and leave a context as the side's caller on this thread. */
void ssc_copy_side_enter(struct ssc_copy_side *side, struct req_op_context *ctx);
void ssc_copy_side_leave(void);

/** @brief Have the server's cache ask for @obj's attributes anew. op_ctx of its export. */
void ssc_copy_side_forget_attrs(struct fsal_obj_handle *obj);

/** @brief The size of @obj now, not what the cache remembers. Blocks. op_ctx of its export. */
fsal_status_t ssc_copy_side_size(struct fsal_obj_handle *obj, struct ssc_export *exp,
				 uint64_t *size);

/* ---- the two ways ---- */

extern const struct ssc_copy_file_ops ssc_copy_side_upstream_ops;
extern const struct ssc_copy_file_ops ssc_copy_side_host_ops;

#endif /* SSC_COPY_SIDE_H */
