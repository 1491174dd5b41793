/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * glog.c - the sink of log.h: lines of the layers below go to Ganesha's log, component FSAL.
 *
 * Threads: any, also the upstream's own, which the server's log does not know by name.
 */
#include "glue.h"

/* A line longer than this is cut: names and paths in it are bounded, so none should be. */
#define LINE_BYTES 1024

static log_levels_t level_of(enum ssc_log_level level)
{
	switch (level) {
	case SSC_LOG_CRIT:
		return NIV_CRIT;
	case SSC_LOG_WARN:
		return NIV_WARN;
	case SSC_LOG_EVENT:
		return NIV_EVENT;
	case SSC_LOG_INFO:
		return NIV_INFO;
	case SSC_LOG_DEBUG:
		return NIV_DEBUG;
	}
	return NIV_CRIT;
}

/* Lines of a thread that the server did not start would show an address in place of its name. */
static void name_thread(void)
{
	static __thread bool is_named;
	char name[16];

	if (is_named)
		return;
	is_named = true;
	if (pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
	    strncmp(name, "ssc", 3) == 0)
		SetNameFunction(name);
}

static void glog_print(enum ssc_log_level level, const char *fmt, va_list args)
{
	log_levels_t niv = level_of(level);
	char line[LINE_BYTES];

	if (component_log_level[COMPONENT_FSAL] < niv)
		return;
	name_thread();
	vsnprintf(line, sizeof(line), fmt, args);
	DisplayLogComponentLevel(COMPONENT_FSAL, "FSAL_SSC", 0, "ssc", niv, "%s", line);
}

void ssc_glog_start(void)
{
	/* The server's level can change while it runs, so it is asked for each line instead. */
	ssc_log_set(glog_print, SSC_LOG_DEBUG);
}
