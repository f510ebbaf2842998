/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header lists of retry copies, dead letters and replies, compared as whole lists. A list is
 * written as one text, `name=value` a line, with null values as `name!`.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "policy/origin.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct lw_origin_facts KAFKA = {
    .family = LW_HEADERS_KAFKA,
    .broker = "main",
    .topic = "orders",
    .partition = 3,
    .position = 42,
    .generation = 7,
    .timestamp_ms = 1600000000000,
    .attempt = 2,
    .retries = 1,
    .reason = "database timeout",
    .dead_letter_topic = "orders.dlq",
    .not_before_ms = 1700000000123,
    .delay_ms = 30000,
};

static struct lw_header
header(const char *name, const char *value)
{
    return (struct lw_header){ .name = lw_bytes_of(name), .value = lw_bytes_of(value) };
}

static const char *
text_of(const struct lw_headers *headers)
{
    static char text[4096];
    size_t length = 0;
    for (size_t i = 0; i < headers->count; i++) {
        const struct lw_header *item = &headers->items[i];
        length += snprintf(text + length, sizeof(text) - length, "%.*s%s%.*s\n",
                           (int)item->name.size, (const char *)item->name.data,
                           item->value.data != NULL ? "=" : "!", (int)item->value.size,
                           item->value.data != NULL ? (const char *)item->value.data : "");
    }
    text[length] = '\0';
    return text;
}

/* The value of the one header of that name; fails when there is none or more. */
static struct lw_bytes
only(const struct lw_headers *headers, const char *name)
{
    struct lw_bytes value = { NULL, 0 };
    int count = 0;
    for (size_t i = 0; i < headers->count; i++) {
        if (lw_text_is_equal(headers->items[i].name, name)) {
            value = headers->items[i].value;
            count++;
        }
    }
    assert_int_equal(count, 1);
    return value;
}

/* -- Kafka -------------------------------------------------------------------------------------- */

static void
first_retry_copy_carries_everything(void **state)
{
    (void)state;
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&KAFKA, NULL, 0, &headers));
    assert_string_equal(text_of(&headers), "x-error-reason=database timeout\n"
                                           "x-retry-attempt=2\n"
                                           "source-topic=orders\n"
                                           "partition=3\n"
                                           "offset=42\n"
                                           "epoch=7\n"
                                           "x-laneway-id=main/orders/3/42\n"
                                           "x-laneway-timestamp=1600000000000\n"
                                           "x-laneway-dead-letter-topic=orders.dlq\n"
                                           "x-laneway-retries=1\n"
                                           "x-laneway-not-before=1700000000123\n");
    lw_headers_deinit(&headers);
}

static void
dead_letter_carries_reason_attempt_and_place(void **state)
{
    (void)state;
    struct lw_origin_facts facts = KAFKA;
    struct lw_headers headers;
    facts.retries = 0;
    facts.not_before_ms = -1;
    facts.timestamp_ms = -1;
    facts.dead_letter_topic = NULL;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_dead_letter(&facts, NULL, 0, &headers));
    assert_string_equal(text_of(&headers), "x-error-reason=database timeout\n"
                                           "x-retry-attempt=2\n"
                                           "source-topic=orders\n"
                                           "partition=3\n"
                                           "offset=42\n"
                                           "epoch=7\n"
                                           "x-laneway-id=main/orders/3/42\n"
                                           "x-laneway-retries=0\n");
    lw_headers_deinit(&headers);
}

static void
other_headers_stay_bit_for_bit_in_order_with_duplicates(void **state)
{
    (void)state;
    static const unsigned char odd[] = { 0x00, 0x0a, 0x3d, 0xff };
    struct lw_header from[] = { header("h", "1"),   header("h", "2"),
                                header("", "x"),    header("null", NULL),
                                header("h", "1"),   header("caf\xe9", ""),
                                header("odd", "?"), { .value = { odd, 4 } } };
    from[6].value = (struct lw_bytes){ odd, sizeof(odd) };
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&KAFKA, from, COUNT(from), &headers));
    assert_int_equal(headers.count, COUNT(from) + 11);
    for (size_t i = 0; i < COUNT(from); i++) {
        assert_ptr_equal(headers.items[i].name.data, from[i].name.data);
        assert_int_equal(headers.items[i].name.size, from[i].name.size);
        assert_ptr_equal(headers.items[i].value.data, from[i].value.data);
        assert_int_equal(headers.items[i].value.size, from[i].value.size);
    }
    lw_headers_deinit(&headers);
}

