/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_call.c - arguments of NFSv4.2 operations. See nfs4_call.h.
 *
 * They are encoded when they are appended, into the call itself. Only WRITE's data stays where it is:
 * data_at remembers its place among the other arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "nfs4_internal.h"

/* RFC 8881 9.7: no delegation, please. */
#define WANT_NO_DELEGATION 0x0400u

void ssc_nfs4_call_init(struct ssc_nfs4_call *call, const struct ssc_cred *cred)
{
	memset(call, 0, offsetof(struct ssc_nfs4_call, args));
	call->cred = *cred;
	ssc_xio_encode(&call->out, call->args, sizeof(call->args));
}

void ssc_nfs4_call_fini(struct ssc_nfs4_call *call)
{
	if (call->reply != call->reply_room)
		free(call->reply);
	call->reply = NULL;
}

/* ---- pieces ---- */

static void note(struct ssc_nfs4_call *call, bool ok)
{
	if (!ok)
		call->is_bad = true;
}

void ssc_nfs4_put_u32(struct ssc_nfs4_call *call, uint32_t v)
{
	note(call, ssc_xio_u32(&call->out.io, &v));
}

void ssc_nfs4_put_u64(struct ssc_nfs4_call *call, uint64_t v)
{
	note(call, ssc_xio_u64(&call->out.io, &v));
}

void ssc_nfs4_put_fixed(struct ssc_nfs4_call *call, const void *bytes, size_t len)
{
	/* The stream only reads when it encodes. */
	note(call, len <= SSC_NFS4_ARGS_BYTES &&
			   call->out.io.bytes(&call->out.io, (void *)bytes, (uint32_t)len));
}

void ssc_nfs4_put_opaque(struct ssc_nfs4_call *call, const void *bytes, size_t len)
{
	ssc_nfs4_put_u32(call, (uint32_t)len);
	ssc_nfs4_put_fixed(call, bytes, len);
}

static void put_stateid(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid)
{
	struct ssc_stateid copy = *stateid;

	note(call, ssc_xio_stateid(&call->out.io, &copy));
}

static void put_bitmap(struct ssc_nfs4_call *call, const struct ssc_bitmap *map)
{
	uint32_t n = SSC_BITMAP_WORDS;

	while (n > 0 && map->word[n - 1] == 0)
		n--;
	ssc_nfs4_put_u32(call, n);
	for (uint32_t i = 0; i < n; i++)
		ssc_nfs4_put_u32(call, map->word[i]);
}

static void put_sattr(struct ssc_nfs4_call *call, const struct ssc_nfs4_sattr *sattr)
{
	struct ssc_bitmap map = {{0}};

	if (sattr->set_size)
		ssc_bitmap_set(&map, SSC_ATTR4_SIZE);
	if (sattr->set_mode)
		ssc_bitmap_set(&map, SSC_ATTR4_MODE);
	put_bitmap(call, &map);
	ssc_nfs4_put_u32(call, 8 * sattr->set_size + 4 * sattr->set_mode);
	if (sattr->set_size)
		ssc_nfs4_put_u64(call, sattr->size);
	if (sattr->set_mode)
		ssc_nfs4_put_u32(call, sattr->mode);
}

/* ---- operations ---- */

void ssc_nfs4_arg(struct ssc_nfs4_call *call, uint32_t op)
{
	ssc_nfs4_put_u32(call, op);
	call->n_ops++;
}

void ssc_nfs4_arg_raw(struct ssc_nfs4_call *call, uint32_t op, const void *bytes, size_t len)
{
	ssc_nfs4_arg(call, op);
	ssc_nfs4_put_fixed(call, bytes, len);
}

void ssc_nfs4_arg_putfh(struct ssc_nfs4_call *call, const struct ssc_fh *fh)
{
	ssc_nfs4_arg(call, SSC_OP4_PUTFH);
	ssc_nfs4_put_opaque(call, fh->data, fh->len);
}

void ssc_nfs4_arg_name(struct ssc_nfs4_call *call, uint32_t op, const char *name, size_t len)
{
	ssc_nfs4_arg(call, op);
	ssc_nfs4_put_opaque(call, name, len);
	if (op == SSC_OP4_REMOVE)
		call->is_unsafe = true;
}

void ssc_nfs4_arg_getattr(struct ssc_nfs4_call *call, const struct ssc_bitmap *mask)
{
	ssc_nfs4_arg(call, SSC_OP4_GETATTR);
	put_bitmap(call, mask);
}

void ssc_nfs4_arg_setattr(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			  const struct ssc_nfs4_sattr *sattr)
{
	ssc_nfs4_arg(call, SSC_OP4_SETATTR);
	put_stateid(call, stateid);
	put_sattr(call, sattr);
}

