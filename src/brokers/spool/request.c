/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and their answers. What comes in is another process's: every count and length is checked
 * before memory is taken for it. The thread that owns the store.
 */
#include "brokers/spool/request.h"

#include <sqlite3.h>
#include <string.h>

#include "base/alloc.h"

enum { LOOK_BYTES_MAX = 4 << 20, LOOK_COUNT_MAX = 1024 };

/* -- Frames -------------------------------------------------------------------------------------- */

void
lw_spool_begin_request(struct lw_text *out, enum lw_spool_request kind)
{
    lw_text_clear(out);
    lw_spool_put_u32(out, 0); /* the length, later */
    lw_spool_put_u32(out, LW_SPOOL_PROTOCOL);
    lw_spool_put_u32(out, (uint32_t)kind);
}

void
lw_spool_end_frame(struct lw_text *out)
{
    lw_spool_patch_u32(out, 0, (uint32_t)(out->size - 4));
}

static void
begin_answer(struct lw_text *out, enum lw_status status, const char *why)
{
    lw_text_clear(out);
    lw_spool_put_u32(out, 0);
    lw_spool_put_u32(out, (uint32_t)status);
    lw_spool_put_text(out, why);
}

int
lw_spool_read_request(struct lw_spool_reader *reader)
{
    uint32_t version = lw_spool_get_u32(reader);
    uint32_t kind = lw_spool_get_u32(reader);
    bool is_known = !reader->is_bad && version == LW_SPOOL_PROTOCOL &&
                    kind >= LW_SPOOL_PUBLISH && kind <= LW_SPOOL_YIELD;
    return is_known ? (int)kind : 0;
}

void
lw_spool_answer_yield(struct lw_text *out, bool is_reader)
{
    begin_answer(out, is_reader ? LW_STATUS_ALREADY : LW_STATUS_OK,
                 is_reader ? "it is read here" : "");
    lw_spool_end_frame(out);
}

void
lw_spool_answer_error(struct lw_text *out, enum lw_status status, const char *why)
{
    begin_answer(out, status, why);
    lw_spool_end_frame(out);
}

/* -- Publications --------------------------------------------------------------------------------- */

void
lw_spool_put_publication(struct lw_text *out, const struct lw_publication *publication)
{
    lw_spool_put_text(out, publication->topic);
    lw_spool_put_u32(out, (uint32_t)publication->partition);
    lw_spool_put_i64(out, publication->event_time_ms);
    lw_spool_put_i64(out, publication->delay_ms);
    lw_spool_put_bytes(out, publication->key);
    lw_spool_put_bytes(out, publication->ordering_key);
    lw_spool_put_bytes(out, publication->value);
    lw_spool_put_u32(out, (uint32_t)publication->header_count);
    lw_spool_put_headers(out, publication->headers, publication->header_count);
}

static bool
read_headers(struct lw_spool_reader *reader, struct lw_publication *publication)
{
    uint32_t count = lw_spool_get_u32(reader);
    if (reader->is_bad || count > lw_spool_left(reader) / 8) {
        return false;
    }
    struct lw_header *headers = lw_alloc_array(count + 1, sizeof *headers);
    if (!headers) {
        return false;
    }
    publication->headers = headers;
    publication->header_count = count;
    for (uint32_t i = 0; i < count; i++) {
        headers[i].name = lw_spool_get_bytes(reader);
        headers[i].value = lw_spool_get_bytes(reader);
        if (!headers[i].name.data) { /* it may be empty, but there is one */
            headers[i].name = lw_bytes_of("");
        }
    }
    return !reader->is_bad;
}

static bool
read_publication(struct lw_spool_reader *reader, struct lw_publication *publication)
{
    publication->kind = LW_PUBLISH_OUTPUT;
    publication->topic = lw_spool_get_text(reader);
    publication->partition = (int32_t)lw_spool_get_u32(reader);
    publication->event_time_ms = lw_spool_get_i64(reader);
    publication->delay_ms = lw_spool_get_i64(reader);
    publication->key = lw_spool_get_bytes(reader);
    publication->ordering_key = lw_spool_get_bytes(reader);
    publication->value = lw_spool_get_bytes(reader);
    return !reader->is_bad && publication->topic && read_headers(reader, publication);
}

