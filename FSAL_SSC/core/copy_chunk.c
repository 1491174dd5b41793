/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_chunk.c - one chunk of a copy: read it, find its zeros, write the rest.
 *
 * Each step begins at most one io and then lets go of the chunk, because its completion may run on
 * another thread before the file's function has returned. The completion takes the next step.
 *
 *     read     until the chunk is full, the source ends, or an error: what is there is written
 *     write    run by run; a run of zeros is skipped beyond the destination's size at the start,
 *              punched within it, or written like data
 *     DELAY    the same io again, when copy_run.c says so
 *
 * A step on a file that blocks is taken on a worker; reading and writing of one chunk follow each
 * other on the same one, while its bytes are in the cache.
 */
#include "copy_internal.h"
#include "ssc/nfs42.h"

/* A file that says twice in a row that it wrote nothing, without an error, will never do it. */
#define STALLS_MAX 2

static void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- after an io ---- */

static void was_read(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;

	if (chunk->status != SSC_NFS4_OK) {
		chunk->len = chunk->n_read;
		ssc_copy_end_at(copy, chunk->pos + chunk->len, chunk->status, false);
		return;
	}
	add(&copy->engine->bytes_read, chunk->bytes);
	if (chunk->bytes > 0)
		ssc_copy_moved(copy);
	chunk->n_read += chunk->bytes;
	if (chunk->eof || chunk->bytes == 0) {
		chunk->len = chunk->n_read;
		ssc_copy_end_at(copy, chunk->pos + chunk->len, SSC_NFS4_OK, true);
	}
}

static void was_written(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;

	if (chunk->status == SSC_NFS4_OK && chunk->bytes > 0) {
		add(&copy->engine->bytes_written, chunk->bytes);
		ssc_copy_moved(copy);
		chunk->n_stalls = 0;
		chunk->n_moved += chunk->bytes;
		chunk->wrote_to = chunk->io.offset + chunk->bytes;
		return;
	}
	if (chunk->status == SSC_NFS4_OK) {
		if (++chunk->n_stalls < STALLS_MAX)
			return;
		chunk->status = SSC_NFS4ERR_IO;
	}
	chunk->len = chunk->n_moved;
	ssc_copy_end_at(copy, chunk->pos + chunk->len, chunk->status, false);
}

static void completed(struct ssc_copy_work *work)
{
	struct ssc_copy_chunk *chunk = ssc_copy_of(work, struct ssc_copy_chunk, work);

	if (chunk->status == SSC_NFS4ERR_DELAY && ssc_copy_delay(chunk))
		return;
	chunk->backoff_ns = 0;
	if (chunk->bytes > chunk->io.len)
		chunk->status = SSC_NFS4ERR_SERVERFAULT;
	if (chunk->kind == SSC_COPY_CHUNK_COMMIT) {
		ssc_copy_chunk_over(chunk);
		return;
	}
	if (chunk->io.is_write)
		was_written(chunk);
	else
		was_read(chunk);
	ssc_copy_chunk_run(chunk);
}

static void io_complete(struct ssc_copy_io *io, uint32_t status, uint32_t bytes, bool eof)
{
	struct ssc_copy_chunk *chunk = (struct ssc_copy_chunk *)io; /* its first member */

	chunk->status = status;
	chunk->bytes = bytes;
	chunk->eof = eof;
	chunk->work.run = completed;
	ssc_copy_here_run(&chunk->work);
}

/* ---- beginning an io ---- */

static uint32_t io_len(const struct ssc_copy_chunk *chunk, const struct ssc_copy_file *file,
		       uint64_t len)
{
	if (len > chunk->copy->chunk_bytes)
		len = chunk->copy->chunk_bytes;
	if (file->io_max != 0 && len > file->io_max)
		len = file->io_max;
	return (uint32_t)len;
}

static void prepare(struct ssc_copy_chunk *chunk, uint64_t offset, void *data, uint32_t len,
		    bool is_write)
{
	chunk->io.offset = offset;
	chunk->io.data = data;
	chunk->io.len = len;
	chunk->io.is_write = is_write;
	chunk->io.complete = io_complete;
}

