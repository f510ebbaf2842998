/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition and its queue. The queue is taken out of the client's forwarding before the
 * partition is assigned, so that no message can come by another way; the client's callback, under
 * the queue's lock, only posts a letter. A batch that was shorter than asked for is the proof that
 * the queue was empty; until then the partition stays in its source's ring. Not reading is the
 * backpressure. What was read and may not be given out yet (the byte limit, a tier's time, a new
 * ownership that was not announced) waits in the stash, in order.
 *
 * Invariants: positions given out ascend within a generation; a stash is empty outside of an
 * ownership. Loop thread, except the callback.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "brokers/kafka/kafka.h"

static void
on_queue_filled(rd_kafka_t *rk, void *opaque)
{
    (void)rk;
    struct lw_kafka_partition *partition = opaque;
    (void)lw_host_post(partition->source->broker->base.host, &partition->letter);
}

static void
on_letter(struct lw_letter *letter)
{
    lw_kafka_partition_mark_ready(LW_CONTAINER(letter, struct lw_kafka_partition, letter));
}

static void
on_hold_ended(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_kafka_partition_mark_ready(LW_CONTAINER(timer, struct lw_kafka_partition, hold));
}

void
lw_kafka_partition_mark_ready(struct lw_kafka_partition *partition)
{
    if (partition->generation && !partition->is_revoking) {
        lw_turns_add(&partition->source->ready, &partition->ready);
    }
}

/* -- Life ---------------------------------------------------------------------------------------- */

struct lw_kafka_partition *
lw_kafka_partition_find(struct lw_kafka_source *source, const char *topic, int32_t number)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_kafka_partition *partition = source->slots[i];
        if (partition->number == number && strcmp(partition->topic, topic) == 0) {
            return partition;
        }
    }
    return NULL;
}

static bool
open_queue(struct lw_kafka_partition *partition)
{
    rd_kafka_t *rk = partition->source->client->rk;
    partition->queue = rd_kafka_queue_get_partition(rk, partition->topic, partition->number);
    if (!partition->queue) {
        return false;
    }
    rd_kafka_queue_forward(partition->queue, NULL);
    rd_kafka_queue_cb_event_enable(partition->queue, on_queue_filled, partition);
    return true;
}

static bool
add_slot(struct lw_kafka_source *source, struct lw_kafka_partition *partition)
{
    struct lw_kafka_partition **slots = lw_resize_array(source->slots, source->slot_count + 1,
                                                        sizeof(struct lw_kafka_partition *));
    if (!slots) {
        return false;
    }
    partition->slot = source->slot_count;
    source->slots = slots;
    source->slots[source->slot_count++] = partition;
    return true;
}

struct lw_kafka_partition *
lw_kafka_partition_open(struct lw_kafka_source *source, const char *topic, int64_t tier_ms,
                        int32_t number)
{
    struct lw_kafka_partition *partition = lw_kafka_partition_find(source, topic, number);
    if (partition) {
        return partition->queue || open_queue(partition) ? partition : NULL;
    }
    partition = lw_alloc(sizeof *partition);
    if (!partition) {
        return NULL;
    }
    lw_letter_init(&partition->letter, on_letter);
    lw_list_init(&partition->ready);
    lw_timer_init(&partition->hold, on_hold_ended);
    partition->source = source;
    partition->topic = topic;
    partition->tier_ms = tier_ms;
    partition->number = number;
    if (!add_slot(source, partition)) {
        lw_free(partition);
        return NULL;
    }
    return open_queue(partition) ? partition : NULL;
}

void
lw_kafka_partition_begin(struct lw_kafka_partition *partition)
{
    struct lw_kafka_broker *broker = partition->source->broker;
    partition->generation = lw_broker_next_generation();
    partition->is_revoking = false;
    partition->is_given_up = false;
    partition->next = -1;
    partition->end = -1;
    partition->committed = -1;
    partition->active_at = broker->base.host->now;
    struct lw_event event = {
        .kind = LW_EVENT_ASSIGNED,
        .source = lw_kafka_source_face(partition->source),
        .slot = partition->slot,
        .generation = partition->generation,
        .topic = partition->topic,
        .partition = partition->number,
        .is_companion = partition->tier_ms >= 0,
        .position = -1,
    };
    lw_events_push_reserved(&broker->events, &event);
    lw_kafka_partition_mark_ready(partition);
}

