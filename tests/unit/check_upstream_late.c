/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_late.c - deadlines of the upstream on libnfs, and what comes after them.
 */
#include "upstream_unit.h"

/* What a busy machine under a sanitizer may add to a deadline. */
#define SLACK (3 * SSC_NS_PER_S)

static struct ssc_fh file_fh;
static uint8_t data[4][4096];
static struct iovec iov[4];

static void setup_late(void)
{
	int i;

	setup_both();
	for (i = 0; i < 4; i++) {
		memset(data[i], 'a' + i, sizeof(data[i]));
		iov[i] = (struct iovec){data[i], sizeof(data[i])};
	}
	nfs3_server_poke(server, "f", "", 0);
	file_fh = fh_of("f");
}

/* The byte at @offset. */
static void expect_file(size_t offset, char c)
{
	static char content[4 * 4096];
	size_t len;

	ck_assert(nfs3_server_peek(server, "f", content, sizeof(content), &len));
	ck_assert_uint_gt(len, offset);
	ck_assert_int_eq(content[offset], c);
}

/* Submit @a, which a fault holds, and let it time out. */
static void timed_out(struct asked *a, uint64_t ns)
{
	uint64_t start = ssc_clock_now_ns();

	submit_for(a, ns);
	ck_assert_int_eq(wait_done(a), SSC_E_TIMEDOUT);
	ck_assert_uint_ge(a->done_ns, a->call->answer_by_ns);
	ck_assert_uint_lt(a->done_ns, start + ns + SLACK);
	wait_held(1);
}

static const enum nfs3_fault_kind holds[] = {NFS3_HOLD, NFS3_HOLD_EXECUTED, NFS3_HOLD_HALF};

START_TEST(a_call_times_out_and_its_reply_is_late)
{
	struct asked *a = ask(SSC_OP_MKDIR, "d");

	fault(NFS3_MKDIR, holds[_i]);
	timed_out(a, 100 * MS);
	ck_assert_uint_eq(a->n_late, 0);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MKDIR), 1);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(a), SSC_OK);
	ck_assert_int_eq(a->call->err, SSC_OK);
	ck_assert_uint_eq(a->call->res.object.fh.len, root_fh.len);
	ck_assert_int_eq(a->call->res.object.attrs.type, SSC_FT_DIR);
	ck_assert(!a->call->retried);
	forget(a);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MKDIR), 1);
	ck_assert_uint_eq(stats().timeouts, 1);
	ck_assert_uint_eq(stats().late, 1);
	ck_assert_uint_eq(nfs3_server_n_connections(server), 1); /* the connection is kept */
}
END_TEST

START_TEST(a_late_error_is_told)
{
	struct asked *a = ask(SSC_OP_RMDIR, "nothing");

	fault(NFS3_RMDIR, NFS3_HOLD);
	timed_out(a, 100 * MS);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(a), SSC_E_NOENT);
	forget(a);
}
END_TEST

START_TEST(late_may_be_of_no_interest)
{
	struct asked *a = ask(SSC_OP_GETATTR, NULL);

	fault(NFS3_GETATTR, NFS3_HOLD);
	a->call->late = NULL;
	timed_out(a, 100 * MS);
	nfs3_server_release(server);
	round_trip();
	forget(a);
}
END_TEST

START_TEST(a_late_read_touches_no_buffer)
{
	struct asked *a = ask_io(SSC_OP_READ, &file_fh, 0, &iov[0]);

	ck_assert_int_eq(run_and_forget(ask_io(SSC_OP_WRITE, &file_fh, 0, &iov[1])), SSC_OK);
	fault(NFS3_READ, NFS3_HOLD_EXECUTED);
	timed_out(a, 100 * MS);
	memset(data[0], 'X', sizeof(data[0])); /* the submitter's again */
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(a), SSC_OK);
	forget(a);
	ck_assert_int_eq(data[0][0], 'X');
	ck_assert_int_eq(data[0][4095], 'X');
}
END_TEST

START_TEST(a_driver_comes_back_at_its_deadline)
{
	struct asked *a = ask(SSC_OP_GETATTR, NULL);

	round_trip();
	fault(NFS3_GETATTR, NFS3_HOLD);
	a->call->drive_ns = 20 * SSC_NS_PER_S;
	timed_out(a, 200 * MS);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(a), SSC_OK);
	forget(a);
}
END_TEST

