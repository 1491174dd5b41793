/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_expiry.c - what leaves the cache before the end: the expired, the longest idle, the purged.
 *
 * One timer serves expiry and the deadlines of waits. It is armed at the earliest of them, or earlier: a
 * source that is used again does not move it, it is looked at when it fires, and the timer armed anew. A
 * put that leaves a source idle lowers armed_ns only if that is later than the source's expiry, which
 * is about once per idle_ns; every other put touches neither timer nor lock.
 *     fire                              last put
 *     armed_ns = never                  refs - 1
 *     look at refs of all               look at armed_ns
 * Either the put sees "never" and arms, or the walk sees the source idle and arms, or both do.
 *
 * The walk goes through the list of all under the lock and never drops it, so no "next" can go stale;
 * those whose time has come are claimed, found no more, and queued for a thread that unmounts them one
 * by one, taking the first of its queue each time. What is in the table is in the list, and the reverse is
 * false.
 */
#include "source_internal.h"
#include "ssc/clock.h"

#define NEVER UINT64_MAX

/* A claim fails when the source was used just then; after so many the cache counts as busy. */
#define EVICT_TRIES 8

uint64_t ssc_source_later(uint64_t now_ns, uint64_t ns)
{
	return ns < NEVER - now_ns ? now_ns + ns : NEVER - 1;
}

void ssc_source_arm(struct ssc_source_cache *cache, uint64_t at_ns)
{
	uint64_t armed_ns = atomic_load(&cache->armed_ns);

	while (at_ns < armed_ns) {
		if (atomic_compare_exchange_weak(&cache->armed_ns, &armed_ns, at_ns)) {
			ssc_timer_arm_earlier(&cache->timer, at_ns);
			return;
		}
	}
}

/* @return the time at which an idle @source expires; NEVER when it is not idle. */
static uint64_t expiry_locked(struct ssc_source *source, uint64_t *refs)
{
	if (atomic_load(&source->state) != SSC_SOURCE_READY)
		return NEVER;
	*refs = atomic_load(&source->refs);
	if (ssc_source_count(*refs) != 1)
		return NEVER;
	return ssc_source_later(atomic_load(&source->used_ns), source->cache->cfg.idle_ns);
}

static uint64_t expire_locked(struct ssc_source_cache *cache, uint64_t now_ns)
{
	struct ssc_source *source, *next;
	uint64_t refs = 0, at_ns, first_ns = NEVER;

	for (source = TAILQ_FIRST(&cache->all); source != NULL; source = next) {
		next = TAILQ_NEXT(source, all);
		at_ns = expiry_locked(source, &refs);
		if (at_ns > now_ns)
			first_ns = at_ns < first_ns ? at_ns : first_ns;
		else
			(void)ssc_source_claim_locked(source, refs); /* else its next put arms */
	}
	return first_ns;
}

void ssc_source_fire(struct ssc_timer *timer)
{
	struct ssc_source_cache *cache = caa_container_of(timer, struct ssc_source_cache, timer);
	struct ssc_source_waits waits = TAILQ_HEAD_INITIALIZER(waits);
	struct ssc_source_wait *first;
	uint64_t now_ns;

	pthread_mutex_lock(&cache->lock);
	if (cache->is_stopped) {
		pthread_mutex_unlock(&cache->lock);
		return;
	}
	atomic_store(&cache->armed_ns, NEVER);
	now_ns = ssc_clock_now_ns();
	ssc_source_take_late_locked(cache, now_ns, &waits);
	ssc_source_arm(cache, expire_locked(cache, now_ns));
	first = TAILQ_FIRST(&cache->by_deadline);
	if (first != NULL)
		ssc_source_arm(cache, first->until_ns);
	ssc_source_kick_locked(cache);
	pthread_mutex_unlock(&cache->lock);
	ssc_source_run_waits(&waits, SSC_E_TIMEDOUT, NULL);
}

bool ssc_source_evict_locked(struct ssc_source_cache *cache)
{
	for (unsigned int i = 0; i < EVICT_TRIES; i++) {
		struct ssc_source *source, *best = NULL;
		uint64_t refs = 0, at_ns, best_refs = 0, best_ns = NEVER;

		TAILQ_FOREACH(source, &cache->all, all)
		{
			at_ns = expiry_locked(source, &refs);
			if (at_ns < best_ns) {
				best = source;
				best_ns = at_ns;
				best_refs = refs;
			}
		}
		if (best == NULL)
			return false;
		if (ssc_source_claim_locked(best, best_refs)) {
			cache->stats.evictions++;
			return true;
		}
	}
	return false;
}

uint32_t ssc_source_cache_purge(struct ssc_source_cache *cache,
				bool (*match)(void *arg, const struct ssc_source_key *key),
				void *arg)
{
	struct ssc_source_waits waits = TAILQ_HEAD_INITIALIZER(waits);
	struct ssc_source *source, *next;
	uint32_t n = 0;

	pthread_mutex_lock(&cache->lock);
	for (source = TAILQ_FIRST(&cache->all); source != NULL; source = next) {
		next = TAILQ_NEXT(source, all);
		if (!source->is_hashed || atomic_load(&source->n_pins) != 0 ||
		    (match != NULL && !match(arg, &source->key)))
			continue;
		(void)ssc_source_take_waits_locked(source, &waits);
		ssc_source_drop_locked(source);
		n++;
	}
	pthread_mutex_unlock(&cache->lock);
	ssc_source_run_waits(&waits, SSC_E_SHUTDOWN, NULL);
	return n;
}
