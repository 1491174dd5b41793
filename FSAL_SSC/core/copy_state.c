/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_state.c - copy stateids and what becomes of the copies behind them.
 *
 * A state is in the list of running ones until its copy ends, known to its client or not, and then,
 * if it still is known, in the list of kept ones, oldest end first. by_key finds the known ones.
 *     event              known  list      callback
 *     new                yes    running
 *     cancel             no     running   never
 *     client gone        no     running   never
 *     revoke (export)    yes    running   says ADMIN_REVOKED
 *     end                       kept, or none if not known; a callback if known
 *     told OK            yes    kept      done
 *     told AGAIN         yes    kept      at next_try_ns
 *     keep_ns, pushed out no    none      none but the one on its way
 * What comes first under the lock wins: a cancel that finds the copy ended says COMPLETE_ALREADY and
 * changes nothing; an end that finds it cancelled sends nothing.
 *
 * Ops run without the lock, so whoever calls one holds a reference. What lost its last one is
 * collected in a list and freed after the unlock. A state holds its table, so that answers to callbacks may
 * come after ssc_copy_table_free.
 *
 * One timer for all: the earliest of what expires and what is to be tried again.
 *
 * Does not copy, does not know the wire, does not check whose file it is.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "copy_state_internal.h"
#include "ssc/clock.h"

/* However small retry_ns is: a callback that fails at once must not keep the timer thread busy. */
#define RETRY_MIN_NS SSC_NS_PER_MS

/*
 * After NO_ROOM the end of another callback has us try again. This is for when that came before we said
 * that we wait for it, and for callbacks that are not ours; doubles up to retry_ns.
 */
#define ROOM_MIN_NS (5 * SSC_NS_PER_MS)

/* ---- references ---- */

