/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_service.h - what all copies of the server share: timers, the engine, the table of copy states.
 *
 * Lifetime   started when the module is configured, with Enable_Copy; stopped when it is unloaded, after
 *            every export is gone and with it every copy.
 * Threads    start and stop: one at a time, no request is under way. Others: any.
 */
#ifndef SSC_COPY_SERVICE_H
#define SSC_COPY_SERVICE_H

#include "ssc/copy_engine.h"
#include "ssc/copy_state.h"

/** @brief False, after a line in the log: no thread can be had. */
bool ssc_copy_service_start(void) SSC_MUST_CHECK;

void ssc_copy_service_stop(void);

/** @brief NULL: not started. */
struct ssc_copy_engine *ssc_copy_service_engine(void);

/** @brief NULL: not started, or no copy is to be asynchronous. */
struct ssc_copy_table *ssc_copy_service_table(void);

struct ssc_timers *ssc_copy_service_timers(void);

/**
 * @brief The export is leaving: cancel its asynchronous copies. With @wait, wait until they ended, 3 s
 *        at most.
 */
void ssc_copy_service_end_export(uint32_t export_id, bool wait);

#endif /* SSC_COPY_SERVICE_H */
