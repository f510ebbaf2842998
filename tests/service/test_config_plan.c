/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan, as text and as JSON, and that no print of a configuration shows a secret: one file
 * carries a secret wherever a text may stand, right and wrong, and neither plan nor messages may
 * hold it.
 */
#include "tests/service/config_fixture.h"

#include <jansson.h>
#include <string.h>

static const char *const orders =
    "version: 1\n"
    "service: { name: orders, concurrency: 20 }\n"
    "brokers: { main: { url: 'kafka://localhost:9092' } }\n"
    "handlers:\n"
    "  confirm-order: { program: [python3, confirm.py], workers: 5, window: 4, timeout: 20s }\n"
    "pipelines:\n"
    "  orders:\n"
    "    broker: main\n"
    "    handler: confirm-order\n"
    "    consumer: { group: orders-sub }\n"
    "    ordering: none\n"
    "    topics:\n"
    "      matrix:\n"
    "        name: \"orders_{level}_{lane}\"\n"
    "        level: { live: 100, batch: 200 }\n"
    "        lane: { high: 10, low: 20, retry: 50 }\n"
    "    retry:\n"
    "      topic: \"orders_{level}_retry\"\n"
    "      max_retries: 5\n"
    "      backoff: { jitter: 200ms }\n"
    "    dead_letter: { topic: orders_dead }\n"
    "    reply: { topic: order_confirmations }\n";

static const char *const orders_plan =
    "service orders: 20 slots, drain 25s\n"
    "\n"
    "PIPELINE orders   broker main (kafka)   group orders-sub   handler confirm-order: python3 "
    "confirm.py x5, window 4\n"
    "  SERVED  PRIORITY  TOPIC               RETRY GOES TO           THEN DEAD LETTER  REPLY\n"
    "  1st          110  orders_live_high    orders_live_retry  x5   orders_dead       "
    "order_confirmations\n"
    "  2nd          120  orders_live_low     orders_live_retry  x5   orders_dead       "
    "order_confirmations\n"
    "  3rd          150  orders_live_retry   orders_live_retry  x5   orders_dead       "
    "order_confirmations\n"
    "  4th          210  orders_batch_high   orders_batch_retry  x5  orders_dead       "
    "order_confirmations\n"
    "  5th          220  orders_batch_low    orders_batch_retry  x5  orders_dead       "
    "order_confirmations\n"
    "  6th          250  orders_batch_retry  orders_batch_retry  x5  orders_dead       "
    "order_confirmations\n"
    "  strict priority: 6th runs only when 1st..5th have nothing waiting (starvation is "
    "possible, "
    "on purpose)\n"
    "  retry delays: 1s 2s 4s 8s 16s (+ up to 200ms)\n"
    "  ordering: none; an attempt takes at most 20s\n"
    "  held here, per topic: receive window 1 to 1000, by demand (profile adaptive); in flight "
    "at "
    "most 1000 messages and 64MiB\n"
    "\n";

static void
print_plan(const struct lw_config *config, struct lw_text *out)
{
    assert_non_null(config);
    lw_text_init(out);
    lw_config_plan_print(config, out);
    assert_false(out->is_failed);
}

/* Columns to single blanks. */
static void
squeeze(struct lw_text *text)
{
    size_t used = 0;
    for (size_t i = 0; i < text->size; i++) {
        if (text->data[i] != ' ' || text->data[i + 1] != ' ') {
            text->data[used++] = text->data[i];
        }
    }
    text->data[used] = '\0';
    text->size = used;
}

