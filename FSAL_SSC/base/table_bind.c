/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * table_bind.c - see table_bind.h. Knows the loader's program headers and nothing of the host.
 */
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ssc/table_bind.h"

struct image_query {
	const char *name;
	struct ssc_table_image *image;
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static int read_headers(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct image_query *q = arg;
	struct ssc_table_image *image = q->image;

	(void)size;
	if (!ends_with(info->dlpi_name, q->name))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		struct ssc_table_range r = {info->dlpi_addr + p->p_vaddr,
					    info->dlpi_addr + p->p_vaddr + p->p_memsz};

		if (p->p_type == PT_GNU_RELRO)
			image->relro = r;
		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_flags & PF_X)
			image->text = r;
		if ((p->p_flags & PF_R) && image->n_segs < SSC_TABLE_SEGMENTS_MAX)
			image->seg[image->n_segs++] = r;
	}
	return 1;
}

bool ssc_table_image_of(const char *name, struct ssc_table_image *image)
{
	struct image_query q = {name, image};

	memset(image, 0, sizeof(*image));
	return dl_iterate_phdr(read_headers, &q) == 1 && image->relro.start && image->text.start;
}

static bool is_in(const struct ssc_table_range *r, uintptr_t p)
{
	return p >= r->start && p < r->end;
}

static bool is_name(const struct ssc_table_image *image, uintptr_t p, const char *name)
{
	const size_t len = strlen(name) + 1;

	for (unsigned int i = 0; i < image->n_segs; i++) {
		if (is_in(&image->seg[i], p))
			return image->seg[i].end - p >= len &&
			       memcmp((const void *)p, name, len) == 0;
	}
	return false;
}

static uintptr_t pointer_at(uintptr_t at)
{
	uintptr_t p;

	memcpy(&p, (const void *)at, sizeof(p));
	return p;
}

static uintptr_t value_at(uintptr_t at, size_t bytes)
{
	uint32_t word;

	if (bytes == sizeof(uintptr_t))
		return pointer_at(at);
	memcpy(&word, (const void *)at, sizeof(word));
	return word;
}

static bool has_known(const struct ssc_table_shape *shape, uintptr_t table)
{
	for (size_t i = 0; i < shape->n_known; i++) {
		const struct ssc_table_known *k = &shape->known[i];

		if (value_at(table + k->row * shape->row_bytes + k->offset, k->bytes) != k->value)
			return false;
	}
	return true;
}

static bool has_same(const struct ssc_table_shape *shape, uintptr_t table)
{
	const uintptr_t member = table + shape->same_offset;

	for (size_t i = 1; i < shape->n_same; i++) {
		if (pointer_at(member + shape->same_rows[i] * shape->row_bytes) !=
		    pointer_at(member + shape->same_rows[0] * shape->row_bytes))
			return false;
	}
	return true;
}

static bool is_table(const struct ssc_table_image *image, const struct ssc_table_shape *shape,
		     uintptr_t at)
{
	for (size_t row = 0; row < shape->n_rows; row++) {
		const uintptr_t r = at + row * shape->row_bytes;

		if (!is_name(image, pointer_at(r + shape->name_offset), shape->names[row]))
			return false;
		for (size_t f = 0; f < shape->n_funcs; f++) {
			if (!is_in(&image->text, pointer_at(r + shape->func_offsets[f])))
				return false;
		}
	}
	return has_known(shape, at) && has_same(shape, at);
}

void *ssc_table_find(const struct ssc_table_image *image, const struct ssc_table_shape *shape)
{
	const size_t size = shape->n_rows * shape->row_bytes;
	const uintptr_t align = sizeof(void *);
	uintptr_t at = (image->relro.start + align - 1) / align * align;
	void *found = NULL;

	for (; at < image->relro.end && image->relro.end - at >= size; at += align) {
		if (!is_table(image, shape, at))
			continue;
		if (found)
			return NULL; /* two: which one is live cannot be told */
		found = (void *)at;
	}
	return found;
}

/* One store is one instruction, so that no reader sees half of it. */
static bool store(void *slot, size_t bytes, uintptr_t value)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)slot / page_bytes * page_bytes);

	if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
		return false;
	if (bytes == sizeof(uintptr_t))
		__atomic_store_n((uintptr_t *)slot, value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)slot, (uint32_t)value, __ATOMIC_RELEASE);
	return mprotect(page, page_bytes, PROT_READ) == 0;
}

bool ssc_table_undo(const struct ssc_table_change *changes, size_t n)
{
	bool is_undone = true;

	while (n-- > 0) {
		if (!store(changes[n].slot, changes[n].bytes, changes[n].old))
			is_undone = false;
	}
	return is_undone;
}

bool ssc_table_change(struct ssc_table_change *changes, size_t n)
{
	int why;

	for (size_t i = 0; i < n; i++) {
		struct ssc_table_change *c = &changes[i];

		c->old = value_at((uintptr_t)c->slot, c->bytes);
		if (store(c->slot, c->bytes, c->value))
			continue;
		why = errno;
		(void)ssc_table_undo(changes, i + 1); /* it may have been stored already */
		errno = why;
		return false;
	}
	return true;
}
