/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42_copy.c - server-side copies by the test client, and what others see meanwhile.
 *
 * A copy is COPY for `chunk` bytes at a time (default: all that is left), until the count or the end of
 * the source is reached; what an answer leaves out is asked for again, as kernel clients do. Of an
 * asynchronous one the end is awaited as CB_OFFLOAD, or with --poll by OFFLOAD_STATUS.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ssc/clock.h"

#include "nfs42.h"

struct copy {
	struct ssc_nfs4_file src, dst;
	uint64_t bytes, n_calls, n_async, n_polls;
	bool is_unstable, is_cancelled;
};

static uint64_t until(double s)
{
	return ssc_clock_now_ns() + (uint64_t)(s * 1e9);
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* ---- the end of an asynchronous copy ---- */

static uint32_t await_callback(struct tool *t, const struct ssc_stateid *id, uint64_t *count,
			       uint32_t *committed)
{
	struct ssc_cb_offload_args cb;

	if (!ssc_nfs4_offload_wait(t->who.client, id, until(t->opt.wait_s), &cb))
		return ssc_nfs4_local(SSC_E_TIMEDOUT);
	*count = cb.status ? cb.count : cb.response.count;
	*committed = cb.status ? 0 : cb.response.committed;
	return cb.status;
}

static uint32_t await_status(struct tool *t, struct copy *c, const struct ssc_stateid *id,
			     uint64_t *count)
{
	const uint64_t end = until(t->opt.wait_s);
	struct ssc_offload_status_res res;

	while (ssc_clock_now_ns() < end) {
		uint32_t outcome = ssc_nfs4_offload_status(&t->who, &c->dst.fh, id, &res);

		c->n_polls++;
		if (outcome)
			return outcome;
		if (res.is_complete) {
			*count = res.count;
			return res.complete;
		}
		if (res.count < *count)
			return ssc_nfs4_local(SSC_E_PROTO); /* progress never goes back */
		*count = res.count;
		pause_ms(5);
	}
	return ssc_nfs4_local(SSC_E_TIMEDOUT);
}

static uint32_t await_end(struct tool *t, struct copy *c, const struct ssc_write_response *r,
			  uint64_t *count)
{
	uint32_t committed = 0, outcome;

	c->n_async++;
	*count = 0;
	if (t->opt.cancel_ms >= 0) {
		pause_ms(t->opt.cancel_ms);
		outcome = ssc_nfs4_offload_cancel(&t->who, &c->dst.fh, &r->callback_id);
		printf("cancel=%s\n", ssc_nfs4_outcome_str(outcome));
		c->is_cancelled = outcome == SSC_ST4_OK;
		return outcome;
	}
	if (t->opt.poll)
		outcome = await_status(t, c, &r->callback_id, count);
	else
		outcome = await_callback(t, &r->callback_id, count, &committed);
	c->is_unstable |= committed == 0;
	return outcome;
}

/* ---- one copy ---- */

/* @return outcome; *done bytes were copied. */
static uint32_t one_chunk(struct tool *t, struct copy *c, uint64_t count, uint64_t *done)
{
	struct ssc_copy_args args = {
		.src_offset = t->opt.src_off + c->bytes,
		.dst_offset = t->opt.dst_off + c->bytes,
		.count = count,
		.consecutive = true,
		.synchronous = !t->opt.async,
	};
	struct ssc_copy_res res;
	uint32_t outcome = ssc_nfs4_copy(&t->who, &c->src, &c->dst, &args, &res);

	c->n_calls++;
	*done = 0;
	if (outcome == SSC_ST4_OFFLOAD_NO_REQS)
		fprintf(stderr, "# consecutive=%d synchronous=%d\n", res.consecutive,
			res.synchronous);
	if (outcome)
		return outcome;
	if (res.response.has_callback_id)
		return args.synchronous ? ssc_nfs4_local(SSC_E_PROTO)
					: await_end(t, c, &res.response, done);
	*done = res.response.count;
	c->is_unstable |= res.response.committed == 0;
	return SSC_ST4_OK;
}

static uint32_t copy_all(struct tool *t, struct copy *c, uint64_t want)
{
	while (c->bytes < want) {
		uint64_t left = want - c->bytes, done;
		uint64_t count = t->opt.chunk && t->opt.chunk < left ? t->opt.chunk : left;
		uint32_t outcome = one_chunk(t, c, count, &done);

		c->bytes += done;
		if (outcome || c->is_cancelled)
			return outcome;
		if (done == 0 || done > count) /* nothing, before the end: never */
			return ssc_nfs4_local(SSC_E_PROTO);
	}
	return SSC_ST4_OK;
}

static int open_both(struct tool *t, const char *src, const char *dst, struct copy *c,
		     uint64_t *want)
{
	uint32_t how = SSC_OPEN4_WRITE | SSC_NFS4_CREATE;
	struct ssc_nfs4_attrs attrs;

	if (t->opt.dst_off == 0 && !t->opt.keep)
		how |= SSC_NFS4_TRUNCATE;
	if (tool_fail("open", src, ssc_nfs4_open(&t->who, src, SSC_OPEN4_READ, 0, &c->src)) ||
	    tool_fail("open", dst, ssc_nfs4_open(&t->who, dst, how, 0644, &c->dst)) ||
	    tool_fail("getattr", src,
		      ssc_nfs4_getattr(&t->who, &c->src.fh, &ssc_nfs4_usual_attrs, &attrs)))
		return 1;
	*want = attrs.size > t->opt.src_off ? attrs.size - t->opt.src_off : 0;
	if (t->opt.count && t->opt.count < *want)
		*want = t->opt.count;
	return 0;
}

static int close_both(struct tool *t, const char *src, const char *dst, struct copy *c)
{
	return tool_fail("close", dst, ssc_nfs4_close(&t->who, &c->dst)) |
	       tool_fail("close", src, ssc_nfs4_close(&t->who, &c->src));
}

static int copy(struct tool *t, const char *src, const char *dst, struct copy *c)
{
	uint8_t verf[SSC_VERIFIER_BYTES];
	uint64_t want;
	int bad;

	if (open_both(t, src, dst, c, &want))
		return 1;
	bad = tool_fail("copy", dst, copy_all(t, c, want));
	if (!bad && c->is_unstable && !t->opt.no_commit) {
		bad = tool_fail("commit", dst, ssc_nfs4_commit(&t->who, &c->dst.fh, 0, 0, verf));
		c->n_calls++;
	}
	return bad | close_both(t, src, dst, c);
}

int cmd_copy(struct tool *t, char **arg)
{
	double begin = tool_now(), cpu = tool_cpu(), s;
	struct copy c = {.bytes = 0};
	int bad = copy(t, arg[0], arg[1], &c);

	s = tool_now() - begin;
	printf("copy bytes=%llu seconds=%.6f mib_per_s=%.1f calls=%llu async=%llu polls=%llu "
	       "committed=%d cpu_s=%.6f\n",
	       (unsigned long long)c.bytes, s, s > 0 ? (double)c.bytes / 1048576 / s : 0,
	       (unsigned long long)c.n_calls, (unsigned long long)c.n_async,
	       (unsigned long long)c.n_polls, !c.is_unstable, tool_cpu() - cpu);
	return bad;
}

int cmd_clone(struct tool *t, char **arg)
{
	double begin = tool_now();
	struct copy c = {.bytes = 0};
	uint32_t outcome;
	uint64_t want;
	int bad;

	if (open_both(t, arg[0], arg[1], &c, &want))
		return 1;
	outcome = ssc_nfs4_clone(&t->who, &c.src, &c.dst, t->opt.src_off, t->opt.dst_off,
				 t->opt.count);
	bad = tool_fail("clone", arg[1], outcome) | close_both(t, arg[0], arg[1], &c);
	if (!bad)
		printf("clone seconds=%.6f\n", tool_now() - begin);
	return bad;
}

/* ---- many at once ---- */

struct worker {
	struct tool *t;
	const char *how;
	char src[1024], dst[1024];
	uint64_t bytes, n_calls;
	double seconds;
	pthread_t thread;
	int bad;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct copy c = {.bytes = 0};
	double begin = tool_now();

	if (strcmp(w->how, "rwcopy") == 0) {
		w->bad = rwcopy(w->t, w->src, w->dst, &w->bytes, &w->n_calls);
	} else {
		w->bad = copy(w->t, w->src, w->dst, &c);
		w->bytes = c.bytes;
		w->n_calls = c.n_calls;
	}
	w->seconds = tool_now() - begin;
	return NULL;
}

/* "%" in @path becomes @i. */
static void expand(char *to, size_t size, const char *path, int i)
{
	const char *mark = strchr(path, '%');

	if (mark)
		snprintf(to, size, "%.*s%d%s", (int)(mark - path), path, i, mark + 1);
	else
		snprintf(to, size, "%s", path);
}

int cmd_copies(struct tool *t, char **arg)
{
	const int n = atoi(arg[0]);
	struct worker *w = calloc(n > 0 ? (size_t)n : 1, sizeof(*w));
	double begin = tool_now(), cpu = tool_cpu(), s, slowest = 0;
	uint64_t bytes = 0, n_calls = 0;
	int bad = 0, started = 0;

	if (!w || n < 1 || n > 4096)
		return tool_fail("copies", arg[0], ssc_nfs4_local(SSC_E_INVAL));
	for (; started < n; started++) {
		w[started].t = t;
		w[started].how = arg[1];
		expand(w[started].src, sizeof(w->src), arg[2], started);
		expand(w[started].dst, sizeof(w->dst), arg[3], started);
		if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0)
			break;
	}
	bad = started < n;
	for (int i = 0; i < started; i++) {
		pthread_join(w[i].thread, NULL);
		bad |= w[i].bad;
		bytes += w[i].bytes;
		n_calls += w[i].n_calls;
		if (w[i].seconds > slowest)
			slowest = w[i].seconds;
	}
	s = tool_now() - begin;
	printf("copies n=%d bytes=%llu seconds=%.6f mib_per_s=%.1f calls=%llu slowest_s=%.6f "
	       "cpu_s=%.6f\n",
	       n, (unsigned long long)bytes, s, s > 0 ? (double)bytes / 1048576 / s : 0,
	       (unsigned long long)n_calls, slowest, tool_cpu() - cpu);
	free(w);
	return bad;
}

