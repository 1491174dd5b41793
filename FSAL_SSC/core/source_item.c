/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_item.c - one source: its references and what holds of them.
 *
 * refs is one atomic word. Its lower half counts the references: the table's, the mount's under way,
 * and those of users. Its upper half counts puts, so that it differs whenever the source was used:
 *     get     lower half + 1, unless it is 0
 *     put     stamp the time, then lower half - 1 and upper half + 1 in one step
 *     claim   from (n, 1) to (n, 0) in one step: idle now, and not used since (n, 1) was read
 * So a source that is being unmounted (0) is never handed out, one that was used between the look at its
 * stamp and the claim is not unmounted, and nobody needs a lock for it.
 *
 * A source with references is in the table, or it is DEAD. The last put of a DEAD one finds 0 and retires it.
 * The last put of one in the table leaves the table's reference: it is idle, and the timer must
 * fire when it expires. Nothing of a source may be touched after its reference is dropped.
 */
#include <assert.h>
#include <stdlib.h>

#include "source_internal.h"
#include "ssc/clock.h"

#define ONE_PUT (UINT64_C(1) << 32)

struct ssc_source *ssc_source_new(struct ssc_source_cache *cache, const struct ssc_source_key *key)
{
	struct ssc_source *source = aligned_alloc(SSC_CACHE_LINE, sizeof(*source));

	if (source == NULL)
		abort();
	*source = (struct ssc_source){.cache = cache, .key = *key};
	cds_lfht_node_init(&source->node);
	TAILQ_INIT(&source->waits);
	atomic_init(&source->refs, 2); /* the table's and the attempt's */
	atomic_init(&source->used_ns, ssc_clock_now_ns());
	atomic_init(&source->state, SSC_SOURCE_PENDING);
	return source;
}

bool ssc_source_get_unless_zero(struct ssc_source *source)
{
	uint64_t refs = atomic_load_explicit(&source->refs, memory_order_relaxed);

	do {
		if (ssc_source_count(refs) == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&source->refs, &refs, refs + 1,
							memory_order_acquire,
							memory_order_relaxed));
	return true;
}

void ssc_source_put(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;
	uint64_t now_ns = ssc_clock_now_ns();
	uint32_t before;

	/* Until the end of the read section the cache stays, whoever stops and frees it meanwhile. */
	rcu_read_lock();
	atomic_store_explicit(&source->used_ns, now_ns, memory_order_relaxed);
	before = ssc_source_count(atomic_fetch_add(&source->refs, ONE_PUT - 1));
	assert(before > 0);
	if (before == 2)
		ssc_source_arm(cache, ssc_source_later(now_ns, cache->cfg.idle_ns));
	SSC_TSAN_RELEASE(cache);
	rcu_read_unlock();
	if (before > 1)
		return;
	pthread_mutex_lock(&cache->lock);
	ssc_source_retire_locked(source);
	ssc_source_cache_unlock(cache);
}

static void unhash_locked(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;
	int rc;

	atomic_store(&source->state, SSC_SOURCE_DEAD);
	rcu_read_lock();
	rc = cds_lfht_del(cache->table, &source->node);
	rcu_read_unlock();
	assert(rc == 0);
	(void)rc;
	source->is_hashed = false;
	cache->n_hashed--;
}

bool ssc_source_claim_locked(struct ssc_source *source, uint64_t refs)
{
	assert(ssc_source_count(refs) == 1 && source->is_hashed);
	if (!atomic_compare_exchange_strong(&source->refs, &refs, refs - 1))
		return false;
	unhash_locked(source);
	ssc_source_retire_locked(source);
	return true;
}

void ssc_source_drop_locked(struct ssc_source *source)
{
	assert(source->is_hashed);
	unhash_locked(source);
	if (ssc_source_count(atomic_fetch_sub(&source->refs, 1)) == 1)
		ssc_source_retire_locked(source);
}

void ssc_source_put_dead(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;

	pthread_mutex_lock(&cache->lock);
	if (source->is_hashed)
		ssc_source_drop_locked(source); /* not the last one: there is ours */
	pthread_mutex_unlock(&cache->lock);
	ssc_source_put(source);
}

void ssc_source_pin(struct ssc_source *source)
{
	atomic_fetch_add(&source->n_pins, 1);
	atomic_fetch_add(&source->refs, 1);
}

void ssc_source_unpin(struct ssc_source *source)
{
	uint32_t before = atomic_fetch_sub(&source->n_pins, 1);

	assert(before > 0);
	(void)before;
	ssc_source_put(source);
}

void *ssc_source_mount(const struct ssc_source *source)
{
	return source->mount;
}

const struct ssc_source_key *ssc_source_key(const struct ssc_source *source)
{
	return &source->key;
}

bool ssc_source_is_dead(const struct ssc_source *source)
{
	return atomic_load_explicit(&source->state, memory_order_relaxed) == SSC_SOURCE_DEAD;
}

void ssc_source_add_bytes(struct ssc_source *source, uint64_t bytes)
{
	atomic_fetch_add_explicit(&source->bytes, bytes, memory_order_relaxed);
}
