/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42_pipe.c - data through the client: `depth` blocks of `block` bytes under way at a time.
 *
 * Each lane has one call and one buffer, and goes round: take the next block, READ it, WRITE it. All of
 * that happens on the client's thread, in the completions, so nothing here needs a lock; main sleeps
 * until the last lane ends. Short answers are continued where they ended.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs42.h"

struct pipe {
	struct pipe_job *job;
	uint64_t next; /* where the next block begins, counted from the job's begin */
	uint32_t n_lanes;
	uint64_t *sums; /* of each block */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool is_over;
};

struct lane {
	struct ssc_nfs4_call call;
	struct pipe *pipe;
	struct iovec iov;
	uint8_t *buf;
	uint64_t at;        /* of the block */
	uint32_t len, done; /* of the step under way */
};

static void next_block(struct lane *lane);
static void write_block(struct lane *lane);

static void over(struct lane *lane)
{
	struct pipe *p = lane->pipe;

	pthread_mutex_lock(&p->lock);
	if (--p->n_lanes == 0) {
		p->is_over = true;
		pthread_cond_signal(&p->cond);
	}
	pthread_mutex_unlock(&p->lock);
}

static void failed(struct lane *lane, const char *what, uint32_t outcome)
{
	struct pipe_job *job = lane->pipe->job;

	if (!job->failed) {
		job->failed = what;
		job->outcome = outcome;
	}
	over(lane);
}

static void submit(struct lane *lane, void (*done)(struct ssc_nfs4_call *call))
{
	lane->call.done = done;
	lane->call.ctx = lane;
	lane->pipe->job->n_calls++;
	ssc_nfs4_submit(lane->pipe->job->t->who.client, &lane->call);
}

static void block_done(struct lane *lane)
{
	lane->pipe->job->done_bytes += lane->len;
	next_block(lane);
}

/* The block is in the buffer. */
static void consume(struct lane *lane)
{
	struct pipe_job *job = lane->pipe->job;

	if (job->is_sum)
		lane->pipe->sums[lane->at / job->t->opt.block] =
			ssc_base_hash(lane->buf, lane->len, 0);
	else if (job->dst_fd >= 0 &&
		 pwrite(job->dst_fd, lane->buf, lane->len, (off_t)(job->dst_off + lane->at)) !=
			 (ssize_t)lane->len) {
		failed(lane, "pwrite", ssc_nfs4_local(SSC_E_IO));
		return;
	}
	lane->done = 0;
	if (job->dst)
		write_block(lane);
	else
		block_done(lane);
}

static void written(struct ssc_nfs4_call *call)
{
	struct lane *lane = call->ctx;
	struct ssc_write_response res = {.count = 0};
	uint32_t outcome = ssc_nfs4_res(call, SSC_OP4_PUTFH);

	if (outcome == SSC_ST4_OK)
		outcome = ssc_nfs4_res_write(call, &res);
	ssc_nfs4_call_fini(call);
	if (outcome == SSC_ST4_OK && res.count == 0)
		outcome = ssc_nfs4_local(SSC_E_PROTO);
	lane->done += res.count;
	if (outcome == SSC_ST4_DELAY || (outcome == SSC_ST4_OK && lane->done < lane->len))
		write_block(lane);
	else if (outcome)
		failed(lane, "WRITE", outcome);
	else
		block_done(lane);
}

static void write_block(struct lane *lane)
{
	struct pipe_job *job = lane->pipe->job;

	lane->iov = (struct iovec){lane->buf + lane->done, lane->len - lane->done};
	ssc_nfs4_call_init(&lane->call, &job->t->who.cred);
	ssc_nfs4_arg_putfh(&lane->call, &job->dst->fh);
	ssc_nfs4_arg_write(&lane->call, &job->dst->stateid, job->dst_off + lane->at + lane->done,
			   job->t->opt.stable, &lane->iov, 1, lane->iov.iov_len);
	submit(lane, written);
}

static void read_block(struct lane *lane);

static void was_read(struct ssc_nfs4_call *call)
{
	struct lane *lane = call->ctx;
	struct ssc_nfs4_read_res res = {.count = 0};
	uint32_t outcome = ssc_nfs4_res(call, SSC_OP4_PUTFH);

	if (outcome == SSC_ST4_OK)
		outcome = ssc_nfs4_res_read(call, &res);
	ssc_nfs4_call_fini(call);
	lane->done += res.count;
	if (outcome == SSC_ST4_OK && lane->done < lane->len && (res.is_eof || res.count == 0))
		outcome = ssc_nfs4_local(SSC_E_PROTO); /* it was longer a moment ago */
	if (outcome == SSC_ST4_DELAY || (outcome == SSC_ST4_OK && lane->done < lane->len))
		read_block(lane);
	else if (outcome)
		failed(lane, "READ", outcome);
	else
		consume(lane);
}

