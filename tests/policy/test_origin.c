/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read from a message's headers, forged ones included, the stable identity, and which
 * dead-letter topics a header may choose.
 */
#include "tests/support/test.h"

#include <string.h>

#include "policy/origin.h"

#define HEADER(name_text, value_text)                                                          \
    {                                                                                          \
        .name = { name_text, sizeof(name_text) - 1 }, .value = {                               \
            value_text,                                                                        \
            sizeof(value_text) - 1                                                             \
        }                                                                                      \
    }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct lw_origin
read_kafka(const struct lw_header *headers, size_t count)
{
    struct lw_origin origin;
    lw_origin_read(LW_HEADERS_KAFKA, headers, count, &origin);
    return origin;
}

static void
assert_text(struct lw_bytes bytes, const char *expected)
{
    assert_non_null(bytes.data);
    assert_int_equal(bytes.size, strlen(expected));
    assert_memory_equal(bytes.data, expected, bytes.size);
}

static void
message_without_headers_appears_for_the_first_time(void **state)
{
    (void)state;
    struct lw_origin origin = read_kafka(NULL, 0);
    assert_int_equal(origin.retries, 0);
    assert_false(origin.is_malformed);
    assert_null(origin.message_id.data);
    assert_null(origin.topic.data);
    assert_null(origin.dead_letter_topic.data);
    assert_int_equal(origin.not_before_ms, -1);
    assert_int_equal(origin.timestamp_ms, -1);
}

static void
copy_tells_of_its_first_appearance(void **state)
{
    (void)state;
    static const struct lw_header headers[] = {
        HEADER("x-laneway-id", "main/orders/3/42"),
        HEADER("source-topic", "orders"),
        HEADER("x-laneway-retries", "2"),
        HEADER("x-laneway-not-before", "1700000000123"),
        HEADER("x-laneway-timestamp", "1600000000000"),
        HEADER("x-laneway-dead-letter-topic", "orders.dlq"),
    };
    struct lw_origin origin = read_kafka(headers, COUNT(headers));
    assert_text(origin.message_id, "main/orders/3/42");
    assert_text(origin.topic, "orders");
    assert_text(origin.dead_letter_topic, "orders.dlq");
    assert_int_equal(origin.retries, 2);
    assert_true(origin.not_before_ms == INT64_C(1700000000123));
    assert_true(origin.timestamp_ms == INT64_C(1600000000000));
    assert_false(origin.is_malformed);
}

static void
last_of_duplicates_counts(void **state)
{
    (void)state;
    static const struct lw_header headers[] = { HEADER("x-laneway-retries", "7"),
                                                HEADER("x-laneway-retries", "3"),
                                                HEADER("x-laneway-id", "first"),
                                                HEADER("x-laneway-id", "last") };
    struct lw_origin origin = read_kafka(headers, COUNT(headers));
    assert_int_equal(origin.retries, 3);
    assert_text(origin.message_id, "last");
}

static void
names_are_compared_exactly(void **state)
{
    (void)state;
    static const struct lw_header headers[] = { HEADER("X-Laneway-Retries", "7"),
                                                HEADER("x-laneway-retries ", "7"),
                                                HEADER("x-laneway-retries\0", "7"),
                                                HEADER("", "7"),
                                                { .value = { "7", 1 } } };
    struct lw_origin origin = read_kafka(headers, COUNT(headers));
    assert_int_equal(origin.retries, 0);
    assert_false(origin.is_malformed);
}

static void
malformed_or_huge_retries_count_as_none(void **state)
{
    (void)state;
    static const char *const values[] = { "x",
                                          "1x",
                                          " 1",
                                          "-1",
                                          "1.5",
                                          "0x10",
                                          "2147483647",
                                          "4294967295",
                                          "4294967296",
                                          "9223372036854775808",
                                          "99999999999999999999999999999999" };
    for (size_t i = 0; i < COUNT(values); i++) {
        struct lw_header header = { .name = lw_bytes_of("x-laneway-retries"),
                                    .value = lw_bytes_of(values[i]) };
        struct lw_origin origin = read_kafka(&header, 1);
        assert_int_equal(origin.retries, 0);
        assert_true(origin.is_malformed);
    }
}

