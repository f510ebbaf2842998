/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of messages that are out. A verdict waits in memory until a commit has it; a crash
 * before that delivers again, never the reverse. One position's write, in a transaction:
 *
 *   acknowledged, with a row      the row goes
 *   acknowledged, fresh           next rises above it
 *   given back or delayed         a row with its time
 *   fresh, out, and below the new next: overtaken, gets a row
 *
 * so a row costs only what is out of order, once. Rows that were taken out again are marked with
 * the next write, whenever that is. The worker's thread.
 */
#include <string.h>

#include "base/assert.h"
#include "brokers/spool/store.h"

#define DUE_NONE (-1) /* it is out */

static void
touch(struct lw_spool_store *store, struct lw_spool_position *position)
{
    if (lw_list_is_empty(&position->dirty)) {
        lw_list_push(&store->dirty_positions, &position->dirty);
    }
}

/* -- Verdicts ------------------------------------------------------------------------------------ */

static void
add_verdict(struct lw_spool_store *store, struct lw_spool_out *out)
{
    lw_assert(!out->is_judged);
    out->is_judged = true;
    lw_list_remove(&out->verdict); /* of `taken` */
    lw_list_push(&out->position->judged, &out->verdict);
    store->judged_count++;
    store->returned_count += !out->is_ack;
    touch(store, out->position);
}

/* Behind what was taken and is not marked yet, or it would not be found again. */
static int64_t
reachable(const struct lw_spool_position *position, int64_t due_ms)
{
    return due_ms > position->taken_due_ms ? due_ms : position->taken_due_ms + 1;
}

void
lw_spool_judge(struct lw_spool_store *store, struct lw_spool_out *out, bool is_ack,
               int64_t due_ms)
{
    out->is_ack = is_ack;
    if (!is_ack) {
        out->due_ms = due_ms;
        out->redeliveries++;
    }
    add_verdict(store, out);
}

void
lw_spool_delay(struct lw_spool_store *store, struct lw_spool_out *out, int64_t due_ms)
{
    out->is_ack = false;
    out->due_ms = due_ms;
    add_verdict(store, out);
}

void
lw_spool_note_taken(struct lw_spool_store *store, struct lw_spool_out *out)
{
    lw_list_push(&out->position->taken, &out->verdict);
    touch(store, out->position);
}

void
lw_spool_note_seen(struct lw_spool_store *store, struct lw_spool_position *position,
                   int64_t seen)
{
    if (seen > position->seen) {
        position->seen = seen;
        touch(store, position);
    }
}

/* -- Writing ------------------------------------------------------------------------------------- */

static bool
put_row(struct lw_spool_store *store, const struct lw_spool_out *out, int64_t due_ms)
{
    int64_t numbers[] = { out->position->id, out->offset, out->redeliveries, due_ms };
    return lw_spool_run(store, LW_SPOOL_PUT_UNSETTLED, numbers, 4);
}

static bool
drop_row(struct lw_spool_store *store, const struct lw_spool_out *out)
{
    int64_t numbers[] = { out->position->id, out->offset };
    return lw_spool_run(store, LW_SPOOL_DROP_UNSETTLED, numbers, 2);
}

static bool
mark_taken(struct lw_spool_store *store, const struct lw_spool_out *out)
{
    int64_t numbers[] = { out->position->id, out->offset };
    return lw_spool_run(store, LW_SPOOL_TAKE_UNSETTLED, numbers, 2);
}

static bool
write_judged(struct lw_spool_store *store, struct lw_spool_position *position)
{
    struct lw_list *head = &position->judged;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_out *out = LW_CONTAINER(node, struct lw_spool_out, verdict);
        bool is_good = true;
        if (!out->is_ack) {
            out->due_ms = reachable(position, out->due_ms);
            is_good = put_row(store, out, out->due_ms);
        } else if (out->has_row) {
            is_good = drop_row(store, out);
        }
        if (!is_good) {
            return false;
        }
        if (!out->has_row && out->offset >= position->new_next) {
            position->new_next = out->offset + 1;
        }
    }
    return true;
}

