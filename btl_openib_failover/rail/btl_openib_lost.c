/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Declares a peer that cannot be reached, once, and ends each of its rails. See DESIGN.txt 11 and 15.2.
 */
#include "rail/btl_openib_lost.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"

#include "bfo_assert.h"
#include "bfo_help.h"

#include <stdio.h>
#include <string.h>

bool ofo_peer_declare(ofo_peer_t *peer, const char *why, bool tell_pml)
{
    const char *expected = NULL;

    BFO_ASSERT(NULL != why);
    /* the thread that sets the text first declares the peer */
    if (!__atomic_compare_exchange_n(&peer->why, &expected, why, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return false;
    }
    BFO_ASSERT(!OFO_LOAD(peer->declared)); /* whoever sets the text is the only one to come here */
    OFO_STORE(peer->declared, true);
    ofo_log(1, "bfo: %u->%u declared unreachable: %s", OFO.self.vpid, peer->name.vpid, why);
    for (unsigned i = 0; i < peer->rail_count; ++i) {
        ofo_tell_service(peer->rail[i], OFO_MAIL_DECLARE, 0, NULL, NULL);
    }
    if (tell_pml && 0 < peer->rail_count) {
        ofo_tell_progress(peer->rail[0]->module, OFO_MAIL_PEER_LOST, peer->rail[0], 0, NULL, NULL);
    }
    return true;
}

/* Two fabrics may both have the default prefix. Then equal prefixes do not mean that the two ports can reach each other. */
void ofo_peer_doubt_pair(const ofo_endpoint_t *ep)
{
    static const uint8_t fe80[8] = {0xfe, 0x80};
    const ofo_port_t *own = &OFO.record.port[ep->module->port_index];
    char key[64];

    if (OFO_NET_IB == own->subnet.type && 0 == memcmp(own->gid, fe80, sizeof(fe80)) && 2 <= ep->alike) {
        snprintf(key, sizeof(key), "doubtful pair %s", own->name);
        bfo_help_say_once(key, OFO_HELP_FILE, "doubtful pair", own->name, OFO.self.vpid, ep->remote.name, ep->peer->name.vpid,
                          OFO.params.connect_timeout, own->name);
    }
}
