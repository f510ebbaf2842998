/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When processes are started. While it is not known that the program works, one process tries
 * for all; once it was ready, the others follow. A failure to start waits 1 s, then twice as
 * long each time, 30 s at most, and ends with the first good answer. Without any ready worker
 * the engine is down: what is here goes back uncharged, and people are told why and what helps.
 */
#include "engines/programs/programs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engines/common/spawn_failure.h"

#define BACKOFF_MIN (1000 * LW_MS)
#define BACKOFF_MAX (30000 * LW_MS)

static bool
has_ready(const struct lw_programs *programs)
{
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        if (programs->workers[i].state == LW_PROGRAMS_READY) {
            return true;
        }
    }
    return false;
}

static void
write_command(const struct lw_programs *programs, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (char *const *part = programs->program; *part && used < size; part++) {
        int length = snprintf(out + used, size - used, "%s%s", used ? " " : "", *part);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void
write_error(struct lw_programs *programs, const struct lw_programs_failure *failure,
            const char *wait)
{
    char command[200];
    char who[180];
    bool has_one = programs->pipeline != NULL;
    struct lw_error *error = &programs->engine.down_error;
    write_command(programs, command, sizeof command);
    (void)snprintf(who, sizeof who, "%s%.150s %s", has_one ? "pipeline " : "",
                   has_one ? programs->pipeline : "its pipelines", has_one ? "is" : "are");
    lw_error_set(error, LW_STATUS_UNAVAILABLE, failure->code, "handler \"%s\" %s: %s: %s",
                 programs->name, failure->what, command, failure->why);
    lw_error_help(error,
                  "%.200s%s%s paused until it starts; 0 messages were consumed by this. "
                  "Next try in %s.%s%s",
                  failure->help ? failure->help : "", failure->help ? "; " : "", who, wait,
                  failure->last[0] ? " Last output of the program:\n" : "", failure->last);
    error->is_retriable = true;
}

static void
set_down(struct lw_programs *programs, const struct lw_programs_failure *failure,
         uint64_t wait_ns)
{
    char wait[32];
    struct lw_error *error = &programs->engine.down_error;
    lw_text_from_duration_ms((int64_t)(wait_ns / LW_MS), wait, sizeof wait);
    write_error(programs, failure, wait);
    programs->engine.is_down = true;
    programs->engine.has_changed = true;
    lw_host_log(programs->engine.host, LW_LOG_ERROR, "handler.down", error->message,
                "code=%s handler=%s next_try=%s help=%s", error->code, programs->name, wait,
                error->help);
}

/* Nobody is charged: with no ready worker, what is here goes back and the engine is down. */
void
lw_programs_fail(struct lw_programs *programs, const struct lw_programs_failure *failure)
{
    struct lw_host *host = programs->engine.host;
    uint32_t doublings = programs->failures < 5 ? programs->failures : 5;
    uint64_t wait_ns = BACKOFF_MIN << doublings;
    wait_ns = wait_ns < BACKOFF_MAX ? wait_ns : BACKOFF_MAX;
    programs->failures++;
    programs->retry_at = host->now + wait_ns;
    programs->is_proven = has_ready(programs);
    lw_timers_arm(&host->timers, &programs->start_timer, programs->retry_at);
    if (programs->is_proven) {
        lw_host_log(host, LW_LOG_WARN, "handler.start_failed",
                    "one of several workers cannot start", "handler=%s why=%s help=%s",
                    programs->name, failure->why, failure->help ? failure->help : "");
        return;
    }
    set_down(programs, failure, wait_ns);
    lw_programs_give_back_all(programs, &programs->waiting, "the handler cannot start");
    lw_programs_give_back_all(programs, &programs->suspects, "the handler cannot start");
}

void
lw_programs_fail_spawn(struct lw_programs *programs, int failed)
{
    char why[128];
    char help[PATH_MAX];
    const char *mend = lw_spawn_failure_program(programs->program[0], programs->directory,
                                                failed, help, sizeof help);
    struct lw_programs_failure failure = {
        .code = "E0602",
        .what = "cannot start",
        .why = strerror_r(failed, why, sizeof why),
        .help = mend[0] ? mend : NULL,
        .last = "",
    };
    lw_programs_fail(programs, &failure);
}

static bool
start_one(struct lw_programs *programs, struct lw_programs_worker *worker)
{
    struct lw_host *host = programs->engine.host;
    programs->engine.restarts += worker->starts > 0 ? 1 : 0;
    int failed = lw_programs_worker_start(worker);
    if (!failed) {
        lw_host_log(host, LW_LOG_DEBUG, "handler.started", "a worker process was started",
                    "handler=%s worker=%" PRIu32 " pid=%d", programs->name, worker->index,
                    (int)worker->process.pid);
        lw_programs_limits_watch(programs);
        return true;
    }
    lw_programs_fail_spawn(programs, failed);
    return false;
}

/* While it is not known that the program works, one process tries for all. */
void
lw_programs_start_workers(struct lw_programs *programs)
{
    bool may_start_many = programs->is_proven && programs->failures == 0;
    bool is_trying = false;
    if (programs->is_stopping || programs->engine.host->now < programs->retry_at) {
        return;
    }
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        is_trying = is_trying || programs->workers[i].state == LW_PROGRAMS_STARTING;
    }
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        if (worker->state != LW_PROGRAMS_IDLE || (is_trying && !may_start_many)) {
            continue;
        }
        if (!start_one(programs, worker)) {
            return;
        }
        is_trying = true;
    }
}

void
lw_programs_on_start_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, start_timer);
    (void)now;
    programs->retry_at = 0;
    lw_programs_start_workers(programs);
}
