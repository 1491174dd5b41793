/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_bind.c - see op_bind.h. Knowledge of the server's tables stays in this file.
 *
 * The tables lie in the library's read-only data and have no symbol, so each is found by the names of
 * all its rows, and by what else is known of it:
 *   nfs3_func_desc   22 rows; stored: xdr_encode_func of WRITE and COMMIT
 *   nfs4_func_desc   2 rows; stored: both xdr functions of COMPOUND
 *   optabv4          76 rows, the operations of NFSv4; four functions that the library exports, the
 *                    sizes of results, and the rows that share "not supported"
 * For NFSv4 COMPOUND's functions are stored first and undone last: they are right with the server's
 * own rows too, and our rows are not without them.
 *
 * Why the verifier is replaced when the reply is encoded: the result is complete then, op_ctx is
 * still that of the request, so its export and the generation it noted are at hand. A reply that
 * the duplicate request cache sends again is encoded again: by then it holds our value and not the
 * server's, and stays as it was.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "nfs_core.h"
#include "nfs_proto_functions.h"
#include "nfs23.h"

#include "compound_xdr.h"
#include "op_bind.h"
#include "ssc/table_bind.h"

#define SERVER_LIBRARY "/libganesha_nfsd.so.4.3"

#define N_ELEMENTS(a)  (sizeof(a) / sizeof((a)[0]))

static const char *const v3_names[] = {
	"NFS3_NULL",     "NFS3_GETATTR", "NFS3_SETATTR",     "NFS3_LOOKUP", "NFS3_ACCESS",
	"NFS3_READLINK", "NFS3_READ",    "NFS3_WRITE",       "NFS3_CREATE", "NFS3_MKDIR",
	"NFS3_SYMLINK",  "NFS3_MKNOD",   "NFS3_REMOVE",      "NFS3_RMDIR",  "NFS3_RENAME",
	"NFS3_LINK",     "NFS3_READDIR", "NFS3_READDIRPLUS", "NFS3_FSSTAT", "NFS3_FSINFO",
	"NFS3_PATHCONF", "NFS3_COMMIT",
};

static const size_t desc_funcs[] = {
	offsetof(nfs_function_desc_t, service_function),
	offsetof(nfs_function_desc_t, free_function),
};

static const struct ssc_table_shape v3_shape = {
	.row_bytes = sizeof(nfs_function_desc_t),
	.name_offset = offsetof(nfs_function_desc_t, funcname),
	.names = v3_names,
	.n_rows = N_ELEMENTS(v3_names),
	.func_offsets = desc_funcs,
	.n_funcs = N_ELEMENTS(desc_funcs),
};

static const char *const v4_names[] = {"NFS_NULL", "NFS4_COMP"};

#define V4_COMPOUND 1

static const struct ssc_table_shape v4_shape = {
	.row_bytes = sizeof(nfs_function_desc_t),
	.name_offset = offsetof(nfs_function_desc_t, funcname),
	.names = v4_names,
	.n_rows = N_ELEMENTS(v4_names),
	.func_offsets = desc_funcs,
	.n_funcs = N_ELEMENTS(desc_funcs),
};

/* A row of optabv4, whose type the server keeps to itself. */
struct op_desc {
	const char *name;
	nfs4_function_t funct, resume;
	void (*free_res)(nfs_resop4 *);
	uint32_t resp_size;
	int exp_perm_flags;
};

