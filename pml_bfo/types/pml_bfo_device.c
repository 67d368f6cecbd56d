/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Buffers in device memory (CUDA): a convertor prepared for such a buffer has a flag, and its pack and unpack reach the memory. For the
 * PML such a buffer is not flat: the PML copies only with the convertor and registers nothing. DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

bool bfo_buffer_is_on_device(const ompi_datatype_t *datatype, size_t count, const void *base)
{
    opal_convertor_t convertor;
    bool is;

    if (0 == count || 0 == datatype->super.size) {
        return false;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &datatype->super, count, base, 0, &convertor);
    is = BFO_OMPI_IS_ON_DEVICE(&convertor);
    OBJ_DESTRUCT(&convertor);
    return is;
}
