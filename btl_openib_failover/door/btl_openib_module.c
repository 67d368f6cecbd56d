/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A module is one port (and lane) as Open MPI sees it. Here are its set-up and end, its processes and the dump. The data
 * path is in _frag.c, _send.c, _rdma.c, _recv.c. See DESIGN.txt 15.
 */
#include "door/btl_openib_module.h"

#include "types/btl_openib_atomic.h"
#include "tables/btl_openib_rail_fsm.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_endpoints.h"
#include "fault/btl_openib_failover.h"
#include "out/btl_openib_frag.h"
#include "out/btl_openib_guard.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_peer.h"
#include "formats/btl_openib_qpmap.h"
#include "qp/btl_openib_qpset.h"
#include "out/btl_openib_rdma.h"
#include "out/btl_openib_send.h"
#include "threads/btl_openib_service.h"
#include "threads/btl_openib_sleep.h"
#include "device/btl_openib_srq.h"

#include "bfo_assert.h"
#include "bfo_help.h"

#include "opal/class/opal_bitmap.h"
#include "opal/mca/mpool/base/base.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAG_ALIGN = 64,
    FRAGS_LEAST = 2,
    FRAGS_BYTES = 256 * 1024,
    OPERATIONS_FIRST = 8,
    OPERATIONS_MORE = 32,
    RING_ROOM = 16 /* the footer of an eager ring */
};

OBJ_CLASS_INSTANCE(ofo_frag_t, mca_btl_base_descriptor_t, NULL, NULL);
OBJ_CLASS_INSTANCE(ofo_rdma_t, opal_free_list_item_t, NULL, NULL);

/* ---- descriptors -------------------------------------------------------------------------------- */

