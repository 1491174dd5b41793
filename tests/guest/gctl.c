/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * gctl.c - the two things a test guest's shell cannot do.
 *
 * gctl mount SOURCE DIR TYPE OPTIONS   mount(2) itself; busybox would parse the options its own way
 * gctl poweroff N                      ends the guest with status N through QEMU's isa-debug-exit
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <unistd.h>

#define DEBUG_EXIT_PORT 0xf4 /* as given to QEMU's isa-debug-exit */

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "mount") == 0) {
		if (mount(argv[2], argv[3], argv[4], 0, argv[5]) == 0)
			return 0;
		fprintf(stderr, "gctl: mount %s (%s): %s\n", argv[2], argv[5], strerror(errno));
		return 1;
	}
	if (argc == 3 && strcmp(argv[1], "poweroff") == 0) {
		sync();
		if (ioperm(DEBUG_EXIT_PORT, 1, 1) == 0)
			outb(atoi(argv[2]), DEBUG_EXIT_PORT);
		return 1;
	}
	fprintf(stderr, "usage: gctl mount SOURCE DIR TYPE OPTIONS | poweroff N\n");
	return 2;
}
