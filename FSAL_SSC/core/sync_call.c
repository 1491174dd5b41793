/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_call.c - waits for calls, and keeps those that are not idempotent beyond the answer limit.
 *
 * An idempotent call needs nothing but an answer on the waiter's stack. Any other one gets a flight:
 *     SENT     submitted, its runner waits
 *     PENDING  done said TIMEDOUT: in the table, a retry waits for late
 *     FINISHED late came, or the outcome is known to be unknown: in the table, a retry takes it
 *     GONE     not in the table: claimed, aged out, pushed out, made void, or never let in
 *     moves    SENT -> PENDING -> FINISHED -> GONE;  SENT -> GONE (table full of PENDING ones);
 *              PENDING -> GONE (repeatable: its retry had only to wait)
 * Who holds a flight: its runner; the table; the upstream from done(TIMEDOUT) to late; a retry that
 * waits for it. done puts it into the table before it wakes the runner, so a client cannot be told
 * to come back before there is something to join.
 *
 * Locks: caller.lock (table, states, references), answer.lock (one waiter); neither within the
 * other, neither held while the upstream works.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "ssc/clock.h"
#include "ssc/log.h"
#include "sync_internal.h"

/* Two minutes: a Linux client repeats a delayed request within seconds, at most 15 s apart. */
#define LATE_KEEP_NS (120 * SSC_NS_PER_S)

/* Twice the longest pause that a Linux client makes: see ssc_caller_before. */
#define BEFORE_KEEP_NS (30 * SSC_NS_PER_S)

/* Entries of about 1 KiB with their calls: at most 4 MiB per export. */
#define LATE_MAX  4096

#define N_BUCKETS 1024 /* four entries in each at most, on average */

/* How long a caller reads the socket itself. A reply later than this may cost a thread change. */
#define DRIVE_NS (50 * SSC_NS_PER_MS)

struct answer {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* guarded by lock */
	bool is_there;
	enum ssc_err err;
};

enum flight_state { FLIGHT_SENT, FLIGHT_PENDING, FLIGHT_FINISHED, FLIGHT_GONE };

struct flight {
	/* constant */
	struct ssc_caller *caller;
	struct ssc_call *call; /* a reference */
	uint64_t who;
	uint64_t hash;
	uint64_t touched[SSC_SYNC_NAMES];
	bool maybe_repeat; /* an earlier sending of the same request has an unknown outcome */

	struct answer answer; /* the runner's */

	/* guarded by caller.lock */
	unsigned int refs;
	enum flight_state state;
	enum ssc_err err; /* of a FINISHED one */
	uint64_t finished_ns;
	pthread_cond_t news; /* state left PENDING */
	LIST_ENTRY(flight) in_bucket;
	TAILQ_ENTRY(flight) in_finished;
};

struct ssc_caller {
	struct ssc_upstream *up; /* borrowed */
	void (*on_late)(void *ctx, const struct ssc_call *call);
	void *on_late_ctx;
	_Atomic uint64_t timeout_ns;
	pthread_mutex_t lock;
	/* guarded by lock */
	size_t n_late;
	TAILQ_HEAD(finished_list, flight) finished; /* oldest first */
	LIST_HEAD(bucket, flight) bucket[N_BUCKETS];
};

/* One run of the function that users call. */
struct request {
	uint64_t who;
	uint64_t hash;
	uint64_t touched[SSC_SYNC_NAMES];
	uint64_t until_ns;
	bool maybe_repeat;
};

/* ---- waiting for an answer ---- */

static void answer_init(struct answer *answer)
{
	pthread_mutex_init(&answer->lock, NULL);
	pthread_cond_init(&answer->cond, NULL);
	answer->is_there = false;
}

static void answer_fini(struct answer *answer)
{
	pthread_cond_destroy(&answer->cond);
	pthread_mutex_destroy(&answer->lock);
}

/* The waiter may free @answer as soon as the lock is free. */
static void answer_give(struct answer *answer, enum ssc_err err)
{
	pthread_mutex_lock(&answer->lock);
	answer->err = err;
	answer->is_there = true;
	pthread_cond_signal(&answer->cond);
	pthread_mutex_unlock(&answer->lock);
}

/* Without a deadline of its own: the upstream promises done by the call's. */
static enum ssc_err answer_wait(struct answer *answer)
{
	enum ssc_err err;

	pthread_mutex_lock(&answer->lock);
	while (!answer->is_there)
		pthread_cond_wait(&answer->cond, &answer->lock);
	err = answer->err;
	pthread_mutex_unlock(&answer->lock);
	return err;
}

static void plain_done(struct ssc_call *call)
{
	answer_give(call->ctx, call->err);
}

