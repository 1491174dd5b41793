/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3d.c - the scripted NFSv3 server of tests/fakes as a program, told what to do on stdin.
 *
 *     nfs3d ADDRESS [down]
 *
 * It prints its port, and then one line for each command: "ok", a figure, or "error" and what is
 * wrong. It ends with its stdin. Names of procedures and faults are those of nfs3_server.h without
 * NFS3_. See scripted.sh for how scripts use it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs3_server.h"

#define WORDS_MAX 6

static struct nfs3_server *server;

static const char *const procs[NFS3_N_PROCS + 1] = {
	"NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",   "WRITE",
	"CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME", "LINK",
	"READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT",   "MNT",    "ANY",
};

static const struct {
	const char *name;
	enum nfs3_fault_kind kind;
} kinds[] = {
	{"DROP_BEFORE", NFS3_DROP_BEFORE},
	{"DROP_EXECUTED", NFS3_DROP_EXECUTED},
	{"DROP_INSIDE", NFS3_DROP_INSIDE},
	{"DROP_AFTER_REPLY", NFS3_DROP_AFTER_REPLY},
	{"HOLD", NFS3_HOLD},
	{"HOLD_EXECUTED", NFS3_HOLD_EXECUTED},
	{"HOLD_HALF", NFS3_HOLD_HALF},
	{"WRONG_XID", NFS3_WRONG_XID},
	{"TRUNCATED", NFS3_TRUNCATED},
	{"FRAGMENTS", NFS3_FRAGMENTS},
	{"GARBAGE", NFS3_GARBAGE},
	{"DENIED", NFS3_DENIED},
	{"SYSTEM_ERR", NFS3_SYSTEM_ERR},
	{"STATUS", NFS3_STATUS},
	{"DATA_TOO_LONG", NFS3_DATA_TOO_LONG},
	{"WRONG_COUNT", NFS3_WRONG_COUNT},
	{"LONG_FH", NFS3_LONG_FH},
	{"EMPTY_FH", NFS3_EMPTY_FH},
	{"LONG_NAME", NFS3_LONG_NAME},
	{"SLASH_NAME", NFS3_SLASH_NAME},
	{"EMPTY_NAME", NFS3_EMPTY_NAME},
	{"HUGE_LENGTH", NFS3_HUGE_LENGTH},
	{"BAD_TYPE", NFS3_BAD_TYPE},
	{"NO_ATTRS", NFS3_NO_ATTRS},
	{"LESS_STABLE", NFS3_LESS_STABLE},
};

static bool find_proc(const char *name, enum nfs3_proc *proc)
{
	for (int i = 0; i <= NFS3_N_PROCS; i++) {
		if (!strcmp(procs[i], name)) {
			*proc = (enum nfs3_proc)i;
			return true;
		}
	}
	return false;
}

static bool find_kind(const char *name, enum nfs3_fault_kind *kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, name)) {
			*kind = kinds[i].kind;
			return true;
		}
	}
	return false;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

/* fault PROC KIND [times=N] [skip=N] [status=N] */
static const char *do_fault(char **word)
{
	struct nfs3_fault fault = {.times = 1};

	if (!find_proc(word[1], &fault.proc) || !find_kind(word[2], &fault.kind))
		return "error no such procedure or fault";
	for (int i = 3; i < WORDS_MAX && *word[i]; i++) {
		if (!strncmp(word[i], "times=", 6))
			fault.times = (unsigned)number(word[i] + 6);
		else if (!strncmp(word[i], "skip=", 5))
			fault.skip = (unsigned)number(word[i] + 5);
		else if (!strncmp(word[i], "status=", 7))
			fault.status = (uint32_t)number(word[i] + 7);
		else
			return "error no such option";
	}
	nfs3_server_fault(server, &fault);
	return "ok";
}

/* writes FILE: offset and verifier of every WRITE that was carried out, into a local file. */
static const char *do_writes(char **word)
{
	unsigned n = nfs3_server_n_calls(server, NFS3_WRITE);
	FILE *out = fopen(word[1], "w");

	if (!out)
		return "error no such file";
	for (unsigned i = 0; i < n; i++) {
		struct nfs3_record r = nfs3_server_record(server, NFS3_WRITE, i);

		if (r.executed)
			fprintf(out, "%llu %016llx\n", (unsigned long long)r.offset,
				(unsigned long long)r.verifier);
	}
	fclose(out);
	return "ok";
}

