/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_wait.c - those who wait for a mount.
 *
 * A wait is in two lists, its source's and that of all by their deadline, or in none: wait->source tells.
 * Whoever takes it out of both under the lock calls its done, after the unlock; a cancel that comes
 * later finds it in none. So done runs once, nothing points to a wait when it does, and done may free it.
 *
 * All wait equally long and the clock is read under the lock, so the list by deadline is in order
 * without sorting. A wait holds no reference: a PENDING source has that of its attempt.
 */
#include "source_internal.h"
#include "ssc/clock.h"

void ssc_source_wait_locked(struct ssc_source *source, struct ssc_source_wait *wait,
			    uint64_t now_ns)
{
	struct ssc_source_cache *cache = source->cache;

	wait->source = source;
	wait->until_ns = ssc_source_later(now_ns, cache->cfg.wait_ns);
	TAILQ_INSERT_TAIL(&source->waits, wait, by_source);
	TAILQ_INSERT_TAIL(&cache->by_deadline, wait, by_deadline);
	source->n_waits++;
	ssc_source_arm(cache, wait->until_ns);
}

static void take_locked(struct ssc_source_wait *wait)
{
	struct ssc_source *source = wait->source;

	TAILQ_REMOVE(&source->waits, wait, by_source);
	TAILQ_REMOVE(&source->cache->by_deadline, wait, by_deadline);
	source->n_waits--;
	wait->source = NULL;
}

uint32_t ssc_source_take_waits_locked(struct ssc_source *source, struct ssc_source_waits *waits)
{
	struct ssc_source_wait *wait;
	uint32_t n = 0;

	while ((wait = TAILQ_FIRST(&source->waits)) != NULL) {
		take_locked(wait);
		TAILQ_INSERT_TAIL(waits, wait, by_source);
		n++;
	}
	return n;
}

void ssc_source_take_late_locked(struct ssc_source_cache *cache, uint64_t now_ns,
				 struct ssc_source_waits *waits)
{
	struct ssc_source_wait *wait;

	while ((wait = TAILQ_FIRST(&cache->by_deadline)) != NULL && wait->until_ns <= now_ns) {
		take_locked(wait);
		TAILQ_INSERT_TAIL(waits, wait, by_source);
		cache->stats.timeouts++;
	}
}

void ssc_source_run_waits(struct ssc_source_waits *waits, enum ssc_err err,
			  struct ssc_source *source)
{
	struct ssc_source_wait *wait;

	while ((wait = TAILQ_FIRST(waits)) != NULL) {
		TAILQ_REMOVE(waits, wait, by_source);
		wait->done(wait, err, err == SSC_OK ? source : NULL);
	}
}

bool ssc_source_cache_cancel(struct ssc_source_cache *cache, struct ssc_source_wait *wait)
{
	bool is_waiting;

	pthread_mutex_lock(&cache->lock);
	is_waiting = wait->source != NULL;
	if (is_waiting)
		take_locked(wait);
	pthread_mutex_unlock(&cache->lock);
	return is_waiting;
}

/* ---- waiting on the spot ---- */

struct sync_wait {
	struct ssc_source_wait wait; /* first: done finds the whole by it */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* guarded by lock */
	bool is_done;
	enum ssc_err err;
	struct ssc_source *source;
};

static void sync_done(struct ssc_source_wait *wait, enum ssc_err err, struct ssc_source *source)
{
	struct sync_wait *sync = (struct sync_wait *)wait;

	pthread_mutex_lock(&sync->lock);
	sync->is_done = true;
	sync->err = err;
	sync->source = source;
	pthread_cond_signal(&sync->cond);
	pthread_mutex_unlock(&sync->lock);
}

enum ssc_err ssc_source_cache_get(struct ssc_source_cache *cache, const struct ssc_source_key *key,
				  struct ssc_source **out)
{
	struct sync_wait sync = {.wait.done = sync_done};

	*out = ssc_source_cache_try(cache, key);
	if (*out != NULL)
		return SSC_OK;
	pthread_mutex_init(&sync.lock, NULL);
	pthread_cond_init(&sync.cond, NULL);
	ssc_source_cache_get_async(cache, key, &sync.wait);
	/* Bounded: the cache's timer ends every wait. */
	pthread_mutex_lock(&sync.lock);
	while (!sync.is_done)
		pthread_cond_wait(&sync.cond, &sync.lock);
	pthread_mutex_unlock(&sync.lock);
	pthread_cond_destroy(&sync.cond);
	pthread_mutex_destroy(&sync.lock);
	*out = sync.source;
	return sync.err;
}
