/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * softrail run: makes a fabric, starts a program with the library preloaded, waits for it, writes the report and
 * removes the fabric. The exit status is that of the program. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <argp.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bfo_config.h"

enum {
    KEY_NAME = 300,
    KEY_LINK,
    KEY_RETRY,
    KEY_COPY,
    KEY_RATE,
    KEY_LATENCY,
    KEY_REPORT,
    KEY_MEMLOCK,
    KEY_RESIDENT,
    KEY_NO_SRQ,
    KEY_LAST_WQE,
    KEY_ONE_PIECE,
    KEY_PLAN,
    KEY_SEED
};

struct run {
    struct sr_fabric_options options;
    const char *name;
    const char *report;
    const char *plan;
    const char *seed;
    char **program;
    char own_name[32];
};

static const struct argp_option options[] = {
    {"rails", 'n', "N", 0, "number of rails, that is of virtual single-port HCAs sr0, sr1, ... (1 to 8; default 2)", 0},
    {"name", KEY_NAME, "NAME", 0, "name of the fabric (default: run-PID)", 0},
    {"link-layer", KEY_LINK, "LAYER", 0, "ib: InfiniBand with LIDs (default); eth: RoCE v2 with GIDs", 0},
    {"rate", KEY_RATE, "[RAIL=]RATE", 0, "limit rails to RATE bit/s, such as 10G; without RAIL: each of them", 0},
    {"latency", KEY_LATENCY, "[RAIL=]TIME", 0, "add TIME to every message, such as 50us", 0},
    {"retry-time", KEY_RETRY, "TIME", 0,
     "how long a message may stay unanswered before RETRY_EXC_ERR, for all queue pairs, such as 100ms (default: "
     "timeout and retry_cnt of the queue pair)",
     0},
    {"report", KEY_REPORT, "FILE", 0,
     "write the final counters of every rail to FILE when the program has ended, as 'softrail status --json' "
     "shows them",
     0},
    {"plan", KEY_PLAN, "FILE", 0, "faults to inject, see softrail-plan(5)", 0},
    {"seed", KEY_SEED, "N", 0, "seed of the plan, instead of the one in the file", 0},
    {"copy-max", KEY_COPY, "BYTES", 0, "largest message that is copied through shared memory (default 2048)", 0},
    {"memlock", KEY_MEMLOCK, NULL, 0, "registered memory counts against RLIMIT_MEMLOCK, as with a real HCA", 0},
    {"resident", KEY_RESIDENT, NULL, 0, "registered memory is resident, as with a real HCA", 0},
    {"no-srq", KEY_NO_SRQ, NULL, 0, "the devices have no shared receive queues", 0},
    {"last-wqe", KEY_LAST_WQE, "N", 0, "the devices of a process raise QP_LAST_WQE_REACHED N times, then never; with 0 they are as soft-RoCE is", 0},
    {"one-piece", KEY_ONE_PIECE, NULL, 0, "write the last bytes of an RDMA write together with the others", 0},
    {NULL, 0, NULL, 0, NULL, 0}};

/* "RAIL=TEXT" or "TEXT": sets one rail or all. */
static bool set_per_rail(const char *arg, bool (*parse)(const char *, uint64_t *), uint64_t values[SR_MAX_RAILS])
{
    const char *equal = strchr(arg, '=');
    uint64_t value;
    char *end;
    unsigned long rail = 0;

    if (NULL != equal) {
        const char *digits = 0 == strncmp(arg, "sr", 2) ? arg + 2 : arg;
        rail = strtoul(digits, &end, 10);
        if (end != equal || end == digits || SR_MAX_RAILS <= rail) {
            return false;
        }
        arg = equal + 1;
    }
    if (!parse(arg, &value)) {
        return false;
    }
    for (unsigned i = 0; i < SR_MAX_RAILS; ++i) {
        if (NULL == equal || i == rail) {
            values[i] = value;
        }
    }
    return true;
}

