/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops.c - file system tests for the test guest: the table of tests, and what they share.
 *
 * Built static, as it runs beside busybox only. Each test is quiet and ends with 0 when it passed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fsops.h"

static const struct {
	const char *name;
	const char *args;
	int n_args;
	void (*fn)(char **argv);
} tests[] = {
	{"tree-make", "DIR SEED BIG_KIB", 3, tree_make},
	{"tree-copy", "FROM TO", 2, tree_copy},
	{"tree-list", "DIR", 1, tree_list},
	{"ops", "DIR SEED COUNT SECONDS", 4, test_ops},
	{"rw", "FILE SEED COUNT buffered|direct|append", 4, test_rw},
	{"locks", "DIR SAME_DIR_BY_OTHER_MOUNT", 2, test_locks},
	{"many", "DIR COUNT", 2, test_many},
	{"append", "DIR", 1, test_append},
	{"trunc", "DIR", 1, test_trunc},
	{"excl", "DIR SAME_DIR_BY_OTHER_MOUNT COUNT", 3, test_excl},
	{"mknod", "DIR", 1, test_mknod},
	{"links", "DIR", 1, test_links},
	{"rename", "DIR", 1, test_rename},
	{"unlink", "DIR", 1, test_unlink},
	{"setattr", "DIR", 1, test_setattr},
	{"statfs", "DIR", 1, test_statfs},
	{"access", "DIR", 1, test_access},
	{"groups", "DIR", 1, test_groups},
	{"stream-write", "FILE SEED KIB SECONDS", 4, stream_write},
	{"stream-read", "FILE SEED KIB SECONDS", 4, stream_read},
	{"stream-check", "FILE SEED KIB", 3, stream_check},
	{"unstable", "FILE SEED KIB GO_FILE", 4, stream_unstable},
	{"copy", "FROM TO FROM_OFFSET TO_OFFSET BYTES", 5, copy_file},
	{"clone", "FROM TO ERRNO", 3, clone_file},
	{"copy-setid", "FROM TO TO_BY_OTHER_MOUNT", 3, copy_setid},
	{"copy-locked", "FROM TO", 2, copy_locked},
	{"copy-ranges", "FILE FILE SECOND_BY_OTHER_MOUNT SEED COUNT", 5, copy_ranges},
};

static const char *test_name = "";

static void vfail(const char *fmt, va_list ap) __attribute__((noreturn, format(printf, 1, 0)));
static void vfail(const char *fmt, va_list ap)
{
	int err = errno;

	fprintf(stderr, "fsops: FAIL %s: ", test_name);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, " (errno %d %s)\n", err, strerror(err));
	exit(1);
}

void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfail(fmt, ap);
}

void need(bool ok, const char *fmt, ...)
{
	va_list ap;

	if (ok)
		return;
	va_start(ap, fmt);
	vfail(fmt, ap);
}

void need_err(int result, int err, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int seen = result < 0 ? errno : 0;

	if (seen == err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	errno = seen;
	fail("%s: expected errno %d, seen %d", text, err, seen);
}

static uint64_t mix(uint64_t x)
{
	/* The finaliser of splitmix64: every input bit reaches every output bit. */
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t rng_next(struct rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15ull;
	return mix(rng->state);
}

uint32_t rng_below(struct rng *rng, uint32_t n)
{
	return (uint32_t)((rng_next(rng) >> 32) * n >> 32);
}

static uint64_t pattern_word(uint64_t seed, uint64_t word)
{
	return mix(seed * 0x9e3779b97f4a7c15ull + word + 1);
}

void pattern_fill(uint8_t *buf, size_t bytes, uint64_t seed, uint64_t offset)
{
	size_t i = 0;

	while (i < bytes) {
		uint64_t word = pattern_word(seed, (offset + i) / 8);
		size_t skip = (offset + i) % 8, n = 8 - skip;

		if (n > bytes - i)
			n = bytes - i;
		memcpy(buf + i, (uint8_t *)&word + skip, n);
		i += n;
	}
}

size_t pattern_mismatch(const uint8_t *buf, size_t bytes, uint64_t seed, uint64_t offset)
{
	size_t i = 0;

	while (i < bytes) {
		uint64_t word = pattern_word(seed, (offset + i) / 8);
		size_t skip = (offset + i) % 8, n = 8 - skip;
		const uint8_t *want = (uint8_t *)&word + skip;

		if (n > bytes - i)
			n = bytes - i;
		for (size_t k = 0; k < n; k++)
			if (buf[i + k] != want[k])
				return i + k;
		i += n;
	}
	return bytes;
}

void *xmalloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	need(p, "out of memory: %zu bytes", bytes);
	return p;
}

int xopen(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags, mode);

	need(fd >= 0, "open %s flags 0%o", path, flags);
	return fd;
}

void xclose(int fd)
{
	need(close(fd) == 0, "close");
}

void xpwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n =
			pwrite(fd, (const char *)buf + done, bytes - done, offset + (off_t)done);

		need(n > 0, "pwrite %zu at %lld returned %zd", bytes - done,
		     (long long)offset + (long long)done, n);
		done += (size_t)n;
	}
}

size_t xpread(int fd, void *buf, size_t bytes, off_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)buf + done, bytes - done, offset + (off_t)done);

		need(n >= 0, "pread %zu at %lld", bytes - done,
		     (long long)offset + (long long)done);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return done;
}

const char *path_of(const char *dir, const char *name)
{
	static char bufs[4][PATH_BYTES];
	static unsigned int next;
	char *buf = bufs[next++ % 4];

	snprintf(buf, PATH_BYTES, "%s/%s", dir, name);
	return buf;
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void reap(pid_t pid)
{
	int status;

	need(waitpid(pid, &status, 0) == pid, "waitpid");
	need(WIFEXITED(status) && WEXITSTATUS(status) == 0, "other process ended with 0x%x",
	     status);
}

size_t count_entries(const char *dir)
{
	size_t n = 0;
	struct dirent *entry;
	DIR *d = opendir(dir);

	need(d, "opendir %s", dir);
	for (errno = 0; (entry = readdir(d)); errno = 0) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strncmp(entry->d_name, ".nfs", 4) != 0)
			n++;
	}
	need(errno == 0, "readdir %s after %zu entries", dir, n);
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	umask(022);
	for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(*tests); i++) {
		if (strcmp(argv[1], tests[i].name) != 0 || argc - 2 != tests[i].n_args)
			continue;
		test_name = tests[i].name;
		tests[i].fn(argv + 1);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		fprintf(stderr, "%s fsops %s %s\n", i ? "      " : "usage:", tests[i].name,
			tests[i].args);
	return 2;
}
