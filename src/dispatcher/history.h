/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The append-only history of a dispatcher: what was received, started, judged, published,
 * settled, committed and revoked. One oracle judges it on every level (simulator, mock, real
 * brokers). Off (NULL) in production by one branch per event.
 */
#ifndef LW_DISPATCHER_HISTORY_H
#define LW_DISPATCHER_HISTORY_H

#include "core/delivery.h"

enum lw_history_kind {
    LW_HISTORY_ASSIGNED,  /* partition, generation, position */
    LW_HISTORY_RECEIVED,  /* delivery */
    LW_HISTORY_STARTED,   /* delivery */
    LW_HISTORY_RETURNED,  /* delivery: the handler call ended, verdict */
    LW_HISTORY_JUDGED,    /* delivery, action */
    LW_HISTORY_PUBLISHED, /* delivery: a publication was confirmed; kind in `detail` */
    LW_HISTORY_SETTLED,   /* delivery; outcome in `detail` (enum lw_settled) */
    LW_HISTORY_DROPPED,   /* delivery: its generation is over */
    LW_HISTORY_COMMITTED, /* partition, generation, position accepted by the broker */
    LW_HISTORY_REVOKED    /* partition, generation: given up */
};

/* How a message left us. */
enum lw_settled {
    LW_SETTLED_ACKED,
    LW_SETTLED_RETRIED, /* a retry copy was confirmed */
    LW_SETTLED_DEAD_LETTERED,
    LW_SETTLED_DROPPED,     /* by verdict or policy */
    LW_SETTLED_REDELIVERED, /* nacked: the broker gives it again */
    LW_SETTLED_GIVEN_BACK   /* unfinished at drain */
};

struct lw_history_event {
    enum lw_history_kind kind;
    uint64_t now;
    const struct lw_delivery *delivery;   /* NULL for partition events */
    const struct lw_partition *partition; /* always */
    int64_t position;
    int detail;
    int action; /* enum lw_action of JUDGED */
};

struct lw_history {
    void (*record)(const struct lw_history_event *event, void *user);
    void *user;
};

#endif
