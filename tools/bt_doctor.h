/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the parts of bfo doctor share: findings, and the output of ompi_info. DESIGN.txt section 19.5.
 */
#ifndef BT_DOCTOR_H
#define BT_DOCTOR_H

#include "bt.h"

/* ---- bt_info.c: Open MPI, as ompi_info tells of it --------------------------------------------------------- */

enum { BT_VALUE = 512 };

typedef struct {
    char *text;      /* what ompi_info wrote; "" if it cannot be run */
    char *complaint; /* the first words of its stderr */
} bt_info_t;

/* Runs the ompi_info in PATH, with our directory of components if the environment names none. False: no memory. */
bool bt_info_ask(bt_info_t *info);
void bt_info_free(bt_info_t *info);
/* The rest of the first line that begins with `key`, without quotes and cut to the room; NULL if there is none. */
const char *bt_info_line(const bt_info_t *info, const char *key, char room[BT_VALUE]);
/* The value of a parameter; "" if it is unknown. */
const char *bt_info_value(const bt_info_t *info, const char *framework, const char *component, const char *name, char room[BT_VALUE]);
/* The same for our BTL. */
const char *bt_info_btl(const bt_info_t *info, const char *name, char room[BT_VALUE]);
/* A whole number of our BTL; `otherwise` if it is unknown. */
long bt_info_btl_number(const bt_info_t *info, const char *name, long otherwise);
/* Where a job of this environment looks for components: directories, separated by colons. */
const char *bt_info_directories(void);

/* ---- bt_doctor.c: findings --------------------------------------------------------------------------------- */

typedef enum { BT_OK, BT_WARNING, BT_PROBLEM } bt_level_t;

typedef struct {
    bt_info_t info;
    json_t *findings, *ports; /* arrays */
    unsigned warnings, problems;
} bt_doctor_t;

/* Adds a finding. `remedy`: what the user can do, or NULL. */
void bt_doctor_find(bt_doctor_t *doctor, bt_level_t level, const char *group, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Makes a text harmless for a terminal and JSON: characters that are not printable ASCII become question marks. */
void bt_doctor_clean(char *text);

/* ---- bt_doctor_ports.c: ports, locked memory, librdmacm, and what the loss of each port means ---------------- */

void bt_doctor_ports(bt_doctor_t *doctor);

/* ---- bt_doctor_hosts.c: other nodes ----------------------------------------------------------------------------- */

/* Asks the nodes of `source`. Their answers are in `ports` afterwards. False: no memory. */
bool bt_doctor_hosts(bt_doctor_t *doctor, const bt_source_t *source);

#endif /* BT_DOCTOR_H */
