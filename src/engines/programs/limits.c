/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker may use. Open files and the user are set before its program runs (launch.c) and
 * kept by the kernel. Memory and processor time are looked at four times a second while there is
 * a process: over its limit it is killed at once, as a whole group, and the message that it
 * worked on is charged by the ordinary rules (blame.c). The kernel's own limits of both count
 * something else: RLIMIT_AS addresses, RLIMIT_CPU the life of one process.
 */
#include "engines/programs/programs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engines/common/usage.h"

#define SAMPLE_EVERY (250 * LW_MS)

static bool
is_sampled(const struct lw_programs *programs)
{
    return programs->limits.memory_max > 0 || programs->limits.cpu_max_ms > 0;
}

/* -- Before the first start ------------------------------------------------------------------- */

static enum lw_status
check_sampling(struct lw_programs *programs, struct lw_error *ret_error)
{
    struct lw_usage usage;
    struct lw_host *host = programs->engine.host;
    if (!is_sampled(programs)) {
        return LW_STATUS_OK;
    }
    if (!lw_usage_read(getpid(), &usage)) {
        enum lw_status status = lw_error_set(
            ret_error, LW_STATUS_INVALID, "E0611",
            "handler \"%s\": memory_max and cpu_max cannot be watched: /proc is not readable",
            programs->name);
        lw_error_help(ret_error, "mount /proc, or leave the two out");
        return status;
    }
    if (!lw_usage_has_children()) {
        lw_host_log(host, LW_LOG_WARN, "handler.children_unseen",
                    "this kernel does not list children: limits see the worker itself only",
                    "handler=%s", programs->name);
    }
    return LW_STATUS_OK;
}

/* HOME and the like, unless the handler's own environment says something else. */
static bool
add_missing(char **environment, const char *variable)
{
    size_t length = strcspn(variable, "=");
    while (*environment) {
        const char *entry = *environment++;
        if (strcspn(entry, "=") == length && strncmp(entry, variable, length) == 0) {
            return true;
        }
    }
    *environment = lw_copy_text(variable);
    return *environment != NULL;
}

/* The array was made with room for them. */
static bool
add_variables(struct lw_programs *programs)
{
    char *const *added = programs->launch.environment;
    for (; added && *added; added++) {
        if (!add_missing(programs->environment, *added)) {
            return false;
        }
    }
    return true;
}

enum lw_status
lw_programs_limits_open(struct lw_programs *programs, struct lw_error *ret_error)
{
    struct lw_programs_command *command = &programs->config.command;
    enum lw_status status = check_sampling(programs, ret_error);
    if (status == LW_STATUS_OK && lw_programs_launch_is_needed(&programs->limits)) {
        const struct lw_programs_launch_request request = {
            .limits = &programs->limits,
            .handler = programs->name,
            .program = command->program,
            .directory = command->directory,
        };
        status = lw_programs_launch_create(&request, &programs->launch, ret_error);
    }
    if (status == LW_STATUS_OK && !add_variables(programs)) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    if (status == LW_STATUS_OK && programs->launch.argv) {
        command->program = (const char *const *)programs->launch.argv;
        command->directory = NULL; /* the helper enters it, as the user */
    }
    return status;
}

void
lw_programs_limits_close(struct lw_programs *programs)
{
    lw_timers_disarm(&programs->engine.host->timers, &programs->sample_timer);
    lw_programs_launch_destroy(&programs->launch);
    lw_free((void *)(uintptr_t)programs->limits.user);
    programs->limits.user = NULL;
}

/* -- While they run --------------------------------------------------------------------------- */

/* What was used before a message was seen to be the first open one is not its own. */
static bool
has_too_much_time(const struct lw_programs *programs, const struct lw_usage *usage, int64_t id,
                  struct lw_programs_sample *sample)
{
    char limit[32];
    int64_t max_ms = programs->limits.cpu_max_ms;
    if (id == 0 || id != sample->id || usage->cpu_ms < sample->cpu_ms) {
        sample->id = id;
        sample->cpu_ms = usage->cpu_ms;
        return false;
    }
    if (max_ms == 0 || usage->cpu_ms - sample->cpu_ms <= (uint64_t)max_ms) {
        return false;
    }
    lw_text_from_duration_ms(max_ms, limit, sizeof limit);
    (void)snprintf(sample->why, sizeof sample->why,
                   "it used more processor time on one message than cpu_max, %s", limit);
    return true;
}

bool
lw_programs_limits_are_over(const struct lw_programs *programs, pid_t pid, int64_t id,
                            struct lw_programs_sample *sample)
{
    struct lw_usage usage;
    return lw_usage_read(pid, &usage) && (lw_usage_is_over(&usage, programs->limits.memory_max,
                                                           sample->why, sizeof sample->why) ||
                                          has_too_much_time(programs, &usage, id, sample));
}

/* The message that it works on: that of the clock that runs. */
static int64_t
id_of(const struct lw_programs_worker *worker)
{
    const struct lw_programs_task *task = lw_programs_worker_first_open(worker);
    return task && task->has_clock ? task->id : 0;
}

static void
look_at(const struct lw_programs *programs, struct lw_programs_worker *worker)
{
    if (lw_programs_limits_are_over(programs, worker->process.pid, id_of(worker),
                                    &worker->sample)) {
        lw_programs_worker_end(worker, LW_PROGRAMS_BY_LIMIT, worker->config->host->now,
                               worker->sample.why);
    }
}

void
lw_programs_limits_watch(struct lw_programs *programs)
{
    struct lw_host *host = programs->engine.host;
    if (is_sampled(programs) && !lw_timer_is_armed(&programs->sample_timer)) {
        lw_timers_arm(&host->timers, &programs->sample_timer, host->now + SAMPLE_EVERY);
    }
}

void
lw_programs_on_sample_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, sample_timer);
    bool has_any = false;
    (void)now;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        if (worker->state != LW_PROGRAMS_IDLE) {
            look_at(programs, worker);
            has_any = true;
        }
    }
    if (has_any) {
        lw_programs_limits_watch(programs);
    }
}
