/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building an environment: all variables one behind the other in one text, each ended by a zero,
 * then the array of their beginnings. Names that headers share after they were reduced, and
 * headers that come more than once, are one variable: the last header's. Sorting finds them, so
 * that ten thousand headers cost no ten thousand squared. What we inherited under these names
 * from whoever started us is hidden from the program.
 */
#include "engines/programs/once_environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

#define PREFIX "LANEWAY_"
#define HEADER_PREFIX PREFIX "HEADER_"
#define CODED_SUFFIX "_B64"

extern char **environ;

static void
end_entry(struct lw_text *text)
{
    lw_text_append_char(text, '\0');
}

static void
append_base64(struct lw_text *text, struct lw_bytes value)
{
    struct lw_json json;
    size_t at = text->size;
    lw_json_init(&json, text);
    lw_json_base64(&json, value);
    if (!text->is_failed) {
        text->size -= 2; /* the writer's quotes */
        memmove(text->data + at, text->data + at + 1, text->size - at);
    }
}

/* A null takes the variable away. */
static void
add(struct lw_text *text, const char *name, struct lw_bytes value)
{
    bool is_coded = value.data && memchr(value.data, '\0', value.size);
    lw_text_append(text, name);
    if (is_coded) {
        end_entry(text);
        lw_text_append(text, name);
        lw_text_append(text, CODED_SUFFIX "=");
        append_base64(text, value);
    } else if (value.data) {
        lw_text_append_char(text, '=');
        if (value.size > 0) {
            lw_text_append_bytes(text, value.data, value.size);
        }
    }
    end_entry(text);
}

static void
add_text(struct lw_text *text, const char *name, const char *value)
{
    add(text, name, lw_bytes_of(value));
}

static void
add_int(struct lw_text *text, const char *name, int64_t value)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)value);
    add_text(text, name, digits);
}

static void
add_time(struct lw_text *text, const char *name, int64_t wall_ms)
{
    char formatted[32];
    if (wall_ms >= 0) {
        lw_json_time(wall_ms, formatted);
    }
    add_text(text, name, wall_ms >= 0 ? formatted : NULL);
}

static void
add_message(struct lw_text *text, const struct lw_delivery *delivery, int64_t deadline_ms)
{
    char message_id[1024];
    const struct lw_message *message = &delivery->message;
    size_t size = lw_delivery_message_id(delivery, message_id, sizeof message_id);
    size = size < sizeof message_id ? size : sizeof message_id - 1;
    add(text, "LANEWAY_MESSAGE_ID", (struct lw_bytes){ message_id, size });
    add_text(text, "LANEWAY_TOPIC", lw_delivery_topic(delivery));
    add_int(text, "LANEWAY_PARTITION", lw_delivery_partition(delivery));
    add_int(text, "LANEWAY_OFFSET", lw_delivery_offset(delivery));
    add_text(text, "LANEWAY_SUBSCRIPTION", lw_delivery_subscription(delivery));
    add_text(text, "LANEWAY_PIPELINE", lw_delivery_pipeline(delivery));
    add(text, "LANEWAY_KEY", message->key);
    add(text, "LANEWAY_ORDERING_KEY", message->ordering_key);
    add_time(text, "LANEWAY_TIMESTAMP", lw_delivery_timestamp_ms(delivery));
    add_time(text, "LANEWAY_EVENT_TIME", lw_delivery_event_time_ms(delivery));
    add_int(text, "LANEWAY_ATTEMPT", lw_delivery_attempt(delivery));
    add_int(text, "LANEWAY_RETRIES", lw_delivery_retries(delivery));
    add_int(text, "LANEWAY_REDELIVERIES", lw_delivery_redeliveries(delivery));
    add_text(text, "LANEWAY_VALUE_NULL", message->value.data ? NULL : "1");
    if (deadline_ms >= 0) {
        add_int(text, "LANEWAY_DEADLINE_MS", deadline_ms);
    } else {
        add_text(text, "LANEWAY_DEADLINE_MS", NULL);
    }
}

/* -- Headers ----------------------------------------------------------------------------------- */

