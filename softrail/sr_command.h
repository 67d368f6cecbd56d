/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the subcommands of `softrail` share. Each subcommand returns the exit status of the program.
 * DESIGN.txt 16.
 */
#ifndef SR_COMMAND_H
#define SR_COMMAND_H

#include <argp.h>
#include <jansson.h>

#include "sr_fabric.h"

#define SR_EXIT_USAGE 2
#define SR_EXIT_TROUBLE 3

int sr_cmd_run(int argc, char **argv);
int sr_cmd_status(int argc, char **argv);
int sr_cmd_top(int argc, char **argv);
int sr_cmd_fault(int argc, char **argv);
extern const struct argp sr_habits_argp; /* options of run; its input is struct sr_fabric_options */
int sr_cmd_rail(int argc, char **argv);  /* down, up, port-error, gone, gid, set */

/* Add the rules of a line or a file to the plan; `where` names the line in messages. Return 0, or errno after a
 * message that says what is wrong. Locks: the fabric lock, unless no other process knows the fabric yet. */
int sr_plan_add_line(struct sr_fabric *fabric, const char *line, const char *where);
int sr_plan_add_file(struct sr_fabric *fabric, const char *path);

/* Open the fabric of that name, or the one of the environment, or the only one that runs. Returns 0, or an exit
 * status after a message that says what is wrong. The caller closes the fabric. */
int sr_find_fabric(struct sr_fabric *fabric, const char *name);

/* Everything `status` shows, as JSON. Owned by the caller. */
json_t *sr_status_json(const struct sr_fabric *fabric);

/* "0", "sr0" or "rail 0" of this fabric. Returns the rail or -1. */
int sr_parse_rail(const struct sr_fabric *fabric, const char *text);

/* A number with a unit: "10G" bit/s, "250us" or "1.5ms" in ns. Returns false if it is none. */
bool sr_parse_rate(const char *text, uint64_t *bits_per_second);
bool sr_parse_time(const char *text, uint64_t *ns);

#endif /* SR_COMMAND_H */
