/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bump allocation in blocks of 16 KiB; a larger wish gets a block of its own. Nothing is given
 * back before the end.
 */
#include "service/config_arena.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { BLOCK_BYTES = 16 * 1024, ALIGN = 16 };

struct lw_config_block {
    struct lw_config_block *next;
    char padding[ALIGN - sizeof(struct lw_config_block *)];
    char bytes[];
};

void
lw_config_arena_init(struct lw_config_arena *arena)
{
    memset(arena, 0, sizeof(*arena));
}

void
lw_config_arena_deinit(struct lw_config_arena *arena)
{
    while (arena->first) {
        struct lw_config_block *block = arena->first;
        arena->first = block->next;
        lw_free(block);
    }
    lw_config_arena_init(arena);
}

static bool
add_block(struct lw_config_arena *arena, size_t size)
{
    size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct lw_config_block *block = lw_alloc(sizeof(*block) + bytes);
    if (!block) {
        arena->is_failed = true;
        return false;
    }
    block->next = arena->first;
    arena->first = block;
    arena->next = block->bytes;
    arena->left_bytes = bytes;
    return true;
}

void *
lw_config_arena_take(struct lw_config_arena *arena, size_t size)
{
    if (arena->is_failed || size > SIZE_MAX / 2) {
        arena->is_failed = true;
        return NULL;
    }
    size_t rounded = (size + ALIGN - 1) / ALIGN * ALIGN;
    rounded = rounded == 0 ? ALIGN : rounded;
    if (rounded > arena->left_bytes && !add_block(arena, rounded)) {
        return NULL;
    }
    void *taken = arena->next;
    arena->next += rounded;
    arena->left_bytes -= rounded;
    return taken;
}

void *
lw_config_arena_array(struct lw_config_arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->is_failed = true;
        return NULL;
    }
    return lw_config_arena_take(arena, bytes);
}

char *
lw_config_arena_text(struct lw_config_arena *arena, const char *text, size_t length)
{
    char *copy = lw_config_arena_take(arena, length + 1);
    if (copy && length > 0) {
        memcpy(copy, text, length);
    }
    return copy;
}

char *
lw_config_arena_format(struct lw_config_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = lw_config_arena_take(arena, length < 0 ? 1 : (size_t)length + 1);
    if (text && length > 0) {
        va_start(arguments, format);
        (void)vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}
