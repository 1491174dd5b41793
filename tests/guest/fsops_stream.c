/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_stream.c - steady reads and writes for tests that stop or kill a server meanwhile.
 *
 * write and read go on for a time, each block slowed down a little. They say "running" after the first
 * block, and in the end how long the longest call took: a test can see that its fault was felt. unstable writes data that the server need not
 * have on its disk, waits for a word from outside, and only then asks for it to be made stable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops.h"

#define BLOCK_BYTES 65536
#define PAUSE_US    15000
#define GO_WAIT_MS  120000

static uint8_t *block_new(void)
{
	void *buf = NULL;

	need(posix_memalign(&buf, 4096, BLOCK_BYTES) == 0, "out of memory");
	return buf;
}

static void keep_longest(uint64_t *longest, uint64_t start, uint64_t at)
{
	uint64_t ms = now_ms() - start;

	if (at == 0) {
		printf("running\n");
		fflush(stdout);
	}
	if (ms > *longest)
		*longest = ms;
}

/* At least KIB, and on until the time is up; nothing is written twice, so that nothing lost can be
 * hidden by a later write. */
void stream_write(char **argv)
{
	uint64_t seed = strtoull(argv[2], NULL, 0), bytes = strtoull(argv[3], NULL, 0) * 1024;
	uint64_t end = now_ms() + strtoull(argv[4], NULL, 0) * 1000, longest = 0, at;
	int fd = xopen(argv[1], O_RDWR | O_CREAT | O_EXCL, 0644);
	uint8_t *buf = block_new();

	for (at = 0; at < bytes || now_ms() < end; at += BLOCK_BYTES) {
		uint64_t start = now_ms();

		pattern_fill(buf, BLOCK_BYTES, seed, at);
		xpwrite(fd, buf, BLOCK_BYTES, (off_t)at);
		if (at / BLOCK_BYTES % 16 == 15)
			need(fdatasync(fd) == 0, "fdatasync at %llu", (unsigned long long)at);
		keep_longest(&longest, start, at);
		usleep(PAUSE_US);
	}
	need(fsync(fd) == 0, "fsync of %llu bytes", (unsigned long long)at);
	xclose(fd);
	free(buf);
	printf("kib=%llu longest_ms=%llu\n", (unsigned long long)at / 1024,
	       (unsigned long long)longest);
}

static void check_block(int fd, uint8_t *buf, uint64_t seed, uint64_t at)
{
	size_t n = xpread(fd, buf, BLOCK_BYTES, (off_t)at), ok;

	need(n == BLOCK_BYTES, "read at %llu gave %zu bytes", (unsigned long long)at, n);
	ok = pattern_mismatch(buf, BLOCK_BYTES, seed, at);
	need(ok == BLOCK_BYTES, "byte %llu is 0x%02x, not what was written",
	     (unsigned long long)at + ok, ok < BLOCK_BYTES ? buf[ok] : 0);
}

/* O_DIRECT, so that every block comes from the server. */
void stream_read(char **argv)
{
	uint64_t seed = strtoull(argv[2], NULL, 0), bytes = strtoull(argv[3], NULL, 0) * 1024;
	uint64_t end = now_ms() + strtoull(argv[4], NULL, 0) * 1000, longest = 0;
	int fd = xopen(argv[1], O_RDONLY | O_DIRECT, 0), blocks = 0;
	uint8_t *buf = block_new();

	do {
		for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES) {
			uint64_t start = now_ms();

			check_block(fd, buf, seed, at);
			keep_longest(&longest, start, at);
			blocks++;
			usleep(PAUSE_US);
		}
	} while (now_ms() < end);
	xclose(fd);
	free(buf);
	printf("blocks=%d longest_ms=%llu\n", blocks, (unsigned long long)longest);
}

/* The file is the pattern, all of it, and nothing else. */
void stream_check(char **argv)
{
	uint64_t seed = strtoull(argv[2], NULL, 0), bytes = strtoull(argv[3], NULL, 0) * 1024;
	int fd = xopen(argv[1], O_RDONLY, 0);
	uint8_t *buf = block_new();

	for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES)
		check_block(fd, buf, seed, at);
	need(xpread(fd, buf, 1, (off_t)bytes) == 0, "longer than %llu", (unsigned long long)bytes);
	xclose(fd);
	free(buf);
}

void stream_unstable(char **argv)
{
	uint64_t seed = strtoull(argv[2], NULL, 0), bytes = strtoull(argv[3], NULL, 0) * 1024;
	int fd = xopen(argv[1], O_RDWR | O_CREAT, 0644);
	uint64_t end = now_ms() + GO_WAIT_MS;
	uint8_t *buf = block_new();

	for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES) {
		pattern_fill(buf, BLOCK_BYTES, seed, at);
		xpwrite(fd, buf, BLOCK_BYTES, (off_t)at);
	}
	/* Sends the WRITEs and waits for their replies, but asks for no COMMIT. */
	need(sync_file_range(fd, 0, 0,
			     SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				     SYNC_FILE_RANGE_WAIT_AFTER) == 0,
	     "sync_file_range");
	printf("written\n");
	fflush(stdout);
	while (access(argv[4], F_OK) != 0) {
		need(now_ms() < end, "nobody made %s", argv[4]);
		usleep(100000);
	}
	need(fsync(fd) == 0, "fsync after the server's restart");
	xclose(fd);
	free(buf);
	printf("stable\n");
}