static bool parse_number(const char *text, unsigned long least, unsigned long most, unsigned *value)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    *value = (unsigned) number;
    return end != text && '\0' == *end && least <= number && number <= most;
}

/* Options whose argument, if they have one, needs no check. */
static bool parse_plain(int key, char *arg, struct run *run)
{
    switch (key) {
    case KEY_NAME:
        run->name = arg;
        return true;
    case KEY_REPORT:
        run->report = arg;
        return true;
    case KEY_PLAN:
        run->plan = arg;
        return true;
    case KEY_SEED:
        run->seed = arg;
        return true;
    case KEY_MEMLOCK:
        run->options.flags |= SR_FABRIC_MEMLOCK;
        return true;
    case KEY_RESIDENT:
        run->options.flags |= SR_FABRIC_RESIDENT;
        return true;
    case KEY_ONE_PIECE:
        run->options.flags &= ~(unsigned) SR_FABRIC_SPLIT_TAIL;
        return true;
    case KEY_NO_SRQ:
        setenv(SR_ENV_NO_SRQ, "1", 1);
        return true;
    default:
        return false;
    }
}

/* Options that say what time and copies cost. */
static bool parse_cost(int key, char *arg, struct argp_state *state)
{
    struct run *run = state->input;

    switch (key) {
    case KEY_RETRY:
        if (!sr_parse_time(arg, &run->options.retry_ns)) {
            argp_error(state, "--retry-time wants a time such as 100ms, not '%s'", arg);
        }
        return true;
    case KEY_COPY:
        if (!parse_number(arg, 0, SR_PAYLOAD_RING / 4, &run->options.copy_max)) {
            argp_error(state, "--copy-max wants a number from 0 to %u, not '%s'", SR_PAYLOAD_RING / 4, arg);
        }
        return true;
    case KEY_RATE:
        if (!set_per_rail(arg, sr_parse_rate, run->options.rate)) {
            argp_error(state, "--rate wants a rate such as 10G or 1=2.5G, not '%s'", arg);
        }
        return true;
    case KEY_LATENCY:
        if (!set_per_rail(arg, sr_parse_time, run->options.latency)) {
            argp_error(state, "--latency wants a time such as 50us or 1=2ms, not '%s'", arg);
        }
        return true;
    default:
        return false;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run *run = state->input;
    unsigned number;

    if (parse_plain(key, arg, run) || parse_cost(key, arg, state)) {
        return 0;
    }
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &run->options;
        return 0;
    case 'n':
        if (!parse_number(arg, 1, SR_MAX_RAILS, &run->options.rails)) {
            argp_error(state, "--rails wants a number from 1 to %d, not '%s'", SR_MAX_RAILS, arg);
        }
        return 0;
    case KEY_LAST_WQE:
        if (!parse_number(arg, 0, UINT_MAX, &number)) {
            argp_error(state, "--last-wqe wants a number, not '%s'", arg);
        }
        setenv(SR_ENV_LAST_WQE, arg, 1);
        return 0;
    case KEY_LINK:
        if (0 != strcmp(arg, "ib") && 0 != strcmp(arg, "eth")) {
            argp_error(state, "--link-layer is ib or eth, not '%s'", arg);
        }
        run->options.link_layer = 'e' == arg[0] ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
        return 0;
    case ARGP_KEY_ARG:
        run->program = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (NULL == run->program) {
            argp_error(state, "which program? softrail run -n 2 -- PROGRAM [ARGUMENTS]");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- environment of the program ----------------------------------------------------------------- */

static bool find_library(char path[PATH_MAX])
{
    char self[PATH_MAX - 64];
    const char *env = getenv("SOFTRAIL_LIBRARY");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (NULL != env) {
        snprintf(path, PATH_MAX, "%s", env);
        return 0 == access(path, R_OK);
    }
    if (0 < n) {
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        for (unsigned i = 0; i < 3; ++i) {
            snprintf(path, PATH_MAX, "%s%slibsoftrail.so", self, 0 == i ? "/.libs/" : 1 == i ? "/../.libs/" : "/");
            if (0 == access(path, R_OK)) {
                return true;
            }
        }
    }
    snprintf(path, PATH_MAX, "%s/libsoftrail.so", SR_LIBDIR);
    return 0 == access(path, R_OK);
}

static void extend(const char *name, const char *first, const char *separator)
{
    const char *before = getenv(name);
    size_t size = strlen(first) + (NULL == before ? 0 : strlen(before)) + 2;
    char *value = malloc(size);

    if (NULL != value) {
        snprintf(value, size, "%s%s%s", first, NULL == before || '\0' == *before ? "" : separator, NULL == before ? "" : before);
        setenv(name, value, 1);
        free(value);
    }
}

/* If softrail is built with AddressSanitizer, its runtime must be preloaded before the library. */
static int set_environment(const struct sr_fabric *fabric)
{
    char library[PATH_MAX];
    void *asan = dlsym(RTLD_DEFAULT, "__asan_init");
    Dl_info info;

    if (!find_library(library)) {
        fprintf(stderr, "softrail: cannot find libsoftrail.so (last looked at %s); set SOFTRAIL_LIBRARY\n", library);
        return SR_EXIT_TROUBLE;
    }
    extend("LD_PRELOAD", library, ":");
    if (NULL != asan && 0 != dladdr(asan, &info) && NULL != strstr(info.dli_fname, "asan")) {
        extend("LD_PRELOAD", info.dli_fname, ":");
        extend("ASAN_OPTIONS", "detect_leaks=0", ":");
    }
    extend("ASAN_OPTIONS", "verify_asan_link_order=0", ":");
    setenv(SR_ENV_FABRIC, fabric->path, 1);
    return 0;
}

/* ---- running ------------------------------------------------------------------------------------ */

static int wait_for(pid_t child, const sigset_t *signals, struct sr_fabric *fabric)
{
    for (;;) {
        bool planned = 0 != atomic_load(&fabric->shm->plan.count);
        const struct timespec soon = {.tv_nsec = planned ? 5000000 : 100000000};
        siginfo_t info = {.si_code = SI_USER};
        int status, signal;
        if (child == waitpid(child, &status, WNOHANG)) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        signal = sigtimedwait(signals, &info, &soon);
        if (0 < signal && SIGCHLD != signal && SI_KERNEL != info.si_code) { /* a terminal signals the program itself */
            kill(child, signal);                                            /* so that the program ends first, then the fabric */
        }
        sr_fabric_plug_in(fabric);
    }
}

/* Does the kernel refuse copies between processes? Tries it on a child, in the way that members do it. */
static bool cma_is_refused(void)
{
    char here = 1, there = 0;
    struct iovec local = {&there, 1}, remote = {&here, 1};
    int ready[2], end[2];
    bool refused = false;
    pid_t child;

    if (NULL != getenv("SOFTRAIL_TEST_NO_CMA") || NULL != getenv("SOFTRAIL_NO_CMA")) {
        return true;
    }
    if (0 != pipe(ready) || 0 != pipe(end)) {
        return false;
    }
    child = fork();
    if (0 == child) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        close(end[1]);
        _exit(1 == write(ready[1], &here, 1) && 0 == read(end[0], &here, 1) ? 0 : 1);
    }
    if (0 < child && 1 == read(ready[0], &there, 1)) {
        /* It fails with ENOSYS or EPERM if it is refused. The kernel treats both directions alike. */
        refused = 1 != process_vm_readv(child, &local, 1, &remote, 1, 0);
    }
    close(end[1]);
    close(end[0]);
    close(ready[0]);
    close(ready[1]);
    if (0 < child) {
        waitpid(child, NULL, 0);
    }
    return refused;
}

static int run_program(char **program, struct sr_fabric *fabric)
{
    sigset_t signals, before;
    pid_t child;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &before);
    child = fork();
    if (0 == child) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (0 == set_environment(fabric)) {
            execvp(program[0], program);
            fprintf(stderr, "softrail: cannot start %s: %s\n", program[0], strerror(errno));
        }
        _exit(127);
    }
    if (0 > child) {
        fprintf(stderr, "softrail: cannot fork: %s\n", strerror(errno));
        return SR_EXIT_TROUBLE;
    }
    return wait_for(child, &signals, fabric);
}

