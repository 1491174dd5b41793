/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * verifier.h - the write verifier that our clients see, derived from the upstream's.
 *
 * Object     struct ssc_verifier: one per export. A generation number stands for one value; it moves
 *            on when the upstream shows another verifier or when reset is asked for. Values never
 *            repeat within an instance, and every bit of them depends on the generation.
 * Why        The server asks for the verifier only after a WRITE has completed. A WRITE that the
 *            upstream answered before its restart may thus be answered to the client after we saw
 *            the restart. Handing out the new value then would let a COMMIT match and lose the data
 *            silently. So every WRITE and COMMIT notes the generation its own reply belongs to
 *            (ssc_verifier_note), and the answer to that very request carries that generation's value.
 * Locking    one leaf mutex; reading the generation takes none. Threads any. Nothing blocks.
 * Source     RFC 1813 3.3.7 and 3.3.21, RFC 8881 18.32.4 (a changed verifier = send again).
 */
#ifndef SSC_VERIFIER_H
#define SSC_VERIFIER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ssc/base.h"

struct ssc_verifier {
	uint64_t instance;           /* constant after _init */
	_Atomic uint64_t generation; /* starts at 1; written with lock held */
	/* guarded by lock */
	pthread_mutex_t lock;
	bool known; /* the upstream has shown a verifier */
	uint64_t upstream;
};

/** @brief Begin with a value that no earlier run handed out. @instance: random 64 bits. */
void ssc_verifier_init(struct ssc_verifier *v, uint64_t instance) SSC_NONNULL;

void ssc_verifier_fini(struct ssc_verifier *v) SSC_NONNULL;

/**
 * @brief Take note of the verifier in an upstream's reply to WRITE or COMMIT.
 *
 * @return the generation that this reply belongs to: the current one, or, when @upstream_verf is not
 *         the one last seen, a new one. A reply that was overtaken by one with a newer verifier
 *         cannot be told from a further restart; it too moves the generation, which costs clients a
 *         re-send and no data.
 */
uint64_t ssc_verifier_note(struct ssc_verifier *v, const uint8_t upstream_verf[8]) SSC_NONNULL;

/** @brief Move to a new generation: something that was acknowledged as unstable may be lost. */
uint64_t ssc_verifier_reset(struct ssc_verifier *v) SSC_NONNULL;

/** @brief The current generation. Never 0, so that 0 can mean "none noted". */
uint64_t ssc_verifier_generation(struct ssc_verifier *v) SSC_NONNULL;

/** @brief The 8 bytes that stand for @generation. */
void ssc_verifier_value(const struct ssc_verifier *v, uint64_t generation,
			uint8_t value[8]) SSC_NONNULL;

#endif /* SSC_VERIFIER_H */
