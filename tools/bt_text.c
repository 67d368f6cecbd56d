/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Words, numbers, times and colours of the command `bfo`. DESIGN.txt section 19.
 */
#include "bt.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *bt_time(char room[BT_TIME], uint64_t wall_ns)
{
    const time_t seconds = (time_t) (wall_ns / UINT64_C(1000000000));
    char day[24], zone[8];
    struct tm tm;

    if (0 == wall_ns || NULL == localtime_r(&seconds, &tm) || 0 == strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm)
        || 0 == strftime(zone, sizeof(zone), "%z", &tm)) {
        snprintf(room, BT_TIME, "-");
    } else {
        snprintf(room, BT_TIME, "%s.%03u%s", day, (unsigned) (wall_ns / 1000000 % 1000), zone);
    }
    return room;
}

const char *bt_rate(char room[16], uint32_t megabits)
{
    if (0 == megabits) {
        snprintf(room, 16, "-");
    } else if (0 == megabits % 1000) {
        snprintf(room, 16, "%uG", megabits / 1000);
    } else {
        snprintf(room, 16, "%uM", megabits);
    }
    return room;
}

const char *bt_amount(char room[16], double amount)
{
    static const char units[] = " kMGTPEZY";
    unsigned i = 0;

    for (; 999.5 <= amount && i + 2 < sizeof(units); ++i) {
        amount /= 1000;
    }
    if (0 == i) {
        snprintf(room, 16, "%.0f", amount);
    } else {
        snprintf(room, 16, "%.*f%c", amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0, amount, units[i]);
    }
    return room;
}

const char *bt_job_name(char room[16], uint32_t job)
{
    snprintf(room, 16, "%u.%u", job >> 16, job & 0xffff);
    return room;
}

const char *bt_port_of(char room[64], const char *here)
{
    snprintf(room, 64, "%.*s", (int) strcspn(here, " "), here);
    return room;
}

const char *bt_state_name(uint32_t state)
{
    return bfo_figures_state_name(state);
}

const char *bt_verdict_name(uint32_t verdict)
{
    static const char *const names[BFO_FIGURES_VERDICTS] = {"not known yet", "in force", "not in force"};

    return names[verdict];
}

const char *bt_what_name(uint32_t what)
{
    return bfo_figures_what_name(what);
}

bool bt_is_under_mpirun(void)
{
    return NULL != getenv("OMPI_COMM_WORLD_RANK");
}

static bool has_colours(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !bt_is_under_mpirun() && NULL == getenv("NO_COLOR") && NULL != term && 0 != strcmp("dumb", term);
}

const char *bt_colour_of(uint32_t state)
{
    if (!has_colours() || BFO_FIGURES_UNUSED == state) {
        return "";
    }
    return BFO_FIGURES_UP == state                                                                      ? "\033[32m"
           : BFO_FIGURES_PART == state || BFO_FIGURES_DRAINING == state || BFO_FIGURES_DRAINED == state ? "\033[33m"
                                                                                                        : "\033[31m";
}

const char *bt_no_colour(void)
{
    return has_colours() ? "\033[0m" : "";
}

void bt_take_word(struct argp_state *state, const char **word, const char *arg)
{
    if (NULL != *word) {
        argp_error(state, "'%s' is one word too many", arg);
    }
    *word = arg;
}

void bt_file_name(char *name, size_t size, const char *what, const char *ending)
{
    const time_t now = time(NULL);
    char host[128] = "", when[32] = "";
    struct tm parts;

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, "./")] = '\0';
    if (NULL != localtime_r(&now, &parts)) {
        strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
    }
    snprintf(name, size, "bfo-%s-%s-%s.%s", what, host, when, ending);
}

void bt_print_json(json_t *json, bool is_line)
{
    if (NULL == json || 0 != json_dumpf(json, stdout, (is_line ? JSON_COMPACT : JSON_INDENT(2)) | JSON_SORT_KEYS | JSON_REAL_PRECISION(9))) {
        fputs("bfo: no memory, or the output cannot be written\n", stderr);
        exit(BT_TROUBLE);
    }
    putchar('\n');
    json_decref(json);
}
