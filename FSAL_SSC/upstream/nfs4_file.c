/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_file.c - see nfs4_file.h.
 *
 * Results are taken in the order in which the operations were appended, and the first that is not OK
 * ends it: NEXT. Every open has an open owner of its own, so that each close is of that open alone.
 */
#include <string.h>

#include "ssc/nfs4_file.h"

#include "nfs4_internal.h"

/* The outcome of the next operation, unless one before it has failed. */
#define NEXT(outcome, take)                  \
	do {                                 \
		if ((outcome) == SSC_ST4_OK) \
			(outcome) = (take);  \
	} while (0)

static uint32_t run(const struct ssc_nfs4_who *who, struct ssc_nfs4_call *call)
{
	uint32_t outcome = ssc_nfs4_run(who->client, call);

	return ssc_nfs4_local_err(outcome) ? outcome : SSC_ST4_OK;
}

/* The next name of *path, or NULL. Its length goes to *len. */
static const char *next_name(const char **path, size_t *len)
{
	const char *name = *path + strspn(*path, "/");

	*len = strcspn(name, "/");
	*path = name + *len;
	return *len > 0 ? name : NULL;
}

/* PUTROOTFH and a LOOKUP for each name but, if *last is wanted, the last one. @return how many. */
static uint32_t walk(struct ssc_nfs4_call *call, const char *path, char last[SSC_NAME_MAX + 1])
{
	const char *name, *next;
	size_t len, next_len;
	uint32_t n = 0;

	ssc_nfs4_arg(call, SSC_OP4_PUTROOTFH);
	if (last)
		last[0] = '\0';
	for (name = next_name(&path, &len); name; name = next, len = next_len) {
		next = next_name(&path, &next_len);
		if (len > SSC_NAME_MAX) {
			call->is_bad = true;
		} else if (!next && last) {
			memcpy(last, name, len);
			last[len] = '\0';
		} else {
			ssc_nfs4_arg_name(call, SSC_OP4_LOOKUP, name, len);
			n++;
		}
	}
	return n;
}

static uint32_t walked(struct ssc_nfs4_call *call, uint32_t n)
{
	uint32_t outcome = ssc_nfs4_res(call, SSC_OP4_PUTROOTFH);

	for (; n > 0; n--)
		NEXT(outcome, ssc_nfs4_res(call, SSC_OP4_LOOKUP));
	return outcome;
}

uint32_t ssc_nfs4_lookup(const struct ssc_nfs4_who *who, const char *path, struct ssc_fh *fh,
			 struct ssc_nfs4_attrs *attrs)
{
	struct ssc_nfs4_call call;
	uint32_t outcome, n;

	ssc_nfs4_call_init(&call, &who->cred);
	n = walk(&call, path, NULL);
	ssc_nfs4_arg(&call, SSC_OP4_GETFH);
	if (attrs)
		ssc_nfs4_arg_getattr(&call, &ssc_nfs4_usual_attrs);
	outcome = run(who, &call);
	NEXT(outcome, walked(&call, n));
	NEXT(outcome, ssc_nfs4_res_getfh(&call, fh));
	if (attrs)
		NEXT(outcome, ssc_nfs4_res_getattr(&call, attrs));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_open(const struct ssc_nfs4_who *who, const char *path, uint32_t how,
		       uint32_t mode, struct ssc_nfs4_file *file)
{
	static atomic_uint_fast64_t owner;
	struct ssc_nfs4_open_args args = {
		.access = how & SSC_OPEN4_BOTH,
		.owner = atomic_fetch_add(&owner, 1),
		.create = how & SSC_NFS4_CREATE,
		.sattr = {.set_mode = true, .mode = mode, .set_size = how & SSC_NFS4_TRUNCATE},
	};
	char last[SSC_NAME_MAX + 1];
	struct ssc_nfs4_info info;
	struct ssc_nfs4_open_res res;
	struct ssc_nfs4_call call;
	uint32_t outcome, n;

	ssc_nfs4_client_info(who->client, &info);
	ssc_nfs4_call_init(&call, &who->cred);
	args.clientid = info.clientid;
	args.name = last;
	n = walk(&call, path, last);
	ssc_nfs4_arg_open(&call, &args);
	ssc_nfs4_arg(&call, SSC_OP4_GETFH);
	outcome = run(who, &call);
	NEXT(outcome, walked(&call, n));
	NEXT(outcome, ssc_nfs4_res_open(&call, &res));
	NEXT(outcome, ssc_nfs4_res_getfh(&call, &file->fh));
	ssc_nfs4_call_fini(&call);
	if (outcome == SSC_ST4_OK) {
		file->stateid = res.stateid;
		file->generation = info.generation;
	}
	return outcome;
}

uint32_t ssc_nfs4_close(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_close(&call, &file->stateid);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_close(&call));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_remove(const struct ssc_nfs4_who *who, const char *path)
{
	char last[SSC_NAME_MAX + 1];
	struct ssc_nfs4_call call;
	uint32_t outcome, n;

	ssc_nfs4_call_init(&call, &who->cred);
	n = walk(&call, path, last);
	ssc_nfs4_arg_name(&call, SSC_OP4_REMOVE, last, strlen(last));
	outcome = run(who, &call);
	NEXT(outcome, walked(&call, n));
	NEXT(outcome, ssc_nfs4_res_remove(&call));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_getattr(const struct ssc_nfs4_who *who, const struct ssc_fh *fh,
			  const struct ssc_bitmap *mask, struct ssc_nfs4_attrs *attrs)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, fh);
	ssc_nfs4_arg_getattr(&call, mask);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_getattr(&call, attrs));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_setattr(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
			  const struct ssc_nfs4_sattr *sattr)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_setattr(&call, &file->stateid, sattr);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_setattr(&call));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_read(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
		       uint64_t offset, void *buf, uint32_t count, struct ssc_nfs4_read_res *res)
{
	const struct iovec iov = {buf, count};
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_read(&call, &file->stateid, offset, count, &iov, 1);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_read(&call, res));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_write(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
			uint64_t offset, const void *buf, uint32_t count, uint32_t stable,
			struct ssc_write_response *res)
{
	const struct iovec iov = {(void *)buf, count};
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_write(&call, &file->stateid, offset, stable, &iov, 1, count);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_write(&call, res));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_commit(const struct ssc_nfs4_who *who, const struct ssc_fh *fh, uint64_t offset,
			 uint32_t count, uint8_t verf[SSC_VERIFIER_BYTES])
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, fh);
	ssc_nfs4_arg_commit(&call, offset, count);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_commit(&call, verf));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_seek(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
		       uint64_t offset, uint32_t what, struct ssc_nfs4_seek_res *res)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_seek(&call, &file->stateid, offset, what);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_seek(&call, res));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_space(const struct ssc_nfs4_who *who, uint32_t op,
			const struct ssc_nfs4_file *file, uint64_t offset, uint64_t len)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &file->fh);
	ssc_nfs4_arg_space(&call, op, &file->stateid, offset, len);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res(&call, op));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

