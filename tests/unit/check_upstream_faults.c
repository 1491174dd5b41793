/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_faults.c - the upstream on libnfs when connections break and replies are wrong.
 */
#include "upstream_unit.h"

#define MIB (1u << 20)

static struct ssc_fh file_fh;
static uint8_t pattern[MIB], buffer[MIB];
static struct iovec iov;

/* Server, upstream, a file of 1 MiB of pattern, a symlink. */
static void setup_faults(void)
{
	struct asked *link;
	size_t i;

	setup_both();
	for (i = 0; i < MIB; i++)
		pattern[i] = (uint8_t)(i * 7 + i / 251);
	memset(buffer, 0, sizeof(buffer));
	nfs3_server_poke(server, "f", pattern, MIB);
	file_fh = fh_of("f");
	link = ask(SSC_OP_SYMLINK, "l");
	ck_assert_int_eq(ssc_call_set_text(link->call, "target"), SSC_OK);
	ck_assert_int_eq(run_and_forget(link), SSC_OK);
	iov = (struct iovec){buffer, 4096};
}

/* A call of each kind that succeeds when nothing is wrong. */
static struct asked *usual(enum ssc_op op)
{
	struct asked *a;

	switch (op) {
	case SSC_OP_READ:
		return ask_io(op, &file_fh, 0, &iov);
	case SSC_OP_WRITE:
		a = ask_io(op, &file_fh, 0, &iov);
		a->call->arg.io.stable = SSC_FILE_SYNC;
		return a;
	case SSC_OP_COMMIT:
		return ask_io(op, &file_fh, 0, &(struct iovec){NULL, 0});
	case SSC_OP_READLINK:
		a = ask(op, NULL);
		a->call->fh = fh_of("l");
		return a;
	case SSC_OP_LOOKUP:
	case SSC_OP_REMOVE:
		return ask(op, "f");
	case SSC_OP_MKDIR:
	case SSC_OP_CREATE:
		return ask(op, "new");
	case SSC_OP_MKNOD:
		a = ask(op, "new");
		a->call->arg.make.type = SSC_FT_FIFO;
		return a;
	case SSC_OP_SYMLINK:
		a = ask(op, "new");
		ck_assert_int_eq(ssc_call_set_text(a->call, "t"), SSC_OK);
		return a;
	case SSC_OP_RENAME:
		a = ask(op, "f");
		a->call->arg.rename.to_dir = root_fh;
		ck_assert_int_eq(ssc_call_set_text(a->call, "g"), SSC_OK);
		return a;
	case SSC_OP_LINK:
		a = ask(op, "g");
		a->call->fh = file_fh;
		a->call->arg.rename.to_dir = root_fh;
		return a;
	case SSC_OP_READDIRPLUS:
		a = ask(op, NULL);
		a->call->arg.readdir.max_bytes = 4096;
		return a;
	default:
		return ask(op, NULL);
	}
}

/* ---- broken connections ---- */

static const struct {
	enum ssc_op op;
	enum nfs3_proc proc;
} all_ops[] = {
	{SSC_OP_GETATTR, NFS3_GETATTR},   {SSC_OP_SETATTR, NFS3_SETATTR},
	{SSC_OP_LOOKUP, NFS3_LOOKUP},     {SSC_OP_READLINK, NFS3_READLINK},
	{SSC_OP_READ, NFS3_READ},         {SSC_OP_WRITE, NFS3_WRITE},
	{SSC_OP_CREATE, NFS3_CREATE},     {SSC_OP_MKDIR, NFS3_MKDIR},
	{SSC_OP_SYMLINK, NFS3_SYMLINK},   {SSC_OP_MKNOD, NFS3_MKNOD},
	{SSC_OP_REMOVE, NFS3_REMOVE},     {SSC_OP_RENAME, NFS3_RENAME},
	{SSC_OP_LINK, NFS3_LINK},         {SSC_OP_READDIRPLUS, NFS3_READDIRPLUS},
	{SSC_OP_FSSTAT, NFS3_FSSTAT},     {SSC_OP_FSINFO, NFS3_FSINFO},
	{SSC_OP_PATHCONF, NFS3_PATHCONF}, {SSC_OP_COMMIT, NFS3_COMMIT},
};
#define N_OPS (int)(sizeof(all_ops) / sizeof(all_ops[0]))

