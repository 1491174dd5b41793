/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream_mount.c - the first contact: probing the server, and asking it for the root handle.
 */
#include "upstream_unit.h"

#define MIB (1u << 20)

/* ---- root and limits ---- */

START_TEST(the_root_is_what_mount_gives)
{
	struct ssc_upstream_limits limits;
	struct ssc_fh fh = {0};

	nfs3_server_set_limits(server, 65536, 32768);
	up->ops->limits(up, &limits);
	ck_assert(!limits.known);
	ck_assert_uint_eq(limits.read_max_bytes, MIB);
	ck_assert_int_eq(up->ops->root(up, false, ssc_clock_now_ns() + 20 * SSC_NS_PER_S, &fh),
			 SSC_OK);
	ck_assert_uint_eq(fh.len, root_fh.len);
	ck_assert_mem_eq(fh.data, root_fh.data, fh.len);
	up->ops->limits(up, &limits);
	ck_assert(limits.known);
	ck_assert_uint_eq(limits.read_max_bytes, 65536);
	ck_assert_uint_eq(limits.write_max_bytes, 32768);
	ck_assert_uint_eq(limits.name_max, 255);
	ck_assert_uint_eq(limits.link_max, 3000);
	ck_assert_uint_eq(limits.file_size_max, 64 * MIB);
	ck_assert_uint_eq(limits.time_delta.ns, 1000);
}
END_TEST

START_TEST(the_root_is_asked_for_once_unless_refreshed)
{
	uint64_t by = ssc_clock_now_ns() + 20 * SSC_NS_PER_S;
	struct ssc_fh fh;

	ck_assert_int_eq(up->ops->root(up, false, by, &fh), SSC_OK);
	ck_assert_int_eq(up->ops->root(up, false, by, &fh), SSC_OK);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MNT), 1);
	ck_assert_int_eq(up->ops->root(up, true, by, &fh), SSC_OK);
	ck_assert_uint_eq(nfs3_server_n_calls(server, NFS3_MNT), 2);
}
END_TEST

static const struct {
	const char *path;
	enum ssc_err expected;
} refusals[] = {{"/secret", SSC_E_ACCES}, {"/nothing", SSC_E_NOENT}};

START_TEST(a_path_that_is_not_exported_is_refused)
{
	struct ssc_upstream_config cfg = config();
	struct ssc_fh fh;

	close_upstream();
	cfg.remote_path = refusals[_i].path;
	open_upstream(&cfg);
	ck_assert_int_eq(up->ops->root(up, false, ssc_clock_now_ns() + 20 * SSC_NS_PER_S, &fh),
			 refusals[_i].expected);
}
END_TEST

/* ---- wrong answers ---- */

static enum ssc_err get_root(uint64_t ns)
{
	struct ssc_fh fh;

	return up->ops->root(up, true, ssc_clock_now_ns() + ns, &fh);
}

static const struct {
	enum nfs3_fault_kind kind;
	enum ssc_err expected;
} mounts[] = {
	{NFS3_LONG_FH, SSC_E_PROTO}, {NFS3_EMPTY_FH, SSC_E_PROTO}, {NFS3_HUGE_LENGTH, SSC_E_PROTO},
	{NFS3_GARBAGE, SSC_E_PROTO}, {NFS3_DENIED, SSC_E_PROTO},
};

START_TEST(a_wrong_answer_of_mount_is_an_error)
{
	fault(NFS3_MNT, mounts[_i].kind);
	ck_assert_int_eq(get_root(2 * SSC_NS_PER_S), mounts[_i].expected);
	ck_assert_int_eq(get_root(20 * SSC_NS_PER_S), SSC_OK);
}
END_TEST

START_TEST(a_mount_that_is_not_answered_ends_in_time)
{
	uint64_t start = ssc_clock_now_ns();
	enum ssc_err err;

	fault(NFS3_MNT, NFS3_HOLD);
	err = get_root(300 * MS);
	ck_assert(err == SSC_E_TIMEDOUT || err == SSC_E_DOWN);
	ck_assert_uint_lt(ssc_clock_now_ns() - start, 5 * SSC_NS_PER_S);
	ck_assert_int_eq(get_root(20 * SSC_NS_PER_S), SSC_OK);
}
END_TEST

static const enum nfs3_fault_kind mount_drops[] = {NFS3_DROP_BEFORE, NFS3_DROP_EXECUTED,
						   NFS3_DROP_INSIDE};

