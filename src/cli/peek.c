/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway peek TOPIC`: prints messages without joining a group and without moving anything. The
 * flags are those of kcat where it has them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "brokers/common/peek.h"
#include "cli/target.h"
#include "service/registry.h"

const struct lw_flag lw_peek_flags[] = {
    LW_ROW_TARGET_URL,
    LW_ROW_TARGET_PROPERTY,
    LW_ROW_CONFIG,
    LW_ROW_TARGET_BROKER,
    LW_ROW_SET,
    LW_ROW_ENV_FILE,
    { 'o', "offset", "WHERE",
      "beginning (default), end; Kafka: a number, or -N: the last N; Pulsar: an id such as "
      "12:7, "
      "or -5m: the last five minutes" },
    { 'p', "partition", "N", "only that partition" },
    { 'e', "exit", NULL, "ends at the end of the topic; else waits for more" },
    { 'n', "count", "N", "ends after N messages" },
    { 'f', "format", "FORMAT", "how to print one, such as '%t [%p] %o: %k %s\\n'" },
    LW_ROW_JSON,
    LW_ROW_COLOR,
    LW_ROW_END,
};

enum { FLUSH_BYTES = 65536, TIMEOUT_MS = 10000 };

struct peek {
    struct lw_cli *cli;
    struct lw_target target;
    struct lw_peek options;
    const char *format;
    long long count_max; /* 0: no end */
    long long count;
};

/* -- One message ------------------------------------------------------------------------------- */

static void
put_maybe_binary(struct lw_json *json, const char *key, struct lw_bytes bytes)
{
    char name[32];
    if (!bytes.data || lw_text_is_utf8(bytes.data, bytes.size)) {
        lw_json_key(json, key);
        lw_json_bytes(json, bytes);
        return;
    }
    (void)snprintf(name, sizeof name, "%s_b64", key);
    lw_json_key(json, name);
    lw_json_base64(json, bytes);
}

static void
put_headers(struct lw_json *json, const struct lw_peeked *message)
{
    lw_json_key(json, "headers");
    lw_json_array(json);
    for (size_t i = 0; i < message->header_count; i++) {
        lw_json_object(json);
        lw_json_key(json, "name");
        lw_json_bytes(json, message->headers[i].name);
        put_maybe_binary(json, "value", message->headers[i].value);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}

static void
append_json(const struct lw_peeked *message, struct lw_text *out)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_object(&json);
    lw_json_key(&json, "topic");
    lw_json_string(&json, message->topic);
    lw_json_key(&json, "partition");
    lw_json_int(&json, message->partition);
    lw_json_key(&json, message->place ? "id" : "offset");
    if (message->place) {
        lw_json_string(&json, message->place);
    } else {
        lw_json_int(&json, message->offset);
    }
    lw_json_key(&json, "timestamp");
    lw_json_int(&json, message->timestamp_ms);
    if (message->event_time_ms >= 0) {
        lw_json_key(&json, "event_time");
        lw_json_int(&json, message->event_time_ms);
    }
    put_maybe_binary(&json, "key", message->key);
    if (message->ordering_key.data) {
        put_maybe_binary(&json, "ordering_key", message->ordering_key);
    }
    put_headers(&json, message);
    put_maybe_binary(&json, "value", message->value);
    if (message->fault) {
        lw_json_key(&json, "fault");
        lw_json_string(&json, message->fault);
    }
    lw_json_object_end(&json);
    lw_text_append_char(out, '\n');
}

static void
append_headers(const struct lw_peeked *message, struct lw_text *out)
{
    for (size_t i = 0; i < message->header_count; i++) {
        const struct lw_header *header = &message->headers[i];
        lw_text_append(out, i ? "," : "");
        lw_text_append_bytes(out, header->name.data, header->name.size);
        lw_text_append_char(out, '=');
        lw_text_append_bytes(out, header->value.data, header->value.size);
    }
}

static long long
size_of(struct lw_bytes bytes)
{
    return bytes.data ? (long long)bytes.size : -1;
}

static void
append_place(const struct lw_peeked *message, struct lw_text *out)
{
    if (message->place) {
        lw_text_append(out, message->place);
    } else {
        lw_text_format(out, "%lld", (long long)message->offset);
    }
}

/* What stands after a '%'. */
static void
append_field(char field, const struct lw_peeked *message, struct lw_text *out)
{
    switch (field) {
    case 't':
        lw_text_append(out, message->topic);
        break;
    case 'p':
        lw_text_format(out, "%d", message->partition);
        break;
    case 'o':
        append_place(message, out);
        break;
    case 'T':
        lw_text_format(out, "%lld", (long long)message->timestamp_ms);
        break;
    case 'k':
        lw_text_append_bytes(out, message->key.data, message->key.size);
        break;
    case 's':
        lw_text_append_bytes(out, message->value.data, message->value.size);
        break;
    case 'K':
        lw_text_format(out, "%lld", size_of(message->key));
        break;
    case 'S':
        lw_text_format(out, "%lld", size_of(message->value));
        break;
    case 'h':
        append_headers(message, out);
        break;
    default:
        lw_text_append_char(out, field);
        break;
    }
}

static void
append_escape(char escape, struct lw_text *out)
{
    static const char names[] = "nrt0\\";
    static const char bytes[] = { '\n', '\r', '\t', '\0', '\\' };
    const char *found = escape ? strchr(names, escape) : NULL;
    lw_text_append_bytes(out, found ? &bytes[found - names] : &escape, 1);
}

static void
append_formatted(const char *format, const struct lw_peeked *message, struct lw_text *out)
{
    for (; *format; format++) {
        if (*format == '%' && format[1]) {
            append_field(*++format, message, out);
        } else if (*format == '\\' && format[1]) {
            append_escape(*++format, out);
        } else {
            lw_text_append_char(out, *format);
        }
    }
}

static bool
on_message(const struct lw_peeked *message, void *user)
{
    struct peek *peek = user;
    struct lw_text *out = &peek->cli->out;
    if (peek->cli->is_json) {
        append_json(message, out);
    } else {
        append_formatted(peek->format, message, out);
    }
    peek->count++;
    bool is_written = out->size < FLUSH_BYTES || lw_cli_flush(peek->cli);
    return is_written && (peek->count_max == 0 || peek->count < peek->count_max);
}

static bool
on_idle(void *user)
{
    struct peek *peek = user;
    return lw_cli_flush(peek->cli);
}

/* -- The command ------------------------------------------------------------------------------- */

static bool
read_offset(struct peek *peek)
{
    struct lw_cli *cli = peek->cli;
    int64_t number = 0;
    const char *why = NULL;
    if (strcmp(cli->value, "beginning") == 0) {
        peek->options.from = LW_PEEK_BEGINNING;
        return true;
    }
    if (strcmp(cli->value, "end") == 0) {
        peek->options.from = LW_PEEK_END;
        return true;
    }
    if (lw_text_to_int(cli->value, &number)) {
        peek->options.from = number < 0 ? LW_PEEK_TAIL : LW_PEEK_OFFSET;
        peek->options.offset = number < 0 ? -number : number;
        return true;
    }
    if (cli->value[0] == '-' && lw_text_to_duration_ms(cli->value + 1, &number, &why)) {
        peek->options.from = LW_PEEK_AGO;
        peek->options.ago_ms = number;
        return true;
    }
    if (strchr(cli->value, ':')) {
        peek->options.from = LW_PEEK_PLACE;
        peek->options.place = cli->value;
        return true;
    }
    cli->exit_code = lw_cli_usage(
        cli, "--offset \"%s\" is none of beginning, end, a number, -N, an id, -5m", cli->value);
    return false;
}

static bool
read_partition(struct peek *peek)
{
    long long number = 0;
    if (!lw_cli_number(peek->cli, "partition", 0, INT32_MAX, &number)) {
        return false;
    }
    peek->options.partition = (int32_t)number;
    return true;
}

static bool
read_flag(struct peek *peek, int id)
{
    switch (id) {
    case 'o':
        return read_offset(peek);
    case 'p':
        return read_partition(peek);
    case 'e':
        peek->options.stops_at_end = true;
        return true;
    case 'n':
        return lw_cli_number(peek->cli, "count", 1, INT64_MAX, &peek->count_max);
    case 'f':
        peek->format = peek->cli->value;
        return true;
    default:
        return id != LW_FLAG_STOP && lw_target_take(&peek->target, peek->cli, id);
    }
}

int
lw_command_peek(struct lw_cli *cli)
{
    struct peek peek = { .cli = cli, .format = "%s\\n" };
    struct lw_error error = { 0 };
    bool is_good = true;
    int id;
    peek.options = (struct lw_peek){ .partition = -1,
                                     .timeout_ms = TIMEOUT_MS,
                                     .on_message = on_message,
                                     .on_idle = on_idle,
                                     .user = &peek };
    while (is_good && (id = lw_cli_next(cli)) != LW_FLAG_END) {
        is_good = read_flag(&peek, id);
    }
    if (is_good && cli->argument_count != 1) {
        cli->exit_code = lw_cli_usage(cli, "say which TOPIC");
        is_good = false;
    }
    is_good = is_good && lw_target_open(&peek.target, cli);
    int exit_code = cli->exit_code;
    if (is_good) {
        peek.options.topic = cli->arguments[0];
        peek.options.loop = peek.target.loop;
        exit_code = LW_EXIT_OK;
        if (lw_registry_peek(peek.target.broker, &peek.options, &error) != LW_STATUS_OK) {
            exit_code = lw_cli_fail(cli, &error);
        }
    }
    lw_target_close(&peek.target);
    return exit_code;
}
