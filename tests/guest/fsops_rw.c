/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_rw.c - random I/O on one file, compared with a copy in memory after each read.
 *
 * buffered  read, write, truncate up and down, mmap read and write, fsync, reopen, cache drops
 * direct    the same without mmap, most I/O by a second descriptor with O_DIRECT
 * append    all writes by O_APPEND; truncate and reads as above
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops.h"

#define FILE_BYTES   (768 * 1024u)
#define IO_BYTES     (96 * 1024u)
#define DIRECT_ALIGN 512u /* NFS asks for none; programs use at least this */

struct rw {
	const char *path;
	bool direct;
	bool append;
	int fd;
	int direct_fd; /* -1: not in this mode */
	uint32_t size;
	uint8_t *model; /* FILE_BYTES */
	uint8_t *buf;   /* IO_BYTES, page aligned */
	struct rng rng;
};

static void open_all(struct rw *rw, int extra)
{
	rw->fd = xopen(rw->path, O_RDWR | extra | (rw->append ? O_APPEND : 0), 0644);
	if (rw->direct)
		rw->direct_fd = xopen(rw->path, O_RDWR | O_DIRECT, 0);
}

static void close_all(struct rw *rw)
{
	xclose(rw->fd);
	if (rw->direct)
		xclose(rw->direct_fd);
}

static void compare(struct rw *rw, const uint8_t *seen, uint32_t bytes, uint32_t offset,
		    const char *how)
{
	for (uint32_t i = 0; i < bytes; i++)
		need(seen[i] == rw->model[offset + i],
		     "%s: byte %u (of %u at %u, size %u) is 0x%02x, expected 0x%02x", how,
		     offset + i, bytes, offset, rw->size, seen[i], rw->model[offset + i]);
}

static void do_read(struct rw *rw)
{
	uint32_t offset = rng_below(&rw->rng, FILE_BYTES - IO_BYTES);
	uint32_t bytes = 1 + rng_below(&rw->rng, IO_BYTES);
	bool direct = rw->direct && rng_below(&rw->rng, 3) != 0;
	uint32_t want;
	size_t n;

	if (direct) {
		offset -= offset % DIRECT_ALIGN;
		bytes = IO_BYTES - bytes / DIRECT_ALIGN * DIRECT_ALIGN;
	}
	want = offset >= rw->size ? 0 : rw->size - offset;
	if (want > bytes)
		want = bytes;
	n = xpread(direct ? rw->direct_fd : rw->fd, rw->buf, bytes, offset);
	need(n == want, "read %u at %u (size %u) gave %zu", bytes, offset, rw->size, n);
	compare(rw, rw->buf, want, offset, direct ? "direct read" : "read");
}

/* What the model holds after a write; a gap before it is zeros. */
static void note_write(struct rw *rw, uint32_t bytes, uint32_t offset)
{
	if (offset > rw->size)
		memset(rw->model + rw->size, 0, offset - rw->size);
	memcpy(rw->model + offset, rw->buf, bytes);
	if (offset + bytes > rw->size)
		rw->size = offset + bytes;
}

static void do_write(struct rw *rw)
{
	uint32_t offset = rng_below(&rw->rng, FILE_BYTES - IO_BYTES);
	uint32_t bytes = 1 + rng_below(&rw->rng, IO_BYTES);
	bool direct = rw->direct && rng_below(&rw->rng, 3) != 0;

	if (rw->append) {
		if (rw->size + bytes > FILE_BYTES)
			return;
		offset = rw->size;
	}
	if (direct) {
		offset -= offset % DIRECT_ALIGN;
		bytes = IO_BYTES - bytes / DIRECT_ALIGN * DIRECT_ALIGN;
	}
	pattern_fill(rw->buf, bytes, rng_next(&rw->rng), offset);
	note_write(rw, bytes, offset);
	if (rw->append)
		need(write(rw->fd, rw->buf, bytes) == (ssize_t)bytes, "append %u at %u", bytes,
		     offset);
	else
		xpwrite(direct ? rw->direct_fd : rw->fd, rw->buf, bytes, offset);
}

