/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The command `softrail`: starts the subcommand, and has the functions that subcommands share. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bfo_config.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", sr_cmd_run, "start a program on virtual rails"},
    {"status", sr_cmd_status, "show rails, processes and counters of a running fabric"},
    {"top", sr_cmd_top, "the same, every second"},
    {"down", sr_cmd_rail, "pull the cable of a rail"},
    {"up", sr_cmd_rail, "plug it in again"},
    {"silent", sr_cmd_rail, "let the path of a rail swallow everything"},
    {"port-error", sr_cmd_rail, "report a port error while the rail goes on working"},
    {"gone", sr_cmd_rail, "take the device of a rail away"},
    {"gid", sr_cmd_rail, "change the GIDs of a rail"},
    {"lid", sr_cmd_rail, "change the LIDs of a rail"},
    {"set", sr_cmd_rail, "change rate or latency of a rail"},
    {"fault", sr_cmd_fault, "add fault rules, or show what they did"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *out)
{
    fputs("Usage: softrail COMMAND [OPTIONS]\n\nRDMA rails in user space, between the processes of one machine.\n\n", out);
    for (int i = 0; i < COMMANDS; ++i) {
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].help);
    }
    fputs("\n'softrail COMMAND --help' says more; see also softrail(1).\n", out);
}

int sr_find_fabric(struct sr_fabric *fabric, const char *name)
{
    char base[SR_PATH_MAX], path[2 * SR_PATH_MAX], found[2 * SR_PATH_MAX] = "";
    const char *env = getenv(SR_ENV_FABRIC);
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir;
    int rc = sr_fabric_base(base, false);

    if (NULL == name && NULL != env) {
        snprintf(found, sizeof(found), "%s", env);
        count = 1;
    } else if (NULL != name && 0 == rc) {
        snprintf(found, sizeof(found), "%s/%s", base, name);
        count = 1;
    } else if (0 == rc && NULL != (dir = opendir(base))) {
        while (NULL != (entry = readdir(dir))) {
            snprintf(path, sizeof(path), "%s/%s", base, entry->d_name);
            if ('.' != entry->d_name[0] && 0 == sr_fabric_open(fabric, path)) {
                if (sr_fabric_is_alive(fabric)) {
                    snprintf(found, sizeof(found), "%s", path);
                    ++count;
                }
                sr_fabric_close(fabric);
            }
        }
        closedir(dir);
    }
    if (1 < count) {
        fprintf(stderr, "softrail: %u fabrics are running; choose one with --fabric NAME (see %s)\n", count, base);
        return SR_EXIT_TROUBLE;
    }
    if (0 == count) {
        fputs("softrail: no fabric is running; start one with 'softrail run -- PROGRAM'\n", stderr);
        return SR_EXIT_TROUBLE;
    }
    rc = sr_fabric_open(fabric, found);
    if (0 != rc) {
        fprintf(stderr, "softrail: cannot open the fabric %s: %s\n", found, strerror(rc));
        return SR_EXIT_TROUBLE;
    }
    return 0;
}

int sr_parse_rail(const struct sr_fabric *fabric, const char *text)
{
    const char *digits = 0 == strncmp(text, "sr", 2) ? text + 2 : text;
    char *end;
    unsigned long rail = strtoul(digits, &end, 10);

    if (end != digits && digits != text && 0 == strcmp(":1", end)) { /* the name of its port, as `bfo status` shows it */
        end += 2;
    }
    if (end == digits || '\0' != *end || fabric->shm->rails <= rail) {
        fprintf(stderr, "softrail: there is no rail '%s'; this fabric has sr0 to sr%u\n", text, fabric->shm->rails - 1);
        return -1;
    }
    return (int) rail;
}

bool sr_parse_rate(const char *text, uint64_t *bits_per_second)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || 0 > value) {
        return false;
    }
    switch (*end) {
    case 'G':
    case 'g':
        value *= 1e9;
        ++end;
        break;
    case 'M':
    case 'm':
        value *= 1e6;
        ++end;
        break;
    case 'K':
    case 'k':
        value *= 1e3;
        ++end;
        break;
    default:
        break;
    }
    *bits_per_second = (uint64_t) value;
    return '\0' == *end && value < 1e15;
}

bool sr_parse_time(const char *text, uint64_t *ns)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || 0 > value) {
        return false;
    }
    value *= 0 == strcmp(end, "ns") ? 1 : 0 == strcmp(end, "us") ? 1e3 : 0 == strcmp(end, "ms") ? 1e6 : 0 == strcmp(end, "s") ? 1e9 : -1;
    *ns = (uint64_t) value;
    return 0 <= value && value < 1e15;
}

int main(int argc, char **argv)
{
    if (2 > argc || 0 == strcmp(argv[1], "--help") || 0 == strcmp(argv[1], "help")) {
        usage(2 > argc ? stderr : stdout);
        return 2 > argc ? SR_EXIT_USAGE : 0;
    }
    if (0 == strcmp(argv[1], "--version")) {
        printf("softrail (bfo) %s\n", BFO_VERSION);
        return 0;
    }
    for (int i = 0; i < COMMANDS; ++i) {
        if (0 == strcmp(argv[1], commands[i].name)) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "softrail: there is no command '%s'\n", argv[1]);
    usage(stderr);
    return SR_EXIT_USAGE;
}