static int frag_init(opal_free_list_item_t *item, void *context)
{
    ofo_frag_t *frag = (ofo_frag_t *) item;
    ofo_frag_list_t *list = context;
    ofo_module_t *module = list->module;

    frag->hdr = item->ptr;
    frag->lkey = ((ofo_reg_t *) item->registration)->handle.lkey;
    frag->list = &list->free;
    frag->queue = list->queue;
    frag->segment.seg_addr.pval = frag->hdr + 1;
    frag->base.des_segments = &frag->segment;
    frag->base.des_segment_count = 1;
    frag->work = (ofo_work_t){.kind = OFO_WORK_SEND}; /* qps must be NULL, and the list does not zero its memory */
    frag->next_of_all = OFO_LOAD(module->all_frags);
    while (!__atomic_compare_exchange_n(&module->all_frags, &frag->next_of_all, frag, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return OPAL_SUCCESS;
}

static int rdma_init(opal_free_list_item_t *item, void *context)
{
    ofo_rdma_t *rdma = (ofo_rdma_t *) item;
    ofo_module_t *module = context;

    rdma->work = (ofo_work_t){.kind = OFO_WORK_RDMA};
    rdma->inflight = 0;
    rdma->next_of_all = OFO_LOAD(module->all_rdmas);
    while (!__atomic_compare_exchange_n(&module->all_rdmas, &rdma->next_of_all, rdma, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return OPAL_SUCCESS;
}

/* ---- processes ---------------------------------------------------------------------------------- */

static bool is_late(const ofo_endpoint_t *ep)
{
    return OFO.record.port[ep->module->port_index].is_late || ep->remote.is_late;
}

/* Only a PML that takes rails back can begin without some of them. Any other PML would wait for what it sends over a port that is down. */
static bool is_for_the_pml(ofo_endpoint_t *ep)
{
    ofo_module_t *module = ep->module;
    char key[64];

    if (is_late(ep) && NULL == module->ext.rail_restored) {
        return false;
    }
    if (__atomic_exchange_n(&module->tells_late, false, __ATOMIC_RELAXED)) {
        snprintf(key, sizeof(key), "late %s", module->name);
        bfo_help_say_once(key, OFO_HELP_FILE, "port is late", module->name);
    }
    return true;
}

static int module_add_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs, ofo_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    for (size_t i = 0; i < nprocs; ++i) {
        ofo_peer_t *peer = ofo_peer_get(&procs[i]->proc_name, procs[i]);
        ofo_endpoint_t *ep = NULL != peer ? ofo_peer_endpoint(peer, (ofo_module_t *) btl) : NULL;
        if (NULL != peer) {
            OFO_STORE(peer->closing, false); /* del_procs may have been called for it before */
        }
        BFO_ASSERT(NULL == ep || (ep->module == (ofo_module_t *) btl && ep->peer == peer));
        endpoints[i] = NULL != ep && is_for_the_pml(ep) ? ep : NULL;
        if (NULL != endpoints[i] && NULL != reachable) {
            opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return OPAL_SUCCESS;
}

/* Work in flight completes by itself. The endpoint's memory stays until the component ends. */
static int module_del_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs, ofo_endpoint_t **endpoints)
{
    for (size_t i = 0; i < nprocs; ++i) {
        if (NULL != endpoints && NULL != endpoints[i]) {
            OFO_STORE(endpoints[i]->peer->closing, true);
        }
    }
    return OPAL_SUCCESS;
}

static int module_register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t cbfunc)
{
    ((ofo_module_t *) btl)->error_cb = cbfunc;
    return OPAL_SUCCESS;
}

/* ---- flush and dump ----------------------------------------------------------------------------- */

static bool rdma_is_out(ofo_module_t *module, ofo_endpoint_t *only)
{
    void *peer;
    uint64_t key;
    bool out = false;

    if (NULL != only) {
        return 0 != only->rdma_out;
    }
    pthread_mutex_lock(&OFO.peers_lock);
    OPAL_HASH_TABLE_FOREACH(key, uint64, peer, &OFO.peers)
    {
        ofo_endpoint_t *ep = ofo_peer_endpoint(peer, module);
        out |= NULL != ep && 0 != ep->rdma_out;
    }
    pthread_mutex_unlock(&OFO.peers_lock);
    return out;
}

/* Calls progress even if nothing is in flight, because osc/rdma uses it instead of opal_progress() while it waits for other things. */
static int module_flush(mca_btl_base_module_t *btl, ofo_endpoint_t *ep)
{
    do {
        opal_progress();
    } while (rdma_is_out((ofo_module_t *) btl, ep));
    return OPAL_SUCCESS;
}

static void dump_endpoint(const ofo_endpoint_t *ep)
{
    uint32_t published = (uint32_t) OFO_LOAD(ep->published);

    opal_output(0, "  %s rail %u to %u (%s): %s gen %u, gate %d, sends out %u, rdma out %u, pending %u", ep->module->name, ep->rail,
                ep->peer->name.vpid, ep->remote.name, ofo_fsm_state_name((ofo_fsm_state_t) (published >> 16)), published & 0xffff, (int) ep->gate,
                ep->sends_out, ep->rdma_out, ep->pending_count);
    if (NULL != ep->qps) {
        opal_output(0, "    queue pairs: %s", ofo_drain_state_name(ofo_drain_state(&ep->qps->drain)));
    }
    for (unsigned i = 0; NULL != ep->qps && i < ep->qps->nqp; ++i) {
        const ofo_qp_t *qp = &ep->qps->qp[i];
        opal_output(0, "    queue pair %u: slots %d, credits %d, owed %d, receives posted %d", i, qp->sq_free, qp->credits.have, qp->credits.owed,
                    qp->recv_posted);
    }
}

static unsigned long long fragments_made(const ofo_module_t *module)
{
    unsigned long long made = 0;

    for (unsigned i = 0; i < module->frag_lists; ++i) {
        made += module->frags[i].free.fl_num_allocated;
    }
    return made;
}

static void dump_counters(const ofo_module_t *module)
{
    const ofo_counters_t *c = &module->count;

    opal_output(0,
                "bfo: %s: sends %llu, immediate %llu, puts %llu (%llu bytes), gets %llu (%llu bytes), receives %llu, "
                "fragments %llu, queued %llu + %llu, credit messages %llu, bad %llu, connects %llu, errors %llu, "
                "fences %llu (longest %llu ms), given up %llu, without the last receive's event %llu, received late %llu, "
                "shared queues grew %llu times, coalesced %llu in %llu, ring %llu out %llu in, silent %llu, keepalives %llu, "
                "inquiries %llu (questions %llu, followed %llu), silent rails %llu, soft rails %llu, copies %llu, polls skipped %llu, sleeps %llu, "
                "control in %llu out %llu dropped %llu refused %llu mended %llu, drain events refused %llu",
                module->name, (unsigned long long) c->sends, (unsigned long long) c->sendis, (unsigned long long) c->puts,
                (unsigned long long) c->put_bytes, (unsigned long long) c->gets, (unsigned long long) c->get_bytes, (unsigned long long) c->receives,
                fragments_made(module), (unsigned long long) c->queued_sends, (unsigned long long) c->queued_rdma,
                (unsigned long long) c->credit_messages, (unsigned long long) c->bad_messages, (unsigned long long) c->connects,
                (unsigned long long) c->errors, (unsigned long long) c->fences, (unsigned long long) c->fence_ms,
                (unsigned long long) c->lossy_fences, (unsigned long long) c->last_wqe_missed, (unsigned long long) c->late_receives,
                (unsigned long long) c->srq_growths, (unsigned long long) c->coalesced, (unsigned long long) c->carriers,
                (unsigned long long) c->ring_sends, (unsigned long long) c->ring_receives, (unsigned long long) c->silent,
                (unsigned long long) c->keepalives, (unsigned long long) c->inquiries, (unsigned long long) c->questions,
                (unsigned long long) c->followed, (unsigned long long) c->silent_rails, (unsigned long long) c->soft_rails,
                (unsigned long long) c->copies, (unsigned long long) c->polls_skipped, (unsigned long long) c->sleeps, (unsigned long long) c->ctl_in,
                (unsigned long long) c->ctl_out, (unsigned long long) c->ctl_dropped, (unsigned long long) c->ctl_refused,
                (unsigned long long) c->ctl_mended, (unsigned long long) c->drain_refused);
}

static void module_dump(mca_btl_base_module_t *btl, ofo_endpoint_t *only, int verbose)
{
    void *peer;
    uint64_t key;

    dump_counters((ofo_module_t *) btl);
    if (NULL != only) {
        dump_endpoint(only);
        return;
    }
    pthread_mutex_lock(&OFO.peers_lock);
    OPAL_HASH_TABLE_FOREACH(key, uint64, peer, &OFO.peers)
    {
        ofo_endpoint_t *ep = ofo_peer_endpoint(peer, (ofo_module_t *) btl);
        if (NULL != ep) {
            dump_endpoint(ep);
        }
    }
    pthread_mutex_unlock(&OFO.peers_lock);
}

/* ---- beginning and end -------------------------------------------------------------------------- */

/* Letters may hold sets too. Call it before the objects that queue pairs use are destroyed. */
static void free_sets(ofo_module_t *module)
{
    while (NULL != module->graveyard) {
        ofo_qpset_t *qps = module->graveyard;
        module->graveyard = qps->next;
        (void) ofo_qpset_destroy(qps);
    }
    ofo_mailbox_free(&module->inbox);
    ofo_mailbox_free(&module->service_inbox);
}

/* Also for a module whose init failed half way. */
void ofo_module_destroy(ofo_module_t *module)
{
    ofo_service_stop(module);
    ofo_service_free(module);
    BFO_ASSERT(!module->has_thread); /* no thread uses what is freed here */
    free_sets(module);
    OFO.cpc->destroy(module);
    ofo_srqs_destroy(module);
    free(module->ring);
    ofo_qpmap_free(&module->qpmap);
    for (int i = 0; i < module->cq_count; ++i) {
        ibv_destroy_cq(module->cq[i]);
    }
    ofo_sleep_close(module);
    for (unsigned i = 0; i < module->frag_lists; ++i) {
        OBJ_DESTRUCT(&module->frags[i].free);
    }
    OBJ_DESTRUCT(&module->rdmas);
    free(module->stash);
    free(module);
}

void ofo_modules_free(void)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_service_stop(OFO.module[i]);
    }
    ofo_peers_free();
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_destroy(OFO.module[i]);
    }
    for (unsigned i = 0; i < OFO.device_count; ++i) {
        ofo_device_close(OFO.device[i]);
    }
    OFO.module_count = OFO.device_count = 0;
    ofo_sleep_destroy();
}

