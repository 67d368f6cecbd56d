/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * world: runs seeds. Each run is a child of this program, which has loaded the images; so all runs begin alike, and a crash ends
 * one run only. See world.h.
 */
#include "host.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/class/opal_list.h"
#include "opal/mca/mpool/base/base.h"
#include "opal/runtime/opal.h"

#include <argp.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_JOBS = 64, FAILED = 3, TOO_LONG_S = 60, DAY_TOO_LONG_S = 3600 };

static struct {
    uint64_t first, count;
    unsigned jobs;
    const char *image;
    bool shrinks, replays, shows_plan, debugs;
    uint64_t sweep; /* calls of each kind that a sweep fails at most; 0: no sweep */
    unsigned n_fixed;
    struct {
        unsigned index, value;
    } fixed[PLAN_COUNT];
} options = {.first = 1, .count = 1, .jobs = 1};

static const world_image_t *images[WORLD_MAX_PROCESSES];

/* What a child tells its parent. */
typedef struct {
    uint64_t fingerprint, steps, now;
    uint64_t calls[CALLS]; /* how often each was made */
} result_t;
static result_t *results; /* one per job, shared */

void world_broken(const char *format, ...)
{
    va_list values;

    fprintf(stderr, "world: seed %llu at %.6f s", (unsigned long long) world_seed, (double) world_now / 1e9);
    if (NULL != world_me) {
        fprintf(stderr, ", process %u", world_me->rank);
    }
    fprintf(stderr, ": ");
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fprintf(stderr, "\n");
    _exit(FAILED);
}

/* ---- images -------------------------------------------------------------------------------------------------- */

/* The linker loads a file once; therefore each process gets a copy, in memory. */
static const world_image_t *image_load(const char *bytes, size_t size)
{
    const int fd = memfd_create("image", MFD_CLOEXEC);
    char path[40];
    void *library;

    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, bytes + done, size - done);

        if (0 >= n) {
            perror("world: no memory for an image");
            exit(2);
        }
        done += (size_t) n;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) getpid(), fd); /* a debugger can read it too */
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (NULL == library) {
        fprintf(stderr, "world: %s\n", dlerror());
        exit(2);
    }
    return dlsym(library, "world_image");
}

static void images_load(unsigned n)
{
    const int fd = open(options.image, O_RDONLY | O_CLOEXEC);
    const off_t size = 0 > fd ? 0 : lseek(fd, 0, SEEK_END);
    const char *bytes = 0 >= size ? MAP_FAILED : mmap(NULL, (size_t) size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (MAP_FAILED == bytes) {
        fprintf(stderr, "world: %s: %s\n", options.image, strerror(errno));
        exit(2);
    }
    for (unsigned p = 0; p < n; ++p) {
        images[p] = image_load(bytes, (size_t) size);
    }
    close(fd);
}

/* Free lists of images get their memory here, and it may be short. */
static void *list_alloc(mca_mpool_base_module_t *pool, size_t size, size_t align, uint32_t flags)
{
    void *memory;

    if (world_call_fails(CALL_list, 0) || 0 != posix_memalign(&memory, align < 64 ? 64 : align, size)) {
        return NULL;
    }
    memory_counts(memory, true);
    return memory;
}

static void list_free(mca_mpool_base_module_t *pool, void *memory)
{
    memory_counts(memory, false);
    free(memory);
}

/* What Open MPI has once for all images. */
static void ompi_begin(void)
{
    static mca_mpool_base_module_t pool = {.mpool_alloc = list_alloc, .mpool_free = list_free};
    int argc = 0;

    setenv("OMPI_MCA_mca_base_component_path", "/nonexistent", 1);
    setenv("OMPI_MCA_opal_signal", "", 1);
    if (OPAL_SUCCESS != opal_init_util(&argc, NULL) || OMPI_SUCCESS != ompi_datatype_init()) {
        fprintf(stderr, "world: Open MPI's library does not begin\n");
        exit(2);
    }
    OBJ_CONSTRUCT(&ompi_mpi_communicators, opal_pointer_array_t);
    opal_pointer_array_init(&ompi_mpi_communicators, 8, UINT16_MAX, 8);
    OBJ_CONSTRUCT(&ompi_proc_list, opal_list_t);
    OBJ_CONSTRUCT(&ompi_group_f_to_c_table, opal_pointer_array_t);
    OBJ_CONSTRUCT(&ompi_comm_f_to_c_table, opal_pointer_array_t);
    if (OMPI_SUCCESS != ompi_message_init() || OMPI_SUCCESS != ompi_request_init()) {
        fprintf(stderr, "world: Open MPI's library has no requests\n");
        exit(2);
    }
    mca_mpool_base_default_module = &pool;
}

/* ---- runs ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t seed;
    plan_t plan;
} run_t;

static pid_t run_begin(uint64_t seed, plan_t p, unsigned slot, bool is_quiet)
{
    const rlim_t seconds = 0 != p.value[PLAN_day] || 0 != p.value[PLAN_scale] ? DAY_TOO_LONG_S : TOO_LONG_S;
    const struct rlimit most = {seconds, seconds + 5};
    pid_t child;

    fflush(stdout);
    fflush(stderr);
    child = fork();
    if (0 != child) {
        return child;
    }
    if (is_quiet) {
        trace_is_verbose = false;
        (void) !freopen("/dev/null", "w", stderr);
        (void) !freopen("/dev/null", "w", stdout);
    }
    plan = p;
    (void) setrlimit(RLIMIT_CPU, &most); /* of the processor's time, whatever else the machine does */
    world_run(seed, images);
    results[slot] = (result_t){.fingerprint = trace_fingerprint(), .steps = sched_steps(), .now = world_now};
    memcpy(results[slot].calls, failures_counts(), sizeof(results[slot].calls));
    for (unsigned p = 0; p < world_ranks() && NULL != images[p]->covered; ++p) {
        images[p]->covered();
    }
    _exit(0);
}

