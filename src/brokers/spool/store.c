/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's life, and the tables that are held in memory: topics, partitions, positions, also of
 * groups that nobody reads for now, since they keep messages from being deleted. Making a topic or
 * a position is a transaction of its own, outside of all others. One thread at a time.
 */
#include "brokers/spool/store.h"

#include <sqlite3.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"

enum { OUTS_MAX = 1 << 20, OUTS_CHUNK = 512 };

/* -- Topics -------------------------------------------------------------------------------------- */

static void
init_partition(struct lw_spool_partition *partition, struct lw_spool_topic *topic,
               int32_t number)
{
    partition->topic = topic;
    partition->number = number;
    lw_list_init(&partition->positions);
    lw_list_init(&partition->dirty);
    lw_list_init(&partition->worn);
}

static struct lw_spool_topic *
create_topic(const char *name, int32_t partitions, int64_t retention_ms)
{
    struct lw_spool_topic *topic = lw_alloc(sizeof *topic);
    char *copy = lw_copy_text(name);
    struct lw_spool_partition *items = lw_alloc_array((size_t)partitions, sizeof *items);
    if (!topic || !copy || !items) {
        lw_free(topic);
        lw_free(copy);
        lw_free(items);
        return NULL;
    }
    topic->name = copy;
    topic->retention_ms = retention_ms;
    topic->partition_count = partitions;
    topic->partitions = items;
    for (int32_t i = 0; i < partitions; i++) {
        init_partition(&items[i], topic, i);
    }
    lw_list_init(&topic->link);
    return topic;
}

static void
destroy_topic(struct lw_spool_topic *topic)
{
    lw_list_remove(&topic->link);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        struct lw_list *node;
        struct lw_spool_partition *partition = &topic->partitions[i];
        lw_list_remove(&partition->dirty);
        lw_list_remove(&partition->worn);
        while ((node = lw_list_pop(&partition->positions)) != NULL) {
            struct lw_spool_position *position = LW_CONTAINER(node, struct lw_spool_position,
                                                              link);
            lw_list_remove(&position->dirty);
            lw_free(position);
        }
    }
    lw_free(topic->partitions);
    lw_free(topic->name);
    lw_free(topic);
}

struct lw_spool_topic *
lw_spool_find_topic(struct lw_spool_store *store, const char *name)
{
    struct lw_list *head = &store->topics;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_topic *topic = LW_CONTAINER(node, struct lw_spool_topic, link);
        if (strcmp(topic->name, name) == 0) {
            lw_list_remove(node); /* asked for again soon, as a rule */
            lw_list_push_front(head, node);
            return topic;
        }
    }
    return NULL;
}

struct lw_spool_partition *
lw_spool_next_partition(struct lw_spool_store *store,
                        const struct lw_spool_partition *partition)
{
    struct lw_list *node = store->topics.next;
    if (partition && partition->number + 1 < partition->topic->partition_count) {
        return &partition->topic->partitions[partition->number + 1];
    }
    if (partition) {
        node = partition->topic->link.next;
    }
    return node == &store->topics ? NULL
                                  : LW_CONTAINER(node, struct lw_spool_topic, link)->partitions;
}

static bool
insert_topic(struct lw_spool_store *store, struct lw_spool_topic *topic)
{
    struct sqlite3_stmt *statement = lw_spool_bind(store, LW_SPOOL_ADD_TOPIC,
                                                   &topic->retention_ms, 1);
    (void)sqlite3_bind_text(statement, 2, topic->name, -1, SQLITE_STATIC);
    bool is_good = sqlite3_step(statement) == SQLITE_DONE || lw_spool_fail(store, "write");
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    topic->id = sqlite3_last_insert_rowid(store->db);
    for (int32_t i = 0; is_good && i < topic->partition_count; i++) {
        int64_t numbers[] = { topic->id, i };
        is_good = lw_spool_run(store, LW_SPOOL_ADD_PARTITION, numbers, 2);
        topic->partitions[i].id = sqlite3_last_insert_rowid(store->db);
    }
    return is_good;
}

static void
say_no_memory(struct lw_spool_store *store)
{
    (void)lw_error_set(&store->error, LW_STATUS_NO_MEMORY, "", "no memory for the spool \"%s\"",
                       store->path);
}

struct lw_spool_topic *
lw_spool_make_topic(struct lw_spool_store *store, const char *name, int32_t partitions,
                    int64_t retention_ms)
{
    int32_t count = partitions > 0 ? partitions : (int32_t)store->options.partitions;
    struct lw_spool_topic *topic = create_topic(name, count, retention_ms);
    if (!topic) {
        say_no_memory(store);
        return NULL;
    }
    bool is_good = lw_spool_begin(store) && insert_topic(store, topic) &&
                   lw_spool_commit(store);
    if (!is_good) {
        lw_spool_rollback(store);
        destroy_topic(topic);
        return NULL;
    }
    lw_list_push_front(&store->topics, &topic->link);
    store->has_retention = store->has_retention || retention_ms > 0;
    return topic;
}

