/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moved clock. `refresh` gives the time that the test set, so lw_host_turn is the same code
 * as on the real loop. A turn that wants another one at the present time for ever is a busy loop
 * (promise P9), and ends the program with a message. Deterministic: no clock, no randomness but
 * the seeded generator of the host.
 */
#include "tests/support/virtual_host.h"

#include <stdio.h>
#include <stdlib.h>

enum { TURNS_MAX = 100000 };

static int64_t
wall_ms(struct lw_host *host)
{
    return VIRTUAL_WALL_MS + (int64_t)((host->now - VIRTUAL_START) / LW_MS);
}

static uint64_t
refresh(struct lw_host *host)
{
    return host->now;
}

static struct lw_watch *
watch(struct lw_host *host, int fd, int events, lw_watch_fn fn, void *user)
{
    (void)host;
    (void)fd;
    (void)events;
    (void)fn;
    (void)user;
    return NULL;
}

static void
rewatch(struct lw_watch *watched, int events)
{
    (void)watched;
    (void)events;
}

static void
unwatch(struct lw_watch *watched)
{
    (void)watched;
}

static const struct lw_host_ops ops = {
    .wall_ms = wall_ms,
    .refresh = refresh,
    .watch = watch,
    .rewatch = rewatch,
    .unwatch = unwatch,
};

void
virtual_host_init(struct virtual_host *virtual_host, uint64_t seed)
{
    *virtual_host = (struct virtual_host){ .due = VIRTUAL_START };
    lw_host_init(&virtual_host->host, &ops, VIRTUAL_START, seed ? seed : 1, -1);
}

void
virtual_host_settle(struct virtual_host *virtual_host)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        virtual_host->turns++;
        virtual_host->due = lw_host_turn(&virtual_host->host);
        if (virtual_host->due > virtual_host->host.now) {
            return;
        }
    }
    const struct lw_host *host = &virtual_host->host;
    fprintf(stderr,
            "virtual_host: %d turns without rest at %llu ns: deferred work %d, timers due %d, "
            "turn wanted %d\n",
            TURNS_MAX, (unsigned long long)host->now, !lw_list_is_empty(&host->deferred),
            lw_timers_next(&host->timers) <= host->now, host->is_turn_due);
    abort();
}

bool
virtual_host_jump(struct virtual_host *virtual_host, uint64_t limit)
{
    /* what was armed or deferred since the last turn counts too */
    uint64_t due = lw_host_next(&virtual_host->host, virtual_host->due);
    if (due == LW_NEVER || due > limit) {
        return false;
    }
    virtual_host->host.now = due;
    virtual_host_settle(virtual_host);
    return true;
}

void
virtual_host_pass(struct virtual_host *virtual_host, uint64_t ns)
{
    uint64_t end = virtual_host->host.now + ns;
    virtual_host_settle(virtual_host);
    while (virtual_host_jump(virtual_host, end)) {
        continue;
    }
    virtual_host->host.now = end;
    virtual_host_settle(virtual_host);
}
