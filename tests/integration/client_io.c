/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * client_io.c - the test client's mount, its coming back on JUKEBOX, and copies of files.
 *
 * Written data is committed (nfs_fsync) unless a function says otherwise. A file that is replaced
 * is truncated, not removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

/* How long to wait before asking again: short, as tests measure how long they were held up. */
#define COME_BACK_MS 100

uint64_t client_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void client_call_begins(struct client *c)
{
	c->give_up_ms = client_now_ms() + (uint64_t)c->wait_s * 1000;
}

/*
 * libnfs 4.0.0 maps v3's JUKEBOX to EAGAIN, but v4's DELAY to EIO: there only its text tells. And of
 * a v3 READ, WRITE or COMMIT it makes EFAULT, whatever the status was.
 */
bool client_come_back(struct client *c, long err)
{
	const char *text = nfs_get_error(c->nfs);

	if (err != EAGAIN && err != EFAULT && !(text && strstr(text, "NFS4ERR_DELAY")))
		return false;
	if (client_now_ms() >= c->give_up_ms)
		return false;
	c->n_retries++;
	usleep(COME_BACK_MS * 1000);
	return true;
}

int client_fail(struct client *c, const char *what, const char *path, int err)
{
	const char *text = nfs_get_error(c->nfs);

	fprintf(stderr, "%s %s: %s: %s\n", what, path, text ? text : "", strerrorname_np(-err));
	return 1;
}

const char *client_type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "dir";
	case S_IFLNK:
		return "link";
	case S_IFCHR:
		return "chr";
	case S_IFBLK:
		return "blk";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "sock";
	}
	return "unknown";
}

int client_connect(struct client *c, const char *url)
{
	struct nfs_url *u;
	int err;

	c->nfs = nfs_init_context();
	if (!c->nfs)
		return 1;
	u = nfs_parse_url_dir(c->nfs, url);
	if (!u) {
		fprintf(stderr, "%s\n", nfs_get_error(c->nfs));
		return 1;
	}
	nfs_set_uid(c->nfs, c->uid);
	nfs_set_gid(c->nfs, c->gid);
	nfs_set_dircache(c->nfs, 0);
	c->is_v4 = strstr(url, "version=4") != NULL;
	err = CALL(c, nfs_mount(c->nfs, u->server, u->path));
	if (err)
		client_fail(c, "mount", url, err);
	nfs_destroy_url(u);
	return err ? 1 : 0;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

void client_pattern(uint8_t *buf, size_t len, uint64_t off, uint64_t seed)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++) {
		if (i == 0 || (off + i) % 8 == 0)
			word = mix(mix(seed) + (off + i) / 8);
		buf[i] = (uint8_t)(word >> ((off + i) % 8 * 8));
	}
}

static size_t chunk(uint64_t limit)
{
	return limit && limit < IO_MAX ? (size_t)limit : IO_MAX;
}

/* All of it, or -errno. Short writes go on where they ended. */
static int write_all(struct client *c, struct nfsfh *fh, const uint8_t *buf, size_t len,
		     uint64_t off)
{
	size_t max = chunk(nfs_get_writemax(c->nfs));

	while (len) {
		size_t n = len < max ? len : max;
		int ret = CALL(c, nfs_pwrite(c->nfs, fh, off, n, (void *)buf));

		if (ret < 0)
			return ret;
		if (ret == 0)
			return -EIO;
		buf += ret;
		off += (uint64_t)ret;
		len -= (size_t)ret;
	}
	return 0;
}

/* As much as there is up to @len: the count, or -errno. */
static int64_t read_all(struct client *c, struct nfsfh *fh, uint8_t *buf, size_t len, uint64_t off)
{
	size_t max = chunk(nfs_get_readmax(c->nfs));
	size_t done = 0;

	while (done < len) {
		size_t n = len - done < max ? len - done : max;
		int ret = CALL(c, nfs_pread(c->nfs, fh, off + done, n, buf + done));

		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
		done += (size_t)ret;
	}
	return (int64_t)done;
}

