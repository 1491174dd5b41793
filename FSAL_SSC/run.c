/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * run.c - synchronous calls to the upstream on behalf of the running request.
 *
 * Each goes out with the identity that the server mapped the caller to (squashed, if the export says
 * so), waits at most Upstream_Timeout_Ms, and leaves the attributes of its reply with the object.
 * Threads: the server's. Blocks: so long.
 */
#include <netinet/in.h>

#include "ssc/clock.h"

#include "glue.h"

void ssc_run_cred(struct ssc_cred *cred)
{
	const struct user_cred *creds = &op_ctx->creds;

	/* Contexts without a caller (start, export updates) are zeroed, which is root. */
	cred->uid = creds->caller_uid;
	cred->gid = creds->caller_gid;
	cred->n_groups = creds->caller_glen < SSC_GROUPS_MAX ? creds->caller_glen : SSC_GROUPS_MAX;
	for (uint32_t i = 0; i < cred->n_groups; i++)
		cred->groups[i] = creds->caller_garray[i];
}

uint64_t ssc_run_who(void)
{
	const struct sockaddr_storage *addr = op_ctx->caller_addr;

	if (addr == NULL)
		return 0;
	if (addr->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

		return ssc_base_hash(&in->sin_addr, sizeof(in->sin_addr), 0);
	}
	if (addr->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

		return ssc_base_hash(&in6->sin6_addr, sizeof(in6->sin6_addr), 0);
	}
	return 0;
}

enum ssc_err ssc_run_fh(struct ssc_export *exp, struct ssc_handle *h, const struct ssc_fh *stale,
			struct ssc_fh *fh)
{
	if (ssc_key_form(h->key.data) == SSC_KEY_ROOT)
		return ssc_root_fh(exp, stale, ssc_clock_now_ns() + atomic_load(&exp->timeout_ns),
				   fh);
	ssc_key_fh(h->key.data, h->key.len, fh);
	return SSC_OK;
}

enum ssc_err ssc_run_fill_name(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	(void)other;
	return ssc_call_set_name(call, arg);
}

/* The reply says what the object is like now, or only that we no longer know. */
static void keep_attrs(const struct ssc_run *run, uint64_t ticket, enum ssc_err err,
		       const struct ssc_call *call, bool is_joined)
{
	/*
	 * Between the answer limit and the late reply nobody may look at the result, and the reply
	 * to an earlier request that this one joined may be an old one.
	 */
	bool has_attrs = err != SSC_E_TIMEDOUT && !is_joined && call->has_attrs;

	ssc_kept_arrived(&run->h->kept, ticket, has_attrs ? &call->attrs : NULL, run->is_shrinking);
	if (run->other != NULL && run->other != run->h)
		ssc_kept_forget(&run->other->kept);
}

/* Handles used by one attempt: a second one asks for others in their place. */
struct attempt {
	struct ssc_fh fh;
	struct ssc_fh other_fh;
	bool is_second;
};

/* In this order: who finds none under way finds the count of one that begins or ends moved, later. */
static void begin_change(struct ssc_export *exp)
{
	atomic_fetch_add(&exp->n_changing, 1);
	atomic_fetch_add(&exp->n_changes, 1);
}

static void end_change(struct ssc_export *exp)
{
	atomic_fetch_add(&exp->n_changes, 1);
	atomic_fetch_sub(&exp->n_changing, 1);
}

static enum ssc_err attempt(const struct ssc_run *run, struct attempt *a, struct ssc_call **out)
{
	struct ssc_fh was = a->fh;
	struct ssc_fh other_was = a->other_fh;
	struct ssc_call *call;
	uint64_t ticket;
	enum ssc_err err;
	bool is_change;

	err = ssc_run_fh(run->exp, run->h, a->is_second ? &was : NULL, &a->fh);
	if (err == SSC_OK && run->other != NULL)
		err = ssc_run_fh(run->exp, run->other, a->is_second ? &other_was : NULL,
				 &a->other_fh);
	if (err != SSC_OK)
		return err;

	call = ssc_call_new(run->exp->up, run->op);
	*out = call;
	call->fh = a->fh;
	ssc_run_cred(&call->cred);
	if (run->fill != NULL) {
		err = run->fill(call, run->other != NULL ? &a->other_fh : NULL, run->arg);
		if (err != SSC_OK)
			return err;
	}
	ticket = ssc_kept_ticket(&run->h->kept);
	is_change = !ssc_call_is_idempotent(call);
	if (is_change)
		begin_change(run->exp);
	err = ssc_caller_run(run->exp->caller, ssc_run_who(), out);
	if (is_change)
		end_change(run->exp);
	keep_attrs(run, ticket, err, *out, *out != call);
	return err;
}

/*
 * The request of this thread that changed something last. What the cache above asks for a change of
 * its own it asks on the same thread, in the same context; the time tells a context from the next
 * one at its address.
 */
static __thread struct {
	const struct req_op_context *ctx;
	struct timespec start;
} changed;

static void note_change(const struct ssc_call *call)
{
	if (ssc_call_is_idempotent(call))
		return;
	changed.ctx = op_ctx;
	changed.start = op_ctx->start_time;
}

bool ssc_run_has_changed(void)
{
	return changed.ctx == op_ctx && changed.start.tv_sec == op_ctx->start_time.tv_sec &&
	       changed.start.tv_nsec == op_ctx->start_time.tv_nsec;
}

static bool is_root(const struct ssc_handle *h)
{
	return h != NULL && ssc_key_form(h->key.data) == SSC_KEY_ROOT;
}

enum ssc_err ssc_run(const struct ssc_run *run, struct ssc_call **call)
{
	struct attempt a = {.is_second = false};
	enum ssc_err err;

	*call = NULL;
	err = attempt(run, &a, call);
	if ((err == SSC_E_STALE || err == SSC_E_BADHANDLE) &&
	    (is_root(run->h) || is_root(run->other))) {
		ssc_call_put(*call);
		*call = NULL;
		a.is_second = true;
		err = attempt(run, &a, call);
	}
	if (err == SSC_OK)
		note_change(*call);
	return err;
}

enum ssc_err ssc_run_getattr(struct ssc_export *exp, const struct ssc_fh *fh,
			     struct ssc_attrs *attrs)
{
	struct ssc_call *call = ssc_call_new(exp->up, SSC_OP_GETATTR);
	enum ssc_err err;

	call->fh = *fh;
	ssc_run_cred(&call->cred);
	err = ssc_caller_run(exp->caller, ssc_run_who(), &call);
	if (err == SSC_OK)
		*attrs = call->attrs;
	ssc_call_put(call);
	return err;
}
