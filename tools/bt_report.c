/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo report: what a bug report needs, in one file: releases, the machine, parameters, and the output of the other subcommands. From the
 * environment it takes only variables that say how MPI runs. DESIGN.txt section 19.7.
 */
#include "bt_doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bfo_config.h"

enum { MOST_SECONDS = 60, MOST_BYTES = 16 << 20, LINE = 512 };

typedef struct {
    const char *job, *output;
} choice_t;

extern char **environ;

/* ---- what is said in our own words --------------------------------------------------------------------------- */

static void begin(FILE *out, const char *title)
{
    fprintf(out, "\n== %s\n", title);
}

/* Adds the lines of a file of the kernel that begin with one of the words, or all lines; none if it cannot be read. */
static void add_lines(FILE *out, const char *path, const char *const *words)
{
    FILE *in = fopen(path, "re");
    char line[LINE];

    while (NULL != in && NULL != fgets(line, sizeof(line), in)) {
        bool is_wanted = NULL == words;

        for (size_t i = 0; !is_wanted && NULL != words[i]; ++i) {
            is_wanted = 0 == strncmp(words[i], line, strlen(words[i]));
        }
        if (is_wanted) {
            line[strcspn(line, "\n")] = '\0';
            bt_doctor_clean(line);
            fprintf(out, "%s\n", line);
        }
    }
    if (NULL != in) {
        fclose(in);
    }
}

static void add_machine(FILE *out)
{
    static const char *const release[] = {"PRETTY_NAME=", NULL};
    static const char *const modules[] = {"ib_", "rdma_", "mlx", "irdma", "bnxt_re", "efa", "hfi1", "qedr", "iw_", "siw", NULL};
    static const char *const locked[] = {"Max locked memory", NULL};
    struct utsname name;

    begin(out, "machine");
    if (0 == uname(&name)) {
        fprintf(out, "%s %s %s %s\n", name.nodename, name.sysname, name.release, name.machine);
    }
    add_lines(out, "/etc/os-release", release);
    fprintf(out, "%ld processors\n", sysconf(_SC_NPROCESSORS_ONLN));
    add_lines(out, "/proc/self/limits", locked);
    begin(out, "kernel modules");
    add_lines(out, "/proc/modules", modules);
}

/* Adds only variables with known prefixes, because others may have secret values. */
static void add_environment(FILE *out)
{
    static const char *const names[] = {"OMPI_MCA_", "PMIX_MCA_",     "PRTE_MCA_",       "BFO_",       "SOFTRAIL", "LD_PRELOAD=", "LD_LIBRARY_PATH=",
                                        "PATH=",     "SLURM_JOB_ID=", "SLURM_MPI_TYPE=", "PBS_JOBID=", NULL};

    begin(out, "environment (only variables that say how MPI runs)");
    for (char **variable = environ; NULL != *variable; ++variable) {
        for (size_t i = 0; NULL != names[i]; ++i) {
            if (0 == strncmp(names[i], *variable, strlen(names[i]))) {
                char text[4 * LINE];

                snprintf(text, sizeof(text), "%s", *variable);
                bt_doctor_clean(text);
                fprintf(out, "%s\n", text);
                break;
            }
        }
    }
}

/* ---- what others say ------------------------------------------------------------------------------------------- */

static int run_program(int argc, char **argv)
{
    execvp(argv[0], argv);
    printf("%s: %s\n", argv[0], strerror(errno));
    fflush(stdout);
    return 127;
}

/* Adds the output of a subcommand. It runs in a child, so that the report goes on whatever the subcommand does. */
static void add_output(FILE *out, int (*run)(int argc, char **argv), char **argv)
{
    const struct rlimit limit = {MOST_BYTES, MOST_BYTES};
    char title[LINE] = "";
    int argc = 0, status = 0;
    pid_t child;

    for (; NULL != argv[argc]; ++argc) {
        snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s", 0 == argc ? "" : " ", argv[argc]);
    }
    begin(out, title);
    fflush(out);
    child = fork();
    if (0 == child) {
        signal(SIGALRM, SIG_DFL);
        alarm(MOST_SECONDS);
        if (0 > dup2(fileno(out), STDOUT_FILENO) || 0 > dup2(fileno(out), STDERR_FILENO) || 0 != setrlimit(RLIMIT_FSIZE, &limit)) {
            _exit(126);
        }
        status = run(argc, argv);
        fflush(stdout);
        _exit(status);
    }
    while (0 < child && 0 > waitpid(child, &status, 0) && EINTR == errno) {
    }
    fseek(out, 0, SEEK_END);
    if (0 > child || !WIFEXITED(status)) {
        fprintf(out, "(it was ended: %s)\n", 0 > child ? strerror(errno) : strsignal(WTERMSIG(status)));
    } else {
        fprintf(out, "(exit status %d)\n", WEXITSTATUS(status));
    }
}

static void add_all(FILE *out, const choice_t *choice)
{
    char status[] = "bfo status", events[] = "bfo events", doctor[] = "bfo doctor", day[] = "1d", since[] = "--since", json[] = "--json";
    char devinfo[] = "ibv_devinfo", verbose[] = "-v", ompi[] = "ompi_info", version[] = "--version";
    char now[BT_TIME];

    fprintf(out, "bfo %s, built for Open MPI %s; report of %s\n", BFO_VERSION, BT_OMPI_VERSION,
            bt_time(now, (uint64_t) time(NULL) * UINT64_C(1000000000)));
    add_machine(out);
    add_environment(out);
    add_output(out, run_program, (char *[]){ompi, version, NULL});
    add_output(out, bt_cmd_doctor, (char *[]){doctor, NULL});
    add_output(out, bt_cmd_status, (char *[]){status, json, (char *) choice->job, NULL});
    add_output(out, bt_cmd_events, (char *[]){events, since, day, (char *) choice->job, NULL});
    add_output(out, run_program, (char *[]){devinfo, verbose, NULL});
}

/* ---- command --------------------------------------------------------------------------------------------------- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case 'o':
        choice->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        bt_take_word(state, &choice->job, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int bt_cmd_report(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"output", 'o', "FILE", 0, "the file to write (default: bfo-report-HOST-TIME.txt); an existing file is kept", 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[JOB]",
        .doc = "Write what a bug report needs into one file: releases, the machine, parameters of MPI in the environment, and the output of "
               "bfo doctor, status and events.\vExit status: 0 the file is written, 2 wrong usage, 3 the file cannot be written."};
    choice_t choice = {.job = NULL};
    char name[256];
    bool is_written;
    FILE *out;
    int fd;

    argv[0] = (char *) "bfo report";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    bt_file_name(name, sizeof(name), "report", "txt");
    choice.output = NULL == choice.output ? name : choice.output;
    fd = open(choice.output, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    out = 0 > fd ? NULL : fdopen(fd, "a");
    if (NULL == out) {
        fprintf(stderr, "bfo: %s: %s\n", choice.output, strerror(errno));
        return BT_TROUBLE;
    }
    add_all(out, &choice);
    is_written = !ferror(out) && 0 == fflush(out);
    if (0 != fclose(out) || !is_written) {
        fprintf(stderr, "bfo: %s cannot be written\n", choice.output);
        return BT_TROUBLE;
    }
    printf("%s is written. Read it before you send it: it names this host, users of it, its ports and their GUIDs.\n", choice.output);
    return BT_WELL;
}