int client_create(struct client *c, const char *path, int excl)
{
	struct nfsfh *fh = NULL;
	int err = CALL(c, nfs_create(c->nfs, path, excl, 0644, &fh));

	if (err)
		return client_fail(c, "create", path, err);
	nfs_close(c->nfs, fh);
	return 0;
}

/* Over v4, libnfs 4.0.0 makes every O_CREAT an exclusive one: so open first, create when absent. */
int client_open_for_write(struct client *c, const char *path, struct nfsfh **fh)
{
	int err = CALL(c, nfs_open(c->nfs, path, O_RDWR, fh));

	if (err == -ENOENT)
		err = CALL(c, nfs_create(c->nfs, path, O_RDWR, 0644, fh));
	return err;
}

int client_put(struct client *c, const char *local, const char *path)
{
	static uint8_t buf[IO_MAX];
	struct nfsfh *fh = NULL;
	uint64_t off = 0;
	size_t n;
	FILE *in = fopen(local, "r");
	int err;

	if (!in) {
		perror(local);
		return 1;
	}
	err = client_open_for_write(c, path, &fh);
	if (!err)
		err = CALL(c, nfs_ftruncate(c->nfs, fh, 0));
	while (!err && (n = fread(buf, 1, sizeof(buf), in)) > 0) {
		err = write_all(c, fh, buf, n, off);
		off += n;
	}
	if (!err)
		err = CALL(c, nfs_fsync(c->nfs, fh));
	fclose(in);
	if (fh)
		nfs_close(c->nfs, fh);
	return err ? client_fail(c, "put", path, err) : 0;
}

/* Call @take for every piece of the file, in order; it returns non-zero to stop. */
static int for_each_piece(struct client *c, const char *path,
			  int (*take)(void *ctx, const uint8_t *buf, size_t len, uint64_t off),
			  void *ctx)
{
	static uint8_t buf[IO_MAX];
	struct nfsfh *fh = NULL;
	uint64_t off = 0;
	int64_t n = 0;
	int stop = 0;
	int err = CALL(c, nfs_open(c->nfs, path, O_RDONLY, &fh));

	if (err)
		return client_fail(c, "open", path, err);
	while (!stop && (n = read_all(c, fh, buf, sizeof(buf), off)) > 0) {
		stop = take(ctx, buf, (size_t)n, off);
		off += (uint64_t)n;
	}
	nfs_close(c->nfs, fh);
	return n < 0 ? client_fail(c, "read", path, (int)n) : stop;
}

static int to_file(void *ctx, const uint8_t *buf, size_t len, uint64_t off)
{
	(void)off;
	return fwrite(buf, 1, len, ctx) == len ? 0 : 1;
}

int client_get(struct client *c, const char *path, const char *local)
{
	bool is_stdout = !strcmp(local, "-");
	FILE *out = is_stdout ? stdout : fopen(local, "w");
	int err;

	if (!out) {
		perror(local);
		return 1;
	}
	err = for_each_piece(c, path, to_file, out);
	if ((is_stdout ? fflush(out) : fclose(out)) && !err) {
		perror(local);
		err = 1;
	}
	return err;
}

struct sum {
	uint64_t hash;
	uint64_t bytes;
};

static int to_sum(void *ctx, const uint8_t *buf, size_t len, uint64_t off)
{
	struct sum *s = ctx;

	(void)off;
	for (size_t i = 0; i < len; i++)
		s->hash = (s->hash ^ buf[i]) * 0x100000001b3ull;
	s->bytes += len;
	return 0;
}

int client_sum(struct client *c, const char *path, uint64_t *bytes, uint64_t *sum)
{
	struct sum s = {.hash = 0xcbf29ce484222325ull};
	int err = for_each_piece(c, path, to_sum, &s);

	*bytes = s.bytes;
	*sum = s.hash;
	return err;
}

int client_write(struct client *c, const char *path, uint64_t off, uint64_t len, uint64_t seed,
		 bool commit)
{
	static uint8_t buf[IO_MAX];
	struct nfsfh *fh = NULL;
	int err = client_open_for_write(c, path, &fh);

	while (!err && len) {
		size_t n = len < sizeof(buf) ? len : sizeof(buf);

		client_pattern(buf, n, off, seed);
		err = write_all(c, fh, buf, n, off);
		off += n;
		len -= n;
	}
	if (!err && commit)
		err = CALL(c, nfs_fsync(c->nfs, fh));
	if (fh)
		nfs_close(c->nfs, fh);
	return err ? client_fail(c, "write", path, err) : 0;
}

