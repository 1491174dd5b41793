/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * glue.h - what the files of this folder share: they make a Ganesha FSAL of the layers below.
 *
 * Objects    struct ssc_module   the one global, in main.c
 *            struct ssc_export   one re-export: an upstream, a caller, a verifier, a root
 *            struct ssc_handle   one file system object, as Ganesha's cache above us holds it
 * Handles    A handle may be reached through several exports of one upstream, and outlive the one it
 *            was made through. So it keeps no export; each method takes op_ctx's.
 * op_ctx     is read in this folder only, and what goes down is passed as arguments.
 * Locking    in order: module.lock, obj_lock of an object, export.root.lock, handle.lock.
 *            None is held across a call to the upstream.
 * Threads    methods: the server's workers, its admin, DBus and signal threads. io_done: any.
 */
#ifndef SSC_GLUE_H
#define SSC_GLUE_H

#include "config.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fsal.h"
#include "fsal_api.h"
#include "fsal_types.h"
#include "FSAL/fsal_commonlib.h"
#include "sal_data.h"

#include "ssc/budget.h"
#include "ssc/log.h"
#include "ssc/sync_call.h"
#include "ssc/upstream.h"
#include "ssc/verifier.h"

#include "config_table.h"
#include "handle_key.h"
#include "kept.h"

struct ssc_module {
	struct fsal_module fsal;
	/* constant after init_config */
	struct fsal_obj_ops obj_ops;
	struct ssc_module_config config;
	struct ssc_budget *budget;
	/* atomic */
	_Atomic uint64_t renamed_ns; /* when something was last renamed, perhaps over another */
	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t reaped;
	struct glist_head exports; /* of struct ssc_export.in_module */
	struct glist_head stacked; /* exports of other FSALs, see copy_export.c */
	unsigned int n_reaping;    /* exports that a thread of their own still frees */
};

extern struct ssc_module ssc_module;

struct ssc_ahead;

struct ssc_export {
	struct fsal_export export;
	struct glist_head in_module;
	/* constant after create_export */
	char name[128]; /* "export 7 (/data) of nas:/vol", for logs */
	char *remote_path;
	struct ssc_export_config config;
	uint32_t upstream_id;
	uint64_t path_hash; /* of remote_path: names the root in handles */
	struct ssc_upstream *up;
	struct ssc_caller *caller;
	struct ssc_ahead *ahead; /* ahead.h */
	/* own locks */
	struct ssc_verifier verifier;
	_Atomic uint64_t timeout_ns;
	atomic_bool allow_copy;
	atomic_bool is_leaving; /* no more work for the cache above */
	/* Changes of names that were asked for: how often one began, ended or turned out to have
	   been made, and how many are under way. */
	atomic_ullong n_changes;
	atomic_uint n_changing;
	struct {
		pthread_mutex_t lock;
		/* guarded by lock */
		bool is_known; /* fh and fsid */
		struct ssc_fh fh;
		uint64_t fsid;
		bool is_shown; /* the next two: what clients were told first stays */
		uint64_t shown_fsid;
		uint64_t shown_fileid;
	} root;
};

struct ssc_handle {
	struct fsal_obj_handle obj;
	struct fsal_share share; /* guarded by obj.obj_lock */
	struct ssc_kept kept;    /* own lock */
	pthread_mutex_t lock;
	/* guarded by lock */
	uint8_t cookie_verf[SSC_VERF_BYTES]; /* of the last READDIRPLUS of a directory */
	bool is_uncommitted;                 /* with uncommitted_verf: see file_io.c */
	uint64_t n_unstable;
	uint8_t uncommitted_verf[SSC_VERF_BYTES];
	/* constant */
	struct ssc_key key; /* must be last: cut to its length */
};

static inline struct ssc_handle *ssc_handle_of(const struct fsal_obj_handle *obj)
{
	return container_of((struct fsal_obj_handle *)obj, struct ssc_handle, obj);
}

static inline struct ssc_export *ssc_export_of(struct fsal_export *export)
{
	return container_of(export, struct ssc_export, export);
}

/** @brief The export of the running request. */
static inline struct ssc_export *ssc_export_now(void)
{
	return ssc_export_of(op_ctx->fsal_export);
}

/* ---- fsal_errmap.c ---- */

/** @brief What Ganesha is told for @err. Logs nothing but what the server above cannot know. */
fsal_status_t ssc_fsal_status(enum ssc_err err);

/* ---- glog.c ---- */

/** @brief Send log lines of the lower layers to the server's log. */
void ssc_glog_start(void);

/* ---- config.c ---- */

/** @brief Read the block SSC { }. False: refused, with a line in the log. Init only. */
bool ssc_config_load_module(config_file_t file, struct ssc_module_config *config,
			    struct config_error_type *err_type);

/**
 * @brief Read and check an export's FSAL block. False: refused, with a line in the log.
 *
 * @config is zeroed by the caller, who calls ssc_config_free on it in any case. An inner FSAL is
 * loaded and referenced, even when the rest is refused: see ssc_stack_drop.
 */
