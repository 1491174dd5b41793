/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs3_control.c - what tests do with the scripted NFS server: begin, end, faults, counts, waits.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "nfs3_internal.h"

/* Longer than any test waits for what comes at all, on a busy machine under a sanitizer. */
#define WAIT_S 20

static void kick(struct nfs3_server *s)
{
	const uint64_t one = 1;

	if (write(s->evfd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void command(struct nfs3_server *s, enum nfs3_command command)
{
	pthread_mutex_lock(&s->lock);
	while (s->command != NFS3_CMD_NONE)
		pthread_cond_wait(&s->changed, &s->lock);
	s->command = command;
	kick(s);
	while (s->command != NFS3_CMD_NONE)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

struct nfs3_server *nfs3_server_new(const char *address)
{
	struct nfs3_server *s = nfs3_server_new_down(address);

	nfs3_server_up(s);
	return s;
}

struct nfs3_server *nfs3_server_new_down(const char *address)
{
	struct nfs3_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int i;

	if (!s || strlen(address) >= sizeof(s->address))
		abort();
	strcpy(s->address, address);
	s->listener = -1;
	for (i = 0; i < NFS3_CONNS_MAX; i++)
		s->conns[i].fd = -1;
	s->verifier = 0x1234567890abcdefull;
	s->cookie_verifier = 0x7665726620202020ull;
	s->rtmax = s->wtmax = 1 << 20;
	nfs3_tree_init(&s->tree);
	s->evfd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (s->evfd < 0 || pthread_create(&s->thread, NULL, nfs3_server_run, s) != 0)
		abort();
	/* Once up and down: now there is a port. */
	command(s, NFS3_CMD_UP);
	command(s, NFS3_CMD_DOWN);
	return s;
}

void nfs3_server_free(struct nfs3_server *s)
{
	command(s, NFS3_CMD_STOP);
	pthread_join(s->thread, NULL);
	nfs3_server_lose_memory(s);
	nfs3_tree_fini(&s->tree);
	close(s->evfd);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->records);
	free(s);
}

uint16_t nfs3_server_port(struct nfs3_server *s)
{
	return s->port; /* constant since _new */
}

void nfs3_server_down(struct nfs3_server *s)
{
	command(s, NFS3_CMD_DOWN);
}

void nfs3_server_up(struct nfs3_server *s)
{
	command(s, NFS3_CMD_UP);
}

void nfs3_server_crash(struct nfs3_server *s)
{
	command(s, NFS3_CMD_CRASH);
}

void nfs3_server_freeze(struct nfs3_server *s, bool frozen)
{
	command(s, frozen ? NFS3_CMD_FREEZE : NFS3_CMD_THAW);
}

void nfs3_server_fault(struct nfs3_server *s, const struct nfs3_fault *fault)
{
	pthread_mutex_lock(&s->lock);
	if (s->n_faults == NFS3_FAULTS_MAX)
		abort();
	s->faults[s->n_faults++] = *fault;
	pthread_mutex_unlock(&s->lock);
}

unsigned int nfs3_server_clear_faults(struct nfs3_server *s)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->n_faults; i++)
		n += s->faults[i].times > 1 ? s->faults[i].times : 1;
	s->n_faults = 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void nfs3_server_release(struct nfs3_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->releases = true;
	kick(s);
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_set_reply_cache(struct nfs3_server *s, bool on)
{
	pthread_mutex_lock(&s->lock);
	s->caches = on;
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_set_verifier(struct nfs3_server *s, uint64_t verifier)
{
	pthread_mutex_lock(&s->lock);
	s->verifier = verifier;
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_set_limits(struct nfs3_server *s, uint32_t rtmax, uint32_t wtmax)
{
	pthread_mutex_lock(&s->lock);
	s->rtmax = rtmax ? rtmax : s->rtmax;
	s->wtmax = wtmax ? wtmax : s->wtmax;
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_set_flips(struct nfs3_server *s, unsigned int n)
{
	pthread_mutex_lock(&s->lock);
	s->flips = n;
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_set_cookie_verifier(struct nfs3_server *s, uint64_t verifier)
{
	pthread_mutex_lock(&s->lock);
	s->cookie_verifier = verifier;
	s->strict_cookies = true;
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_set_fh_bytes(struct nfs3_server *s, size_t n)
{
	if (n < NFS3_TREE_FH_BYTES || n > NFS3_TREE_FH_MAX)
		abort();
	pthread_mutex_lock(&s->lock);
	s->tree.fh_bytes = n;
	pthread_mutex_unlock(&s->lock);
}

/* ---- counts ---- */

static bool fits(const struct nfs3_record *r, enum nfs3_proc proc)
{
	return proc == NFS3_ANY ? r->proc != NFS3_NULL : r->proc == proc;
}

static unsigned int count_locked(struct nfs3_server *s, enum nfs3_proc proc, bool executed)
{
	unsigned int i, n = 0;

	for (i = 0; i < s->n_records; i++)
		n += fits(&s->records[i], proc) && (!executed || s->records[i].executed);
	return n;
}

unsigned int nfs3_server_n_calls(struct nfs3_server *s, enum nfs3_proc proc)
{
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	n = count_locked(s, proc, false);
	pthread_mutex_unlock(&s->lock);
	return n;
}

unsigned int nfs3_server_n_executed(struct nfs3_server *s, enum nfs3_proc proc)
{
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	n = count_locked(s, proc, true);
	pthread_mutex_unlock(&s->lock);
	return n;
}

unsigned int nfs3_server_n_connections(struct nfs3_server *s)
{
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	n = s->n_conns;
	pthread_mutex_unlock(&s->lock);
	return n;
}

unsigned int nfs3_server_n_held(struct nfs3_server *s)
{
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	n = s->n_held;
	pthread_mutex_unlock(&s->lock);
	return n;
}

struct nfs3_record nfs3_server_record(struct nfs3_server *s, enum nfs3_proc proc, unsigned int nth)
{
	struct nfs3_record found;
	unsigned int i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->n_records; i++) {
		if (fits(&s->records[i], proc) && nth-- == 0)
			break;
	}
	if (i == s->n_records)
		abort();
	found = s->records[i];
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* ---- waits ---- */

static struct timespec deadline(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += WAIT_S;
	return ts;
}

bool nfs3_server_wait_calls(struct nfs3_server *s, enum nfs3_proc proc, unsigned int n)
{
	struct timespec by = deadline();
	bool ok = true;

	pthread_mutex_lock(&s->lock);
	while (ok && count_locked(s, proc, false) < n)
		ok = pthread_cond_timedwait(&s->changed, &s->lock, &by) == 0;
	pthread_mutex_unlock(&s->lock);
	return ok;
}

bool nfs3_server_wait_connections(struct nfs3_server *s, unsigned int n)
{
	struct timespec by = deadline();
	bool ok = true;

	pthread_mutex_lock(&s->lock);
	while (ok && s->n_conns < n)
		ok = pthread_cond_timedwait(&s->changed, &s->lock, &by) == 0;
	pthread_mutex_unlock(&s->lock);
	return ok;
}

/* ---- the tree ---- */

bool nfs3_server_peek(struct nfs3_server *s, const char *name, void *data, size_t size, size_t *len)
{
	struct nfs3_entry *entry;
	struct nfs3_data *file;

	pthread_mutex_lock(&s->lock);
	entry = nfs3_tree_lookup(&s->tree.nodes[0], name);
	if (entry) {
		file = &s->tree.nodes[entry->node].now;
		*len = file->len;
		if (file->len > 0)
			memcpy(data, file->bytes, file->len < size ? file->len : size);
	}
	pthread_mutex_unlock(&s->lock);
	return entry != NULL;
}

void nfs3_server_poke(struct nfs3_server *s, const char *name, const void *data, size_t len)
{
	uint32_t node;

	pthread_mutex_lock(&s->lock);
	node = nfs3_tree_add_node(&s->tree, NFS3_REG);
	s->tree.nodes[node].mode = 0644;
	nfs3_tree_add_entry(&s->tree, 0, name, node);
	if (!nfs3_tree_write(&s->tree.nodes[node], 0, data, len, true))
		abort();
	pthread_mutex_unlock(&s->lock);
}

void nfs3_server_add_filesystem(struct nfs3_server *s, const char *name, uint64_t fsid)
{
	struct nfs3_node *n;
	uint32_t node;

	pthread_mutex_lock(&s->lock);
	node = nfs3_tree_add_node(&s->tree, NFS3_DIR);
	n = &s->tree.nodes[node];
	n->mode = 0755;
	n->fsid = fsid;
	n->fileid = s->tree.nodes[0].fileid;
	nfs3_tree_add_entry(&s->tree, 0, name, node);
	pthread_mutex_unlock(&s->lock);
}

size_t nfs3_server_root(struct nfs3_server *s, uint8_t *fh, size_t size)
{
	uint8_t whole[NFS3_TREE_FH_MAX];
	size_t n;

	pthread_mutex_lock(&s->lock);
	n = s->tree.fh_bytes;
	nfs3_tree_fh(&s->tree, 0, whole);
	pthread_mutex_unlock(&s->lock);
	if (size < n)
		abort();
	memcpy(fh, whole, n);
	return n;
}
