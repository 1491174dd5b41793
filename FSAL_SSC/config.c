/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * config.c - reads the blocks SSC { } and EXPORT { FSAL { } } by the table in config_table.h.
 *
 * Ganesha's parser checks types and ranges, but says only which line and value are wrong. The key,
 * and what may stand there, is said here; so is what holds between keys. Anything wrong stops the
 * load.
 * Threads: those that load and update exports; one at a time.
 */
#include <inttypes.h>

#include "config_parsing.h"
#include "export_mgr.h"

#include "glue.h"

#define ITEM_BOOL(key, member, def, min, max)       CONF_ITEM_BOOL(#key, def, BLOCK, member),
#define ITEM_UI16(key, member, def, min, max)       CONF_ITEM_UI16(#key, min, max, def, BLOCK, member),
#define ITEM_UI32(key, member, def, min, max)       CONF_ITEM_UI32(#key, min, max, def, BLOCK, member),
#define ITEM_UI64(key, member, def, min, max)       CONF_ITEM_UI64(#key, min, max, def, BLOCK, member),
#define ITEM_STR(key, member, def, min, max)        CONF_ITEM_STR(#key, min, max, def, BLOCK, member),

#define ITEM(kind, key, member, def, min, max, ...) ITEM_##kind(key, member, def, min, max)

#define BLOCK                                       ssc_module_config
static struct config_item module_items[] = {SSC_CONFIG_MODULE(ITEM) CONFIG_EOL};
#undef BLOCK

static struct config_block module_block = {
	.dbus_interface_name = "org.ganesha.nfsd.config.fsal.ssc",
	.blk_desc.name = "SSC",
	.blk_desc.type = CONFIG_BLOCK,
	.blk_desc.u.blk.init = noop_conf_init,
	.blk_desc.u.blk.params = module_items,
	.blk_desc.u.blk.commit = noop_conf_commit,
};

static struct config_item inner_items[] = {
	CONF_ITEM_STR("name", 1, 32, NULL, subfsal_args, name),
	CONFIG_EOL,
};

/* Both must begin alike, since the parser fills in the one that the macro names. */
_Static_assert(sizeof(((struct ssc_export_config *)0)->inner) == sizeof(struct subfsal_args),
	       "the host's structure for an inner FSAL");

/* Keys of the FSALs that people come from: refused, with ours in the message. */
#define OTHER(key, ours) CONF_ITEM_DEPRECATED(key, "FSAL SSC calls it " ours)

#define BLOCK            ssc_export_config
static struct config_item export_items[] = {
	CONF_ITEM_NOOP("name"),
	SSC_CONFIG_EXPORT(ITEM) CONF_RELAX_BLOCK("FSAL", inner_items, noop_conf_init,
						 subfsal_commit, ssc_export_config, inner),
	OTHER("Srv_Addr", "Server"),
	OTHER("NFS_Port", "Port"),
	OTHER("Use_Privileged_Client_Port", "Use_Privileged_Port"),
	OTHER("RPC_Client_Timeout", "Upstream_Timeout_Ms"),
	OTHER("maxread", "Read_Max_Bytes"),
	OTHER("maxwrite", "Write_Max_Bytes"),
	OTHER("num_sockets", "Connections"),
	CONFIG_EOL,
};
#undef BLOCK

static struct config_block export_block = {
	.dbus_interface_name = "org.ganesha.nfsd.config.fsal.ssc-export%d",
	.blk_desc.name = "FSAL",
	.blk_desc.type = CONFIG_BLOCK,
	.blk_desc.u.blk.init = noop_conf_init,
	.blk_desc.u.blk.params = export_items,
	.blk_desc.u.blk.commit = noop_conf_commit,
};

/* ---- which key it was ---- */

struct row {
	const char *key;
	const char *kind;
	uint64_t min;
	uint64_t max;
	const char *unit;
};

#define ROW(kind, key, member, def, min, max, unit, ...) {#key, #kind, min, max, unit},

static const struct row module_rows[] = {SSC_CONFIG_MODULE(ROW)};
static const struct row export_rows[] = {SSC_CONFIG_EXPORT(ROW)};

static const struct config_item *item_of(const struct config_item *items, const char *key)
{
	while (strcmp(items->name, key) != 0)
		items++;
	return items;
}

/* Whether the parser refuses @key in the block at @where: a block's node, or the whole file. */
static bool is_refused(const struct config_block *like, const char *key, void *where, bool is_file)
{
	struct config_item items[2] = {*item_of(like->blk_desc.u.blk.params, key), CONFIG_EOL};
	struct config_error_type err_type = {0}; /* without a stream: it stays quiet */
	struct config_block block = *like;
	union {
		struct ssc_module_config module;
		struct ssc_export_config export;
	} scratch;

	memset(&scratch, 0, sizeof(scratch));
	block.blk_desc.flags = CONFIG_RELAX; /* the other keys do not matter */
	block.blk_desc.u.blk.params = items;
	if (is_file)
		(void)load_config_from_parse(where, &block, &scratch, true, &err_type);
	else
		(void)load_config_from_node(where, &block, &scratch, true, &err_type);
	if (!is_file)
		ssc_config_free(&scratch.export);
	return err_type.errors != 0;
}

