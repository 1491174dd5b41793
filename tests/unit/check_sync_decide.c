/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_sync_decide.c - EXIST and NOENT of a request that was perhaps carried out before.
 *
 * Every row of the table in ssc/sync_call.h: what fits, what does not, and follow-ups that fail.
 */
#include "ssc/clock.h"
#include "sync_unit.h"

enum { UID = 1, OTHER_UID = 77, NOBODY = 65534 };

static const uint8_t verf[SSC_VERF_BYTES] = {0x81, 2, 3, 4, 0x95, 6, 7, 8};

/* A request of @op that asks for something definite. */
static struct ssc_call *request(enum ssc_op op)
{
	struct ssc_call *call = new_call(op, "n");
	struct ssc_sattr set = {.set_mode = true, .mode = 0640};

	if (op == SSC_OP_CREATE) {
		call->arg.create.how = SSC_CREATE_GUARDED;
		call->arg.create.set = set;
	} else if (op == SSC_OP_MKDIR || op == SSC_OP_SYMLINK || op == SSC_OP_MKNOD) {
		call->arg.make.set = set;
		call->arg.make.type = SSC_FT_CHR;
		call->arg.make.rdev_major = 1;
		call->arg.make.rdev_minor = 2;
	} else if (op == SSC_OP_LINK || op == SSC_OP_RENAME) {
		call->arg.rename.to_dir = (struct ssc_fh){.len = 2, .data = "to"};
	}
	if (op == SSC_OP_RENAME)
		call->arg.rename.object = (struct ssc_fh){.len = 4, .data = "new"};
	if (op == SSC_OP_LINK)
		call->fh = (struct ssc_fh){.len = 4, .data = "new"};
	if (op == SSC_OP_RENAME || op == SSC_OP_SYMLINK)
		ck_assert_int_eq(ssc_call_set_text(call, "t"), SSC_OK);
	return call;
}

/* What LOOKUP answers when the first sending of request(@op) was carried out. */
static struct fake_step made(enum ssc_op op)
{
	struct fake_step step = {
		.op = SSC_OP_LOOKUP,
		.fh = {.len = 4, .data = "new"},
		.has_attrs = true,
		.attrs = {.type = SSC_FT_REG, .mode = 0640, .nlink = 1, .uid = UID, .fileid = 99}};

	if (op == SSC_OP_MKDIR) {
		step.attrs.type = SSC_FT_DIR;
		step.attrs.nlink = 2;
		step.attrs.size = 4096;
	} else if (op == SSC_OP_SYMLINK) {
		step.attrs.type = SSC_FT_LNK;
		step.attrs.mode = 0777;
	} else if (op == SSC_OP_MKNOD) {
		step.attrs.type = SSC_FT_CHR;
		step.attrs.rdev_major = 1;
		step.attrs.rdev_minor = 2;
	}
	return step;
}

static void push_retried(enum ssc_op op, enum ssc_err err)
{
	struct fake_step step = {.op = op, .err = err, .retried = true};

	fake_upstream_push(fake, &step);
}

static void push_readlink(enum ssc_err err, const char *target)
{
	struct fake_step step = {.op = SSC_OP_READLINK, .err = err, .target = target};

	fake_upstream_push(fake, &step);
}

static const enum ssc_op looking_ops[] = {SSC_OP_CREATE, SSC_OP_MKDIR, SSC_OP_SYMLINK,
					  SSC_OP_MKNOD,  SSC_OP_LINK,  SSC_OP_RENAME};
#define N_LOOKING (int)(sizeof(looking_ops) / sizeof(looking_ops[0]))

static enum ssc_err plain_error(enum ssc_op op)
{
	return op == SSC_OP_RENAME ? SSC_E_NOENT : SSC_E_EXIST;
}

/* ---- what fits ---- */

