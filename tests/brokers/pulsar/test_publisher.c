/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publisher against the embedded broker when all is well: topics, partitions, order, batches,
 * delays, room, the idle, the end.
 */
#include "tests/support/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "brokers/pulsar/wire/compress.h"
#include "tests/brokers/pulsar/publishing.h"

static struct publishing *publishing;

/* -- What goes into sockets -------------------------------------------------------------------------- */

/* The piece that is looked for, and whether a socket was given it by its address. */
static const void *watched;
static size_t watched_bytes;
static bool was_seen;

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "sendmsg");
        memcpy(&real, &symbol, sizeof real);
    }
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        was_seen |= piece->iov_base == watched && piece->iov_len == watched_bytes;
    }
    return real(fd, message, flags);
}

static int
set_up(void **state)
{
    (void)state;
    publishing = publishing_create();
    watched = NULL;
    was_seen = false;
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    publishing_destroy(publishing);
    return 0;
}

static void
start_with_batches(uint64_t delay_ms)
{
    publishing->settings.batches = true;
    publishing->settings.batch_delay_ns = delay_ms * LW_MS;
    publishing_start(publishing);
}

static void
messages_are_stored_in_order_and_each_has_one_receipt(void **state)
{
    (void)state;
    publishing_start(publishing);
    publishing_send(publishing, "t", 500);
    publishing_until(publishing, 500);
    publishing_expect_all(publishing, LW_STATUS_OK);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 500);
    for (uint32_t i = 0; i < 500; i++) {
        assert_int_equal(publishing->order[i], i);
    }
    assert_int_equal(publishing_figures(publishing).copies, 0);
}

static void
every_spelling_of_a_topic_has_one_producer(void **state)
{
    (void)state;
    publishing_start(publishing);
    const char *const names[] = { "t", "public/default/t", PUBLISHING_TOPIC, "t" };
    for (size_t i = 0; i < 4; i++) {
        (void)publishing_item(publishing, names[i], "v");
    }
    publishing_go(publishing);
    publishing_until(publishing, 4);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(publishing_figures(publishing).producers, 1);
    assert_int_equal(embedded_producers(publishing->broker, PUBLISHING_TOPIC), 1);
}

static void
a_reply_goes_from_its_buffer_into_the_socket(void **state)
{
    (void)state;
    static char reply[100000];
    publishing_start(publishing);
    struct lw_publication *item = publishing_item(publishing, "t", "");
    item->value = (struct lw_bytes){ reply, sizeof reply };
    watched = reply;
    watched_bytes = sizeof reply;
    publishing_go(publishing);
    publishing_until(publishing, 1);
    assert_true(was_seen);
    assert_int_equal(publishing_figures(publishing).copies, 0);
}

static void
a_reply_that_finds_no_company_is_not_copied_into_a_batch(void **state)
{
    (void)state;
    static char reply[1000];
    start_with_batches(1);
    struct lw_publication *item = publishing_item(publishing, "t", "");
    item->value = (struct lw_bytes){ reply, sizeof reply };
    watched = reply;
    watched_bytes = sizeof reply;
    publishing_go(publishing);
    publishing_rest(publishing);
    publishing_pass_ms(publishing, 2);
    publishing_until(publishing, 1);
    assert_true(was_seen);
    assert_int_equal(publishing_figures(publishing).copies, 0);
}

static void
what_came_in_one_turn_is_one_batch(void **state)
{
    (void)state;
    start_with_batches(0);
    publishing_send(publishing, "t", 300);
    publishing_until(publishing, 300);
    publishing_expect_all(publishing, LW_STATUS_OK);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 300);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 1);
}

static void
a_batch_waits_for_its_delay_and_no_longer(void **state)
{
    (void)state;
    start_with_batches(10);
    publishing_send(publishing, "t", 1);
    publishing_rest(publishing);
    publishing_pass_ms(publishing, 9);
    assert_int_equal(publishing->receipts, 0);
    publishing_pass_ms(publishing, 2);
    publishing_until(publishing, 1);
}

static void
count_and_bytes_bound_a_batch(void **state)
{
    (void)state;
    publishing->settings.batch_messages_max = 7;
    start_with_batches(0);
    publishing_send(publishing, "t", 21);
    publishing_until(publishing, 21);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 3);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 21);
}

static void
batches_by_key_hold_one_key_each(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing->settings.batches_by_key = true;
    start_with_batches(0);
    for (uint32_t i = 0; i < 30; i++) {
        struct lw_publication *item = publishing_item(publishing, "t", "v");
        item->key = lw_bytes_of(i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c");
    }
    publishing_go(publishing);
    publishing_until(publishing, 30);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 3);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, i, &metadata, &body));
        assert_int_equal(metadata.num_messages_in_batch, 10);
        assert_int_equal(*(const char *)metadata.partition_key.data, "abc"[i]);
        assert_int_equal(metadata.sequence_id, i * 10); /* ids ascend from entry to entry */
    }
}

