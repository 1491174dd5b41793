/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_engine.h - copy a range of one file to another, many chunks at a time.
 *
 * Object     struct ssc_copy: one run over one range. struct ssc_copy_file: one side, behind an ops
 *            table; the glue makes them of an upstream's file or of the host's, tests make fakes.
 *            struct ssc_copy_engine: what all copies share: workers, buffers, the byte budget.
 * Flow       A window of chunks, bounded in number per copy and in bytes over all copies. Each chunk
 *            reads, then writes what was read. A short read that is not at the end is read on; a short
 *            write is written on. An error stops new chunks; those before it are still finished,
 *            those behind it dropped, and the one at the lowest offset is the copy's.
 * Count      The bytes from the beginning that are all written: never one beyond a hole in it.
 * Holes      Where the source knows its holes (next_data) they are not read. Elsewhere blocks of zeros are
 *            found in what was read. Zeros are not written beyond the destination's size as it was
 *            at the start. However the copy ends, the destination reaches as far as the count says.
 * Transient  NFS4ERR_DELAY of a side is tried again with back-off until patience_ns passed without a byte
 *            moved; then it is the copy's error like any other. An error elsewhere ends the waiting.
 * End        done runs exactly once, on any thread, with no lock held; never within ssc_copy_start
 *            or ssc_copy_cancel, but perhaps before start has returned. bytes > 0 with an error
 *            status is possible: what to make of it is the caller's.
 * Threads    start, cancel, progress: any. Files that block run on the workers, others on the thread of
 *            whatever completion came last.
 * Source     RFC 7862 15.2.3.
 */
#ifndef SSC_COPY_ENGINE_H
#define SSC_COPY_ENGINE_H

#include "ssc/base.h"
#include "ssc/timer.h"

struct ssc_copy;
struct ssc_copy_file;

/* One read or write on its way; made by the engine, completed once by the file. */
struct ssc_copy_io {
	uint64_t offset;
	void *data;    /* the engine's, until complete */
	uint32_t len;  /* > 0 */
	bool is_write; /* which of the two it is */
	/**
	 * @brief Call exactly once, within read or write or later, on any thread, with no lock held.
	 *
	 * @status: nfsstat4. @bytes: moved, at most len. @eof: reading has reached the end of the file.
	 */
	void (*complete)(struct ssc_copy_io *io, uint32_t status, uint32_t bytes, bool eof);
	uint8_t room[192]; /* the file's, for what it must remember; aligned to 16 */
} __attribute__((aligned(16)));

struct ssc_copy_file_ops {
	void (*read)(struct ssc_copy_file *file, struct ssc_copy_io *io);
	void (*write)(struct ssc_copy_file *file, struct ssc_copy_io *io);
	/**
	 * @brief Where the next data at or after @offset lies: [*start, *end), cut at the file's end;
	 *        when there is none, both are the file's size, or @offset if that is larger. NULL op,
	 *        or any error: not known, the copy reads on without. Blocks: only if is_blocking.
	 */
	uint32_t (*next_data)(struct ssc_copy_file *file, uint64_t offset, uint64_t *start,
			      uint64_t *end);
	/**
	 * @brief Make @len bytes at @offset a hole that reads as zero, the size unchanged; they lie
	 *        within the size. NULL op, or any error: zeros are written. Blocks: only if is_blocking.
	 */
	uint32_t (*punch)(struct ssc_copy_file *file, uint64_t offset, uint64_t len);
	/**
	 * @brief Bring what was written to stable storage; as read and write, with io->offset 0,
	 *        io->len 1 and no data. NULL op: nothing to do.
	 */
	void (*commit)(struct ssc_copy_file *file, struct ssc_copy_io *io);
};

/* Embedded in the glue's own structure. */
struct ssc_copy_file {
	const struct ssc_copy_file_ops *ops;
	bool is_blocking; /* its ops block: only workers call them */
	uint32_t io_max;  /* bytes of one read or write; 0: no bound */
};

struct ssc_copy_engine_config {
	unsigned int workers;      /* threads for files that block; one more is for all others */
	uint32_t chunk_bytes;      /* Copy_Chunk_Bytes */
	unsigned int inflight;     /* Copy_Inflight_Max: chunks of one copy */
	uint64_t inflight_bytes;   /* Copy_Inflight_Bytes: of all copies */
	struct ssc_timers *timers; /* borrowed */
	/* Run around each thread's life, may be NULL: the host wants its threads named and known. */
	void (*worker_begin)(void);
	void (*worker_end)(void);
};

struct ssc_copy_engine;

/** @brief NULL when no thread can be had (logged). */
struct ssc_copy_engine *
ssc_copy_engine_new(const struct ssc_copy_engine_config *cfg) SSC_NONNULL SSC_MUST_CHECK;

/** @brief Stop and free; every copy was put. Blocks until the workers ended. NULL is allowed. */
void ssc_copy_engine_free(struct ssc_copy_engine *engine);

struct ssc_copy_spec {
	struct ssc_copy_file *src, *dst; /* alive until done has run; may be one, if the ranges
					    are apart and end within its size */
	uint64_t src_offset, dst_offset; /* offset + count does not overflow */
	uint64_t count;                  /* > 0; more than the source has: to its end */
	uint64_t dst_size;    /* of the destination now: beyond it nothing is stored yet */
	uint64_t stop_ns;     /* begin no chunk after this, if at least one was begun; 0 = never */
	uint64_t patience_ns; /* for NFS4ERR_DELAY, 0 = none */
	bool commit; /* commit the destination before done, if anything of bytes was written */
	void (*done)(struct ssc_copy *copy, void *ctx);
	void *ctx;
};

struct ssc_copy_result {
	uint32_t status;        /* nfsstat4 of the first error; NFS4_OK */
	uint64_t bytes;         /* copied, contiguous from the beginning, holes included */
	bool is_eof;            /* the source ended at src_offset + bytes */
	bool is_stopped;        /* by stop_ns or cancel, before count or end */
	uint32_t commit_status; /* of the commit, when spec.commit; NFS4_OK also when none was needed */
};

/** @brief Start. Never NULL: memory runs out = abort, as in the host. One reference is the caller's. */
struct ssc_copy *ssc_copy_start(struct ssc_copy_engine *engine,
				const struct ssc_copy_spec *spec) SSC_NONNULL;

/** @brief Begin no further chunk; done runs when those in flight are over. Idempotent. */
void ssc_copy_cancel(struct ssc_copy *copy) SSC_NONNULL;

/** @brief Contiguous bytes so far; never decreases. */
uint64_t ssc_copy_progress(struct ssc_copy *copy) SSC_NONNULL;

/** @brief From done on. */
void ssc_copy_get_result(struct ssc_copy *copy, struct ssc_copy_result *result) SSC_NONNULL;

/** @brief Drop the caller's reference; not before done has begun. */
void ssc_copy_put(struct ssc_copy *copy);

struct ssc_copy_engine_stats {
	uint64_t copies, running;
	uint64_t bytes_read, bytes_written,
		bytes_skipped;               /* skipped: holes and zeros not written */
	uint64_t inflight_bytes, peak_bytes; /* of buffers */
	uint64_t retries;                    /* after NFS4ERR_DELAY */
};

void ssc_copy_engine_stats(struct ssc_copy_engine *engine,
			   struct ssc_copy_engine_stats *stats) SSC_NONNULL;

#endif /* SSC_COPY_ENGINE_H */
