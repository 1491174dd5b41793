/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * client.c - an NFS client for test scripts, on libnfs' synchronous calls: v3 and v4.0, no mount.
 *
 *     client [-u UID] [-g GID] [-w SECONDS] URL COMMAND [ARGUMENT...]
 *     client pattern BYTES SEED           (no server: the bytes that `write` would write)
 *
 * The URL is libnfs' (nfs://HOST/EXPORT?version=3&nfsport=N&mountport=N); paths are below EXPORT.
 * Commands are in the table at the end of this file; `client help` prints them. Every command ends
 * with 0 when it did what it says, and with 1 and one line on stderr that ends in the name of the
 * error otherwise.
 *
 * A server that answers JUKEBOX or DELAY asks its client to come back, which libnfs does not do.
 * So every call is made through retry() below, for -w seconds (default 120). A command during which
 * that happened says so on stderr ("came back N times").
 *
 * Two faults of libnfs 4.0.0 are worked round: a v4 call's arguments may not exceed 4096 bytes (see
 * rpc_allocate_pdu below), and a v4 O_CREAT of a file that exists fails (see open_for_write).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client.h"

struct rpc_context;
struct rpc_pdu;
struct rpc_pdu *rpc_allocate_pdu(struct rpc_context *rpc, int program, int version, int procedure,
				 void *cb, void *private_data, void *decode_fn, int decode_size);
struct rpc_pdu *rpc_allocate_pdu2(struct rpc_context *rpc, int program, int version, int procedure,
				  void *cb, void *private_data, void *decode_fn, int decode_size,
				  size_t hint);

#define NFS_PROGRAM 100003

/*
 * Taken instead of libnfs' own, which gives the arguments 4096 bytes: too few for a v4 WRITE. A
 * COMPOUND gets room for the largest WRITE that client_connect() lets libnfs send.
 */
struct rpc_pdu *rpc_allocate_pdu(struct rpc_context *rpc, int program, int version, int procedure,
				 void *cb, void *private_data, void *decode_fn, int decode_size)
{
	size_t hint = program == NFS_PROGRAM && version == 4 && procedure == 1 ? IO_MAX + 4096 : 0;

	return rpc_allocate_pdu2(rpc, program, version, procedure, cb, private_data, decode_fn,
				 decode_size, hint);
}

static int cmd_mount(struct client *c, char **arg)
{
	struct nfs_stat_64 st;
	int err;

	(void)arg;
	err = CALL(c, nfs_stat64(c->nfs, "/", &st));
	return err ? client_fail(c, "stat", "/", err) : 0;
}

static int cmd_stat(struct client *c, char **arg)
{
	struct nfs_stat_64 st;
	int err = CALL(c, nfs_lstat64(c->nfs, arg[0], &st));

	if (err)
		return client_fail(c, "stat", arg[0], err);
	printf("type=%s mode=%04o nlink=%llu uid=%llu gid=%llu size=%llu fileid=%llu fsid=%llu "
	       "mtime=%llu.%09llu used=%llu rdev=%llu\n",
	       client_type_name((uint32_t)st.nfs_mode), (unsigned)(st.nfs_mode & 07777),
	       (unsigned long long)st.nfs_nlink, (unsigned long long)st.nfs_uid,
	       (unsigned long long)st.nfs_gid, (unsigned long long)st.nfs_size,
	       (unsigned long long)st.nfs_ino, (unsigned long long)st.nfs_dev,
	       (unsigned long long)st.nfs_mtime, (unsigned long long)st.nfs_mtime_nsec,
	       (unsigned long long)st.nfs_used, (unsigned long long)st.nfs_rdev);
	return 0;
}

static int list(struct client *c, const char *path, bool names)
{
	struct nfsdir *dir = NULL;
	struct nfsdirent *ent;
	unsigned long n = 0;
	int err = CALL(c, nfs_opendir(c->nfs, path, &dir));

	if (err)
		return client_fail(c, "readdir", path, err);
	while ((ent = nfs_readdir(c->nfs, dir)) != NULL) {
		if (!strcmp(ent->name, ".") || !strcmp(ent->name, ".."))
			continue;
		n++;
		if (names)
			puts(ent->name);
	}
	nfs_closedir(c->nfs, dir);
	if (!names)
		printf("%lu\n", n);
	return 0;
}