static const char *const op_names[NFS4_OP_LAST_ONE] = {
	"OP_ILLEGAL",
	"OP_ILLEGAL",
	"OP_ILLEGAL",
	[NFS4_OP_ACCESS] = "OP_ACCESS",
	[NFS4_OP_CLOSE] = "OP_CLOSE",
	[NFS4_OP_COMMIT] = "OP_COMMIT",
	[NFS4_OP_CREATE] = "OP_CREATE",
	[NFS4_OP_DELEGPURGE] = "OP_DELEGPURGE",
	[NFS4_OP_DELEGRETURN] = "OP_DELEGRETURN",
	[NFS4_OP_GETATTR] = "OP_GETATTR",
	[NFS4_OP_GETFH] = "OP_GETFH",
	[NFS4_OP_LINK] = "OP_LINK",
	[NFS4_OP_LOCK] = "OP_LOCK",
	[NFS4_OP_LOCKT] = "OP_LOCKT",
	[NFS4_OP_LOCKU] = "OP_LOCKU",
	[NFS4_OP_LOOKUP] = "OP_LOOKUP",
	[NFS4_OP_LOOKUPP] = "OP_LOOKUPP",
	[NFS4_OP_NVERIFY] = "OP_NVERIFY",
	[NFS4_OP_OPEN] = "OP_OPEN",
	[NFS4_OP_OPENATTR] = "OP_OPENATTR",
	[NFS4_OP_OPEN_CONFIRM] = "OP_OPEN_CONFIRM",
	[NFS4_OP_OPEN_DOWNGRADE] = "OP_OPEN_DOWNGRADE",
	[NFS4_OP_PUTFH] = "OP_PUTFH",
	[NFS4_OP_PUTPUBFH] = "OP_PUTPUBFH",
	[NFS4_OP_PUTROOTFH] = "OP_PUTROOTFH",
	[NFS4_OP_READ] = "OP_READ",
	[NFS4_OP_READDIR] = "OP_READDIR",
	[NFS4_OP_READLINK] = "OP_READLINK",
	[NFS4_OP_REMOVE] = "OP_REMOVE",
	[NFS4_OP_RENAME] = "OP_RENAME",
	[NFS4_OP_RENEW] = "OP_RENEW",
	[NFS4_OP_RESTOREFH] = "OP_RESTOREFH",
	[NFS4_OP_SAVEFH] = "OP_SAVEFH",
	[NFS4_OP_SECINFO] = "OP_SECINFO",
	[NFS4_OP_SETATTR] = "OP_SETATTR",
	[NFS4_OP_SETCLIENTID] = "OP_SETCLIENTID",
	[NFS4_OP_SETCLIENTID_CONFIRM] = "OP_SETCLIENTID_CONFIRM",
	[NFS4_OP_VERIFY] = "OP_VERIFY",
	[NFS4_OP_WRITE] = "OP_WRITE",
	[NFS4_OP_RELEASE_LOCKOWNER] = "OP_RELEASE_LOCKOWNER",
	[NFS4_OP_BACKCHANNEL_CTL] = "OP_BACKCHANNEL_CTL",
	[NFS4_OP_BIND_CONN_TO_SESSION] = "OP_BIND_CONN_TO_SESSION",
	[NFS4_OP_EXCHANGE_ID] = "OP_EXCHANGE_ID",
	[NFS4_OP_CREATE_SESSION] = "OP_CREATE_SESSION",
	[NFS4_OP_DESTROY_SESSION] = "OP_DESTROY_SESSION",
	[NFS4_OP_FREE_STATEID] = "OP_FREE_STATEID",
	[NFS4_OP_GET_DIR_DELEGATION] = "OP_GET_DIR_DELEGATION",
	[NFS4_OP_GETDEVICEINFO] = "OP_GETDEVICEINFO",
	[NFS4_OP_GETDEVICELIST] = "OP_GETDEVICELIST",
	[NFS4_OP_LAYOUTCOMMIT] = "OP_LAYOUTCOMMIT",
	[NFS4_OP_LAYOUTGET] = "OP_LAYOUTGET",
	[NFS4_OP_LAYOUTRETURN] = "OP_LAYOUTRETURN",
	[NFS4_OP_SECINFO_NO_NAME] = "OP_SECINFO_NO_NAME",
	[NFS4_OP_SEQUENCE] = "OP_SEQUENCE",
	[NFS4_OP_SET_SSV] = "OP_SET_SSV",
	[NFS4_OP_TEST_STATEID] = "OP_TEST_STATEID",
	[NFS4_OP_WANT_DELEGATION] = "OP_WANT_DELEGATION",
	[NFS4_OP_DESTROY_CLIENTID] = "OP_DESTROY_CLIENTID",
	[NFS4_OP_RECLAIM_COMPLETE] = "OP_RECLAIM_COMPLETE",
	[NFS4_OP_ALLOCATE] = "OP_ALLOCATE",
	[NFS4_OP_COPY] = "OP_COPY",
	[NFS4_OP_COPY_NOTIFY] = "OP_COPY_NOTIFY",
	[NFS4_OP_DEALLOCATE] = "OP_DEALLOCATE",
	[NFS4_OP_IO_ADVISE] = "OP_IO_ADVISE",
	[NFS4_OP_LAYOUTERROR] = "OP_LAYOUTERROR",
	[NFS4_OP_LAYOUTSTATS] = "OP_LAYOUTSTATS",
	[NFS4_OP_OFFLOAD_CANCEL] = "OP_OFFLOAD_CANCEL",
	[NFS4_OP_OFFLOAD_STATUS] = "OP_OFFLOAD_STATUS",
	[NFS4_OP_READ_PLUS] = "OP_READ_PLUS",
	[NFS4_OP_SEEK] = "OP_SEEK",
	[NFS4_OP_WRITE_SAME] = "OP_WRITE_SAME",
	[NFS4_OP_CLONE] = "OP_CLONE",
	[NFS4_OP_GETXATTR] = "OP_GETXATTR",
	[NFS4_OP_SETXATTR] = "OP_SETXATTR",
	[NFS4_OP_LISTXATTR] = "OP_LISTXATTR",
	[NFS4_OP_REMOVEXATTR] = "OP_REMOVEXATTR",
};

