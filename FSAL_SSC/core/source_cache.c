/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_cache.c - the table of sources: look-up, insertion, the end of all.
 *
 *                    mounted                  last put
 *     miss -> PENDING -------> READY: in use ----------> READY: idle
 *               |                |   ^                    |      |
 *               | failed,        |   +------- hit --------+      | expired, evicted,
 *               | purged         | put_dead, purged              | purged
 *               v                v         last put              v
 *             DEAD             DEAD ------------------------> LEAVING -> freed
 * In the table (is_hashed) is what is PENDING or READY; a source leaves it once and does not come back. A
 * PENDING one that was purged while it was being mounted is unmounted when the attempt ends.
 *
 * Looking up needs a read section only. Insertion, removal and all changes of state happen under
 * the lock, so what a look-up under the lock finds in the table has a reference to share, and there
 * is at most one source per key in the table. The table does not grow: it has room for cfg.max from the start.
 *
 * Memory: a source is freed a grace period after it is out of the table, see source_item.c for who may touch
 * it until then. The cache is freed by the last of its owner, its sources and its threads, a grace period
 * after its owner freed it; its timer is never armed again after stop.
 *
 * Does not know what a mount is, does not choose credentials, does not read.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#include "source_internal.h"
#include "ssc/clock.h"

/* Of buckets; liburcu's smallest table. */
#define BUCKETS_MIN 64

/* ---- life ---- */

void ssc_source_cache_config_init(struct ssc_source_cache_config *cfg)
{
	*cfg = (struct ssc_source_cache_config){
		.idle_ns = 900 * SSC_NS_PER_S,
		.wait_ns = 20 * SSC_NS_PER_S,
		.max = 1024,
		.n_threads = 32, /* so many silent servers before others wait for them */
	};
}

static unsigned long buckets_for(uint32_t n)
{
	unsigned long buckets = BUCKETS_MIN;

	while (buckets < n)
		buckets *= 2;
	return buckets;
}

struct ssc_source_cache *ssc_source_cache_new(const struct ssc_source_cache_config *cfg)
{
	struct ssc_source_cache *cache = calloc(1, sizeof(*cache));

	if (cache == NULL)
		abort();
	assert(cfg->max > 0 && cfg->n_threads > 0 && cfg->wait_ns > 0);
	cache->cfg = *cfg;
	cache->table = cds_lfht_new(buckets_for(cfg->max), BUCKETS_MIN, 0, 0, NULL);
	if (cache->table == NULL)
		abort();
	/* Foreseeable addresses then share buckets at worst. */
	if (getrandom(&cache->secret, sizeof(cache->secret), GRND_NONBLOCK) !=
	    sizeof(cache->secret))
		cache->secret = ssc_base_mix(ssc_clock_now_ns());
	ssc_timer_init(&cache->timer, cfg->timers, ssc_source_fire);
	atomic_init(&cache->armed_ns, UINT64_MAX);
	pthread_mutex_init(&cache->lock, NULL);
	ssc_clock_cond_init(&cache->ended);
	TAILQ_INIT(&cache->all);
	TAILQ_INIT(&cache->by_deadline);
	STAILQ_INIT(&cache->mounts);
	STAILQ_INIT(&cache->unmounts);
	cache->is_owned = true;
	return cache;
}

