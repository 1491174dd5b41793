/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_files.c - one file or directory at a time: many names, appending, truncation, links, renames.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "fsops.h"

#define APPEND_RECORDS 150
#define APPEND_BYTES   96

static void write_file(const char *path, const char *text)
{
	int fd = xopen(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	xpwrite(fd, text, strlen(text), 0);
	xclose(fd);
}

static void expect_file(const char *path, const char *text)
{
	char buf[256];
	int fd = xopen(path, O_RDONLY, 0);
	size_t n = xpread(fd, buf, sizeof(buf), 0);

	xclose(fd);
	need(n == strlen(text) && memcmp(buf, text, n) == 0, "%s holds %zu bytes \"%.*s\", not %s",
	     path, n, (int)n, buf, text);
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	need(lstat(path, &st) == 0, "stat %s", path);
	return st;
}

void test_many(char **argv)
{
	const char *dir = argv[1];
	size_t count = strtoul(argv[2], NULL, 0), n;
	char name[64];

	need(mkdir(dir, 0755) == 0, "mkdir %s", dir);
	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "file-%05zu", i);
		xclose(xopen(path_of(dir, name), O_CREAT | O_EXCL | O_WRONLY, 0644));
		if (i + 1 == count / 2) {
			n = count_entries(dir);
			need(n == i + 1, "%zu entries after %zu creates", n, i + 1);
		}
	}
	n = count_entries(dir);
	need(n == count, "%zu entries after %zu creates", n, count);
	for (size_t i = 0; i < count; i += 2) {
		snprintf(name, sizeof(name), "file-%05zu", i);
		need(unlink(path_of(dir, name)) == 0, "unlink %s", name);
	}
	n = count_entries(dir);
	need(n == count / 2, "%zu entries, expected %zu", n, count / 2);
	need_err(rmdir(dir), ENOTEMPTY, "rmdir of a full directory");
	for (size_t i = 1; i < count; i += 2) {
		snprintf(name, sizeof(name), "file-%05zu", i);
		need(unlink(path_of(dir, name)) == 0, "unlink %s", name);
	}
	n = count_entries(dir);
	need(n == 0, "%zu entries left", n);
	need(rmdir(dir) == 0, "rmdir %s", dir);
}

static void append_records(const char *path, int who)
{
	char record[APPEND_BYTES];
	int fd = xopen(path, O_WRONLY | O_APPEND, 0);

	for (int i = 0; i < APPEND_RECORDS; i++) {
		memset(record, 'A' + who, sizeof(record));
		snprintf(record, sizeof(record), "%d %05d", who, i);
		record[sizeof(record) - 1] = '\n';
		need(write(fd, record, sizeof(record)) == sizeof(record), "append record %d", i);
		if (i % 16 == 0)
			need(fsync(fd) == 0, "fsync");
	}
	xclose(fd);
}

/* Two processes append to one file: no record may be lost, torn or out of its process' order. */
void test_append(char **argv)
{
	const char *path = path_of(argv[1], "appended");
	int next[2] = {0, 0}, who, i, fd;
	char record[APPEND_BYTES];
	pid_t pid;

	xclose(xopen(path, O_CREAT | O_EXCL, 0644));
	pid = fork();
	need(pid >= 0, "fork");
	append_records(path, pid == 0);
	if (pid == 0)
		_exit(0);
	reap(pid);
	fd = xopen(path, O_RDONLY, 0);
	for (off_t at = 0; xpread(fd, record, sizeof(record), at) == sizeof(record);
	     at += (off_t)sizeof(record)) {
		need(sscanf(record, "%d %d", &who, &i) == 2 && (who == 0 || who == 1) &&
			     record[sizeof(record) - 1] == '\n',
		     "torn record at %lld", (long long)at);
		need(i == next[who], "record %d of process %d at %lld, expected %d", i, who,
		     (long long)at, next[who]);
		next[who]++;
	}
	xclose(fd);
	need(next[0] == APPEND_RECORDS && next[1] == APPEND_RECORDS, "%d and %d records of %d",
	     next[0], next[1], APPEND_RECORDS);
}

static void expect_zeros(int fd, off_t from, size_t bytes)
{
	uint8_t *buf = xmalloc(bytes);

	need(xpread(fd, buf, bytes, from) == bytes, "read %zu at %lld", bytes, (long long)from);
	for (size_t i = 0; i < bytes; i++)
		need(buf[i] == 0, "byte %lld is 0x%02x, expected 0", (long long)from + (long long)i,
		     buf[i]);
	free(buf);
}

