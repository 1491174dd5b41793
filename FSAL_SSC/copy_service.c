/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_service.c - see copy_service.h.
 */
#include <unistd.h>

#include "nfs_core.h"

#include "ssc/clock.h"

#include "cb_offload.h"
#include "copy_service.h"
#include "glue.h"

/* How long an outcome can be asked for, and how long a callback that cannot be sent is tried. */
#define KEEP_NS  (600 * SSC_NS_PER_S)
#define RETRY_NS (1 * SSC_NS_PER_S)
#define KEPT_MAX 4096

#define END_NS   (3 * SSC_NS_PER_S)

/* Workers for files whose I/O blocks: enough to use the cores, few enough to leave them to others. */
#define WORKERS_MIN 2
#define WORKERS_MAX 8

static struct {
	struct ssc_timers *timers;
	struct ssc_copy_engine *engine;
	struct ssc_copy_table *table;
} service;

static void name_worker(void)
{
	SetNameFunction("ssc_copy");
}

static unsigned int n_workers(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < WORKERS_MIN ? WORKERS_MIN : n > WORKERS_MAX ? WORKERS_MAX : (unsigned int)n;
}

static struct ssc_copy_engine *new_engine(const struct ssc_module_config *config)
{
	struct ssc_copy_engine_config cfg = {
		.workers = n_workers(),
		.chunk_bytes = config->copy_chunk_bytes,
		.inflight = config->copy_inflight_max,
		.inflight_bytes = config->copy_inflight_bytes,
		.timers = service.timers,
		.worker_begin = name_worker,
	};

	return ssc_copy_engine_new(&cfg);
}

static struct ssc_copy_table *new_table(const struct ssc_module_config *config)
{
	struct ssc_copy_table_config cfg = {
		.max = config->copy_max,
		.max_per_client = config->copy_max_per_client,
		.kept_max = KEPT_MAX,
		.keep_ns = KEEP_NS,
		.retry_ns = RETRY_NS,
		.instance = (uint32_t)nfs_ServerEpoch,
		.timers = service.timers,
	};

	return config->copy_max == 0 ? NULL : ssc_copy_table_new(&cfg);
}

bool ssc_copy_service_start(void)
{
	service.timers = ssc_timers_new();
	if (service.timers == NULL)
		return false;
	service.engine = new_engine(&ssc_module.config);
	if (service.engine == NULL)
		goto err_timers;
	service.table = new_table(&ssc_module.config);
	if (service.table != NULL)
		ssc_cb_start(service.timers, service.table);
	return true;
err_timers:
	ssc_timers_free(service.timers);
	service.timers = NULL;
	return false;
}

void ssc_copy_service_stop(void)
{
	if (service.table != NULL &&
	    !ssc_copy_table_stop(service.table, ssc_clock_now_ns() + END_NS)) {
		ssc_log_crit("copies do not end; what they use stays");
		return;
	}
	ssc_cb_stop();
	ssc_copy_table_free(service.table);
	ssc_copy_engine_free(service.engine);
	ssc_timers_free(service.timers);
	memset(&service, 0, sizeof(service));
}

struct ssc_copy_engine *ssc_copy_service_engine(void)
{
	return service.engine;
}

struct ssc_copy_table *ssc_copy_service_table(void)
{
	return service.table;
}

struct ssc_timers *ssc_copy_service_timers(void)
{
	return service.timers;
}

void ssc_copy_service_end_export(uint32_t export_id, bool wait)
{
	uint64_t until = wait ? ssc_clock_now_ns() + END_NS : 0;

	if (service.table != NULL && !ssc_copy_table_end_export(service.table, export_id, until) &&
	    wait)
		ssc_log_warn("export %u leaves while copies of it wait for another server",
			     export_id);
}