static void read_block(struct lane *lane)
{
	struct pipe_job *job = lane->pipe->job;

	lane->iov = (struct iovec){lane->buf + lane->done, lane->len - lane->done};
	ssc_nfs4_call_init(&lane->call, &job->t->who.cred);
	ssc_nfs4_arg_putfh(&lane->call, &job->src->fh);
	ssc_nfs4_arg_read(&lane->call, &job->src->stateid, job->src_off + lane->at + lane->done,
			  (uint32_t)lane->iov.iov_len, &lane->iov, 1);
	submit(lane, was_read);
}

/* Bytes that depend on their place only, so that two fills of one seed agree. */
static void make_pattern(uint8_t *buf, uint32_t len, uint64_t at, uint64_t seed)
{
	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t v = ssc_base_mix((at + i) / 8 + (seed << 40));
		uint32_t n = len - i < 8 ? len - i : 8;

		memcpy(buf + i, &v, n);
	}
}

static void next_block(struct lane *lane)
{
	struct pipe *p = lane->pipe;
	struct pipe_job *job = p->job;
	const uint64_t left = job->bytes - p->next;

	if (left == 0 || job->failed) {
		over(lane);
		return;
	}
	lane->at = p->next;
	lane->len = left < job->t->opt.block ? (uint32_t)left : job->t->opt.block;
	lane->done = 0;
	p->next += lane->len;
	if (job->src) {
		read_block(lane);
	} else if (job->is_pattern) {
		make_pattern(lane->buf, lane->len, lane->at, job->t->opt.seed);
		consume(lane);
	} else if (pread(job->src_fd, lane->buf, lane->len, (off_t)lane->at) !=
		   (ssize_t)lane->len) {
		failed(lane, "pread", ssc_nfs4_local(SSC_E_IO));
	} else {
		consume(lane);
	}
}

/* The first step of each lane is taken on the client's thread, too: by a call that does nothing. */
static void begun(struct ssc_nfs4_call *call)
{
	struct lane *lane = call->ctx;

	if (call->outcome)
		failed(lane, "SEQUENCE", call->outcome);
	else
		next_block(lane);
}

int pipe_run(struct pipe_job *job)
{
	const struct options *opt = &job->t->opt;
	const uint64_t n_blocks = (job->bytes + opt->block - 1) / opt->block;
	struct pipe p = {.job = job, .n_lanes = opt->depth};
	struct lane *lanes = calloc(opt->depth, sizeof(*lanes));

	p.sums = calloc(n_blocks + 1, sizeof(*p.sums));
	if (!lanes || !p.sums)
		abort();
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.cond, NULL);
	for (uint32_t i = 0; i < opt->depth; i++) {
		lanes[i].pipe = &p;
		lanes[i].buf = malloc(opt->block);
		if (!lanes[i].buf)
			abort();
	}
	for (uint32_t i = 0; i < opt->depth; i++) {
		ssc_nfs4_call_init(&lanes[i].call, &job->t->who.cred);
		lanes[i].call.done = begun;
		lanes[i].call.ctx = &lanes[i];
		ssc_nfs4_submit(job->t->who.client, &lanes[i].call);
	}
	pthread_mutex_lock(&p.lock);
	while (!p.is_over)
		pthread_cond_wait(&p.cond, &p.lock);
	pthread_mutex_unlock(&p.lock);
	job->sum = ssc_base_hash(p.sums, n_blocks * sizeof(*p.sums), job->bytes);
	for (uint32_t i = 0; i < opt->depth; i++)
		free(lanes[i].buf);
	free(lanes);
	free(p.sums);
	return job->failed ? tool_fail(job->failed, "", job->outcome) : 0;
}

/* ---- commands ---- */

static int open_source(struct tool *t, const char *path, struct ssc_nfs4_file *file, uint64_t *size)
{
	struct ssc_nfs4_attrs attrs;
	uint32_t outcome = ssc_nfs4_open(&t->who, path, SSC_OPEN4_READ, 0, file);

	if (outcome)
		return tool_fail("open", path, outcome);
	outcome = ssc_nfs4_getattr(&t->who, &file->fh, &ssc_nfs4_usual_attrs, &attrs);
	if (outcome)
		return tool_fail("getattr", path, outcome);
	*size = attrs.size;
	return 0;
}

static int open_sink(struct tool *t, const char *path, struct ssc_nfs4_file *file)
{
	uint32_t how = SSC_OPEN4_WRITE | SSC_NFS4_CREATE;

	if (t->opt.dst_off == 0 && !t->opt.keep)
		how |= SSC_NFS4_TRUNCATE;
	return tool_fail("open", path, ssc_nfs4_open(&t->who, path, how, 0644, file));
}

static int finish_sink(struct tool *t, const char *path, const struct ssc_nfs4_file *file)
{
	uint8_t verf[SSC_VERIFIER_BYTES];
	int bad = 0;

	if (!t->opt.no_commit)
		bad = tool_fail("commit", path, ssc_nfs4_commit(&t->who, &file->fh, 0, 0, verf));
	return bad | tool_fail("close", path, ssc_nfs4_close(&t->who, file));
}

