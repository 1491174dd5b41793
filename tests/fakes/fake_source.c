/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * fake_source.c - one lock and one condition for all the servers.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_source.h"

/* Real time; far more than a crowded machine needs. */
#define AWAIT_S 30

struct fake_source fake_sources[FAKE_SOURCES];

static pthread_mutex_t fake_source_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void fake_source_reset(void)
{
	for (unsigned int i = 0; i < FAKE_SOURCES; i++)
		assert(fake_sources[i].n_mounted == 0 && fake_sources[i].n_attempting == 0);
	memset(fake_sources, 0, sizeof(fake_sources));
}

struct ssc_source_key fake_source_key(unsigned int id)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(2049),
				 .sin_addr.s_addr = htonl(0x0a000000u + id)};
	struct ssc_source_key key;
	enum ssc_err err = ssc_source_key_init(&key, (const struct sockaddr *)&in, sizeof(in),
					       SSC_SOURCE_V4_2, 0);

	assert(err == SSC_OK && id > 0 && id < FAKE_SOURCES);
	(void)err;
	return key;
}

static unsigned int id_of(const struct ssc_source_key *key)
{
	return (unsigned int)key->addr[14] << 8 | key->addr[15];
}

static uint64_t next_random(uint64_t *state)
{
	*state = ssc_base_mix(*state + 1);
	return *state;
}

/* Drops the lock; what a network would take. */
static void delay_locked(struct fake_source *source)
{
	unsigned int n;

	if (source->delay_state == NULL)
		return;
	n = next_random(source->delay_state) % 50;
	pthread_mutex_unlock(&fake_source_lock);
	while (n-- > 0)
		sched_yield();
	pthread_mutex_lock(&fake_source_lock);
}

static enum ssc_err fake_mount(void *ctx, const struct ssc_source_key *key, uint64_t until_ns,
			       void **mount, uint32_t *n_rpcs)
{
	struct fake_source *source = &fake_sources[id_of(key)];
	struct fake_mount *made = NULL;
	enum ssc_err err;

	(void)ctx;
	pthread_mutex_lock(&fake_source_lock);
	source->until_ns = until_ns;
	source->n_attempts++;
	if (++source->n_attempting > source->n_most)
		source->n_most = source->n_attempting;
	source->n_mounts_held++;
	pthread_cond_broadcast(&changed);
	while (source->is_mount_held)
		pthread_cond_wait(&changed, &fake_source_lock);
	source->n_mounts_held--;
	delay_locked(source);
	err = source->err;
	if (source->delay_state != NULL &&
	    next_random(source->delay_state) % 100 < source->fail_percent)
		err = SSC_E_DOWN;
	*n_rpcs = err == SSC_OK ? FAKE_MOUNT_RPCS : 1;
	if (err == SSC_OK) {
		made = calloc(1, sizeof(*made));
		assert(made != NULL);
		made->id = id_of(key);
		made->key = *key;
		source->n_mounted++;
	}
	source->n_attempting--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&fake_source_lock);
	*mount = made;
	return err;
}

static void fake_unmount(void *ctx, void *mount)
{
	struct fake_mount *made = mount;
	struct fake_source *source = &fake_sources[made->id];

	(void)ctx;
	atomic_store(&made->is_unmounted, true);
	pthread_mutex_lock(&fake_source_lock);
	source->n_unmounts_held++;
	pthread_cond_broadcast(&changed);
	while (source->is_unmount_held)
		pthread_cond_wait(&changed, &fake_source_lock);
	source->n_unmounts_held--;
	delay_locked(source);
	source->n_unmounts++;
	source->n_mounted--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&fake_source_lock);
	free(made);
}

const struct ssc_source_ops fake_source_ops = {.mount = fake_mount, .unmount = fake_unmount};

void fake_source_set_err(unsigned int id, enum ssc_err err)
{
	pthread_mutex_lock(&fake_source_lock);
	fake_sources[id].err = err;
	pthread_mutex_unlock(&fake_source_lock);
}

void fake_source_hold_mounts(unsigned int id, bool is_held)
{
	pthread_mutex_lock(&fake_source_lock);
	fake_sources[id].is_mount_held = is_held;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&fake_source_lock);
}

void fake_source_hold_unmounts(unsigned int id, bool is_held)
{
	pthread_mutex_lock(&fake_source_lock);
	fake_sources[id].is_unmount_held = is_held;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&fake_source_lock);
}

void fake_source_await(unsigned int *count, unsigned int n)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += AWAIT_S;
	pthread_mutex_lock(&fake_source_lock);
	while (*count != n && rc == 0)
		rc = pthread_cond_timedwait(&changed, &fake_source_lock, &until);
	assert(*count == n);
	pthread_mutex_unlock(&fake_source_lock);
}

unsigned int fake_source_read(unsigned int *count)
{
	unsigned int n;

	pthread_mutex_lock(&fake_source_lock);
	n = *count;
	pthread_mutex_unlock(&fake_source_lock);
	return n;
}

void fake_source_check(struct ssc_source *source, unsigned int id)
{
	struct fake_mount *mount = ssc_source_mount(source);

	assert(mount->id == id && !atomic_load(&mount->is_unmounted));
	assert(ssc_source_key_equal(&mount->key, ssc_source_key(source)));
	(void)mount;
	(void)id;
}
