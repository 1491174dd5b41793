/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_ahead.c - which pages that were asked for ahead are believed, and who holds them.
 */
#include <pthread.h>
#include <string.h>

#include "ahead.h"
#include "fake_clock.h"
#include "fake_upstream.h"
#include "unit.h"

#define START_NS (1000 * SSC_NS_PER_S)
#define LIMIT_NS (10 * SSC_NS_PER_S)

static struct fake_upstream *fake;
static struct ssc_ahead *ahead;
static struct ssc_fh fh;
static struct ssc_cred cred;
static struct ssc_attrs dir;
static uint64_t ticket;

static void setup(void)
{
	fake_clock_start(START_NS);
	fake = fake_upstream_new();
	ahead = ssc_ahead_new(fake_upstream_ops(fake));
	fh = (struct ssc_fh){.len = 3, .data = "dir"};
	cred = (struct ssc_cred){.uid = 1, .gid = 2, .n_groups = 1, .groups = {3}};
	dir = (struct ssc_attrs){.type = SSC_FT_DIR, .mtime = {.s = 5}, .ctime = {.s = 6}};
	ticket = 0;
}

static void teardown(void)
{
	fake_upstream_ops(fake)->ops->stop(fake_upstream_ops(fake));
	ck_assert_uint_eq(fake_upstream_n_unexpected(fake), 0);
	ssc_ahead_free(ahead);
	fake_upstream_free(fake);
	fake_clock_stop();
}

static struct ssc_ahead_page page(uint64_t cookie)
{
	return (struct ssc_ahead_page){
		.dir = &fh,
		.cred = &cred,
		.cookie = cookie,
		.verf = "verifie",
		.n_changes = 8,
		.attrs = &dir,
	};
}

static void script(enum fake_how how, enum ssc_err err)
{
	struct fake_step step = {
		.op = SSC_OP_READDIRPLUS, .how = how, .err = err, .has_attrs = true, .attrs = dir};

	fake_upstream_push(fake, &step);
}

static void ask(uint64_t cookie)
{
	struct ssc_ahead_page p = page(cookie);

	ssc_ahead_ask(ahead, &p, 4096, START_NS + LIMIT_NS, 40 + cookie);
}

static bool take(const struct ssc_ahead_page *p)
{
	struct ssc_call *call = ssc_ahead_take(ahead, p, &ticket);

	if (call == NULL)
		return false;
	ck_assert_uint_eq(call->arg.readdir.cookie, p->cookie);
	ck_assert_uint_eq(ticket, 40 + p->cookie);
	ssc_call_put(call);
	return true;
}

static bool take_cookie(uint64_t cookie)
{
	struct ssc_ahead_page p = page(cookie);

	return take(&p);
}

START_TEST(a_page_is_for_one_taker)
{
	script(FAKE_REPLY, SSC_OK);
	ck_assert(!take_cookie(7));
	ask(7);
	ck_assert(!take_cookie(8));
	ck_assert(take_cookie(7));
	ck_assert(!take_cookie(7));
	ck_assert_uint_eq(fake_upstream_record(fake, 0).cred.groups[0], 3);
}
END_TEST

enum other { OTHER_DIR, OTHER_VERF, OTHER_UID, OTHER_GROUP, OTHER_CHANGES, OTHER_TIME, OTHER_N };

START_TEST(another_question_gets_no_answer)
{
	struct ssc_fh other_fh = {.len = 3, .data = "dis"};
	struct ssc_cred other_cred = cred;
	struct ssc_attrs other_dir = dir;
	struct ssc_ahead_page p = page(7);

	if (_i == OTHER_DIR)
		p.dir = &other_fh;
	p.verf[0] += _i == OTHER_VERF;
	other_cred.uid += _i == OTHER_UID;
	other_cred.groups[0] += _i == OTHER_GROUP;
	p.cred = &other_cred;
	p.n_changes += _i == OTHER_CHANGES;
	other_dir.mtime.ns += _i == OTHER_TIME;
	p.attrs = &other_dir;
	script(FAKE_REPLY, SSC_OK);
	ask(7);
	ck_assert(!take(&p));
}
END_TEST

START_TEST(what_changed_while_it_was_read_is_void)
{
	const struct ssc_attrs before = dir;

	dir.ctime.ns++; /* as the reply shows it, and as it is known afterwards */
	script(FAKE_REPLY, SSC_OK);
	dir = before;
	ask(7);
	dir.ctime.ns++;
	ck_assert(!take_cookie(7));
}
END_TEST

START_TEST(errors_are_no_pages)
{
	script(FAKE_REPLY, SSC_E_BAD_COOKIE);
	script(FAKE_LATE_AT_ONCE, SSC_OK);
	ask(7);
	ask(8);
	ck_assert(!take_cookie(7));
	ck_assert(!take_cookie(8));
}
END_TEST

START_TEST(nobody_waits_for_an_old_one)
{
	script(FAKE_REPLY, SSC_OK);
	ask(7);
	fake_clock_advance(SSC_NS_PER_S);
	ck_assert(!take_cookie(7));
}
END_TEST

START_TEST(the_oldest_makes_room)
{
	for (uint64_t i = 0; i < 9; i++) {
		script(FAKE_REPLY, SSC_OK);
		ask(i);
		fake_clock_advance(1);
	}
	ck_assert(!take_cookie(0));
	for (uint64_t i = 1; i < 9; i++)
		ck_assert(take_cookie(i));
}
END_TEST

/* It loses its place, and its table is freed only after the upstream has let it go. */
START_TEST(one_under_way_outlives_its_place)
{
	script(FAKE_HOLD, SSC_OK);
	ask(100);
	fake_clock_advance(SSC_NS_PER_S);
	script(FAKE_REPLY, SSC_OK);
	ask(7);
	ck_assert(!take_cookie(100));
	fake_upstream_release(fake, 0);
	ck_assert(take_cookie(7));
}
END_TEST

static void *take_in_thread(void *arg)
{
	(void)arg;
	return take_cookie(7) ? &ticket : NULL;
}

START_TEST(a_taker_waits_for_the_reply)
{
	pthread_t thread;
	void *result;

	script(FAKE_HOLD, SSC_OK);
	ask(7);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_in_thread, NULL), 0);
	fake_upstream_release(fake, 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, &ticket);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ahead");
	TCase *believed = tcase_create("believed");
	TCase *held = tcase_create("held");

	tcase_add_checked_fixture(believed, setup, teardown);
	tcase_add_test(believed, a_page_is_for_one_taker);
	tcase_add_loop_test(believed, another_question_gets_no_answer, 0, OTHER_N);
	tcase_add_test(believed, what_changed_while_it_was_read_is_void);
	tcase_add_test(believed, errors_are_no_pages);
	tcase_add_test(believed, nobody_waits_for_an_old_one);
	suite_add_tcase(suite, believed);
	tcase_add_checked_fixture(held, setup, teardown);
	tcase_add_test(held, the_oldest_makes_room);
	tcase_add_test(held, one_under_way_outlives_its_place);
	tcase_add_test(held, a_taker_waits_for_the_reply);
	suite_add_tcase(suite, held);
	return unit_main(suite);
}
