/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th allocation fails, for every n: loading and printing a configuration then says that
 * memory ran out, or gives the whole result; it never crashes, leaks, or gives half of one.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "service/config.h"

static const char *const good =
    "version: 1\n"
    "service: { name: \"${NAME:-x}\" }\n"
    "brokers: { main: { url: 'kafka://h:1', properties: { client.id: a, x.y: \"${NAME}\" } } "
    "}\n"
    "handlers: { h: { program: [python3, x], env: { A: b }, workers: 3 } }\n"
    "pipelines:\n"
    "  p:\n"
    "    broker: main\n"
    "    handler: h\n"
    "    consumer: { group: g, properties: { auto.offset.reset: earliest } }\n"
    "    ordering: none\n"
    "    topics: { matrix: { name: '{a}_{b}', a: { x: 100, y: 200 }, b: { u: 1, v: 2 } } }\n"
    "    retry: { topic: '{topic}.again', max_retries: 3, tiers: [1s, 10s] }\n"
    "    errors: [ { codes: [1, 3-5], verdict: dead } ]\n"
    "  q: { broker: main, handler: h, consumer: { group: q }, topics: [c, { name: d, priority: "
    "1 "
    "}] }\n";

static const char *const bad = "version: 2\n"
                               "service: { name: \"${NOPE}\", drain_timeout: 30, http: {} }\n"
                               "brokers: { main: { url: 'x', sasl: 1 } }\n"
                               "handlers: { h: { builtin: 'nothing' } }\n"
                               "pipelines: { p: { broker: man, handler: h, consumer: { group: "
                               "g }, topics: [a, a], on_eror: x "
                               "} }\n";

static const char *const env[] = { "NAME=value", "LANEWAY_SERVICE__LOG__LEVEL=debug",
                                   "LANEWAY_NOTHING=1", NULL };
static const char *const sets[] = { "pipelines.q.retry.max_attempts=9",
                                    "handlers.h.program=[a]" };

static struct lw_config *
load(const char *text, struct lw_diagnostics *diagnostics)
{
    struct lw_config_text document = { "t.yaml", text, strlen(text) };
    struct lw_config_source source = {
        .texts = &document, .text_count = 1, .env = env, .sets = sets, .set_count = 2
    };
    lw_diagnostics_init(diagnostics);
    return lw_config_load(&source, diagnostics);
}

static void
loading_survives_every_failing_allocation(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        struct lw_diagnostics diagnostics;
        lw_alloc_fail_at(nth);
        struct lw_config *config = load(good, &diagnostics);
        lw_alloc_fail_at(0);
        if (config) {
            assert_int_equal(config->subscription_count, 6);
            assert_int_equal(config->pipelines[1].common.retry.max_attempts, 9);
        } else {
            assert_true(diagnostics.is_out_of_memory);
        }
        is_done = config && !diagnostics.is_out_of_memory && nth > 20;
        lw_config_destroy(config);
        lw_diagnostics_deinit(&diagnostics);
        assert_int_equal(lw_alloc_live(), live);
    }
}

static void
reporting_survives_every_failing_allocation(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        struct lw_diagnostics diagnostics;
        struct lw_text print;
        struct lw_error error = { 0 };
        lw_text_init(&print);
        uint64_t before = lw_alloc_count();
        lw_alloc_fail_at(nth);
        assert_null(load(bad, &diagnostics));
        lw_diagnostics_print(&diagnostics, true, &print);
        lw_alloc_fail_at(0);
        is_done = lw_alloc_count() - before < nth;
        assert_true(lw_diagnostics_error(&diagnostics, &error) != LW_STATUS_OK);
        assert_int_equal(is_done && diagnostics.counts[LW_SEVERITY_ERROR] < 8, false);
        lw_text_deinit(&print);
        lw_diagnostics_deinit(&diagnostics);
        assert_int_equal(lw_alloc_live(), live);
    }
}

static void
print_plan(const struct lw_config *config, struct lw_text *out)
{
    lw_config_plan_print(config, out);
}

static void
print_plan_json(const struct lw_config *config, struct lw_text *out)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_config_plan_json(config, &json);
}

static void
print_schema(const struct lw_config *config, struct lw_text *out)
{
    (void)config;
    lw_config_schema(out);
}

static void
print_reference(const struct lw_config *config, struct lw_text *out)
{
    (void)config;
    lw_config_reference(out);
}

static void
every_printer_remembers_that_memory_failed(void **state)
{
    (void)state;
    static void (*const printers[])(const struct lw_config *,
                                    struct lw_text *) = { print_plan, print_plan_json,
                                                          print_schema, print_reference };
    struct lw_diagnostics diagnostics;
    struct lw_config *config = load(good, &diagnostics);
    assert_non_null(config);
    for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++) {
        struct lw_text whole;
        lw_text_init(&whole);
        printers[i](config, &whole);
        bool is_failed = true;
        for (uint64_t nth = 1; is_failed; nth++) {
            struct lw_text print;
            lw_text_init(&print);
            lw_alloc_fail_at(nth);
            printers[i](config, &print);
            lw_alloc_fail_at(0);
            is_failed = print.is_failed;
            assert_true(is_failed || strcmp(print.data, whole.data) == 0);
            lw_text_deinit(&print);
        }
        lw_text_deinit(&whole);
    }
    lw_config_destroy(config);
    lw_diagnostics_deinit(&diagnostics);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_survives_every_failing_allocation),
        cmocka_unit_test(reporting_survives_every_failing_allocation),
        cmocka_unit_test(every_printer_remembers_that_memory_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
