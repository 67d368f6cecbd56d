/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A fault event and its line: reads untrusted text, and writes the same text in one way only. Every word is copied into the event, whose
 * room is fixed. Text that does not fit or is not printable is refused. docs/ftb.md has the format. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <string.h>

/* ---- names -------------------------------------------------------------------------------------------------- */

static const char *const severities[BT_FTB_SEVERITIES] = {"info", "warning", "error", "fatal"};

/* The events whose severity is not `info`. */
static const struct {
    const char *name;
    bt_ftb_severity_t severity;
} table[] = {
    {"IFACE_DEAD", BT_FTB_ERROR},         {"MPI_IFACE_DEAD", BT_FTB_ERROR},
    {"CHECK_INTERFACE", BT_FTB_WARNING},  {"CONFIRM_INTERFACE_DEAD", BT_FTB_ERROR},
    {"COMM_FAILURE", BT_FTB_ERROR},       {"COMMUNICATION", BT_FTB_ERROR},
    {"UNREACHABLE", BT_FTB_ERROR},        {"MPI_RANKS_DEAD", BT_FTB_ERROR},
    {"CONFIRM_RANKS_DEAD", BT_FTB_ERROR}, {"CONFIRM_JOBS_DEAD", BT_FTB_ERROR},
    {"CONFIRM_NODES_DEAD", BT_FTB_ERROR}, {"OUT_OF_RESOURCES", BT_FTB_ERROR},
    {"CHECK_RANKS_DEAD", BT_FTB_WARNING}, {"CHECK_JOBS_DEAD", BT_FTB_WARNING},
    {"CHECK_NODES_DEAD", BT_FTB_WARNING},
};

bt_ftb_severity_t bt_ftb_severity_of(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        if (0 == strcmp(name, table[i].name)) {
            return table[i].severity;
        }
    }
    return BT_FTB_INFO;
}

const char *bt_ftb_severity_name(bt_ftb_severity_t severity)
{
    return severities[severity];
}

bool bt_ftb_is_severity(const char *word, bt_ftb_severity_t *severity)
{
    for (*severity = 0; *severity < BT_FTB_SEVERITIES; ++*severity) {
        if (0 == strcmp(word, severities[*severity])) {
            return true;
        }
    }
    return false;
}

