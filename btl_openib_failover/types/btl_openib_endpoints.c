/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Endpoints, looked up and walked. See DESIGN.txt 15.2.
 */
#include "types/btl_openib_endpoints.h"

#include "types/btl_openib_atomic.h"

ofo_endpoint_t *ofo_peer_endpoint(ofo_peer_t *peer, const ofo_module_t *module)
{
    for (unsigned i = 0; i < peer->rail_count; ++i) {
        if (peer->rail[i]->module == module) {
            return peer->rail[i];
        }
    }
    return NULL;
}

ofo_endpoint_t *ofo_peer_rail(const ofo_peer_t *peer, uint8_t name)
{
    for (unsigned i = 0; i < peer->rail_count; ++i) {
        if (name == OFO_LOAD(peer->rail[i]->rail)) {
            return peer->rail[i];
        }
    }
    return NULL;
}

void ofo_for_each_endpoint(ofo_module_t *module, void (*visit)(ofo_endpoint_t *))
{
    void *peer;
    uint64_t key;

    pthread_mutex_lock(&OFO.peers_lock);
    OPAL_HASH_TABLE_FOREACH(key, uint64, peer, &OFO.peers)
    {
        ofo_endpoint_t *ep = ofo_peer_endpoint(peer, module);
        if (NULL != ep) {
            OPAL_THREAD_LOCK(&ep->lock);
            visit(ep);
            OPAL_THREAD_UNLOCK(&ep->lock);
        }
    }
    pthread_mutex_unlock(&OFO.peers_lock);
}
