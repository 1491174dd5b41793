/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_call.c - memory of calls, their names, and which operations may be repeated.
 *
 * That the last put frees everything is seen by the leak checker of the address sanitizer.
 */
#include <pthread.h>
#include <string.h>

#include "ssc/upstream.h"
#include "unit.h"

#define PRIV_BYTES 24

static struct ssc_upstream up = {.call_priv_bytes = PRIV_BYTES};

START_TEST(a_new_call_is_zeroed_and_has_one_reference)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_LOOKUP);

	ck_assert_int_eq(call->op, SSC_OP_LOOKUP);
	ck_assert_ptr_eq(call->up, &up);
	ck_assert_int_eq(call->refs, 1);
	ck_assert_ptr_null(call->name);
	ck_assert_ptr_null(call->done);
	ck_assert_uint_eq(call->answer_by_ns, 0);
	ck_assert_uint_eq(call->fh.len, 0);
	ssc_call_put(call);
}
END_TEST

START_TEST(room_behind_a_call_is_zeroed_aligned_and_its_own)
{
	static const char zeros[PRIV_BYTES];
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_READ);
	char *priv = ssc_call_priv(call);

	ck_assert_mem_eq(priv, zeros, PRIV_BYTES);
	ck_assert_uint_eq((uintptr_t)priv % _Alignof(max_align_t), 0);
	ck_assert(priv >= (char *)(call + 1));
	memset(priv, 0xff, PRIV_BYTES); /* the sanitizer sees if it is too small */
	ck_assert_int_eq(call->op, SSC_OP_READ);
	ssc_call_put(call);
}
END_TEST

START_TEST(references_are_counted)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_NULL);

	ck_assert_ptr_eq(ssc_call_get(call), call);
	ck_assert_int_eq(call->refs, 2);
	ssc_call_put(call);
	ck_assert_int_eq(call->refs, 1);
	ssc_call_put(call);
	ssc_call_put(NULL);
}
END_TEST

static void *get_and_put(void *arg)
{
	int i;

	for (i = 0; i < 1000; i++)
		ssc_call_put(ssc_call_get(arg));
	ssc_call_put(arg);
	return NULL;
}

START_TEST(references_are_counted_across_threads)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_NULL);
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, get_and_put, ssc_call_get(call)),
				 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(call->refs, 1);
	ssc_call_put(call);
}
END_TEST

START_TEST(the_last_put_frees_what_a_result_owns)
{
	struct ssc_call *link = ssc_call_new(&up, SSC_OP_READLINK);
	struct ssc_call *dir = ssc_call_new(&up, SSC_OP_READDIRPLUS);
	struct ssc_call *made = ssc_call_new(&up, SSC_OP_SYMLINK);

	link->res.link.target = strdup("target");
	dir->res.readdir.ents = calloc(3, sizeof(struct ssc_dirent));
	dir->result_mem = malloc(100);
	ck_assert_int_eq(ssc_call_set_name(made, "name"), SSC_OK);
	ck_assert_int_eq(ssc_call_set_text(made, "text"), SSC_OK);
	ssc_call_put(link);
	ssc_call_put(dir);
	ssc_call_put(made);
}
END_TEST

START_TEST(names_are_copied_and_replaced)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_RENAME);
	char name[] = "old";

	ck_assert_int_eq(ssc_call_set_name(call, name), SSC_OK);
	name[0] = 'X';
	ck_assert_str_eq(call->name, "old");
	ck_assert_int_eq(ssc_call_set_name(call, "newer"), SSC_OK);
	ck_assert_str_eq(call->name, "newer");
	ck_assert_int_eq(ssc_call_set_name(call, call->name), SSC_OK); /* its own */
	ck_assert_str_eq(call->name, "newer");
	ssc_call_put(call);
}
END_TEST

static enum ssc_err set_long(struct ssc_call *call, size_t len, bool as_text)
{
	char *s = calloc(1, len + 1);
	enum ssc_err err;

	memset(s, 'n', len);
	err = as_text ? ssc_call_set_text(call, s) : ssc_call_set_name(call, s);
	free(s);
	return err;
}

START_TEST(names_that_cannot_be_one_are_refused)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_RENAME);

	ck_assert_int_eq(ssc_call_set_name(call, ""), SSC_E_INVAL);
	ck_assert_int_eq(ssc_call_set_name(call, "a/b"), SSC_E_INVAL);
	ck_assert_int_eq(set_long(call, SSC_NAME_MAX + 1, false), SSC_E_NAMETOOLONG);
	ck_assert_ptr_null(call->name);
	ck_assert_int_eq(set_long(call, SSC_NAME_MAX, false), SSC_OK);
	ck_assert_uint_eq(strlen(call->name), SSC_NAME_MAX);
	ck_assert_int_eq(ssc_call_set_name(call, "a/b"), SSC_E_INVAL);
	ck_assert_uint_eq(strlen(call->name), SSC_NAME_MAX); /* the old one stays */
	ssc_call_put(call);
}
END_TEST