static const size_t op_funcs[] = {
	offsetof(struct op_desc, funct),
	offsetof(struct op_desc, resume),
	offsetof(struct op_desc, free_res),
};

#define KNOWN_FUNCT(op, function)                                             \
	{                                                                     \
		op, offsetof(struct op_desc, funct), sizeof(nfs4_function_t), \
			(uintptr_t)(function)                                 \
	}
#define KNOWN_SIZE(op, size)                                                    \
	{                                                                       \
		op, offsetof(struct op_desc, resp_size), sizeof(uint32_t), size \
	}

static const struct ssc_table_known op_known[] = {
	KNOWN_FUNCT(NFS4_OP_LINK, nfs4_op_link),
	KNOWN_FUNCT(NFS4_OP_LOOKUP, nfs4_op_lookup),
	KNOWN_FUNCT(NFS4_OP_PUTFH, nfs4_op_putfh),
	KNOWN_FUNCT(NFS4_OP_RENAME, nfs4_op_rename),
	KNOWN_SIZE(0, sizeof(ILLEGAL4res)),
	KNOWN_SIZE(NFS4_OP_ACCESS, sizeof(ACCESS4res)),
	KNOWN_SIZE(NFS4_OP_CLOSE, sizeof(CLOSE4res)),
	KNOWN_SIZE(NFS4_OP_COMMIT, sizeof(COMMIT4res)),
	KNOWN_SIZE(NFS4_OP_CREATE, sizeof(CREATE4res)),
	KNOWN_SIZE(NFS4_OP_GETATTR, VARIABLE_RESP_SIZE),
	KNOWN_SIZE(NFS4_OP_OPEN, sizeof(OPEN4res)),
	KNOWN_SIZE(NFS4_OP_READ, VARIABLE_RESP_SIZE),
	KNOWN_SIZE(NFS4_OP_SETATTR, sizeof(SETATTR4res)),
	KNOWN_SIZE(NFS4_OP_SETCLIENTID, sizeof(SETCLIENTID4res)),
	KNOWN_SIZE(NFS4_OP_WRITE, sizeof(WRITE4res)),
	KNOWN_SIZE(NFS4_OP_CREATE_SESSION, sizeof(CREATE_SESSION4res)),
	KNOWN_SIZE(NFS4_OP_SEQUENCE, sizeof(SEQUENCE4res)),
	KNOWN_SIZE(NFS4_OP_TEST_STATEID, sizeof(TEST_STATEID4res)),
	KNOWN_SIZE(NFS4_OP_COPY, sizeof(COPY4res)),
	KNOWN_SIZE(NFS4_OP_READ_PLUS, sizeof(READ_PLUS4res)),
	KNOWN_SIZE(NFS4_OP_SEEK, sizeof(SEEK4res)),
	KNOWN_SIZE(NFS4_OP_REMOVEXATTR, sizeof(REMOVEXATTR4res)),
};

static const size_t op_notsupp[] = {
	NFS4_OP_COPY,           NFS4_OP_COPY_NOTIFY, NFS4_OP_OFFLOAD_CANCEL,
	NFS4_OP_OFFLOAD_STATUS, NFS4_OP_CLONE,
};

