/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * op_clone.c - see op_clone.h.
 *
 * The way to the file. The inner FSAL keeps its descriptors to itself, but they are this process's. A
 * client that clones has both files open, so each has one. It is found by device and inode among all, and
 * opened once more by its name in /proc, for ourselves: only that descriptor is used, after it was seen to
 * be of the same file. So one that is closed or used anew meanwhile does no harm.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "FSAL/fsal_localfs.h"

#include "compound_xdr.h"
#include "op_clone.h"
#include "op_copy.h"

/* ---- descriptors ---- */

static bool is_of(int fd, const struct fsal_obj_handle *obj)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == obj->fileid &&
	       st.st_dev == makedev(obj->fs->dev.major, obj->fs->dev.minor);
}

static int reopen(const char *name, const struct fsal_obj_handle *obj, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%.20s", name);
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !is_of(fd, obj)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A descriptor of our own for @obj; -1: the file is not open here, or is none of a local file system. */
static int open_own(const struct fsal_obj_handle *obj, int flags)
{
	struct dirent *ent;
	int fd = -1;
	DIR *dir;

	if (obj->fs == NULL)
		return -1;
	dir = opendir("/proc/self/fd");
	if (dir == NULL)
		return -1;
	while (fd < 0 && (ent = readdir(dir)) != NULL) {
		if (ent->d_name[0] != '.' && is_of(atoi(ent->d_name), obj))
			fd = reopen(ent->d_name, obj, flags);
	}
	closedir(dir);
	return fd;
}

/* ---- the operation ---- */

static nfsstat4 status_of(int error)
{
	switch (error) {
	case 0:
		return NFS4_OK;
	case EXDEV:
		return NFS4ERR_XDEV;
	case EINVAL:
		return NFS4ERR_INVAL;
	case ENOSPC:
		return NFS4ERR_NOSPC;
	case EDQUOT:
		return NFS4ERR_DQUOT;
	case EFBIG:
		return NFS4ERR_FBIG;
	case EROFS:
		return NFS4ERR_ROFS;
	case EPERM:
	case EACCES:
		return NFS4ERR_ACCESS;
	case EIO:
		return NFS4ERR_IO;
	case EINTR:
	case EAGAIN:
	case ENOMEM:
	case ETXTBSY:
		return NFS4ERR_DELAY;
	default: /* EOPNOTSUPP, ENOTTY and whatever else a file system says that cannot */
		return NFS4ERR_NOTSUPP;
	}
}

/* As the caller, so that set-id bits go as with a write; on disk before it is answered. */
static int share_blocks(int src_fd, int dst_fd, const struct ssc_copy_plan *plan, bool is_to_end)
{
	struct file_clone_range range = {
		.src_fd = src_fd,
		.src_offset = plan->src_offset,
		.src_length = is_to_end ? 0 : plan->count,
		.dest_offset = plan->dst_offset,
	};
	int error = 0;

	fsal_set_credentials(&op_ctx->creds);
	if (ioctl(dst_fd, FICLONERANGE, &range) != 0)
		error = errno;
	fsal_restore_ganesha_credentials();
	if (error == 0 && fsync(dst_fd) != 0)
		error = errno;
	return error;
}

static nfsstat4 clone_files(const compound_data_t *data, const struct ssc_copy_plan *plan,
			    bool is_to_end)
{
	nfsstat4 status = NFS4ERR_NOTSUPP;
	int src_fd = -1, dst_fd = -1;

	if (plan->src->exp != NULL || plan->dst->exp != NULL)
		return status;
	src_fd = open_own(data->saved_obj, O_RDONLY);
	if (src_fd >= 0)
		dst_fd = open_own(data->current_obj, O_WRONLY);
	if (dst_fd >= 0) {
		status = status_of(share_blocks(src_fd, dst_fd, plan, is_to_end));
		ssc_copy_side_forget_attrs(data->current_obj);
		close(dst_fd);
	}
	if (src_fd >= 0)
		close(src_fd);
	return status;
}

enum nfs_req_result ssc_op_clone(struct nfs_argop4 *op, compound_data_t *data,
				 struct nfs_resop4 *resp)
{
	const struct ssc_clone_args *args = ssc_clone_args_of(op);
	struct ssc_clone_res *res = ssc_clone_res_of(resp);
	struct ssc_copy_plan plan = {.count = 0};
	struct ssc_copy_args range;

	resp->resop = NFS4_OP_CLONE;
	if (args == NULL) {
		res->status = NFS4ERR_DELAY;
		return NFS_REQ_ERROR;
	}
	range = (struct ssc_copy_args){
		.src_stateid = args->src_stateid,
		.dst_stateid = args->dst_stateid,
		.src_offset = args->src_offset,
		.dst_offset = args->dst_offset,
		.count = args->count,
	};
	res->status = ssc_copy_check(data, &range, true, &plan);
	if (res->status == NFS4_OK && plan.count > 0)
		res->status = clone_files(data, &plan, args->count == 0);
	ssc_copy_side_free(plan.src);
	ssc_copy_side_free(plan.dst);
	return res->status == NFS4_OK ? NFS_REQ_OK : NFS_REQ_ERROR;
}