void test_trunc(char **argv)
{
	const char *path = path_of(argv[1], "truncated");
	int fd = xopen(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	uint8_t buf[10000];

	pattern_fill(buf, sizeof(buf), 3, 0);
	xpwrite(fd, buf, sizeof(buf), 0);
	need(ftruncate(fd, 1234) == 0, "truncate down");
	need(ftruncate(fd, 300000) == 0, "truncate up");
	need(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "drop pages");
	expect_zeros(fd, 1234, 300000 - 1234);
	need(xpread(fd, buf, 1234, 0) == 1234 && pattern_mismatch(buf, 1234, 3, 0) == 1234,
	     "the part before the cut changed");
	need(ftruncate(fd, 0) == 0, "truncate to 0");
	need(stat_of(path).st_size == 0, "size after truncate to 0");
	xpwrite(fd, "x", 1, 1 << 20);
	expect_zeros(fd, 0, 1 << 20);
	need(stat_of(path).st_size == (1 << 20) + 1, "size after a write beyond the end");
	/* A file larger than 4 GiB, all hole but its last byte. */
	xpwrite(fd, "y", 1, 5ll << 30);
	need(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "drop pages");
	need(stat_of(path).st_size == (5ll << 30) + 1, "size of a file over 4 GiB");
	expect_zeros(fd, (5ll << 30) - 5000, 5000);
	need(xpread(fd, buf, 10, 5ll << 30) == 1 && buf[0] == 'y', "last byte of 5 GiB");
	need(ftruncate(fd, 100) == 0, "truncate 5 GiB to 100");
	xclose(fd);
	need_err(truncate(path_of(argv[1], "missing"), 0), ENOENT, "truncate of nothing");
	need_err(truncate(argv[1], 0), EISDIR, "truncate of a directory");
}

void test_mknod(char **argv)
{
	static const struct {
		const char *name;
		mode_t mode;
		unsigned int major;
		unsigned int minor;
	} nodes[] = {
		{"fifo", S_IFIFO | 0640, 0, 0},  {"socket", S_IFSOCK | 0600, 0, 0},
		{"chr", S_IFCHR | 0620, 5, 1},   {"blk", S_IFBLK | 0660, 259, 70000},
		{"plain", S_IFREG | 0604, 0, 0},
	};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd;

	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		const char *path = path_of(argv[1], nodes[i].name);
		struct stat st;

		need(mknod(path, nodes[i].mode, makedev(nodes[i].major, nodes[i].minor)) == 0,
		     "mknod %s", path);
		st = stat_of(path);
		need(st.st_mode == (nodes[i].mode & ~022u), "%s: mode 0%o, asked 0%o", path,
		     st.st_mode, nodes[i].mode & ~022u);
		need(major(st.st_rdev) == nodes[i].major && minor(st.st_rdev) == nodes[i].minor,
		     "%s: device %u:%u", path, major(st.st_rdev), minor(st.st_rdev));
		need_err(mknod(path, nodes[i].mode, 0), EEXIST, "mknod %s again", path);
	}
	fd = xopen(path_of(argv[1], "fifo"), O_RDWR | O_NONBLOCK, 0);
	need(write(fd, "f", 1) == 1, "write to the fifo");
	xclose(fd);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/bound", argv[1]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	need(fd >= 0 && bind(fd, (struct sockaddr *)&un, sizeof(un)) == 0, "bind %s", un.sun_path);
	need(S_ISSOCK(stat_of(un.sun_path).st_mode), "a bound socket is not one");
	xclose(fd);
}

void test_links(char **argv)
{
	const char *dir = argv[1], *path;
	char name[32];

	path = path_of(dir, "linked");
	write_file(path, "links");
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "linked-%d", i);
		need(link(path_of(dir, "linked"), path_of(dir, name)) == 0, "link %d", i);
	}
	need(stat_of(path_of(dir, "linked-7")).st_nlink == 21, "%d links, expected 21",
	     (int)stat_of(path_of(dir, "linked-7")).st_nlink);
	need(stat_of(path_of(dir, "linked-7")).st_ino == stat_of(path_of(dir, "linked")).st_ino,
	     "two names, two inode numbers");
	write_file(path_of(dir, "linked-3"), "by another name");
	expect_file(path_of(dir, "linked"), "by another name");
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "linked-%d", i);
		need(unlink(path_of(dir, name)) == 0, "unlink %s", name);
	}
	need(stat_of(path_of(dir, "linked")).st_nlink == 11, "%d links, expected 11",
	     (int)stat_of(path_of(dir, "linked")).st_nlink);
	need_err(link(path_of(dir, "linked"), path_of(dir, "linked-15")), EEXIST, "link to itself");
	need_err(link(dir, path_of(dir, "dir-link")), EPERM, "link to a directory");
	need_err(link(path_of(dir, "missing"), path_of(dir, "x")), ENOENT, "link to nothing");
	need(mkdir(path_of(dir, "sub"), 0755) == 0, "mkdir");
	need(link(path_of(dir, "linked"), path_of(dir, "sub/linked")) == 0, "link from below");
	expect_file(path_of(dir, "sub/linked"), "by another name");
}

