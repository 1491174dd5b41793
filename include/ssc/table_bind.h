/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * table_bind.h - find a table of rows in a loaded library's constant data, and change some pointers.
 *
 * The host has dispatch tables that no symbol names and that are read-only after relocation. They
 * are found by their contents: every row holds a pointer to its own name, and a shape may name more
 * that must be right. Nothing is stored before all of it was verified, and nothing at all when
 * anything differs.
 *
 * Reading    a candidate pointer is followed only if it points into a readable segment of the same
 *            library, and a name is compared only as far as that segment goes.
 * Threads    find: any. store, change, undo: one at a time; running readers may see each aligned
 *            store at any moment, as the old or the new value, and several in their order.
 * Locking    none. Blocking: no.
 */
#ifndef SSC_TABLE_BIND_H
#define SSC_TABLE_BIND_H

#include "ssc/base.h"

#define SSC_TABLE_SEGMENTS_MAX 16

/* Where a loaded library lies. */
struct ssc_table_image {
	struct ssc_table_range {
		uintptr_t start, end;
	} relro,      /* constant after relocation: where tables are looked for */
		text, /* executable: where functions lie */
		seg[SSC_TABLE_SEGMENTS_MAX]; /* readable: where names may lie */
	unsigned int n_segs;
};

/* A member that must have one certain value: a function that a symbol names, or a size. */
struct ssc_table_known {
	size_t row, offset;
	size_t bytes; /* 4 or that of a pointer */
	uintptr_t value;
};

struct ssc_table_shape {
	size_t row_bytes;         /* distance from row to row */
	size_t name_offset;       /* of the pointer to the row's name */
	const char *const *names; /* of all rows, in order */
	size_t n_rows;
	const size_t *func_offsets; /* of pointers that must point into text, in every row */
	size_t n_funcs;
	const struct ssc_table_known *known; /* may be NULL when there are none */
	size_t n_known;
	const size_t *same_rows; /* rows whose pointers at same_offset are equal; may be NULL */
	size_t n_same, same_offset;
};

/* One store. */
struct ssc_table_change {
	void *slot;   /* aligned as it is wide */
	size_t bytes; /* 4 or that of a pointer */
	uintptr_t value;
	uintptr_t old; /* what was there; set by ssc_table_change */
};

/** @brief The image of the loaded library whose path ends in @name. False: not loaded. */
bool ssc_table_image_of(const char *name, struct ssc_table_image *image) SSC_NONNULL;

/**
 * @brief Find the one table of that shape.
 *
 * @return its first row, or NULL when there is none, more than one, or a row that differs.
 */
void *ssc_table_find(const struct ssc_table_image *image,
		     const struct ssc_table_shape *shape) SSC_NONNULL;

/**
 * @brief Make all of @changes, in their order, in memory that is read-only before and after.
 *
 * @return false (and errno) when some memory cannot be made writable; what was stored before that
 *         is undone, last first.
 */
bool ssc_table_change(struct ssc_table_change *changes, size_t n) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Undo changes that were made, last first. False (and errno): some could not be undone. */
bool ssc_table_undo(const struct ssc_table_change *changes, size_t n) SSC_NONNULL;

#endif /* SSC_TABLE_BIND_H */