START_TEST(a_deadline_in_the_past_is_kept_at_once)
{
	struct asked *a = ask(SSC_OP_GETATTR, NULL);
	enum ssc_err err;

	fault(NFS3_GETATTR, NFS3_HOLD);
	a->call->answer_by_ns = 1;
	submit(a);
	err = wait_done(a);
	ck_assert(err == SSC_E_TIMEDOUT || err == SSC_E_DOWN);
	wait_held(err == SSC_E_TIMEDOUT);
	nfs3_server_release(server);
	if (err == SSC_E_TIMEDOUT)
		ck_assert_int_eq(wait_late(a), SSC_OK);
	nfs3_server_clear_faults(server);
	round_trip();
	forget(a);
}
END_TEST

START_TEST(each_call_has_its_own_deadline)
{
	enum { N = 8 };
	struct asked *a[N];
	int i;

	fault_times(NFS3_FSSTAT, NFS3_HOLD, N);
	for (i = 0; i < N; i++) { /* the last one first */
		a[i] = ask(SSC_OP_FSSTAT, NULL);
		submit_for(a[i], (uint64_t)(N - i) * 50 * MS);
	}
	for (i = N - 1; i >= 0; i--) {
		ck_assert_int_eq(wait_done(a[i]), SSC_E_TIMEDOUT);
		ck_assert_uint_ge(a[i]->done_ns, a[i]->call->answer_by_ns);
	}
	wait_held(N);
	nfs3_server_release(server);
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(wait_late(a[i]), SSC_OK);
		forget(a[i]);
	}
}
END_TEST

START_TEST(a_late_call_whose_connection_breaks_is_given_up)
{
	struct asked *a = ask(SSC_OP_MKDIR, "d");

	fault(NFS3_MKDIR, NFS3_HOLD);
	timed_out(a, 100 * MS);
	nfs3_server_down(server);
	ck_assert_int_eq(wait_late(a), SSC_E_CONN);
	forget(a);
	nfs3_server_up(server);
	round_trip();
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MKDIR), 1); /* not sent again */
}
END_TEST

START_TEST(a_silent_connection_is_given_up_at_the_dead_limit)
{
	struct ssc_upstream_config cfg = config();
	struct asked *lost, *kept;

	close_upstream();
	cfg.dead_ns = 500 * MS;
	open_upstream(&cfg);
	round_trip();
	lost = ask(SSC_OP_MKDIR, "d");
	kept = ask(SSC_OP_MKDIR, "e");
	fault_times(NFS3_MKDIR, NFS3_HOLD, 2);
	submit(kept);
	submit_for(lost, 100 * MS);
	ck_assert_int_eq(wait_done(lost), SSC_E_TIMEDOUT);
	ck_assert_int_eq(wait_late(lost), SSC_E_CONN);
	ck_assert_int_eq(wait_done(kept), SSC_OK); /* on the next connection */
	ck_assert(kept->call->retried);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MKDIR), 3);
	forget(lost);
	forget(kept);
}
END_TEST

/* ---- late writes ---- */

static struct asked *ask_write(uint64_t offset, int what)
{
	return ask_io(SSC_OP_WRITE, &file_fh, offset, &iov[what]);
}

static const struct {
	uint64_t offset;
	bool waits;
} ranges[] = {{1, true}, {4096, true}, {8191, true}, {0, false}, {8192, false}};

START_TEST(a_write_waits_for_a_late_one_in_its_range)
{
	struct asked *late = ask_write(4096, 0);
	struct asked *next = ask_write(ranges[_i].offset, 1);

	fault(NFS3_WRITE, NFS3_HOLD);
	timed_out(late, 100 * MS);
	round_trip();
	submit(next);
	round_trip();
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_WRITE), ranges[_i].waits ? 1 : 2);
	if (!ranges[_i].waits)
		ck_assert_int_eq(wait_done(next), SSC_OK);
	ck_assert_uint_eq(is_done(next), !ranges[_i].waits);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(late), SSC_OK);
	ck_assert_int_eq(wait_done(next), SSC_OK);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_WRITE), 2);
	expect_file(ranges[_i].offset, 'b'); /* the later one lies on top */
	forget(late);
	forget(next);
}
END_TEST

START_TEST(other_files_do_not_wait_for_a_late_write)
{
	struct asked *late = ask_write(0, 0), *other;

	nfs3_server_poke(server, "g", "", 0);
	fault(NFS3_WRITE, NFS3_HOLD);
	timed_out(late, 100 * MS);
	round_trip();
	other = ask_write(0, 1);
	other->call->fh = fh_of("g");
	ck_assert_int_eq(run_and_forget(other), SSC_OK);
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(late), SSC_OK);
	forget(late);
}
END_TEST

