/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The world of fuzz_world.h: it stands in for Open MPI: processes, communicators, the modex. One life of the PML follows
 * another. DESIGN.txt section 18.
 */
#include "fuzz_world.h"

#include "failover/pml_bfo_drain.h"
#include "failover/pml_bfo_failover_peer.h"
#include "arrivals/pml_bfo_recv_dispatch.h"
#include "failover/pml_bfo_witness.h"

#include "ompi/errhandler/errhandler.h"
#include "ompi/group/group.h"
#include "ompi/mca/bml/base/base.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal.h"
#include "opal/util/proc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ompi_communicator_t *world_comm[WORLD_COMMS];
ompi_proc_t *world_proc[WORLD_RANKS];
ompi_datatype_t *world_strided;
bool world_third_rail, world_second_is_safe;
bfo_life_t world_life[WORLD_RANKS];
void (*world_on_output)(const char *line);
unsigned world_handled;
const void *world_handled_last;

void fuzz_output(int stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fuzz_progress(void);
int fuzz_progress_register(int (*progress)(void));
int fuzz_progress_register_lp(int (*progress)(void));
int fuzz_progress_unregister(int (*progress)(void));

/* ---- Open MPI's side --------------------------------------------------------------------------------- */

/* Puts the module into Open MPI's list of modules. */
void world_list_module(int b)
{
    static mca_btl_base_selected_module_t selected[WORLD_ALL_BTLS];
    static bool is_made;

    if (!is_made) {
        OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
        is_made = true;
    }
    if (NULL == selected[b].btl_module) {
        OBJ_CONSTRUCT(&selected[b], opal_list_item_t);
        selected[b].btl_module = &world_btl[b].super;
        opal_list_append(&mca_btl_base_modules_initialized, &selected[b].super);
    }
}

void fuzz_output(int stream, const char *format, ...)
{
    char line[1000];
    va_list values;

    va_start(values, format);
    vsnprintf(line, sizeof(line), format, values); /* also without a listener, because formatting reads the values of the line */
    va_end(values);
    if (NULL != world_on_output) {
        world_on_output(line);
    }
}

int fuzz_errhandler(ompi_errhandler_t *handler, void *object, int type, int error, const char *message)
{
    ++world_handled;
    world_handled_last = object;
    return error;
}

void (*world_on_progress)(void);

static int (*looks_at_waits)(void), (*looks_at_ports)(void);

void fuzz_progress(void)
{
    if (NULL != world_on_progress) {
        world_on_progress();
    }
    (void) bfo_progress();
    if (NULL != looks_at_waits) {
        (void) looks_at_waits();
    }
    bfo_drain_check(); /* stands for the timer, which this world lacks */
    if (NULL != looks_at_ports) {
        (void) looks_at_ports();
    }
}

int fuzz_progress_register(int (*progress)(void))
{
    if (bfo_progress != progress) {
        looks_at_waits = progress;
    }
    return OPAL_SUCCESS;
}

int fuzz_progress_register_lp(int (*progress)(void))
{
    looks_at_ports = progress;
    return OPAL_SUCCESS;
}

int fuzz_progress_unregister(int (*progress)(void))
{
    looks_at_waits = progress == looks_at_waits ? NULL : looks_at_waits;
    looks_at_ports = progress == looks_at_ports ? NULL : looks_at_ports;
    return OPAL_SUCCESS;
}

bool world_looks_at_ports(void)
{
    return NULL != looks_at_ports;
}

static int bml_register(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t handler, void *data)
{
    world_btl_handler(tag, handler);
    return OMPI_SUCCESS;
}

static int bml_add_proc(struct ompi_proc_t *proc)
{
    return OMPI_ERR_UNREACH;
}

/* Every peer speaks our protocol. */
static int modex_get(const opal_process_name_t *proc, const char *key, opal_list_t *info, opal_value_t **value)
{
    opal_value_t *kv = OBJ_NEW(opal_value_t);
    bfo_modex_t theirs = bfo.modex;

    theirs.life = world_life[proc->vpid];
    kv->type = OPAL_BYTE_OBJECT;
    kv->data.bo.bytes = malloc(sizeof(bfo_modex_t));
    kv->data.bo.size = sizeof(bfo_modex_t);
    memcpy(kv->data.bo.bytes, &theirs, sizeof(theirs));
    *value = kv;
    return OPAL_SUCCESS;
}

static void rail_add(mca_bml_base_endpoint_t *endpoint, int b)
{
    mca_bml_base_btl_t *bml = mca_bml_base_btl_array_insert(&endpoint->btl_send);

    bml->btl = &world_btl[b].super;
    bml->btl_endpoint = (struct mca_btl_base_endpoint_t *) &world_btl[b];
}

static void peer_make(int rank, int first, int n)
{
    ompi_proc_t *proc = OBJ_NEW(ompi_proc_t);
    mca_bml_base_endpoint_t *endpoint = OBJ_NEW(mca_bml_base_endpoint_t);

    proc->super.proc_name = (opal_process_name_t){.jobid = 77, .vpid = (uint32_t) rank};
    proc->super.proc_convertor = opal_convertor_create(opal_local_arch, 0);
    mca_bml_base_btl_array_reserve(&endpoint->btl_send, 4);
    for (int i = 0; i < n; ++i) {
        rail_add(endpoint, first + i);
    }
    if (1 == rank && world_third_rail) {
        rail_add(endpoint, WORLD_BTLS);
    }
    if (n > 0) {
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = endpoint;
    }
    world_proc[rank] = proc;
}

static ompi_communicator_t *comm_make(uint32_t ctx, ompi_group_t *group)
{
    ompi_communicator_t *comm = OBJ_NEW(ompi_communicator_t);

    comm->c_contextid = ctx;
    comm->c_my_rank = 0;
    comm->c_local_group = comm->c_remote_group = group;
    return comm;
}

void world_init(void)
{
    static const mca_btl_base_component_t openib = {.btl_version.mca_component_name = "openib"}, other = {.btl_version.mca_component_name = "other"};
    ompi_group_t *group;
    ompi_proc_t **list = calloc(WORLD_RANKS, sizeof(*list));
    int argc = 0;

    setenv("OMPI_MCA_mca_base_component_path", "/nonexistent", 1);
    setenv("OMPI_MCA_opal_signal", "", 1); /* so that the fuzzer reports a crash */
    if (OPAL_SUCCESS != opal_init_util(&argc, NULL) || OMPI_SUCCESS != ompi_datatype_init()) {
        abort();
    }
    OBJ_CONSTRUCT(&ompi_mpi_communicators, opal_pointer_array_t);
    opal_pointer_array_init(&ompi_mpi_communicators, 8, UINT16_MAX, 8);
    OBJ_CONSTRUCT(&ompi_proc_list, opal_list_t);
    OBJ_CONSTRUCT(&ompi_group_f_to_c_table, opal_pointer_array_t);
    OBJ_CONSTRUCT(&ompi_comm_f_to_c_table, opal_pointer_array_t);
    if (OMPI_SUCCESS != ompi_message_init()) {
        abort();
    }
    opal_pmix.get = modex_get;
    mca_bml.bml_register = bml_register;
    mca_bml.bml_add_proc = bml_add_proc;
    world_btl_make(0, 1, &openib, true);
    world_btl_make(1, 1, &openib, true);
    world_btl_make(2, 2, world_second_is_safe ? &openib : &other, world_second_is_safe);
    if (world_third_rail) {
        world_btl_make(WORLD_BTLS, 1, &openib, true);
    }
    peer_make(0, 0, 0);
    (void) opal_proc_local_set(&world_proc[0]->super);
    peer_make(1, 0, 2);
    peer_make(2, 2, 1);
    group = OBJ_NEW(ompi_group_t);
    memcpy(list, world_proc, sizeof(world_proc));
    group->grp_proc_count = WORLD_RANKS;
    group->grp_proc_pointers = list;
    world_comm[0] = comm_make(0, group);
    world_comm[1] = comm_make(5, group);
    ompi_datatype_create_vector(4, 8, 24, &ompi_mpi_byte.dt, &world_strided);
    (void) ompi_datatype_commit(&world_strided);
    bfo_params.free_list_num = 4;
    bfo_params.free_list_inc = 4;
    bfo_params.last_rail_timeout = 0;
}

/* ---- one life of the PML ----------------------------------------------------------------------------- */

void world_comm_add(void)
{
    (void) opal_pointer_array_set_item(&ompi_mpi_communicators, (int) world_comm[1]->c_contextid, world_comm[1]);
    (void) bfo_add_comm(world_comm[1]);
}

void world_comm_remove(void)
{
    (void) bfo_del_comm(world_comm[1]);
    (void) opal_pointer_array_set_item(&ompi_mpi_communicators, (int) world_comm[1]->c_contextid, NULL);
}

bool world_comm_is_there(void)
{
    return NULL != world_comm[1]->c_pml_comm;
}

void world_begin(void)
{
    world_btl_begin();
    OBJ_CONSTRUCT(&mca_pml_base_send_requests, opal_free_list_t);
    OBJ_CONSTRUCT(&mca_pml_base_recv_requests, opal_free_list_t);
    bfo.failover_component = NULL;
    bfo.modex = (bfo_modex_t){.version = BFO_PROTOCOL_VERSION, .life = world_life[0]};
    if (OMPI_SUCCESS != bfo_module.pml_enable(true) || OMPI_SUCCESS != bfo_dispatch_register() || OMPI_SUCCESS != bfo_drain_register()
        || OMPI_SUCCESS != bfo_witness_register()) {
        abort();
    }
    (void) opal_pointer_array_set_item(&ompi_mpi_communicators, 0, world_comm[0]);
    (void) bfo_add_comm(world_comm[0]);
}

static void complete_all(void)
{
    for (unsigned turn = 0; (world_posted() > 0 || world_fences() > 0 || bfo.n_pending > 0) && turn < 10000; ++turn) {
        if (world_posted() > 0) {
            world_complete(0, OPAL_ERROR);
        } else if (world_fences() > 0) {
            world_fence_done(0, false);
        }
        fuzz_progress();
    }
}

void world_drain(void)
{
    world_refuse_busy = world_refuse_dead = world_refuse_memory = 0;
    for (int b = 0; b < WORLD_ALL_BTLS; ++b) {
        world_rail_fails(&world_btl[b]);
    }
    for (int r = 0; r < WORLD_RANKS; ++r) {
        bfo_peer_t *peer = world_proc[r]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

        if (NULL != peer) {
            bfo_failover_declare(peer, "the end");
        }
    }
    complete_all();
}

void world_end(void)
{
    if (world_comm_is_there()) {
        world_comm_remove();
    }
    (void) bfo_del_comm(world_comm[0]);
    for (int r = 0; r < WORLD_RANKS; ++r) {
        bfo_peer_free(world_proc[r]);
    }
    while (!bfo_link_is_empty(&bfo.held_fins)) {
        bfo_ctl_t *held = bfo_container(bfo.held_fins.next, bfo_ctl_t, work.link);

        bfo_link_remove(&held->work.link);
        opal_free_list_return(&bfo.ctl_list, &held->super);
    }
    bfo_module_finalize();
    OBJ_DESTRUCT(&mca_pml_base_send_requests);
    OBJ_DESTRUCT(&mca_pml_base_recv_requests);
    bfo_ids_free(&bfo.sends);
    bfo_ids_free(&bfo.recvs);
    bfo_ids_free(&bfo.frags);
}
