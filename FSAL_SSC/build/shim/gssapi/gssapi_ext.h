/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * gssapi_ext.h - see gssapi.h beside it.
 */
#ifndef SSC_SHIM_GSSAPI_EXT_H
#define SSC_SHIM_GSSAPI_EXT_H

#include <gssapi/gssapi.h>

#endif /* SSC_SHIM_GSSAPI_EXT_H */
