/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a finished run comes back: from the loop thread by the list, from other threads by the
 * mailbox. The claim on the serial (engines/handler.h) makes a second finish, or one of an
 * older run by its ticket, visible as LW_STATUS_ALREADY; after the claim the delivery is ours
 * until it is handed over, and must not be touched afterwards: it may be reused at once.
 */
#include <laneway/plugin.h>

#include "base/inside.h"
#include "engines/common/batch.h"

void
lw_engine_done(struct lw_engine *engine, struct lw_delivery *delivery)
{
    lw_run_claim_first(delivery);
    lw_queue_push(&engine->completions->done, &delivery->link);
}

static bool
are_verdicts(const enum lw_verdict verdicts[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)verdicts[i] > LW_ERROR) {
            return false;
        }
    }
    return count > 0;
}

static enum lw_status
finish(struct lw_delivery *delivery, uint32_t serial, const enum lw_verdict verdicts[],
       size_t count)
{
    if (!are_verdicts(verdicts, count)) {
        return LW_STATUS_INVALID;
    }
    if (!lw_run_claim(delivery, serial)) {
        return LW_STATUS_ALREADY;
    }
    struct lw_completions *completions = delivery->completions;
    if (delivery->is_batch) {
        lw_batch_take(delivery, verdicts, count);
    } else {
        delivery->verdict = (uint8_t)lw_run_judge(delivery, verdicts[0]);
    }
    /* Only the loop thread can be inside the call of an answer that is still owed. */
    if (lw_inside_subject() == delivery) {
        lw_queue_push(&completions->done, &delivery->link);
    } else {
        (void)lw_mailbox_post_counted(&completions->mailbox, &delivery->mail);
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_delivery_finish(struct lw_delivery *delivery, enum lw_verdict verdict)
{
    return finish(delivery, atomic_load_explicit(&delivery->serial, memory_order_acquire),
                  &verdict, 1);
}

enum lw_status
lw_batch_finish(struct lw_delivery *first, const enum lw_verdict verdicts[], size_t count)
{
    return finish(first, atomic_load_explicit(&first->serial, memory_order_acquire), verdicts,
                  count);
}

struct lw_ticket
lw_delivery_ticket(struct lw_delivery *delivery)
{
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_acquire);
    return (struct lw_ticket){ .delivery = delivery, .serial = serial };
}

enum lw_status
lw_ticket_finish(struct lw_ticket ticket, enum lw_verdict verdict)
{
    return finish(ticket.delivery, ticket.serial, &verdict, 1);
}

enum lw_status
lw_ticket_finish_batch(struct lw_ticket ticket, const enum lw_verdict verdicts[], size_t count)
{
    return finish(ticket.delivery, ticket.serial, verdicts, count);
}
