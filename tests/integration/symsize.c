/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * symsize.c - change the size that a shared library states for one of its exported symbols.
 *
 *     symsize FILE SYMBOL BYTES
 *
 * With it a test makes a server library that looks as if it had been built with other options.
 * 64-bit files of this machine's byte order only; the file is changed in place.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int patch(uint8_t *map, const char *symbol, uint64_t bytes)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)map;
	Elf64_Shdr *section = (Elf64_Shdr *)(map + head->e_shoff);
	int n = 0;

	for (int i = 0; i < head->e_shnum; i++) {
		const char *names;
		Elf64_Sym *sym;

		if (section[i].sh_type != SHT_DYNSYM)
			continue;
		sym = (Elf64_Sym *)(map + section[i].sh_offset);
		names = (const char *)map + section[section[i].sh_link].sh_offset;
		for (size_t s = 0; s < section[i].sh_size / sizeof(*sym); s++) {
			if (strcmp(names + sym[s].st_name, symbol))
				continue;
			sym[s].st_size = bytes;
			n++;
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	struct stat st;
	uint8_t *map;
	int fd, n;

	if (argc != 4)
		return 2;
	fd = open(argv[1], O_RDWR);
	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[1]);
		return 1;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	if (memcmp(map, ELFMAG, SELFMAG) || map[EI_CLASS] != ELFCLASS64) {
		fprintf(stderr, "%s: not a 64-bit ELF file\n", argv[1]);
		return 1;
	}
	n = patch(map, argv[2], strtoull(argv[3], NULL, 0));
	if (n != 1)
		fprintf(stderr, "%s: %d symbols named %s\n", argv[1], n, argv[2]);
	return n == 1 ? 0 : 1;
}
