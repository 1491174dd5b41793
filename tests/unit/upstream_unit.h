/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * upstream_unit.h - what the tests of the upstream on libnfs share: a scripted server, an upstream
 * that talks to it, and calls that count how often done and late ran.
 *
 * The real clock is used: deadlines are short, and what must not happen is shown by a later call
 * that got through. A wait that takes longer than 20 s fails the test.
 */
#ifndef SSC_UPSTREAM_UNIT_H
#define SSC_UPSTREAM_UNIT_H

#include <pthread.h>
#include <string.h>

#include "nfs3_server.h"
#include "ssc/budget.h"
#include "ssc/clock.h"
#include "ssc/log.h"
#include "ssc/upstream.h"
#include "unit.h"

#define ADDRESS "127.0.3.1"
#define MS      SSC_NS_PER_MS

static struct nfs3_server *server;
static struct ssc_upstream *up;
static struct ssc_fh root_fh;

/* One call and what became of it. */
struct asked {
	struct ssc_call *call;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int n_done, n_late;
	enum ssc_err done_err, late_err;
	uint64_t done_ns;
};

static inline void quiet(enum ssc_log_level level, const char *fmt, va_list args)
{
	if (getenv("SSC_TEST_LOG")) {
		printf("log %d: ", level);
		vprintf(fmt, args);
		printf("\n");
	}
}

static inline struct ssc_upstream_config config(void)
{
	return (struct ssc_upstream_config){
		.name = "test",
		.server = ADDRESS,
		.remote_path = NFS3_EXPORT,
		.port = nfs3_server_port(server),
		.mount_port = nfs3_server_port(server),
		.connections = 1,
		.read_max_bytes = 1 << 20,
		.write_max_bytes = 1 << 20,
		.readdir_max_bytes = 64 << 10,
		.dead_ns = 20 * SSC_NS_PER_S,
		.connect_ns = 2 * SSC_NS_PER_S,
		.waiting_max = 100,
	};
}

static inline void open_upstream(const struct ssc_upstream_config *cfg)
{
	ck_assert_int_eq(ssc_upstream_nfs3_new(cfg, &up), SSC_OK);
}

static inline void close_upstream(void)
{
	if (!up)
		return;
	up->ops->stop(up);
	up->ops->free(up);
	up = NULL;
}

static inline void start_server(void)
{
	ssc_log_set(quiet, SSC_LOG_DEBUG);
	server = nfs3_server_new(ADDRESS);
	root_fh.len = (uint8_t)nfs3_server_root(server, root_fh.data, sizeof(root_fh.data));
}

/* Fixture: a server and an upstream with the usual configuration. */
static inline void setup_both(void)
{
	struct ssc_upstream_config cfg;

	start_server();
	cfg = config();
	open_upstream(&cfg);
}

static inline void teardown_both(void)
{
	close_upstream();
	nfs3_server_free(server);
	ssc_log_set(NULL, SSC_LOG_WARN);
}

