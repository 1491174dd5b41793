/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_internal.h - what the files source_*.c share; nobody else includes it.
 *
 * Sources and their cache, see source_cache.h, and the procedures that more than one file needs. Each
 * named _locked is called with cache.lock held, and says so when it drops it meanwhile.
 */
#ifndef SSC_SOURCE_INTERNAL_H
#define SSC_SOURCE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
/*
 * The library's functions, not their inline code: that takes a thread's record for more aligned than
 * liburcu 0.13 makes it, and records are handed from thread to thread, which no sanitizer understands. It
 * costs some ns.
 */
#undef _LGPL_SOURCE
#include <urcu-bp.h>
#include <urcu/rculfhash.h>

#include "ssc/source_cache.h"
#include "ssc/tsan.h"

/* x86-64's; elsewhere a wrong number costs speed only. */
#define SSC_CACHE_LINE 64

TAILQ_HEAD(ssc_source_list, ssc_source);
STAILQ_HEAD(ssc_source_queue, ssc_source);
TAILQ_HEAD(ssc_source_waits, ssc_source_wait);

/*
 * Parts on cache lines of their own: the first is only read by look-ups, the second is written by each
 * get and put, the third by those who hold the lock.
 */
struct ssc_source {
	/* constant */
	struct cds_lfht_node node;
	struct ssc_source_key key;
	struct ssc_source_cache *cache;
	void *mount; /* constant once READY */

	/* atomic */
	_Alignas(SSC_CACHE_LINE) _Atomic uint64_t refs; /* see source_item.c */
	_Atomic uint64_t used_ns;                       /* the last put */
	_Atomic uint64_t hits, bytes;
	_Atomic enum ssc_source_state state; /* changes under cache.lock only */
	_Atomic uint32_t n_pins;

	/* guarded by cache.lock */
	_Alignas(SSC_CACHE_LINE) bool is_hashed;
	bool is_mounted; /* so must be unmounted */
	uint32_t n_waits;
	struct ssc_source_waits waits;
	TAILQ_ENTRY(ssc_source) all;
	STAILQ_ENTRY(ssc_source) job; /* in mounts or unmounts */
	struct rcu_head rcu;
};

struct ssc_source_cache {
	/* constant */
	struct ssc_source_cache_config cfg;
	struct cds_lfht *table;
	uint64_t secret;

	struct ssc_timer timer;

	/*
	 * atomic: when the timer fires at the latest; UINT64_MAX: it need not, 0: it never will again. Who
	 * wants it earlier lowers this first, so that most puts need neither the timer nor a lock.
	 */
	_Atomic uint64_t armed_ns;

	pthread_mutex_t lock;
	pthread_cond_t ended; /* a source or a thread is gone */
	/* guarded by lock */
	struct ssc_source_list all;          /* that are not freed, oldest first */
	struct ssc_source_waits by_deadline; /* of all sources; all wait equally long */
	struct ssc_source_queue mounts, unmounts;
	uint32_t n_hashed, n_all, n_threads;
	bool is_stopped;
	bool is_owned;                       /* ssc_source_cache_free comes yet */
	struct ssc_source_cache_stats stats; /* hits and bytes: of sources that are gone */
};

static inline uint32_t ssc_source_count(uint64_t refs)
{
	return (uint32_t)refs;
}

/* ---- source_item.c ---- */

/** @brief A PENDING source with the table's reference and that of its attempt, in no list. */
struct ssc_source *ssc_source_new(struct ssc_source_cache *cache, const struct ssc_source_key *key);

/** @brief Within a read section, or with the lock held while it is hashed. */
bool ssc_source_get_unless_zero(struct ssc_source *source);

/**
 * @brief Take the table's reference if there is no other and nobody has used it since @refs was read.
 *        It is found no more and is being unmounted then.
 */
bool ssc_source_claim_locked(struct ssc_source *source, uint64_t refs);

/** @brief Found no more; the table's reference is dropped. */
void ssc_source_drop_locked(struct ssc_source *source);

/* ---- source_cache.c ---- */

/** @brief Unlock; if nothing of the cache is left and nobody owns it, free it. */
void ssc_source_cache_unlock(struct ssc_source_cache *cache);

/** @brief Out of all lists, and freed after a grace period; the cache may go when it is unlocked. */
void ssc_source_forget_locked(struct ssc_source *source);

/* ---- source_wait.c ---- */

void ssc_source_wait_locked(struct ssc_source *source, struct ssc_source_wait *wait,
			    uint64_t now_ns);

/** @brief Move all waits of @source to @waits, by by_source: they wait no more. @return how many. */
uint32_t ssc_source_take_waits_locked(struct ssc_source *source, struct ssc_source_waits *waits);

/** @brief The same for those whose time has come, of all sources. */
void ssc_source_take_late_locked(struct ssc_source_cache *cache, uint64_t now_ns,
				 struct ssc_source_waits *waits);

/** @brief Call done of each; @source is NULL on an error. No lock is held. */
void ssc_source_run_waits(struct ssc_source_waits *waits, enum ssc_err err,
			  struct ssc_source *source);

/* ---- source_work.c ---- */

/** @brief Have @source mounted. */
void ssc_source_queue_mount_locked(struct ssc_source *source);

/** @brief Its last reference is gone: have it unmounted if need be, and forget it. */
void ssc_source_retire_locked(struct ssc_source *source);

/** @brief There is work and perhaps no thread: start one, or try again later. */
void ssc_source_kick_locked(struct ssc_source_cache *cache);

/** @brief One mount or unmount, if there is one, on this thread. Drops the lock meanwhile. */
bool ssc_source_work_locked(struct ssc_source_cache *cache);

/* ---- source_expiry.c ---- */

/** @brief Let the timer fire at @at_ns at the latest. Within a read section, or with the lock held. */
void ssc_source_arm(struct ssc_source_cache *cache, uint64_t at_ns);

/** @brief @now_ns + @ns, or the end of time. */
uint64_t ssc_source_later(uint64_t now_ns, uint64_t ns);

void ssc_source_fire(struct ssc_timer *timer);

/** @brief Unmount the one that is idle for longest. False: all are in use. */
bool ssc_source_evict_locked(struct ssc_source_cache *cache);

#endif /* SSC_SOURCE_INTERNAL_H */
