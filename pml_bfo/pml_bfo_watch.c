/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Sends of which MPI's own components want to hear by a callback. osc/pt2pt frees a window behind a barrier, and the callback
 * of an answer that it sent before counts in the window's memory. Over several rails the barrier may come before the answer
 * is done: it goes by another rail, or the answer has to be sent again. So MPI_Comm_free of the communicator that such sends
 * use, which osc/pt2pt calls between the barrier and that memory's end, waits for their callbacks. DESIGN.txt section 14.3.
 */
#include "pml_bfo.h"

#include "pml_bfo_watch.h"

#include "ompi/attribute/attribute.h"
#include "opal/runtime/opal_progress.h"

#include <unistd.h>

static int key = MPI_KEYVAL_INVALID;

static int no_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag, MPI_Comm other)
{
    *flag = 0;
    return MPI_SUCCESS;
}

/* Every such send ends: delivered, or failed with its peer. Context: MPI_Comm_free, outside all locks. */
static int wait_for_callbacks(MPI_Comm comm, int keyval, void *value, void *extra)
{
    const bfo_comm_t *bc = bfo_comm_of(comm);

    while (bfo.enabled && NULL != bc && 0 < __atomic_load_n(&bc->n_watched, __ATOMIC_SEQ_CST)) {
        opal_progress();
        usleep(50);
    }
    return MPI_SUCCESS;
}

int bfo_watch_key(MPI_Comm_delete_attr_function *at_end, int *keyval)
{
    ompi_attribute_fn_ptr_union_t copy = {.attr_communicator_copy_fn = no_copy};
    ompi_attribute_fn_ptr_union_t delete = {.attr_communicator_delete_fn = at_end};

    return ompi_attr_create_keyval(COMM_ATTR, copy, delete, keyval, NULL, 0, NULL);
}

int bfo_watch_open(void)
{
    return bfo_watch_key(wait_for_callbacks, &key);
}

void bfo_watch_begin(ompi_communicator_t *comm)
{
    bfo_comm_t *bc = bfo_comm_of(comm);

    (void) __atomic_add_fetch(&bc->n_watched, 1, __ATOMIC_SEQ_CST);
    if (!OMPI_COMM_IS_INTRINSIC(comm) && !__atomic_exchange_n(&bc->is_watched, true, __ATOMIC_SEQ_CST)) {
        (void) ompi_attr_set_c(COMM_ATTR, comm, &comm->c_keyhash, key, NULL, false); /* without memory nobody waits */
    }
}

void bfo_watch_end(const ompi_communicator_t *comm)
{
    (void) __atomic_sub_fetch(&bfo_comm_of(comm)->n_watched, 1, __ATOMIC_SEQ_CST);
}