static void
copy_of_a_copy_keeps_the_first_appearance(void **state)
{
    (void)state;
    struct lw_headers first;
    struct lw_headers second;
    struct lw_header from[] = { header("a", "1"), header("b", "2") };
    struct lw_origin_facts facts = KAFKA;
    lw_headers_init(&first);
    lw_headers_init(&second);
    assert_true(lw_origin_build_retry(&KAFKA, from, 2, &first));
    facts.topic = "orders.retry.30s";
    facts.partition = 9;
    facts.position = 1000;
    facts.generation = 8;
    facts.timestamp_ms = 1800000000000;
    facts.attempt = 1;
    facts.retries = 2;
    facts.reason = "again";
    facts.dead_letter_topic = "somewhere.else";
    facts.not_before_ms = -1;
    assert_true(lw_origin_build_dead_letter(&facts, first.items, first.count, &second));
    assert_string_equal(text_of(&second), "a=1\n"
                                          "b=2\n"
                                          "x-error-reason=again\n"
                                          "x-retry-attempt=1\n"
                                          "source-topic=orders\n"
                                          "partition=3\n"
                                          "offset=42\n"
                                          "epoch=7\n"
                                          "x-laneway-id=main/orders/3/42\n"
                                          "x-laneway-timestamp=1600000000000\n"
                                          "x-laneway-dead-letter-topic=orders.dlq\n"
                                          "x-laneway-retries=2\n");
    lw_headers_deinit(&first);
    lw_headers_deinit(&second);
}

static void
headers_do_not_pile_up_over_twenty_retries(void **state)
{
    (void)state;
    static char reason[4097];
    memset(reason, 'e', sizeof(reason) - 1);
    struct lw_header from[] = { header("h", "1"), header("h", "2") };
    struct lw_headers lists[2];
    struct lw_origin_facts facts = KAFKA;
    facts.reason = reason;
    lw_headers_init(&lists[0]);
    lw_headers_init(&lists[1]);
    assert_true(lw_origin_build_retry(&facts, from, 2, &lists[0]));
    for (uint32_t retries = 2; retries <= 20; retries++) {
        struct lw_headers *to = &lists[(retries + 1) % 2];
        facts.retries = retries;
        assert_true(lw_origin_build_retry(&facts, lists[retries % 2].items,
                                          lists[retries % 2].count, to));
        assert_int_equal(to->count, 13);
        assert_int_equal(only(to, "x-error-reason").size, 512);
    }
    assert_true(lw_text_is_equal(only(&lists[1], "x-laneway-retries"), "20"));
    lw_headers_deinit(&lists[0]);
    lw_headers_deinit(&lists[1]);
}

static void
number_of_retries_stays_at_its_maximum(void **state)
{
    (void)state;
    struct lw_origin_facts facts = KAFKA;
    struct lw_headers headers;
    struct lw_origin origin;
    lw_headers_init(&headers);
    facts.retries = UINT32_MAX;
    assert_true(lw_origin_build_retry(&facts, NULL, 0, &headers));
    lw_origin_read(LW_HEADERS_KAFKA, headers.items, headers.count, &origin);
    assert_int_equal(origin.retries, LW_RETRIES_MAX);
    assert_false(origin.is_malformed);
    lw_headers_deinit(&headers);
}

static void
common_words_of_somebody_else_are_replaced(void **state)
{
    (void)state;
    struct lw_header from[] = { header("source-topic", "theirs"), header("partition", "99"),
                                header("x-error-reason", "theirs"), header("epoch", "x"),
                                header("epoch", "y") };
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_dead_letter(&KAFKA, from, COUNT(from), &headers));
    assert_true(lw_text_is_equal(only(&headers, "source-topic"), "orders"));
    assert_true(lw_text_is_equal(only(&headers, "partition"), "3"));
    assert_true(lw_text_is_equal(only(&headers, "epoch"), "7"));
    assert_true(lw_text_is_equal(only(&headers, "x-error-reason"), "database timeout"));
    lw_headers_deinit(&headers);
}

static void
place_of_a_copy_stands_or_falls_as_a_whole(void **state)
{
    (void)state;
    struct lw_header from[] = { header("x-laneway-id", "main/first/1/1"),
                                header("source-topic", "first"), header("partition", "1"),
                                header("offset", "1") };
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&KAFKA, from, COUNT(from), &headers));
    assert_true(lw_text_is_equal(only(&headers, "x-laneway-id"), "main/first/1/1"));
    assert_true(lw_text_is_equal(only(&headers, "source-topic"), "orders"));
    assert_true(lw_text_is_equal(only(&headers, "offset"), "42"));
    lw_headers_deinit(&headers);
}

