/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message ids: their forms in bytes and text, their order, lists of them in an ack, and the id
 * of a chunked message.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/wire/captures.h"

static void
check_text(const char *text, const char *colons, const char *tuple)
{
    char out[LW_PULSAR_ID_TEXT_BYTES];
    struct lw_pulsar_message_id id;
    assert_true(lw_pulsar_message_id_parse(text, &id));
    lw_pulsar_message_id_print(&id, out, sizeof out);
    assert_string_equal(out, colons);
    lw_pulsar_message_id_print_tuple(&id, out, sizeof out);
    assert_string_equal(out, tuple);
}

static void
text_forms_of_all_clients_are_read_and_written(void **state)
{
    (void)state;
    check_text("147:0:-1", "147:0:-1", "(147,0,-1,-1)");
    check_text("147:0:-1:1", "147:0:-1:1", "(147,0,-1,1)");
    check_text("(147,0,-1,1)", "147:0:-1:1", "(147,0,-1,1)");
    check_text("-1:-1:-1", "-1:-1:-1", "(-1,-1,-1,-1)");
    check_text("5:6", "5:6:-1", "(5,6,-1,-1)");
    check_text("9223372036854775807:9223372036854775807:2",
               "9223372036854775807:9223372036854775807:2",
               "(9223372036854775807,9223372036854775807,2,-1)");
}

static void
texts_that_are_no_id_are_refused(void **state)
{
    (void)state;
    const char *texts[] = { "",
                            "1",
                            ":",
                            "1:",
                            "1:2:3:4:5",
                            "1:2 ",
                            "(1,2,3,4",
                            "1:2:x",
                            "1,2,3,4",
                            "-2:1:1",
                            "1: 2",
                            "+1:2",
                            "(1,2,3,4))",
                            "1:2:3000000000",
                            "99999999999999999999:1",
                            "(1:2)" };
    struct lw_pulsar_message_id id;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(lw_pulsar_message_id_parse(texts[i], &id));
    }
}

static void
serialised_form_leaves_out_what_is_not_set(void **state)
{
    (void)state;
    uint8_t room[64];
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(5, 300);
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    id.has = LW_PULSAR_ID_HAS_PARTITION; /* it came as -1 */
    lw_pulsar_message_id_serialize(&id, &writer);
    assert_int_equal(writer.size, 5);
    assert_memory_equal(room, "\x08\x05\x10\xac\x02", 5);
}

static void
id_of_a_chunked_message_holds_its_first_chunk(void **state)
{
    (void)state;
    uint8_t first[32];
    uint8_t room[64];
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(9, 3);
    struct lw_pulsar_message_id chunk = lw_pulsar_message_id_of(9, 1);
    struct lw_proto_writer inner = lw_proto_writer_of(first, sizeof first);
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    chunk.partition = 2;
    lw_pulsar_message_id_serialize(&chunk, &inner);
    id.first_chunk = lw_proto_written(&inner);
    lw_pulsar_message_id_serialize(&id, &writer);
    assert_int_equal(lw_pulsar_message_id_decode(lw_proto_written(&writer), &id), LW_PULSAR_OK);
    assert_int_equal(id.entry, 3);
    assert_int_equal(lw_pulsar_message_id_decode(id.first_chunk, &chunk), LW_PULSAR_OK);
    assert_int_equal(chunk.entry, 1);
    assert_int_equal(chunk.partition, 2);
}

static void
ids_are_ordered_by_ledger_entry_and_batch_index(void **state)
{
    (void)state;
    const char *ascending[] = { "1:9:5", "2:0:-1", "2:0:-1:0", "2:0:-1:7", "2:1:-1" };
    struct lw_pulsar_message_id a;
    struct lw_pulsar_message_id b;
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            lw_pulsar_message_id_parse(ascending[i], &a);
            lw_pulsar_message_id_parse(ascending[j], &b);
            assert_int_equal(lw_pulsar_message_id_compare(&a, &b), (i > j) - (i < j));
        }
    }
}

static void
ack_of_many_ids_is_read_back_whole(void **state)
{
    (void)state;
    enum { IDS = 3000 };
    static uint8_t scratch[IDS * 16];
    static uint8_t room[IDS * 16];
    struct lw_pulsar_command ack = lw_pulsar_command_of(LW_PULSAR_ACK);
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(1, 0);
    struct lw_proto_writer list = lw_proto_writer_of(scratch, sizeof scratch);
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    for (id.entry = 0; id.entry < IDS; id.entry++) {
        lw_pulsar_list_put_id(&list, &id);
    }
    ack.ack.message_ids = lw_pulsar_list_of(&list);
    lw_pulsar_command_encode(&ack, &writer);
    assert_int_equal(lw_pulsar_command_decode(lw_proto_written(&writer), &ack), LW_PULSAR_OK);
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&ack.ack.message_ids);
    uint64_t count = 0;
    for (; lw_pulsar_walk_id(&walk, &id); count++) {
        assert_int_equal(id.entry, count);
    }
    assert_int_equal(count, IDS);
}

static void
ack_set_is_carried_in_an_id(void **state)
{
    (void)state;
    uint8_t words[32];
    uint8_t room[64];
    uint64_t word = 0;
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(30, 0);
    struct lw_proto_writer set = lw_proto_writer_of(words, sizeof words);
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_list_put_number(&set, 0x3fc);
    lw_pulsar_list_put_number(&set, UINT64_MAX);
    id.ack_set = lw_pulsar_list_of(&set);
    lw_pulsar_message_id_serialize(&id, &writer);
    assert_int_equal(lw_pulsar_message_id_decode(lw_proto_written(&writer), &id), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_list_numbers(&id.ack_set, &word, 1), 2);
    assert_int_equal(word, 0x3fc);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_forms_of_all_clients_are_read_and_written),
        cmocka_unit_test(texts_that_are_no_id_are_refused),
        cmocka_unit_test(serialised_form_leaves_out_what_is_not_set),
        cmocka_unit_test(id_of_a_chunked_message_holds_its_first_chunk),
        cmocka_unit_test(ids_are_ordered_by_ledger_entry_and_batch_index),
        cmocka_unit_test(ack_of_many_ids_is_read_back_whole),
        cmocka_unit_test(ack_set_is_carried_in_an_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
