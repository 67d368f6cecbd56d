/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Fault plans: rules that say which messages fail and how. Only this file parses the text form. All processes of a
 * fabric share the table of rules, so that "the third match" is counted once. The format is softrail-plan(5).
 * DESIGN.txt 16.
 */
#ifndef SR_FAULTPLAN_H
#define SR_FAULTPLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SR_MAX_RULES 32
#define SR_RULE_TEXT 160
#define SR_MAX_PATTERN 16
#define SR_ANY UINT32_MAX

/* Calls that a rule can refuse with ENOMEM or make slow. Their bits follow those of the opcodes. */
#define SR_CALL_FIRST 26u
#define SR_CALL_CREATE_AH 26u
#define SR_CALL_DESTROY_QP 27u
#define SR_CALL_QP_RTR 28u
#define SR_CALL_QP_ERROR 29u
#define SR_CALL_REG_MR 30u
#define SR_CALL_CREATE_QP 31u

/* What happens to a message. */
enum sr_fate {
    SR_FATE_NONE = 0,
    SR_FATE_LOSE,      /* the peer never sees it; the sender ends in RETRY_EXC_ERR */
    SR_FATE_UNACKED,   /* the peer has it, exactly once; the sender ends in RETRY_EXC_ERR */
    SR_FATE_DELAY,     /* it arrives `time` later */
    SR_FATE_SILENT,    /* it arrives; its completion comes `time` later */
    SR_FATE_CORRUPT,   /* payload byte `at` is inverted */
    SR_FATE_ERROR,     /* the sender gets `status`; the peer sees nothing */
    SR_FATE_ENOMEM,    /* posting returns ENOMEM */
    SR_FATE_RNR,       /* the peer answers: receiver not ready */
    SR_FATE_LATE,      /* the sender ends in RETRY_EXC_ERR; the message still arrives `time` later */
    SR_FATE_FATAL,     /* the queue pair breaks: QP_FATAL, LOC_QP_OP_ERR, flush */
    SR_FATE_DOWN,      /* the rail goes down before the message, for all processes or for one */
    SR_FATE_MIGRATED,  /* it arrives; the sender's queue pair reports PATH_MIG */
    SR_FATE_SWALLOW,   /* the sender gets a success; the peer never sees it (its HCA died between acknowledgement and completion) */
    SR_FATE_SLOW,      /* a call takes `time` longer */
    SR_FATE_CQ_ERROR,  /* it arrives; the sender's CQ for sends reports CQ_ERR and is dead */
    SR_FATE_SRQ_ERROR, /* it arrives; the SRQ of the sender's queue pair reports SRQ_ERR and is dead */
    SR_FATE_MARK,      /* nothing; other rules can wait for it */
    SR_FATES
};

/* Which queue pair a LOSE, UNACKED or SILENT breaks. For the sender of a SILENT "at once" means when `time` is over. */
enum sr_breaks {
    SR_BREAKS_DEFAULT = 0, /* the sender's, when its retry time is over; none for SILENT or for an unreliable sender */
    SR_BREAKS_SENDER,      /* the sender's, at once */
    SR_BREAKS_RECEIVER,    /* the receiver's, at once; the sender gets no error from it */
    SR_BREAKS_BOTH,        /* both, at once */
};

/* All members except `hits`, `seen` and `hit_rails` are constant while the plan is in force. */
struct sr_rule {
    uint32_t fate;    /* enum sr_fate */
    uint32_t rails;   /* bit per rail, 0 = every one */
    uint32_t process; /* slot of the sender; SR_ANY = every one; the same below */
    uint32_t qpn;
    uint32_t opcodes;                        /* bit per enum ibv_wr_opcode, 0 = all */
    uint32_t pattern_offset, pattern_length; /* length 0 = no pattern */
    uint8_t pattern_value[SR_MAX_PATTERN], pattern_mask[SR_MAX_PATTERN];
    uint32_t first;             /* from this match on, counted from 1 */
    uint32_t count;             /* this many matches; SR_ANY = all */
    uint32_t permille;          /* chance for each of those; 1000 = always */
    uint32_t status;            /* enum ibv_wc_status, for ERROR */
    uint32_t at;                /* byte to corrupt */
    uint32_t local;             /* DOWN: only the port of the sender. Otherwise the rail is up again after `time`; 0 = it stays down */
    uint32_t quiet;             /* DOWN: no process gets an event */
    uint32_t breaks;            /* enum sr_breaks */
    uint32_t after;             /* matches count only after that rule (1 = the first) has done a fault; 0 = always */
    uint32_t same;              /* matches only on rails where that rule has done a fault; 0 = no condition */
    uint32_t other;             /* matches only on rails where that rule has done no fault; 0 = no condition */
    uint64_t time;              /* ns */
    _Atomic uint32_t seen;      /* messages that matched */
    _Atomic uint32_t hits;      /* faults done */
    _Atomic uint32_t hit_rails; /* bit per rail where faults were done */
    char text[SR_RULE_TEXT];
};

struct sr_plan {
    _Atomic uint32_t count;
    _Atomic uint64_t seed;
    struct sr_rule rule[SR_MAX_RULES];
};

/* Parse one line into *rule. Returns 1 for a rule, 0 for an empty line or a comment, 2 for "seed N" (in *seed),
 * -1 for a mistake: `why` then says which word and what was expected. */
int sr_plan_parse_line(const char *line, struct sr_rule *rule, uint64_t *seed, char *why, size_t size);

/* What the rules know of a message. */
struct sr_message {
    uint32_t rail, process, qpn, opcode;
    const uint8_t *head; /* first bytes of the payload */
    uint32_t head_length;
};

/* Does the rule match this message? Does not count the match. */
bool sr_rule_matches(const struct sr_rule *rule, const struct sr_message *message);

/* Have the rules that this rule names done what it waits for, as far as this rail is concerned? */
bool sr_rule_is_due(const struct sr_plan *plan, const struct sr_rule *rule, uint32_t rail);

/* Count a match on this rail. True if the fault must happen now. The same seed and the same order of matches give the same answers. */
bool sr_rule_fires(struct sr_rule *rule, uint64_t seed, unsigned index, uint32_t rail);

const char *sr_fate_name(enum sr_fate fate);

#endif /* SR_FAULTPLAN_H */
