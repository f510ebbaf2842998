/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call of a function that takes several messages at once, and what it says. Who gave too few or
 * too many verdicts is seen by the dispatcher, which retries what has none and says so: this may be
 * any thread.
 */
#include "engines/common/batch.h"

#include "base/alloc.h"
#include "base/assert.h"

bool
lw_batch_room_init(struct lw_batch_room *room, uint32_t size)
{
    room->deliveries = lw_alloc_array(size, sizeof(struct lw_delivery *));
    room->verdicts = lw_alloc_array(size, sizeof *room->verdicts);
    return room->deliveries && room->verdicts;
}

void
lw_batch_room_deinit(struct lw_batch_room *room)
{
    lw_free(room->deliveries);
    lw_free(room->verdicts);
    room->deliveries = NULL;
    room->verdicts = NULL;
}

static enum lw_verdict
judge(struct lw_delivery *delivery, const enum lw_verdict *verdict, bool is_given)
{
    return is_given && *verdict != LW_PENDING ? lw_run_judge(delivery, *verdict) : LW_PENDING;
}

void
lw_batch_take(struct lw_delivery *first, const enum lw_verdict verdicts[], size_t count)
{
    size_t i = 0;
    first->task_answers = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        member->verdict = (uint8_t)judge(member, &verdicts[i], i < count);
        i++;
        if (!first->is_each) {
            return;
        }
    }
}

static size_t
list(struct lw_batch_room *room, struct lw_delivery *first)
{
    size_t count = 0;
    lw_assert(first != NULL);
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        room->deliveries[count] = member;
        room->verdicts[count++] = LW_PENDING;
    }
    return count;
}

void
lw_batch_call(const struct lw_handler_options *options, struct lw_batch_room *room,
              struct lw_delivery *first)
{
    size_t count = list(room, first);
    first->is_each = options->batch.verdict == LW_BATCH_VERDICT_EACH;
    size_t given = options->handler_batch(room->deliveries, count, room->verdicts,
                                          options->user);
    lw_batch_take(first, room->verdicts, given);
}

void
lw_batch_call_async(const struct lw_handler_options *options, struct lw_batch_room *room,
                    struct lw_delivery *first)
{
    size_t count = list(room, first);
    first->is_each = options->batch.verdict == LW_BATCH_VERDICT_EACH;
    for (size_t i = 1; i < count; i++) {
        room->deliveries[i]->deadline = first->deadline;
        lw_run_claim_first(room->deliveries[i]);
    }
    options->handler_batch_async(room->deliveries, count, options->user);
}
