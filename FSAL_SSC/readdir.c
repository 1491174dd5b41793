/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * readdir.c - listing directories by READDIRPLUS.
 *
 * A page is one reply of the upstream. Its entries go up one by one, each with an object of its own;
 * the callback says after each whether it wants more. Entries that the server above has no room for
 * but takes as read-ahead are handed up to the end of the page, never further.
 *
 * Cookies    are the upstream's, all 64 bits, but for 0, 1 and 2: NFS reserves them, and a server that
 *            does not list "." and ".." may use them for entries. Those travel as their complement.
 * Verifier   belongs to the upstream's cookies, and Ganesha has no place for it in its own: it is
 *            kept in the directory's object. After a restart of ours it is not known, and zeros
 *            are sent. If the upstream refuses a cookie, a new one is fetched from the beginning.
 * Ahead      The next page is asked for while this one is handed up: ahead.h.
 * Progress   each page must end at another cookie than it was asked from, else a broken server
 *            would keep us here for ever.
 *
 * Locks: handle.lock round the verifier. The server above holds its lock on the content.
 */
#include "ssc/clock.h"

#include "ahead.h"
#include "glue.h"

struct listing {
	struct ssc_export *exp;
	struct ssc_handle *dir;
	fsal_readdir_cb cb;
	void *cb_arg;
	attrmask_t mask;
	uint64_t cookie; /* the upstream's: where the next page starts */
	bool is_ahead;   /* the page was asked for before the server above wanted it */
	bool is_eof;
	bool is_full; /* no further page is wanted */
	bool is_over; /* no further entry is wanted */
};

struct page_args {
	uint64_t cookie;
	uint32_t max_bytes;
	uint8_t verf[SSC_VERF_BYTES];
};

static uint64_t cookie_shown(uint64_t cookie)
{
	return cookie < FIRST_COOKIE ? ~cookie : cookie;
}

static uint64_t cookie_meant(uint64_t cookie)
{
	return ~cookie < FIRST_COOKIE ? ~cookie : cookie;
}

/* ---- one page ---- */

static enum ssc_err fill_page(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	const struct page_args *args = arg;

	(void)other;
	call->arg.readdir.cookie = args->cookie;
	call->arg.readdir.max_bytes = args->max_bytes;
	memcpy(call->arg.readdir.verf, args->verf, sizeof(args->verf));
	return SSC_OK;
}

static enum ssc_err page_ask(struct ssc_export *exp, struct ssc_handle *dir, uint64_t cookie,
			     struct ssc_call **call)
{
	struct page_args args = {.cookie = cookie};
	struct ssc_run run = {
		.exp = exp,
		.h = dir,
		.op = SSC_OP_READDIRPLUS,
		.fill = fill_page,
		.arg = &args,
	};
	struct ssc_upstream_limits limits;
	enum ssc_err err;

	exp->up->ops->limits(exp->up, &limits);
	args.max_bytes = limits.readdir_max_bytes;
	if (cookie != 0) {
		pthread_mutex_lock(&dir->lock);
		memcpy(args.verf, dir->cookie_verf, sizeof(args.verf));
		pthread_mutex_unlock(&dir->lock);
	}
	err = ssc_run(&run, call);
	if (err == SSC_OK) {
		pthread_mutex_lock(&dir->lock);
		memcpy(dir->cookie_verf, (*call)->res.readdir.verf, SSC_VERF_BYTES);
		pthread_mutex_unlock(&dir->lock);
	}
	return err;
}

/* As page_ask, with one more try when the upstream no longer takes the verifier we have. */
static enum ssc_err page_get(struct ssc_export *exp, struct ssc_handle *dir, uint64_t cookie,
			     struct ssc_call **call)
{
	enum ssc_err err = page_ask(exp, dir, cookie, call);

	if (err != SSC_E_BAD_COOKIE || cookie == 0)
		return err;
	ssc_call_put(*call);
	err = page_ask(exp, dir, 0, call);
	if (err != SSC_OK)
		return err;
	ssc_call_put(*call);
	return page_ask(exp, dir, cookie, call);
}

/* ---- the next page ---- */

/* What a page's name points to. */
struct page_parts {
	struct ssc_fh fh;
	struct ssc_cred cred;
	struct ssc_attrs attrs;
};

/* False: it cannot be named. */
static bool page_name(struct ssc_export *exp, struct ssc_handle *dir, uint64_t cookie,
		      struct page_parts *parts, struct ssc_ahead_page *page)
{
	*page = (struct ssc_ahead_page){
		.dir = &parts->fh,
		.cred = &parts->cred,
		.attrs = &parts->attrs,
		.cookie = cookie,
		.n_changes = atomic_load(&exp->n_changes),
	};
	pthread_mutex_lock(&dir->lock);
	memcpy(page->verf, dir->cookie_verf, sizeof(page->verf));
	pthread_mutex_unlock(&dir->lock);
	ssc_run_cred(&parts->cred);
	return ssc_kept_last(&dir->kept, &parts->attrs) &&
	       ssc_run_fh(exp, dir, NULL, &parts->fh) == SSC_OK;
}

