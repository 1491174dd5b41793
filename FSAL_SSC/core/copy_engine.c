/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_engine.c - what all copies share: threads, turns, buffers, numbers.
 *
 * Turns      A copy that has something for a thread of ours stands once in a queue. A thread takes the
 *            first, gives it one turn (one chunk), and the copy stands at the end again if it has
 *            more: all copies go on together. Those with a file that blocks have threads of their
 *            own, so that a hung file system does not hold up the others.
 * Buffers    of two sizes, from lists, the last used first, since that one is in the cache. All of
 *            them, spare ones too, stay within cfg.inflight_bytes but for one; with no copy
 *            running only what one copy can use is kept.
 * Idle       The thread that fell asleep last is woken first. Each has a semaphore of its own: a condition
 *            that many wait for may lose a signal (glibc bug 25847, up to 2.40).
 * Locks      engine.lock is a leaf; memory is allocated and freed without it.
 */
#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#include "copy_internal.h"
#include "ssc/log.h"

#define SMALL_BYTES         65536   /* of a buffer for a small copy, or for a small piece of data */
#define DEFAULT_CHUNK_BYTES 1048576 /* if none is given */
#define PAGE_BYTES          4096
#define STACK_BYTES         (1024 * 1024) /* the host's functions need about a tenth */

enum { SMALL, LARGE };

struct ssc_copy_thread {
	pthread_t id;
	struct ssc_copy_engine *engine;
	struct ssc_copy_queue *queue;
	sem_t wake; /* posted once by whoever takes it out of queue.idle */
	SLIST_ENTRY(ssc_copy_thread) next_idle; /* engine.lock */
};

/* ---- turns ---- */

void ssc_copy_engine_queue(struct ssc_copy *copy)
{
	struct ssc_copy_engine *engine = copy->engine;
	struct ssc_copy_queue *queue =
		copy->src_blocks || copy->dst_blocks ? &engine->blocking : &engine->light;
	struct ssc_copy_thread *thread = NULL;

	pthread_mutex_lock(&engine->lock);
	if (!copy->is_queued) {
		copy->is_queued = true;
		atomic_fetch_add(&copy->refs, 1);
		TAILQ_INSERT_TAIL(&queue->copies, copy, in_queue);
		thread = SLIST_FIRST(&queue->idle);
		if (thread != NULL)
			SLIST_REMOVE_HEAD(&queue->idle, next_idle);
	}
	pthread_mutex_unlock(&engine->lock);
	if (thread != NULL)
		sem_post(&thread->wake);
}

struct turn {
	struct ssc_copy_work work; /* first */
	struct ssc_copy *copy;
};

static void turn_run(struct ssc_copy_work *work)
{
	ssc_copy_turn(((struct turn *)work)->copy);
}

/* NULL: the engine stops. */
static struct ssc_copy *next_copy(struct ssc_copy_thread *thread)
{
	struct ssc_copy_engine *engine = thread->engine;
	struct ssc_copy_queue *queue = thread->queue;
	struct ssc_copy *copy;

	pthread_mutex_lock(&engine->lock);
	while ((copy = TAILQ_FIRST(&queue->copies)) == NULL && !engine->is_stopping) {
		SLIST_INSERT_HEAD(&queue->idle, thread, next_idle);
		pthread_mutex_unlock(&engine->lock);
		while (sem_wait(&thread->wake) != 0 && errno == EINTR)
			;
		pthread_mutex_lock(&engine->lock);
	}
	if (copy != NULL) {
		TAILQ_REMOVE(&queue->copies, copy, in_queue);
		copy->is_queued = false;
	}
	pthread_mutex_unlock(&engine->lock);
	return copy;
}

static void *thread_main(void *arg)
{
	struct ssc_copy_thread *thread = arg;
	struct ssc_copy_engine *engine = thread->engine;
	struct ssc_copy *copy;

	if (engine->cfg.worker_begin != NULL)
		engine->cfg.worker_begin();
	if (thread->queue == &engine->blocking)
		ssc_copy_here_set_worker();
	while ((copy = next_copy(thread)) != NULL) {
		struct turn turn = {.work.run = turn_run, .copy = copy};

		ssc_copy_here_run(&turn.work);
		ssc_copy_put(copy);
	}
	if (engine->cfg.worker_end != NULL)
		engine->cfg.worker_end();
	return NULL;
}

/* ---- buffers ---- */

uint32_t ssc_copy_buffer_cost(struct ssc_copy_engine *engine, uint64_t bytes)
{
	return engine->cost[bytes <= engine->cost[SMALL] ? SMALL : LARGE];
}

