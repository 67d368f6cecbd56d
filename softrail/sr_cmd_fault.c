/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * softrail fault: adds and shows fault rules of a running fabric. Also reads plan files for softrail run --plan. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

static bool only_names_earlier_rules(const struct sr_rule *rule, uint32_t before)
{
    return rule->after <= before && rule->same <= before && rule->other <= before;
}

int sr_plan_add_line(struct sr_fabric *fabric, const char *line, const char *where)
{
    struct sr_plan *plan = &fabric->shm->plan;
    struct sr_rule rule;
    uint64_t seed;
    char why[200];
    int kind = sr_plan_parse_line(line, &rule, &seed, why, sizeof(why));

    if (0 > kind) {
        fprintf(stderr, "softrail: %s: %s\n", where, why);
        return EINVAL;
    }
    if (2 == kind) {
        atomic_store(&plan->seed, seed);
    } else if (1 == kind) {
        uint32_t at = atomic_load(&plan->count);
        if (SR_MAX_RULES <= at) {
            fprintf(stderr, "softrail: %s: a plan has at most %d rules; use 'softrail fault --clear'\n", where, SR_MAX_RULES);
            return ENOSPC;
        }
        if (0 != rule.rails >> fabric->shm->rails) {
            fprintf(stderr, "softrail: %s: there is no rail %d; this fabric has sr0 to sr%u\n", where, 31 - __builtin_clz(rule.rails),
                    fabric->shm->rails - 1);
            return EINVAL;
        }
        if (!only_names_earlier_rules(&rule, at)) {
            fprintf(stderr, "softrail: %s: only %u rules come before it, so after=, same= and other= can name only these\n", where, at);
            return EINVAL;
        }
        memcpy(&plan->rule[at], &rule, sizeof(rule));
        atomic_store(&plan->count, at + 1);
    }
    return 0;
}

int sr_plan_add_file(struct sr_fabric *fabric, const char *path)
{
    char line[1024], where[512];
    FILE *in = fopen(path, "re");
    int rc = 0;

    if (NULL == in) {
        fprintf(stderr, "softrail: cannot read the plan %s: %s\n", path, strerror(errno));
        return errno;
    }
    for (int n = 1; 0 == rc && NULL != fgets(line, sizeof(line), in); ++n) {
        snprintf(where, sizeof(where), "%.400s, line %d", path, n);
        rc = sr_plan_add_line(fabric, line, where);
    }
    fclose(in);
    return rc;
}

struct choice {
    const char *fabric;
    const char *file;
    bool clear;
    char rule[512];
};

enum { KEY_FABRIC = 300, KEY_FILE, KEY_CLEAR };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct choice *choice = state->input;
    size_t used = strlen(choice->rule);

    switch (key) {
    case KEY_FABRIC:
        choice->fabric = arg;
        return 0;
    case KEY_FILE:
        choice->file = arg;
        return 0;
    case KEY_CLEAR:
        choice->clear = true;
        return 0;
    case ARGP_KEY_ARG:
        snprintf(choice->rule + used, sizeof(choice->rule) - used, "%s%s", 0 == used ? "" : " ", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void show(const struct sr_fabric *fabric)
{
    const struct sr_plan *plan = &fabric->shm->plan;
    uint32_t count = atomic_load(&plan->count);

    printf("%8s %8s  %s\n", "matched", "done", "rule");
    for (uint32_t i = 0; i < count && i < SR_MAX_RULES; ++i) {
        printf("%8u %8u  %.*s\n", atomic_load(&plan->rule[i].seen), atomic_load(&plan->rule[i].hits), SR_RULE_TEXT, plan->rule[i].text);
    }
}

int sr_cmd_fault(int argc, char **argv)
{
    static const struct argp_option options[] = {{"fabric", KEY_FABRIC, "NAME", 0, "name of the fabric, if several are running", 0},
                                                 {"file", KEY_FILE, "PLAN", 0, "add the rules of a plan file", 0},
                                                 {"clear", KEY_CLEAR, NULL, 0, "remove all rules first", 0},
                                                 {NULL, 0, NULL, 0, NULL, 0}};
    static const struct argp argp = {.options = options,
                                     .parser = parse,
                                     .args_doc = "[RULE]",
                                     .doc = "Add a fault rule to a running fabric, or show what the rules did. Example:\n\n"
                                            "  softrail fault unacked rail=sr1 op=send nth=3\n\nThe rules are explained in softrail-plan(5)."};
    struct choice choice = {.fabric = NULL};
    struct sr_fabric fabric;
    int rc;

    argv[0] = (char *) "softrail fault";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    rc = sr_find_fabric(&fabric, choice.fabric);
    if (0 != rc) {
        return rc;
    }
    sr_fabric_lock(&fabric);
    if (choice.clear) {
        atomic_store(&fabric.shm->plan.count, 0);
    }
    if (NULL != choice.file) {
        rc = sr_plan_add_file(&fabric, choice.file);
    }
    if (0 == rc && '\0' != choice.rule[0]) {
        rc = sr_plan_add_line(&fabric, choice.rule, "rule");
    }
    sr_fabric_unlock(&fabric);
    if (0 == rc && !choice.clear && NULL == choice.file && '\0' == choice.rule[0]) {
        show(&fabric);
    }
    sr_fabric_close(&fabric);
    return 0 == rc ? 0 : SR_EXIT_USAGE;
}
