/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo events --plot: a picture of the ports of jobs over time. It takes the events, one by one, and the state of the ports at the end, and
 * has gnuplot draw the picture. A lane is a port of a job on this node. DESIGN.txt section 19.
 */
#include "bt.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST_NOTES = 1 << 20, MOST_LANES = 256, WORD = 64 };

/* What the picture needs of an event; or that a process uses a port. */
typedef struct {
    uint64_t wall;
    uint32_t what; /* bfo_figures_what_t; 0: the port is in use from now on */
    uint32_t job, rank, pid;
    uid_t uid;
    bool is_no_loss; /* port-down: all rails were kept */
    char port[WORD];
} note_t;

/* The state of a process on a lane. */
typedef struct {
    uint32_t rank, pid;
    uint32_t lost; /* rails that were lost by events of their own */
    bool is_down;  /* the port went down, and no rail is back since */
} member_t;

typedef enum { UP, LOST, OUT, DRAINED, STATES } colour_t;
static const struct {
    const char *colour, *title;
} colours[STATES] = {{"0x2ca02c", "in use"}, {"0xd62728", "a rail is lost"}, {"0xff9f1c", "being drained"}, {"0x1f77b4", "drained"}};

static note_t *notes;
static size_t n_notes;

static void no_memory(void)
{
    fputs("bfo: no memory\n", stderr);
    exit(BT_TROUBLE);
}

/* ---- what comes in ----------------------------------------------------------------------------------------- */

static note_t *new_note(const bt_process_t *p, uint64_t wall, uint32_t what)
{
    if (0 == (n_notes & (n_notes - 1))) {
        note_t *more = MOST_NOTES > n_notes ? realloc(notes, (0 == n_notes ? 1 : 2 * n_notes) * sizeof(*more)) : NULL;

        if (NULL == more) {
            no_memory();
        }
        notes = more;
    }
    notes[n_notes] = (note_t){.wall = wall, .what = what, .job = p->f.job, .rank = p->f.rank, .pid = p->f.pid, .uid = p->uid};
    return &notes[n_notes++];
}

void bt_plot_event(const bt_process_t *p, const bfo_figures_event_t *e)
{
    note_t *note = new_note(p, e->wall, e->what);

    snprintf(note->port, sizeof(note->port), "%.*s", (int) strcspn(e->here, " "), e->here);
}

static bool is_of(const note_t *note, const bt_process_t *p)
{
    return note->uid == p->uid && note->job == p->f.job && note->rank == p->f.rank && note->pid == p->f.pid;
}

/* If a port went down and is up again although no rail came back, its rails were kept. */
void bt_plot_process(const bt_process_t *p)
{
    for (uint32_t i = 0; i < p->f.n_ports; ++i) {
        note_t *last = NULL;
        bool is_known = false;

        for (size_t n = 0; n < n_notes; ++n) {
            if (is_of(&notes[n], p) && 0 == strcmp(notes[n].port, p->f.port[i].name)) {
                is_known = is_known || 0 == notes[n].what;
                last = BFO_FIGURES_PORT_DOWN == notes[n].what ? &notes[n] : BFO_FIGURES_RAIL_BACK == notes[n].what ? NULL : last;
            }
        }
        if (NULL != last) {
            last->is_no_loss = BFO_FIGURES_UP == p->f.port[i].state || BFO_FIGURES_UNUSED == p->f.port[i].state;
        }
        if (!is_known) {
            note_t *first = new_note(p, p->f.began_wall, 0);

            snprintf(first->port, sizeof(first->port), "%s", p->f.port[i].name);
        }
    }
}

/* ---- lanes ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const note_t *first; /* names it */
    member_t *member;
    size_t n_members;
    bool is_out, is_drained;
    double since;
    colour_t colour;
} lane_t;

static int by_time(const void *x, const void *y)
{
    const note_t *a = x, *b = y;

    return a->wall < b->wall ? -1 : a->wall > b->wall;
}

static int by_name(const void *x, const void *y)
{
    const note_t *a = ((const lane_t *) x)->first, *b = ((const lane_t *) y)->first;

    return a->job != b->job ? (a->job < b->job ? -1 : 1) : strcmp(a->port, b->port);
}

static lane_t *lane_of(lane_t *lane, size_t *n, const note_t *note)
{
    for (size_t i = 0; i < *n; ++i) {
        if (lane[i].first->uid == note->uid && lane[i].first->job == note->job && 0 == strcmp(lane[i].first->port, note->port)) {
            return &lane[i];
        }
    }
    if ('\0' == note->port[0] || MOST_LANES == *n) {
        return NULL;
    }
    lane[*n] = (lane_t){.first = note};
    return &lane[(*n)++];
}

static member_t *member_of(lane_t *lane, const note_t *note)
{
    member_t *more;

    for (size_t i = 0; i < lane->n_members; ++i) {
        if (lane->member[i].rank == note->rank && lane->member[i].pid == note->pid) {
            return &lane->member[i];
        }
    }
    more = realloc(lane->member, (lane->n_members + 1) * sizeof(*more));
    if (NULL == more) {
        no_memory();
    }
    lane->member = more;
    lane->member[lane->n_members] = (member_t){.rank = note->rank, .pid = note->pid};
    return &lane->member[lane->n_members++];
}

static colour_t colour_of(const lane_t *lane)
{
    if (lane->is_out) {
        return lane->is_drained ? DRAINED : OUT;
    }
    for (size_t i = 0; i < lane->n_members; ++i) {
        if (lane->member[i].is_down || 0 != lane->member[i].lost) {
            return LOST;
        }
    }
    return UP;
}