static void
dead_letter_topic_of_a_first_message_cannot_be_forged(void **state)
{
    (void)state;
    struct lw_header from[] = { header("x-laneway-dead-letter-topic", "secrets") };
    struct lw_origin_facts facts = KAFKA;
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&facts, from, 1, &headers));
    assert_true(lw_text_is_equal(only(&headers, "x-laneway-dead-letter-topic"), "orders.dlq"));
    facts.dead_letter_topic = NULL;
    assert_true(lw_origin_build_retry(&facts, from, 1, &headers));
    assert_null(strstr(text_of(&headers), "secrets"));
    lw_headers_deinit(&headers);
}

static void
not_before_does_not_outlive_the_retry(void **state)
{
    (void)state;
    struct lw_header from[] = { header("x-laneway-not-before", "123") };
    struct lw_origin_facts facts = KAFKA;
    struct lw_headers headers;
    facts.not_before_ms = -1;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_dead_letter(&facts, from, 1, &headers));
    assert_null(strstr(text_of(&headers), "not-before"));
    lw_headers_deinit(&headers);
}

/* -- Reason -------------------------------------------------------------------------------------- */

static void
expect_reason(const char *reason, const char *expected)
{
    struct lw_origin_facts facts = KAFKA;
    struct lw_headers headers;
    facts.reason = reason;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_dead_letter(&facts, NULL, 0, &headers));
    struct lw_bytes value = only(&headers, "x-error-reason");
    assert_non_null(value.data);
    assert_true(lw_text_is_equal(value, expected));
    assert_true(lw_text_is_utf8(value.data, value.size));
    lw_headers_deinit(&headers);
}

static void
reason_is_valid_text_without_control_characters(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { NULL, "" },
        { "", "" },
        { "a\nb\tc\x1b[0m\x7f", "a b c [0m " },
        { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
          "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
        { "a\xff"
          "b",
          "a\xef\xbf\xbd"
          "b" },
        { "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
        { "over\xc0\x80long", "over\xef\xbf\xbd\xef\xbf\xbdlong" },
        { "next\xc2\x85line", "next line" },
        { "5\xc2\xa0ms", "5\xc2\xa0ms" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_reason(cases[i][0], cases[i][1]);
    }
}

static void
reason_is_cut_between_characters(void **state)
{
    (void)state;
    char reason[1024];
    char expected[513];
    memset(reason, 'a', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    memset(expected, 'a', 512);
    expected[512] = '\0';
    expect_reason(reason, expected);
    memcpy(reason + 510, "\xe2\x82\xac", 3);
    expected[510] = '\0';
    expect_reason(reason, expected);
}

/* -- Pulsar -------------------------------------------------------------------------------------- */

static struct lw_origin_facts
pulsar(void)
{
    struct lw_origin_facts facts = KAFKA;
    facts.family = LW_HEADERS_PULSAR;
    facts.topic = "t-partition-3";
    facts.place = "12:7:1";
    facts.id_text = "(12,7,3,1)";
    facts.subscription = "sub";
    return facts;
}

static void
pulsar_first_retry_writes_what_stays(void **state)
{
    (void)state;
    struct lw_origin_facts facts = pulsar();
    struct lw_header from[] = { header("x-error-reason", "theirs") };
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&facts, from, 1, &headers));
    assert_string_equal(text_of(&headers), "x-error-reason=theirs\n"
                                           "x-laneway-id=main/t/3/12:7:1\n"
                                           "REAL_TOPIC=t-partition-3\n"
                                           "REAL_SUBSCRIPTION=sub\n"
                                           "ORIGIN_MESSAGE_ID=(12,7,3,1)\n"
                                           "ORIGIN_MESSAGE_IDY_TIME=12:7:3:1\n"
                                           "RECONSUMETIMES=1\n"
                                           "DELAY_TIME=30000\n"
                                           "DEAD_LETTER_TOPIC=orders.dlq\n");
    lw_headers_deinit(&headers);
}

static void
pulsar_broker_without_ids_of_clients_writes_the_identity(void **state)
{
    (void)state;
    struct lw_origin_facts facts = pulsar();
    struct lw_headers headers;
    facts.id_text = NULL;
    facts.subscription = NULL;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_dead_letter(&facts, NULL, 0, &headers));
    assert_string_equal(text_of(&headers), "x-laneway-id=main/t/3/12:7:1\n"
                                           "REAL_TOPIC=t-partition-3\n"
                                           "ORIGIN_MESSAGE_ID=main/t/3/12:7:1\n"
                                           "ORIGIN_MESSAGE_IDY_TIME=main/t/3/12:7:1\n"
                                           "RECONSUMETIMES=1\n"
                                           "x-error-reason=database timeout\n"
                                           "x-retry-attempt=2\n");
    lw_headers_deinit(&headers);
}

