/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * broken_figures FILE N SEED: damages the figures of a process in N ways, and reads each result as `bfo status` and `bfo events` do.
 * The program fails if a field out of range is accepted. One in 16 inputs is random from its first byte. DESIGN.txt section 19.
 */
#include "bt.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

static uint64_t next_random(void) /* xorshift64* */
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * UINT64_C(2685821657736338717);
}

static void must(bool is, const char *what, unsigned long n)
{
    if (!is) {
        fprintf(stderr, "input %lu: %s\n", n, what);
        abort();
    }
}

static bool is_clean(const char *text, size_t size)
{
    if (NULL == memchr(text, 0, size)) {
        return false;
    }
    for (; '\0' != *text; ++text) {
        if (*text < 0x20 || *text > 0x7e) {
            return false;
        }
    }
    return true;
}

static void damage(bfo_figures_t *f)
{
    static const size_t words[] = {offsetof(bfo_figures_t, n_ports),       offsetof(bfo_figures_t, n_events),
                                   offsetof(bfo_figures_t, verdict),       offsetof(bfo_figures_t, port[0].state),
                                   offsetof(bfo_figures_t, event[0].what), offsetof(bfo_figures_t, event[1].number),
                                   offsetof(bfo_figures_t, began_wall)};
    const unsigned n = 1 + next_random() % 8;

    for (unsigned i = 0; i < n; ++i) {
        size_t at = next_random() % sizeof(*f), length = 1 + next_random() % 64;
        const uint64_t word = next_random() % 3 ? next_random() : (uint64_t) - (int64_t) (next_random() % 4);

        if (0 == next_random() % 2) {
            at = words[next_random() % (sizeof(words) / sizeof(words[0]))];
            length = 4;
        }
        length = length < sizeof(*f) - at ? length : sizeof(*f) - at;
        for (size_t b = 0; b < length; ++b) {
            ((unsigned char *) f)[at + b] = (unsigned char) (word >> 8 * (b % 8));
        }
    }
}

static void look(bfo_figures_t *f, unsigned long n)
{
    static bt_process_t process;
    bt_process_t *one = &process;
    const bt_all_t all = {.process = &one, .n = 1};
    char room[BT_TIME];
    bt_job_t job;

    process.f = *f;
    process.alive = n % 2;
    must(f->n_ports <= BFO_FIGURES_PORTS && f->verdict < BFO_FIGURES_VERDICTS, "a number is out of range", n);
    must(is_clean(f->host, sizeof(f->host)) && is_clean(f->command, sizeof(f->command)) && is_clean(f->reason, sizeof(f->reason)),
         "a text is not clean", n);
    for (unsigned i = 0; i < BFO_FIGURES_PORTS; ++i) {
        must(f->port[i].state < BFO_FIGURES_STATES && f->port[i].rails_lost <= f->port[i].rails && is_clean(f->port[i].name, sizeof(f->port[i].name))
                 && is_clean(f->port[i].cause, sizeof(f->port[i].cause)),
             "a port is not checked", n);
    }
    for (unsigned i = 0; i < BFO_FIGURES_EVENTS; ++i) {
        const bfo_figures_event_t *e = &f->event[i];

        must(0 == e->number
                 || (e->what < BFO_FIGURES_WHATS && e->before < BFO_FIGURES_STATES && e->after < BFO_FIGURES_STATES && e->number <= f->n_events),
             "an event is not checked", n);
        must(is_clean(e->cause, sizeof(e->cause)) && is_clean(e->host, sizeof(e->host)), "an event's text is not clean", n);
        must('\0' != bt_time(room, e->wall)[0], "a time has no text", n);
    }
    bt_job_sum(&job, &all, 0, 1);
    must(job.n_ports <= BFO_FIGURES_PORTS && 1 == job.n, "the sum is out of range", n);
    if (0 == n % 1000) {
        bt_print_prometheus(&all);
    }
}

int main(int argc, char **argv)
{
    static bfo_figures_t good, f;
    const char *name = 4 == argc ? strrchr(argv[1], '/') : NULL;
    const unsigned long most = NULL == name ? 0 : strtoul(argv[2], NULL, 10);
    FILE *in = NULL == name ? NULL : fopen(argv[1], "rb");
    unsigned long accepted = 0;

    if (NULL == in || 1 != fread(&good, sizeof(good), 1, in)) {
        fputs("usage: broken_figures DIR/FILE N SEED\n", stderr);
        return 2;
    }
    fclose(in);
    seed = strtoull(argv[3], NULL, 10) | 1;
    f = good;
    must(NULL == bt_check(&f, name + 1), "the whole file is refused", 0);
    for (unsigned long n = 0; n < most; ++n) {
        f = good;
        if (0 == n % 16) {
            for (size_t i = 0; i < sizeof(f) / 8; ++i) {
                ((uint64_t *) &f)[i] = next_random();
            }
            if (0 == n % 32) { /* otherwise the first check refuses it */
                memcpy(&f, &good, offsetof(bfo_figures_t, started));
            }
        } else {
            damage(&f);
        }
        if (NULL == bt_check(&f, name + 1)) {
            ++accepted;
            look(&f, n);
        }
    }
    fprintf(stderr, "%lu inputs, %lu of them accepted\n", most, accepted);
    return 0 == accepted; /* if none was accepted, nothing was tested */
}