static inline void note_done(struct ssc_call *call)
{
	struct asked *a = call->ctx;

	pthread_mutex_lock(&a->lock);
	a->n_done++;
	a->done_err = call->err;
	a->done_ns = ssc_clock_now_ns();
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

static inline void note_late(struct ssc_call *call)
{
	struct asked *a = call->ctx;

	pthread_mutex_lock(&a->lock);
	a->n_late++;
	a->late_err = call->err;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

/* A call on the root; the caller fills the rest in. */
static inline struct asked *ask(enum ssc_op op, const char *name)
{
	struct asked *a = calloc(1, sizeof(*a));

	pthread_mutex_init(&a->lock, NULL);
	ssc_clock_cond_init(&a->changed);
	a->call = ssc_call_new(up, op);
	a->call->fh = root_fh;
	a->call->cred = (struct ssc_cred){.uid = 10, .gid = 20};
	a->call->done = note_done;
	a->call->late = note_late;
	a->call->ctx = a;
	if (name)
		ck_assert_int_eq(ssc_call_set_name(a->call, name), SSC_OK);
	return a;
}

static inline void submit(struct asked *a)
{
	up->ops->submit(up, a->call);
}

static inline void submit_for(struct asked *a, uint64_t ns)
{
	a->call->answer_by_ns = ssc_clock_now_ns() + ns;
	submit(a);
}

static inline enum ssc_err wait_done(struct asked *a)
{
	uint64_t by = ssc_clock_now_ns() + 20 * SSC_NS_PER_S;
	enum ssc_err err;

	pthread_mutex_lock(&a->lock);
	while (a->n_done == 0 && ssc_clock_now_ns() < by)
		ssc_clock_wait(&a->changed, &a->lock, by);
	ck_assert_uint_eq(a->n_done, 1);
	err = a->done_err;
	pthread_mutex_unlock(&a->lock);
	return err;
}

static inline enum ssc_err wait_late(struct asked *a)
{
	uint64_t by = ssc_clock_now_ns() + 20 * SSC_NS_PER_S;
	enum ssc_err err;

	pthread_mutex_lock(&a->lock);
	while (a->n_late == 0 && ssc_clock_now_ns() < by)
		ssc_clock_wait(&a->changed, &a->lock, by);
	ck_assert_uint_eq(a->n_done, 1);
	ck_assert_uint_eq(a->n_late, 1);
	err = a->late_err;
	pthread_mutex_unlock(&a->lock);
	return err;
}

static inline bool is_done(struct asked *a)
{
	bool done;

	pthread_mutex_lock(&a->lock);
	done = a->n_done > 0;
	pthread_mutex_unlock(&a->lock);
	return done;
}

/* Nothing may run for it any more. */
static inline void forget(struct asked *a)
{
	ck_assert_uint_eq(a->n_done, 1);
	ck_assert_uint_le(a->n_late, 1);
	ssc_call_put(a->call);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static inline enum ssc_err run(struct asked *a)
{
	submit(a);
	return wait_done(a);
}

static inline enum ssc_err run_and_forget(struct asked *a)
{
	enum ssc_err err = run(a);

	forget(a);
	return err;
}

/*
 * A round trip: what was sent before it has arrived by then, on the one connection there is. After a
 * call that timed out the upstream answers DOWN for a moment, until it sees that the server is there.
 */
static inline void round_trip(void)
{
	uint64_t by = ssc_clock_now_ns() + 20 * SSC_NS_PER_S;
	enum ssc_err err;

	do {
		err = run_and_forget(ask(SSC_OP_GETATTR, NULL));
	} while (err == SSC_E_DOWN && ssc_clock_now_ns() < by);
	ck_assert_int_eq(err, SSC_OK);
}

static inline void fault(enum nfs3_proc proc, enum nfs3_fault_kind kind)
{
	struct nfs3_fault f = {.proc = proc, .kind = kind};

	nfs3_server_fault(server, &f);
}

static inline void fault_times(enum nfs3_proc proc, enum nfs3_fault_kind kind, unsigned int times)
{
	struct nfs3_fault f = {.proc = proc, .kind = kind, .times = times};

	nfs3_server_fault(server, &f);
}

static inline struct ssc_upstream_stats stats(void)
{
	struct ssc_upstream_stats s;

	ssc_upstream_nfs3_stats(up, &s);
	return s;
}

/* READ or WRITE of one buffer; @iov lives until the call is done. */
static inline struct asked *ask_io(enum ssc_op op, const struct ssc_fh *fh, uint64_t offset,
				   struct iovec *iov)
{
	struct asked *a = ask(op, NULL);

	a->call->fh = *fh;
	a->call->arg.io.offset = offset;
	a->call->arg.io.count = (uint32_t)iov->iov_len;
	a->call->arg.io.iov = iov;
	a->call->arg.io.n_iov = 1;
	return a;
}

/* The handle of @name in the root. */
static inline struct ssc_fh fh_of(const char *name)
{
	struct asked *a = ask(SSC_OP_LOOKUP, name);
	struct ssc_fh fh;

	ck_assert_int_eq(run(a), SSC_OK);
	fh = a->call->res.object.fh;
	forget(a);
	return fh;
}

/* A call may have timed out here before the server read it: until it holds @n. */
static inline void wait_held(unsigned int n)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t by = ssc_clock_now_ns() + 20 * SSC_NS_PER_S;

	while (nfs3_server_n_held(server) < n && ssc_clock_now_ns() < by)
		nanosleep(&pause, NULL);
	ck_assert_uint_eq(nfs3_server_n_held(server), n);
}

/* After the server went down: until that is known here. Before, a call may still be sent. */
static inline void wait_away(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t by = ssc_clock_now_ns() + 20 * SSC_NS_PER_S;

	while (stats().up && ssc_clock_now_ns() < by)
		nanosleep(&pause, NULL);
	ck_assert(!stats().up);
}

static inline void stop_in_time(void)
{
	uint64_t start = ssc_clock_now_ns();

	up->ops->stop(up);
	ck_assert_uint_lt(ssc_clock_now_ns() - start, 2 * SSC_NS_PER_S);
}

static inline TCase *add_case(Suite *suite, const char *name, void (*setup)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup, teardown_both);
	tcase_set_timeout(tcase, 90);
	suite_add_tcase(suite, tcase);
	return tcase;
}

#endif /* SSC_UPSTREAM_UNIT_H */
