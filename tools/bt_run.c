/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo run: starts mpirun with the parameters of bfo.conf in its environment, except those that the user sets. Both releases of Open MPI pass such
 * variables to the job; the command line overrides them, and they override files for --tune. DESIGN.txt 19.8.
 */
#include "bt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path_name[] = "mca_base_component_path";

static void help(void)
{
    puts("Usage: bfo run [OPTIONS OF MPIRUN] PROGRAM [ARGUMENTS]\n\n"
         "Start a job that uses bfo: run mpirun of PATH with the options that follow and with the parameters of FILE. FILE is BFO_CONF, or\n" BT_CONF
         ". A parameter from the options, from a file that --tune names, or from the environment overrides FILE.\n\n"
         "Exit status: that of mpirun, or 3: mpirun could not be started.");
}

/* Splits a line "NAME = VALUE" or "--mca NAME VALUE" in place; false if it is no such line. */
static bool parameter_of(char *line, char **name, char **value)
{
    char *rest = line;

    *name = strtok_r(line, " \t=\n", &rest);
    if (NULL != *name && 0 == strcmp("--mca", *name)) {
        *name = strtok_r(NULL, " \t\n", &rest);
    }
    if (NULL == *name || '#' == (*name)[0]) {
        return false;
    }
    *value = rest + strspn(rest, " \t=");
    (*value)[strcspn(*value, " \t\n")] = '\0';
    return '\0' != (*value)[0];
}

/* Sets a variable of Open MPI, unless the environment has it. */
static bool set_parameter(const char *name, const char *value)
{
    char *variable = NULL;
    const bool is = 0 < asprintf(&variable, "OMPI_MCA_%s", name) && 0 == setenv(variable, value, 0);

    free(variable);
    return is;
}

/* Is the directory there? If not, it says so, because mpirun would only say that there is no PML bfo, and not why. */
static bool is_there(const char *path, const char *conf, const char *who)
{
    char *first = strndup(path, strcspn(path, ":"));
    const bool is = NULL != first && 0 == access(first, R_OK | X_OK);

    if (!is) {
        fprintf(stderr, "%s: the components of bfo are not in %s, which %s names: %s. Install bfo on this node.\n", who, NULL == first ? path : first,
                conf, strerror(NULL == first ? ENOMEM : errno));
    }
    free(first);
    return is;
}

/* Puts our path in front of the user's. PMIx gets a path of its own, because mpirun passes ours to PMIx too since Open MPI 5.0, which complains
 * about each component that it finds there. */
static bool set_path(const char *path)
{
    static const char ours[] = "OMPI_MCA_mca_base_component_path";
    const char *users = getenv(ours);
    char *both = NULL;
    bool is = '\0' == BT_PMIX_COMPONENTDIR[0] || 0 == setenv("PMIX_MCA_mca_base_component_path", BT_PMIX_COMPONENTDIR, 0);

    if (NULL == users) {
        return is && 0 == setenv(ours, path, 1);
    }
    is = is && 0 < asprintf(&both, "%s:%s", path, users) && 0 == setenv(ours, both, 1);
    free(both);
    return is;
}

/* Puts the parameters of the file into the environment, for mpirun with these arguments. False after a message. */
static bool set_parameters(const char *conf, int argc, char **argv, const char *who)
{
    FILE *in = fopen(conf, "r");
    char *line = NULL, *name, *value;
    size_t room = 0;
    bool has_path = false, is = true, has_memory = true;

    if (NULL == in) {
        fprintf(stderr, "%s: %s: %s. Install bfo on this node, or let BFO_CONF name its bfo.conf.\n", who, conf, strerror(errno));
        return false;
    }
    while (is && has_memory && 0 < getline(&line, &room, in)) {
        if (!parameter_of(line, &name, &value)) {
            continue;
        }
        if (0 == strcmp(path_name, name)) {
            has_path = true;
            is = is_there(value, conf, who);
            has_memory = !is || set_path(value);
        } else if (!bt_mpirun_tunes(argc, argv, name)) {
            has_memory = set_parameter(name, value);
        }
    }
    free(line);
    fclose(in);
    if (!has_memory) {
        fputs("bfo: no memory\n", stderr);
    } else if (is && !has_path) {
        fprintf(stderr, "%s: %s names no directory of components (%s). Is it bfo's file?\n", who, conf, path_name);
    }
    return is && has_path && has_memory;
}

int bt_run(const char *name, int argc, char **argv, const char *who)
{
    const char *named = getenv("BFO_CONF"), *conf = NULL == named || '\0' == named[0] ? BT_CONF : named;

    return set_parameters(conf, argc, argv, who) ? bt_mpirun_next(name, argv, who) : BT_TROUBLE;
}

int bt_cmd_run(int argc, char **argv)
{
    if (1 >= argc || 0 == strcmp("--help", argv[1])) {
        help();
        return 1 >= argc ? BT_USAGE : BT_WELL;
    }
    return bt_run("mpirun", argc, argv, "bfo run");
}
