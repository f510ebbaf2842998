/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of requests. Pauses have a timer each when they end by themselves; who paused what
 * and why is kept for the report and logged, since a pause that nobody remembers is an outage.
 */
#include "service/requests.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "service/service.h"

enum { EXPLAIN_MAX = 1000, EXPLAIN_DEFAULT = 100 };
#define PAUSE_MS_MAX (366LL * 24 * 3600 * 1000)

struct pause_end {
    struct lw_timer timer;
    struct lw_requests *requests;
    struct lw_stream *stream;
};

struct lw_requests {
    struct lw_dispatcher *dispatcher;
    struct lw_report report;
    struct pause_end *ends; /* by stream */
};

struct request {
    const char *name;
    /* Adds to the open object; on failure it adds nothing. */
    enum lw_status (*answer)(struct lw_requests *requests, const json_t *request,
                             struct lw_json *json, struct lw_error *ret_error);
};

/* -- Reading arguments --------------------------------------------------------------------------- */

static const char *
text_of(const json_t *request, const char *key)
{
    return json_string_value(json_object_get(request, key));
}

static bool
wants_text(const json_t *request)
{
    const char *as = text_of(request, "as");
    return as && strcmp(as, "text") == 0;
}

static enum lw_status
number_of(const json_t *request, const char *key, int64_t max, int64_t *ret_value,
          struct lw_error *ret_error)
{
    const json_t *value = json_object_get(request, key);
    if (!value) {
        return LW_STATUS_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > max) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "\"%s\" must be a whole number from 0 to %lld", key,
                            (long long)max);
    }
    *ret_value = json_integer_value(value);
    return LW_STATUS_OK;
}

/* -- status, explain ----------------------------------------------------------------------------- */

static enum lw_status
put_text(struct lw_json *json, struct lw_text *text, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    if (text->is_failed) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    } else {
        lw_json_key(json, "text");
        lw_json_bytes(json, (struct lw_bytes){ text->data ? text->data : "", text->size });
    }
    lw_text_deinit(text);
    return status;
}

static enum lw_status
answer_status(struct lw_requests *requests, const json_t *request, struct lw_json *json,
              struct lw_error *ret_error)
{
    struct lw_text text;
    if (wants_text(request)) {
        lw_text_init(&text);
        lw_report_status_text(&requests->report, &text);
        return put_text(json, &text, ret_error);
    }
    lw_json_key(json, "status");
    lw_report_status_json(&requests->report, json);
    return LW_STATUS_OK;
}

static bool
has_topic(const struct lw_dispatcher *dispatcher, const char *topic)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        if (strcmp(dispatcher->streams[i]->topic, topic) == 0) {
            return true;
        }
    }
    return false;
}

