/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_state_gone.c - copies whose client or export goes, or the whole module.
 *
 * What runs is cancelled, and its end is waited for where somebody needs the export to be free. Each
 * sweep cancels one copy, without the lock, and then looks again from the beginning: the list may
 * have changed. It ends since nothing is cancelled twice, and since it leaves newer copies out or has a deadline.
 */
#include "copy_state_internal.h"
#include "ssc/clock.h"

static struct ssc_copy_state *of_client_locked(struct ssc_copy_state_list *list, uint64_t client,
					       uint64_t last)
{
	struct ssc_copy_state *state;

	TAILQ_FOREACH(state, list, link)
	{
		if (state->is_known && state->client == client && state->serial <= last)
			return state;
	}
	return NULL;
}

void ssc_copy_table_client_gone(struct ssc_copy_table *table, uint64_t client)
{
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	struct ssc_copy_state *state;
	uint64_t last;

	pthread_mutex_lock(&table->lock);
	last = table->serial;
	while ((state = of_client_locked(&table->running, client, last)) != NULL) {
		ssc_copy_forget_locked(state, &dead);
		if (!state->is_cancelled)
			ssc_copy_cancel_locked(state, &dead);
	}
	while ((state = of_client_locked(&table->kept, client, last)) != NULL)
		ssc_copy_forget_locked(state, &dead);
	ssc_copy_unlock_and_bury(table, &dead);
}

bool ssc_copy_table_next_client(struct ssc_copy_table *table, uint64_t *client)
{
	const struct ssc_copy_state_list *lists[] = {&table->running, &table->kept};
	const struct ssc_copy_state *state;
	uint64_t next = UINT64_MAX;
	bool is_found = false;

	pthread_mutex_lock(&table->lock);
	for (int i = 0; i < 2; i++)
		TAILQ_FOREACH(state, lists[i], link)
		{
			if (state->is_known && state->client > *client && state->client <= next) {
				next = state->client;
				is_found = true;
			}
		}
	pthread_mutex_unlock(&table->lock);
	if (is_found)
		*client = next;
	return is_found;
}

/* Cancel what runs from or to @export_id (NULL: all) and wait. */
static bool end_locked(struct ssc_copy_table *table, const uint32_t *export_id, uint64_t until_ns,
		       struct ssc_copy_dead_list *dead)
{
	struct ssc_copy_state *state;
	bool is_running;

	for (;;) {
		is_running = false;
		TAILQ_FOREACH(state, &table->running, link)
		{
			if (export_id != NULL && state->src_export != *export_id &&
			    state->dst_export != *export_id)
				continue;
			is_running = true;
			state->is_revoked = true;
			if (!state->is_cancelled)
				break;
		}
		if (!is_running)
			return true;
		if (state != NULL)
			ssc_copy_cancel_locked(state, dead); /* and look again: the list was free */
		else if (ssc_clock_now_ns() >= until_ns)
			return false;
		else
			ssc_clock_wait(&table->ended, &table->lock, until_ns);
	}
}

bool ssc_copy_table_end_export(struct ssc_copy_table *table, uint32_t export_id, uint64_t until_ns)
{
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	bool have_ended;

	pthread_mutex_lock(&table->lock);
	have_ended = end_locked(table, &export_id, until_ns, &dead);
	ssc_copy_unlock_and_bury(table, &dead);
	return have_ended;
}

bool ssc_copy_table_stop(struct ssc_copy_table *table, uint64_t until_ns)
{
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	bool have_ended;

	pthread_mutex_lock(&table->lock);
	table->is_stopped = true;
	have_ended = end_locked(table, NULL, until_ns, &dead);
	ssc_copy_unlock_and_bury(table, &dead);
	return have_ended;
}

void ssc_copy_table_free(struct ssc_copy_table *table)
{
	struct ssc_copy_dead_list dead = SLIST_HEAD_INITIALIZER(dead);
	struct ssc_copy_state *state;

	if (table == NULL)
		return;
	pthread_mutex_lock(&table->lock);
	table->is_stopped = true;
	table->is_closed = true; /* so that nothing arms the timer again */
	while ((state = TAILQ_FIRST(&table->kept)) != NULL)
		ssc_copy_forget_locked(state, &dead);
	ssc_copy_unlock_and_bury(table, &dead);
	ssc_timer_disarm(&table->timer);
	ssc_copy_table_put(table, 1);
}

void ssc_copy_table_stats(struct ssc_copy_table *table, struct ssc_copy_table_stats *stats)
{
	pthread_mutex_lock(&table->lock);
	*stats = table->stats;
	pthread_mutex_unlock(&table->lock);
}
