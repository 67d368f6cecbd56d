/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The options of subcommands that say where to read figures. DESIGN.txt section 19.
 */
#include "bt.h"

enum { KEY_DIR = 400, KEY_HOSTS, KEY_RSH };

static const struct argp_option options[] = {
    {"dir", KEY_DIR, "DIR", 0, "the jobs' pml_bfo_status_dir (default: BFO_STATUS_DIR, or " BFO_FIGURES_ROOT ")", 0},
    {"hosts", KEY_HOSTS, "LIST", 0, "ask these nodes instead of this one: names separated by commas", 0},
    {"rsh", KEY_RSH, "COMMAND", 0, "the program that runs a command on a node (default: BFO_RSH, or 'ssh -o BatchMode=yes')", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bt_source_t *source = state->input;

    switch (key) {
    case KEY_DIR:
        source->root = arg;
        return 0;
    case KEY_HOSTS:
        source->hosts = arg;
        return 0;
    case KEY_RSH:
        source->rsh = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp bt_source_argp = {.options = options, .parser = parse};
