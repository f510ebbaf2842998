/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Little-endian numbers and strings. A read that would go beyond the end sets `is_bad` and puts the
 * reader at its end, so that a chain of reads is checked once. What is written is checked by the
 * text's own flag. Pure. Any thread.
 */
#include "brokers/spool/wire.h"

#include <string.h>

#define NONE UINT32_MAX

void
lw_spool_put_u32(struct lw_text *out, uint32_t value)
{
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++) {
        bytes[i] = (unsigned char)(value >> 8 * i);
    }
    lw_text_append_bytes(out, bytes, sizeof bytes);
}

void
lw_spool_put_i64(struct lw_text *out, int64_t value)
{
    lw_spool_put_u32(out, (uint32_t)(uint64_t)value);
    lw_spool_put_u32(out, (uint32_t)((uint64_t)value >> 32));
}

void
lw_spool_put_bytes(struct lw_text *out, struct lw_bytes bytes)
{
    lw_spool_put_u32(out, bytes.data ? (uint32_t)bytes.size : NONE);
    if (bytes.data) {
        lw_text_append_bytes(out, bytes.data, bytes.size);
    }
}

void
lw_spool_put_text(struct lw_text *out, const char *text)
{
    lw_spool_put_bytes(out, (struct lw_bytes){ text, strlen(text) + 1 });
}

void
lw_spool_put_headers(struct lw_text *out, const struct lw_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lw_spool_put_bytes(out, headers[i].name);
        lw_spool_put_bytes(out, headers[i].value);
    }
}

void
lw_spool_patch_u32(struct lw_text *out, size_t place, uint32_t value)
{
    for (size_t i = 0; !out->is_failed && i < 4; i++) {
        out->data[place + i] = (char)(unsigned char)(value >> 8 * i);
    }
}

void
lw_spool_read_init(struct lw_spool_reader *reader, const void *data, size_t size)
{
    reader->at = data;
    reader->end = reader->at + size;
    reader->is_bad = false;
}

size_t
lw_spool_left(const struct lw_spool_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

uint32_t
lw_spool_get_u32(struct lw_spool_reader *reader)
{
    uint32_t value = 0;
    if (lw_spool_left(reader) < 4) {
        reader->is_bad = true;
        reader->at = reader->end;
        return 0;
    }
    for (int i = 0; i < 4; i++) {
        value |= (uint32_t)*reader->at++ << 8 * i;
    }
    return value;
}

int64_t
lw_spool_get_i64(struct lw_spool_reader *reader)
{
    uint64_t low = lw_spool_get_u32(reader);
    uint64_t high = lw_spool_get_u32(reader);
    return (int64_t)(low | high << 32);
}

struct lw_bytes
lw_spool_get_bytes(struct lw_spool_reader *reader)
{
    uint32_t size = lw_spool_get_u32(reader);
    if (size == NONE || reader->is_bad) {
        return (struct lw_bytes){ NULL, 0 };
    }
    if (size > lw_spool_left(reader)) {
        reader->is_bad = true;
        reader->at = reader->end;
        return (struct lw_bytes){ NULL, 0 };
    }
    struct lw_bytes bytes = { reader->at, size };
    reader->at += size;
    return bytes;
}

const char *
lw_spool_get_text(struct lw_spool_reader *reader)
{
    struct lw_bytes bytes = lw_spool_get_bytes(reader);
    const char *text = bytes.data;
    if (!text || bytes.size == 0 || memchr(text, '\0', bytes.size) != text + bytes.size - 1) {
        reader->is_bad = true;
        return NULL;
    }
    return text;
}

size_t
lw_spool_count_headers(struct lw_bytes blob)
{
    struct lw_spool_reader reader;
    size_t count = 0;
    lw_spool_read_init(&reader, blob.data, blob.size);
    while (lw_spool_left(&reader) > 0) {
        (void)lw_spool_get_bytes(&reader);
        (void)lw_spool_get_bytes(&reader);
        count++;
    }
    return reader.is_bad ? SIZE_MAX : count;
}

void
lw_spool_view_headers(struct lw_bytes blob, struct lw_header *out)
{
    struct lw_spool_reader reader;
    lw_spool_read_init(&reader, blob.data, blob.size);
    for (; lw_spool_left(&reader) > 0; out++) {
        out->name = lw_spool_get_bytes(&reader);
        out->value = lw_spool_get_bytes(&reader);
    }
}
