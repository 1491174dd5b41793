/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fsops_locks.c - fcntl locks and exclusive creation between two processes.
 *
 * The Linux client settles conflicts within one mount itself. When the second folder is the same one
 * by a mount with nosharecache, the two have different inodes here and the server must decide.
 * The child does one command at a time from a pipe and answers with an errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops.h"

#define WAKE_MS   20000 /* an NFSv4 client without callbacks asks again after 1, 2, 4, 8 s */
#define LOCK_FILE "locked"

enum verb { VERB_LOCK, VERB_LOCK_WAIT, VERB_GET, VERB_FLOCK, VERB_EXIT };

struct command {
	enum verb verb;
	short type;
	off_t start;
	off_t len;
};

struct answer {
	int err;
	struct flock found; /* VERB_GET */
};

struct peer {
	pid_t pid;
	int to;
	int from;
};

static int set_lock(int fd, int cmd, short type, off_t start, off_t len)
{
	struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	int err = fcntl(fd, cmd, &fl) == 0 ? 0 : errno;

	return err == EACCES ? EAGAIN : err;
}

static void serve(const char *path, int from, int to)
{
	int fd = xopen(path, O_RDWR, 0);
	struct command c;

	while (read(from, &c, sizeof(c)) == sizeof(c) && c.verb != VERB_EXIT) {
		struct answer a = {0};

		switch (c.verb) {
		case VERB_LOCK:
			a.err = set_lock(fd, F_SETLK, c.type, c.start, c.len);
			break;
		case VERB_LOCK_WAIT:
			a.err = set_lock(fd, F_SETLKW, c.type, c.start, c.len);
			break;
		case VERB_GET:
			a.found = (struct flock){.l_type = c.type,
						 .l_start = c.start,
						 .l_len = c.len};
			a.err = fcntl(fd, F_GETLK, &a.found) == 0 ? 0 : errno;
			break;
		case VERB_FLOCK:
			a.err = flock(fd, c.type) == 0 ? 0 : errno;
			break;
		case VERB_EXIT:
			break;
		}
		if (write(to, &a, sizeof(a)) != sizeof(a))
			_exit(1);
	}
	_exit(0); /* with its locks: they must go with it */
}

static struct peer start_peer(const char *path)
{
	int to[2], from[2];
	struct peer peer;