static enum lw_status
answer_explain(struct lw_requests *requests, const json_t *request, struct lw_json *json,
               struct lw_error *ret_error)
{
    struct lw_text text;
    const char *topic = text_of(request, "topic");
    int64_t max = EXPLAIN_DEFAULT;
    enum lw_status status = number_of(request, "max", EXPLAIN_MAX, &max, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (topic && !has_topic(requests->dispatcher, topic)) {
        return lw_error_set(ret_error, LW_STATUS_NOT_FOUND, "E0204",
                            "no topic \"%s\" is consumed here", topic);
    }
    if (wants_text(request)) {
        lw_text_init(&text);
        lw_report_explain_text(&requests->report, topic, (uint32_t)max, &text);
        return put_text(json, &text, ret_error);
    }
    lw_json_key(json, "explain");
    lw_report_explain_json(&requests->report, topic, (uint32_t)max, json);
    return LW_STATUS_OK;
}

/* -- pause, resume ------------------------------------------------------------------------------- */

/* PIPELINE, PIPELINE/TOPIC, or a TOPIC. */
static bool
is_target(const struct lw_stream *stream, const char *target)
{
    size_t length = strlen(stream->pipeline);
    if (strcmp(target, stream->pipeline) == 0 || strcmp(target, stream->topic) == 0) {
        return true;
    }
    return strncmp(target, stream->pipeline, length) == 0 && target[length] == '/' &&
           strcmp(target + length + 1, stream->topic) == 0;
}

static void
log_pause(struct lw_requests *requests, const struct lw_stream *stream, bool is_paused)
{
    const struct lw_pause_note *note = &requests->report.pauses[stream->subscription.index];
    char who[80];
    char why[200];
    lw_host_log(requests->dispatcher->host, LW_LOG_WARN,
                is_paused ? "topic.paused" : "topic.resumed", is_paused ? "paused" : "resumed",
                "pipeline=%s topic=%s who=%s why=%s", stream->pipeline, stream->topic,
                lw_log_quote(note->who, who, sizeof who),
                lw_log_quote(note->why, why, sizeof why));
}

static void
resume(struct lw_requests *requests, struct lw_stream *stream)
{
    struct pause_end *end = &requests->ends[stream->subscription.index];
    lw_timers_disarm(&requests->dispatcher->host->timers, &end->timer);
    if (stream->subscription.is_paused) {
        lw_dispatcher_pause(requests->dispatcher, stream, false);
        log_pause(requests, stream, false);
    }
}

static void
on_pause_end(struct lw_timer *timer, uint64_t now)
{
    struct pause_end *end = LW_CONTAINER(timer, struct pause_end, timer);
    (void)now;
    resume(end->requests, end->stream);
    lw_host_want_turn(end->requests->dispatcher->host);
}

static void
pause_stream(struct lw_requests *requests, struct lw_stream *stream,
             const struct lw_pause_note *note)
{
    struct lw_host *host = requests->dispatcher->host;
    struct pause_end *end = &requests->ends[stream->subscription.index];
    requests->report.pauses[stream->subscription.index] = *note;
    lw_timers_disarm(&host->timers, &end->timer);
    if (note->until_ms > 0) {
        uint64_t left_ms = (uint64_t)(note->until_ms - note->since_ms);
        lw_timers_arm(&host->timers, &end->timer, host->now + left_ms * LW_MS);
    }
    lw_dispatcher_pause(requests->dispatcher, stream, true);
    log_pause(requests, stream, true);
}

/* Applies to all that the target names: pauses with a note, resumes without. */
static enum lw_status
apply(struct lw_requests *requests, const json_t *request, const struct lw_pause_note *note,
      struct lw_json *json, struct lw_error *ret_error)
{
    struct lw_dispatcher *dispatcher = requests->dispatcher;
    const char *target = text_of(request, "target");
    int64_t count = 0;
    if (!target) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "\"target\" is missing");
    }
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (!is_target(stream, target)) {
            continue;
        }
        if (note) {
            pause_stream(requests, stream, note);
        } else {
            resume(requests, stream);
        }
        count++;
    }
    if (count == 0) {
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_NOT_FOUND, "E0205",
                                             "no pipeline or topic is called \"%s\"", target);
        lw_error_help(ret_error, "laneway status lists the topics");
        return status;
    }
    lw_host_want_turn(dispatcher->host);
    lw_json_key(json, "topics");
    lw_json_int(json, count);
    return LW_STATUS_OK;
}

static enum lw_status
answer_pause(struct lw_requests *requests, const json_t *request, struct lw_json *json,
             struct lw_error *ret_error)
{
    struct lw_host *host = requests->dispatcher->host;
    struct lw_pause_note note = { .since_ms = host->ops->wall_ms(host) };
    const char *who = text_of(request, "who");
    const char *why = text_of(request, "why");
    int64_t for_ms = 0;
    enum lw_status status = number_of(request, "for_ms", PAUSE_MS_MAX, &for_ms, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    lw_text_copy(note.who, sizeof note.who, who ? who : "");
    lw_text_copy(note.why, sizeof note.why, why ? why : "");
    note.until_ms = for_ms > 0 ? note.since_ms + for_ms : 0;
    return apply(requests, request, &note, json, ret_error);
}

static enum lw_status
answer_resume(struct lw_requests *requests, const json_t *request, struct lw_json *json,
              struct lw_error *ret_error)
{
    return apply(requests, request, NULL, json, ret_error);
}

static enum lw_status
answer_drain(struct lw_requests *requests, const json_t *request, struct lw_json *json,
             struct lw_error *ret_error)
{
    (void)request;
    (void)ret_error;
    lw_dispatcher_request_close(requests->dispatcher);
    lw_json_key(json, "drain_timeout_ms");
    lw_json_int(json, requests->dispatcher->options.drain_timeout_ms);
    return LW_STATUS_OK;
}

/* -- The table ----------------------------------------------------------------------------------- */

static const struct request table[] = {
    { "status", answer_status }, { "explain", answer_explain }, { "pause", answer_pause },
    { "resume", answer_resume }, { "drain", answer_drain },
};

static enum lw_status
answer_into(struct lw_requests *requests, const json_t *request, struct lw_json *json,
            struct lw_error *ret_error)
{
    const char *name = text_of(request, "request");
    if (!name) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "\"request\" is missing");
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return table[i].answer(requests, request, json, ret_error);
        }
    }
    return lw_error_set(ret_error, LW_STATUS_UNSUPPORTED, "", "there is no request \"%.40s\"",
                        name);
}