START_TEST(a_write_that_waits_keeps_its_deadline)
{
	struct asked *late = ask_write(0, 0);
	struct asked *next = ask_write(0, 1);

	fault(NFS3_WRITE, NFS3_HOLD);
	timed_out(late, 100 * MS);
	round_trip();
	submit_for(next, 100 * MS);
	ck_assert_int_eq(wait_done(next), SSC_E_DOWN); /* never sent */
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(late), SSC_OK);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_WRITE), 1);
	ck_assert_uint_eq(next->n_late, 0);
	forget(late);
	forget(next);
}
END_TEST

START_TEST(a_late_write_is_never_sent_again)
{
	struct asked *late = ask_write(0, 0);
	struct asked *next = ask_write(0, 1);

	fault(NFS3_WRITE, NFS3_HOLD);
	timed_out(late, 100 * MS);
	round_trip();
	submit(next);
	round_trip();
	nfs3_server_crash(server);
	ck_assert_int_eq(wait_late(late), SSC_E_CONN);
	ck_assert_int_eq(wait_done(next), SSC_OK);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_WRITE), 2);
	expect_file(0, 'b');
	forget(late);
	forget(next);
}
END_TEST

START_TEST(a_write_waits_on_any_connection)
{
	struct ssc_upstream_config cfg = config();
	struct asked *late, *next;

	close_upstream();
	cfg.connections = 4;
	open_upstream(&cfg);
	late = ask_write(0, 0);
	next = ask_write(0, 1);
	fault(NFS3_WRITE, NFS3_HOLD);
	timed_out(late, 100 * MS);
	round_trip();
	submit(next);
	round_trip();
	ck_assert(!is_done(next));
	nfs3_server_release(server);
	ck_assert_int_eq(wait_late(late), SSC_OK);
	ck_assert_int_eq(wait_done(next), SSC_OK);
	expect_file(0, 'b');
	forget(late);
	forget(next);
}
END_TEST

/* ---- races ---- */

START_TEST(replies_at_the_deadline_end_each_call_once)
{
	enum { N = 16, ROUNDS = 20 };
	uint64_t random = unit_seed("replies_at_the_deadline_end_each_call_once");
	struct asked *a[N];
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		fault_times(NFS3_FSSTAT, NFS3_HOLD_EXECUTED, N);
		for (i = 0; i < N; i++) {
			a[i] = ask(SSC_OP_FSSTAT, NULL);
			a[i]->call->drive_ns = i % 4 ? 0 : 5 * MS;
			a[i]->call->done_only_wakes = i % 2;
			submit_for(a[i], 15 * MS + unit_random(&random) % (10 * MS));
		}
		while (!is_done(a[unit_random(&random) % N]))
			round_trip();
		round_trip(); /* so that all that were sent are held now */
		nfs3_server_release(server);
		for (i = 0; i < N; i++) {
			enum ssc_err err = wait_done(a[i]);

			ck_assert(err == SSC_OK || err == SSC_E_TIMEDOUT || err == SSC_E_DOWN);
			if (err == SSC_E_TIMEDOUT)
				ck_assert_int_eq(wait_late(a[i]), SSC_OK);
			ck_assert_uint_eq(a[i]->n_late, err == SSC_E_TIMEDOUT);
			forget(a[i]);
		}
		nfs3_server_clear_faults(server);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_late");
	TCase *deadlines = add_case(suite, "deadlines", setup_late);
	TCase *writes = add_case(suite, "writes", setup_late);
	TCase *races = add_case(suite, "races", setup_late);

	tcase_add_loop_test(deadlines, a_call_times_out_and_its_reply_is_late, 0, 3);
	tcase_add_test(deadlines, a_late_error_is_told);
	tcase_add_test(deadlines, late_may_be_of_no_interest);
	tcase_add_test(deadlines, a_late_read_touches_no_buffer);
	tcase_add_test(deadlines, a_driver_comes_back_at_its_deadline);
	tcase_add_test(deadlines, a_deadline_in_the_past_is_kept_at_once);
	tcase_add_test(deadlines, each_call_has_its_own_deadline);
	tcase_add_test(deadlines, a_late_call_whose_connection_breaks_is_given_up);
	tcase_add_test(deadlines, a_silent_connection_is_given_up_at_the_dead_limit);
	tcase_add_loop_test(writes, a_write_waits_for_a_late_one_in_its_range, 0,
			    (int)(sizeof(ranges) / sizeof(ranges[0])));
	tcase_add_test(writes, other_files_do_not_wait_for_a_late_write);
	tcase_add_test(writes, a_write_that_waits_keeps_its_deadline);
	tcase_add_test(writes, a_late_write_is_never_sent_again);
	tcase_add_test(writes, a_write_waits_on_any_connection);
	tcase_add_test(races, replies_at_the_deadline_end_each_call_once);
	return unit_main(suite);
}
