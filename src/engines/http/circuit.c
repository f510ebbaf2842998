/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the service is asked at all (the states are drawn in http.h), and how many requests
 * are taken: what the pool has free, one while HALF_OPEN, none while it is down, paused by
 * Retry-After, short of memory or stopping. Why it is down is kept for people, with what helps.
 */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "engines/http/http.h"
#include "engines/http/url.h"

#define BACKOFF_MIN (1000 * LW_MS)
#define BACKOFF_MAX (30000 * LW_MS)
#define MEMORY_AFTER (100 * LW_MS)
#define SHOWN_BYTES_MAX 200

static bool
is_open(const struct lw_http *http)
{
    return http->circuit == LW_HTTP_OPEN || http->circuit == LW_HTTP_PROBING;
}

static uint32_t
room_of(const struct lw_http *http)
{
    if (http->is_stopping || http->is_memory_short || http->paused_until > 0 || is_open(http)) {
        return 0;
    }
    if (http->circuit == LW_HTTP_HALF_OPEN) {
        return !http->trial && http->running_count < http->connections ? 1 : 0;
    }
    return http->connections - http->running_count;
}

static void write_pause(struct lw_http *http, int64_t wait_ms);

/* The pause is all that is left of what it was down for. */
static void
tell_of_pause(struct lw_http *http)
{
    uint64_t now = http->engine.host->now;
    if (http->paused_until > now && !is_open(http) && !http->is_pause_said) {
        write_pause(http, (int64_t)((http->paused_until - now) / LW_MS));
    }
}

void
lw_http_update_room(struct lw_http *http)
{
    tell_of_pause(http);
    bool is_down = !http->is_stopping && (is_open(http) || http->paused_until > 0);
    uint32_t room = room_of(http);
    bool has_room_changed = (room == 0) != (http->engine.room == 0);
    if (has_room_changed || is_down != http->engine.is_down) {
        http->engine.has_changed = true;
    }
    http->engine.room = room;
    http->engine.up_at = is_open(http) ? 0 : http->paused_until;
    http->engine.is_down = is_down;
}

/* -- What people are told -------------------------------------------------------------------------- */

static void
write_who(const struct lw_http *http, char *out, size_t size)
{
    bool has_one = http->pipeline != NULL;
    (void)snprintf(out, size, "%s%.150s %s", has_one ? "pipeline " : "",
                   has_one ? http->pipeline : "its pipelines", has_one ? "is" : "are");
}

static void
write_error(struct lw_http *http, const char *code, const char *why, uint64_t wait_ns)
{
    char who[180];
    char wait[32];
    struct lw_error *error = &http->engine.down_error;
    bool is_garbage = code[4] == '1'; /* E0621 */
    bool is_tls = strncasecmp(http->options.url, "https:", 6) == 0;
    size_t origin = lw_http_url_origin(http->options.url); /* what follows may be secret */
    int shown = origin < SHOWN_BYTES_MAX ? (int)origin : SHOWN_BYTES_MAX;
    http->is_pause_said = false;
    lw_text_from_duration_ms((int64_t)(wait_ns / LW_MS), wait, sizeof wait);
    write_who(http, who, sizeof who);
    lw_error_set(error, LW_STATUS_UNAVAILABLE, code, "handler \"%s\" %s %.*s: %s", http->name,
                 is_garbage ? "gets no answer in HTTP from" : "cannot reach", shown,
                 http->options.url, why);
    lw_error_help(error, "%s paused until it works; no message was charged. Next try in %s.%s",
                  who, wait,
                  !is_garbage ? ""
                  : is_tls    ? " Does it want a certificate of ours (tls.certificate_file)?"
                              : " Does something else listen there, or does it speak TLS "
                                "(https://)?");
    error->is_retriable = true;
}

static void
write_pause(struct lw_http *http, int64_t wait_ms)
{
    char who[180];
    char wait[32];
    struct lw_error *error = &http->engine.down_error;
    http->is_pause_said = true;
    lw_text_from_duration_ms(wait_ms, wait, sizeof wait);
    write_who(http, who, sizeof who);
    lw_error_set(error, LW_STATUS_UNAVAILABLE, "E0622",
                 "the service of handler \"%s\" asked for a pause of %s (%s)", http->name, wait,
                 http->pause_why);
    lw_error_help(error, "%s paused for that time; no message was charged", who);
    error->is_retriable = true;
}

/* -- The circuit ------------------------------------------------------------------------------------ */

