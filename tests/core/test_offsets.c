/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offsets ledger: transcripts of what is opened, done and safe to commit, the ring's edges
 * (growth, wrap, words, positions beyond 2^53), holes of every origin, lack of memory, and a
 * million random completions against a set of flags. P2 is asserted inside the ledger; here the
 * model says the exact value.
 */
#include "tests/support/test.h"

#include "base/alloc.h"
#include "core/offsets.h"

enum { SMALL = 1024 };

static void
open_all(struct lw_offsets *offsets, const int64_t *positions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(lw_offsets_open(offsets, positions[i]), LW_STATUS_OK);
    }
}

static void
open_range(struct lw_offsets *offsets, int64_t from, int64_t to)
{
    for (int64_t position = from; position < to; position++) {
        assert_int_equal(lw_offsets_open(offsets, position), LW_STATUS_OK);
    }
}

static void
finish_range(struct lw_offsets *offsets, int64_t from, int64_t to)
{
    for (int64_t position = from; position < to; position++) {
        assert_true(lw_offsets_done(offsets, position));
    }
}

/* -- What is safe ------------------------------------------------------------------------------ */

static void
new_ledger_commits_where_it_started(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 42, SMALL);
    assert_int_equal(lw_offsets_safe(&offsets), 42);
    assert_null(offsets.bits);
    lw_offsets_deinit(&offsets);
}

static void
received_but_not_run_holds_the_commit(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 10);
    assert_int_equal(lw_offsets_safe(&offsets), 0);
    finish_range(&offsets, 0, 5);
    assert_int_equal(lw_offsets_safe(&offsets), 5);
    finish_range(&offsets, 6, 10);
    assert_int_equal(lw_offsets_safe(&offsets), 5);
    lw_offsets_deinit(&offsets);
}

static void
commit_is_the_next_position_to_read(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 10);
    finish_range(&offsets, 0, 10);
    assert_int_equal(lw_offsets_safe(&offsets), 10);
    assert_int_equal(lw_offsets_open(&offsets, 10), LW_STATUS_OK);
    lw_offsets_deinit(&offsets);
}

static void
first_opened_position_decides_when_the_start_is_unknown(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, -1, SMALL);
    assert_int_equal(lw_offsets_safe(&offsets), -1);
    assert_false(lw_offsets_done(&offsets, -1));
    assert_int_equal(lw_offsets_open(&offsets, -1), LW_STATUS_ALREADY);
    assert_int_equal(lw_offsets_open(&offsets, 500), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), 500);
    assert_true(lw_offsets_done(&offsets, 500));
    assert_int_equal(lw_offsets_safe(&offsets), 501);
    lw_offsets_deinit(&offsets);
}

static void
end_of_an_empty_log_decides_when_the_start_is_unknown(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, -1, SMALL);
    assert_int_equal(lw_offsets_advance_to(&offsets, 77), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), 77);
    assert_int_equal(lw_offsets_open(&offsets, 77), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), 77);
    lw_offsets_deinit(&offsets);
}

static void
completing_twice_changes_nothing(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 3);
    assert_true(lw_offsets_done(&offsets, 1));
    assert_false(lw_offsets_done(&offsets, 1));
    assert_true(lw_offsets_done(&offsets, 0));
    assert_int_equal(lw_offsets_safe(&offsets), 2);
    assert_false(lw_offsets_done(&offsets, 0));
    assert_false(lw_offsets_done(&offsets, 3));
    assert_false(lw_offsets_done(&offsets, INT64_MAX));
    assert_int_equal(lw_offsets_safe(&offsets), 2);
    assert_int_equal(offsets.open, 1);
    lw_offsets_deinit(&offsets);
}

static void
opening_below_next_is_refused(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 10, SMALL);
    open_range(&offsets, 10, 12);
    assert_int_equal(lw_offsets_open(&offsets, 11), LW_STATUS_ALREADY);
    assert_int_equal(lw_offsets_open(&offsets, 9), LW_STATUS_ALREADY);
    assert_int_equal(lw_offsets_open(&offsets, INT64_MIN), LW_STATUS_ALREADY);
    assert_int_equal(lw_offsets_open(&offsets, INT64_MAX), LW_STATUS_INVALID);
    assert_int_equal(offsets.open, 2);
    lw_offsets_deinit(&offsets);
}

