/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one configuration: blocks that are freed together. Whoever loads a configuration
 * makes thousands of small texts and nodes that all live as long as the result. A failure is
 * remembered: later calls give NULL at once, and the loader asks `is_failed` in the end.
 */
#ifndef LW_SERVICE_CONFIG_ARENA_H
#define LW_SERVICE_CONFIG_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct lw_config_arena {
    struct lw_config_block *first;
    char *next;
    size_t left_bytes;
    bool is_failed;
};

void lw_config_arena_init(struct lw_config_arena *arena);
void lw_config_arena_deinit(struct lw_config_arena *arena);
/* Zeroed and aligned for anything; NULL without memory. Size 0 gives a unique pointer. */
void *lw_config_arena_take(struct lw_config_arena *arena, size_t size);
void *lw_config_arena_array(struct lw_config_arena *arena, size_t count, size_t size);
/* Copies and terminates. */
char *lw_config_arena_text(struct lw_config_arena *arena, const char *text, size_t length);
char *lw_config_arena_format(struct lw_config_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
