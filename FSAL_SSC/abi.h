/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * abi.h - whether the server that loads us is the one we were compiled for.
 */
#ifndef SSC_ABI_H
#define SSC_ABI_H

#include <stdbool.h>

/**
 * @brief Compare our idea of the server's structures with the running server.
 *
 * To be called first thing when the module is loaded. On false the module must not register: one
 * CRIT line has said what differs and what to do.
 *
 * Threads: init only.
 */
bool ssc_abi_check(void);

#endif /* SSC_ABI_H */
