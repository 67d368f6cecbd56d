/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Protection domains: a number, unique in this process, that memory regions and queue pairs must share.
 * DESIGN.txt 16.
 */
#include "sr_device.h"
#include "sr_pd.h"

#include <errno.h>
#include <stdlib.h>

struct ibv_pd *sr_pd_alloc(struct ibv_context *context)
{
    static _Atomic uint32_t next_id;
    struct sr_pd *pd;
    int rc = sr_device_check(context);

    if (0 != rc || NULL == (pd = calloc(1, sizeof(*pd)))) {
        errno = 0 != rc ? rc : ENOMEM;
        return NULL;
    }
    pd->id = atomic_fetch_add(&next_id, 1) + 1;
    pd->ibv.context = context;
    pd->ibv.handle = pd->id;
    return &pd->ibv;
}

int sr_pd_free(struct ibv_pd *ibv)
{
    if (0 != atomic_load(&sr_pd(ibv)->uses)) {
        return EBUSY;
    }
    free(ibv);
    return 0;
}
