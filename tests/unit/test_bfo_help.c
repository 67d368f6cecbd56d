/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Help texts: the right lines with their arguments, whatever else the file holds, and from many threads at once, because the service
 * threads of two rails and the application may write at the same time. This program stands in for a component: it runs from a
 * directory with help/ in it.
 */
#include "bfo_help.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define TEXTS "texts.txt"
#define RULE "--------------------------------------------------------------------------\n"

static char *text_of(const char *file, const char *topic, int is_framed, ...)
{
    va_list arguments;

    va_start(arguments, is_framed);
    char *text = bfo_help_text(file, topic, is_framed, arguments);
    va_end(arguments);
    return text;
}

static void expect(const char *want, char *text)
{
    assert_string_equal(want, text);
    free(text);
}

static void text_has_its_arguments_and_no_comment(void **state)
{
    expect("rail sr0, 7 ms\n\nsecond line\n", text_of(TEXTS, "two words", false, "sr0", 7));
    expect(RULE "the last one" RULE, text_of(TEXTS, "last", true));
}

/* A topic is not found under a part of its name, nor in a line of another topic's text. */
static void topic_is_the_whole_name(void **state)
{
    char *text = text_of(TEXTS, "two", false);

    assert_null(strstr(text, "rail"));
    free(text);
}

static void what_is_missing_is_named(void **state)
{
    static const char *const files[] = {TEXTS, "nosuch.txt"};

    for (int i = 0; i < 2; ++i) {
        char *text = text_of(files[i], "nosuch topic", false, "an argument");
        assert_non_null(strstr(text, "(nosuch topic)"));
        assert_non_null(strstr(text, files[i]));
        free(text);
    }
}

static atomic_uint wrong;

static void *speak(void *argument)
{
    char want[64];

    for (int i = 0; i < 500; ++i) {
        char *text = text_of(TEXTS, "two words", false, (const char *) argument, i);
        snprintf(want, sizeof(want), "rail %s, %d ms\n\nsecond line\n", (const char *) argument, i);
        wrong += NULL == text || 0 != strcmp(want, text);
        free(text);
    }
    return NULL;
}

static void threads_speak_at_once(void **state)
{
    static char names[4][4] = {"sr0", "sr1", "sr2", "sr3"};
    pthread_t threads[4];

    for (int i = 0; i < 4; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, speak, names[i]), 0);
    }
    for (int i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wrong, 0);
}

/* Runs this program again from a directory with help texts. */
static int with_texts(void)
{
    char dir[] = "/tmp/bfo-help-XXXXXX", path[64], self[PATH_MAX] = "", command[80];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/help", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/help/" TEXTS, dir);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs("# before all topics\n[one]\n[two words]\n# a comment\nrail %s, %d ms\n\nsecond line\n#\n[two words more]\nanother\n[last]\nthe last one",
          file);
    fclose(file);
    snprintf(path, sizeof(path), "%s/component", dir);
    assert_true(0 < readlink("/proc/self/exe", self, sizeof(self) - 1));
    assert_int_equal(symlink(self, path), 0);
    snprintf(command, sizeof(command), "%s tests", path);
    int status = system(command);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    return 0 != status;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_its_arguments_and_no_comment),
        cmocka_unit_test(topic_is_the_whole_name),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(threads_speak_at_once),
    };

    return 1 == argc ? with_texts() : cmocka_run_group_tests(tests, NULL, NULL);
}
