/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler says beside the verdict: reason, code, delay, reply, outputs. Everything is
 * copied, bounded, whole or not there at all, and forgotten when the next run begins.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/delivery.h"

static struct lw_output
output_of(const char *topic, const char *value)
{
    return (struct lw_output){ .topic = topic, .value = lw_bytes_of(value) };
}

static void
add(struct lw_outcome *outcome, bool is_reply, const struct lw_output *output)
{
    assert_int_equal(lw_outcome_add(outcome, is_reply, output), LW_STATUS_OK);
}

static void
assert_bytes(struct lw_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

static void
an_output_is_copied_with_all_its_headers(void **state)
{
    struct lw_delivery delivery = { 0 };
    char value[] = "value";
    char name[] = "h";
    struct lw_header headers[] = { { lw_bytes_of(name), lw_bytes_of("1") },
                                   { lw_bytes_of("h"), lw_bytes_of("") },
                                   { lw_bytes_of(""), { NULL, 0 } } };
    struct lw_output output = output_of("audit", value);
    struct lw_header seen[3];
    struct lw_output view;
    (void)state;
    output.key = lw_bytes_of("key");
    output.headers = headers;
    output.header_count = 3;
    output.delay_ms = 70;
    assert_int_equal(lw_delivery_publish(&delivery, &output), LW_STATUS_OK);
    memset(value, 'x', sizeof(value) - 1); /* the caller's memory is its own again */
    name[0] = 'x';
    lw_outcome_view(delivery.outcome, 0, &view, seen);
    assert_string_equal(view.topic, "audit");
    assert_bytes(view.key, "key");
    assert_bytes(view.value, "value");
    assert_int_equal(view.delay_ms, 70);
    assert_int_equal(view.header_count, 3);
    assert_bytes(seen[0].name, "h");
    assert_bytes(seen[0].value, "1");
    assert_non_null(seen[1].value.data);
    assert_int_equal(seen[1].value.size, 0);
    assert_int_equal(seen[2].name.size, 0);
    assert_null(seen[2].value.data);
    lw_outcome_destroy(delivery.outcome);
}

static void
null_and_empty_stay_apart(void **state)
{
    struct lw_delivery delivery = { 0 };
    struct lw_output view;
    (void)state;
    struct lw_output null = { .topic = "t" };
    struct lw_output empty = { .topic = "t", .key = { "", 0 }, .value = { "", 0 } };
    assert_int_equal(lw_delivery_publish(&delivery, &null), LW_STATUS_OK);
    assert_int_equal(lw_delivery_publish(&delivery, &empty), LW_STATUS_OK);
    lw_outcome_view(delivery.outcome, 0, &view, NULL);
    assert_null(view.key.data);
    assert_null(view.value.data);
    lw_outcome_view(delivery.outcome, 1, &view, NULL);
    assert_non_null(view.key.data);
    assert_non_null(view.value.data);
    lw_outcome_destroy(delivery.outcome);
}

static void
views_are_right_after_the_memory_moved(void **state)
{
    struct lw_delivery delivery = { 0 };
    struct lw_output view;
    char text[32];
    (void)state;
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof(text), "value-%d", i);
        struct lw_output output = output_of("topic", text);
        assert_int_equal(lw_delivery_publish(&delivery, &output), LW_STATUS_OK);
    }
    for (uint32_t i = 0; i < 500; i++) {
        snprintf(text, sizeof(text), "value-%u", i);
        lw_outcome_view(delivery.outcome, i, &view, NULL);
        assert_bytes(view.value, text);
        assert_string_equal(view.topic, "topic");
    }
    lw_outcome_destroy(delivery.outcome);
}

static void
a_second_reply_replaces_the_first_and_no_output(void **state)
{
    struct lw_delivery delivery = { 0 };
    struct lw_output view;
    (void)state;
    struct lw_output audit = output_of("audit", "a");
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("first")), LW_STATUS_OK);
    assert_int_equal(lw_delivery_publish(&delivery, &audit), LW_STATUS_OK);
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("second")), LW_STATUS_OK);
    assert_int_equal(delivery.outcome->output_count, 2);
    lw_outcome_view(delivery.outcome, 0, &view, NULL);
    assert_true(delivery.outcome->outputs[0].is_reply);
    assert_bytes(view.value, "second");
    assert_null(view.topic);
    lw_outcome_view(delivery.outcome, 1, &view, NULL);
    assert_bytes(view.value, "a");
    lw_outcome_destroy(delivery.outcome);
}

static void
there_are_at_most_1024_outputs(void **state)
{
    struct lw_delivery delivery = { 0 };
    struct lw_output output = output_of("t", "v");
    (void)state;
    for (int i = 0; i < LW_OUTPUTS_MAX - 1; i++) {
        assert_int_equal(lw_delivery_publish(&delivery, &output), LW_STATUS_OK);
    }
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("r")), LW_STATUS_OK);
    assert_int_equal(lw_delivery_publish(&delivery, &output), LW_STATUS_TOO_LARGE);
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("s")), LW_STATUS_OK);
    assert_int_equal(delivery.outcome->output_count, LW_OUTPUTS_MAX);
    lw_outcome_destroy(delivery.outcome);
}