static void
the_plan_shows_serving_order_and_routes(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    config_open(&fixture, orders);
    print_plan(fixture.config, &out);
    assert_int_equal(strncmp(out.data, orders_plan, strlen(orders_plan)), 0);
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
limits_of_a_program_are_shown_where_there_are_any(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    config_open(&fixture,
                "version: 1\n"
                "brokers: { main: { url: 'memory:' } }\n"
                "handlers: { h: { program: [cat], memory_max: 200MB, cpu_max: 10s, nofile: 64, "
                "user: app } }\n"
                "pipelines: { p: { broker: main, handler: h, consumer: { group: g },\n"
                "  topics: [a] } }\n");
    print_plan(fixture.config, &out);
    assert_non_null(strstr(out.data, "handler h: cat, window 1, memory 200MB, cpu 10s a "
                                     "message, nofile 64, user app\n"));
    assert_int_equal(fixture.config->handlers[0].run.memory_max, 200000000);
    assert_int_equal(fixture.config->handlers[0].run.cpu_max_ms, 10000);
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
the_memory_of_worker_processes_is_shown(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    config_open(&fixture,
                "version: 1\n"
                "brokers: { main: { url: 'memory:' } }\n"
                "handlers: { h: { plugin: " LW_BINARY_DIR "/tests/plugins/forms.so, symbol: "
                "blocking, engine: processes, memory_max: 200MB } }\n"
                "pipelines: { p: { broker: main, handler: h, consumer: { group: g },\n"
                "  topics: [a] } }\n");
    print_plan(fixture.config, &out);
    assert_non_null(strstr(out.data, "on processes, window 64, memory 200MB\n"));
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
the_plan_says_where_each_value_came_from(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    const char *env[] = { "LANEWAY_SERVICE__CONCURRENCY=40", NULL };
    const char *sets[] = { "pipelines.orders.profile=low_latency" };
    struct lw_config_text text = { "orders.yaml", orders, strlen(orders) };
    config_open_source(
        &fixture,
        (struct lw_config_source){
            .texts = &text, .text_count = 1, .env = env, .sets = sets, .set_count = 1 });
    print_plan(fixture.config, &out);
    static const char *const lines[] = {
        "service.concurrency 40 LANEWAY_SERVICE__CONCURRENCY",
        "service.drain_timeout 25s default",
        "pipelines.orders.retry.max_retries 5 orders.yaml:19",
        "pipelines.orders.receiver_queue_size 200 the profile, --set pipelines.orders.profile",
        "handlers.confirm-order.engine programs default",
    };
    squeeze(&out);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (!strstr(out.data, lines[i])) {
            fail_msg("not in the plan: %s", lines[i]);
        }
    }
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
in_place_retries_shared_ranks_and_no_replies_are_shown(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    config_open(&fixture,
                "version: 1\n"
                "brokers: { main: { url: 'memory:' } }\n"
                "handlers: { h: { builtin: 'sleep:5ms' } }\n"
                "pipelines: { p: { broker: main, handler: h, consumer: { group: g },\n"
                "  topics: [a, b], dead_letter: none, on_exhausted: hold } }\n");
    print_plan(fixture.config, &out);
    assert_non_null(strstr(out.data, "handler h: built-in sleep:5ms on threads\n"));
    assert_non_null(
        strstr(out.data, "  1st=         100  a      here, 3 runs   none: held        -\n"));
    assert_non_null(strstr(out.data, "  retry delays: 1s 2s (+ up to 200ms)\n"));
    assert_null(strstr(out.data, "strict priority"));
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
the_plan_as_json_has_the_same_facts(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    struct lw_json json;
    config_open(&fixture, orders);
    lw_text_init(&out);
    lw_json_init(&json, &out);
    lw_config_plan_json(fixture.config, &json);
    json_t *plan = json_loadb(out.data, out.size, 0, NULL);
    assert_non_null(plan);
    json_t *pipeline = json_array_get(json_object_get(plan, "pipelines"), 0);
    json_t *topic = json_array_get(json_object_get(pipeline, "topics"), 3);
    assert_int_equal(json_integer_value(json_object_get(topic, "served")), 4);
    assert_string_equal(json_string_value(json_object_get(topic, "topic")),
                        "orders_batch_high");
    json_t *retry = json_object_get(topic, "retry");
    assert_int_equal(json_integer_value(json_object_get(retry, "max_retries")), 5);
    assert_int_equal(json_array_size(json_object_get(retry, "delays_ms")), 5);
    assert_true(json_array_size(json_object_get(plan, "values")) > 40);
    json_decref(plan);
    lw_text_deinit(&out);
    config_close(&fixture);
}

/* A configuration that carries the secret in every place where a text may stand. */
static const char *const secret_file =
    "version: 1\n"
    "service: { name: \"${SECRET}\", control: \"/tmp/${SECRET}\" }\n"
    "brokers:\n"
    "  main:\n"
    "    url: 'kafka://${SECRET}:9092'\n"
    "    properties: { sasl.password: hunter2, client.id: \"x${SECRET}\" }\n"
    "handlers:\n"
    "  h: { program: [\"${SECRET}\", \"a${SECRET}\"], user: \"${SECRET}\", env: { TOKEN: "
    "hunter2, V: \"${SECRET}\" "
    "} }\n"
    "pipelines:\n"
    "  p:\n"
    "    broker: main\n"
    "    handler: h\n"
    "    consumer: { group: \"${SECRET}\", properties: { sasl.password: \"${SECRET}\" } }\n"
    "    topics: [ \"${SECRET}\", { name: \"t.${SECRET}\", priority: 3 } ]\n"
    "    ordering: none\n"
    "    retry: { topic: \"r.${SECRET}\" }\n"
    "    dead_letter: { topic: \"d.${SECRET}\", allow: [\"${SECRET}*\"] }\n"
    "    reply: { topic: \"p.${SECRET}\" }\n";

static void
no_secret(const char *print)
{
    if (print && strstr(print, "hunter2")) {
        fail_msg("a secret is shown: %s", print);
    }
}

static void
open_secret(struct config_fixture *fixture, const char *text, const char *const *sets,
            size_t set_count)
{
    static const char *const env[] = { "SECRET=hunter2", NULL };
    struct lw_config_text document = { "s.yaml", text, strlen(text) };
    config_open_source(fixture, (struct lw_config_source){ .texts = &document,
                                                           .text_count = 1,
                                                           .env = env,
                                                           .sets = sets,
                                                           .set_count = set_count,
                                                           .resolve_programs = set_count > 0 });
}

static void
no_print_of_a_configuration_shows_a_secret(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text out;
    struct lw_json json;
    open_secret(&fixture, secret_file, NULL, 0);
    print_plan(fixture.config, &out);
    no_secret(out.data);
    assert_non_null(strstr(out.data, "***"));
    lw_text_clear(&out);
    lw_json_init(&json, &out);
    lw_config_plan_json(fixture.config, &json);
    no_secret(out.data);
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
no_message_shows_a_secret(void **state)
{
    (void)state;
    static const char *const sets[] = { "service.concurrency=0",
                                        "pipelines.p.topics.1.priority=x",
                                        "pipelines.p.ordering=key",
                                        "pipelines.p.on_exhausted=drp" };
    static const char *const wrong[] = {
        "brokers: { b: { url: \"${SECRET}\" } }\n",
        "service: { concurrency: \"${SECRET}\", drain_timeout: \"${SECRET}\" }\n",
        "pipelines: { p: { broker: \"${SECRET}\", handler: \"${SECRET}\" } }\n",
        "pipelines: { p: { on_error: \"${SECRET}\", topics: [\"${SECRET} x\"] } }\n",
        "brokers: { b: { url: 'kafka://h', properties: { sasl.password: hunter2, nope: "
        "hunter2x } "
        "} }\n",
        "handlers: { h: { builtin: \"${SECRET}\", env: { PASSWORD: 'hunter2', X: [1] } } }\n",
        "a: { password: hunter2 }\nb: { token: \"hunter2, x\", c: [ }\n",
        "pipelines: { p: { errors: [ { codes: [\"${SECRET}\"], verdict: dead } ] } }\n",
        "brokers: { b: { url: 'kafka://h', properties: { security.protocol: \"${SECRET}\" } } "
        "}\n",
    };
    struct config_fixture fixture;
    open_secret(&fixture, secret_file, sets, 4);
    assert_true(fixture.diagnostics.counts[LW_SEVERITY_ERROR] >= 5);
    no_secret(fixture.printed.data);
    config_close(&fixture);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        open_secret(&fixture, wrong[i], NULL, 0);
        assert_null(fixture.config);
        char *print = fixture.printed.data;
        for (char *at = print; (at = strstr(at, "nope: hunter2x")) != NULL;) {
            memset(at, ' ', strlen("nope: hunter2x")); /* not a secret by its name */
        }
        no_secret(print);
        config_close(&fixture);
    }
}

static void
a_caret_still_points_right_behind_a_blot(void **state)
{
    (void)state;
    config_mentions("brokers: { b: { properties: { sasl.password: hunter2, zzz: 1 } } }\n",
                    "bad.yaml:1:55: error[E0410]: the Kafka client does not know the property "
                    "\"zzz\"\n"
                    "    1 | brokers: { b: { properties: { sasl.password: ***, zzz: 1 } } }\n"
                    "      |                                                   ^^^\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_shows_serving_order_and_routes),
        cmocka_unit_test(limits_of_a_program_are_shown_where_there_are_any),
        cmocka_unit_test(the_memory_of_worker_processes_is_shown),
        cmocka_unit_test(the_plan_says_where_each_value_came_from),
        cmocka_unit_test(in_place_retries_shared_ranks_and_no_replies_are_shown),
        cmocka_unit_test(the_plan_as_json_has_the_same_facts),
        cmocka_unit_test(no_print_of_a_configuration_shows_a_secret),
        cmocka_unit_test(no_message_shows_a_secret),
        cmocka_unit_test(a_caret_still_points_right_behind_a_blot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
