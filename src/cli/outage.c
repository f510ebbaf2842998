/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the brokers of a dispatcher in turns that happen anyway, and asks for a turn when the
 * patience with one of them ends. Loop thread.
 */
#include "cli/outage.h"

static uint64_t
down_since(const struct lw_outage *outage, const struct lw_link *link)
{
    return link->down_since ? link->down_since : outage->dispatcher->started_at;
}

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    struct lw_outage *outage = LW_CONTAINER(turn, struct lw_outage, turn);
    struct lw_dispatcher *dispatcher = outage->dispatcher;
    uint64_t due = LW_NEVER;
    if (dispatcher->phase != LW_PHASE_RUNNING || outage->has_ended) {
        return LW_NEVER;
    }
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        const struct lw_link *link = dispatcher->links[i];
        uint64_t end = link->is_up ? LW_NEVER : down_since(outage, link) + outage->patience_ns;
        due = end < due ? end : due;
    }
    if (due > now) {
        return due;
    }
    outage->has_ended = true;
    lw_host_log(dispatcher->host, LW_LOG_ERROR, "service.outage",
                "a broker is away for longer than --exit-on-outage allows", "patience_ms=%llu",
                (unsigned long long)(outage->patience_ns / LW_MS));
    lw_dispatcher_request_abort(dispatcher);
    return LW_NEVER;
}

void
lw_outage_watch(struct lw_outage *outage, struct lw_dispatcher *dispatcher, int64_t patience_ms)
{
    outage->dispatcher = dispatcher;
    outage->patience_ns = (uint64_t)patience_ms * LW_MS;
    if (patience_ms > 0) {
        outage->turn.fn = on_turn;
        lw_host_add_turn(dispatcher->host, &outage->turn);
    }
}

void
lw_outage_unwatch(struct lw_outage *outage)
{
    if (outage->turn.fn) {
        lw_host_remove_turn(&outage->turn);
        outage->turn.fn = NULL;
    }
}
