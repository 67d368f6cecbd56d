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

static bool is_forced(const bfo_steer_t *list, uint32_t i)
{
    return list->forced >> i & 1;
}

static void set_forced(bfo_steer_t *list, uint32_t i, bool by_force)
{
    list->forced = (list->forced & ~(1u << i)) | (uint32_t) by_force << i;
}

static bool is_as_wished(const bfo_steer_t *list, uint32_t at, const bt_wish_t *wish)
{
    return wish->out == (at < list->n_out) && (!wish->out || !wish->force || is_forced(list, at));
}

/* Changes a list. Returns NULL, or why the list stays as it is. */
static const char *change(int file, const char *root, uid_t uid, bfo_steer_t *list, bt_wish_t *wish)
{
    const uint32_t at = place_of(list, wish->port);
    const char *why;

    if (is_as_wished(list, at, wish)) {
        return NULL;
    }
    if (wish->out && BFO_STEER_PORTS == at) {
        return "16 ports are out of service already; give one of them back first (bfo release)";
    }
    if (wish->out) {
        memset(list->out[at], 0, sizeof(list->out[at]));
        strcpy(list->out[at], wish->port); /* it is short enough: bt_is_port_name() */
        set_forced(list, at, wish->force);
        list->n_out += at == list->n_out;
    } else {
        const uint32_t last = --list->n_out;

        memmove(list->out[at], list->out[last], sizeof(list->out[at]));
        set_forced(list, at, is_forced(list, last));
        memset(list->out[last], 0, sizeof(list->out[last]));
        set_forced(list, last, false);
    }
    why = bt_steer_write(file, root, uid, list, NULL);
    wish->changed += NULL == why;
    return why;
}

bool bt_is_among(const json_t *names, const char *port)
{
    size_t k = 0;

    while (k < json_array_size(names) && 0 != strcmp(json_string_value(json_array_get(names, k)), port)) {
        ++k;
    }
    return k < json_array_size(names);
}

static void add_name(json_t *names, const char *port)
{
    json_t *name = NULL == names || bt_is_among(names, port) ? NULL : json_string(port); /* NULL: also if it is no text */

    if (NULL != name) {
        json_array_append_new(names, name);
    }
}

static void add_names(bt_wish_t *wish, const bfo_steer_t *list)
{
    for (uint32_t i = 0; i < list->n_out; ++i) {
        add_name(wish->ports, list->out[i]);
        if (is_forced(list, i)) {
            add_name(wish->forced, list->out[i]);
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
