/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * main.c - the module: registered when the server loads us, configured once, unloaded at the end.
 *
 * Order   load         check that the server is the one we were built for; register
 *         init_config  read SSC { }, tune malloc, make the budget, bind. No threads yet.
 *         exports      each starts and stops its own upstream (export.c)
 *         unload       the server has released all exports; wait for those that a thread still frees
 */
#include <malloc.h>

#include "FSAL/fsal_init.h"
#include "fsal_pnfs.h"

#include "ssc/clock.h"

#include "abi.h"
#include "copy_service.h"
#include "glue.h"
#include "nfs42.h"
#include "op_bind.h"

/*
 * glibc gives a freed buffer of 1 MiB back to the kernel at once and faults it in again for the next:
 * two to four times the cost of the copying itself. 32 MiB is the most that it takes for the
 * threshold above which it maps; the other two let it keep so much at the top of an arena.
 * Arenas are bounded, since each keeps that much.
 */
#define MALLOC_MMAP_BYTES (32 << 20)
#define MALLOC_TRIM_BYTES (128 << 20)
#define MALLOC_PAD_BYTES  (1 << 20)
#define MALLOC_ARENAS     4

struct ssc_module ssc_module = {
	.fsal =
		{
			.fs_info =
				{
					.maxfilesize = INT64_MAX,
					.maxlink = _POSIX_LINK_MAX,
					.maxnamelen = SSC_NAME_MAX,
					.maxpathlen = SSC_LINK_MAX,
					.no_trunc = true,
					.chown_restricted = true,
					.case_insensitive = false,
					.case_preserving = true,
					.link_support = true,
					.symlink_support = true,
					/* Locks are this server's own: NFSv3 clients of the
					   upstream do not see them. */
					.lock_support = false,
					.named_attr = false,
					.unique_handles = true,
					.acl_support = 0,
					.cansettime = true,
					.homogenous = true,
					.supported_attrs = ATTRS_POSIX,
					.maxread = SSC_CONFIG_IO_MAX,
					.maxwrite = SSC_CONFIG_IO_MAX,
					.umask = 0,
					.auth_exportpath_xdev = false,
					.link_supports_permission_checks = true,
					.readdir_plus = true,
					.compliant_eof_behavior = true,
					.expire_time_parent = -1,
				},
		},
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static bool is_registered;

static void tune_malloc(void)
{
	if (mallopt(M_MMAP_THRESHOLD, MALLOC_MMAP_BYTES) != 1 ||
	    mallopt(M_TRIM_THRESHOLD, MALLOC_TRIM_BYTES) != 1 ||
	    mallopt(M_TOP_PAD, MALLOC_PAD_BYTES) != 1 || mallopt(M_ARENA_MAX, MALLOC_ARENAS) != 1)
		ssc_log_warn("Tune_Malloc: this malloc cannot be tuned; large I/O may cost more");
}

static fsal_status_t init_config(struct fsal_module *module, config_file_t file,
				 struct config_error_type *err_type)
{
	(void)module;
	if (!ssc_config_load_module(file, &ssc_module.config, err_type)) {
		ssc_log_crit("the block SSC { } is refused, see above");
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	}
	if (ssc_module.config.tune_malloc)
		tune_malloc();
	ssc_module.budget = ssc_budget_new(ssc_module.config.memory_max_bytes);
	(void)ssc_op_bind_v3(); /* without it re-exports work all the same, see file_io.c */
	if (ssc_module.config.enable_copy && ssc_copy_service_start())
		(void)ssc_op_bind_v4(ssc_nfs42_rows, ssc_nfs42_n_rows);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static MODULE_INIT void ssc_load(void)
{
	ssc_glog_start();
	if (!ssc_abi_check())
		return;
	if (register_fsal(&ssc_module.fsal, "SSC", FSAL_MAJOR_VERSION, FSAL_MINOR_VERSION,
			  FSAL_ID_NO_PNFS) != 0) {
		ssc_log_crit("the server does not take FSAL SSC: its FSAL interface is another "
			     "version than ours, %d.%d",
			     FSAL_MAJOR_VERSION, FSAL_MINOR_VERSION);
		return;
	}
	is_registered = true;
	glist_init(&ssc_module.exports);
	glist_init(&ssc_module.stacked);
	ssc_clock_cond_init(&ssc_module.reaped);
	ssc_handle_ops_init(&ssc_module.obj_ops);
	ssc_module.fsal.m_ops.init_config = init_config;
	ssc_module.fsal.m_ops.create_export = ssc_create_export;
	ssc_module.fsal.m_ops.update_export = ssc_update_export;
}

static MODULE_FINI void ssc_unload(void)
{
	if (!is_registered)
		return;
	ssc_op_unbind();
	ssc_copy_service_stop();
	ssc_export_drain();
	if (unregister_fsal(&ssc_module.fsal) != 0) {
		ssc_log_crit("the server still holds references to FSAL SSC; its memory stays");
		return;
	}
	if (ssc_module.n_reaping == 0)
		ssc_budget_free(ssc_module.budget);
	pthread_cond_destroy(&ssc_module.reaped);
	ssc_log_set(NULL, SSC_LOG_WARN);
}
