/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol frames: four bytes with the length of a header (big-endian), the header in JSON, then
 * the bytes whose lengths it names: key, value and reply, then key and value of each output.
 *
 * A header is shorter than 16 MiB, so a frame begins with a zero byte and text never does: what a
 * program prints between its frames is told apart, passed on as its output, and harms nothing.
 * Invariant of the reader: nothing is parsed again before `need` bytes are there.
 * tests/fuzz/fuzz_frames.c feeds it arbitrary bytes.
 */
#include "engines/programs/protocol.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engines/programs/request.h"

enum { LENGTH_BYTES = 4, HEADER_MAX = 0xffffff, TEXT_BYTES_MAX = 8 * 1024 };

/* -- Writing -------------------------------------------------------------------------------- */

/* Reserves the length of a header; its place. */
static size_t
begin_header(struct lw_text *out)
{
    size_t at = out->size;
    lw_text_append_bytes(out, "\0\0\0\0", LENGTH_BYTES);
    return at;
}

static void
end_header(struct lw_text *out, size_t at)
{
    if (out->is_failed) {
        return;
    }
    uint32_t size = (uint32_t)(out->size - at - LENGTH_BYTES);
    for (int i = 0; i < LENGTH_BYTES; i++) {
        out->data[at + (size_t)i] = (char)(unsigned char)(size >> (24 - 8 * i));
    }
}

static void
write_hello(struct lw_text *out, const struct lw_programs_hello *hello)
{
    size_t at = begin_header(out);
    lw_programs_request_hello(out, hello->service, hello->handler, hello->window, hello->batch);
    end_header(out, at);
}

/* The bytes of all members of the task, in order. */
static bool
append_contents(struct lw_programs_sender *sender, const struct lw_delivery *first)
{
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        if (!lw_programs_sender_append(sender, &at->message.key) ||
            !lw_programs_sender_append(sender, &at->message.value)) {
            return false;
        }
    }
    return true;
}

static bool
write_request(struct lw_programs_sender *sender, int64_t id, const struct lw_delivery *delivery,
              int64_t deadline_ms)
{
    struct lw_text *text = &sender->text;
    struct lw_programs_mark mark = lw_programs_sender_mark(sender);
    size_t at = begin_header(text);
    if (!text->is_failed && lw_programs_request_header(text, id, delivery, deadline_ms)) {
        end_header(text, at);
        if (append_contents(sender, delivery)) {
            return true;
        }
    }
    lw_programs_sender_rewind(sender, mark);
    return false;
}

/* -- Reading -------------------------------------------------------------------------------- */

