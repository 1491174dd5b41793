/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs42_small.c - a small file copied by one COPY, and by one READ and one WRITE, again and again.
 *
 * Both files stay open, and both ways take turns, so what is compared is the calls alone, under the same
 * conditions. Times are in microseconds; READ and WRITE are of the whole file, at most one block. With
 * "copy" instead of "both" only COPY is called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs42.h"

#define ROUNDS_MAX 100000

struct small {
	struct tool *t;
	struct ssc_nfs4_file src, dst;
	uint32_t bytes;
	uint8_t *buf;
};

static uint32_t by_copy(struct small *s)
{
	const struct ssc_copy_args args = {
		.count = s->bytes,
		.consecutive = true,
		.synchronous = true,
	};
	struct ssc_copy_res res;
	uint32_t outcome = ssc_nfs4_copy(&s->t->who, &s->src, &s->dst, &args, &res);

	if (outcome == SSC_ST4_OK && res.response.count != s->bytes)
		outcome = ssc_nfs4_local(SSC_E_PROTO);
	return outcome;
}

static uint32_t by_rw(struct small *s)
{
	struct ssc_write_response wres;
	struct ssc_nfs4_read_res rres;
	uint32_t outcome = ssc_nfs4_read(&s->t->who, &s->src, 0, s->buf, s->bytes, &rres);

	if (outcome == SSC_ST4_OK && rres.count == s->bytes)
		outcome = ssc_nfs4_write(&s->t->who, &s->dst, 0, s->buf, s->bytes, 0, &wres);
	else if (outcome == SSC_ST4_OK)
		outcome = ssc_nfs4_local(SSC_E_PROTO);
	if (outcome == SSC_ST4_OK && wres.count != s->bytes)
		outcome = ssc_nfs4_local(SSC_E_PROTO);
	return outcome;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double timed(uint32_t (*way)(struct small *s), struct small *s, uint32_t *outcome)
{
	const double begin = tool_now();

	if (*outcome == SSC_ST4_OK)
		*outcome = way(s);
	return (tool_now() - begin) * 1e6;
}

static uint32_t rounds(struct small *s, uint32_t n, bool want_rw)
{
	double *copy_us = calloc(n, sizeof(*copy_us)), *rw_us = calloc(n, sizeof(*rw_us));
	uint32_t outcome = SSC_ST4_OK;

	if (!copy_us || !rw_us)
		abort();
	for (uint32_t i = 0; i < n && outcome == SSC_ST4_OK; i++) {
		copy_us[i] = timed(by_copy, s, &outcome);
		if (want_rw)
			rw_us[i] = timed(by_rw, s, &outcome);
	}
	if (outcome == SSC_ST4_OK) {
		qsort(copy_us, n, sizeof(*copy_us), by_size);
		qsort(rw_us, n, sizeof(*rw_us), by_size);
		printf("small n=%u bytes=%u copy_us=%.1f rw_us=%.1f copy_p90_us=%.1f "
		       "rw_p90_us=%.1f\n",
		       n, s->bytes, copy_us[n / 2], rw_us[n / 2], copy_us[n * 9ul / 10],
		       rw_us[n * 9ul / 10]);
	}
	free(copy_us);
	free(rw_us);
	return outcome;
}

int cmd_small(struct tool *t, char **arg)
{
	const uint64_t n = tool_number(arg[0]);
	const bool want_rw = strcmp(arg[1], "both") == 0;
	const char *src = arg[2], *dst = arg[3];
	struct small s = {.t = t};
	struct ssc_nfs4_attrs attrs;
	int bad;

	if (n < 1 || n > ROUNDS_MAX || (!want_rw && strcmp(arg[1], "copy") != 0))
		return tool_fail("small", arg[0], ssc_nfs4_local(SSC_E_INVAL));
	if (tool_fail("open", src, ssc_nfs4_open(&t->who, src, SSC_OPEN4_READ, 0, &s.src)) ||
	    tool_fail("open", dst,
		      ssc_nfs4_open(&t->who, dst, SSC_OPEN4_WRITE | SSC_NFS4_CREATE, 0644,
				    &s.dst)) ||
	    tool_fail("getattr", src,
		      ssc_nfs4_getattr(&t->who, &s.src.fh, &ssc_nfs4_usual_attrs, &attrs)))
		return 1;
	if (attrs.size < 1 || (want_rw && attrs.size > t->opt.block) || attrs.size > UINT32_MAX)
		return tool_fail("small", src, ssc_nfs4_local(SSC_E_INVAL));
	s.bytes = (uint32_t)attrs.size;
	s.buf = malloc(s.bytes);
	if (!s.buf)
		abort();
	bad = tool_fail("small", dst, rounds(&s, (uint32_t)n, want_rw));
	free(s.buf);
	return bad | tool_fail("close", dst, ssc_nfs4_close(&t->who, &s.dst)) |
	       tool_fail("close", src, ssc_nfs4_close(&t->who, &s.src));
}
