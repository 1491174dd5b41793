/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_source.h - servers that are mounted by nothing but a count, as slowly and as badly as a test wants.
 *
 * Object     struct fake_source: one server, known by the last two bytes of its IPv4 address; struct
 *            fake_mount: what the cache holds of it, freed when it is unmounted, so that the address
 *            sanitizer sees a use of a dead one.
 * Holding    While is_held is set, mounts (or unmounts) of that server do not return; the n_held counters
 *            say how many are there. What else a server is to do is set while nobody mounts it.
 * Threads    any. Waiting for a count is bounded by real seconds and asserts.
 */
#ifndef SSC_FAKE_SOURCE_H
#define SSC_FAKE_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "ssc/source_cache.h"

enum { FAKE_SOURCES = 20000, FAKE_MOUNT_RPCS = 4 };

struct fake_source {
	/* guarded by fake_source_lock */
	enum ssc_err err; /* of mounts */
	bool is_mount_held, is_unmount_held;
	unsigned int n_attempts;   /* begun */
	unsigned int n_attempting; /* now */
	unsigned int n_most;       /* the most of n_attempting ever */
	unsigned int n_unmounts;   /* ended */
	unsigned int n_mounted;    /* that are not unmounted */
	unsigned int n_mounts_held, n_unmounts_held;
	uint64_t until_ns; /* that the last attempt was given */
	/* with no hold: how often to yield, at random by this state; NULL: not at all */
	uint64_t *delay_state;
	unsigned int fail_percent;
};

struct fake_mount {
	unsigned int id;
	struct ssc_source_key key;
	atomic_bool is_unmounted;
};

extern struct fake_source fake_sources[FAKE_SOURCES];
extern const struct ssc_source_ops fake_source_ops;

/** @brief Forget everything. No mount may be left. */
void fake_source_reset(void);

/** @brief The key of the server @id, version 4.2, port 2049. */
struct ssc_source_key fake_source_key(unsigned int id);

void fake_source_set_err(unsigned int id, enum ssc_err err);
void fake_source_hold_mounts(unsigned int id, bool is_held);
void fake_source_hold_unmounts(unsigned int id, bool is_held);

/** @brief Wait until *@count, a counter above, is @n. Asserts that it comes to that. */
void fake_source_await(unsigned int *count, unsigned int n);

/** @brief Read a counter above. */
unsigned int fake_source_read(unsigned int *count);

/** @brief Asserts that the source is that of @id and its mount alive. */
void fake_source_check(struct ssc_source *source, unsigned int id);

#endif /* SSC_FAKE_SOURCE_H */