static int close_source(struct tool *t, const char *path, const struct ssc_nfs4_file *file)
{
	return tool_fail("close", path, ssc_nfs4_close(&t->who, file));
}

static void report(const char *what, uint64_t bytes, double begin, double cpu, uint64_t n_calls)
{
	double s = tool_now() - begin;

	printf("%s bytes=%llu seconds=%.6f mib_per_s=%.1f calls=%llu cpu_s=%.6f\n", what,
	       (unsigned long long)bytes, s, s > 0 ? (double)bytes / 1048576 / s : 0,
	       (unsigned long long)n_calls, tool_cpu() - cpu);
}

static uint64_t limit(const struct tool *t, uint64_t size)
{
	const uint64_t left = size > t->opt.src_off ? size - t->opt.src_off : 0;

	return t->opt.count && t->opt.count < left ? t->opt.count : left;
}

int rwcopy(struct tool *t, const char *src, const char *dst, uint64_t *bytes, uint64_t *n_calls)
{
	struct ssc_nfs4_file in, out;
	struct pipe_job job = {.t = t, .src = &in, .dst = &out, .src_fd = -1, .dst_fd = -1};
	uint64_t size;
	int bad;

	if (open_source(t, src, &in, &size) || open_sink(t, dst, &out))
		return 1;
	job.src_off = t->opt.src_off;
	job.dst_off = t->opt.dst_off;
	job.bytes = limit(t, size);
	bad = pipe_run(&job);
	*bytes = job.done_bytes;
	*n_calls = job.n_calls;
	return bad | finish_sink(t, dst, &out) | close_source(t, src, &in);
}

int cmd_rwcopy(struct tool *t, char **arg)
{
	double begin = tool_now(), cpu = tool_cpu();
	uint64_t bytes, n_calls;
	int bad = rwcopy(t, arg[0], arg[1], &bytes, &n_calls);

	if (!bad)
		report("rwcopy", bytes, begin, cpu, n_calls);
	return bad;
}

int cmd_put(struct tool *t, char **arg)
{
	struct ssc_nfs4_file out;
	struct pipe_job job = {.t = t, .dst = &out, .dst_fd = -1, .dst_off = t->opt.dst_off};
	double begin = tool_now(), cpu = tool_cpu();
	struct stat st;
	int bad;

	job.src_fd = open(arg[0], O_RDONLY | O_CLOEXEC);
	if (job.src_fd < 0 || fstat(job.src_fd, &st) != 0)
		return tool_fail("open", arg[0], ssc_nfs4_local(SSC_E_NOENT));
	job.bytes = (uint64_t)st.st_size;
	if (open_sink(t, arg[1], &out))
		return 1;
	bad = pipe_run(&job) | finish_sink(t, arg[1], &out);
	close(job.src_fd);
	if (!bad)
		report("put", job.done_bytes, begin, cpu, job.n_calls);
	return bad;
}

int cmd_fill(struct tool *t, char **arg)
{
	struct ssc_nfs4_file out;
	struct pipe_job job = {.t = t, .dst = &out, .src_fd = -1, .dst_fd = -1, .is_pattern = true};
	double begin = tool_now(), cpu = tool_cpu();
	int bad;

	job.dst_off = t->opt.dst_off;
	job.bytes = tool_number(arg[1]);
	if (open_sink(t, arg[0], &out))
		return 1;
	bad = pipe_run(&job) | finish_sink(t, arg[0], &out);
	if (!bad)
		report("fill", job.done_bytes, begin, cpu, job.n_calls);
	return bad;
}

int cmd_get(struct tool *t, char **arg)
{
	struct ssc_nfs4_file in;
	struct pipe_job job = {.t = t, .src = &in, .src_fd = -1};
	double begin = tool_now(), cpu = tool_cpu();
	uint64_t size;
	int bad;

	if (open_source(t, arg[0], &in, &size))
		return 1;
	job.dst_fd = open(arg[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (job.dst_fd < 0)
		return tool_fail("open", arg[1], ssc_nfs4_local(SSC_E_NOENT));
	job.src_off = t->opt.src_off;
	job.bytes = limit(t, size);
	bad = pipe_run(&job) | close_source(t, arg[0], &in);
	close(job.dst_fd);
	if (!bad)
		report("get", job.done_bytes, begin, cpu, job.n_calls);
	return bad;
}

int cmd_sum(struct tool *t, char **arg)
{
	struct ssc_nfs4_file in;
	struct pipe_job job = {.t = t, .src = &in, .src_fd = -1, .dst_fd = -1, .is_sum = true};
	uint64_t size;
	int bad;

	if (open_source(t, arg[0], &in, &size))
		return 1;
	job.src_off = t->opt.src_off;
	job.bytes = limit(t, size);
	bad = pipe_run(&job) | close_source(t, arg[0], &in);
	if (!bad)
		printf("sum=%016llx bytes=%llu\n", (unsigned long long)job.sum,
		       (unsigned long long)job.done_bytes);
	return bad;
}
