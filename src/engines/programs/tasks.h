/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that the programs engine has in hand, and their ids on the wire. An id names one
 * handing-over: its place in the table is the remainder by the capacity, so finding is one look,
 * and an id that was answered, or never given, names nothing.
 */
#ifndef LW_ENGINES_PROGRAMS_TASKS_H
#define LW_ENGINES_PROGRAMS_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/delivery.h"

struct lw_programs_worker;

struct lw_programs_task {
    struct lw_list
        link; /* spare; or a worker's open ones in the order of handing over; or waits */
    struct lw_delivery *delivery;
    struct lw_programs_worker *worker; /* NULL: waits to be handed over (again) */
    int64_t id;                        /* of this handing-over, 0 none */
    uint64_t place;                    /* of its line in what its worker is sent */
    uint64_t deadline;                 /* LW_NEVER: no timeout, or its clock stands still */
    bool has_clock;
    bool is_extended;
    bool is_late; /* its time is over; its worker is being ended for it */
};

struct lw_programs_tasks {
    struct lw_programs_task *all;
    uint32_t capacity;
    uint32_t count; /* in hand */
    int64_t rounds; /* ids given */
    struct lw_list spare;
};

bool lw_programs_tasks_init(struct lw_programs_tasks *tasks, uint32_t capacity);
void lw_programs_tasks_deinit(struct lw_programs_tasks *tasks);
/* NULL when the table is full. The task is in no list. */
struct lw_programs_task *
lw_programs_tasks_take(struct lw_programs_tasks *tasks, struct lw_delivery *delivery);
void lw_programs_tasks_give(struct lw_programs_tasks *tasks, struct lw_programs_task *task);
/* Names this handing-over; the older id of the task names nothing any more. */
int64_t lw_programs_tasks_name(struct lw_programs_tasks *tasks, struct lw_programs_task *task);
struct lw_programs_task *
lw_programs_tasks_find(const struct lw_programs_tasks *tasks, int64_t id);

#endif
