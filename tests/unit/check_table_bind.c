/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_table_bind.c - a table in a mapped page is found by its contents, or nothing is touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ssc/table_bind.h"
#include "unit.h"

#define N_ROWS 4

struct row {
	void (*func)(void);
	const char *name;
	void *slot;
	uint32_t size, unknown;
};

static const char *const names[N_ROWS] = {"OP_ZERO", "OP_ONE", "OP_TWO", "OP_THREE"};
static const size_t funcs[] = {offsetof(struct row, func)};
static const struct ssc_table_shape shape = {
	.row_bytes = sizeof(struct row),
	.name_offset = offsetof(struct row, name),
	.names = names,
	.n_rows = N_ROWS,
	.func_offsets = funcs,
	.n_funcs = 1,
};

/* A page of "relocated data", one of names, and one that stands for code. */
static char *data, *text, *code;
static size_t page_bytes;
static struct ssc_table_image image;

static void map_image(void)
{
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	data = mmap(NULL, 3 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	ck_assert_ptr_ne(data, MAP_FAILED);
	text = data + page_bytes;
	code = text + page_bytes;
	memset(&image, 0, sizeof(image));
	image.relro = (struct ssc_table_range){(uintptr_t)data, (uintptr_t)text};
	image.text = (struct ssc_table_range){(uintptr_t)code, (uintptr_t)code + page_bytes};
	image.seg[0] = image.text;
	image.seg[1] = (struct ssc_table_range){(uintptr_t)data, (uintptr_t)code};
	image.n_segs = 2;
}

static void unmap_image(void)
{
	munmap(data, 3 * page_bytes);
}

static struct row *put_table(size_t offset)
{
	struct row *rows = (struct row *)(data + offset);
	char *at = text + offset;

	for (int i = 0; i < N_ROWS; i++) {
		strcpy(at, names[i]);
		rows[i].name = at;
		rows[i].func = (void (*)(void))(code + i);
		rows[i].size = (uint32_t)(10 + i);
		rows[i].unknown = 0x55;
		at += strlen(at) + 1;
	}
	return rows;
}

START_TEST(finds_the_table)
{
	struct row *rows = put_table(136);

	ck_assert_ptr_eq(ssc_table_find(&image, &shape), rows);
}
END_TEST

START_TEST(finds_one_at_the_very_end)
{
	struct row *rows = put_table(page_bytes - N_ROWS * sizeof(struct row));

	ck_assert_ptr_eq(ssc_table_find(&image, &shape), rows);
}
END_TEST

START_TEST(refuses_none_and_two)
{
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
	put_table(64);
	ck_assert_ptr_nonnull(ssc_table_find(&image, &shape));
	put_table(1024);
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
}
END_TEST

START_TEST(refuses_a_wrong_name)
{
	struct row *rows = put_table(64);

	strcpy((char *)rows[N_ROWS - 1].name, "OP_THREF");
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
}
END_TEST

START_TEST(refuses_a_longer_name)
{
	struct row *rows = put_table(64);

	strcpy((char *)rows[N_ROWS - 1].name, "OP_THREE2");
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
}
END_TEST

START_TEST(refuses_a_function_outside_of_text)
{
	struct row *rows = put_table(64);

	rows[2].func = (void (*)(void))data;
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
}
END_TEST

START_TEST(refuses_another_stride)
{
	struct ssc_table_shape wide = shape;

	put_table(64);
	wide.row_bytes += sizeof(void *);
	ck_assert_ptr_null(ssc_table_find(&image, &wide));
}
END_TEST

/* A name pointer at the last bytes of a segment must not be read past them. */
START_TEST(reads_nothing_outside_of_the_image)
{
	struct row *rows = put_table(64);

	rows[0].name = code - 3;
	memcpy(code - 3, "OP_", 3);
	image.seg[0] = (struct ssc_table_range){0, 0};
	ck_assert_int_eq(mprotect(code, page_bytes, PROT_NONE), 0);
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
	rows[0].name = (char *)16;
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
}
END_TEST

/* A table of another build of the host: the names are right, a size or a known function is not. */
START_TEST(refuses_a_wrong_size)
{
	struct row *rows = put_table(64);
	const struct ssc_table_known known[] = {
		{1, offsetof(struct row, size), sizeof(uint32_t), 11},
		{N_ROWS - 1, offsetof(struct row, size), sizeof(uint32_t), 13},
	};
	struct ssc_table_shape sized = shape;

	sized.known = known;
	sized.n_known = 2;
	ck_assert_ptr_eq(ssc_table_find(&image, &sized), rows);
	rows[N_ROWS - 1].size++;
	ck_assert_ptr_null(ssc_table_find(&image, &sized));
	rows[N_ROWS - 1].size--;
	rows[2].size++; /* nothing is known of that one, nor of the word behind a size */
	rows[1].unknown++;
	ck_assert_ptr_eq(ssc_table_find(&image, &sized), rows);
}
END_TEST

START_TEST(refuses_a_wrong_function)
{
	struct row *rows = put_table(64);
	const struct ssc_table_known known = {2, offsetof(struct row, func), sizeof(rows->func),
					      (uintptr_t)rows[2].func};
	struct ssc_table_shape anchored = shape;

	anchored.known = &known;
	anchored.n_known = 1;
	ck_assert_ptr_eq(ssc_table_find(&image, &anchored), rows);
	rows[2].func = rows[1].func;
	ck_assert_ptr_null(ssc_table_find(&image, &anchored));
}
END_TEST

START_TEST(refuses_rows_that_share_no_function)
{
	const size_t same[] = {0, 2, 3};
	struct row *rows = put_table(64);
	struct ssc_table_shape sharing = shape;

	sharing.same_rows = same;
	sharing.n_same = 3;
	sharing.same_offset = offsetof(struct row, func);
	ck_assert_ptr_null(ssc_table_find(&image, &sharing));
	rows[2].func = rows[0].func;
	ck_assert_ptr_null(ssc_table_find(&image, &sharing));
	rows[3].func = rows[0].func;
	ck_assert_ptr_eq(ssc_table_find(&image, &sharing), rows);
}
END_TEST

static struct ssc_table_change set(void *slot, uintptr_t value)
{
	return (struct ssc_table_change){.slot = slot, .bytes = sizeof(value), .value = value};
}

START_TEST(changes_read_only_memory)
{
	struct row *rows = put_table(64);
	struct ssc_table_change changes[] = {
		set(&rows[1].slot, (uintptr_t)rows),
		{.slot = &rows[2].size, .bytes = sizeof(uint32_t), .value = 99},
	};

	rows[1].slot = data;
	ck_assert_int_eq(mprotect(data, page_bytes, PROT_READ), 0);
	ck_assert(ssc_table_change(changes, 2));
	ck_assert_ptr_eq(rows[1].slot, rows);
	ck_assert_uint_eq(rows[2].size, 99);
	ck_assert_uint_eq(rows[2].unknown, 0x55);
	ck_assert(ssc_table_undo(changes, 2));
	ck_assert_ptr_eq(rows[1].slot, data);
	ck_assert_uint_eq(rows[2].size, 12);
	ck_assert_uint_eq(rows[2].unknown, 0x55);
}
END_TEST

/* Undone in the opposite order, so that two changes of one place come to the first value. */
START_TEST(undoes_the_last_first)
{
	struct row *rows = put_table(64);
	struct ssc_table_change changes[] = {set(&rows[0].slot, 2), set(&rows[0].slot, 3)};

	rows[0].slot = (void *)1;
	ck_assert(ssc_table_change(changes, 2));
	ck_assert_ptr_eq(rows[0].slot, (void *)3);
	ck_assert(ssc_table_undo(changes, 2));
	ck_assert_ptr_eq(rows[0].slot, (void *)1);
}
END_TEST

START_TEST(leaves_the_page_read_only)
{
	struct row *rows = put_table(64);
	struct ssc_table_change change = set(&rows[1].slot, 1);

	ck_assert_int_eq(mprotect(data, page_bytes, PROT_READ), 0);
	ck_assert(ssc_table_change(&change, 1));
	*(volatile char *)data = 1; /* SIGSEGV is what passes */
}
END_TEST

/* Memory that is read only for good: a file that was opened for reading, mapped shared. */
static void *map_unwritable(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED, fd, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	close(fd);
	return page;
}

START_TEST(changes_all_or_nothing)
{
	struct row *rows = put_table(64);
	void *unwritable = map_unwritable();
	struct ssc_table_change changes[] = {
		set(&rows[0].slot, 1),
		set(&rows[1].slot, 1),
		set(unwritable, 1),
		set(&rows[2].slot, 1),
	};

	rows[2].slot = data;
	ck_assert_int_eq(mprotect(data, page_bytes, PROT_READ), 0);
	errno = 0;
	ck_assert(!ssc_table_change(changes, 4));
	ck_assert_int_eq(errno, EACCES);
	ck_assert_ptr_null(rows[0].slot);
	ck_assert_ptr_null(rows[1].slot);
	ck_assert_ptr_eq(rows[2].slot, data);
	munmap(unwritable, page_bytes);
}
END_TEST

START_TEST(undo_tells_what_stays)
{
	struct row *rows = put_table(64);
	void *unwritable = map_unwritable();
	struct ssc_table_change changes[] = {set(&rows[0].slot, 1), set(unwritable, 1)};

	ck_assert(ssc_table_change(changes, 1));
	ck_assert(!ssc_table_undo(changes, 2));
	ck_assert_ptr_null(rows[0].slot);
	munmap(unwritable, page_bytes);
}
END_TEST

/* A second copy of the module does not find a table whose functions are the first one's. */
START_TEST(a_bound_table_is_not_found_again)
{
	struct row *rows = put_table(64);
	struct ssc_table_change change = set(&rows[2].func, (uintptr_t)&undo_tells_what_stays);

	ck_assert(ssc_table_change(&change, 1));
	ck_assert_ptr_null(ssc_table_find(&image, &shape));
	ck_assert(ssc_table_undo(&change, 1));
	ck_assert_ptr_eq(ssc_table_find(&image, &shape), rows);
}
END_TEST

START_TEST(finds_a_loaded_library)
{
	struct ssc_table_image libc;

	ck_assert(ssc_table_image_of("/libc.so.6", &libc));
	ck_assert(libc.relro.end > libc.relro.start);
	ck_assert((uintptr_t)&strlen != 0 && libc.n_segs > 0);
	ck_assert(!ssc_table_image_of("/libnot-there.so", &libc));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("table_bind");
	TCase *tc = tcase_create("find");
	TCase *st = tcase_create("change");

	tcase_add_checked_fixture(tc, map_image, unmap_image);
	tcase_add_test(tc, finds_the_table);
	tcase_add_test(tc, finds_one_at_the_very_end);
	tcase_add_test(tc, refuses_none_and_two);
	tcase_add_test(tc, refuses_a_wrong_name);
	tcase_add_test(tc, refuses_a_longer_name);
	tcase_add_test(tc, refuses_a_function_outside_of_text);
	tcase_add_test(tc, refuses_another_stride);
	tcase_add_test(tc, refuses_a_wrong_size);
	tcase_add_test(tc, refuses_a_wrong_function);
	tcase_add_test(tc, refuses_rows_that_share_no_function);
	tcase_add_test(tc, reads_nothing_outside_of_the_image);
	tcase_add_test(tc, finds_a_loaded_library);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(st, map_image, unmap_image);
	tcase_add_test(st, changes_read_only_memory);
	tcase_add_test(st, undoes_the_last_first);
	tcase_add_test(st, changes_all_or_nothing);
	tcase_add_test(st, undo_tells_what_stays);
	tcase_add_test(st, a_bound_table_is_not_found_again);
	if (getenv("CK_FORK") == NULL || strcmp(getenv("CK_FORK"), "no") != 0)
		tcase_add_test_raise_signal(st, leaves_the_page_read_only, SIGSEGV);
	suite_add_tcase(s, st);
	return unit_main(s);
}
