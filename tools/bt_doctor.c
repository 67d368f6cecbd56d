/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo doctor: can a job on this machine use bfo, and would it survive the loss of a rail? One line for each finding, with a verdict and a
 * remedy. DESIGN.txt section 19.5.
 */
#include "bt_doctor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bfo_config.h"

static const char *const level_names[] = {"ok", "warning", "problem"};

/* ---- findings ---------------------------------------------------------------------------------------------------- */

void bt_doctor_clean(char *text)
{
    for (; '\0' != *text; ++text) {
        *text = ' ' <= *text && '~' >= *text ? *text : '?';
    }
}

void bt_doctor_find(bt_doctor_t *doctor, bt_level_t level, const char *group, const char *remedy, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    bt_doctor_clean(text);
    doctor->problems += BT_PROBLEM == level;
    doctor->warnings += BT_WARNING == level;
    if (0
        != json_array_append_new(doctor->findings, json_pack("{s:s, s:s, s:s, s:s}", "group", group, "verdict", level_names[level], "text", text,
                                                             "remedy", NULL == remedy ? "" : remedy))) {
        fputs("bfo: no memory\n", stderr);
        exit(BT_TROUBLE);
    }
}

/* ---- the installation ---------------------------------------------------------------------------------------------- */

#define INSTALLATION "installation"

/* Takes the first directory off a list; false: the list is empty. */
static bool next_directory(const char **list, char directory[PATH_MAX])
{
    const size_t length = strcspn(*list, ":");

    if ('\0' == **list) {
        return false;
    }
    snprintf(directory, PATH_MAX, "%.*s", length < PATH_MAX ? (int) length : PATH_MAX - 1, *list);
    *list += length + (':' == (*list)[length]);
    return true;
}

/* If one directory is missing, mpirun and the job find no component at all, but ompi_info does. */
static void look_at_directories(bt_doctor_t *doctor)
{
    const char *list = bt_info_directories();
    char directory[PATH_MAX];

    while (next_directory(&list, directory)) {
        if (0 != strcmp("SYS_DEFAULT", directory) && 0 != strcmp("USER_DEFAULT", directory) && 0 != access(directory, R_OK | X_OK)) {
            bt_doctor_find(doctor, BT_PROBLEM, INSTALLATION,
                           "install bfo on this machine; unset OMPI_MCA_mca_base_component_path if it names another place",
                           "the directory of components %s cannot be read: no job starts with it", directory);
        }
    }
}

/* Finds the file in the component path; false if no directory has it. */
static bool find_file(const char *file, char path[2 * PATH_MAX])
{
    const char *list = bt_info_directories();
    char directory[PATH_MAX];

    while (next_directory(&list, directory)) {
        snprintf(path, 2 * PATH_MAX, "%s/%s", directory, file);
        if (0 == access(path, R_OK)) {
            return true;
        }
    }
    return false;
}

static void look_at_help(bt_doctor_t *doctor, const char *component, const char *file)
{
    char path[3 * PATH_MAX];

    snprintf(path, sizeof(path), "%.*s/help/%s", (int) (strrchr(component, '/') - component), component, file);
    if (0 == access(path, R_OK)) {
        bt_doctor_find(doctor, BT_OK, INSTALLATION, NULL, "texts of messages: %s", path);
    } else {
        bt_doctor_find(doctor, BT_WARNING, INSTALLATION, "install bfo again", "texts of messages: %s cannot be read", path);
    }
}

