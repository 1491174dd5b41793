/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * gssapi_krb5.h - see gssapi.h beside it.
 */
#ifndef SSC_SHIM_GSSAPI_KRB5_H
#define SSC_SHIM_GSSAPI_KRB5_H

#include <gssapi/gssapi.h>

#endif /* SSC_SHIM_GSSAPI_KRB5_H */