static void
drop_stash(struct lw_kafka_partition *partition)
{
    for (uint32_t i = 0; i < partition->stash_count; i++) {
        rd_kafka_message_destroy(partition->stash[partition->stash_first + i]);
    }
    partition->stash_first = 0;
    partition->stash_count = 0;
}

void
lw_kafka_partition_end(struct lw_kafka_partition *partition)
{
    lw_turns_remove(&partition->source->ready, &partition->ready);
    drop_stash(partition);
    lw_timers_disarm(&partition->source->broker->base.host->timers, &partition->hold);
    partition->generation = 0;
    partition->is_revoking = false;
    partition->is_restarting = false;
}

void
lw_kafka_partition_rewind(struct lw_kafka_partition *partition, int64_t offset)
{
    drop_stash(partition);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, partition->topic, partition->number)->offset =
        offset;
    rd_kafka_error_t *error = rd_kafka_seek_partitions(partition->source->client->rk, list, 0);
    rd_kafka_error_destroy(error);
    rd_kafka_topic_partition_list_destroy(list);
}

void
lw_kafka_partition_silence(struct lw_kafka_partition *partition)
{
    lw_kafka_partition_end(partition);
    if (partition->queue) {
        rd_kafka_queue_cb_event_enable(partition->queue, NULL, NULL);
        rd_kafka_queue_destroy(partition->queue);
        partition->queue = NULL;
    }
}

void
lw_kafka_partition_destroy(struct lw_kafka_partition *partition)
{
    lw_free(partition->stash);
    lw_free(partition);
}

/* -- What is in the queue besides messages -------------------------------------------------------- */

/* The end of the log: what lies between the last message and it holds nothing for us. */
static void
on_end(struct lw_kafka_partition *partition, int64_t offset)
{
    partition->end = offset;
    if (offset <= partition->next) {
        return;
    }
    partition->next = offset;
    struct lw_event event = {
        .kind = LW_EVENT_POSITION,
        .source = lw_kafka_source_face(partition->source),
        .slot = partition->slot,
        .generation = partition->generation,
        .position = offset,
    };
    lw_events_push(&partition->source->broker->events, &event);
}

static void
say_no_offset(struct lw_kafka_partition *partition, const char *reason)
{
    struct lw_kafka_source *source = partition->source;
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_NOT_FOUND, "E0506",
                       "group \"%s\" cannot begin partition %d of \"%s\": %s",
                       source->client->group, (int)partition->number, partition->topic, reason);
    lw_error_help(&error, "auto.offset.reset is none, so nobody chooses for you. Set it to "
                          "earliest or latest, or set the group's offset.");
    error.is_fatal = true;
    lw_kafka_source_fail(source, &error);
}

static void
on_record(struct lw_kafka_partition *partition, const rd_kafka_message_t *record)
{
    struct lw_kafka_source *source = partition->source;
    if (record->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        on_end(partition, record->offset);
        return;
    }
    const char *reason = rd_kafka_message_errstr(record);
    char quoted[512];
    source->skipped++;
    lw_host_log(source->broker->base.host, LW_LOG_WARN, "kafka.record_error",
                "the client reports an error instead of a message",
                "topic=%s partition=%d offset=%lld code=%s reason=%s skipped=%llu",
                partition->topic, (int)partition->number, (long long)record->offset,
                rd_kafka_err2name(record->err), lw_log_quote(reason, quoted, sizeof quoted),
                (unsigned long long)source->skipped);
    enum lw_status status = lw_kafka_error_status(record->err);
    if (record->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
        say_no_offset(partition, reason);
    } else if (status == LW_STATUS_DENIED || status == LW_STATUS_NOT_FOUND) {
        struct lw_error error;
        const struct lw_kafka_failure failure = { partition->topic, source->client->group,
                                                  record->err, reason };
        lw_kafka_error_topic(source->broker, &failure, &error);
        lw_kafka_source_fail(source, &error);
    }
}