static void do_truncate(struct rw *rw)
{
	uint32_t size = rng_below(&rw->rng, FILE_BYTES);

	need(ftruncate(rw->fd, size) == 0, "ftruncate to %u", size);
	if (size > rw->size)
		memset(rw->model + rw->size, 0, size - rw->size);
	rw->size = size;
}

static void do_map(struct rw *rw, bool is_write)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE), offset, bytes;
	uint8_t *map;

	if (rw->size == 0)
		return;
	offset = rng_below(&rw->rng, rw->size);
	bytes = 1 + rng_below(&rw->rng, rw->size - offset);
	if (bytes > IO_BYTES)
		bytes = IO_BYTES;
	map = mmap(NULL, offset % page + bytes, PROT_READ | (is_write ? PROT_WRITE : 0), MAP_SHARED,
		   rw->fd, offset - offset % page);
	need(map != MAP_FAILED, "mmap %u at %u", bytes, offset);
	if (is_write) {
		pattern_fill(rw->buf, bytes, rng_next(&rw->rng), offset);
		note_write(rw, bytes, offset);
		memcpy(map + offset % page, rw->buf, bytes);
		if (rng_below(&rw->rng, 3) == 0)
			need(msync(map, offset % page + bytes, MS_SYNC) == 0, "msync");
	} else {
		compare(rw, map + offset % page, bytes, offset, "mmap read");
	}
	need(munmap(map, offset % page + bytes) == 0, "munmap");
}

/* Writes back and forgets the cached pages, so that the next reads ask the server. */
static void do_drop(struct rw *rw)
{
	need(fsync(rw->fd) == 0, "fsync");
	need(posix_fadvise(rw->fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
}

static void do_reopen(struct rw *rw)
{
	close_all(rw);
	open_all(rw, 0);
}

static void check_all(struct rw *rw)
{
	struct stat st;

	need(fstat(rw->fd, &st) == 0, "fstat");
	need(st.st_size == rw->size, "size %lld, expected %u", (long long)st.st_size, rw->size);
	for (uint32_t offset = 0; offset < rw->size; offset += IO_BYTES) {
		uint32_t bytes = rw->size - offset < IO_BYTES ? rw->size - offset : IO_BYTES;
		size_t n = xpread(rw->fd, rw->buf, bytes, offset);

		need(n == bytes, "read %u at %u gave %zu", bytes, offset, n);
		compare(rw, rw->buf, bytes, offset, "last check");
	}
}

void test_rw(char **argv)
{
	struct rw rw = {.path = argv[1], .rng = {strtoull(argv[2], NULL, 0)}, .direct_fd = -1};
	unsigned long count = strtoul(argv[3], NULL, 0);

	rw.direct = strcmp(argv[4], "direct") == 0;
	rw.append = strcmp(argv[4], "append") == 0;
	need(rw.direct || rw.append || strcmp(argv[4], "buffered") == 0, "mode %s", argv[4]);
	rw.model = xmalloc(FILE_BYTES);
	need(posix_memalign((void **)&rw.buf, 4096, IO_BYTES) == 0, "out of memory");
	open_all(&rw, O_CREAT | O_EXCL);
	for (unsigned long i = 0; i < count; i++) {
		uint32_t dice = rng_below(&rw.rng, 20);

		if (dice < 6)
			do_write(&rw);
		else if (dice < 12)
			do_read(&rw);
		else if (dice < 14)
			do_truncate(&rw);
		else if (dice < 18 && !rw.direct)
			do_map(&rw, dice < 16 && !rw.append);
		else if (dice == 18)
			do_drop(&rw);
		else if (dice == 19)
			do_reopen(&rw);
	}
	do_drop(&rw);
	check_all(&rw);
	close_all(&rw);
	free(rw.model);
	free(rw.buf);
}
