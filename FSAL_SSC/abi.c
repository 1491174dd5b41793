/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * abi.c - refuses to be compiled, and refuses to run, against structures of another shape.
 *
 * Ganesha has no stable binary interface: its build options decide which members its structures
 * have, and no package carries the options. A module compiled with other answers would write past
 * the server's objects. So the sizes that Debian's 4.3 has are asserted here when we are compiled,
 * and the running server is asked for what it can tell:
 *
 *   the library's file name      ends in the version that the headers are of
 *   the size of `nfs_param`      the one exported object whose size depends on the options
 *   the table of object methods  as many bytes as the server itself fills in
 *
 * The FSAL interface's own version is compared by register_fsal.
 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "fsal.h"
#include "gsh_config.h"
#include "nfs_core.h"
#include "nfs_proto_data.h"
#include "nfs_rpc_callback.h"
#include "sal_data.h"
#include "export_mgr.h"
#include "FSAL/fsal_commonlib.h"

#include "abi.h"

#define ASSERT_BYTES(type, bytes)                                                             \
	_Static_assert(sizeof(type) == (bytes), "sizeof(" #type ") is not " #bytes ", as in " \
						"the server: see FSAL_SSC/build/config.h")

ASSERT_BYTES(nfs_parameter_t, 512);
ASSERT_BYTES(struct req_op_context, 232);
ASSERT_BYTES(struct fsal_obj_handle, 144);
ASSERT_BYTES(struct fsal_export, 360);
ASSERT_BYTES(struct fsal_module, 352);
ASSERT_BYTES(struct export_ops, 272);
ASSERT_BYTES(struct fsal_obj_ops, 424);
ASSERT_BYTES(struct fsal_ops, 96);
ASSERT_BYTES(struct state_t, 216);
ASSERT_BYTES(struct state_hdl, 248);
ASSERT_BYTES(struct nfs41_session, 2480);
ASSERT_BYTES(struct compound_data, 336);
ASSERT_BYTES(struct nfs_request, 2232);
ASSERT_BYTES(struct gsh_export, 448);
ASSERT_BYTES(struct fsal_attrlist, 248);
ASSERT_BYTES(nfs_argop4, 144);
ASSERT_BYTES(nfs_resop4, 160);
ASSERT_BYTES(struct svc_req, 1848);
ASSERT_BYTES(struct _rpc_call, 864);

#define SERVER_LIBRARY "libganesha_nfsd.so." GANESHA_VERSION

/* No function has this address, so a word that still holds it was not written. */
#define UNTOUCHED 0xa5a5a5a5a5a5a5a5ull

static void refuse(const char *what, size_t have, size_t want)
{
	LogCrit(COMPONENT_FSAL,
		"SSC: not loaded: %s is %zu in this server, and %zu in the one that libfsalssc.so "
		"was "
		"built for (nfs-ganesha %s). Build it again for this server.",
		what, have, want, GANESHA_VERSION);
}

static bool is_same_library(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (!strcmp(name, SERVER_LIBRARY))
		return true;
	LogCrit(COMPONENT_FSAL,
		"SSC: not loaded: the server runs on %s, and libfsalssc.so was built for %s. Build "
		"it "
		"again for this server.",
		path, SERVER_LIBRARY);
	return false;
}

/* Let the server fill in its table of default methods, and see where it stops. */
static size_t live_obj_ops_bytes(void)
{
	union {
		struct fsal_obj_ops ops;
		uint64_t words[2 * sizeof(struct fsal_obj_ops) / sizeof(uint64_t)];
	} *room = malloc(sizeof(*room));
	const size_t n_words = sizeof(room->words) / sizeof(room->words[0]);
	size_t n;

	if (!room)
		return 0;
	for (n = 0; n < n_words; n++)
		room->words[n] = UNTOUCHED;
	fsal_default_obj_ops_init(&room->ops);
	while (n > 0 && room->words[n - 1] == UNTOUCHED)
		n--;
	free(room);
	return n * sizeof(uint64_t);
}

bool ssc_abi_check(void)
{
	const ElfW(Sym) *sym = NULL;
	Dl_info info;
	size_t bytes;

	if (!dladdr1(&nfs_param, &info, (void **)&sym, RTLD_DL_SYMENT) || !sym) {
		LogCrit(COMPONENT_FSAL, "SSC: not loaded: the server does not export nfs_param");
		return false;
	}
	if (!is_same_library(info.dli_fname))
		return false;
	if (sym->st_size != sizeof(nfs_param)) {
		refuse("the size of nfs_param", sym->st_size, sizeof(nfs_param));
		return false;
	}
	bytes = live_obj_ops_bytes();
	if (bytes != sizeof(struct fsal_obj_ops)) {
		refuse("the size of the table of object methods", bytes,
		       sizeof(struct fsal_obj_ops));
		return false;
	}
	return true;
}