void ssc_source_cache_unlock(struct ssc_source_cache *cache)
{
	bool is_last = !cache->is_owned && cache->n_all == 0 && cache->n_threads == 0;
	int rc;

	pthread_mutex_unlock(&cache->lock);
	if (!is_last)
		return;
	synchronize_rcu(); /* the last puts may still be about to look whether to arm */
	SSC_TSAN_ACQUIRE(cache);
	rc = cds_lfht_destroy(cache->table, NULL);
	assert(rc == 0);
	(void)rc;
	pthread_cond_destroy(&cache->ended);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static void free_rcu(struct rcu_head *head)
{
	struct ssc_source *source = caa_container_of(head, struct ssc_source, rcu);

	SSC_TSAN_ACQUIRE(source);
	free(source);
}

void ssc_source_forget_locked(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;

	assert(!source->is_hashed && TAILQ_EMPTY(&source->waits));
	assert(ssc_source_count(atomic_load(&source->refs)) == 0);
	TAILQ_REMOVE(&cache->all, source, all);
	cache->n_all--;
	cache->stats.hits += atomic_load(&source->hits);
	cache->stats.bytes += atomic_load(&source->bytes);
	pthread_cond_broadcast(&cache->ended);
	SSC_TSAN_RELEASE(source);
	call_rcu(&source->rcu, free_rcu);
}

static void end_all(struct ssc_source_cache *cache)
{
	struct ssc_source_waits waits = TAILQ_HEAD_INITIALIZER(waits);
	struct ssc_source *source, *next;

	pthread_mutex_lock(&cache->lock);
	cache->is_stopped = true;
	atomic_store(&cache->armed_ns, 0);
	for (source = TAILQ_FIRST(&cache->all); source != NULL; source = next) {
		next = TAILQ_NEXT(source, all);
		(void)ssc_source_take_waits_locked(source, &waits);
		if (source->is_hashed)
			ssc_source_drop_locked(source);
	}
	pthread_mutex_unlock(&cache->lock);
	/* Whoever lowered armed_ns before that arms the timer within its read section or the lock. */
	synchronize_rcu();
	ssc_timer_disarm(&cache->timer);
	ssc_source_run_waits(&waits, SSC_E_SHUTDOWN, NULL);
}

bool ssc_source_cache_stop(struct ssc_source_cache *cache, uint64_t until_ns)
{
	bool is_ended;

	end_all(cache);
	pthread_mutex_lock(&cache->lock);
	while ((cache->n_all > 0 || cache->n_threads > 0) && ssc_clock_now_ns() < until_ns) {
		/* No thread could be started: then here. */
		if (cache->n_threads == 0 && ssc_source_work_locked(cache))
			continue;
		ssc_clock_wait(&cache->ended, &cache->lock, until_ns);
	}
	is_ended = cache->n_all == 0 && cache->n_threads == 0;
	pthread_mutex_unlock(&cache->lock);
	return is_ended;
}

void ssc_source_cache_free(struct ssc_source_cache *cache)
{
	if (cache == NULL)
		return;
	pthread_mutex_lock(&cache->lock);
	assert(cache->is_stopped);
	cache->is_owned = false;
	ssc_source_cache_unlock(cache);
	rcu_barrier(); /* what was given back is free when the module is left */
}

/* ---- look-up ---- */

static int match_rcu(struct cds_lfht_node *node, const void *key)
{
	struct ssc_source *source = caa_container_of(node, struct ssc_source, node);
	bool is_equal;

	SSC_TSAN_ACQUIRE(source);
	is_equal = ssc_source_key_equal(&source->key, key);
	SSC_TSAN_RELEASE(source);
	return is_equal;
}

static struct ssc_source *find_rcu(struct ssc_source_cache *cache, const struct ssc_source_key *key)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	cds_lfht_lookup(cache->table, ssc_source_key_hash(key, cache->secret), match_rcu, key,
			&iter);
	node = cds_lfht_iter_get_node(&iter);
	return node == NULL ? NULL : caa_container_of(node, struct ssc_source, node);
}

struct ssc_source *ssc_source_cache_try(struct ssc_source_cache *cache,
					const struct ssc_source_key *key)
{
	struct ssc_source *source;
	bool is_hit = false;

	rcu_read_lock();
	source = find_rcu(cache, key);
	if (source != NULL) {
		is_hit = atomic_load_explicit(&source->state, memory_order_acquire) ==
				 SSC_SOURCE_READY &&
			 ssc_source_get_unless_zero(source);
		SSC_TSAN_RELEASE(source);
	}
	rcu_read_unlock();
	if (!is_hit)
		return NULL;
	atomic_fetch_add_explicit(&source->hits, 1, memory_order_relaxed);
	return source;
}

/* ---- insertion ---- */

static struct ssc_source *find_locked(struct ssc_source_cache *cache,
				      const struct ssc_source_key *key)
{
	struct ssc_source *source;

	rcu_read_lock();
	source = find_rcu(cache, key);
	rcu_read_unlock();
	return source; /* nothing leaves the table while the lock is held */
}

/* Evicting does not help against too many that leave. */
static bool make_room_locked(struct ssc_source_cache *cache, bool may_evict)
{
	if (cache->n_all / 2 >= cache->cfg.max)
		return false;
	return cache->n_hashed < cache->cfg.max || (may_evict && ssc_source_evict_locked(cache));
}