/* `level`: how bad it is if the component is not there. */
static void look_at_component(bt_doctor_t *doctor, bt_level_t level, const char *framework, const char *name, const char *help)
{
    char key[64], file[64], path[2 * PATH_MAX], version[BT_VALUE];
    const char *complaint = doctor->info.complaint;
    bool is_there;

    snprintf(file, sizeof(file), "mca_%s_%s.so", framework, name);
    snprintf(key, sizeof(key), "mca:%s:%s:version:\"component:", framework, name);
    is_there = find_file(file, path);
    if (NULL == bt_info_line(&doctor->info, key, version)) {
        *version = '\0';
    }
    if (!is_there) {
        bt_doctor_find(doctor, level, INSTALLATION, "install bfo on this machine; OMPI_MCA_mca_base_component_path may name another place",
                       "%s %s: no %s in %s", framework, name, file, bt_info_directories());
        return;
    }
    if ('\0' == *version) {
        bt_doctor_find(doctor, level, INSTALLATION, "build bfo for this Open MPI; ldd shows libraries that are missing",
                       "%s %s: Open MPI does not take %s%s%s", framework, name, path, '\0' == *complaint ? "" : ": ", complaint);
    } else if (0 != strcmp(BFO_VERSION, version)) {
        bt_doctor_find(doctor, level, INSTALLATION, "install one release of bfo; its directory must come before Open MPI's own",
                       "%s %s: Open MPI takes one of release %s, and this command is of bfo " BFO_VERSION, framework, name, version);
    } else {
        bt_doctor_find(doctor, BT_OK, INSTALLATION, NULL, "%s %s %s: %s", framework, name, version, path);
    }
    if (NULL != help) {
        look_at_help(doctor, path, help);
    }
}

static void look_at_installation(bt_doctor_t *doctor)
{
    char version[BT_VALUE], place[BT_VALUE];
    const char *complaint = doctor->info.complaint;

    if (!PML_BFO || !BFO_BTL_FAILOVER) {
        bt_doctor_find(doctor, BT_PROBLEM, INSTALLATION, "configure without --disable-pml-failover and --disable-btl-openib-failover",
                       "this bfo was built without failover");
    }
    look_at_directories(doctor);
    if (NULL == bt_info_line(&doctor->info, "ompi:version:full:", version)) {
        bt_doctor_find(doctor, BT_PROBLEM, INSTALLATION,
                       "PATH must begin with the directory of the Open MPI that bfo was built for; each directory of "
                       "OMPI_MCA_mca_base_component_path must exist",
                       "ompi_info cannot be run, or says nothing%s%s", '\0' == *complaint ? "" : ": ", complaint);
        return;
    }
    if (NULL == bt_info_line(&doctor->info, "path:bindir:", place)) {
        *place = '\0';
    }
    if (0 != strcmp(BT_OMPI_VERSION, version)) {
        bt_doctor_find(doctor, BT_PROBLEM, INSTALLATION, "build bfo for this Open MPI, or let PATH begin with the other one",
                       "Open MPI %s in %s, and bfo was built for " BT_OMPI_VERSION, version, place);
    } else {
        bt_doctor_find(doctor, BT_OK, INSTALLATION, NULL, "Open MPI %s in %s: the release that bfo was built for", version, place);
    }
    look_at_component(doctor, BT_PROBLEM, "pml", "bfo", "help-pml-bfo.txt");
    look_at_component(doctor, BT_WARNING, "osc", "bfo", NULL);
    look_at_component(doctor, BT_PROBLEM, "btl", "openib", "help-btl-openib-bfo.txt");
    if ('\0' != *complaint) {
        bt_doctor_find(doctor, BT_WARNING, INSTALLATION, "a parameter in the environment or in a file, or another component", "ompi_info says: %s",
                       complaint);
    }
}

/* ---- times ----------------------------------------------------------------------------------------------------------- */

#define TIMES "times"

/* The value of a parameter of the BTL. A value that the BTL would refuse is a problem, and counts as the default. */
static long number_of(bt_doctor_t *doctor, const char *name, long least, long most, long otherwise)
{
    const long number = bt_info_btl_number(&doctor->info, name, otherwise);

    if (least <= number && most >= number) {
        return number;
    }
    bt_doctor_find(doctor, BT_PROBLEM, TIMES, "correct it; the BTL refuses it", "btl_openib_%s is %ld, and may be %ld to %ld", name, number, least,
                   most);
    return otherwise;
}

/* The BTL's default: it is patient unless the PML waits for the return of a last rail. */
static long ack_timeout(const bt_doctor_t *doctor)
{
    char rejoin[BT_VALUE], wait[BT_VALUE];
    const bool waits = 0 == strcmp("true", bt_info_value(&doctor->info, "pml", "bfo", "rejoin", rejoin))
                       && 0 != strcmp("0", bt_info_value(&doctor->info, "pml", "bfo", "last_rail_timeout", wait));

    return waits ? 17 : 20;
}

