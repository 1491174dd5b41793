/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * export.c - exports: made, updated and released.
 *
 * Release may run on a thread of the export's own upstream: a completion tells the server, the server
 * finishes the request and drops its reference, and the completion's own is then the last one. That
 * thread cannot wait for itself, so another one stops and frees the upstream, and unloading waits
 * for that.
 *
 * Locks: module.lock round the list of exports and the count of those that are still being freed.
 */
#include "export_mgr.h"
#include "nfs_exports.h"

#include "ssc/clock.h"

#include "copy_service.h"
#include "ahead.h"
#include "glue.h"

#define DRAIN_NS (5 * SSC_NS_PER_S)

/* ---- the list, which keeps upstream ids apart ---- */

static bool is_same_upstream(const struct ssc_export *a, const struct ssc_export *b)
{
	return strcasecmp(a->config.server, b->config.server) == 0 &&
	       a->config.port == b->config.port;
}

/* Handles name an upstream by its id, so two upstreams with one id would be taken for one. */
static bool enlist(struct ssc_export *exp)
{
	struct ssc_export *clash = NULL;
	struct glist_head *item;

	pthread_mutex_lock(&ssc_module.lock);
	glist_for_each(item, &ssc_module.exports)
	{
		struct ssc_export *other = glist_entry(item, struct ssc_export, in_module);

		if (other->upstream_id == exp->upstream_id && !is_same_upstream(other, exp))
			clash = other;
	}
	if (clash == NULL)
		glist_add_tail(&ssc_module.exports, &exp->in_module);
	else
		ssc_log_crit("%s: its upstream id %u is also that of %s; set Upstream_Id to "
			     "another number in one of them",
			     exp->name, exp->upstream_id, clash->name);
	pthread_mutex_unlock(&ssc_module.lock);
	return clash == NULL;
}

static void delist(struct ssc_export *exp)
{
	pthread_mutex_lock(&ssc_module.lock);
	glist_del(&exp->in_module);
	pthread_mutex_unlock(&ssc_module.lock);
}

/* ---- making one ---- */

static void set_names(struct ssc_export *exp)
{
	const struct ssc_export_config *config = &exp->config;

	/* The host has no name for the path yet but the one in the context. */
	exp->remote_path = gsh_strdup(config->remote_path != NULL ? config->remote_path
								  : CTX_FULLPATH(op_ctx));
	snprintf(exp->name, sizeof(exp->name), "export %d (%s) of %s:%s",
		 op_ctx->ctx_export->export_id, CTX_FULLPATH(op_ctx), config->server,
		 exp->remote_path);
	exp->path_hash = ssc_base_hash(exp->remote_path, strlen(exp->remote_path), 0);
	exp->upstream_id = config->upstream_id != 0
				   ? config->upstream_id
				   : ssc_key_upstream_id(config->server, config->port);
}

static uint64_t random_instance(void)
{
	uint64_t instance;

	/* The pool has been filled long before a server starts, so this neither waits nor fails. */
	if (getentropy(&instance, sizeof(instance)) != 0)
		instance = ssc_base_mix(ssc_clock_now_ns() ^ (uint64_t)getpid() << 32);
	return instance;
}

static bool start_upstream(struct ssc_export *exp)
{
	const struct ssc_export_config *config = &exp->config;
	const struct ssc_upstream_config cfg = {
		.name = exp->name,
		.server = config->server,
		.remote_path = exp->remote_path,
		.port = config->port,
		.mount_port = config->mount_port,
		.connections = config->connections,
		.read_max_bytes = config->read_max_bytes,
		.write_max_bytes = config->write_max_bytes,
		.readdir_max_bytes = config->readdir_max_bytes,
		.dead_ns = config->upstream_dead_ms * SSC_NS_PER_MS,
		.connect_ns = config->connect_timeout_ms * SSC_NS_PER_MS,
		.use_privileged_port = config->use_privileged_port,
		.waiting_max = config->waiting_max,
		.budget = ssc_module.budget,
	};

	if (ssc_upstream_nfs3_new(&cfg, &exp->up) != SSC_OK)
		return false;
	atomic_store(&exp->timeout_ns, config->upstream_timeout_ms * SSC_NS_PER_MS);
	atomic_store(&exp->allow_copy, config->allow_copy);
	exp->caller = ssc_caller_new(exp->up, atomic_load(&exp->timeout_ns));
	exp->ahead = ssc_ahead_new(exp->up);
	ssc_late_watch(exp);
	return true;
}

