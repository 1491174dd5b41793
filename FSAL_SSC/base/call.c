/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * call.c - memory of the requests that go to an upstream, and what is known of each operation.
 *
 * A call is one block: the struct, then, aligned for anything, the room that the upstream wants. It
 * lives here and not with an upstream because all upstreams and all submitters share it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ssc/upstream.h"

#define PRIV_ALIGN  _Alignof(max_align_t)
#define PRIV_OFFSET ((sizeof(struct ssc_call) + PRIV_ALIGN - 1) / PRIV_ALIGN * PRIV_ALIGN)

struct ssc_call *ssc_call_new(struct ssc_upstream *up, enum ssc_op op)
{
	struct ssc_call *call = calloc(1, PRIV_OFFSET + up->call_priv_bytes);

	if (call == NULL)
		abort();
	call->op = op;
	call->up = up;
	atomic_init(&call->refs, 1);
	return call;
}

struct ssc_call *ssc_call_get(struct ssc_call *call)
{
	int before = atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);

	assert(before > 0);
	(void)before;
	return call;
}

void ssc_call_put(struct ssc_call *call)
{
	int before;

	if (call == NULL)
		return;
	before = atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel);
	assert(before > 0);
	if (before > 1)
		return;
	if (call->op == SSC_OP_READLINK)
		free(call->res.link.target);
	else if (call->op == SSC_OP_READDIRPLUS)
		free(call->res.readdir.ents);
	free(call->result_mem);
	free(call->name);
	free(call->text);
	free(call);
}

static void replace(char **slot, const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		abort();
	free(*slot);
	*slot = copy;
}

static enum ssc_err check_name(const char *name)
{
	if (name[0] == '\0' || strchr(name, '/') != NULL)
		return SSC_E_INVAL;
	return strnlen(name, SSC_NAME_MAX + 1) > SSC_NAME_MAX ? SSC_E_NAMETOOLONG : SSC_OK;
}

enum ssc_err ssc_call_set_name(struct ssc_call *call, const char *name)
{
	enum ssc_err err = check_name(name);

	if (err == SSC_OK)
		replace(&call->name, name);
	return err;
}

enum ssc_err ssc_call_set_text(struct ssc_call *call, const char *text)
{
	enum ssc_err err;

	if (call->op != SSC_OP_SYMLINK)
		err = check_name(text);
	else if (strnlen(text, SSC_LINK_MAX + 1) > SSC_LINK_MAX)
		err = SSC_E_NAMETOOLONG;
	else
		err = SSC_OK;
	if (err == SSC_OK)
		replace(&call->text, text);
	return err;
}

void *ssc_call_priv(struct ssc_call *call)
{
	return (char *)call + PRIV_OFFSET;
}

const char *ssc_op_str(enum ssc_op op)
{
	switch (op) {
	case SSC_OP_NULL:
		return "NULL";
	case SSC_OP_GETATTR:
		return "GETATTR";
	case SSC_OP_SETATTR:
		return "SETATTR";
	case SSC_OP_LOOKUP:
		return "LOOKUP";
	case SSC_OP_READLINK:
		return "READLINK";
	case SSC_OP_READ:
		return "READ";
	case SSC_OP_WRITE:
		return "WRITE";
	case SSC_OP_CREATE:
		return "CREATE";
	case SSC_OP_MKDIR:
		return "MKDIR";
	case SSC_OP_SYMLINK:
		return "SYMLINK";
	case SSC_OP_MKNOD:
		return "MKNOD";
	case SSC_OP_REMOVE:
		return "REMOVE";
	case SSC_OP_RMDIR:
		return "RMDIR";
	case SSC_OP_RENAME:
		return "RENAME";
	case SSC_OP_LINK:
		return "LINK";
	case SSC_OP_READDIRPLUS:
		return "READDIRPLUS";
	case SSC_OP_FSSTAT:
		return "FSSTAT";
	case SSC_OP_FSINFO:
		return "FSINFO";
	case SSC_OP_PATHCONF:
		return "PATHCONF";
	case SSC_OP_COMMIT:
		return "COMMIT";
	case SSC_OP_N:
		break;
	}
	return "(unknown)";
}

bool ssc_call_is_idempotent(const struct ssc_call *call)
{
	switch (call->op) {
	case SSC_OP_NULL:
	case SSC_OP_GETATTR:
	case SSC_OP_LOOKUP:
	case SSC_OP_READLINK:
	case SSC_OP_READ:
	case SSC_OP_WRITE:
	case SSC_OP_READDIRPLUS:
	case SSC_OP_FSSTAT:
	case SSC_OP_FSINFO:
	case SSC_OP_PATHCONF:
	case SSC_OP_COMMIT:
		return true;
	case SSC_OP_SETATTR:
		/* Cutting a file off once more, after the client went on to write, loses data. */
		return !call->arg.setattr.set.set_size;
	case SSC_OP_CREATE: /* UNCHECKED may truncate, see SETATTR; the others answer EXIST */
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
	case SSC_OP_REMOVE:
	case SSC_OP_RMDIR:
	case SSC_OP_RENAME:
	case SSC_OP_LINK:
	case SSC_OP_N:
		break;
	}
	return false;
}
