/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo ftb: serve, publish and subscribe. Sends the arguments to the server and prints its answers. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    const char *root, *space, *severity;
    const char **word; /* EVENT and PAYLOAD, or EVENT... */
    int n_words;
    unsigned long count; /* 0: without limit */
    uid_t uid;
    bool json;
} choice_t;

enum { KEY_JSON = 300, KEY_DIR, KEY_USER, KEY_COUNT, KEY_SPACE, KEY_SEVERITY };

/* clang-format off */
#define OPTION_JSON {"json", KEY_JSON, NULL, 0, "for programs", 0}
#define OPTION_DIR {"dir", KEY_DIR, "DIR", 0, "the jobs' pml_bfo_status_dir (default: BFO_STATUS_DIR, or " BFO_FIGURES_ROOT ")", 0}
#define OPTION_USER {"user", KEY_USER, "UID", 0, "root: the server of this user, not that of root", 0}
/* clang-format on */

static unsigned long number_of(struct argp_state *state, const char *name, const char *arg, unsigned long most)
{
    char *end;
    const unsigned long number = strtoul(arg, &end, 10);

    if (end == arg || '\0' != *end || '-' == arg[0] || most < number) {
        argp_error(state, "--%s is a number up to %lu, not '%s'", name, most, arg);
    }
    return number;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;
    bt_ftb_severity_t severity;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_DIR:
        choice->root = arg;
        return 0;
    case KEY_USER:
        choice->uid = (uid_t) number_of(state, "user", arg, UINT32_MAX - 1);
        return 0;
    case KEY_COUNT:
        choice->count = number_of(state, "count", arg, 1000000000);
        return 0;
    case KEY_SPACE:
        choice->space = arg;
        if (!bt_ftb_is_space(arg) || 0 == strcmp(BT_FTB_SPACE, arg)) {
            argp_error(state, "--space is a-z 0-9 . _ -, and not " BT_FTB_SPACE ", not '%s'", arg);
        }
        return 0;
    case KEY_SEVERITY:
        choice->severity = arg;
        if (!bt_ftb_is_severity(arg, &severity)) {
            argp_error(state, "--severity is info, warning, error or fatal, not '%s'", arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        choice->word[choice->n_words++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- lines of the server -------------------------------------------------------------------------------------- */

/* Connects to the server; NULL after a message on stderr. */
static FILE *connect_to(const choice_t *choice)
{
    const int connection = bt_ftb_connect(choice->root, choice->uid);
    FILE *server = 0 > connection ? NULL : fdopen(connection, "r");

    if (0 <= connection && NULL == server) {
        perror("bfo ftb");
        close(connection);
    }
    return server;
}

/* An error is ignored: a server that refuses the connection writes the reason and reads nothing, and its answer is read in any case. */
static void send_line(FILE *server, const char *line)
{
    (void) send(fileno(server), line, strlen(line), MSG_NOSIGNAL);
}

/* Reads the server's next line, without its end. False if there are no more. */
static bool next_line(FILE *server, char room[BT_TIME + BT_FTB_LINE])
{
    errno = 0;
    if (NULL == fgets(room, BT_TIME + BT_FTB_LINE, server) || NULL == strchr(room, '\n')) {
        return false;
    }
    *strchr(room, '\n') = '\0';
    return true;
}

/* Writes to stderr what the server answered instead of "ok". */
static int refused(const char *line)
{
    fprintf(stderr, "bfo ftb: the server refuses: %s\n", 0 == strncmp("no ", line, 3) ? line + 3 : line);
    return BT_NOT_WELL;
}

static int gone(void)
{
    fputs(EAGAIN == errno ? "bfo ftb: the server does not answer\n" : "bfo ftb: the server has ended, or has closed the connection\n", stderr);
    return BT_TROUBLE;
}

/* ---- publish ----------------------------------------------------------------------------------------------------- */

static int publish(const choice_t *choice)
{
    char request[BT_FTB_REQUEST], answer[BT_TIME + BT_FTB_LINE];
    const char *severity = NULL == choice->severity ? bt_ftb_severity_name(bt_ftb_severity_of(choice->word[0])) : choice->severity;
    static const char command[] = "publish ";
    static bt_ftb_event_t e;
    FILE *server;
    bool taken;
    int status;

    if ((int) sizeof(request) <= snprintf(request, sizeof(request), "%s%s %s %s %s\n", command, choice->space, severity, choice->word[0],
                                          1 < choice->n_words ? choice->word[1] : "")) {
        fputs("bfo ftb: the event is too long: its line has at most 2047 characters\n", stderr);
        return BT_USAGE;
    }
    *strrchr(request, '\n') = '\0';
    if (!bt_ftb_read(&e, request + strlen(command))) {
        fprintf(stderr, "bfo ftb: %s\n", e.why);
        return BT_USAGE;
    }
    strcat(request, "\n"); /* where it was */
    server = connect_to(choice);
    if (NULL == server) {
        return BT_TROUBLE;
    }
    send_line(server, request);
    if (!next_line(server, answer)) {
        status = gone();
    } else {
        taken = 0 == strcmp("ok", answer);
        status = taken ? BT_WELL : refused(answer);
        if (choice->json) {
            bt_print_json(json_pack("{s:b, s:s}", "taken", taken, "why", taken ? "" : 0 == strncmp("no ", answer, 3) ? answer + 3 : answer), false);
        }
    }
    fclose(server);
    return status;
}

/* ---- subscribe --------------------------------------------------------------------------------------------------- */

/* "TIME SPACE SEVERITY EVENT PAYLOAD" */
static void print_event(char *line, bool json)
{
    static bt_ftb_event_t e;
    char *rest = strchr(line, ' ');

    if (!json) {
        puts(line);
    } else if (NULL != rest) {
        *rest = '\0';
        if (bt_ftb_read(&e, rest + 1)) {
            bt_print_json(bt_ftb_json(&e, line), true);
        }
    }
}

static int show_events(FILE *server, const choice_t *choice)
{
    char line[BT_TIME + BT_FTB_LINE];
    unsigned long n = 0;

    while (next_line(server, line)) {
        if (0 == strncmp("event ", line, 6)) {
            print_event(line + 6, choice->json);
            ++n;
        } else if (0 == strncmp("lost ", line, 5)) {
            printf(choice->json ? "{\"lost\":%s}\n" : "lost %s\n", line + 5);
        }
        if (0 != fflush(stdout) || ferror(stdout)) {
            return BT_TROUBLE;
        }
        if (0 != choice->count && n == choice->count) {
            return BT_WELL;
        }
    }
    return gone();
}

static int subscribe(const choice_t *choice)
{
    char request[BT_FTB_REQUEST] = "subscribe", answer[BT_TIME + BT_FTB_LINE];
    FILE *server;
    int status;

    for (int i = 0; i < choice->n_words; ++i) {
        if (!bt_ftb_is_name(choice->word[i])) {
            fprintf(stderr, "bfo ftb: '%s' is no name of an event: A-Z 0-9 _, at most 63 characters\n", choice->word[i]);
            return BT_USAGE;
        }
        if (sizeof(request) < strlen(request) + strlen(choice->word[i]) + 3) {
            fputs("bfo ftb: these are more than 32 names of events\n", stderr);
            return BT_USAGE;
        }
        strcat(strcat(request, " "), choice->word[i]);
    }
    server = connect_to(choice);
    if (NULL == server) {
        return BT_TROUBLE;
    }
    send_line(server, strcat(request, "\n"));
    if (!next_line(server, answer)) {
        status = gone();
    } else if (0 != strcmp("ok", answer)) {
        status = refused(answer);
    } else {
        bt_ftb_wait_for_ever(fileno(server));
        fputs("bfo ftb: subscribed\n", stderr);
        status = show_events(server, choice);
    }
    fclose(server);
    return status;
}

/* ---- commands ------------------------------------------------------------------------------------------------------ */

static const struct argp_option serve_options[] = {OPTION_JSON, OPTION_DIR, {0}};
static const struct argp_option publish_options[] = {
    {"space", KEY_SPACE, "NAME", 0, "the space of the event (default: " BT_FTB_SPACE_OF_OTHERS ")", 0},
    {"severity", KEY_SEVERITY, "WORD", 0, "info, warning, error or fatal (default: the severity in bfo(1), or info)", 0},
    OPTION_USER,
    OPTION_JSON,
    OPTION_DIR,
    {0}};
static const struct argp_option subscribe_options[] = {
    {"count", KEY_COUNT, "N", 0, "end after N events", 0}, OPTION_USER, OPTION_JSON, OPTION_DIR, {0}};

static const struct argp serve_argp = {
    .options = serve_options,
    .parser = parse,
    .doc = "Pass fault events on between programs of this node, and publish those of this user's MPI jobs (for root: of all users). The server runs "
           "until a signal ends it, and says on stdout when it is ready.\vExit status: 0 a signal ended the server, 2 wrong usage, 3 another "
           "server runs, or trouble."};
static const struct argp publish_argp = {
    .options = publish_options,
    .parser = parse,
    .args_doc = "EVENT [PAYLOAD]",
    .doc = "Publish one fault event, for example: bfo ftb publish IFACE_DEAD 'iface: mlx5_0:1, node: n1'. bfo(1) has the table of events.\vExit "
           "status: 0 the server took the event, 1 the server refused it, 2 wrong usage, 3 no server runs, or trouble."};
static const struct argp subscribe_argp = {
    .options = subscribe_options,
    .parser = parse,
    .args_doc = "[EVENT...]",
    .doc = "Print fault events, one a line: those with the given names, or all.\vExit status: 0 the number of --count was printed, 2 wrong "
           "usage, 3 no server runs, or the server has ended."};

static int usage(const char *word)
{
    if (NULL != word && '\0' != word[0]) {
        fprintf(stderr, "bfo ftb: there is no command '%s'\n", word);
    }
    fputs("Usage: bfo ftb serve | publish EVENT [PAYLOAD] | subscribe [EVENT...]\n'bfo ftb COMMAND --help' says more; see also bfo(1).\n",
          NULL == word ? stdout : stderr);
    return NULL == word ? BT_WELL : BT_USAGE;
}

static int run(int argc, char **argv, const struct argp *argp, int least, int most, int (*command)(const choice_t *choice))
{
    choice_t choice = {.uid = geteuid(), .space = BT_FTB_SPACE_OF_OTHERS, .word = calloc((size_t) argc + 1, sizeof(*choice.word))};
    int status = BT_TROUBLE;

    if (NULL == choice.word) {
        fputs("bfo ftb: no memory\n", stderr);
        return BT_TROUBLE;
    }
    argp_parse(argp, argc, argv, 0, NULL, &choice);
    if (least > choice.n_words || most < choice.n_words) {
        fprintf(stderr, "%s: %s%s; '%s --help' says more\n", argv[0],
                least > choice.n_words ? "an EVENT is missing" : "one word too many: ", least > choice.n_words ? "" : choice.word[most], argv[0]);
        status = BT_USAGE;
    } else {
        status = command(&choice);
    }
    free(choice.word);
    return 0 == fflush(stdout) && !ferror(stdout) ? status : BT_TROUBLE;
}

static int serve(const choice_t *choice)
{
    return bt_ftb_serve(choice->root, choice->json);
}

int bt_cmd_ftb(int argc, char **argv)
{
    static const struct {
        const char *name, *full;
        const struct argp *argp;
        int least, most;
        int (*command)(const choice_t *choice);
    } commands[] = {{"serve", "bfo ftb serve", &serve_argp, 0, 0, serve},
                    {"publish", "bfo ftb publish", &publish_argp, 1, 2, publish},
                    {"subscribe", "bfo ftb subscribe", &subscribe_argp, 0, 1000, subscribe}};

    for (size_t i = 0; 1 < argc && i < sizeof(commands) / sizeof(commands[0]); ++i) {
        if (0 == strcmp(argv[1], commands[i].name)) {
            argv[1] = (char *) commands[i].full;
            return run(argc - 1, argv + 1, commands[i].argp, commands[i].least, commands[i].most, commands[i].command);
        }
    }
    return usage(1 == argc ? "" : 0 == strcmp("--help", argv[1]) ? NULL : argv[1]);
}