static void
position_that_was_reset_backwards_is_committed(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 1000, SMALL);
    open_range(&offsets, 1000, 1010);
    lw_offsets_deinit(&offsets);
    /* The log was lost: a new ownership begins at 0. */
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 100);
    finish_range(&offsets, 0, 100);
    assert_int_equal(lw_offsets_safe(&offsets), 100);
    lw_offsets_deinit(&offsets);
}

static void
ownership_without_traffic_never_moves_the_commit(void **state)
{
    (void)state;
    int64_t committed = 3;
    for (int i = 0; i < 20; i++) {
        struct lw_offsets offsets;
        lw_offsets_init(&offsets, committed, SMALL);
        committed = lw_offsets_safe(&offsets);
        lw_offsets_deinit(&offsets);
    }
    assert_int_equal(committed, 3);
}

/* -- Holes ---------------------------------------------------------------------------------------- */

static void
control_records_between_messages_do_not_hold_the_commit(void **state)
{
    (void)state;
    static const int64_t positions[] = { 0, 2, 4, 6 };
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_all(&offsets, positions, 4);
    lw_offsets_done(&offsets, 0);
    assert_int_equal(lw_offsets_safe(&offsets), 2); /* 1 is no message: 2 is as good as 1 */
    lw_offsets_done(&offsets, 2);
    assert_int_equal(lw_offsets_safe(&offsets), 4);
    lw_offsets_done(&offsets, 6);
    assert_int_equal(lw_offsets_safe(&offsets), 4);
    lw_offsets_done(&offsets, 4);
    assert_int_equal(lw_offsets_safe(&offsets), 7);
    assert_int_equal(offsets.open, 0);
    lw_offsets_deinit(&offsets);
}

static void
compacted_first_position_does_not_hold_the_commit(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 5, SMALL);
    open_range(&offsets, 9, 13);
    assert_int_equal(lw_offsets_safe(&offsets), 9);
    assert_false(lw_offsets_is_open(&offsets, 8));
    assert_false(lw_offsets_done(&offsets, 7));
    finish_range(&offsets, 9, 13);
    assert_int_equal(lw_offsets_safe(&offsets), 13);
    lw_offsets_deinit(&offsets);
}

static void
hole_is_never_open(void **state)
{
    (void)state;
    static const int64_t positions[] = { 10, 11, 15, 16, 40 };
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 10, SMALL);
    open_all(&offsets, positions, 5);
    size_t next = 0;
    for (int64_t position = 0; position < 100; position++) {
        bool is_opened = next < 5 && positions[next] == position;
        next += is_opened;
        assert_int_equal(lw_offsets_is_open(&offsets, position), is_opened);
    }
    lw_offsets_deinit(&offsets);
}

static void
trailing_control_records_are_closed_by_advancing(void **state)
{
    (void)state;
    static const int64_t positions[] = { 0, 2 };
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_all(&offsets, positions, 2);
    assert_int_equal(lw_offsets_advance_to(&offsets, 4), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), 0);
    lw_offsets_done(&offsets, 2);
    assert_int_equal(lw_offsets_safe(&offsets), 0);
    lw_offsets_done(&offsets, 0);
    assert_int_equal(lw_offsets_safe(&offsets), 4);
    lw_offsets_deinit(&offsets);
}

static void
end_of_log_never_passes_an_open_position(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 1);
    assert_int_equal(lw_offsets_advance_to(&offsets, 1), LW_STATUS_OK);
    assert_int_equal(lw_offsets_open(&offsets, 1), LW_STATUS_OK);
    assert_int_equal(lw_offsets_open(&offsets, 2), LW_STATUS_OK);
    assert_true(lw_offsets_done(&offsets, 0));
    assert_int_equal(lw_offsets_safe(&offsets), 1);
    finish_range(&offsets, 1, 3);
    assert_int_equal(lw_offsets_safe(&offsets), 3);
    lw_offsets_deinit(&offsets);
}

static void
advancing_never_goes_back(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 100, SMALL);
    open_range(&offsets, 100, 105);
    assert_int_equal(lw_offsets_advance_to(&offsets, 50), LW_STATUS_OK);
    assert_int_equal(lw_offsets_advance_to(&offsets, 105), LW_STATUS_OK);
    assert_int_equal(lw_offsets_advance_to(&offsets, -1), LW_STATUS_INVALID);
    assert_int_equal(lw_offsets_advance_to(&offsets, INT64_MAX), LW_STATUS_INVALID);
    assert_int_equal(offsets.next, 105);
    assert_int_equal(offsets.open, 5);
    lw_offsets_deinit(&offsets);
}

