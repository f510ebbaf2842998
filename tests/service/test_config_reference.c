/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages and schema that are made from the rows: complete, and the files in docs/ are current.
 * With LANEWAY_WRITE_PAGES=1 the files are written instead, which is how they are renewed
 * before the command is built.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/catalogue.h"
#include "service/config.h"
#include "service/config_rows.h"

/* Compares a page with the file in docs/; LANEWAY_WRITE_PAGES=1 writes the file instead. */
static void
page_is_current(const char *name, const struct lw_text *page)
{
    char path[400];
    struct lw_text file;
    char chunk[4096];
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/docs/%s", LW_SOURCE_DIR, name);
    if (getenv("LANEWAY_WRITE_PAGES")) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(page->data, 1, page->size, out), page->size);
        fclose(out);
    }
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    lw_text_init(&file);
    while ((size = fread(chunk, 1, sizeof(chunk), in)) > 0) {
        lw_text_append_bytes(&file, chunk, size);
    }
    fclose(in);
    if (strcmp(file.data, page->data) != 0) {
        fail_msg("docs/%s is not current: build/bin/laneway config-reference writes it", name);
    }
    lw_text_deinit(&file);
}

static void
the_page_of_the_configuration_is_current(void **state)
{
    (void)state;
    struct lw_text page;
    lw_text_init(&page);
    lw_config_reference(&page);
    assert_false(page.is_failed);
    page_is_current("configuration.md", &page);
    lw_text_deinit(&page);
}

static void
the_page_of_the_errors_is_current(void **state)
{
    (void)state;
    struct lw_text page;
    lw_text_init(&page);
    lw_catalogue_reference(&page);
    page_is_current("errors.md", &page);
    lw_text_deinit(&page);
}

static void
every_key_is_on_the_page_with_a_meaning(void **state)
{
    (void)state;
    struct lw_text page;
    struct lw_option_walk walk;
    lw_text_init(&page);
    lw_config_reference(&page);
    lw_option_walk_start(&walk, lw_config_root.rows, LW_WALK_ALL);
    size_t count = 0;
    while (lw_option_walk_next(&walk)) {
        assert_non_null(walk.row->doc);
        assert_true(strlen(walk.row->doc) > 5);
        if (walk.row->name[0] != '*' && walk.level > 0 && !strstr(page.data, walk.row->name)) {
            fail_msg("%s is not on the page", walk.row->name);
        }
        count++;
    }
    assert_true(count > 80);
    lw_text_deinit(&page);
}

static json_t *
load_schema(void)
{
    struct lw_text text;
    lw_text_init(&text);
    lw_config_schema(&text);
    json_t *schema = json_loadb(text.data, text.size, 0, NULL);
    lw_text_deinit(&text);
    assert_non_null(schema);
    return schema;
}

static json_t *
definition(json_t *schema, const char *name)
{
    json_t *found = json_object_get(json_object_get(schema, "$defs"), name);
    assert_non_null(found);
    return found;
}

static void
the_schema_has_every_key_and_refuses_others(void **state)
{
    (void)state;
    static const struct {
        const char *table;
        const struct lw_option *rows;
    } tables[] = { { "service", lw_service_rows },
                   { "brokers", lw_broker_rows },
                   { "handlers", lw_config_handler_rows },
                   { "pipelines", lw_pipeline_rows },
                   { "pipelines.topics", lw_topic_entry_rows } };
    json_t *schema = load_schema();
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct lw_option_walk walk;
        json_t *table = definition(schema, tables[i].table);
        assert_true(json_is_false(json_object_get(table, "additionalProperties")));
        lw_option_walk_start(&walk, tables[i].rows, LW_WALK_FLAT);
        while (lw_option_walk_next(&walk)) {
            json_t *key = json_object_get(json_object_get(table, "properties"), walk.row->name);
            assert_int_equal(key != NULL, walk.row->type != LW_OPTION_LATER);
        }
    }
    json_decref(schema);
}

static void
all_references_of_the_schema_lead_somewhere(void **state)
{
    (void)state;
    json_t *schema = load_schema();
    char *text = json_dumps(schema, JSON_COMPACT);
    size_t count = 0;
    for (char *at = text; (at = strstr(at, "\"#/$defs/")) != NULL; at++) {
        char name[100];
        at += strlen("\"#/$defs/");
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "\""), at);
        definition(schema, name);
        count++;
    }
    assert_true(count > 20);
    free(text);
    json_decref(schema);
}

static void
the_schema_carries_defaults_ranges_and_words(void **state)
{
    (void)state;
    json_t *schema = load_schema();
    json_t *service = json_object_get(definition(schema, "service"), "properties");
    json_t *concurrency = json_object_get(service, "concurrency");
    assert_int_equal(json_integer_value(json_object_get(concurrency, "default")), 16);
    json_t *first = json_array_get(json_object_get(concurrency, "anyOf"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "minimum")), 1);
    json_t *shutdown = json_object_get(service, "shutdown");
    json_t *words = json_object_get(json_array_get(json_object_get(shutdown, "anyOf"), 0),
                                    "enum");
    assert_string_equal(json_string_value(json_array_get(words, 1)), "abort");
    assert_string_equal(json_string_value(json_object_get(shutdown, "default")), "graceful");
    json_decref(schema);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_the_configuration_is_current),
        cmocka_unit_test(the_page_of_the_errors_is_current),
        cmocka_unit_test(every_key_is_on_the_page_with_a_meaning),
        cmocka_unit_test(the_schema_has_every_key_and_refuses_others),
        cmocka_unit_test(all_references_of_the_schema_lead_somewhere),
        cmocka_unit_test(the_schema_carries_defaults_ranges_and_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