struct entry {
    const struct lw_header *header;
    const char *name; /* reduced */
};

static int
compare(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->header > right->header) - (left->header < right->header);
}

static char
reduce(char c)
{
    if (c >= 'a' && c <= 'z') {
        return (char)(c - 'a' + 'A');
    }
    bool is_kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_kept ? c : '_';
}

/* Writes all names, each ended by a zero; the offset of each is found by walking. */
static void
write_names(struct lw_text *names, const struct lw_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lw_text_append(names, HEADER_PREFIX);
        const char *name = headers[i].name.data;
        for (size_t at = 0; at < headers[i].name.size; at++) {
            lw_text_append_char(names, reduce(name[at]));
        }
        end_entry(names);
    }
}

static void
add_sorted(struct lw_text *text, const struct entry *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count || strcmp(sorted[i].name, sorted[i + 1].name) != 0;
        struct lw_bytes value = sorted[i].header->value;
        if (is_last) {
            add(text, sorted[i].name, value.data ? value : (struct lw_bytes){ "", 0 });
        }
    }
}

static void
add_headers(struct lw_text *text, const struct lw_delivery *delivery)
{
    size_t count = 0;
    struct lw_text names;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    if (count == 0) {
        return;
    }
    lw_text_init(&names);
    write_names(&names, headers, count);
    struct entry *sorted = names.is_failed ? NULL : lw_alloc_array(count, sizeof *sorted);
    const char *name = names.data;
    for (size_t i = 0; sorted && i < count; i++) {
        sorted[i] = (struct entry){ &headers[i], name };
        name += strlen(name) + 1;
    }
    if (sorted) {
        qsort(sorted, count, sizeof *sorted, compare);
        add_sorted(text, sorted, count);
    }
    text->is_failed = text->is_failed || !sorted;
    lw_free(sorted);
    lw_text_deinit(&names);
}

/* Headers, and what is only there when its plain variable is not. */
static bool
is_of_a_message(const char *entry, size_t length)
{
    enum { SUFFIX = sizeof CODED_SUFFIX - 1 };
    bool is_header = strncmp(entry, HEADER_PREFIX, sizeof HEADER_PREFIX - 1) == 0;
    bool is_ours = strncmp(entry, PREFIX, sizeof PREFIX - 1) == 0 && length > SUFFIX;
    return is_header || (is_ours && memcmp(entry + length - SUFFIX, CODED_SUFFIX, SUFFIX) == 0);
}

static void
hide_inherited(struct lw_text *text)
{
    for (char **entry = environ; entry && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (is_of_a_message(*entry, length)) {
            lw_text_append_bytes(text, *entry, length);
            end_entry(text);
        }
    }
}

/* -- The whole ------------------------------------------------------------------------------- */

static size_t
count_ends(const struct lw_text *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->size; i++) {
        count += text->data[i] == '\0' ? 1 : 0;
    }
    return count;
}

bool
lw_programs_environment_init(struct lw_programs_environment *environment,
                             const char *const *fixed, const struct lw_delivery *delivery,
                             int64_t deadline_ms)
{
    struct lw_text *text = &environment->text;
    size_t fixed_count = 0;
    *environment = (struct lw_programs_environment){ .entries = NULL };
    lw_text_init(text);
    add_message(text, delivery, deadline_ms);
    add_headers(text, delivery);
    environment->message_bytes = text->size;
    hide_inherited(text);
    while (fixed && fixed[fixed_count]) {
        fixed_count++;
    }
    if (text->is_failed) {
        return false;
    }
    environment->entries = lw_alloc_array(fixed_count + count_ends(text) + 1,
                                          sizeof *environment->entries);
    if (!environment->entries) {
        return false;
    }
    size_t count = 0;
    for (; count < fixed_count; count++) {
        environment->entries[count] = fixed[count];
    }
    for (const char *at = text->data; at < text->data + text->size; at += strlen(at) + 1) {
        environment->entries[count++] = at;
    }
    return true;
}

void
lw_programs_environment_deinit(struct lw_programs_environment *environment)
{
    lw_free(environment->entries);
    lw_text_deinit(&environment->text);
}
