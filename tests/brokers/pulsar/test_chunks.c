/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks become messages within bounds: interleaved, repeated, with gaps, too many, too old.
 * When chunks expire and who acknowledges them is the consumer's affair, tested there.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/chunks.h"

struct world {
    struct lw_pulsar_chunks chunks;
    uint64_t acked;
    uint64_t redelivered;
    uint64_t live;
};

static struct world world;

static void
give_up(void *user, struct lw_pulsar_chunk_id id, bool acks)
{
    assert_ptr_equal(user, &world);
    (void)id;
    world.acked += acks;
    world.redelivered += !acks;
}

static int
set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.live = lw_alloc_live();
    world.chunks = (struct lw_pulsar_chunks){
        .count_max = 2, .bytes_max = 1000, .expiry_ns = 60, .give_up = give_up, .user = &world
    };
    lw_list_init(&world.chunks.pending);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_pulsar_chunks_clear(&world.chunks);
    assert_int_equal(world.chunks.bytes, 0);
    assert_int_equal(lw_alloc_live(), world.live);
    return 0;
}

/* A chunk of three, of a message of nine bytes. */
static enum lw_pulsar_chunk_result
add(const char *uuid, int32_t index, uint64_t entry, struct lw_pulsar_chunked **ret_whole)
{
    static const char *const parts[] = { "abc", "def", "ghi" };
    struct lw_pulsar_chunk chunk = { .uuid = lw_bytes_of(uuid),
                                     .body = lw_bytes_of(parts[index]),
                                     .id = { 1, entry },
                                     .index = index,
                                     .count = 3,
                                     .size = 9 };
    return lw_pulsar_chunks_add(&world.chunks, &chunk, 100, ret_whole);
}

