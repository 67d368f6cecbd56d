/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Steps in virtual time, threads as coroutines, locks and descriptors. See schedule.h.
 */
#include "schedule.h"

#include "trace.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 256 * 1024, MOST_FDS = 65536, FIRST_FD = 10000, MOST_THREADS = 16384 };

typedef struct thread {
    ucontext_t context; /* for its first step; later steps jump, because a jump costs no system call */
    jmp_buf place;
    bool has_begun;
    unsigned number;
    world_process_t *process;
    const world_image_t *image;
    void *local; /* what the image's variable holds while another thread runs */
    void *(*main)(void *);
    void *argument, *result;
    bool has_ended, is_first;
    uint32_t waits; /* which wait of this thread it is; a step that belongs to an older wait is dropped */
    bool is_owed;   /* a step came while the process was stopped */
    struct pollfd *polled;
    nfds_t n_polled;
} thread_t;

typedef struct {
    uint64_t when, order;
    void (*does)(void *);
    void *argument; /* of `does`; or the thread */
    uint32_t wait;
} step_t;

world_process_t *world_me;
uint64_t world_now;

static step_t *steps;
static size_t n_steps, room_for_steps;
static uint64_t order, done;
static thread_t *threads[MOST_THREADS], *me;
static unsigned n_threads, n_alive, preempt_mean, points_left;
static uint64_t most_late;
static bool is_over;
static jmp_buf host;
static struct {
    bool is_used, is_ready;
    unsigned pollers; /* how often it stands in the lists of threads that poll */
    thread_t *poller; /* the last of these threads, or NULL */
    uint64_t counter; /* of an eventfd */
} fds[MOST_FDS];
static int first_free; /* no descriptor before it is free */

/* ---- steps: a heap, the earliest first ------------------------------------------------------------------ */

static bool is_before(const step_t *a, const step_t *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void step_add(step_t step)
{
    size_t i = n_steps++;

    if (n_steps > room_for_steps) {
        room_for_steps = 2 * room_for_steps + 1024;
        steps = realloc(steps, room_for_steps * sizeof(*steps));
        if (NULL == steps) {
            abort();
        }
    }
    step.when = step.when < world_now ? world_now : step.when;
    step.order = ++order;
    for (; i > 0 && is_before(&step, &steps[(i - 1) / 2]); i = (i - 1) / 2) {
        steps[i] = steps[(i - 1) / 2];
    }
    steps[i] = step;
}

static step_t step_take(void)
{
    const step_t first = steps[0], last = steps[--n_steps];
    size_t i = 0;

    for (size_t child = 1; child < n_steps; child = 2 * i + 1) {
        if (child + 1 < n_steps && is_before(&steps[child + 1], &steps[child])) {
            ++child;
        }
        if (!is_before(&steps[child], &last)) {
            break;
        }
        steps[i] = steps[child];
        i = child;
    }
    steps[i] = last;
    return first;
}

void world_at(uint64_t when, void (*does)(void *argument), void *argument)
{
    step_add((step_t){.when = when, .does = does, .argument = argument});
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static void wake_at(thread_t *thread, uint64_t when)
{
    step_add((step_t){.when = when, .argument = thread, .wait = thread->waits});
}

static void draw_points(void)
{
    points_left = 0 == preempt_mean ? UINT32_MAX : 1 + world_draw(2 * preempt_mean);
}

/* Back to the host; returns when a step wakes the thread. */
static void switch_out(void)
{
    thread_t *self = me;

    self->local = *self->image->local;
    if (0 == _setjmp(self->place)) {
        _longjmp(host, 1);
    }
    *self->image->local = self->local;
}

static void switch_in(thread_t *thread)
{
    ++thread->waits;
    me = thread;
    world_me = thread->process;
    draw_points();
    if (0 == _setjmp(host)) {
        if (thread->has_begun) {
            _longjmp(thread->place, 1);
        }
        thread->has_begun = true;
        setcontext(&thread->context);
    }
    me = NULL;
    world_me = NULL;
}

static void thread_main(void)
{
    thread_t *self = me;

    *self->image->local = NULL;
    self->result = self->main(self->argument);
    self->has_ended = true;
    n_alive -= self->is_first;
    switch_out();
}

static thread_t *thread_make(world_process_t *process, const world_image_t *image, void *(*main)(void *), void *argument)
{
    thread_t *thread = calloc(1, sizeof(*thread));
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (NULL == thread || MAP_FAILED == stack || MOST_THREADS == n_threads) {
        abort();
    }
    *thread = (thread_t){.number = n_threads, .process = process, .image = image, .main = main, .argument = argument};
    threads[n_threads++] = thread;
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stack;
    thread->context.uc_stack.ss_size = STACK;
    makecontext(&thread->context, thread_main, 0);
    wake_at(thread, world_now + world_draw(20000));
    return thread;
}

static void *first_main(void *image)
{
    ((const world_image_t *) image)->main();
    return NULL;
}

void sched_add(world_process_t *process, const world_image_t *image)
{
    thread_make(process, image, first_main, (void *) (uintptr_t) image)->is_first = true;
    ++n_alive;
}

static void sleep_until(uint64_t when)
{
    wake_at(me, when);
    switch_out();
}

void world_sleep(uint64_t ns)
{
    sleep_until(world_now + ns);
}

void world_point(void)
{
    if (0 == --points_left) {
        if (NULL == me) {
            draw_points();
        } else {
            sleep_until(world_now + world_draw(30000));
        }
    }
}

unsigned world_thread(void)
{
    return NULL == me ? 0 : me->number;
}

int world_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *argument)
{
    *thread = (pthread_t) thread_make(me->process, me->image, main, argument);
    return 0;
}

int world_thread_join(pthread_t thread, void **result)
{
    const thread_t *other = (const thread_t *) thread;

    while (!other->has_ended) {
        sleep_until(world_now + 10 * WORLD_US);
    }
    if (NULL != result) {
        *result = other->result;
    }
    return 0;
}

/* ---- time ------------------------------------------------------------------------------------------------ */

enum { BOOT_S = 1000000 }; /* the clock of a machine does not begin at 0 */

int world_clock_gettime(clockid_t clock, struct timespec *now)
{
    *now = (struct timespec){.tv_sec = BOOT_S + (time_t) (world_now / WORLD_S), .tv_nsec = (long) (world_now % WORLD_S)};
    return 0;
}

time_t world_time(time_t *now)
{
    const time_t is = BOOT_S + (time_t) (world_now / WORLD_S);

    if (NULL != now) {
        *now = is;
    }
    return is;
}

int world_usleep(unsigned us)
{
    world_sleep(WORLD_US * us + world_draw(20000));
    return 0;
}

int world_nanosleep(const struct timespec *pause, struct timespec *left)
{
    world_sleep(WORLD_S * (uint64_t) pause->tv_sec + (uint64_t) pause->tv_nsec);
    return 0;
}

int world_sched_yield(void)
{
    world_sleep(200 + world_draw(1000));
    return 0;
}

/* ---- locks: the library's own fields, so that Open MPI's constructors fit ------------------------------------- */

int world_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    memset(mutex, 0, sizeof(*mutex));
    return 0;
}

