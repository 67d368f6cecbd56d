/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The ports that are out of service for a user's jobs on this node. Takes a port out of service or gives it back: changes the list of each
 * user, and returns which ports are out of service. bt_drain.c says how far the jobs are. DESIGN.txt sections 10.5 and 19.6.
 */
#include "bt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static uint32_t place_of(const bfo_steer_t *list, const char *port)
{
    uint32_t i = 0;

    while (i < list->n_out && 0 != strcmp(port, list->out[i])) {
        ++i;
    }
    return i;
}

/* Changes a list. Returns NULL, or why the list stays as it is. */
static const char *change(int file, const char *root, uid_t uid, bfo_steer_t *list, bt_wish_t *wish)
{
    const uint32_t at = place_of(list, wish->port);
    const char *why;

    if (wish->out == (at < list->n_out)) {
        return NULL;
    }
    if (wish->out && BFO_STEER_PORTS == list->n_out) {
        return "16 ports are out of service already; give one of them back first (bfo release)";
    }
    if (wish->out) {
        memset(list->out[at], 0, sizeof(list->out[at]));
        strcpy(list->out[at], wish->port); /* it is short enough: bt_is_port_name() */
        ++list->n_out;
    } else {
        memmove(list->out[at], list->out[list->n_out - 1], sizeof(list->out[at]));
        memset(list->out[--list->n_out], 0, sizeof(list->out[0]));
    }
    why = bt_steer_write(file, root, uid, list, NULL);
    wish->changed += NULL == why;
    return why;
}

static void add_names(bt_wish_t *wish, const bfo_steer_t *list)
{
    for (uint32_t i = 0; i < list->n_out; ++i) {
        json_t *name;
        size_t k = 0;

        while (k < json_array_size(wish->ports) && 0 != strcmp(json_string_value(json_array_get(wish->ports, k)), list->out[i])) {
            ++k;
        }
        name = k == json_array_size(wish->ports) ? json_string(list->out[i]) : NULL; /* NULL: it is there already, or no text */
        if (NULL != name) {
            json_array_append_new(wish->ports, name);
        }
    }
}

/* Notes a failure; keeps the first reason. */
static void fail(bt_wish_t *wish)
{
    if (!wish->has_failed) {
        snprintf(wish->why, sizeof(wish->why), "%s", bt_steer_said());
    }
    wish->has_failed = true;
}

static bool of_user(void *context, const char *root, uid_t uid)
{
    bt_wish_t *wish = context;
    bfo_steer_t list;
    const int file = bt_steer_open(root, uid, wish->out && geteuid() == uid, wish->tries, &list);
    const char *why;

    if (-ENOENT == file) {
        return true; /* no job of this user has run here */
    }
    if (0 > file) {
        fail(wish);
        return true;
    }
    ++wish->lists;
    why = NULL == wish->port ? NULL : change(file, root, uid, &list, wish);
    if (NULL != why) {
        bt_steer_say(root, uid, why);
        fail(wish);
    } else {
        ++wish->done;
    }
    add_names(wish, &list);
    close(file);
    return true;
}

bool bt_is_port_name(const char *port)
{
    return '\0' != port[0] && strlen(port) < sizeof(((bfo_steer_t *) 0)->out[0]);
}

void bt_out(bt_wish_t *wish, const char *root)
{
    (void) bt_for_users(bt_root_of(root), of_user, wish);
}
