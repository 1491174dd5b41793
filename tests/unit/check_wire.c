/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_wire.c - records and RPC headers over a socket pair, in every kind of pieces.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../FSAL_SSC/upstream/wire.h"
#include "unit.h"

#define DATA_BYTES 100000u

/* What the last reply was, and what place shall say. */
static struct {
	int n;
	uint32_t xid;
	enum ssc_err err;
	uint8_t results[256];
	size_t len;
	bool is_placed, gives_place, is_still;
	struct iovec iov[2];
} got;

static struct ssc_wire *wire;
static int peer, wire_fd;
static uint8_t data[DATA_BYTES], room[DATA_BYTES], out[DATA_BYTES + 4096];
static size_t n_out;

static void got_reply(void *ctx, uint32_t xid, enum ssc_err err, const void *results, size_t len,
		      bool is_placed, const char *what)
{
	ck_assert_ptr_eq(ctx, &got);
	ck_assert_ptr_nonnull(what);
	got.n++;
	got.xid = xid;
	got.err = err;
	got.is_placed = is_placed;
	got.len = len;
	if (err == SSC_OK && len > 0)
		memcpy(got.results, results, len < sizeof(got.results) ? len : sizeof(got.results));
}

static bool got_place(void *ctx, uint32_t xid, const void *results, size_t len, size_t total,
		      struct ssc_wire_place *place)
{
	(void)ctx, (void)results, (void)total;
	ck_assert_uint_eq(xid, 7);
	if (!got.gives_place || len < 4)
		return false;
	*place = (struct ssc_wire_place){.iov = got.iov,
					 .n_iov = 2,
					 .count = DATA_BYTES - 1,
					 .head = 4};
	return true;
}

static bool got_still(void *ctx, uint32_t xid)
{
	(void)ctx, (void)xid;
	return got.is_still;
}

static void got_call(void *ctx, uint32_t xid, const void *bytes, size_t len)
{
	got_reply(ctx, xid, SSC_OK, bytes, len, false, "");
}

static const struct ssc_wire_ops ops = {.reply = got_reply, .place = got_place, .still = got_still};
static const struct ssc_wire_ops both_ways = {
	.reply = got_reply,
	.place = got_place,
	.still = got_still,
	.call = got_call,
};

static void set_up_with(const struct ssc_wire_ops *with)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	memset(&got, 0, sizeof(got));
	wire = ssc_wire_new(fds[0], with, &got);
	peer = fds[1];
	n_out = 0;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
}

static void set_up(void)
{
	set_up_with(&ops);
}

static void tear_down(void)
{
	ssc_wire_free(wire);
	close(peer);
}

/* As set_up, over TCP: only there does poll() know how much must have come. */
static void set_up_tcp(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);

	set_up();
	tear_down();
	wire_fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	ck_assert_int_eq(connect(wire_fd, (struct sockaddr *)&addr, len), 0);
	peer = accept(listener, NULL, NULL);
	ck_assert_int_ge(peer, 0);
	close(listener);
	wire = ssc_wire_new(wire_fd, &ops, &got);
}

/* Whether poll() tells of anything within @wait_ms. */
static bool is_readable(int wait_ms)
{
	struct pollfd pfd = {.fd = wire_fd, .events = POLLIN};

	return poll(&pfd, 1, wait_ms) > 0;
}

static void put(uint32_t v)
{
	v = htonl(v);
	memcpy(out + n_out, &v, 4);
	n_out += 4;
}

static void put_bytes(const void *bytes, size_t len)
{
	memcpy(out + n_out, bytes, len);
	n_out += len;
}

/* The mark of a fragment of @len bytes, then an accepted reply's header when @xid is not 0. */
static void put_reply(uint32_t xid, uint32_t results_len)
{
	put(0x80000000u | (24 + results_len));
	put(xid);
	put(1);
	put(0);
	put(0);
	put(0);
	put(0);
}

/* Hand @out to the wire in pieces of @step bytes. @return the last outcome. */
static enum ssc_err feed(size_t step)
{
	enum ssc_err err = SSC_OK;

	for (size_t at = 0; at < n_out && err == SSC_OK; at += step) {
		size_t n = n_out - at < step ? n_out - at : step;

		ck_assert_int_eq(write(peer, out + at, n), (ssize_t)n);
		err = ssc_wire_receive(wire, got.gives_place);
	}
	n_out = 0;
	return err;
}

static const size_t steps[] = {1, 3, 4, 27, 28, 1000};

