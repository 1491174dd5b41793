/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * open.c - open2, reopen2, close2, status2, and the share reservations behind them.
 *
 * NFSv3 has no open, so an open state is only a share reservation, counted here among the clients of
 * this server, and the flags that it was made with.
 *
 * open2 comes in two shapes:
 *   by handle   reserve -> cut off -> compare the exclusive create's verifier -> attributes
 *   by name     create or look up -> (existing: as by handle) -> reserve
 *               A create is always GUARDED upstream, so that it cannot touch a file that is there
 *               after all. The cache above has looked the name up before, so that is rare.
 *
 * EXCLUSIVE stores the client's verifier in atime and mtime, as servers commonly do, with the top bits
 * of both halves left out: a server may not be able to store times beyond 2038.
 *
 * A file opened by handle has its attributes asked for anew: a client that opens a file must see
 * what others wrote through other servers before they closed it. The LOOKUP of the same request has
 * asked already, if its reply shows the file as it is kept, or later.
 *
 * Locks: obj_lock round share counters, never while the upstream works.
 */
#include "glue.h"

/* A name that keeps vanishing between CREATE and LOOKUP is somebody's game: come back later. */
#define CREATE_TRIES 3

/* The host's default free_state and status2 want the flags right behind the state. */
struct open_state {
	struct state_t state;
	struct fsal_fd fd;
};

/* What open2 was asked for. */
struct open_args {
	struct state_t *state; /* NULL: by NFSv3 CREATE, nothing is reserved */
	fsal_openflags_t flags;
	enum fsal_create_mode mode;
	struct fsal_attrlist *attrs_in;
	const char *verifier; /* of EXCLUSIVE and EXCLUSIVE_41 */
};

static struct fsal_fd *fd_of(struct state_t *state)
{
	return &container_of(state, struct open_state, state)->fd;
}

struct state_t *ssc_open_alloc_state(struct fsal_export *export, enum state_type type,
				     struct state_t *related)
{
	struct open_state *s = gsh_calloc(1, sizeof(*s));

	_Static_assert(offsetof(struct open_state, fd) == sizeof(struct state_t),
		       "the host looks for the flags there");
	s->fd.openflags = FSAL_O_CLOSED;
	return init_state(&s->state, export, type, related);
}

/* ---- share reservations ---- */

static fsal_status_t reserve(struct ssc_handle *h, struct state_t *state, fsal_openflags_t flags)
{
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);

	if (state == NULL)
		return status;
	PTHREAD_RWLOCK_wrlock(&h->obj.obj_lock);
	status = check_share_conflict(&h->share, flags, false);
	if (!FSAL_IS_ERROR(status)) {
		update_share_counters(&h->share, FSAL_O_CLOSED, flags);
		fd_of(state)->openflags = FSAL_O_NFS_FLAGS(flags);
	}
	PTHREAD_RWLOCK_unlock(&h->obj.obj_lock);
	return status;
}

static void give_back(struct ssc_handle *h, struct state_t *state)
{
	if (state == NULL)
		return;
	PTHREAD_RWLOCK_wrlock(&h->obj.obj_lock);
	update_share_counters(&h->share, fd_of(state)->openflags, FSAL_O_CLOSED);
	fd_of(state)->openflags = FSAL_O_CLOSED;
	PTHREAD_RWLOCK_unlock(&h->obj.obj_lock);
}

static bool is_share_state(const struct state_t *state)
{
	return state->state_type == STATE_TYPE_SHARE || state->state_type == STATE_TYPE_NLM_SHARE ||
	       state->state_type == STATE_TYPE_9P_FID;
}

fsal_status_t ssc_open_allows(struct ssc_handle *h, struct state_t *state, fsal_openflags_t flags,
			      bool bypass)
{
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);
	bool is_allowed = false;

	PTHREAD_RWLOCK_rdlock(&h->obj.obj_lock);
	if (state != NULL && is_share_state(state))
		is_allowed = (fd_of(state)->openflags & flags) == flags;
	else if (state != NULL &&
		 (state->state_type == STATE_TYPE_LOCK || state->state_type == STATE_TYPE_NLM_LOCK))
		/* The server has checked the open state that the lock belongs to. */
		is_allowed = true;
	if (!is_allowed)
		status = check_share_conflict(&h->share, flags, bypass);
	PTHREAD_RWLOCK_unlock(&h->obj.obj_lock);
	return status;
}

/* ---- opens without a state ---- */