static bool is_made_of(const char *word, const char *first, const char *others, size_t most)
{
    return '\0' != word[0] && NULL != strchr(first, word[0]) && strlen(word) == strspn(word, others) && strlen(word) < most;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define BARE LOWER UPPER DIGITS "._:/@+*-" /* a word of these characters needs no quotes */

bool bt_ftb_is_name(const char *word)
{
    return is_made_of(word, UPPER, UPPER DIGITS "_", BT_FTB_NAME);
}

bool bt_ftb_is_space(const char *word)
{
    return is_made_of(word, LOWER, LOWER DIGITS "._-", BT_FTB_NAME);
}

/* ---- building ------------------------------------------------------------------------------------------------ */

/* Copies a word into the event; NULL if there is no room. */
static const char *keep(bt_ftb_event_t *e, const char *text, size_t n)
{
    char *place = e->text + e->used;

    if (n >= sizeof(e->text) - e->used) {
        e->is_full = true;
        return NULL;
    }
    memcpy(place, text, n);
    place[n] = '\0';
    e->used += n + 1;
    return place;
}

static bool add_word(bt_ftb_event_t *e, const char *text, size_t n)
{
    const char *word = BT_FTB_WORDS == e->n_words ? NULL : keep(e, text, n);

    if (NULL == word) {
        e->is_full = true;
        return false;
    }
    e->word[e->n_words++] = word;
    ++e->pair[e->n_pairs - 1].n;
    return true;
}

static bool add_pair(bt_ftb_event_t *e, const char *key, size_t n, bool is_set)
{
    const char *kept = BT_FTB_PAIRS == e->n_pairs ? NULL : keep(e, key, n);

    if (NULL == kept) {
        e->is_full = true;
        return false;
    }
    e->pair[e->n_pairs].key = kept;
    e->pair[e->n_pairs].is_set = is_set;
    e->pair[e->n_pairs].first = e->n_words;
    e->pair[e->n_pairs++].n = 0;
    return true;
}

void bt_ftb_begin(bt_ftb_event_t *e, const char *name)
{
    e->space = BT_FTB_SPACE;
    e->name = name;
    e->severity = bt_ftb_severity_of(name);
    e->n_pairs = e->n_words = e->used = 0;
    e->is_full = false;
    e->why[0] = '\0';
}

void bt_ftb_add(bt_ftb_event_t *e, const char *key, const char *word)
{
    if (add_pair(e, key, strlen(key), false) && !add_word(e, word, strlen(word))) {
        --e->n_pairs; /* a pair needs a word */
    }
}

void bt_ftb_add_number(bt_ftb_event_t *e, const char *key, uint64_t number)
{
    char word[24];

    snprintf(word, sizeof(word), "%llu", (unsigned long long) number);
    bt_ftb_add(e, key, word);
}

void bt_ftb_add_set(bt_ftb_event_t *e, const char *key)
{
    (void) add_pair(e, key, strlen(key), true);
}

bool bt_ftb_add_to_set(bt_ftb_event_t *e, const char *word)
{
    if (0 == e->n_pairs) {
        return false;
    }
    for (size_t i = e->pair[e->n_pairs - 1].first; i < e->n_words; ++i) {
        if (0 == strcmp(word, e->word[i])) {
            return true;
        }
    }
    return BT_FTB_SET > e->pair[e->n_pairs - 1].n && add_word(e, word, strlen(word));
}

const char *const *bt_ftb_words(const bt_ftb_event_t *e, const char *key, size_t *n)
{
    for (size_t i = 0; i < e->n_pairs; ++i) {
        if (0 == strcmp(key, e->pair[i].key)) {
            *n = e->pair[i].n;
            return &e->word[e->pair[i].first];
        }
    }
    *n = 0;
    return NULL;
}

bool bt_ftb_has(const bt_ftb_event_t *e, const char *key, const char *word)
{
    size_t n;
    const char *const *words = bt_ftb_words(e, key, &n);

    for (size_t i = 0; i < n; ++i) {
        if (0 == strcmp(word, words[i])) {
            return true;
        }
    }
    return false;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Notes what is wrong, and where: the text from `at` on. Returns false. */
static bool refuse(bt_ftb_event_t *e, const char *why, const char *at)
{
    snprintf(e->why, sizeof(e->why), "%s%s%.32s%s", why, '\0' == *at ? " at the end" : ", not '", at, '\0' == *at ? "" : "'");
    bt_clean_text(e->why, sizeof(e->why));
    return false;
}

static const char *behind_blanks(const char *at)
{
    return at + strspn(at, " ");
}

/* Reads "quoted", which may have \" and \\ in it. Moves *at to the text after it. */
static bool read_quoted(bt_ftb_event_t *e, const char **at)
{
    char word[BT_FTB_TEXT];
    size_t n = 0;

    for (++*at; '"' != **at; ++*at) {
        if ('\\' == **at && '"' != *++*at && '\\' != **at) {
            return refuse(e, "after \\ in quotes comes \" or \\", *at);
        }
        if ('\0' == **at) {
            return refuse(e, "quotes end with \"", *at);
        }
        if (n == sizeof(word)) {
            e->is_full = true;
            return refuse(e, "the payload is too long", *at);
        }
        word[n++] = **at;
    }
    ++*at;
    return add_word(e, word, n) || refuse(e, "the payload is too long, or has more than 192 words", *at);
}

static bool read_word(bt_ftb_event_t *e, const char **at)
{
    const size_t n = strspn(*at, BARE);

    if ('"' == **at) {
        return read_quoted(e, at);
    }
    if (0 == n) {
        return refuse(e, "a word of A-Z a-z 0-9 . _ : / @ + * - or a text in quotes is expected", *at);
    }
    if (!add_word(e, *at, n)) {
        return refuse(e, "the payload is too long, or has more than 192 words", *at);
    }
    *at += n;
    return true;
}

/* Reads "{a, b}". */
static bool read_set(bt_ftb_event_t *e, const char **at)
{
    do {
        *at = behind_blanks(*at + 1); /* after { or , */
        if (BT_FTB_SET == e->pair[e->n_pairs - 1].n) {
            return refuse(e, "a set has at most 64 words", *at);
        }
        if (!read_word(e, at)) {
            return false;
        }
        *at = behind_blanks(*at);
    } while (',' == **at);
    if ('}' != **at) {
        return refuse(e, "a set goes on with , or ends with }", *at);
    }
    ++*at;
    return true;
}

static bool read_pair(bt_ftb_event_t *e, const char **at)
{
    const size_t n = strspn(*at, LOWER DIGITS "_");
    const char *key = *at;

    if (0 == n || NULL == strchr(LOWER, *key) || BT_FTB_KEY <= n) {
        return refuse(e, "a key of a-z 0-9 _ is expected, at most 31 characters", *at);
    }
    for (size_t i = 0; i < e->n_pairs; ++i) {
        if (strlen(e->pair[i].key) == n && 0 == memcmp(e->pair[i].key, key, n)) {
            return refuse(e, "each key stands once", *at);
        }
    }
    *at = behind_blanks(*at + n);
    if (':' != **at) {
        return refuse(e, "after a key comes :", *at);
    }
    *at = behind_blanks(*at + 1);
    if (!add_pair(e, key, n, '{' == **at)) {
        return refuse(e, "the payload is too long, or has more than 16 keys", *at);
    }
    return '{' == **at ? read_set(e, at) : read_word(e, at);
}

bool bt_ftb_read_payload(bt_ftb_event_t *e, const char *text)
{
    const char *at = text;

    for (; '\0' != *at; ++at) {
        if (*at < 0x20 || *at > 0x7e) {
            return refuse(e, "an event is printable ASCII", at);
        }
    }
    at = behind_blanks(text);
    if ('\0' == *at) {
        return true;
    }
    for (;;) {
        if (!read_pair(e, &at)) {
            return false;
        }
        at = behind_blanks(at);
        if ('\0' == *at) {
            return true;
        }
        if (',' != *at) {
            return refuse(e, "between two pairs comes ,", at);
        }
        at = behind_blanks(at + 1);
    }
}

/* The next word of the head; moves *text to the text after it. NULL if it is too long. */
static const char *next_word(bt_ftb_event_t *e, const char **text)
{
    const size_t n = strcspn(*text, " ");
    const char *word = BT_FTB_NAME <= n ? NULL : keep(e, *text, n);

    *text = behind_blanks(*text + n);
    return word;
}

bool bt_ftb_read(bt_ftb_event_t *e, const char *text)
{
    const char *space, *severity, *name;
    bt_ftb_severity_t number;

    bt_ftb_begin(e, "");
    space = next_word(e, &text);
    severity = next_word(e, &text);
    name = next_word(e, &text);
    if (NULL == space || !bt_ftb_is_space(space)) {
        return refuse(e, "a space of events is a-z 0-9 . _ -, as " BT_FTB_SPACE_OF_OTHERS, NULL == space ? "a long one" : space);
    }
    if (NULL == severity || !bt_ftb_is_severity(severity, &number)) {
        return refuse(e, "a severity is info, warning, error or fatal", NULL == severity ? "a long one" : severity);
    }
    if (NULL == name || !bt_ftb_is_name(name)) {
        return refuse(e, "the name of an event is A-Z 0-9 _, at most 63 characters", NULL == name ? "a long one" : name);
    }
    e->space = space;
    e->severity = number;
    e->name = name;
    return bt_ftb_read_payload(e, text);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* Appends as much of the text as there is room for. */
static void put(char room[BT_FTB_LINE], size_t *n, const char *text)
{
    for (; '\0' != *text && BT_FTB_LINE - 1 > *n; ++text) {
        room[(*n)++] = *text;
    }
    room[*n] = '\0';
}

static void put_word(char room[BT_FTB_LINE], size_t *n, const char *word)
{
    char one[3] = "";

    if ('\0' != word[0] && strlen(word) == strspn(word, BARE)) {
        put(room, n, word);
        return;
    }
    put(room, n, "\"");
    for (; '\0' != *word; ++word) {
        snprintf(one, sizeof(one), "%s%c", '"' == *word || '\\' == *word ? "\\" : "", *word);
        put(room, n, one);
    }
    put(room, n, "\"");
}

void bt_ftb_write(const bt_ftb_event_t *e, char room[BT_FTB_LINE])
{
    size_t n = 0;

    put(room, &n, e->space);
    put(room, &n, " ");
    put(room, &n, severities[e->severity]);
    put(room, &n, " ");
    put(room, &n, e->name);
    for (size_t p = 0; p < e->n_pairs; ++p) {
        put(room, &n, 0 == p ? " " : ", ");
        put(room, &n, e->pair[p].key);
        put(room, &n, e->pair[p].is_set ? ": {" : ": ");
        for (size_t w = 0; w < e->pair[p].n; ++w) {
            put(room, &n, 0 == w ? "" : ", ");
            put_word(room, &n, e->word[e->pair[p].first + w]);
        }
        put(room, &n, e->pair[p].is_set ? "}" : "");
    }
}

json_t *bt_ftb_json(const bt_ftb_event_t *e, const char *time)
{
    json_t *payload = json_object();

    for (size_t p = 0; p < e->n_pairs; ++p) {
        json_t *set = e->pair[p].is_set ? json_array() : json_string(e->word[e->pair[p].first]);

        for (size_t w = 0; e->pair[p].is_set && w < e->pair[p].n; ++w) {
            json_array_append_new(set, json_string(e->word[e->pair[p].first + w]));
        }
        json_object_set_new(payload, e->pair[p].key, set);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "time", time, "space", e->space, "severity", severities[e->severity], "event", e->name, "payload",
                     payload);
}
