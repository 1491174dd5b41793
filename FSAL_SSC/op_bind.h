/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_bind.h - the one place that touches the server's own dispatch tables.
 *
 * Two bindings, independent of each other, each all or nothing: everything is verified before the
 * first store, and a store that fails undoes those before it. A binding that is refused says why in
 * one log line; everything else goes on.
 *
 * NFSv3. WRITE and COMMIT answer with a verifier that the server keeps to itself: it changes when
 * the server restarts, not when our upstream does. A v3 client would then take data for committed
 * that a restarted upstream has lost. So the encode procedures of these two rows are wrapped: if
 * the export is able to give a verifier (get_write_verifier), that one goes on the wire.
 * For exports of other FSALs it is the server's own value: nothing changes for them.
 *
 * NFSv4. The server has no COPY: rows of its table of operations are replaced by those given, and
 * the procedures that take a COMPOUND apart and put its results together by those of compound_xdr.h.
 *
 * Threads    bind, unbind: at load and unload, one at a time. The others: any.
 * Source     RFC 1813 3.3.7 and 3.3.21; RFC 8881 16.2; RFC 7862 15.
 */
#ifndef SSC_OP_BIND_H
#define SSC_OP_BIND_H

#include "config.h"

#include <stdbool.h>

#include "nfs_core.h"
#include "nfs_proto_data.h"

/** @brief Bind NFSv3, unless it is bound. False: refused. */
bool ssc_op_bind_v3(void);

/** @brief Whether v3 clients are given the export's verifier. */
bool ssc_op_has_v3(void);

/* What to put into one row of the server's operations. */
struct ssc_op_row {
	unsigned int op;
	nfs4_function_t funct;          /* NULL: the server's stays */
	nfs4_function_t resume;         /* NULL: the server's stays; most answer NFS_REQ_OK */
	void (*free_res)(nfs_resop4 *); /* NULL: the server's stays */
	int exp_perm_flags; /* 0: the server's stay; else what the export must permit, see below */
	uint32_t resp_size; /* 0: the server's stays */
};

/*
 * A row with permissions is called with a current file handle only (else NOFILEHANDLE), and only where
 * the export gives the client these EXPORT_OPTION_ (else ROFS or ACCESS).
 */

/**
 * @brief Bind NFSv4 with @rows, unless it is bound. False: refused.
 *
 * No row may have the operation of another one. When the module is loaded into a server that runs,
 * workers meet the new rows at once, in the order of the array and after COMPOUND's procedures. A
 * compound that was taken apart before that has no arguments of ours: see compound_xdr.h.
 */
bool ssc_op_bind_v4(const struct ssc_op_row *rows, size_t n_rows);

/** @brief Whether NFSv4 is bound. */
bool ssc_op_has_v4(void);

/** @brief Undo both. No request may be under way. */
void ssc_op_unbind(void);

/** @brief The server's own function of a row. Only while NFSv4 is bound. */
enum nfs_req_result ssc_op_stock(unsigned int op, struct nfs_argop4 *arg, compound_data_t *data,
				 struct nfs_resop4 *res);

/** @brief The server's own function that goes on with a row that was suspended. */
enum nfs_req_result ssc_op_stock_resume(unsigned int op, struct nfs_argop4 *arg,
					compound_data_t *data, struct nfs_resop4 *res);

/** @brief The server's own function that frees the result of a row. */
void ssc_op_stock_free(unsigned int op, struct nfs_resop4 *res);

#endif /* SSC_OP_BIND_H */