static int cmd_ls(struct client *c, char **arg)
{
	return list(c, arg[0], true);
}

static int cmd_count(struct client *c, char **arg)
{
	return list(c, arg[0], false);
}

static int cmd_put(struct client *c, char **arg)
{
	return client_put(c, arg[0], arg[1]);
}

static int cmd_get(struct client *c, char **arg)
{
	return client_get(c, arg[0], arg[1]);
}

static int cmd_sum(struct client *c, char **arg)
{
	uint64_t bytes, sum;
	int err = client_sum(c, arg[0], &bytes, &sum);

	if (!err)
		printf("%016llx %llu\n", (unsigned long long)sum, (unsigned long long)bytes);
	return err;
}

static int cmd_write(struct client *c, char **arg)
{
	return client_write(c, arg[0], strtoull(arg[1], NULL, 0), strtoull(arg[2], NULL, 0),
			    strtoull(arg[3], NULL, 0), true);
}

static int cmd_write_unstable(struct client *c, char **arg)
{
	return client_write(c, arg[0], strtoull(arg[1], NULL, 0), strtoull(arg[2], NULL, 0),
			    strtoull(arg[3], NULL, 0), false);
}

static int cmd_verify(struct client *c, char **arg)
{
	return client_verify(c, arg[0], strtoull(arg[1], NULL, 0), strtoull(arg[2], NULL, 0),
			     strtoull(arg[3], NULL, 0));
}

static int cmd_create(struct client *c, char **arg)
{
	return client_create(c, arg[0], strcmp(arg[1], "excl") ? 0 : O_EXCL);
}

static int cmd_mkdir(struct client *c, char **arg)
{
	int err = CALL(c, nfs_mkdir(c->nfs, arg[0]));

	return err ? client_fail(c, "mkdir", arg[0], err) : 0;
}

static int cmd_rmdir(struct client *c, char **arg)
{
	int err = CALL(c, nfs_rmdir(c->nfs, arg[0]));

	return err ? client_fail(c, "rmdir", arg[0], err) : 0;
}

static int cmd_rm(struct client *c, char **arg)
{
	int err = CALL(c, nfs_unlink(c->nfs, arg[0]));

	return err ? client_fail(c, "rm", arg[0], err) : 0;
}

static int cmd_mv(struct client *c, char **arg)
{
	int err = CALL(c, nfs_rename(c->nfs, arg[0], arg[1]));

	return err ? client_fail(c, "mv", arg[0], err) : 0;
}

static int cmd_ln(struct client *c, char **arg)
{
	int err = CALL(c, nfs_link(c->nfs, arg[0], arg[1]));

	return err ? client_fail(c, "ln", arg[1], err) : 0;
}

static int cmd_symlink(struct client *c, char **arg)
{
	int err = CALL(c, nfs_symlink(c->nfs, arg[0], arg[1]));

	return err ? client_fail(c, "symlink", arg[1], err) : 0;
}

static int cmd_readlink(struct client *c, char **arg)
{
	char buf[4200];
	int err = CALL(c, nfs_readlink(c->nfs, arg[0], buf, sizeof(buf)));

	if (err)
		return client_fail(c, "readlink", arg[0], err);
	puts(buf);
	return 0;
}

/* mknod PATH fifo|sock|chr|blk MAJOR MINOR */
static int cmd_mknod(struct client *c, char **arg)
{
	static const struct {
		const char *name;
		int type;
	} kinds[] = {{"fifo", S_IFIFO}, {"sock", S_IFSOCK}, {"chr", S_IFCHR}, {"blk", S_IFBLK}};
	int dev = (int)makedev((unsigned)atoi(arg[2]), (unsigned)atoi(arg[3]));
	int err = -EINVAL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, arg[1]))
			err = CALL(c, nfs_mknod(c->nfs, arg[0], kinds[i].type | 0644, dev));
	return err ? client_fail(c, "mknod", arg[0], err) : 0;
}

static int cmd_chmod(struct client *c, char **arg)
{
	int err = CALL(c, nfs_chmod(c->nfs, arg[1], (int)strtol(arg[0], NULL, 8)));

	return err ? client_fail(c, "chmod", arg[1], err) : 0;
}

