/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops.h - what the file system tests of fsops share.
 *
 * Each test is one function that returns when all was as it should be, and otherwise ends the
 * process with one line that says what was asked, expected and seen. File content is a function of
 * a seed and the offset, so that any process, in the guest or outside, can check any part of a file.
 */
#ifndef FSOPS_H
#define FSOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PATH_BYTES 8192 /* longest path a test builds; more than PATH_MAX for safety */

/* Ends the process with "fsops: FAIL TEST: text" and the present errno. */
void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* fail() unless ok. */
void need(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* fail() unless the call's result is 0 with err == 0, or -1 with errno == err. */
void need_err(int result, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A small random generator; the same seed gives the same run everywhere. */
struct rng {
	uint64_t state;
};
uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t n);

void pattern_fill(uint8_t *buf, size_t bytes, uint64_t seed, uint64_t offset);
/* The first byte of buf that is not the pattern's, or bytes. */
size_t pattern_mismatch(const uint8_t *buf, size_t bytes, uint64_t seed, uint64_t offset);

void *xmalloc(size_t bytes);
int xopen(const char *path, int flags, mode_t mode);
void xclose(int fd);
void xpwrite(int fd, const void *buf, size_t bytes, off_t offset);
/* Reads until bytes or the end; returns what was read. */
size_t xpread(int fd, void *buf, size_t bytes, off_t offset);
/* dir/name in one of a few static buffers, good until some more calls. */
const char *path_of(const char *dir, const char *name);
uint64_t now_ms(void);
/* Waits for a child and fails unless it ended with 0. */
void reap(pid_t pid);
/* Number of entries of a directory, without . and .. and the client's .nfs names. */
size_t count_entries(const char *dir);

/* The tests; argv[0] is the name, the rest what usage says. */
void tree_make(char **argv);
void tree_copy(char **argv);
void tree_list(char **argv);
void test_ops(char **argv);
void test_rw(char **argv);
void test_locks(char **argv);
void test_many(char **argv);
void test_append(char **argv);
void test_trunc(char **argv);
void test_excl(char **argv);
void test_mknod(char **argv);
void test_links(char **argv);
void test_rename(char **argv);
void test_unlink(char **argv);
void test_setattr(char **argv);
void test_statfs(char **argv);
void test_access(char **argv);
void test_groups(char **argv);
void stream_write(char **argv);
void stream_read(char **argv);
void stream_check(char **argv);
void stream_unstable(char **argv);
void copy_file(char **argv);
void clone_file(char **argv);
void copy_setid(char **argv);
void copy_locked(char **argv);
void copy_ranges(char **argv);

#endif
