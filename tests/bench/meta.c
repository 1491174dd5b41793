/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * meta.c - metadata operations per second over NFSv3 or NFSv4.0.
 *
 * Usage: meta URL DIR FILES DEPTH PHASES [PID...]
 *
 * DIR is a directory below the mount; PHASES a comma list of
 *   mkdir rmdir   the directory itself, not timed
 *   create        v3: CREATE; v4: OPEN with create, CLOSE
 *   stat          v3: LOOKUP, GETATTR; v4: LOOKUP with GETATTR in one COMPOUND
 *   open          v3: LOOKUP, ACCESS; v4: OPEN, CLOSE
 *   readdir       the whole directory with attributes, one request after the other
 *   unlink        REMOVE
 * and DEPTH files are worked on at a time over one connection. For each phase one line of JSON is
 * printed: seconds, operations, mean latency, the CPU seconds of this process and of each PID.
 * The first error ends the program with status 1 and a message.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/nfsraw.h"

#define DEPTH_MAX 256
#define PIDS_MAX  8
/* Size of the READDIR answers asked for; Linux asks for up to rsize, most servers cap it. */
#define READDIR_BYTES (64 * 1024)

enum phase { PHASE_CREATE, PHASE_STAT, PHASE_OPEN, PHASE_UNLINK };

struct slot {
	struct nfsraw_op op;
	struct nfsraw_state state;
	struct nfsraw_fh fh;
	char name[32];
	int step;
	uint64_t start_ns;
	struct bench *bench;
};

struct bench {
	struct nfsraw *nr;
	struct nfsraw_fh dir;
	enum phase phase;
	unsigned int n_files;
	unsigned int depth;
	unsigned int next_file;
	unsigned int n_active;
	uint64_t n_done;
	uint64_t latency_ns;
	int error;
	struct slot slots[DEPTH_MAX];
	clockid_t clocks[PIDS_MAX];
	unsigned int n_clocks;
};

struct sample {
	uint64_t wall_ns;
	uint64_t self_ns;
	uint64_t pid_ns[PIDS_MAX];
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = {0, 0};

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void take_sample(const struct bench *bench, struct sample *sample)
{
	sample->wall_ns = clock_ns(CLOCK_MONOTONIC);
	sample->self_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned int i = 0; i < bench->n_clocks; i++)
		sample->pid_ns[i] = clock_ns(bench->clocks[i]);
}

static void print_phase(const struct bench *bench, const char *name, const struct sample *start,
			uint64_t n_ops)
{
	struct sample end;
	double seconds;

	take_sample(bench, &end);
	seconds = (double)(end.wall_ns - start->wall_ns) / 1e9;
	printf("{\"phase\": \"%s\", \"ops\": %" PRIu64 ", \"seconds\": %.6f, \"rate\": %.1f, "
	       "\"latency_us\": %.1f, \"client_cpu_s\": %.6f, \"cpu_s\": [",
	       name, n_ops, seconds, (double)n_ops / seconds,
	       n_ops ? (double)bench->latency_ns / 1e3 / (double)n_ops : 0.0,
	       (double)(end.self_ns - start->self_ns) / 1e9);
	for (unsigned int i = 0; i < bench->n_clocks; i++)
		printf("%s%.6f", i ? ", " : "", (double)(end.pid_ns[i] - start->pid_ns[i]) / 1e9);
	printf("]}\n");
	fflush(stdout);
}

