/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history as lines in a shared mapping. The file grows by whole chunks of zero bytes and the
 * newest chunk is mapped; a line that does not fit before a chunk's end goes on in the next one.
 * Without room on the disk recording ends, the service does not: a last line says so.
 */
#include "service/history_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"

#define CHUNK_BYTES ((size_t)16 * 1024 * 1024)

struct lw_history_file {
    struct lw_history history;
    struct lw_dispatcher *dispatcher;
    int fd;
    char *chunk; /* the mapped one, NULL when recording ended */
    size_t chunk_start;
    size_t used; /* of the chunk */
    struct lw_text line;
};

static const char *const kind_names[] = {
    [LW_HISTORY_ASSIGNED] = "assigned",   [LW_HISTORY_RECEIVED] = "received",
    [LW_HISTORY_STARTED] = "started",     [LW_HISTORY_RETURNED] = "returned",
    [LW_HISTORY_JUDGED] = "judged",       [LW_HISTORY_PUBLISHED] = "published",
    [LW_HISTORY_SETTLED] = "settled",     [LW_HISTORY_DROPPED] = "dropped",
    [LW_HISTORY_COMMITTED] = "committed", [LW_HISTORY_REVOKED] = "revoked",
};

/* -- The mapping -------------------------------------------------------------------------------- */

static void
unmap(struct lw_history_file *file)
{
    if (file->chunk) {
        (void)munmap(file->chunk, CHUNK_BYTES);
        file->chunk = NULL;
    }
}

/* Blocks are taken from the disk at once: a full disk must not end in a signal. */
static bool
map_chunk(struct lw_history_file *file, size_t start)
{
    unmap(file);
    if (posix_fallocate(file->fd, (off_t)start, (off_t)CHUNK_BYTES) != 0) {
        return false;
    }
    void *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd,
                       (off_t)start);
    if (chunk == MAP_FAILED) {
        return false;
    }
    file->chunk = chunk;
    file->chunk_start = start;
    file->used = 0;
    return true;
}

static void
end_recording(struct lw_history_file *file)
{
    unmap(file);
    file->dispatcher->history = NULL;
    lw_host_log(file->dispatcher->host, LW_LOG_WARN, "history.ended",
                "the history ends here: its file cannot grow", "bytes=%zu", file->chunk_start);
}

static void
append(struct lw_history_file *file, const char *data, size_t size)
{
    while (size > 0 && file->chunk) {
        size_t room = CHUNK_BYTES - file->used;
        size_t part = size < room ? size : room;
        memcpy(file->chunk + file->used, data, part);
        file->used += part;
        data += part;
        size -= part;
        if (file->used == CHUNK_BYTES && !map_chunk(file, file->chunk_start + CHUNK_BYTES)) {
            end_recording(file);
        }
    }
}

/* -- Lines -------------------------------------------------------------------------------------- */

static void
put_int(struct lw_json *json, const char *key, int64_t value)
{
    lw_json_key(json, key);
    lw_json_int(json, value);
}

static void
put_delivery(struct lw_json *json, const struct lw_delivery *delivery)
{
    struct lw_bytes key = delivery->message.ordering_key.data ? delivery->message.ordering_key
                                                              : delivery->message.key;
    put_int(json, "attempt", delivery->attempt);
    if (delivery->is_batch) {
        put_int(json, "task", delivery->task_first->task_number);
    }
    put_int(json, "key_hash",
            key.data ? (int64_t)(lw_hash_bytes(key.data, key.size, 0) >> 1) : -1);
}

static void
on_event(const struct lw_history_event *event, void *user)
{
    struct lw_history_file *file = user;
    const struct lw_partition *partition = event->partition;
    struct lw_json json;
    lw_text_clear(&file->line);
    lw_json_init(&json, &file->line);
    lw_json_object(&json);
    put_int(&json, "t", (int64_t)event->now);
    lw_json_key(&json, "kind");
    lw_json_string(&json, kind_names[event->kind]);
    lw_json_key(&json, "topic");
    lw_json_string(&json, partition->topic);
    put_int(&json, "partition", partition->number);
    put_int(&json, "generation", (int64_t)partition->generation);
    put_int(&json, "position", event->position);
    put_int(&json, "priority", partition->subscription->priority);
    put_int(&json, "detail", event->detail);
    put_int(&json, "action", event->action);
    if (event->delivery) {
        put_delivery(&json, event->delivery);
    }
    lw_json_object_end(&json);
    lw_text_append_char(&file->line, '\n');
    if (!file->line.is_failed) {
        append(file, file->line.data, file->line.size);
    }
}

/* -- Opening and closing ------------------------------------------------------------------------ */

enum lw_status
lw_history_file_open(struct lw_dispatcher *dispatcher, const char *path,
                     struct lw_history_file **ret_file, struct lw_error *ret_error)
{
    struct lw_history_file *file = lw_alloc(sizeof *file);
    if (!file) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    *file = (struct lw_history_file){ .dispatcher = dispatcher };
    lw_text_init(&file->line);
    file->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file->fd < 0 || !map_chunk(file, 0)) {
        goto fail;
    }
    file->history = (struct lw_history){ .record = on_event, .user = file };
    dispatcher->history = &file->history;
    *ret_file = file;
    return LW_STATUS_OK;
fail:
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    lw_free(file);
    return lw_error_set(ret_error, LW_STATUS_SYSTEM, "", "cannot write the history to \"%s\"",
                        path);
}

void
lw_history_file_close(struct lw_history_file *file)
{
    if (!file) {
        return;
    }
    size_t size = file->chunk_start + file->used;
    bool is_whole = file->chunk != NULL;
    unmap(file);
    if (file->dispatcher->history == &file->history) {
        file->dispatcher->history = NULL;
    }
    if (is_whole && ftruncate(file->fd, (off_t)size) != 0) {
        lw_host_log(file->dispatcher->host, LW_LOG_WARN, "history.uncut",
                    "zero bytes are left behind the history", "bytes=%zu", size);
    }
    (void)close(file->fd);
    lw_text_deinit(&file->line);
    lw_free(file);
}