/* @call is submitted at most once, so these fields are still ours. */
static enum ssc_err send_and_wait(struct ssc_caller *caller, struct ssc_call *call,
				  struct answer *answer, uint64_t until_ns)
{
	call->answer_by_ns = until_ns;
	call->drive_ns = DRIVE_NS;
	call->done_only_wakes = true;
	caller->up->ops->submit(caller->up, call);
	return answer_wait(answer);
}

struct ssc_call *ssc_sync_ask_new(struct ssc_caller *caller, enum ssc_op op,
				  const struct ssc_call *call)
{
	struct ssc_call *ask = ssc_call_new(caller->up, op);

	ask->cred = call->cred;
	return ask;
}

enum ssc_err ssc_sync_ask(struct ssc_caller *caller, struct ssc_call *ask, uint64_t until_ns)
{
	struct answer answer;
	enum ssc_err err;

	answer_init(&answer);
	ask->done = plain_done;
	ask->late = NULL;
	ask->ctx = &answer;
	err = send_and_wait(caller, ask, &answer, until_ns);
	answer_fini(&answer);
	return err;
}

/* ---- flights and their table ---- */

static bool is_same_request(const struct flight *f, const struct request *r,
			    const struct ssc_call *call)
{
	return f->hash == r->hash && f->who == r->who && ssc_sync_key_equal(f->call, call);
}

static struct flight *flight_new(struct ssc_caller *caller, const struct request *r,
				 struct ssc_call *call)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (f == NULL)
		abort();
	f->caller = caller;
	f->call = ssc_call_get(call);
	f->who = r->who;
	f->hash = r->hash;
	memcpy(f->touched, r->touched, sizeof(f->touched));
	f->maybe_repeat = r->maybe_repeat;
	f->refs = 1;
	answer_init(&f->answer);
	ssc_clock_cond_init(&f->news);
	return f;
}

static void put_locked(struct flight *f)
{
	if (--f->refs > 0)
		return;
	pthread_cond_destroy(&f->news);
	answer_fini(&f->answer);
	ssc_call_put(f->call);
	free(f);
}

/* Out of the table, with the table's reference. Those who wait for it look again. */
static void remove_locked(struct flight *f)
{
	if (f->state == FLIGHT_FINISHED)
		TAILQ_REMOVE(&f->caller->finished, f, in_finished);
	LIST_REMOVE(f, in_bucket);
	f->caller->n_late--;
	f->state = FLIGHT_GONE;
	pthread_cond_broadcast(&f->news);
	put_locked(f);
}

static void age_out_locked(struct ssc_caller *caller)
{
	uint64_t now = ssc_clock_now_ns();
	struct flight *f;

	while ((f = TAILQ_FIRST(&caller->finished)) != NULL && now - f->finished_ns >= LATE_KEEP_NS)
		remove_locked(f);
}

/* False: no room, since all entries are still awaited. */
static bool insert_locked(struct ssc_caller *caller, struct flight *f)
{
	age_out_locked(caller);
	if (caller->n_late >= LATE_MAX && !TAILQ_EMPTY(&caller->finished))
		remove_locked(TAILQ_FIRST(&caller->finished));
	if (caller->n_late >= LATE_MAX) {
		f->state = FLIGHT_GONE;
		return false;
	}
	f->refs++;
	f->state = FLIGHT_PENDING;
	LIST_INSERT_HEAD(&caller->bucket[f->hash % N_BUCKETS], f, in_bucket);
	caller->n_late++;
	return true;
}

static void finish_locked(struct ssc_caller *caller, struct flight *f, enum ssc_err err)
{
	f->err = err;
	f->finished_ns = ssc_clock_now_ns();
	f->state = FLIGHT_FINISHED;
	TAILQ_INSERT_TAIL(&caller->finished, f, in_finished);
	pthread_cond_broadcast(&f->news);
}

static struct flight *find_locked(struct ssc_caller *caller, const struct request *r,
				  const struct ssc_call *call)
{
	struct flight *f;

	LIST_FOREACH(f, &caller->bucket[r->hash % N_BUCKETS], in_bucket)
	{
		if (is_same_request(f, r, call))
			return f;
	}
	return NULL;
}

static void flight_done(struct ssc_call *call)
{
	struct flight *f = call->ctx;
	struct ssc_caller *caller = f->caller;
	enum ssc_err err = call->err;
	bool is_kept = true;

	if (err == SSC_E_TIMEDOUT) {
		pthread_mutex_lock(&caller->lock);
		f->refs++; /* the upstream's, until late */
		is_kept = insert_locked(caller, f);
		pthread_mutex_unlock(&caller->lock);
	}
	if (!is_kept)
		ssc_log_warn("%s timed out and %d others are awaited: its retry cannot be joined",
			     ssc_op_str(call->op), LATE_MAX);
	answer_give(&f->answer, err);
}