static void
largest_number_of_retries_has_a_successor(void **state)
{
    (void)state;
    static const struct lw_header headers[] = { HEADER("x-laneway-retries", "2147483646") };
    struct lw_origin origin = read_kafka(headers, 1);
    assert_int_equal(origin.retries, 2147483646);
    assert_false(origin.is_malformed);
}

static void
forged_time_postpones_nothing_for_ever(void **state)
{
    (void)state;
    static const char *const values[] = { "9223372036854775807", "-5", "tomorrow",
                                          "253402300800001" };
    for (size_t i = 0; i < COUNT(values); i++) {
        struct lw_header header = { .name = lw_bytes_of("x-laneway-not-before"),
                                    .value = lw_bytes_of(values[i]) };
        struct lw_origin origin = read_kafka(&header, 1);
        assert_int_equal(origin.not_before_ms, -1);
        assert_true(origin.is_malformed);
    }
}

static void
empty_and_null_values_count_as_absent(void **state)
{
    (void)state;
    static const struct lw_header headers[] = {
        HEADER("x-laneway-id", ""),
        HEADER("x-laneway-retries", ""),
        { .name = { "x-laneway-not-before", 20 } },
        { .name = { "x-laneway-dead-letter-topic", 27 } },
    };
    struct lw_origin origin = read_kafka(headers, COUNT(headers));
    assert_null(origin.message_id.data);
    assert_null(origin.dead_letter_topic.data);
    assert_false(origin.is_malformed);
}

static void
common_words_mean_nothing_on_a_message_of_somebody_else(void **state)
{
    (void)state;
    static const struct lw_header headers[] = { HEADER("source-topic", "theirs"),
                                                HEADER("partition", "9") };
    assert_null(read_kafka(headers, COUNT(headers)).topic.data);
}

static void
pulsar_properties_are_read(void **state)
{
    (void)state;
    static const struct lw_header headers[] = {
        HEADER("REAL_TOPIC", "persistent://public/default/orders"),
        HEADER("ORIGIN_MESSAGE_ID", "12:3:-1"),
        HEADER("x-laneway-id", "main/orders/0/12:3"),
        HEADER("RECONSUMETIMES", "4"),
        HEADER("DEAD_LETTER_TOPIC", "orders-sub-DLQ"),
        HEADER("x-laneway-retries", "9"),
    };
    struct lw_origin origin;
    lw_origin_read(LW_HEADERS_PULSAR, headers, COUNT(headers), &origin);
    assert_text(origin.topic, "persistent://public/default/orders");
    assert_text(origin.message_id, "main/orders/0/12:3");
    assert_text(origin.client_id, "12:3:-1");
    assert_text(origin.dead_letter_topic, "orders-sub-DLQ");
    assert_int_equal(origin.retries, 4);
    assert_int_equal(origin.not_before_ms, -1);
}

static void
name_of_the_java_client_for_the_identity_is_read(void **state)
{
    (void)state;
    static const struct lw_header headers[] = { HEADER("ORIGIN_MESSAGE_IDY_TIME", "12:3:-1"),
                                                HEADER("RECONSUMETIMES", "many") };
    struct lw_origin origin;
    lw_origin_read(LW_HEADERS_PULSAR, headers, COUNT(headers), &origin);
    assert_null(origin.message_id.data);
    assert_text(origin.client_id, "12:3:-1");
    assert_int_equal(origin.retries, 0);
    assert_true(origin.is_malformed);
}

/* -- Identity ----------------------------------------------------------------------------------- */