START_TEST(a_mount_whose_connection_breaks_sends_the_client_back)
{
	enum ssc_err err;

	fault(NFS3_MNT, mount_drops[_i]);
	err = get_root(2 * SSC_NS_PER_S);
	ck_assert_msg(err == SSC_E_DOWN, "%s", ssc_err_str(err));
	ck_assert_int_eq(get_root(20 * SSC_NS_PER_S), SSC_OK);
}
END_TEST

START_TEST(a_probe_that_fails_is_tried_again)
{
	static const enum nfs3_fault_kind kinds[] = {NFS3_DROP_BEFORE, NFS3_DENIED,
						     NFS3_SYSTEM_ERR};
	struct ssc_upstream_config cfg = config();

	round_trip();
	close_upstream();
	fault(NFS3_NULL, kinds[_i]);
	open_upstream(&cfg);
	round_trip();
	ck_assert_uint_eq(nfs3_server_n_connections(server), 3);
}
END_TEST

enum { ASKERS = 6 };

static void *ask_for_root(void *arg)
{
	*(enum ssc_err *)arg = get_root(20 * SSC_NS_PER_S);
	return NULL;
}

START_TEST(those_who_ask_together_share_one_mount)
{
	pthread_t threads[ASKERS];
	enum ssc_err err[ASKERS];
	int i;

	fault(NFS3_MNT, NFS3_HOLD);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, ask_for_root, &err[0]), 0);
	ck_assert(nfs3_server_wait_calls(server, NFS3_MNT, 1));
	for (i = 1; i < ASKERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_root, &err[i]), 0);
	nfs3_server_release(server);
	for (i = 0; i < ASKERS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(err[i], SSC_OK);
	}
	/* One that came when the first was over has one of its own; never all of them. */
	ck_assert_uint_lt(nfs3_server_n_calls(server, NFS3_MNT), ASKERS);
}
END_TEST

START_TEST(a_server_that_is_down_has_no_root_yet)
{
	struct ssc_upstream_config cfg = config();
	uint64_t start = ssc_clock_now_ns();
	struct ssc_fh fh;

	close_upstream();
	nfs3_server_down(server);
	open_upstream(&cfg);
	ck_assert_int_eq(get_root(10 * SSC_NS_PER_S), SSC_E_DOWN);
	ck_assert_uint_lt(ssc_clock_now_ns() - start, 8 * SSC_NS_PER_S); /* known at once */
	nfs3_server_up(server);
	round_trip();
	ck_assert_int_eq(up->ops->root(up, false, ssc_clock_now_ns() + 20 * SSC_NS_PER_S, &fh),
			 SSC_OK);
	ck_assert_mem_eq(fh.data, root_fh.data, root_fh.len);
}
END_TEST

START_TEST(stop_ends_a_mount)
{
	uint64_t start;
	enum ssc_err err;
	pthread_t thread;

	fault(NFS3_MNT, NFS3_HOLD);
	ck_assert_int_eq(pthread_create(&thread, NULL, ask_for_root, &err), 0);
	ck_assert(nfs3_server_wait_calls(server, NFS3_MNT, 1));
	start = ssc_clock_now_ns();
	up->ops->stop(up);
	ck_assert_uint_lt(ssc_clock_now_ns() - start, 2 * SSC_NS_PER_S);
	pthread_join(thread, NULL);
	ck_assert_int_eq(err, SSC_E_SHUTDOWN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upstream_mount");
	TCase *roots = add_case(suite, "root", setup_both);
	TCase *mount = add_case(suite, "mount", setup_both);
	TCase *waits = add_case(suite, "waits", setup_both);

	tcase_add_test(roots, the_root_is_what_mount_gives);
	tcase_add_test(roots, the_root_is_asked_for_once_unless_refreshed);
	tcase_add_loop_test(roots, a_path_that_is_not_exported_is_refused, 0, 2);
	tcase_add_loop_test(mount, a_wrong_answer_of_mount_is_an_error, 0,
			    (int)(sizeof(mounts) / sizeof(mounts[0])));
	tcase_add_test(mount, a_mount_that_is_not_answered_ends_in_time);
	tcase_add_loop_test(mount, a_mount_whose_connection_breaks_sends_the_client_back, 0, 3);
	tcase_add_loop_test(mount, a_probe_that_fails_is_tried_again, 0, 3);
	tcase_add_test(waits, those_who_ask_together_share_one_mount);
	tcase_add_test(waits, a_server_that_is_down_has_no_root_yet);
	tcase_add_test(waits, stop_ends_a_mount);
	return unit_main(suite);
}
