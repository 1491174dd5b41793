/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42.c - an NFSv4.2 client with sessions for test scripts and benchmarks, on the module's own.
 *
 *     nfs42 ADDRESS PORT COMMAND ARGUMENT... [OPTION...]
 *
 * Paths begin at the server's root (/re/file). Commands are in the table at the end; `nfs42 help`
 * prints them. Results go to stdout as key=value; a command that fails prints one line on stderr that
 * ends in the name of the status, and the exit code is 1.
 *
 * Options: --async, --sync (default), --poll, --no-commit, --chunk N, --src-off N, --dst-off N,
 * --count N, --depth N (8), --block N (1M, or what the server
 * grants), --stable N, --seed N, --cancel-after MS, --wait S,
 * --bounce MS (break the connection as often), --slots N, --uid N, --gid N, --minor N, --no-back,
 * --force, --keep (the destination is not emptied), --verbose. Sizes take k, M, G.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "ssc/clock.h"
#include "ssc/log.h"

#include "nfs42.h"

double tool_now(void)
{
	return (double)ssc_clock_now_ns() / 1e9;
}

double tool_cpu(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

int tool_fail(const char *what, const char *path, uint32_t outcome)
{
	if (outcome == SSC_ST4_OK)
		return 0;
	fprintf(stderr, "%s %s: %s\n", what, path, ssc_nfs4_outcome_str(outcome));
	return 1;
}

uint64_t tool_number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'k':
		return n << 10;
	case 'M':
		return n << 20;
	case 'G':
		return n << 30;
	}
	return n;
}

static int cmd_stat(struct tool *t, char **arg)
{
	struct ssc_nfs4_attrs a;
	struct ssc_fh fh;
	uint32_t outcome = ssc_nfs4_lookup(&t->who, arg[0], &fh, &a);

	if (outcome)
		return tool_fail("stat", arg[0], outcome);
	printf("type=%u mode=%04o nlink=%u size=%llu used=%llu fileid=%llu change=%llu "
	       "mtime=%lld.%09u ctime=%lld.%09u\n",
	       a.type, a.mode, a.numlinks, (unsigned long long)a.size,
	       (unsigned long long)a.space_used, (unsigned long long)a.fileid,
	       (unsigned long long)a.change, (long long)a.mtime.s, a.mtime.ns, (long long)a.ctime.s,
	       a.ctime.ns);
	return 0;
}

/* Attribute numbers that the server says it has; and clone_blksize, if that is one, or when forced. */
static int cmd_supported(struct tool *t, char **arg)
{
	struct ssc_bitmap mask = {{1}}, clone = {{0}};
	struct ssc_nfs4_attrs a, c = {.clone_blksize = 0};
	struct ssc_fh fh;
	uint32_t outcome = ssc_nfs4_lookup(&t->who, arg[0], &fh, NULL);

	ssc_bitmap_set(&clone, SSC_ATTR4_CLONE_BLKSIZE);
	if (!outcome)
		outcome = ssc_nfs4_getattr(&t->who, &fh, &mask, &a);
	if (!outcome && (t->opt.force || ssc_bitmap_has(&a.supported, SSC_ATTR4_CLONE_BLKSIZE)))
		outcome = ssc_nfs4_getattr(&t->who, &fh, &clone, &c);
	if (outcome)
		return tool_fail("supported", arg[0], outcome);
	printf("supported=");
	for (uint32_t i = 0; i < 32 * SSC_BITMAP_WORDS; i++)
		if (ssc_bitmap_has(&a.supported, i))
			printf("%u,", i);
	printf("\nclone_blksize=%u\n", c.clone_blksize);
	return 0;
}

static int cmd_rm(struct tool *t, char **arg)
{
	return tool_fail("rm", arg[0], ssc_nfs4_remove(&t->who, arg[0]));
}

static int with_file(struct tool *t, const char *path, uint32_t how,
		     uint32_t (*what)(struct tool *t, const struct ssc_nfs4_file *file, char **arg),
		     char **arg)
{
	struct ssc_nfs4_file file;
	uint32_t outcome = ssc_nfs4_open(&t->who, path, how, 0644, &file);
	int bad = tool_fail("open", path, outcome);

	if (bad)
		return bad;
	bad = tool_fail("command", path, what(t, &file, arg));
	return bad | tool_fail("close", path, ssc_nfs4_close(&t->who, &file));
}

