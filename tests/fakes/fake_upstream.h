/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_upstream.h - an upstream that does what a test's script says, and remembers what it was asked.
 *
 * Object     struct fake_upstream, used through fake_upstream_ops(). Each submitted call uses up the
 *            first step of the script that is for its operation. A call without a step is answered
 *            SSC_E_SERVERFAULT and counted (fake_upstream_n_unexpected).
 * Index      calls are numbered from 0 in the order of submission.
 * Threads    any. done and late run in submit, in the function that lets a call go on, or, after
 *            fake_upstream_use_worker, always on one thread of the fake's own.
 */
#ifndef SSC_FAKE_UPSTREAM_H
#define SSC_FAKE_UPSTREAM_H

#include "ssc/upstream.h"

enum fake_how {
	FAKE_REPLY = 0, /* at once */
	FAKE_HOLD, /* when the test releases it; TIMEDOUT by fake_upstream_expire before that */
	FAKE_LATE, /* TIMEDOUT at once; late when the test releases it */
	FAKE_LATE_AT_ONCE /* TIMEDOUT, and late right behind it */
};

/* One line of the script. What is not set stays zero in the result. */
struct fake_step {
	enum ssc_op op; /* SSC_OP_N: any */
	enum fake_how how;
	enum ssc_err err; /* the outcome; with FAKE_LATE what late reports */
	bool retried;
	bool has_attrs; /* attrs go to the call or, of those that find or make one, the object */
	struct ssc_attrs attrs;
	struct ssc_fh fh;             /* of the object */
	const char *target;           /* READLINK */
	uint32_t count;               /* READ, WRITE */
	uint8_t verf[SSC_VERF_BYTES]; /* WRITE, COMMIT */
};

/* What was asked. */
struct fake_record {
	enum ssc_op op;
	struct ssc_cred cred;
	struct ssc_fh fh;
	char name[SSC_NAME_MAX + 1]; /* empty: none */
	uint64_t answer_by_ns;
};

struct fake_upstream;

struct fake_upstream *fake_upstream_new(void);
struct ssc_upstream *fake_upstream_ops(struct fake_upstream *fake);

/** @brief Completions run on a thread of the fake's own from now on. */
void fake_upstream_use_worker(struct fake_upstream *fake);

/** @brief What is_silent says. It changes nothing else. */
void fake_upstream_set_silent(struct fake_upstream *fake, bool silent);

/** @brief Append to the script; the step is copied, its target must live on. */
void fake_upstream_push(struct fake_upstream *fake, const struct fake_step *step);

/** @brief Give call @index its scripted outcome: by done, or by late when it has timed out. */
void fake_upstream_release(struct fake_upstream *fake, unsigned int index);

/** @brief Answer TIMEDOUT to every held call whose deadline has passed; returns how many. */
unsigned int fake_upstream_expire(struct fake_upstream *fake);

/** @brief Wait until @n calls were submitted; aborts when that takes more than 30 real seconds. */
void fake_upstream_wait_calls(struct fake_upstream *fake, unsigned int n);

/** @brief Number of calls of @op submitted (SSC_OP_N: of all). */
unsigned int fake_upstream_n_calls(struct fake_upstream *fake, enum ssc_op op);

unsigned int fake_upstream_n_unexpected(struct fake_upstream *fake);

/** @brief Steps of the script that no call has used. */
unsigned int fake_upstream_n_left(struct fake_upstream *fake);

/** @brief Copy of what call @index asked for. */
struct fake_record fake_upstream_record(struct fake_upstream *fake, unsigned int index);

/** @brief Stop if it was not, and free. */
void fake_upstream_free(struct fake_upstream *fake);

#endif /* SSC_FAKE_UPSTREAM_H */
