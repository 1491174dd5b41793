/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_bind.h - the one place that touches the server's own dispatch tables.
 *
 * NFSv3. WRITE and COMMIT answer with a verifier that the server keeps to itself: it changes when
 * the server restarts, not when our upstream does. A v3 client would then take data for committed
 * that a restarted upstream has lost. So the encode procedures of these two rows are wrapped: if
 * the export is able to give a verifier (get_write_verifier), that one goes on the wire.
 * For exports of other FSALs it is the server's own value: nothing changes for them.
 *
 * Threads    bind: at load, one at a time. bound: any.
 * Source     RFC 1813 3.3.7 and 3.3.21.
 */
#ifndef SSC_OP_BIND_H
#define SSC_OP_BIND_H

#include <stdbool.h>

/**
 * @brief Wrap what needs wrapping, all or nothing; a second call does nothing.
 *
 * @return false, after one log line that says what differs, when the server is not the one this was
 *         built for. Everything else goes on; see ssc_op_bind_v3.
 */
bool ssc_op_bind(void);

/** @brief Undo it. No request may be under way. */
void ssc_op_unbind(void);

/** @brief Whether v3 clients are given the export's verifier. */
bool ssc_op_bind_v3(void);

#endif /* SSC_OP_BIND_H */
