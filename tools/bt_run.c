/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo run: mpirun, with the file that makes one job use bfo, and with what mpirun of Open MPI 5.0 does not take from a file. DESIGN.txt
 * section 19.
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
         "Start a job that uses bfo: mpirun of PATH, with --tune FILE and the options that follow. FILE is BFO_CONF, or\n"
         BT_CONF ". Parameters that follow count more than those of the file.\n\n"
         "Exit status: mpirun's; 3 it could not be started.");
}

/* The directories of components that the file names; the caller frees them. NULL: none, or no such file, which was said. */
static char *component_path(const char *conf)
{
    FILE *in = fopen(conf, "r");
    char *line = NULL, *path = NULL;
    size_t room = 0;

    if (NULL == in) {
        fprintf(stderr, "bfo run: %s: %s. Install bfo on this node, or let BFO_CONF name its bfo.conf.\n", conf, strerror(errno));
        return NULL;
    }
    while (NULL == path && 0 < getline(&line, &room, in)) {
        char *at = '#' == line[0] ? NULL : strstr(line, path_name);

        if (NULL != at) {
            at += strlen(path_name);
            at += strspn(at, " \t=");
            at[strcspn(at, " \t\n")] = '\0';
            path = strdup(at);
        }
    }
    free(line);
    fclose(in);
    if (NULL == path || '\0' == path[0]) {
        fprintf(stderr, "bfo run: %s names no directory of components (%s). Is it bfo's file?\n", conf, path_name);
        free(path);
        return NULL;
    }
    return path;
}

/* Else mpirun would say that there is no PML bfo, and not why. */
static bool is_there(const char *path, const char *conf)
{
    char *first = strndup(path, strcspn(path, ":"));
    const bool is = NULL != first && 0 == access(first, R_OK | X_OK);

    if (!is) {
        fprintf(stderr, "bfo run: the components of bfo are not in %s, which %s names: %s. Install bfo on this node.\n",
                NULL == first ? path : first, conf, strerror(NULL == first ? ENOMEM : errno));
    }
    free(first);
    return is;
}

/* mpirun of Open MPI 5.0 puts a path of its own over the one in the file, but not over the environment's, and hands that to PMIx, too, which
 * complains of each component that it finds there. */
static bool export_path(const char *path)
{
    static const char ours[] = "OMPI_MCA_mca_base_component_path";
    const char *users = getenv(ours);
    char *both = NULL;
    bool is = '\0' == BT_PMIX_COMPONENTDIR[0] || 0 == setenv("PMIX_MCA_mca_base_component_path", BT_PMIX_COMPONENTDIR, 0);

    if (NULL == users) {
        is = is && 0 == setenv(ours, path, 1);
    } else {
        is = is && 0 < asprintf(&both, "%s:%s", path, users) && 0 == setenv(ours, both, 1);
        free(both);
    }
    if (!is) {
        fputs("bfo: no memory\n", stderr);
    }
    return is;
}

int bt_cmd_run(int argc, char **argv)
{
    const char *named = getenv("BFO_CONF"), *conf = NULL == named || '\0' == named[0] ? BT_CONF : named;
    char **command, *path;

    if (1 >= argc || 0 == strcmp("--help", argv[1])) {
        help();
        return 1 >= argc ? BT_USAGE : BT_WELL;
    }
    path = component_path(conf);
    if (NULL == path || !is_there(path, conf) || ('4' != BT_OMPI_VERSION[0] && !export_path(path))) {
        free(path);
        return BT_TROUBLE;
    }
    free(path);
    command = calloc((size_t) argc + 3, sizeof(*command));
    if (NULL == command) {
        fputs("bfo: no memory\n", stderr);
        return BT_TROUBLE;
    }
    command[0] = (char *) "mpirun";
    command[1] = (char *) "--tune";
    command[2] = (char *) conf;
    memcpy(command + 3, argv + 1, (size_t) (argc - 1) * sizeof(*command));
    execvp(command[0], command);
    fprintf(stderr, "bfo run: mpirun: %s. PATH must lead to the mpirun of Open MPI " BT_OMPI_VERSION ".\n", strerror(errno));
    free(command);
    return BT_TROUBLE;
}
