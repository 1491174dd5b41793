/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * table_bind.c - see table_bind.h. Knows the loader's program headers and nothing of the host.
 */
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
	return true;
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

bool ssc_table_store(void **slot, void *value)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)slot / page_bytes * page_bytes);

	if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	return mprotect(page, page_bytes, PROT_READ) == 0;
}
