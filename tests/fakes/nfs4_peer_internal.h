/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nfs4_peer_internal.h - between the files of the NFSv4.2 peer: connections and operations.
 */
#ifndef NFS4_PEER_INTERNAL_H
#define NFS4_PEER_INTERNAL_H

#include "nfs4_peer.h"

/* Room for mark and header in front of results in peer->out. */
#define PEER_HEADER 28

/** @brief The client broke a rule. Lock held. */
void peer_wrong(struct nfs4_peer *peer, const char *what);

/** @brief Take a record's beginning apart. False: it is no compound, and was dealt with. Lock held. */
bool peer_parse(struct nfs4_peer *peer, const uint8_t *bytes, size_t len, struct nfs4_request *rq);

/** @brief Do it: results go to peer->out behind the header. @return their length. Lock held. */
size_t peer_do(struct nfs4_peer *peer, const uint8_t *bytes, size_t len, struct nfs4_request *rq);

#endif /* NFS4_PEER_INTERNAL_H */
