/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Small messages that wait for a slot or a credit travel together. They are copied one after the other into a carrier, a
 * fragment of our own. Each part gets the carrier's completion, good or bad; the parts are returned one by one, exactly
 * once. A message of sendi joins another one that waits, whose fragment becomes the carrier. Messages of sendi leave in a carrier of the next
 * queue if a carrier of their own queue does not hold all that wait. See DESIGN.txt 4 (B1) and 15.4.
 */
#include "out/btl_openib_coalesce.h"
#include "types/btl_openib_atomic.h"

#include "out/btl_openib_frag.h"

#include <arpa/inet.h>
#include <string.h>

/* The header of each part. The next part begins at the next multiple of 8. */
typedef struct {
    uint8_t tag;
    uint8_t pad[3];
    uint32_t length; /* network byte order */
} part_hdr_t;

static size_t part_size(size_t length)
{
    return sizeof(part_hdr_t) + (length + 7) / 8 * 8;
}

/* Bytes that the fragment takes in a carrier. A fragment that other messages have joined holds parts already. */
static size_t size_in_carrier(const ofo_frag_t *frag)
{
    return 0 < frag->joined ? frag->segment.seg_len : part_size(frag->segment.seg_len);
}

/* May the message be a part of a carrier of queue `index`? OFO_TAG_RING is no message of the PML. A message that its sender has put in
 * order, or whose sender waits for it, may have to come after a put, so it stays in its queue pair (A1). */
static bool may_be_part(const ofo_frag_t *frag, unsigned index, unsigned from)
{
    if (index != from) {
        return frag->is_sendi && MCA_BTL_NO_ORDER == frag->base.order;
    }
    return NULL == frag->parts && 0 == frag->joined && OFO_TAG_RING != frag->hdr->tag;
}

/* Counts the fragments at the head of the list that fit into one carrier of queue `index`. */
static unsigned count_parts(ofo_endpoint_t *ep, unsigned index, unsigned from)
{
    size_t room = OFO.queues.queue[index].size - sizeof(ofo_data_hdr_t), used = 0;
    unsigned count = 0;
    ofo_frag_t *frag;

    OPAL_LIST_FOREACH(frag, &ep->pending[from], ofo_frag_t)
    {
        used += size_in_carrier(frag);
        if (used > room || !may_be_part(frag, index, from)) {
            break;
        }
        ++count;
    }
    return count;
}

static void add_part(ofo_frag_t *carrier, ofo_frag_t *frag)
{
    uint8_t *at = (uint8_t *) carrier->segment.seg_addr.pval + carrier->segment.seg_len;

    if (0 < frag->joined) { /* it holds parts already */
        memcpy(at, frag->segment.seg_addr.pval, frag->segment.seg_len);
        carrier->segment.seg_len += frag->segment.seg_len;
        return;
    }
    *(part_hdr_t *) at = (part_hdr_t){.tag = frag->hdr->tag, .length = htonl((uint32_t) frag->segment.seg_len)};
    memcpy(at + sizeof(part_hdr_t), frag->segment.seg_addr.pval, frag->segment.seg_len);
    carrier->segment.seg_len += part_size(frag->segment.seg_len);
}

/* Service may post waiting messages, but must not use a free list, because without MPI threads these lists have no lock. */
static bool is_service(const ofo_module_t *module)
{
    return module->has_thread && pthread_equal(module->thread, pthread_self());
}

/* Carriers of a module that are in flight between queues: their large buffers must not grow with the number of peers. */
enum { OVER_MAX = 16 };

