/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * verifier.c - generations of the write verifier, and the value of each.
 *
 * The value is a bijective mix of instance + generation: two generations of one instance cannot
 * share it, and it costs no memory to hand out that of an old one.
 */
#include <string.h>

#include "ssc/verifier.h"

void ssc_verifier_init(struct ssc_verifier *v, uint64_t instance)
{
	memset(v, 0, sizeof(*v));
	v->instance = ssc_base_mix(instance);
	atomic_init(&v->generation, 1);
	pthread_mutex_init(&v->lock, NULL);
}

void ssc_verifier_fini(struct ssc_verifier *v)
{
	pthread_mutex_destroy(&v->lock);
}

uint64_t ssc_verifier_note(struct ssc_verifier *v, const uint8_t upstream_verf[8])
{
	uint64_t generation;
	uint64_t seen;

	memcpy(&seen, upstream_verf, sizeof(seen));
	pthread_mutex_lock(&v->lock);
	if (v->known && v->upstream != seen)
		atomic_fetch_add(&v->generation, 1);
	v->known = true;
	v->upstream = seen;
	generation = atomic_load(&v->generation);
	pthread_mutex_unlock(&v->lock);
	return generation;
}

uint64_t ssc_verifier_reset(struct ssc_verifier *v)
{
	uint64_t generation;

	pthread_mutex_lock(&v->lock);
	generation = atomic_fetch_add(&v->generation, 1) + 1;
	pthread_mutex_unlock(&v->lock);
	return generation;
}

uint64_t ssc_verifier_generation(struct ssc_verifier *v)
{
	return atomic_load(&v->generation);
}

void ssc_verifier_value(const struct ssc_verifier *v, uint64_t generation, uint8_t value[8])
{
	uint64_t mixed = ssc_base_mix(v->instance + generation);

	memcpy(value, &mixed, sizeof(mixed));
}
