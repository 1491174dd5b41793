/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_file.h - whole NFSv4.2 calls that wait for their end: one function, one compound.
 *
 * Each returns an outcome (nfs4_status.h), and sets its results on SSC_ST4_OK only. DELAY and GRACE are
 * retried within the client's answer_ns. Paths are of names separated by slashes, from the server's
 * root; symbolic links are not followed.
 * Threads: any but the client's own, since all of them block. A struct ssc_nfs4_file may be shared.
 * Source: RFC 8881 18, RFC 7862 15.
 */
#ifndef SSC_NFS4_FILE_H
#define SSC_NFS4_FILE_H

#include "ssc/nfs4_client.h"

/* An open file. The open state is gone when the client's generation is another. */
struct ssc_nfs4_file {
	struct ssc_fh fh;
	struct ssc_stateid stateid;
	uint32_t generation;
};

/* How to open: enum ssc_open4_access, and these. */
#define SSC_NFS4_CREATE   0x10u
#define SSC_NFS4_TRUNCATE 0x20u

/* For whom, and through what. */
struct ssc_nfs4_who {
	struct ssc_nfs4_client *client;
	struct ssc_cred cred;
};

/** @brief @attrs may be NULL: then none are asked for. */
uint32_t ssc_nfs4_lookup(const struct ssc_nfs4_who *who, const char *path, struct ssc_fh *fh,
			 struct ssc_nfs4_attrs *attrs);
uint32_t ssc_nfs4_open(const struct ssc_nfs4_who *who, const char *path, uint32_t how,
		       uint32_t mode, struct ssc_nfs4_file *file);
uint32_t ssc_nfs4_close(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file);
uint32_t ssc_nfs4_remove(const struct ssc_nfs4_who *who, const char *path);
uint32_t ssc_nfs4_getattr(const struct ssc_nfs4_who *who, const struct ssc_fh *fh,
			  const struct ssc_bitmap *mask, struct ssc_nfs4_attrs *attrs);
uint32_t ssc_nfs4_setattr(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
			  const struct ssc_nfs4_sattr *sattr);

/** @brief One READ or WRITE, at most info.io_max bytes. */
uint32_t ssc_nfs4_read(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
		       uint64_t offset, void *buf, uint32_t count, struct ssc_nfs4_read_res *res);
uint32_t ssc_nfs4_write(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
			uint64_t offset, const void *buf, uint32_t count, uint32_t stable,
			struct ssc_write_response *res);
uint32_t ssc_nfs4_commit(const struct ssc_nfs4_who *who, const struct ssc_fh *fh, uint64_t offset,
			 uint32_t count, uint8_t verf[SSC_VERIFIER_BYTES]);

/** @brief @what: 0 data, 1 hole. */
uint32_t ssc_nfs4_seek(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *file,
		       uint64_t offset, uint32_t what, struct ssc_nfs4_seek_res *res);
/** @brief ALLOCATE or DEALLOCATE. */
uint32_t ssc_nfs4_space(const struct ssc_nfs4_who *who, uint32_t op,
			const struct ssc_nfs4_file *file, uint64_t offset, uint64_t len);

/**
 * @brief COPY from @src to @dst. Of @args the stateids are set here, unless there are sources.
 *
 * With OFFLOAD_NO_REQS *res is set too.
 */
uint32_t ssc_nfs4_copy(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *src,
		       const struct ssc_nfs4_file *dst, const struct ssc_copy_args *args,
		       struct ssc_copy_res *res);
uint32_t ssc_nfs4_clone(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *src,
			const struct ssc_nfs4_file *dst, uint64_t src_offset, uint64_t dst_offset,
			uint64_t count);
uint32_t ssc_nfs4_copy_notify(const struct ssc_nfs4_who *who, const struct ssc_nfs4_file *src,
			      const struct ssc_netloc *destination,
			      struct ssc_copy_notify_res *res);
/** @brief OFFLOAD_STATUS and OFFLOAD_CANCEL of the copy @stateid to the file @fh. */
uint32_t ssc_nfs4_offload_status(const struct ssc_nfs4_who *who, const struct ssc_fh *fh,
				 const struct ssc_stateid *stateid,
				 struct ssc_offload_status_res *res);
uint32_t ssc_nfs4_offload_cancel(const struct ssc_nfs4_who *who, const struct ssc_fh *fh,
				 const struct ssc_stateid *stateid);

#endif /* SSC_NFS4_FILE_H */
