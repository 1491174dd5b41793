/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * sync_decide.c - EXIST or NOENT for a call that was perhaps carried out before.
 *
 * The table of ssc/sync_call.h, one function per kind of object. A wrong OK tells a client that it
 * made what another made; a wrong EXIST makes a program fail although its work was done. The first
 * is worse, so whatever does not fit exactly is answered as it came.
 *
 * What the follow-up calls bring is a peer's word: a handle or attributes may be missing.
 */
#include <endian.h>
#include <string.h>

#include "sync_internal.h"

#define MODE_PERMISSIONS 0777u
#define MODE_ALL         07777u

/* Servers keep 31 bits of each half of a create verifier, as their times are signed. */
#define VERF_TIME_MASK 0x7fffffffu

/* Not decided now, so the client is to come back. */
static bool is_passing(enum ssc_err err)
{
	return err == SSC_E_TIMEDOUT || err == SSC_E_DOWN || err == SSC_E_CONN ||
	       err == SSC_E_JUKEBOX || err == SSC_E_SHUTDOWN;
}

static enum ssc_err add_attrs(struct ssc_caller *caller, struct ssc_call *lookup, uint64_t until_ns)
{
	struct ssc_call *ask = ssc_sync_ask_new(caller, SSC_OP_GETATTR, lookup);
	enum ssc_err err;

	ask->fh = lookup->res.object.fh;
	err = ssc_sync_ask(caller, ask, until_ns);
	if (err == SSC_OK && !ask->has_attrs)
		err = SSC_E_PROTO;
	if (err == SSC_OK) {
		lookup->res.object.attrs = ask->attrs;
		lookup->res.object.has_attrs = true;
	}
	ssc_call_put(ask);
	return err;
}

/* What is at @name in @dir, with handle and attributes. *out is the caller's to put, if SSC_OK. */
static enum ssc_err look(struct ssc_caller *caller, const struct ssc_call *call,
			 const struct ssc_fh *dir, const char *name, uint64_t until_ns,
			 struct ssc_call **out)
{
	struct ssc_call *ask = ssc_sync_ask_new(caller, SSC_OP_LOOKUP, call);
	enum ssc_err err;

	ask->fh = *dir;
	err = ssc_call_set_name(ask, name);
	if (err == SSC_OK)
		err = ssc_sync_ask(caller, ask, until_ns);
	if (err == SSC_OK && ask->res.object.fh.len == 0)
		err = SSC_E_PROTO;
	if (err == SSC_OK && !ask->res.object.has_attrs)
		err = add_attrs(caller, ask, until_ns);
	if (err == SSC_OK)
		*out = ask;
	else
		ssc_call_put(ask);
	return err;
}

static bool is_asked_mode(const struct ssc_sattr *set, const struct ssc_attrs *is, uint32_t mask)
{
	return !set->set_mode || (set->mode & mask) == (is->mode & mask);
}

static bool is_asked_owner(const struct ssc_call *call, const struct ssc_sattr *set,
			   const struct ssc_attrs *is)
{
	uint32_t uid = set->set_uid ? set->uid : call->cred.uid;

	/* Whom the upstream squashes root to is not known here; a mode that fits stands in. */
	return is->uid == uid || (call->cred.uid == 0 && set->set_mode);
}

/*
 * RFC 1813 3.3.8 leaves it to the server where a create verifier is kept. The common place is the
 * seconds of the two times, in either order and byte order.
 */
static bool has_verifier(const struct ssc_attrs *is, const uint8_t verf[SSC_VERF_BYTES])
{
	const uint32_t at = (uint32_t)is->atime.s & VERF_TIME_MASK;
	const uint32_t mt = (uint32_t)is->mtime.s & VERF_TIME_MASK;
	uint32_t word[2];
	uint32_t hi, lo;
	int swap;

	memcpy(word, verf, sizeof(word));
	for (swap = 0; swap < 2; swap++) {
		hi = (swap ? be32toh(word[0]) : le32toh(word[0])) & VERF_TIME_MASK;
		lo = (swap ? be32toh(word[1]) : le32toh(word[1])) & VERF_TIME_MASK;
		if ((at == hi && mt == lo) || (at == lo && mt == hi))
			return true;
	}
	return false;
}

static bool is_created(const struct ssc_call *call, const struct ssc_attrs *is)
{
	const struct ssc_sattr *set = &call->arg.create.set;

	if (is->type != SSC_FT_REG)
		return false;
	if (call->arg.create.how == SSC_CREATE_EXCLUSIVE)
		return has_verifier(is, call->arg.create.verf);
	return is->nlink == 1 && is->size == (set->set_size ? set->size : 0) &&
	       is_asked_mode(set, is, MODE_ALL) && is_asked_owner(call, set, is);
}

static bool is_made_dir(const struct ssc_call *call, const struct ssc_attrs *is)
{
	const struct ssc_sattr *set = &call->arg.make.set;

	/* The parent's set-gid bit is inherited, so only the permissions can be compared. */
	return is->type == SSC_FT_DIR && is->nlink <= 2 &&
	       is_asked_mode(set, is, MODE_PERMISSIONS) && is_asked_owner(call, set, is);
}

