/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_attrs.c - attributes and permissions: chmod, chown, times, statfs, other users, groups.
 *
 * Runs as root; the parts for other users are done by children that change their identity.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fsops.h"

#define USER        1000
#define FIRST_GROUP 2000
#define N_GROUPS    16 /* as many as AUTH_SYS carries */
#define NFS_MAGIC   0x6969

static struct stat stat_of(const char *path)
{
	struct stat st;

	need(lstat(path, &st) == 0, "stat %s", path);
	return st;
}

static void make_file(const char *path, mode_t mode)
{
	int fd = xopen(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	xpwrite(fd, "content", 7, 0);
	xclose(fd);
	need(chmod(path, mode) == 0, "chmod 0%o %s", mode, path);
}

static void set_modes(const char *path)
{
	static const mode_t modes[] = {0, 0777, 0640, 04711, 02755, 01600, 06755};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		need(chmod(path, modes[i]) == 0, "chmod 0%o", modes[i]);
		need((stat_of(path).st_mode & 07777) == modes[i], "mode 0%o, asked 0%o",
		     stat_of(path).st_mode & 07777, modes[i]);
	}
	need(chown(path, USER, FIRST_GROUP) == 0, "chown");
	need(stat_of(path).st_uid == USER && stat_of(path).st_gid == FIRST_GROUP,
	     "owner %u:%u after chown", stat_of(path).st_uid, stat_of(path).st_gid);
	need((stat_of(path).st_mode & 06000) == 0, "chown left mode 0%o", stat_of(path).st_mode);
	need(chown(path, (uid_t)-1, 4000000000u) == 0, "chown of the group alone");
	need(stat_of(path).st_uid == USER && stat_of(path).st_gid == 4000000000u,
	     "owner %u:%u after chown of the group", stat_of(path).st_uid, stat_of(path).st_gid);
	need(chown(path, 0, 0) == 0, "chown back");
}

