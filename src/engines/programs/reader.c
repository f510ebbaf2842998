/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line reader. Each byte is looked at once for a newline, however the line arrives, and moved
 * only when the room behind it is used up. Invariant: begin <= scanned <= end <= capacity; the
 * buffer never holds more than one line of line_max bytes and one read.
 */
#include "engines/programs/reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { READ_BYTES = 64 * 1024, CAPACITY_KEPT = 4 * READ_BYTES };

void
lw_programs_reader_init(struct lw_programs_reader *reader, size_t line_max, bool is_cutting)
{
    *reader = (struct lw_programs_reader){ .line_max = line_max, .is_cutting = is_cutting };
}

void
lw_programs_reader_deinit(struct lw_programs_reader *reader)
{
    lw_free(reader->data);
    lw_programs_reader_init(reader, reader->line_max, reader->is_cutting);
}

static void
move_to_front(struct lw_programs_reader *reader)
{
    size_t size = reader->end - reader->begin;
    if (size > 0 && reader->begin > 0) {
        memmove(reader->data, reader->data + reader->begin, size);
    }
    reader->scanned -= reader->begin;
    reader->end = size;
    reader->begin = 0;
}

static bool
make_room(struct lw_programs_reader *reader)
{
    if (reader->begin == reader->end && reader->capacity > CAPACITY_KEPT) {
        lw_programs_reader_deinit(reader);
    }
    if (reader->begin == reader->end || reader->capacity - reader->end < READ_BYTES) {
        move_to_front(reader);
    }
    if (reader->capacity - reader->end >= READ_BYTES) {
        return true;
    }
    size_t capacity = reader->capacity * 2;
    size_t wanted = reader->need > reader->end - reader->begin ? reader->begin + reader->need
                                                               : reader->end;
    if (capacity < wanted + READ_BYTES) {
        capacity = wanted + READ_BYTES;
    }
    char *data = lw_resize_array(reader->data, capacity, 1);
    if (!data) {
        return false;
    }
    reader->data = data;
    reader->capacity = capacity;
    return true;
}

enum lw_programs_read
lw_programs_reader_fill(struct lw_programs_reader *reader, int fd)
{
    if (!make_room(reader)) {
        reader->is_starved = true;
        return LW_PROGRAMS_READ_END;
    }
    ssize_t got = 0;
    do {
        got = read(fd, reader->data + reader->end, reader->capacity - reader->end);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return errno == EAGAIN ? LW_PROGRAMS_READ_NOTHING : LW_PROGRAMS_READ_END;
    }
    reader->end += (size_t)got;
    return got > 0 ? LW_PROGRAMS_READ_SOME : LW_PROGRAMS_READ_END;
}

static void
give_out(struct lw_programs_reader *reader, size_t size, size_t skipped,
         struct lw_bytes *ret_line)
{
    const char *line = reader->data + reader->begin;
    reader->begin += size + skipped;
    reader->scanned = reader->begin;
    size -= size > 0 && skipped > 0 && line[size - 1] == '\r' ? 1 : 0;
    *ret_line = (struct lw_bytes){ line, size };
}

/* Looks no further than a line may reach, so that cutting a long one is linear too. */
bool
lw_programs_reader_next(struct lw_programs_reader *reader, struct lw_bytes *ret_line)
{
    size_t held = reader->end - reader->begin;
    if (held == 0) {
        return false;
    }
    size_t looked = held > reader->line_max ? reader->line_max + 1 : held;
    size_t seen = reader->scanned - reader->begin;
    const char *line = reader->data + reader->begin;
    const char *newline = looked > seen ? memchr(line + seen, '\n', looked - seen) : NULL;
    if (newline) {
        give_out(reader, (size_t)(newline - line), 1, ret_line);
        return true;
    }
    reader->scanned = reader->begin + (looked > seen ? looked : seen);
    if (held <= reader->line_max) {
        return false;
    }
    reader->is_overlong = !reader->is_cutting;
    if (reader->is_cutting) {
        give_out(reader, reader->line_max, 0, ret_line);
    }
    return reader->is_cutting;
}

bool
lw_programs_reader_rest(struct lw_programs_reader *reader, struct lw_bytes *ret_line)
{
    if (reader->begin == reader->end) {
        return false;
    }
    give_out(reader, reader->end - reader->begin, 0, ret_line);
    return true;
}
