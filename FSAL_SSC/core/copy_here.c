/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_here.c - what the running thread has yet to do for copies.
 *
 * A file may complete a read or write within the call that began it, and a budget wakes others
 * within the call that gives bytes back. If each of them went on from there, the stack would grow with
 * the length of a copy. So the outermost call of a thread runs what those within it leave here, one
 * after the other.
 *
 * done functions come last and with nothing left here, because they belong to the caller, who may do
 * anything, also wait for another copy.
 *
 * Threads: each has its own; no lock.
 */
#include "copy_internal.h"

struct list {
	struct ssc_copy_work *head, *tail;
};

static __thread struct {
	bool is_running; /* somebody below on this stack will look at work */
	bool is_quiet;   /* within ssc_copy_start */
	bool is_worker;
	struct list work;
	struct list last;
} here;

static void append(struct list *list, struct ssc_copy_work *work)
{
	work->next = NULL;
	if (list->head == NULL)
		list->head = work;
	else
		list->tail->next = work;
	list->tail = work;
}

static struct ssc_copy_work *take(struct list *list)
{
	struct ssc_copy_work *work = list->head;

	if (work != NULL)
		list->head = work->next;
	return work;
}

static void run_work(void)
{
	struct ssc_copy_work *work;

	here.is_running = true;
	while ((work = take(&here.work)) != NULL)
		work->run(work);
	here.is_running = false;
}

void ssc_copy_here_run(struct ssc_copy_work *work)
{
	struct ssc_copy_work *done;

	append(&here.work, work);
	if (here.is_running)
		return;
	run_work();
	while ((done = take(&here.last)) != NULL) {
		done->run(done);
		run_work();
	}
}

void ssc_copy_here_run_quietly(struct ssc_copy_work *work)
{
	append(&here.work, work);
	if (here.is_running)
		return;
	here.is_quiet = true;
	run_work();
	here.is_quiet = false;
}

bool ssc_copy_here_last(struct ssc_copy_work *done)
{
	if (here.is_quiet)
		return false;
	append(&here.last, done);
	return true;
}

void ssc_copy_here_set_worker(void)
{
	here.is_worker = true;
}

bool ssc_copy_here_is_worker(void)
{
	return here.is_worker && !here.is_quiet;
}