static void flight_late(struct ssc_call *call)
{
	struct flight *f = call->ctx;
	struct ssc_caller *caller = f->caller;

	if (call->err == SSC_OK && caller->on_late != NULL)
		caller->on_late(caller->on_late_ctx, call);
	pthread_mutex_lock(&caller->lock);
	if (f->state == FLIGHT_PENDING) {
		if (ssc_sync_is_repeatable(call))
			remove_locked(f);
		else
			finish_locked(caller, f, call->err);
	}
	put_locked(f);
	pthread_mutex_unlock(&caller->lock);
}

/* ---- one request ---- */

static bool is_unknown(enum ssc_err outcome)
{
	return outcome == SSC_E_CONN || outcome == SSC_E_DOWN || outcome == SSC_E_TIMEDOUT ||
	       outcome == SSC_E_PROTO || outcome == SSC_E_SHUTDOWN;
}

/*
 * Another request for a name that a finished one made, removed or moved: the retry of that one, if it
 * still comes, finds other things than it left. Its client may also have given it up, and the next
 * request that looks like it is a new one.
 */
static void forget_touched_locked(struct ssc_caller *caller, const struct request *r,
				  const struct ssc_call *call)
{
	struct flight *f, *next;

	for (f = TAILQ_FIRST(&caller->finished); f != NULL; f = next) {
		next = TAILQ_NEXT(f, in_finished);
		if (ssc_sync_names_meet(f->touched, r->touched) && !is_same_request(f, r, call))
			remove_locked(f);
	}
}

/* False when time runs out before @f leaves PENDING. */
static bool await_locked(struct ssc_caller *caller, struct flight *f, uint64_t until_ns)
{
	bool is_settled;

	f->refs++;
	while (f->state == FLIGHT_PENDING && ssc_clock_now_ns() < until_ns)
		ssc_clock_wait(&f->news, &caller->lock, until_ns);
	is_settled = f->state != FLIGHT_PENDING;
	put_locked(f);
	return is_settled;
}

/*
 * Take part in an earlier sending of the same request. True when there was one to take part in: then
 * *err is its outcome, with *callp replaced, or TIMEDOUT while it has none. False: send, as one
 * that is perhaps a repetition if r->maybe_repeat says so now.
 */
static bool join(struct ssc_caller *caller, struct request *r, struct ssc_call **callp,
		 enum ssc_err *err)
{
	struct flight *f;
	bool joined = false;

	pthread_mutex_lock(&caller->lock);
	age_out_locked(caller);
	forget_touched_locked(caller, r, *callp);
	while (!joined && (f = find_locked(caller, r, *callp)) != NULL) {
		if (f->state == FLIGHT_PENDING) {
			if (caller->up->ops->is_silent(caller->up) ||
			    !await_locked(caller, f, r->until_ns)) {
				*err = SSC_E_TIMEDOUT;
				joined = true;
			}
			continue; /* a twin may have been quicker */
		}
		*err = f->err;
		joined = !is_unknown(f->err);
		r->maybe_repeat = r->maybe_repeat || f->maybe_repeat || !joined;
		if (joined) {
			ssc_call_put(*callp);
			*callp = ssc_call_get(f->call);
		}
		remove_locked(f);
	}
	pthread_mutex_unlock(&caller->lock);
	return joined;
}

static enum ssc_err run_flight(struct ssc_caller *caller, const struct request *r,
			       struct ssc_call *call)
{
	struct flight *f = flight_new(caller, r, call);
	enum ssc_err err;

	call->done = flight_done;
	call->late = flight_late;
	call->ctx = f;
	err = send_and_wait(caller, call, &f->answer, r->until_ns);
	pthread_mutex_lock(&caller->lock);
	put_locked(f);
	pthread_mutex_unlock(&caller->lock);
	return err;
}

/* Whether the client comes back after @err and a sending of its request has an unknown outcome. */
static bool must_remember(const struct ssc_call *call, enum ssc_err err, bool maybe_repeat)
{
	if (ssc_sync_is_repeatable(call))
		return false;
	if (err == SSC_E_CONN || err == SSC_E_TIMEDOUT)
		return true;
	return maybe_repeat && (err == SSC_E_DOWN || err == SSC_E_JUKEBOX);
}

static void remember_unknown(struct ssc_caller *caller, const struct request *r,
			     struct ssc_call *call)
{
	struct flight *f = flight_new(caller, r, call);

	pthread_mutex_lock(&caller->lock);
	if (insert_locked(caller, f))
		finish_locked(caller, f, SSC_E_CONN);
	put_locked(f);
	pthread_mutex_unlock(&caller->lock);
}