static void
put_error(struct lw_json *json, const struct lw_error *error)
{
    lw_json_key(json, "ok");
    lw_json_bool(json, false);
    lw_json_key(json, "code");
    lw_json_string(json, error->code[0] ? error->code : NULL);
    lw_json_key(json, "error");
    lw_json_string(json, error->message);
    lw_json_key(json, "help");
    lw_json_string(json, error->help[0] ? error->help : NULL);
    lw_json_key(json, "status");
    lw_json_string(json, lw_status_name(error->status));
    lw_json_key(json, "exit");
    lw_json_int(json, lw_error_exit_code(error));
}

static enum lw_status
parse(const char *line, size_t length, json_t **ret_request, struct lw_error *ret_error)
{
    json_error_t problem;
    *ret_request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
    if (!*ret_request) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "the request is no JSON: %s",
                            problem.text);
    }
    return LW_STATUS_OK;
}

void
lw_requests_answer(struct lw_requests *requests, const char *line, size_t length,
                   struct lw_text *out)
{
    struct lw_error error = { 0 };
    json_t *request = NULL;
    struct lw_text body;
    struct lw_json json;
    lw_text_init(&body);
    lw_json_init(&json, &body);
    lw_json_object(&json);
    enum lw_status status = parse(line, length, &request, &error);
    if (status == LW_STATUS_OK) {
        status = answer_into(requests, request, &json, &error);
    }
    if (status == LW_STATUS_OK) {
        lw_json_key(&json, "ok");
        lw_json_bool(&json, true);
    } else {
        put_error(&json, &error);
    }
    lw_json_object_end(&json);
    json_decref(request);
    if (body.is_failed) {
        lw_text_append(out, "{\"ok\":false,\"error\":\"out of memory\",\"exit\":71}\n");
    } else {
        lw_text_append_bytes(out, body.data, body.size);
        lw_text_append_char(out, '\n');
    }
    lw_text_deinit(&body);
}

/* -- Making -------------------------------------------------------------------------------------- */

enum lw_status
lw_requests_create(struct lw_dispatcher *dispatcher, struct lw_requests **ret_requests)
{
    struct lw_requests *requests = lw_alloc(sizeof *requests);
    uint32_t count = dispatcher->stream_count;
    if (!requests) {
        return LW_STATUS_NO_MEMORY;
    }
    requests->dispatcher = dispatcher;
    requests->ends = lw_alloc_array(count ? count : 1, sizeof *requests->ends);
    if (!requests->ends || lw_report_init(&requests->report, dispatcher) != LW_STATUS_OK) {
        lw_free(requests->ends);
        lw_free(requests);
        return LW_STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        struct pause_end *end = &requests->ends[stream->subscription.index];
        lw_timer_init(&end->timer, on_pause_end);
        end->requests = requests;
        end->stream = stream;
    }
    *ret_requests = requests;
    return LW_STATUS_OK;
}

void
lw_requests_destroy(struct lw_requests *requests)
{
    if (!requests) {
        return;
    }
    for (uint32_t i = 0; i < requests->report.count; i++) {
        lw_timers_disarm(&requests->dispatcher->host->timers, &requests->ends[i].timer);
    }
    lw_report_deinit(&requests->report);
    lw_free(requests->ends);
    lw_free(requests);
}

const struct lw_report *
lw_requests_report(const struct lw_requests *requests)
{
    return &requests->report;
}