/* What is left when it is stopped, or never was started. */
static void free_export(struct ssc_export *exp)
{
	ssc_ahead_free(exp->ahead);
	ssc_caller_free(exp->caller);
	if (exp->up != NULL)
		exp->up->ops->free(exp->up);
	ssc_verifier_fini(&exp->verifier);
	ssc_root_fini(exp);
	ssc_config_free(&exp->config);
	gsh_free(exp->remote_path);
	gsh_free(exp);
}

static struct ssc_export *new_export(struct ssc_export_config *config)
{
	struct ssc_export *exp = gsh_calloc(1, sizeof(*exp));

	exp->config = *config; /* and its strings */
	memset(config, 0, sizeof(*config));
	glist_init(&exp->in_module);
	ssc_root_init(exp);
	ssc_verifier_init(&exp->verifier, random_instance());
	set_names(exp);
	return exp;
}

static fsal_status_t create_reexport(struct fsal_module *module, struct ssc_export_config *config,
				     const struct fsal_up_vector *up_ops)
{
	struct ssc_export *exp = new_export(config);

	if (!enlist(exp))
		goto err_free;
	if (!start_upstream(exp))
		goto err_delist;
	fsal_export_init(&exp->export);
	ssc_export_ops_init(&exp->export.exp_ops);
	if (fsal_attach_export(module, &exp->export.exports) != 0)
		goto err_stop;
	exp->export.fsal = module;
	exp->export.up_ops = up_ops;
	op_ctx->fsal_export = &exp->export;
	ssc_log_event("%s: port %u, upstream id %u", exp->name, exp->config.port, exp->upstream_id);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);

err_stop:
	free_export_ops(&exp->export);
	exp->up->ops->stop(exp->up);
err_delist:
	delist(exp);
err_free:
	free_export(exp);
	return fsalstat(ERR_FSAL_INVAL, EINVAL);
}

/* The server keeps a module whose own configuration was refused, and asks it for exports again. */
static bool is_configured(void)
{
	if (ssc_module.budget == NULL)
		ssc_log_crit(
			"export %d, FSAL SSC: the block SSC { } was refused when the module was "
			"loaded; mend it and start the server again",
			op_ctx->ctx_export->export_id);
	return ssc_module.budget != NULL;
}

fsal_status_t ssc_create_export(struct fsal_module *module, void *node,
				struct config_error_type *err_type,
				const struct fsal_up_vector *up_ops)
{
	struct ssc_export_config config = {0};
	fsal_status_t status;

	if (!is_configured() || !ssc_config_load_export(node, &config, err_type))
		status = fsalstat(ERR_FSAL_INVAL, EINVAL);
	else if (config.inner.name != NULL)
		status = ssc_stack_create(module, &config, err_type, up_ops);
	else
		status = create_reexport(module, &config, up_ops);
	ssc_stack_drop(&config);
	ssc_config_free(&config);
	return status;
}

/* ---- updating ---- */