/* -- Receiving ------------------------------------------------------------------------------------ */

static bool
reserve_stash(struct lw_kafka_partition *partition, uint32_t n)
{
    if (partition->stash_first > 0) {
        memmove(partition->stash, partition->stash + partition->stash_first,
                partition->stash_count * sizeof(rd_kafka_message_t *));
        partition->stash_first = 0;
    }
    if (partition->stash_count + n <= partition->stash_capacity) {
        return true;
    }
    rd_kafka_message_t **stash = lw_resize_array(partition->stash, partition->stash_count + n,
                                                 sizeof(rd_kafka_message_t *));
    if (!stash) {
        return false;
    }
    partition->stash = stash;
    partition->stash_capacity = partition->stash_count + n;
    return true;
}

/* Without memory the messages go back to the client, which fetches them again. */
static void
stash_all(struct lw_kafka_partition *partition, rd_kafka_message_t **messages, size_t n)
{
    if (n == 0) {
        return;
    }
    if (!reserve_stash(partition, (uint32_t)n)) {
        int64_t from = messages[0]->offset;
        for (size_t i = 0; i < n; i++) {
            rd_kafka_message_destroy(messages[i]);
        }
        lw_kafka_partition_rewind(partition, from);
        return;
    }
    memcpy(partition->stash + partition->stash_count, messages,
           n * sizeof(rd_kafka_message_t *));
    partition->stash_count += (uint32_t)n;
}

/*
 * The log begins anew below what was given out already: it was truncated, or deleted and the
 * reset policy chose. That is a new ownership, since positions must ascend within one.
 */
static void
restart(struct lw_kafka_partition *partition)
{
    struct lw_kafka_broker *broker = partition->source->broker;
    if (!lw_events_reserve(&broker->events, 2)) {
        return; /* tried again at the next receive */
    }
    struct lw_event lost = {
        .kind = LW_EVENT_LOST,
        .source = lw_kafka_source_face(partition->source),
        .slot = partition->slot,
        .generation = partition->generation,
        .topic = partition->topic,
        .partition = partition->number,
    };
    lw_host_log(broker->base.host, LW_LOG_WARN, "kafka.went_back",
                "the partition goes on below what was received before: its log was cut",
                "topic=%s partition=%d next=%lld", partition->topic, (int)partition->number,
                (long long)partition->next);
    lw_events_push_reserved(&broker->events, &lost);
    lw_kafka_partition_begin(partition);
    partition->is_restarting = true;
}

static inline void
give(struct lw_kafka_partition *partition, rd_kafka_message_t *from, struct lw_message *out,
     uint64_t *bytes)
{
    size_t size = from->len + from->key_len;
    lw_kafka_message_fill(out, from, partition->slot);
    *bytes = size < *bytes ? *bytes - size : 0;
    partition->next = from->offset + 1;
}

/* Gives out what a batch holds; what may not go now is stashed. */
static size_t
give_batch(struct lw_kafka_partition *partition, rd_kafka_message_t **batch, size_t count,
           struct lw_message *const out[], uint64_t *bytes)
{
    size_t given = 0;
    size_t i = 0;
    for (; i<count && * bytes> 0; i++) {
        rd_kafka_message_t *message = batch[i];
        if (__builtin_expect(message->err != 0, 0)) {
            on_record(partition, message);
            rd_kafka_message_destroy(message);
            continue;
        }
        if (__builtin_expect(message->offset < partition->next, 0)) {
            restart(partition);
            break;
        }
        give(partition, message, out[given++], bytes);
    }
    stash_all(partition, batch + i, count - i);
    return given;
}

/* True when the stash's first one has to wait for its time; the timer brings it back. */
static bool
is_held(struct lw_kafka_partition *partition)
{
    const rd_kafka_message_t *head = partition->stash[partition->stash_first];
    if (partition->tier_ms < 0 || head->err) {
        return false;
    }
    struct lw_host *host = partition->source->broker->base.host;
    int64_t wall_ms = host->ops->wall_ms(host);
    int64_t due_ms = lw_kafka_tier_due_ms(head, partition->tier_ms, wall_ms);
    if (due_ms <= wall_ms) {
        return false;
    }
    lw_timers_arm(&host->timers, &partition->hold,
                  host->now + (uint64_t)(due_ms - wall_ms) * LW_MS);
    return true;
}

