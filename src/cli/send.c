/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway send TOPIC`: each line of standard input becomes a message, confirmed before the
 * command ends with 0. The flags are those of kcat where it has them. Reading stops while many
 * messages are unconfirmed, so any amount goes through in bounded memory. A line that the broker
 * refuses is named by its number; the others go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/target.h"

enum {
    OPEN_MAX_COUNT = 10000,
    OPEN_MAX_BYTES = 32 << 20,
    LINE_MAX_BYTES = 64 << 20,
    HEADERS_MAX = 64,
    EVENTS = 64
};
#define PATIENCE_NS (30000 * LW_MS) /* without any answer from the broker */

const struct lw_flag lw_send_flags[] = {
    LW_ROW_TARGET_URL,
    LW_ROW_TARGET_PROPERTY,
    LW_ROW_CONFIG,
    LW_ROW_TARGET_BROKER,
    LW_ROW_SET,
    LW_ROW_ENV_FILE,
    { 'k', "key", "KEY", "the key of all messages" },
    { 'K', "key-delimiter", "TEXT", "each line is KEY TEXT VALUE" },
    { 'H', "header", "NAME=VALUE", "a header of all messages; may be given again" },
    { 'Z', "null", NULL, "an empty value or key is sent as null" },
    { 'p', "partition", "N", "to that partition" },
    { 'n', "count", "N", "ends after N messages" },
    LW_ROW_QUIET,
    LW_ROW_COLOR,
    LW_ROW_END,
};

/* One message until its receipt; its bytes follow it. */
struct letter {
    struct lw_publication publication; /* first */
    uint64_t line;
    size_t size;
};

struct send {
    struct lw_cli *cli;
    struct lw_target target;
    const char *topic;
    const char *key;
    const char *delimiter;
    bool sends_null;
    int32_t partition;
    long long count_max; /* 0: all */
    struct lw_header headers[HEADERS_MAX];
    size_t header_count;
    struct lw_text input;         /* read, not yet taken as lines */
    size_t taken;                 /* of input */
    struct lw_watch *input_watch; /* NULL: a file, which is always ready */
    bool is_input_ready;
    bool is_input_over;
    struct letter *waiting; /* the broker had no room for it */
    bool has_room;
    uint64_t line;
    uint64_t open; /* published without a receipt */
    size_t open_bytes;
    uint64_t sent;
    uint64_t failed;
    int first_exit_code; /* of the first failure */
    uint64_t heard_at;
    struct lw_error down; /* the last reason of the broker */
    bool is_down_said;
    bool is_started;
    bool is_closed;
};

/* -- Lines become messages ------------------------------------------------------------------------ */

static struct lw_bytes
view(const struct send *send, const char *data, size_t size)
{
    bool is_null = !data || (size == 0 && send->sends_null);
    return (struct lw_bytes){ is_null ? NULL : data, is_null ? 0 : size };
}

/* Splits at the delimiter; a line without one has no key. */
static void
set_views(struct send *send, struct letter *letter, const char *bytes, size_t size)
{
    struct lw_publication *publication = &letter->publication;
    const char *value = bytes;
    size_t delimiter = send->delimiter ? strlen(send->delimiter) : 0;
    const char *split = delimiter ? memmem(bytes, size, send->delimiter, delimiter) : NULL;
    if (split) {
        publication->key = view(send, bytes, (size_t)(split - bytes));
        value = split + delimiter;
    } else if (send->key) {
        publication->key = view(send, send->key, strlen(send->key));
    }
    publication->value = view(send, value, size - (size_t)(value - bytes));
}

static struct letter *
create_letter(struct send *send, const char *line, size_t size)
{
    struct letter *letter = lw_alloc(sizeof *letter + size + 1);
    if (!letter) {
        return NULL;
    }
    char *bytes = (char *)(letter + 1);
    memcpy(bytes, line, size);
    letter->line = ++send->line;
    letter->size = size;
    letter->publication = (struct lw_publication){
        .kind = LW_PUBLISH_OUTPUT,
        .topic = send->topic,
        .partition = send->partition,
        .headers = send->headers,
        .header_count = send->header_count,
        .event_time_ms = -1,
    };
    set_views(send, letter, bytes, size);
    return letter;
}

/* False when the broker has no room; the letter waits then. */
static bool
publish(struct send *send, struct letter *letter)
{
    struct lw_publication *publication = &letter->publication;
    struct lw_broker *broker = send->target.broker;
    if (broker->ops->publish(broker, &publication, 1) == 1) {
        send->open++;
        send->open_bytes += letter->size;
        return true;
    }
    send->waiting = letter;
    send->has_room = false;
    return false;
}

static bool
is_full(const struct send *send)
{
    bool is_enough = send->count_max > 0 && send->line >= (uint64_t)send->count_max;
    return send->waiting || send->open >= OPEN_MAX_COUNT ||
           send->open_bytes >= OPEN_MAX_BYTES || is_enough;
}

static void
fail_input(struct send *send, int exit_code)
{
    send->is_input_over = true;
    send->taken = send->input.size;
    if (send->first_exit_code == LW_EXIT_OK) {
        send->first_exit_code = exit_code;
    }
}

static void
take_line(struct send *send, const char *line, size_t size)
{
    struct letter *letter = create_letter(send, line, size);
    if (letter) {
        (void)publish(send, letter);
    } else {
        fail_input(send, lw_cli_fail_memory());
    }
}

static void
take_lines(struct send *send)
{
    while (!is_full(send) && send->taken < send->input.size) {
        const char *line = send->input.data + send->taken;
        size_t left = send->input.size - send->taken;
        const char *end = memchr(line, '\n', left);
        if (!end && !send->is_input_over) {
            break;
        }
        size_t size = end ? (size_t)(end - line) : left;
        send->taken += size + (end ? 1 : 0);
        take_line(send, line, size);
    }
    if (send->taken > 0 && send->taken * 2 >= send->input.size) {
        memmove(send->input.data, send->input.data + send->taken,
                send->input.size - send->taken);
        send->input.size -= send->taken;
        send->taken = 0;
    }
}

/* -- Input ----------------------------------------------------------------------------------------- */

static void
read_input(struct send *send)
{
    char buffer[65536];
    ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got > 0) {
        lw_text_append_bytes(&send->input, buffer, (size_t)got);
    } else if (got == 0) {
        send->is_input_over = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        lw_cli_say("laneway send: cannot read the input: %s", strerrordesc_np(errno));
        fail_input(send, LW_EXIT_DATA);
    }
    if (send->input.is_failed || send->input.size - send->taken > LINE_MAX_BYTES) {
        lw_cli_say("laneway send: line %llu is too long", (unsigned long long)send->line + 1);
        fail_input(send, LW_EXIT_DATA);
    }
    send->is_input_ready = send->input_watch == NULL;
}

static void
on_input(int fd, int events, void *user)
{
    struct send *send = user;
    (void)fd;
    (void)events;
    send->is_input_ready = true;
}

static void
watch_input(struct send *send)
{
    struct lw_host *host = lw_loop_host(send->target.loop);
    send->input_watch = host->ops->watch(host, STDIN_FILENO, LW_READABLE, on_input, send);
    send->is_input_ready = send->input_watch == NULL;
}

static void
unwatch_input(struct send *send)
{
    if (send->input_watch) {
        send->target.broker->host->ops->unwatch(send->input_watch);
        send->input_watch = NULL;
    }
}

/* Reads and publishes while there is room; watches only what could be taken. */
static void
pump(struct send *send)
{
    if (send->waiting && send->has_room) {
        struct letter *letter = send->waiting;
        send->waiting = NULL;
        (void)publish(send, letter);
    }
    take_lines(send);
    for (int i = 0; i < 16 && send->is_input_ready && !send->is_input_over && !is_full(send);
         i++) {
        read_input(send);
        take_lines(send);
    }
    if (send->input_watch) {
        bool is_wanted = !send->is_input_over && !is_full(send);
        send->target.broker->host->ops->rewatch(send->input_watch, is_wanted ? LW_READABLE : 0);
    }
}

/* -- Receipts -------------------------------------------------------------------------------------- */

/* What the broker said of one message, or what its refusal means. */
static const char *
reason_of(const struct lw_event *event)
{
    static const struct {
        enum lw_status status;
        const char *text;
    } reasons[] = {
        { LW_STATUS_TOO_LARGE, "it is larger than the broker takes" },
        { LW_STATUS_NOT_FOUND, "there is no such topic or partition" },
        { LW_STATUS_INVALID, "the broker does not take it as it is" },
        { LW_STATUS_DENIED, "the broker denies writing to the topic" },
        { LW_STATUS_UNAVAILABLE, "the broker did not take it" },
        { LW_STATUS_UNKNOWN, "the broker did not confirm it: it may have arrived" },
    };
    if (event->error && event->error->message[0]) {
        return event->error->message;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == event->status) {
            return reasons[i].text;
        }
    }
    return lw_status_name(event->status);
}

static void
on_receipt(struct send *send, const struct lw_event *event)
{
    struct letter *letter = (struct letter *)(void *)event->publication;
    struct lw_error error = { .status = event->status };
    send->open--;
    send->open_bytes -= letter->size;
    if (event->status == LW_STATUS_OK) {
        send->sent++;
    } else {
        send->failed++;
        if (send->failed <= 10) {
            lw_cli_say("laneway send: line %llu was not accepted: %s",
                       (unsigned long long)letter->line, reason_of(event));
        }
        if (send->first_exit_code == LW_EXIT_OK) {
            send->first_exit_code = lw_error_exit_code(&error);
        }
    }
    lw_free(letter);
}

static void
on_down(struct send *send, const struct lw_event *event)
{
    if (event->error) {
        send->down = *event->error;
    }
    if (!send->is_down_said && event->error) {
        (void)lw_cli_fail(send->cli, event->error);
        lw_cli_say("laneway send: tries again for %llu s",
                   (unsigned long long)(PATIENCE_NS / (1000 * LW_MS)));
        send->is_down_said = true;
    }
}

static void
on_event(struct send *send, const struct lw_event *event)
{
    if (event->kind == LW_EVENT_PUBLISHED) {
        send->heard_at = send->target.broker->host->now;
        on_receipt(send, event);
    } else if (event->kind == LW_EVENT_PUBLISH_ROOM) {
        send->has_room = true;
    } else if (event->kind == LW_EVENT_BROKER_DOWN) {
        on_down(send, event);
    } else if (event->kind == LW_EVENT_CLOSED) {
        send->is_closed = true;
    }
}

static void
take_events(struct send *send)
{
    struct lw_event events[EVENTS];
    struct lw_broker *broker = send->target.broker;
    size_t count;
    do {
        count = broker->ops->events(broker, events, EVENTS);
        for (size_t i = 0; i < count; i++) {
            on_event(send, &events[i]);
        }
    } while (count == EVENTS);
}

/* -- The whole ------------------------------------------------------------------------------------- */

static bool
is_done(const struct send *send)
{
    bool is_enough = send->count_max > 0 && send->line >= (uint64_t)send->count_max;
    bool is_read = is_enough || (send->is_input_over && send->taken >= send->input.size);
    return is_read && send->open == 0 && !send->waiting;
}

/* Messages are out and nobody answered for long. */
static bool
is_given_up(const struct send *send)
{
    const struct lw_host *host = send->target.broker->host;
    return send->open + (send->waiting != NULL) > 0 && host->now - send->heard_at > PATIENCE_NS;
}

static void
close_broker(struct send *send)
{
    struct lw_broker *broker = send->target.broker;
    uint64_t deadline = broker->host->now + PATIENCE_NS / 3;
    broker->ops->close(broker);
    while (!send->is_closed && broker->host->now < deadline) {
        lw_loop_turn_until(send->target.loop, deadline);
        take_events(send);
    }
}

static int
work(struct send *send)
{
    struct lw_error error = { 0 };
    struct lw_broker *broker = send->target.broker;
    if (broker->ops->start(broker, &error) != LW_STATUS_OK) {
        return lw_cli_fail(send->cli, &error);
    }
    send->is_started = true;
    watch_input(send);
    send->heard_at = broker->host->now;
    while (!is_done(send) && !is_given_up(send)) {
        pump(send);
        bool may_sleep = send->input_watch || is_full(send) || send->is_input_over;
        uint64_t now = broker->host->now;
        lw_loop_turn_until(send->target.loop, may_sleep ? now + PATIENCE_NS / 30 : now);
        take_events(send);
        if (send->open == 0 && !send->waiting) {
            send->heard_at = broker->host->now;
        }
    }
    unwatch_input(send);
    bool is_unfinished = !is_done(send);
    close_broker(send);
    if (is_unfinished) {
        lw_cli_say("laneway send: nobody confirmed %llu message(s): they may or may not have "
                   "arrived",
                   (unsigned long long)send->open + (send->waiting != NULL ? 1 : 0));
        return LW_EXIT_UNAVAILABLE;
    }
    return send->first_exit_code;
}

static bool
add_header(struct send *send)
{
    const char *text = send->cli->value;
    const char *equals = strchr(text, '=');
    if (send->header_count == HEADERS_MAX) {
        send->cli->exit_code = lw_cli_usage(send->cli, "more than %d headers", HEADERS_MAX);
        return false;
    }
    struct lw_header *header = &send->headers[send->header_count++];
    header->name = (struct lw_bytes){ text, equals ? (size_t)(equals - text) : strlen(text) };
    header->value = lw_bytes_of(equals ? equals + 1 : NULL);
    return true;
}

static bool
read_partition(struct send *send)
{
    long long number = 0;
    if (!lw_cli_number(send->cli, "partition", 0, INT32_MAX, &number)) {
        return false;
    }
    send->partition = (int32_t)number;
    return true;
}

static bool
read_flag(struct send *send, int id)
{
    switch (id) {
    case 'k':
        send->key = send->cli->value;
        return true;
    case 'K':
        send->delimiter = send->cli->value;
        return true;
    case 'H':
        return add_header(send);
    case 'Z':
        send->sends_null = true;
        return true;
    case 'p':
        return read_partition(send);
    case 'n':
        return lw_cli_number(send->cli, "count", 1, INT64_MAX, &send->count_max);
    default:
        return id != LW_FLAG_STOP && lw_target_take(&send->target, send->cli, id);
    }
}

int
lw_command_send(struct lw_cli *cli)
{
    struct send send = { .cli = cli, .partition = -1, .has_room = true };
    bool is_good = true;
    int id;
    while (is_good && (id = lw_cli_next(cli)) != LW_FLAG_END) {
        is_good = read_flag(&send, id);
    }
    if (is_good && cli->argument_count != 1) {
        cli->exit_code = lw_cli_usage(cli, "say which TOPIC");
        is_good = false;
    }
    lw_text_init(&send.input);
    is_good = is_good && lw_target_open(&send.target, cli);
    int exit_code = cli->exit_code;
    if (is_good) {
        send.topic = cli->arguments[0];
        exit_code = work(&send);
    }
    if (is_good && !cli->is_quiet) {
        lw_cli_say("sent %llu, failed %llu", (unsigned long long)send.sent,
                   (unsigned long long)send.failed);
    }
    if (send.is_started && !send.is_closed) {
        return exit_code; /* a broker that does not end is ended with the process */
    }
    lw_target_close(&send.target);
    lw_free(send.waiting);
    lw_text_deinit(&send.input);
    return exit_code;
}
