/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_sync_key.c - which requests are the same one for joining, and which are not.
 */
#include "sync_unit.h"

/* Two names where an operation has two. */
static struct ssc_call *sample(enum ssc_op op)
{
	struct ssc_call *call = new_call(op, op == SSC_OP_SETATTR ? NULL : "n");
	struct ssc_sattr set = {.set_mode = true,
				.mode = 0640,
				.set_uid = true,
				.uid = 8,
				.set_gid = true,
				.gid = 9,
				.mtime_how = SSC_TIME_CLIENT,
				.mtime = {.s = 5, .ns = 6}};

	if (op == SSC_OP_CREATE) {
		call->arg.create.how = SSC_CREATE_GUARDED;
		call->arg.create.set = set;
	} else if (op == SSC_OP_MKDIR || op == SSC_OP_MKNOD || op == SSC_OP_SYMLINK) {
		call->arg.make.set = set;
		if (op == SSC_OP_MKNOD) {
			call->arg.make.type = SSC_FT_CHR;
			call->arg.make.rdev_major = 1;
			call->arg.make.rdev_minor = 2;
		}
	} else if (op == SSC_OP_RENAME || op == SSC_OP_LINK) {
		call->arg.rename.to_dir = (struct ssc_fh){.len = 2, .data = "to"};
	}
	if (op == SSC_OP_SYMLINK || op == SSC_OP_RENAME)
		ck_assert_int_eq(ssc_call_set_text(call, "t"), SSC_OK);
	return call;
}

static const enum ssc_op joining_ops[] = {SSC_OP_CREATE, SSC_OP_MKDIR, SSC_OP_SYMLINK, SSC_OP_MKNOD,
					  SSC_OP_REMOVE, SSC_OP_RMDIR, SSC_OP_RENAME,  SSC_OP_LINK};

START_TEST(the_same_request_joins)
{
	enum ssc_op op = joining_ops[_i];

	push(op, FAKE_LATE_AT_ONCE, SSC_E_ROFS);
	ck_assert_int_eq(run(1, sample(op)), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, sample(op)), SSC_E_ROFS);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

/* Each changes one thing that tells requests apart. */
static void other_fh(struct ssc_call *c)
{
	c->fh.data[0]++;
}
static void longer_fh(struct ssc_call *c)
{
	c->fh.len++;
}
static void other_uid(struct ssc_call *c)
{
	c->cred.uid++;
}
static void other_gid(struct ssc_call *c)
{
	c->cred.gid++;
}
static void other_group(struct ssc_call *c)
{
	c->cred.groups[0]++;
}
static void more_groups(struct ssc_call *c)
{
	c->cred.n_groups++;
}
static void other_name(struct ssc_call *c)
{
	ck_assert_int_eq(ssc_call_set_name(c, "m"), SSC_OK);
}
static void other_text(struct ssc_call *c)
{
	ck_assert_int_eq(ssc_call_set_text(c, "u"), SSC_OK);
}
static void other_to_dir(struct ssc_call *c)
{
	c->arg.rename.to_dir.data[1]++;
}
static void other_how(struct ssc_call *c)
{
	c->arg.create.how = SSC_CREATE_EXCLUSIVE;
}
static void other_create_mode(struct ssc_call *c)
{
	c->arg.create.set.mode++;
}
static void no_create_mode(struct ssc_call *c)
{
	c->arg.create.set.set_mode = false;
}
static void create_with_size(struct ssc_call *c)
{
	c->arg.create.set.set_size = true;
}
static void other_make_uid(struct ssc_call *c)
{
	c->arg.make.set.uid++;
}
static void no_make_uid(struct ssc_call *c)
{
	c->arg.make.set.set_uid = false;
}
static void other_make_gid(struct ssc_call *c)
{
	c->arg.make.set.gid++;
}
static void other_mtime_s(struct ssc_call *c)
{
	c->arg.make.set.mtime.s++;
}
static void other_mtime_ns(struct ssc_call *c)
{
	c->arg.make.set.mtime.ns++;
}
static void server_mtime(struct ssc_call *c)
{
	c->arg.make.set.mtime_how = SSC_TIME_SERVER;
}
static void server_atime(struct ssc_call *c)
{
	c->arg.make.set.atime_how = SSC_TIME_SERVER;
}
static void other_type(struct ssc_call *c)
{
	c->arg.make.type = SSC_FT_BLK;
}
static void other_major(struct ssc_call *c)
{
	c->arg.make.rdev_major++;
}
static void other_minor(struct ssc_call *c)
{
	c->arg.make.rdev_minor++;
}

