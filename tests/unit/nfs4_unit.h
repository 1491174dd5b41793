/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_unit.h - a client and the peer it talks to, for each test anew.
 */
#ifndef SSC_NFS4_UNIT_H
#define SSC_NFS4_UNIT_H

#include <string.h>
#include <time.h>

#include "nfs4_peer.h"
#include "ssc/clock.h"
#include "ssc/log.h"
#include "ssc/nfs4_file.h"
#include "unit.h"

static struct nfs4_peer *peer;
static struct ssc_nfs4_client *client;
static struct ssc_nfs4_config cfg;
static struct ssc_nfs4_who who;
static const struct ssc_fh any_fh = {.len = 4, .data = {1, 2, 3, 4}};
static const struct ssc_stateid any_stateid = {.seqid = 1};

static inline uint64_t in_ms(uint64_t ms)
{
	return ssc_clock_now_ns() + ms * SSC_NS_PER_MS;
}

static inline void sleep_ms(long ms)
{
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static void no_log(enum ssc_log_level level, const char *fmt, va_list args)
{
	(void)level, (void)fmt, (void)args;
}

/* The peer, and how the client will be; tests change either before they start it. */
static inline void nfs4_prepare(void)
{
	ssc_log_set(no_log, SSC_LOG_DEBUG);
	peer = peer_new();
	ssc_nfs4_config_init(&cfg);
	cfg.connect = peer_connect;
	cfg.ctx = peer;
	cfg.connect_ns = 3 * SSC_NS_PER_S;
	cfg.answer_ns = 10 * SSC_NS_PER_S;
	cfg.want_back_channel = false;
	client = NULL;
}

static inline void nfs4_start(void)
{
	ck_assert_int_eq(ssc_nfs4_client_new(&cfg, &client), SSC_OK);
	memset(&who, 0, sizeof(who));
	who.client = client;
	ck_assert_str_eq(ssc_nfs4_outcome_str(ssc_nfs4_client_wait(client, in_ms(5000))), "OK");
}

static inline void nfs4_end(void)
{
	ssc_nfs4_client_free(client);
	if (atomic_load(&peer->n_wrong))
		ck_abort_msg("the client: %s", peer->wrong);
	peer_free(peer);
}

static inline void set_up_started(void)
{
	nfs4_prepare();
	nfs4_start();
}

/* One READ of @count bytes, whose data is checked. @return its outcome. */
static inline uint32_t read_some(uint64_t offset, uint32_t count)
{
	const struct ssc_nfs4_file file = {.fh = any_fh, .stateid = any_stateid};
	struct ssc_nfs4_read_res res = {.count = 0};
	uint8_t *buf = malloc(count + 1);
	uint32_t outcome = ssc_nfs4_read(&who, &file, offset, buf, count, &res);

	if (outcome == SSC_ST4_OK) {
		ck_assert_uint_eq(res.count, count);
		while (res.count > 0 &&
		       buf[res.count - 1] == (uint8_t)((offset + res.count - 1) * 31 >> 3))
			res.count--;
		ck_assert_uint_eq(res.count, 0);
	}
	free(buf);
	return outcome;
}

static inline struct ssc_nfs4_info info(void)
{
	struct ssc_nfs4_info i;

	ssc_nfs4_client_info(client, &i);
	return i;
}

#define ck_outcome(outcome, name) ck_assert_str_eq(ssc_nfs4_outcome_str(outcome), name)

#endif /* SSC_NFS4_UNIT_H */
