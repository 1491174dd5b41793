/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * timer.c - a binary heap of deadlines, and the thread that waits for the first of them.
 *
 * heap[1] is the earliest; a timer knows its place, so that it can be moved and taken out without a
 * search. The thread sleeps until the earliest deadline and is woken only by one that is earlier
 * still. It takes a timer out of the heap before it runs it, so fire may arm it again, and nothing of the
 * timer is touched after fire: it may be freed by then.
 *
 * Disarming a timer that fires on another thread waits for it to end. A timer may be armed again
 * by its own fire while somebody waits to disarm it: the disarming wins, it takes it out once more.
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ssc/clock.h"
#include "ssc/log.h"
#include "ssc/timer.h"

#define FIRST_ROOM 64 /* timers; grows by doubling */

struct ssc_timers {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* the earliest deadline changed, or stop */
	pthread_cond_t fired; /* firing ended */
	/* guarded by lock */
	struct ssc_timer **heap; /* from 1 */
	size_t n, room;
	struct ssc_timer *firing; /* runs now; compared only, it may be freed */
	bool stop;
};

/* ---- the heap ---- */

static void put_locked(struct ssc_timers *timers, size_t place, struct ssc_timer *timer)
{
	timers->heap[place] = timer;
	timer->place = place;
}

static void sift_locked(struct ssc_timers *timers, struct ssc_timer *timer, size_t place)
{
	struct ssc_timer **heap = timers->heap;
	size_t child;

	for (; place > 1 && heap[place / 2]->at_ns > timer->at_ns; place /= 2)
		put_locked(timers, place, heap[place / 2]);
	for (; (child = 2 * place) <= timers->n; place = child) {
		if (child < timers->n && heap[child + 1]->at_ns < heap[child]->at_ns)
			child++;
		if (heap[child]->at_ns >= timer->at_ns)
			break;
		put_locked(timers, place, heap[child]);
	}
	put_locked(timers, place, timer);
}

static void add_locked(struct ssc_timers *timers, struct ssc_timer *timer)
{
	if (timers->n + 1 >= timers->room) {
		size_t room = timers->room * 2;

		timers->heap = reallocarray(timers->heap, room, sizeof(struct ssc_timer *));
		if (timers->heap == NULL)
			abort();
		timers->room = room;
	}
	sift_locked(timers, timer, ++timers->n);
}

static void take_locked(struct ssc_timers *timers, struct ssc_timer *timer)
{
	struct ssc_timer *last = timers->heap[timers->n--];
	size_t place = timer->place;

	timer->place = 0;
	if (last != timer)
		sift_locked(timers, last, place);
}

/* ---- the thread ---- */

static void fire_locked(struct ssc_timers *timers, struct ssc_timer *timer)
{
	take_locked(timers, timer);
	timers->firing = timer;
	pthread_mutex_unlock(&timers->lock);
	timer->fire(timer);
	pthread_mutex_lock(&timers->lock);
	timers->firing = NULL;
	pthread_cond_broadcast(&timers->fired);
}

static void *run(void *arg)
{
	struct ssc_timers *timers = arg;

	pthread_mutex_lock(&timers->lock);
	while (!timers->stop) {
		if (timers->n == 0)
			pthread_cond_wait(&timers->wake, &timers->lock);
		else if (timers->heap[1]->at_ns > ssc_clock_now_ns())
			ssc_clock_wait(&timers->wake, &timers->lock, timers->heap[1]->at_ns);
		else
			fire_locked(timers, timers->heap[1]);
	}
	pthread_mutex_unlock(&timers->lock);
	return NULL;
}

struct ssc_timers *ssc_timers_new(void)
{
	struct ssc_timers *timers = calloc(1, sizeof(*timers));
	sigset_t all, old;
	int rc;

	if (timers == NULL)
		abort();
	timers->room = FIRST_ROOM;
	timers->heap = calloc(timers->room, sizeof(struct ssc_timer *));
	if (timers->heap == NULL)
		abort();
	pthread_mutex_init(&timers->lock, NULL);
	ssc_clock_cond_init(&timers->wake);
	pthread_cond_init(&timers->fired, NULL);
	sigfillset(&all); /* signals are the host's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&timers->thread, NULL, run, timers);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0) {
		pthread_setname_np(timers->thread, "ssc timer");
		return timers;
	}
	ssc_log_crit("no thread for timers can be started: %s", strerror(rc));
	pthread_cond_destroy(&timers->fired);
	pthread_cond_destroy(&timers->wake);
	pthread_mutex_destroy(&timers->lock);
	free(timers->heap);
	free(timers);
	return NULL;
}

void ssc_timers_free(struct ssc_timers *timers)
{
	if (timers == NULL)
		return;
	pthread_mutex_lock(&timers->lock);
	timers->stop = true;
	pthread_cond_signal(&timers->wake);
	pthread_mutex_unlock(&timers->lock);
	pthread_join(timers->thread, NULL);
	assert(timers->n == 0);
	pthread_cond_destroy(&timers->fired);
	pthread_cond_destroy(&timers->wake);
	pthread_mutex_destroy(&timers->lock);
	free(timers->heap);
	free(timers);
}

/* ---- one timer ---- */

void ssc_timer_init(struct ssc_timer *timer, struct ssc_timers *timers,
		    void (*fire)(struct ssc_timer *timer))
{
	*timer = (struct ssc_timer){.fire = fire, .timers = timers};
}

static void arm_locked(struct ssc_timers *timers, struct ssc_timer *timer, uint64_t at_ns)
{
	timer->at_ns = at_ns;
	if (timer->place == 0)
		add_locked(timers, timer);
	else
		sift_locked(timers, timer, timer->place);
	/* When it was the first and moved back, the thread wakes once for nothing and looks again. */
	if (timer->place == 1)
		pthread_cond_signal(&timers->wake);
}

void ssc_timer_arm(struct ssc_timer *timer, uint64_t at_ns)
{
	struct ssc_timers *timers = timer->timers;

	pthread_mutex_lock(&timers->lock);
	arm_locked(timers, timer, at_ns);
	pthread_mutex_unlock(&timers->lock);
}

void ssc_timer_arm_earlier(struct ssc_timer *timer, uint64_t at_ns)
{
	struct ssc_timers *timers = timer->timers;

	pthread_mutex_lock(&timers->lock);
	if (timer->place == 0 || at_ns < timer->at_ns)
		arm_locked(timers, timer, at_ns);
	pthread_mutex_unlock(&timers->lock);
}

void ssc_timer_disarm(struct ssc_timer *timer)
{
	struct ssc_timers *timers = timer->timers;

	pthread_mutex_lock(&timers->lock);
	for (;;) {
		if (timer->place != 0)
			take_locked(timers, timer);
		if (timers->firing != timer || pthread_equal(pthread_self(), timers->thread))
			break;
		pthread_cond_wait(&timers->fired, &timers->lock);
	}
	pthread_mutex_unlock(&timers->lock);
}