/* The kind of the given step of a file's work, or -1 when it is done. */
static int step_kind(const struct bench *bench, const struct slot *slot)
{
	bool is_v4 = nfsraw_version(bench->nr) == 4;

	switch (bench->phase) {
	case PHASE_CREATE:
	case PHASE_OPEN:
		if (!is_v4) {
			if (bench->phase == PHASE_CREATE)
				return slot->step == 0 ? NFSRAW_CREATE : -1;
			return slot->step == 0   ? NFSRAW_LOOKUP
			       : slot->step == 1 ? NFSRAW_ACCESS
						 : -1;
		}
		if (slot->step == 0)
			return bench->phase == PHASE_CREATE ? NFSRAW_CREATE : NFSRAW_OPEN;
		if (slot->step == 1)
			return slot->state.want_confirm ? NFSRAW_OPEN_CONFIRM : NFSRAW_CLOSE;
		/* A confirmed OPEN has its CLOSE still to come. */
		return slot->step == 2 && slot->op.kind == NFSRAW_OPEN_CONFIRM ? NFSRAW_CLOSE : -1;
	case PHASE_STAT:
		if (slot->step == 0)
			return NFSRAW_LOOKUP;
		return slot->step == 1 && !is_v4 ? NFSRAW_GETATTR : -1;
	case PHASE_UNLINK:
		return slot->step == 0 ? NFSRAW_REMOVE : -1;
	}
	return -1;
}

static void slot_done(struct nfsraw_op *op);

static void start_step(struct bench *bench, struct slot *slot, int kind)
{
	bool is_on_dir = slot->step == 0;

	slot->op = (struct nfsraw_op){
		.kind = (enum nfsraw_kind)kind,
		.fh = is_on_dir ? &bench->dir : &slot->fh,
		.name = is_on_dir ? slot->name : NULL,
		.state = &slot->state,
		.done = slot_done,
		.priv = slot,
	};
	nfsraw_submit(bench->nr, &slot->op);
}

static void next_file(struct bench *bench, struct slot *slot)
{
	if (bench->error || bench->next_file == bench->n_files) {
		bench->n_active--;
		return;
	}
	snprintf(slot->name, sizeof(slot->name), "f%08u", bench->next_file++);
	slot->step = 0;
	slot->start_ns = clock_ns(CLOCK_MONOTONIC);
	start_step(bench, slot, step_kind(bench, slot));
}

static void slot_done(struct nfsraw_op *op)
{
	struct slot *slot = op->priv;
	struct bench *bench = slot->bench;
	int kind;

	if (op->error) {
		if (!bench->error)
			fprintf(stderr, "meta: %s: %s (%s)\n", slot->name, strerror(op->error),
				nfsraw_error(bench->nr));
		bench->error = op->error;
		bench->n_active--;
		return;
	}
	if (slot->step == 0 && op->out_fh.len)
		slot->fh = op->out_fh;
	slot->step++;
	kind = step_kind(bench, slot);
	if (kind >= 0) {
		start_step(bench, slot, kind);
		return;
	}
	bench->n_done++;
	bench->latency_ns += clock_ns(CLOCK_MONOTONIC) - slot->start_ns;
	next_file(bench, slot);
}

static int run_files(struct bench *bench, const char *name, enum phase phase)
{
	struct sample start;

	bench->phase = phase;
	bench->next_file = 0;
	bench->n_done = 0;
	bench->latency_ns = 0;
	take_sample(bench, &start);
	bench->n_active = bench->depth;
	for (unsigned int i = 0; i < bench->depth; i++)
		next_file(bench, &bench->slots[i]);
	while (bench->n_active > 0)
		nfsraw_poll(bench->nr, 1000);
	if (!bench->error)
		print_phase(bench, name, &start, bench->n_done);
	return bench->error;
}

static int run_readdir(struct bench *bench)
{
	struct nfsraw_op op = {.kind = NFSRAW_READDIR,
			       .fh = &bench->dir,
			       .count_bytes = READDIR_BYTES};
	struct sample start;
	uint64_t n_entries = 0;
	int error;

	bench->latency_ns = 0;
	take_sample(bench, &start);
	do {
		error = nfsraw_call(bench->nr, &op);
		if (error) {
			fprintf(stderr, "meta: readdir: %s (%s)\n", strerror(error),
				nfsraw_error(bench->nr));
			return error;
		}
		n_entries += op.done_bytes;
		op.offset = op.cookie;
	} while (!op.is_eof);
	/* NFSv3 lists "." and ".." as well. */
	if (nfsraw_version(bench->nr) == 3)
		n_entries -= n_entries >= 2 ? 2 : 0;
	if (n_entries != bench->n_files) {
		fprintf(stderr, "meta: readdir: %" PRIu64 " entries instead of %u\n", n_entries,
			bench->n_files);
		return EIO;
	}
	print_phase(bench, "readdir", &start, n_entries);
	return 0;
}

