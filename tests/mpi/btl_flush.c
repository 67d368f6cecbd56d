/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Calls btl_flush of the BTL's own module, as osc/rdma would. The BTL announces btl_flush; when it returns, every put and get that was
 * started has called back, for one endpoint and for all; a process that waits in it for something else makes progress. MLX5_SINGLE_THREADED,
 * which removes the locks of libmlx5 that service and progress need, is gone from the environment.
 */
#include "mpi_check.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

enum { PART = 50000, PARTS = 40, HANDLE_MAX = 64, TAG = 1 };

static mca_btl_base_module_t *btl;
static struct mca_btl_base_endpoint_t *ep;
static unsigned called;

static void find_module(void)
{
    mca_btl_base_selected_module_t *selected;
    opal_proc_t *proc = (opal_proc_t *) ompi_comm_peer_lookup((ompi_communicator_t *) MPI_COMM_WORLD, 1 - rank);

    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        if (0 == strcmp("openib", selected->btl_component->btl_version.mca_component_name)) {
            btl = selected->btl_module;
        }
    }
    CHECK(NULL != btl);
    CHECK(OPAL_SUCCESS == btl->btl_add_procs(btl, 1, &proc, &ep, NULL));
    CHECK(NULL != ep);
}

static void done(mca_btl_base_module_t *module, struct mca_btl_base_endpoint_t *endpoint, void *local, mca_btl_base_registration_handle_t *handle,
                 void *context, void *data, int status)
{
    CHECK(OPAL_SUCCESS == status);
    ++called;
}

/* Returns the address of the other rank's memory, and puts its registration handle into `handle`. */
static uint64_t learn(void *own, const void *own_handle, uint8_t *handle)
{
    uint64_t address = (uintptr_t) own, theirs;
    uint8_t copy[HANDLE_MAX] = {0};

    CHECK(HANDLE_MAX >= btl->btl_registration_handle_size);
    memcpy(copy, own_handle, btl->btl_registration_handle_size);
    MPI(MPI_Sendrecv(&address, 8, MPI_BYTE, 1 - rank, TAG, &theirs, 8, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Sendrecv(copy, HANDLE_MAX, MPI_BYTE, 1 - rank, TAG, handle, HANDLE_MAX, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return theirs;
}

/* Rank 0 moves all parts and flushes once. Callbacks run only in progress, therefore none has run before the flush. */
static void move_and_flush(mca_btl_base_module_put_fn_t move, struct mca_btl_base_endpoint_t *of, uint8_t *memory,
                           mca_btl_base_registration_handle_t *own, uint64_t address, uint8_t *handle)
{
    called = 0;
    for (size_t i = 0; i < PARTS; ++i) {
        CHECK(OPAL_SUCCESS
              == move(btl, ep, memory + i * PART, address + i * PART, own, (mca_btl_base_registration_handle_t *) handle, PART, 0, MCA_BTL_NO_ORDER,
                      done, NULL, NULL));
    }
    CHECK(0 == called);
    CHECK(OPAL_SUCCESS == btl->btl_flush(btl, of));
    CHECK(PARTS == called);
}

static void puts_and_gets_are_done_after_flush(struct mca_btl_base_endpoint_t *of)
{
    uint8_t *memory = malloc(PARTS * PART);
    uint8_t handle[HANDLE_MAX];
    mca_btl_base_registration_handle_t *own = btl->btl_register_mem(btl, ep, memory, PARTS * PART, MCA_BTL_REG_FLAG_ACCESS_ANY);
    uint64_t address;

    CHECK(NULL != own);
    address = learn(memory, own, handle);
    fill(memory, PARTS * PART, (uint32_t) rank);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == rank) {
        move_and_flush(btl->btl_put, of, memory, own, address, handle);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(is_filled(memory, PARTS * PART, 0));
    fill(memory, PARTS * PART, 2 + (uint32_t) rank);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == rank) {
        move_and_flush((mca_btl_base_module_put_fn_t) btl->btl_get, of, memory, own, address, handle);
        CHECK(is_filled(memory, PARTS * PART, 3));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(OPAL_SUCCESS == btl->btl_deregister_mem(btl, own));
    free(memory);
}

static void who_waits_in_flush_gets_on(void)
{
    double begin = MPI_Wtime();
    MPI_Request request;
    int number = 0;

    if (0 == rank) {
        MPI(MPI_Irecv(&number, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request));
        while (!REQUEST_COMPLETE((ompi_request_t *) request) && MPI_Wtime() - begin < 10) {
            CHECK(OPAL_SUCCESS == btl->btl_flush(btl, NULL));
        }
        CHECK(REQUEST_COMPLETE((ompi_request_t *) request));
        MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(42 == number);
    } else {
        number = 42;
        MPI(MPI_Send(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(2 == ranks);
    CHECK(NULL == getenv("MLX5_SINGLE_THREADED"));
    find_module();
    CHECK(0 != (btl->btl_flags & MCA_BTL_FLAGS_RDMA_FLUSH));
    CHECK(OPAL_SUCCESS == btl->btl_flush(btl, ep)); /* nothing is in flight */
    puts_and_gets_are_done_after_flush(ep);
    puts_and_gets_are_done_after_flush(NULL);
    who_waits_in_flush_gets_on();
    return finish();
}
