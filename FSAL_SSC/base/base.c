/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * base.c - names of results, and the two hash functions that keys and verifiers are made with.
 *
 * Everything here is a pure function.
 */
#include "ssc/base.h"

#define FNV_OFFSET_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME        0x00000100000001b3ull

const char *ssc_err_str(enum ssc_err err)
{
	switch (err) {
	case SSC_OK:
		return "OK";
	case SSC_E_PERM:
		return "PERM";
	case SSC_E_NOENT:
		return "NOENT";
	case SSC_E_IO:
		return "IO";
	case SSC_E_NXIO:
		return "NXIO";
	case SSC_E_ACCES:
		return "ACCES";
	case SSC_E_EXIST:
		return "EXIST";
	case SSC_E_XDEV:
		return "XDEV";
	case SSC_E_NODEV:
		return "NODEV";
	case SSC_E_NOTDIR:
		return "NOTDIR";
	case SSC_E_ISDIR:
		return "ISDIR";
	case SSC_E_INVAL:
		return "INVAL";
	case SSC_E_FBIG:
		return "FBIG";
	case SSC_E_NOSPC:
		return "NOSPC";
	case SSC_E_ROFS:
		return "ROFS";
	case SSC_E_MLINK:
		return "MLINK";
	case SSC_E_NAMETOOLONG:
		return "NAMETOOLONG";
	case SSC_E_NOTEMPTY:
		return "NOTEMPTY";
	case SSC_E_DQUOT:
		return "DQUOT";
	case SSC_E_STALE:
		return "STALE";
	case SSC_E_BADHANDLE:
		return "BADHANDLE";
	case SSC_E_NOT_SYNC:
		return "NOT_SYNC";
	case SSC_E_BAD_COOKIE:
		return "BAD_COOKIE";
	case SSC_E_NOTSUPP:
		return "NOTSUPP";
	case SSC_E_TOOSMALL:
		return "TOOSMALL";
	case SSC_E_SERVERFAULT:
		return "SERVERFAULT";
	case SSC_E_BADTYPE:
		return "BADTYPE";
	case SSC_E_JUKEBOX:
		return "JUKEBOX";
	case SSC_E_TIMEDOUT:
		return "TIMEDOUT";
	case SSC_E_DOWN:
		return "DOWN";
	case SSC_E_CONN:
		return "CONN";
	case SSC_E_PROTO:
		return "PROTO";
	case SSC_E_AUTH:
		return "AUTH";
	case SSC_E_SHUTDOWN:
		return "SHUTDOWN";
	case SSC_E_N:
		break;
	}
	return "(unknown)";
}

uint64_t ssc_base_hash(const void *data, size_t len, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t hash = seed != 0 ? seed : FNV_OFFSET_BASIS;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ p[i]) * FNV_PRIME;
	return hash;
}

/* Each step (xor with own right shift, multiplication by an odd number) can be undone. */
uint64_t ssc_base_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}
