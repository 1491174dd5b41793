/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * gssapi.h - the GSS-API types that headers of libntirpc and Ganesha name, for builds without a
 * Kerberos development package. We call nothing of it; only the members' sizes matter, and those
 * are pointers and 32-bit words (RFC 2744 section 3 and appendix A).
 */
#ifndef SSC_SHIM_GSSAPI_H
#define SSC_SHIM_GSSAPI_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t OM_uint32;
typedef OM_uint32 gss_qop_t;
typedef struct ssc_shim_gss_name *gss_name_t;
typedef struct ssc_shim_gss_cred *gss_cred_id_t;
typedef struct ssc_shim_gss_ctx *gss_ctx_id_t;

typedef struct ssc_shim_gss_oid {
	OM_uint32 length;
	void *elements;
} gss_OID_desc, *gss_OID;

typedef struct ssc_shim_gss_oid_set {
	size_t count;
	gss_OID elements;
} gss_OID_set_desc, *gss_OID_set;

typedef struct ssc_shim_gss_buffer {
	size_t length;
	void *value;
} gss_buffer_desc, *gss_buffer_t;

typedef struct ssc_shim_gss_bindings *gss_channel_bindings_t;

#endif /* SSC_SHIM_GSSAPI_H */
