/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which worker gets which message. New ones go to the ready worker that holds least; those that
 * run again go first. A suspect runs alone: the worker that has it takes nothing else until all
 * suspects are through. Room never promises more than ready workers and the table can take.
 */
#include "engines/programs/programs.h"

#include <inttypes.h>

#define MEMORY_AFTER (100 * LW_MS)
#define MEMORY_SAID_EVERY (10000 * LW_MS)

void
lw_programs_update_room(struct lw_programs *programs)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        const struct lw_programs_worker *worker = &programs->workers[i];
        room += worker != programs->alone ? lw_programs_worker_room(worker) : 0;
    }
    uint32_t waiting = lw_programs_count(&programs->waiting);
    uint32_t places = programs->tasks.capacity - programs->tasks.count; /* suspects hold some */
    room = room > waiting && !programs->is_stopping ? room - waiting : 0;
    room = room < places ? room : places;
    if (room != programs->engine.room) {
        programs->engine.room = room;
        programs->engine.has_changed = true;
    }
}

/* One line for all the trials of ten seconds: a lack that lasts is seen, and does not flood. */
static void
say_memory(struct lw_programs *programs, const char *what)
{
    struct lw_host *host = programs->engine.host;
    programs->memory_tries++;
    if (programs->memory_quiet_until > host->now) {
        return;
    }
    lw_host_log(host, LW_LOG_WARN, "handler.no_memory", what,
                "handler=%s tries=%" PRIu64 " reason=\"Cannot allocate memory\"",
                programs->name, programs->memory_tries);
    programs->memory_quiet_until = host->now + MEMORY_SAID_EVERY;
    programs->memory_tries = 0;
}

void
lw_programs_wait_for_memory(struct lw_programs *programs, const char *what)
{
    struct lw_host *host = programs->engine.host;
    say_memory(programs, what);
    programs->engine.room = 0;
    programs->engine.has_changed = true;
    lw_timers_arm(&host->timers, &programs->memory_timer, host->now + MEMORY_AFTER);
}

struct lw_programs_worker *
lw_programs_least_loaded(struct lw_programs *programs)
{
    struct lw_programs_worker *best = NULL;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        if (worker == programs->alone || lw_programs_worker_room(worker) == 0) {
            continue;
        }
        if (!best || worker->open_count < best->open_count) {
            best = worker;
        }
        if (best->open_count == 0) {
            return best;
        }
    }
    return best;
}

static struct lw_programs_worker *
fresh_worker(struct lw_programs *programs)
{
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        bool is_fresh = worker->answered == 0 && worker->open_count == 0;
        if (is_fresh && lw_programs_worker_room(worker) > 0) {
            return worker;
        }
    }
    return NULL;
}

static void
run_suspect(struct lw_programs *programs)
{
    struct lw_list *node = lw_list_first(&programs->suspects);
    if (programs->alone && programs->alone->open_count == 0 && !node) {
        programs->alone = NULL;
    }
    if (node && !programs->alone) {
        programs->alone = fresh_worker(programs);
    }
    bool may_run = node && programs->alone && programs->alone->open_count == 0 &&
                   lw_programs_worker_room(programs->alone) > 0;
    if (may_run) {
        struct lw_programs_task *task = lw_programs_task_in(node);
        lw_list_remove(node);
        if (!lw_programs_worker_give(programs->alone, task)) {
            lw_list_push_front(&programs->suspects, node);
            lw_programs_wait_for_memory(programs, LW_PROGRAMS_NO_REQUEST);
            return;
        }
        lw_programs_worker_flush(programs->alone);
    }
}

static void
run_waiting(struct lw_programs *programs)
{
    struct lw_list *node = NULL;
    while ((node = lw_list_first(&programs->waiting)) != NULL) {
        struct lw_programs_worker *worker = lw_programs_least_loaded(programs);
        if (!worker) {
            return;
        }
        lw_list_remove(node);
        if (!lw_programs_worker_give(worker, lw_programs_task_in(node))) {
            lw_list_push_front(&programs->waiting, node);
            lw_programs_wait_for_memory(programs, LW_PROGRAMS_NO_REQUEST);
            return;
        }
        lw_programs_worker_flush(worker);
    }
}

void
lw_programs_go_on(struct lw_programs *programs)
{
    if (!programs->is_stopping) {
        run_suspect(programs);
        run_waiting(programs);
    }
    lw_programs_update_room(programs);
}

void
lw_programs_on_memory_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_programs_go_on(LW_CONTAINER(timer, struct lw_programs, memory_timer));
}
