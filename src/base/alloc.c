/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: counts every allocation, lets tests fail the n-th one, and forwards to malloc or to
 * the allocator of the embedding program. Owns no memory itself. Any thread; the counters are
 * relaxed atomics, since they are read for figures and never decide anything in production.
 * With a foreign allocator zeroing is ours, so that it needs three functions and not four.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct lw_allocator allocator;
static atomic_uint_least64_t allocation_count;
static atomic_uint_least64_t free_count;
static atomic_uint_least64_t fail_countdown; /* 0: off */

void
lw_allocator_set(const struct lw_allocator *replacement)
{
    allocator = *replacement;
}

/* Counts one allocation; true when it is the one that a test wants to fail. */
static bool
is_refused(void)
{
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0, 1)) {
        return false;
    }
    return atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) == 1;
}

static void *
counted(void *pointer)
{
    if (!pointer) {
        atomic_fetch_add_explicit(&free_count, 1, memory_order_relaxed);
    }
    return pointer;
}

void *
lw_alloc(size_t size)
{
    if (is_refused()) {
        return counted(NULL);
    }
    if (!allocator.alloc) {
        return counted(calloc(1, size ? size : 1));
    }
    void *pointer = allocator.alloc(size ? size : 1, allocator.user);
    if (pointer) {
        memset(pointer, 0, size);
    }
    return counted(pointer);
}

void *
lw_alloc_array(size_t count, size_t size)
{
    size_t total = 0;
    return __builtin_mul_overflow(count, size, &total) ? NULL : lw_alloc(total);
}

void *
lw_resize_array(void *pointer, size_t count, size_t size)
{
    size_t total = 0;
    if (__builtin_mul_overflow(count, size, &total)) {
        return NULL;
    }
    if (is_refused()) {
        return counted(NULL);
    }
    total = total ? total : 1;
    void *resized = allocator.resize ? allocator.resize(pointer, total, allocator.user)
                                     : realloc(pointer, total);
    if (resized && pointer) {
        atomic_fetch_add_explicit(&free_count, 1, memory_order_relaxed);
    }
    return counted(resized);
}

void *
lw_copy_bytes(const void *data, size_t size)
{
    void *copy = lw_alloc(size);
    if (copy && size) {
        memcpy(copy, data, size);
    }
    return copy;
}

char *
lw_copy_text_n(const char *text, size_t length)
{
    char *copy = length == SIZE_MAX ? NULL : lw_alloc(length + 1);
    if (copy && length) {
        memcpy(copy, text, length);
    }
    return copy;
}

char *
lw_copy_text(const char *text)
{
    return text ? lw_copy_text_n(text, strlen(text)) : NULL;
}

void
lw_free(void *pointer)
{
    if (!pointer) {
        return;
    }
    atomic_fetch_add_explicit(&free_count, 1, memory_order_relaxed);
    if (allocator.free) {
        allocator.free(pointer, allocator.user);
    } else {
        free(pointer);
    }
}

void
lw_alloc_fail_at(uint64_t nth)
{
    atomic_store_explicit(&fail_countdown, nth, memory_order_relaxed);
}

uint64_t
lw_alloc_count(void)
{
    return atomic_load_explicit(&allocation_count, memory_order_relaxed);
}

uint64_t
lw_alloc_live(void)
{
    uint64_t freed = atomic_load_explicit(&free_count, memory_order_relaxed);
    return atomic_load_explicit(&allocation_count, memory_order_relaxed) - freed;
}