/* ---- latency ---- */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define SAMPLES_MAX 1000000

int cmd_getattr_loop(struct tool *t, char **arg)
{
	const double end = tool_now() + atof(arg[1]);
	double *ms = malloc(SAMPLES_MAX * sizeof(*ms));
	struct ssc_nfs4_attrs attrs;
	struct ssc_fh fh;
	uint32_t outcome;
	size_t n = 0;

	if (!ms)
		abort();
	outcome = ssc_nfs4_lookup(&t->who, arg[0], &fh, NULL);
	while (outcome == SSC_ST4_OK && tool_now() < end && n < SAMPLES_MAX) {
		double begin = tool_now();

		outcome = ssc_nfs4_getattr(&t->who, &fh, &ssc_nfs4_usual_attrs, &attrs);
		ms[n++] = (tool_now() - begin) * 1000;
		pause_ms(1);
	}
	if (outcome == SSC_ST4_OK && n > 0) {
		qsort(ms, n, sizeof(*ms), by_size);
		printf("getattr n=%zu p50_ms=%.3f p90_ms=%.3f p99_ms=%.3f max_ms=%.3f\n", n,
		       ms[n / 2], ms[n * 9 / 10], ms[n * 99 / 100], ms[n - 1]);
	}
	free(ms);
	return tool_fail("getattr", arg[0], outcome);
}
