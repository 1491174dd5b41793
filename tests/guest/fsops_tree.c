/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_tree.c - a tree of every kind of file: made from a seed, copied, and listed with checksums.
 *
 * tree-list prints one line for each object, sorted by name, with everything that a copy must keep:
 * type, mode, owner, links, size, mtime, content. Two equal listings are two equal trees, whoever
 * made them: the guest over NFS, or the host from the folder that the server exports. A symlink's
 * times are left out, since a stock server takes an order to set them and does nothing.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fsops.h"

#define COPY_BYTES    (256 * 1024) /* below and above an NFS client's usual transfer sizes */
#define NAME_BYTES    255          /* longest name that ext4, XFS and NFS servers take */
#define TARGET_BYTES  4000         /* near the longest symlink, 4095 */
#define DEEP_DIRS     40
#define SMALL_FILES   120
#define FIXED_EPOCH_S 1000000000 /* times set on purpose, far from now */

static void make_file(const char *path, uint64_t seed, size_t bytes)
{
	size_t part = bytes < COPY_BYTES ? bytes : COPY_BYTES;
	uint8_t *buf = xmalloc(part);
	int fd = xopen(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	for (size_t done = 0; done < bytes; done += part) {
		if (part > bytes - done)
			part = bytes - done;
		pattern_fill(buf, part, seed, done);
		xpwrite(fd, buf, part, (off_t)done);
	}
	xclose(fd);
	free(buf);
}

static void set_times(const char *path, uint64_t n)
{
	struct timespec t[2] = {
		{FIXED_EPOCH_S + (time_t)n, 123456789},
		{FIXED_EPOCH_S + (time_t)n * 7, (long)(n * 1000003 % 1000000000)},
	};

	need(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) == 0, "utimensat %s", path);
}

static void make_deep(const char *dir)
{
	char path[PATH_BYTES];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s", dir);

	for (int i = 0; i < DEEP_DIRS; i++) {
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/deep-%02d", i);
		need(mkdir(path, 0755) == 0, "mkdir %s", path);
	}
	snprintf(path + len, sizeof(path) - len, "/bottom");
	make_file(path, 77, 5000);
}

static void make_odd_names(const char *dir)
{
	char name[TARGET_BYTES + 1];

	memset(name, 'n', sizeof(name));
	name[NAME_BYTES] = '\0';
	make_file(path_of(dir, name), 5, 300);
	name[0] = 'd';
	need(mkdir(path_of(dir, name), 0711) == 0, "mkdir with a name of %d", NAME_BYTES);
	make_file(path_of(path_of(dir, name), "inside"), 6, 10);
	make_file(path_of(dir, " space\ttab\nline \\ \"quote\" \xc3\xa4\xe2\x82\xac \xff"), 7, 20);

	memset(name, 't', sizeof(name));
	name[TARGET_BYTES] = '\0';
	need(symlink(name, path_of(dir, "long-link")) == 0, "symlink to %d bytes", TARGET_BYTES);
	need(symlink("../nowhere", path_of(dir, "dangling")) == 0, "dangling symlink");
	need(symlink("empty", path_of(dir, "link")) == 0, "symlink");
	make_file(path_of(dir, "empty"), 0, 0);
	make_file(path_of(dir, "one-byte"), 9, 1);
	need(mkdir(path_of(dir, "empty-dir"), 0755) == 0, "mkdir empty-dir");
}

