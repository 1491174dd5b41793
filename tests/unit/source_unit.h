/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * source_unit.h - a cache over fake servers and a fake clock, and askers that wait, for tests of it.
 *
 * An asker's done only notes what it was given; the test looks at it after asker_await.
 */
#ifndef SSC_SOURCE_UNIT_H
#define SSC_SOURCE_UNIT_H

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "fake_clock.h"
#include "fake_source.h"
#include "ssc/clock.h"
#include "ssc/source_cache.h"
#include "unit.h"

#define START_NS (1000 * SSC_NS_PER_S)
#define IDLE_NS  (900 * SSC_NS_PER_S)
#define WAIT_NS  (20 * SSC_NS_PER_S)

static struct ssc_timers *timers;
static struct ssc_source_cache *cache;
static sem_t settled;

static inline void cache_start(uint32_t max, uint32_t n_threads)
{
	struct ssc_source_cache_config cfg;

	ssc_source_cache_config_init(&cfg);
	ck_assert_uint_eq(cfg.idle_ns, IDLE_NS);
	ck_assert_uint_eq(cfg.wait_ns, WAIT_NS);
	cfg.max = max;
	cfg.n_threads = n_threads;
	cfg.ops = &fake_source_ops;
	cfg.timers = timers;
	cache = ssc_source_cache_new(&cfg);
}

/* All references are back and all is unmounted, or the test has a leak. */
static inline void cache_end(void)
{
	ck_assert(ssc_source_cache_stop(cache, UINT64_MAX));
	ck_assert_uint_eq(ssc_source_cache_list(cache, NULL, 0), 0);
	ssc_source_cache_free(cache);
	cache = NULL;
}

static inline void unit_setup(void)
{
	fake_clock_start(START_NS);
	sem_init(&settled, 0, 0);
	timers = ssc_timers_new();
	ck_assert_ptr_nonnull(timers);
	cache_start(16, 4);
}

static inline void unit_teardown(void)
{
	if (cache != NULL)
		cache_end();
	ssc_timers_free(timers);
	sem_destroy(&settled);
	fake_source_reset();
	fake_clock_stop();
}

static inline void post_settled(struct ssc_timer *timer)
{
	(void)timer;
	sem_post(&settled);
}

/* Move the clock; what is due then has fired when this returns. A ns more is gone. */
static inline void advance(uint64_t ns)
{
	struct ssc_timer last;

	ssc_timer_init(&last, timers, post_settled);
	fake_clock_advance(ns + 1);
	ssc_timer_arm(&last, ssc_clock_now_ns());
	sem_wait(&settled);
	ssc_timer_disarm(&last);
}

static inline struct ssc_source_cache_stats stats(void)
{
	struct ssc_source_cache_stats s;

	ssc_source_cache_stats(cache, &s);
	return s;
}

/* Wait until nothing leaves any more and @n sources are found. */
static inline void await_sources(uint32_t n)
{
	struct ssc_source_cache_stats s;

	do {
		sched_yield();
		s = stats();
	} while (s.n_sources != n || s.n_leaving != 0);
}

/* ---- askers ---- */

struct asker {
	struct ssc_source_wait wait; /* first */
	enum ssc_err err;
	struct ssc_source *source;
	bool may_cancel;
	atomic_uint n_done;
};

static inline void asker_done(struct ssc_source_wait *wait, enum ssc_err err,
			      struct ssc_source *source)
{
	struct asker *asker = (struct asker *)wait;

	asker->err = err;
	asker->source = source;
	/* As one that frees it would: nobody may read it from now on, but who might cancel it. */
	if (!asker->may_cancel)
		memset(&asker->wait, 0xa5, sizeof(asker->wait));
	atomic_fetch_add(&asker->n_done, 1);
}

static inline void ask_cancellable(struct asker *asker, unsigned int id, bool may_cancel)
{
	struct ssc_source_key key = fake_source_key(id);

	memset(asker, 0, sizeof(*asker));
	asker->wait.done = asker_done;
	asker->may_cancel = may_cancel;
	ssc_source_cache_get_async(cache, &key, &asker->wait);
}

static inline void ask(struct asker *asker, unsigned int id)
{
	ask_cancellable(asker, id, false);
}

static inline bool is_done(struct asker *asker)
{
	unsigned int n = atomic_load(&asker->n_done);

	ck_assert_uint_le(n, 1);
	return n == 1;
}

static inline enum ssc_err asker_await(struct asker *asker)
{
	while (!is_done(asker))
		sched_yield();
	ck_assert(asker->err == SSC_OK ? asker->source != NULL : asker->source == NULL);
	return asker->err;
}

static inline struct ssc_source *get(unsigned int id)
{
	struct ssc_source_key key = fake_source_key(id);
	struct ssc_source *source;

	ck_assert_int_eq(ssc_source_cache_get(cache, &key, &source), SSC_OK);
	fake_source_check(source, id);
	return source;
}

static inline enum ssc_err get_err(unsigned int id)
{
	struct ssc_source_key key = fake_source_key(id);
	struct ssc_source *source = (struct ssc_source *)&key;
	enum ssc_err err = ssc_source_cache_get(cache, &key, &source);

	ck_assert_int_ne(err, SSC_OK);
	ck_assert_ptr_null(source);
	return err;
}

static inline struct ssc_source *try_get(unsigned int id)
{
	struct ssc_source_key key = fake_source_key(id);

	return ssc_source_cache_try(cache, &key);
}

/* Once, mounted and put. */
static inline void use(unsigned int id)
{
	ssc_source_put(get(id));
}

#endif /* SSC_SOURCE_UNIT_H */
