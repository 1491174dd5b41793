/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_attrs.c - attributes of GETATTR (fattr4), by a table of those that we can read.
 *
 * Values stand behind each other in the order of their numbers with no length of their own, so a
 * number that is not in the table makes what follows unreadable, and the reply with it.
 * Source: RFC 8881 5.6 to 5.8, RFC 7862 12.2.
 */
#include <string.h>

#include "nfs4_internal.h"

enum kind { NONE, WORD, LONG, FLAG, TIME, BITMAP, PAIR, WORDS2, TEXT, BYTES };

struct row {
	enum kind kind;
	size_t at; /* in struct ssc_nfs4_attrs; 0: read and left out (that is the mask itself) */
};

#define AT(field) offsetof(struct ssc_nfs4_attrs, field)

static const struct row rows[] = {
	[SSC_ATTR4_SUPPORTED] = {BITMAP, AT(supported)},
	[SSC_ATTR4_TYPE] = {WORD, AT(type)},
	[2] = {WORD, 0}, /* fh_expire_type */
	[SSC_ATTR4_CHANGE] = {LONG, AT(change)},
	[SSC_ATTR4_SIZE] = {LONG, AT(size)},
	[5] = {FLAG, 0}, /* link_support, symlink_support, named_attr */
	[6] = {FLAG, 0},
	[7] = {FLAG, 0},
	[SSC_ATTR4_FSID] = {PAIR, AT(fsid)},
	[9] = {FLAG, 0}, /* unique_handles */
	[SSC_ATTR4_LEASE_TIME] = {WORD, AT(lease_s)},
	[11] = {WORD, 0}, /* rdattr_error */
	[15] = {FLAG, 0}, /* cansettime, case_insensitive, case_preserving, chown_restricted */
	[16] = {FLAG, 0},
	[17] = {FLAG, 0},
	[18] = {FLAG, 0},
	[19] = {BYTES, 0}, /* filehandle */
	[SSC_ATTR4_FILEID] = {LONG, AT(fileid)},
	[21] = {LONG, 0}, /* files_avail, files_free, files_total */
	[22] = {LONG, 0},
	[23] = {LONG, 0},
	[26] = {FLAG, 0}, /* homogeneous */
	[27] = {LONG, 0}, /* maxfilesize */
	[28] = {WORD, 0}, /* maxlink, maxname */
	[29] = {WORD, 0},
	[SSC_ATTR4_MAXREAD] = {LONG, AT(maxread)},
	[SSC_ATTR4_MAXWRITE] = {LONG, AT(maxwrite)},
	[SSC_ATTR4_MODE] = {WORD, AT(mode)},
	[34] = {FLAG, 0}, /* no_trunc */
	[SSC_ATTR4_NUMLINKS] = {WORD, AT(numlinks)},
	[SSC_ATTR4_OWNER] = {TEXT, AT(owner)},
	[SSC_ATTR4_OWNER_GROUP] = {TEXT, AT(group)},
	[41] = {WORDS2, 0}, /* rawdev */
	[42] = {LONG, 0},   /* space_avail, space_free, space_total */
	[43] = {LONG, 0},
	[44] = {LONG, 0},
	[SSC_ATTR4_SPACE_USED] = {LONG, AT(space_used)},
	[SSC_ATTR4_TIME_ACCESS] = {TIME, AT(atime)},
	[51] = {TIME, 0}, /* time_delta */
	[SSC_ATTR4_TIME_METADATA] = {TIME, AT(ctime)},
	[SSC_ATTR4_TIME_MODIFY] = {TIME, AT(mtime)},
	[55] = {LONG, 0},   /* mounted_on_fileid */
	[75] = {BITMAP, 0}, /* suppattr_exclcreat */
	[SSC_ATTR4_CLONE_BLKSIZE] = {WORD, AT(clone_blksize)},
	[SSC_ATTR4_SPACE_FREED] = {LONG, 0},
	[SSC_ATTR4_CHANGE_ATTR_TYPE] = {WORD, AT(change_type)},
	[SSC_ATTR4_MODE_UMASK] = {WORDS2, 0},
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

#define BIT(n) (1u << (n) % 32)

const struct ssc_bitmap ssc_nfs4_usual_attrs = {{
	BIT(SSC_ATTR4_TYPE) | BIT(SSC_ATTR4_CHANGE) | BIT(SSC_ATTR4_SIZE) | BIT(SSC_ATTR4_FSID) |
		BIT(SSC_ATTR4_FILEID),
	BIT(SSC_ATTR4_MODE) | BIT(SSC_ATTR4_NUMLINKS) | BIT(SSC_ATTR4_SPACE_USED) |
		BIT(SSC_ATTR4_TIME_ACCESS) | BIT(SSC_ATTR4_TIME_METADATA) |
		BIT(SSC_ATTR4_TIME_MODIFY),
}};

bool ssc_nfs4_read_bitmap(struct ssc_xdr *x, struct ssc_bitmap *map)
{
	uint32_t n = ssc_xdr_u32(x);

	memset(map, 0, sizeof(*map));
	if (n > 8) {
		ssc_xdr_fail(x);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t word = ssc_xdr_u32(x);

		if (i < SSC_BITMAP_WORDS)
			map->word[i] = word;
	}
	return ssc_xdr_ok(x);
}

static void read_text(struct ssc_xdr *x, char *text)
{
	uint32_t len;
	const char *p = ssc_xdr_opaque(x, SSC_OWNER_MAX, &len);

	if (p)
		memcpy(text, p, len);
	text[len] = '\0';
}

static void read_time(struct ssc_xdr *x, struct ssc_time *t)
{
	t->s = (int64_t)ssc_xdr_u64(x);
	t->ns = ssc_xdr_u32(x);
}

static void read_value(struct ssc_xdr *x, enum kind kind, void *to)
{
	uint32_t len;

	switch (kind) {
	case WORD:
		*(uint32_t *)to = ssc_xdr_u32(x);
		break;
	case LONG:
		*(uint64_t *)to = ssc_xdr_u64(x);
		break;
	case FLAG:
		*(bool *)to = ssc_xdr_bool(x);
		break;
	case TIME:
		read_time(x, to);
		break;
	case BITMAP:
		(void)ssc_nfs4_read_bitmap(x, to);
		break;
	case PAIR:
		((uint64_t *)to)[0] = ssc_xdr_u64(x);
		((uint64_t *)to)[1] = ssc_xdr_u64(x);
		break;
	case WORDS2:
		*(uint64_t *)to = ssc_xdr_u64(x);
		break;
	case TEXT:
		read_text(x, to);
		break;
	case BYTES:
		(void)ssc_xdr_opaque(x, SSC_FH_MAX, &len);
		break;
	case NONE:
		ssc_xdr_fail(x);
		break;
	}
}

uint32_t ssc_nfs4_res_getattr(struct ssc_nfs4_call *call, struct ssc_nfs4_attrs *attrs)
{
	uint32_t status = ssc_nfs4_take(call, SSC_OP4_GETATTR);
	struct ssc_bitmap map;
	struct ssc_xdr values;
	const void *p;
	uint32_t len;

	if (status)
		return status;
	memset(attrs, 0, sizeof(*attrs));
	(void)ssc_nfs4_read_bitmap(&call->in, &map);
	p = ssc_xdr_opaque(&call->in, 16384, &len);
	if (!p)
		return ssc_nfs4_local(SSC_E_PROTO);
	ssc_xdr_init(&values, p, len);
	for (uint32_t bit = 0; bit < 32 * SSC_BITMAP_WORDS; bit++) {
		union {
			uint64_t pair[2];
			struct ssc_time time;
			struct ssc_bitmap map;
			char text[SSC_OWNER_MAX + 1];
		} away;

		if (!ssc_bitmap_has(&map, bit))
			continue;
		if (bit >= N_ROWS)
			return ssc_nfs4_local(SSC_E_PROTO);
		read_value(&values, rows[bit].kind,
			   bit == 0 || rows[bit].at ? (char *)attrs + rows[bit].at : (void *)&away);
	}
	if (!ssc_xdr_ok(&values) || values.at != values.end)
		return ssc_nfs4_local(SSC_E_PROTO);
	attrs->mask = map;
	return SSC_ST4_OK;
}