START_TEST(takes_replies_in_any_pieces)
{
	for (uint32_t i = 0; i < 3; i++) {
		put_reply(100 + i, 8);
		put(i);
		put(0xabcdef01);
	}
	ck_assert_int_eq(feed(steps[_i]), SSC_OK);
	ck_assert_int_eq(got.n, 3);
	ck_assert_uint_eq(got.xid, 102);
	ck_assert_uint_eq(got.len, 8);
	ck_assert_uint_eq(got.results[3], 2);
	ck_assert(!got.is_placed);
}
END_TEST

START_TEST(joins_fragments)
{
	put(28); /* not the last: header and 4 bytes */
	put(5);
	put(1);
	put(0);
	put(0);
	put(0);
	put(0);
	put(0x01020304);
	put(4);
	put(0x05060708);
	put(0x80000004u);
	put(0x090a0b0c);
	put_reply(6, 0);
	ck_assert_int_eq(feed(steps[_i]), SSC_OK);
	ck_assert_int_eq(got.n, 2);
	ck_assert_uint_eq(got.xid, 6);
	ck_assert_uint_eq(got.results[0], 1);
	ck_assert_uint_eq(got.results[11], 12);
}
END_TEST

static const struct {
	uint32_t words[8];
	size_t n;
} nonsense[] = {
	{{0x80000000u | (2u << 20)}, 1},                /* longer than any record */
	{{0}, 1},                                       /* an empty fragment, and more to come */
	{{0x80000008u, 1, 0}, 3},                       /* a call */
	{{0x80000004u, 1}, 2},                          /* no header */
	{{0x8000000cu, 1, 1, 0}, 4},                    /* half a header */
	{{0x80000018u, 1, 1, 0, 0, 0xfffffff0u, 0}, 7}, /* a verifier without end */
};

START_TEST(refuses_nonsense)
{
	for (size_t i = 0; i < nonsense[_i].n; i++)
		put(nonsense[_i].words[i]);
	ck_assert_int_eq(feed(1000), SSC_E_PROTO);
	ck_assert_int_eq(got.n, 0);
}
END_TEST

START_TEST(takes_calls_where_they_are_wanted)
{
	tear_down();
	set_up_with(&both_ways);
	put_reply(4, 4);
	put(1);
	put(0x80000010u);
	put(77);
	put(0); /* CALL */
	put(2);
	put(3);
	put_reply(5, 4);
	put(2);
	ck_assert_int_eq(feed(steps[_i]), SSC_OK);
	ck_assert_int_eq(got.n, 3);
	ck_assert_uint_eq(got.xid, 5);
	put(0x8000000cu);
	put(78);
	put(0);
	put(2);
	ck_assert_int_eq(feed(1000), SSC_OK);
	ck_assert_uint_eq(got.xid, 78);
	ck_assert_uint_eq(got.len, 4);
	put(0x80000008u);
	put(79);
	put(2); /* neither call nor reply */
	ck_assert_int_eq(feed(1000), SSC_E_PROTO);
}
END_TEST

START_TEST(tells_refusals)
{
	put(0x80000014u); /* denied: AUTH_ERROR */
	put(1);
	put(1);
	put(1);
	put(1);
	put(5);
	ck_assert_int_eq(feed(1000), SSC_OK);
	ck_assert_int_eq(got.err, SSC_E_AUTH);
	put(0x80000018u); /* accepted: PROC_UNAVAIL */
	put(2);
	put(1);
	put(0);
	put(0);
	put(0);
	put(3);
	ck_assert_int_eq(feed(1000), SSC_OK);
	ck_assert_int_eq(got.err, SSC_E_PROTO);
	ck_assert_int_eq(got.n, 2);
}
END_TEST

START_TEST(an_end_is_an_end)
{
	put_reply(9, 0);
	n_out -= 4;
	ck_assert_int_eq(feed(1000), SSC_OK);
	close(peer);
	peer = dup(0);
	ck_assert_int_eq(ssc_wire_receive(wire, false), SSC_E_CONN);
	ck_assert_int_eq(got.n, 0);
}
END_TEST

static void put_long(void)
{
	got.gives_place = got.is_still = true;
	memset(room, 0, sizeof(room));
	got.iov[0] = (struct iovec){room, 40000};
	got.iov[1] = (struct iovec){room + 40000, DATA_BYTES - 40000};
	put_reply(7, 4 + DATA_BYTES); /* one byte of padding */
	put(0x11223344);
	put_bytes(data, DATA_BYTES - 1);
	put_bytes("", 1);
}