bool
lw_spool_read_guests(struct lw_spool_reader *reader, struct lw_spool_guests *ret_guests)
{
    uint32_t count = lw_spool_get_u32(reader);
    *ret_guests = (struct lw_spool_guests){ .count = 0 };
    if (reader->is_bad || count > LW_SPOOL_REQUEST_ITEMS_MAX ||
        count > lw_spool_left(reader) / 4) {
        return false;
    }
    ret_guests->publications = lw_alloc_array(count + 1, sizeof *ret_guests->publications);
    ret_guests->items = lw_alloc_array(count + 1, sizeof *ret_guests->items);
    bool is_good = ret_guests->publications && ret_guests->items;
    for (uint32_t i = 0; is_good && i < count; i++) {
        ret_guests->count = i + 1;
        ret_guests->items[i].publication = &ret_guests->publications[i];
        is_good = read_publication(reader, &ret_guests->publications[i]);
    }
    if (!is_good) {
        lw_spool_free_guests(ret_guests);
    }
    return is_good;
}

void
lw_spool_free_guests(struct lw_spool_guests *guests)
{
    for (uint32_t i = 0; guests->publications && i < guests->count; i++) {
        lw_free((void *)(uintptr_t)guests->publications[i].headers);
    }
    lw_free(guests->publications);
    lw_free(guests->items);
    *guests = (struct lw_spool_guests){ .count = 0 };
}

void
lw_spool_answer_guests(struct lw_text *out, const struct lw_spool_guests *guests,
                       const char *why)
{
    begin_answer(out, LW_STATUS_OK, why);
    for (uint32_t i = 0; i < guests->count; i++) {
        lw_spool_put_u32(out, (uint32_t)guests->items[i].status);
    }
    lw_spool_end_frame(out);
}

/* -- Topics -------------------------------------------------------------------------------------- */

void
lw_spool_put_topics(struct lw_text *out, const struct lw_topic_info *topics, size_t n,
                    bool is_making)
{
    lw_spool_put_u32(out, is_making);
    lw_spool_put_u32(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        lw_spool_put_text(out, topics[i].name);
        lw_spool_put_u32(out, (uint32_t)topics[i].partitions);
        lw_spool_put_i64(out, topics[i].retention_ms);
    }
}

static enum lw_status
make_topic(struct lw_spool_store *store, const char *name, int32_t *partitions,
           int64_t retention_ms, const char **ret_why)
{
    struct lw_spool_topic *topic = lw_spool_find_topic(store, name);
    if (topic) {
        *partitions = topic->partition_count;
        *ret_why = "it exists already";
        return LW_STATUS_ALREADY;
    }
    if (!lw_spool_is_topic(name)) {
        *ret_why = "a topic's name is letters, digits, '.', '_' and '-'";
        return LW_STATUS_INVALID;
    }
    if (*partitions < 0 || *partitions > LW_SPOOL_PARTITIONS_MAX) {
        *ret_why = "a topic of a spool has at most 1024 partitions";
        return LW_STATUS_INVALID;
    }
    topic = lw_spool_make_topic(store, name, *partitions, retention_ms);
    *partitions = topic ? topic->partition_count : 0;
    *ret_why = topic ? "" : store->error.message;
    return topic ? LW_STATUS_OK : store->error.status;
}

void
lw_spool_answer_topics(struct lw_spool_store *store, struct lw_spool_reader *reader,
                       struct lw_text *out)
{
    bool is_making = lw_spool_get_u32(reader) != 0;
    uint32_t count = lw_spool_get_u32(reader);
    begin_answer(out, LW_STATUS_OK, "");
    reader->is_bad = reader->is_bad || count > LW_SPOOL_REQUEST_ITEMS_MAX;
    for (uint32_t i = 0; i < count && !reader->is_bad; i++) {
        const char *why = "";
        enum lw_status status = LW_STATUS_OK;
        const char *name = lw_spool_get_text(reader);
        int32_t partitions = (int32_t)lw_spool_get_u32(reader);
        int64_t retention_ms = lw_spool_get_i64(reader);
        if (reader->is_bad) {
            break;
        }
        if (is_making) {
            status = make_topic(store, name, &partitions, retention_ms, &why);
        } else {
            const struct lw_spool_topic *topic = lw_spool_find_topic(store, name);
            partitions = topic ? topic->partition_count : 0;
        }
        lw_spool_put_u32(out, (uint32_t)partitions);
        lw_spool_put_u32(out, (uint32_t)status);
        lw_spool_put_text(out, why);
    }
    lw_spool_end_frame(out);
    if (reader->is_bad) {
        lw_spool_answer_error(out, LW_STATUS_INVALID, "the request cannot be read");
    }
}