bool ssc_config_load_export(void *node, struct ssc_export_config *config,
			    struct config_error_type *err_type);

void ssc_config_free(struct ssc_export_config *config);

/** @brief The first key that differs and cannot change while an export is in use; NULL: none. */
const char *ssc_config_changed_key(const struct ssc_export_config *old,
				   const struct ssc_export_config *new);

/* ---- export.c, export_ops.c, stack.c ---- */

fsal_status_t ssc_create_export(struct fsal_module *module, void *node,
				struct config_error_type *err_type,
				const struct fsal_up_vector *up_ops);
fsal_status_t ssc_update_export(struct fsal_module *module, void *node,
				struct config_error_type *err_type, struct fsal_export *original,
				struct fsal_module *super);

/** @brief Wait, 5 s at most, for exports that are still being freed. Init and exit only. */
void ssc_export_drain(void);

/** @brief True on a thread that runs a completion, where an export cannot be stopped. */
extern __thread bool ssc_export_in_done;

/** @brief The methods `prepare_unexport` (stop the upstream) and `release` (free all). */
void ssc_export_prepare_unexport(struct fsal_export *export);
void ssc_export_release(struct fsal_export *export);

void ssc_export_ops_init(struct export_ops *ops);

/** @brief create_export when the block holds an inner FSAL: that one serves, without us. */
fsal_status_t ssc_stack_create(struct fsal_module *module, struct ssc_export_config *config,
			       struct config_error_type *err_type,
			       const struct fsal_up_vector *up_ops);
fsal_status_t ssc_stack_update(const struct ssc_export_config *config,
			       struct config_error_type *err_type, struct fsal_export *original,
			       struct fsal_module *super);

/** @brief Drop the reference on the inner FSAL that reading the block took, if it is still ours. */
void ssc_stack_drop(struct ssc_export_config *config);

/* ---- root.c ---- */

void ssc_root_init(struct ssc_export *exp);
void ssc_root_fini(struct ssc_export *exp);

/**
 * @brief The root's file handle at the upstream.
 *
 * @param stale  what the upstream called stale: ask for another one. NULL: the known one will do
 *
 * Blocks: until @until_ns at most, when it has to ask.
 */
enum ssc_err ssc_root_fh(struct ssc_export *exp, const struct ssc_fh *stale, uint64_t until_ns,
			 struct ssc_fh *fh);

/** @brief Whether @fh is known to be the root's. Does not block. */
bool ssc_root_is(struct ssc_export *exp, const struct ssc_fh *fh);

/** @brief The fsid that clients are shown for the upstream's @fsid. */
fsal_fsid_t ssc_root_fsid(struct ssc_export *exp, uint64_t fsid);

/** @brief fsid and fileid of the root, which never change once asked for. */
void ssc_root_identity(struct ssc_export *exp, fsal_fsid_t *fsid, uint64_t *fileid);

/** @brief Whether @attrs are of another file system than the root's. False while that is unknown. */
bool ssc_root_is_crossing(struct ssc_export *exp, const struct ssc_attrs *attrs);

/* ---- late.c ---- */

/** @brief Let the cache above forget folders that a late reply changed. Before the first call. */
void ssc_late_watch(struct ssc_export *exp);

/* ---- run.c ---- */

/* One synchronous call about @h. */
struct ssc_run {
	struct ssc_export *exp;
	struct ssc_handle *h;
	struct ssc_handle *other; /* second directory of RENAME and LINK; NULL: none */
	enum ssc_op op;
	/* Fills the arguments in; NULL: there are none. other: handle of that, NULL without */
	enum ssc_err (*fill)(struct ssc_call *call, const struct ssc_fh *other, const void *arg);
	const void *arg;
	bool is_shrinking; /* may make the file shorter */
};

/**
 * @brief Carry out @run and wait for the answer. A root that has become stale is looked for once.
 *
 * The attributes in the reply are kept with h. *call is the caller's to put, also on errors; NULL
 * when there was none.
 */
enum ssc_err ssc_run(const struct ssc_run *run, struct ssc_call **call);

/** @brief A run that only names a directory entry: @arg is the name. */
enum ssc_err ssc_run_fill_name(struct ssc_call *call, const struct ssc_fh *other, const void *arg);

/**
 * @brief Whether the running request has already changed something at the upstream for good: it must
 *        not be answered "come back" any more, since its repetition would find its own work.
 */
bool ssc_run_has_changed(void);

/** @brief Fill in whom a call is made for: the request's mapped identity. */
void ssc_run_cred(struct ssc_cred *cred);

/** @brief Tells clients apart by their address: a retry may come from another port. */
uint64_t ssc_run_who(void);

/** @brief The handle that the upstream knows @h by; blocks for a root that is not known. */
enum ssc_err ssc_run_fh(struct ssc_export *exp, struct ssc_handle *h, const struct ssc_fh *stale,
			struct ssc_fh *fh);