static void
identity_names_broker_topic_partition_and_position(void **state)
{
    (void)state;
    static const struct {
        const char *topic;
        int32_t partition;
        int64_t position;
        const char *place;
        const char *expected;
    } cases[] = {
        { "orders", 3, 42, NULL, "main/orders/3/42" },
        { "orders", 3, 42, "12:7:3", "main/orders/3/12:7:3" },
        { "orders_live.high-1~", 0, 0, NULL, "main/orders_live.high-1~/0/0" },
        { "persistent://public/default/a b", -1, INT64_MAX, NULL,
          "main/persistent%3A%2F%2Fpublic%2Fdefault%2Fa%20b/-1/9223372036854775807" },
        { "\xc3\xa9%", INT32_MAX, 7, NULL, "main/%C3%A9%25/2147483647/7" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[128];
        const struct lw_origin_facts facts = { .broker = "main",
                                               .topic = cases[i].topic,
                                               .partition = cases[i].partition,
                                               .position = cases[i].position,
                                               .place = cases[i].place };
        size_t length = lw_origin_message_id(&facts, out, sizeof(out));
        assert_string_equal(out, cases[i].expected);
        assert_int_equal(length, strlen(cases[i].expected));
    }
}

static void
identity_that_does_not_fit_is_cut_and_tells_its_length(void **state)
{
    (void)state;
    char out[8] = "xxxxxxx";
    const struct lw_origin_facts facts = {
        .broker = "main", .topic = "orders", .partition = 3, .position = 42
    };
    assert_int_equal(lw_origin_message_id(&facts, NULL, 0), 16);
    assert_int_equal(lw_origin_message_id(&facts, out, sizeof(out)), 16);
    assert_string_equal(out, "main/or");
    assert_int_equal(lw_origin_message_id(&facts, out, 1), 16);
    assert_string_equal(out, "");
}

static void
identity_of_a_partition_of_pulsar_names_its_topic_without_it(void **state)
{
    (void)state;
    char out[128];
    struct lw_origin_facts facts = {
        .broker = "main", .topic = "t-partition-3", .partition = 3, .place = "12:7"
    };
    (void)lw_origin_message_id(&facts, out, sizeof(out));
    assert_string_equal(out, "main/t-partition-3/3/12:7");
    facts.family = LW_HEADERS_PULSAR;
    (void)lw_origin_message_id(&facts, out, sizeof(out));
    assert_string_equal(out, "main/t/3/12:7");
    facts.partition = 4;
    (void)lw_origin_message_id(&facts, out, sizeof(out));
    assert_string_equal(out, "main/t-partition-3/4/12:7");
}

static const char *
identity_of(const struct lw_header *headers, size_t count)
{
    static char out[128];
    struct lw_origin origin;
    const struct lw_origin_facts facts = {
        .family = LW_HEADERS_PULSAR, .broker = "main", .topic = "retry", .place = "99:0"
    };
    lw_origin_read(LW_HEADERS_PULSAR, headers, count, &origin);
    size_t length = lw_origin_identity(&origin, &facts, out, sizeof(out));
    assert_int_equal(length, strlen(out));
    return out;
}

static void
identity_of_an_official_copy_is_that_of_its_first_appearance(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *topic;
        const char *id;
        const char *expected;
    } cases[] = {
        { "ORIGIN_MESSAGE_ID", "t", "(147,0,-1,-1)", "main/t/0/147:0" },
        { "ORIGIN_MESSAGE_ID", "t", "(147,0,-1,1)", "main/t/0/147:0:1" },
        { "ORIGIN_MESSAGE_ID", "t-partition-3", "(147,5,3,0)", "main/t/3/147:5:0" },
        { "ORIGIN_MESSAGE_ID", "t", "147:5:3:0", "main/t/3/147:5:0" },
        { "ORIGIN_MESSAGE_IDY_TIME", "t", "147:5:-1", "main/t/0/147:5" },
        { "ORIGIN_MESSAGE_ID", "t", "147:4:-1;147:5:-1", "main/t/0/147:5" },
        { "ORIGIN_MESSAGE_ID", "t", "their-own-id", "their-own-id" },
        { "ORIGIN_MESSAGE_ID", "t", "(1,2,3)", "(1,2,3)" },
        { "ORIGIN_MESSAGE_ID", "", "(1,2,3,4)", "(1,2,3,4)" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct lw_header headers[] = {
            { lw_bytes_of(cases[i].name), lw_bytes_of(cases[i].id) },
            { lw_bytes_of("REAL_TOPIC"), lw_bytes_of(cases[i].topic) },
        };
        assert_string_equal(identity_of(headers, 2), cases[i].expected);
    }
}

static void
identity_that_a_message_carries_wins_and_without_any_it_is_its_place(void **state)
{
    (void)state;
    static const struct lw_header headers[] = { HEADER("ORIGIN_MESSAGE_ID", "(1,2,-1,-1)"),
                                                HEADER("REAL_TOPIC", "t"),
                                                HEADER("x-laneway-id", "other/t/0/7:8") };
    assert_string_equal(identity_of(headers, 3), "other/t/0/7:8");
    assert_string_equal(identity_of(NULL, 0), "main/retry/0/99:0");
}

static void
identity_is_the_place_when_an_origin_id_is_no_text(void **state)
{
    (void)state;
    static const struct lw_header headers[] = {
        { { "ORIGIN_MESSAGE_ID", 17 }, { "\0\5", 2 } },
    };
    assert_string_equal(identity_of(headers, 1), "main/retry/0/99:0");
}

/* -- What a header may choose --------------------------------------------------------------------- */

static void
header_chooses_only_what_the_patterns_allow(void **state)
{
    (void)state;
    static const char *const patterns[] = { "orders.dlq", "*-DLQ", "dead_?" };
    static const char *const allowed[] = { "orders.dlq", "a-b-DLQ", "-DLQ", "dead_1" };
    static const char *const refused[] = { "", "secrets", "orders.dlq2", "dead_12", "x-DLQ-y" };
    for (size_t i = 0; i < COUNT(allowed); i++) {
        assert_true(lw_origin_is_allowed(lw_bytes_of(allowed[i]), patterns, COUNT(patterns)));
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_false(lw_origin_is_allowed(lw_bytes_of(refused[i]), patterns, COUNT(patterns)));
    }
    assert_false(lw_origin_is_allowed(lw_bytes_of("orders.dlq"), NULL, 0));
}

static void
topic_with_a_zero_byte_or_without_end_is_refused(void **state)
{
    (void)state;
    static const char *const patterns[] = { "*" };
    static char huge[100000];
    memset(huge, 'a', sizeof(huge));
    struct lw_bytes hidden = { "orders.dlq\0.secret", 18 };
    assert_false(lw_origin_is_allowed(hidden, patterns, 1));
    assert_false(lw_origin_is_allowed((struct lw_bytes){ huge, sizeof(huge) }, patterns, 1));
    assert_false(lw_origin_is_allowed((struct lw_bytes){ NULL, 0 }, patterns, 1));
    assert_true(lw_origin_is_allowed((struct lw_bytes){ huge, 1023 }, patterns, 1));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_without_headers_appears_for_the_first_time),
        cmocka_unit_test(copy_tells_of_its_first_appearance),
        cmocka_unit_test(last_of_duplicates_counts),
        cmocka_unit_test(names_are_compared_exactly),
        cmocka_unit_test(malformed_or_huge_retries_count_as_none),
        cmocka_unit_test(largest_number_of_retries_has_a_successor),
        cmocka_unit_test(forged_time_postpones_nothing_for_ever),
        cmocka_unit_test(empty_and_null_values_count_as_absent),
        cmocka_unit_test(common_words_mean_nothing_on_a_message_of_somebody_else),
        cmocka_unit_test(pulsar_properties_are_read),
        cmocka_unit_test(name_of_the_java_client_for_the_identity_is_read),
        cmocka_unit_test(identity_names_broker_topic_partition_and_position),
        cmocka_unit_test(identity_that_does_not_fit_is_cut_and_tells_its_length),
        cmocka_unit_test(identity_of_a_partition_of_pulsar_names_its_topic_without_it),
        cmocka_unit_test(identity_of_an_official_copy_is_that_of_its_first_appearance),
        cmocka_unit_test(identity_that_a_message_carries_wins_and_without_any_it_is_its_place),
        cmocka_unit_test(identity_is_the_place_when_an_origin_id_is_no_text),
        cmocka_unit_test(header_chooses_only_what_the_patterns_allow),
        cmocka_unit_test(topic_with_a_zero_byte_or_without_end_is_refused),
    };
    return cmocka_run_group_tests_name("policy.origin", tests, NULL, NULL);
}