static int cmd_chown(struct client *c, char **arg)
{
	int err = CALL(c, nfs_chown(c->nfs, arg[2], atoi(arg[0]), atoi(arg[1])));

	return err ? client_fail(c, "chown", arg[2], err) : 0;
}

static int cmd_truncate(struct client *c, char **arg)
{
	int err = CALL(c, nfs_truncate(c->nfs, arg[0], strtoull(arg[1], NULL, 0)));

	return err ? client_fail(c, "truncate", arg[0], err) : 0;
}

static int cmd_utimes(struct client *c, char **arg)
{
	struct timeval times[2] = {
		{.tv_sec = atol(arg[1])},
		{.tv_sec = atol(arg[2])},
	};
	int err = CALL(c, nfs_utimes(c->nfs, arg[0], times));

	return err ? client_fail(c, "utimes", arg[0], err) : 0;
}

static int cmd_statfs(struct client *c, char **arg)
{
	struct statvfs st;
	int err = CALL(c, nfs_statvfs(c->nfs, arg[0], &st));

	if (err)
		return client_fail(c, "statfs", arg[0], err);
	printf("bytes=%llu avail=%llu files=%llu\n", (unsigned long long)st.f_blocks * st.f_frsize,
	       (unsigned long long)st.f_bavail * st.f_frsize, (unsigned long long)st.f_files);
	return 0;
}

static int cmd_treein(struct client *c, char **arg)
{
	return client_tree_in(c, arg[0], arg[1]);
}

static int cmd_treeout(struct client *c, char **arg)
{
	return client_tree_out(c, arg[0], arg[1]);
}

static int cmd_rmtree(struct client *c, char **arg)
{
	return client_rmtree(c, arg[0]);
}

static int cmd_speed(struct client *c, char **arg)
{
	return client_speed(c, arg[0], strtoul(arg[1], NULL, 0));
}

static int cmd_churn(struct client *c, char **arg)
{
	return client_churn(c, arg[0], strtoul(arg[1], NULL, 0), strtoul(arg[2], NULL, 0));
}

static int cmd_fill(struct client *c, char **arg)
{
	return client_fill(c, arg[0], strtoul(arg[1], NULL, 0));
}

static int cmd_rate(struct client *c, char **arg)
{
	return client_rate(c, arg[0], strtoul(arg[1], NULL, 0), strtod(arg[2], NULL));
}

static int cmd_slices(struct client *c, char **arg)
{
	return client_slices(c, arg[0], strtoul(arg[1], NULL, 0), strtod(arg[2], NULL),
			     strtoul(arg[3], NULL, 0));
}

static int cmd_getattrs(struct client *c, char **arg)
{
	return client_getattrs(c, arg[0], strtod(arg[1], NULL), (unsigned)atoi(arg[2]));
}

static int cmd_verifiers(struct client *c, char **arg)
{
	return client_verifiers(c, arg[0], arg[1]);
}

static int cmd_writes(struct client *c, char **arg)
{
	return client_writes(c, arg[0], strtoul(arg[1], NULL, 0), (unsigned)atoi(arg[2]));
}