int world_mutex_destroy(pthread_mutex_t *mutex)
{
    if (0 != mutex->__data.__lock) {
        world_broken("a mutex is destroyed while thread %d holds it", mutex->__data.__owner - 1);
    }
    return 0;
}

int world_mutex_trylock(pthread_mutex_t *mutex)
{
    if (0 != mutex->__data.__lock) {
        return EBUSY;
    }
    mutex->__data.__lock = 1;
    mutex->__data.__owner = NULL != me ? (int) me->number + 1 : 0;
    return 0;
}

int world_mutex_lock(pthread_mutex_t *mutex)
{
    uint64_t pause = 500;

    world_point();
    while (0 != world_mutex_trylock(mutex)) {
        if ((int) me->number + 1 == mutex->__data.__owner) {
            world_broken("thread %u locks a mutex that it holds", me->number);
        }
        world_sleep(pause + world_draw(1000));
        pause = pause < WORLD_MS ? 2 * pause : pause;
    }
    return 0;
}

int world_mutex_unlock(pthread_mutex_t *mutex)
{
    if (0 == mutex->__data.__lock) {
        world_broken("a mutex is unlocked that nobody holds");
    }
    mutex->__data.__lock = 0;
    mutex->__data.__owner = 0;
    world_point();
    return 0;
}

/* ---- descriptors --------------------------------------------------------------------------------------------- */

int world_fd_make(void)
{
    for (int i = first_free; i < MOST_FDS; ++i) {
        if (!fds[i].is_used) {
            first_free = i + 1;
            fds[i].is_used = true;
            fds[i].is_ready = false;
            fds[i].counter = 0;
            return FIRST_FD + i;
        }
    }
    abort();
}

void world_fd_free(int fd)
{
    if (FIRST_FD > fd || FIRST_FD + MOST_FDS <= fd || !fds[fd - FIRST_FD].is_used) {
        world_broken("the descriptor %d is closed and was not open", fd);
    }
    fds[fd - FIRST_FD].is_used = false;
    first_free = fd - FIRST_FD < first_free ? fd - FIRST_FD : first_free;
}

/* Short delays are as frequent as long ones. */
static uint64_t late(void)
{
    return 0 == most_late || 0 != world_draw(50) ? 0 : world_draw((unsigned) (most_late >> world_draw(8)) + 1);
}

static void wake_poller(thread_t *thread)
{
    wake_at(thread, world_now + 1000 + world_draw(20000) + late());
}

/* Mostly one thread polls a descriptor. */
void world_fd_ready(int fd, bool is_ready)
{
    fds[fd - FIRST_FD].is_ready = is_ready;
    if (is_ready && 1 == fds[fd - FIRST_FD].pollers && NULL != fds[fd - FIRST_FD].poller) {
        wake_poller(fds[fd - FIRST_FD].poller);
        return;
    }
    for (unsigned t = 0; is_ready && 0 < fds[fd - FIRST_FD].pollers && t < n_threads; ++t) {
        for (nfds_t i = 0; i < threads[t]->n_polled; ++i) {
            if (fd == threads[t]->polled[i].fd) {
                wake_poller(threads[t]);
                break;
            }
        }
    }
}