static const enum nfs3_fault_kind drops[] = {NFS3_DROP_BEFORE, NFS3_DROP_EXECUTED,
					     NFS3_DROP_INSIDE};

START_TEST(a_call_whose_connection_breaks_is_sent_again_with_its_xid)
{
	enum nfs3_proc proc = all_ops[_i / 3].proc;
	struct asked *a = usual(all_ops[_i / 3].op);
	unsigned int before = nfs3_server_n_calls(server, proc);

	nfs3_server_set_reply_cache(server, true);
	fault(proc, drops[_i % 3]);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert(a->call->retried);
	forget(a);
	ck_assert_uint_eq(nfs3_server_n_calls(server, proc), before + 2);
	ck_assert_uint_eq(nfs3_server_record(server, proc, before).xid,
			  nfs3_server_record(server, proc, before + 1).xid);
	ck_assert_uint_eq(nfs3_server_record(server, proc, before + 1).replayed,
			  drops[_i % 3] != NFS3_DROP_BEFORE);
	ck_assert_uint_eq(nfs3_server_n_connections(server), 2);
	ck_assert_uint_eq(stats().resent, 1);
	ck_assert_uint_eq(stats().connects, 2);
}
END_TEST

static const struct {
	enum ssc_op op;
	enum nfs3_proc proc;
	enum ssc_err expected;
} repeated[] = {
	{SSC_OP_MKDIR, NFS3_MKDIR, SSC_E_EXIST},   {SSC_OP_SYMLINK, NFS3_SYMLINK, SSC_E_EXIST},
	{SSC_OP_MKNOD, NFS3_MKNOD, SSC_E_EXIST},   {SSC_OP_LINK, NFS3_LINK, SSC_E_EXIST},
	{SSC_OP_REMOVE, NFS3_REMOVE, SSC_E_NOENT}, {SSC_OP_RENAME, NFS3_RENAME, SSC_E_NOENT},
};

START_TEST(without_a_reply_cache_the_submitter_learns_of_the_repetition)
{
	struct asked *a = usual(repeated[_i].op);

	fault(repeated[_i].proc, NFS3_DROP_EXECUTED);
	ck_assert_int_eq(run(a), repeated[_i].expected);
	ck_assert(a->call->retried);
	forget(a);
}
END_TEST

START_TEST(a_connection_that_ends_behind_a_reply_costs_nothing)
{
	struct asked *a = usual(SSC_OP_GETATTR);
	int i;

	fault(NFS3_GETATTR, NFS3_DROP_AFTER_REPLY);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert(!a->call->retried);
	forget(a);
	for (i = 0; i < 5; i++)
		round_trip();
	ck_assert_uint_eq(nfs3_server_n_connections(server), 2);
}
END_TEST

START_TEST(data_cut_off_by_a_broken_connection_is_read_again)
{
	struct asked *a;
	int i;

	iov.iov_len = MIB;
	fault_times(NFS3_READ, NFS3_DROP_INSIDE, 5);
	a = usual(SSC_OP_READ);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.io.count, MIB);
	ck_assert(memcmp(buffer, pattern, MIB) == 0);
	forget(a);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_READ), 6);
	for (i = 0; i < 3; i++) { /* nothing is left over on the next connections */
		memset(buffer, 0, MIB);
		ck_assert_int_eq(run_and_forget(usual(SSC_OP_READ)), SSC_OK);
		ck_assert(memcmp(buffer, pattern, MIB) == 0);
	}
}
END_TEST