static int run_whole(uint64_t seed, plan_t p, bool is_quiet)
{
    const pid_t child = run_begin(seed, p, 0, is_quiet);
    int status = 0;

    (void) waitpid(child, &status, 0);
    return status;
}

static plan_t plan_of(uint64_t seed)
{
    plan_t p = plan_draw(seed);

    for (unsigned i = 0; i < options.n_fixed; ++i) {
        p.value[options.fixed[i].index] = options.fixed[i].value;
    }
    return p;
}

/* A simpler plan that still fails, found value by value. */
static plan_t shrink(uint64_t seed, plan_t p)
{
    bool has_changed = true;

    while (has_changed) {
        has_changed = false;
        for (unsigned i = 0; i < PLAN_COUNT; ++i) {
            const unsigned tries[] = {plan_simplest[i], p.value[i] / 2, p.value[i] - 1};

            for (unsigned t = 0; t < 3 && p.value[i] > plan_simplest[i]; ++t) {
                plan_t simpler = p;

                if (tries[t] < plan_simplest[i] || (PLAN_mtu == i && 256 > tries[t])) {
                    continue;
                }
                simpler.value[i] = tries[t];
                if (0 != run_whole(seed, simpler, true)) {
                    p = simpler;
                    has_changed = true;
                    break;
                }
            }
        }
    }
    return p;
}

static void print_command(uint64_t seed, const plan_t *p)
{
    const plan_t drawn = plan_draw(seed);

    printf("world --seed %llu", (unsigned long long) seed);
    for (unsigned i = 0; i < PLAN_COUNT; ++i) {
        if (drawn.value[i] != p->value[i]) {
            printf(" %s=%u", plan_names[i], p->value[i]);
        }
    }
    printf("\n");
}

static void report(uint64_t seed, plan_t p, int status)
{
    if (WIFSIGNALED(status)) {
        printf("seed %llu: %s\n", (unsigned long long) seed, SIGXCPU == WTERMSIG(status) ? "the run takes too long" : strsignal(WTERMSIG(status)));
    } else {
        printf("seed %llu failed\n", (unsigned long long) seed);
    }
    print_command(seed, &p);
    if (options.shrinks) {
        p = shrink(seed, p);
        printf("the simplest run that fails:\n");
        print_command(seed, &p);
        (void) run_whole(seed, p, false);
    }
    fflush(stdout);
}

