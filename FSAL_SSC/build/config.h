/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * config.h - the answers that Ganesha's headers want from their own build, as Debian's was built.
 *
 * Ganesha writes this file while it is configured, and no package carries it. Some of the answers
 * decide which members its structures have, so a wrong one means a module that reads and writes the
 * wrong memory. Those below were deduced from Debian's 4.3 binary (its imports, strings and
 * symbol sizes). Two guards catch a mistake, or a server that was built otherwise: abi.c compares
 * the sizes of the structures when it is compiled and asks the running server for some of them
 * before the module registers.
 *
 * To build for a server with other answers, put its own config.h in front: cmake
 * -DSSC_GANESHA_CONFIG_DIR=<folder>, and adapt the sizes in abi.c.
 */
#ifndef CONFIG_H
#define CONFIG_H

#define GANESHA_VERSION_MAJOR 4
#define GANESHA_VERSION_MINOR .3
#define GANESHA_VERSION       "4.3"
#define GANESHA_BUILD_RELEASE 0
#define VERSION               GANESHA_VERSION
#define FSAL_MODULE_LOC       SSC_GANESHA_FSAL_DIR

/* Members of structures depend on these. DEBUG_SAL and _USE_NFS_RDMA are off there. */
#define _HAVE_GSSAPI 1
#define HAVE_KRB5    1
#define _USE_NFS3    1
#define _USE_NLM     1
#define _USE_RQUOTA  1
#define USE_NFSACL3  1
#define _USE_9P      1

/* Only declarations and values of enumerations depend on these. */
#define USE_DBUS                      1
#define RPCBIND                       1
#define USE_NFSIDMAP                  1
#define USE_CAPS                      1
#define USE_BLKID                     1
#define _MSPAC_SUPPORT                1
#define GSH_CAN_HOST_LOCAL_FS         1
#define LINUX                         1
#define LITTLEEND                     1
#define HAVE_STRING_H                 1
#define HAVE_STRNLEN                  1
#define HAVE_DAEMON                   1
#define HAVE_URCU_REF_GET_UNLESS_ZERO 1
#define NFS_GANESHA                   1
#define _LGPL_SOURCE                  1

#define GANESHA_CONFIG_PATH           "/etc/ganesha/ganesha.conf"
#define GANESHA_PIDFILE_PATH          "/var/run/ganesha/ganesha.pid"
#define NFS_V4_RECOV_ROOT             "/var/lib/nfs/ganesha"
#define NFS_V4_RECOV_DIR              "v4recov"
#define NFS_V4_OLD_DIR                "v4old"
#define DEFAULT_NFS_CCACHE_DIR        "/var/run/ganesha"

#endif /* CONFIG_H */