void ssc_copy_table_put(struct ssc_copy_table *table, uint64_t n)
{
	bool is_last;

	pthread_mutex_lock(&table->lock);
	table->refs -= n;
	is_last = table->refs == 0;
	pthread_mutex_unlock(&table->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&table->ended);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static void put_locked(struct ssc_copy_state *state, struct ssc_copy_dead_list *dead)
{
	if (--state->refs == 0)
		SLIST_INSERT_HEAD(dead, state, dead);
}

void ssc_copy_unlock_and_bury(struct ssc_copy_table *table, struct ssc_copy_dead_list *dead)
{
	struct ssc_copy_state *state;
	uint64_t n = 0;

	pthread_mutex_unlock(&table->lock);
	while ((state = SLIST_FIRST(dead)) != NULL) {
		SLIST_REMOVE_HEAD(dead, dead);
		state->ops->free(state->ctx);
		free(state);
		n++;
	}
	if (n != 0)
		ssc_copy_table_put(table, n);
}

/* ---- stateids ---- */

static struct ssc_copy_state_bucket *bucket_of(struct ssc_copy_table *table,
					       const struct ssc_stateid *stateid)
{
	return &table->by_key[ssc_base_hash(stateid->other, sizeof(stateid->other), 0) %
			      SSC_COPY_BUCKETS];
}

/*
 * Distinct within this table, since mixing is a bijection of the serial number, and not to be guessed
 * from others. The middle says that it is none of the host's: see instance.
 */
static void make_stateid(struct ssc_copy_table *table, struct ssc_copy_state *state)
{
	uint64_t id =
		ssc_base_mix(ssc_base_mix(state->serial ^ table->secret[0]) ^ table->secret[1]);
	uint32_t not_the_hosts = ~table->cfg.instance;
	uint8_t *other = state->stateid.other;

	state->stateid.seqid = 1;
	memcpy(other, &id, 4);
	memcpy(other + 4, &not_the_hosts, 4);
	memcpy(other + 8, (const uint8_t *)&id + 4, 4);
}

static struct ssc_copy_state *find_locked(struct ssc_copy_table *table, uint64_t client,
					  const struct ssc_stateid *stateid)
{
	struct ssc_copy_state *state;

	/* RFC 7862 4.8: 0 does not stand for the newest here. Ours never change, so they stay 1. */
	if (stateid->seqid != 1)
		return NULL;
	LIST_FOREACH(state, bucket_of(table, stateid), by_key)
	{
		if (memcmp(state->stateid.other, stateid->other, SSC_STATEID_OTHER_BYTES) == 0)
			return state->client == client ? state : NULL;
	}
	return NULL;
}

void ssc_copy_forget_locked(struct ssc_copy_state *state, struct ssc_copy_dead_list *dead)
{
	struct ssc_copy_table *table = state->table;

	state->is_known = false;
	LIST_REMOVE(state, by_key);
	if (state->phase != SSC_COPY_RUNNING) {
		TAILQ_REMOVE(&table->kept, state, link);
		table->stats.kept--;
	}
	put_locked(state, dead);
}

/* ---- callbacks and time ---- */

static void arm_locked(struct ssc_copy_table *table, uint64_t at_ns)
{
	if (!table->is_closed)
		ssc_timer_arm_earlier(&table->timer, at_ns);
}

/* Drops the lock while it sends. */
static void send_locked(struct ssc_copy_state *state)
{
	struct ssc_copy_table *table = state->table;

	state->is_sending = true;
	state->is_poked = state->wants_room = false;
	state->refs++; /* dropped by told */
	table->stats.callbacks_sent++;
	pthread_mutex_unlock(&table->lock);
	state->ops->send(state->ctx, state, &state->stateid, &state->outcome);
	pthread_mutex_lock(&table->lock);
}

static bool is_waiting(const struct ssc_copy_state *state)
{
	return state->phase == SSC_COPY_ENDED && !state->is_sending;
}

/* A callback of @client is over: there is room for one that waits for it. */
static void give_room_locked(struct ssc_copy_table *table, uint64_t client)
{
	struct ssc_copy_state *state;

	TAILQ_FOREACH(state, &table->kept, link)
	{
		if (state->client != client || !state->wants_room || !is_waiting(state))
			continue;
		state->wants_room = false; /* the next one is another's */
		state->next_try_ns = 0;
		arm_locked(table, 0);
		return;
	}
}

/* It is to be sent again: after *@pause_ns, which doubles, or at once. */
static void retry_locked(struct ssc_copy_state *state, uint64_t *pause_ns, uint64_t max_ns)
{
	uint64_t now_ns = ssc_clock_now_ns();

	state->table->stats.callbacks_again++;
	if (!state->is_known)
		return;
	state->next_try_ns = state->is_poked ? now_ns : now_ns + *pause_ns;
	if (!state->is_poked && *pause_ns < max_ns)
		*pause_ns *= 2;
	arm_locked(state->table, state->next_try_ns);
}

void ssc_copy_state_told(struct ssc_copy_state *state, enum ssc_copy_told told)
{
	struct ssc_copy_table *table = state->table;
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);

	pthread_mutex_lock(&table->lock);
	assert(state->is_sending);
	state->is_sending = false;
	if (told != SSC_TOLD_NO_ROOM)
		give_room_locked(table, state->client);
	switch (told) {
	case SSC_TOLD_OK:
		state->phase = SSC_COPY_TOLD;
		break;
	case SSC_TOLD_AGAIN:
		retry_locked(state, &state->retry_ns, table->cfg.keep_ns / 8);
		break;
	case SSC_TOLD_NO_ROOM:
		state->wants_room = true;
		retry_locked(state, &state->room_ns, table->cfg.retry_ns);
		break;
	}
	put_locked(state, &dead);
	ssc_copy_unlock_and_bury(table, &dead);
}

void ssc_copy_table_poke(struct ssc_copy_table *table, uint64_t client)
{
	struct ssc_copy_state *state;

	pthread_mutex_lock(&table->lock);
	TAILQ_FOREACH(state, &table->kept, link)
	{
		if (state->client != client || state->phase != SSC_COPY_ENDED)
			continue;
		state->retry_ns = table->cfg.retry_ns;
		state->is_poked = state->is_sending;
		state->next_try_ns = 0;
		if (!state->is_sending)
			arm_locked(table, 0);
	}
	pthread_mutex_unlock(&table->lock);
}

static void expire_locked(struct ssc_copy_table *table, uint64_t now_ns,
			  struct ssc_copy_dead_list *dead)
{
	struct ssc_copy_state *state;

	while ((state = TAILQ_FIRST(&table->kept)) != NULL &&
	       now_ns - state->ended_ns >= table->cfg.keep_ns)
		ssc_copy_forget_locked(state, dead);
}

