/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing a program's words on. The bound is per worker and second, by the host's time: a log
 * storm costs its reader only the reading, never memory and never the loop's time for other
 * work beyond one pipe buffer a turn.
 */
#include "engines/common/handler_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINES_A_SECOND = 200, BYTES_A_SECOND = 64 * 1024, LINE_BYTES_MAX = 1024 };
#define SECOND (1000 * LW_MS)

static void
say_dropped(struct lw_handler_log *log)
{
    lw_timers_disarm(&log->host->timers, &log->timer);
    if (log->dropped > 0) {
        lw_host_log(log->host, LW_LOG_WARN, "handler.output_dropped",
                    "a program printed more than is passed on", "handler=%s lines=%" PRIu64,
                    log->handler, log->dropped);
        log->dropped = 0;
    }
}

/* A program that fell silent, or ended, is not asked for another line first. */
static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    say_dropped(LW_CONTAINER(timer, struct lw_handler_log, timer));
}

void
lw_handler_log_init(struct lw_handler_log *log, struct lw_host *host, const char *handler)
{
    *log = (struct lw_handler_log){ .host = host, .handler = handler };
    lw_timer_init(&log->timer, on_timer);
}

void
lw_handler_log_deinit(struct lw_handler_log *log)
{
    if (log->host) {
        say_dropped(log);
    }
}

void
lw_handler_log_begin(struct lw_handler_log *log)
{
    log->last_count = 0;
}

/* Copies as much as fits, whole characters only. */
static void
clean(struct lw_bytes line, char *out, size_t size)
{
    const char *from = line.data;
    size_t left = line.size;
    size_t used = 0;
    while (left > 0 && used + 1 < size) {
        size_t length = lw_text_utf8_size(from, left);
        bool is_plain = length > 1 ||
                        (length == 1 && (unsigned char)*from >= ' ' && *from != 127);
        if (is_plain && used + length < size) {
            memcpy(out + used, from, length);
            used += length;
        } else if (is_plain) {
            break;
        } else {
            out[used++] = *from == '\t' ? ' ' : '?';
        }
        length = length ? length : 1;
        from += length;
        left -= length;
    }
    out[used] = '\0';
}

static void
drop(struct lw_handler_log *log)
{
    log->dropped++;
    log->dropped_total++;
    if (!lw_timer_is_armed(&log->timer)) {
        lw_timers_arm(&log->host->timers, &log->timer, log->second_began + SECOND);
    }
}

static bool
may_pass(struct lw_handler_log *log, size_t bytes)
{
    uint64_t now = log->host->now;
    if (now - log->second_began >= SECOND) {
        log->second_began = now;
        log->second_lines = 0;
        log->second_bytes = 0;
        say_dropped(log);
    }
    if (log->second_lines >= LINES_A_SECOND || log->second_bytes >= BYTES_A_SECOND) {
        drop(log);
        return false;
    }
    log->second_lines++;
    log->second_bytes += bytes;
    return true;
}

void
lw_handler_log_line(struct lw_handler_log *log, struct lw_bytes line, const char *stream)
{
    char text[LINE_BYTES_MAX];
    if (line.size == 0) {
        return;
    }
    clean(line, log->last[log->last_count++ % LW_HANDLER_LOG_LINES], LW_HANDLER_LOG_BYTES);
    if (may_pass(log, line.size)) {
        clean(line, text, sizeof text);
        lw_host_log(log->host, LW_LOG_INFO, "handler.output", text, "handler=%s stream=%s",
                    log->handler, stream);
    }
}

void
lw_handler_log_own(struct lw_handler_log *log, enum lw_log_level level, struct lw_bytes text)
{
    char cleaned[LINE_BYTES_MAX];
    if (may_pass(log, text.size)) {
        clean(text, cleaned, sizeof cleaned);
        lw_host_log(log->host, level, "handler.log", cleaned, "handler=%s", log->handler);
    }
}

void
lw_handler_log_last(const struct lw_handler_log *log, uint32_t count, char *out, size_t size)
{
    size_t used = 0;
    count = count < LW_HANDLER_LOG_LINES ? count : LW_HANDLER_LOG_LINES;
    count = count < log->last_count ? count : log->last_count;
    out[0] = '\0';
    for (uint32_t i = count; i > 0 && used < size; i--) {
        const char *line = log->last[(log->last_count - i) % LW_HANDLER_LOG_LINES];
        int length = snprintf(out + used, size - used, "%s%s", used ? "\n" : "", line);
        used += length > 0 ? (size_t)length : 0;
    }
}
