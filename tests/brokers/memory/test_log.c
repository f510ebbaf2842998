/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one partition, alone: positions over many chunks, holes, retention, truncation,
 * cursors that stand at the end or on what is gone, chunks that outlive their log, null against
 * empty bytes, and lack of memory at each of its allocations.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/memory/log.h"

static void
fill(struct lw_memory_log *log, int count)
{
    for (int i = 0; i < count; i++) {
        char value[32];
        snprintf(value, sizeof value, "v%d", i);
        struct lw_memory_item item = lw_memory_item_of("t", "k", value);
        assert_non_null(lw_memory_log_append(log, &item));
    }
}

/* The positions that a reader from `from` on sees, as a checksum: count and sum. */
static void
read_from(const struct lw_memory_log *log, int64_t from, size_t *ret_count, int64_t *ret_sum)
{
    struct lw_memory_cursor cursor = lw_memory_log_seek(log, from);
    struct lw_memory_chunk *chunk = NULL;
    const struct lw_memory_record *record;
    int64_t last = from - 1;
    *ret_count = 0;
    *ret_sum = 0;
    while ((record = lw_memory_log_peek(log, &cursor, &chunk)) != NULL) {
        assert_true(record->position > last);
        last = record->position;
        cursor.index++;
        *ret_count += 1;
        *ret_sum += record->position;
    }
}

static void
assert_reads(const struct lw_memory_log *log, int64_t from, size_t count, int64_t sum)
{
    size_t found = 0;
    int64_t found_sum = 0;
    read_from(log, from, &found, &found_sum);
    assert_int_equal(found, count);
    assert_int_equal(found_sum, sum);
}

static void
positions_ascend_over_many_chunks(void **state)
{
    (void)state;
    struct lw_memory_log log = { 0 };
    fill(&log, 1000);
    assert_int_equal(log.end, 1000);
    assert_reads(&log, 0, 1000, 499500);
    assert_reads(&log, 999, 1, 999);
    assert_reads(&log, 1000, 0, 0);
    assert_reads(&log, 517, 483, (517 + 999) * 483 / 2);
    lw_memory_log_deinit(&log);
}

static void
a_cursor_at_the_end_sees_what_comes(void **state)
{
    (void)state;
    for (int count = 0; count < 600; count += 7) {
        struct lw_memory_log log = { 0 };
        fill(&log, count);
        struct lw_memory_cursor cursor = lw_memory_log_seek(&log, log.end);
        struct lw_memory_chunk *chunk = NULL;
        assert_null(lw_memory_log_peek(&log, &cursor, &chunk));
        fill(&log, 1);
        const struct lw_memory_record *record = lw_memory_log_peek(&log, &cursor, &chunk);
        assert_non_null(record);
        assert_int_equal(record->position, count);
        lw_memory_log_deinit(&log);
    }
}

static void
deleted_positions_are_skipped(void **state)
{
    (void)state;
    struct lw_memory_log log = { 0 };
    fill(&log, 10);
    assert_true(lw_memory_log_delete(&log, 0));
    assert_true(lw_memory_log_delete(&log, 5));
    assert_false(lw_memory_log_delete(&log, 5));
    assert_false(lw_memory_log_delete(&log, 10));
    assert_reads(&log, 0, 8, 40);
    assert_reads(&log, 5, 4, 30);
    assert_int_equal(log.count, 8);
    lw_memory_log_deinit(&log);
}

static void
raising_the_start_drops_whole_chunks(void **state)
{
    (void)state;
    struct lw_memory_log log = { 0 };
    fill(&log, 1000);
    uint32_t chunks = log.chunk_count;
    struct lw_memory_cursor old = lw_memory_log_seek(&log, 3);
    lw_memory_log_raise_start(&log, 700);
    assert_true(log.chunk_count < chunks);
    struct lw_memory_chunk *chunk = NULL;
    assert_int_equal(lw_memory_log_peek(&log, &old, &chunk)->position, 700);
    assert_reads(&log, 0, 300, (700 + 999) * 150);
    lw_memory_log_raise_start(&log, 5000);
    assert_int_equal(log.start, 1000);
    assert_int_equal(log.count, 0);
    assert_int_equal(log.bytes, 0);
    lw_memory_log_deinit(&log);
}