static struct ssc_copy_state *due_locked(struct ssc_copy_table *table, uint64_t now_ns)
{
	struct ssc_copy_state *state;

	TAILQ_FOREACH(state, &table->kept, link)
	{
		if (is_waiting(state) && state->next_try_ns <= now_ns)
			return state;
	}
	return NULL;
}

static void fire(struct ssc_timer *timer)
{
	struct ssc_copy_table *table =
		(struct ssc_copy_table *)((char *)timer - offsetof(struct ssc_copy_table, timer));
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	struct ssc_copy_state *state;
	uint64_t now_ns;
	uint32_t most;

	pthread_mutex_lock(&table->lock);
	now_ns = ssc_clock_now_ns(); /* not before any ended_ns, so under the lock */
	expire_locked(table, now_ns, &dead);
	/* Each one once: who is poked while it is sent waits for the next round. */
	for (most = table->stats.kept; most > 0 && (state = due_locked(table, now_ns)); most--)
		send_locked(state);
	state = TAILQ_FIRST(&table->kept);
	if (state != NULL)
		arm_locked(table, state->ended_ns + table->cfg.keep_ns);
	TAILQ_FOREACH(state, &table->kept, link)
	{
		if (is_waiting(state))
			arm_locked(table, state->next_try_ns);
	}
	ssc_copy_unlock_and_bury(table, &dead);
}

/* ---- a copy's life ---- */

static bool is_over_limit_locked(const struct ssc_copy_table *table, uint64_t client)
{
	const struct ssc_copy_state *state;
	uint32_t n = 0;

	if (table->is_stopped || table->stats.running >= table->cfg.max)
		return true;
	TAILQ_FOREACH(state, &table->running, link)
	{
		n += state->client == client;
	}
	return n >= table->cfg.max_per_client;
}

struct ssc_copy_state *ssc_copy_state_new(struct ssc_copy_table *table, uint64_t client,
					  uint32_t src_export, uint32_t dst_export,
					  const struct ssc_copy_state_ops *ops, void *ctx,
					  struct ssc_stateid *stateid)
{
	struct ssc_copy_state *state = calloc(1, sizeof(*state));

	if (state == NULL)
		abort();
	state->table = table;
	state->client = client;
	state->src_export = src_export;
	state->dst_export = dst_export;
	state->ops = ops;
	state->ctx = ctx;
	state->is_known = true;
	state->refs = 2; /* the table's and the running copy's */
	pthread_mutex_lock(&table->lock);
	if (is_over_limit_locked(table, client)) {
		table->stats.refused++;
		pthread_mutex_unlock(&table->lock);
		free(state);
		return NULL;
	}
	table->refs++;
	state->serial = ++table->serial;
	state->retry_ns = table->cfg.retry_ns;
	state->room_ns = ROOM_MIN_NS;
	make_stateid(table, state);
	*stateid = state->stateid;
	LIST_INSERT_HEAD(bucket_of(table, &state->stateid), state, by_key);
	TAILQ_INSERT_TAIL(&table->running, state, link);
	table->stats.running++;
	table->stats.started++;
	pthread_mutex_unlock(&table->lock);
	return state;
}

/*
 * Too many are kept: which goes? What was told rather than what is owed, then one of the same client rather than
 * of another, then the oldest. Never @newest.
 */
static void push_out_locked(struct ssc_copy_table *table, const struct ssc_copy_state *newest,
			    struct ssc_copy_dead_list *dead)
{
	struct ssc_copy_state *state, *best = NULL;
	unsigned int best_rank = 0;

	TAILQ_FOREACH(state, &table->kept, link)
	{
		unsigned int rank =
			1 + (state->client == newest->client) + 2 * (state->phase == SSC_COPY_TOLD);

		if (state != newest && rank > best_rank) {
			best = state;
			best_rank = rank;
		}
	}
	if (best != NULL)
		ssc_copy_forget_locked(best, dead);
}

