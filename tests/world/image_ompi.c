/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stands in for the parts of Open MPI around the PML and the BTL of one process. See image_ompi.h.
 */
#include "image_day.h"

#include "failover/pml_bfo_drain.h"
#include "formats/pml_bfo_life.h"
#include "door/pml_bfo_module.h"

#include "bfo_figures.h"
#include "formats/btl_openib_paths_file.h"

#include "ompi/attribute/attribute.h"
#include "ompi/group/group.h"
#include "ompi/mca/bml/base/base.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/btl/base/base.h"
#include "opal/runtime/opal.h"
#include "opal/util/proc.h"

#include <stdarg.h>
#include <string.h>

enum { JOB = 77, KEYS = 16, PROGRESSES = 8 };

ompi_predefined_communicator_t image_comm_self, image_comm_world;
ompi_communicator_t *image_world = &image_comm_world.comm, *image_other;
opal_free_list_t image_send_requests, image_recv_requests;
bool image_uses_threads;
opal_process_info_t image_process_info;
opal_pmix_base_module_t image_pmix;
opal_event_base_t *image_event_base;
int image_leave_pinned;
opal_mutex_t image_bml_lock;

static ompi_proc_t *procs[WORLD_MAX_PROCESSES];
static int (*progresses[PROGRESSES])(void);

/* ---- progress ------------------------------------------------------------------------------------------- */

int image_progress_register(int (*does)(void))
{
    for (int i = 0; i < PROGRESSES; ++i) {
        if (NULL == progresses[i]) {
            progresses[i] = does;
            return OPAL_SUCCESS;
        }
    }
    world_broken("too many functions are registered for progress");
}

int image_progress_unregister(int (*does)(void))
{
    for (int i = 0; i < PROGRESSES; ++i) {
        if (does == progresses[i]) {
            progresses[i] = NULL;
        }
    }
    return OPAL_SUCCESS;
}

static unsigned found_nothing; /* calls of progress in a row */
static int *drained;           /* the variable pml_bfo_drain */

static unsigned polls; /* until the pause of a process that waits doubles */

enum { TIMER_US = 5000, EVERY_POLL = 128 };

static bfo_steer_t steered; /* the list of the command bfo */

/* Stands for the function that maps the file of the list; the linker exchanges them. */
const bfo_steer_t *__wrap_bfo_figures_steer(uint64_t *obeyed);
const bfo_steer_t *__wrap_bfo_figures_steer(uint64_t *obeyed)
{
    *obeyed = 0;
    return &steered;
}

/* The same for the user's private directory, and for the file of paths in it. */
int __wrap_bfo_figures_directory(void);
int __wrap_bfo_figures_directory(void)
{
    return 0;
}

ofo_paths_file_t *__wrap_ofo_paths_map(int dir);
ofo_paths_file_t *__wrap_ofo_paths_map(int dir)
{
    return world_node_memory(sizeof(ofo_paths_file_t));
}

void __wrap_ofo_paths_unmap(ofo_paths_file_t *file);
void __wrap_ofo_paths_unmap(ofo_paths_file_t *file) {}

uint64_t __wrap_ofo_paths_clock(void);
uint64_t __wrap_ofo_paths_clock(void)
{
    return 0;
}

/* Stands for the command bfo: these ports are drained by force. */
static void drain_by_force(unsigned mask)
{
    static unsigned before;

    if (mask == before) {
        return;
    }
    before = mask;
    steered.n_out = 0;
    steered.forced = 0;
    for (unsigned r = 0; r < 8; ++r) {
        if (0 != (mask >> r & 1)) {
            snprintf(steered.out[steered.n_out], sizeof(steered.out[0]), "w%u:1", r);
            steered.forced |= 1u << steered.n_out++;
        }
    }
    steered.sequence += 2; /* even: nobody writes */
}

