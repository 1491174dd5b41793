/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_unit.h - what the tests of synchronous calls share: a caller on a fake upstream and clock.
 */
#ifndef SSC_SYNC_UNIT_H
#define SSC_SYNC_UNIT_H

#include <pthread.h>
#include <string.h>

#include "fake_clock.h"
#include "fake_upstream.h"
#include "ssc/sync_call.h"
#include "unit.h"

#define LIMIT_NS (10 * SSC_NS_PER_S)

static struct fake_upstream *fake;
static struct ssc_caller *caller;

static inline void setup(void)
{
	fake_clock_start(1000 * SSC_NS_PER_S);
	fake = fake_upstream_new();
	caller = ssc_caller_new(fake_upstream_ops(fake), LIMIT_NS);
}

static inline void teardown(void)
{
	fake_upstream_ops(fake)->ops->stop(fake_upstream_ops(fake));
	ck_assert_uint_eq(fake_upstream_n_unexpected(fake), 0);
	ck_assert_uint_eq(fake_upstream_n_left(fake), 0);
	ssc_caller_free(caller);
	fake_upstream_free(fake);
	fake_clock_stop();
}

static inline void push(enum ssc_op op, enum fake_how how, enum ssc_err err)
{
	struct fake_step step = {.op = op, .how = how, .err = err, .fh = {.len = 4, .data = "new"}};

	fake_upstream_push(fake, &step);
}

static inline struct ssc_call *new_call(enum ssc_op op, const char *name)
{
	struct ssc_call *call = ssc_call_new(fake_upstream_ops(fake), op);

	call->fh = (struct ssc_fh){.len = 3, .data = "dir"};
	call->cred = (struct ssc_cred){.uid = 1, .gid = 2, .n_groups = 1, .groups = {3}};
	if (name)
		ck_assert_int_eq(ssc_call_set_name(call, name), SSC_OK);
	return call;
}

/* Run it and forget the result. */
static inline enum ssc_err run(uint64_t who, struct ssc_call *call)
{
	enum ssc_err err = ssc_caller_run(caller, who, &call);

	ssc_call_put(call);
	return err;
}

static inline enum ssc_err mkdir_as(uint64_t who, const char *name)
{
	return run(who, new_call(SSC_OP_MKDIR, name));
}

struct runner {
	pthread_t thread;
	uint64_t who;
	struct ssc_call *call;
	enum ssc_err err;
	_Atomic int is_over;
};

static inline void *run_in_thread(void *arg)
{
	struct runner *r = arg;

	r->err = ssc_caller_run(caller, r->who, &r->call);
	atomic_store(&r->is_over, 1);
	return NULL;
}

static inline void start(struct runner *r, uint64_t who, struct ssc_call *call)
{
	*r = (struct runner){.who = who, .call = call};
	ck_assert_int_eq(pthread_create(&r->thread, NULL, run_in_thread, r), 0);
}

static inline enum ssc_err join_runner(struct runner *r)
{
	pthread_join(r->thread, NULL);
	ssc_call_put(r->call);
	return r->err;
}

/* Move the clock until @r is over: it may have read the time before or after any one step. */
static inline void advance_until_over(struct runner *r)
{
	while (!atomic_load(&r->is_over)) {
		struct timespec ms = {.tv_nsec = 1000000};

		fake_clock_advance(LIMIT_NS);
		nanosleep(&ms, NULL); /* leaves it the processor; decides nothing */
	}
}

static inline TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return tcase;
}

#endif /* SSC_SYNC_UNIT_H */
