/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * log.c - hands log lines to the sink that the host's glue gave, or to stderr before that.
 *
 * Both variables are atomic, so a line that races with ssc_log_set goes to the old or the new sink.
 */
#include <stdio.h>

#include "ssc/clock.h"
#include "ssc/log.h"

static void stderr_sink(enum ssc_log_level level, const char *fmt, va_list args)
{
	char line[1024]; /* one write per line, so that threads do not mix theirs */

	vsnprintf(line, sizeof(line), fmt, args);
	fprintf(stderr, "ssc %s: %s\n", level == SSC_LOG_CRIT ? "CRIT" : "WARN", line);
}

static _Atomic ssc_log_fn log_sink = stderr_sink;
static _Atomic int log_max = SSC_LOG_WARN;

void ssc_log_set(ssc_log_fn sink, enum ssc_log_level max)
{
	atomic_store(&log_sink, sink != NULL ? sink : stderr_sink);
	atomic_store(&log_max, sink != NULL ? max : SSC_LOG_WARN);
}

bool ssc_log_wants(enum ssc_log_level level)
{
	return (int)level <= atomic_load_explicit(&log_max, memory_order_relaxed);
}

void ssc_log_print(enum ssc_log_level level, const char *fmt, ...)
{
	ssc_log_fn sink = atomic_load(&log_sink);
	va_list args;

	va_start(args, fmt);
	sink(level, fmt, args);
	va_end(args);
}

bool ssc_log_once_a_second(_Atomic uint64_t *last)
{
	uint64_t now = ssc_clock_now_ns();
	uint64_t seen = atomic_load_explicit(last, memory_order_relaxed);

	if (now == 0)
		now = 1; /* 0 stands for never */
	if (seen != 0 && now - seen < SSC_NS_PER_S)
		return false;
	/* Of threads that come here together one wins. */
	return atomic_compare_exchange_strong(last, &seen, now);
}
