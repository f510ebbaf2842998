/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing a program's words on. The bound is per worker and second, by the host's time: a log
 * storm costs its reader only the reading, never memory and never the loop's time for other
 * work beyond one pipe buffer a turn.
 */
#include "engines/programs/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINES_A_SECOND = 200, BYTES_A_SECOND = 64 * 1024, LINE_BYTES_MAX = 1024 };
#define SECOND (1000 * LW_MS)

void
lw_programs_output_init(struct lw_programs_output *output, struct lw_host *host,
                        const char *handler)
{
    *output = (struct lw_programs_output){ .host = host, .handler = handler };
}

void
lw_programs_output_begin(struct lw_programs_output *output)
{
    output->last_count = 0;
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
say_dropped(struct lw_programs_output *output)
{
    if (output->dropped > 0) {
        lw_host_log(output->host, LW_LOG_WARN, "handler.output_dropped",
                    "a program printed more than is passed on", "handler=%s lines=%" PRIu64,
                    output->handler, output->dropped);
        output->dropped = 0;
    }
}

static bool
may_pass(struct lw_programs_output *output, size_t bytes)
{
    uint64_t now = output->host->now;
    if (now - output->second_began >= SECOND) {
        output->second_began = now;
        output->second_lines = 0;
        output->second_bytes = 0;
        say_dropped(output);
    }
    if (output->second_lines >= LINES_A_SECOND || output->second_bytes >= BYTES_A_SECOND) {
        output->dropped++;
        output->dropped_total++;
        return false;
    }
    output->second_lines++;
    output->second_bytes += bytes;
    return true;
}

void
lw_programs_output_line(struct lw_programs_output *output, struct lw_bytes line,
                        const char *stream)
{
    char text[LINE_BYTES_MAX];
    if (line.size == 0) {
        return;
    }
    clean(line, output->last[output->last_count++ % LW_PROGRAMS_LAST_LINES],
          LW_PROGRAMS_LAST_BYTES);
    if (may_pass(output, line.size)) {
        clean(line, text, sizeof text);
        lw_host_log(output->host, LW_LOG_INFO, "handler.output", text, "handler=%s stream=%s",
                    output->handler, stream);
    }
}

void
lw_programs_output_log(struct lw_programs_output *output, enum lw_log_level level,
                       struct lw_bytes text)
{
    char cleaned[LINE_BYTES_MAX];
    if (may_pass(output, text.size)) {
        clean(text, cleaned, sizeof cleaned);
        lw_host_log(output->host, level, "handler.log", cleaned, "handler=%s", output->handler);
    }
}

void
lw_programs_output_last(const struct lw_programs_output *output, uint32_t count, char *out,
                        size_t size)
{
    size_t used = 0;
    count = count < LW_PROGRAMS_LAST_LINES ? count : LW_PROGRAMS_LAST_LINES;
    count = count < output->last_count ? count : output->last_count;
    out[0] = '\0';
    for (uint32_t i = count; i > 0 && used < size; i--) {
        const char *line = output->last[(output->last_count - i) % LW_PROGRAMS_LAST_LINES];
        int length = snprintf(out + used, size - used, "%s%s", used ? "\n" : "", line);
        used += length > 0 ? (size_t)length : 0;
    }
}
