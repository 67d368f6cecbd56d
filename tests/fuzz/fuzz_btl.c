/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * libFuzzer target: everything that our BTL reads from other processes. The first byte of the input selects the reader: a control message
 * (UD datagram) through unpack, classification and the rail machine; a modex record through unpack, pairing of rails and queues;
 * data messages with their header, coalesced parts and credits; slots of the eager ring. DESIGN.txt section 18.
 */
#include "tables/btl_openib_rail_fsm.h"
#include "formats/btl_openib_counts.h"
#include "formats/btl_openib_credits.h"
#include "types/btl_openib_mail.h"
#include "formats/btl_openib_queues.h"
#include "formats/btl_openib_rails.h"
#include "in/btl_openib_recv.h"
#include "out/btl_openib_ring.h"
#include "in/btl_openib_ring_in.h"
#include "device/btl_openib_ring_memory.h"
#include "out/btl_openib_send.h"
#include "formats/btl_openib_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what, const char *text)
{
    if (!what) {
        fprintf(stderr, "fuzz_btl: %s\n", text);
        abort();
    }
}

/* ---- control messages -------------------------------------------------------------------------------- */

#define ACTION(name) \
    static int do_##name(void *owner, const ofo_ctl_t *message) \
    { \
        return 0 == --*(int *) owner ? -1 : 0; \
    }
#include "tables/btl_openib_rail.def"
#define ACTION(name) [OFO_DO_##name] = do_##name,
static const ofo_fsm_action_fn_t actions[OFO_DO_COUNT] = {
#include "tables/btl_openib_rail.def"
};

/* Messages, each after a byte with its size. The machine keeps its state from message to message. */
static void fuzz_control(const uint8_t *data, size_t size)
{
    int patience = size > 0 ? 1 + data[0] % 16 : 1; /* then one action fails */
    ofo_counts_t received = {0};
    ofo_fsm_t fsm;

    ofo_fsm_init(&fsm, actions, NULL, &patience);
    for (size_t at = 1; at < size;) {
        const size_t length = data[at] < size - at - 1 ? data[at] : size - at - 1;
        const ofo_fsm_facts_t facts = {.own_is_higher = data[at] & 1, .hash_ok = data[at] & 2, .usable = data[at] & 4};
        uint8_t *exact = malloc(length > 0 ? length : 1), again[OFO_CTL_MAX_SIZE];
        ofo_ctl_t ctl, same;

        memcpy(exact, data + at + 1, length);
        if (OFO_WIRE_OK == ofo_ctl_unpack(exact, length, &ctl)) {
            const size_t packed = ofo_ctl_pack(&ctl, again, sizeof(again));
            const ofo_fsm_event_t event = ofo_fsm_classify(&fsm, &ctl, &facts);

            must(packed > 0 && packed <= length, "a message that was unpacked cannot be packed");
            must(OFO_WIRE_OK == ofo_ctl_unpack(again, packed, &same) && 0 == memcmp(&ctl, &same, sizeof(ctl)),
                 "a message changes when it is packed again");
            must(event <= OFO_EV_NONE, "a message is classified as an unknown event");
            (void) ofo_counts_check(&ctl.counts, ctl.flags & OFO_DACK_VALID, &received, facts.hash_ok);
            if (OFO_EV_NONE != event) {
                (void) ofo_fsm_step(&fsm, event, &ctl);
            }
            must(fsm.state < OFO_ST_COUNT, "the machine is in an unknown state");
        }
        free(exact);
        at += 1 + length;
    }
}

/* ---- modex records ----------------------------------------------------------------------------------- */

static ofo_record_t own;

static void own_make(void)
{
    own = (ofo_record_t){.version = OFO_RECORD_VERSION,
                         .incarnation = 7,
                         .nqp = 2,
                         .nports = 3,
                         .queue = {{.type = 'P', .size = 4096, .count = 64}, {.type = 'S', .sends = 8, .size = 65536, .count = 16}}};
    for (int i = 0; i < 3; ++i) {
        ofo_port_t *p = &own.port[i];

        snprintf(p->name, sizeof(p->name), "own%d:1", i);
        p->subnet = (ofo_subnet_t){.type = i < 2 ? OFO_NET_IB : OFO_NET_IPV4, .prefix_len = i < 2 ? 64 : 24, .key = {0xfe, (uint8_t) (0x80 + i)}};
        p->guid[7] = (uint8_t) (i + 1);
        p->mtu = 5;
        p->lanes = (uint8_t) (1 + i % 2);
        p->rate = 1000;
    }
}

static void fuzz_record(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1), again[OFO_RECORD_MAX_SIZE];
    ofo_record_t record, same;
    ofo_rails_t rails;

    memcpy(exact, data, size);
    if (OFO_WIRE_OK == ofo_record_unpack(exact, size, &record)) {
        const size_t packed = ofo_record_pack(&record, again, sizeof(again));

        must(packed > 0, "a record that was unpacked cannot be packed");
        must(OFO_WIRE_OK == ofo_record_unpack(again, packed, &same), "a packed record cannot be unpacked");
        (void) (ofo_queues_match(&OFO.queues, &record) && ofo_queues_are_shared(&record));
        for (int lower = 0; lower < 2; ++lower) {
            must(0 == ofo_rails_pair(&own, &record, lower, NULL, &rails), "pairing without a map fails");
            must(rails.count <= OFO_MAX_RAILS, "more rails than OFO_MAX_RAILS");
            for (unsigned r = 0; r < rails.count; ++r) {
                must(rails.pair[r].local < own.nports && rails.pair[r].remote < record.nports && rails.pair[r].lane < OFO_MAX_LANES,
                     "a rail without a port");
                must(0 == ofo_rails_choices(&own, &record, &rails, r) >> record.nports, "a choice names no port of the record");
            }
        }
    }
    free(exact);
}

