/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_cache.h - connections to servers, shared, kept after use, closed when idle for long.
 *
 * Object     struct ssc_source_cache, one per module. struct ssc_source: one server, see source_key.h, and
 *            what ops.mount made of it.
 * Lifetime   PENDING -> READY (idle or in use) -> DEAD (in use, not found any more) -> LEAVING -> freed;
 *            see source_cache.c.
 * References holder              taken in                        dropped in
 *            the table           insertion (a miss)              expiry, eviction, purge, stop, put_dead,
 *                                                                a failed mount
 *            the mount under way insertion                       its end
 *            a user              get; a wait's success           put, put_dead
 *            a pin               pin                             unpin
 *            Whoever drops the last one hands the source to a thread that unmounts it. The caller of get and
 *            of pin must put and unpin. A wait holds none: it is in lists, and leaves them before done runs.
 * Sharing    A hit is one look-up without a lock and without a call to the server. A miss mounts on a
 *            thread of the cache; all who want the same server meanwhile wait for that one attempt.
 *            A failure wakes them all and is forgotten: the next one tries again.
 * Side by    A source that is dead or being unmounted is never handed out; who asks then gets a new one
 * side       and does not wait for the old one's end, which may take as long as a dead server's silence.
 *            So ops must allow two mounts of one server at a time (for NFSv4.1: client owners of their own).
 * Bounds     max sources that can be found, twice that with those that leave; n_threads attempts and
 *            unmounts at a time, further ones queue, mounts first; every wait ends after wait_ns.
 * Threads    any. done runs with no lock held on the thread of get_async, of the mount, of the timers, or
 *            of purge or stop, and must not block. ops run on threads of the cache.
 * Locking    one mutex, not taken by a hit or by its put; no op runs under it. Lock order: it, then the
 *            timers' lock. References are dropped with no lock held that done or ops take.
 * Source     RFC 7862 15.2.3 (ca_source_server); RFC 8881 2.10 (what is kept: sessions).
 */
#ifndef SSC_SOURCE_CACHE_H
#define SSC_SOURCE_CACHE_H

#include <sys/queue.h>

#include "ssc/source_key.h"
#include "ssc/timer.h"

struct ssc_source_cache;
struct ssc_source;

struct ssc_source_ops {
	/**
	 * @brief Reach @key's server; *mount is what unmount is given. Blocks: until @until_ns at most.
	 *        *n_rpcs: calls that it took, also when it failed.
	 */
	enum ssc_err (*mount)(void *ctx, const struct ssc_source_key *key, uint64_t until_ns,
			      void **mount, uint32_t *n_rpcs);
	/** @brief Nobody uses @mount any more. Blocks: for seconds at most. */
	void (*unmount)(void *ctx, void *mount);
};

struct ssc_source_cache_config {
	uint64_t idle_ns;   /* Idle_Unmount_S: unused for so long, then unmounted */
	uint64_t wait_ns;   /* Source_Wait_Ms: for a mount; > 0 */
	uint32_t max;       /* Source_Max; > 0 */
	uint32_t n_threads; /* > 0 */
	const struct ssc_source_ops *ops;
	void *ctx;
	struct ssc_timers *timers; /* borrowed */
};

/** @brief 900 s, 20 s, 1024 sources, 32 threads; ops, ctx and timers are still to be set. */
void ssc_source_cache_config_init(struct ssc_source_cache_config *cfg) SSC_NONNULL;

/** @brief Threads start when there is work. */
struct ssc_source_cache *
ssc_source_cache_new(const struct ssc_source_cache_config *cfg) SSC_NONNULL;

/**
 * @brief No new ones from now on: waits end with SSC_E_SHUTDOWN, all is unmounted, whatever its expiry,
 *        what is in use as soon as it is put.
 *
 * Blocks: until all is unmounted, at most until @until_ns. False: something still is in use or on
 * its way; it ends in its own time. May be called again.
 */
bool ssc_source_cache_stop(struct ssc_source_cache *cache, uint64_t until_ns) SSC_NONNULL;

/** @brief After stop. What is still in use may be put later. NULL is allowed. */
void ssc_source_cache_free(struct ssc_source_cache *cache);

/* ---- getting a source ---- */

/* Made by the asker, who sets done; it stays until done runs or the wait is cancelled. */
struct ssc_source_wait {
	/** @brief Exactly once: @source (a reference that is now yours), or @err and NULL. */
	void (*done)(struct ssc_source_wait *wait, enum ssc_err err, struct ssc_source *source);
	/* guarded by the cache's lock */
	struct ssc_source *source; /* NULL: not waiting */
	uint64_t until_ns;
	TAILQ_ENTRY(ssc_source_wait) by_source, by_deadline;
};

