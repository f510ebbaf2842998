/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of YAML is refused, with its position, and that positions count characters. Everything
 * that could make a file mean something else than it shows is refused: duplicates, anchors,
 * tags, merges, second documents; and so is what is too large or too deep.
 */
#include "tests/service/config_fixture.h"

#include <string.h>

static void
a_duplicate_key_shows_both_lines(void **state)
{
    (void)state;
    config_mentions("version: 1\n"
                    "service:\n"
                    "  name: a\n"
                    "  name: b\n",
                    "bad.yaml:4:3: error[E0108]: the key \"name\" is given twice\n"
                    "    3 |   name: a\n"
                    "    4 |   name: b\n"
                    "      |   ^^^^\n"
                    "help: the first one is in line 3; keep one of them\n");
}

static void
anchors_aliases_tags_and_merges_are_refused(void **state)
{
    (void)state;
    config_mentions("version: &v 1\n",
                    "bad.yaml:1:10: error[E0109]: anchors, aliases and tags");
    config_mentions("version: *v\n", "bad.yaml:1:10: error[E0109]: anchors, aliases and tags");
    config_mentions("version: !!int 1\n", "bad.yaml:1:10: error[E0109]: anchors");
    config_mentions("service: &s { name: a }\n", "bad.yaml:1:10: error[E0109]: anchors");
    config_mentions("service: !x [a]\n", "bad.yaml:1:10: error[E0109]: anchors");
    config_mentions("service: { <<: { name: a } }\n",
                    "bad.yaml:1:12: error[E0109]: merge keys");
}

static void
a_tab_is_explained(void **state)
{
    (void)state;
    config_mentions(
        "service:\n\tname: a\n",
        "bad.yaml:2:1: error[E0102]: this is not YAML: found character that cannot "
        "start any token\n"
        "    2 |  name: a\n"
        "      | ^\n"
        "help: indent with spaces, not tabs, and put quotes around a value that begins "
        "with @ ` or %\n");
}

static void
an_open_quote_names_its_beginning(void **state)
{
    (void)state;
    config_mentions("version: 1\nservice:\n  name: \"a\n  control: b\n",
                    "error[E0102]: this is not YAML: found unexpected end of stream\n"
                    "help: while scanning a quoted scalar that begins in line 3\n");
}

static void
a_second_document_is_refused(void **state)
{
    (void)state;
    config_mentions("version: 1\n---\nversion: 1\n",
                    "bad.yaml:2:1: error[E0102]: a file holds one document");
}

static void
keys_must_be_short_names(void **state)
{
    (void)state;
    config_mentions("[a]: 1\n", "error[E0102]: a key must be a name, not a list or a map");
    config_mentions("'': 1\n", "error[E0102]: a key must be a short name");
}

static void
a_root_that_is_no_map_is_refused(void **state)
{
    (void)state;
    config_mentions("- a\n- b\n",
                    "error[E0103]: a configuration begins with keys such as \"version: 1\"");
}

static void
nesting_is_bounded(void **state)
{
    (void)state;
    char text[200] = "extensions: ";
    memset(text + strlen(text), '[', 60);
    memset(text + strlen(text), ']', 60);
    config_mentions(text, "error[E0110]: this is nested more than 32 levels deep");
}

static void
the_number_of_values_is_bounded(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    lw_text_append(&text, "extensions: [");
    for (int i = 0; i < 20001; i++) {
        lw_text_append(&text, "1,");
    }
    lw_text_append(&text, "1]\n");
    config_mentions(text.data, "error[E0110]: this file has more than 20,000 values");
    lw_text_deinit(&text);
}

static void
the_size_is_bounded(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    for (int i = 0; i < 1100; i++) {
        lw_text_format(&text, "# %01000d\n", i);
    }
    config_says(text.data, "bad.yaml: error[E0110]: the file is larger than 1MiB\n1 error\n");
    lw_text_deinit(&text);
}

static void
only_utf8_is_read(void **state)
{
    (void)state;
    config_says("version: \"\xff\xfe\"\n",
                "bad.yaml: error[E0111]: the file is not UTF-8 text\n"
                "help: save it as UTF-8\n1 error\n");
}

static void
columns_count_characters_not_bytes(void **state)
{
    (void)state;
    config_mentions("service: { name: \"\xc3\xa4\xc3\xb6\", nmae: 1 }\n",
                    "bad.yaml:1:24: error[E0101]: unknown key \"nmae\" in service\n"
                    "    1 | service: { name: \"\xc3\xa4\xc3\xb6\", nmae: 1 }\n"
                    "      |                        ^^^^\n"
                    "help: did you mean \"name\"?\n");
}

static void
control_characters_do_not_reach_a_terminal(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, "\"x\\e[2J\": 1\n");
    assert_null(strchr(fixture.printed.data, '\x1b'));
    assert_non_null(strstr(fixture.printed.data, "unknown key \"x?[2J\""));
    config_close(&fixture);
}

static void
extensions_are_not_looked_at(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    lw_text_format(&text, "%sextensions: { anything: [1, { x: y }] }\n", config_small);
    config_is_fine(text.data);
    lw_text_deinit(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duplicate_key_shows_both_lines),
        cmocka_unit_test(anchors_aliases_tags_and_merges_are_refused),
        cmocka_unit_test(a_tab_is_explained),
        cmocka_unit_test(an_open_quote_names_its_beginning),
        cmocka_unit_test(a_second_document_is_refused),
        cmocka_unit_test(keys_must_be_short_names),
        cmocka_unit_test(a_root_that_is_no_map_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(the_number_of_values_is_bounded),
        cmocka_unit_test(the_size_is_bounded),
        cmocka_unit_test(only_utf8_is_read),
        cmocka_unit_test(columns_count_characters_not_bytes),
        cmocka_unit_test(control_characters_do_not_reach_a_terminal),
        cmocka_unit_test(extensions_are_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
