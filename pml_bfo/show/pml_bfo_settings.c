/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Parameters that change while the job runs. Input: wishes that nobody has checked. Each is accepted or refused by the rules that hold at
 * start; the command bfo and, where it concerns the user, stderr report the result. DESIGN.txt section 19.6.
 */
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "show/pml_bfo_figures.h"
#include "types/pml_bfo_params.h"
#include "show/pml_bfo_settings.h"

#include "opal/util/output.h"

#include <stdio.h>

/* Changes a parameter. False: it keeps its value, and `why` says why. */
static bool change(uint32_t parameter, int64_t value, const char *by, char why[BFO_PARAMS_WHY])
{
    const bool is_right = bfo_params_may_be(parameter, value, why);
    const char *name = bfo_range_of(parameter)->name;
    char text[sizeof(((bfo_figures_event_t *) 0)->cause)];

    snprintf(text, sizeof(text), BFO_PARAMETER_PREFIX "%s = %lld (%s%s%s)", name, (long long) value, by,
             is_right ? "" : "; refused: ", is_right ? "" : why);
    bfo_params_set(parameter, is_right ? value : bfo_params_value(parameter));
    bfo_figures_parameter(parameter, bfo_params_value(parameter), text);
    if (is_right && 0 < bfo_param(verbose)) {
        opal_output(0, "bfo: rank %u: %s", OPAL_PROC_MY_NAME.vpid, text);
    }
    return is_right;
}

void bfo_settings_wish(uint32_t parameter, int64_t value)
{
    char why[BFO_PARAMS_WHY];

    (void) change(parameter, value, "bfo set", why); /* the command bfo reports to the user */
}

bool bfo_settings_are_news(void)
{
    uint32_t parameter;
    int64_t value;

    return bfo_params_asked(&parameter, &value);
}

void bfo_settings_take(void)
{
    char why[BFO_PARAMS_WHY];
    uint32_t parameter;
    int64_t value;

    for (uint32_t i = 0; i < BFO_PARAMETERS_LIVE && bfo_params_asked(&parameter, &value); ++i) {
        if (!change(parameter, value, "MPI_T", why)) {
            char text[32];

            snprintf(text, sizeof(text), "%lld", (long long) value);
            bfo_help_say("help-pml-bfo.txt", "bad-change", bfo_range_of(parameter)->name, text, why);
        }
    }
}