START_TEST(all_calls_in_flight_survive_a_broken_connection)
{
	enum { N = 40 };
	struct nfs3_fault f = {.proc = NFS3_READ, .kind = NFS3_DROP_INSIDE, .skip = 20};
	struct iovec iovs[N];
	struct asked *a[N];
	int i;

	nfs3_server_fault(server, &f);
	for (i = 0; i < N; i++) {
		iovs[i] = (struct iovec){buffer + i * 4096, 4096};
		a[i] = ask_io(SSC_OP_READ, &file_fh, (uint64_t)i * 4096, &iovs[i]);
		submit(a[i]);
	}
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(wait_done(a[i]), SSC_OK);
		forget(a[i]);
	}
	ck_assert(memcmp(buffer, pattern, N * 4096) == 0);
	ck_assert_uint_eq(nfs3_server_n_connections(server), 2);
}
END_TEST

START_TEST(a_server_that_comes_back_gets_what_waited)
{
	enum { N = 20 };
	struct asked *a[N];
	int i;

	fault_times(NFS3_FSSTAT, NFS3_HOLD_EXECUTED, N);
	for (i = 0; i < N; i++) {
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		submit(a[i]);
	}
	ck_assert(nfs3_server_wait_calls(server, NFS3_FSSTAT, N));
	nfs3_server_crash(server);
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(wait_done(a[i]), SSC_OK);
		ck_assert(a[i]->call->retried);
		forget(a[i]);
	}
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_FSSTAT), 2 * N);
}
END_TEST

/* ---- pieces ---- */

START_TEST(a_reply_in_fragments_is_put_together)
{
	iov.iov_len = 100000;
	fault(NFS3_READ, NFS3_FRAGMENTS);
	ck_assert_int_eq(run_and_forget(usual(SSC_OP_READ)), SSC_OK);
	ck_assert(memcmp(buffer, pattern, 100000) == 0);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_READ), 1);
}
END_TEST

START_TEST(a_reply_may_come_in_halves)
{
	struct asked *a;

	iov.iov_len = MIB;
	fault(NFS3_READ, NFS3_HOLD_HALF);
	a = usual(SSC_OP_READ);
	submit(a);
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 1));
	nfs3_server_release(server);
	ck_assert_int_eq(wait_done(a), SSC_OK);
	ck_assert(memcmp(buffer, pattern, MIB) == 0);
	forget(a);
	ck_assert_uint_eq(nfs3_server_n_connections(server), 1);
}
END_TEST

START_TEST(replies_may_come_in_any_order)
{
	struct asked *slow;

	fault(NFS3_READ, NFS3_HOLD_EXECUTED);
	slow = usual(SSC_OP_READ);
	submit(slow);
	ck_assert(nfs3_server_wait_calls(server, NFS3_READ, 1));
	round_trip();
	ck_assert(!is_done(slow));
	nfs3_server_release(server);
	ck_assert_int_eq(wait_done(slow), SSC_OK);
	ck_assert(memcmp(buffer, pattern, 4096) == 0);
	forget(slow);
}
END_TEST

/* ---- envelopes ---- */

START_TEST(a_reply_to_another_call_is_none_to_this)
{
	struct ssc_upstream_config cfg = config();
	struct asked *a;

	close_upstream();
	cfg.dead_ns = 300 * MS;
	open_upstream(&cfg);
	fault(NFS3_GETATTR, NFS3_WRONG_XID);
	a = usual(SSC_OP_GETATTR);
	ck_assert_int_eq(run(a), SSC_OK); /* sent again, at the dead limit at the latest */
	ck_assert(a->call->retried);
	forget(a);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_GETATTR), 2);
}
END_TEST

static const enum nfs3_fault_kind undecodable[] = {NFS3_TRUNCATED, NFS3_GARBAGE};

START_TEST(a_reply_that_cannot_be_decoded_once_is_asked_for_again)
{
	struct asked *a = usual(all_ops[_i / 2].op);

	nfs3_server_set_reply_cache(server, false);
	fault(all_ops[_i / 2].proc, undecodable[_i % 2]);
	submit(a);
	/* The first sending was carried out, so the second can say so. */
	switch (wait_done(a)) {
	case SSC_OK:
	case SSC_E_PROTO: /* some nonsense can be decoded */
		break;
	case SSC_E_EXIST:
	case SSC_E_NOENT:
		ck_assert(a->call->retried);
		break;
	default:
		ck_abort_msg("%s", ssc_err_str(a->done_err));
	}
	forget(a);
	round_trip();
}
END_TEST