void
lw_http_circuit_on_answer(struct lw_http *http)
{
    bool was_off = http->circuit != LW_HTTP_CLOSED;
    http->has_answered = true;
    http->failures = 0;
    if (!was_off) {
        return;
    }
    lw_http_transfer_end_probe(&http->probe);
    http->circuit = LW_HTTP_CLOSED;
    lw_timers_disarm(&http->engine.host->timers, &http->circuit_timer);
    lw_host_log(http->engine.host, LW_LOG_INFO, "handler.up", "the handler works again",
                "handler=%s", http->name);
    lw_http_update_room(http);
}

void
lw_http_circuit_on_connected(struct lw_http *http)
{
    http->circuit = LW_HTTP_HALF_OPEN;
    http->trial = NULL;
    lw_host_log(http->engine.host, LW_LOG_DEBUG, "handler.probe",
                "the service takes connections again: one message is tried", "handler=%s",
                http->name);
    lw_http_update_room(http);
}

/* The first failure counts; those of requests that were under way with it say nothing new, and
 * a probe that is under way knows better. */
void
lw_http_circuit_on_failure(struct lw_http *http, const char *code, const char *why)
{
    struct lw_host *host = http->engine.host;
    bool is_probed = http->circuit == LW_HTTP_PROBING && http->probe.easy;
    if (http->circuit == LW_HTTP_OPEN || is_probed || http->is_stopping) {
        lw_http_update_room(http);
        return;
    }
    uint32_t doublings = http->failures < 5 ? http->failures : 5;
    uint64_t wait_ns = BACKOFF_MIN << doublings;
    wait_ns = wait_ns < BACKOFF_MAX ? wait_ns : BACKOFF_MAX;
    http->failures++;
    http->circuit = LW_HTTP_OPEN;
    write_error(http, code, why, wait_ns);
    lw_timers_arm(&host->timers, &http->circuit_timer, host->now + wait_ns);
    lw_host_log(host, LW_LOG_ERROR, "handler.down", http->engine.down_error.message,
                "code=%s handler=%s help=%s", code, http->name, http->engine.down_error.help);
    http->engine.has_changed = true;
    lw_http_update_room(http);
}

static void
on_circuit_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_http *http = LW_CONTAINER(timer, struct lw_http, circuit_timer);
    (void)now;
    http->circuit = LW_HTTP_PROBING;
    if (!lw_http_transfer_begin_probe(&http->probe)) {
        http->circuit = LW_HTTP_OPEN;
        lw_timers_arm(&http->engine.host->timers, timer, http->engine.host->now + MEMORY_AFTER);
    }
}

/* -- Pauses ------------------------------------------------------------------------------------------ */

void
lw_http_circuit_pause(struct lw_http *http, int64_t wait_ms, const char *why)
{
    struct lw_host *host = http->engine.host;
    wait_ms = wait_ms < http->options.max_hold_ms ? wait_ms : http->options.max_hold_ms;
    uint64_t until = host->now + (uint64_t)wait_ms * LW_MS;
    if (wait_ms == 0 || until <= http->paused_until || http->is_stopping) {
        return;
    }
    if (http->paused_until == 0) {
        lw_host_log(host, LW_LOG_WARN, "handler.paused", "the service asked for a pause",
                    "code=E0622 handler=%s wait_ms=%" PRId64 " by=%s", http->name, wait_ms,
                    why);
    }
    http->pause_why = why;
    http->paused_until = until;
    write_pause(http, wait_ms);
    lw_timers_arm(&host->timers, &http->pause_timer, until);
    lw_http_update_room(http);
}

static void
on_pause_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_http *http = LW_CONTAINER(timer, struct lw_http, pause_timer);
    (void)now;
    http->paused_until = 0;
    lw_http_update_room(http);
}

void
lw_http_wait_for_memory(struct lw_http *http)
{
    struct lw_host *host = http->engine.host;
    http->is_memory_short = true;
    lw_timers_arm(&host->timers, &http->memory_timer, host->now + MEMORY_AFTER);
    lw_http_update_room(http);
}

static void
on_memory_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_http *http = LW_CONTAINER(timer, struct lw_http, memory_timer);
    (void)now;
    http->is_memory_short = false;
    lw_http_update_room(http);
}

void
lw_http_circuit_init(struct lw_http *http)
{
    lw_timer_init(&http->circuit_timer, on_circuit_timer);
    lw_timer_init(&http->pause_timer, on_pause_timer);
    lw_timer_init(&http->memory_timer, on_memory_timer);
}

void
lw_http_circuit_deinit(struct lw_http *http)
{
    struct lw_timers *timers = &http->engine.host->timers;
    lw_timers_disarm(timers, &http->circuit_timer);
    lw_timers_disarm(timers, &http->pause_timer);
    lw_timers_disarm(timers, &http->memory_timer);
}