static bool is_made_node(const struct ssc_call *call, const struct ssc_attrs *is)
{
	const struct ssc_sattr *set = &call->arg.make.set;

	if (is->type != call->arg.make.type || is->nlink != 1)
		return false;
	if ((is->type == SSC_FT_BLK || is->type == SSC_FT_CHR) &&
	    (is->rdev_major != call->arg.make.rdev_major ||
	     is->rdev_minor != call->arg.make.rdev_minor))
		return false;
	return is_asked_mode(set, is, MODE_ALL) && is_asked_owner(call, set, is);
}

/* *same: @link is a symbolic link to the target that @call asked for. */
static enum ssc_err compare_target(struct ssc_caller *caller, const struct ssc_call *call,
				   const struct ssc_call *link, uint64_t until_ns, bool *same)
{
	struct ssc_call *ask;
	enum ssc_err err;

	*same = false;
	if (link->res.object.attrs.type != SSC_FT_LNK)
		return SSC_OK;
	ask = ssc_sync_ask_new(caller, SSC_OP_READLINK, call);
	ask->fh = link->res.object.fh;
	err = ssc_sync_ask(caller, ask, until_ns);
	if (err == SSC_OK && ask->res.link.target != NULL)
		*same = strcmp(ask->res.link.target, call->text) == 0;
	ssc_call_put(ask);
	return err;
}

/* *ours: what @found is there is what @call would have made. */
static enum ssc_err compare(struct ssc_caller *caller, const struct ssc_call *call,
			    const struct ssc_call *found, uint64_t until_ns, bool *ours)
{
	const struct ssc_attrs *is = &found->res.object.attrs;

	*ours = false;
	if (call->op == SSC_OP_CREATE)
		*ours = is_created(call, is);
	else if (call->op == SSC_OP_MKDIR)
		*ours = is_made_dir(call, is);
	else if (call->op == SSC_OP_MKNOD)
		*ours = is_made_node(call, is);
	else if (call->op == SSC_OP_LINK)
		*ours = ssc_sync_fh_equal(&found->res.object.fh, &call->fh);
	else if (call->op == SSC_OP_RENAME)
		*ours = ssc_sync_fh_equal(&found->res.object.fh, &call->arg.rename.object);
	else if (call->op == SSC_OP_SYMLINK)
		return compare_target(caller, call, found, until_ns, ours);
	return SSC_OK;
}

static void take_result(struct ssc_call *call, const struct ssc_call *found)
{
	if (call->op == SSC_OP_LINK) {
		call->attrs = found->res.object.attrs;
		call->has_attrs = true;
	} else if (call->op != SSC_OP_RENAME) {
		call->res.object.fh = found->res.object.fh;
		call->res.object.attrs = found->res.object.attrs;
		call->res.object.has_attrs = true;
	}
}

/* Look at @name in @dir: SSC_OK if @call made that, else @plain or a passing error. */
static enum ssc_err decide_by_look(struct ssc_caller *caller, struct ssc_call *call,
				   enum ssc_err plain, const struct ssc_fh *dir, const char *name,
				   uint64_t until_ns)
{
	struct ssc_call *found;
	enum ssc_err err;
	bool ours = false;

	err = look(caller, call, dir, name, until_ns, &found);
	if (err == SSC_OK) {
		err = compare(caller, call, found, until_ns, &ours);
		if (ours)
			take_result(call, found);
		ssc_call_put(found);
	}
	if (ours)
		return SSC_OK;
	return is_passing(err) ? err : plain;
}

enum ssc_err ssc_sync_decide(struct ssc_caller *caller, struct ssc_call *call, enum ssc_err err,
			     uint64_t until_ns)
{
	switch (call->op) {
	case SSC_OP_CREATE:
	case SSC_OP_MKDIR:
	case SSC_OP_SYMLINK:
	case SSC_OP_MKNOD:
		if (err == SSC_E_EXIST && !ssc_sync_is_repeatable(call))
			return decide_by_look(caller, call, err, &call->fh, call->name, until_ns);
		return err;
	case SSC_OP_LINK:
		if (err == SSC_E_EXIST)
			return decide_by_look(caller, call, err, &call->arg.rename.to_dir,
					      call->name, until_ns);
		return err;
	case SSC_OP_RENAME:
		if (err == SSC_E_NOENT && call->arg.rename.object.len != 0)
			return decide_by_look(caller, call, err, &call->arg.rename.to_dir,
					      call->text, until_ns);
		return err;
	case SSC_OP_REMOVE:
	case SSC_OP_RMDIR:
		return err == SSC_E_NOENT ? SSC_OK : err;
	case SSC_OP_NULL:
	case SSC_OP_GETATTR:
	case SSC_OP_SETATTR:
	case SSC_OP_LOOKUP:
	case SSC_OP_READLINK:
	case SSC_OP_READ:
	case SSC_OP_WRITE:
	case SSC_OP_READDIRPLUS:
	case SSC_OP_FSSTAT:
	case SSC_OP_FSINFO:
	case SSC_OP_PATHCONF:
	case SSC_OP_COMMIT:
	case SSC_OP_N:
		break;
	}
	return err;
}