/* What ends their results is of no use to us, and is not read. */
static bool is_end_ignored(enum ssc_op op)
{
	return op == SSC_OP_RENAME || op == SSC_OP_LINK || op == SSC_OP_FSSTAT;
}

START_TEST(a_reply_that_cannot_be_decoded_ever_is_an_error)
{
	struct asked *a = usual(all_ops[_i / 2].op);
	unsigned int n;

	nfs3_server_set_reply_cache(server, false);
	fault_times(all_ops[_i / 2].proc, undecodable[_i % 2], 20);
	submit(a);
	if (undecodable[_i % 2] != NFS3_TRUNCATED || !is_end_ignored(all_ops[_i / 2].op))
		ck_assert_int_eq(wait_done(a), SSC_E_PROTO);
	else
		ck_assert_int_eq(wait_done(a), SSC_OK);
	forget(a);
	n = nfs3_server_clear_faults(server);
	ck_assert_uint_ge(n, 15); /* it was not asked for often */
	round_trip();
}
END_TEST

START_TEST(replies_without_sense_are_counted)
{
	fault_times(NFS3_LOOKUP, NFS3_GARBAGE, 20);
	ck_assert_int_eq(run_and_forget(usual(SSC_OP_LOOKUP)), SSC_E_PROTO);
	nfs3_server_clear_faults(server);
	round_trip();
	ck_assert_uint_ge(stats().bad_replies, 1);
}
END_TEST

static const struct {
	enum nfs3_fault_kind kind;
	enum ssc_err expected;
} envelopes[] = {{NFS3_DENIED, SSC_E_AUTH}, {NFS3_SYSTEM_ERR, SSC_E_PROTO}};

START_TEST(refusals_of_the_envelope_are_told_apart)
{
	fault_times(NFS3_LOOKUP, envelopes[_i].kind, 20);
	ck_assert_int_eq(run_and_forget(usual(SSC_OP_LOOKUP)), envelopes[_i].expected);
	nfs3_server_clear_faults(server);
	round_trip();
}
END_TEST

/* ---- results ---- */

static const struct {
	uint32_t status;
	enum ssc_err expected;
} statuses[] = {
	{1, SSC_E_PERM},         {2, SSC_E_NOENT},           {5, SSC_E_IO},
	{6, SSC_E_NXIO},         {13, SSC_E_ACCES},          {17, SSC_E_EXIST},
	{18, SSC_E_XDEV},        {19, SSC_E_NODEV},          {20, SSC_E_NOTDIR},
	{21, SSC_E_ISDIR},       {22, SSC_E_INVAL},          {27, SSC_E_FBIG},
	{28, SSC_E_NOSPC},       {30, SSC_E_ROFS},           {31, SSC_E_MLINK},
	{63, SSC_E_NAMETOOLONG}, {66, SSC_E_NOTEMPTY},       {69, SSC_E_DQUOT},
	{70, SSC_E_STALE},       {71, SSC_E_STALE},          {10001, SSC_E_BADHANDLE},
	{10002, SSC_E_NOT_SYNC}, {10003, SSC_E_BAD_COOKIE},  {10004, SSC_E_NOTSUPP},
	{10005, SSC_E_TOOSMALL}, {10006, SSC_E_SERVERFAULT}, {10007, SSC_E_BADTYPE},
	{10008, SSC_E_JUKEBOX},  {3, SSC_E_PROTO},           {12345, SSC_E_PROTO},
};
#define N_STATUSES (int)(sizeof(statuses) / sizeof(statuses[0]))