/* This thread begins or ends to poll. */
static void polls(struct pollfd *list, nfds_t n, bool begins)
{
    me->polled = list;
    me->n_polled = begins ? n : 0;
    for (nfds_t i = 0; i < n; ++i) {
        if (FIRST_FD <= list[i].fd) {
            fds[list[i].fd - FIRST_FD].pollers += begins ? 1 : -1u;
            fds[list[i].fd - FIRST_FD].poller = begins ? me : fds[list[i].fd - FIRST_FD].poller == me ? NULL : fds[list[i].fd - FIRST_FD].poller;
        }
    }
}

static int ready_among(struct pollfd *list, nfds_t n)
{
    int count = 0;

    for (nfds_t i = 0; i < n; ++i) {
        list[i].revents = 0;
        if (FIRST_FD <= list[i].fd && fds[list[i].fd - FIRST_FD].is_ready) {
            list[i].revents = POLLIN;
            ++count;
        }
    }
    return count;
}

int world_poll(struct pollfd *list, nfds_t n, int timeout_ms)
{
    int count = ready_among(list, n);

    if (0 == count && 0 != timeout_ms) {
        polls(list, n, true);
        if (0 < timeout_ms) {
            wake_at(me, world_now + WORLD_MS * (unsigned) timeout_ms + world_draw(60000) + late());
        }
        switch_out();
        polls(list, n, false);
        count = ready_among(list, n);
    } else {
        world_sleep(500 + world_draw(1000));
    }
    return count;
}

int world_eventfd(unsigned value, int flags)
{
    return world_fd_make();
}

ssize_t world_read(int fd, void *buffer, size_t size)
{
    uint64_t *counter = &fds[fd - FIRST_FD].counter;

    if (0 == *counter) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(buffer, counter, sizeof(*counter));
    *counter = 0;
    fds[fd - FIRST_FD].is_ready = false;
    return (ssize_t) sizeof(*counter);
}

ssize_t world_write(int fd, const void *buffer, size_t size)
{
    if (FIRST_FD > fd || !fds[fd - FIRST_FD].is_used) {
        world_broken("the descriptor %d is written to and is not open", fd);
    }
    fds[fd - FIRST_FD].counter += *(const uint64_t *) buffer;
    world_fd_ready(fd, true);
    return (ssize_t) size;
}

int world_close(int fd)
{
    world_fd_free(fd);
    return 0;
}

int world_fcntl(int fd, int command, ...)
{
    return 0;
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

void sched_begin(uint64_t seed, unsigned preempt)
{
    trace_begin(seed);
    preempt_mean = preempt;
    draw_points();
}

void sched_late(uint64_t most)
{
    most_late = most;
}

unsigned sched_alive(void)
{
    return n_alive;
}

unsigned sched_threads_of(const world_process_t *process)
{
    unsigned n = 0;

    for (unsigned t = 0; t < n_threads; ++t) {
        n += process == threads[t]->process && !threads[t]->has_ended;
    }
    return n;
}

uint64_t sched_steps(void)
{
    return done;
}

size_t sched_memory(void)
{
    return room_for_steps * sizeof(*steps);
}

static void run_thread(thread_t *thread, uint32_t wait)
{
    if (wait != thread->waits || thread->process->is_dead || thread->has_ended) {
        return;
    }
    if (thread->process->is_stopped) {
        thread->is_owed = true;
        return;
    }
    switch_in(thread);
}

void sched_end(void)
{
    is_over = true;
}

static void report(void)
{
    for (unsigned t = 0; t < n_threads; ++t) {
        world_me = threads[t]->process;
        if (threads[t]->is_first && !threads[t]->has_ended && !threads[t]->process->is_dead) {
            threads[t]->image->report();
        }
    }
    world_me = NULL;
}

bool sched_run(uint64_t most)
{
    while (0 < sched_alive() && !is_over) {
        const step_t step = 0 < n_steps ? step_take() : (step_t){.when = UINT64_MAX};

        if (step.when > most) {
            report();
            if (!is_over) {
                world_broken("the job has not ended after %.0f s of its time", (double) most / 1e9);
            }
            return false;
        }
        world_now = step.when;
        ++done;
        trace_mix(&step.when, sizeof(step.when));
        if (NULL != step.does) {
            step.does(step.argument);
        } else {
            run_thread(step.argument, step.wait);
        }
    }
    return !is_over;
}

void sched_kill(world_process_t *process)
{
    for (unsigned t = 0; !process->is_dead && t < n_threads; ++t) {
        n_alive -= process == threads[t]->process && threads[t]->is_first && !threads[t]->has_ended;
    }
    process->is_dead = true;
}

void sched_stop(world_process_t *process, bool is_stopped)
{
    process->is_stopped = is_stopped;
    for (unsigned t = 0; !is_stopped && t < n_threads; ++t) {
        if (process == threads[t]->process && threads[t]->is_owed) {
            threads[t]->is_owed = false;
            wake_at(threads[t], world_now + world_draw(100000));
        }
    }
}
