/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_upstream.c - script, record and completions of the fake.
 *
 * One lock round everything; completions run without it. With a worker they go through a queue, so
 * that done and then late of one call keep their order.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_upstream.h"
#include "ssc/clock.h"

#define STEPS_MAX 16384 /* more than any test scripts */

/* Some, so that allocation behind the call is exercised. */
#define PRIV_BYTES 40

enum place { PLACE_HELD, PLACE_LATE, PLACE_OVER };

struct entry {
	struct ssc_call *call;
	struct fake_step step;
	struct fake_record record;
	enum place place;
};

struct event {
	struct event *next;
	struct entry *entry;
	enum ssc_err err;
	bool is_late;
	bool is_last; /* the upstream's reference goes with it */
};

struct fake_upstream {
	struct ssc_upstream base;
	atomic_bool silent;
	pthread_mutex_t lock;
	/* guarded by lock */
	pthread_cond_t changed;
	struct fake_step steps[STEPS_MAX];
	bool used[STEPS_MAX];
	unsigned int n_steps;
	struct entry *entries[STEPS_MAX];
	unsigned int n_entries;
	unsigned int n_unexpected;
	bool stopped;
	bool has_worker;
	bool worker_ends;
	pthread_t worker;
	struct event *first;
	struct event **tail;
};

static void fill(struct ssc_call *call, const struct fake_step *step, enum ssc_err err)
{
	call->err = err;
	call->retried = step->retried;
	switch (call->op) {
	case SSC_OP_LOOKUP:
	case SSC_OP_CREATE:
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
		call->res.object.fh = step->fh;
		call->res.object.has_attrs = step->has_attrs;
		call->res.object.attrs = step->attrs;
		return;
	case SSC_OP_READLINK:
		call->res.link.target = step->target ? strdup(step->target) : NULL;
		break;
	case SSC_OP_READ:
	case SSC_OP_WRITE:
	case SSC_OP_COMMIT:
		call->res.io.count = step->count;
		memcpy(call->res.io.verf, step->verf, SSC_VERF_BYTES);
		break;
	default:
		break;
	}
	call->has_attrs = step->has_attrs;
	call->attrs = step->attrs;
}

static void run_event(const struct event *ev)
{
	struct ssc_call *call = ev->entry->call;

	if (ev->is_last)
		fill(call, &ev->entry->step, ev->err);
	else
		call->err = ev->err;
	if (!ev->is_late)
		call->done(call);
	else if (call->late)
		call->late(call);
	if (ev->is_last)
		ssc_call_put(call);
}

static void *work(void *arg)
{
	struct fake_upstream *fake = arg;
	struct event *ev;

	pthread_mutex_lock(&fake->lock);
	for (;;) {
		while (!fake->first && !fake->worker_ends)
			pthread_cond_wait(&fake->changed, &fake->lock);
		ev = fake->first;
		if (!ev)
			break;
		fake->first = ev->next;
		if (!fake->first)
			fake->tail = &fake->first;
		pthread_mutex_unlock(&fake->lock);
		run_event(ev);
		free(ev);
		pthread_mutex_lock(&fake->lock);
	}
	pthread_mutex_unlock(&fake->lock);
	return NULL;
}

