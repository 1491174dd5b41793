/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * mended_blksize.c - the attribute clone_blksize, which goes with CLONE (RFC 7862 12.2.1, 15.13).
 *
 * The server has no such attribute, and puts its answers together where we cannot see it. So its answer
 * is taken apart as far as needed: attributes stand in the order of their numbers, hence what is asked
 * up to 76 is asked in one GETATTR, what is asked from 78 on in another, and ours goes between. Where it is
 * given, supported_attrs says so. Both are asked for when a client mounts, and hardly ever else.
 */
#include <arpa/inet.h>
#include <sys/statvfs.h>

#include "FSAL/fsal_localfs.h"

#include "copy_export.h"
#include "mended.h"
#include "op_bind.h"

#define CLONE_BLKSIZE 77
#define WORD          (CLONE_BLKSIZE / 32)
#define BIT           (1U << CLONE_BLKSIZE % 32)

/* Bits of the word that stand for attributes before and behind it. */
#define BEFORE        (BIT - 1)
#define BEHIND        (~(BEFORE | BIT))

#define SUPPORTED_BIT 1U /* supported_attrs is attribute 0 */

/* Whether CLONE can be served for the current file, and in units of how much. */
static bool blksize_of(const compound_data_t *data, uint32_t *size)
{
	const struct fsal_obj_handle *obj = data->current_obj;
	struct ssc_export *exp;
	struct statvfs st;

	if (obj == NULL || obj->fs == NULL || op_ctx->ctx_export == NULL ||
	    ssc_copy_export_kind(op_ctx->ctx_export, &exp) != SSC_COPY_STACKED ||
	    statvfs(obj->fs->path, &st) != 0)
		return false;
	*size = (uint32_t)st.f_bsize;
	return true;
}

/* The first attribute in @vals is supported_attrs: add ours. */
static void add_supported(attrlist4 *vals)
{
	uint32_t n_words, word;
	char *at = vals->attrlist4_val + sizeof(n_words) + WORD * sizeof(word);

	if (vals->attrlist4_len < sizeof(n_words) + (WORD + 1) * sizeof(word))
		return;
	memcpy(&n_words, vals->attrlist4_val, sizeof(n_words));
	if (ntohl(n_words) <= WORD)
		return;
	memcpy(&word, at, sizeof(word));
	word |= htonl(BIT);
	memcpy(at, &word, sizeof(word));
}

/* @first, then the size, then @last, all in @first, whose memory is the server's to free. */
static void join(fattr4 *first, uint32_t size, const fattr4 *last)
{
	attrlist4 *a = &first->attr_vals;
	const attrlist4 *b = &last->attr_vals;
	uint32_t len = a->attrlist4_len + sizeof(size) + b->attrlist4_len;
	char *vals = gsh_malloc(len);

	size = htonl(size);
	if (a->attrlist4_len > 0)
		memcpy(vals, a->attrlist4_val, a->attrlist4_len);
	memcpy(vals + a->attrlist4_len, &size, sizeof(size));
	if (b->attrlist4_len > 0)
		memcpy(vals + len - b->attrlist4_len, b->attrlist4_val, b->attrlist4_len);
	gsh_free(a->attrlist4_val);
	a->attrlist4_val = vals;
	a->attrlist4_len = len;
	for (unsigned int i = first->attrmask.bitmap4_len; i <= WORD; i++)
		first->attrmask.map[i] = 0;
	if (first->attrmask.bitmap4_len <= WORD)
		first->attrmask.bitmap4_len = WORD + 1;
	first->attrmask.map[WORD] |= BIT;
	if (last->attrmask.bitmap4_len > WORD)
		first->attrmask.map[WORD] |= last->attrmask.map[WORD];
}

static enum nfs_req_result ask(const struct bitmap4 *wanted, compound_data_t *data,
			       struct nfs_resop4 *resp)
{
	struct nfs_argop4 op = {.argop = NFS4_OP_GETATTR};

	op.nfs_argop4_u.opgetattr.attr_request = *wanted;
	return ssc_op_stock(NFS4_OP_GETATTR, &op, data, resp);
}

static enum nfs_req_result ask_around(const struct bitmap4 *wanted, uint32_t size,
				      compound_data_t *data, struct nfs_resop4 *resp)
{
	struct bitmap4 before = *wanted, behind = *wanted;
	fattr4 *attrs = &resp->nfs_resop4_u.opgetattr.GETATTR4res_u.resok4.obj_attributes;
	struct nfs_resop4 last = {.resop = NFS4_OP_GETATTR};
	enum nfs_req_result result;

	before.map[WORD] &= BEFORE;
	memset(behind.map, 0, sizeof(behind.map));
	behind.map[WORD] = wanted->map[WORD] & BEHIND;
	result = ask(&before, data, resp);
	if (result != NFS_REQ_OK)
		return result;
	if (behind.map[WORD] != 0 && ask(&behind, data, &last) != NFS_REQ_OK)
		return result; /* without it and them: they may be left out */
	join(attrs, size, &last.nfs_resop4_u.opgetattr.GETATTR4res_u.resok4.obj_attributes);
	data->op_resp_size = sizeof(nfsstat4) + attrs->attr_vals.attrlist4_len;
	ssc_op_stock_free(NFS4_OP_GETATTR, &last);
	return result;
}

bool ssc_mended_blksize(const struct bitmap4 *wanted, compound_data_t *data,
			struct nfs_resop4 *resp, enum nfs_req_result *result)
{
	bool wants_it = wanted->bitmap4_len > WORD && (wanted->map[WORD] & BIT) != 0;
	bool wants_list = wanted->bitmap4_len > 0 && (wanted->map[0] & SUPPORTED_BIT) != 0;
	uint32_t size;

	if ((!wants_it && !wants_list) || !blksize_of(data, &size))
		return false;
	*result = wants_it ? ask_around(wanted, size, data, resp) : ask(wanted, data, resp);
	if (*result == NFS_REQ_OK && wants_list)
		add_supported(
			&resp->nfs_resop4_u.opgetattr.GETATTR4res_u.resok4.obj_attributes.attr_vals);
	return true;
}
