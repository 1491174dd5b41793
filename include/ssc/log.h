/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * log.h - log lines of the layers below Ganesha's glue; the sink is a function given at start.
 *
 * Levels     CRIT   data at risk or a feature refused: the operator must act
 *            WARN   a peer misbehaves (at most one line a second per call site)
 *            EVENT  a change of state: mounted, lost, found again
 *            INFO, DEBUG  single operations
 * Threads    any. The sink may be called from any thread and must not block on our locks.
 */
#ifndef SSC_LOG_H
#define SSC_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ssc/base.h"

enum ssc_log_level { SSC_LOG_CRIT, SSC_LOG_WARN, SSC_LOG_EVENT, SSC_LOG_INFO, SSC_LOG_DEBUG };

typedef void (*ssc_log_fn)(enum ssc_log_level level, const char *fmt, va_list args);

/**
 * @brief Where lines go, and the most talkative level wanted.
 *
 * Until the first call, and after one with NULL (@max is then ignored), lines of level WARN and
 * worse go to stderr. Threads: init only.
 */
void ssc_log_set(ssc_log_fn sink, enum ssc_log_level max);

/** @brief Whether lines of @level are wanted now: spares building them. */
bool ssc_log_wants(enum ssc_log_level level);

/** @brief Print one line, whatever the level: callers use the macros below. */
void ssc_log_print(enum ssc_log_level level, const char *fmt, ...) SSC_PRINTF(2, 3);

/** @brief True at most once a second for one @last (zeroed static), for lines a peer can cause. */
bool ssc_log_once_a_second(_Atomic uint64_t *last) SSC_NONNULL;

#define ssc_log(level, ...)                                \
	do {                                               \
		if (ssc_log_wants(level))                  \
			ssc_log_print(level, __VA_ARGS__); \
	} while (0)

#define ssc_log_crit(...)  ssc_log(SSC_LOG_CRIT, __VA_ARGS__)
#define ssc_log_event(...) ssc_log(SSC_LOG_EVENT, __VA_ARGS__)
#define ssc_log_info(...)  ssc_log(SSC_LOG_INFO, __VA_ARGS__)
#define ssc_log_debug(...) ssc_log(SSC_LOG_DEBUG, __VA_ARGS__)
#define ssc_log_warn(...)                                                         \
	do {                                                                      \
		static _Atomic uint64_t last_;                                    \
		if (ssc_log_wants(SSC_LOG_WARN) && ssc_log_once_a_second(&last_)) \
			ssc_log_print(SSC_LOG_WARN, __VA_ARGS__);                 \
	} while (0)

#endif /* SSC_LOG_H */
