/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_bind.c - see op_bind.h. Knowledge of the server's tables stays in this file.
 *
 * nfs3_func_desc: 22 rows in the library's read-only data, found by the names of all rows. Stored
 * are two whole pointers (xdr_encode_func of WRITE and COMMIT).
 *
 * Why the verifier is replaced when the reply is encoded: the result is complete then, op_ctx is
 * still that of the request, so its export and the generation it noted are at hand. A reply that
 * the duplicate request cache sends again is encoded again: by then it holds our value and not the
 * server's, and stays as it was.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "nfs_core.h"
#include "nfs_proto_functions.h"
#include "nfs23.h"

#include "op_bind.h"
#include "ssc/table_bind.h"

#define SERVER_LIBRARY "/libganesha_nfsd.so.4.3"

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
	.n_rows = sizeof(v3_names) / sizeof(v3_names[0]),
	.func_offsets = desc_funcs,
	.n_funcs = sizeof(desc_funcs) / sizeof(desc_funcs[0]),
};

/* Constant once bound. */
static struct {
	bool bound;
	nfs_function_desc_t *v3;
	xdrproc_t encode_write, encode_commit;
	void (*host_get)(struct fsal_export *export, struct gsh_buffdesc *verf); /* the default */
} bound_to;

/*
 * What exports without a get_write_verifier of their own answer: the server's value for NFSv4, which
 * is made of the same number as the one for NFSv3. Asked each time, since it is set after we bind.
 */
static void host_verifier(char verf[NFS3_WRITEVERFSIZE])
{
	struct gsh_buffdesc desc = {.addr = verf, .len = NFS3_WRITEVERFSIZE};

	bound_to.host_get(NULL, &desc);
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
	bound_to.host_get = plain.exp_ops.get_write_verifier;
	free_export_ops(&plain);
}

static bool_t encode_write(XDR *xdrs, WRITE3res *res)
{
	if (xdrs->x_op == XDR_ENCODE && res->status == NFS3_OK)
		replace_verifier(res->WRITE3res_u.resok.verf);
	return bound_to.encode_write(xdrs, res);
}

static bool_t encode_commit(XDR *xdrs, COMMIT3res *res)
{
	if (xdrs->x_op == XDR_ENCODE && res->status == NFS3_OK)
		replace_verifier(res->COMMIT3res_u.resok.verf);
	return bound_to.encode_commit(xdrs, res);
}

static bool store(xdrproc_t *slot, void *value)
{
	return ssc_table_store((void **)slot, value);
}

bool ssc_op_bind(void)
{
	struct ssc_table_image image;
	nfs_function_desc_t *v3;

	if (bound_to.bound)
		return true;
	if (!ssc_table_image_of(SERVER_LIBRARY, &image)) {
		LogCrit(COMPONENT_FSAL,
			"SSC: %s is not loaded: NFSv3 clients get EIO instead of a new verifier "
			"when an upstream loses unstable data",
			&SERVER_LIBRARY[1]);
		return false;
	}
	v3 = ssc_table_find(&image, &v3_shape);
	if (!v3) {
		LogCrit(COMPONENT_FSAL, "SSC: the server's NFSv3 table is not where or what this "
					"module was built for: NFSv3 clients get EIO instead of a "
					"new verifier when an upstream loses unstable data");
		return false;
	}
	learn_host_verifier();
	bound_to.v3 = v3;
	bound_to.encode_write = v3[NFSPROC3_WRITE].xdr_encode_func;
	bound_to.encode_commit = v3[NFSPROC3_COMMIT].xdr_encode_func;
	if (!store(&v3[NFSPROC3_WRITE].xdr_encode_func, encode_write))
		goto err;
	if (!store(&v3[NFSPROC3_COMMIT].xdr_encode_func, encode_commit)) {
		(void)store(&v3[NFSPROC3_WRITE].xdr_encode_func, bound_to.encode_write);
		goto err;
	}
	bound_to.bound = true;
	LogInfo(COMPONENT_FSAL, "SSC: NFSv3 WRITE and COMMIT carry the export's verifier");
	return true;
err:
	LogCrit(COMPONENT_FSAL, "SSC: the server's tables cannot be made writable: %s",
		strerror(errno));
	return false;
}

void ssc_op_unbind(void)
{
	if (!bound_to.bound)
		return;
	if (store(&bound_to.v3[NFSPROC3_COMMIT].xdr_encode_func, bound_to.encode_commit) &&
	    store(&bound_to.v3[NFSPROC3_WRITE].xdr_encode_func, bound_to.encode_write))
		bound_to.bound = false;
}

bool ssc_op_bind_v3(void)
{
	return bound_to.bound;
}