/* ---- data messages ----------------------------------------------------------------------------------- */

/* Functions of other rooms that recv, coalesce and ring call when messages arrive. The rest of the BTL is not linked. */
ofo_component_t mca_btl_openib_component;
static unsigned delivered;

void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps) {}
void ofo_pending_flush(ofo_endpoint_t *ep) {}
void ofo_credits_return(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index)
{
    qps->ring_in.owed = 0;
}

static void on_message(BFO_ARRIVAL_ARGS)
{
    const mca_btl_base_segment_t *s = des->des_segments;
    static volatile uint8_t sink;

    ++delivered;
    for (size_t i = 0; i < s->seg_len; ++i) { /* every byte can be read */
        sink = sink ^ ((const uint8_t *) s->seg_addr.pval)[i];
    }
}

typedef struct {
    ofo_module_t module;
    ofo_endpoint_t ep;
    ofo_qpset_t *qps;
} line_t;

static void line_make(line_t *l)
{
    memset(l, 0, sizeof(*l));
    l->qps = calloc(1, sizeof(*l->qps) + OFO.queues.count * sizeof(l->qps->qp[0]));
    OBJ_CONSTRUCT(&l->ep.lock, opal_mutex_t);
    l->ep.module = l->qps->module = &l->module;
    l->module.transport = &ofo_transport_infiniband;
    l->module.ext.traffic = &l->module.traffic;
    l->module.got.base.des_segments = &l->module.got.segment;
    l->module.got.base.des_segment_count = 1;
    l->ep.qps = l->qps;
    l->ep.gate = OFO_GATE_UP;
    l->qps->ep = &l->ep;
    l->qps->nqp = l->qps->nqp_owing = OFO.queues.count;
    for (unsigned i = 0; i < l->qps->nqp; ++i) {
        ofo_credits_init(&l->qps->qp[i].credits, 16, 4);
        l->qps->qp[i].credits.have = 3;
    }
}

static void line_free(line_t *l)
{
    free(l->qps);
    free(l);
}

static void fuzz_data(const uint8_t *data, size_t size)
{
    line_t *l = malloc(sizeof(*l));

    line_make(l);
    for (size_t at = 0; at < size;) {
        const size_t length = data[at] < size - at - 1 ? data[at] : size - at - 1;
        uint8_t *exact = malloc(length > 0 ? length : 1);

        memcpy(exact, data + at + 1, length);
        at += 1 + length;
        if (length >= sizeof(ofo_data_hdr_t)) {
            ofo_recv_message(&l->module, l->qps, (ofo_data_hdr_t *) exact, (uint32_t) length);
            for (unsigned i = 0; i < l->qps->nqp; ++i) {
                must(l->qps->qp[i].credits.have <= 16, "more credits than buffers");
            }
            must(l->qps->ring_out.free <= l->qps->ring_out.slots && l->qps->ring_out.slots <= OFO_RING_SLOTS_MAX,
                 "more free slots than the ring has");
        }
        free(exact);
    }
    line_free(l);
}

/* Between two polls the peer writes arbitrary bytes into the ring. */
static void fuzz_ring(const uint8_t *data, size_t size)
{
    const uint32_t slots = 4, bytes = slots * ofo_ring_slot_size();
    line_t *l = malloc(sizeof(*l));
    ofo_ring_in_t *in;

    line_make(l);
    in = &l->qps->ring_in;
    in->memory = calloc(1, bytes);
    in->slots = slots;
    in->turn = 1;
    in->is_open = true;
    l->module.ring = calloc(1, sizeof(*l->module.ring));
    l->module.ring[l->module.ring_count++] = l->qps;
    for (size_t at = 0; at + 4 < size;) {
        const uint32_t place = ((uint32_t) data[at] << 8 | data[at + 1]) % bytes;
        /* the interesting place is the footer of the next slot */
        const uint32_t where = data[at + 2] & 1 ? place : (in->head + 1) * ofo_ring_slot_size() - 1 - place % 32;
        const size_t length = data[at + 3] % 24;

        at += 4;
        for (size_t i = 0; i < length && at < size && where + i < bytes; ++i) {
            in->memory[where + i] = data[at++];
        }
        (void) ofo_rings_poll(&l->module);
        must(in->head < slots, "the ring's head left the ring");
    }
    free(l->module.ring);
    free(in->memory);
    line_free(l);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    must(NULL == ofo_queues_parse("P,256,16:P,4096,16", &OFO.queues), "the text of the queues is refused");
    for (int tag = MCA_BTL_TAG_PML; tag < MCA_BTL_TAG_PML + 16; ++tag) {
        mca_btl_base_active_message_trigger[tag].cbfunc = on_message;
    }
    own_make();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {fuzz_control, fuzz_record, fuzz_data, fuzz_ring};

    if (size > 1) {
        readers[data[0] % 4](data + 1, size - 1);
    }
    return 0;
}