START_TEST(what_the_first_sending_made_is_ok)
{
	enum ssc_op op = looking_ops[_i];
	struct ssc_call *call = request(op);
	struct fake_step step = made(op);
	struct fake_record record;

	push_retried(op, plain_error(op));
	fake_upstream_push(fake, &step);
	if (op == SSC_OP_SYMLINK)
		push_readlink(SSC_OK, "t");
	ck_assert_int_eq(ssc_caller_run(caller, 1, &call), SSC_OK);
	ck_assert_int_eq(call->err, SSC_OK);
	if (op == SSC_OP_LINK) {
		ck_assert(call->has_attrs);
		ck_assert_uint_eq(call->attrs.fileid, 99);
	} else if (op != SSC_OP_RENAME) {
		ck_assert_uint_eq(call->res.object.fh.len, 4);
		ck_assert_str_eq((char *)call->res.object.fh.data, "new");
		ck_assert(call->res.object.has_attrs);
		ck_assert_uint_eq(call->res.object.attrs.fileid, 99);
	}
	record = fake_upstream_record(fake, 1);
	ck_assert_str_eq(record.name, op == SSC_OP_RENAME ? "t" : "n");
	ck_assert_str_eq((char *)record.fh.data,
			 op == SSC_OP_RENAME || op == SSC_OP_LINK ? "to" : "dir");
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ssc_call_put(call);
}
END_TEST

START_TEST(what_was_sent_once_is_not_doubted)
{
	enum ssc_op op = looking_ops[_i];

	push(op, FAKE_REPLY, plain_error(op));
	ck_assert_int_eq(run(1, request(op)), plain_error(op));
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

START_TEST(other_errors_are_not_doubted)
{
	enum ssc_op op = looking_ops[_i];
	/* NOENT is the parent's for those that make something, EXIST the target's for RENAME. */
	enum ssc_err other = op == SSC_OP_RENAME ? SSC_E_EXIST : SSC_E_NOENT;

	push_retried(op, other);
	push_retried(op, SSC_E_ACCES);
	push_retried(op, SSC_OK);
	ck_assert_int_eq(run(1, request(op)), other);
	ck_assert_int_eq(run(1, request(op)), SSC_E_ACCES);
	ck_assert_int_eq(run(1, request(op)), SSC_OK);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 3);
}
END_TEST

static const enum ssc_op removing_ops[] = {SSC_OP_REMOVE, SSC_OP_RMDIR};

START_TEST(what_is_gone_was_removed_by_the_first_sending)
{
	enum ssc_op op = removing_ops[_i];

	push_retried(op, SSC_E_NOENT);
	push_retried(op, SSC_E_NOTEMPTY);
	push(op, FAKE_REPLY, SSC_E_NOENT);
	ck_assert_int_eq(run(1, request(op)), SSC_OK);
	ck_assert_int_eq(run(1, request(op)), SSC_E_NOTEMPTY);
	ck_assert_int_eq(run(1, request(op)), SSC_E_NOENT); /* sent once */
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 3);
}
END_TEST

