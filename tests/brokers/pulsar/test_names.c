/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of topics: spellings and their canonical form, partitions, names made from names, and the
 * patterns of discovery.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "brokers/pulsar/names.h"
#include "brokers/pulsar/pattern.h"

struct spelling {
    const char *text;
    const char *canonical; /* NULL: refused */
    int32_t partition;
};

static const struct spelling spellings[] = {
    { "orders", "persistent://public/default/orders", -1 },
    { "a/b/c", "persistent://a/b/c", -1 },
    { "persistent://a/b/c", "persistent://a/b/c", -1 },
    { "non-persistent://a/b/c", "non-persistent://a/b/c", -1 },
    { "persistent://prop/cluster/ns/c", "persistent://prop/cluster/ns/c", -1 },
    { "persistent://prop/cluster/ns/c/d/e", "persistent://prop/cluster/ns/c/d/e", -1 },
    { "orders-partition-0", "persistent://public/default/orders-partition-0", 0 },
    { "orders-partition-17", "persistent://public/default/orders-partition-17", 17 },
    { "orders-partition-00", "persistent://public/default/orders-partition-00", -1 },
    { "orders-partition-01", "persistent://public/default/orders-partition-01", -1 },
    { "orders-partition--2", "persistent://public/default/orders-partition--2", -1 },
    { "orders-partition-", "persistent://public/default/orders-partition-", -1 },
    { "orders-partition-1x", "persistent://public/default/orders-partition-1x", -1 },
    { "orders-partition-9999999999", "persistent://public/default/orders-partition-9999999999",
      -1 },
    { "a-partition-3-partition-4", "persistent://public/default/a-partition-3-partition-4", 4 },
    { "-partition-5", "persistent://public/default/-partition-5", -1 },
    { "sp ace", "persistent://public/default/sp ace", -1 },
    { "100%25", "persistent://public/default/100%25", -1 },
    { "na\xc3\xafve", "persistent://public/default/na\xc3\xafve", -1 },
    { "t-1.x_y=z:0/n/o", "persistent://t-1.x_y=z:0/n/o", -1 },
    { "", NULL, 0 },
    { "a/b", NULL, 0 },
    { "a/b/c/d", NULL, 0 },
    { "/b/c", NULL, 0 },
    { "a//c", NULL, 0 },
    { "a/b/", NULL, 0 },
    { "persistent://a/b", NULL, 0 },
    { "persistent://a/b/", NULL, 0 },
    { "persistent://", NULL, 0 },
    { "PERSISTENT://a/b/c", NULL, 0 },
    { "http://a/b/c", NULL, 0 },
    { "topic://a/b/c", NULL, 0 },
    { "segment://a/b/c/d", NULL, 0 },
    { "a b/c/d", NULL, 0 },
    { "a/b\n/c", NULL, 0 },
    { "or\tders", NULL, 0 },
    { "or\xff", NULL, 0 },
};

static void
every_spelling_has_one_canonical_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const struct spelling *spelling = &spellings[i];
        struct lw_pulsar_name name;
        struct lw_error error;
        enum lw_status status = lw_pulsar_name_parse(spelling->text, &name, &error);
        if (!spelling->canonical) {
            assert_int_equal(status, LW_STATUS_INVALID);
            assert_string_equal(error.code, "E0123");
            assert_true(strlen(error.help) > 10);
            continue;
        }
        assert_int_equal(status, LW_STATUS_OK);
        assert_string_equal(name.text, spelling->canonical);
        assert_int_equal(name.size, strlen(spelling->canonical));
        assert_int_equal(name.partition, spelling->partition);
    }
}

static void
a_canonical_form_is_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        if (spellings[i].canonical) {
            assert_true(lw_pulsar_name_is_same(spellings[i].text, spellings[i].canonical));
        }
    }
    assert_false(lw_pulsar_name_is_same("orders", "non-persistent://public/default/orders"));
    assert_false(lw_pulsar_name_is_same("orders", "Orders"));
    assert_false(lw_pulsar_name_is_same("a/b", "a/b"));
}

