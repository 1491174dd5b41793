/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * noted.c - what a request's own I/O leaves for the questions that the server asks after it.
 *
 * After a WRITE the server asks for the verifier, and the cache above for the file's attributes. Both
 * belong to the WRITE's own reply, which may be older than what other requests have seen since. So
 * the completion leaves a note in the request's context, in its field for FSALs:
 *     upper 32 bits   low half of the verifier's generation that the reply belongs to
 *     lower 32 bits   hash of the file, 0 once its attributes were asked for
 * The context stays where it is until the request is answered, and a request's operations run one
 * after another, so the note needs no lock. It is written before the server is told of the completion.
 */
#include "glue.h"

static uint32_t hash_of(const struct ssc_handle *h)
{
	uint64_t hash = ssc_base_hash(h->key.data, h->key.len, 0);
	uint32_t half = (uint32_t)(hash ^ hash >> 32);

	return half != 0 ? half : 1;
}

static uint64_t note_of(const struct req_op_context *ctx)
{
	return (uint64_t)(uintptr_t)ctx->fsal_private;
}

static void note_set(struct req_op_context *ctx, uint64_t note)
{
	_Static_assert(sizeof(ctx->fsal_private) == sizeof(note), "a note needs 64 bits");
	ctx->fsal_private = (void *)(uintptr_t)note;
}

void ssc_noted_set(struct req_op_context *ctx, const struct ssc_handle *h, uint64_t generation)
{
	uint64_t upper = generation != 0 ? generation << 32 : note_of(ctx) & ~(uint64_t)UINT32_MAX;

	note_set(ctx, upper | hash_of(h));
}

bool ssc_noted_take(const struct ssc_handle *h)
{
	uint64_t note = note_of(op_ctx);

	if ((uint32_t)note != hash_of(h))
		return false;
	note_set(op_ctx, note & ~(uint64_t)UINT32_MAX);
	return true;
}

uint64_t ssc_noted_generation(struct ssc_export *exp)
{
	uint64_t now = ssc_verifier_generation(&exp->verifier);
	uint32_t noted = (uint32_t)(note_of(op_ctx) >> 32);

	if (noted == 0)
		return now;
	/* Generations only grow, so the one noted is at most the current one. */
	return now - (uint32_t)((uint32_t)now - noted);
}