static const struct ssc_table_shape op_shape = {
	.row_bytes = sizeof(struct op_desc),
	.name_offset = offsetof(struct op_desc, name),
	.names = op_names,
	.n_rows = N_ELEMENTS(op_names),
	.func_offsets = op_funcs,
	.n_funcs = N_ELEMENTS(op_funcs),
	.known = op_known,
	.n_known = N_ELEMENTS(op_known),
	.same_rows = op_notsupp,
	.n_same = N_ELEMENTS(op_notsupp),
	.same_offset = offsetof(struct op_desc, funct),
};

/* Constant once bound. */
static struct {
	bool is_bound;
	struct ssc_table_change changes[2];
	xdrproc_t encode_write, encode_commit;
	void (*host_get)(struct fsal_export *export, struct gsh_buffdesc *verf); /* the default */
} v3;

/* COMPOUND's two functions, and what a row can hold. */
#define V4_CHANGES_MAX (2 + 5 * NFS4_OP_LAST_ONE)

/* Constant once bound. */
static struct {
	bool is_bound;
	struct op_desc stock[NFS4_OP_LAST_ONE]; /* the rows as the server made them */
	struct ssc_table_change changes[V4_CHANGES_MAX];
	size_t n_changes;
} v4;

/*
 * What exports without a get_write_verifier of their own answer: the server's value for NFSv4, which
 * is made of the same number as the one for NFSv3. Asked each time, since it is set after we bind.
 */
static void host_verifier(char verf[NFS3_WRITEVERFSIZE])
{
	struct gsh_buffdesc desc = {.addr = verf, .len = NFS3_WRITEVERFSIZE};

	v3.host_get(NULL, &desc);
}

static void replace_verifier(char *verf)
{
	struct gsh_buffdesc desc = {.addr = verf, .len = NFS3_WRITEVERFSIZE};
	char host[NFS3_WRITEVERFSIZE];

	host_verifier(host);
	if (op_ctx && op_ctx->fsal_export && memcmp(verf, host, sizeof(host)) == 0)
		op_ctx->fsal_export->exp_ops.get_write_verifier(op_ctx->fsal_export, &desc);
}

static void learn_host_verifier(void)
{
	struct fsal_export plain;

	memset(&plain, 0, sizeof(plain));
	fsal_export_init(&plain);
	v3.host_get = plain.exp_ops.get_write_verifier;
	free_export_ops(&plain);
}

static bool_t encode_write(XDR *xdrs, WRITE3res *res)
{
	if (xdrs->x_op == XDR_ENCODE && res->status == NFS3_OK)
		replace_verifier(res->WRITE3res_u.resok.verf);
	return v3.encode_write(xdrs, res);
}

static bool_t encode_commit(XDR *xdrs, COMMIT3res *res)
{
	if (xdrs->x_op == XDR_ENCODE && res->status == NFS3_OK)
		replace_verifier(res->COMMIT3res_u.resok.verf);
	return v3.encode_commit(xdrs, res);
}

/* ---- binding ---- */

static struct ssc_table_change set_pointer(void *slot, uintptr_t value)
{
	return (struct ssc_table_change){.slot = slot, .bytes = sizeof(value), .value = value};
}

/* @else_what: what the administrator goes without. */
static void *find_table(const struct ssc_table_shape *shape, const char *name,
			const char *else_what)
{
	struct ssc_table_image image;
	void *table = NULL;

	if (!ssc_table_image_of(SERVER_LIBRARY, &image)) {
		LogCrit(COMPONENT_FSAL, "SSC: %s is not loaded: %s", &SERVER_LIBRARY[1], else_what);
		return NULL;
	}
	table = ssc_table_find(&image, shape);
	if (!table)
		LogCrit(COMPONENT_FSAL,
			"SSC: the server's table %s is not where or what this module was built "
			"for: %s",
			name, else_what);
	return table;
}

static bool change(struct ssc_table_change *changes, size_t n, const char *else_what)
{
	if (ssc_table_change(changes, n))
		return true;
	LogCrit(COMPONENT_FSAL, "SSC: the server's tables cannot be made writable (%s): %s",
		strerror(errno), else_what);
	return false;
}