static size_t
give_stash(struct lw_kafka_partition *partition, struct lw_message *const out[], size_t n,
           uint64_t *bytes, bool *ret_is_held)
{
    size_t given = 0;
    while (partition->stash_count > 0 && given<n && * bytes> 0 && !partition->is_restarting) {
        if (is_held(partition)) {
            *ret_is_held = true;
            break;
        }
        rd_kafka_message_t *message = partition->stash[partition->stash_first];
        if (!message->err && message->offset < partition->next) {
            restart(partition);
            break;
        }
        partition->stash_first++;
        partition->stash_count--;
        if (message->err) {
            on_record(partition, message);
            rd_kafka_message_destroy(message);
        } else {
            give(partition, message, out[given++], bytes);
        }
    }
    return given;
}

/* Takes up to n from the client into `batch`; *ret_is_dry when fewer came. */
static size_t
take(struct lw_kafka_partition *partition, rd_kafka_message_t **batch, size_t n,
     bool *ret_is_dry)
{
    ssize_t got = rd_kafka_consume_batch_queue(partition->queue, 0, batch, n);
    size_t count = got > 0 ? (size_t)got : 0;
    *ret_is_dry = count < n;
    return count;
}

/* A tier's messages all pass the stash, where the first waits for its time. */
static size_t
receive_tier(struct lw_kafka_partition *partition, struct lw_message *const out[], size_t n,
             uint64_t *bytes, bool *ret_is_dry)
{
    rd_kafka_message_t **batch = partition->source->broker->batch;
    bool is_held_back = false;
    bool is_dry = false;
    size_t given = give_stash(partition, out, n, bytes, &is_held_back);
    while (given<n && * bytes> 0 && !is_held_back && !is_dry && !partition->is_restarting) {
        size_t count = take(partition, batch, LW_KAFKA_HOLD_BATCH, &is_dry);
        stash_all(partition, batch, count);
        given += give_stash(partition, out + given, n - given, bytes, &is_held_back);
    }
    *ret_is_dry = is_held_back || (is_dry && partition->stash_count == 0);
    return given;
}

static size_t
receive_plain(struct lw_kafka_partition *partition, struct lw_message *const out[], size_t n,
              uint64_t *bytes, bool *ret_is_dry)
{
    rd_kafka_message_t **batch = partition->source->broker->batch;
    size_t given = 0;
    *ret_is_dry = false;
    if (__builtin_expect(partition->stash_count > 0, 0)) {
        bool is_held_back = false;
        given = give_stash(partition, out, n, bytes, &is_held_back);
    }
    if (given == n || *bytes == 0 || partition->stash_count > 0) {
        return given;
    }
    size_t wanted = n - given < LW_KAFKA_BATCH ? n - given : LW_KAFKA_BATCH;
    size_t count = take(partition, batch, wanted, ret_is_dry);
    given += give_batch(partition, batch, count, out + given, bytes);
    *ret_is_dry = *ret_is_dry && partition->stash_count == 0;
    return given;
}

size_t
lw_kafka_partition_receive(struct lw_kafka_partition *partition, struct lw_message *const out[],
                           size_t n, uint64_t *bytes, bool *ret_is_dry)
{
    struct lw_kafka_broker *broker = partition->source->broker;
    if (__builtin_expect(partition->is_restarting, 0)) {
        *ret_is_dry = false;
        if (broker->events.count > 0) {
            return 0; /* the dispatcher has not heard of the new ownership yet */
        }
        partition->is_restarting = false;
    }
    size_t given = partition->tier_ms >= 0
                       ? receive_tier(partition, out, n, bytes, ret_is_dry)
                       : receive_plain(partition, out, n, bytes, ret_is_dry);
    if (given > 0) {
        partition->active_at = broker->base.host->now;
        broker->live += given;
    }
    return given;
}