static const struct command {
	const char *name;
	int n_args;
	int (*run)(struct client *c, char **arg);
	const char *help;
} commands[] = {
	{"mount", 0, cmd_mount, "mount and stat the root"},
	{"stat", 1, cmd_stat, "PATH: type, mode, size and so on, as key=value"},
	{"ls", 1, cmd_ls, "PATH: names, one a line"},
	{"count", 1, cmd_count, "PATH: number of names"},
	{"put", 2, cmd_put, "LOCAL PATH: copy a file in, and commit it"},
	{"get", 2, cmd_get, "PATH LOCAL: copy a file out (- is stdout)"},
	{"sum", 1, cmd_sum, "PATH: checksum and size"},
	{"write", 4, cmd_write, "PATH OFFSET BYTES SEED: write the pattern of SEED, and commit it"},
	{"write-unstable", 4, cmd_write_unstable, "the same without committing"},
	{"verify", 4, cmd_verify, "PATH OFFSET BYTES SEED: the file holds that pattern"},
	{"create", 2, cmd_create, "PATH excl|plain: create an empty file"},
	{"mkdir", 1, cmd_mkdir, "PATH"},
	{"rmdir", 1, cmd_rmdir, "PATH"},
	{"rm", 1, cmd_rm, "PATH"},
	{"mv", 2, cmd_mv, "OLD NEW"},
	{"ln", 2, cmd_ln, "OLD NEW"},
	{"symlink", 2, cmd_symlink, "TARGET PATH"},
	{"readlink", 1, cmd_readlink, "PATH"},
	{"mknod", 4, cmd_mknod, "PATH fifo|sock|chr|blk MAJOR MINOR"},
	{"chmod", 2, cmd_chmod, "MODE PATH"},
	{"chown", 3, cmd_chown, "UID GID PATH"},
	{"truncate", 2, cmd_truncate, "PATH BYTES"},
	{"utimes", 3, cmd_utimes, "PATH ATIME MTIME: in seconds"},
	{"statfs", 1, cmd_statfs, "PATH: bytes and files of the file system"},
	{"treein", 2, cmd_treein, "LOCAL PATH: copy what is in a local folder into a remote one"},
	{"treeout", 2, cmd_treeout, "PATH LOCAL: the other way"},
	{"rmtree", 1, cmd_rmtree, "PATH: remove it with all that is in it"},
	{"speed", 2, cmd_speed, "PATH N: write, commit and read N MiB; two figures in MiB/s"},
	{"churn", 3, cmd_churn, "PATH SECONDS SEED: random changes, all checked against a model"},
	{"fill", 2, cmd_fill, "PATH N: create N empty files e000000... in a folder"},
	{"rate", 3, cmd_rate, "PATH BYTES SECONDS: read the first BYTES again and again, MiB/s"},
	{"slices", 4, cmd_slices, "PATH BYTES SECONDS N: the same N times, a figure a line"},
	{"getattrs", 3, cmd_getattrs,
	 "PATH SECONDS N: GETATTR with N under way, never coming back, until SIGTERM at the "
	 "latest"},
	{"verifiers", 2, cmd_verifiers,
	 "PATH LOCAL: WRITE, wait for the local file, COMMIT; the verifier of each"},
	{"writes", 3, cmd_writes, "PATH N DEPTH: N unstable WRITEs; offset and verifier of each"},
};

static int help(void)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		printf("  %-15s %s\n", commands[i].name, commands[i].help);
	return 0;
}

static int pattern_out(uint64_t bytes, uint64_t seed)
{
	static uint8_t buf[65536];
	uint64_t off = 0;

	while (off < bytes) {
		size_t n = bytes - off < sizeof(buf) ? bytes - off : sizeof(buf);

		client_pattern(buf, n, off, seed);
		if (fwrite(buf, 1, n, stdout) != n)
			return 1;
		off += n;
	}
	return fflush(stdout) ? 1 : 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: client [-u UID] [-g GID] [-w SECONDS] URL COMMAND [ARG...]\n");
	return 2;
}

/* libnfs may retry for ever when the server is gone: no client outlives its script by much. */
#define LIFE_S 300

int main(int argc, char **argv)
{
	struct client c = {.wait_s = 120};
	const struct command *cmd = NULL;
	int opt, status;

	alarm(LIFE_S);
	while ((opt = getopt(argc, argv, "+u:g:w:")) != -1) {
		if (opt == 'u')
			c.uid = atoi(optarg);
		else if (opt == 'g')
			c.gid = atoi(optarg);
		else if (opt == 'w')
			c.wait_s = (unsigned)atoi(optarg);
		else
			return usage();
	}
	argc -= optind;
	argv += optind;
	if (argc == 1 && !strcmp(argv[0], "help"))
		return help();
	if (argc == 3 && !strcmp(argv[0], "pattern"))
		return pattern_out(strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0));
	for (size_t i = 0; argc >= 2 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, argv[1]) && commands[i].n_args == argc - 2)
			cmd = &commands[i];
	if (!cmd)
		return usage();
	if (client_connect(&c, argv[0]))
		return 1;
	status = cmd->run(&c, argv + 2);
	if (c.n_retries)
		fprintf(stderr, "came back %u times\n", c.n_retries);
	nfs_destroy_context(c.nfs);
	return status ? 1 : 0;
}
