/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where bfo changes Open MPI beyond the interface of a PML: three places at which MPI would go on too early, and one at which MPI
 * would wait without progress. Each of them waits with progress and leaves the core to other processes meanwhile.
 * DESIGN.txt sections 14.3 and 14.6.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover_peer.h"
#include "door/pml_bfo_hooks.h"
#include "show/pml_bfo_notify.h"
#include "show/pml_bfo_tell.h"

#include "ompi/attribute/attribute.h"
#include "opal/runtime/opal_progress.h"

#include <unistd.h>

static int no_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag BFO_OMPI_COPY_ATTR_REST)
{
    *flag = 0;
    return MPI_SUCCESS;
}

/* A key for attributes that a duplicate of a communicator does not inherit; MPI calls `at_end` when it frees the communicator. */
static int end_key(MPI_Comm_delete_attr_function *at_end, int *keyval)
{
    ompi_attribute_fn_ptr_union_t copy = {.attr_communicator_copy_fn = no_copy};
    ompi_attribute_fn_ptr_union_t delete = {.attr_communicator_delete_fn = at_end};

    return ompi_attr_create_keyval(COMM_ATTR, copy, delete, keyval, NULL, 0, NULL);
}

/* ---- MPI_Comm_free: by an attribute of the communicator ---------------------------------------------------
 * MPI's own components set a callback on some sends. osc/pt2pt frees a window after a barrier, and the callback of an answer that it
 * sent before the barrier writes to the window's memory. Over several rails the barrier may end before the answer does, because
 * the barrier uses another rail, or because the answer must be sent again. Therefore MPI_Comm_free of the communicator that such sends
 * use waits for their callbacks; osc/pt2pt calls it between the barrier and the release of that memory. DESIGN.txt
 * section 14.3. */
static int free_key = MPI_KEYVAL_INVALID;

/* The loop ends, because every such send is delivered or fails with its peer. Context: MPI_Comm_free, outside all locks. */
static int wait_for_callbacks(MPI_Comm comm, int keyval, void *value, void *extra)
{
    const bfo_comm_t *bc = bfo_comm_of(comm);

    while (bfo.enabled && NULL != bc && 0 < __atomic_load_n(&bc->n_watched, __ATOMIC_SEQ_CST)) {
        opal_progress();
        usleep(50);
    }
    return MPI_SUCCESS;
}

void bfo_hooks_callback_is_owed(ompi_communicator_t *comm, bool is_onesided)
{
    bfo_comm_t *bc = bfo_comm_of(comm);

    if (is_onesided) {
        __atomic_store_n(&bc->is_window, true, __ATOMIC_RELAXED);
    }
    (void) __atomic_add_fetch(&bc->n_watched, 1, __ATOMIC_SEQ_CST);
    if (!OMPI_COMM_IS_INTRINSIC(comm) && !__atomic_exchange_n(&bc->is_watched, true, __ATOMIC_SEQ_CST)) {
        (void) ompi_attr_set_c(COMM_ATTR, comm, &comm->c_keyhash, free_key, NULL, false); /* without memory MPI_Comm_free does not wait */
    }
}

/* ---- MPI_Finalize: by an attribute of MPI_COMM_SELF -------------------------------------------------------
 * MPI_Finalize first deletes the attributes of MPI_COMM_SELF, and then joins a barrier, after which no process answers any more.
 * Therefore everything that was sent must have reached its receiver before this process joins. */
#if PML_BFO
static int flush_at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    bfo_notify_close();
    bfo_failover_flush();
    bfo_tell_rails(NULL);
    return OMPI_SUCCESS;
}

static int hook_finalize(void)
{
    ompi_communicator_t *self = &ompi_mpi_comm_self.comm;
    int self_key = MPI_KEYVAL_INVALID;
    const int rc = end_key(flush_at_finalize, &self_key); /* a duplicate of MPI_COMM_SELF flushes nothing */

    return OMPI_SUCCESS == rc ? ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, self_key, NULL, false) : rc;
}
#else
static int hook_finalize(void)
{
    return OMPI_SUCCESS;
}
#endif /* PML_BFO */

/* ---- MPI_Comm_disconnect: by the fence of the runtime -----------------------------------------------------
 * MPI_Comm_disconnect waits in a fence of the runtime, inside which MPI makes no progress, and it calls no function of a PML
 * before. A message that must be sent again would never be sent, and its receiver, which has not reached that fence yet, would
 * wait forever. Therefore bfo replaces the fence while rails with failover are in use: it flushes, then waits in the runtime's fence with
 * progress. */
#if PML_BFO && BFO_OMPI_HAS_RUNTIME_HOOKS
static opal_pmix_base_module_fence_fn_t runtime_fence;
static opal_pmix_base_module_connect_fn_t runtime_connect;

static void runtime_is_done(int status, void *done)
{
    __atomic_store_n((int *) done, OPAL_SUCCESS == status ? 1 : status, __ATOMIC_RELEASE);
}

/* `rc`: OPAL_SUCCESS if the runtime has begun and will call runtime_is_done(). Returns the result of the runtime. */
static int wait_with_progress(int rc, int *done)
{
    while (OPAL_SUCCESS == rc && 0 == __atomic_load_n(done, __ATOMIC_ACQUIRE)) {
        opal_progress();
        usleep(50);
    }
    return OPAL_SUCCESS == rc && 1 != *done ? *done : rc;
}

static bool is_wanted(void)
{
    return bfo.enabled && NULL != bfo.failover_component;
}

static int fence(opal_list_t *procs, int collect)
{
    int done = 0;

    if (!is_wanted()) {
        return runtime_fence(procs, collect);
    }
    bfo_failover_flush();
    return wait_with_progress(opal_pmix.fence_nb(procs, collect, runtime_is_done, &done), &done);
}

/* ---- MPI_Comm_spawn, _connect, _accept: by the runtime's connect ---------------------------------------------
 * Both sides meet in a call of the runtime that ends when all processes have called it. A process may need a message that another one sent
 * before its call, in order to call too. No flush is needed, because no process leaves: progress until the end is enough. */
static int connect_procs(opal_list_t *procs)
{
    int done = 0;

    return !is_wanted() ? runtime_connect(procs) : wait_with_progress(opal_pmix.connect_nb(procs, runtime_is_done, &done), &done);
}

static void hook_runtime(void)
{
    if (NULL == runtime_fence && NULL != opal_pmix.fence && NULL != opal_pmix.fence_nb) {
        runtime_fence = opal_pmix.fence;
        opal_pmix.fence = fence;
    }
    if (NULL == runtime_connect && NULL != opal_pmix.connect && NULL != opal_pmix.connect_nb) {
        runtime_connect = opal_pmix.connect;
        opal_pmix.connect = connect_procs;
    }
}

void bfo_hooks_close(void)
{
    if (NULL != runtime_fence) {
        opal_pmix.fence = runtime_fence;
        runtime_fence = NULL;
    }
    if (NULL != runtime_connect) {
        opal_pmix.connect = runtime_connect;
        runtime_connect = NULL;
    }
}
#else
static void hook_runtime(void) {}
void bfo_hooks_close(void) {}
#endif /* PML_BFO && BFO_OMPI_HAS_RUNTIME_HOOKS */

int bfo_hooks_open(void)
{
    const int rc = end_key(wait_for_callbacks, &free_key);

    hook_runtime();
    return OMPI_SUCCESS == rc ? hook_finalize() : rc;
}