static void
huge_hole_waits_until_nothing_is_open(void **state)
{
    (void)state;
    int64_t far = INT64_C(1) << 40;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 2);
    assert_int_equal(lw_offsets_open(&offsets, far), LW_STATUS_AGAIN);
    lw_offsets_done(&offsets, 0);
    assert_int_equal(lw_offsets_open(&offsets, far), LW_STATUS_AGAIN);
    assert_int_equal(offsets.next, 2);
    lw_offsets_done(&offsets, 1);
    assert_int_equal(lw_offsets_open(&offsets, far), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), far);
    assert_true(lw_offsets_done(&offsets, far));
    assert_int_equal(lw_offsets_safe(&offsets), far + 1);
    assert_int_equal(offsets.mask, SMALL - 1);
    lw_offsets_deinit(&offsets);
}

static void
huge_advance_waits_until_nothing_is_open(void **state)
{
    (void)state;
    int64_t far = INT64_C(1) << 40;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, SMALL);
    open_range(&offsets, 0, 1);
    assert_int_equal(lw_offsets_advance_to(&offsets, far), LW_STATUS_AGAIN);
    assert_int_equal(lw_offsets_safe(&offsets), 0);
    lw_offsets_done(&offsets, 0);
    assert_int_equal(lw_offsets_advance_to(&offsets, far), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), far);
    lw_offsets_deinit(&offsets);
}

static void
holes_of_a_thousand_use_whole_words(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 3, 65536);
    for (int64_t position = 7; position < 60000; position += 1000) {
        assert_int_equal(lw_offsets_open(&offsets, position), LW_STATUS_OK);
    }
    assert_int_equal(lw_offsets_safe(&offsets), 7);
    assert_int_equal(lw_offsets_gap_count(&offsets), 59);
    for (int64_t position = 7; position < 60000; position += 1000) {
        assert_int_equal(lw_offsets_safe(&offsets), position);
        assert_true(lw_offsets_done(&offsets, position));
    }
    assert_int_equal(lw_offsets_safe(&offsets), 59008);
    lw_offsets_deinit(&offsets);
}

/* -- The ring ------------------------------------------------------------------------------------- */

static void
blocked_head_stops_the_partition_at_its_window(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 10, SMALL);
    open_range(&offsets, 10, 10 + SMALL);
    finish_range(&offsets, 11, 10 + SMALL);
    assert_true(lw_offsets_is_full(&offsets));
    assert_int_equal(lw_offsets_open(&offsets, 10 + SMALL), LW_STATUS_AGAIN);
    assert_int_equal(lw_offsets_safe(&offsets), 10);
    lw_offsets_done(&offsets, 10);
    assert_false(lw_offsets_is_full(&offsets));
    assert_int_equal(lw_offsets_open(&offsets, 10 + SMALL), LW_STATUS_OK);
    assert_int_equal(lw_offsets_safe(&offsets), 10 + SMALL);
    lw_offsets_deinit(&offsets);
}

static void
window_is_exact(void **state)
{
    (void)state;
    static const uint32_t windows[][2] = { { 0, 1 },        { 1, 1 },   { 63, 63 },
                                           { 64, 64 },      { 65, 65 }, { 1000, 1000 },
                                           { 65537, 65537 } };
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        struct lw_offsets offsets;
        lw_offsets_init(&offsets, 0, windows[i][0]);
        open_range(&offsets, 0, windows[i][1]);
        assert_true(lw_offsets_is_full(&offsets));
        assert_int_equal(lw_offsets_open(&offsets, windows[i][1]), LW_STATUS_AGAIN);
        lw_offsets_deinit(&offsets);
    }
}

/* Every start within a word, so that the first and the last word of the range share one. */
static void
growing_keeps_every_bit(void **state)
{
    (void)state;
    for (int64_t start = 0; start < 130; start++) {
        struct lw_offsets offsets;
        lw_offsets_init(&offsets, start, 65536 * 4);
        open_range(&offsets, start, start + 65536);
        for (int64_t position = start + 1; position < start + 65536; position += 3) {
            lw_offsets_done(&offsets, position);
        }
        open_range(&offsets, start + 65536, start + 65600);
        assert_int_equal(offsets.mask, 131071);
        for (int64_t position = start; position < start + 65600; position++) {
            bool is_done = position < start + 65536 && (position - start) % 3 == 1;
            assert_int_equal(lw_offsets_is_open(&offsets, position), !is_done);
        }
        assert_int_equal(lw_offsets_gap_count(&offsets), 21845);
        lw_offsets_deinit(&offsets);
    }
}