static void expect_status(enum ssc_op op, enum nfs3_proc proc, int i)
{
	struct nfs3_fault f = {.proc = proc, .kind = NFS3_STATUS, .status = statuses[i].status};

	nfs3_server_fault(server, &f);
	ck_assert_int_eq(run_and_forget(usual(op)), statuses[i].expected);
}

START_TEST(every_status_is_translated)
{
	expect_status(SSC_OP_LOOKUP, NFS3_LOOKUP, _i);
	expect_status(SSC_OP_MKDIR, NFS3_MKDIR, _i);
	round_trip();
}
END_TEST

START_TEST(every_operation_can_fail)
{
	enum { NOSPC = 12 };

	expect_status(all_ops[_i].op, all_ops[_i].proc, NOSPC);
	round_trip();
}
END_TEST

static const struct {
	enum ssc_op op;
	enum nfs3_proc proc;
	enum nfs3_fault_kind kind;
} bad_results[] = {
	{SSC_OP_GETATTR, NFS3_GETATTR, NFS3_BAD_TYPE},
	{SSC_OP_SETATTR, NFS3_SETATTR, NFS3_BAD_TYPE},
	{SSC_OP_LOOKUP, NFS3_LOOKUP, NFS3_LONG_FH},
	{SSC_OP_LOOKUP, NFS3_LOOKUP, NFS3_EMPTY_FH},
	{SSC_OP_LOOKUP, NFS3_LOOKUP, NFS3_HUGE_LENGTH},
	{SSC_OP_LOOKUP, NFS3_LOOKUP, NFS3_BAD_TYPE},
	{SSC_OP_READLINK, NFS3_READLINK, NFS3_DATA_TOO_LONG},
	{SSC_OP_READLINK, NFS3_READLINK, NFS3_HUGE_LENGTH},
	{SSC_OP_READ, NFS3_READ, NFS3_DATA_TOO_LONG},
	{SSC_OP_READ, NFS3_READ, NFS3_WRONG_COUNT},
	{SSC_OP_READ, NFS3_READ, NFS3_HUGE_LENGTH},
	{SSC_OP_READ, NFS3_READ, NFS3_BAD_TYPE},
	{SSC_OP_WRITE, NFS3_WRITE, NFS3_WRONG_COUNT},
	{SSC_OP_WRITE, NFS3_WRITE, NFS3_LESS_STABLE},
	{SSC_OP_CREATE, NFS3_CREATE, NFS3_LONG_FH},
	{SSC_OP_CREATE, NFS3_CREATE, NFS3_EMPTY_FH},
	{SSC_OP_CREATE, NFS3_CREATE, NFS3_HUGE_LENGTH},
	{SSC_OP_CREATE, NFS3_CREATE, NFS3_BAD_TYPE},
	{SSC_OP_READDIRPLUS, NFS3_READDIRPLUS, NFS3_LONG_NAME},
	{SSC_OP_READDIRPLUS, NFS3_READDIRPLUS, NFS3_SLASH_NAME},
	{SSC_OP_READDIRPLUS, NFS3_READDIRPLUS, NFS3_EMPTY_NAME},
	{SSC_OP_READDIRPLUS, NFS3_READDIRPLUS, NFS3_HUGE_LENGTH},
	{SSC_OP_READDIRPLUS, NFS3_READDIRPLUS, NFS3_LONG_FH},
	{SSC_OP_READDIRPLUS, NFS3_READDIRPLUS, NFS3_BAD_TYPE},
	{SSC_OP_FSSTAT, NFS3_FSSTAT, NFS3_BAD_TYPE},
	{SSC_OP_COMMIT, NFS3_COMMIT, NFS3_BAD_TYPE},
	{SSC_OP_LINK, NFS3_LINK, NFS3_BAD_TYPE},
	{SSC_OP_REMOVE, NFS3_REMOVE, NFS3_BAD_TYPE},
};
#define N_BAD_RESULTS (int)(sizeof(bad_results) / sizeof(bad_results[0]))