static const struct {
	enum ssc_op op;
	void (*change)(struct ssc_call *call);
} differences[] = {
	{SSC_OP_REMOVE, other_fh},       {SSC_OP_REMOVE, longer_fh},
	{SSC_OP_REMOVE, other_uid},      {SSC_OP_REMOVE, other_gid},
	{SSC_OP_REMOVE, other_group},    {SSC_OP_REMOVE, more_groups},
	{SSC_OP_REMOVE, other_name},     {SSC_OP_RENAME, other_text},
	{SSC_OP_RENAME, other_to_dir},   {SSC_OP_LINK, other_to_dir},
	{SSC_OP_LINK, other_name},       {SSC_OP_SYMLINK, other_text},
	{SSC_OP_CREATE, other_how},      {SSC_OP_CREATE, other_create_mode},
	{SSC_OP_CREATE, no_create_mode}, {SSC_OP_CREATE, create_with_size},
	{SSC_OP_MKDIR, other_make_uid},  {SSC_OP_MKDIR, no_make_uid},
	{SSC_OP_MKDIR, other_make_gid},  {SSC_OP_MKDIR, other_mtime_s},
	{SSC_OP_MKDIR, other_mtime_ns},  {SSC_OP_MKDIR, server_mtime},
	{SSC_OP_MKDIR, server_atime},    {SSC_OP_MKNOD, other_type},
	{SSC_OP_MKNOD, other_major},     {SSC_OP_MKNOD, other_minor},
};
#define N_DIFFERENCES (int)(sizeof(differences) / sizeof(differences[0]))

START_TEST(another_request_does_not_join)
{
	struct ssc_call *other = sample(differences[_i].op);

	/* Pending, since another request for the same name makes a known outcome void. */
	push(SSC_OP_N, FAKE_LATE, SSC_OK);
	push(SSC_OP_N, FAKE_REPLY, SSC_E_ROFS);
	ck_assert_int_eq(run(1, sample(differences[_i].op)), SSC_E_TIMEDOUT);
	differences[_i].change(other);
	ck_assert_int_eq(run(1, other), SSC_E_ROFS);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
}
END_TEST

START_TEST(another_client_does_not_join)
{
	push(SSC_OP_MKDIR, FAKE_LATE, SSC_OK);
	push(SSC_OP_MKDIR, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(mkdir_as(1, "d"), SSC_E_TIMEDOUT);
	ck_assert_int_eq(mkdir_as(2, "d"), SSC_E_EXIST);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
}
END_TEST

START_TEST(another_operation_does_not_join)
{
	push(SSC_OP_REMOVE, FAKE_LATE, SSC_OK);
	push(SSC_OP_RMDIR, FAKE_REPLY, SSC_E_NOTDIR);
	ck_assert_int_eq(run(1, sample(SSC_OP_REMOVE)), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, sample(SSC_OP_RMDIR)), SSC_E_NOTDIR);
}
END_TEST

START_TEST(what_is_not_part_of_a_request_does_not_matter)
{
	struct ssc_call *first = sample(SSC_OP_RENAME);
	struct ssc_call *retry = sample(SSC_OP_RENAME);

	push(SSC_OP_RENAME, FAKE_LATE_AT_ONCE, SSC_OK);
	first->arg.rename.object = (struct ssc_fh){.len = 1, .data = "o"};
	first->cred.groups[1] = 99; /* behind n_groups */
	ck_assert_int_eq(run(1, first), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, retry), SSC_OK);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

START_TEST(exclusive_creates_are_told_apart_by_their_verifier)
{
	struct ssc_call *call[3];
	int i;

	for (i = 0; i < 3; i++) {
		call[i] = new_call(SSC_OP_CREATE, "f");
		call[i]->arg.create.how = SSC_CREATE_EXCLUSIVE;
		call[i]->arg.create.set.mode = i; /* not sent, so of no account */
	}
	call[1]->arg.create.verf[7] = 1;
	push(SSC_OP_CREATE, FAKE_LATE, SSC_OK);
	push(SSC_OP_CREATE, FAKE_REPLY, SSC_E_EXIST);
	ck_assert_int_eq(run(1, call[0]), SSC_E_TIMEDOUT);
	ck_assert_int_eq(run(1, call[1]), SSC_E_EXIST);
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(run(1, call[2]), SSC_OK);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync_key");
	TCase *keys = add_case(suite, "keys");

	tcase_add_loop_test(keys, the_same_request_joins, 0,
			    (int)(sizeof(joining_ops) / sizeof(joining_ops[0])));
	tcase_add_loop_test(keys, another_request_does_not_join, 0, N_DIFFERENCES);
	tcase_add_test(keys, another_client_does_not_join);
	tcase_add_test(keys, another_operation_does_not_join);
	tcase_add_test(keys, what_is_not_part_of_a_request_does_not_matter);
	tcase_add_test(keys, exclusive_creates_are_told_apart_by_their_verifier);
	return unit_main(suite);
}
