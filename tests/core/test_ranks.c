/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of ranks: the best rank is first, equals take turns (P4), joining and leaving keep the
 * two levels of the bitmap true, against a naive scan.
 */
#include "tests/support/test.h"

#include "base/alloc.h"
#include "core/ranks.h"

enum { NODES = 10 };

struct fixture {
    struct lw_ranks ranks;
    struct lw_rank_node nodes[NODES];
};

static void
fixture_init(struct fixture *fixture, const uint32_t *node_ranks, size_t count)
{
    assert_int_equal(lw_ranks_init(&fixture->ranks, LW_RANKS_MAX), LW_STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        lw_rank_node_init(&fixture->nodes[i], node_ranks[i]);
    }
}

static void
empty_map_has_no_first(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0);
    assert_null(lw_ranks_first(&fixture.ranks));
    lw_ranks_deinit(&fixture.ranks);
}

static void
lowest_rank_is_first(void **state)
{
    (void)state;
    static const uint32_t node_ranks[] = { 4095, 64, 63, 0 };
    struct fixture fixture;
    fixture_init(&fixture, node_ranks, 4);
    for (int i = 0; i < 4; i++) {
        lw_ranks_add(&fixture.ranks, &fixture.nodes[i]);
        assert_ptr_equal(lw_ranks_first(&fixture.ranks), &fixture.nodes[i]);
    }
    for (int i = 3; i >= 0; i--) {
        assert_ptr_equal(lw_ranks_first(&fixture.ranks), &fixture.nodes[i]);
        lw_ranks_remove(&fixture.ranks, &fixture.nodes[i]);
    }
    assert_null(lw_ranks_first(&fixture.ranks));
    lw_ranks_deinit(&fixture.ranks);
}

static void
equals_take_turns(void **state)
{
    (void)state;
    static const uint32_t node_ranks[] = { 7, 7, 7 };
    struct fixture fixture;
    fixture_init(&fixture, node_ranks, 3);
    for (int i = 0; i < 3; i++) {
        lw_ranks_add(&fixture.ranks, &fixture.nodes[i]);
    }
    for (int turn = 0; turn < 12; turn++) {
        struct lw_rank_node *first = lw_ranks_first(&fixture.ranks);
        assert_ptr_equal(first, &fixture.nodes[turn % 3]);
        lw_ranks_rotate(&fixture.ranks, first);
    }
    lw_ranks_deinit(&fixture.ranks);
}

static void
rotating_the_only_one_keeps_it(void **state)
{
    (void)state;
    static const uint32_t node_ranks[] = { 3 };
    struct fixture fixture;
    fixture_init(&fixture, node_ranks, 1);
    lw_ranks_add(&fixture.ranks, &fixture.nodes[0]);
    lw_ranks_rotate(&fixture.ranks, &fixture.nodes[0]);
    assert_ptr_equal(lw_ranks_first(&fixture.ranks), &fixture.nodes[0]);
    lw_ranks_deinit(&fixture.ranks);
}

static void
joining_and_leaving_twice_are_harmless(void **state)
{
    (void)state;
    static const uint32_t node_ranks[] = { 100, 100 };
    struct fixture fixture;
    fixture_init(&fixture, node_ranks, 2);
    lw_ranks_add(&fixture.ranks, &fixture.nodes[0]);
    lw_ranks_add(&fixture.ranks, &fixture.nodes[1]);
    lw_ranks_add(&fixture.ranks, &fixture.nodes[0]);
    assert_ptr_equal(lw_ranks_first(&fixture.ranks), &fixture.nodes[0]);
    lw_ranks_remove(&fixture.ranks, &fixture.nodes[0]);
    lw_ranks_remove(&fixture.ranks, &fixture.nodes[0]);
    assert_ptr_equal(lw_ranks_first(&fixture.ranks), &fixture.nodes[1]);
    lw_ranks_remove(&fixture.ranks, &fixture.nodes[1]);
    assert_null(lw_ranks_first(&fixture.ranks));
    lw_ranks_deinit(&fixture.ranks);
}

static void
only_a_possible_number_of_ranks_is_accepted(void **state)
{
    (void)state;
    struct lw_ranks ranks;
    assert_int_equal(lw_ranks_init(&ranks, 0), LW_STATUS_INVALID);
    assert_int_equal(lw_ranks_init(&ranks, LW_RANKS_MAX + 1), LW_STATUS_INVALID);
    lw_ranks_deinit(&ranks);
    lw_alloc_fail_at(1);
    assert_int_equal(lw_ranks_init(&ranks, 1), LW_STATUS_NO_MEMORY);
    lw_alloc_fail_at(0);
    lw_ranks_deinit(&ranks);
}