START_TEST(a_result_that_breaks_the_rules_is_an_error)
{
	struct asked *a = usual(bad_results[_i].op);

	nfs3_server_set_reply_cache(server, true); /* so that each sending gets the same */
	fault_times(bad_results[_i].proc, bad_results[_i].kind, 20);
	ck_assert_int_eq(run(a), SSC_E_PROTO);
	forget(a);
	nfs3_server_clear_faults(server);
	round_trip();
	ck_assert_uint_ge(stats().bad_replies, 1);
}
END_TEST

START_TEST(nothing_is_written_behind_the_buffer)
{
	struct asked *a;

	memset(buffer, 0xee, sizeof(buffer));
	fault_times(NFS3_READ, NFS3_DATA_TOO_LONG, 20);
	a = usual(SSC_OP_READ);
	ck_assert_int_eq(run(a), SSC_E_PROTO);
	forget(a);
	ck_assert_int_eq(buffer[4096], 0xee);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	struct asked *a = usual(SSC_OP_MKDIR);

	fault_times(NFS3_ANY, NFS3_NO_ATTRS, 3);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.object.fh.len, 0);
	ck_assert(!a->call->res.object.has_attrs);
	ck_assert(!a->call->has_attrs);
	forget(a);
	a = usual(SSC_OP_READDIRPLUS);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.readdir.n_ents, 5); /* . .. f l new */
	ck_assert(!a->call->res.readdir.ents[2].has_attrs);
	ck_assert_uint_eq(a->call->res.readdir.ents[2].fh.len, 0);
	ck_assert_str_eq(a->call->res.readdir.ents[2].name, "f");
	forget(a);
	a = usual(SSC_OP_READ);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert(!a->call->has_attrs);
	forget(a);
}
END_TEST

static void add_broken(Suite *suite)
{
	TCase *broken = add_case(suite, "broken connections", setup_faults);
	TCase *pieces = add_case(suite, "pieces", setup_faults);

	tcase_add_loop_test(broken, a_call_whose_connection_breaks_is_sent_again_with_its_xid, 0,
			    3 * N_OPS);
	tcase_add_loop_test(broken, without_a_reply_cache_the_submitter_learns_of_the_repetition, 0,
			    (int)(sizeof(repeated) / sizeof(repeated[0])));
	tcase_add_test(broken, a_connection_that_ends_behind_a_reply_costs_nothing);
	tcase_add_test(broken, data_cut_off_by_a_broken_connection_is_read_again);
	tcase_add_test(broken, all_calls_in_flight_survive_a_broken_connection);
	tcase_add_test(broken, a_server_that_comes_back_gets_what_waited);
	tcase_add_test(pieces, a_reply_in_fragments_is_put_together);
	tcase_add_test(pieces, a_reply_may_come_in_halves);
	tcase_add_test(pieces, replies_may_come_in_any_order);
}

int main(void)
{
	Suite *suite = suite_create("upstream_faults");
	TCase *envelope = add_case(suite, "envelope", setup_faults);
	TCase *results = add_case(suite, "results", setup_faults);

	add_broken(suite);
	tcase_add_test(envelope, a_reply_to_another_call_is_none_to_this);
	tcase_add_loop_test(envelope, a_reply_that_cannot_be_decoded_once_is_asked_for_again, 0,
			    2 * N_OPS);
	tcase_add_loop_test(envelope, a_reply_that_cannot_be_decoded_ever_is_an_error, 0,
			    2 * N_OPS);
	tcase_add_test(envelope, replies_without_sense_are_counted);
	tcase_add_loop_test(envelope, refusals_of_the_envelope_are_told_apart, 0, 2);
	tcase_add_loop_test(results, every_status_is_translated, 0, N_STATUSES);
	tcase_add_loop_test(results, every_operation_can_fail, 0, N_OPS);
	tcase_add_loop_test(results, a_result_that_breaks_the_rules_is_an_error, 0, N_BAD_RESULTS);
	tcase_add_test(results, nothing_is_written_behind_the_buffer);
	tcase_add_test(results, what_is_optional_may_be_missing);
	return unit_main(suite);
}