static int run_dir(struct bench *bench, const char *dir, enum nfsraw_kind kind)
{
	struct nfsraw_op op = {.kind = kind, .fh = nfsraw_root(bench->nr), .name = dir};
	int error = nfsraw_call(bench->nr, &op);

	if (error)
		fprintf(stderr, "meta: %s %s: %s (%s)\n",
			kind == NFSRAW_MKDIR   ? "mkdir"
			: kind == NFSRAW_RMDIR ? "rmdir"
					       : "lookup",
			dir, strerror(error), nfsraw_error(bench->nr));
	else if (kind != NFSRAW_RMDIR)
		bench->dir = op.out_fh;
	return error;
}

static int run_phase(struct bench *bench, const char *dir, const char *phase)
{
	if (strcmp(phase, "mkdir") == 0)
		return run_dir(bench, dir, NFSRAW_MKDIR);
	if (strcmp(phase, "rmdir") == 0)
		return run_dir(bench, dir, NFSRAW_RMDIR);
	if (bench->dir.len == 0) {
		int error = run_dir(bench, dir, NFSRAW_LOOKUP);

		if (error)
			return error;
	}
	if (strcmp(phase, "create") == 0)
		return run_files(bench, phase, PHASE_CREATE);
	if (strcmp(phase, "stat") == 0)
		return run_files(bench, phase, PHASE_STAT);
	if (strcmp(phase, "open") == 0)
		return run_files(bench, phase, PHASE_OPEN);
	if (strcmp(phase, "unlink") == 0)
		return run_files(bench, phase, PHASE_UNLINK);
	if (strcmp(phase, "readdir") == 0)
		return run_readdir(bench);
	fprintf(stderr, "meta: no phase '%s'\n", phase);
	return EINVAL;
}

static int run(struct bench *bench, const char *dir, char *phases)
{
	char *save = NULL;

	for (unsigned int i = 0; i < bench->depth; i++) {
		bench->slots[i].bench = bench;
		nfsraw_state_init(bench->nr, &bench->slots[i].state);
	}
	for (char *phase = strtok_r(phases, ",", &save); phase;
	     phase = strtok_r(NULL, ",", &save)) {
		int error = run_phase(bench, dir, phase);

		if (error)
			return error;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	struct nfsraw_target target;
	int error;

	if (argc < 6 || argc > 6 + PIDS_MAX || nfsraw_parse_url(argv[1], &target) != 0) {
		fprintf(stderr, "usage: meta nfs://HOST/PATH?nfsport=N&mountport=N&version=3|4 "
				"DIR FILES DEPTH PHASES [PID...]\n");
		return 2;
	}
	bench.n_files = (unsigned int)strtoul(argv[3], NULL, 10);
	bench.depth = (unsigned int)strtoul(argv[4], NULL, 10);
	if (bench.n_files == 0 || bench.depth == 0 || bench.depth > DEPTH_MAX) {
		fprintf(stderr, "meta: FILES and DEPTH (at most %d) must be above 0\n", DEPTH_MAX);
		return 2;
	}
	for (int i = 6; i < argc; i++) {
		if (clock_getcpuclockid((pid_t)strtol(argv[i], NULL, 10),
					&bench.clocks[bench.n_clocks++]) != 0) {
			fprintf(stderr, "meta: no process %s\n", argv[i]);
			return 2;
		}
	}
	error = nfsraw_open(&target, &bench.nr);
	if (error)
		fprintf(stderr, "meta: %s: %s (%s)\n", argv[1], strerror(error),
			nfsraw_error(bench.nr));
	else
		error = run(&bench, argv[2], argv[5]);
	nfsraw_close(bench.nr);
	return error ? 1 : 0;
}