/*
 * After an open without a state, which is an NFSv3 CREATE, the server counts one more open file, until
 * close finds the file open. Files are never open here, so the count would grow until the server takes
 * no more creates. The thread that opened goes on to put the handle into the reply, or closes when it
 * finds that the caller had no permission; whichever comes takes the file off the count again.
 */
static __thread unsigned int n_counted;

void ssc_open_uncount(void)
{
	for (; n_counted > 0; n_counted--) {
		if (atomic_fetch_size_t(&open_fd_count) > 0)
			(void)atomic_dec_size_t(&open_fd_count);
	}
}

static fsal_status_t open_close(struct fsal_obj_handle *obj)
{
	(void)obj;
	if (n_counted == 0)
		return fsalstat(ERR_FSAL_NOT_OPENED, 0);
	n_counted--; /* the server takes it off */
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* ---- steps ---- */

static bool is_exclusive(enum fsal_create_mode mode)
{
	return mode == FSAL_EXCLUSIVE || mode == FSAL_EXCLUSIVE_41;
}

static void verifier_times(const char *verifier, int64_t *atime_s, int64_t *mtime_s)
{
	uint32_t hi, lo;

	memcpy(&hi, verifier, sizeof(hi));
	memcpy(&lo, verifier + sizeof(hi), sizeof(lo));
	*atime_s = hi & INT32_MAX;
	*mtime_s = lo & INT32_MAX;
}

static bool verifier_is(const struct ssc_attrs *attrs, const char *verifier)
{
	int64_t atime_s, mtime_s;

	verifier_times(verifier, &atime_s, &mtime_s);
	return attrs->atime.s == atime_s && attrs->mtime.s == mtime_s;
}

static bool open_check_verifier(struct fsal_obj_handle *obj, fsal_verifier_t verifier)
{
	struct ssc_attrs attrs;

	return ssc_attrs_fetch(ssc_export_now(), ssc_handle_of(obj), &attrs) == SSC_OK &&
	       verifier_is(&attrs, verifier);
}

static enum ssc_err check_is_file(const struct ssc_attrs *attrs)
{
	switch (attrs->type) {
	case SSC_FT_REG:
		return SSC_OK;
	case SSC_FT_DIR:
		return SSC_E_ISDIR;
	default:
		return SSC_E_BADTYPE;
	}
}

static fsal_status_t open_status(enum ssc_err err)
{
	/* By name, the server above wants to hear of other types that they are not files. */
	if (err == SSC_E_BADTYPE)
		return fsalstat(ERR_FSAL_SYMLINK, 0);
	return ssc_fsal_status(err);
}

/*
 * The file that the running request met last, with the attributes that are kept of it. The cache
 * above looks a name up before it opens the file by its handle, in one request; the time tells the
 * request from the next one whose context is at that address.
 */
static __thread struct {
	const struct ssc_handle *h;
	const struct req_op_context *ctx;
	struct timespec start;
} met;

void ssc_open_met(struct ssc_handle *h, struct ssc_handle *again)
{
	struct ssc_attrs attrs;

	met.h = NULL;
	if (!ssc_kept_get(&again->kept, 0, &attrs) || !ssc_kept_confirm(&h->kept, &attrs))
		return;
	met.h = h;
	met.ctx = op_ctx;
	met.start = op_ctx->start_time;
}

static bool has_met(const struct ssc_handle *h)
{
	return met.h == h && met.ctx == op_ctx && met.start.tv_sec == op_ctx->start_time.tv_sec &&
	       met.start.tv_nsec == op_ctx->start_time.tv_nsec;
}

/*
 * Let the cache above forget the attributes of @h, so that it asks for them; and forget what is kept,
 * unless the upstream told it within this request.
 */
static void distrust_cached(struct ssc_export *exp, struct ssc_handle *h)
{
	const struct fsal_up_vector *up = exp->export.up_ops;
	struct gsh_buffdesc key = {.addr = h->key.data, .len = h->key.len};

	if (has_met(h))
		ssc_noted_set(op_ctx, h, 0);
	else
		ssc_kept_forget(&h->kept);
	up->invalidate(up, &key, FSAL_UP_INVALIDATE_ATTRS);
}

static enum ssc_err cut_off(struct ssc_export *exp, struct ssc_handle *h, struct ssc_attrs *attrs)
{
	const struct ssc_sattr set = {.set_size = true, .size = 0};

	return ssc_attrs_set(exp, h, &set, attrs);
}

/* ---- an existing file ---- */

/* Cut it off or compare its verifier, as asked; *attrs are current afterwards. */
static enum ssc_err open_existing(struct ssc_export *exp, struct ssc_handle *h,
				  const struct open_args *args, struct ssc_attrs *attrs)
{
	enum ssc_err err;

	if (is_exclusive(args->mode)) {
		/* The caller's own earlier create, or not: then nothing may change. */
		err = ssc_attrs_fetch(exp, h, attrs);
		if (err == SSC_OK && !verifier_is(attrs, args->verifier))
			err = SSC_E_EXIST;
		return err;
	}
	if (args->flags & FSAL_O_TRUNC)
		return cut_off(exp, h, attrs);
	return ssc_attrs_fetch(exp, h, attrs);
}

static fsal_status_t open_by_handle(struct ssc_export *exp, struct ssc_handle *h,
				    const struct open_args *args, struct fsal_attrlist *attrs_out)
{
	bool must_ask = is_exclusive(args->mode) || (args->flags & FSAL_O_TRUNC) != 0 ||
			(attrs_out != NULL && (attrs_out->request_mask & ATTR_RDATTR_ERR) == 0);
	struct ssc_attrs attrs;
	fsal_status_t status;
	enum ssc_err err;

	if (h->obj.type != REGULAR_FILE)
		return open_status(h->obj.type == DIRECTORY ? SSC_E_ISDIR : SSC_E_BADTYPE);
	status = reserve(h, args->state, args->flags);
	if (FSAL_IS_ERROR(status))
		return status;
	if (!must_ask) {
		/* A client that opens asks for attributes next: that is the time to get them. */
		distrust_cached(exp, h);
		ssc_attrs_show_none(attrs_out);
		return status;
	}
	err = open_existing(exp, h, args, &attrs);
	if (err != SSC_OK) {
		give_back(h, args->state);
		ssc_attrs_show_none(attrs_out);
		return ssc_fsal_status(err);
	}
	ssc_attrs_show(exp, h, &attrs, attrs_out);
	return status;
}

/* ---- by name ---- */

struct create_args {
	const char *name;
	struct ssc_sattr set;
};

static enum ssc_err fill_create(struct ssc_call *call, const struct ssc_fh *other, const void *arg)
{
	const struct create_args *args = arg;

	(void)other;
	call->arg.create.how = SSC_CREATE_GUARDED;
	call->arg.create.set = args->set;
	return ssc_call_set_name(call, args->name);
}

static enum ssc_err create(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
			   const struct open_args *args, struct ssc_handle **made,
			   struct ssc_attrs *attrs)
{
	struct create_args create_args = {.name = name};
	struct ssc_run run = {
		.exp = exp,
		.h = dir,
		.op = SSC_OP_CREATE,
		.fill = fill_create,
		.arg = &create_args,
	};
	struct ssc_sattr *set = &create_args.set;
	struct ssc_call *call;
	enum ssc_err err;

	ssc_attrs_to_make(args->attrs_in, set);
	if (is_exclusive(args->mode)) {
		set->atime_how = SSC_TIME_CLIENT;
		set->mtime_how = SSC_TIME_CLIENT;
		verifier_times(args->verifier, &set->atime.s, &set->mtime.s);
	}
	err = ssc_run(&run, &call);
	if (err == SSC_OK)
		err = ssc_namespace_made(exp, dir, name, call, made, attrs);
	ssc_call_put(call);
	return err;
}

/* Look the name up and treat what is there as an existing file. */
static enum ssc_err find(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
			 const struct open_args *args, struct ssc_handle **found,
			 struct ssc_attrs *attrs)
{
	bool must_ask = is_exclusive(args->mode) || (args->flags & FSAL_O_TRUNC) != 0;
	enum ssc_err err = ssc_namespace_lookup(exp, dir, name, found, attrs);

	if (err != SSC_OK)
		return err;
	err = check_is_file(attrs);
	if (err == SSC_OK && must_ask)
		err = open_existing(exp, *found, args, attrs);
	if (err != SSC_OK) {
		ssc_handle_free(*found);
		*found = NULL;
	}
	return err;
}

static enum ssc_err create_or_find(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
				   const struct open_args *args, struct ssc_handle **h,
				   struct ssc_attrs *attrs, bool *is_created)
{
	enum ssc_err err = SSC_E_JUKEBOX;

	for (int i = 0; i < CREATE_TRIES; i++) {
		*is_created = args->mode != FSAL_NO_CREATE;
		if (*is_created) {
			err = create(exp, dir, name, args, h, attrs);
			if (err != SSC_E_EXIST || args->mode == FSAL_GUARDED ||
			    args->mode == FSAL_EXCLUSIVE_9P)
				return err;
		}
		*is_created = false;
		err = find(exp, dir, name, args, h, attrs);
		if (err != SSC_E_NOENT || args->mode == FSAL_NO_CREATE)
			return err;
	}
	return SSC_E_JUKEBOX;
}

static fsal_status_t open_by_name(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
				  const struct open_args *args, struct fsal_obj_handle **new_obj,
				  struct fsal_attrlist *attrs_out, bool *caller_perm_check)
{
	struct ssc_handle *h = NULL;
	struct ssc_attrs attrs;
	fsal_status_t status;
	bool is_created = false;
	enum ssc_err err;

	if (dir->obj.type != DIRECTORY)
		return fsalstat(ERR_FSAL_NOTDIR, ENOTDIR);
	err = create_or_find(exp, dir, name, args, &h, &attrs, &is_created);
	if (err != SSC_OK)
		return open_status(err);
	/* Nobody else has this object yet: a conflict shows when it is merged with another one. */
	status = reserve(h, args->state, args->flags);
	if (FSAL_IS_ERROR(status)) {
		ssc_handle_free(h);
		return status;
	}
	ssc_attrs_show(exp, h, &attrs, attrs_out);
	*new_obj = &h->obj;
	*caller_perm_check = !is_created;
	return status;
}

static fsal_status_t open_open2(struct fsal_obj_handle *obj, struct state_t *state,
				fsal_openflags_t flags, enum fsal_create_mode mode,
				const char *name, struct fsal_attrlist *attrs_in,
				fsal_verifier_t verifier, struct fsal_obj_handle **new_obj,
				struct fsal_attrlist *attrs_out, bool *caller_perm_check)
{
	struct ssc_export *exp = ssc_export_now();
	struct open_args args = {
		.state = state,
		.flags = flags,
		.mode = mode,
		.attrs_in = attrs_in,
		.verifier = verifier,
	};

	fsal_status_t status;

	*caller_perm_check = true;
	if (name != NULL)
		status = open_by_name(exp, ssc_handle_of(obj), name, &args, new_obj, attrs_out,
				      caller_perm_check);
	else
		status = open_by_handle(exp, ssc_handle_of(obj), &args, attrs_out);
	if (state == NULL && !FSAL_IS_ERROR(status))
		n_counted++;
	return status;
}

/* ---- states ---- */

static fsal_status_t open_reopen2(struct fsal_obj_handle *obj, struct state_t *state,
				  fsal_openflags_t flags)
{
	struct ssc_handle *h = ssc_handle_of(obj);
	struct fsal_fd *fd = fd_of(state);
	fsal_openflags_t old;
	fsal_status_t status;
	enum ssc_err err;

	PTHREAD_RWLOCK_wrlock(&obj->obj_lock);
	old = fd->openflags;
	/* Its own reservation must not stand in its way. */
	update_share_counters(&h->share, old, FSAL_O_CLOSED);
	status = check_share_conflict(&h->share, flags, false);
	if (FSAL_IS_ERROR(status)) {
		update_share_counters(&h->share, FSAL_O_CLOSED, old);
	} else {
		update_share_counters(&h->share, FSAL_O_CLOSED, flags);
		fd->openflags = FSAL_O_NFS_FLAGS(flags);
	}
	PTHREAD_RWLOCK_unlock(&obj->obj_lock);
	if (FSAL_IS_ERROR(status))
		return status;
	if ((flags & FSAL_O_TRUNC) == 0) {
		/* Also when its owner opens a file a second time. */
		distrust_cached(ssc_export_now(), h);
		return status;
	}

	err = cut_off(ssc_export_now(), h, NULL);
	if (err != SSC_OK) {
		PTHREAD_RWLOCK_wrlock(&obj->obj_lock);
		update_share_counters(&h->share, fd->openflags, old);
		fd->openflags = old;
		PTHREAD_RWLOCK_unlock(&obj->obj_lock);
	}
	return ssc_fsal_status(err);
}

static fsal_status_t open_close2(struct fsal_obj_handle *obj, struct state_t *state)
{
	if (is_share_state(state))
		give_back(ssc_handle_of(obj), state);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

void ssc_open_ops_init(struct fsal_obj_ops *ops)
{
	ops->open2 = open_open2;
	ops->check_verifier = open_check_verifier;
	ops->reopen2 = open_reopen2;
	ops->close = open_close;
	ops->close2 = open_close2;
	/* status2: the default reads the flags behind the state */
}