static enum lw_programs_next
break_off(struct lw_programs_answer *ret_answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum lw_programs_next
break_off(struct lw_programs_answer *ret_answer, const char *format, ...)
{
    va_list arguments;
    *ret_answer = (struct lw_programs_answer){ .kind = LW_PROGRAMS_LINE_BROKEN };
    va_start(arguments, format);
    (void)vsnprintf(ret_answer->why, sizeof ret_answer->why, format, arguments);
    va_end(arguments);
    return LW_PROGRAMS_NEXT_BROKEN;
}

static void
take(struct lw_programs_reader *reader, size_t size)
{
    reader->begin += size;
    reader->scanned = reader->begin;
    reader->need = 0;
}

static uint32_t
read_length(const unsigned char *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

/* Bytes that a print would write: not controls, and not what no UTF-8 begins with. */
static bool
is_text(unsigned char first)
{
    bool is_plain = first >= ' ' && first < 0x7f;
    bool is_lead = first >= 0xc2 && first <= 0xf4;
    return is_plain || is_lead || first == '\n' || first == '\r' || first == '\t' ||
           first == 0x1b;
}

static bool
is_lowest_first(const unsigned char *data, size_t held)
{
    return held > LENGTH_BYTES && data[0] != 0 && data[2] == 0 && data[3] == 0 &&
           data[4] == '{';
}

static bool
speaks_lines(const struct lw_programs_answer *answer)
{
    return answer->kind == LW_PROGRAMS_LINE_READY || answer->kind == LW_PROGRAMS_LINE_EXTEND ||
           (answer->kind == LW_PROGRAMS_LINE_ANSWER && answer->has_result);
}

static enum lw_programs_next
read_text(struct lw_bytes line, struct lw_programs_answer *ret_answer)
{
    lw_programs_answer_read(line, ret_answer);
    if (speaks_lines(ret_answer)) {
        lw_programs_answer_clear(ret_answer);
        return break_off(ret_answer, "it answers in lines, but is configured with "
                                     "\"protocol: frames\"; write protocol: lines");
    }
    ret_answer->kind = LW_PROGRAMS_LINE_STRAY;
    return LW_PROGRAMS_NEXT_UNIT;
}

/* A print between frames ends with its line, or where a frame begins. */
static enum lw_programs_next
next_text(struct lw_programs_reader *reader, size_t held, struct lw_programs_answer *ret_answer)
{
    const char *data = reader->data + reader->begin;
    size_t looked = held < TEXT_BYTES_MAX ? held : TEXT_BYTES_MAX;
    const char *newline = memchr(data, '\n', looked);
    const char *zero = memchr(data, '\0', newline ? (size_t)(newline - data) : looked);
    size_t size = zero ? (size_t)(zero - data) : newline ? (size_t)(newline - data) : looked;
    bool is_whole = zero ? size >= LENGTH_BYTES || held > LENGTH_BYTES
                         : newline || looked == TEXT_BYTES_MAX;
    if (!is_whole) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    take(reader, size + (newline && !zero ? 1 : 0));
    return read_text((struct lw_bytes){ data, size }, ret_answer);
}

/* A whole header is there: the frame, once its bytes are there, too. */
static enum lw_programs_next
next_frame(struct lw_programs_reader *reader, size_t held, size_t header_size,
           struct lw_programs_answer *ret_answer)
{
    const char *header = reader->data + reader->begin + LENGTH_BYTES;
    uint64_t tail = 0;
    lw_programs_answer_read((struct lw_bytes){ header, header_size }, ret_answer);
    bool is_known = ret_answer->root && lw_programs_answer_measure(ret_answer, &tail);
    uint64_t whole = LENGTH_BYTES + header_size + tail;
    if (is_known && whole <= reader->line_max && whole <= held) {
        ret_answer->tail = (struct lw_bytes){ header + header_size, (size_t)tail };
        ret_answer->is_framed = true;
        take(reader, (size_t)whole);
        return LW_PROGRAMS_NEXT_UNIT;
    }
    char why[sizeof ret_answer->why];
    (void)snprintf(why, sizeof why, "%.100s", ret_answer->why);
    lw_programs_answer_clear(ret_answer);
    if (!is_known) {
        return break_off(ret_answer, "the header of a frame is wrong: %.90s", why);
    }
    if (whole > reader->line_max) {
        return break_off(ret_answer, "it announced a frame of %" PRIu64 " bytes, too many",
                         whole);
    }
    reader->need = (size_t)whole;
    return LW_PROGRAMS_NEXT_NONE;
}

static enum lw_programs_next
next(struct lw_programs_reader *reader, struct lw_programs_answer *ret_answer)
{
    size_t held = reader->end - reader->begin;
    if (held == 0 || held < reader->need) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    const unsigned char *data = (const unsigned char *)reader->data + reader->begin;
    if (is_lowest_first(data, held)) {
        return break_off(ret_answer, "it wrote a length with the lowest byte first; it must be "
                                     "big-endian");
    }
    if (data[0] != 0 && is_text(data[0])) {
        return next_text(reader, held, ret_answer);
    }
    if (held < LENGTH_BYTES) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    uint32_t size = read_length(data);
    if (size > HEADER_MAX) {
        return break_off(ret_answer,
                         "it announced a header of %" PRIu32 " bytes; less than "
                         "16 MiB are allowed",
                         size);
    }
    if (held < LENGTH_BYTES + (size_t)size) {
        reader->need = LENGTH_BYTES + (size_t)size;
        return LW_PROGRAMS_NEXT_NONE;
    }
    return next_frame(reader, held, size, ret_answer);
}

static enum lw_programs_next
rest(struct lw_programs_reader *reader, struct lw_programs_answer *ret_answer)
{
    size_t held = reader->end - reader->begin;
    if (held == 0) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    const char *data = reader->data + reader->begin;
    take(reader, held);
    if (data[0] != 0 && is_text((unsigned char)data[0])) {
        return read_text((struct lw_bytes){ data, held }, ret_answer);
    }
    return break_off(ret_answer, "in the middle of a frame");
}

const struct lw_programs_protocol lw_programs_frames = {
    .name = "frames",
    .doubt = "it was spoken to in frames; one that speaks lines needs \"protocol: lines\"",
    .doubts_exits = true,
    .write_hello = write_hello,
    .write_request = write_request,
    .next = next,
    .rest = rest,
};