static void
retention_keeps_the_newest(void **state)
{
    (void)state;
    struct lw_memory_log log = { 0 };
    for (int i = 0; i < 500; i++) {
        fill(&log, 1);
        lw_memory_log_retain(&log, 10, 0);
    }
    assert_int_equal(log.count, 10);
    assert_int_equal(log.start, 490);
    lw_memory_log_retain(&log, 0, 9); /* "k" and "v0" are 3 bytes */
    assert_int_equal(log.count, 3);
    lw_memory_log_retain(&log, 0, 1); /* the last one stays, whatever its size */
    assert_int_equal(log.count, 1);
    lw_memory_log_deinit(&log);
}

static void
a_held_chunk_outlives_the_log(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    struct lw_memory_log log = { 0 };
    fill(&log, 1);
    struct lw_memory_cursor cursor = lw_memory_log_seek(&log, 0);
    struct lw_memory_chunk *chunk = NULL;
    const struct lw_memory_record *record = lw_memory_log_peek(&log, &cursor, &chunk);
    chunk->refs++;
    lw_memory_log_deinit(&log);
    assert_memory_equal(record->value.data, "v0", 2);
    lw_memory_chunk_release(chunk);
    assert_int_equal(lw_alloc_live(), live);
}

static void
null_and_empty_stay_apart(void **state)
{
    (void)state;
    struct lw_memory_log log = { 0 };
    struct lw_header headers[2] = {
        { { "a", 1 }, { NULL, 0 } },
        { { "", 0 }, { "", 0 } },
    };
    struct lw_memory_item item = lw_memory_item_of("t", NULL, "");
    item.headers = headers;
    item.header_count = 2;
    const struct lw_memory_record *record = lw_memory_log_append(&log, &item);
    assert_null(record->key.data);
    assert_non_null(record->value.data);
    assert_int_equal(record->value.size, 0);
    assert_null(record->headers[0].value.data);
    assert_non_null(record->headers[1].value.data);
    struct lw_memory_chunk *copy = lw_memory_chunk_copy(record);
    lw_memory_log_deinit(&log);
    assert_null(copy->records[0].key.data);
    assert_non_null(copy->records[0].value.data);
    assert_memory_equal(copy->records[0].headers[0].name.data, "a", 1);
    lw_memory_chunk_release(copy);
}

static void
a_truncated_log_begins_again_at_zero(void **state)
{
    (void)state;
    struct lw_memory_log log = { 0 };
    fill(&log, 300);
    struct lw_memory_cursor cursor = lw_memory_log_seek(&log, 250);
    lw_memory_log_truncate(&log);
    struct lw_memory_chunk *chunk = NULL;
    assert_null(lw_memory_log_peek(&log, &cursor, &chunk));
    fill(&log, 2);
    assert_int_equal(lw_memory_log_peek(&log, &cursor, &chunk)->position, 0);
    assert_reads(&log, 0, 2, 1);
    lw_memory_log_deinit(&log);
}

static void
without_memory_nothing_is_appended(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 3; nth++) { /* the list of chunks, the chunk, its block */
        struct lw_memory_log log = { 0 };
        struct lw_memory_item item = lw_memory_item_of("t", "k", "v");
        lw_alloc_fail_at(nth);
        assert_null(lw_memory_log_append(&log, &item));
        lw_alloc_fail_at(0);
        assert_int_equal(log.end, 0);
        assert_int_equal(lw_memory_log_append(&log, &item)->position, 0);
        lw_memory_log_deinit(&log);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_ascend_over_many_chunks),
        cmocka_unit_test(a_cursor_at_the_end_sees_what_comes),
        cmocka_unit_test(deleted_positions_are_skipped),
        cmocka_unit_test(raising_the_start_drops_whole_chunks),
        cmocka_unit_test(retention_keeps_the_newest),
        cmocka_unit_test(a_held_chunk_outlives_the_log),
        cmocka_unit_test(null_and_empty_stay_apart),
        cmocka_unit_test(a_truncated_log_begins_again_at_zero),
        cmocka_unit_test(without_memory_nothing_is_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