static void tell_retry_time(bt_doctor_t *doctor)
{
    enum { LONG = 120, FOR_EVER = 7 };
    const long asked = number_of(doctor, "ib_timeout", 0, 31, 0), timeout = 0 != asked ? asked : ack_timeout(doctor),
               retries = number_of(doctor, "ib_retry_count", 1, 7, 6);
    const long deadline = 0 == bt_info_btl_number(&doctor->info, "deadline", 250) ? 0 : number_of(doctor, "deadline", 40, 60000, 250);
    const double seconds = 4.096e-6 * (double) (UINT64_C(1) << timeout) * (double) (retries + 1);

    bt_doctor_find(doctor, LONG < seconds || FOR_EVER == retries ? BT_WARNING : BT_OK, TIMES,
                   LONG < seconds        ? "a smaller btl_openib_ib_timeout; 17 with btl_openib_ib_retry_count 6 gives 3.8 s"
                   : FOR_EVER == retries ? "btl_openib_ib_retry_count 6"
                                         : NULL,
                   "a path that is silent, with its ports up, is lost after %.2f s (4.096 us * 2^%ld * (%ld + 1))%s", seconds, timeout, retries,
                   FOR_EVER == retries ? "; 7 retries mean without limit on soft-RoCE" : "");
    if (0 == deadline) {
        bt_doctor_find(doctor, BT_WARNING, TIMES, "btl_openib_deadline 250",
                       "the adapter alone finds a silent path, although another rail could tell sooner");
    } else {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL, "if another rail to the same process answers, a silent path is lost after %ld ms", deadline);
    }
}

static void tell_keepalive(bt_doctor_t *doctor)
{
    const long keepalive = number_of(doctor, "keepalive", 0, 86400, 10);

    if (0 == keepalive) {
        bt_doctor_find(doctor, BT_WARNING, TIMES, "btl_openib_keepalive 10",
                       "a rail without traffic is never asked whether its peer lives: a dead peer is waited for");
    } else {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL, "a rail without traffic is asked after %ld s whether its peer lives", keepalive);
    }
}

static void tell_return(bt_doctor_t *doctor)
{
    char room[BT_VALUE];
    const bool rejoin = 0 == strcmp("true", bt_info_value(&doctor->info, "pml", "bfo", "rejoin", room));
    const long after = number_of(doctor, "rejoin_after", 10, 900000, 1000);
    const long wait = strtol(bt_info_value(&doctor->info, "pml", "bfo", "last_rail_timeout", room), NULL, 10);

    if (rejoin) {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL, "a rail that was lost is used again by its job some %.2f s after it works again",
                       (double) after / 1000);
    } else {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL, "a rail that was lost is used again by the next job (pml_bfo_rejoin 1: by the same job)");
    }
    if (0 != wait && !rejoin) {
        bt_doctor_find(doctor, BT_PROBLEM, TIMES, "pml_bfo_rejoin 1",
                       "the PML refuses pml_bfo_last_rail_timeout %ld without pml_bfo_rejoin: no rail would come back", wait);
    } else if (0 == wait) {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL,
                       "when the last rail to a peer is lost, its requests fail at once (pml_bfo_last_rail_timeout: they wait)");
    } else if (0 > wait) {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL, "when the last rail to a peer is lost, its requests wait for a rail without limit");
    } else {
        bt_doctor_find(doctor, BT_OK, TIMES, NULL, "when the last rail to a peer is lost, its requests wait for a rail for %ld s", wait);
    }
}

static void tell_times(bt_doctor_t *doctor)
{
    tell_retry_time(doctor);
    tell_keepalive(doctor);
    bt_doctor_find(doctor, BT_OK, TIMES, NULL, "a rail that does not connect is given up after %ld s; a lost rail returns its work within %ld s",
                   number_of(doctor, "connect_timeout", 1, 3600, 15), number_of(doctor, "fence_timeout", 1, 3600, 10));
    tell_return(doctor);
}