/* Those that were overtaken; written as out, which is what a crash makes of them. */
static bool
write_overtaken(struct lw_spool_store *store, struct lw_spool_position *position)
{
    struct lw_list *head = &position->fresh;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_out *out = LW_CONTAINER(node, struct lw_spool_out, link);
        if (out->offset >= position->new_next) {
            return true;
        }
        if (!out->is_judged && !put_row(store, out, DUE_NONE)) {
            return false;
        }
    }
    return true;
}

static bool
write_taken(struct lw_spool_store *store, struct lw_spool_position *position)
{
    struct lw_list *head = &position->taken;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        if (!mark_taken(store, LW_CONTAINER(node, struct lw_spool_out, verdict))) {
            return false;
        }
    }
    return true;
}

static bool
write_position(struct lw_spool_store *store, struct lw_spool_position *position)
{
    position->new_next = position->next;
    if (!write_judged(store, position) || !write_overtaken(store, position) ||
        !write_taken(store, position)) {
        return false;
    }
    int64_t given = position->seen > position->new_next ? position->seen : position->new_next;
    if (position->new_next == position->next && given == position->given) {
        return true;
    }
    int64_t numbers[] = { position->id, position->new_next, given };
    return lw_spool_run(store, LW_SPOOL_SET_POSITION, numbers, 3);
}

bool
lw_spool_settle_write(struct lw_spool_store *store)
{
    struct lw_list *head = &store->dirty_positions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        if (!write_position(store, LW_CONTAINER(node, struct lw_spool_position, dirty))) {
            return false;
        }
    }
    return true;
}

/* -- After the commit ---------------------------------------------------------------------------- */

static void
apply_judged(struct lw_spool_store *store, struct lw_spool_position *position)
{
    struct lw_list *node;
    struct lw_spool_partition *partition = position->partition;
    bool is_worn = false;
    while ((node = lw_list_pop(&position->judged)) != NULL) {
        struct lw_spool_out *out = LW_CONTAINER(node, struct lw_spool_out, verdict);
        lw_list_remove(&out->link);
        store->judged_count--;
        store->returned_count -= !out->is_ack;
        if (out->is_ack) {
            store->worn_count++;
            is_worn = true;
        } else {
            position->waiting++;
            position->due_ms = out->due_ms < position->due_ms ? out->due_ms : position->due_ms;
        }
        lw_pool_give(&store->outs, out);
    }
    if (is_worn && lw_list_is_empty(&partition->worn)) {
        lw_list_push(&store->worn, &partition->worn);
    }
}

static void
apply_position(struct lw_spool_store *store, struct lw_spool_position *position)
{
    struct lw_list *node;
    apply_judged(store, position);
    position->next = position->new_next;
    position->given = position->seen > position->next ? position->seen : position->next;
    while ((node = lw_list_first(&position->fresh)) != NULL) {
        struct lw_spool_out *out = LW_CONTAINER(node, struct lw_spool_out, link);
        if (out->offset >= position->next) {
            break;
        }
        lw_list_remove(node);
        out->has_row = true;
    }
    while (lw_list_pop(&position->taken) != NULL) {
        continue;
    }
    position->least = -1;
    position->taken_due_ms = -1; /* the rows themselves say now that they are out */
    position->taken_offset = -1;
}

void
lw_spool_settle_apply(struct lw_spool_store *store)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&store->dirty_positions)) != NULL) {
        apply_position(store, LW_CONTAINER(node, struct lw_spool_position, dirty));
    }
}

/* -- The end ------------------------------------------------------------------------------------- */

static bool
leave_partition(struct lw_spool_store *store, struct lw_spool_partition *partition)
{
    struct lw_list *head = &partition->positions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_position *position = LW_CONTAINER(node, struct lw_spool_position, link);
        int64_t numbers[] = { position->id, position->next, position->next };
        if (!lw_spool_run(store, LW_SPOOL_FREE_TAKEN, &position->id, 1) ||
            (position->given > position->next &&
             !lw_spool_run(store, LW_SPOOL_SET_POSITION, numbers, 3))) {
            return false;
        }
    }
    return true;
}

bool
lw_spool_settle_leave(struct lw_spool_store *store)
{
    struct lw_spool_partition *partition = lw_spool_next_partition(store, NULL);
    for (; partition; partition = lw_spool_next_partition(store, partition)) {
        if (!leave_partition(store, partition)) {
            return false;
        }
    }
    return true;
}
