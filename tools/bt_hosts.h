/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Other nodes: a command is run on each by ssh or the like, side by side. DESIGN.txt section 19.9.
 */
#ifndef BT_HOSTS_H
#define BT_HOSTS_H

#include "bt.h"

enum { BT_MOST_HOSTS = 4096, BT_MOST_WORDS = 32, BT_LOGIN_SECONDS = 30 };

/* What a command said on one host. */
typedef struct {
    char *host;
    unsigned char *out; /* its standard output */
    size_t length, room;
    int status; /* as of wait(); -1: it did not begin, or did not end in time, or said too much */
} bt_host_t;

typedef struct {
    bt_host_t *host;
    size_t n;
} bt_hosts_t;

/* NULL, or what is wrong with a list of hosts, or with words that the shell of another host would take for more than words. */
const char *bt_hosts_check(const bt_source_t *source, const char *const *words);
/* Runs the command `bfo WORDS` on every host of the source; `words` ends with NULL. No more than `most` bytes are taken from each, for no
 * longer than `seconds`. False: no memory. What the commands say on stderr goes to ours. */
bool bt_hosts_run(bt_hosts_t *hosts, const bt_source_t *source, const char *const *words, size_t most, double seconds);
void bt_hosts_free(bt_hosts_t *hosts);
/* The words of a command that waits: its name, --wait, --json and --dir as they were given. Returns how many. */
size_t bt_hosts_words(const char *words[BT_MOST_WORDS], const char *command, const char *wait, bool json, const bt_source_t *source);
/* Runs it, and prints what each said, with the name of the host before each line; `json`: an array. Returns the exit status: the worst. */
int bt_hosts_forward(const bt_source_t *source, const char *const *words, bool json, double seconds);
/* Adds what the hosts' processes keep to `all`. False: no memory. */
bool bt_hosts_read(bt_all_t *all, const bt_source_t *source, const char *job);

#endif /* BT_HOSTS_H */
