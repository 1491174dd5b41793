/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * acl.h - the handle types of POSIX ACLs that Ganesha's headers name in prototypes, for builds
 * without libacl's development package. We call nothing of it.
 */
#ifndef SSC_SHIM_SYS_ACL_H
#define SSC_SHIM_SYS_ACL_H

#include <sys/types.h>

typedef struct ssc_shim_acl *acl_t;
typedef struct ssc_shim_acl_entry *acl_entry_t;
typedef struct ssc_shim_acl_permset *acl_permset_t;
typedef int acl_tag_t;
typedef unsigned int acl_type_t;
typedef unsigned int acl_perm_t;

#endif /* SSC_SHIM_SYS_ACL_H */