static uint32_t truncate_file(struct tool *t, const struct ssc_nfs4_file *file, char **arg)
{
	const struct ssc_nfs4_sattr sattr = {.set_size = true, .size = tool_number(arg[1])};

	return ssc_nfs4_setattr(&t->who, file, &sattr);
}

static int cmd_truncate(struct tool *t, char **arg)
{
	return with_file(t, arg[0], SSC_OPEN4_WRITE | SSC_NFS4_CREATE, truncate_file, arg);
}

static uint32_t chmod_file(struct tool *t, const struct ssc_nfs4_file *file, char **arg)
{
	const struct ssc_nfs4_sattr sattr = {
		.set_mode = true,
		.mode = (uint32_t)strtoul(arg[1], NULL, 8),
	};

	return ssc_nfs4_setattr(&t->who, file, &sattr);
}

static int cmd_chmod(struct tool *t, char **arg)
{
	return with_file(t, arg[0], SSC_OPEN4_WRITE, chmod_file, arg);
}

static uint32_t punch_file(struct tool *t, const struct ssc_nfs4_file *file, char **arg)
{
	return ssc_nfs4_space(&t->who, SSC_OP4_DEALLOCATE, file, tool_number(arg[1]),
			      tool_number(arg[2]));
}

static int cmd_punch(struct tool *t, char **arg)
{
	return with_file(t, arg[0], SSC_OPEN4_WRITE, punch_file, arg);
}

/* Extents, as SEEK finds them. */
static uint32_t seek_file(struct tool *t, const struct ssc_nfs4_file *file, char **arg)
{
	struct ssc_nfs4_seek_res data = {.offset = 0}, hole;
	uint32_t outcome = SSC_ST4_OK;

	(void)arg;
	for (int i = 0; i < 100000 && outcome == SSC_ST4_OK; i++) {
		outcome = ssc_nfs4_seek(&t->who, file, data.offset, 0, &data);
		if (outcome || data.is_eof)
			break;
		outcome = ssc_nfs4_seek(&t->who, file, data.offset, 1, &hole);
		if (outcome)
			break;
		printf("data=%llu+%llu\n", (unsigned long long)data.offset,
		       (unsigned long long)(hole.offset - data.offset));
		if (hole.is_eof || hole.offset <= data.offset)
			break;
		data.offset = hole.offset;
	}
	return outcome == SSC_ST4_NXIO ? SSC_ST4_OK : outcome;
}

static int cmd_extents(struct tool *t, char **arg)
{
	return with_file(t, arg[0], SSC_OPEN4_READ, seek_file, arg);
}

static uint32_t notify_file(struct tool *t, const struct ssc_nfs4_file *file, char **arg)
{
	struct ssc_netloc to = {.type = SSC_NL4_NETADDR};
	struct ssc_copy_notify_res res;
	uint32_t outcome;

	snprintf(to.netid, sizeof(to.netid), "%s", arg[1]);
	snprintf(to.uaddr, sizeof(to.uaddr), "%s", arg[2]);
	outcome = ssc_nfs4_copy_notify(&t->who, file, &to, &res);
	if (outcome)
		return outcome;
	printf("lease=%lld.%09u sources=%u first=%s/%s\n", (long long)res.lease_s, res.lease_ns,
	       res.sources.n_all, res.sources.n ? res.sources.loc[0].netid : "",
	       res.sources.n ? res.sources.loc[0].uaddr : "");
	return outcome;
}

static int cmd_notify(struct tool *t, char **arg)
{
	return with_file(t, arg[0], SSC_OPEN4_READ, notify_file, arg);
}

