/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_run HUB GROUP CONFIG TOPIC...: a service on a broker in memory, for tests of handler
 * programs. CONFIG names that broker as `memory:HUB` with `mode: individual`. Messages come on
 * standard input, one JSON object a line (topic, key, value, value_b64, headers); when GROUP has
 * acknowledged all of TOPICs the service drains, and everything that was published meanwhile has
 * been printed in the same form, in order. The log goes to standard error. Exit status 1 if that
 * takes more than four minutes.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <laneway/laneway.h>

#include "base/alloc.h"
#include "base/json.h"
#include "brokers/memory/hub.h"

enum { HEADERS_MAX = 16, SECONDS_MAX = 240, TURN_MS = 1000 };

struct input {
    struct lw_memory_item item;
    struct lw_header headers[HEADERS_MAX];
    void *decoded;
};

struct run {
    struct lw_memory_hub *hub;
    uint64_t acks_wanted; /* before that many, looking at backlogs is of no use */
    struct lw_dispatcher *dispatcher;
    const char *group;
    char **topics;
};

_Noreturn static void
give_up(const char *what, const char *why)
{
    fprintf(stderr, "memory_run: %s: %s\n", what, why);
    exit(1);
}

/* -- Messages in ------------------------------------------------------------------------------- */

static struct lw_bytes
bytes_of(const json_t *text)
{
    return (struct lw_bytes){ json_string_value(text), json_string_length(text) };
}

static void
read_headers(json_t *object, struct input *input)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(object, name, value)
    {
        if (input->item.header_count == HEADERS_MAX) {
            give_up("headers", "too many");
        }
        input->headers[input->item.header_count++] = (struct lw_header){ lw_bytes_of(name),
                                                                         bytes_of(value) };
    }
    input->item.headers = input->headers;
}

static void
publish(struct lw_memory_hub *hub, json_t *message)
{
    struct input input = { .decoded = NULL };
    size_t size = 0;
    const json_t *coded = json_object_get(message, "value_b64");
    input.item = lw_memory_item_of(json_string_value(json_object_get(message, "topic")), NULL,
                                   NULL);
    input.item.key = bytes_of(json_object_get(message, "key"));
    input.item.value = bytes_of(json_object_get(message, "value"));
    if (coded) {
        struct lw_bytes text = bytes_of(coded);
        if (!lw_base64_decode(text.data, text.size, &input.decoded, &size)) {
            give_up("value_b64", "not base64");
        }
        input.item.value = (struct lw_bytes){ input.decoded, size };
    }
    read_headers(json_object_get(message, "headers"), &input);
    if (!input.item.topic ||
        lw_memory_hub_publish(hub, &input.item, NULL, NULL) != LW_STATUS_OK) {
        give_up("a message", "cannot be published");
    }
    lw_free(input.decoded);
}

static uint64_t
publish_all(struct lw_memory_hub *hub)
{
    uint64_t count = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t size = 0;
    while ((size = getline(&line, &room, stdin)) > 0) {
        json_error_t error;
        json_t *message = json_loadb(line, (size_t)size, JSON_ALLOW_NUL, &error);
        if (!message) {
            give_up("a line of standard input", error.text);
        }
        publish(hub, message);
        json_decref(message);
        count++;
    }
    free(line); /* getline allocated it */
    return count;
}

/* -- Messages out ------------------------------------------------------------------------------ */

static void
write_content(struct lw_json *json, const char *name, struct lw_bytes bytes)
{
    char name_b64[32];
    if (bytes.data && !lw_text_is_utf8(bytes.data, bytes.size)) {
        (void)snprintf(name_b64, sizeof name_b64, "%s_b64", name);
        lw_json_key(json, name_b64);
        lw_json_base64(json, bytes);
    } else {
        lw_json_key(json, name);
        lw_json_bytes(json, bytes);
    }
}

static void
print_message(const struct lw_memory_view *view, void *user)
{
    struct lw_text text;
    struct lw_json json;
    (void)user;
    lw_text_init(&text);
    lw_json_init(&json, &text);
    lw_json_object(&json);
    lw_json_key(&json, "topic");
    lw_json_string(&json, view->topic);
    write_content(&json, "key", view->key);
    write_content(&json, "value", view->value);
    lw_json_key(&json, "headers");
    lw_json_object(&json);
    for (size_t i = 0; i < view->header_count; i++) {
        lw_json_key_bytes(&json, view->headers[i].name);
        lw_json_bytes(&json, view->headers[i].value);
    }
    lw_json_object_end(&json);
    lw_json_object_end(&json);
    if (text.is_failed || printf("%.*s\n", (int)text.size, text.data) < 0) {
        give_up("standard output", "cannot be written");
    }
    lw_text_deinit(&text);
}

static void
print_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
          void *user)
{
    static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
    (void)user;
    fprintf(stderr, "%s %s: %s %s\n", names[level], event, text, fields);
}

/* -- The run ----------------------------------------------------------------------------------- */

static void
count_ack(const struct lw_memory_view *view, bool is_ack, void *user)
{
    struct run *run = user;
    (void)view;
    run->acks_wanted -= is_ack && run->acks_wanted > 0 ? 1 : 0;
}

/* Counting a backlog goes through it. */
static bool
is_done(const struct run *run)
{
    uint64_t sum = run->acks_wanted;
    for (char **topic = run->topics; *topic && sum == 0; topic++) {
        sum += lw_memory_hub_backlog(run->hub, run->group, *topic);
    }
    return sum == 0;
}

static time_t
seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void
run_dry(const struct run *run)
{
    struct lw_error error = { 0 };
    struct pollfd wake = { .fd = lw_dispatcher_fd(run->dispatcher), .events = POLLIN };
    time_t deadline = seconds() + SECONDS_MAX;
    bool is_closing = false;
    enum lw_status status = LW_STATUS_OK;
    while ((status = lw_dispatcher_poll(run->dispatcher, &error)) == LW_STATUS_OK) {
        if (!is_closing && is_done(run)) {
            lw_dispatcher_request_close(run->dispatcher);
            is_closing = true;
        }
        if (seconds() > deadline) {
            give_up("messages are left", run->topics[0]);
        }
        if (poll(&wake, 1, TURN_MS) < 0 && errno != EINTR) {
            give_up("poll", "failed");
        }
    }
    if (status != LW_STATUS_CLOSED) {
        give_up("run", error.message);
    }
}

int
main(int argc, char **argv)
{
    struct lw_error error = { 0 };
    struct lw_memory_options options;
    struct lw_memory_observer observer = { .appended = print_message, .settled = count_ack };
    struct lw_dispatcher_options dispatcher_options;
    if (argc < 5) {
        give_up("usage", "memory_run HUB GROUP CONFIG TOPIC...");
    }
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    struct run run = { .group = argv[2], .topics = argv + 4 };
    run.hub = lw_memory_hub_open(argv[1], &options);
    lw_dispatcher_options_init(&dispatcher_options);
    dispatcher_options.log = print_log;
    run.dispatcher = lw_dispatcher_create(&dispatcher_options, &error);
    if (!run.hub || !run.dispatcher) {
        give_up("start", "no memory");
    }
    if (lw_dispatcher_load(run.dispatcher, argv[3], NULL, 0, &error) != LW_STATUS_OK) {
        give_up(argv[3], error.message);
    }
    run.acks_wanted = publish_all(run.hub);
    observer.user = &run;
    lw_memory_hub_observe(run.hub, &observer);
    run_dry(&run);
    lw_dispatcher_destroy(run.dispatcher);
    lw_memory_hub_close(run.hub);
    return 0;
}