/* Modules share peers and send letters to each other's service. Therefore the first module that ends stops all threads, and the last
 * one frees everything. */
static int module_finalize(mca_btl_base_module_t *btl)
{
    static unsigned ended;

    BFO_ASSERT(ended < OFO.module_count); /* a module ends once */
    OFO_STORE(OFO.closing, true);
    for (unsigned i = 0; 0 == ended && i < OFO.module_count; ++i) {
        if (0 < OFO.params.verbose) {
            dump_counters(OFO.module[i]);
        }
        ofo_service_stop(OFO.module[i]);
    }
    if (++ended < OFO.module_count) {
        return OPAL_SUCCESS;
    }
    ofo_modules_free();
    ended = 0;
    return OPAL_SUCCESS;
}

/* Large fragments are made in smaller numbers. */
static int frags_at_once(unsigned wanted, unsigned size)
{
    const unsigned most = FRAGS_BYTES / size < FRAGS_LEAST ? FRAGS_LEAST : FRAGS_BYTES / size;

    return (int) (wanted < most ? wanted : most);
}

static void add_list(ofo_module_t *module, uint32_t size, unsigned queue)
{
    ofo_frag_list_t *list = &module->frags[module->frag_lists++];

    BFO_ASSERT(module->frag_lists <= OFO_MAX_FRAG_LISTS && queue < OFO_MAX_QPS);
    BFO_ASSERT(list == module->frags || (list - 1)->size < size); /* the first list that is large enough is the best */
    OBJ_CONSTRUCT(&list->free, opal_free_list_t);
    list->module = module;
    list->size = size;
    list->queue = (uint8_t) queue;
    module->whole[queue] = list;
}