static void set_times(const char *path)
{
	struct timespec t[2] = {{1000000000, 111111111}, {1234567890, 987654321}};
	time_t before = time(NULL);
	struct stat st;

	need(utimensat(AT_FDCWD, path, t, 0) == 0, "utimensat");
	st = stat_of(path);
	need(st.st_atim.tv_sec == t[0].tv_sec && st.st_atim.tv_nsec == t[0].tv_nsec &&
		     st.st_mtim.tv_sec == t[1].tv_sec && st.st_mtim.tv_nsec == t[1].tv_nsec,
	     "times %lld.%09ld %lld.%09ld after utimensat", (long long)st.st_atim.tv_sec,
	     st.st_atim.tv_nsec, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	t[0].tv_nsec = UTIME_OMIT;
	t[1].tv_sec = 7;
	need(utimensat(AT_FDCWD, path, t, 0) == 0, "utimensat of mtime alone");
	st = stat_of(path);
	need(st.st_atim.tv_sec == 1000000000 && st.st_mtim.tv_sec == 7, "times %lld %lld",
	     (long long)st.st_atim.tv_sec, (long long)st.st_mtim.tv_sec);
	need(utimensat(AT_FDCWD, path, NULL, 0) == 0, "utimensat to now");
	st = stat_of(path);
	need(llabs((long long)st.st_mtim.tv_sec - before) < 100, "mtime %lld, the time is %lld",
	     (long long)st.st_mtim.tv_sec, (long long)before);
}

/* A write moves mtime and ctime and takes away setuid. */
static void write_moves_time(const char *path)
{
	struct timespec t[2] = {{1000000000, 0}, {1000000000, 0}};
	struct stat before, after;
	int fd;

	need(utimensat(AT_FDCWD, path, t, 0) == 0, "utimensat");
	before = stat_of(path);
	fd = xopen(path, O_WRONLY, 0);
	xpwrite(fd, "new", 3, 0);
	xclose(fd);
	after = stat_of(path);
	need(after.st_mtim.tv_sec > 1500000000, "mtime %lld after a write",
	     (long long)after.st_mtim.tv_sec);
	need(after.st_ctim.tv_sec > before.st_ctim.tv_sec ||
		     (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		      after.st_ctim.tv_nsec > before.st_ctim.tv_nsec),
	     "ctime did not move with a write");
}

void test_setattr(char **argv)
{
	char path[PATH_BYTES], dir[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/attrs", argv[1]);
	snprintf(dir, sizeof(dir), "%s/attrs-dir", argv[1]);
	make_file(path, 0644);
	set_modes(path);
	set_times(path);
	write_moves_time(path);
	need(mkdir(dir, 0755) == 0, "mkdir");
	need(chmod(dir, 03770) == 0 && chown(dir, USER, FIRST_GROUP) == 0, "chmod, chown");
	need((stat_of(dir).st_mode & 07777) == 03770, "mode of the directory 0%o",
	     stat_of(dir).st_mode);
	/* A set group id on a directory gives new files its group. */
	make_file(path_of(dir, "inherits"), 0644);
	need(stat_of(path_of(dir, "inherits")).st_gid == FIRST_GROUP, "group %u, expected %u",
	     stat_of(path_of(dir, "inherits")).st_gid, FIRST_GROUP);
	need(symlink("x", path_of(argv[1], "owned-link")) == 0, "symlink");
	need(lchown(path_of(argv[1], "owned-link"), USER, USER) == 0, "lchown");
	need(stat_of(path_of(argv[1], "owned-link")).st_uid == USER, "owner of a symlink");
}

void test_statfs(char **argv)
{
	struct statfs before, after;
	uint8_t *buf = xmalloc(1 << 20);
	int fd;

	need(statfs(argv[1], &before) == 0, "statfs");
	need(before.f_type == NFS_MAGIC, "type 0x%lx", (long)before.f_type);
	need(before.f_blocks > 0 && before.f_bfree <= before.f_blocks &&
		     before.f_bavail <= before.f_bfree && before.f_files > 0 &&
		     before.f_ffree <= before.f_files,
	     "blocks %llu free %llu available %llu files %llu free %llu",
	     (unsigned long long)before.f_blocks, (unsigned long long)before.f_bfree,
	     (unsigned long long)before.f_bavail, (unsigned long long)before.f_files,
	     (unsigned long long)before.f_ffree);
	need(before.f_namelen == 255, "longest name %ld", (long)before.f_namelen);
	pattern_fill(buf, 1 << 20, 1, 0);
	fd = xopen(path_of(argv[1], "fills"), O_WRONLY | O_CREAT | O_EXCL, 0644);
	xpwrite(fd, buf, 1 << 20, 0);
	need(fsync(fd) == 0, "fsync");
	xclose(fd);
	free(buf);
	need(statfs(argv[1], &after) == 0 && after.f_blocks == before.f_blocks,
	     "statfs after a write");
}

/* Runs fn as the user, with the groups; fails unless it returned. */
static void as_user(const char *dir, void (*fn)(const char *dir), gid_t gid, size_t n_groups,
		    const gid_t *groups)
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (pid == 0) {
		need(setgroups(n_groups, groups) == 0 && setgid(gid) == 0 && setuid(USER) == 0,
		     "become user %d", USER);
		fn(dir);
		_exit(0);
	}
	reap(pid);
}

static void other_user(const char *dir)
{
	char name[PATH_BYTES];
	int fd;

	need_err(open(path_of(dir, "root-0600"), O_RDONLY), EACCES, "read of root's 0600");
	need_err(open(path_of(dir, "root-0644"), O_WRONLY), EACCES, "write to root's 0644");
	xclose(xopen(path_of(dir, "root-0644"), O_RDONLY, 0));
	need_err(access(path_of(dir, "root-0644"), W_OK), EACCES, "access for writing");
	need(access(path_of(dir, "root-0644"), R_OK) == 0, "access for reading");
	need_err(access(path_of(dir, "root-0644"), X_OK), EACCES, "access for running");
	need_err(open(path_of(dir, "closed/inside"), O_RDONLY), EACCES, "below a 0700 directory");
	need_err(open(path_of(dir, "new"), O_WRONLY | O_CREAT, 0644), EACCES, "create in a 0755");
	need_err(mkdir(path_of(dir, "new-dir"), 0755), EACCES, "mkdir in a 0755");
	need_err(unlink(path_of(dir, "root-0644")), EACCES, "unlink in a 0755");
	need_err(rename(path_of(dir, "root-0644"), path_of(dir, "x")), EACCES, "rename in a 0755");
	need_err(chmod(path_of(dir, "root-0644"), 0666), EPERM, "chmod of root's file");
	need_err(chown(path_of(dir, "root-0644"), USER, USER), EPERM, "chown of root's file");
	need_err(truncate(path_of(dir, "root-0644"), 0), EACCES, "truncate of root's file");
	/* In a sticky directory everybody may create, but not remove others' files. */
	need(unlink(path_of(dir, "sticky/roots")) != 0 && (errno == EPERM || errno == EACCES),
	     "unlink of root's file in a sticky directory");
	snprintf(name, sizeof(name), "%s", path_of(dir, "sticky/mine"));
	fd = xopen(name, O_RDWR | O_CREAT | O_EXCL, 0400);
	xpwrite(fd, "mine", 4, 0); /* the descriptor may write though the mode does not allow it */
	need(fsync(fd) == 0, "fsync of a file created read-only");
	xclose(fd);
	need(stat_of(name).st_uid == USER && stat_of(name).st_gid == USER, "owner %u:%u of a new",
	     stat_of(name).st_uid, stat_of(name).st_gid);
	need_err(open(name, O_WRONLY), EACCES, "write to an own 0400");
	need(chmod(name, 0600) == 0, "chmod of an own file");
	need_err(chown(name, 0, 0), EPERM, "giving a file away");
	need(unlink(name) == 0, "unlink of an own file");
}

void test_access(char **argv)
{
	const char *dir = argv[1];

	need(chmod(dir, 0755) == 0, "chmod");
	make_file(path_of(dir, "root-0600"), 0600);
	make_file(path_of(dir, "root-0644"), 0644);
	need(mkdir(path_of(dir, "closed"), 0700) == 0, "mkdir");
	make_file(path_of(dir, "closed/inside"), 0644);
	need(mkdir(path_of(dir, "sticky"), 0755) == 0, "mkdir");
	need(chmod(path_of(dir, "sticky"), 01777) == 0, "chmod 01777");
	make_file(path_of(dir, "sticky/roots"), 0644);
	as_user(dir, other_user, USER, 0, NULL);
}

static void member_of_all(const char *dir)
{
	char name[32], buf[8];
	int fd;

	for (int i = 0; i <= N_GROUPS; i++) {
		snprintf(name, sizeof(name), "group-%d", FIRST_GROUP + i);
		fd = open(path_of(dir, name), O_RDONLY);
		if (i == N_GROUPS) {
			need_err(fd, EACCES, "read by a group that the user is not in");
			break;
		}
		need(fd >= 0, "read by group %d of %d", i + 1, N_GROUPS);
		need(xpread(fd, buf, sizeof(buf), 0) == 7, "read of %s", name);
		xclose(fd);
	}
	/* chgrp to an own group is allowed, to another is not. */
	snprintf(name, sizeof(name), "owned-%d", FIRST_GROUP);
	need(chown(path_of(dir, name), (uid_t)-1, FIRST_GROUP + N_GROUPS - 1) == 0, "chgrp");
	need_err(chown(path_of(dir, name), (uid_t)-1, FIRST_GROUP + N_GROUPS), EPERM,
		 "chgrp to a group that the user is not in");
}

void test_groups(char **argv)
{
	gid_t groups[N_GROUPS];
	char name[32];

	need(chmod(argv[1], 0755) == 0, "chmod");
	for (int i = 0; i <= N_GROUPS; i++) {
		snprintf(name, sizeof(name), "group-%d", FIRST_GROUP + i);
		make_file(path_of(argv[1], name), 0640);
		need(chown(path_of(argv[1], name), 0, FIRST_GROUP + (gid_t)i) == 0, "chown %s",
		     name);
		if (i < N_GROUPS)
			groups[i] = FIRST_GROUP + (gid_t)i;
	}
	snprintf(name, sizeof(name), "owned-%d", FIRST_GROUP);
	make_file(path_of(argv[1], name), 0600);
	need(chown(path_of(argv[1], name), USER, FIRST_GROUP) == 0, "chown %s", name);
	as_user(argv[1], member_of_all, USER, N_GROUPS, groups);
}
