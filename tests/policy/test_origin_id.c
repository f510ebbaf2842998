/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of Pulsar messages in the properties of copies: the spellings of the official clients, and
 * everything else that anybody may write there.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/text.h"
#include "policy/origin_id.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
both_spellings_of_the_clients_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct lw_origin_id id;
        const char *java;
        const char *place;
    } cases[] = {
        { "(147,0,-1,1)", { 147, 0, -1, 1 }, "147:0:-1:1", "147:0:1" },
        { "(147,0,-1,-1)", { 147, 0, -1, -1 }, "147:0:-1", "147:0" },
        { "147:0:-1", { 147, 0, -1, -1 }, "147:0:-1", "147:0" },
        { "147:0:3:12", { 147, 0, 3, 12 }, "147:0:3:12", "147:0:12" },
        { "1:1:-1;1:9:-1", { 1, 9, -1, -1 }, "1:9:-1", "1:9" },
        { "(9223372036854775807,9223372036854775807,2147483647,2147483647)",
          { INT64_MAX, INT64_MAX, INT32_MAX, INT32_MAX },
          "9223372036854775807:9223372036854775807:2147483647:2147483647",
          "9223372036854775807:9223372036854775807:2147483647" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lw_origin_id id;
        char text[LW_ORIGIN_ID_BYTES];
        assert_true(lw_origin_id_parse(lw_bytes_of(cases[i].text), &id));
        assert_memory_equal(&id, &cases[i].id, sizeof(id));
        lw_origin_id_write_java(&id, text);
        assert_string_equal(text, cases[i].java);
        lw_origin_id_write_place(&id, text);
        assert_string_equal(text, cases[i].place);
    }
}

static void
other_texts_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "1",
        "(",
        ")",
        "()",
        "1:2",
        "(1,2,3)",
        "(1,2,3,4",
        "1,2,3,4",
        "1:2:3:4:5",
        "(1,2,3,4,5)",
        "-1:2:3",
        "1:-2:3",
        "1:2:-2",
        "(1,2,-1,-2)",
        "1:2:x",
        "1::3",
        ":1:2:3",
        "1:2:3:",
        "(1:2:3:4)",
        " 1:2:3",
        "1:2:2147483648",
        "1;2;3",
        ";",
        "99999999999999999999:1:-1",
        "main/orders/0/12:3",
        "(,,,)",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct lw_origin_id id;
        if (lw_origin_id_parse(lw_bytes_of(texts[i]), &id)) {
            fail_msg("\"%s\" was taken for an id", texts[i]);
        }
    }
}

static void
what_has_no_end_or_no_text_is_none(void **state)
{
    (void)state;
    struct lw_origin_id id;
    static char huge[5000];
    memset(huge, '1', sizeof(huge));
    assert_false(lw_origin_id_parse((struct lw_bytes){ NULL, 0 }, &id));
    assert_false(lw_origin_id_parse((struct lw_bytes){ huge, sizeof(huge) }, &id));
    assert_false(lw_origin_id_parse((struct lw_bytes){ "1:2:3\0", 6 }, &id));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_spellings_of_the_clients_are_read),
        cmocka_unit_test(other_texts_are_none),
        cmocka_unit_test(what_has_no_end_or_no_text_is_none),
    };
    return cmocka_run_group_tests_name("policy.origin_id", tests, NULL, NULL);
}