/* Does the same seed give the same run again? */
static bool replays(const run_t *run, unsigned slot)
{
    const result_t first = results[slot];
    const int status = run_whole(run->seed, run->plan, true);
    const bool is_same = 0 == status && first.fingerprint == results[0].fingerprint && first.steps == results[0].steps;

    if (!is_same) {
        printf("seed %llu: a second run differs from the first\n", (unsigned long long) run->seed);
    }
    return is_same;
}

/* ---- which runs --------------------------------------------------------------------------------------------------------- */

static uint64_t most_calls[CALLS]; /* of the run of a sweep without a failure */

/* How many of these calls a sweep fails, each in a run of its own. */
static uint64_t failed_of(uint64_t calls)
{
    return calls < options.sweep ? calls : options.sweep;
}

/* The run of this place. A sweep fails call after call, evenly spread if there are too many. */
static run_t run_at(uint64_t place)
{
    run_t run = {.seed = options.first + place, .plan = plan_of(options.first + place)};

    if (0 == options.sweep) {
        return run;
    }
    run = (run_t){.seed = options.first, .plan = plan_of(options.first)};
    for (unsigned call = 1; call < CALLS; ++call) {
        const uint64_t here = failed_of(most_calls[call]);

        if (place < here) {
            run.plan.value[PLAN_fails] = call;
            run.plan.value[PLAN_fails_from] = (unsigned) (1 + place * most_calls[call] / here);
            break;
        }
        place -= here;
    }
    return run;
}

/* Counts the calls of each kind, and how many runs the sweep has. */
static bool sweep_begin(void)
{
    plan_t p = plan_of(options.first);

    p.value[PLAN_fails] = CALL_none;
    if (0 != run_whole(options.first, p, false)) {
        return false;
    }
    memcpy(most_calls, results[0].calls, sizeof(most_calls));
    options.count = 0;
    for (unsigned call = 1; call < CALLS; ++call) {
        printf("%8llu calls, %6llu of them fail: %s\n", (unsigned long long) most_calls[call], (unsigned long long) failed_of(most_calls[call]),
               failures_names[call]);
        options.count += failed_of(most_calls[call]);
    }
    return true;
}

static uint64_t run_all(void)
{
    struct {
        pid_t child;
        run_t run;
    } running[MOST_JOBS] = {{0}};
    uint64_t begun = 0, ended = 0, failed = 0, steps = 0;
    double seconds = 0;

    while (ended < options.count) {
        int status;
        pid_t child;

        for (unsigned j = 0; j < options.jobs && begun < options.count; ++j) {
            if (0 == running[j].child) {
                running[j].run = run_at(begun++);
                running[j].child = run_begin(running[j].run.seed, running[j].run.plan, j + 1, false);
            }
        }
        child = waitpid(-1, &status, 0);
        for (unsigned j = 0; j < options.jobs; ++j) {
            if (child == running[j].child) {
                running[j].child = 0;
                ++ended;
                if (0 != status) {
                    ++failed;
                    report(running[j].run.seed, running[j].run.plan, status);
                } else {
                    steps += results[j + 1].steps;
                    seconds += (double) results[j + 1].now / 1e9;
                    failed += options.replays && !replays(&running[j].run, j + 1);
                }
            }
        }
    }
    printf("%llu %s from %llu: %llu failed; %.1f million steps, %.0f s of their time\n", (unsigned long long) options.count,
           0 < options.sweep ? "runs" : "seeds", (unsigned long long) options.first, (unsigned long long) failed, (double) steps / 1e6, seconds);
    return failed;
}