void ssc_nfs4_arg_open(struct ssc_nfs4_call *call, const struct ssc_nfs4_open_args *args)
{
	ssc_nfs4_arg(call, SSC_OP4_OPEN);
	ssc_nfs4_put_u32(call, 0); /* seqid: not with sessions */
	ssc_nfs4_put_u32(call, args->access | WANT_NO_DELEGATION);
	ssc_nfs4_put_u32(call, args->deny);
	ssc_nfs4_put_u64(call, args->clientid);
	ssc_nfs4_put_opaque(call, &args->owner, sizeof(args->owner));
	ssc_nfs4_put_u32(call, args->create); /* OPEN4_CREATE */
	if (args->create) {
		ssc_nfs4_put_u32(call, 0); /* UNCHECKED4 */
		put_sattr(call, &args->sattr);
	}
	ssc_nfs4_put_u32(call, args->name ? 0 : 4); /* CLAIM_NULL, CLAIM_FH */
	if (args->name)
		ssc_nfs4_put_opaque(call, args->name, strlen(args->name));
	call->is_unsafe = true;
}

void ssc_nfs4_arg_close(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid)
{
	ssc_nfs4_arg(call, SSC_OP4_CLOSE);
	ssc_nfs4_put_u32(call, 0);
	put_stateid(call, stateid);
	call->is_unsafe = true;
}

void ssc_nfs4_arg_read(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
		       uint64_t offset, uint32_t count, const struct iovec *iov, int n_iov)
{
	size_t room = 0;

	ssc_nfs4_arg(call, SSC_OP4_READ);
	put_stateid(call, stateid);
	ssc_nfs4_put_u64(call, offset);
	ssc_nfs4_put_u32(call, count);
	for (int i = 0; i < n_iov; i++)
		room += iov[i].iov_len;
	note(call, !call->read_iov && room >= count);
	call->read_iov = iov;
	call->n_read_iov = n_iov;
	call->read_max = count;
}

void ssc_nfs4_arg_read_plus(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			    uint64_t offset, uint32_t count)
{
	ssc_nfs4_arg(call, SSC_OP4_READ_PLUS);
	put_stateid(call, stateid);
	ssc_nfs4_put_u64(call, offset);
	ssc_nfs4_put_u32(call, count);
}

void ssc_nfs4_arg_seek(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
		       uint64_t offset, uint32_t what)
{
	ssc_nfs4_arg(call, SSC_OP4_SEEK);
	put_stateid(call, stateid);
	ssc_nfs4_put_u64(call, offset);
	ssc_nfs4_put_u32(call, what);
}

void ssc_nfs4_arg_write(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			uint64_t offset, uint32_t stable, const struct iovec *iov, int n_iov,
			size_t bytes)
{
	ssc_nfs4_arg(call, SSC_OP4_WRITE);
	put_stateid(call, stateid);
	ssc_nfs4_put_u64(call, offset);
	ssc_nfs4_put_u32(call, stable);
	ssc_nfs4_put_u32(call, (uint32_t)bytes);
	note(call, !call->iov && bytes <= SSC_NFS4_IO_MAX);
	call->iov = iov;
	call->n_iov = n_iov;
	call->write_bytes = bytes;
	call->data_at = (size_t)(call->out.at - call->args);
}

void ssc_nfs4_arg_commit(struct ssc_nfs4_call *call, uint64_t offset, uint32_t count)
{
	ssc_nfs4_arg(call, SSC_OP4_COMMIT);
	ssc_nfs4_put_u64(call, offset);
	ssc_nfs4_put_u32(call, count);
}

void ssc_nfs4_arg_space(struct ssc_nfs4_call *call, uint32_t op, const struct ssc_stateid *stateid,
			uint64_t offset, uint64_t len)
{
	ssc_nfs4_arg(call, op);
	put_stateid(call, stateid);
	ssc_nfs4_put_u64(call, offset);
	ssc_nfs4_put_u64(call, len);
}

void ssc_nfs4_arg_io_advise(struct ssc_nfs4_call *call, const struct ssc_stateid *stateid,
			    uint64_t offset, uint64_t count, uint32_t hints)
{
	const struct ssc_bitmap map = {{hints}};

	ssc_nfs4_arg_space(call, SSC_OP4_IO_ADVISE, stateid, offset, count);
	put_bitmap(call, &map);
}

void ssc_nfs4_arg_copy(struct ssc_nfs4_call *call, const struct ssc_copy_args *args)
{
	struct ssc_copy_args copy = *args;

	ssc_nfs4_arg(call, SSC_OP4_COPY);
	note(call, ssc_xio_copy_args(&call->out.io, &copy));
	if (!args->synchronous)
		call->is_unsafe = true; /* each makes a copy of its own */
}

void ssc_nfs4_arg_copy_notify(struct ssc_nfs4_call *call, const struct ssc_copy_notify_args *args)
{
	struct ssc_copy_notify_args copy = *args;

	ssc_nfs4_arg(call, SSC_OP4_COPY_NOTIFY);
	note(call, ssc_xio_copy_notify_args(&call->out.io, &copy));
	call->is_unsafe = true;
}

void ssc_nfs4_arg_offload(struct ssc_nfs4_call *call, uint32_t op,
			  const struct ssc_stateid *stateid)
{
	ssc_nfs4_arg(call, op);
	put_stateid(call, stateid);
	if (op == SSC_OP4_OFFLOAD_CANCEL)
		call->is_unsafe = true;
}

void ssc_nfs4_arg_clone(struct ssc_nfs4_call *call, const struct ssc_clone_args *args)
{
	struct ssc_clone_args copy = *args;

	ssc_nfs4_arg(call, SSC_OP4_CLONE);
	note(call, ssc_xio_clone_args(&call->out.io, &copy));
}