/* Stands for the program that writes the variable, and for Open MPI's timer, which this world lacks. */
static void look_at_drains(void)
{
    static uint64_t next;
    const unsigned ports = world_drained();
    struct timespec now;

    (void) world_clock_gettime(CLOCK_MONOTONIC, &now);
    if (NULL != drained && (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000 >= next) {
        next = (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000 + TIMER_US;
        __atomic_store_n(drained, (int) (ports & 0xff), __ATOMIC_RELAXED);
        drain_by_force(ports >> 8);
        bfo_drain_check();
    }
}

/* ---- the runtime's fence and connect, in which all processes meet ------------------------------------------- */

static struct {
    opal_pmix_op_cbfunc_t done; /* NULL: this process is in no meeting */
    void *data;
    unsigned number;
} meeting;

static void look_at_meeting(void)
{
    const opal_pmix_op_cbfunc_t done = meeting.done;

    if (NULL != done && world_barrier_is_over(meeting.number)) {
        meeting.done = NULL;
        done(OPAL_SUCCESS, meeting.data);
    }
}

static int meet_later(opal_pmix_op_cbfunc_t done, void *data)
{
    meeting.data = data;
    meeting.number = world_barrier_join();
    meeting.done = done;
    return OPAL_SUCCESS;
}

static int pmix_fence_nb(opal_list_t *list, int collect, opal_pmix_op_cbfunc_t done, void *data)
{
    return meet_later(done, data);
}

static int pmix_connect_nb(opal_list_t *list, opal_pmix_op_cbfunc_t done, void *data)
{
    return meet_later(done, data);
}

/* Without progress, as in the runtime. */
static int pmix_fence(opal_list_t *list, int collect)
{
    const unsigned mine = world_barrier_join();

    while (!world_barrier_is_over(mine)) {
        world_sleep(50000);
    }
    return OPAL_SUCCESS;
}

static int pmix_connect(opal_list_t *list)
{
    return pmix_fence(list, 0);
}

int image_fence(void)
{
    return image_pmix.fence(NULL, 0);
}

int image_connect(void)
{
    return image_pmix.connect(NULL);
}

/* A process that waits polls without a pause. A long wait may cost the host less: the pause grows with it. */
static uint64_t pause_of_wait(void)
{
    const unsigned doubled = found_nothing / polls;

    return (UINT64_C(300) << (doubled < 16 ? doubled : 16)) + world_draw(300);
}

/* Progress reads its clock in some of its calls only, and a step of a long wait stands for many calls. */
void image_progress(void)
{
    int found;

    if (EVERY_POLL != polls && 2 * polls <= found_nothing) {
        image_day_look();
    }
    found = image_bml_progress();
    for (int i = 0; i < PROGRESSES; ++i) {
        if (NULL != progresses[i]) {
            found += progresses[i]();
        }
    }
    look_at_drains();
    look_at_meeting();
    found_nothing = 0 < found ? 0 : found_nothing + 1;
    world_sleep(pause_of_wait());
}

/* With threads the caller then waits without a pause for the thread that has ended the request; here this thread would never run again. */
int image_sync_wait(ompi_wait_sync_t *sync)
{
    while (0 < sync->count || (image_uses_threads && sync->signaling)) {
        image_progress();
    }
    return OPAL_SUCCESS == sync->status ? OPAL_SUCCESS : OPAL_ERROR;
}

/* ---- processes and their records --------------------------------------------------------------------------- */

opal_proc_t *image_proc_local_get(void)
{
    return &procs[world_rank()]->super;
}

static opal_proc_t *proc_for_name(const opal_process_name_t name)
{
    return JOB == name.jobid && name.vpid < world_ranks() ? &procs[name.vpid]->super : NULL;
}
opal_proc_t *(*image_proc_for_name)(const opal_process_name_t name) = proc_for_name;

struct opal_proc_t *image_ompi_proc_for_name(const opal_process_name_t name)
{
    return proc_for_name(name);
}

char *image_proc_hostname(const opal_proc_t *proc)
{
    return proc->proc_hostname;
}

static int pmix_put(opal_pmix_scope_t scope, opal_value_t *value)
{
    world_put(value->key, value->data.bo.bytes, value->data.bo.size);
    return OPAL_SUCCESS;
}

static int pmix_get(const opal_process_name_t *proc, const char *key, opal_list_t *info, opal_value_t **value)
{
    size_t size;
    const void *bytes;

    *value = OBJ_NEW(opal_value_t);
    if (0 == strcmp(key, OPAL_PMIX_NODEID)) {
        (*value)->type = OPAL_UINT32;
        (*value)->data.uint32 = world_node_of(proc->vpid);
        return OPAL_SUCCESS;
    }
    bytes = world_get(proc->vpid, key, &size);
    if (NULL == bytes) {
        OBJ_RELEASE(*value);
        return OPAL_ERR_NOT_FOUND;
    }
    (*value)->type = OPAL_BYTE_OBJECT;
    (*value)->data.bo.bytes = memcpy(malloc(size), bytes, size);
    (*value)->data.bo.size = (int32_t) size;
    return OPAL_SUCCESS;
}

/* Process ids of the world: rank and 1. */
bfo_life_t bfo_life_own(uint32_t number)
{
    return (bfo_life_t){.node = world_node() + 1, .started = 1, .pid = world_rank() + 1};
}

uint64_t bfo_life_started(uint32_t pid)
{
    return 1;
}

bfo_life_answer_t bfo_life_of(const bfo_life_t *own, const bfo_life_t *its)
{
    if (own->node != its->node) {
        return BFO_PROCESS_UNKNOWN;
    }
    return world_process_is_dead(its->pid - 1) ? BFO_PROCESS_DEAD : BFO_PROCESS_ALIVE;
}

/* ---- parameters ------------------------------------------------------------------------------------------------ */

static void set(mca_base_var_type_t type, void *storage, const char *text)
{
    const unsigned long long value = strtoull(text, NULL, 10);

    switch (type) {
    case MCA_BASE_VAR_TYPE_INT:
        *(int *) storage = (int) strtol(text, NULL, 10);
        break;
    case MCA_BASE_VAR_TYPE_UNSIGNED_INT:
        *(unsigned *) storage = (unsigned) value;
        break;
    case MCA_BASE_VAR_TYPE_SIZE_T:
        *(size_t *) storage = (size_t) value;
        break;
    case MCA_BASE_VAR_TYPE_BOOL:
        *(bool *) storage = 0 != value;
        break;
    case MCA_BASE_VAR_TYPE_STRING:
        *(char **) storage = strdup(text);
        break;
    default:
        world_broken("a parameter has a type that this world does not know");
    }
}

int image_parameter(const mca_base_component_t *component, const char *name, const char *text, mca_base_var_type_t type, mca_base_var_enum_t *values,
                    int bind, mca_base_var_flag_t flags, mca_base_var_info_lvl_t level, mca_base_var_scope_t scope, void *storage)
{
    char whole[200];
    const char *value;

    snprintf(whole, sizeof(whole), "%s_%s_%s", component->mca_type_name, component->mca_component_name, name);
    if (0 == strcmp("pml_bfo_drain", whole)) {
        drained = storage;
    }
    value = world_parameter(whole);
    if (NULL != value) {
        set(type, storage, value);
    }
    return 1;
}

int image_btl_parameters(mca_base_component_t *component, mca_btl_base_module_t *module)
{
    const struct {
        const char *name;
        size_t *value;
    } all[] = {
        {"eager_limit", &module->btl_eager_limit},
        {"rndv_eager_limit", &module->btl_rndv_eager_limit},
        {"max_send_size", &module->btl_max_send_size},
        {"rdma_pipeline_send_length", &module->btl_rdma_pipeline_send_length},
        {"rdma_pipeline_frag_size", &module->btl_rdma_pipeline_frag_size},
        {"min_rdma_pipeline_size", &module->btl_min_rdma_pipeline_size},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        (void) image_parameter(component, all[i].name, "", MCA_BASE_VAR_TYPE_SIZE_T, NULL, 0, 0, OPAL_INFO_LVL_1, MCA_BASE_VAR_SCOPE_LOCAL,
                               all[i].value);
    }
    return OPAL_SUCCESS;
}

int image_pvar(const mca_base_component_t *component, const char *name, const char *text, mca_base_var_info_lvl_t level, int class,
               mca_base_var_type_t type, mca_base_var_enum_t *values, int bind, mca_base_pvar_flag_t flags, mca_base_get_value_fn_t get,
               mca_base_set_value_fn_t set_value, mca_base_notify_fn_t notify, void *context)
{
    return 1;
}

int image_var_find(const char *project, const char *type, const char *component, const char *name)
{
    return -1;
}

int image_var_value(int variable, const void *value, mca_base_var_source_t *source, const char **file)
{
    return OPAL_ERR_NOT_FOUND;
}

int image_var_synonym(int of, const char *project, const char *framework, const char *component, const char *name, mca_base_var_syn_flag_t flags)
{
    return 1;
}

/* ---- other calls ------------------------------------------------------------------------------------------------------------ */

static MPI_Comm_delete_attr_function *at_end[KEYS];
static int keys;
static MPI_Comm_delete_attr_function *at_finalize;
static struct {
    const void *comm;
    int key;
} attributes[KEYS]; /* of communicators that end before MPI_Finalize */

int image_attr_key(ompi_attribute_type_t type, ompi_attribute_fn_ptr_union_t copy, ompi_attribute_fn_ptr_union_t ends, int *key, void *extra,
                   int flags, void *bindings)
{
    *key = keys;
    at_end[keys++] = ends.attr_communicator_delete_fn;
    return OMPI_SUCCESS;
}

int image_attr_set(ompi_attribute_type_t type, void *object, opal_hash_table_t **hash, int key, void *value, bool predefined)
{
    if (object == &image_comm_self.comm) {
        at_finalize = at_end[key];
        return OMPI_SUCCESS;
    }
    for (int i = 0; i < KEYS; ++i) {
        if (NULL == attributes[i].comm) {
            attributes[i].comm = object;
            attributes[i].key = key;
            return OMPI_SUCCESS;
        }
    }
    world_broken("communicators have too many attributes");
}

void image_output(int stream, const char *format, ...)
{
    char line[400];
    va_list values;

    va_start(values, format);
    vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    world_says("%s", line);
}

int image_getifaddrs(struct ifaddrs **list)
{
    *list = NULL;
    return 0;
}

int image_no_memory_hooks(void)
{
    return 0;
}

int image_no_topology(void)
{
    return OPAL_ERR_NOT_SUPPORTED;
}

int image_errhandler(ompi_errhandler_t *handler, void *object, int type, int error, const char *message)
{
    return error;
}

/* ---- MPI_Init, MPI_Finalize ---------------------------------------------------------------------------------------------------- */

static void comm_begin(ompi_communicator_t *comm, uint32_t context, ompi_group_t *group, int rank)
{
    OBJ_CONSTRUCT(comm, ompi_communicator_t);
    comm->c_contextid = context;
    comm->c_my_rank = rank;
    comm->c_local_group = comm->c_remote_group = group;
}

static ompi_group_t *group_of(ompi_proc_t **first, unsigned n)
{
    ompi_group_t *group = OBJ_NEW(ompi_group_t);

    group->grp_proc_count = (int) n;
    group->grp_proc_pointers = memcpy(malloc(n * sizeof(ompi_proc_t *)), first, n * sizeof(ompi_proc_t *));
    return group;
}

static void processes_begin(void)
{
    static char hosts[WORLD_MAX_PROCESSES][8];

    for (unsigned r = 0; r < world_ranks(); ++r) {
        procs[r] = OBJ_NEW(ompi_proc_t);
        snprintf(hosts[r], sizeof(hosts[r]), "n%u", world_node_of(r));
        procs[r]->super.proc_name = (opal_process_name_t){.jobid = JOB, .vpid = r};
        procs[r]->super.proc_arch = opal_local_arch;
        procs[r]->super.proc_convertor = opal_convertor_create((int32_t) opal_local_arch, 0);
        procs[r]->super.proc_hostname = hosts[r];
    }
}

/* MPI_Init and MPI_Finalize wait in the runtime's barrier with progress. */
static void barrier(void)
{
    const unsigned mine = world_barrier_join();

    while (!world_barrier_is_over(mine)) {
        image_progress();
    }
}

void image_begin(bool threads)
{
    int priority = 0;

    image_uses_threads = threads;
    polls = world_plan_of("polls");
    processes_begin();
    world_memory_begin();
    image_pmix.get = pmix_get;
    image_pmix.put = pmix_put;
    image_pmix.fence = pmix_fence;
    image_pmix.fence_nb = pmix_fence_nb;
    image_pmix.connect = pmix_connect;
    image_pmix.connect_nb = pmix_connect_nb;
    OBJ_CONSTRUCT(&image_bml_lock, opal_mutex_t);
    OBJ_CONSTRUCT(&image_send_requests, opal_free_list_t);
    OBJ_CONSTRUCT(&image_recv_requests, opal_free_list_t);
    must_be(OMPI_SUCCESS == mca_pml_bfo_component.pmlm_version.mca_register_component_params(), "register parameters");
    must_be(OMPI_SUCCESS == mca_pml_bfo_component.pmlm_version.mca_open_component(), "open the PML");
    must_be(NULL != mca_pml_bfo_component.pmlm_init(&priority, false, threads), "make the PML");
    must_be(OMPI_SUCCESS == bfo_module.pml_enable(true), "enable the PML");
    must_be(NULL != drained, "drain ports");
    barrier();
    must_be(OMPI_SUCCESS == bfo_module.pml_add_procs(&procs[world_rank()], 1), "add itself");
    comm_begin(&image_comm_world.comm, 0, group_of(procs, world_ranks()), (int) world_rank());
    comm_begin(&image_comm_self.comm, 1, group_of(&procs[world_rank()], 1), 0);
    must_be(OMPI_SUCCESS == bfo_module.pml_add_comm(&image_comm_world.comm), "add MPI_COMM_WORLD");
    must_be(OMPI_SUCCESS == bfo_module.pml_add_comm(&image_comm_self.comm), "add MPI_COMM_SELF");
}

void image_dup(void)
{
    static ompi_communicator_t other;

    comm_begin(&other, 2, group_of(procs, world_ranks()), (int) world_rank());
    must_be(OMPI_SUCCESS == bfo_module.pml_add_comm(&other), "add a communicator");
    image_other = &other;
}

ompi_communicator_t *image_comm_make(uint32_t context)
{
    ompi_communicator_t *comm = malloc(sizeof(*comm));

    comm_begin(comm, context, group_of(procs, world_ranks()), (int) world_rank());
    must_be(OMPI_SUCCESS == bfo_module.pml_add_comm(comm), "add a communicator");
    return comm;
}

void image_comm_free(ompi_communicator_t *comm)
{
    for (int i = 0; i < KEYS; ++i) {
        if (comm == attributes[i].comm) {
            attributes[i].comm = NULL;
            (void) at_end[attributes[i].key](comm, attributes[i].key, NULL, NULL);
        }
    }
    (void) bfo_module.pml_del_comm(comm);
    memset(comm, 0xee, sizeof(*comm));
    free(comm);
}

void image_end(void)
{
    if (NULL != at_finalize) {
        (void) at_finalize(&image_comm_self.comm, 0, NULL, NULL);
    }
    barrier();
    if (NULL != image_other) {
        (void) bfo_module.pml_del_comm(image_other);
    }
    (void) bfo_module.pml_del_comm(&image_comm_self.comm);
    (void) bfo_module.pml_del_comm(&image_comm_world.comm);
    (void) bfo_module.pml_del_procs(procs, world_ranks());
    (void) mca_pml_bfo_component.pmlm_finalize();
}