/* Plans that are drawn have few processes; a job of scale.c has as many as its command says. */
static unsigned images_needed(void)
{
    const plan_t p = plan_of(options.first);
    const unsigned n = 0 != p.value[PLAN_peers] ? 1 : p.value[PLAN_nodes] * (p.value[PLAN_per_node] + p.value[PLAN_crowd]),
                   most = n < WORLD_MAX_PROCESSES ? n : WORLD_MAX_PROCESSES;
    struct rlimit files;

    if (0 == getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < most + 100) { /* each image is a file */
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
    return most < WORLD_JOB_PROCESSES ? WORLD_JOB_PROCESSES : most;
}

/* ---- the command ----------------------------------------------------------------------------------------------------- */

static const struct argp_option arguments[] = {
    {"image", 'i', "FILE", 0, "The image of a process (required)", 0},
    {"seed", 's', "N", 0, "Run this seed", 0},
    {"from", 'f', "N", 0, "The first seed (1)", 0},
    {"seeds", 'n', "N", 0, "Number of seeds (1)", 0},
    {"jobs", 'j', "N", 0, "Runs at a time (1)", 0},
    {"shrink", 'S', NULL, 0, "Make each run that failed simpler, while it fails", 0},
    {"replay", 'r', NULL, 0, "Run each seed twice, and compare", 0},
    {"sweep", 'w', "N", 0, "Fail each call of the first seed's run, in a run for each; at most N calls of a kind", 0},
    {"plan", 'p', NULL, 0, "Print the plan of the first seed", 0},
    {"verbose", 'v', NULL, 0, "Print the trace", 0},
    {"debug", 'd', NULL, 0, "Run the first seed in this process, for a debugger", 0},
    {0},
};

static uint64_t number_of(struct argp_state *state, const char *text)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);

    if ('\0' == text[0] || '\0' != *end || '-' == text[0]) {
        argp_error(state, "%s is not a number", text);
    }
    return n;
}

static void fix(struct argp_state *state, const char *text)
{
    const char *equals = strchr(text, '=');

    for (unsigned i = 0; NULL != equals && i < PLAN_COUNT; ++i) {
        if (strlen(plan_names[i]) == (size_t) (equals - text) && 0 == strncmp(text, plan_names[i], (size_t) (equals - text))
            && options.n_fixed < PLAN_COUNT) {
            options.fixed[options.n_fixed].index = i;
            options.fixed[options.n_fixed++].value = (unsigned) number_of(state, equals + 1);
            return;
        }
    }
    argp_error(state, "%s: not name=value with a name of plan.def", text);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case 'i':
        options.image = text;
        break;
    case 's':
    case 'f':
        options.first = number_of(state, text);
        break;
    case 'n':
        options.count = number_of(state, text);
        break;
    case 'j':
        options.jobs = (unsigned) number_of(state, text);
        if (0 == options.jobs || MOST_JOBS < options.jobs) {
            argp_error(state, "%s is not 1 to %u jobs", text, MOST_JOBS);
        }
        break;
    case 'S':
        options.shrinks = true;
        break;
    case 'r':
        options.replays = true;
        break;
    case 'w':
        options.sweep = number_of(state, text);
        break;
    case 'p':
        options.shows_plan = true;
        break;
    case 'd':
        options.debugs = true;
        break;
    case 'v':
        trace_is_verbose = true;
        break;
    case ARGP_KEY_ARG:
        fix(state, text);
        break;
    case ARGP_KEY_END:
        if (NULL == options.image) {
            argp_error(state, "--image FILE is missing");
        }
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp command = {.options = arguments,
                                        .parser = parse,
                                        .args_doc = "[NAME=VALUE...]",
                                        .doc = "Runs simulated jobs, each from a seed. NAME=VALUE replaces what the seed draws (plan.def)."};

    /* Equal addresses in each run, so that nothing depends on them. */
    if (0 == (personality(0xffffffff) & ADDR_NO_RANDOMIZE) && 0 <= personality(ADDR_NO_RANDOMIZE)) {
        execv("/proc/self/exe", argv);
    }
    argp_parse(&command, argc, argv, 0, NULL, NULL);
    if (options.shows_plan) {
        const plan_t p = plan_of(options.first);

        for (unsigned i = 0; i < PLAN_COUNT; ++i) {
            printf("%-14s %8u  %s\n", plan_names[i], p.value[i], plan_meanings[i]);
        }
        return 0;
    }
    results = mmap(NULL, (MOST_JOBS + 1) * sizeof(*results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == results) {
        perror("world");
        return 2;
    }
    ompi_begin();
    images_load(images_needed());
    if (options.debugs) {
        plan = plan_of(options.first);
        world_run(options.first, images);
        return 0;
    }
    if (0 < options.sweep && !sweep_begin()) {
        printf("the run without a failure fails\n");
        return 1;
    }
    return 0 == run_all() ? 0 : 1;
}