void ssc_copy_state_end(struct ssc_copy_state *state, const struct ssc_copy_outcome *outcome)
{
	struct ssc_copy_table *table = state->table;
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);

	pthread_mutex_lock(&table->lock);
	assert(state->phase == SSC_COPY_RUNNING);
	TAILQ_REMOVE(&table->running, state, link);
	table->stats.running--;
	state->phase = SSC_COPY_ENDED;
	state->outcome = *outcome;
	if (state->is_revoked)
		state->outcome.status = SSC_NFS4ERR_ADMIN_REVOKED;
	state->ended_ns = ssc_clock_now_ns();
	pthread_cond_broadcast(&table->ended);
	if (state->is_known) {
		TAILQ_INSERT_TAIL(&table->kept, state, link);
		table->stats.kept++;
		if (table->is_closed)
			ssc_copy_forget_locked(state, &dead);
		else if (table->stats.kept > table->cfg.kept_max)
			push_out_locked(table, state, &dead);
	}
	if (state->is_known) {
		arm_locked(table, state->ended_ns + table->cfg.keep_ns);
		send_locked(state);
	}
	put_locked(state, &dead);
	ssc_copy_unlock_and_bury(table, &dead);
}

/* ---- asking and cancelling ---- */

void ssc_copy_table_status(struct ssc_copy_table *table, uint64_t client,
			   const struct ssc_stateid *stateid, struct ssc_offload_status_res *res)
{
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	struct ssc_copy_state *state;
	uint64_t count;

	*res = (struct ssc_offload_status_res){.status = SSC_NFS4ERR_BAD_STATEID};
	pthread_mutex_lock(&table->lock);
	state = find_locked(table, client, stateid);
	if (state == NULL) {
		pthread_mutex_unlock(&table->lock);
		return;
	}
	res->status = SSC_NFS4_OK;
	if (state->phase == SSC_COPY_RUNNING) {
		state->refs++;
		pthread_mutex_unlock(&table->lock);
		count = state->ops->progress(state->ctx);
		pthread_mutex_lock(&table->lock);
		/* Another thread may have asked later and been told more. */
		if (count > state->seen)
			state->seen = count;
		res->count = state->seen;
		put_locked(state, &dead);
	}
	/* It may have ended while it was asked. */
	if (state->phase != SSC_COPY_RUNNING) {
		res->is_complete = true;
		res->complete = state->outcome.status;
		res->count = state->outcome.count;
	}
	ssc_copy_unlock_and_bury(table, &dead);
}

void ssc_copy_cancel_locked(struct ssc_copy_state *state, struct ssc_copy_dead_list *dead)
{
	struct ssc_copy_table *table = state->table;

	state->is_cancelled = true;
	state->refs++;
	table->stats.cancelled++;
	pthread_mutex_unlock(&table->lock);
	state->ops->cancel(state->ctx);
	pthread_mutex_lock(&table->lock);
	put_locked(state, dead);
}

uint32_t ssc_copy_table_cancel(struct ssc_copy_table *table, uint64_t client,
			       const struct ssc_stateid *stateid)
{
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	uint32_t status = SSC_NFS4_OK;
	struct ssc_copy_state *state;

	pthread_mutex_lock(&table->lock);
	state = find_locked(table, client, stateid);
	if (state == NULL) {
		status = SSC_NFS4ERR_BAD_STATEID;
	} else if (state->phase != SSC_COPY_RUNNING) {
		status = SSC_NFS4ERR_COMPLETE_ALREADY;
	} else {
		ssc_copy_forget_locked(state, &dead);
		if (!state->is_cancelled)
			ssc_copy_cancel_locked(state, &dead);
	}
	ssc_copy_unlock_and_bury(table, &dead);
	return status;
}

/* ---- the table ---- */

struct ssc_copy_table *ssc_copy_table_new(const struct ssc_copy_table_config *cfg)
{
	struct ssc_copy_table *table = calloc(1, sizeof(*table));

	/* Up to 256 bytes come whole or not at all, and not at all only on a kernel without the call. */
	if (table == NULL ||
	    getrandom(table->secret, sizeof(table->secret), 0) != sizeof(table->secret))
		abort();
	table->cfg = *cfg;
	if (table->cfg.retry_ns < RETRY_MIN_NS)
		table->cfg.retry_ns = RETRY_MIN_NS;
	table->refs = 1;
	ssc_timer_init(&table->timer, cfg->timers, fire);
	pthread_mutex_init(&table->lock, NULL);
	ssc_clock_cond_init(&table->ended);
	TAILQ_INIT(&table->running);
	TAILQ_INIT(&table->kept);
	return table;
}