static struct ssc_source *insert_locked(struct ssc_source_cache *cache,
					const struct ssc_source_key *key)
{
	struct ssc_source *source = ssc_source_new(cache, key);

	TAILQ_INSERT_TAIL(&cache->all, source, all);
	cache->n_all++;
	source->is_hashed = true;
	cache->n_hashed++;
	cache->stats.misses++;
	SSC_TSAN_RELEASE(source);
	rcu_read_lock();
	cds_lfht_add(cache->table, ssc_source_key_hash(key, cache->secret), &source->node);
	rcu_read_unlock();
	ssc_source_queue_mount_locked(source);
	return source;
}

/* @return SSC_OK: *hit is a reference, or @wait waits if *hit is NULL. */
static enum ssc_err ask_locked(struct ssc_source_cache *cache, const struct ssc_source_key *key,
			       struct ssc_source_wait *wait, struct ssc_source **hit)
{
	struct ssc_source *source;

	if (cache->is_stopped)
		return SSC_E_SHUTDOWN;
	source = find_locked(cache, key);
	if (source != NULL && atomic_load(&source->state) == SSC_SOURCE_READY) {
		/* It was mounted since the look-up without the lock. */
		atomic_fetch_add(&source->refs, 1);
		atomic_fetch_add(&source->hits, 1);
		*hit = source;
		return SSC_OK;
	}
	if (source != NULL) {
		cache->stats.waits++;
	} else if (make_room_locked(cache, true)) {
		source = insert_locked(cache, key);
	} else {
		cache->stats.refused++;
		return SSC_E_JUKEBOX;
	}
	ssc_source_wait_locked(source, wait, ssc_clock_now_ns());
	return SSC_OK;
}

void ssc_source_cache_get_async(struct ssc_source_cache *cache, const struct ssc_source_key *key,
				struct ssc_source_wait *wait)
{
	struct ssc_source *hit = ssc_source_cache_try(cache, key);
	enum ssc_err err = SSC_OK;

	wait->source = NULL;
	if (hit == NULL) {
		pthread_mutex_lock(&cache->lock);
		err = ask_locked(cache, key, wait, &hit);
		pthread_mutex_unlock(&cache->lock);
	}
	if (err != SSC_OK || hit != NULL)
		wait->done(wait, err, hit);
}

void ssc_source_cache_warm(struct ssc_source_cache *cache, const struct ssc_source_key *key)
{
	pthread_mutex_lock(&cache->lock);
	if (!cache->is_stopped && make_room_locked(cache, false) && find_locked(cache, key) == NULL)
		(void)insert_locked(cache, key);
	pthread_mutex_unlock(&cache->lock);
}

/* ---- for the administrator ---- */

static void describe_locked(struct ssc_source *source, uint64_t now_ns,
			    struct ssc_source_info *info)
{
	uint32_t n = ssc_source_count(atomic_load(&source->refs));
	uint64_t used_ns = atomic_load(&source->used_ns);

	*info = (struct ssc_source_info){
		.key = source->key,
		.state = atomic_load(&source->state),
		.n_pins = atomic_load(&source->n_pins),
		.n_waits = source->n_waits,
		.hits = atomic_load(&source->hits),
		.bytes = atomic_load(&source->bytes),
	};
	n -= n > 0 && source->is_hashed;
	n -= n > 0 && info->state == SSC_SOURCE_PENDING;
	info->n_users = n;
	if (n == 0 && info->state != SSC_SOURCE_PENDING && now_ns > used_ns)
		info->idle_ns = now_ns - used_ns;
}

uint32_t ssc_source_cache_list(struct ssc_source_cache *cache, struct ssc_source_info *infos,
			       uint32_t max)
{
	struct ssc_source *source;
	uint32_t n = 0;

	pthread_mutex_lock(&cache->lock);
	TAILQ_FOREACH(source, &cache->all, all)
	{
		if (n < max)
			describe_locked(source, ssc_clock_now_ns(), &infos[n]);
		n++;
	}
	pthread_mutex_unlock(&cache->lock);
	return n;
}

void ssc_source_cache_stats(struct ssc_source_cache *cache, struct ssc_source_cache_stats *stats)
{
	struct ssc_source *source;

	pthread_mutex_lock(&cache->lock);
	*stats = cache->stats;
	stats->n_sources = cache->n_hashed;
	stats->n_leaving = cache->n_all - cache->n_hashed;
	TAILQ_FOREACH(source, &cache->all, all)
	{
		stats->hits += atomic_load(&source->hits);
		stats->bytes += atomic_load(&source->bytes);
	}
	pthread_mutex_unlock(&cache->lock);
}
