/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples run as they are printed, on the memory broker: only the address, the delays and
 * what that broker has no word for are changed, and each change must find its place. Counts are
 * exact: which order is confirmed, tried again and given up follows from what is sent.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/service/service_fixture.h"

enum { FILE_BYTES = 8192, TURNS_MAX = 60000 };

struct example {
    struct lw_memory_hub *hub;
    struct lw_dispatcher *dispatcher;
    char url[64];
    char path[40];
    char text[FILE_BYTES];
    unsigned sent;
};

static int
setup(void **state)
{
    static unsigned number;
    char name[40];
    struct lw_memory_options options;
    struct example *example = lw_alloc(sizeof *example);
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    (void)snprintf(name, sizeof name, "examples-%d-%u", (int)getpid(), ++number);
    (void)snprintf(example->url, sizeof example->url, "memory:%s", name);
    example->hub = lw_memory_hub_open(name, &options);
    example->dispatcher = lw_dispatcher_create(NULL, NULL);
    (void)snprintf(example->path, sizeof example->path, "/tmp/laneway-example-XXXXXX");
    close(mkstemp(example->path));
    *state = example;
    return 0;
}

static int
teardown(void **state)
{
    struct example *example = *state;
    lw_dispatcher_destroy(example->dispatcher);
    lw_memory_hub_close(example->hub);
    (void)unlink(example->path);
    lw_free(example);
    return 0;
}

/* -- The file -------------------------------------------------------------------------------- */

static void
read_example(struct example *example, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/examples/%s", LW_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(example->text, 1, FILE_BYTES - 1, file);
    assert_true(size > 0 && size < FILE_BYTES - 1);
    example->text[size] = '\0';
    assert_int_equal(fclose(file), 0);
}

/* Everywhere; at least once. */
static void
change(struct example *example, const char *from, const char *to)
{
    char changed[FILE_BYTES] = "";
    size_t used = 0;
    unsigned count = 0;
    const char *at = example->text;
    for (const char *found; (found = strstr(at, from)); at = found + strlen(from), count++) {
        int length = snprintf(changed + used, FILE_BYTES - used, "%.*s%s", (int)(found - at),
                              at, to);
        assert_true(length >= 0 && used + (size_t)length < FILE_BYTES);
        used += (size_t)length;
    }
    assert_true(used + strlen(at) < FILE_BYTES);
    (void)snprintf(changed + used, FILE_BYTES - used, "%s", at);
    assert_true(count > 0);
    memcpy(example->text, changed, FILE_BYTES);
}

static void
load(struct example *example)
{
    struct lw_error error = { 0 };
    char url[128];
    (void)snprintf(url, sizeof url, "url: %s\n    properties: { mode: individual }",
                   example->url);
    change(example, "url: pulsar://localhost:6650", url);
    change(example, "      properties:\n        initial_position: earliest\n", "");
    FILE *file = fopen(example->path, "w");
    assert_true(file && fputs(example->text, file) >= 0 && fclose(file) == 0);
    enum lw_status status = lw_dispatcher_load(example->dispatcher, example->path, NULL, 0,
                                               &error);
    if (status != LW_STATUS_OK) {
        fail_msg("%d: %s", error.line, error.message);
    }
}

/* -- Messages -------------------------------------------------------------------------------- */

static void
send(struct example *example, const char *topic, const char *value)
{
    struct lw_memory_item item = lw_memory_item_of(topic, NULL, value);
    assert_int_equal(lw_memory_hub_publish(example->hub, &item, NULL, NULL), LW_STATUS_OK);
}

/* 30 good ones, 5 that fail twice, 2 that always fail, 3 without an id. */
static void
send_forty(struct example *example, const char *topic)
{
    for (unsigned i = 0; i < 40; i++) {
        char value[64];
        unsigned id = example->sent++;
        const char *fails = i < 30 ? "" : i < 35 ? ", \"fails\": 2" : ", \"fails\": 99";
        (void)snprintf(value, sizeof value, "{\"id\": %u%s}", id, fails);
        send(example, topic, i < 37 ? value : "{\"name\": \"nobody\"}");
    }
}

static size_t
count_of(const struct example *example, const char *topic)
{
    return lw_memory_hub_each(example->hub, topic, NULL, NULL);
}

static uint64_t
waiting(const struct example *example, const char *group, const char *const *topics)
{
    uint64_t sum = 0;
    for (; *topics; topics++) {
        sum += lw_memory_hub_backlog(example->hub, group, *topics);
    }
    return sum;
}

static void
run_dry(struct example *example, const char *group, const char *const *topics)
{
    for (int i = 0; i < TURNS_MAX && waiting(example, group, topics) > 0; i++) {
        service_turn(example->dispatcher);
    }
    assert_int_equal(waiting(example, group, topics), 0);
}

static const char *const six[] = { "orders_live_high",
                                   "orders_live_low",
                                   "orders_live_retry",
                                   "orders_batch_high",
                                   "orders_batch_low",
                                   "orders_batch_retry",
                                   NULL };

static void
run_six_lanes(struct example *example, const char *program)
{
    read_example(example, "six-lanes/orders.yaml");
    change(example, "[python3, handlers/confirm_order.py]", program);
    change(example, "initial: 1s, multiplier: 2, max: 5m",
           "initial: 5ms, multiplier: 1, max: 5ms");
    load(example);
    send_forty(example, six[0]);
    send_forty(example, six[1]);
    send_forty(example, six[3]);
    send_forty(example, six[4]);
    run_dry(example, "orders-sub", six);
    assert_int_equal(count_of(example, "order_confirmations"), 4 * 35);
    assert_int_equal(count_of(example, "orders_dead"), 4 * 5);
    assert_int_equal(count_of(example, "orders_live_retry"), 2 * (5 * 2 + 2 * 5));
    assert_int_equal(count_of(example, "orders_batch_retry"), 2 * (5 * 2 + 2 * 5));
}

static void
six_lanes_run_with_the_handler_in_python(void **state)
{
    run_six_lanes(*state,
                  "[python3, " LW_SOURCE_DIR "/examples/six-lanes/handlers/confirm_order.py]");
}

static void
six_lanes_run_with_the_handler_in_the_shell(void **state)
{
    run_six_lanes(*state,
                  "[sh, " LW_SOURCE_DIR "/examples/six-lanes/handlers/confirm_order.sh]");
}

static void
three_topics_share_the_slots_and_retry_behind_them(void **state)
{
    struct example *example = *state;
    static const char *const topics[] = { "orders", "payments", "notifications", "events_retry",
                                          NULL };
    read_example(example, "three-topics/events.yaml");
    change(example, "[python3, handlers/record.py]",
           "[python3, " LW_SOURCE_DIR "/examples/three-topics/handlers/record.py]");
    change(example, "max_retries: 3",
           "max_retries: 3\n      backoff: { initial: 5ms, max: 5ms }");
    load(example);
    for (size_t i = 0; i < 3; i++) {
        send_forty(example, topics[i]);
    }
    run_dry(example, "events-sub", topics);
    assert_int_equal(count_of(example, "events_dead"), 3 * 5);
    assert_int_equal(count_of(example, "events_retry"), 3 * (5 * 2 + 2 * 3));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(six_lanes_run_with_the_handler_in_python),
        TEST(six_lanes_run_with_the_handler_in_the_shell),
        TEST(three_topics_share_the_slots_and_retry_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
