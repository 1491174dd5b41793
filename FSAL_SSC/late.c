/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * late.c - changes that the upstream made after we told the client to come back.
 *
 * The cache above has not heard of them: its listing of a folder still shows a name that was moved
 * away, for up to Attr_Expiration_Time. So it is told to forget what it knows of the folders. That may
 * wait for locks that a worker holds while it waits for the upstream, so a thread of the server's
 * general pool does it, and never the thread that reads the upstream's replies.
 * References  a job holds its export from the late reply until it is done.
 */
#include "export_mgr.h"
#include "fridgethr.h"
#include "nfs_core.h"

#include "glue.h"

#define FORGET                                                   \
	(FSAL_UP_INVALIDATE_ATTRS | FSAL_UP_INVALIDATE_CONTENT | \
	 FSAL_UP_INVALIDATE_DIR_POPULATED | FSAL_UP_INVALIDATE_DIR_CHUNKS)

struct job {
	const struct fsal_up_vector *up;
	struct gsh_export *gsh_export; /* a reference */
	unsigned int n;
	struct ssc_key key[2];
};

static void forget(struct fridgethr_context *thread)
{
	struct job *job = thread->arg;
	struct req_op_context ctx;

	init_op_context_simple(&ctx, job->gsh_export, job->gsh_export->fsal_export);
	for (unsigned int i = 0; i < job->n; i++) {
		struct gsh_buffdesc key = {.addr = job->key[i].data, .len = job->key[i].len};

		(void)job->up->invalidate(job->up, &key, FORGET);
	}
	release_op_context(); /* and the reference */
	gsh_free(job);
}

static void add_dir(struct ssc_export *exp, struct job *job, const struct ssc_fh *fh)
{
	struct ssc_key *key = &job->key[job->n++];

	if (ssc_root_is(exp, fh))
		ssc_key_make_root(exp->upstream_id, exp->path_hash, key);
	else
		ssc_key_make_object(exp->upstream_id, fh, key);
}

static void on_late(void *arg, const struct ssc_call *call)
{
	struct ssc_export *exp = arg;
	struct job *job;

	atomic_fetch_add(&exp->n_changes, 1);
	/* An export on its way out has no cache to keep right, and its references end. */
	if (atomic_load(&exp->is_leaving))
		return;
	job = gsh_calloc(1, sizeof(*job));
	job->up = exp->export.up_ops;
	job->gsh_export = job->up->up_gsh_export;
	add_dir(exp, job, &call->fh);
	if (call->op == SSC_OP_RENAME || call->op == SSC_OP_LINK)
		add_dir(exp, job, &call->arg.rename.to_dir);
	get_gsh_export_ref(job->gsh_export);
	if (fridgethr_submit(general_fridge, forget, job) == 0)
		return;
	/* The server is stopping. Our own reference is not the last: the export still has its own. */
	put_gsh_export(job->gsh_export);
	gsh_free(job);
}

void ssc_late_watch(struct ssc_export *exp)
{
	ssc_caller_on_late(exp->caller, on_late, exp);
}