/* Counts the members that are left after the program's end. They get two seconds to end. */
static unsigned members_left(struct sr_fabric *fabric)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    unsigned alive = 0;

    for (int i = 0; i < 100; ++i) {
        alive = 0;
        sr_fabric_lock(fabric);
        sr_fabric_reap_dead(fabric);
        sr_fabric_unlock(fabric);
        for (unsigned slot = 0; slot < SR_MAX_PROCS; ++slot) {
            alive += 0 != fabric->shm->proc[slot].incarnation;
        }
        if (0 == alive) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    return alive;
}

static int finish(struct run *run, struct sr_fabric *fabric, int status)
{
    unsigned alive = members_left(fabric);

    if (NULL != run->report) {
        json_t *json = sr_status_json(fabric);
        if (NULL == json || 0 != json_dump_file(json, run->report, JSON_INDENT(2) | JSON_SORT_KEYS)) {
            fprintf(stderr, "softrail: cannot write the report %s: %s\n", run->report, strerror(errno));
            status = 0 == status ? SR_EXIT_TROUBLE : status;
        }
        json_decref(json);
    }
    if (0 < alive) {
        fprintf(stderr, "softrail: %u processes still use the fabric %s; it is removed by the next 'softrail run'\n", alive, run->name);
    } else {
        sr_fabric_remove(fabric->path);
    }
    return status;
}