bool ofo_coalesce(ofo_endpoint_t *ep, unsigned index, unsigned from)
{
    unsigned count;
    ofo_frag_t *carrier, **tail;

    if (!OFO.params.use_message_coalescing || (OFO_GATE_UP != ep->gate && is_service(ep->module))
        || (index != from && OVER_MAX <= ep->module->carriers_over)) {
        return false;
    }
    count = count_parts(ep, index, from);
    if (2 > count || (index != from && count <= count_parts(ep, from, from))) {
        return false;
    }
    carrier = ofo_frag_alloc_whole(ep->module, index);
    if (NULL == carrier) {
        return false; /* out of memory: the messages go one by one */
    }
    carrier->ep = ep;
    carrier->hdr->tag = OFO_TAG_MANY;
    carrier->base.order = (uint8_t) index;
    carrier->goes_over = index != from;
    ep->module->carriers_over += carrier->goes_over;
    carrier->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    carrier->segment.seg_len = 0;
    tail = &carrier->parts;
    for (unsigned i = 0; i < count; ++i) {
        ofo_frag_t *frag = (ofo_frag_t *) opal_list_remove_first(&ep->pending[from]);
        add_part(carrier, frag);
        frag->next_part = NULL;
        *tail = frag;
        tail = &frag->next_part;
    }
    opal_list_prepend(&ep->pending[from], &carrier->base.super.super);
    OFO_ADD(ep->pending_count, 1 - count);
    ep->module->count.coalesced += count;
    ++ep->module->count.carriers;
    return true;
}

/* Does the last message that waits take parts? Then it is one of sendi, with the same order and flags, and its buffer is as large as the
 * queue's. */
static bool takes_parts(const ofo_endpoint_t *ep, const ofo_frag_t *frag, uint8_t order, uint32_t flags)
{
    return frag->is_sendi && OFO_JOINED_MAX > frag->joined && order == frag->base.order && flags == frag->base.des_flags
           && &ep->module->whole[0]->free == frag->list;
}

/* Makes the only message of a fragment its first part. */
static void begin_parts(ofo_frag_t *frag)
{
    uint8_t *at = frag->segment.seg_addr.pval;

    memmove(at + sizeof(part_hdr_t), at, frag->segment.seg_len);
    *(part_hdr_t *) at = (part_hdr_t){.tag = frag->hdr->tag, .length = htonl((uint32_t) frag->segment.seg_len)};
    frag->segment.seg_len = part_size(frag->segment.seg_len);
    frag->hdr->tag = OFO_TAG_MANY;
    frag->joined = 1;
    frag->copied = 0;
}

void *ofo_coalesce_join(ofo_endpoint_t *ep, size_t length, uint8_t tag, uint8_t order, uint32_t flags)
{
    const size_t room = OFO.queues.queue[0].size - sizeof(ofo_data_hdr_t);
    ofo_frag_t *last = (ofo_frag_t *) opal_list_get_last(&ep->pending[0]);
    part_hdr_t *part;

    if (opal_list_is_empty(&ep->pending[0]) || !takes_parts(ep, last, order, flags) || !OFO.params.use_message_coalescing
        || size_in_carrier(last) + part_size(length) > room) {
        return NULL;
    }
    if (0 == last->joined) {
        begin_parts(last);
        ++ep->module->count.coalesced;
        ++ep->module->count.carriers;
    }
    part = (part_hdr_t *) ((uint8_t *) last->segment.seg_addr.pval + last->segment.seg_len);
    *part = (part_hdr_t){.tag = tag, .length = htonl((uint32_t) length)};
    last->segment.seg_len += part_size(length);
    ++last->joined;
    ++ep->sends_out;
    ++ep->module->count.coalesced;
    ++ep->module->count.queued_sends;
    return part + 1;
}

/* The lengths come from the wire. A part that does not fit ends the message. */
bool ofo_parts_next(const uint8_t *bytes, size_t length, size_t *at, ofo_part_t *part)
{
    const part_hdr_t *hdr = (const part_hdr_t *) (bytes + *at);
    const size_t left = length - *at;

    if (left < sizeof(*hdr) || left - sizeof(*hdr) < ntohl(hdr->length)) {
        return false;
    }
    *part = (ofo_part_t){.tag = hdr->tag, .at = *at + sizeof(*hdr), .length = ntohl(hdr->length)};
    *at += part_size(part->length);
    return true;
}