int client_verify(struct client *c, const char *path, uint64_t off, uint64_t len, uint64_t seed)
{
	static uint8_t want[IO_MAX], have[IO_MAX];
	struct nfsfh *fh = NULL;
	int64_t got = 0;
	int err = CALL(c, nfs_open(c->nfs, path, O_RDONLY, &fh));

	if (err)
		return client_fail(c, "open", path, err);
	while (len) {
		size_t n = len < sizeof(want) ? len : sizeof(want);

		client_pattern(want, n, off, seed);
		got = read_all(c, fh, have, n, off);
		if (got != (int64_t)n || memcmp(want, have, n))
			break;
		off += n;
		len -= n;
	}
	nfs_close(c->nfs, fh);
	if (got < 0)
		return client_fail(c, "read", path, (int)got);
	if (len)
		fprintf(stderr, "verify %s: differs in the MiB at %llu\n", path,
			(unsigned long long)off);
	return len ? 1 : 0;
}

int client_fill(struct client *c, const char *path, unsigned long n)
{
	char name[PATH_MAX];
	struct nfsfh *fh;
	int err;

	for (unsigned long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/e%06lu", path, i);
		err = CALL(c, nfs_create(c->nfs, name, 0, 0644, &fh));
		if (err)
			return client_fail(c, "create", name, err);
		nfs_close(c->nfs, fh);
	}
	return 0;
}

int client_rate(struct client *c, const char *path, unsigned long bytes, double seconds)
{
	static uint8_t buf[IO_MAX];
	uint64_t start = client_now_ms(), now = start, done = 0, off = 0;
	struct nfsfh *fh = NULL;
	int64_t n;
	int err = CALL(c, nfs_open(c->nfs, path, O_RDONLY, &fh));

	while (!err && (double)(now - start) < seconds * 1000) {
		n = read_all(c, fh, buf, sizeof(buf), off);
		if (n <= 0)
			err = n < 0 ? (int)n : -ENODATA;
		else
			done += (uint64_t)n;
		off = off + sizeof(buf) < bytes ? off + sizeof(buf) : 0;
		now = client_now_ms();
	}
	if (fh)
		nfs_close(c->nfs, fh);
	if (err)
		return client_fail(c, "rate", path, err);
	printf("%.1f\n", (double)done / 1048576 * 1000 / (double)(now - start));
	return 0;
}

int client_slices(struct client *c, const char *path, unsigned long bytes, double seconds,
		  unsigned long n)
{
	int err = 0;

	for (unsigned long i = 0; !err && i < n; i++) {
		err = client_rate(c, path, bytes, seconds);
		fflush(stdout);
	}
	return err;
}

/* One request at a time: what this shows is how long each of them takes. */
int client_speed(struct client *c, const char *path, unsigned long mib)
{
	static uint8_t buf[IO_MAX];
	uint64_t start = client_now_ms(), written, end;
	struct nfsfh *fh = NULL;
	int64_t n = 0;
	int err = client_open_for_write(c, path, &fh);

	client_pattern(buf, sizeof(buf), 0, mib);
	for (unsigned long i = 0; !err && i < mib; i++)
		err = write_all(c, fh, buf, sizeof(buf), (uint64_t)i * sizeof(buf));
	if (!err)
		err = CALL(c, nfs_fsync(c->nfs, fh));
	written = client_now_ms();
	for (unsigned long i = 0; !err && i < mib; i++) {
		n = read_all(c, fh, buf, sizeof(buf), (uint64_t)i * sizeof(buf));
		err = n == sizeof(buf) ? 0 : n < 0 ? (int)n : -ENODATA;
	}
	end = client_now_ms();
	if (fh)
		nfs_close(c->nfs, fh);
	if (err)
		return client_fail(c, "speed", path, err);
	printf("%.0f %.0f\n", (double)mib * 1000 / (double)(written - start + 1),
	       (double)mib * 1000 / (double)(end - written + 1));
	return 0;
}
