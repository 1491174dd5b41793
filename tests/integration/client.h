/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * client.h - what the parts of the test client share: one mount, calls that come back, file copies.
 *
 * Object   struct client: one mount on libnfs' synchronous calls, used by one thread.
 * Errors   Functions that return int return 0, or print one line to stderr and return non-zero.
 *          CALL() gives libnfs' own result: 0 or more, or -errno.
 */
#ifndef SSC_TEST_CLIENT_H
#define SSC_TEST_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>

/* libnfs 4.0.0 accepts replies of 1 MiB and sends no more. */
#define IO_MAX (1u << 20)

struct client {
	struct nfs_context *nfs;
	bool is_v4;
	int uid;
	int gid;
	unsigned wait_s;
	unsigned n_retries;
	uint64_t give_up_ms;
};

/* Make a call again while the server asks for it (JUKEBOX, DELAY). */
#define CALL(c, expr)                                           \
	({                                                      \
		long ret_;                                      \
		client_call_begins(c);                          \
		do                                              \
			ret_ = (long)(expr);                    \
		while (ret_ < 0 && client_come_back(c, -ret_)); \
		(int)ret_;                                      \
	})

int client_connect(struct client *c, const char *url);
void client_call_begins(struct client *c);
bool client_come_back(struct client *c, long err);
int client_fail(struct client *c, const char *what, const char *path, int err);
const char *client_type_name(uint32_t mode);
uint64_t client_now_ms(void);

/* Byte i of the pattern depends on its offset and the seed only. */
void client_pattern(uint8_t *buf, size_t len, uint64_t off, uint64_t seed);

int client_create(struct client *c, const char *path, int excl);
int client_open_for_write(struct client *c, const char *path, struct nfsfh **fh);
int client_put(struct client *c, const char *local, const char *path);
int client_get(struct client *c, const char *path, const char *local);
int client_sum(struct client *c, const char *path, uint64_t *bytes, uint64_t *sum);
int client_write(struct client *c, const char *path, uint64_t off, uint64_t len, uint64_t seed,
		 bool commit);
int client_verify(struct client *c, const char *path, uint64_t off, uint64_t len, uint64_t seed);
int client_tree_in(struct client *c, const char *local, const char *path);
int client_tree_out(struct client *c, const char *path, const char *local);
int client_rmtree(struct client *c, const char *path);
int client_fill(struct client *c, const char *path, unsigned long n);
int client_rate(struct client *c, const char *path, unsigned long bytes, double seconds);
int client_speed(struct client *c, const char *path, unsigned long mib);
int client_slices(struct client *c, const char *path, unsigned long bytes, double seconds,
		  unsigned long n);
int client_getattrs(struct client *c, const char *path, double seconds, unsigned depth);
int client_verifiers(struct client *c, const char *path, const char *go);
int client_writes(struct client *c, const char *path, unsigned long n, unsigned depth);
int client_churn(struct client *c, const char *path, unsigned long seconds, unsigned long seed);

#endif /* SSC_TEST_CLIENT_H */