static void
ring_grows_over_a_hole_in_one_go(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, 1048576);
    open_range(&offsets, 0, 1);
    assert_int_equal(lw_offsets_open(&offsets, 1048575), LW_STATUS_OK);
    assert_int_equal(offsets.mask, 1048575);
    assert_true(lw_offsets_is_full(&offsets));
    assert_int_equal(lw_offsets_open(&offsets, 1048576), LW_STATUS_AGAIN);
    lw_offsets_done(&offsets, 0);
    assert_int_equal(lw_offsets_safe(&offsets), 1048575);
    lw_offsets_deinit(&offsets);
}

static void
ring_wraps_for_ever_without_growing(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 5, 64);
    uint64_t allocations = lw_alloc_count();
    for (int64_t position = 5; position < 5 + 64 * 100; position++) {
        assert_int_equal(lw_offsets_open(&offsets, position), LW_STATUS_OK);
        if (position >= 5 + 60) {
            assert_true(lw_offsets_done(&offsets, position - 60));
        }
    }
    assert_int_equal(lw_alloc_count() - allocations, 1);
    assert_int_equal(lw_offsets_safe(&offsets), 5 + 64 * 100 - 60);
    lw_offsets_deinit(&offsets);
}

static void
positions_beyond_what_a_double_holds_are_exact(void **state)
{
    (void)state;
    static const int64_t starts[] = { (INT64_C(1) << 31) - 1, (INT64_C(1) << 53) - 3,
                                      (INT64_C(1) << 62) - 5000 };
    for (size_t i = 0; i < 3; i++) {
        struct lw_offsets offsets;
        lw_offsets_init(&offsets, starts[i], 4096);
        open_range(&offsets, starts[i], starts[i] + 4096);
        finish_range(&offsets, starts[i] + 1, starts[i] + 4096);
        assert_int_equal(lw_offsets_safe(&offsets), starts[i]);
        assert_true(lw_offsets_done(&offsets, starts[i]));
        assert_int_equal(lw_offsets_safe(&offsets), starts[i] + 4096);
        lw_offsets_deinit(&offsets);
    }
}

static void
ledger_without_memory_changes_nothing(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 7, 1048576);
    lw_alloc_fail_at(1);
    assert_int_equal(lw_offsets_open(&offsets, 9), LW_STATUS_NO_MEMORY);
    assert_int_equal(lw_offsets_safe(&offsets), 7);
    open_range(&offsets, 9, 12);
    lw_alloc_fail_at(1);
    assert_int_equal(lw_offsets_open(&offsets, 100000), LW_STATUS_NO_MEMORY);
    assert_int_equal(offsets.next, 12);
    assert_int_equal(lw_offsets_open(&offsets, 100000), LW_STATUS_OK);
    lw_alloc_fail_at(0);
    lw_offsets_deinit(&offsets);
}

static void
ten_million_open_positions_fit_in_two_mebibytes(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 0, 1U << 24);
    open_range(&offsets, 0, 10000000);
    assert_true((offsets.mask + 1) / 8 <= 2 * 1024 * 1024);
    assert_int_equal(offsets.open, 10000000);
    lw_offsets_deinit(&offsets);
}

static void
gaps_are_runs_of_done_above_the_first_open(void **state)
{
    (void)state;
    struct lw_offsets offsets;
    lw_offsets_init(&offsets, 60, SMALL);
    assert_int_equal(lw_offsets_gap_count(&offsets), 0);
    open_range(&offsets, 60, 200);
    assert_int_equal(lw_offsets_gap_count(&offsets), 0);
    finish_range(&offsets, 60, 62); /* touches the base: no gap before it */
    assert_int_equal(lw_offsets_gap_count(&offsets), 0);
    finish_range(&offsets, 63, 65); /* over the edge of a word */
    finish_range(&offsets, 127, 129);
    finish_range(&offsets, 199, 200);
    assert_int_equal(lw_offsets_gap_count(&offsets), 3);
    assert_int_equal(lw_offsets_safe(&offsets), 62);
    assert_int_equal(lw_offsets_gap_count(&offsets), 3);
    lw_offsets_deinit(&offsets);
}

/* -- Property: P2 against a model ------------------------------------------------------------------ */

enum { COMPLETIONS = 1000000, IN_HAND = 5000, MODEL = 1 << 22 };

