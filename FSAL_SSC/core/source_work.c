/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_work.c - mounting and unmounting: what may block, on threads that live as long as there is work.
 *
 * Each mount or unmount that is queued starts a thread, up to cfg.n_threads; a thread takes one after the
 * other and ends when there are no more. A server that does not answer holds one of them for as long as
 * its op waits. Mounts go first, since somebody waits for them; what leaves is bounded by
 * cfg.max, so that unmounts that come slowly end in refused mounts and not in memory without bound.
 *
 * When no thread can be had the work stays queued, and the timer tries again; those who wait do so
 * until their deadline. Threads are detached and hold the cache: it is freed by the last that leaves.
 *
 * Whether an attempt still is wanted is looked at before and after it: it may have been purged meanwhile.
 */
#include <signal.h>
#include <string.h>

#include "source_internal.h"
#include "ssc/clock.h"
#include "ssc/log.h"

/* Between attempts to start a thread when there is none. */
#define THREAD_RETRY_NS SSC_NS_PER_S

/* ---- mounting ---- */

static void log_mount(const struct ssc_source *source, enum ssc_err err, uint64_t took_ns)
{
	char text[SSC_SOURCE_KEY_STR_MAX];

	ssc_source_key_str(&source->key, text);
	if (err == SSC_OK)
		ssc_log_event("source %s: mounted in %llu ms", text,
			      (unsigned long long)(took_ns / SSC_NS_PER_MS));
	else
		ssc_log_warn("source %s: not mounted after %llu ms: %s; the next copy tries again",
			     text, (unsigned long long)(took_ns / SSC_NS_PER_MS), ssc_err_str(err));
}

/* Drops the lock. */
static enum ssc_err attempt_locked(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;
	uint64_t start_ns = ssc_clock_now_ns();
	uint32_t n_rpcs = 0;
	void *mount = NULL;
	enum ssc_err err;

	pthread_mutex_unlock(&cache->lock);
	err = cache->cfg.ops->mount(cache->cfg.ctx, &source->key,
				    ssc_source_later(start_ns, cache->cfg.wait_ns), &mount,
				    &n_rpcs);
	log_mount(source, err, ssc_clock_now_ns() - start_ns);
	pthread_mutex_lock(&cache->lock);
	cache->stats.mount_rpcs += n_rpcs;
	if (err == SSC_OK) {
		cache->stats.mounts++;
		source->mount = mount;
		source->is_mounted = true;
	} else {
		cache->stats.failures++;
	}
	return err;
}

/*
 * The attempt's reference becomes that of the first who waits; without any it is put, and the source is
 * idle from now on.
 */
static void mount_locked(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;
	struct ssc_source_waits waits = TAILQ_HEAD_INITIALIZER(waits);
	enum ssc_err err = SSC_E_SHUTDOWN;
	uint32_t n = 0;

	if (source->is_hashed)
		err = attempt_locked(source);
	/* Those who waited for what was purged were told so then. */
	if (source->is_hashed && err == SSC_OK) {
		n = ssc_source_take_waits_locked(source, &waits);
		if (n > 1)
			atomic_fetch_add(&source->refs, n - 1);
		atomic_store_explicit(&source->state, SSC_SOURCE_READY, memory_order_release);
	} else if (source->is_hashed) {
		(void)ssc_source_take_waits_locked(source, &waits);
		ssc_source_drop_locked(source);
	}
	pthread_mutex_unlock(&cache->lock);
	if (n == 0)
		ssc_source_put(source);
	ssc_source_run_waits(&waits, err, n != 0 ? source : NULL);
	pthread_mutex_lock(&cache->lock);
}

/* ---- unmounting ---- */

static void unmount_locked(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;
	char text[SSC_SOURCE_KEY_STR_MAX];

	pthread_mutex_unlock(&cache->lock);
	cache->cfg.ops->unmount(cache->cfg.ctx, source->mount);
	ssc_log_event("source %s: unmounted", ssc_source_key_str(&source->key, text));
	pthread_mutex_lock(&cache->lock);
	cache->stats.unmounts++;
	ssc_source_forget_locked(source);
}

void ssc_source_retire_locked(struct ssc_source *source)
{
	struct ssc_source_cache *cache = source->cache;

	if (!source->is_mounted) {
		ssc_source_forget_locked(source);
		return;
	}
	atomic_store(&source->state, SSC_SOURCE_LEAVING);
	STAILQ_INSERT_TAIL(&cache->unmounts, source, job);
	ssc_source_kick_locked(cache);
}

/* ---- threads ---- */

bool ssc_source_work_locked(struct ssc_source_cache *cache)
{
	struct ssc_source *source;

	if ((source = STAILQ_FIRST(&cache->mounts)) != NULL) {
		STAILQ_REMOVE_HEAD(&cache->mounts, job);
		mount_locked(source);
		return true;
	}
	if ((source = STAILQ_FIRST(&cache->unmounts)) != NULL) {
		STAILQ_REMOVE_HEAD(&cache->unmounts, job);
		unmount_locked(source);
		return true;
	}
	return false;
}

static void *run(void *arg)
{
	struct ssc_source_cache *cache = arg;

	pthread_setname_np(pthread_self(), "ssc source");
	pthread_mutex_lock(&cache->lock);
	while (ssc_source_work_locked(cache))
		continue;
	cache->n_threads--;
	pthread_cond_broadcast(&cache->ended);
	ssc_source_cache_unlock(cache);
	return NULL;
}

static int start_thread(struct ssc_source_cache *cache)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* signals are the host's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, &attr, run, cache);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

void ssc_source_kick_locked(struct ssc_source_cache *cache)
{
	int rc;

	if (cache->n_threads >= cache->cfg.n_threads ||
	    (STAILQ_EMPTY(&cache->mounts) && STAILQ_EMPTY(&cache->unmounts)))
		return;
	rc = start_thread(cache); /* it waits for the lock, so it is counted before it looks */
	if (rc == 0) {
		cache->n_threads++;
	} else if (cache->n_threads == 0) {
		ssc_log_warn("no thread to mount or unmount sources: %s; trying again in 1 s",
			     strerror(rc));
		ssc_source_arm(cache, ssc_source_later(ssc_clock_now_ns(), THREAD_RETRY_NS));
	}
}

void ssc_source_queue_mount_locked(struct ssc_source *source)
{
	STAILQ_INSERT_TAIL(&source->cache->mounts, source, job);
	ssc_source_kick_locked(source->cache);
}