/* peek NAME FILE: what a file in the root holds, into a local file. */
static const char *do_peek(char **word)
{
	static char data[1 << 20];
	size_t len = 0;
	FILE *out;

	if (!nfs3_server_peek(server, word[1], data, sizeof(data), &len))
		return "error no such name";
	out = fopen(word[2], "w");
	if (!out)
		return "error no such file";
	fwrite(data, 1, len < sizeof(data) ? len : sizeof(data), out);
	return fclose(out) ? "error not written" : "ok";
}

static const char *figure(unsigned n)
{
	static char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return text;
}

/* calls PROC, executed PROC, wait PROC N */
static const char *do_count(char **word)
{
	enum nfs3_proc proc;

	if (!find_proc(word[1], &proc))
		return "error no such procedure";
	if (!strcmp(word[0], "calls"))
		return figure(nfs3_server_n_calls(server, proc));
	if (!strcmp(word[0], "executed"))
		return figure(nfs3_server_n_executed(server, proc));
	return nfs3_server_wait_calls(server, proc, (unsigned)number(word[2])) ? "ok"
									       : "error late";
}

static const char *do_set(char **word)
{
	uint64_t n = number(word[1]);

	if (!strcmp(word[0], "verifier"))
		nfs3_server_set_verifier(server, n);
	else if (!strcmp(word[0], "flips"))
		nfs3_server_set_flips(server, (unsigned)n);
	else if (!strcmp(word[0], "cookie-verifier"))
		nfs3_server_set_cookie_verifier(server, n);
	else if (!strcmp(word[0], "fh-bytes"))
		nfs3_server_set_fh_bytes(server, n);
	else if (!strcmp(word[0], "reply-cache"))
		nfs3_server_set_reply_cache(server, n != 0);
	else if (!strcmp(word[0], "limits"))
		nfs3_server_set_limits(server, (uint32_t)n, (uint32_t)number(word[2]));
	else if (!strcmp(word[0], "filesystem"))
		nfs3_server_add_filesystem(server, word[1], number(word[2]));
	else if (!strcmp(word[0], "poke"))
		nfs3_server_poke(server, word[1], word[2], strlen(word[2]));
	else
		return "error no such command";
	return "ok";
}

static const char *do_plain(const char *word)
{
	if (!strcmp(word, "faults"))
		return figure(nfs3_server_clear_faults(server));
	if (!strcmp(word, "held"))
		return figure(nfs3_server_n_held(server));
	if (!strcmp(word, "connections"))
		return figure(nfs3_server_n_connections(server));
	if (!strcmp(word, "release"))
		nfs3_server_release(server);
	else if (!strcmp(word, "down"))
		nfs3_server_down(server);
	else if (!strcmp(word, "up"))
		nfs3_server_up(server);
	else if (!strcmp(word, "crash"))
		nfs3_server_crash(server);
	else if (!strcmp(word, "freeze") || !strcmp(word, "thaw"))
		nfs3_server_freeze(server, word[0] == 'f');
	else
		return NULL;
	return "ok";
}

static const char *obey(char **word)
{
	const char *answer = do_plain(word[0]);

	if (answer)
		return answer;
	if (!strcmp(word[0], "fault"))
		return do_fault(word);
	if (!strcmp(word[0], "writes"))
		return do_writes(word);
	if (!strcmp(word[0], "peek"))
		return do_peek(word);
	if (!strcmp(word[0], "calls") || !strcmp(word[0], "executed") || !strcmp(word[0], "wait"))
		return do_count(word);
	return do_set(word);
}

int main(int argc, char **argv)
{
	char line[1024];

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: nfs3d ADDRESS [down]\n");
		return 2;
	}
	server = argc == 3 ? nfs3_server_new_down(argv[1]) : nfs3_server_new(argv[1]);
	printf("%u\n", nfs3_server_port(server));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		char *word[WORDS_MAX], *rest = line;

		for (int i = 0; i < WORDS_MAX; i++) {
			word[i] = strtok_r(rest, " \n", &rest);
			if (!word[i])
				word[i] = line + strlen(line);
		}
		puts(obey(word));
		fflush(stdout);
	}
	nfs3_server_free(server);
	return 0;
}