void tree_make(char **argv)
{
	static const mode_t modes[] = {0644, 0600, 0755, 0444, 0000, 04755, 02755, 01644, 0777};
	const char *dir = argv[1];
	struct rng rng = {strtoull(argv[2], NULL, 0)};
	char name[32];

	need(mkdir(dir, 0755) == 0, "mkdir %s", dir);
	make_odd_names(dir);
	make_deep(dir);
	make_file(path_of(dir, "big"), 1, strtoull(argv[3], NULL, 0) * 1024 + 17);
	for (int i = 0; i < SMALL_FILES; i++) {
		const char *path = path_of(dir, name);

		if (i % 20 == 0) {
			snprintf(name, sizeof(name), "d%d", i / 20);
			path = path_of(dir, name);
			need(mkdir(path, 0755) == 0, "mkdir %s", path);
		}
		snprintf(name, sizeof(name), "d%d/f%d", i / 20, i);
		path = path_of(dir, name);
		make_file(path, rng_next(&rng), rng_below(&rng, 20000));
		need(chmod(path, modes[i % 9]) == 0, "chmod %s", path);
		set_times(path, (uint64_t)i);
	}
	set_times(path_of(dir, "empty-dir"), 500);
	set_times(path_of(dir, "d0"), 501);
	need(chmod(path_of(dir, "d1"), 02750) == 0, "chmod d1");
}

static void copy_any(int from, int to, const char *name);

static void copy_data(int from, int to, const char *name)
{
	uint8_t *buf = xmalloc(COPY_BYTES);
	int in = openat(from, name, O_RDONLY), out;
	off_t done = 0;
	size_t n;

	need(in >= 0, "open %s to copy it", name);
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	need(out >= 0, "create %s", name);
	while ((n = xpread(in, buf, COPY_BYTES, done)) > 0) {
		xpwrite(out, buf, n, done);
		done += (off_t)n;
	}
	xclose(in);
	xclose(out);
	free(buf);
}

static void copy_dir(int from, int to, const char *name)
{
	int in = openat(from, name, O_RDONLY | O_DIRECTORY), out;
	struct dirent *entry;
	DIR *d;

	need(in >= 0, "open directory %s", name);
	need(mkdirat(to, name, 0700) == 0, "mkdir %s", name);
	out = openat(to, name, O_RDONLY | O_DIRECTORY);
	need(out >= 0, "open new directory %s", name);
	d = fdopendir(in);
	need(d, "fdopendir %s", name);
	for (errno = 0; (entry = readdir(d)); errno = 0) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			copy_any(in, out, entry->d_name);
	}
	need(errno == 0, "readdir %s", name);
	closedir(d);
	xclose(out);
}

/* Copies one object with its mode and times, a directory with all that is in it. */
static void copy_any(int from, int to, const char *name)
{
	char target[PATH_BYTES];
	struct stat st;
	ssize_t len;

	need(fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0, "stat %s", name);
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		copy_dir(from, to, name);
		break;
	case S_IFREG:
		copy_data(from, to, name);
		break;
	case S_IFLNK:
		len = readlinkat(from, name, target, sizeof(target) - 1);
		need(len >= 0, "readlink %s", name);
		target[len] = '\0';
		need(symlinkat(target, to, name) == 0, "symlink %s to %zd bytes", name, len);
		break;
	default:
		need(mknodat(to, name, st.st_mode, st.st_rdev) == 0, "mknod %s", name);
		break;
	}
	if (!S_ISLNK(st.st_mode))
		need(fchmodat(to, name, st.st_mode & 07777, 0) == 0, "chmod %s", name);
	struct timespec t[2] = {st.st_atim, st.st_mtim};

	need(utimensat(to, name, t, AT_SYMLINK_NOFOLLOW) == 0, "utimensat %s", name);
}

/* tree-copy FROM TO: TO must not exist; its last part must equal FROM's. */
void tree_copy(char **argv)
{
	const char *name = strrchr(argv[1], '/');
	char from[PATH_BYTES], to[PATH_BYTES];
	int in, out;

	need(name && strrchr(argv[2], '/') && strcmp(name, strrchr(argv[2], '/')) == 0,
	     "FROM and TO must end in the same name");
	snprintf(from, sizeof(from), "%.*s", (int)(name - argv[1]), argv[1]);
	snprintf(to, sizeof(to), "%.*s", (int)(strrchr(argv[2], '/') - argv[2]), argv[2]);
	in = xopen(from, O_RDONLY | O_DIRECTORY, 0);
	out = xopen(to, O_RDONLY | O_DIRECTORY, 0);
	copy_any(in, out, name + 1);
	xclose(in);
	xclose(out);
}