/**
 * @brief A mounted source for @key, by wait->done, perhaps before this returns. Never blocks.
 *
 * Errors: of ops.mount; SSC_E_TIMEDOUT (wait_ns passed, the attempt goes on), SSC_E_JUKEBOX (max
 * sources are in use), SSC_E_SHUTDOWN (stop, or purge while it waited).
 */
void ssc_source_cache_get_async(struct ssc_source_cache *cache, const struct ssc_source_key *key,
				struct ssc_source_wait *wait) SSC_NONNULL;

/**
 * @brief True: @wait waits no more and done will not run. False: it has run, or does now. Whoever may
 *        call this keeps @wait as it is, also after done.
 */
bool ssc_source_cache_cancel(struct ssc_source_cache *cache,
			     struct ssc_source_wait *wait) SSC_NONNULL SSC_MUST_CHECK;

/** @brief As get_async, but blocks, for wait_ns at most. *out is NULL on every error. */
enum ssc_err ssc_source_cache_get(struct ssc_source_cache *cache, const struct ssc_source_key *key,
				  struct ssc_source **out) SSC_NONNULL SSC_MUST_CHECK;

/** @brief The source if it is mounted now, else NULL; nothing is started. */
struct ssc_source *
ssc_source_cache_try(struct ssc_source_cache *cache,
		     const struct ssc_source_key *key) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Have it mounted in the background if there is room without evicting another. */
void ssc_source_cache_warm(struct ssc_source_cache *cache,
			   const struct ssc_source_key *key) SSC_NONNULL;

/* ---- a source ---- */

/** @brief It is kept for idle_ns from now, when nobody else uses it. */
void ssc_source_put(struct ssc_source *source) SSC_NONNULL;

/** @brief As put, and its server was found dead: the next asker mounts anew. Others use it until their put. */
void ssc_source_put_dead(struct ssc_source *source) SSC_NONNULL;

/** @brief A further reference that keeps it mounted, and that purge respects: for an export's life. */
void ssc_source_pin(struct ssc_source *source) SSC_NONNULL;
void ssc_source_unpin(struct ssc_source *source) SSC_NONNULL;

/** @brief What ops.mount made; valid as long as the reference. */
void *ssc_source_mount(const struct ssc_source *source) SSC_NONNULL;
const struct ssc_source_key *ssc_source_key(const struct ssc_source *source) SSC_NONNULL;

/** @brief Nobody finds it any more, for whatever reason: who holds it for long gets another. */
bool ssc_source_is_dead(const struct ssc_source *source) SSC_NONNULL;

/** @brief Count @bytes read from it. */
void ssc_source_add_bytes(struct ssc_source *source, uint64_t bytes) SSC_NONNULL;

/* ---- all of them ---- */

/**
 * @brief Whatever matches and has no pin is found no more, and unmounted, now or when its last user puts it;
 *        waits for it end with SSC_E_SHUTDOWN. Does not wait for the unmounting. @return how many.
 *
 * @match runs under the cache's lock: it only looks at the key. NULL: all.
 */
uint32_t ssc_source_cache_purge(struct ssc_source_cache *cache,
				bool (*match)(void *arg, const struct ssc_source_key *key),
				void *arg) __attribute__((nonnull(1)));

enum ssc_source_state {
	SSC_SOURCE_PENDING, /* being mounted */
	SSC_SOURCE_READY,   /* mounted */
	SSC_SOURCE_DEAD,    /* not found any more, some still use it */
	SSC_SOURCE_LEAVING  /* being unmounted, or waiting for that */
};

struct ssc_source_info {
	struct ssc_source_key key;
	enum ssc_source_state state;
	uint32_t n_users; /* with pins; without the cache's own references */
	uint32_t n_pins;
	uint32_t n_waits;
	uint64_t idle_ns; /* since the last put; 0 while in use */
	uint64_t hits, bytes;
};

/** @brief Up to @max entries into @infos. @return how many there are. */
uint32_t ssc_source_cache_list(struct ssc_source_cache *cache, struct ssc_source_info *infos,
			       uint32_t max) __attribute__((nonnull(1)));

struct ssc_source_cache_stats {
	uint32_t n_sources, n_leaving; /* found; not found any more and not yet gone */
	uint64_t hits, misses, waits;  /* waits: joined an attempt of another */
	uint64_t mounts, failures;     /* attempts that ended well, and badly */
	uint64_t unmounts, evictions;
	uint64_t timeouts, refused; /* askers who got TIMEDOUT, and JUKEBOX */
	uint64_t mount_rpcs, bytes;
};

void ssc_source_cache_stats(struct ssc_source_cache *cache,
			    struct ssc_source_cache_stats *stats) SSC_NONNULL;

#endif /* SSC_SOURCE_CACHE_H */
