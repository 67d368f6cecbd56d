/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo under the name mpirun or mpiexec, as the module file puts it in front of PATH. A job that asks for the PML bfo starts as with bfo run;
 * any other job goes to the next mpirun in PATH. In both cases mpirun takes the place of this process. The options of mpirun are read only as
 * far as it takes to find parameters, and where the program begins. DESIGN.txt 19.8.
 */
#include "bt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Options with one more word, without their hyphens: those of Open MPI 4.1, then those that 5.0 or 6.0 added. */
static const char with_value[] =
    " am amca app bind-to c cartofile cf cpu-list cpu-set cpus-per-proc cpus-per-rank debugger default-hostfile H h help hnp host hostfile "
    "launch-agent machinefile map-by max-restarts max-vm-size N n np npernode npersocket ompi-server output-filename path personality ppr "
    "prefix preload-files rank-by rankfile report-events report-pid report-uri rf stdin timeout tune wd wdir x xml-file xterm ";
static const char with_value_since_5[] =
    " app-pmix-prefix arch appfile display display-topo dvm file forward-signals initial-errhandler memory-alloc-kinds output output-directory "
    "output-proctable pset runtime-options spawn-timeout singleton stop-in-app stop-in-init stream-buffering tmpdir unset-env with-ft ";
static const char with_two_values[] = " append-env gmca mca gomca omca pmixmca prepend-env prtemca ";

static bool is_among(const char *names, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = strstr(names, name); NULL != at; at = strstr(at + 1, name)) {
        if (' ' == at[-1] && ' ' == at[length]) {
            return true;
        }
    }
    return false;
}

/* The number of words of this option; 0 if it is no option. A value after '=' is no word of its own. */
static int words_of(const char *word)
{
    const char *name = word + strspn(word, "-");

    if ('-' != word[0]) {
        return 0;
    }
    if ('\0' == name[0] || NULL != strpbrk(name, "= ")) {
        return 1;
    }
    if (is_among(with_two_values, name)) {
        return 3;
    }
    return is_among(with_value, name) || ('4' != BT_OMPI_VERSION[0] && is_among(with_value_since_5, name)) ? 2 : 1;
}

/* Position of a walk over the options of a command line: the option begins at argv[at] and has so many words. Begin with
 * {argc, argv, 1, 0}. */
typedef struct {
    int argc;
    char **argv;
    int at, words;
} option_t;

/* Moves to the next option, past programs and their arguments; the options of another program follow a ':'. False if there is none. */
static bool next_option(option_t *o)
{
    o->at += o->words;
    while (o->at < o->argc) {
        o->words = words_of(o->argv[o->at]);
        if (0 < o->words && o->words <= o->argc - o->at) {
            return true;
        }
        while (o->at < o->argc && 0 != strcmp(":", o->argv[o->at])) {
            o->at++;
        }
        o->at++;
    }
    return false;
}

static bool option_is(const option_t *o, int words, const char *names)
{
    return words == o->words && is_among(names, o->argv[o->at] + strspn(o->argv[o->at], "-"));
}

/* Does the value select bfo? From "bfo,ob1" Open MPI takes the first. */
static bool is_bfo(const char *value)
{
    return 0 == strncmp("bfo", value, 3) && ('\0' == value[3] || ',' == value[3]);
}

bool bt_mpirun_asks(int argc, char **argv)
{
    const char *environment = getenv("OMPI_MCA_pml");
    bool is_named = false;

    for (option_t o = {argc, argv, 1, 0}; next_option(&o);) {
        if (option_is(&o, 3, " gmca mca gomca omca ") && 0 == strcmp("pml", argv[o.at + 1])) {
            if (is_bfo(argv[o.at + 2])) {
                return true;
            }
            is_named = true;
        }
    }
    return !is_named && NULL != environment && is_bfo(environment);
}

/* Does a line of the file set the parameter, as "NAME = VALUE" or "--mca NAME VALUE"? */
static bool file_names(const char *file, const char *parameter)
{
    FILE *in = fopen(file, "r");
    char *line = NULL;
    size_t room = 0;
    bool does = false;

    while (NULL != in && !does && 0 < getline(&line, &room, in)) {
        bool is_name = true;

        for (char *rest, *word = strtok_r(line, " \t=\n", &rest); NULL != word && '#' != word[0]; word = strtok_r(NULL, " \t=\n", &rest)) {
            does = does || (is_name && 0 == strcmp(parameter, word));
            is_name = '-' == word[0];
        }
    }
    free(line);
    if (NULL != in) {
        fclose(in);
    }
    return does;
}

bool bt_mpirun_tunes(int argc, char **argv, const char *parameter)
{
    for (option_t o = {argc, argv, 1, 0}; next_option(&o);) {
        char *files, *rest;
        bool does = false;

        if (!option_is(&o, 2, " am amca tune ")) {
            continue;
        }
        files = strdup(argv[o.at + 1]);
        for (char *file = NULL == files ? NULL : strtok_r(files, ",", &rest); NULL != file && !does; file = strtok_r(NULL, ",", &rest)) {
            does = file_names(file, parameter);
        }
        free(files);
        if (does) {
            return true;
        }
    }
    return false;
}

/* Is this file the running program? *is_executable: it is there and can be executed. */
static bool is_this_program(const char *path, bool *is_executable)
{
    struct stat ours, its;

    *is_executable = 0 == stat(path, &its) && S_ISREG(its.st_mode) && 0 == access(path, X_OK);
    return *is_executable && 0 == stat("/proc/self/exe", &ours) && ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

/* Only directories after the last one that leads to this program count. Therefore two such programs of different installations, or one that
 * is in PATH twice, do not hand a job to each other without end. */
char *bt_next_in_path(const char *name)
{
    const char *path = getenv("PATH");
    char *found = NULL, *copy = strdup(NULL == path ? "/usr/bin:/bin" : path), *rest = copy;

    for (char *dir; NULL != copy && NULL != (dir = strsep(&rest, ":"));) {
        char *file = NULL;
        bool is_executable;

        if (0 > asprintf(&file, "%s/%s", '\0' == dir[0] ? "." : dir, name)) {
            free(found);
            found = NULL;
            break;
        }
        if (is_this_program(file, &is_executable)) {
            free(found);
            found = NULL;
        } else if (is_executable && NULL == found) {
            found = file;
            file = NULL;
        }
        free(file);
    }
    free(copy);
    return found;
}

int bt_mpirun_next(const char *name, char **argv, const char *who)
{
    char *next = bt_next_in_path(name);

    errno = ENOENT;
    if (NULL != next) {
        /* If its name has a path, mpirun takes that for the place of Open MPI on all nodes. Our path is not that place. */
        argv[0] = (char *) name;
        execv(next, argv);
    }
    fprintf(stderr, "%s: %s: %s. PATH must lead to the %s of Open MPI " BT_OMPI_VERSION ", after the directory of bfo's own, if that is in it.\n",
            who, NULL == next ? name : next, strerror(errno), name);
    free(next);
    return BT_TROUBLE;
}

int bt_as_mpirun(const char *name, int argc, char **argv)
{
    return bt_mpirun_asks(argc, argv) ? bt_run(name, argc, argv, name) : bt_mpirun_next(name, argv, name);
}
