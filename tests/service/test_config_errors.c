/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages about keys, values and references, character by character: the position, the
 * sentence, the source line with its caret, the help. One file of 28 lines holds six mistakes,
 * and all of them are told at once.
 */
#include "tests/service/config_fixture.h"

#include <string.h>

#include "base/alloc.h"

static const char *const bad_file = "version: 1\n"
                                    "\n"
                                    "brokers:\n"
                                    "  # the cluster of the shop\n"
                                    "  main:\n"
                                    "    url: kafka://localhost:9092\n"
                                    "    properties:\n"
                                    "      securty.protocol: sasl_ssl\n"
                                    "handlers:\n"
                                    "  confirm-order:\n"
                                    "    program: [python3, handlers/confirm_order.py]\n"
                                    "    timeout: 30\n"
                                    "pipelines:\n"
                                    "  orders:\n"
                                    "    broker: man\n"
                                    "    handler: confirm-order\n"
                                    "    consumer: { group: orders }\n"
                                    "    topics:\n"
                                    "      matrix:\n"
                                    "        name: \"orders_{level}_{lane}\"\n"
                                    "        level: { live: 100, batch: 140 }\n"
                                    "        lane: { high: 10, low: 20, retry: 50 }\n"
                                    "    ordering: key\n"
                                    "    retry:\n"
                                    "      topic: \"orders_{level}_retry\"\n"
                                    "      max_retrys: 5\n"
                                    "    dead_letter:\n"
                                    "      topic: orders_dead\n";

static const char *const bad_file_print =
    "bad.yaml:8:7: error[E0410]: the Kafka client does not know the property "
    "\"securty.protocol\"\n"
    "    8 |       securty.protocol: sasl_ssl\n"
    "      |       ^^^^^^^^^^^^^^^^\n"
    "help: did you mean \"security.protocol\"?  (client said: No such configuration property: "
    "\"securty.protocol\")\n"
    "      laneway errors E0410 lists the properties of librdkafka 2.0.2, the version in use\n"
    "bad.yaml:12:14: error[E0104]: \"30\" needs a unit: a duration such as 30s, 500ms or 5m\n"
    "   12 |     timeout: 30\n"
    "      |              ^^\n"
    "help: write 30s if you meant seconds\n"
    "bad.yaml:15:13: error[E0201]: no broker is called \"man\"\n"
    "   15 |     broker: man\n"
    "      |             ^^^\n"
    "help: did you mean \"main\" (line 5)?\n"
    "bad.yaml:22:36: error[E0305]: priorities of \"live\" and \"batch\" overlap: live+retry = "
    "150 "
    "is not before batch+high = 150\n"
    "   21 |         level: { live: 100, batch: 140 }\n"
    "   22 |         lane: { high: 10, low: 20, retry: 50 }\n"
    "      |                                    ^^^^^^^^^\n"
    "help: the largest lane (50) must be smaller than the gap between levels (140 - 100 = 40); "
    "use batch: 200\n"
    "bad.yaml:25:7: error[E0307]: a retry topic breaks \"ordering: key\": later messages of "
    "the "
    "key would overtake the retried one\n"
    "   23 |     ordering: key\n"
    "   25 |       topic: \"orders_{level}_retry\"\n"
    "      |       ^^^^^\n"
    "help: use \"in_place: true\" to hold the key while it is retried, or \"allow_overtaking: "
    "true\" if you accept it\n"
    "bad.yaml:26:7: error[E0101]: unknown key \"max_retrys\" in pipelines.orders.retry\n"
    "   26 |       max_retrys: 5\n"
    "      |       ^^^^^^^^^^\n"
    "help: did you mean \"max_retries\"?\n"
    "6 errors\n";

static void
all_errors_of_a_file_are_told_in_its_order(void **state)
{
    (void)state;
    config_says(bad_file, bad_file_print);
}

static void
a_small_file_is_fine(void **state)
{
    (void)state;
    config_is_fine(config_small);
}