static void begin_read(struct ssc_copy_chunk *chunk)
{
	const struct ssc_copy_spec *spec = &chunk->copy->spec;

	prepare(chunk, spec->src_offset + chunk->pos + chunk->n_read,
		chunk->buffer->data + chunk->n_read,
		io_len(chunk, spec->src, chunk->len - chunk->n_read), false);
	spec->src->ops->read(spec->src, &chunk->io);
}

static void begin_write(struct ssc_copy_chunk *chunk)
{
	const struct ssc_copy_spec *spec = &chunk->copy->spec;
	/* Nobody writes to what is to be written: the cast only fits the shared structure. */
	uint8_t *data = chunk->buffer != NULL ? chunk->buffer->data + chunk->n_moved
					      : chunk->copy->engine->zeros;

	prepare(chunk, spec->dst_offset + chunk->pos + chunk->n_moved, data,
		io_len(chunk, spec->dst, chunk->run_end - chunk->n_moved), true);
	spec->dst->ops->write(spec->dst, &chunk->io);
}

static void begin_commit(struct ssc_copy_chunk *chunk)
{
	const struct ssc_copy_spec *spec = &chunk->copy->spec;

	prepare(chunk, 0, NULL, 1, true);
	spec->dst->ops->commit(spec->dst, &chunk->io);
}

/* ---- runs ---- */

/* Set run_end and run_is_zero of what follows n_moved. */
static void find_run(struct ssc_copy_chunk *chunk)
{
	const struct ssc_copy_spec *spec = &chunk->copy->spec;
	uint64_t at = spec->dst_offset + chunk->pos + chunk->n_moved;
	uint64_t len = chunk->len - chunk->n_moved;

	chunk->run_is_zero = chunk->kind == SSC_COPY_CHUNK_ZERO;
	if (chunk->is_scanned)
		len = ssc_copy_zero_run(chunk->buffer->data + chunk->n_moved, len, at,
					&chunk->run_is_zero);
	/* Zeros on both sides of the size are two runs. */
	if (chunk->run_is_zero && at < spec->dst_size && len > spec->dst_size - at)
		len = spec->dst_size - at;
	chunk->run_end = chunk->n_moved + len;
}

/* Whether a run of zeros needs no writing. */
static bool skip_run(struct ssc_copy_chunk *chunk)
{
	struct ssc_copy *copy = chunk->copy;
	uint64_t at = copy->spec.dst_offset + chunk->pos + chunk->n_moved;
	uint64_t len = chunk->run_end - chunk->n_moved;

	if (at < copy->spec.dst_size &&
	    (len < SSC_COPY_HOLE_MIN_BYTES || !ssc_copy_punch(copy, at, len)))
		return false;
	add(&copy->engine->bytes_skipped, len);
	chunk->n_moved = chunk->run_end;
	return true;
}

static void write_on(struct ssc_copy_chunk *chunk)
{
	while (chunk->n_moved < chunk->len) {
		if (chunk->n_moved == chunk->run_end)
			find_run(chunk);
		if (!chunk->run_is_zero || !skip_run(chunk)) {
			chunk->run_is_zero = false;
			begin_write(chunk);
			return;
		}
	}
	ssc_copy_chunk_over(chunk);
}

void ssc_copy_chunk_run(struct ssc_copy_chunk *chunk)
{
	const struct ssc_copy_spec *spec = &chunk->copy->spec;
	bool is_reading = chunk->kind == SSC_COPY_CHUNK_DATA && chunk->n_read < chunk->len;

	if (ssc_copy_is_unwanted(chunk))
		ssc_copy_chunk_over(chunk);
	else if ((is_reading ? spec->src : spec->dst)->is_blocking && !ssc_copy_here_is_worker())
		ssc_copy_hop(chunk);
	else if (is_reading)
		begin_read(chunk);
	else if (chunk->kind == SSC_COPY_CHUNK_COMMIT)
		begin_commit(chunk);
	else
		write_on(chunk);
}