START_TEST(an_unknown_object_is_not_looked_for)
{
	struct ssc_call *call = request(SSC_OP_RENAME);

	call->arg.rename.object.len = 0;
	push_retried(SSC_OP_RENAME, SSC_E_NOENT);
	ck_assert_int_eq(run(1, call), SSC_E_NOENT);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

START_TEST(follow_ups_are_made_for_the_same_user_in_time)
{
	struct fake_step step = made(SSC_OP_SYMLINK);
	int i;

	step.has_attrs = false;
	push_retried(SSC_OP_SYMLINK, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	step = made(SSC_OP_SYMLINK);
	step.op = SSC_OP_GETATTR;
	fake_upstream_push(fake, &step);
	push_readlink(SSC_OK, "t");
	ck_assert_int_eq(run(1, request(SSC_OP_SYMLINK)), SSC_OK);
	for (i = 1; i < 4; i++) { /* LOOKUP, GETATTR, READLINK */
		struct fake_record record = fake_upstream_record(fake, i);

		ck_assert_uint_eq(record.cred.uid, 1);
		ck_assert_uint_eq(record.cred.gid, 2);
		ck_assert_uint_eq(record.cred.n_groups, 1);
		ck_assert_uint_eq(record.cred.groups[0], 3);
		ck_assert_uint_eq(record.answer_by_ns, ssc_clock_now_ns() + 2 * LIMIT_NS);
		if (i > 1)
			ck_assert_str_eq((char *)record.fh.data, "new");
	}
}
END_TEST

/* ---- what does not fit ---- */

static void is_dir(struct fake_step *s)
{
	s->attrs.type = SSC_FT_DIR;
}
static void is_file(struct fake_step *s)
{
	s->attrs.type = SSC_FT_REG;
}
static void is_block(struct fake_step *s)
{
	s->attrs.type = SSC_FT_BLK;
}
static void has_data(struct fake_step *s)
{
	s->attrs.size = 1;
}
static void has_3_links(struct fake_step *s)
{
	s->attrs.nlink = 3;
}
static void has_2_links(struct fake_step *s)
{
	s->attrs.nlink = 2;
}
static void has_other_mode(struct fake_step *s)
{
	s->attrs.mode = 0600;
}
static void is_setuid(struct fake_step *s)
{
	s->attrs.mode |= 04000;
}
static void has_other_owner(struct fake_step *s)
{
	s->attrs.uid = OTHER_UID;
}
static void has_other_fh(struct fake_step *s)
{
	s->fh.data[0] = 'N';
}
static void has_shorter_fh(struct fake_step *s)
{
	s->fh.len--;
}
static void has_no_fh(struct fake_step *s)
{
	s->fh.len = 0;
}
static void has_other_major(struct fake_step *s)
{
	s->attrs.rdev_major++;
}
static void has_other_minor(struct fake_step *s)
{
	s->attrs.rdev_minor++;
}
static void is_not_there(struct fake_step *s)
{
	s->err = SSC_E_NOENT;
}
static void is_forbidden(struct fake_step *s)
{
	s->err = SSC_E_ACCES;
}
static void is_nonsense(struct fake_step *s)
{
	s->err = SSC_E_PROTO;
}

static const struct {
	enum ssc_op op;
	void (*change)(struct fake_step *step);
} misfits[] = {
	{SSC_OP_CREATE, is_dir},         {SSC_OP_CREATE, has_data},
	{SSC_OP_CREATE, has_2_links},    {SSC_OP_CREATE, has_other_mode},
	{SSC_OP_CREATE, is_setuid},      {SSC_OP_CREATE, has_other_owner},
	{SSC_OP_CREATE, has_no_fh},      {SSC_OP_CREATE, is_not_there},
	{SSC_OP_CREATE, is_forbidden},   {SSC_OP_CREATE, is_nonsense},
	{SSC_OP_MKDIR, is_file},         {SSC_OP_MKDIR, has_3_links},
	{SSC_OP_MKDIR, has_other_mode},  {SSC_OP_MKDIR, has_other_owner},
	{SSC_OP_MKDIR, has_no_fh},       {SSC_OP_MKDIR, is_not_there},
	{SSC_OP_SYMLINK, is_file},       {SSC_OP_SYMLINK, has_no_fh},
	{SSC_OP_SYMLINK, is_not_there},  {SSC_OP_MKNOD, is_block},
	{SSC_OP_MKNOD, has_other_major}, {SSC_OP_MKNOD, has_other_minor},
	{SSC_OP_MKNOD, has_2_links},     {SSC_OP_MKNOD, has_other_mode},
	{SSC_OP_MKNOD, has_other_owner}, {SSC_OP_MKNOD, has_no_fh},
	{SSC_OP_MKNOD, is_forbidden},    {SSC_OP_LINK, has_other_fh},
	{SSC_OP_LINK, has_shorter_fh},   {SSC_OP_LINK, has_no_fh},
	{SSC_OP_LINK, is_not_there},     {SSC_OP_RENAME, has_other_fh},
	{SSC_OP_RENAME, has_shorter_fh}, {SSC_OP_RENAME, has_no_fh},
	{SSC_OP_RENAME, is_not_there},   {SSC_OP_RENAME, is_forbidden},
};
#define N_MISFITS (int)(sizeof(misfits) / sizeof(misfits[0]))

START_TEST(what_another_made_is_answered_as_it_came)
{
	enum ssc_op op = misfits[_i].op;
	struct fake_step step = made(op);
	struct ssc_call *call = request(op);

	misfits[_i].change(&step);
	push_retried(op, plain_error(op));
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(ssc_caller_run(caller, 1, &call), plain_error(op));
	ck_assert_int_eq(call->err, plain_error(op));
	ck_assert(!call->res.object.has_attrs);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 2);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
	ssc_call_put(call);
}
END_TEST

static const struct {
	enum ssc_err err;
	const char *target;
} wrong_targets[] = {
	{SSC_OK, "T"},  {SSC_OK, "tt"},      {SSC_OK, ""},
	{SSC_OK, NULL}, {SSC_E_INVAL, NULL}, {SSC_E_PROTO, "t"},
};

START_TEST(a_link_to_elsewhere_is_another_s)
{
	struct fake_step step = made(SSC_OP_SYMLINK);

	push_retried(SSC_OP_SYMLINK, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	push_readlink(wrong_targets[_i].err, wrong_targets[_i].target);
	ck_assert_int_eq(run(1, request(SSC_OP_SYMLINK)), SSC_E_EXIST);
}
END_TEST

START_TEST(an_inherited_set_gid_bit_is_no_difference)
{
	struct fake_step step = made(SSC_OP_MKDIR);

	step.attrs.mode |= 02000;
	step.attrs.nlink = 1; /* btrfs counts so */
	push_retried(SSC_OP_MKDIR, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(run(1, request(SSC_OP_MKDIR)), SSC_OK);
}
END_TEST

START_TEST(an_unchecked_create_does_not_expect_exist)
{
	struct ssc_call *call = request(SSC_OP_CREATE);

	call->arg.create.how = SSC_CREATE_UNCHECKED;
	push_retried(SSC_OP_CREATE, SSC_E_EXIST);
	ck_assert_int_eq(run(1, call), SSC_E_EXIST);
	ck_assert_uint_eq(fake_upstream_n_calls(fake, SSC_OP_N), 1);
}
END_TEST

START_TEST(only_the_size_asked_for_fits)
{
	struct ssc_call *call = request(SSC_OP_CREATE);
	struct fake_step step = made(SSC_OP_CREATE);

	call->arg.create.set.set_size = true;
	call->arg.create.set.size = 5;
	step.attrs.size = _i;
	push_retried(SSC_OP_CREATE, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(run(1, call), _i == 5 ? SSC_OK : SSC_E_EXIST);
}
END_TEST

/* ---- owners ---- */

static const struct {
	uint32_t uid; /* of the caller */
	bool set_uid; /* to OTHER_UID */
	bool set_mode;
	uint32_t owner; /* of what is there */
	enum ssc_err expected;
} owners[] = {
	{UID, false, true, UID, SSC_OK},
	{UID, false, false, UID, SSC_OK},
	{UID, false, true, NOBODY, SSC_E_EXIST},
	{UID, true, true, OTHER_UID, SSC_OK},
	{UID, true, true, UID, SSC_E_EXIST},
	{0, false, true, 0, SSC_OK},
	{0, false, false, 0, SSC_OK},
	{0, false, true, NOBODY, SSC_OK}, /* root, squashed by the upstream */
	{0, false, false, NOBODY, SSC_E_EXIST},
};

static void try_owner(enum ssc_op op, int i)
{
	struct ssc_call *call = request(op);
	struct ssc_sattr *set = op == SSC_OP_CREATE ? &call->arg.create.set : &call->arg.make.set;
	struct fake_step step = made(op);

	call->cred.uid = owners[i].uid;
	set->set_uid = owners[i].set_uid;
	set->uid = OTHER_UID;
	set->set_mode = owners[i].set_mode;
	step.attrs.uid = owners[i].owner;
	push_retried(op, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(run(1, call), owners[i].expected);
}

START_TEST(the_owner_must_fit)
{
	try_owner(SSC_OP_CREATE, _i);
	try_owner(SSC_OP_MKDIR, _i);
	try_owner(SSC_OP_MKNOD, _i);
}
END_TEST

/* ---- exclusive create ---- */

static const struct {
	int64_t atime_s, mtime_s;
	enum ssc_err expected;
} verifier_times[] = {
	{0x01020304, 0x15060708, SSC_OK}, /* big-endian, without the top bits */
	{0x15060708, 0x01020304, SSC_OK},
	{0x81020304, 0x95060708, SSC_OK}, /* with them */
	{0x04030281, 0x08070695, SSC_OK}, /* little-endian */
	{0x08070695, 0x04030281, SSC_OK},
	{0x01020304, 0x15060709, SSC_E_EXIST},
	{0x01020305, 0x15060708, SSC_E_EXIST},
	{0x01020304, 0x01020304, SSC_E_EXIST},
	{0x01020304, 0x08070695, SSC_E_EXIST}, /* one of each */
	{0, 0, SSC_E_EXIST},
};
#define N_VERIFIER_TIMES (int)(sizeof(verifier_times) / sizeof(verifier_times[0]))

START_TEST(the_verifier_is_found_in_the_times)
{
	struct ssc_call *call = request(SSC_OP_CREATE);
	struct fake_step step = made(SSC_OP_CREATE);

	call->arg.create.how = SSC_CREATE_EXCLUSIVE;
	memcpy(call->arg.create.verf, verf, sizeof(verf));
	step.attrs.atime.s = verifier_times[_i].atime_s;
	step.attrs.mtime.s = verifier_times[_i].mtime_s;
	step.attrs.uid = OTHER_UID; /* the verifier is proof enough */
	push_retried(SSC_OP_CREATE, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(run(1, call), verifier_times[_i].expected);
}
END_TEST

START_TEST(a_directory_has_no_create_verifier)
{
	struct ssc_call *call = request(SSC_OP_CREATE);
	struct fake_step step = made(SSC_OP_MKDIR);

	call->arg.create.how = SSC_CREATE_EXCLUSIVE; /* all zero, as are the times */
	push_retried(SSC_OP_CREATE, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(run(1, call), SSC_E_EXIST);
}
END_TEST

/* ---- follow-ups ---- */

START_TEST(missing_attributes_are_asked_for)
{
	struct ssc_call *call = request(SSC_OP_MKDIR);
	struct fake_step step = made(SSC_OP_MKDIR);

	push_retried(SSC_OP_MKDIR, SSC_E_EXIST);
	step.has_attrs = false;
	fake_upstream_push(fake, &step);
	step = made(SSC_OP_MKDIR);
	step.op = SSC_OP_GETATTR;
	fake_upstream_push(fake, &step);
	ck_assert_int_eq(ssc_caller_run(caller, 1, &call), SSC_OK);
	ck_assert_uint_eq(call->res.object.attrs.fileid, 99);
	ssc_call_put(call);
}
END_TEST

static const struct {
	enum ssc_err err, expected;
} getattr_errors[] = {
	{SSC_E_STALE, SSC_E_EXIST},
	{SSC_OK, SSC_E_EXIST}, /* without attributes again */
	{SSC_E_JUKEBOX, SSC_E_JUKEBOX},
	{SSC_E_DOWN, SSC_E_DOWN},
};

START_TEST(attributes_that_cannot_be_had)
{
	struct fake_step step = made(SSC_OP_MKDIR);

	push_retried(SSC_OP_MKDIR, SSC_E_EXIST);
	step.has_attrs = false;
	fake_upstream_push(fake, &step);
	push(SSC_OP_GETATTR, FAKE_REPLY, getattr_errors[_i].err);
	ck_assert_int_eq(run(1, request(SSC_OP_MKDIR)), getattr_errors[_i].expected);
}
END_TEST

static const enum ssc_err passing[] = {SSC_E_TIMEDOUT, SSC_E_DOWN, SSC_E_CONN, SSC_E_JUKEBOX};

/* First EXIST and no LOOKUP to be had; the client comes back, and now it can be decided. */
START_TEST(what_cannot_be_decided_now_is_decided_later)
{
	enum ssc_err err = passing[_i / N_LOOKING];
	enum ssc_op op = looking_ops[_i % N_LOOKING];
	struct fake_step step = made(op);

	push_retried(op, plain_error(op));
	push(SSC_OP_LOOKUP, err == SSC_E_TIMEDOUT ? FAKE_LATE_AT_ONCE : FAKE_REPLY, err);
	ck_assert_int_eq(run(1, request(op)), err);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
	push(op, FAKE_REPLY, plain_error(op)); /* sent once, but known to be a repetition */
	fake_upstream_push(fake, &step);
	if (op == SSC_OP_SYMLINK)
		push_readlink(SSC_OK, "t");
	ck_assert_int_eq(run(1, request(op)), SSC_OK);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

START_TEST(a_target_that_cannot_be_read_now_is_decided_later)
{
	struct fake_step step = made(SSC_OP_SYMLINK);

	push_retried(SSC_OP_SYMLINK, SSC_E_EXIST);
	fake_upstream_push(fake, &step);
	push_readlink(SSC_E_JUKEBOX, NULL);
	ck_assert_int_eq(run(1, request(SSC_OP_SYMLINK)), SSC_E_JUKEBOX);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 1);
}
END_TEST

START_TEST(shutdown_decides_nothing)
{
	push_retried(SSC_OP_MKDIR, SSC_E_EXIST);
	push(SSC_OP_LOOKUP, FAKE_REPLY, SSC_E_SHUTDOWN);
	ck_assert_int_eq(run(1, request(SSC_OP_MKDIR)), SSC_E_SHUTDOWN);
	ck_assert_uint_eq(ssc_caller_n_late(caller), 0);
}
END_TEST

static void add_what_fits(Suite *suite)
{
	TCase *fits = add_case(suite, "fits");

	tcase_add_loop_test(fits, what_the_first_sending_made_is_ok, 0, N_LOOKING);
	tcase_add_loop_test(fits, what_was_sent_once_is_not_doubted, 0, N_LOOKING);
	tcase_add_loop_test(fits, other_errors_are_not_doubted, 0, N_LOOKING);
	tcase_add_loop_test(fits, what_is_gone_was_removed_by_the_first_sending, 0, 2);
	tcase_add_test(fits, an_unknown_object_is_not_looked_for);
	tcase_add_test(fits, follow_ups_are_made_for_the_same_user_in_time);
}

static void add_what_does_not(Suite *suite)
{
	TCase *not = add_case(suite, "misfits");

	tcase_add_loop_test(not, what_another_made_is_answered_as_it_came, 0, N_MISFITS);
	tcase_add_loop_test(not, a_link_to_elsewhere_is_another_s, 0,
			    (int)(sizeof(wrong_targets) / sizeof(wrong_targets[0])));
	tcase_add_test(not, an_inherited_set_gid_bit_is_no_difference);
	tcase_add_test(not, an_unchecked_create_does_not_expect_exist);
	tcase_add_loop_test(not, only_the_size_asked_for_fits, 4, 7);
	tcase_add_loop_test(not, the_owner_must_fit, 0, (int)(sizeof(owners) / sizeof(owners[0])));
	tcase_add_loop_test(not, the_verifier_is_found_in_the_times, 0, N_VERIFIER_TIMES);
	tcase_add_test(not, a_directory_has_no_create_verifier);
}

int main(void)
{
	Suite *suite = suite_create("sync_decide");
	TCase *follow_ups = add_case(suite, "follow-ups");

	add_what_fits(suite);
	add_what_does_not(suite);
	tcase_add_test(follow_ups, missing_attributes_are_asked_for);
	tcase_add_loop_test(follow_ups, attributes_that_cannot_be_had, 0,
			    (int)(sizeof(getattr_errors) / sizeof(getattr_errors[0])));
	tcase_add_loop_test(follow_ups, what_cannot_be_decided_now_is_decided_later, 0,
			    4 * N_LOOKING);
	tcase_add_test(follow_ups, a_target_that_cannot_be_read_now_is_decided_later);
	tcase_add_test(follow_ups, shutdown_decides_nothing);
	return unit_main(suite);
}