struct model {
    struct lw_offsets offsets;
    uint8_t *is_blocking; /* by position: opened and not done */
    int64_t in_hand[IN_HAND];
    uint32_t count;
    int64_t next;
    int64_t safe;
    uint64_t random;
};

static uint64_t
draw(struct model *model)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random;
}

static void
model_open(struct model *model)
{
    if (draw(model) % 16 == 0) {
        model->next += (int64_t)(draw(model) % 40);
    }
    enum lw_status status = lw_offsets_open(&model->offsets, model->next);
    if (status == LW_STATUS_AGAIN) {
        assert_true(model->count > 0);
        return;
    }
    assert_int_equal(status, LW_STATUS_OK);
    model->is_blocking[model->next] = 1;
    model->in_hand[model->count++] = model->next++;
}

static void
model_finish(struct model *model)
{
    uint32_t i = (uint32_t)(draw(model) % model->count);
    int64_t position = model->in_hand[i];
    model->in_hand[i] = model->in_hand[--model->count];
    model->is_blocking[position] = 0;
    assert_true(lw_offsets_done(&model->offsets, position));
}

static void
model_check(struct model *model)
{
    while (model->safe < model->next && !model->is_blocking[model->safe]) {
        model->safe++;
    }
    /* A hole at the end is known to the ledger only once something above it is opened. */
    int64_t end = model->offsets.next;
    assert_int_equal(lw_offsets_safe(&model->offsets), model->safe < end ? model->safe : end);
    assert_int_equal(model->offsets.open, model->count);
}

static void
million_random_completions_match_a_model(void **state)
{
    (void)state;
    static struct model model;
    model.random = 2463534242U;
    model.is_blocking = lw_alloc(MODEL);
    assert_non_null(model.is_blocking);
    lw_offsets_init(&model.offsets, 0, 1U << 20);
    for (int done = 0; done < COMPLETIONS;) {
        bool is_room = model.count < IN_HAND && model.next < MODEL - 64;
        if (is_room && (model.count == 0 || draw(&model) % 2 == 0)) {
            model_open(&model);
        } else {
            model_finish(&model);
            done++;
        }
        if (draw(&model) % 8 == 0) {
            model_check(&model);
        }
    }
    model_check(&model);
    assert_true(model.next > COMPLETIONS);
    lw_offsets_deinit(&model.offsets);
    lw_free(model.is_blocking);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_ledger_commits_where_it_started),
        cmocka_unit_test(received_but_not_run_holds_the_commit),
        cmocka_unit_test(commit_is_the_next_position_to_read),
        cmocka_unit_test(first_opened_position_decides_when_the_start_is_unknown),
        cmocka_unit_test(end_of_an_empty_log_decides_when_the_start_is_unknown),
        cmocka_unit_test(completing_twice_changes_nothing),
        cmocka_unit_test(opening_below_next_is_refused),
        cmocka_unit_test(position_that_was_reset_backwards_is_committed),
        cmocka_unit_test(ownership_without_traffic_never_moves_the_commit),
        cmocka_unit_test(control_records_between_messages_do_not_hold_the_commit),
        cmocka_unit_test(compacted_first_position_does_not_hold_the_commit),
        cmocka_unit_test(hole_is_never_open),
        cmocka_unit_test(trailing_control_records_are_closed_by_advancing),
        cmocka_unit_test(end_of_log_never_passes_an_open_position),
        cmocka_unit_test(advancing_never_goes_back),
        cmocka_unit_test(huge_hole_waits_until_nothing_is_open),
        cmocka_unit_test(huge_advance_waits_until_nothing_is_open),
        cmocka_unit_test(holes_of_a_thousand_use_whole_words),
        cmocka_unit_test(blocked_head_stops_the_partition_at_its_window),
        cmocka_unit_test(window_is_exact),
        cmocka_unit_test(growing_keeps_every_bit),
        cmocka_unit_test(ring_grows_over_a_hole_in_one_go),
        cmocka_unit_test(ring_wraps_for_ever_without_growing),
        cmocka_unit_test(positions_beyond_what_a_double_holds_are_exact),
        cmocka_unit_test(ledger_without_memory_changes_nothing),
        cmocka_unit_test(ten_million_open_positions_fit_in_two_mebibytes),
        cmocka_unit_test(gaps_are_runs_of_done_above_the_first_open),
        cmocka_unit_test(million_random_completions_match_a_model),
    };
    return cmocka_run_group_tests_name("core.offsets", tests, NULL, NULL);
}