START_TEST(a_new_name_is_checked_like_a_name)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_RENAME);

	ck_assert_int_eq(ssc_call_set_text(call, ""), SSC_E_INVAL);
	ck_assert_int_eq(ssc_call_set_text(call, "a/b"), SSC_E_INVAL);
	ck_assert_int_eq(set_long(call, SSC_NAME_MAX + 1, true), SSC_E_NAMETOOLONG);
	ck_assert_int_eq(ssc_call_set_text(call, "b"), SSC_OK);
	ck_assert_str_eq(call->text, "b");
	ssc_call_put(call);
}
END_TEST

START_TEST(a_link_target_is_only_bounded)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_SYMLINK);

	ck_assert_int_eq(ssc_call_set_text(call, "../a/b"), SSC_OK);
	ck_assert_str_eq(call->text, "../a/b");
	ck_assert_int_eq(set_long(call, SSC_LINK_MAX + 1, true), SSC_E_NAMETOOLONG);
	ck_assert_int_eq(set_long(call, SSC_LINK_MAX, true), SSC_OK);
	ck_assert_uint_eq(strlen(call->text), SSC_LINK_MAX);
	ssc_call_put(call);
}
END_TEST

START_TEST(every_operation_has_its_own_name)
{
	enum ssc_op a, b;

	for (a = SSC_OP_NULL; a < SSC_OP_N; a++) {
		ck_assert_str_ne(ssc_op_str(a), "(unknown)");
		for (b = SSC_OP_NULL; b < a; b++)
			ck_assert_str_ne(ssc_op_str(a), ssc_op_str(b));
	}
	ck_assert_str_eq(ssc_op_str(SSC_OP_READDIRPLUS), "READDIRPLUS");
	ck_assert_str_eq(ssc_op_str(SSC_OP_N), "(unknown)");
}
END_TEST

START_TEST(what_changes_the_name_space_is_not_idempotent)
{
	static const bool expected[SSC_OP_N] = {
		[SSC_OP_NULL] = true,   [SSC_OP_GETATTR] = true,     [SSC_OP_SETATTR] = true,
		[SSC_OP_LOOKUP] = true, [SSC_OP_READLINK] = true,    [SSC_OP_READ] = true,
		[SSC_OP_WRITE] = true,  [SSC_OP_READDIRPLUS] = true, [SSC_OP_FSSTAT] = true,
		[SSC_OP_FSINFO] = true, [SSC_OP_PATHCONF] = true,    [SSC_OP_COMMIT] = true,
	};
	struct ssc_call *call = ssc_call_new(&up, (enum ssc_op)_i);

	ck_assert_int_eq(ssc_call_is_idempotent(call), expected[_i]);
	ssc_call_put(call);
}
END_TEST

START_TEST(what_cuts_a_file_off_is_not_idempotent)
{
	struct ssc_call *call = ssc_call_new(&up, SSC_OP_SETATTR);

	call->arg.setattr.set.set_mode = true;
	ck_assert(ssc_call_is_idempotent(call));
	call->arg.setattr.set.set_size = true;
	ck_assert(!ssc_call_is_idempotent(call));
	ssc_call_put(call);
	call = ssc_call_new(&up, SSC_OP_CREATE);
	call->arg.create.how = SSC_CREATE_UNCHECKED;
	ck_assert(!ssc_call_is_idempotent(call));
	ssc_call_put(call);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("call");
	TCase *memory = tcase_create("memory");
	TCase *names = tcase_create("names");
	TCase *operations = tcase_create("operations");

	tcase_add_test(memory, a_new_call_is_zeroed_and_has_one_reference);
	tcase_add_test(memory, room_behind_a_call_is_zeroed_aligned_and_its_own);
	tcase_add_test(memory, references_are_counted);
	tcase_add_test(memory, references_are_counted_across_threads);
	tcase_add_test(memory, the_last_put_frees_what_a_result_owns);
	suite_add_tcase(suite, memory);
	tcase_add_test(names, names_are_copied_and_replaced);
	tcase_add_test(names, names_that_cannot_be_one_are_refused);
	tcase_add_test(names, a_new_name_is_checked_like_a_name);
	tcase_add_test(names, a_link_target_is_only_bounded);
	suite_add_tcase(suite, names);
	tcase_add_test(operations, every_operation_has_its_own_name);
	tcase_add_loop_test(operations, what_changes_the_name_space_is_not_idempotent, SSC_OP_NULL,
			    SSC_OP_N);
	tcase_add_test(operations, what_cuts_a_file_off_is_not_idempotent);
	suite_add_tcase(suite, operations);
	return unit_main(suite);
}