static const size_t long_steps[] = {100, 256, 4096, 32768, 65536, 1000000};

START_TEST(places_data)
{
	put_long();
	put_reply(8, 0);
	ck_assert_int_eq(feed(long_steps[_i]), SSC_OK);
	ck_assert_int_eq(got.n, 2);
	ck_assert_uint_eq(got.xid, 8);
	ck_assert_mem_eq(room, data, DATA_BYTES - 1);
	ck_assert_uint_eq(room[DATA_BYTES - 1], 0);
}
END_TEST

START_TEST(tells_that_data_was_placed)
{
	put_long();
	ck_assert_int_eq(feed(1000), SSC_OK);
	ck_assert_int_eq(got.n, 1);
	ck_assert(got.is_placed);
	ck_assert_uint_eq(got.len, 4);
	ck_assert_uint_eq(got.results[0], 0x11);
}
END_TEST

START_TEST(writes_nothing_to_a_place_taken_back)
{
	size_t all;

	put_long();
	all = n_out;
	n_out = 50000;
	ck_assert_int_eq(feed(1000), SSC_OK);
	ck_assert_uint_ne(room[49000], 0);
	got.is_still = false;
	memset(room, 0, sizeof(room));
	ck_assert_int_eq(write(peer, out + 50000, all - 50000), (ssize_t)(all - 50000));
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(ssc_wire_receive(wire, true), SSC_OK);
	for (size_t i = 0; i < sizeof(room); i++)
		ck_assert_uint_eq(room[i], 0);
	ck_assert_int_eq(got.n, 1);
	put_reply(12, 0);
	ck_assert_int_eq(feed(1000), SSC_OK);
	ck_assert_uint_eq(got.xid, 12);
}
END_TEST

/* The beginning of a long reply is there and taken. */
static void begin_long(size_t bytes)
{
	put_long();
	ck_assert_int_eq(write(peer, out, bytes), (ssize_t)bytes);
	while (is_readable(200))
		ck_assert_int_eq(ssc_wire_receive(wire, true), SSC_OK);
	ck_assert_int_eq(got.n, 0);
}

START_TEST(wakes_for_the_rest_and_not_for_pieces)
{
	const size_t all = DATA_BYTES + 32;

	begin_long(50000);
	ck_assert_int_eq(write(peer, out + 50000, 1000), 1000);
	ck_assert(!is_readable(50));
	ck_assert_int_eq(write(peer, out + 51000, all - 51000), (ssize_t)(all - 51000));
	ck_assert(is_readable(5000));
	ck_assert_int_eq(ssc_wire_receive(wire, true), SSC_OK);
	ck_assert_int_eq(got.n, 1);
	ck_assert_mem_eq(room, data, DATA_BYTES - 1);
	n_out = 0;
	put_reply(12, 0);
	ck_assert_int_eq(write(peer, out, n_out), (ssize_t)n_out);
	ck_assert(is_readable(5000));
	ck_assert_int_eq(ssc_wire_receive(wire, true), SSC_OK);
	ck_assert_uint_eq(got.xid, 12);
}
END_TEST

START_TEST(wakes_for_the_end_of_the_connection)
{
	begin_long(50000);
	ck_assert_int_eq(shutdown(peer, SHUT_WR), 0);
	ck_assert(is_readable(5000));
	ck_assert_int_eq(ssc_wire_receive(wire, true), SSC_E_CONN);
	ck_assert_int_eq(got.n, 0);
}
END_TEST

