/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * gssapi_generic.h - see gssapi.h beside it.
 */
#ifndef SSC_SHIM_GSSAPI_GENERIC_H
#define SSC_SHIM_GSSAPI_GENERIC_H

#include <gssapi/gssapi.h>

#endif /* SSC_SHIM_GSSAPI_GENERIC_H */