static void
a_delayed_message_goes_alone_behind_the_open_batch(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    start_with_batches(10);
    publishing_send(publishing, "t", 3);
    publishing_item(publishing, "t", "3")->delay_ms = 5000;
    publishing_go(publishing);
    publishing_until(publishing, 4);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 4);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 1, &metadata, &body));
    assert_false(lw_pulsar_metadata_is_batch(&metadata));
    struct lw_host *host = publishing->world.host;
    assert_int_equal(metadata.deliver_at_time, host->ops->wall_ms(host) + 5000);
}

static void
compressed_batches_are_read_back(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing->settings.compression = LW_PULSAR_COMPRESSION_ZSTD;
    start_with_batches(0);
    publishing_send(publishing, "t", 500);
    publishing_until(publishing, 500);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 0, &metadata, &body));
    assert_int_equal(metadata.compression, LW_PULSAR_COMPRESSION_ZSTD);
    assert_true(body.size < metadata.uncompressed_size);
}

/* -- Partitions --------------------------------------------------------------------------------------- */

static uint64_t
stored(const char *topic)
{
    return embedded_has_topic(publishing->broker, topic)
               ? embedded_message_count(publishing->broker, topic)
               : 0;
}

static void
a_key_goes_to_its_partition_and_those_without_go_round(void **state)
{
    (void)state;
    publishing_start(publishing);
    embedded_set_partitions(publishing->broker, "t", 3);
    for (uint32_t i = 0; i < 10; i++) {
        publishing_item(publishing, "t", "v")->key = lw_bytes_of("k1");
    }
    publishing_go(publishing);
    publishing_until(publishing, 10);
    assert_int_equal(stored("t-partition-0"), 10); /* 3,366 modulo 3 */
    publishing_send(publishing, "t", 30);
    publishing_until(publishing, 40);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(stored("t-partition-0"), 20);
    assert_int_equal(stored("t-partition-1"), 10);
    assert_int_equal(stored("t-partition-2"), 10);
}

static void
a_named_partition_is_taken_and_one_that_is_not_there_is_refused(void **state)
{
    (void)state;
    publishing_start(publishing);
    embedded_set_partitions(publishing->broker, "t", 2);
    publishing_item(publishing, "t", "a")->partition = 1;
    (void)publishing_item(publishing, "t-partition-1", "b");
    publishing_item(publishing, "t", "c")->partition = 2;
    publishing_item(publishing, "alone", "d")->partition = 0;
    publishing_item(publishing, "alone", "e")->partition = 1;
    publishing_go(publishing);
    publishing_until(publishing, 5);
    assert_int_equal(stored("t-partition-1"), 2);
    assert_int_equal(publishing->statuses[2], LW_STATUS_NOT_FOUND);
    assert_int_equal(stored("alone"), 1);
    assert_int_equal(publishing->statuses[3], LW_STATUS_OK);
    assert_int_equal(publishing->statuses[4], LW_STATUS_NOT_FOUND);
}