static void
a_name_of_the_longest_size_fits_and_a_longer_one_does_not(void **state)
{
    (void)state;
    char text[1100];
    struct lw_pulsar_name name;
    size_t room = LW_PULSAR_NAME_BYTES - 1 - strlen("persistent://public/default/");
    memset(text, 'x', sizeof text);
    text[room] = '\0';
    assert_int_equal(lw_pulsar_name_parse(text, &name, NULL), LW_STATUS_OK);
    assert_int_equal(name.size, LW_PULSAR_NAME_BYTES - 1);
    text[room] = 'x';
    text[room + 1] = '\0';
    assert_int_equal(lw_pulsar_name_parse(text, &name, NULL), LW_STATUS_INVALID);
}

static struct lw_pulsar_name
parsed(const char *text)
{
    struct lw_pulsar_name name;
    assert_int_equal(lw_pulsar_name_parse(text, &name, NULL), LW_STATUS_OK);
    return name;
}

static void
a_partition_is_taken_off_and_put_on(void **state)
{
    (void)state;
    char text[LW_PULSAR_NAME_BYTES];
    struct lw_pulsar_name name = parsed("a/b/c-partition-3");
    assert_true(lw_pulsar_name_partition(&name, 12, text, sizeof text));
    assert_string_equal(text, "persistent://a/b/c-partition-12");
    assert_false(lw_pulsar_name_partition(&name, -1, text, sizeof text));
    assert_false(lw_pulsar_name_partition(&name, 1, text, 20));
    lw_pulsar_name_to_base(&name);
    assert_string_equal(name.text, "persistent://a/b/c");
    assert_int_equal(name.partition, -1);
}

static void
the_namespace_of_both_forms_is_found(void **state)
{
    (void)state;
    char text[100];
    struct lw_pulsar_name name = parsed("a/b/c");
    assert_true(lw_pulsar_name_namespace(&name, text, sizeof text));
    assert_string_equal(text, "a/b");
    assert_false(name.has_cluster);
    name = parsed("persistent://a/use/b/c/d");
    assert_true(lw_pulsar_name_namespace(&name, text, sizeof text));
    assert_string_equal(text, "a/use/b");
    assert_true(name.has_cluster);
    assert_string_equal(name.text + name.local_start, "c/d");
    assert_false(lw_pulsar_name_namespace(&name, text, 7));
}

static void
default_topics_are_named_after_the_base_topic(void **state)
{
    (void)state;
    char text[LW_PULSAR_NAME_BYTES];
    assert_true(
        lw_pulsar_name_default_topic(LW_TOPIC_DEAD_LETTER, "orders", "sub", text, sizeof text));
    assert_string_equal(text, "persistent://public/default/orders-sub-DLQ");
    assert_true(lw_pulsar_name_default_topic(LW_TOPIC_RETRY, "a/b/c-partition-7", "s", text,
                                             sizeof text));
    assert_string_equal(text, "persistent://a/b/c-s-RETRY");
    assert_false(lw_pulsar_name_default_topic(LW_TOPIC_RETRY, "orders", "", text, sizeof text));
    assert_false(
        lw_pulsar_name_default_topic(LW_TOPIC_RETRY, "orders", "a/b", text, sizeof text));
    assert_false(lw_pulsar_name_default_topic(LW_TOPIC_RETRY, "a/b", "s", text, sizeof text));
    assert_false(lw_pulsar_name_default_topic(LW_TOPIC_RETRY, "orders", "s", text, 20));
}

static void
rest_paths_encode_the_local_name_only(void **state)
{
    (void)state;
    struct lw_text path;
    struct lw_pulsar_name name = parsed("non-persistent://a:1/b/x y%\xc3\xa4");
    lw_text_init(&path);
    lw_pulsar_name_rest_path(&name, &path);
    assert_string_equal(path.data, "non-persistent/a:1/b/x%20y%25%C3%A4");
    lw_text_deinit(&path);
}

static void
the_brokers_own_topics_are_known(void **state)
{
    (void)state;
    struct lw_pulsar_name name = parsed("a/b/__change_events");
    assert_true(lw_pulsar_name_is_system(&name));
    name = parsed("persistent://pulsar/system/anything");
    assert_true(lw_pulsar_name_is_system(&name));
    name = parsed("a/b/c__d");
    assert_false(lw_pulsar_name_is_system(&name));
}

/* -- Patterns ---------------------------------------------------------------------------------------- */

static bool
has(const char *pattern_text, enum lw_pulsar_regex_mode mode, const char *topic)
{
    struct lw_pulsar_pattern pattern;
    struct lw_error error;
    if (lw_pulsar_pattern_init(&pattern, pattern_text, mode, &error) != LW_STATUS_OK) {
        fail_msg("%s: %s", pattern_text, error.message);
    }
    bool is_in = lw_pulsar_pattern_has(&pattern, topic);
    lw_pulsar_pattern_deinit(&pattern);
    return is_in;
}