static void buffers_free(struct ssc_copy_buffers *list)
{
	struct ssc_copy_buffer *buffer;

	while ((buffer = SLIST_FIRST(list)) != NULL) {
		SLIST_REMOVE_HEAD(list, next);
		free(buffer->data);
		free(buffer);
	}
}

/* Move spare buffers to @victims until at most @max_bytes are left, used ones included. */
static void trim_locked(struct ssc_copy_engine *engine, uint64_t max_bytes,
			struct ssc_copy_buffers *victims)
{
	struct ssc_copy_buffer *buffer;
	int size;

	for (size = LARGE; size >= SMALL; size--) {
		while (engine->buffer_bytes > max_bytes &&
		       (buffer = SLIST_FIRST(&engine->spare[size])) != NULL) {
			SLIST_REMOVE_HEAD(&engine->spare[size], next);
			SLIST_INSERT_HEAD(victims, buffer, next);
			engine->buffer_bytes -= buffer->bytes;
		}
	}
}

static struct ssc_copy_buffer *buffer_new(uint32_t bytes)
{
	struct ssc_copy_buffer *buffer = malloc(sizeof(*buffer));

	if (buffer == NULL || (buffer->data = aligned_alloc(PAGE_BYTES, bytes)) == NULL)
		abort();
	buffer->bytes = bytes;
	return buffer;
}

struct ssc_copy_buffer *ssc_copy_buffer_get(struct ssc_copy_engine *engine, uint32_t cost)
{
	struct ssc_copy_buffers *spare =
		&engine->spare[cost == engine->cost[SMALL] ? SMALL : LARGE];
	struct ssc_copy_buffers victims = SLIST_HEAD_INITIALIZER(victims);
	struct ssc_copy_buffer *buffer;

	pthread_mutex_lock(&engine->lock);
	engine->used_bytes += cost;
	if (engine->used_bytes > engine->peak_bytes)
		engine->peak_bytes = engine->used_bytes;
	buffer = SLIST_FIRST(spare);
	if (buffer != NULL) {
		SLIST_REMOVE_HEAD(spare, next);
	} else {
		engine->buffer_bytes += cost;
		trim_locked(engine, engine->cfg.inflight_bytes, &victims);
	}
	pthread_mutex_unlock(&engine->lock);
	buffers_free(&victims);
	return buffer != NULL ? buffer : buffer_new(cost);
}

void ssc_copy_buffer_put(struct ssc_copy_engine *engine, struct ssc_copy_buffer *buffer)
{
	uint32_t cost;

	if (buffer == NULL)
		return;
	cost = buffer->bytes;
	pthread_mutex_lock(&engine->lock);
	engine->used_bytes -= cost;
	SLIST_INSERT_HEAD(&engine->spare[cost == engine->cost[SMALL] ? SMALL : LARGE], buffer,
			  next);
	pthread_mutex_unlock(&engine->lock);
	ssc_budget_give(engine->budget, cost);
}

/* ---- copies come and go ---- */

void ssc_copy_engine_enter(struct ssc_copy_engine *engine)
{
	atomic_fetch_add_explicit(&engine->n_copies, 1, memory_order_relaxed);
	pthread_mutex_lock(&engine->lock);
	engine->n_alive++;
	engine->n_running++;
	pthread_mutex_unlock(&engine->lock);
}

void ssc_copy_engine_over(struct ssc_copy_engine *engine)
{
	struct ssc_copy_buffers victims = SLIST_HEAD_INITIALIZER(victims);

	pthread_mutex_lock(&engine->lock);
	if (--engine->n_running == 0)
		trim_locked(engine, (uint64_t)engine->cost[LARGE] * engine->cfg.inflight, &victims);
	pthread_mutex_unlock(&engine->lock);
	buffers_free(&victims);
}

void ssc_copy_engine_leave(struct ssc_copy_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->n_alive--;
	pthread_cond_signal(&engine->left);
	pthread_mutex_unlock(&engine->lock);
}

/* ---- the engine ---- */

