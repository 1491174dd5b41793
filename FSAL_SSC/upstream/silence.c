/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * silence.c - whether anybody is there: what tells a server that does not answer from a slow call.
 *
 * A caller that waits holds a thread of the host, and often a lock of the host's that other requests
 * for the same file or folder queue for, each with a thread of its own. When they get that lock one
 * after another and each waits out the answer limit, a stopped upstream soon holds all threads, and
 * with them the other exports. So the limit is waited out once:
 *     heard    some reply came within ASK_AFTER_NS, or nobody waits for one
 *     asking   nothing came for so long: a NULL call is sent to find out
 *     silent   a call got no answer in time, nor did the NULL call within ANSWER_WITHIN_NS, or there is
 *              no connection: calls are answered DOWN at once
 * Any reply, and a connection that comes up, ends both. NULL calls do not count for the dead limit: a
 * server that is there may still have lost a call.
 *
 * Threads: conn.lock held. The state is the upstream's, whichever connection found it out.
 */
#include "internal.h"
#include "ssc/clock.h"
#include "ssc/log.h"

/*
 * Well below the answer limit, so that the outcome is known when it passes; not so soon that a distant
 * server is asked at each call.
 */
#define ASK_AFTER_NS (500 * SSC_NS_PER_MS)

/*
 * So long a NULL call is given. Answer limits are often a multiple of ASK_AFTER_NS, so that one is
 * sent just when a call times out, which says nothing yet.
 */
#define ANSWER_WITHIN_NS (250 * SSC_NS_PER_MS)

void ssc_upstream_note_silence(struct ssc_upstream_nfs3 *up)
{
	if (atomic_exchange(&up->silent, true))
		return;
	for (unsigned int i = 0; i < up->n_conns; i++)
		ssc_conn_kick(&up->conns[i]); /* each asks */
	ssc_log_event("%s: upstream %s does not answer; clients are told to come back",
		      up->cfg.name, up->cfg.server);
}

void ssc_upstream_note_reply(struct ssc_upstream_nfs3 *up)
{
	if (!atomic_load(&up->silent) || !atomic_exchange(&up->silent, false))
		return;
	ssc_log_event("%s: upstream %s answers again", up->cfg.name, up->cfg.server);
}

bool ssc_conn_is_unheard_locked(struct ssc_conn *conn)
{
	return atomic_load(&conn->is_asking) &&
	       ssc_clock_now_ns() - conn->asked_ns >= ANSWER_WITHIN_NS;
}

uint64_t ssc_conn_ask_time_locked(struct ssc_conn *conn)
{
	struct ssc_call_priv *p;

	if (conn->broken || atomic_load(&conn->is_asking))
		return UINT64_MAX;
	if (atomic_load(&conn->up->silent))
		return 0;
	cds_list_for_each_entry(p, &conn->flight, link)
	{
		uint64_t quiet_since = p->sent_ns;

		if (p->answered)
			continue;
		if (quiet_since < conn->last_heard_ns)
			quiet_since = conn->last_heard_ns;
		return quiet_since + ASK_AFTER_NS;
	}
	return UINT64_MAX;
}

void ssc_conn_ask_locked(struct ssc_conn *conn, uint64_t now)
{
	if (now < ssc_conn_ask_time_locked(conn))
		return;
	atomic_store(&conn->is_asking, true);
	conn->asked_ns = now;
	ssc_conn_null_locked(conn);
}