static int add_plan(const struct run *run, struct sr_fabric *fabric)
{
    char line[64];
    int rc = NULL == run->plan ? 0 : sr_plan_add_file(fabric, run->plan);

    if (0 == rc && NULL != run->seed) {
        snprintf(line, sizeof(line), "seed %.40s", run->seed);
        rc = sr_plan_add_line(fabric, line, "--seed");
    }
    return rc;
}

int sr_cmd_run(int argc, char **argv)
{
    static const struct argp_child children[] = {{&sr_habits_argp, 0, "Habits of adapters:", 1}, {NULL, 0, NULL, 0}};
    static const struct argp argp = {.options = options,
                                     .children = children,
                                     .parser = parse,
                                     .args_doc = "-- PROGRAM [ARGUMENTS]",
                                     .doc = "Start a program, and all it starts in turn, on virtual RDMA rails. Every process is a host of its own "
                                            "on each rail.\vCounters can be read while the program runs with 'softrail status [--json]', and "
                                            "after it has ended from the file of --report. Example:\n\n"
                                            "  softrail run -n 2 -- mpirun -np 2 --mca btl openib,self PROGRAM"};
    struct run run = {.options = {.rails = 2,
                                  .link_layer = IBV_LINK_LAYER_INFINIBAND,
                                  .copy_max = 2048,
                                  .flags = SR_FABRIC_SPLIT_TAIL,
                                  .habits = {.max_inline = 512, .pkey_count = 1, .pkeys = {0xffff}}}};
    struct sr_fabric fabric;

    argv[0] = (char *) "softrail run";
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
    if (NULL == run.name) {
        snprintf(run.own_name, sizeof(run.own_name), "run-%d", (int) getpid());
        run.name = run.own_name;
    }
    if (cma_is_refused()) {
        run.options.flags |= SR_FABRIC_NO_CMA;
        fputs("softrail: process_vm_readv and process_vm_writev are refused here; copying through shared memory, "
              "which is slower\n",
              stderr);
    }
    sr_fabric_sweep();
    if (0 != sr_fabric_create(&fabric, run.name, &run.options)) {
        return SR_EXIT_TROUBLE;
    }
    if (0 != add_plan(&run, &fabric)) {
        sr_fabric_remove(fabric.path);
        return SR_EXIT_USAGE;
    }
    return finish(&run, &fabric, run_program(run.program, &fabric));
}
