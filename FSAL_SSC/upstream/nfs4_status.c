/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_status.c - see nfs4_status.h.
 */
#include "ssc/nfs4_status.h"

#define NAME(name, number) \
	case number:       \
		return #name;

/* A local outcome's names are made here, since they need no memory of their own this way. */
static const char *const local_names[SSC_E_N] = {
	[SSC_E_INVAL] = "local INVAL",
	[SSC_E_JUKEBOX] = "local JUKEBOX",
	[SSC_E_NAMETOOLONG] = "local NAMETOOLONG",
	[SSC_E_TIMEDOUT] = "local TIMEDOUT",
	[SSC_E_DOWN] = "local DOWN",
	[SSC_E_CONN] = "local CONN",
	[SSC_E_PROTO] = "local PROTO",
	[SSC_E_AUTH] = "local AUTH",
	[SSC_E_SHUTDOWN] = "local SHUTDOWN",
};

const char *ssc_nfs4_outcome_str(uint32_t outcome)
{
	uint32_t err = outcome & ~SSC_NFS4_LOCAL;

	if (outcome & SSC_NFS4_LOCAL)
		return err < SSC_E_N && local_names[err] ? local_names[err] : "local ?";
	switch (outcome) {
		SSC_NFS4_STATUSES(NAME)
	}
	return "?";
}