static void
a_reason_is_kept_up_to_512_bytes(void **state)
{
    struct lw_delivery delivery = { 0 };
    char reason[600];
    (void)state;
    memset(reason, 'r', sizeof(reason));
    reason[599] = '\0';
    assert_int_equal(lw_delivery_dead(&delivery, reason), LW_DEAD);
    assert_int_equal(strlen(lw_delivery_reason(&delivery)), LW_REASON_MAX);
    assert_int_equal(lw_delivery_drop(&delivery, ""), LW_DROP);
    assert_string_equal(lw_delivery_reason(&delivery), "");
    lw_outcome_destroy(delivery.outcome);
}

static void
saying_nothing_costs_no_memory(void **state)
{
    struct lw_delivery delivery = { 0 };
    (void)state;
    uint64_t count = lw_alloc_count();
    assert_int_equal(lw_delivery_dead(&delivery, NULL), LW_DEAD);
    assert_int_equal(lw_delivery_retry(&delivery, NULL, -1), LW_RETRY);
    assert_int_equal(lw_alloc_count(), count);
    assert_null(delivery.outcome);
    assert_string_equal(lw_delivery_reason(&delivery), "");
}

static void
codes_and_delays_are_kept_with_the_verdict(void **state)
{
    struct lw_delivery delivery = { 0 };
    (void)state;
    assert_int_equal(lw_delivery_error(&delivery, 0, NULL), LW_ERROR);
    assert_true(delivery.outcome->has_code);
    assert_int_equal(delivery.outcome->code, 0);
    assert_int_equal(delivery.outcome->delay_ms, -1);
    assert_int_equal(lw_delivery_retry(&delivery, "busy", 0), LW_RETRY);
    assert_int_equal(delivery.outcome->delay_ms, 0);
    lw_outcome_destroy(delivery.outcome);
}

static void
clearing_keeps_a_little_memory_and_gives_much_back(void **state)
{
    struct lw_delivery delivery = { 0 };
    static char large[100000];
    (void)state;
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("small")), LW_STATUS_OK);
    size_t capacity = delivery.outcome->bytes.capacity;
    lw_outcome_clear(delivery.outcome);
    assert_int_equal(delivery.outcome->bytes.capacity, capacity);
    struct lw_bytes much = { large, sizeof(large) };
    assert_int_equal(lw_delivery_reply(&delivery, much), LW_STATUS_OK);
    lw_outcome_clear(delivery.outcome);
    assert_int_equal(delivery.outcome->bytes.capacity, 0);
    assert_int_equal(delivery.outcome->output_count, 0);
    lw_outcome_destroy(delivery.outcome);
}

static void
after_the_first_run_saying_the_same_allocates_nothing(void **state)
{
    struct lw_delivery delivery = { .state = LW_STATE_QUEUED };
    (void)state;
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("reply")), LW_STATUS_OK);
    uint64_t count = lw_alloc_count();
    for (int i = 0; i < 100; i++) {
        delivery.state = LW_STATE_QUEUED;
        lw_delivery_begin_run(&delivery, 1);
        assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("reply")), LW_STATUS_OK);
    }
    assert_int_equal(lw_alloc_count(), count);
    lw_outcome_destroy(delivery.outcome);
}

/* Adds a reply while the n-th allocation fails; what was said before stays. */
static void
try_without_memory(uint64_t n)
{
    static char large[9000];
    struct lw_delivery delivery = { 0 };
    struct lw_output view;
    struct lw_output first = output_of("audit", "kept");
    add(lw_delivery_outcome(&delivery), false, &first);
    lw_alloc_fail_at(n);
    enum lw_status status = lw_delivery_reply(&delivery, (struct lw_bytes){ large, 9000 });
    lw_alloc_fail_at(0);
    assert_true(status == LW_STATUS_OK || status == LW_STATUS_NO_MEMORY);
    assert_int_equal(delivery.outcome->output_count, status == LW_STATUS_OK ? 2 : 1);
    lw_outcome_view(delivery.outcome, 0, &view, NULL);
    assert_bytes(view.value, "kept");
    lw_outcome_destroy(delivery.outcome);
}

static void
without_memory_nothing_is_half_said(void **state)
{
    struct lw_delivery delivery = { 0 };
    (void)state;
    lw_alloc_fail_at(1);
    assert_int_equal(lw_delivery_reply(&delivery, lw_bytes_of("r")), LW_STATUS_NO_MEMORY);
    lw_alloc_fail_at(1);
    assert_int_equal(lw_delivery_error(&delivery, 3, NULL), LW_ERROR);
    assert_null(delivery.outcome);
    for (uint64_t n = 1; n <= 3; n++) {
        try_without_memory(n);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_is_copied_with_all_its_headers),
        cmocka_unit_test(null_and_empty_stay_apart),
        cmocka_unit_test(views_are_right_after_the_memory_moved),
        cmocka_unit_test(a_second_reply_replaces_the_first_and_no_output),
        cmocka_unit_test(there_are_at_most_1024_outputs),
        cmocka_unit_test(a_reason_is_kept_up_to_512_bytes),
        cmocka_unit_test(saying_nothing_costs_no_memory),
        cmocka_unit_test(codes_and_delays_are_kept_with_the_verdict),
        cmocka_unit_test(clearing_keeps_a_little_memory_and_gives_much_back),
        cmocka_unit_test(after_the_first_run_saying_the_same_allocates_nothing),
        cmocka_unit_test(without_memory_nothing_is_half_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
