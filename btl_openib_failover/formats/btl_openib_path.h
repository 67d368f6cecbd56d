/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the rails between two ports have found out about their path. Two of them ask, and the others follow: they ask nothing while the two
 * do. The rails may belong to several processes of this machine, so a path is kept in memory that these processes share
 * (btl_openib_paths.h). Only arithmetic, no Open MPI header. See DESIGN.txt 10.2, "Paths".
 */
#ifndef BTL_OPENIB_PATH_H
#define BTL_OPENIB_PATH_H

#include <stdbool.h>
#include <stdint.h>

enum { OFO_PATH_LEADERS = 2 /* more than one, because a process that does not answer over one rail may be at fault itself */ };

/* A rail, as all processes of this machine name it. */
typedef struct {
    uint64_t from, to; /* the processes at both ends */
    uint32_t rail;
} ofo_path_rail_t;

/* A rail that asks while others follow. Its inquiry goes on, and its process lives as far as the rounds tell, or it has found the rail silent. */
typedef struct {
    ofo_path_rail_t rail;
    uint64_t until;      /* the rail asks until then, unless it says more; 0: the place is empty */
    uint64_t swallowed;  /* when the inquiry that found the rail silent sent its last question; 0: it goes on */
    uint64_t is_against; /* a round has spoken against the rail */
} ofo_leader_t;

/* All zero: nothing is known. Times in ms. */
typedef struct {
    uint64_t key;      /* tells the job and both ports */
    uint64_t until;    /* nobody asks for what is known here after that time */
    uint64_t answered; /* when an answer over a rail ended an inquiry */
    ofo_leader_t leader[OFO_PATH_LEADERS];
} ofo_path_t;

typedef enum {
    OFO_PATH_ASK,     /* fewer than two rails lead, or something passes: the rail asks for itself */
    OFO_PATH_WAIT,    /* two rails ask */
    OFO_PATH_AGAINST, /* both seem silent */
    OFO_PATH_SILENT   /* both were found silent */
} ofo_path_result_t;

typedef enum {
    OFO_PATH_GOES_ON,   /* the rail asks on until `at` */
    OFO_PATH_COUNTS,    /* a round spoke against the rail */
    OFO_PATH_SWALLOWED, /* the rail was found silent, and its last question was sent at `at` */
    OFO_PATH_LEAVES,    /* in a round no rail answered, or the inquiry is over: what it has found out stays */
    OFO_PATH_ANSWERED   /* an answer came over the rail at `at` */
} ofo_path_news_t;

/* `rail` begins to ask, and leads if there is a place for it: a place is empty, or its rail has not asked for too long, or proves nothing about
 * work that has stood still since `since`. A rail of a process leads also instead of the second rail of another process. No two leaders ask the
 * same process. */
void ofo_path_lead(ofo_path_t *path, const ofo_path_rail_t *rail, uint64_t since, uint64_t now, uint64_t until);
/* `rail` has news for the others. From a rail that does not lead only an answer counts. */
void ofo_path_hear(ofo_path_t *path, const ofo_path_rail_t *rail, ofo_path_news_t news, uint64_t at);

/* The verdict of the path about a rail of process `from` whose work has stood still since `since`. Two rails of one other process are not
 * enough, because that process may be at fault itself. */
ofo_path_result_t ofo_path_tells(const ofo_path_t *path, uint64_t from, uint64_t since, uint64_t now);

#endif /* BTL_OPENIB_PATH_H */
