/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * norpcbind.c - preloaded into ganesha.nfsd by tests and the demo: no portmapper is asked.
 *
 * A server that speaks NFSv3 ends at start when it cannot register with rpcbind, and two of them on
 * one machine would overwrite each other's entry there. Tests name every port, so nobody needs the
 * entry. The two functions are those through which libntirpc reaches rpcbind; modules that the
 * server loads are bound to libntirpc directly and are not affected.
 *
 * Not for production: clients that are not told the ports could not find such a server.
 */
#include <stdbool.h>
#include <stdint.h>

struct netconfig;
struct netbuf;

bool rpcb_set(uint32_t prog, uint32_t vers, const struct netconfig *net, const struct netbuf *addr);
bool rpcb_unset(uint32_t prog, uint32_t vers, const struct netconfig *net);

bool rpcb_set(uint32_t prog, uint32_t vers, const struct netconfig *net, const struct netbuf *addr)
{
	(void)prog;
	(void)vers;
	(void)net;
	(void)addr;
	return true;
}

bool rpcb_unset(uint32_t prog, uint32_t vers, const struct netconfig *net)
{
	(void)prog;
	(void)vers;
	(void)net;
	return true;
}