	need(pipe(to) == 0 && pipe(from) == 0, "pipe");
	peer.pid = fork();
	need(peer.pid >= 0, "fork");
	if (peer.pid == 0) {
		close(to[1]);
		close(from[0]);
		serve(path, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	peer.to = to[1];
	peer.from = from[0];
	return peer;
}

static void tell(struct peer *peer, enum verb verb, short type, off_t start, off_t len)
{
	struct command c = {verb, type, start, len};

	need(write(peer->to, &c, sizeof(c)) == sizeof(c), "pipe to the other process");
}

static struct answer hear(struct peer *peer)
{
	struct answer a;

	need(read(peer->from, &a, sizeof(a)) == sizeof(a), "the other process is gone");
	return a;
}

static void peer_lock(struct peer *peer, short type, off_t start, off_t len, int err,
		      const char *what)
{
	struct answer a;

	tell(peer, VERB_LOCK, type, start, len);
	a = hear(peer);
	need(a.err == err, "%s: the other process got errno %d, expected %d", what, a.err, err);
}

static void own_lock(int fd, short type, off_t start, off_t len, int err, const char *what)
{
	int seen = set_lock(fd, F_SETLK, type, start, len);

	need(seen == err, "%s: errno %d, expected %d", what, seen, err);
}

static void conflicts(int fd, struct peer *peer)
{
	struct answer a;

	own_lock(fd, F_WRLCK, 0, 100, 0, "lock 0-99");
	peer_lock(peer, F_WRLCK, 50, 10, EAGAIN, "write lock inside a write lock");
	peer_lock(peer, F_RDLCK, 99, 10, EAGAIN, "read lock at a write lock's last byte");
	peer_lock(peer, F_WRLCK, 100, 10, 0, "lock just behind");
	tell(peer, VERB_GET, F_WRLCK, 10, 5);
	a = hear(peer);
	need(a.err == 0 && a.found.l_type == F_WRLCK && a.found.l_start == 0 &&
		     a.found.l_len == 100,
	     "F_GETLK: errno %d type %d start %lld len %lld, expected a write lock 0+100", a.err,
	     a.found.l_type, (long long)a.found.l_start, (long long)a.found.l_len);
	tell(peer, VERB_GET, F_WRLCK, 5000, 5);
	a = hear(peer);
	need(a.err == 0 && a.found.l_type == F_UNLCK, "F_GETLK of a free range: errno %d type %d",
	     a.err, a.found.l_type);
	own_lock(fd, F_UNLCK, 0, 0, 0, "unlock all");
	peer_lock(peer, F_UNLCK, 0, 0, 0, "unlock all");
}

static void sharing_and_upgrade(int fd, struct peer *peer)
{
	own_lock(fd, F_RDLCK, 0, 10, 0, "read lock");
	peer_lock(peer, F_RDLCK, 5, 10, 0, "second read lock");
	own_lock(fd, F_WRLCK, 0, 10, EAGAIN, "upgrade of a shared range");
	peer_lock(peer, F_UNLCK, 5, 10, 0, "unlock");
	own_lock(fd, F_WRLCK, 0, 10, 0, "upgrade when alone");
	peer_lock(peer, F_RDLCK, 5, 1, EAGAIN, "read lock after the upgrade");
	own_lock(fd, F_RDLCK, 0, 10, 0, "downgrade");
	peer_lock(peer, F_RDLCK, 5, 1, 0, "read lock after the downgrade");
	own_lock(fd, F_UNLCK, 0, 0, 0, "unlock all");
	peer_lock(peer, F_UNLCK, 0, 0, 0, "unlock all");
}

static void range_split(int fd, struct peer *peer)
{
	own_lock(fd, F_WRLCK, 0, 300, 0, "lock 0-299");
	own_lock(fd, F_UNLCK, 100, 100, 0, "unlock the middle");
	peer_lock(peer, F_WRLCK, 100, 100, 0, "lock the middle");
	peer_lock(peer, F_WRLCK, 99, 1, EAGAIN, "last byte of the first part");
	peer_lock(peer, F_WRLCK, 200, 1, EAGAIN, "first byte of the last part");
	peer_lock(peer, F_UNLCK, 0, 0, 0, "unlock all");
	own_lock(fd, F_WRLCK, 300, 0, 0, "lock to the end of time");
	peer_lock(peer, F_WRLCK, 1ll << 40, 1, EAGAIN, "far beyond the end");
	own_lock(fd, F_UNLCK, 0, 0, 0, "unlock all");
	peer_lock(peer, F_WRLCK, 0, 0, 0, "whole file when free");
	peer_lock(peer, F_UNLCK, 0, 0, 0, "unlock all");
}

static void unlock_wakes(int fd, struct peer *peer)
{
	uint64_t start;
	struct answer a;

	own_lock(fd, F_WRLCK, 0, 10, 0, "lock");
	tell(peer, VERB_LOCK_WAIT, F_WRLCK, 0, 10);
	usleep(300000);
	start = now_ms();
	own_lock(fd, F_UNLCK, 0, 10, 0, "unlock");
	a = hear(peer);
	need(a.err == 0, "waiting for a lock: errno %d", a.err);
	need(now_ms() - start < WAKE_MS, "the waiter got the lock only after %llu ms",
	     (unsigned long long)(now_ms() - start));
	own_lock(fd, F_WRLCK, 0, 10, EAGAIN, "the waiter holds it now");
	peer_lock(peer, F_UNLCK, 0, 0, 0, "unlock all");
}

static void close_unlocks(const char *path, int fd, struct peer *peer)
{
	own_lock(fd, F_WRLCK, 0, 10, 0, "lock");
	xclose(xopen(path, O_RDONLY, 0)); /* POSIX: any close of the file drops all locks */
	peer_lock(peer, F_WRLCK, 0, 10, 0, "lock after a close");
	own_lock(fd, F_WRLCK, 0, 10, EAGAIN, "lock held by the other process");
	tell(peer, VERB_EXIT, 0, 0, 0);
	reap(peer->pid);
	own_lock(fd, F_WRLCK, 0, 10, 0, "lock after the other process ended");
}

static void whole_file_flock(const char *path, int fd)
{
	struct peer peer = start_peer(path);
	struct answer a;

	need(flock(fd, LOCK_EX | LOCK_NB) == 0, "flock");
	tell(&peer, VERB_FLOCK, LOCK_EX | LOCK_NB, 0, 0);
	a = hear(&peer);
	need(a.err == EAGAIN, "flock by two processes: errno %d", a.err);
	need(flock(fd, LOCK_UN) == 0, "flock unlock");
	tell(&peer, VERB_FLOCK, LOCK_EX | LOCK_NB, 0, 0);
	a = hear(&peer);
	need(a.err == 0, "flock when free: errno %d", a.err);
	tell(&peer, VERB_EXIT, 0, 0, 0);
	reap(peer.pid);
}

void test_locks(char **argv)
{
	char mine[PATH_BYTES], other[PATH_BYTES];
	struct peer peer;
	int fd;

	snprintf(mine, sizeof(mine), "%s/%s", argv[1], LOCK_FILE);
	snprintf(other, sizeof(other), "%s/%s", argv[2], LOCK_FILE);
	fd = xopen(mine, O_RDWR | O_CREAT, 0644);
	peer = start_peer(other);
	conflicts(fd, &peer);
	sharing_and_upgrade(fd, &peer);
	range_split(fd, &peer);
	unlock_wakes(fd, &peer);
	close_unlocks(mine, fd, &peer);
	own_lock(fd, F_UNLCK, 0, 0, 0, "unlock all");
	whole_file_flock(other, fd);
	xclose(fd);
}

/* Tries to create every name; returns how many it won. */
static int race(const char *dir, int count)
{
	char name[32];
	int won = 0;

	for (int i = 0; i < count; i++) {
		int fd;

		snprintf(name, sizeof(name), "race-%d", i);
		fd = open(path_of(dir, name), O_CREAT | O_EXCL | O_WRONLY, 0644);
		need(fd >= 0 || errno == EEXIST, "exclusive create of %s", name);
		if (fd < 0)
			continue;
		won++;
		xclose(fd);
	}
	return won;
}

void test_excl(char **argv)
{
	int count = atoi(argv[3]), result[2], won, lost = -1;
	pid_t pid;

	need(pipe(result) == 0, "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0) {
		won = race(argv[2], count);
		need(write(result[1], &won, sizeof(won)) == sizeof(won), "pipe");
		_exit(0);
	}
	won = race(argv[1], count);
	reap(pid);
	need(read(result[0], &lost, sizeof(lost)) == sizeof(lost), "pipe");
	need(won + lost == count, "%d names, but %d + %d exclusive creates succeeded", count, won,
	     lost);
	need(count_entries(argv[1]) == (size_t)count, "%zu entries, expected %d",
	     count_entries(argv[1]), count);
}