static void
colour_changes_no_character_of_the_text(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text coloured;
    struct lw_text plain;
    config_open(&fixture, bad_file);
    lw_text_init(&coloured);
    lw_text_init(&plain);
    lw_diagnostics_print(&fixture.diagnostics, true, &coloured);
    assert_non_null(strstr(coloured.data, "\x1b[1;31merror[E0410]\x1b[0m: the"));
    for (const char *at = coloured.data; *at; at++) {
        if (*at == '\x1b') {
            at += strcspn(at, "m");
        } else {
            lw_text_append_char(&plain, *at);
        }
    }
    assert_string_equal(plain.data, fixture.printed.data);
    lw_text_deinit(&plain);
    lw_text_deinit(&coloured);
    config_close(&fixture);
}

static void
a_key_of_a_section_below_is_sent_there(void **state)
{
    (void)state;
    config_mentions("version: 1\n"
                    "brokers: { main: { url: 'memory:' } }\n"
                    "handlers: { h: { builtin: echo } }\n"
                    "pipelines:\n"
                    "  p:\n"
                    "    broker: main\n"
                    "    handler: h\n"
                    "    consumer: { group: g }\n"
                    "    topics: [a]\n"
                    "    max_attempts: 3\n",
                    "bad.yaml:10:5: error[E0101]: unknown key \"max_attempts\" in pipelines.p\n"
                    "   10 |     max_attempts: 3\n"
                    "      |     ^^^^^^^^^^^^\n"
                    "help: \"max_attempts\" belongs under \"retry\"\n");
}

static void
a_key_of_the_section_above_is_sent_there(void **state)
{
    (void)state;
    config_mentions("version: 1\n"
                    "brokers: { main: { url: 'memory:' } }\n"
                    "handlers: { h: { builtin: echo } }\n"
                    "pipelines:\n"
                    "  p: { broker: main, handler: h, consumer: { group: g }, topics: [a],\n"
                    "       retry: { ordering: key } }\n",
                    "help: \"ordering\" belongs under pipelines.p\n");
}

static void
a_required_key_is_named_with_its_meaning(void **state)
{
    (void)state;
    config_says(
        "version: 1\n"
        "brokers: { main: {} }\n"
        "handlers: { h: { builtin: echo } }\n"
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, "
        "topics: [a] } }\n",
        "bad.yaml:2:12: error[E0107]: brokers.main needs \"url\"\n"
        "    2 | brokers: { main: {} }\n"
        "      |            ^^^^\n"
        "help: url: kafka://HOST:PORT[,HOST:PORT], pulsar://HOST:PORT[,HOST:PORT], "
        "pulsar+ssl://..., spool:FILE for a durable queue in a file, or memory: for a broker "
        "inside this "
        "process.\n"
        "1 error\n");
}

static void
an_empty_file_needs_everything(void **state)
{
    (void)state;
    config_says("# nothing yet\n",
                "bad.yaml: error[E0107]: the file needs \"version\"\n"
                "help: version: Version of this format: 1.\n"
                "bad.yaml: error[E0107]: the file needs \"brokers\"\n"
                "help: brokers: Where messages come from and go to.\n"
                "bad.yaml: error[E0107]: the file needs \"handlers\"\n"
                "help: handlers: What is run for a message: one of program, plugin, http, "
                "builtin, function.\n"
                "bad.yaml: error[E0107]: the file needs \"pipelines\"\n"
                "help: pipelines: Topics, the handler for them, and what happens on failure.\n"
                "4 errors\n");
}

static void
no_file_at_all_is_an_error(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open_source(&fixture, (struct lw_config_source){ .file_count = 0 });
    assert_string_equal(fixture.printed.data,
                        "error[E0116]: no configuration file is given\n1 error\n");
    config_close(&fixture);
}

static void
an_absent_file_is_named(void **state)
{
    (void)state;
    struct config_fixture fixture;
    const char *files[] = { "/nonexistent/a.yaml" };
    config_open_source(&fixture, (struct lw_config_source){ .files = files, .file_count = 1 });
    assert_string_equal(
        fixture.printed.data,
        "/nonexistent/a.yaml: error[E0116]: the file cannot be read: No such file "
        "or directory\n1 error\n");
    config_close(&fixture);
}

