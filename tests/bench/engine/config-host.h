/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * config-host.h - what fio's own configure script would find on Debian 12, as far as the headers
 * that fio_nfs.c includes ask for it. It must agree with Debian's fio binary wherever the layout
 * of a structure depends on it: CONFIG_CUDA (off in both), and CONFIG_POSIXAIO, which brings the
 * largest member of the union in struct io_u.
 */
#define CONFIG_3ARG_AFFINITY
#define CONFIG_64BIT
#define CONFIG_LITTLE_ENDIAN
#define CONFIG_CLOCKID_T
#define CONFIG_CLOCK_GETTIME
#define CONFIG_CLOCK_MONOTONIC
#define CONFIG_GETTIMEOFDAY
#define CONFIG_GETOPT_LONG_ONLY
#define CONFIG_GETMNTENT
#define CONFIG_HAVE_ASPRINTF
#define CONFIG_HAVE_BOOL
#define CONFIG_HAVE_GETTID
#define CONFIG_HAVE_STRNDUP
#define CONFIG_HAVE_VASPRINTF
#define CONFIG_INET_ATON
#define CONFIG_POSIXAIO
#define CONFIG_POSIX_FADVISE
#define CONFIG_POSIX_FALLOCATE
#define CONFIG_LINUX_FALLOCATE
#define CONFIG_FDATASYNC
#define CONFIG_PREAD
#define CONFIG_PWRITEV
#define CONFIG_PWRITEV2
#define CONFIG_RLIMIT_MEMLOCK
#define CONFIG_RUSAGE_THREAD
#define CONFIG_SCHED_IDLE
#define CONFIG_SFAA
#define CONFIG_SOCKLEN_T
#define CONFIG_STATIC_ASSERT
#define CONFIG_STRCASESTR
#define CONFIG_STRSEP
#define CONFIG_SYNC_FILE_RANGE
#define CONFIG_TLS_THREAD
