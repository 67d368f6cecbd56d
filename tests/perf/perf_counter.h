/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The PML's performance variables, for programs that measure around them.
 */
#ifndef PERF_COUNTER_H
#define PERF_COUNTER_H

#include <mpi.h>
#include <stdio.h>

/* Makes a handle, which counts from this moment, or reads a time. Aborts the job if the PML has no such counter. */
static inline MPI_T_pvar_handle perf_counter(MPI_T_pvar_session session, const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;

    if ((MPI_SUCCESS != MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)
         && MPI_SUCCESS != MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &index))
        || MPI_SUCCESS != MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count)) {
        fprintf(stderr, "the PML has no performance variable %s: not bfo\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return handle;
}

#endif /* PERF_COUNTER_H */
