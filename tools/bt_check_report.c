/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo check: its report, for people and for programs. DESIGN.txt section 19.10.
 */
#include "bt_check.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bfo_config.h"

enum { SECONDS = 24, TAIL = 12, LINE = 512 };

static const char *verdict_name(bt_port_verdict_t verdict)
{
    static const char *const names[BT_PORT_VERDICTS] = {"not tried", "interrupted", "survived", "not survived", "not seen lost", "not come back"};

    return names[verdict];
}

/* ---- for programs ---------------------------------------------------------------------------------------------- */

static json_t *seconds_json(double seconds)
{
    return 0 > seconds ? json_null() : json_real(seconds);
}

static json_t *tried_json(const bt_tried_t *tried)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "port", tried->name, "verdict", verdict_name(tried->verdict), "command_s",
                     seconds_json(tried->command), "noticed_s", seconds_json(tried->noticed), "longest_gap_s", seconds_json(tried->gap), "resent",
                     0 > tried->resent ? json_null() : json_integer(tried->resent), "used_again_s", seconds_json(tried->back), "state",
                     bt_state_name(tried->state));
}

static void print_json(const bt_check_t *check, const char *host)
{
    const bt_stream_t *stream = &check->stream;
    json_t *ports = json_array();
    char now[BT_TIME], job[16];

    for (size_t i = 0; i < check->n_tried; ++i) {
        json_array_append_new(ports, tried_json(&check->tried[i]));
    }
    bt_print_json(json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:i, s:i, s:o, s:I, s:I, s:I, s:o, s:o}", "version", BFO_VERSION, "time",
                            bt_time(now, (uint64_t) time(NULL) * UINT64_C(1000000000)), "host", host, "job",
                            check->is_found ? bt_job_name(job, check->number) : "", "well", BT_WELL == check->status, "reason", check->reason,
                            "status", check->status, "signal", bt_signal(), "ports", ports, "messages", (json_int_t) stream->messages, "bytes",
                            (json_int_t) stream->bytes, "wrong", (json_int_t) stream->wrong, "longest_gap_s", json_real(stream->longest), "log",
                            BT_WELL == check->status && NULL == check->choice.log_name ? json_null() : json_string(check->log_name)),
                  false);
}

/* ---- for people ------------------------------------------------------------------------------------------------- */

static const char *seconds_text(char room[SECONDS], double seconds)
{
    if (0 > seconds) {
        return "-";
    }
    snprintf(room, SECONDS, "%.3f s", seconds);
    return room;
}

static void print_tried(const bt_tried_t *tried)
{
    const bool is_tried = BT_NOT_TRIED != tried->verdict;
    char took[SECONDS], noticed[SECONDS], gap[SECONDS], back[SECONDS], resent[SECONDS] = "-";

    if (0 <= tried->resent) {
        snprintf(resent, sizeof(resent), "%lld", (long long) tried->resent);
    }
    printf("  %-16.63s %s%-13s%s %10s %10s %12s %10s %12s  %s\n", tried->name,
           is_tried ? bt_colour_of(BT_SURVIVED == tried->verdict ? BFO_FIGURES_UP : BFO_FIGURES_LOST) : "", verdict_name(tried->verdict),
           is_tried ? bt_no_colour() : "", seconds_text(took, tried->command), seconds_text(noticed, tried->noticed), seconds_text(gap, tried->gap),
           resent, seconds_text(back, tried->back), bt_state_name(tried->state));
}

static void print_text(const bt_check_t *check, const char *host)
{
    const bt_stream_t *stream = &check->stream;
    char job[16];

    if (0 == check->n_tried) {
        printf("bfo check on %s: no port was cut\n", host);
    } else {
        printf("bfo check on %s, job %s\n", host, bt_job_name(job, check->number));
        printf("  %-16s %-13s %10s %10s %12s %10s %12s  %s\n", "PORT", "VERDICT", "CUT TOOK", "NOTICED", "LONGEST GAP", "SENT AGAIN", "USED AGAIN",
               "STATE AT END");
    }
    for (size_t i = 0; i < check->n_tried; ++i) {
        print_tried(&check->tried[i]);
    }
    printf("  %llu messages, %.1f MiB verified, %llu wrong; longest gap %.3f s\n", (unsigned long long) stream->messages,
           (double) stream->bytes / 1048576.0, (unsigned long long) stream->wrong, stream->longest);
    if (BT_WELL == check->status) {
        puts("  all is well: each of these ports was lost and came back, and the stream went on");
    } else {
        printf("  not well: %s\n", check->reason);
    }
    if (BT_WELL != check->status || NULL != check->choice.log_name) {
        printf("  log: %s\n", check->log_name);
    }
}

/* Prints the end of the log, because the last words of mpirun or of the command often explain the trouble. */
static void print_tail(const char *name)
{
    char line[TAIL][LINE] = {""};
    FILE *in = fopen(name, "re");
    size_t n = 0;

    while (NULL != in && NULL != fgets(line[n % TAIL], LINE, in)) {
        if ('{' != line[n % TAIL][sizeof("stream: ") - 1]) { /* progress lines explain nothing */
            ++n;
        }
    }
    fprintf(stderr, "the last lines of %s:\n", name);
    for (size_t i = n < TAIL - 1 ? 0 : n - (TAIL - 1); i < n; ++i) { /* the place after them may have a progress line */
        line[i % TAIL][strcspn(line[i % TAIL], "\n")] = '\0';
        bt_clean_text(line[i % TAIL], LINE);
        fprintf(stderr, "  %s\n", line[i % TAIL]);
    }
    if (NULL != in) {
        fclose(in);
    }
}

void bt_check_report(const bt_check_t *check)
{
    char host[128] = "";

    gethostname(host, sizeof(host) - 1);
    if (BT_TROUBLE == check->status && 0 == bt_signal()) {
        print_tail(check->log_name);
    }
    if (check->choice.json) {
        print_json(check, host);
    } else {
        print_text(check, host);
    }
}
