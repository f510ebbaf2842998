/* SPDX-License-Identifier: Apache-2.0 */
/*
 * obey_async.c: the asynchronous C handler of the conformance suite: what takes time waits by
 * timers of the loop.
 */
#include "tests/engines/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"

struct waiting {
    struct lw_timer timer;
    struct lw_delivery *delivery;
    struct world *world;
    const char *rest; /* NULL: holds */
    char command[CONFORMANCE_COMMAND_MAX];
};

static void
on_waited(struct lw_timer *timer, uint64_t now)
{
    struct waiting *waiting = LW_CONTAINER(timer, struct waiting, timer);
    struct lw_delivery *delivery = waiting->delivery;
    if (!waiting->rest && !lw_delivery_is_cancelled(delivery)) {
        lw_timers_arm(&waiting->world->host->timers, timer,
                      now + CONFORMANCE_HOLD_LOOK_MS * LW_MS);
        return;
    }
    enum lw_verdict verdict = waiting->rest ? conformance_obey(delivery, waiting->rest)
                                            : lw_delivery_drop(delivery, "held");
    free(waiting);
    lw_delivery_finish(delivery, verdict);
}

void
conformance_handle_async(struct lw_delivery *delivery, void *user)
{
    char command[CONFORMANCE_COMMAND_MAX];
    conformance_read(delivery, command);
    if (!conformance_takes_time(command)) {
        lw_delivery_finish(delivery, conformance_obey(delivery, command));
        return;
    }
    struct waiting *waiting = calloc(1, sizeof *waiting);
    waiting->world = user;
    waiting->delivery = delivery;
    lw_timer_init(&waiting->timer, on_waited);
    memcpy(waiting->command, command, sizeof command);
    long ms = CONFORMANCE_HOLD_LOOK_MS;
    if (strcmp(command, "hold") != 0) {
        char *end = NULL;
        ms = strtol(waiting->command + strlen("wait "), &end, 10);
        waiting->rest = end + 1;
    }
    lw_timers_arm(&waiting->world->host->timers, &waiting->timer,
                  waiting->world->host->now + (uint64_t)ms * LW_MS);
}
