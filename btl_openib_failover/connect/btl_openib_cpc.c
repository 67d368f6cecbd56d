/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The connection managers. See DESIGN.txt 15.3.
 */
#include "connect/btl_openib_cpc.h"

#include "connect/btl_openib_connect_rdmacm.h"
#include "connect/btl_openib_connect_ud.h"

#include <string.h>

const ofo_cpc_t *ofo_cpc_find(const char *name, size_t length)
{
    static const ofo_cpc_t *const all[] = {&ofo_cpc_ud, &ofo_cpc_rdmacm};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        if (strlen(all[i]->name) == length && 0 == memcmp(all[i]->name, name, length)) {
            return all[i];
        }
    }
    return NULL;
}