static void say_refused(const char *place, const struct row *row)
{
	if (strcmp(row->kind, "BOOL") == 0)
		ssc_log_crit("%s: %s must be true or false, given once", place, row->key);
	else if (strcmp(row->kind, "STR") == 0)
		ssc_log_crit("%s: %s must be given once", place, row->key);
	else
		ssc_log_crit("%s: %s must be a number from %" PRIu64 " to %" PRIu64
			     "%s%s, given once",
			     place, row->key, row->min, row->max, *row->unit != 0 ? " " : "",
			     row->unit);
}

static void name_refused(const char *place, const struct config_block *block,
			 const struct row *rows, size_t n_rows, void *where, bool is_file)
{
	for (size_t i = 0; i < n_rows; i++) {
		if (is_refused(block, rows[i].key, where, is_file))
			say_refused(place, &rows[i]);
	}
}

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

bool ssc_config_load_module(config_file_t file, struct ssc_module_config *config,
			    struct config_error_type *err_type)
{
	uint32_t errors = err_type->errors;

	(void)load_config_from_parse(file, &module_block, config, true, err_type);
	if (err_type->errors == errors && config_error_is_harmless(err_type))
		return true;
	name_refused("SSC { }", &module_block, module_rows, N_OF(module_rows), file, true);
	return false;
}

/* ---- what holds between keys ---- */

/* Say what is wrong with the FSAL block of the export that is being loaded. Always false. */
static bool SSC_PRINTF(1, 2) refuse(const char *fmt, ...)
{
	char what[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	ssc_log_crit("export %d, FSAL SSC: %s", op_ctx->ctx_export->export_id, what);
	return false;
}

static bool check_stack(const struct ssc_export_config *config)
{
	if (config->server != NULL)
		return refuse(
			"Server and an inner FSAL block are both given; leave Server out to put "
			"SSC over another FSAL, or the inner block to re-export a server");
	if (config->remote_path != NULL)
		return refuse("Remote_Path is of no use with an inner FSAL block; leave it out");
	if (strcasecmp(config->inner.name, "SSC") == 0)
		return refuse("the inner FSAL is SSC itself; name the FSAL that serves the files, "
			      "such as VFS");
	return true;
}

static bool check_reexport(const struct ssc_export_config *config)
{
	if (config->server == NULL)
		return refuse("Server is missing; give the server to re-export, or an inner block "
			      "such as FSAL { Name = VFS; }");
	if (config->remote_path != NULL && config->remote_path[0] != '/')
		return refuse("Remote_Path '%s' does not begin with '/'; give the path as the "
			      "upstream exports it",
			      config->remote_path);
	if (config->upstream_timeout_ms >= config->upstream_dead_ms)
		return refuse("Upstream_Timeout_Ms (%u) must be less than Upstream_Dead_Ms (%u), "
			      "since a client is told to come back before a connection is given up",
			      config->upstream_timeout_ms, config->upstream_dead_ms);
	return true;
}

#define LENGTH_OK_BOOL(value, min, max) true
#define LENGTH_OK_UI16(value, min, max) true
#define LENGTH_OK_UI32(value, min, max) true
#define LENGTH_OK_UI64(value, min, max) true
#define LENGTH_OK_STR(value, min, max) \
	((value) == NULL || (strlen(value) >= (min) && strlen(value) <= (max)))

#define CHECK_LENGTH(kind, key, member, def, min, max, ...)                            \
	if (!LENGTH_OK_##kind(config->member, min, max))                               \
		return refuse(#key " is too short or too long; give " #min " to " #max \
				   " characters");

static bool check_lengths(const struct ssc_export_config *config)
{
	SSC_CONFIG_EXPORT(CHECK_LENGTH)
	return true;
}

bool ssc_config_load_export(void *node, struct ssc_export_config *config,
			    struct config_error_type *err_type)
{
	char place[64];

	if (load_config_from_node(node, &export_block, config, true, err_type) != 0) {
		snprintf(place, sizeof(place), "export %d, FSAL SSC",
			 op_ctx->ctx_export->export_id);
		name_refused(place, &export_block, export_rows, N_OF(export_rows), node, false);
		return false;
	}
	if (!check_lengths(config))
		return false;
	return config->inner.name != NULL ? check_stack(config) : check_reexport(config);
}

#define FREE_BOOL(member)
#define FREE_UI16(member)
#define FREE_UI32(member)
#define FREE_UI64(member)
#define FREE_STR(member)             gsh_free(config->member);
#define FREE(kind, key, member, ...) FREE_##kind(member)

void ssc_config_free(struct ssc_export_config *config)
{
	SSC_CONFIG_EXPORT(FREE)
	gsh_free(config->inner.name);
	memset(config, 0, sizeof(*config));
}

/* ---- changes ---- */

static bool str_differs(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a != b;
	return strcmp(a, b) != 0;
}

#define DIFFERS_BOOL(a, b) ((a) != (b))
#define DIFFERS_UI16(a, b) ((a) != (b))
#define DIFFERS_UI32(a, b) ((a) != (b))
#define DIFFERS_UI64(a, b) ((a) != (b))
#define DIFFERS_STR(a, b)  str_differs(a, b)

#define CHANGED(kind, key, member, def, min, max, unit, effect, text)                \
	if (strcmp(effect, "live") != 0 && DIFFERS_##kind(old->member, new->member)) \
		return #key;

const char *ssc_config_changed_key(const struct ssc_export_config *old,
				   const struct ssc_export_config *new)
{
	SSC_CONFIG_EXPORT(CHANGED)
	return NULL;
}
