/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fuzz_reply.c - bytes of an NFSv3 reply's results.
 *
 * Input: one byte that chooses the operation, one that chooses how much was asked for, then the
 * results as they lie on the wire. Nothing may be read outside of them, and what is let through
 * must be in range.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../../FSAL_SSC/upstream/internal.h"
#include "ssc/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static void no_log(enum ssc_log_level level, const char *fmt, va_list args)
{
	(void)level, (void)fmt, (void)args;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	ssc_log_set(no_log, SSC_LOG_CRIT);
	return 0;
}

static void check_attrs(bool has, const struct ssc_attrs *attrs)
{
	if (!has)
		return;
	assert(attrs->type >= SSC_FT_REG && attrs->type <= SSC_FT_FIFO);
	assert((attrs->mode & ~07777u) == 0);
	assert(attrs->mtime.ns < SSC_NS_PER_S && attrs->ctime.ns < SSC_NS_PER_S);
}

static void check_result(const struct ssc_call *call)
{
	check_attrs(call->has_attrs, &call->attrs);
	switch (call->op) {
	case SSC_OP_READ:
	case SSC_OP_WRITE:
		assert(call->res.io.count <= call->arg.io.count);
		break;
	case SSC_OP_LOOKUP:
	case SSC_OP_CREATE:
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
		assert(call->res.object.fh.len <= SSC_FH3_MAX);
		check_attrs(call->res.object.has_attrs, &call->res.object.attrs);
		break;
	case SSC_OP_READLINK:
		assert(strlen(call->res.link.target) <= SSC_LINK_MAX);
		break;
	case SSC_OP_READDIRPLUS:
		for (uint32_t i = 0; i < call->res.readdir.n_ents; i++) {
			const struct ssc_dirent *e = &call->res.readdir.ents[i];

			assert(e->name[0] && strlen(e->name) <= SSC_NAME_MAX);
			assert(!strchr(e->name, '/') && e->fh.len <= SSC_FH3_MAX);
			check_attrs(e->has_attrs, &e->attrs);
		}
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ssc_upstream up = {.call_priv_bytes = 0};
	static char buffer[64 * 1024];
	struct iovec iov[2];
	struct ssc_call *call;
	char *wire;
	enum ssc_op op;

	if (size < 2)
		return 0;
	op = data[0] % SSC_OP_N;
	call = ssc_call_new(&up, op);
	if (op == SSC_OP_READ || op == SSC_OP_WRITE) {
		call->arg.io.count = data[1] * 64u;
		iov[0] = (struct iovec){buffer, data[1] * 16u};
		iov[1] = (struct iovec){buffer + data[1] * 16u, data[1] * 48u};
		call->arg.io.iov = iov;
		call->arg.io.n_iov = 2;
	}
	/* An own block of exactly that size: one byte too far is seen. */
	size -= 2;
	wire = malloc(size ? size : 1);
	memcpy(wire, data + 2, size);
	if (ssc_reply_decode(call, wire, size, false, call) == SSC_OK)
		check_result(call);
	free(wire);
	ssc_call_put(call);
	return 0;
}
