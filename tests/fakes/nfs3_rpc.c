/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_rpc.c - the RPC envelope (RFC 5531) and record marks of the scripted NFS server.
 */
#include <stdlib.h>
#include <string.h>

#include "nfs3_internal.h"

#define PROGRAM_NFS    100003u
#define PROGRAM_MOUNT  100005u
#define VERSION_3      3u /* of both */
#define RPC_VERSION    2u
#define AUTH_SYS       1u
#define AUTH_TOOWEAK   5u
#define AUTH_BYTES_MAX 400u
#define LAST_FRAGMENT  0x80000000u

enum { ACCEPT_SUCCESS = 0, ACCEPT_SYSTEM_ERR = 5 };
enum { MOUNT_NULL = 0, MOUNT_MNT = 1, MOUNT_UMNT = 3 };

static void parse_auth(struct nfs3_dec *dec, struct nfs3_call *call)
{
	uint32_t i;
	size_t len;

	nfs3_dec_u32(dec); /* stamp */
	nfs3_dec_opaque(dec, 255, &len);
	call->uid = nfs3_dec_u32(dec);
	call->gid = nfs3_dec_u32(dec);
	call->n_groups = nfs3_dec_u32(dec);
	for (i = 0; i < call->n_groups && i < 16; i++)
		call->groups[i] = nfs3_dec_u32(dec);
}

static void choose_proc(struct nfs3_call *call, uint32_t program, uint32_t version, uint32_t proc)
{
	call->is_ours = version == VERSION_3;
	if (program == PROGRAM_NFS && proc <= NFS3_COMMIT) {
		call->proc = (enum nfs3_proc)proc;
		call->is_nothing = proc == NFS3_NULL;
	} else if (program == PROGRAM_MOUNT && proc == MOUNT_MNT) {
		call->proc = NFS3_MNT;
	} else if (program == PROGRAM_MOUNT && (proc == MOUNT_NULL || proc == MOUNT_UMNT)) {
		call->proc = NFS3_NULL;
		call->is_nothing = true;
	} else {
		call->is_ours = false;
	}
}

bool nfs3_rpc_parse(const uint8_t *record, size_t len, struct nfs3_call *call)
{
	struct nfs3_dec dec = {.p = record, .left = len};
	uint32_t type, rpc_version, program, version, proc, flavor;
	const uint8_t *cred;
	size_t cred_len, verf_len;

	memset(call, 0, sizeof(*call));
	call->xid = nfs3_dec_u32(&dec);
	type = nfs3_dec_u32(&dec);
	rpc_version = nfs3_dec_u32(&dec);
	program = nfs3_dec_u32(&dec);
	version = nfs3_dec_u32(&dec);
	proc = nfs3_dec_u32(&dec);
	flavor = nfs3_dec_u32(&dec);
	cred = nfs3_dec_opaque(&dec, AUTH_BYTES_MAX, &cred_len);
	nfs3_dec_u32(&dec);
	nfs3_dec_opaque(&dec, AUTH_BYTES_MAX, &verf_len);
	if (dec.bad || type != 0 || rpc_version != RPC_VERSION)
		return false;
	if (flavor == AUTH_SYS && cred) {
		struct nfs3_dec auth = {.p = cred, .left = cred_len};

		parse_auth(&auth, call);
		if (auth.bad || call->n_groups > 16)
			return false;
	}
	choose_proc(call, program, version, proc);
	call->args = dec;
	return true;
}

void nfs3_rpc_begin(struct nfs3_enc *reply, uint32_t xid, size_t *stat_at)
{
	memset(reply, 0, sizeof(*reply));
	nfs3_enc_u32(reply, 0); /* record mark, later */
	nfs3_enc_u32(reply, xid);
	nfs3_enc_u32(reply, 1); /* a reply */
	nfs3_enc_u32(reply, 0); /* accepted */
	nfs3_enc_u32(reply, 0); /* no verifier */
	nfs3_enc_u32(reply, 0);
	*stat_at = reply->len;
	nfs3_enc_u32(reply, ACCEPT_SUCCESS);
}

void nfs3_rpc_spoil(struct nfs3_enc *reply, size_t stat_at, enum nfs3_fault_kind kind)
{
	uint32_t xid;
	int i;

	memcpy(&xid, reply->buf + 4, 4);
	if (kind == NFS3_WRONG_XID) {
		xid ^= 0x5a5a5a5a;
		memcpy(reply->buf + 4, &xid, 4);
	} else if (kind == NFS3_TRUNCATED) {
		reply->len -= 4;
	} else if (kind == NFS3_GARBAGE) {
		reply->len = stat_at + 4;
		for (i = 0; i < 32; i++)
			nfs3_enc_u32(reply, 0xffffffff);
	} else if (kind == NFS3_DENIED) {
		reply->len = 12;
		nfs3_enc_u32(reply, 1); /* denied */
		nfs3_enc_u32(reply, 1); /* AUTH_ERROR */
		nfs3_enc_u32(reply, AUTH_TOOWEAK);
	} else if (kind == NFS3_SYSTEM_ERR) {
		nfs3_enc_patch_u32(reply, stat_at, ACCEPT_SYSTEM_ERR);
		reply->len = stat_at + 4;
	}
}

void nfs3_rpc_end(struct nfs3_enc *reply, enum nfs3_fault_kind kind)
{
	struct nfs3_enc out = {0};
	size_t len = reply->len - 4, at, piece = 12;

	if (kind != NFS3_FRAGMENTS) {
		nfs3_enc_patch_u32(reply, 0, LAST_FRAGMENT | (uint32_t)len);
		return;
	}
	if (len / 50 > piece)
		piece = len / 200 * 4; /* at most some fifty */
	for (at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		nfs3_enc_u32(&out, (at + n == len ? LAST_FRAGMENT : 0) | (uint32_t)n);
		nfs3_enc_fixed(&out, reply->buf + 4 + at, n);
	}
	free(reply->buf);
	*reply = out;
}
