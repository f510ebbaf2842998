/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink: level, folding, one line, one write. The fold table has a fixed number of places
 * found by the event's hash; an event that finds its place taken pushes the other out, whose
 * count is said first, so no repeat is lost and nothing grows. A line that the descriptor does
 * not take (a full non-blocking pipe) is counted and said later; logging never waits for a
 * reader that is gone. Any thread, under the sink's mutex.
 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log_fields.h"

enum { FOLD_COUNT = 64, EVENT_MAX = 64, CODE_MAX = 16, LEVEL_COUNT = 5 };

/* One event in its window. Lines up to `burst` are written, later ones only counted. */
struct fold {
    char event[EVENT_MAX]; /* empty: free */
    char code[CODE_MAX];
    enum lw_log_level level;
    int64_t began_ms;
    uint32_t count;  /* lines in this window */
    uint32_t folded; /* of them not written */
};

/* What is written as one line. */
struct line {
    int64_t wall_ms;
    enum lw_log_level level;
    const char *event;
    const char *text;
    const char *fields;
};

struct lw_log {
    pthread_mutex_t mutex;
    struct lw_log_options options;
    char *service;
    bool is_json;
    atomic_int level;
    struct lw_text line;
    struct lw_text scratch;
    uint64_t lost_count; /* lines that could not be written and were not yet told of */
    struct fold folds[FOLD_COUNT];
};

static const char *const level_names[LEVEL_COUNT] = { "error", "warn", "info", "debug",
                                                      "trace" };
static const char journal_levels[LEVEL_COUNT] = { '3', '4', '6', '7', '7' };

const char *
lw_log_level_name(enum lw_log_level level)
{
    return level_names[level];
}

bool
lw_log_level_parse(const char *name, enum lw_log_level *ret_level)
{
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *ret_level = (enum lw_log_level)i;
            return true;
        }
    }
    return false;
}

/* Returns how a byte is escaped inside of quotes, 0 when it stands for itself. */
static char
escape_of(char c)
{
    static const char from[] = "\"\\\n\r\t";
    static const char to[] = "\"\\nrt";
    const char *found = memchr(from, c, sizeof from - 1);
    return found ? to[found - from] : '\0';
}

const char *
lw_log_quote_bytes(struct lw_bytes value, char *out, size_t size)
{
    const char *from = (const char *)value.data;
    size_t used = 0;
    if (size < 3) {
        lw_text_copy(out, size, "");
        return out;
    }
    out[used++] = '"';
    for (size_t i = 0; i < value.size; i++) {
        char escape = escape_of(from[i]);
        if (used + (escape ? 2 : 1) + 2 > size) {
            break;
        }
        if (escape) {
            out[used++] = '\\';
        }
        out[used++] = escape ? escape : from[i] ? from[i] : '?';
    }
    out[used++] = '"';
    out[used] = '\0';
    return out;
}

const char *
lw_log_quote(const char *value, char *out, size_t size)
{
    return lw_log_quote_bytes(lw_bytes_of(value), out, size);
}

/* -- One line ---------------------------------------------------------------------------------- */

static int64_t
read_wall_ms(struct lw_log *log)
{
    return log->options.wall_ms ? log->options.wall_ms(log->options.user) : lw_clock_wall_ms();
}

static void
write_all(struct lw_log *log, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(log->options.fd, data, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            log->lost_count++;
            return;
        }
        data += written;
        size -= (size_t)written;
    }
}

static void
format_text(struct lw_log *log, const struct line *line)
{
    char clock[16] = "";
    struct tm local;
    time_t seconds = (time_t)(line->wall_ms / 1000);
    if (localtime_r(&seconds, &local)) {
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    }
    lw_text_format(&log->line, "%s %-5s ", clock, level_names[line->level]);
    lw_log_append_clean(&log->line, lw_bytes_of(line->text));
    if (line->fields[strspn(line->fields, " ")]) {
        lw_text_append_char(&log->line, ' ');
        lw_log_fields_to_text(&log->line, line->fields, &log->scratch);
    }
}

static void
add_pair(struct lw_json *json, const char *key, const char *value)
{
    lw_json_key(json, key);
    lw_json_string(json, value);
}

