/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The command `bfo`: runs the subcommand. Under the name mpirun or mpiexec it acts as that program. DESIGN.txt section 19.
 */
#include "bt.h"

#include <string.h>

#include "bfo_config.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", bt_cmd_run, "start a job that uses bfo: mpirun with bfo's parameters"},
    {"status", bt_cmd_status, "show the jobs of this node, their ports, and what is lost"},
    {"top", bt_cmd_top, "the same, every second, with the traffic of each port"},
    {"events", bt_cmd_events, "show what happened to rails and peers"},
    {"doctor", bt_cmd_doctor, "check this machine before a job starts: installation, ports, times"},
    {"check", bt_cmd_check, "test whether a job survives the loss of each port"},
    {"drain", bt_cmd_drain, "take a port out of service, without a lost message"},
    {"release", bt_cmd_release, "give a drained port back"},
    {"set", bt_cmd_set, "change a parameter of running jobs"},
    {"ftb", bt_cmd_ftb, "exchange fault events with other programs"},
    {"report", bt_cmd_report, "write what a bug report needs into one file"},
    {"clean", bt_cmd_clean, "remove the files that dead jobs left"},
    {"figures", bt_cmd_figures, NULL}, /* for bfo --hosts */
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *out)
{
    fputs("Usage: bfo COMMAND [OPTIONS]\n\nWatch and steer the rails of MPI jobs under the PML bfo.\n\n", out);
    for (int i = 0; i < COMMANDS; ++i) {
        if (NULL != commands[i].help) {
            fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
        }
    }
    fputs("\n'bfo COMMAND --help' says more; see also bfo(1).\n", out);
}

int main(int argc, char **argv)
{
    const char *name = 0 < argc ? basename(argv[0]) : "bfo";

    if (0 == strcmp("mpirun", name) || 0 == strcmp("mpiexec", name)) {
        return bt_as_mpirun(name, argc, argv);
    }
    if (1 < argc) {
        if (0 == strcmp("--help", argv[1]) || 0 == strcmp("-h", argv[1]) || 0 == strcmp("help", argv[1])) {
            usage(stdout);
            return BT_WELL;
        }
        if (0 == strcmp("--version", argv[1]) || 0 == strcmp("-V", argv[1])) {
            puts("bfo " BFO_VERSION);
            return BT_WELL;
        }
        argp_err_exit_status = BT_USAGE;
        for (int i = 0; i < COMMANDS; ++i) {
            if (0 == strcmp(commands[i].name, argv[1])) {
                return commands[i].run(argc - 1, argv + 1);
            }
        }
        fprintf(stderr, "bfo: there is no command '%s'\n", argv[1]);
    }
    usage(stderr);
    return BT_USAGE;
}