/** @brief GETATTR of what has no object yet. */
enum ssc_err ssc_run_getattr(struct ssc_export *exp, const struct ssc_fh *fh,
			     struct ssc_attrs *attrs);

/* ---- handle.c ---- */

void ssc_handle_ops_init(struct fsal_obj_ops *ops);

/**
 * @brief Ours below the server's cached object @obj, of a re-export, which op_ctx's export is.
 *        It lives as long as @obj does.
 */
struct ssc_handle *ssc_handle_below(struct fsal_obj_handle *obj);

/** @brief A new object for what the upstream calls @fh. It takes the root's form if it is that. */
struct ssc_handle *ssc_handle_new(struct ssc_export *exp, const struct ssc_fh *fh,
				  const struct ssc_attrs *attrs);

/** @brief A new object for the export's root. */
struct ssc_handle *ssc_handle_new_root(struct ssc_export *exp);

void ssc_handle_free(struct ssc_handle *h);

/* ---- namespace.c ---- */

/** @brief LOOKUP of @name in @dir; *found is a new object, *attrs its attributes. */
enum ssc_err ssc_namespace_lookup(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
				  struct ssc_handle **found, struct ssc_attrs *attrs);

/**
 * @brief A new object from the reply of a call that made @name in @dir, asking for what the reply
 *        left out.
 */
enum ssc_err ssc_namespace_made(struct ssc_export *exp, struct ssc_handle *dir, const char *name,
				const struct ssc_call *call, struct ssc_handle **made,
				struct ssc_attrs *attrs);

/** @brief Whether @name is of a file system that the export must not show. Logs it then. */
bool ssc_namespace_is_closed(struct ssc_export *exp, const struct ssc_attrs *attrs,
			     const char *name);

void ssc_namespace_ops_init(struct fsal_obj_ops *ops);
void ssc_readdir_ops_init(struct fsal_obj_ops *ops);

/* ---- attrs.c ---- */

void ssc_attrs_ops_init(struct fsal_obj_ops *ops);

/** @brief Show @attrs of @h to the server above. @out may be NULL. */
void ssc_attrs_show(struct ssc_export *exp, const struct ssc_handle *h,
		    const struct ssc_attrs *attrs, struct fsal_attrlist *out);

/** @brief Tell the server above that there are no attributes, if it wants to know. */
void ssc_attrs_show_none(struct fsal_attrlist *out);

object_file_type_t ssc_attrs_type(enum ssc_ftype type);

/** @brief What @attrs asks to be set on a new object, or on an existing one. */
void ssc_attrs_to_set(const struct fsal_attrlist *attrs, struct ssc_sattr *set);

/** @brief As ssc_attrs_to_set, without an owner and group that the caller has anyway. */
void ssc_attrs_to_make(const struct fsal_attrlist *attrs, struct ssc_sattr *set);

/** @brief Attributes of @h from the upstream, now. */
enum ssc_err ssc_attrs_fetch(struct ssc_export *exp, struct ssc_handle *h, struct ssc_attrs *attrs);

/** @brief SETATTR; *attrs from the reply or fetched. */
enum ssc_err ssc_attrs_set(struct ssc_export *exp, struct ssc_handle *h,
			   const struct ssc_sattr *set, struct ssc_attrs *attrs);

/* ---- open.c ---- */

void ssc_open_ops_init(struct fsal_obj_ops *ops);
struct state_t *ssc_open_alloc_state(struct fsal_export *export, enum state_type type,
				     struct state_t *related);

/** @brief Whether share reservations allow I/O with @flags by @state (NULL: nobody's). */
fsal_status_t ssc_open_allows(struct ssc_handle *h, struct state_t *state, fsal_openflags_t flags,
			      bool bypass);

/** @brief The running request found @h, and @again is the object made for that, with attributes. */
void ssc_open_met(struct ssc_handle *h, struct ssc_handle *again);

/** @brief Take what this thread opened without a state off the server's count of open files. */
void ssc_open_uncount(void);

/* ---- file_io.c, noted.c ---- */

void ssc_file_io_ops_init(struct fsal_obj_ops *ops);

/** @brief @h was written to, UNSTABLE, and the upstream's verifier was @verf. */
void ssc_file_io_note_unstable(struct ssc_handle *h, const uint8_t verf[SSC_VERF_BYTES]);

/** @brief Remember in @ctx that its request did I/O on @h. @generation 0: keep the one noted. */
void ssc_noted_set(struct req_op_context *ctx, const struct ssc_handle *h, uint64_t generation);

/** @brief True once after I/O on @h by the running request. */
bool ssc_noted_take(const struct ssc_handle *h);

/** @brief The verifier's generation that belongs to the running request. */
uint64_t ssc_noted_generation(struct ssc_export *exp);

#endif /* SSC_GLUE_H */
