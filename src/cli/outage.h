/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --exit-on-outage: ends the service when a broker cannot be reached for that long. By default
 * `run` waits for ever, since nothing is lost by waiting; some want their supervisor to know.
 */
#ifndef LW_CLI_OUTAGE_H
#define LW_CLI_OUTAGE_H

#include "dispatcher/dispatcher.h"

struct lw_outage {
    struct lw_dispatcher *dispatcher;
    uint64_t patience_ns; /* 0: never */
    struct lw_turn turn;
    bool has_ended;
};

/* patience_ms 0: does nothing. */
void lw_outage_watch(struct lw_outage *outage, struct lw_dispatcher *dispatcher,
                     int64_t patience_ms);
void lw_outage_unwatch(struct lw_outage *outage);

#endif
