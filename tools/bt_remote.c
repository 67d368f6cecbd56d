/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Figures from other nodes: bfo figures writes the figures that it has read as bytes. The bfo that asked checks them like files, because it
 * does not trust the other host either. DESIGN.txt section 19.9.
 */
#include "bt_hosts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header of each process. If all members except the magic are zero, no more follow. Numbers are in the byte order of the machine;
 * machines with another order are refused. */
typedef struct {
    uint64_t magic; /* BFO_FIGURES_MAGIC */
    uint32_t size;  /* bytes that follow */
    uint32_t uid;
    uint8_t alive, torn, reserved[6];
} head_t;

enum { SECONDS = 60 };

typedef struct {
    bt_source_t source;
    const char *job;
} choice_t;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        bt_take_word(state, &choice->job, arg);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &choice->source;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int bt_cmd_figures(int argc, char **argv)
{
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "[JOB]",
        .children = children,
        .doc = "Write the figures of the jobs of this node to a pipe, for a bfo that runs with --hosts on another node."};
    choice_t choice = {.job = NULL};
    head_t head;
    bt_all_t all;

    argv[0] = (char *) "bfo figures";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (isatty(STDOUT_FILENO)) {
        fputs("bfo figures: this is for programs; 'bfo status' is for people\n", stderr);
        return BT_USAGE;
    }
    if (!bt_read_from(&all, &choice.source, choice.job)) {
        fputs("bfo: no memory\n", stderr);
        return BT_TROUBLE;
    }
    for (size_t i = 0; i < all.n; ++i) {
        const bt_process_t *process = all.process[i];

        head = (head_t){.magic = BFO_FIGURES_MAGIC, .size = sizeof(process->f), .uid = process->uid, .alive = process->alive, .torn = process->torn};
        fwrite(&head, sizeof(head), 1, stdout);
        fwrite(&process->f, sizeof(process->f), 1, stdout);
    }
    head = (head_t){.magic = BFO_FIGURES_MAGIC};
    fwrite(&head, sizeof(head), 1, stdout);
    bt_print_refused(&all);
    bt_free(&all);
    return 0 == fflush(stdout) && !ferror(stdout) ? BT_WELL : BT_TROUBLE;
}

/* Takes a process. Returns NULL, or what is wrong with the bytes. */
static const char *take_process(bt_all_t *all, const unsigned char *bytes, const head_t *head)
{
    bt_process_t *process = calloc(1, sizeof(*process));
    char name[BFO_FIGURES_NAME];
    const char *why;

    if (NULL == process) {
        return "no memory";
    }
    memcpy(&process->f, bytes, sizeof(process->f));
    process->uid = head->uid;
    process->alive = 0 != head->alive;
    process->torn = 0 != head->torn;
    bfo_figures_make_name(name, process->f.job, process->f.rank, process->f.pid);
    why = bt_check(&process->f, name);
    if (NULL == why && !bt_add(all, process)) {
        why = "no memory, or more processes than are read";
    }
    if (NULL != why) {
        free(process);
    }
    return why;
}

static const char *take(bt_all_t *all, const unsigned char *bytes, size_t length)
{
    for (;;) {
        const char *why;
        head_t head;

        if (length < sizeof(head)) {
            return "what it said is not whole";
        }
        memcpy(&head, bytes, sizeof(head));
        bytes += sizeof(head);
        length -= sizeof(head);
        if (BFO_FIGURES_MAGIC != head.magic) {
            return "what it said are no figures";
        }
        if (0 == head.size) {
            return NULL;
        }
        if (sizeof(bfo_figures_t) != head.size || length < head.size) {
            return "another release of bfo is installed there";
        }
        why = take_process(all, bytes, &head);
        if (NULL != why) {
            return why;
        }
        bytes += head.size;
        length -= head.size;
    }
}

bool bt_hosts_read(bt_all_t *all, const bt_source_t *source, const char *job)
{
    const char *words[BT_MOST_WORDS] = {NULL};
    const char *wrong;
    bt_hosts_t hosts;

    words[bt_hosts_words(words, "figures", NULL, false, source)] = job;
    wrong = bt_hosts_check(source, words);
    if (NULL != wrong) {
        fprintf(stderr, "bfo: %s\n", wrong);
        exit(BT_USAGE);
    }
    if (!bt_hosts_run(&hosts, source, words, (size_t) BT_MOST_PROCESSES * sizeof(bfo_figures_t), SECONDS)) {
        bt_hosts_free(&hosts);
        return false;
    }
    for (size_t i = 0; i < hosts.n; ++i) {
        const bt_host_t *host = &hosts.host[i];
        const char *why = 0 != host->status ? "bfo failed there, or could not be run" : take(all, host->out, host->length);

        if (NULL != why) {
            fprintf(stderr, "bfo: %s: %s\n", host->host, why);
            all->has_failed = true;
        }
    }
    bt_hosts_free(&hosts);
    return true;
}