static bool page_take(struct listing *l, struct ssc_call **call)
{
	struct ssc_ahead_page page;
	struct page_parts parts;
	uint64_t ticket;

	if (l->cookie == 0 || !page_name(l->exp, l->dir, l->cookie, &parts, &page))
		return false;
	*call = ssc_ahead_take(l->exp->ahead, &page, &ticket);
	if (*call == NULL)
		return false;
	ssc_kept_arrived(&l->dir->kept, ticket, &(*call)->attrs, false);
	return true;
}

/* Ask for the page behind @call's. While names change, nobody knows which page is to be believed. */
static void page_ask_ahead(struct listing *l, const struct ssc_call *call)
{
	const uint64_t by = ssc_clock_now_ns() + atomic_load(&l->exp->timeout_ns);
	uint32_t n = call->res.readdir.n_ents;
	struct ssc_upstream_limits limits;
	struct ssc_ahead_page page;
	struct page_parts parts;

	if (n == 0 || call->res.readdir.eof || !call->has_attrs ||
	    atomic_load(&l->exp->is_leaving) ||
	    !page_name(l->exp, l->dir, call->res.readdir.ents[n - 1].cookie, &parts, &page) ||
	    atomic_load(&l->exp->n_changing) > 0)
		return;
	parts.attrs = call->attrs;
	l->exp->up->ops->limits(l->exp->up, &limits);
	ssc_ahead_ask(l->exp->ahead, &page, limits.readdir_max_bytes, by,
		      ssc_kept_ticket(&l->dir->kept));
}

/* ---- one entry ---- */

/* An object for the entry. NOENT: it is gone meanwhile; XDEV: not to be shown. */
static enum ssc_err entry_object(const struct listing *l, const struct ssc_dirent *ent,
				 struct ssc_handle **h, struct ssc_attrs *attrs)
{
	if (!ent->has_attrs || ent->fh.len == 0)
		return ssc_namespace_lookup(l->exp, l->dir, ent->name, h, attrs);
	if (ssc_namespace_is_closed(l->exp, &ent->attrs, ent->name))
		return SSC_E_XDEV;
	*attrs = ent->attrs;
	*h = ssc_handle_new(l->exp, &ent->fh, attrs);
	if (l->is_ahead) /* not asked for within this request */
		ssc_kept_forget(&(*h)->kept);
	return SSC_OK;
}

static enum ssc_err entry_give(struct listing *l, const struct ssc_dirent *ent)
{
	struct fsal_attrlist shown;
	struct ssc_attrs attrs;
	struct ssc_handle *h;
	enum ssc_err err = entry_object(l, ent, &h, &attrs);

	if (err == SSC_E_NOENT || err == SSC_E_XDEV || err == SSC_E_STALE || err == SSC_E_ACCES)
		return SSC_OK;
	if (err != SSC_OK)
		return err;

	fsal_prepare_attrs(&shown, l->mask);
	ssc_attrs_show(l->exp, h, &attrs, &shown);
	switch (l->cb(ent->name, &h->obj, &shown, l->cb_arg, cookie_shown(ent->cookie))) {
	case DIR_CONTINUE:
		break;
	case DIR_READAHEAD:
		l->is_full = true;
		break;
	case DIR_TERMINATE:
		l->is_over = true;
		break;
	}
	fsal_release_attrs(&shown);
	return SSC_OK;
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static enum ssc_err page_give(struct listing *l, const struct ssc_call *call)
{
	uint64_t asked = l->cookie;
	uint32_t n = call->res.readdir.n_ents;
	enum ssc_err err = SSC_OK;
	uint32_t i;

	if (!call->res.readdir.eof && (n == 0 || call->res.readdir.ents[n - 1].cookie == asked)) {
		ssc_log_warn("%s: the upstream's READDIRPLUS does not get on at cookie %llu",
			     l->exp->name, (unsigned long long)asked);
		return SSC_E_PROTO;
	}
	for (i = 0; i < n && err == SSC_OK && !l->is_over; i++) {
		const struct ssc_dirent *ent = &call->res.readdir.ents[i];

		if (!is_dot(ent->name))
			err = entry_give(l, ent);
		l->cookie = ent->cookie;
	}
	l->is_eof = err == SSC_OK && i == n && call->res.readdir.eof;
	return err;
}

static fsal_status_t readdir_list(struct fsal_obj_handle *obj, fsal_cookie_t *whence, void *cb_arg,
				  fsal_readdir_cb cb, attrmask_t mask, bool *eof)
{
	struct listing l = {
		.exp = ssc_export_now(),
		.dir = ssc_handle_of(obj),
		.cb = cb,
		.cb_arg = cb_arg,
		.mask = mask,
		.cookie = whence != NULL ? cookie_meant(*whence) : 0,
	};
	enum ssc_err err = SSC_OK;
	struct ssc_call *call;

	*eof = false;
	while (err == SSC_OK && !l.is_eof && !l.is_full && !l.is_over) {
		l.is_ahead = page_take(&l, &call);
		if (!l.is_ahead)
			err = page_get(l.exp, l.dir, l.cookie, &call);
		if (err == SSC_OK) {
			page_ask_ahead(&l, call);
			err = page_give(&l, call);
		}
		ssc_call_put(call);
	}
	*eof = l.is_eof;
	return ssc_fsal_status(err);
}

void ssc_readdir_ops_init(struct fsal_obj_ops *ops)
{
	ops->readdir = readdir_list;
}