/* What the Java client's reconsumeLater made of a member of a batch on the retry topic. */
static void
pulsar_later_retries_keep_the_origin_and_count(void **state)
{
    (void)state;
    struct lw_header from[] = { header("REAL_TOPIC", "first"),
                                header("RECONSUMETIMES", "1"),
                                header("ORIGIN_MESSAGE_IDY_TIME", "12:3:-1:0"),
                                header("ORIGIN_MESSAGE_ID", "12:3:-1:0"),
                                header("REAL_SUBSCRIPTION", "theirs"),
                                header("DELAY_TIME", "1000"),
                                header("DEAD_LETTER_TOPIC", "first-sub-DLQ") };
    struct lw_origin_facts facts = pulsar();
    struct lw_headers headers;
    facts.retries = 2;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&facts, from, COUNT(from), &headers));
    assert_string_equal(text_of(&headers), "x-laneway-id=main/first/0/12:3:0\n"
                                           "REAL_TOPIC=first\n"
                                           "REAL_SUBSCRIPTION=theirs\n"
                                           "ORIGIN_MESSAGE_ID=12:3:-1:0\n"
                                           "ORIGIN_MESSAGE_IDY_TIME=12:3:-1:0\n"
                                           "RECONSUMETIMES=2\n"
                                           "DELAY_TIME=30000\n"
                                           "DEAD_LETTER_TOPIC=first-sub-DLQ\n");
    lw_headers_deinit(&headers);
}

static void
pulsar_dead_letter_keeps_the_count_and_says_why(void **state)
{
    (void)state;
    struct lw_header from[] = { header("REAL_TOPIC", "first"), header("RECONSUMETIMES", "5"),
                                header("ORIGIN_MESSAGE_ID", "(12,3,-1,-1)"),
                                header("x-laneway-id", "main/first/0/12:3"),
                                header("DELAY_TIME", "1000") };
    struct lw_origin_facts facts = pulsar();
    struct lw_headers headers;
    facts.retries = 5;
    facts.subscription = NULL;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_dead_letter(&facts, from, COUNT(from), &headers));
    assert_string_equal(text_of(&headers), "x-laneway-id=main/first/0/12:3\n"
                                           "REAL_TOPIC=first\n"
                                           "ORIGIN_MESSAGE_ID=(12,3,-1,-1)\n"
                                           "ORIGIN_MESSAGE_IDY_TIME=(12,3,-1,-1)\n"
                                           "RECONSUMETIMES=5\n"
                                           "x-error-reason=database timeout\n"
                                           "x-retry-attempt=2\n");
    lw_headers_deinit(&headers);
}

/* Every copy of a copy, whoever wrote it, has the identity of the first appearance. */
static void
pulsar_identity_stays_over_copies_of_copies(void **state)
{
    (void)state;
    struct lw_origin_facts facts = pulsar();
    struct lw_headers copies[3];
    struct lw_headers *before = NULL;
    for (size_t i = 0; i < COUNT(copies); i++) {
        lw_headers_init(&copies[i]);
        assert_true(lw_origin_build_retry(&facts, before ? before->items : NULL,
                                          before ? before->count : 0, &copies[i]));
        before = &copies[i];
        struct lw_header id = before->items[0];
        assert_string_equal(id.name.data, "x-laneway-id");
        assert_int_equal(id.value.size, strlen("main/t/3/12:7:1"));
        assert_memory_equal(id.value.data, "main/t/3/12:7:1", id.value.size);
        facts.topic = "retry";
        facts.partition = 0;
        facts.place = "500:9";
        facts.id_text = "(500,9,-1,-1)";
    }
    for (size_t i = 0; i < COUNT(copies); i++) {
        lw_headers_deinit(&copies[i]);
    }
}

/* -- Replies -------------------------------------------------------------------------------------- */

