/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI_T performance variables btl_openib_port_*, under any PML. They have one value for each module, that is a port or a lane of a port;
 * btl_openib_port_names has the names of the ports. See DESIGN.txt 15.
 */
#include "door/btl_openib_pvars.h"

#include "bfo_assert.h"

#include "opal/mca/base/mca_base_pvar.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name, *text;
    size_t offset; /* in the module; SIZE_MAX: the value is in the module's traffic, at `in_traffic` */
    size_t in_traffic;
} variable_t;

/* clang-format off */
#define COUNT(name, text) {"port_" #name, text, offsetof(ofo_module_t, count.name), 0}
#define TRAFFIC(name, text) {"port_" #name, text, SIZE_MAX, offsetof(bfo_traffic_t, name)}
/* clang-format on */
static const variable_t variables[] = {
    TRAFFIC(sent_messages, "messages that each port has sent"),
    TRAFFIC(sent_bytes, "their bytes, with headers"),
    TRAFFIC(received_messages, "messages that each port has received"),
    TRAFFIC(received_bytes, "their bytes, with headers"),
    TRAFFIC(written_bytes, "bytes that each port has written by RDMA"),
    TRAFFIC(read_bytes, "bytes that each port has read by RDMA"),
    COUNT(queued_sends, "messages that had to wait for a slot, for a credit or for the connection"),
    COUNT(queued_rdma, "RDMA operations that had to wait"),
    COUNT(connects, "connections that each port has made"),
    COUNT(errors, "rails that failed by an error of a work request"),
    COUNT(fences, "failed connections of which everything has come back"),
    COUNT(lossy_fences, "failed connections of which not everything came back in time"),
    COUNT(late_receives, "messages that came after the end of their connection, dropped"),
    COUNT(bad_messages, "messages that were refused because their headers are wrong"),
    COUNT(ctl_in, "control messages that have come"),
    COUNT(ctl_out, "control messages that were sent"),
    COUNT(keepalives, "questions to silent peers"),
    COUNT(inquiries, "inquiries whether a rail is silent, because work did not end here or at the peer"),
    COUNT(questions, "questions that were sent for inquiries"),
    COUNT(followed, "inquiries that found a rail silent by the questions of other rails of the same path"),
    COUNT(silent_rails, "rails that were silent while another rail to the same process was not"),
    COUNT(soft_rails, "rails that got no new work for a while, because they seemed silent"),
    COUNT(copies, "messages of such rails that were sent a second time over another rail"),
};

static int read_values(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const variable_t *variable = pvar->ctx;
    unsigned long long *values = value;

    memset(values, 0, OFO_MAX_MODULES * sizeof(*values));
    for (unsigned m = 0; m < OFO.module_count && m < OFO_MAX_MODULES; ++m) {
        ofo_module_t *module = OFO.module[m];
        const char *in = SIZE_MAX == variable->offset ? (const char *) bfo_traffic_of(&module->ext) + variable->in_traffic
                                                      : (const char *) module + variable->offset;

        values[m] = __atomic_load_n((const uint64_t *) in, __ATOMIC_RELAXED);
    }
    return OPAL_SUCCESS;
}

static int values_notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = OFO_MAX_MODULES;
    }
    return OPAL_SUCCESS;
}

enum { NAMES = OFO_MAX_MODULES * (OFO_PORT_NAME_LEN + 1) };

static int read_names(const mca_base_pvar_t *pvar, void *value, void *object)
{
    char *text = value;
    size_t at = 0;

    memset(text, 0, NAMES);
    for (unsigned m = 0; m < OFO.module_count && m < OFO_MAX_MODULES; ++m) {
        at += (size_t) snprintf(text + at, NAMES - at, "%s%.*s", 0 == m ? "" : ",", OFO_PORT_NAME_LEN - 1, OFO.module[m]->name);
        BFO_ASSERT(at < NAMES); /* no name is cut */
    }
    return OPAL_SUCCESS;
}

static int names_notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = NAMES;
    }
    return OPAL_SUCCESS;
}

void ofo_pvars_register(const mca_base_component_t *component)
{
    const mca_base_pvar_flag_t flags = MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS;

    (void) mca_base_component_pvar_register(
        component, "port_names", "names of the ports of the variables btl_openib_port_*, in their order, with commas between", OPAL_INFO_LVL_4,
        MCA_BASE_PVAR_CLASS_GENERIC, MCA_BASE_VAR_TYPE_STRING, NULL, MCA_BASE_VAR_BIND_NO_OBJECT, flags, read_names, NULL, names_notify, NULL);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
        (void) mca_base_component_pvar_register(component, variables[i].name, variables[i].text, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
                                                MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT, flags, read_values, NULL,
                                                values_notify, (void *) &variables[i]);
    }
}