static void
keys_of_later_versions_are_refused_by_name(void **state)
{
    (void)state;
    config_mentions("version: 1\nservice: { http: { listen: 127.0.0.1:9464 } }\n",
                    "bad.yaml:2:12: error[E0113]: \"http\" is not in this version\n"
                    "    2 | service: { http: { listen: 127.0.0.1:9464 } }\n"
                    "      |            ^^^^\n"
                    "help: The dashboard and metrics over HTTP. Leave the key out.\n");
}

static void
exit_codes_are_codes_and_known_words(void **state)
{
    (void)state;
    config_mentions(
        "handlers: { h: { program: [x], protocol: once, exit_codes: { 300: ok } } }\n",
        "error[E0103]: \"300\" is no exit code from 0 to 255, and no range of them\n");
    config_mentions(
        "handlers: { h: { program: [x], protocol: once, exit_codes: { 9-3: ok } } }\n",
        "error[E0103]: \"9-3\" is no exit code");
    config_mentions(
        "handlers: { h: { program: [x], protocol: once, exit_codes: { 3: fine } } }\n",
        "error[E0103]: \"fine\" is not what an exit code can mean\n");
    config_mentions("handlers: { h: { program: [x], exit_codes: { 3: dead } } }\n",
                    "warning[W0308]: \"exit_codes\" has no effect: handlers.h does not have "
                    "protocol once\n");
    config_mentions("handlers: { h: { program: [x], protocol: once, window: 4 } }\n",
                    "warning[W0308]: \"window\" has no effect: handlers.h has protocol once\n");
}

static void
a_version_that_is_not_1_is_refused(void **state)
{
    (void)state;
    config_mentions("version: 2\n",
                    "bad.yaml:1:10: error[E0112]: version \"2\" of the format is not known\n"
                    "    1 | version: 2\n"
                    "      |          ^\n"
                    "help: write version: 1\n");
}

static void
values_of_the_wrong_kind_are_quoted(void **state)
{
    (void)state;
    config_mentions("service: { concurrency: many }\n",
                    "error[E0103]: \"many\" is not a whole number\n");
    config_mentions("service: { log: { keys: yes } }\n",
                    "error[E0103]: \"yes\" is not true or false\n"
                    "    1 | service: { log: { keys: yes } }\n"
                    "      |                         ^^^\n"
                    "help: write true\n");
    config_mentions("service: [a]\n",
                    "error[E0103]: service must be a section with keys of its own\n");
    config_mentions("handlers: { h: { program: python3 h.py } }\n",
                    "error[E0103]: handlers.h.program must be a list\n"
                    "    1 | handlers: { h: { program: python3 h.py } }\n"
                    "      |                  ^^^^^^^\n"
                    "help: write it as a list: [first, second]\n");
}

static void
a_value_out_of_range_tells_the_range(void **state)
{
    (void)state;
    config_mentions(
        "service: { concurrency: 0 }\n",
        "bad.yaml:1:25: error[E0105]: \"0\" is out of range: service.concurrency is "
        "from 1 to 100000\n");
    config_mentions(
        "pipelines: { p: { retry: { max_attempts: 0 } } }\n",
        "error[E0105]: \"0\" is out of range: pipelines.p.retry.max_attempts is from "
        "1 to 1000000000\n");
    config_mentions("service: { commit_interval: 2h }\n",
                    "\"2h\" is out of range: service.commit_interval is from 1ms to 1h\n");
}

static void
an_unknown_word_lists_the_words(void **state)
{
    (void)state;
    config_mentions(
        "pipelines: { p: { on_error: redelivr } }\n",
        "error[E0106]: \"redelivr\" is not a value of pipelines.p.on_error: redeliver "
        "| retry | dead | drop | stop\n"
        "    1 | pipelines: { p: { on_error: redelivr } }\n"
        "      |                             ^^^^^^^^\n"
        "help: did you mean \"redeliver\"?\n");
}