static void take(lane_t *lane, const note_t *note)
{
    member_t *member = member_of(lane, note);

    switch (note->what) {
    case BFO_FIGURES_PORT_DOWN:
        member->is_down = member->is_down || !note->is_no_loss;
        break;
    case BFO_FIGURES_RAIL_LOST:
        ++member->lost;
        break;
    case BFO_FIGURES_RAIL_BACK:
        member->is_down = false;
        member->lost -= 0 != member->lost;
        break;
    case BFO_FIGURES_PORT_OUT:
        lane->is_out = true;
        lane->is_drained = false;
        break;
    case BFO_FIGURES_PORT_DRAINED:
        lane->is_drained = true;
        break;
    case BFO_FIGURES_PORT_RELEASED:
        lane->is_out = lane->is_drained = false;
        break;
    default:
        break;
    }
}

/* ---- gnuplot -------------------------------------------------------------------------------------------------- */

/* Writes the text in single quotes, in which gnuplot replaces nothing. */
static void quote(FILE *out, const char *text)
{
    putc('\'', out);
    for (; '\0' != *text; ++text) {
        fprintf(out, '\'' == *text ? "''" : "%c", *text);
    }
    putc('\'', out);
}

static void bar(FILE *out, const lane_t *lane, size_t place, double until)
{
    fprintf(out, "%.3f %zu %.3f %.3f %.2f %.2f %s\n", lane->since, place, lane->since, until, (double) place - 0.3, (double) place + 0.3,
            colours[lane->colour].colour);
}

/* Seconds of the local wall clock. */
static double local(uint64_t wall)
{
    const time_t seconds = (time_t) (wall / UINT64_C(1000000000));
    struct tm tm = {0};

    (void) localtime_r(&seconds, &tm);
    return (double) (wall / 1000000) / 1e3 + (double) tm.tm_gmtoff;
}

static void head(FILE *out, const char *file, const lane_t *lane, size_t n, double begin, double end)
{
    fputs("set terminal svg size 1000,", out);
    fprintf(out, "%zu background rgb 'white'\nset output ", 160 + 40 * n);
    quote(out, file);
    fprintf(out, "\nset title 'Ports of MPI jobs over time'\nset xtics time format '%%H:%%M:%%S'\nset xrange [%.3f:%.3f]\nset yrange [%.1f:0.4]\n",
            begin, end, (double) n + 0.6);
    fputs("set grid x\nset key outside below\nset style fill solid noborder\nset ytics (", out);
    for (size_t i = 0; i < n; ++i) {
        char name[16], label[WORD + 24];

        snprintf(label, sizeof(label), "%s of %s", lane[i].first->port, bt_job_name(name, lane[i].first->job));
        quote(out, label);
        fprintf(out, " %zu%s", i + 1, i + 1 < n ? ", " : ")\n");
    }
    fputs("plot '-' using 1:2:3:4:5:6:7 with boxxyerror lc rgb variable notitle", out);
    for (int c = 0; c < STATES; ++c) {
        fprintf(out, ", NaN with boxes lc rgb %s title '%s'", colours[c].colour, colours[c].title);
    }
    putc('\n', out);
}

/* Writes the bars of all lanes. A bar ends when the lane's colour changes. */
static void bars(FILE *out, lane_t *lane, size_t n_lanes, double end)
{
    for (size_t i = 0; i < n_lanes; ++i) {
        lane[i].since = local(lane[i].first->wall);
    }
    for (size_t i = 0; i < n_notes; ++i) {
        lane_t *l = lane_of(lane, &n_lanes, &notes[i]);
        const double now = local(notes[i].wall);

        if (NULL == l) {
            continue;
        }
        take(l, &notes[i]);
        if (colour_of(l) != l->colour) {
            bar(out, l, (size_t) (l - lane) + 1, now);
            l->since = now;
            l->colour = colour_of(l);
        }
    }
    for (size_t i = 0; i < n_lanes; ++i) {
        bar(out, &lane[i], i + 1, end);
        free(lane[i].member);
    }
    fputs("e\n", out);
}

int bt_plot_draw(const char *file, uint64_t since, uint64_t now)
{
    static lane_t lane[MOST_LANES];
    double begin, end;
    size_t n = 0;
    FILE *out;
    int status;

    if (0 != n_notes) {
        qsort(notes, n_notes, sizeof(*notes), by_time);
    }
    for (size_t i = 0; i < n_notes; ++i) {
        (void) lane_of(lane, &n, &notes[i]);
    }
    if (0 == n) {
        fputs("bfo: no process uses a port, so there is nothing to draw\n", stderr);
        return BT_WELL;
    }
    qsort(lane, n, sizeof(*lane), by_name);
    begin = local(notes[0].wall > since ? notes[0].wall : since);
    end = local(now) > begin ? local(now) : begin + 1;
    (void) signal(SIGPIPE, SIG_IGN); /* gnuplot's exit status shows a failure */
    out = popen("gnuplot", "w");
    if (NULL != out) {
        head(out, file, lane, n, begin, end);
        bars(out, lane, n, end);
    }
    status = NULL == out ? -1 : pclose(out);
    if (0 != status) {
        fprintf(stderr, "bfo: %s was not drawn: %s\n", file,
                -1 == status                                      ? strerror(errno)
                : WIFEXITED(status) && 127 == WEXITSTATUS(status) ? "there is no gnuplot in PATH"
                                                                  : "gnuplot failed");
    }
    free(notes);
    return 0 == status ? BT_WELL : BT_TROUBLE;
}