enum ssc_err ssc_caller_run(struct ssc_caller *caller, uint64_t who, struct ssc_call **callp)
{
	const uint64_t timeout_ns = atomic_load(&caller->timeout_ns);
	struct request r = {.who = who, .until_ns = ssc_clock_now_ns() + timeout_ns};
	enum ssc_err err;
	bool joined;

	if (ssc_call_is_idempotent(*callp))
		return ssc_sync_ask(caller, *callp, r.until_ns);
	r.hash = ssc_sync_key_hash(who, *callp);
	ssc_sync_names(*callp, r.touched);
	joined = join(caller, &r, callp, &err);
	if (!joined)
		err = run_flight(caller, &r, *callp);
	if (err == SSC_E_TIMEDOUT)
		return err; /* it stays, or is, in the table */
	r.maybe_repeat = r.maybe_repeat || (*callp)->retried;
	if (r.maybe_repeat && (err == SSC_E_EXIST || err == SSC_E_NOENT))
		err = ssc_sync_decide(caller, *callp, err, r.until_ns + timeout_ns);
	(*callp)->err = err;
	if (must_remember(*callp, err, r.maybe_repeat))
		remember_unknown(caller, &r, *callp);
	return err;
}

/* ---- the state before ---- */

static bool changes_name(const struct ssc_call *call, const struct ssc_fh *dir, const char *name)
{
	switch (call->op) {
	case SSC_OP_CREATE:
	case SSC_OP_REMOVE:
	case SSC_OP_RMDIR:
	case SSC_OP_RENAME:
		return ssc_sync_fh_equal(&call->fh, dir) && strcmp(call->name, name) == 0;
	default:
		return false;
	}
}

static bool may_have_changed(const struct flight *f)
{
	return f->state == FLIGHT_PENDING ||
	       (f->state == FLIGHT_FINISHED && (f->err == SSC_OK || is_unknown(f->err)) &&
		ssc_clock_now_ns() - f->finished_ns < BEFORE_KEEP_NS);
}

static struct flight *find_change_locked(struct ssc_caller *caller, uint64_t who,
					 const struct ssc_fh *dir, const char *name)
{
	struct flight *f;

	if (caller->n_late == 0)
		return NULL;
	for (size_t i = 0; i < N_BUCKETS; i++) {
		LIST_FOREACH(f, &caller->bucket[i], in_bucket)
		{
			if (f->who == who && may_have_changed(f) &&
			    changes_name(f->call, dir, name))
				return f;
		}
	}
	return NULL;
}

struct ssc_before ssc_caller_before(struct ssc_caller *caller, uint64_t who,
				    const struct ssc_fh *dir, const char *name)
{
	struct ssc_before before = {.what = SSC_BEFORE_SAME};
	const struct flight *f;

	pthread_mutex_lock(&caller->lock);
	f = find_change_locked(caller, who, dir, name);
	if (f != NULL) {
		before.is_pending = f->state == FLIGHT_PENDING;
		before.what = SSC_BEFORE_ABSENT;
	}
	if (f != NULL && f->call->op != SSC_OP_CREATE) {
		before.what = SSC_BEFORE_OBJECT;
		before.is_dir = f->call->op == SSC_OP_RMDIR;
		before.object = f->call->arg.rename.object;
	}
	pthread_mutex_unlock(&caller->lock);
	return before;
}

/* ---- the caller ---- */

void ssc_caller_on_late(struct ssc_caller *caller,
			void (*fn)(void *ctx, const struct ssc_call *call), void *ctx)
{
	caller->on_late = fn;
	caller->on_late_ctx = ctx;
}

struct ssc_caller *ssc_caller_new(struct ssc_upstream *up, uint64_t timeout_ns)
{
	struct ssc_caller *caller = calloc(1, sizeof(*caller));

	if (caller == NULL)
		abort();
	caller->up = up;
	atomic_init(&caller->timeout_ns, timeout_ns);
	pthread_mutex_init(&caller->lock, NULL);
	TAILQ_INIT(&caller->finished);
	return caller; /* zeroed buckets are empty ones */
}

void ssc_caller_free(struct ssc_caller *caller)
{
	struct flight *f;

	if (caller == NULL)
		return;
	/* The upstream's stop told every late call's outcome, so none is pending any more. */
	while ((f = TAILQ_FIRST(&caller->finished)) != NULL)
		remove_locked(f);
	pthread_mutex_destroy(&caller->lock);
	free(caller);
}

void ssc_caller_set_timeout(struct ssc_caller *caller, uint64_t timeout_ns)
{
	atomic_store(&caller->timeout_ns, timeout_ns);
}

size_t ssc_caller_n_late(struct ssc_caller *caller)
{
	size_t n;

	pthread_mutex_lock(&caller->lock);
	age_out_locked(caller);
	n = caller->n_late;
	pthread_mutex_unlock(&caller->lock);
	return n;
}