static void
a_size_without_a_unit_is_told_its_likely_unit(void **state)
{
    (void)state;
    config_mentions("brokers: { b: { prefetch_bytes: 64 } }\n",
                    "error[E0104]: \"64\" needs a unit: a size such as 64KiB, 1MiB or 1MB\n"
                    "    1 | brokers: { b: { prefetch_bytes: 64 } }\n"
                    "      |                                 ^^\n"
                    "help: write 64MiB if you meant mebibytes\n");
}

static void
a_reference_to_no_handler_suggests_one(void **state)
{
    (void)state;
    config_mentions("handlers:\n  charge: { builtin: echo }\n"
                    "pipelines: { p: { handler: charg } }\n",
                    "error[E0202]: no handler is called \"charg\"\n"
                    "    3 | pipelines: { p: { handler: charg } }\n"
                    "      |                            ^^^^^\n"
                    "help: did you mean \"charge\" (line 2)?\n");
}

static void
more_than_a_hundred_errors_are_counted(void **state)
{
    (void)state;
    struct lw_text text;
    struct config_fixture fixture;
    lw_text_init(&text);
    lw_text_append(&text, "extra: 1\n");
    for (int i = 0; i < 150; i++) {
        lw_text_format(&text, "wrong%d: 1\n", i);
    }
    config_open(&fixture, text.data);
    assert_int_equal(fixture.diagnostics.count, 100);
    assert_non_null(strstr(fixture.printed.data, "155 errors (55 not shown)\n"));
    config_close(&fixture);
    lw_text_deinit(&text);
}

static void
diagnostics_are_given_as_json(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    struct lw_json json;
    config_open(&fixture, "version: 2\nbrokers: {}\n");
    lw_text_init(&out);
    lw_json_init(&json, &out);
    lw_diagnostics_json(&fixture.diagnostics, &json);
    assert_non_null(strstr(out.data,
                           "{\"severity\":\"error\",\"code\":\"E0112\",\"file\":"
                           "\"bad.yaml\",\"line\":1,\"column\":10,\"message\":"
                           "\"version \\\"2\\\" of the format is not known\",\"help\":"
                           "\"write version: 1\"}"));
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
the_first_error_becomes_the_librarys_error(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_error error = { 0 };
    config_open(&fixture, "version: 2\n");
    assert_int_equal(lw_diagnostics_error(&fixture.diagnostics, &error), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0107");
    assert_string_equal(error.file, "bad.yaml");
    assert_int_equal(lw_error_exit_code(&error), 78);
    config_close(&fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_errors_of_a_file_are_told_in_its_order),
        cmocka_unit_test(a_small_file_is_fine),
        cmocka_unit_test(colour_changes_no_character_of_the_text),
        cmocka_unit_test(a_key_of_a_section_below_is_sent_there),
        cmocka_unit_test(a_key_of_the_section_above_is_sent_there),
        cmocka_unit_test(a_required_key_is_named_with_its_meaning),
        cmocka_unit_test(an_empty_file_needs_everything),
        cmocka_unit_test(no_file_at_all_is_an_error),
        cmocka_unit_test(an_absent_file_is_named),
        cmocka_unit_test(keys_of_later_versions_are_refused_by_name),
        cmocka_unit_test(exit_codes_are_codes_and_known_words),
        cmocka_unit_test(a_version_that_is_not_1_is_refused),
        cmocka_unit_test(values_of_the_wrong_kind_are_quoted),
        cmocka_unit_test(a_value_out_of_range_tells_the_range),
        cmocka_unit_test(an_unknown_word_lists_the_words),
        cmocka_unit_test(a_size_without_a_unit_is_told_its_likely_unit),
        cmocka_unit_test(a_reference_to_no_handler_suggests_one),
        cmocka_unit_test(more_than_a_hundred_errors_are_counted),
        cmocka_unit_test(diagnostics_are_given_as_json),
        cmocka_unit_test(the_first_error_becomes_the_librarys_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
