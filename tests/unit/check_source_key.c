/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_source_key.c - which addresses are one server, and which are none.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "ssc/source_key.h"
#include "unit.h"

static enum ssc_err make(struct ssc_source_key *key, const char *addr, uint16_t port,
			 uint32_t scope)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_scope_id = scope};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	memset(key, 0xff, sizeof(*key)); /* nothing may be left of what was there */
	if (inet_pton(AF_INET, addr, &in.sin_addr) == 1)
		return ssc_source_key_init(key, (const struct sockaddr *)&in, sizeof(in),
					   SSC_SOURCE_V4_2, 7);
	ck_assert_int_eq(inet_pton(AF_INET6, addr, &in6.sin6_addr), 1);
	return ssc_source_key_init(key, (const struct sockaddr *)&in6, sizeof(in6), SSC_SOURCE_V4_2,
				   7);
}

static bool are_equal(const char *a, uint32_t scope_a, const char *b, uint32_t scope_b)
{
	struct ssc_source_key x, y;
	bool is_equal;

	ck_assert_int_eq(make(&x, a, 2049, scope_a), SSC_OK);
	ck_assert_int_eq(make(&y, b, 2049, scope_b), SSC_OK);
	is_equal = ssc_source_key_equal(&x, &y);
	ck_assert_int_eq(ssc_source_key_hash(&x, 1) == ssc_source_key_hash(&y, 1), is_equal);
	return is_equal;
}

START_TEST(equal_servers_have_equal_keys)
{
	ck_assert(are_equal("192.0.2.7", 0, "192.0.2.7", 0));
	ck_assert(are_equal("192.0.2.7", 0, "::ffff:192.0.2.7", 0));
	ck_assert(are_equal("192.0.2.7", 0, "::ffff:192.0.2.7", 3));
	ck_assert(are_equal("2001:db8::7", 0, "2001:db8:0::0:7", 0));
	ck_assert(are_equal("2001:db8::7", 1, "2001:db8::7", 2)); /* scope without meaning */
	ck_assert(are_equal("fe80::7", 1, "fe80::7", 1));
}
END_TEST

START_TEST(others_do_not)
{
	ck_assert(!are_equal("192.0.2.7", 0, "192.0.2.8", 0));
	ck_assert(!are_equal("192.0.2.7", 0, "::192.0.2.7", 0)); /* IPv4-compatible: another */
	ck_assert(!are_equal("2001:db8::7", 0, "2001:db8::8", 0));
	ck_assert(!are_equal("fe80::7", 1, "fe80::7", 2));
}
END_TEST

START_TEST(port_version_and_connection_keys_count)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(2049)};
	const struct sockaddr *addr = (const struct sockaddr *)&in;
	struct ssc_source_key key[5];

	in.sin_addr.s_addr = htonl(0xc0000207);
	ck_assert_int_eq(ssc_source_key_init(&key[0], addr, sizeof(in), SSC_SOURCE_V4_2, 1),
			 SSC_OK);
	ck_assert_int_eq(ssc_source_key_init(&key[1], addr, sizeof(in), SSC_SOURCE_V3, 1), SSC_OK);
	ck_assert_int_eq(ssc_source_key_init(&key[2], addr, sizeof(in), SSC_SOURCE_V4_2, 2),
			 SSC_OK);
	in.sin_port = htons(2050);
	ck_assert_int_eq(ssc_source_key_init(&key[3], addr, sizeof(in), SSC_SOURCE_V4_2, 1),
			 SSC_OK);
	memset(in.sin_zero, 1, sizeof(in.sin_zero)); /* padding of the caller's */
	in.sin_port = htons(2049);
	ck_assert_int_eq(ssc_source_key_init(&key[4], addr, sizeof(in), SSC_SOURCE_V4_2, 1),
			 SSC_OK);
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++)
			ck_assert_int_eq(ssc_source_key_equal(&key[i], &key[j]), i % 4 == j % 4);
}
END_TEST

START_TEST(what_is_no_server_is_refused)
{
	struct sockaddr_storage un = {.ss_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = 1};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(1)};
	struct ssc_source_key key;

	ck_assert_int_eq(make(&key, "0.0.0.0", 2049, 0), SSC_E_INVAL);
	ck_assert_int_eq(make(&key, "::", 2049, 0), SSC_E_INVAL);
	ck_assert_int_eq(make(&key, "::ffff:0.0.0.0", 2049, 0), SSC_E_INVAL);
	ck_assert_int_eq(make(&key, "192.0.2.7", 0, 0), SSC_E_INVAL);
	ck_assert_int_eq(make(&key, "2001:db8::7", 0, 0), SSC_E_INVAL);
	ck_assert_int_eq(ssc_source_key_init(&key, (const struct sockaddr *)&un, sizeof(un),
					     SSC_SOURCE_V4_2, 0),
			 SSC_E_INVAL);
	ck_assert_int_eq(ssc_source_key_init(&key, (const struct sockaddr *)&in, sizeof(in) - 1,
					     SSC_SOURCE_V4_2, 0),
			 SSC_E_INVAL);
	ck_assert_int_eq(ssc_source_key_init(&key, (const struct sockaddr *)&in6, sizeof(in6) - 1,
					     SSC_SOURCE_V4_2, 0),
			 SSC_E_INVAL);
}
END_TEST

static void check_text(const char *addr, uint32_t scope, const char *text)
{
	char buf[SSC_SOURCE_KEY_STR_MAX];
	struct ssc_source_key key;

	ck_assert_int_eq(make(&key, addr, 2049, scope), SSC_OK);
	ck_assert_str_eq(ssc_source_key_str(&key, buf), text);
}

START_TEST(people_can_read_it)
{
	struct ssc_source_key key;
	char buf[SSC_SOURCE_KEY_STR_MAX];

	check_text("192.0.2.7", 0, "192.0.2.7:2049 v4.2");
	check_text("::ffff:192.0.2.7", 0, "192.0.2.7:2049 v4.2");
	check_text("2001:db8::7", 0, "[2001:db8::7]:2049 v4.2");
	check_text("fe80::7", 4, "[fe80::7%4]:2049 v4.2");
	ck_assert_int_eq(make(&key, "fe80:1111:2222:3333:4444:5555:6666:7777", 65535, UINT32_MAX),
			 SSC_OK);
	key.version = SSC_SOURCE_V3;
	ck_assert_str_eq(ssc_source_key_str(&key, buf),
			 "[fe80:1111:2222:3333:4444:5555:6666:7777%4294967295]:65535 v3");
}
END_TEST

START_TEST(the_secret_moves_the_hash)
{
	struct ssc_source_key key;

	ck_assert_int_eq(make(&key, "192.0.2.7", 2049, 0), SSC_OK);
	ck_assert_uint_ne(ssc_source_key_hash(&key, 1), ssc_source_key_hash(&key, 2));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source_key");
	TCase *tc = tcase_create("keys");

	tcase_add_test(tc, equal_servers_have_equal_keys);
	tcase_add_test(tc, others_do_not);
	tcase_add_test(tc, port_version_and_connection_keys_count);
	tcase_add_test(tc, what_is_no_server_is_refused);
	tcase_add_test(tc, people_can_read_it);
	tcase_add_test(tc, the_secret_moves_the_hash);
	suite_add_tcase(suite, tc);
	return unit_main(suite);
}