#define P LW_PULSAR_REGEX_PERSISTENT
#define ALL LW_PULSAR_REGEX_ALL

static void
a_pattern_matches_all_of_the_own_name(void **state)
{
    (void)state;
    assert_true(has("orders_.*", P, "orders_live"));
    assert_false(has("orders_.*", P, "my_orders_live"));
    assert_false(has("orders", P, "orders2"));
    assert_true(has("a|b", P, "b"));
    assert_false(has("a|b", P, "ab"));
    assert_true(has("t/n/x.*", P, "persistent://t/n/xyz"));
    assert_false(has("t/n/x.*", P, "xyz"));
    assert_false(has("t/n/x.*", P, "t/n2/xyz"));
    assert_true(has("persistent://t/n/x.*", P, "persistent://t/n/xyz-partition-3"));
    assert_false(has(".*", P, "t/n/__change_events"));
    assert_false(has(".*", P, "__transaction_buffer_snapshot"));
}

static void
the_mode_chooses_the_domains(void **state)
{
    (void)state;
    const char *other = "non-persistent://public/default/a";
    assert_false(has(".*", P, other));
    assert_true(has(".*", LW_PULSAR_REGEX_NON_PERSISTENT, other));
    assert_false(has(".*", LW_PULSAR_REGEX_NON_PERSISTENT, "a"));
    assert_true(has(".*", ALL, other));
    assert_true(has(".*", ALL, "a"));
    assert_false(has("persistent://public/default/.*", ALL, other));
    assert_true(has("non-persistent://public/default/.*", ALL, other));
}

static void
what_other_clients_write_is_translated(void **state)
{
    (void)state;
    assert_true(has("o\\d+", P, "o123"));
    assert_false(has("o\\d+", P, "oabc"));
    assert_true(has("(?:a|b)c", P, "bc"));
    assert_true(has("a.*?b", P, "axxb"));
    assert_true(has("a+?", P, "aaa"));
    assert_true(has("[\\d_]+", P, "1_2"));
    assert_true(has("\\w+-\\D\\S", P, "a_1-xy"));
    assert_true(has("a\\.b", P, "a.b"));
    assert_false(has("a\\.b", P, "axb"));
    assert_true(has("[]a]+", P, "a]"));
    assert_true(has("[[:alpha:]]{2}", P, "ab"));
    assert_true(has("ab??", P, "a"));
}

static void
a_bad_pattern_is_refused_before_it_is_used(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "a/b",
        "a/b/",
        "persistent://a/.*",
        "http://a/b/.*",
        "a.*/b/c",
        "a/b/c/d",
        "(a",
        "[a",
        "a\\",
        "(?=x)",
        "(a)\\1",
        "a++",
        "(?<name>abc)",
        "a\\bc",
        "*x[",
        "[^\\D]",
        "non-persistent://a/b/.*",
        "((x{1,200}){1,200}){1,200}", /* it would take all memory to compile */
        "orders_**",                  /* it would take for ever to compile */
        "orders_*?*",
        "x*{2}",
        "x{99999999999999999999}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lw_pulsar_pattern pattern;
        struct lw_error error;
        if (lw_pulsar_pattern_init(&pattern, bad[i], P, &error) != LW_STATUS_INVALID) {
            fail_msg("accepted: %s", bad[i]);
        }
        assert_string_equal(error.code, "E0124");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_has_one_canonical_form),
        cmocka_unit_test(a_canonical_form_is_its_own),
        cmocka_unit_test(a_name_of_the_longest_size_fits_and_a_longer_one_does_not),
        cmocka_unit_test(a_partition_is_taken_off_and_put_on),
        cmocka_unit_test(the_namespace_of_both_forms_is_found),
        cmocka_unit_test(default_topics_are_named_after_the_base_topic),
        cmocka_unit_test(rest_paths_encode_the_local_name_only),
        cmocka_unit_test(the_brokers_own_topics_are_known),
        cmocka_unit_test(a_pattern_matches_all_of_the_own_name),
        cmocka_unit_test(the_mode_chooses_the_domains),
        cmocka_unit_test(what_other_clients_write_is_translated),
        cmocka_unit_test(a_bad_pattern_is_refused_before_it_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