static void
new_partitions_are_used_after_a_minute(void **state)
{
    (void)state;
    publishing_start(publishing);
    embedded_set_partitions(publishing->broker, "t", 1);
    publishing_send(publishing, "t", 4);
    publishing_until(publishing, 4);
    embedded_set_partitions(publishing->broker, "t", 2);
    publishing_pass_ms(publishing, 59000);
    publishing_send(publishing, "t", 4);
    publishing_until(publishing, 8);
    publishing_pass_ms(publishing, 2000);
    publishing_send(publishing, "t", 4); /* asks on the way */
    publishing_until(publishing, 12);
    publishing_rest(publishing);
    assert_int_equal(stored("t-partition-1"), 0);
    publishing_send(publishing, "t", 4);
    publishing_until(publishing, 16);
    assert_int_equal(stored("t-partition-1"), 2);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

/* -- Bounds -------------------------------------------------------------------------------------------- */

static size_t
offer(uint32_t count)
{
    struct lw_publication *items[PUBLISHING_MAX];
    for (uint32_t i = 0; i < count; i++) {
        items[i] = publishing_item(publishing, "t", "v");
    }
    publishing->is_publishing = true;
    size_t accepted = lw_pulsar_publisher_publish(publishing->publisher, items, count);
    publishing->is_publishing = false;
    for (size_t i = accepted; i < count; i++) {
        items[i]->topic = NULL; /* not made */
    }
    publishing->count += (uint32_t)accepted;
    return accepted;
}

static void
a_full_producer_takes_a_prefix_and_says_when_there_is_room(void **state)
{
    (void)state;
    publishing->settings.pending_max = 10;
    publishing_start(publishing);
    assert_int_equal(offer(5), 5);
    publishing_until(publishing, 5);
    assert_int_equal(offer(25), 10);
    assert_int_equal(publishing->rooms, 0);
    publishing_until(publishing, 15);
    assert_int_equal(publishing->rooms, 1);
    assert_int_equal(offer(3), 3);
    publishing_until(publishing, 18);
    assert_int_equal(publishing->rooms, 1);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

static void
bytes_are_bounded_but_one_message_always_goes(void **state)
{
    (void)state;
    publishing->settings.pending_bytes_max = 3;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    assert_int_equal(offer(10), 3);
    publishing_until(publishing, 4);
    struct lw_publication *item = publishing_item(publishing, "t", "longer than the bound");
    (void)item;
    publishing_go(publishing);
    publishing_until(publishing, 5);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

/* Accepted before its topic was known: what has no room at the producer then is not refused. */
static void
what_waited_for_its_topic_waits_for_room_too(void **state)
{
    (void)state;
    publishing->settings.pending_bytes_max = 3;
    publishing_start(publishing);
    publishing_send(publishing, "t", 10);
    publishing_until(publishing, 10);
    publishing_expect_all(publishing, LW_STATUS_OK);
    publishing_expect_stored(publishing, "t", 10);
}

static void
a_message_above_the_limit_is_refused_alone_and_nothing_is_written(void **state)
{
    (void)state;
    static char large[6000];
    publishing->broker_settings.max_message_size = 5000;
    publishing_start(publishing);
    (void)publishing_item(publishing, "t", "0");
    publishing_item(publishing, "t", "")->value = (struct lw_bytes){ large, sizeof large };
    (void)publishing_item(publishing, "t", "1");
    publishing_go(publishing);
    publishing_until(publishing, 3);
    assert_int_equal(publishing->statuses[0], LW_STATUS_OK);
    assert_int_equal(publishing->statuses[1], LW_STATUS_TOO_LARGE);
    assert_int_equal(publishing->statuses[2], LW_STATUS_OK);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 2);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 1);
}

static void
a_large_message_goes_in_chunks(void **state)
{
    (void)state;
    static char large[60000];
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing->broker_settings.max_message_size = 5000;
    publishing->settings.chunks = true;
    publishing_start(publishing);
    publishing_item(publishing, "t", "")->value = (struct lw_bytes){ large, sizeof large };
    publishing_go(publishing);
    publishing_until(publishing, 1);
    publishing_expect_all(publishing, LW_STATUS_OK);
    uint64_t count = embedded_entry_count(publishing->broker, PUBLISHING_TOPIC);
    assert_true(count >= 13);
    size_t bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, i, &metadata, &body));
        assert_int_equal(metadata.chunk_id, i);
        bytes += body.size;
    }
    assert_int_equal(bytes, sizeof large);
    assert_int_equal(publishing_figures(publishing).copies, 0);
}

static void
the_producer_idle_for_longest_makes_room_for_another(void **state)
{
    (void)state;
    char names[8][8];
    publishing->settings.producers_max = 3;
    publishing_start(publishing);
    for (uint32_t i = 0; i < 8; i++) {
        (void)snprintf(names[i], sizeof names[i], "t%u", i);
        (void)publishing_item(publishing, names[i], "v");
        publishing_go(publishing);
        publishing_until(publishing, i + 1);
        publishing_rest(publishing);
        assert_true(embedded_producers(publishing->broker, NULL) <= 3);
    }
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_producers(publishing->broker, "t7"), 1);
    assert_int_equal(embedded_producers(publishing->broker, "t0"), 0);
}

static void
an_idle_producer_is_closed_and_made_again_when_it_is_needed(void **state)
{
    (void)state;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    publishing_pass_ms(publishing, 59000);
    assert_int_equal(embedded_producers(publishing->broker, NULL), 1);
    publishing_pass_ms(publishing, 2000);
    assert_int_equal(embedded_producers(publishing->broker, NULL), 0);
    assert_int_equal(publishing_figures(publishing).producers, 0);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 2);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

static void
a_text_that_is_no_name_is_the_messages_own_fault(void **state)
{
    (void)state;
    publishing_start(publishing);
    (void)publishing_item(publishing, "a/b", "v");
    publishing_go(publishing);
    publishing_until(publishing, 1);
    publishing_expect_all(publishing, LW_STATUS_INVALID);
}

