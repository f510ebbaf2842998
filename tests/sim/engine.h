/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scripted engine: implements lw_engine_ops without running anything. What a run does (verdict,
 * time, reply, hang, crash of its worker) is drawn from the seed when it is submitted; it ends by
 * a timer on the virtual host. A run that hangs is late after the attempt's time and returns in
 * the end; an engine that can end handlers early does so when told. Of a task of several members
 * each has a verdict, or one is for all; now and then there are too few of them, or too many.
 */
#ifndef TESTS_SIM_ENGINE_H
#define TESTS_SIM_ENGINE_H

#include <laneway/plugin.h>

#include "core/delivery.h"
#include "tests/sim/plan.h"

enum { SIM_TASKS_MAX = 64 };

struct sim_engine;

struct sim_task {
    struct lw_timer timer;
    struct lw_timer timeout;
    struct sim_engine *engine;
    struct lw_delivery *delivery; /* NULL: free */
    enum lw_verdict verdict;
    bool is_crash; /* its worker dies: nobody is charged */
    bool is_ended; /* by the engine: its verdict is for all members */
};

struct sim_engine_hooks {
    /* A run begins; `delivery` has its attempt. */
    void (*started)(struct lw_delivery *delivery, void *user);
    /* A run ends with that verdict. */
    void (*returned)(struct lw_delivery *delivery, enum lw_verdict verdict, void *user);
    void *user;
};

struct sim_engine {
    struct lw_engine base;
    const struct plan *plan;
    struct sim_random *random;
    struct sim_engine_hooks hooks;
    struct sim_task tasks[SIM_TASKS_MAX];
    uint32_t running;
    bool is_stopping;
    bool is_calm; /* nothing hangs or crashes any more, and failures end */
};

struct sim_engine *sim_engine_create(struct lw_host *host, struct lw_completions *completions,
                                     const struct plan *plan, struct sim_random *random,
                                     const struct sim_engine_hooks *hooks);
/* The handler cannot start, or can again. */
void sim_engine_set_down(struct sim_engine *engine, bool is_down);

#endif
