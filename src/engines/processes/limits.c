/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker may use of memory, its children included: looked at four times a second while there
 * is one. Above its limit it is killed at once, and that counts as a crash of the message that it
 * handled (blame.c): it runs again alone, and is charged when it does it again. The kernel's own
 * limit, RLIMIT_AS, counts addresses, of which a handler may reserve many and use few.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "engines/common/usage.h"
#include "engines/processes/processes.h"

#define SAMPLE_EVERY (250 * LW_MS)

enum lw_status
lw_processes_limits_check(struct lw_processes *processes, struct lw_error *ret_error)
{
    struct lw_usage usage;
    if (processes->options.memory_max == 0) {
        return LW_STATUS_OK;
    }
    if (!lw_usage_read(getpid(), &usage)) {
        enum lw_status status = lw_error_set(
            ret_error, LW_STATUS_INVALID, "E0611",
            "handler \"%s\": memory_max cannot be watched: /proc is not readable",
            processes->name);
        lw_error_help(ret_error, "mount /proc, or leave it out");
        return status;
    }
    if (!lw_usage_has_children()) {
        lw_host_log(processes->engine.host, LW_LOG_WARN, "handler.children_unseen",
                    "this kernel does not list children: limits see the worker itself only",
                    "handler=%s", processes->name);
    }
    return LW_STATUS_OK;
}

/* One that is going anyway has its own deadline. */
static bool
is_watched(const struct lw_processes_worker *worker)
{
    return worker->state == LW_PROCESSES_STARTING || worker->state == LW_PROCESSES_TAKING;
}

static void
look_at(struct lw_processes_worker *worker)
{
    struct lw_usage usage;
    char why[128];
    if (worker->pid > 0 && !worker->is_over && lw_usage_read(worker->pid, &usage) &&
        lw_usage_is_over(&usage, worker->owner->options.memory_max, why, sizeof why)) {
        lw_processes_worker_end(worker, LW_PROCESSES_BY_LIMIT, 0, why);
    }
}

void
lw_processes_limits_watch(struct lw_processes *processes)
{
    struct lw_host *host = processes->engine.host;
    if (processes->options.memory_max > 0 && !lw_timer_is_armed(&processes->sample_timer)) {
        lw_timers_arm(&host->timers, &processes->sample_timer, host->now + SAMPLE_EVERY);
    }
}

void
lw_processes_on_sample_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_processes *processes = LW_CONTAINER(timer, struct lw_processes, sample_timer);
    bool has_any = false;
    (void)now;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        if (is_watched(&processes->workers[i])) {
            look_at(&processes->workers[i]);
            has_any = true;
        }
    }
    if (has_any) {
        lw_processes_limits_watch(processes);
    }
}
