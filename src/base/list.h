/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive lists. `lw_list` is circular and doubly linked: O(1) removal from the middle, a node
 * that is in no list points to itself. `lw_queue` is singly linked, first in first out.
 * Neither allocates; neither knows what it links; use LW_CONTAINER to come back.
 */
#ifndef LW_BASE_LIST_H
#define LW_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define LW_CONTAINER(pointer, type, member)                                                    \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define LW_CONTAINER_CONST(pointer, type, member)                                              \
    ((const type *)(const void *)((const char *)(pointer)-offsetof(type, member)))

struct lw_list {
    struct lw_list *next;
    struct lw_list *prev;
};

static inline void
lw_list_init(struct lw_list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool
lw_list_is_empty(const struct lw_list *list)
{
    return list->next == list;
}

/* Puts `node` before `at`: at the end, when `at` is the head. */
static inline void
lw_list_insert(struct lw_list *at, struct lw_list *node)
{
    node->next = at;
    node->prev = at->prev;
    at->prev->next = node;
    at->prev = node;
}

static inline void
lw_list_push(struct lw_list *head, struct lw_list *node)
{
    lw_list_insert(head, node);
}

static inline void
lw_list_push_front(struct lw_list *head, struct lw_list *node)
{
    lw_list_insert(head->next, node);
}

/* Takes `node` out of its list and leaves it pointing to itself; harmless when in none. */
static inline void
lw_list_remove(struct lw_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    lw_list_init(node);
}

/* Returns the first node, or NULL. */
static inline struct lw_list *
lw_list_first(const struct lw_list *head)
{
    return head->next == head ? NULL : head->next;
}

static inline struct lw_list *
lw_list_pop(struct lw_list *head)
{
    struct lw_list *node = lw_list_first(head);
    if (node) {
        lw_list_remove(node);
    }
    return node;
}

struct lw_queue_node {
    struct lw_queue_node *next;
};

struct lw_queue {
    struct lw_queue_node *first;
    struct lw_queue_node *last;
};

static inline void
lw_queue_push(struct lw_queue *queue, struct lw_queue_node *node)
{
    node->next = NULL;
    if (queue->first) {
        queue->last->next = node;
    } else {
        queue->first = node;
    }
    queue->last = node;
}

static inline void
lw_queue_push_front(struct lw_queue *queue, struct lw_queue_node *node)
{
    node->next = queue->first;
    if (!queue->first) {
        queue->last = node;
    }
    queue->first = node;
}

static inline struct lw_queue_node *
lw_queue_pop(struct lw_queue *queue)
{
    struct lw_queue_node *node = queue->first;
    if (node) {
        queue->first = node->next;
    }
    return node;
}

/* Takes `node`, which is in the queue, out of it. O(place): callers remove near the front. */
static inline void
lw_queue_remove(struct lw_queue *queue, struct lw_queue_node *node)
{
    struct lw_queue_node *before = NULL;
    struct lw_queue_node *at = queue->first;
    while (at != node) {
        before = at;
        at = at->next;
    }
    if (before) {
        before->next = node->next;
    } else {
        queue->first = node->next;
    }
    if (queue->last == node) {
        queue->last = before;
    }
}

#endif
