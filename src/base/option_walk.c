/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over nested option rows. A frame is one table being read; a section pushes a frame
 * whose fields begin at the section's own offset, an include one at the same level. The depth is
 * bounded by the tables of the program, never by input.
 */
#include <string.h>

#include "base/assert.h"
#include "base/option.h"

static void
push(struct lw_option_walk *walk, const struct lw_option *owner, const struct lw_option *rows,
     ptrdiff_t base)
{
    lw_assert(walk->frame_count < LW_OPTION_LEVELS_MAX);
    struct lw_option_frame *frame = &walk->frames[walk->frame_count++];
    frame->next = rows;
    frame->base = base;
    frame->owner = owner;
    frame->is_include = owner && owner->type == LW_OPTION_INCLUDE;
    walk->level += frame->is_include ? 0 : 1;
}

static void
pop(struct lw_option_walk *walk)
{
    struct lw_option_frame *frame = &walk->frames[--walk->frame_count];
    walk->level -= frame->is_include ? 0 : 1;
}

void
lw_option_walk_start(struct lw_option_walk *walk, const struct lw_option *rows,
                     enum lw_option_depth depth)
{
    memset(walk, 0, sizeof(*walk));
    walk->depth = depth;
    push(walk, NULL, rows, 0);
    walk->level = 0;
}

/* Goes into the row that was yielded last, if the walk goes that deep. */
static void
descend(struct lw_option_walk *walk)
{
    const struct lw_option *row = walk->row;
    if (!row || !row->rows || walk->depth == LW_WALK_FLAT) {
        return;
    }
    if (row->type == LW_OPTION_GROUP) {
        push(walk, row, row->rows, walk->offset);
    } else if (walk->depth == LW_WALK_ALL) {
        push(walk, row, row->rows, 0);
    }
}

bool
lw_option_walk_next(struct lw_option_walk *walk)
{
    descend(walk);
    while (walk->frame_count > 0) {
        struct lw_option_frame *frame = &walk->frames[walk->frame_count - 1];
        const struct lw_option *row = frame->next;
        if (row->type == LW_OPTION_END) {
            pop(walk);
            continue;
        }
        frame->next++;
        if (row->type == LW_OPTION_INCLUDE) {
            push(walk, row, row->rows, frame->base + row->offset);
            continue;
        }
        walk->row = row;
        walk->offset = frame->base + row->offset;
        return true;
    }
    walk->row = NULL;
    return false;
}

void
lw_option_walk_path(const struct lw_option_walk *walk, struct lw_text *out)
{
    for (uint32_t i = 0; i < walk->frame_count; i++) {
        const struct lw_option_frame *frame = &walk->frames[i];
        if (frame->owner && !frame->is_include) {
            lw_text_format(out, "%s.", frame->owner->name);
            bool is_map = frame->owner->type == LW_OPTION_MAP;
            lw_text_append(out, is_map ? "NAME." : "");
        }
    }
    lw_text_append(out, walk->row->name);
}

const struct lw_option *
lw_option_find(const struct lw_option *rows, const char *name, ptrdiff_t *ret_offset)
{
    struct lw_option_walk walk;
    const struct lw_option *wildcard = NULL;
    lw_option_walk_start(&walk, rows, LW_WALK_FLAT);
    while (lw_option_walk_next(&walk)) {
        const struct lw_option *row = walk.row;
        ptrdiff_t offset = walk.offset;
        if (strcmp(row->name, name) == 0 || (row->alias && strcmp(row->alias, name) == 0)) {
            ret_offset = ret_offset ? ret_offset : &offset;
            *ret_offset = offset;
            return row;
        }
        wildcard = row->name[0] == '*' ? row : wildcard;
    }
    return wildcard;
}