static void
reply_takes_trace_and_content_type_from_its_message(void **state)
{
    (void)state;
    struct lw_header from[] = { header("traceparent", "00-a"), header("other", "x"),
                                header("Content-Type", "application/json"),
                                header("tracestate", "b=c"), header("x-laneway-id", "id") };
    struct lw_header own[] = { header("mine", "1") };
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_reply(own, 1, from, COUNT(from), &headers));
    assert_string_equal(text_of(&headers), "mine=1\n"
                                           "traceparent=00-a\n"
                                           "tracestate=b=c\n"
                                           "Content-Type=application/json\n");
    lw_headers_deinit(&headers);
}

static void
reply_keeps_what_its_handler_wrote(void **state)
{
    (void)state;
    struct lw_header from[] = { header("traceparent", "00-a"), header("tracestate", "b=c"),
                                header("content-type", "text/plain") };
    struct lw_header own[] = { header("CONTENT-TYPE", ""), header("traceparent", "00-own"),
                               header("mine", NULL) };
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_reply(own, COUNT(own), from, COUNT(from), &headers));
    assert_string_equal(text_of(&headers), "CONTENT-TYPE=\ntraceparent=00-own\nmine!\n");
    lw_headers_deinit(&headers);
}

static void
reply_to_a_plain_message_has_no_headers(void **state)
{
    (void)state;
    struct lw_headers headers;
    lw_headers_init(&headers);
    assert_true(lw_origin_build_reply(NULL, 0, NULL, 0, &headers));
    assert_int_equal(headers.count, 0);
    lw_headers_deinit(&headers);
}

/* -- Size and memory ------------------------------------------------------------------------------ */

static void
ten_thousand_headers_are_carried(void **state)
{
    (void)state;
    static struct lw_header from[10000];
    struct lw_headers headers;
    for (size_t i = 0; i < COUNT(from); i++) {
        from[i] = header(i % 2 == 0 ? "even" : "epoch", "v");
    }
    lw_headers_init(&headers);
    assert_true(lw_origin_build_retry(&KAFKA, from, COUNT(from), &headers));
    assert_int_equal(headers.count, 5000 + 11);
    lw_headers_deinit(&headers);
}

static void
every_failed_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    struct lw_header from[] = { header("a", "1") };
    uint64_t live = lw_alloc_live();
    bool is_built = false;
    int failures = 0;
    for (uint64_t nth = 1; !is_built; nth++) {
        struct lw_headers headers;
        lw_headers_init(&headers);
        lw_alloc_fail_at(nth);
        is_built = lw_origin_build_retry(&KAFKA, from, 1, &headers);
        assert_int_equal(headers.is_failed, !is_built);
        lw_alloc_fail_at(0);
        failures += !is_built;
        if (!is_built) {
            assert_true(lw_origin_build_retry(&KAFKA, from, 1, &headers));
            assert_int_equal(headers.count, 12);
        }
        lw_headers_deinit(&headers);
    }
    assert_true(failures >= 3);
    assert_int_equal(lw_alloc_live(), live);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_retry_copy_carries_everything),
        cmocka_unit_test(dead_letter_carries_reason_attempt_and_place),
        cmocka_unit_test(other_headers_stay_bit_for_bit_in_order_with_duplicates),
        cmocka_unit_test(copy_of_a_copy_keeps_the_first_appearance),
        cmocka_unit_test(headers_do_not_pile_up_over_twenty_retries),
        cmocka_unit_test(number_of_retries_stays_at_its_maximum),
        cmocka_unit_test(common_words_of_somebody_else_are_replaced),
        cmocka_unit_test(place_of_a_copy_stands_or_falls_as_a_whole),
        cmocka_unit_test(dead_letter_topic_of_a_first_message_cannot_be_forged),
        cmocka_unit_test(not_before_does_not_outlive_the_retry),
        cmocka_unit_test(reason_is_valid_text_without_control_characters),
        cmocka_unit_test(reason_is_cut_between_characters),
        cmocka_unit_test(pulsar_first_retry_writes_what_stays),
        cmocka_unit_test(pulsar_later_retries_keep_the_origin_and_count),
        cmocka_unit_test(pulsar_dead_letter_keeps_the_count_and_says_why),
        cmocka_unit_test(pulsar_broker_without_ids_of_clients_writes_the_identity),
        cmocka_unit_test(pulsar_identity_stays_over_copies_of_copies),
        cmocka_unit_test(reply_takes_trace_and_content_type_from_its_message),
        cmocka_unit_test(reply_keeps_what_its_handler_wrote),
        cmocka_unit_test(reply_to_a_plain_message_has_no_headers),
        cmocka_unit_test(ten_thousand_headers_are_carried),
        cmocka_unit_test(every_failed_allocation_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests_name("policy.origin_build", tests, NULL, NULL);
}