static void
path_of_a_choice_allocates_nothing(void **state)
{
    (void)state;
    static const uint32_t node_ranks[] = { 1, 2 };
    struct fixture fixture;
    fixture_init(&fixture, node_ranks, 2);
    uint64_t allocations = lw_alloc_count();
    for (int i = 0; i < 100; i++) {
        lw_ranks_add(&fixture.ranks, &fixture.nodes[i % 2]);
        lw_ranks_rotate(&fixture.ranks, lw_ranks_first(&fixture.ranks));
        lw_ranks_remove(&fixture.ranks, lw_ranks_first(&fixture.ranks));
    }
    assert_int_equal(lw_alloc_count(), allocations);
    lw_ranks_deinit(&fixture.ranks);
}

enum { MANY = 300 };

static uint32_t
best_rank(const struct lw_rank_node *nodes)
{
    uint32_t best = UINT32_MAX;
    for (int i = 0; i < MANY; i++) {
        best = nodes[i].is_in && nodes[i].rank < best ? nodes[i].rank : best;
    }
    return best;
}

static void
first_is_always_the_best_of_those_that_are_in(void **state)
{
    (void)state;
    static struct lw_rank_node nodes[MANY];
    struct lw_ranks ranks;
    uint64_t random = 88172645463325252U;
    assert_int_equal(lw_ranks_init(&ranks, LW_RANKS_MAX), LW_STATUS_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        lw_rank_node_init(&nodes[i], i * i * 31 % LW_RANKS_MAX);
    }
    for (int step = 0; step < 50000; step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        struct lw_rank_node *node = &nodes[(random >> 33) % MANY];
        /* Fewer join than leave, so that the map is empty now and then. */
        if ((random >> 60) < 7) {
            lw_ranks_add(&ranks, node);
        } else {
            lw_ranks_remove(&ranks, node);
            struct lw_rank_node *again = lw_ranks_first(&ranks);
            if (again != NULL && (random >> 60) == 15) {
                lw_ranks_remove(&ranks, again);
            }
        }
        struct lw_rank_node *first = lw_ranks_first(&ranks);
        assert_int_equal(first != NULL ? first->rank : UINT32_MAX, best_rank(nodes));
    }
    lw_ranks_deinit(&ranks);
}

/* Whoever leaves and joins again stands behind all that had their turn before it. */
static void
joining_in_turn_keeps_a_ring_in_the_order_of_turns(void **state)
{
    (void)state;
    static struct lw_rank_node nodes[MANY];
    struct lw_ranks ranks;
    uint64_t random = 88172645463325252U;
    uint64_t turns = 0;
    assert_int_equal(lw_ranks_init(&ranks, 1), LW_STATUS_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        lw_rank_node_init(&nodes[i], 0);
    }
    for (int step = 0; step < 20000; step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        struct lw_rank_node *node = &nodes[(random >> 33) % MANY];
        lw_ranks_remove(&ranks, node);
        node->turn = (random >> 60) < 8 ? ++turns : node->turn;
        if ((random >> 59) % 4 != 0) {
            lw_ranks_add_in_turn(&ranks, node);
        }
        uint64_t last = 0;
        for (struct lw_list *at = ranks.rings[0].next; at != &ranks.rings[0]; at = at->next) {
            assert_true(lw_rank_turn(at) >= last);
            last = lw_rank_turn(at);
        }
    }
    lw_ranks_deinit(&ranks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_map_has_no_first),
        cmocka_unit_test(lowest_rank_is_first),
        cmocka_unit_test(equals_take_turns),
        cmocka_unit_test(rotating_the_only_one_keeps_it),
        cmocka_unit_test(joining_and_leaving_twice_are_harmless),
        cmocka_unit_test(only_a_possible_number_of_ranks_is_accepted),
        cmocka_unit_test(path_of_a_choice_allocates_nothing),
        cmocka_unit_test(first_is_always_the_best_of_those_that_are_in),
        cmocka_unit_test(joining_in_turn_keeps_a_ring_in_the_order_of_turns),
    };
    return cmocka_run_group_tests_name("core.ranks", tests, NULL, NULL);
}