/* FNV-1a's multiplication by words instead of bytes; the last word is filled up with zeros. */
static uint64_t sum_file(int dir, const char *name)
{
	uint64_t *buf = xmalloc(COPY_BYTES), sum = 0xcbf29ce484222325ull;
	int fd = openat(dir, name, O_RDONLY);
	off_t done = 0;
	size_t n;

	need(fd >= 0, "open %s to read it", name);
	while ((n = xpread(fd, buf, COPY_BYTES, done)) > 0) {
		memset((char *)buf + n, 0, (8 - n % 8) % 8);
		for (size_t i = 0; i < (n + 7) / 8; i++)
			sum = ((sum ^ buf[i]) * 0x100000001b3ull) ^ (sum >> 47);
		done += (off_t)n;
	}
	xclose(fd);
	free(buf);
	return sum;
}

static uint64_t sum_link(int dir, const char *name)
{
	uint64_t sum = 0xcbf29ce484222325ull;
	char target[PATH_BYTES];
	ssize_t len = readlinkat(dir, name, target, sizeof(target));

	need(len >= 0, "readlink %s", name);
	for (ssize_t i = 0; i < len; i++)
		sum = (sum ^ (uint8_t)target[i]) * 0x100000001b3ull;
	return sum;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of an open directory, sorted; the client's own .nfs names are left out. */
static char **sorted_names(DIR *d, size_t *n_out)
{
	struct dirent *entry;
	char **names = NULL;
	size_t n = 0;

	for (errno = 0; (entry = readdir(d)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strncmp(entry->d_name, ".nfs", 4) == 0)
			continue;
		names = realloc(names, (n + 1) * sizeof(*names));
		need(names, "out of memory");
		names[n] = strdup(entry->d_name);
		need(names[n++], "out of memory");
	}
	need(errno == 0, "readdir");
	qsort(names, n, sizeof(*names), by_name);
	*n_out = n;
	return names;
}

static void list_any(int dir, const char *name, const char *shown)
{
	char path[PATH_BYTES];
	uint64_t sum = 0;
	struct stat st;
	char **names;
	size_t n = 0;
	DIR *d;
	int fd;

	need(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0, "stat %s", shown);
	if (S_ISREG(st.st_mode))
		sum = sum_file(dir, name);
	if (S_ISLNK(st.st_mode))
		sum = sum_link(dir, name);
	if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
		sum = (uint64_t)major(st.st_rdev) << 32 | minor(st.st_rdev);
	if (S_ISLNK(st.st_mode))
		st.st_mtim = (struct timespec){0};
	/* A directory's size and link count are the file system's own business. */
	printf("%06o %u:%u %ju %jd %jd.%09ld %016" PRIx64 " ", st.st_mode, st.st_uid, st.st_gid,
	       S_ISDIR(st.st_mode) ? (uintmax_t)0 : (uintmax_t)st.st_nlink,
	       S_ISREG(st.st_mode) ? (intmax_t)st.st_size : (intmax_t)0,
	       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, sum);
	for (const char *p = shown; *p; p++)
		printf(*p > ' ' && *p < 127 && *p != '\\' ? "%c" : "\\%03o", *p & 0xff);
	putchar('\n');
	if (!S_ISDIR(st.st_mode))
		return;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY);
	need(fd >= 0, "open directory %s", shown);
	d = fdopendir(fd);
	need(d, "fdopendir %s", shown);
	names = sorted_names(d, &n);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", shown, names[i]);
		list_any(fd, names[i], path);
		free(names[i]);
	}
	free(names);
	closedir(d);
}

void tree_list(char **argv)
{
	int fd = xopen(argv[1], O_RDONLY | O_DIRECTORY, 0);

	list_any(fd, ".", ".");
	xclose(fd);
}