/* -- Positions ----------------------------------------------------------------------------------- */

static struct lw_spool_position *
create_position(struct lw_spool_partition *partition, int64_t id, int64_t next)
{
    struct lw_spool_position *position = lw_alloc(sizeof *position);
    if (position) {
        position->partition = partition;
        position->id = id;
        position->next = next;
        position->given = next;
        position->seen = next;
        position->cursor = next;
        position->taken_due_ms = -1;
        position->taken_offset = -1;
        position->due_ms = LW_SPOOL_NEVER_MS;
        position->least = -1;
        lw_list_init(&position->dirty);
        lw_list_init(&position->fresh);
        lw_list_init(&position->judged);
        lw_list_init(&position->taken);
        lw_list_push(&partition->positions, &position->link);
    }
    return position;
}

/* What waits for it already, from the file. */
static bool
read_waiting(struct lw_spool_store *store, struct lw_spool_position *position)
{
    int64_t numbers[] = { position->id, position->taken_due_ms, position->taken_offset };
    int64_t count = 0;
    bool is_good = lw_spool_ask(store, LW_SPOOL_COUNT_WAITING, numbers, 1, &count) &&
                   lw_spool_ask(store, LW_SPOOL_NEXT_DUE, numbers, 3, &position->due_ms);
    position->waiting = (uint64_t)count;
    return is_good;
}

static bool
find_position(struct lw_spool_store *store, struct lw_spool_partition *partition,
              const char *group, int64_t *ret_id)
{
    struct sqlite3_stmt *statement = NULL;
    static const char text[] = "SELECT id FROM position WHERE partition_id = ? AND "
                               "group_name = ?";
    if (sqlite3_prepare_v2(store->db, text, -1, &statement, NULL) != SQLITE_OK) {
        return lw_spool_fail(store, "read");
    }
    (void)sqlite3_bind_int64(statement, 1, partition->id);
    (void)sqlite3_bind_text(statement, 2, group, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(statement, 0);
    } else if (code != SQLITE_DONE) {
        (void)lw_spool_fail(store, "read");
    }
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool
insert_position(struct lw_spool_store *store, struct lw_spool_partition *partition,
                const char *group, int64_t next, int64_t *ret_id)
{
    int64_t numbers[] = { partition->id, next };
    struct sqlite3_stmt *statement = lw_spool_bind(store, LW_SPOOL_ADD_POSITION, numbers, 2);
    (void)sqlite3_bind_text(statement, 3, group, -1, SQLITE_STATIC);
    bool is_good = sqlite3_step(statement) == SQLITE_DONE || lw_spool_fail(store, "write");
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    *ret_id = sqlite3_last_insert_rowid(store->db);
    return is_good;
}

static struct lw_spool_position *
position_of(struct lw_spool_partition *partition, int64_t id)
{
    struct lw_list *head = &partition->positions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_position *position = LW_CONTAINER(node, struct lw_spool_position, link);
        if (position->id == id) {
            return position;
        }
    }
    return NULL;
}

struct lw_spool_position *
lw_spool_use_position(struct lw_spool_store *store, struct lw_spool_partition *partition,
                      const char *group, bool is_latest)
{
    int64_t id = 0;
    int64_t next = is_latest ? partition->next : partition->first;
    if (!find_position(store, partition, group, &id)) {
        return NULL;
    }
    if (id == 0 && !insert_position(store, partition, group, next, &id)) {
        return NULL;
    }
    struct lw_spool_position *position = position_of(partition, id);
    position = position ? position : create_position(partition, id, next);
    if (!position) {
        say_no_memory(store);
        return NULL;
    }
    return read_waiting(store, position) ? position : NULL;
}

/* -- Reading all of it ---------------------------------------------------------------------------- */

static bool
load_partition(struct lw_spool_store *store, struct sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 1);
    int32_t count = sqlite3_column_int(row, 3);
    int32_t number = sqlite3_column_int(row, 5);
    struct lw_spool_topic *topic = name ? lw_spool_find_topic(store, name) : NULL;
    if (!topic && name) {
        topic = create_topic(name, count, sqlite3_column_int64(row, 2));
        if (topic) {
            topic->id = sqlite3_column_int64(row, 0);
            store->has_retention = store->has_retention || topic->retention_ms > 0;
            lw_list_push_front(&store->topics, &topic->link);
        }
    }
    if (!topic || number < 0 || number >= topic->partition_count) {
        say_no_memory(store);
        return false;
    }
    struct lw_spool_partition *partition = &topic->partitions[number];
    partition->id = sqlite3_column_int64(row, 4);
    partition->next = partition->stored = sqlite3_column_int64(row, 6);
    partition->bytes = partition->stored_bytes = (uint64_t)sqlite3_column_int64(row, 7);
    partition->first = partition->next;
    return true;
}

static struct lw_spool_partition *
partition_of(struct lw_spool_store *store, int64_t id)
{
    struct lw_spool_partition *partition = lw_spool_next_partition(store, NULL);
    while (partition && partition->id != id) {
        partition = lw_spool_next_partition(store, partition);
    }
    return partition;
}

