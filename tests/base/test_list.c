/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive lists and queues: order, removal from anywhere, and that a node which is in no list
 * can be removed without harm.
 */
#include "tests/support/test.h"

#include "base/list.h"

struct node {
    int number;
    struct lw_list link;
    struct lw_queue_node queued;
};

static struct node nodes[4] = {
    { .number = 0 }, { .number = 1 }, { .number = 2 }, { .number = 3 }
};

static int
pop_number(struct lw_list *head)
{
    struct lw_list *node = lw_list_pop(head);
    return node ? LW_CONTAINER(node, struct node, link)->number : -1;
}

static int
pop_queued(struct lw_queue *queue)
{
    struct lw_queue_node *node = lw_queue_pop(queue);
    return node ? LW_CONTAINER(node, struct node, queued)->number : -1;
}

static void
list_pops_in_the_order_of_pushes(void **state)
{
    (void)state;
    struct lw_list head;
    lw_list_init(&head);
    lw_list_push(&head, &nodes[1].link);
    lw_list_push(&head, &nodes[2].link);
    lw_list_push_front(&head, &nodes[0].link);
    assert_ptr_equal(lw_list_first(&head), &nodes[0].link);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pop_number(&head), i);
    }
    assert_int_equal(pop_number(&head), -1);
    assert_true(lw_list_is_empty(&head));
}

static void
node_leaves_the_middle_and_may_be_removed_twice(void **state)
{
    (void)state;
    struct lw_list head;
    lw_list_init(&head);
    for (int i = 0; i < 3; i++) {
        lw_list_push(&head, &nodes[i].link);
    }
    lw_list_remove(&nodes[1].link);
    lw_list_remove(&nodes[1].link);
    assert_true(lw_list_is_empty(&nodes[1].link));
    assert_int_equal(pop_number(&head), 0);
    assert_int_equal(pop_number(&head), 2);
    assert_null(lw_list_first(&head));
}

static void
insert_puts_a_node_before_another(void **state)
{
    (void)state;
    struct lw_list head;
    lw_list_init(&head);
    lw_list_push(&head, &nodes[0].link);
    lw_list_push(&head, &nodes[2].link);
    lw_list_insert(&nodes[2].link, &nodes[1].link);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pop_number(&head), i);
    }
}

static void
queue_is_first_in_first_out_and_usable_after_running_empty(void **state)
{
    (void)state;
    struct lw_queue queue = { NULL, NULL };
    for (int round = 0; round < 2; round++) {
        lw_queue_push(&queue, &nodes[1].queued);
        lw_queue_push(&queue, &nodes[2].queued);
        lw_queue_push_front(&queue, &nodes[0].queued);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(pop_queued(&queue), i);
        }
        assert_int_equal(pop_queued(&queue), -1);
    }
}

static void
queue_that_begins_with_a_push_to_the_front_keeps_its_end(void **state)
{
    (void)state;
    struct lw_queue queue = { NULL, NULL };
    lw_queue_push_front(&queue, &nodes[0].queued);
    lw_queue_push(&queue, &nodes[1].queued);
    assert_int_equal(pop_queued(&queue), 0);
    assert_int_equal(pop_queued(&queue), 1);
}

static void
queue_gives_up_a_node_from_any_place(void **state)
{
    (void)state;
    for (int removed = 0; removed < 3; removed++) {
        struct lw_queue queue = { NULL, NULL };
        for (int i = 0; i < 3; i++) {
            lw_queue_push(&queue, &nodes[i].queued);
        }
        lw_queue_remove(&queue, &nodes[removed].queued);
        lw_queue_push(&queue, &nodes[3].queued);
        for (int i = 0; i < 4; i++) {
            if (i != removed) {
                assert_int_equal(pop_queued(&queue), i);
            }
        }
        assert_int_equal(pop_queued(&queue), -1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_pops_in_the_order_of_pushes),
        cmocka_unit_test(node_leaves_the_middle_and_may_be_removed_twice),
        cmocka_unit_test(insert_puts_a_node_before_another),
        cmocka_unit_test(queue_is_first_in_first_out_and_usable_after_running_empty),
        cmocka_unit_test(queue_that_begins_with_a_push_to_the_front_keeps_its_end),
        cmocka_unit_test(queue_gives_up_a_node_from_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
