/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a module's rails that end at the same port have found out about their path. Two of them ask, each another process, and the others
 * follow: they ask nothing while the two do. Only arithmetic, no Open MPI header. See DESIGN.txt 10.2, "Paths".
 */
#ifndef BTL_OPENIB_PATH_H
#define BTL_OPENIB_PATH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OFO_PATHS = 64,      /* paths of a module on which inquiries run at a time; a rail of another path asks, as if it were alone */
    OFO_PATH_LEADERS = 2 /* more than one, because a process that does not answer over one rail may be at fault itself */
};

/* A rail that asks while others follow. Its inquiry goes on, and its process lives as far as the rounds tell, or it has found the rail silent. */
typedef struct {
    const void *who;    /* NULL: the place is empty */
    bool is_against;    /* a round has spoken against the rail */
    uint64_t swallowed; /* when the inquiry that found the rail silent sent its last question; 0: it goes on */
} ofo_leader_t;

/* All zero: nothing is known. Times in ms. */
typedef struct {
    uint64_t key;      /* tells the port at the other end */
    unsigned users;    /* inquiries that run */
    uint64_t answered; /* when an answer over a rail ended an inquiry */
    ofo_leader_t leader[OFO_PATH_LEADERS];
} ofo_path_t;

typedef enum {
    OFO_PATH_ASK,     /* fewer than two rails lead, or something passes: the rail asks for itself */
    OFO_PATH_WAIT,    /* two rails ask */
    OFO_PATH_AGAINST, /* both seem silent */
    OFO_PATH_SILENT   /* both were found silent */
} ofo_path_result_t;

/* The path with that key, for an inquiry that begins. NULL: inquiries run on too many other paths. */
ofo_path_t *ofo_path_hold(ofo_path_t table[OFO_PATHS], uint64_t key);
/* The inquiry has ended. */
void ofo_path_release(ofo_path_t *path);

/* `who` begins to ask, and leads if a place is empty, or says nothing of work that stands still since `since`. */
void ofo_path_lead(ofo_path_t *path, const void *who, uint64_t since);
/* A round of `who` spoke against the rail. Like the next two, it does nothing for a rail that does not lead. */
void ofo_path_against(ofo_path_t *path, const void *who);
/* The inquiry of `who` found the rail silent. Its last question was sent at `asked`. */
void ofo_path_swallowed(ofo_path_t *path, const void *who, uint64_t asked);
/* In a round of `who` no rail answered, or its inquiry is over. What it has found out stays. */
void ofo_path_leave(ofo_path_t *path, const void *who);
/* An answer came over a rail of the path. */
void ofo_path_answered(ofo_path_t *path, uint64_t now);

/* What the path tells a rail whose work stands still since `since`. */
ofo_path_result_t ofo_path_tells(const ofo_path_t *path, uint64_t since);

#endif /* BTL_OPENIB_PATH_H */