static bool
load_position(struct lw_spool_store *store, struct sqlite3_stmt *row)
{
    struct lw_spool_partition *partition = partition_of(store, sqlite3_column_int64(row, 1));
    if (partition && !create_position(partition, sqlite3_column_int64(row, 0),
                                      sqlite3_column_int64(row, 2))) {
        say_no_memory(store);
        return false;
    }
    return true;
}

static bool
load(struct lw_spool_store *store, const char *text,
     bool (*take)(struct lw_spool_store *store, struct sqlite3_stmt *row))
{
    struct sqlite3_stmt *row = NULL;
    bool is_good = sqlite3_prepare_v2(store->db, text, -1, &row, NULL) == SQLITE_OK;
    int code = SQLITE_DONE;
    while (is_good && (code = sqlite3_step(row)) == SQLITE_ROW) {
        if (!take(store, row)) {
            (void)sqlite3_finalize(row);
            return false;
        }
    }
    is_good = is_good && code == SQLITE_DONE;
    if (!is_good) {
        (void)lw_spool_fail(store, "read");
    }
    (void)sqlite3_finalize(row);
    return is_good;
}

static bool
load_firsts(struct lw_spool_store *store)
{
    bool is_good = true;
    struct lw_spool_partition *partition = lw_spool_next_partition(store, NULL);
    for (; is_good && partition; partition = lw_spool_next_partition(store, partition)) {
        int64_t row = lw_spool_row(partition, partition->next);
        int64_t range[] = { lw_spool_row(partition, 0), row };
        is_good = lw_spool_ask(store, LW_SPOOL_FIRST, range, 2, &row);
        partition->first = row == range[1] ? partition->next : lw_spool_offset(row);
        partition->stored_first = partition->first;
    }
    return is_good;
}

static bool
load_all(struct lw_spool_store *store)
{
    static const char partitions[] =
        "SELECT t.id, t.name, t.retention_ms, (SELECT count(*) FROM partition c WHERE "
        "c.topic_id = t.id), p.id, p.number, p.next, p.bytes FROM topic t JOIN partition p ON "
        "p.topic_id = t.id ORDER BY t.id DESC, p.number";
    static const char positions[] = "SELECT id, partition_id, next FROM position";
    return load(store, partitions, load_partition) && load_firsts(store) &&
           load(store, positions, load_position);
}

/* -- Life ---------------------------------------------------------------------------------------- */

static enum lw_status
open_store(struct lw_spool_store *store, bool is_made, struct lw_error *ret_error)
{
    enum lw_status status = lw_spool_schema_open(store, is_made, ret_error);
    if (status == LW_STATUS_OK) {
        status = lw_spool_statements_prepare(store, ret_error);
    }
    if (status == LW_STATUS_OK && !load_all(store)) {
        status = store->error.status;
        if (ret_error) {
            *ret_error = store->error;
        }
    }
    return status;
}

static struct lw_spool_store *
create_store(const char *path, const struct lw_spool_options *options)
{
    struct lw_spool_store *store = lw_alloc(sizeof *store);
    char *copy = lw_copy_text(path);
    if (!store || !copy ||
        lw_pool_init(&store->outs, sizeof(struct lw_spool_out), OUTS_MAX, OUTS_CHUNK, NULL,
                     NULL) != LW_STATUS_OK) {
        lw_free(store);
        lw_free(copy);
        return NULL;
    }
    store->path = copy;
    store->options = *options;
    store->lock.fd = -1;
    store->has_retention = options->keep_ms > 0 || options->retention_ms > 0 ||
                           options->retention_bytes > 0;
    lw_list_init(&store->topics);
    lw_list_init(&store->dirty_partitions);
    lw_list_init(&store->dirty_positions);
    lw_list_init(&store->worn);
    return store;
}

enum lw_status
lw_spool_store_open(struct lw_spool_opening *opening, struct lw_spool_store **ret_store,
                    struct lw_error *ret_error)
{
    struct lw_spool_store *store = create_store(opening->path, opening->options);
    if (!store) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "",
                            "no memory for the spool \"%s\"", opening->path);
    }
    enum lw_status status = lw_spool_lock_take(&store->lock, opening->path, &opening->owner_pid,
                                               ret_error);
    if (status == LW_STATUS_OK) {
        status = open_store(store, opening->is_made, ret_error);
    }
    if (status != LW_STATUS_OK) {
        lw_spool_store_close(store);
        return status;
    }
    *ret_store = store;
    return LW_STATUS_OK;
}

void
lw_spool_store_close(struct lw_spool_store *store)
{
    if (!store) {
        return;
    }
    while (!lw_list_is_empty(&store->topics)) {
        destroy_topic(LW_CONTAINER(store->topics.next, struct lw_spool_topic, link));
    }
    lw_spool_statements_finalize(store);
    (void)sqlite3_close(store->db);
    lw_spool_lock_release(&store->lock);
    lw_pool_deinit(&store->outs);
    lw_free(store->path);
    lw_free(store);
}
