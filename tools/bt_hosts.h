/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Other nodes: a command is run on all of them at the same time, by ssh or a similar command. DESIGN.txt section 19.9.
 */
#ifndef BT_HOSTS_H
#define BT_HOSTS_H

#include "bt.h"

enum { BT_MOST_HOSTS = 4096, BT_MOST_WORDS = 32, BT_LOGIN_SECONDS = 30 };

/* The output of a command on one host. */
typedef struct {
    char *host;
    unsigned char *out; /* its standard output */
    size_t length, room;
    int status; /* that of wait(); -1: it did not start, did not end in time, or wrote too much */
} bt_host_t;

typedef struct {
    bt_host_t *host;
    size_t n;
} bt_hosts_t;

/* NULL, or what is wrong with the list of hosts, or with words that a shell of another host would interpret. */
const char *bt_hosts_check(const bt_source_t *source, const char *const *words);
/* Runs the command `bfo WORDS` on every host of the source; `words` ends with NULL. Takes at most `most` bytes from each, for at most
 * `seconds`. False: no memory. The stderr of the commands goes to our stderr. */
bool bt_hosts_run(bt_hosts_t *hosts, const bt_source_t *source, const char *const *words, size_t most, double seconds);
void bt_hosts_free(bt_hosts_t *hosts);
/* Makes the words of a command that waits: its name, and --wait, --json and --dir as the user gave them. Returns how many. */
size_t bt_hosts_words(const char *words[BT_MOST_WORDS], const char *command, const char *wait, bool json, const bt_source_t *source);
/* Runs the command and prints its output from each host, with the host's name before each line, or as an array with `json`. Returns the
 * worst exit status. */
int bt_hosts_forward(const bt_source_t *source, const char *const *words, bool json, double seconds);
/* Adds the figures of the hosts' processes to `all`. False: no memory. */
bool bt_hosts_read(bt_all_t *all, const bt_source_t *source, const char *job);

#endif /* BT_HOSTS_H */
