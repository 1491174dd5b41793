/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * table_bind.h - find a table of rows in a loaded library's constant data, and change some pointers.
 *
 * The host has dispatch tables that no symbol names and that are read-only after relocation. They
 * are found by their contents: every row holds a pointer to its own name. Nothing is stored before
 * every row was verified, and nothing at all when anything differs.
 *
 * Reading    a candidate pointer is followed only if it points into a readable segment of the same
 *            library, and a name is compared only as far as that segment goes.
 * Threads    find: any. store: one at a time; the aligned pointer stores may be seen by running
 *            readers at any moment, each as the old or the new value.
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

struct ssc_table_shape {
	size_t row_bytes;         /* distance from row to row */
	size_t name_offset;       /* of the pointer to the row's name */
	const char *const *names; /* of all rows, in order */
	size_t n_rows;
	const size_t *func_offsets; /* of pointers that must point into text, in every row */
	size_t n_funcs;
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
 * @brief Store @value at @slot, a pointer-aligned place in read-only memory, and leave the page as
 *        read-only as it was. False (and errno) when the memory cannot be made writable.
 */
bool ssc_table_store(void **slot, void *value) SSC_MUST_CHECK;

#endif /* SSC_TABLE_BIND_H */
