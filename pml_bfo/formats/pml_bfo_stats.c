/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Names of the counters, and what they count. DESIGN.txt section 14.9.
 */
#include "formats/pml_bfo_stats.h"

static const struct {
    const char *name, *text;
} table[BFO_STAT_COUNT] = {
    [BFO_STAT_DROPPED] = {"dropped", "messages dropped for any of the reasons counted apart"},
    [BFO_STAT_BAD_HEADER] = {"bad_header", "messages dropped: unknown type, bad length or contradictory fields"},
    [BFO_STAT_STALE] = {"stale", "messages dropped: identifier or epoch out of date"},
    [BFO_STAT_DUPLICATE] = {"duplicate", "first fragments dropped: message number already seen"},
    [BFO_STAT_WRONG_SOURCE] = {"wrong_source", "first fragments dropped: not a rank, or not the process it came from"},
    [BFO_STAT_EARLY] = {"early", "messages that overtook another one of their source on another rail"},
    [BFO_STAT_UNEXPECTED] = {"unexpected", "messages that came before their receive was posted"},
    [BFO_STAT_ORPHAN] = {"orphan", "messages that came before their communicator existed here"},
    [BFO_STAT_EAGER] = {"eager", "messages sent in one fragment"},
    [BFO_STAT_RENDEZVOUS] = {"rendezvous", "messages sent by rendezvous (FRAG or PUT)"},
    [BFO_STAT_RGET] = {"rget", "messages offered for reading (RGET)"},
    [BFO_STAT_FRAG_BYTES] = {"frag_bytes", "bytes sent by FRAG"},
    [BFO_STAT_PUT_BYTES] = {"put_bytes", "bytes written into the peer's memory"},
    [BFO_STAT_GET_BYTES] = {"get_bytes", "bytes read from the peer's memory"},
    [BFO_STAT_PENDED] = {"pended", "posts that had to wait for resources of a BTL"},
    [BFO_STAT_ERRORS] = {"errors", "fragments that completed with an error"},
    [BFO_STAT_RESENDS] = {"resends", "fragments sent again after an error"},
    [BFO_STAT_RESTARTS] = {"restarts", "messages restarted after an error"},
    [BFO_STAT_RAILS_LOST] = {"rails_lost", "rails taken out of use after an error"},
    [BFO_STAT_RAILS_BACK] = {"rails_back", "rails taken into use again after they were lost"},
    [BFO_STAT_PEERS_WAITED] = {"peers_waited", "times the last rail to a peer was lost, and a rail was waited for"},
    [BFO_STAT_PEERS_LOST] = {"peers_lost", "peers declared unreachable"},
    [BFO_STAT_ERROR_AT] = {"error_at", "monotonic clock in ns at the first error of the rail that was lost last"},
    [BFO_STAT_RESUMED_AT] = {"resumed_at", "the same when the first message it interrupted went on by another rail"},
};

const char *bfo_stat_name(bfo_stat_t s)
{
    return table[s].name;
}

const char *bfo_stat_text(bfo_stat_t s)
{
    return table[s].text;
}