/* Drops the lock for the callback when there is no worker. */
static void post_locked(struct fake_upstream *fake, struct entry *entry, enum ssc_err err,
			bool is_late, bool is_last)
{
	struct event ev = {.entry = entry, .err = err, .is_late = is_late, .is_last = is_last};
	struct event *copy;

	if (!fake->has_worker) {
		pthread_mutex_unlock(&fake->lock);
		run_event(&ev);
		pthread_mutex_lock(&fake->lock);
		return;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		abort();
	*copy = ev;
	*fake->tail = copy;
	fake->tail = &copy->next;
	pthread_cond_broadcast(&fake->changed);
}

static void finish_locked(struct fake_upstream *fake, struct entry *entry, enum ssc_err err)
{
	bool is_late = entry->place == PLACE_LATE;

	entry->place = PLACE_OVER;
	post_locked(fake, entry, err, is_late, true);
}

static void expire_locked(struct fake_upstream *fake, struct entry *entry)
{
	entry->place = PLACE_LATE;
	post_locked(fake, entry, SSC_E_TIMEDOUT, false, false);
}

static struct fake_step take_step_locked(struct fake_upstream *fake, enum ssc_op op)
{
	struct fake_step none = {.op = op, .err = SSC_E_SERVERFAULT};
	unsigned int i;

	for (i = 0; i < fake->n_steps; i++) {
		if (!fake->used[i] && (fake->steps[i].op == op || fake->steps[i].op == SSC_OP_N)) {
			fake->used[i] = true;
			return fake->steps[i];
		}
	}
	fake->n_unexpected++;
	return none;
}

static void submit(struct ssc_upstream *up, struct ssc_call *call)
{
	struct fake_upstream *fake = (struct fake_upstream *)up;
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		abort();
	entry->call = ssc_call_get(call);
	entry->record.op = call->op;
	entry->record.cred = call->cred;
	entry->record.fh = call->fh;
	entry->record.answer_by_ns = call->answer_by_ns;
	if (call->name)
		snprintf(entry->record.name, sizeof(entry->record.name), "%s", call->name);
	pthread_mutex_lock(&fake->lock);
	if (fake->n_entries == STEPS_MAX)
		abort();
	fake->entries[fake->n_entries++] = entry;
	pthread_cond_broadcast(&fake->changed);
	if (fake->stopped) {
		finish_locked(fake, entry, SSC_E_SHUTDOWN);
	} else {
		entry->step = take_step_locked(fake, call->op);
		if (entry->step.how == FAKE_LATE || entry->step.how == FAKE_LATE_AT_ONCE)
			expire_locked(fake, entry);
		if ((entry->step.how == FAKE_REPLY || entry->step.how == FAKE_LATE_AT_ONCE) &&
		    entry->place != PLACE_OVER) /* stop may have come while done ran */
			finish_locked(fake, entry, entry->step.err);
	}
	pthread_mutex_unlock(&fake->lock);
}

static enum ssc_err root(struct ssc_upstream *up, bool refresh, uint64_t answer_by_ns,
			 struct ssc_fh *fh)
{
	(void)up;
	(void)refresh;
	(void)answer_by_ns;
	*fh = (struct ssc_fh){.len = 4, .data = "root"};
	return SSC_OK;
}

static void limits(struct ssc_upstream *up, struct ssc_upstream_limits *out)
{
	(void)up;
	*out = (struct ssc_upstream_limits){
		.read_max_bytes = 1 << 20,
		.write_max_bytes = 1 << 20,
		.readdir_max_bytes = 1 << 16,
		.name_max = SSC_NAME_MAX,
		.link_max = 32000,
		.file_size_max = INT64_MAX,
		.time_delta = {.ns = 1},
		.known = true,
	};
}

static void stop(struct ssc_upstream *up)
{
	struct fake_upstream *fake = (struct fake_upstream *)up;
	bool had_worker;
	unsigned int i;

	pthread_mutex_lock(&fake->lock);
	fake->stopped = true;
	for (i = 0; i < fake->n_entries; i++) {
		if (fake->entries[i]->place != PLACE_OVER)
			finish_locked(fake, fake->entries[i], SSC_E_SHUTDOWN);
	}
	had_worker = fake->has_worker;
	fake->worker_ends = true;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	if (!had_worker)
		return;
	pthread_join(fake->worker, NULL);
	pthread_mutex_lock(&fake->lock);
	fake->has_worker = false; /* whoever comes now is answered in submit */
	pthread_mutex_unlock(&fake->lock);
}

static void release_memory(struct ssc_upstream *up)
{
	struct fake_upstream *fake = (struct fake_upstream *)up;
	unsigned int i;

	for (i = 0; i < fake->n_entries; i++)
		free(fake->entries[i]);
	pthread_cond_destroy(&fake->changed);
	pthread_mutex_destroy(&fake->lock);
	free(fake);
}

static bool is_silent(struct ssc_upstream *up)
{
	return atomic_load(&((struct fake_upstream *)up)->silent);
}

static const struct ssc_upstream_ops ops = {
	.submit = submit,
	.root = root,
	.limits = limits,
	.is_silent = is_silent,
	.stop = stop,
	.free = release_memory,
};

struct fake_upstream *fake_upstream_new(void)
{
	struct fake_upstream *fake = calloc(1, sizeof(*fake));

	if (!fake)
		abort();
	fake->base.ops = &ops;
	fake->base.call_priv_bytes = PRIV_BYTES;
	pthread_mutex_init(&fake->lock, NULL);
	ssc_clock_cond_init(&fake->changed);
	fake->tail = &fake->first;
	return fake;
}

struct ssc_upstream *fake_upstream_ops(struct fake_upstream *fake)
{
	return &fake->base;
}

void fake_upstream_use_worker(struct fake_upstream *fake)
{
	fake->has_worker = true;
	if (pthread_create(&fake->worker, NULL, work, fake) != 0)
		abort();
}

void fake_upstream_set_silent(struct fake_upstream *fake, bool silent)
{
	atomic_store(&fake->silent, silent);
}

void fake_upstream_push(struct fake_upstream *fake, const struct fake_step *step)
{
	pthread_mutex_lock(&fake->lock);
	if (fake->n_steps == STEPS_MAX)
		abort();
	fake->steps[fake->n_steps++] = *step;
	pthread_mutex_unlock(&fake->lock);
}

void fake_upstream_release(struct fake_upstream *fake, unsigned int index)
{
	struct entry *entry;

	pthread_mutex_lock(&fake->lock);
	if (index >= fake->n_entries || fake->entries[index]->place == PLACE_OVER)
		abort();
	entry = fake->entries[index];
	finish_locked(fake, entry, entry->step.err);
	pthread_mutex_unlock(&fake->lock);
}

unsigned int fake_upstream_expire(struct fake_upstream *fake)
{
	uint64_t now = ssc_clock_now_ns();
	unsigned int n = 0;
	unsigned int i;

	pthread_mutex_lock(&fake->lock);
	for (i = 0; i < fake->n_entries; i++) {
		struct entry *entry = fake->entries[i];

		if (entry->place == PLACE_HELD && entry->record.answer_by_ns != 0 &&
		    entry->record.answer_by_ns <= now) {
			expire_locked(fake, entry);
			n++;
		}
	}
	pthread_mutex_unlock(&fake->lock);
	return n;
}

void fake_upstream_wait_calls(struct fake_upstream *fake, unsigned int n)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 30;
	pthread_mutex_lock(&fake->lock);
	while (fake->n_entries < n) {
		if (pthread_cond_timedwait(&fake->changed, &fake->lock, &until) != 0)
			abort();
	}
	pthread_mutex_unlock(&fake->lock);
}