/* One size for each queue, and one in between if most of a fragment would often stay unused. */
static void make_lists(ofo_module_t *module)
{
    enum { WIDE = 4, BETWEEN = 3 };

    for (unsigned i = 0; i < OFO.queues.count; ++i) {
        const uint32_t size = OFO.queues.queue[i].size;
        if (0 < i && size > WIDE * OFO.queues.queue[i - 1].size) {
            add_list(module, (size / BETWEEN + FRAG_ALIGN - 1) / FRAG_ALIGN * FRAG_ALIGN, i);
        }
        add_list(module, size, i);
    }
}

static int init_lists(ofo_module_t *module)
{
    mca_mpool_base_module_t *mpool = mca_mpool_base_module_lookup(NULL);

    for (ofo_frag_list_t *list = module->frags; list < module->frags + module->frag_lists; ++list) {
        if (OPAL_SUCCESS
            != opal_free_list_init(&list->free, sizeof(ofo_frag_t), FRAG_ALIGN, OBJ_CLASS(ofo_frag_t), list->size + RING_ROOM, FRAG_ALIGN,
                                   frags_at_once(OFO.params.free_list_num, list->size), OFO.params.free_list_max,
                                   frags_at_once(OFO.params.free_list_inc, list->size), mpool, MCA_RCACHE_FLAGS_CACHE_BYPASS, module->device->rcache,
                                   frag_init, list)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        ofo_log(2, "%s: fragments of %u bytes: %zu to begin with, %zu at a time", module->name, list->size, list->free.fl_num_allocated,
                list->free.fl_num_per_alloc);
    }
    return opal_free_list_init(&module->rdmas, sizeof(ofo_rdma_t), FRAG_ALIGN, OBJ_CLASS(ofo_rdma_t), 0, 0, OPERATIONS_FIRST, -1, OPERATIONS_MORE,
                               NULL, 0, NULL, rdma_init, module);
}

void ofo_module_set_functions(mca_btl_base_module_t *super)
{
    super->btl_component = &mca_btl_openib_component.super;
    super->btl_add_procs = module_add_procs;
    super->btl_del_procs = module_del_procs;
    super->btl_finalize = module_finalize;
    super->btl_alloc = ofo_alloc;
    super->btl_free = ofo_free;
    super->btl_prepare_src = ofo_prepare_src;
    super->btl_send = ofo_send;
    super->btl_sendi = ofo_sendi;
    super->btl_put = ofo_put;
    super->btl_get = ofo_get;
    super->btl_dump = module_dump;
    super->btl_register_mem = ofo_register_mem;
    super->btl_deregister_mem = ofo_deregister_mem;
    super->btl_register_error = module_register_error;
    super->btl_flush = module_flush;
    super->btl_registration_handle_size = sizeof(mca_btl_base_registration_handle_t);
}

/* Prepares everything but the service thread, which starts when all modules are ready. */
static int prepare(ofo_module_t *module)
{
    ofo_mailbox_init(&module->inbox);
    ofo_mailbox_init(&module->service_inbox);
    make_lists(module);
    OBJ_CONSTRUCT(&module->rdmas, opal_free_list_t);
    bfo_arrival_init(&module->got.base, &module->got.segment);
    module->use_eager_rdma = 1 == OFO.params.use_eager_rdma && 0 == OFO.params.blocking_progress /* no event announces a written slot */
                             && module->transport->fills_upwards;
    module->ring = calloc(OFO.params.max_eager_rdma + 1, sizeof(*module->ring));
    if (NULL == module->ring) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    module->random = OFO.record.incarnation ^ (uint32_t) (module->port_index * 64 + module->lane);
    ofo_module_set_functions(&module->super);
    ofo_ext_fill(module);
    module->ext.guard = ofo_guard;
    if (OPAL_SUCCESS != ofo_sleep_open(module) || OPAL_SUCCESS != init_lists(module) || OPAL_SUCCESS != ofo_srqs_create(module)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OFO.cpc->create(module);
}

/* The key makes the text appear once for each port. */
static void say_unusable(const ofo_module_t *module, int error)
{
    char key[64];

    snprintf(key, sizeof(key), "no %s %s", '\0' != module->no_calls[0] ? "connections" : "resources", module->name);
    if ('\0' != module->no_calls[0]) {
        bfo_help_say_once(key, OFO_HELP_FILE, "no connections", module->name, OFO.cpc->name, module->no_calls);
    } else {
        bfo_help_say_once(key, OFO_HELP_FILE, "no resources", module->name, 0 == error ? "not known" : strerror(error));
    }
}

int ofo_module_init(ofo_module_t *module)
{
    int rc;

    errno = 0;
    rc = prepare(module);
    if (OPAL_SUCCESS != rc) {
        say_unusable(module, errno);
    }
    return rc;
}
