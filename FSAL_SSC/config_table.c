/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * config_table.c - the table of keys as text, for tests. Needs neither Ganesha nor libnfs.
 */
#include <inttypes.h>
#include <stddef.h>

#include "config_table.h"

static void print_row(FILE *to, const char *block, const char *type, const char *key,
		      const char *value, uint64_t min, uint64_t max, const char *const *rest)
{
	fprintf(to, "%s\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%s\n", block, key, type,
		value, min, max, rest[0], rest[1], rest[2]);
}

static const char *number_text(uint64_t number, char text[24])
{
	snprintf(text, 24, "%" PRIu64, number);
	return text;
}

static const char *bool_text(bool is_set)
{
	return is_set ? "true" : "false";
}

static const char *str_text(const char *text)
{
	return text != NULL ? text : "";
}

#define TEXT_BOOL(value) bool_text(value)
#define TEXT_UI16(value) number_text(value, text)
#define TEXT_UI32(value) number_text(value, text)
#define TEXT_UI64(value) number_text(value, text)
#define TEXT_STR(value)  str_text(value)

#define PRINT(kind, key, member, def, min, max, ...)                      \
	print_row(to, block, #kind, #key, TEXT_##kind(def), (min), (max), \
		  (const char *const[]){__VA_ARGS__});

void ssc_config_table_print(FILE *to)
{
	const char *block = "SSC";
	char text[24];

	SSC_CONFIG_MODULE(PRINT)
	block = "FSAL";
	SSC_CONFIG_EXPORT(PRINT)
}