static void
format_json(struct lw_log *log, const struct line *line)
{
    struct lw_json json;
    char time[32];
    lw_json_init(&json, &log->line);
    lw_json_time(line->wall_ms, time);
    lw_json_object(&json);
    add_pair(&json, "ts", time);
    add_pair(&json, "level", level_names[line->level]);
    add_pair(&json, "event", line->event);
    add_pair(&json, "msg", line->text);
    if (log->service) {
        add_pair(&json, "service", log->service);
    }
    lw_log_fields_to_json(&json, line->fields, &log->scratch);
    lw_json_object_end(&json);
}

/* Formats and writes; without memory what can be said without it. */
static void
write_line(struct lw_log *log, const struct line *line)
{
    lw_text_clear(&log->line);
    if (log->options.is_journal) {
        lw_text_format(&log->line, "<%c>", journal_levels[line->level]);
    }
    if (log->is_json) {
        format_json(log, line);
    } else {
        format_text(log, line);
    }
    lw_text_append_char(&log->line, '\n');
    if (log->line.is_failed) {
        char short_line[128];
        int size = snprintf(short_line, sizeof short_line,
                            "laneway: out of memory, event %.60s\n", line->event);
        write_all(log, short_line, size > 0 ? (size_t)size : 0);
        return;
    }
    write_all(log, log->line.data, log->line.size);
}

/* Says how many lines the descriptor did not take, as soon as it takes lines again. */
static void
tell_lost(struct lw_log *log, int64_t wall_ms)
{
    uint64_t lost = log->lost_count;
    if (lost == 0) {
        return;
    }
    char fields[48];
    (void)snprintf(fields, sizeof fields, "lines=%llu", (unsigned long long)lost);
    log->lost_count = 0;
    const char *text = "log lines could not be written";
    write_line(log, &(struct line){ wall_ms, LW_LOG_WARN, "log.lost", text, fields });
    log->lost_count = log->lost_count ? lost : 0;
}

/* -- Folding ------------------------------------------------------------------------------------- */

/* Says what a window held back, and frees its place. */
static void
end_window(struct lw_log *log, struct fold *fold, int64_t wall_ms)
{
    if (fold->folded > 0) {
        char text[80];
        char fields[EVENT_MAX + 64];
        int64_t seconds = (wall_ms - fold->began_ms + 500) / 1000;
        (void)snprintf(text, sizeof text, "%u more like this in the last %llds", fold->folded,
                       (long long)(seconds > 0 ? seconds : 1));
        bool has_code = fold->code[0] != '\0';
        const char *key = has_code ? "code" : log->is_json ? "" : "event";
        (void)snprintf(fields, sizeof fields, "%s%s%s", key, *key ? "=" : "",
                       has_code       ? fold->code
                       : log->is_json ? ""
                                      : fold->event);
        if (log->is_json) {
            size_t used = strlen(fields);
            (void)snprintf(fields + used, sizeof fields - used, " folded=%u", fold->folded);
        }
        write_line(log, &(struct line){ wall_ms, fold->level, fold->event, text, fields });
    }
    *fold = (struct fold){ .event = "" };
}

static bool
has_ended(const struct lw_log *log, const struct fold *fold, int64_t wall_ms)
{
    int64_t age = wall_ms - fold->began_ms;
    return age >= log->options.window_ms || age < 0; /* the wall clock may be set back */
}

/* Ends the windows that are over; returns when the next one with a count is. */
static int64_t
end_windows(struct lw_log *log, int64_t wall_ms)
{
    int64_t next = -1;
    for (int i = 0; i < FOLD_COUNT; i++) {
        struct fold *fold = &log->folds[i];
        if (!fold->event[0]) {
            continue;
        }
        if (has_ended(log, fold, wall_ms)) {
            end_window(log, fold, wall_ms);
        } else if (fold->folded > 0) {
            int64_t left = fold->began_ms + log->options.window_ms - wall_ms;
            next = next < 0 || left < next ? left : next;
        }
    }
    return next;
}

static bool
is_foldable(const struct lw_log *log, enum lw_log_level level, const char *event)
{
    if (level >= LW_LOG_DEBUG || log->options.burst == 0) {
        return false;
    }
    for (const char *const *name = log->options.unfolded; name && *name; name++) {
        if (strcmp(*name, event) == 0) {
            return false;
        }
    }
    return true;
}