/* More is to come than the socket can hold. */
START_TEST(a_small_buffer_stalls_nothing)
{
	const int small = 4096;
	const size_t all = DATA_BYTES + 32;
	size_t sent = 1000;

	ck_assert_int_eq(setsockopt(wire_fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	begin_long(sent);
	for (int i = 0; i < 1000 && got.n == 0; i++) {
		ssize_t n = send(peer, out + sent, all - sent, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		ck_assert(is_readable(5000));
		ck_assert_int_eq(ssc_wire_receive(wire, true), SSC_OK);
	}
	ck_assert_int_eq(got.n, 1);
	ck_assert_mem_eq(room, data, DATA_BYTES - 1);
}
END_TEST

/* A socket that takes little at a time: what is sent arrives whole and in order. */
START_TEST(sends_what_the_socket_does_not_take_at_once)
{
	static const struct ssc_wire_procedure proc = {100003, 3, 7};
	const struct ssc_cred cred = {.uid = 1, .gid = 2, .n_groups = 16};
	const struct iovec iov[2] = {{data, 60001}, {data + 60001, 30000}};
	uint8_t buf[SSC_WIRE_CALL_MAX];
	static uint8_t in[5 * (DATA_BYTES + 1000)];
	size_t have = 0, len = 0;
	int small = 4096;

	ck_assert_int_eq(setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	for (uint32_t i = 0; i < 5; i++) {
		len = ssc_wire_header(buf, i, &proc, &cred);
		ck_assert_int_eq(ssc_wire_send(wire, buf, len, iov, 2, 90001, false), SSC_OK);
		memset(buf, 0xee, sizeof(buf));
	}
	ck_assert_uint_gt(ssc_wire_unsent(wire), 0);
	for (int i = 0; i < 100000 && have < 5 * (len + 90004); i++) {
		ssize_t n = read(peer, in + have, sizeof(in) - have);

		have += n > 0 ? (size_t)n : 0;
		ck_assert_int_eq(ssc_wire_flush(wire), SSC_OK);
	}
	ck_assert_uint_eq(have, 5 * (len + 90004));
	ck_assert_uint_eq(ssc_wire_unsent(wire), 0);
	for (uint32_t i = 0; i < 5; i++) {
		const uint8_t *r = in + i * (len + 90004);
		uint32_t word;

		memcpy(&word, r, 4);
		ck_assert_uint_eq(ntohl(word), 0x80000000u | (len - 4 + 90004));
		memcpy(&word, r + 4, 4);
		ck_assert_uint_eq(ntohl(word), i);
		ck_assert_mem_eq(r + len, data, 90001);
	}
}
END_TEST

START_TEST(gathers_small_calls)
{
	static const struct ssc_wire_procedure proc = {100003, 3, 1};
	const struct ssc_cred cred = {.uid = 0};
	uint8_t buf[SSC_WIRE_CALL_MAX];
	char byte;
	size_t len;

	for (uint32_t i = 0; i < 3; i++) {
		len = ssc_wire_header(buf, i, &proc, &cred);
		ck_assert_int_eq(ssc_wire_send(wire, buf, len, NULL, 0, 0, true), SSC_OK);
	}
	ck_assert_int_eq(read(peer, &byte, 1), -1);
	ck_assert_uint_eq(ssc_wire_unsent(wire), 3 * len);
	ck_assert_int_eq(ssc_wire_flush(wire), SSC_OK);
	ck_assert_int_eq(read(peer, out, sizeof(out)), (ssize_t)(3 * len));
}
END_TEST

#define N_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
	Suite *s = suite_create("wire");
	TCase *in = tcase_create("in");
	TCase *place = tcase_create("place");
	TCase *tcp = tcase_create("tcp");
	TCase *o = tcase_create("out");

	tcase_add_checked_fixture(in, set_up, tear_down);
	tcase_add_loop_test(in, takes_replies_in_any_pieces, 0, N_OF(steps));
	tcase_add_loop_test(in, joins_fragments, 0, N_OF(steps));
	tcase_add_loop_test(in, refuses_nonsense, 0, N_OF(nonsense));
	tcase_add_loop_test(in, takes_calls_where_they_are_wanted, 0, N_OF(steps));
	tcase_add_test(in, tells_refusals);
	tcase_add_test(in, an_end_is_an_end);
	suite_add_tcase(s, in);
	tcase_add_checked_fixture(place, set_up, tear_down);
	tcase_add_loop_test(place, places_data, 0, N_OF(long_steps));
	tcase_add_test(place, tells_that_data_was_placed);
	tcase_add_test(place, writes_nothing_to_a_place_taken_back);
	suite_add_tcase(s, place);
	tcase_add_checked_fixture(tcp, set_up_tcp, tear_down);
	tcase_add_test(tcp, wakes_for_the_rest_and_not_for_pieces);
	tcase_add_test(tcp, wakes_for_the_end_of_the_connection);
	tcase_add_test(tcp, a_small_buffer_stalls_nothing);
	suite_add_tcase(s, tcp);
	tcase_add_checked_fixture(o, set_up, tear_down);
	tcase_add_test(o, sends_what_the_socket_does_not_take_at_once);
	tcase_add_test(o, gathers_small_calls);
	suite_add_tcase(s, o);
	return unit_main(s);
}