bool ssc_op_bind_v3(void)
{
	static const char else_what[] = "NFSv3 clients get EIO instead of a new verifier when an "
					"upstream loses unstable data";
	nfs_function_desc_t *desc;

	if (v3.is_bound)
		return true;
	desc = find_table(&v3_shape, "of NFSv3", else_what);
	if (!desc)
		return false;
	learn_host_verifier();
	v3.encode_write = desc[NFSPROC3_WRITE].xdr_encode_func;
	v3.encode_commit = desc[NFSPROC3_COMMIT].xdr_encode_func;
	v3.changes[0] = set_pointer(&desc[NFSPROC3_WRITE].xdr_encode_func, (uintptr_t)encode_write);
	v3.changes[1] =
		set_pointer(&desc[NFSPROC3_COMMIT].xdr_encode_func, (uintptr_t)encode_commit);
	v3.is_bound = change(v3.changes, N_ELEMENTS(v3.changes), else_what);
	if (v3.is_bound)
		LogInfo(COMPONENT_FSAL, "SSC: NFSv3 WRITE and COMMIT carry the export's verifier");
	return v3.is_bound;
}

bool ssc_op_has_v3(void)
{
	return v3.is_bound;
}

static void add_change(void *slot, size_t bytes, uintptr_t value)
{
	if (value != 0)
		v4.changes[v4.n_changes++] =
			(struct ssc_table_change){.slot = slot, .bytes = bytes, .value = value};
}

/* What goes with a function before the function. */
static void add_row(struct op_desc *ops, const struct ssc_op_row *row)
{
	struct op_desc *op = &ops[row->op];

	add_change(&op->resp_size, sizeof(op->resp_size), row->resp_size);
	add_change(&op->exp_perm_flags, sizeof(op->exp_perm_flags), (uintptr_t)row->exp_perm_flags);
	add_change(&op->free_res, sizeof(op->free_res), (uintptr_t)row->free_res);
	add_change(&op->resume, sizeof(op->resume), (uintptr_t)row->resume);
	add_change(&op->funct, sizeof(op->funct), (uintptr_t)row->funct);
}

bool ssc_op_bind_v4(const struct ssc_op_row *rows, size_t n_rows)
{
	static const char else_what[] = "NFSv4.2 goes on without server-side copy";
	nfs_function_desc_t *desc;
	struct op_desc *ops;

	if (v4.is_bound)
		return true;
	desc = find_table(&v4_shape, "of NFSv4", else_what);
	if (!desc)
		return false;
	ops = find_table(&op_shape, "of NFSv4 operations", else_what);
	if (!ops)
		return false;
	memcpy(v4.stock, ops, sizeof(v4.stock));
	v4.n_changes = 0;
	add_change(&desc[V4_COMPOUND].xdr_decode_func, sizeof(xdrproc_t),
		   (uintptr_t)ssc_compound_args);
	add_change(&desc[V4_COMPOUND].xdr_encode_func, sizeof(xdrproc_t),
		   (uintptr_t)ssc_compound_res);
	for (size_t i = 0; i < n_rows; i++) {
		assert(rows[i].op < NFS4_OP_LAST_ONE);
		add_row(ops, &rows[i]);
	}
	v4.is_bound = change(v4.changes, v4.n_changes, else_what);
	if (v4.is_bound)
		LogEvent(COMPONENT_FSAL, "SSC: %zu operations of NFSv4 are this module's", n_rows);
	return v4.is_bound;
}

bool ssc_op_has_v4(void)
{
	return v4.is_bound;
}

void ssc_op_unbind(void)
{
	if (v4.is_bound && ssc_table_undo(v4.changes, v4.n_changes))
		v4.is_bound = false;
	if (v3.is_bound && ssc_table_undo(v3.changes, N_ELEMENTS(v3.changes)))
		v3.is_bound = false;
}

/* ---- the server's own functions ---- */

enum nfs_req_result ssc_op_stock(unsigned int op, struct nfs_argop4 *arg, compound_data_t *data,
				 struct nfs_resop4 *res)
{
	return v4.stock[op].funct(arg, data, res);
}

enum nfs_req_result ssc_op_stock_resume(unsigned int op, struct nfs_argop4 *arg,
					compound_data_t *data, struct nfs_resop4 *res)
{
	return v4.stock[op].resume(arg, data, res);
}

void ssc_op_stock_free(unsigned int op, struct nfs_resop4 *res)
{
	v4.stock[op].free_res(res);
}
