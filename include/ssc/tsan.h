/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * tsan.h - tell ThreadSanitizer of an order in memory that it cannot see.
 *
 * liburcu 0.13 orders memory by inline assembly and in a library that is not built for the tool. What
 * happened before SSC_TSAN_RELEASE(p) is, for the tool, visible after SSC_TSAN_ACQUIRE(p). Both are
 * nothing in other builds, so they must state what is true anyway.
 */
#ifndef SSC_TSAN_H
#define SSC_TSAN_H

#if defined(__SANITIZE_THREAD__)
#define SSC_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SSC_HAS_TSAN 1
#endif
#endif

#ifdef SSC_HAS_TSAN
#include <sanitizer/tsan_interface.h>
#define SSC_TSAN_RELEASE(p) __tsan_release(p)
#define SSC_TSAN_ACQUIRE(p) __tsan_acquire(p)
#else
#define SSC_TSAN_RELEASE(p) ((void)(p))
#define SSC_TSAN_ACQUIRE(p) ((void)(p))
#endif

#endif /* SSC_TSAN_H */
