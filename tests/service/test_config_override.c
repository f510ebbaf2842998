/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where values come from: files, .env files, environment, --set, each over the one before; and
 * ${references}. Every source is tried on the same option, and paths into every kind of section
 * are set from outside.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const other_file = "version: 1\nservice: { concurrency: 7, name: other }\n";

/* A file in a folder of its own, for .env files and secrets. */
struct folder {
    char path[64];
    char file[128];
};

static void
folder_make(struct folder *folder, const char *name, const char *content)
{
    snprintf(folder->path, sizeof(folder->path), "/tmp/laneway-config-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof(folder->file), "%s/%s", folder->path, name);
    FILE *file = fopen(folder->file, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void
folder_remove(struct folder *folder)
{
    unlink(folder->file);
    rmdir(folder->path);
}

/* Opens the small configuration with everything else of a source. */
static void
open_small(struct config_fixture *fixture, struct lw_config_source source)
{
    struct lw_config_text text = { "small.yaml", config_small, strlen(config_small) };
    source.texts = source.texts ? source.texts : &text;
    source.text_count = source.text_count ? source.text_count : 1;
    config_open_source(fixture, source);
}

static const char *
origin_of(const struct lw_config *config, const char *path, char *out, size_t size)
{
    struct lw_text text;
    const struct lw_node *node = lw_node_at(config->root, path);
    lw_text_init(&text);
    if (node) {
        lw_node_origin(node, &text);
    }
    snprintf(out, size, "%s", text.data ? text.data : "default");
    lw_text_deinit(&text);
    return out;
}

static void
each_source_wins_over_the_one_before(void **state)
{
    (void)state;
    struct folder folder;
    folder_make(&folder, "local.env", "LANEWAY_SERVICE__CONCURRENCY=9\n");
    const char *env_files[] = { folder.file };
    const char *env[] = { "LANEWAY_SERVICE__CONCURRENCY=11", NULL };
    const char *sets[] = { "service.concurrency=13" };
    const struct lw_config_text texts[] = {
        { "small.yaml", config_small, strlen(config_small) },
        { "other.yaml", other_file, strlen(other_file) },
    };
    const uint32_t wanted[] = { 16, 7, 9, 11, 13 };
    const char *origins[] = { "default", "other.yaml:2", NULL, "LANEWAY_SERVICE__CONCURRENCY",
                              "--set service.concurrency" };
    for (size_t level = 0; level < 5; level++) {
        char origin[200];
        struct config_fixture fixture;
        struct lw_config_source source = { .texts = texts,
                                           .text_count = level >= 1 ? 2 : 1,
                                           .env_files = env_files,
                                           .env_file_count = level >= 2,
                                           .env = level >= 3 ? env : NULL,
                                           .sets = sets,
                                           .set_count = level >= 4 };
        config_open_source(&fixture, source);
        assert_non_null(fixture.config);
        assert_int_equal(fixture.config->service.dispatcher.concurrency, wanted[level]);
        origin_of(fixture.config, "service.concurrency", origin, sizeof(origin));
        if (origins[level]) {
            assert_string_equal(origin, origins[level]);
        } else {
            assert_non_null(strstr(origin, "/local.env:1"));
        }
        config_close(&fixture);
    }
    folder_remove(&folder);
}

static void
later_files_join_sections_and_replace_values(void **state)
{
    (void)state;
    static const char over[] = "service: { drain_timeout: 5s }\n"
                               "pipelines: { hello: { topics: [a, b], ordering: none } }\n";
    const struct lw_config_text texts[] = {
        { "small.yaml", config_small, strlen(config_small) },
        { "over.yaml", over, sizeof(over) - 1 },
    };
    struct config_fixture fixture;
    config_open_source(&fixture, (struct lw_config_source){ .texts = texts, .text_count = 2 });
    assert_non_null(fixture.config);
    assert_int_equal(fixture.config->service.dispatcher.drain_timeout_ms, 5000);
    assert_int_equal(fixture.config->subscription_count, 2);
    assert_string_equal(fixture.config->subscriptions[1].options.topic, "b");
    assert_string_equal(fixture.config->pipelines[0].group, "hello");
    assert_int_equal(fixture.config->subscriptions[0].options.ordering, LW_ORDERING_NONE);
    config_close(&fixture);
}

static void
every_scalar_path_can_be_set(void **state)
{
    (void)state;
    const char *sets[] = { "pipelines.hello.retry.in_place=false",
                           "pipelines.hello.retry.max_retries=4",
                           "pipelines.hello.retry.backoff.max=1h",
                           "pipelines.hello.retry.topic=again",
                           "pipelines.hello.ordering=none",
                           "pipelines.hello.topics.0.priority=7",
                           "brokers.main.properties.security.protocol=ssl",
                           "handlers.hello.program=[sh, \"a b\"]",
                           "pipelines.hello.retry.tiers=1s, 5s",
                           "pipelines.hello.dead_letter=none" };
    struct config_fixture fixture;
    open_small(&fixture, (struct lw_config_source){ .sets = sets, .set_count = 10 });
    assert_non_null(fixture.config);
    const struct lw_subscription_options *options = &fixture.config->subscriptions[0].options;
    assert_int_equal(options->retry.max_retries, 4);
    assert_int_equal(options->retry.backoff.max_ms, 3600000);
    assert_string_equal(options->retry.topic, "again");
    assert_int_equal(options->priority, 7);
    assert_int_equal(options->retry.tier_count, 2);
    assert_int_equal(options->retry.tiers_ms[1], 5000);
    assert_true(options->dead_letter.is_off);
    assert_string_equal(options->program[1], "a b");
    assert_string_equal(fixture.config->brokers[0].properties[0].name, "security.protocol");
    config_close(&fixture);
}

static void
variables_find_names_in_folded_spelling(void **state)
{
    (void)state;
    static const char text[] =
        "version: 1\n"
        "brokers: { main: { url: 'memory:' } }\n"
        "handlers: { confirm-order: { builtin: echo } }\n"
        "pipelines: { Orders: { broker: main, handler: confirm-order, consumer: { group: g },\n"
        "             topics: [a] } }\n";
    const struct lw_config_text texts[] = { { "t.yaml", text, sizeof(text) - 1 } };
    const char *env[] = { "LANEWAY_HANDLERS__CONFIRM_ORDER__TIMEOUT=7s",
                          "LANEWAY_PIPELINES__ORDERS__RETRY__MAX_ATTEMPTS=9",
                          "LANEWAY_PIPELINES__ORDERS__ORDERING=partition # as they come",
                          NULL };
    struct config_fixture fixture;
    config_open_source(
        &fixture, (struct lw_config_source){ .texts = texts, .text_count = 1, .env = env });
    assert_int_equal(fixture.printed.size, 0);
    assert_int_equal(fixture.config->handlers[0].run.timeout_ms, 7000);
    assert_int_equal(fixture.config->subscriptions[0].options.retry.max_attempts, 9);
    assert_int_equal(fixture.config->subscriptions[0].options.ordering, LW_ORDERING_PARTITION);
    config_close(&fixture);
}

static void
properties_are_set_by_variables_with_underscores_for_dots(void **state)
{
    (void)state;
    const char *env[] = { "LANEWAY_BROKERS__MAIN__PROPERTIES__SASL_PASSWORD= s p ", NULL };
    struct config_fixture fixture;
    open_small(&fixture, (struct lw_config_source){ .env = env });
    assert_non_null(fixture.config);
    assert_string_equal(fixture.config->brokers[0].properties[0].name, "sasl.password");
    assert_string_equal(fixture.config->brokers[0].properties[0].value, " s p ");
    config_close(&fixture);
}

static void
a_variable_that_sets_nothing_is_a_warning(void **state)
{
    (void)state;
    const char *env[] = { "LANEWAY_SERVICE__CONCURENCY=40",
                          "LANEWAY_CONCURRENCY=40",
                          "LANEWAY_CONFG=x",
                          "LANEWAY_CONFIG=a.yaml",
                          "LANEWAY_URL=unix:x",
                          "OTHER=1",
                          NULL };
    struct config_fixture fixture;
    open_small(&fixture, (struct lw_config_source){ .env = env });
    assert_non_null(fixture.config);
    assert_string_equal(
        fixture.printed.data,
        "LANEWAY_CONCURRENCY: warning[W0302]: the variable LANEWAY_CONCURRENCY "
        "sets nothing\n"
        "help: did you mean LANEWAY_SERVICE__CONCURRENCY?\n"
        "LANEWAY_CONFG: warning[W0302]: the variable LANEWAY_CONFG sets nothing\n"
        "help: did you mean LANEWAY_CONFIG?\n"
        "LANEWAY_SERVICE__CONCURENCY: warning[W0302]: the variable "
        "LANEWAY_SERVICE__CONCURENCY sets nothing\n"
        "help: did you mean LANEWAY_SERVICE__CONCURRENCY?\n"
        "3 warnings\n");
    config_close(&fixture);
}

static void
a_set_that_sets_nothing_is_an_error(void **state)
{
    (void)state;
    const char *sets[] = { "service.concurency=40", "service", "service=1", "service.name.x=1",
                           "pipelines.hello.topics.5.priority=1" };
    struct config_fixture fixture;
    open_small(&fixture, (struct lw_config_source){ .sets = sets, .set_count = 5 });
    assert_string_equal(
        fixture.printed.data,
        "--set: error[E0118]: this is not PATH=VALUE\n"
        "help: write it as in --set service.concurrency=40\n"
        "--set pipelines.hello.topics.5.priority: error[E0118]: \"5\" is beyond the end of the "
        "list, in pipelines.hello.topics\n"
        "--set service: error[E0118]: \"service\" is a section; name a key in it\n"
        "--set service.concurency: error[E0118]: \"concurency\" is not a key here, in service\n"
        "help: did you mean \"concurrency\"?\n"
        "--set service.name.x: error[E0118]: \"x\" has nothing below it, in service.name\n"
        "5 errors\n");
    config_close(&fixture);
}

static void
a_wrong_value_from_outside_names_its_variable(void **state)
{
    (void)state;
    const char *env[] = { "LANEWAY_SERVICE__DRAIN_TIMEOUT=30", NULL };
    struct config_fixture fixture;
    open_small(&fixture, (struct lw_config_source){ .env = env });
    assert_string_equal(fixture.printed.data,
                        "LANEWAY_SERVICE__DRAIN_TIMEOUT: error[E0104]: \"30\" needs a unit: a "
                        "duration such as 30s, 500ms or 5m\n"
                        "help: write 30s if you meant seconds\n1 error\n");
    config_close(&fixture);
}

static void
env_files_know_comments_quotes_and_export(void **state)
{
    (void)state;
    struct folder folder;
    folder_make(&folder, "x.env",
                "# a comment\n"
                "export LANEWAY_SERVICE__NAME = plain text  # not this\n"
                "GROUP='single $x'\r\n"
                "OTHER=\"two\\nlines\"\n"
                "\n"
                "unknown_key=ignored\n"
                "LANEWAY_SERVICE__CONTROL=a#b\n");
    const char *env_files[] = { folder.file };
    struct config_fixture fixture;
    open_small(&fixture,
               (struct lw_config_source){ .env_files = env_files, .env_file_count = 1 });
    assert_int_equal(fixture.printed.size, 0);
    assert_string_equal(fixture.config->service.dispatcher.name, "plain text");
    assert_string_equal(fixture.config->service.control, "a#b");
    config_close(&fixture);
    folder_remove(&folder);
}

static void
a_bad_line_of_an_env_file_is_told_without_its_text(void **state)
{
    (void)state;
    struct folder folder;
    folder_make(&folder, "x.env", "A=1\nhunter2\nB=\"open\n");
    const char *env_files[] = { folder.file };
    struct config_fixture fixture;
    open_small(&fixture,
               (struct lw_config_source){ .env_files = env_files, .env_file_count = 1 });
    assert_non_null(strstr(fixture.printed.data, ":2:1: error[E0119]: this line is not "
                                                 "NAME=VALUE\n"));
    assert_non_null(strstr(fixture.printed.data,
                           ":3:1: error[E0119]: the quote of this value is "
                           "not closed\n"));
    assert_null(strstr(fixture.printed.data, "hunter2"));
    config_close(&fixture);
    folder_remove(&folder);
}

/* The name of the service, written as `value`, after substitution. */
static void
name_becomes(const char *value, const char *const *env, const char *expected)
{
    char text[600];
    struct config_fixture fixture;
    snprintf(text, sizeof(text), "%sservice: { name: \"%s\" }\n", config_small, value);
    struct lw_config_text texts[] = { { "t.yaml", text, strlen(text) } };
    config_open_source(
        &fixture, (struct lw_config_source){ .texts = texts, .text_count = 1, .env = env });
    assert_non_null(fixture.config);
    assert_string_equal(fixture.config->service.dispatcher.name, expected);
    config_close(&fixture);
}

static void
references_are_put_into_values(void **state)
{
    (void)state;
    const char *env[] = { "NAME=a: b # c", "EMPTY=", NULL };
    name_becomes("${NAME}", env, "a: b # c");
    name_becomes("x-${NAME}-y", env, "x-a: b # c-y");
    name_becomes("${NONE:-other}", env, "other");
    name_becomes("${EMPTY:-other}", env, "other");
    name_becomes("${NAME:-other}", env, "a: b # c");
    name_becomes("$$${NONE:-{}", env, "${");
    name_becomes("$$NAME $x", env, "$NAME $x");
    name_becomes("${EMPTY}", env, "laneway");
}

static void
references_in_keys_and_in_variables_stay(void **state)
{
    (void)state;
    const char *env[] = { "LANEWAY_SERVICE__NAME=${HOME}", "HOME=secret", NULL };
    struct config_fixture fixture;
    open_small(&fixture, (struct lw_config_source){ .env = env });
    assert_string_equal(fixture.config->service.dispatcher.name, "${HOME}");
    config_close(&fixture);
    config_mentions("${HOME}: 1\n", "unknown key \"${HOME}\" in the file");
}

static void
a_substituted_value_never_changes_the_document(void **state)
{
    (void)state;
    const char *env[] = { "NAME=x }, concurrency: 3, y: { z: 1", NULL };
    name_becomes("${NAME}", env, "x }, concurrency: 3, y: { z: 1");
}

static void
an_unset_variable_is_an_error_with_its_place(void **state)
{
    (void)state;
    config_mentions(
        "service: { name: \"${NOPE}\" }\n",
        "bad.yaml:1:18: error[E0114]: the environment variable \"NOPE\" is not set\n"
        "    1 | service: { name: \"${NOPE}\" }\n"
        "      |                  ^^^^^^^^^\n"
        "help: set it, or give a default: ${NOPE:-value}\n");
}

static void
malformed_references_are_errors(void **state)
{
    (void)state;
    config_mentions("service: { name: \"${NOPE\" }\n",
                    "error[E0120]: \"${\" has no closing brace");
    config_mentions("service: { name: \"${1x}\" }\n", "error[E0120]: a reference is ${NAME}");
    config_mentions("service: { name: \"${}\" }\n", "error[E0120]: a reference is ${NAME}");
}

static void
files_are_put_in_from_the_folder_of_the_configuration(void **state)
{
    (void)state;
    struct folder folder;
    char name[200];
    static const char text[] = "service: { name: '${file:secret.txt}' }\n";
    folder_make(&folder, "secret.txt", " s3cret \n");
    snprintf(name, sizeof(name), "%s/my.yaml", folder.path);
    const struct lw_config_text texts[] = {
        { "small.yaml", config_small, strlen(config_small) }, { name, text, sizeof(text) - 1 }
    };
    struct config_fixture fixture;
    config_open_source(&fixture, (struct lw_config_source){ .texts = texts, .text_count = 2 });
    assert_non_null(fixture.config);
    assert_string_equal(fixture.config->service.dispatcher.name, " s3cret ");
    config_close(&fixture);
    folder_remove(&folder);
    config_mentions("service: { name: '${file:/nonexistent/x}' }\n",
                    "error[E0115]: cannot read \"/nonexistent/x\": No such file or directory");
}

static void
references_to_env_files_are_weaker_than_the_environment(void **state)
{
    (void)state;
    struct folder folder;
    static const char text[] = "service: { name: '${A}-${B}' }\n";
    folder_make(&folder, "x.env", "A=file\nB=file\n");
    const char *env_files[] = { folder.file };
    const char *env[] = { "A=environment", NULL };
    const struct lw_config_text texts[] = { { "small.yaml", config_small,
                                              strlen(config_small) },
                                            { "t.yaml", text, sizeof(text) - 1 } };
    struct config_fixture fixture;
    config_open_source(&fixture, (struct lw_config_source){ .texts = texts,
                                                            .text_count = 2,
                                                            .env_files = env_files,
                                                            .env_file_count = 1,
                                                            .env = env });
    assert_string_equal(fixture.config->service.dispatcher.name, "environment-file");
    config_close(&fixture);
    folder_remove(&folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_source_wins_over_the_one_before),
        cmocka_unit_test(later_files_join_sections_and_replace_values),
        cmocka_unit_test(every_scalar_path_can_be_set),
        cmocka_unit_test(variables_find_names_in_folded_spelling),
        cmocka_unit_test(properties_are_set_by_variables_with_underscores_for_dots),
        cmocka_unit_test(a_variable_that_sets_nothing_is_a_warning),
        cmocka_unit_test(a_set_that_sets_nothing_is_an_error),
        cmocka_unit_test(a_wrong_value_from_outside_names_its_variable),
        cmocka_unit_test(env_files_know_comments_quotes_and_export),
        cmocka_unit_test(a_bad_line_of_an_env_file_is_told_without_its_text),
        cmocka_unit_test(references_are_put_into_values),
        cmocka_unit_test(references_in_keys_and_in_variables_stay),
        cmocka_unit_test(a_substituted_value_never_changes_the_document),
        cmocka_unit_test(an_unset_variable_is_an_error_with_its_place),
        cmocka_unit_test(malformed_references_are_errors),
        cmocka_unit_test(files_are_put_in_from_the_folder_of_the_configuration),
        cmocka_unit_test(references_to_env_files_are_weaker_than_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