static uint32_t advise_file(struct tool *t, const struct ssc_nfs4_file *file, char **arg)
{
	struct ssc_nfs4_call call;
	uint32_t outcome, hints = 0;

	(void)arg;
	ssc_nfs4_call_init(&call, &t->who.cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_io_advise(&call, &file->stateid, 0, 4096, 2);
	outcome = ssc_nfs4_run(t->who.client, &call);
	if (!ssc_nfs4_local_err(outcome))
		outcome = ssc_nfs4_res(&call, SSC_OP4_PUTFH);
	if (!outcome)
		outcome = ssc_nfs4_res_io_advise(&call, &hints);
	ssc_nfs4_call_fini(&call);
	printf("hints=%u\n", hints);
	return outcome;
}

static int cmd_advise(struct tool *t, char **arg)
{
	return with_file(t, arg[0], SSC_OPEN4_READ, advise_file, arg);
}

/* Nothing but time passes: the lease must live. */
static int cmd_idle(struct tool *t, char **arg)
{
	struct timespec ts = {.tv_sec = atoi(arg[0])};
	struct ssc_nfs4_info before, after;

	ssc_nfs4_client_info(t->who.client, &before);
	nanosleep(&ts, NULL);
	ssc_nfs4_client_info(t->who.client, &after);
	printf("renewals=%llu generation=%u sessions=%u\n",
	       (unsigned long long)(after.n_replies - before.n_replies), after.generation,
	       after.n_sessions);
	return before.generation != after.generation;
}

static int cmd_info(struct tool *t, char **arg)
{
	struct ssc_nfs4_info i;

	(void)arg;
	ssc_nfs4_client_info(t->who.client, &i);
	printf("slots=%u lease=%u io_max=%u back_channel=%d flags=%u clientid=%llx session=",
	       i.n_slots, i.lease_s, i.io_max, i.has_back_channel, i.status_flags,
	       (unsigned long long)i.clientid);
	for (int k = 0; k < 16; k++)
		printf("%02x", i.session[k]);
	printf("\n");
	return 0;
}

/* ---- main ---- */

static const struct command {
	const char *name;
	int n_args;
	int (*run)(struct tool *t, char **arg);
	const char *help;
} commands[] = {
	{"info", 0, cmd_info, ""},
	{"idle", 1, cmd_idle, "SECONDS"},
	{"stat", 1, cmd_stat, "PATH"},
	{"supported", 1, cmd_supported, "PATH"},
	{"rm", 1, cmd_rm, "PATH"},
	{"truncate", 2, cmd_truncate, "PATH SIZE"},
	{"chmod", 2, cmd_chmod, "PATH MODE"},
	{"punch", 3, cmd_punch, "PATH OFFSET BYTES"},
	{"extents", 1, cmd_extents, "PATH"},
	{"put", 2, cmd_put, "LOCAL PATH"},
	{"get", 2, cmd_get, "PATH LOCAL"},
	{"fill", 2, cmd_fill, "PATH BYTES"},
	{"sum", 1, cmd_sum, "PATH"},
	{"rwcopy", 2, cmd_rwcopy, "SRC DST"},
	{"copy", 2, cmd_copy, "SRC DST"},
	{"clone", 2, cmd_clone, "SRC DST"},
	{"copies", 4, cmd_copies, "N copy|rwcopy SRC DST   (% is the number)"},
	{"getattr-loop", 2, cmd_getattr_loop, "PATH SECONDS"},
	{"small", 4, cmd_small, "ROUNDS both|copy SRC DST"},
	{"notify", 3, cmd_notify, "PATH NETID UADDR"},
	{"advise", 1, cmd_advise, "PATH"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help(int code)
{
	fprintf(stderr, "nfs42 ADDRESS PORT COMMAND ARGUMENT... [OPTION...]\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(stderr, "  %s %s\n", commands[i].name, commands[i].help);
	return code;
}

static void log_line(enum ssc_log_level level, const char *fmt, va_list args)
{
	(void)level;
	fprintf(stderr, "# ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
}

/* @return whether it was a flag; */
static bool set_flag(struct options *o, struct ssc_nfs4_config *cfg, const char *name)
{
	if (strcmp(name, "--async") == 0)
		o->async = true;
	else if (strcmp(name, "--sync") == 0)
		o->async = false;
	else if (strcmp(name, "--poll") == 0)
		o->poll = true;
	else if (strcmp(name, "--no-commit") == 0)
		o->no_commit = true;
	else if (strcmp(name, "--keep") == 0)
		o->keep = true;
	else if (strcmp(name, "--force") == 0)
		o->force = true;
	else if (strcmp(name, "--no-back") == 0)
		cfg->want_back_channel = false;
	else if (strcmp(name, "--verbose") == 0)
		ssc_log_set(log_line, SSC_LOG_DEBUG);
	else
		return false;
	return true;
}

static bool set_option(struct tool *t, struct ssc_nfs4_config *cfg, const char *name,
		       const char *value)
{
	struct options *o = &t->opt;
	const struct {
		const char *name;
		uint32_t *to;
		uint64_t *to64;
	} table[] = {
		{"--chunk", NULL, &o->chunk},
		{"--src-off", NULL, &o->src_off},
		{"--dst-off", NULL, &o->dst_off},
		{"--count", NULL, &o->count},
		{"--seed", NULL, &o->seed},
		{"--bounce", NULL, &o->bounce_ms},
		{"--depth", &o->depth, NULL},
		{"--block", &o->block, NULL},
		{"--stable", &o->stable, NULL},
		{"--slots", &cfg->n_slots, NULL},
		{"--minor", &cfg->minor_version, NULL},
		{"--uid", &t->who.cred.uid, NULL},
		{"--gid", &t->who.cred.gid, NULL},
	};

	if (strcmp(name, "--cancel-after") == 0) {
		o->cancel_ms = atoll(value);
		return true;
	}
	if (strcmp(name, "--wait") == 0) {
		o->wait_s = atof(value);
		return true;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(name, table[i].name) != 0)
			continue;
		if (table[i].to)
			*table[i].to = (uint32_t)tool_number(value);
		else
			*table[i].to64 = tool_number(value);
		return true;
	}
	return false;
}

/* With --bounce the connection breaks every so often while the command runs. */
static void *bounce(void *arg)
{
	struct tool *t = arg;
	const long ms = (long)t->opt.bounce_ms;
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (!atomic_load(&t->is_over)) {
		nanosleep(&ts, NULL);
		ssc_nfs4_client_disconnect(t->who.client);
	}
	return NULL;
}

static int bounced(struct tool *t, const struct command *cmd, char **arg)
{
	struct ssc_nfs4_info i;
	pthread_t thread;
	int bad;

	if (t->opt.bounce_ms == 0 || pthread_create(&thread, NULL, bounce, t) != 0)
		return cmd->run(t, arg);
	bad = cmd->run(t, arg);
	atomic_store(&t->is_over, true);
	pthread_join(thread, NULL);
	ssc_nfs4_client_info(t->who.client, &i);
	printf("connections=%u sessions=%u generation=%u resent=%llu\n", i.n_connections,
	       i.n_sessions, i.generation, (unsigned long long)i.n_resent);
	return bad;
}

static int run(struct tool *t, struct ssc_nfs4_config *cfg, const struct command *cmd, char **arg)
{
	struct ssc_nfs4_info i;
	uint32_t outcome;
	int bad;

	if (ssc_nfs4_client_new(cfg, &t->who.client) != SSC_OK)
		return tool_fail("client", cfg->server, ssc_nfs4_local(SSC_E_INVAL));
	outcome = ssc_nfs4_client_wait(t->who.client, ssc_clock_now_ns() + cfg->connect_ns);
	ssc_nfs4_client_info(t->who.client, &i);
	if (i.io_max && t->opt.block > i.io_max)
		t->opt.block = i.io_max;
	if (outcome)
		bad = tool_fail("session", cfg->server, outcome);
	else
		bad = bounced(t, cmd, arg);
	ssc_nfs4_client_free(t->who.client);
	return bad;
}

int main(int argc, char **argv)
{
	struct tool t = {.opt = {.depth = 8, .block = 1 << 20, .cancel_ms = -1, .wait_s = 600}};
	const struct command *cmd = NULL;
	struct ssc_nfs4_config cfg;
	char *arg[8];
	int n = 0;

	ssc_nfs4_config_init(&cfg);
	cfg.use_privileged_port = true;
	for (int i = 4; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0 && n < 8)
			arg[n++] = argv[i];
		else if (set_flag(&t.opt, &cfg, argv[i]))
			continue;
		else if (i + 1 >= argc || !set_option(&t, &cfg, argv[i], argv[i + 1]))
			return help(2);
		else
			i++;
	}
	for (size_t i = 0; argc > 3 && i < N_COMMANDS; i++)
		if (strcmp(argv[3], commands[i].name) == 0)
			cmd = &commands[i];
	if (!cmd || n != cmd->n_args || t.opt.depth < 1 || t.opt.block < 1 ||
	    t.opt.block > SSC_NFS4_IO_MAX)
		return help(2);
	cfg.server = argv[1];
	cfg.port = (uint16_t)atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run(&t, &cfg, cmd, arg);
}