void test_rename(char **argv)
{
	const char *dir = argv[1];
	char buf[8] = "";
	int fd;

	write_file(path_of(dir, "from"), "from");
	write_file(path_of(dir, "to"), "to");
	need(rename(path_of(dir, "from"), path_of(dir, "to")) == 0, "rename over a file");
	expect_file(path_of(dir, "to"), "from");
	need_err(access(path_of(dir, "from"), F_OK), ENOENT, "the old name after a rename");

	write_file(path_of(dir, "open"), "old open file");
	write_file(path_of(dir, "new"), "new");
	fd = xopen(path_of(dir, "open"), O_RDWR, 0);
	need(rename(path_of(dir, "new"), path_of(dir, "open")) == 0, "rename over an open file");
	expect_file(path_of(dir, "open"), "new");
	need(xpread(fd, buf, 3, 0) == 3 && memcmp(buf, "old", 3) == 0, "the replaced open file");
	xpwrite(fd, "OLD", 3, 0);
	need(fsync(fd) == 0, "fsync of a replaced open file");
	xclose(fd);
	expect_file(path_of(dir, "open"), "new");

	/* An open file keeps its content through renames of itself and of its directory. */
	need(mkdir(path_of(dir, "a"), 0755) == 0 && mkdir(path_of(dir, "b"), 0755) == 0, "mkdir");
	fd = xopen(path_of(dir, "a/moving"), O_RDWR | O_CREAT, 0644);
	need(rename(path_of(dir, "a/moving"), path_of(dir, "b/moved")) == 0, "rename to b");
	xpwrite(fd, "moved", 5, 0);
	need(rename(path_of(dir, "b"), path_of(dir, "a/b")) == 0, "rename of the directory");
	xclose(fd);
	expect_file(path_of(dir, "a/b/moved"), "moved");
	need_err(rename(path_of(dir, "a"), path_of(dir, "a/b/c")), EINVAL, "directory into itself");
	need(mkdir(path_of(dir, "empty"), 0755) == 0, "mkdir");
	need_err(rename(path_of(dir, "empty"), path_of(dir, "a/b")), ENOTEMPTY, "over a full one");
	need_err(rename(path_of(dir, "to"), path_of(dir, "a")), EISDIR, "file over a directory");
	need_err(rename(path_of(dir, "a"), path_of(dir, "to")), ENOTDIR, "directory over a file");
	need(rename(path_of(dir, "a/b"), path_of(dir, "empty")) == 0, "over an empty directory");
	expect_file(path_of(dir, "empty/moved"), "moved");
	need_err(rename(path_of(dir, "missing"), path_of(dir, "x")), ENOENT, "rename of nothing");
	need(chdir(path_of(dir, "empty")) == 0, "chdir");
	need(access("../to", F_OK) == 0, "'..' after a move");
	need(chdir("/") == 0, "chdir /");
}

void test_unlink(char **argv)
{
	const char *dir = argv[1];
	uint8_t buf[5000], back[5000];
	int fd;

	pattern_fill(buf, sizeof(buf), 8, 0);
	fd = xopen(path_of(dir, "open-gone"), O_RDWR | O_CREAT | O_EXCL, 0644);
	xpwrite(fd, buf, sizeof(buf), 0);
	need(unlink(path_of(dir, "open-gone")) == 0, "unlink of an open file");
	need_err(access(path_of(dir, "open-gone"), F_OK), ENOENT, "the unlinked name");
	need(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "drop pages");
	need(xpread(fd, back, sizeof(back), 0) == sizeof(back) &&
		     memcmp(buf, back, sizeof(buf)) == 0,
	     "content of an unlinked open file");
	xpwrite(fd, buf, sizeof(buf), sizeof(buf));
	need(fsync(fd) == 0, "fsync of an unlinked open file");
	/* A new file of that name is another one. */
	write_file(path_of(dir, "open-gone"), "again");
	need(xpread(fd, back, 10, 0) == 10 && memcmp(buf, back, 10) == 0, "the old file changed");
	xclose(fd);
	expect_file(path_of(dir, "open-gone"), "again");
	need(unlink(path_of(dir, "open-gone")) == 0, "unlink");
	need_err(unlink(path_of(dir, "open-gone")), ENOENT, "unlink again");
	need(mkdir(path_of(dir, "d"), 0755) == 0, "mkdir");
	need_err(unlink(path_of(dir, "d")), EISDIR, "unlink of a directory");
	write_file(path_of(dir, "f"), "f");
	need_err(rmdir(path_of(dir, "f")), ENOTDIR, "rmdir of a file");
	need(rmdir(path_of(dir, "d")) == 0, "rmdir");
	need_err(rmdir(path_of(dir, "d")), ENOENT, "rmdir again");
}