/* -- Looking ------------------------------------------------------------------------------------- */

void
lw_spool_put_look(struct lw_text *out, const struct lw_spool_look *look)
{
    lw_spool_put_text(out, look->topic);
    lw_spool_put_u32(out, (uint32_t)look->partition);
    lw_spool_put_i64(out, look->offset);
    lw_spool_put_u32(out, look->count_max);
    lw_spool_put_u32(out, look->patience_ms);
}

bool
lw_spool_read_look(struct lw_spool_reader *reader, struct lw_spool_look *ret_look)
{
    ret_look->topic = lw_spool_get_text(reader);
    ret_look->partition = (int32_t)lw_spool_get_u32(reader);
    ret_look->offset = lw_spool_get_i64(reader);
    ret_look->count_max = lw_spool_get_u32(reader);
    ret_look->patience_ms = lw_spool_get_u32(reader);
    return !reader->is_bad && ret_look->offset >= -1;
}

static struct lw_bytes
column_bytes(struct sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        return (struct lw_bytes){ NULL, 0 };
    }
    const void *data = sqlite3_column_blob(row, column);
    return (struct lw_bytes){ data ? data : "", (size_t)sqlite3_column_bytes(row, column) };
}

static void
put_message(struct lw_text *out, struct sqlite3_stmt *row)
{
    bool has_event = sqlite3_column_type(row, 2) != SQLITE_NULL;
    lw_spool_put_i64(out, lw_spool_offset(sqlite3_column_int64(row, 0)));
    lw_spool_put_i64(out, sqlite3_column_int64(row, 1));
    lw_spool_put_i64(out, has_event ? sqlite3_column_int64(row, 2) : -1);
    for (int column = 4; column <= 7; column++) {
        lw_spool_put_bytes(out, column_bytes(row, column));
    }
}

/* Returns where reading goes on, -1 when it failed. */
static int64_t
put_messages(struct lw_spool_store *store, const struct lw_spool_partition *partition,
             const struct lw_spool_look *look, struct lw_text *out)
{
    int64_t next = look->offset;
    if (next >= partition->stored) {
        return next; /* it may be beyond all numbers of rows */
    }
    uint32_t count_max = look->count_max < LOOK_COUNT_MAX ? look->count_max : LOOK_COUNT_MAX;
    int64_t numbers[] = { lw_spool_row(partition, look->offset),
                          lw_spool_row(partition, partition->stored), count_max };
    struct sqlite3_stmt *row = lw_spool_bind(store, LW_SPOOL_READ, numbers, 3);
    uint32_t count = 0;
    int code = SQLITE_ROW;
    while (out->size < LOOK_BYTES_MAX && (code = sqlite3_step(row)) == SQLITE_ROW) {
        put_message(out, row);
        next = lw_spool_offset(sqlite3_column_int64(row, 0)) + 1;
        count++;
    }
    (void)sqlite3_reset(row);
    if (code == SQLITE_DONE && count < count_max) {
        next = partition->stored > next ? partition->stored : next;
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        (void)lw_spool_fail(store, "read");
        return -1;
    }
    return next;
}

bool
lw_spool_answer_look(struct lw_spool_store *store, struct lw_spool_look *look, bool is_last,
                     struct lw_text *out)
{
    const struct lw_spool_topic *topic = lw_spool_find_topic(store, look->topic);
    if (!topic || look->partition < 0 || look->partition >= topic->partition_count) {
        lw_spool_answer_error(out, LW_STATUS_NOT_FOUND, "there is no such topic or partition");
        return true;
    }
    const struct lw_spool_partition *partition = &topic->partitions[look->partition];
    if (look->offset < 0) {
        look->offset = partition->stored;
    }
    if (look->offset >= partition->stored && !is_last) {
        return false;
    }
    begin_answer(out, LW_STATUS_OK, "");
    size_t place = out->size;
    lw_spool_put_i64(out, 0);
    lw_spool_put_i64(out, partition->stored);
    int64_t next = put_messages(store, partition, look, out);
    if (next < 0) {
        lw_spool_answer_error(out, store->error.status, store->error.message);
        return true;
    }
    lw_spool_patch_u32(out, place, (uint32_t)(uint64_t)next);
    lw_spool_patch_u32(out, place + 4, (uint32_t)((uint64_t)next >> 32));
    lw_spool_end_frame(out);
    return true;
}
