/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * config_table_main.c - prints the module's table of configuration keys, for config.sh beside it.
 */
#include "config_table.h"

int main(void)
{
	ssc_config_table_print(stdout);
	return fflush(stdout) ? 1 : 0;
}