static void
keep_code(struct fold *fold, const char *fields)
{
    struct lw_log_field field;
    fold->code[0] = '\0';
    while (lw_log_field_next(&fields, &field)) {
        if (lw_text_is_equal(field.key, "code") && field.value.size < CODE_MAX) {
            memcpy(fold->code, field.value.data, field.value.size);
            fold->code[field.value.size] = '\0';
        }
    }
}

/* Returns the event's window, a new one in its place if need be. */
static struct fold *
open_window(struct lw_log *log, const char *event, int64_t wall_ms)
{
    char name[EVENT_MAX];
    lw_text_copy(name, sizeof name, event);
    struct fold *fold = &log->folds[lw_hash_bytes(name, strlen(name), 0) % FOLD_COUNT];
    if (strcmp(fold->event, name) != 0) {
        end_window(log, fold, wall_ms);
        *fold = (struct fold){ .began_ms = wall_ms };
        memcpy(fold->event, name, sizeof name);
    }
    return fold;
}

/* Counts the line; true when it is one too many of its kind. */
static bool
must_fold(struct lw_log *log, const struct line *line)
{
    if (!is_foldable(log, line->level, line->event)) {
        return false;
    }
    struct fold *fold = open_window(log, line->event, line->wall_ms);
    if (++fold->count <= log->options.burst) {
        return false;
    }
    if (fold->folded++ == 0 || line->level < fold->level) {
        fold->level = line->level;
        keep_code(fold, line->fields);
    }
    return true;
}

/* -- The sink -------------------------------------------------------------------------------------- */

void
lw_log_options_init(struct lw_log_options *options)
{
    *options = (struct lw_log_options){
        .fd = STDERR_FILENO,
        .level = LW_LOG_INFO,
        .burst = 5,
        .window_ms = 10000,
    };
}

enum lw_status
lw_log_create(const struct lw_log_options *options, struct lw_log **ret_log)
{
    struct lw_log *log = lw_alloc(sizeof *log);
    if (!log) {
        return LW_STATUS_NO_MEMORY;
    }
    log->options = *options;
    log->service = lw_copy_text(options->service);
    if (options->service && !log->service) {
        lw_free(log);
        return LW_STATUS_NO_MEMORY;
    }
    log->options.service = log->service;
    log->is_json = options->format == LW_LOG_FORMAT_JSON ||
                   (options->format == LW_LOG_FORMAT_AUTO && !isatty(options->fd));
    atomic_init(&log->level, (int)options->level);
    pthread_mutex_init(&log->mutex, NULL);
    *ret_log = log;
    return LW_STATUS_OK;
}

void
lw_log_destroy(struct lw_log *log)
{
    if (!log) {
        return;
    }
    int64_t wall_ms = read_wall_ms(log);
    for (int i = 0; i < FOLD_COUNT; i++) {
        end_window(log, &log->folds[i], wall_ms);
    }
    tell_lost(log, wall_ms);
    pthread_mutex_destroy(&log->mutex);
    lw_text_deinit(&log->line);
    lw_text_deinit(&log->scratch);
    lw_free(log->service);
    lw_free(log);
}

void
lw_log_set_level(struct lw_log *log, enum lw_log_level level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

void
lw_log_write(enum lw_log_level level, const char *event, const char *text, const char *fields,
             void *user)
{
    struct lw_log *log = user;
    if ((int)level > atomic_load_explicit(&log->level, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&log->mutex);
    struct line line = { read_wall_ms(log), level, event, text, fields };
    (void)end_windows(log, line.wall_ms);
    if (!must_fold(log, &line)) {
        tell_lost(log, line.wall_ms);
        write_line(log, &line);
    }
    pthread_mutex_unlock(&log->mutex);
}

int64_t
lw_log_flush(struct lw_log *log)
{
    pthread_mutex_lock(&log->mutex);
    int64_t wall_ms = read_wall_ms(log);
    int64_t next = end_windows(log, wall_ms);
    tell_lost(log, wall_ms);
    pthread_mutex_unlock(&log->mutex);
    return next;
}
