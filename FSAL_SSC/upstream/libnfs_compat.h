/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * libnfs_compat.h - what of libnfs is used: the XDR encoders of NFSv3 and MOUNT arguments.
 *
 * Nothing of libnfs is included outside FSAL_SSC/upstream/. Not used of version 4.0.0, with reason:
 *   its transport    reconnecting glues a cut reply to the next connection's bytes, timeouts leave half
 *                    a request on the wire, every byte of data is copied once more (see wire.h)
 *   its decoders     follow lengths that they do not check (see replies.c)
 */
#ifndef SSC_LIBNFS_COMPAT_H
#define SSC_LIBNFS_COMPAT_H

#include <sys/time.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <nfsc/libnfs-raw-portmap.h>

/* One READ or WRITE carries this much at most: what the wire takes as a record. */
#define SSC_IO_MAX (1024 * 1024)

#endif /* SSC_LIBNFS_COMPAT_H */