/* ---- printing -------------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *finding, const char *key)
{
    return json_string_value(json_object_get(finding, key));
}

static const char *verdict_of(const bt_doctor_t *doctor)
{
    return level_names[0 != doctor->problems ? BT_PROBLEM : 0 != doctor->warnings ? BT_WARNING : BT_OK];
}

static const char *colour_of(const char *verdict)
{
    return bt_colour_of(0 == strcmp("ok", verdict) ? BFO_FIGURES_UP : 0 == strcmp("warning", verdict) ? BFO_FIGURES_PART : BFO_FIGURES_LOST);
}

static void print_table(const bt_doctor_t *doctor, const char *host, const char *now)
{
    const char *group = "";
    json_t *finding;
    size_t i;

    printf("bfo " BFO_VERSION " on %s, %.19s\n", host, now);
    json_array_foreach(doctor->findings, i, finding)
    {
        const char *verdict = text_of(finding, "verdict");

        if (0 != strcmp(group, text_of(finding, "group"))) {
            group = text_of(finding, "group");
            printf("%s\n", group);
        }
        printf("  %s%-7s%s  %s\n", colour_of(verdict), verdict, bt_no_colour(), text_of(finding, "text"));
        if ('\0' != *text_of(finding, "remedy")) {
            printf("           remedy: %s\n", text_of(finding, "remedy"));
        }
    }
    printf("%u problem%s, %u warning%s%s\n", doctor->problems, 1 == doctor->problems ? "" : "s", doctor->warnings, 1 == doctor->warnings ? "" : "s",
           0 != doctor->problems ? ": bfo or its failover cannot work here" : "");
}

/* Is the command about other hosts, and not about this node? */
static bool is_of_hosts(const bt_doctor_t *doctor)
{
    return NULL == doctor->info.text;
}

static void print_json(const bt_doctor_t *doctor, const char *host, const char *now)
{
    bt_print_json(json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:O, s:O}", "version", BFO_VERSION, "host", host, "time", now, "verdict",
                            verdict_of(doctor), "problems", (json_int_t) doctor->problems, "warnings", (json_int_t) doctor->warnings, "findings",
                            doctor->findings, is_of_hosts(doctor) ? "nodes" : "ports", doctor->ports),
                  false);
}

/* ---- command --------------------------------------------------------------------------------------------------------- */

enum { KEY_JSON = 300 };

typedef struct {
    bt_source_t source;
    bool json;
} choice_t;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &choice->source;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* False: no memory. */
static bool look(bt_doctor_t *doctor)
{
    if (!bt_info_ask(&doctor->info)) {
        return false;
    }
    look_at_installation(doctor);
    bt_doctor_ports(doctor);
    tell_times(doctor);
    return true;
}

int bt_cmd_doctor(int argc, char **argv)
{
    static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "for programs", 0}, {0}};
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc =
            "Check this machine before a job starts: the installation, ports, locked memory, times, and what the loss of each port would mean; with "
            "--hosts check each of these nodes, and the rails between them.\v"
            "Exit status: 0 no problem, 1 a problem that stops bfo or its failover, 2 wrong usage, 3 trouble."};
    bt_doctor_t doctor = {.findings = json_array(), .ports = json_array()};
    char host[256] = "", now[BT_TIME];
    choice_t choice = {.json = false};

    argv[0] = (char *) "bfo doctor";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (bt_is_under_mpirun()) {
        setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* so that the output of one node stays together */
    }
    if (!(NULL == choice.source.hosts ? look(&doctor) : bt_doctor_hosts(&doctor, &choice.source))) {
        fputs("bfo: no memory\n", stderr);
        return BT_TROUBLE;
    }
    gethostname(host, sizeof(host) - 1);
    bt_doctor_clean(host);
    bt_time(now, (uint64_t) time(NULL) * UINT64_C(1000000000));
    (choice.json ? print_json : print_table)(&doctor, host, now);
    json_decref(doctor.findings);
    json_decref(doctor.ports);
    bt_info_free(&doctor.info);
    return 0 != fflush(stdout) || ferror(stdout) ? BT_TROUBLE : 0 != doctor.problems ? BT_NOT_WELL : BT_WELL;
}