static fsal_status_t update_reexport(struct ssc_export *exp, struct ssc_export_config *config)
{
	const char *key = ssc_config_changed_key(&exp->config, config);
	uint64_t timeout_ns = config->upstream_timeout_ms * SSC_NS_PER_MS;

	if (key != NULL) {
		ssc_log_crit("%s: %s cannot change while the export is in use; remove the export "
			     "and add it again",
			     exp->name, key);
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	}
	atomic_store(&exp->allow_copy, config->allow_copy);
	if (timeout_ns != atomic_load(&exp->timeout_ns)) {
		atomic_store(&exp->timeout_ns, timeout_ns);
		ssc_caller_set_timeout(exp->caller, timeout_ns);
		ssc_log_event("%s: Upstream_Timeout_Ms is %u now", exp->name,
			      config->upstream_timeout_ms);
	}
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static fsal_status_t update_checked(struct fsal_module *module, struct ssc_export_config *config,
				    void *node, struct config_error_type *err_type,
				    struct fsal_export *original, struct fsal_module *super)
{
	fsal_status_t status;

	if (config->inner.name != NULL)
		return ssc_stack_update(config, err_type, original, super);
	/* The default: whether the stack is still the same. */
	status = update_export(module, node, err_type, original, super);
	if (FSAL_IS_ERROR(status))
		return status;
	return update_reexport(ssc_export_of(original), config);
}

fsal_status_t ssc_update_export(struct fsal_module *module, void *node,
				struct config_error_type *err_type, struct fsal_export *original,
				struct fsal_module *super)
{
	struct ssc_export_config config = {0};
	fsal_status_t status = fsalstat(ERR_FSAL_INVAL, EINVAL);

	if (ssc_config_load_export(node, &config, err_type))
		status = update_checked(module, &config, node, err_type, original, super);
	ssc_stack_drop(&config);
	ssc_config_free(&config);
	return status;
}

/* ---- releasing ---- */

/* What went to the upstream, by procedure. */
static void log_figures(struct ssc_export *exp)
{
	struct ssc_upstream_stats stats;
	char ops[512] = "";
	size_t len = 0;

	ssc_upstream_nfs3_stats(exp->up, &stats);
	for (int op = 0; op < SSC_OP_N && len < sizeof(ops); op++) {
		if (stats.per_op[op] != 0)
			len += (size_t)snprintf(ops + len, sizeof(ops) - len, " %s %llu",
						ssc_op_str(op),
						(unsigned long long)stats.per_op[op]);
	}
	ssc_log_event("%s: released; upstream calls %llu:%s; bytes read %llu, written %llu; sent "
		      "again %llu, late %llu, timed out %llu, refused %llu",
		      exp->name, (unsigned long long)stats.calls, ops,
		      (unsigned long long)stats.bytes_read, (unsigned long long)stats.bytes_written,
		      (unsigned long long)stats.resent, (unsigned long long)stats.late,
		      (unsigned long long)stats.timeouts, (unsigned long long)stats.refused);
}

static void stop_and_free(struct ssc_export *exp)
{
	exp->up->ops->stop(exp->up);
	log_figures(exp);
	free_export(exp);
}

static void *reap(void *arg)
{
	SetNameFunction("ssc_reap");
	stop_and_free(arg);
	pthread_mutex_lock(&ssc_module.lock);
	ssc_module.n_reaping--;
	pthread_cond_broadcast(&ssc_module.reaped);
	pthread_mutex_unlock(&ssc_module.lock);
	return NULL;
}

static void reap_elsewhere(struct ssc_export *exp)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_mutex_lock(&ssc_module.lock);
	ssc_module.n_reaping++;
	pthread_mutex_unlock(&ssc_module.lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, reap, exp);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		return;
	/* Rather lose memory than wait for ourselves. */
	ssc_log_crit("%s: no thread to release it (%s); its memory and connections stay", exp->name,
		     strerror(rc));
	pthread_mutex_lock(&ssc_module.lock);
	ssc_module.n_reaping--;
	pthread_mutex_unlock(&ssc_module.lock);
}

/*
 * The export is out of the server's tables, so no client can use what is still asked of the upstream.
 * Requests that wait for it, perhaps for one that is away, are answered now and let go of the export.
 */
void ssc_export_prepare_unexport(struct fsal_export *export)
{
	struct ssc_export *exp = ssc_export_of(export);

	atomic_store(&exp->is_leaving, true);
	/* What its copies wait for ends with the upstream. */
	ssc_copy_service_end_export(export->export_id, false);
	exp->up->ops->stop(exp->up);
	ssc_copy_service_end_export(export->export_id, true);
}

void ssc_export_release(struct fsal_export *export)
{
	struct ssc_export *exp = ssc_export_of(export);

	atomic_store(&exp->is_leaving, true);
	fsal_detach_export(export->fsal, &export->exports);
	free_export_ops(export);
	delist(exp);
	if (ssc_export_in_done)
		reap_elsewhere(exp);
	else
		stop_and_free(exp);
}

void ssc_export_drain(void)
{
	uint64_t until = ssc_clock_now_ns() + DRAIN_NS;

	pthread_mutex_lock(&ssc_module.lock);
	while (ssc_module.n_reaping > 0 && ssc_clock_now_ns() < until)
		ssc_clock_wait(&ssc_module.reaped, &ssc_module.lock, until);
	pthread_mutex_unlock(&ssc_module.lock);
}
