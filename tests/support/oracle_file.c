/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a history file: one flat JSON object a line, numbers and plain strings only, as the
 * service writes it. The file of a killed process may end in zero bytes or in half a line; both
 * end the reading. Anything else that is not such an object makes the file invalid.
 */
#include "tests/support/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096 };

/* The text behind `"name":` in a flat object, or NULL. */
static const char *
value_of(const char *line, const char *name)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":", name);
    const char *at = strstr(line, wanted);
    return at ? at + strlen(wanted) : NULL;
}

static bool
read_number(const char *line, const char *name, int64_t missing, int64_t *ret_value)
{
    const char *at = value_of(line, name);
    if (!at) {
        *ret_value = missing;
        return true;
    }
    char *end = NULL;
    *ret_value = strtoll(at, &end, 10);
    return end != at;
}

static bool
read_text(const char *line, const char *name, char *out, size_t size)
{
    const char *at = value_of(line, name);
    const char *end = at && *at == '"' ? strchr(at + 1, '"') : NULL;
    if (!end || (size_t)(end - at) > size) {
        return false;
    }
    memcpy(out, at + 1, (size_t)(end - at - 1));
    out[end - at - 1] = '\0';
    return true;
}

static bool
read_kind(const char *line, enum lw_history_kind *ret_kind)
{
    static const char *const names[] = {
        [LW_HISTORY_ASSIGNED] = "assigned",   [LW_HISTORY_RECEIVED] = "received",
        [LW_HISTORY_STARTED] = "started",     [LW_HISTORY_RETURNED] = "returned",
        [LW_HISTORY_JUDGED] = "judged",       [LW_HISTORY_PUBLISHED] = "published",
        [LW_HISTORY_SETTLED] = "settled",     [LW_HISTORY_DROPPED] = "dropped",
        [LW_HISTORY_COMMITTED] = "committed", [LW_HISTORY_REVOKED] = "revoked",
    };
    char name[32];
    if (!read_text(line, "kind", name, sizeof name)) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_kind = (enum lw_history_kind)i;
            return true;
        }
    }
    return false;
}

static bool
read_event(const char *line, struct oracle_event *event)
{
    int64_t now = 0;
    int64_t generation = 0;
    int64_t key_hash = 0;
    int64_t attempt = 0;
    int64_t task = 0;
    int64_t detail = 0;
    int64_t action = 0;
    bool is_ok = read_kind(line, &event->kind) && read_number(line, "t", 0, &now) &&
                 read_number(line, "generation", 0, &generation) &&
                 read_number(line, "position", -1, &event->position) &&
                 read_number(line, "key_hash", -1, &key_hash) &&
                 read_number(line, "attempt", 0, &attempt) &&
                 read_number(line, "task", 0, &task) &&
                 read_number(line, "detail", 0, &detail) &&
                 read_number(line, "action", 0, &action);
    event->now = (uint64_t)now;
    event->generation = (uint64_t)generation;
    event->key_hash = (uint64_t)(key_hash + 1); /* -1, no key, becomes 0 */
    event->attempt = (uint32_t)attempt;
    event->task = (uint32_t)task;
    event->detail = (int)detail;
    event->action = (int)action;
    return is_ok;
}

static bool
judge_line(struct oracle *oracle, const char *line, uint32_t member, oracle_place_fn place_of,
           void *user)
{
    char topic[300];
    int64_t partition = 0;
    struct oracle_event event = { .member = member };
    if (!read_event(line, &event) || !read_text(line, "topic", topic, sizeof topic) ||
        !read_number(line, "partition", -1, &partition)) {
        return false;
    }
    event.place = place_of(user, topic, (int32_t)partition);
    if (event.place != UINT32_MAX) {
        oracle_record(oracle, &event);
    }
    return true;
}

bool
oracle_read_file(struct oracle *oracle, const char *path, uint32_t member,
                 oracle_place_fn place_of, void *user)
{
    char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "r");
    bool is_ok = file != NULL;
    while (is_ok && fgets(line, sizeof line, file) && line[0] != '\0') {
        size_t length = strlen(line);
        if (line[length - 1] != '\n') {
            break; /* half a line: the process was killed while it wrote */
        }
        is_ok = judge_line(oracle, line, member, place_of, user);
    }
    if (file) {
        fclose(file);
    }
    return is_ok;
}
