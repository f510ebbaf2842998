/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol lines: one JSON object per line in both directions, bytes that are no UTF-8 in base64.
 * What is no line of the protocol is the program's own output. A program that answers in frames
 * is told apart by its first bytes, since its answers would never end with a newline.
 */
#include "engines/programs/protocol.h"

#include <stdio.h>
#include <string.h>

#include "engines/programs/request.h"

static void
write_hello(struct lw_text *out, const struct lw_programs_hello *hello)
{
    lw_programs_request_hello(out, hello->service, hello->handler, hello->window, hello->batch);
}

static bool
write_request(struct lw_programs_sender *sender, int64_t id, const struct lw_delivery *delivery,
              int64_t deadline_ms)
{
    return lw_programs_request_write(&sender->text, id, delivery, deadline_ms);
}

/* The length of a frame's header begins with a zero byte, and behind it stands an object. */
static bool
is_framed(const char *data, size_t size)
{
    return size > 4 && data[0] == '\0' && data[4] == '{';
}

static enum lw_programs_next
break_off(struct lw_programs_answer *ret_answer, const char *why)
{
    *ret_answer = (struct lw_programs_answer){ .kind = LW_PROGRAMS_LINE_BROKEN };
    (void)snprintf(ret_answer->why, sizeof ret_answer->why, "%s", why);
    return LW_PROGRAMS_NEXT_BROKEN;
}

static enum lw_programs_next
next(struct lw_programs_reader *reader, struct lw_programs_answer *ret_answer)
{
    struct lw_bytes line;
    size_t held = reader->end - reader->begin;
    if (held > 0 && is_framed(reader->data + reader->begin, held)) {
        return break_off(ret_answer, "it answers in frames, but is configured with "
                                     "\"protocol: lines\"; write protocol: frames");
    }
    if (lw_programs_reader_next(reader, &line)) {
        lw_programs_answer_read(line, ret_answer);
        return LW_PROGRAMS_NEXT_UNIT;
    }
    if (!reader->is_overlong) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    char why[64];
    (void)snprintf(why, sizeof why, "it wrote a line of more than %d MiB",
                   LW_PROGRAMS_UNIT_MAX >> 20);
    return break_off(ret_answer, why);
}

/* A last line without its end counts as a line. */
static enum lw_programs_next
rest(struct lw_programs_reader *reader, struct lw_programs_answer *ret_answer)
{
    struct lw_bytes line;
    if (!lw_programs_reader_rest(reader, &line)) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    lw_programs_answer_read(line, ret_answer);
    return LW_PROGRAMS_NEXT_UNIT;
}

const struct lw_programs_protocol lw_programs_lines = {
    .name = "lines",
    .doubt = "it was spoken to in lines; one that speaks frames needs \"protocol: frames\"",
    .doubts_exits = false,
    .write_hello = write_hello,
    .write_request = write_request,
    .next = next,
    .rest = rest,
};