unsigned int fake_upstream_n_calls(struct fake_upstream *fake, enum ssc_op op)
{
	unsigned int n = 0;
	unsigned int i;

	pthread_mutex_lock(&fake->lock);
	for (i = 0; i < fake->n_entries; i++)
		n += op == SSC_OP_N || fake->entries[i]->record.op == op;
	pthread_mutex_unlock(&fake->lock);
	return n;
}

unsigned int fake_upstream_n_unexpected(struct fake_upstream *fake)
{
	unsigned int n;

	pthread_mutex_lock(&fake->lock);
	n = fake->n_unexpected;
	pthread_mutex_unlock(&fake->lock);
	return n;
}

unsigned int fake_upstream_n_left(struct fake_upstream *fake)
{
	unsigned int n = 0;
	unsigned int i;

	pthread_mutex_lock(&fake->lock);
	for (i = 0; i < fake->n_steps; i++)
		n += !fake->used[i];
	pthread_mutex_unlock(&fake->lock);
	return n;
}

struct fake_record fake_upstream_record(struct fake_upstream *fake, unsigned int index)
{
	struct fake_record record;

	pthread_mutex_lock(&fake->lock);
	if (index >= fake->n_entries)
		abort();
	record = fake->entries[index]->record;
	pthread_mutex_unlock(&fake->lock);
	return record;
}

void fake_upstream_free(struct fake_upstream *fake)
{
	if (!fake->stopped)
		stop(&fake->base);
	release_memory(&fake->base);
}