/* ---- the COPY family: source saved, destination current ---- */

static void put_both(struct ssc_nfs4_call *call, const struct ssc_fh *src, const struct ssc_fh *dst)
{
	ssc_nfs4_arg_putfh(call, src);
	ssc_nfs4_arg(call, SSC_OP4_SAVEFH);
	ssc_nfs4_arg_putfh(call, dst);
}

static uint32_t took_both(struct ssc_nfs4_call *call)
{
	uint32_t outcome = ssc_nfs4_res(call, SSC_OP4_PUTFH);

	NEXT(outcome, ssc_nfs4_res(call, SSC_OP4_SAVEFH));
	NEXT(outcome, ssc_nfs4_res(call, SSC_OP4_PUTFH));
	return outcome;
}

uint32_t ssc_nfs4_copy(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *src,
		       const struct ssc_nfs4_file *dst, const struct ssc_copy_args *args,
		       struct ssc_copy_res *res)
{
	struct ssc_copy_args a = *args;
	struct ssc_nfs4_call call;
	uint32_t outcome;

	if (a.sources.n == 0)
		a.src_stateid = src->stateid;
	a.dst_stateid = dst->stateid;
	ssc_nfs4_call_init(&call, &who->cred);
	put_both(&call, &src->fh, &dst->fh);
	ssc_nfs4_arg_copy(&call, &a);
	outcome = run(who, &call);
	NEXT(outcome, took_both(&call));
	NEXT(outcome, ssc_nfs4_res_copy(&call, res));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_clone(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *src,
			const struct ssc_nfs4_file *dst, uint64_t src_offset, uint64_t dst_offset,
			uint64_t count)
{
	const struct ssc_clone_args args = {
		.src_stateid = src->stateid,
		.dst_stateid = dst->stateid,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.count = count,
	};
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	put_both(&call, &src->fh, &dst->fh);
	ssc_nfs4_arg_clone(&call, &args);
	outcome = run(who, &call);
	NEXT(outcome, took_both(&call));
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_CLONE));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_copy_notify(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *src,
			      const struct ssc_netloc *destination, struct ssc_copy_notify_res *res)
{
	const struct ssc_copy_notify_args args = {
		.src_stateid = src->stateid,
		.destination = *destination,
	};
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, &src->fh);
	ssc_nfs4_arg_copy_notify(&call, &args);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_copy_notify(&call, res));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_offload_status(const struct ssc_nfs4_who *who, const struct ssc_fh *fh,
				 const struct ssc_stateid *stateid,
				 struct ssc_offload_status_res *res)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, fh);
	ssc_nfs4_arg_offload(&call, SSC_OP4_OFFLOAD_STATUS, stateid);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res_offload_status(&call, res));
	ssc_nfs4_call_fini(&call);
	return outcome;
}

uint32_t ssc_nfs4_offload_cancel(const struct ssc_nfs4_who *who, const struct ssc_fh *fh,
				 const struct ssc_stateid *stateid)
{
	struct ssc_nfs4_call call;
	uint32_t outcome;

	ssc_nfs4_call_init(&call, &who->cred);
	ssc_nfs4_arg_putfh(&call, fh);
	ssc_nfs4_arg_offload(&call, SSC_OP4_OFFLOAD_CANCEL, stateid);
	outcome = run(who, &call);
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_PUTFH));
	NEXT(outcome, ssc_nfs4_res(&call, SSC_OP4_OFFLOAD_CANCEL));
	ssc_nfs4_call_fini(&call);
	return outcome;
}