static void
a_close_sends_open_batches_first(void **state)
{
    (void)state;
    start_with_batches(60000);
    publishing_send(publishing, "t", 1);
    publishing_rest(publishing);
    publishing_send(publishing, "t", 20);
    publishing_rest(publishing);
    assert_int_equal(publishing->receipts, 0);
    lw_pulsar_publisher_close(publishing->publisher,
                              publishing->world.host->now + 5000 * LW_MS);
    publishing_until(publishing, 21);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

static void
in_steady_state_nothing_is_allocated(void **state)
{
    (void)state;
    publishing_start(publishing);
    for (uint32_t i = 0; i < 10; i++) {
        publishing_send(publishing, "t", 100);
        publishing_until(publishing, (i + 1) * 100);
    }
    uint64_t before = lw_alloc_count();
    for (uint32_t i = 10; i < 20; i++) {
        publishing_send(publishing, "t", 100);
        publishing_until(publishing, (i + 1) * 100);
    }
    assert_int_equal(lw_alloc_count(), before);
}

/* -- Numbers of messages ------------------------------------------------------------------------------ */

static uint64_t
first_sequence_id(void)
{
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    assert_true(embedded_entry(publishing->broker, "t", 0, &metadata, &body));
    return metadata.sequence_id;
}

static void
a_producer_begins_at_the_first_number_that_is_wanted(void **state)
{
    (void)state;
    publishing->settings.first_sequence_id = 42;
    publishing_start(publishing);
    assert_int_equal(first_sequence_id(), 42);
}

static void
without_a_wanted_number_a_producer_begins_at_the_brokers(void **state)
{
    (void)state;
    publishing_start(publishing);
    assert_int_equal(first_sequence_id(), 0);
}

/* A producer that was idle and is made again must not repeat numbers: they would be dropped. */
static void
a_producer_that_comes_back_goes_on_behind_what_the_broker_has(void **state)
{
    (void)state;
    publishing->broker_settings.is_deduplicating = true;
    publishing->settings.first_sequence_id = 3;
    publishing->settings.producer_name = "me";
    publishing_start(publishing);
    publishing_send(publishing, "t", 5);
    publishing_until(publishing, 5);
    publishing_pass_ms(publishing, 130000);
    assert_int_equal(publishing_figures(publishing).producers, 0);
    publishing_send(publishing, "t", 5);
    publishing_until(publishing, 10);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_message_count(publishing->broker, "t"), 10);
}

/* -- Shares of partitions ------------------------------------------------------------------------------- */

static void
partitions_share_what_a_topic_may_have_waiting(void **state)
{
    (void)state;
    static const struct embedded_fault fault = { .kind = EMBEDDED_LOSE,
                                                 .direction = EMBEDDED_OUT,
                                                 .type = LW_PULSAR_SEND_RECEIPT,
                                                 .times = UINT32_MAX };
    publishing->settings.pending_topic_max = 8;
    publishing_start(publishing);
    embedded_set_partitions(publishing->broker, "t", 4);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    embedded_add_fault(publishing->broker, &fault);
    for (int i = 0; i < 2; i++) {
        publishing_item(publishing, "t", "v")->partition = 2;
    }
    publishing_go(publishing);
    struct lw_publication third = { .topic = "t", .partition = 2 };
    struct lw_publication *const items[] = { &third };
    assert_int_equal(lw_pulsar_publisher_publish(publishing->publisher, items, 1), 0);
    assert_int_equal(publishing_figures(publishing).pending, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_are_stored_in_order_and_each_has_one_receipt),
        TEST(every_spelling_of_a_topic_has_one_producer),
        TEST(a_producer_begins_at_the_first_number_that_is_wanted),
        TEST(without_a_wanted_number_a_producer_begins_at_the_brokers),
        TEST(a_producer_that_comes_back_goes_on_behind_what_the_broker_has),
        TEST(partitions_share_what_a_topic_may_have_waiting),
        TEST(a_reply_goes_from_its_buffer_into_the_socket),
        TEST(a_reply_that_finds_no_company_is_not_copied_into_a_batch),
        TEST(what_came_in_one_turn_is_one_batch),
        TEST(a_batch_waits_for_its_delay_and_no_longer),
        TEST(count_and_bytes_bound_a_batch),
        TEST(batches_by_key_hold_one_key_each),
        TEST(a_delayed_message_goes_alone_behind_the_open_batch),
        TEST(compressed_batches_are_read_back),
        TEST(a_key_goes_to_its_partition_and_those_without_go_round),
        TEST(a_named_partition_is_taken_and_one_that_is_not_there_is_refused),
        TEST(new_partitions_are_used_after_a_minute),
        TEST(a_full_producer_takes_a_prefix_and_says_when_there_is_room),
        TEST(bytes_are_bounded_but_one_message_always_goes),
        TEST(what_waited_for_its_topic_waits_for_room_too),
        TEST(a_message_above_the_limit_is_refused_alone_and_nothing_is_written),
        TEST(a_large_message_goes_in_chunks),
        TEST(the_producer_idle_for_longest_makes_room_for_another),
        TEST(an_idle_producer_is_closed_and_made_again_when_it_is_needed),
        TEST(a_text_that_is_no_name_is_the_messages_own_fault),
        TEST(a_close_sends_open_batches_first),
        TEST(in_steady_state_nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
