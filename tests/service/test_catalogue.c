/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of error codes: ordered, whole, and never behind the sources. The last test
 * reads every source file and fails on a code that has no row, so a new message cannot be
 * printed without an explanation.
 */
#include "tests/support/test.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "service/catalogue.h"

static void
codes_are_ordered_and_unique(void **state)
{
    (void)state;
    size_t count = 0;
    const struct lw_catalogue_entry *entries = lw_catalogue_entries(&count);
    assert_true(count > 50);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strlen(entries[i].code), 5);
        assert_true(i == 0 || strcmp(entries[i - 1].code, entries[i].code) < 0);
        assert_true(strlen(entries[i].explanation) > 10 && strlen(entries[i].remedy) > 5);
        assert_true(entries[i].title[strlen(entries[i].title) - 1] != '.');
    }
}

static void
a_code_is_found_in_any_case(void **state)
{
    (void)state;
    assert_string_equal(lw_catalogue_find("e0104")->title, "a unit is missing");
    assert_null(lw_catalogue_find("E9999"));
    assert_null(lw_catalogue_find(""));
    assert_non_null(lw_catalogue_nearest("E014"));
}

static void
an_entry_is_wrapped_for_a_terminal(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    lw_catalogue_print(lw_catalogue_find("E0305"), &text);
    assert_int_equal(strncmp(text.data, "E0305: priorities of a family overlap\n\n", 39), 0);
    for (const char *line = text.data; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        assert_true(strcspn(line, "\n") <= 92);
    }
    lw_text_deinit(&text);
}

/* Looks for "E0123" in one source file; each must have a row. */
static void
check_file(const char *path)
{
    char line[1000];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        for (const char *at = line; (at = strchr(at, '"')) != NULL; at++) {
            char code[6] = "";
            bool is_code = (at[1] == 'E' || at[1] == 'W') &&
                           strspn(at + 2, "0123456789") == 4 && at[6] == '"';
            if (is_code) {
                memcpy(code, at + 1, 5);
                if (!lw_catalogue_find(code)) {
                    fail_msg("%s: %s is not in the catalogue", path, code);
                }
            }
        }
    }
    fclose(file);
}

static void
check_folder(const char *path)
{
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char below[600];
        struct stat info;
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || stat(below, &info) != 0) {
            continue;
        }
        size_t length = strlen(below);
        if (S_ISDIR(info.st_mode)) {
            check_folder(below);
        } else if (strcmp(below + length - 2, ".c") == 0) {
            check_file(below);
        }
    }
    closedir(folder);
}

static void
every_code_that_the_sources_print_is_explained(void **state)
{
    (void)state;
    check_folder(LW_SOURCE_DIR "/src");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_ordered_and_unique),
        cmocka_unit_test(a_code_is_found_in_any_case),
        cmocka_unit_test(an_entry_is_wrapped_for_a_terminal),
        cmocka_unit_test(every_code_that_the_sources_print_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
