/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * copy_export.c - see copy_export.h.
 */
#include "export_mgr.h"

#include "copy_export.h"
#include "copy_service.h"

struct stacked {
	struct glist_head in_module; /* guarded by module.lock */
	struct fsal_export *inner;
	atomic_bool allow_copy;
	_Atomic uint64_t n_resets; /* of the write verifier */
	/* the inner FSAL's methods */
	void (*prepare_unexport)(struct fsal_export *export);
	void (*release)(struct fsal_export *export);
	void (*get_write_verifier)(struct fsal_export *export, struct gsh_buffdesc *verf);
};

static struct stacked *find_locked(const struct fsal_export *inner)
{
	struct glist_head *node;

	glist_for_each(node, &ssc_module.stacked)
	{
		struct stacked *s = glist_entry(node, struct stacked, in_module);

		if (s->inner == inner)
			return s;
	}
	return NULL;
}

static struct stacked *find(const struct fsal_export *inner)
{
	struct stacked *s;

	pthread_mutex_lock(&ssc_module.lock);
	s = find_locked(inner);
	pthread_mutex_unlock(&ssc_module.lock);
	return s;
}

/* ---- the methods that we stand before ---- */

static void stacked_prepare_unexport(struct fsal_export *export)
{
	ssc_copy_service_end_export(export->export_id, true);
	find(export)->prepare_unexport(export);
}

static void stacked_release(struct fsal_export *export)
{
	struct stacked *s;

	pthread_mutex_lock(&ssc_module.lock);
	s = find_locked(export);
	glist_del(&s->in_module);
	pthread_mutex_unlock(&ssc_module.lock);
	s->release(export);
	gsh_free(s);
}

static void stacked_get_write_verifier(struct fsal_export *export, struct gsh_buffdesc *verf)
{
	struct stacked *s = find(export);
	uint64_t n_resets = atomic_load(&s->n_resets);
	uint64_t value;

	s->get_write_verifier(export, verf);
	if (n_resets == 0 || verf->len < sizeof(value))
		return;
	memcpy(&value, verf->addr, sizeof(value));
	value ^= ssc_base_mix(n_resets);
	memcpy(verf->addr, &value, sizeof(value));
}

/* ---- what others ask ---- */

void ssc_copy_export_stacked(struct fsal_export *inner, bool allow_copy)
{
	struct stacked *s = gsh_calloc(1, sizeof(*s));

	s->inner = inner;
	atomic_store(&s->allow_copy, allow_copy);
	s->prepare_unexport = inner->exp_ops.prepare_unexport;
	s->release = inner->exp_ops.release;
	s->get_write_verifier = inner->exp_ops.get_write_verifier;
	pthread_mutex_lock(&ssc_module.lock);
	glist_add_tail(&ssc_module.stacked, &s->in_module);
	pthread_mutex_unlock(&ssc_module.lock);
	inner->exp_ops.prepare_unexport = stacked_prepare_unexport;
	inner->exp_ops.release = stacked_release;
}

void ssc_copy_export_updated(struct fsal_export *inner, bool allow_copy)
{
	struct stacked *s = find(inner);

	if (s != NULL)
		atomic_store(&s->allow_copy, allow_copy);
}

struct fsal_export *ssc_copy_export_below(const struct gsh_export *gsh_export)
{
	struct fsal_export *export = gsh_export->fsal_export;

	return export->sub_export != NULL ? export->sub_export : export;
}

enum ssc_copy_kind ssc_copy_export_kind(struct gsh_export *gsh_export, struct ssc_export **exp)
{
	struct fsal_export *export = ssc_copy_export_below(gsh_export);
	const struct stacked *s;

	if (export->fsal == &ssc_module.fsal) {
		*exp = ssc_export_of(export);
		return atomic_load(&(*exp)->allow_copy) ? SSC_COPY_REEXPORT : SSC_COPY_NOT;
	}
	s = find(export);
	return s != NULL && atomic_load(&s->allow_copy) ? SSC_COPY_STACKED : SSC_COPY_NOT;
}

void ssc_copy_export_reset_verifier(struct gsh_export *gsh_export)
{
	struct fsal_export *export = ssc_copy_export_below(gsh_export);
	struct stacked *s;

	if (export->fsal == &ssc_module.fsal) {
		(void)ssc_verifier_reset(&ssc_export_of(export)->verifier);
		return;
	}
	s = find(export);
	if (s == NULL)
		return;
	/* Ours stands before it from the first time on: who never lost anything pays nothing. */
	atomic_fetch_add(&s->n_resets, 1);
	__atomic_store_n(&export->exp_ops.get_write_verifier, stacked_get_write_verifier,
			 __ATOMIC_RELEASE);
}