static void
interleaved_chunks_become_their_messages(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    assert_int_equal(add("a", 0, 0, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(add("b", 0, 1, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(add("a", 1, 2, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(add("a", 2, 3, &whole), LW_PULSAR_CHUNK_WHOLE);
    assert_memory_equal(whole->data, "abcdefghi", 9);
    assert_int_equal(whole->ids[0].entry, 0);
    assert_int_equal(whole->ids[2].entry, 3);
    assert_int_equal(world.chunks.count, 1);
    lw_pulsar_chunked_free(whole);
    assert_int_equal(world.acked + world.redelivered, 0);
}

static void
a_redelivered_beginning_starts_anew(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    (void)add("a", 0, 0, &whole);
    (void)add("a", 1, 1, &whole);
    assert_int_equal(add("a", 0, 0, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(add("a", 1, 1, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(add("a", 2, 2, &whole), LW_PULSAR_CHUNK_WHOLE);
    lw_pulsar_chunked_free(whole);
    assert_int_equal(world.acked + world.redelivered, 0);
}

static void
chunks_that_were_published_twice_are_acknowledged(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    (void)add("a", 0, 0, &whole);
    (void)add("a", 1, 1, &whole);
    assert_int_equal(add("a", 1, 5, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.acked, 1);
    assert_int_equal(add("a", 1, 1, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.acked, 1);
    assert_int_equal(add("a", 0, 7, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.acked, 3);
}

static void
a_gap_gives_the_message_up(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    (void)add("a", 0, 0, &whole);
    assert_int_equal(add("a", 2, 2, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.redelivered, 2);
    assert_int_equal(add("a", 1, 1, &whole), LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.redelivered, 3);
    assert_int_equal(world.chunks.count, 0);
}

static void
the_oldest_makes_way_for_one_too_many(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    (void)add("a", 0, 0, &whole);
    (void)add("a", 1, 1, &whole);
    (void)add("b", 0, 2, &whole);
    (void)add("c", 0, 3, &whole);
    assert_int_equal(world.redelivered, 2);
    assert_int_equal(world.chunks.count, 2);
    world.chunks.acks_oldest = true;
    (void)add("d", 0, 4, &whole);
    assert_int_equal(world.acked, 1);
}

/* Old, without its beginning: a leftover, unless its beginning was given up here. */
static void
an_old_end_is_a_leftover_only_if_its_beginning_was_not_given_up_here(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    struct lw_pulsar_chunk end = { .uuid = lw_bytes_of("x"),
                                   .body = lw_bytes_of("ghi"),
                                   .id = { 1, 9 },
                                   .index = 2,
                                   .count = 3,
                                   .size = 9,
                                   .is_old = true };
    assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &end, 100, &whole),
                     LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.acked, 1);
    (void)add("a", 0, 0, &whole);
    (void)add("b", 0, 1, &whole);
    (void)add("c", 0, 2, &whole); /* one too many */
    end.uuid = lw_bytes_of("a");
    assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &end, 100, &whole),
                     LW_PULSAR_CHUNK_KEPT);
    assert_int_equal(world.acked, 1);
    assert_int_equal(world.redelivered, 2);
    lw_pulsar_chunks_clear(&world.chunks);
    (void)lw_pulsar_chunks_add(&world.chunks, &end, 100, &whole);
    assert_int_equal(world.acked, 2);
}

static void
what_stays_incomplete_expires(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    (void)add("a", 0, 0, &whole);
    assert_int_equal(lw_pulsar_chunks_expire(&world.chunks, 159), 160);
    assert_int_equal(world.redelivered, 0);
    assert_true(lw_pulsar_chunks_expire(&world.chunks, 160) == UINT64_MAX);
    assert_int_equal(world.redelivered, 1);
}

/* All that came of it, as long as it is told to be or not. */
static void
sizes_that_do_not_add_up_leave_what_came_together(void **state)
{
    (void)state;
    static const char *const lasts[] = { "ef", "efgh" };
    for (uint32_t i = 0; i < 2; i++) {
        struct lw_pulsar_chunked *whole = NULL;
        struct lw_pulsar_chunk chunk = {
            .uuid = lw_bytes_of("a"), .body = lw_bytes_of("abcd"), .count = 2, .size = 7
        };
        assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &chunk, 1, &whole),
                         LW_PULSAR_CHUNK_KEPT);
        chunk.index = 1;
        chunk.id.entry = 5;
        chunk.body = lw_bytes_of(lasts[i]);
        assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &chunk, 1, &whole),
                         LW_PULSAR_CHUNK_BROKEN);
        assert_int_equal(whole->size, 4 + chunk.body.size);
        assert_memory_equal(whole->data, "abcdefgh", whole->size);
        assert_int_equal(whole->count, 2);
        assert_int_equal(whole->ids[1].entry, 5);
        assert_int_equal(world.chunks.count, 0);
        lw_pulsar_chunked_free(whole);
    }
    assert_int_equal(world.acked + world.redelivered, 0);
}

static void
impossible_sizes_are_refused_before_memory_is_taken(void **state)
{
    (void)state;
    struct lw_pulsar_chunked *whole = NULL;
    struct lw_pulsar_chunk chunk = {
        .uuid = lw_bytes_of("a"), .body = lw_bytes_of("abc"), .count = 3, .size = 1001
    };
    uint64_t live = lw_alloc_live();
    assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &chunk, 1, &whole),
                     LW_PULSAR_CHUNK_REFUSED);
    chunk.size = -1;
    assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &chunk, 1, &whole),
                     LW_PULSAR_CHUNK_REFUSED);
    chunk.size = 9;
    chunk.count = INT32_MAX;
    assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &chunk, 1, &whole),
                     LW_PULSAR_CHUNK_REFUSED);
    chunk.count = 3;
    chunk.index = 3;
    assert_int_equal(lw_pulsar_chunks_add(&world.chunks, &chunk, 1, &whole),
                     LW_PULSAR_CHUNK_REFUSED);
    assert_int_equal(lw_alloc_live(), live);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(interleaved_chunks_become_their_messages),
        TEST(a_redelivered_beginning_starts_anew),
        TEST(chunks_that_were_published_twice_are_acknowledged),
        TEST(a_gap_gives_the_message_up),
        TEST(the_oldest_makes_way_for_one_too_many),
        TEST(an_old_end_is_a_leftover_only_if_its_beginning_was_not_given_up_here),
        TEST(what_stays_incomplete_expires),
        TEST(sizes_that_do_not_add_up_leave_what_came_together),
        TEST(impossible_sizes_are_refused_before_memory_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