static bool thread_start(struct ssc_copy_engine *engine, struct ssc_copy_queue *queue)
{
	struct ssc_copy_thread *thread = &engine->threads[engine->n_threads];
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	thread->engine = engine;
	thread->queue = queue;
	sem_init(&thread->wake, 0, 0);
	/* The host waits for its signals in one thread: none may land in ours. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = pthread_create(&thread->id, &attr, thread_main, thread);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		sem_destroy(&thread->wake);
	else
		engine->n_threads++;
	return rc == 0;
}

/* One for what never blocks, and as many of the others as can be had. */
static bool threads_start(struct ssc_copy_engine *engine)
{
	unsigned int n = engine->cfg.workers;

	engine->threads = calloc(n + 1, sizeof(*engine->threads));
	if (engine->threads == NULL)
		abort();
	if (!thread_start(engine, &engine->light))
		return false;
	while (engine->n_threads < n + 1 && thread_start(engine, &engine->blocking))
		;
	if (engine->n_threads < n + 1)
		ssc_log_warn("copy: only %u of %u threads could be started", engine->n_threads - 1,
			     n);
	return engine->n_threads > 1;
}

static void cfg_make_sane(struct ssc_copy_engine_config *cfg)
{
	if (cfg->workers == 0)
		cfg->workers = 1;
	if (cfg->chunk_bytes == 0)
		cfg->chunk_bytes = DEFAULT_CHUNK_BYTES;
	if (cfg->inflight == 0)
		cfg->inflight = 1;
}

static uint32_t page_up(uint32_t bytes)
{
	return bytes > UINT32_MAX - PAGE_BYTES ? UINT32_MAX / PAGE_BYTES * PAGE_BYTES
					       : (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

struct ssc_copy_engine *ssc_copy_engine_new(const struct ssc_copy_engine_config *cfg)
{
	struct ssc_copy_engine *engine = calloc(1, sizeof(*engine));

	if (engine == NULL)
		abort();
	engine->cfg = *cfg;
	cfg_make_sane(&engine->cfg);
	engine->cost[LARGE] = page_up(engine->cfg.chunk_bytes);
	engine->cost[SMALL] = engine->cost[LARGE] < SMALL_BYTES ? engine->cost[LARGE] : SMALL_BYTES;
	engine->zeros = calloc(1, engine->cost[LARGE]);
	if (engine->zeros == NULL)
		abort();
	engine->budget = ssc_budget_new(engine->cfg.inflight_bytes);
	pthread_mutex_init(&engine->lock, NULL);
	pthread_cond_init(&engine->left, NULL);
	SLIST_INIT(&engine->blocking.idle);
	SLIST_INIT(&engine->light.idle);
	TAILQ_INIT(&engine->blocking.copies);
	TAILQ_INIT(&engine->light.copies);
	if (!threads_start(engine)) {
		ssc_log_crit("copy: no thread can be started, no copies will be served");
		ssc_copy_engine_free(engine);
		return NULL;
	}
	return engine;
}

void ssc_copy_engine_free(struct ssc_copy_engine *engine)
{
	unsigned int i;

	if (engine == NULL)
		return;
	pthread_mutex_lock(&engine->lock);
	/* Put by the caller, but a thread may still be on its way out of the last done. */
	while (engine->n_alive > 0)
		pthread_cond_wait(&engine->left, &engine->lock);
	engine->is_stopping = true; /* nothing is queued any more, so posting to all is no harm */
	pthread_mutex_unlock(&engine->lock);
	for (i = 0; i < engine->n_threads; i++)
		sem_post(&engine->threads[i].wake);
	for (i = 0; i < engine->n_threads; i++) {
		pthread_join(engine->threads[i].id, NULL);
		sem_destroy(&engine->threads[i].wake);
	}
	assert(engine->used_bytes == 0);
	ssc_budget_free(engine->budget);
	buffers_free(&engine->spare[SMALL]);
	buffers_free(&engine->spare[LARGE]);
	pthread_cond_destroy(&engine->left);
	pthread_mutex_destroy(&engine->lock);
	free(engine->threads);
	free(engine->zeros);
	free(engine);
}

void ssc_copy_engine_stats(struct ssc_copy_engine *engine, struct ssc_copy_engine_stats *stats)
{
	stats->copies = atomic_load_explicit(&engine->n_copies, memory_order_relaxed);
	stats->bytes_read = atomic_load_explicit(&engine->bytes_read, memory_order_relaxed);
	stats->bytes_written = atomic_load_explicit(&engine->bytes_written, memory_order_relaxed);
	stats->bytes_skipped = atomic_load_explicit(&engine->bytes_skipped, memory_order_relaxed);
	stats->retries = atomic_load_explicit(&engine->n_retries, memory_order_relaxed);
	pthread_mutex_lock(&engine->lock);
	stats->running = engine->n_running;
	stats->inflight_bytes = engine->used_bytes;
	stats->peak_bytes = engine->peak_bytes;
	pthread_mutex_unlock(&engine->lock);
}
