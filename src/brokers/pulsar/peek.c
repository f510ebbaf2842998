/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peeking: one reader a partition. A reader that lost its connection begins again at the last
 * message that was shown, which is then passed over. The end of a partition is the last id that
 * the broker named; what was acknowledged without being shown (it could not be decoded) is noticed
 * by asking again while nothing comes.
 */
#include "brokers/pulsar/peek.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/loop.h"
#include "brokers/pulsar/pulsar.h"

#define IDLE_NS (200 * LW_MS)
#define CLOSE_NS (1000 * LW_MS)

enum {
    WINDOW = 100,
    WINDOW_BYTES = 16 << 20,
    BATCH = 32,
    NAME_BYTES = 40,
    PLACE_BYTES = 64,
    CHUNKS_BYTES = 128 << 20,
    EXPIRY_S = 60
};

struct peeker;

/* One partition; `shown` is its last message. */
struct part {
    struct peeker *peeker;
    struct lw_pulsar_consumer *consumer;
    struct lw_pulsar_consumer_settings settings;
    struct lw_pulsar_request last_request;
    struct lw_pulsar_message_id last;
    struct lw_pulsar_message_id shown;
    int32_t number;
    bool has_last;
    bool has_shown;
    bool is_begun;
    bool is_ended;
    bool is_stopped;
};

struct peeker {
    const struct lw_peek *peek;
    struct lw_pulsar_broker *broker;
    struct lw_host *host;
    struct lw_pulsar_name name;
    struct lw_pulsar_find find;
    struct lw_pulsar_message_id start;
    char subscription[NAME_BYTES];
    struct part *parts;
    uint32_t count;
    uint32_t partitions; /* of the topic */
    bool is_found;
    struct lw_error error; /* the last failure */
    bool is_failed;        /* and that it is final */
};

/* -- Turning -------------------------------------------------------------------------------------- */

static void
take_event(struct peeker *peeker, const struct lw_event *event)
{
    if (event->kind == LW_EVENT_BROKER_DOWN && event->error) {
        peeker->error = *event->error;
    }
}

/* The broker says why nothing can be reached by an event. */
static void
take_events(struct peeker *peeker)
{
    struct lw_event events[BATCH];
    size_t count = 0;
    do {
        count = lw_events_take(&peeker->broker->events, events, BATCH);
        for (size_t i = 0; i < count; i++) {
            take_event(peeker, &events[i]);
        }
    } while (count == BATCH);
}

static void
turn(struct peeker *peeker, uint64_t deadline)
{
    lw_loop_turn_until(peeker->peek->loop, deadline);
    take_events(peeker);
}

static enum lw_status
unanswered(const struct peeker *peeker, struct lw_error *ret_error)
{
    if (peeker->error.status != LW_STATUS_OK) {
        if (ret_error) {
            *ret_error = peeker->error;
        }
        return peeker->error.status;
    }
    return lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                        "broker \"%s\" did not answer in time", peeker->broker->name);
}

/* -- Finding -------------------------------------------------------------------------------------- */

static void
on_partitions(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct peeker *peeker = LW_CONTAINER(find, struct peeker, find);
    if (result->failure) {
        peeker->error = result->failure->error;
        peeker->is_failed = true;
        return;
    }
    peeker->partitions = result->partitions;
    peeker->is_found = true;
}

static enum lw_status
find_partitions(struct peeker *peeker, struct lw_error *ret_error)
{
    uint64_t deadline = peeker->host->now + (uint64_t)peeker->peek->timeout_ms * LW_MS;
    if (peeker->name.partition >= 0) {
        return LW_STATUS_OK;
    }
    lw_pulsar_find_partitions(&peeker->broker->client, &peeker->find, peeker->name.text, false,
                              on_partitions);
    while (!peeker->is_found && !peeker->is_failed && peeker->host->now < deadline) {
        turn(peeker, deadline);
    }
    lw_pulsar_find_cancel(&peeker->find);
    return peeker->is_found ? LW_STATUS_OK : unanswered(peeker, ret_error);
}

/* -- Readers -------------------------------------------------------------------------------------- */

static bool
is_at_end(const struct part *part, const struct lw_pulsar_message_id *id)
{
    return part->has_last && lw_pulsar_message_id_compare(id, &part->last) >= 0;
}

static void
on_last(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
        const struct lw_pulsar_failure *failure)
{
    struct part *part = LW_CONTAINER(request, struct part, last_request);
    (void)failure; /* asked again while nothing comes */
    if (!answer) {
        return;
    }
    const struct lw_pulsar_get_last_message_id_response *response =
        &answer->get_last_message_id_response;
    const struct lw_pulsar_message_id *last = &response->last_message_id;
    const struct lw_pulsar_message_id *mark = &response->consumer_mark_delete_position;
    bool has_mark = (response->has & LW_PULSAR_LAST_ID_HAS_MARK_DELETE) != 0;
    bool is_behind = has_mark && (last->ledger < mark->ledger ||
                                  (last->ledger == mark->ledger &&
                                   (int64_t)last->entry <= (int64_t)mark->entry));
    if (!part->has_last) {
        part->last = lw_pulsar_message_id_of(last->ledger, last->entry);
        part->last.batch_index = last->batch_index;
        part->has_last = true;
    }
    part->is_ended = part->is_ended || last->ledger == UINT64_MAX || is_behind ||
                     (part->has_shown && is_at_end(part, &part->shown));
}

static void
on_begun(struct lw_pulsar_consumer *consumer)
{
    struct part *part = lw_pulsar_consumer_user(consumer);
    part->is_begun = true;
    if (part->peeker->peek->stops_at_end) {
        (void)lw_pulsar_consumer_ask_last(consumer, &part->last_request, on_last);
    }
}

static void
on_lost(struct lw_pulsar_consumer *consumer)
{
    (void)consumer;
}

static void
on_ready(struct lw_pulsar_consumer *consumer)
{
    (void)consumer; /* it is asked after every turn */
}

static void
on_failed(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_failure *failure)
{
    struct part *part = lw_pulsar_consumer_user(consumer);
    bool is_final = failure->error.is_fatal || failure->code == LW_PULSAR_TOPIC_NOT_FOUND ||
                    failure->error.status == LW_STATUS_DENIED;
    part->peeker->error = failure->error;
    part->peeker->is_failed |= is_final && !part->is_begun;
}

static void
on_end_of_topic(struct lw_pulsar_consumer *consumer)
{
    struct part *part = lw_pulsar_consumer_user(consumer);
    part->is_ended = true;
}

static void
on_stopped(struct lw_pulsar_consumer *consumer)
{
    struct part *part = lw_pulsar_consumer_user(consumer);
    part->is_stopped = true;
}

static const struct lw_pulsar_consumer_ops consumer_ops = {
    .on_begun = on_begun,
    .on_lost = on_lost,
    .on_ready = on_ready,
    .on_failed = on_failed,
    .on_end_of_topic = on_end_of_topic,
    .on_stopped = on_stopped,
};

static void
set_settings(struct part *part)
{
    const struct lw_peek *peek = part->peeker->peek;
    part->settings = (struct lw_pulsar_consumer_settings){
        .subscription = part->peeker->subscription,
        .type = LW_PULSAR_SUB_EXCLUSIVE,
        .initial_position = peek->from == LW_PEEK_END ? LW_PULSAR_INITIAL_LATEST
                                                      : LW_PULSAR_INITIAL_EARLIEST,
        .is_reader = true,
        .has_start_id = peek->from != LW_PEEK_END,
        .start_id = part->peeker->start,
        .start_seconds_ago = peek->from == LW_PEEK_AGO ? (uint64_t)peek->ago_ms / 1000 : 0,
        .receiver_queue_size = WINDOW,
        .queue_bytes_max = WINDOW_BYTES,
        .ack_group_max = 1000,
        .ack_group_ns = IDLE_NS / 4,
        .chunked_pending_max = 10,
        .chunked_bytes_max = CHUNKS_BYTES,
        .chunk_expiry_ns = (uint64_t)EXPIRY_S * 1000 * LW_MS,
        .uncompressed_bytes_max = CHUNKS_BYTES,
    };
}

static bool
start_part(struct peeker *peeker, uint32_t index, int32_t number)
{
    char topic[LW_PULSAR_NAME_BYTES];
    struct part *part = &peeker->parts[index];
    part->peeker = peeker;
    part->number = number < 0 ? 0 : number;
    lw_text_copy(topic, sizeof topic, peeker->name.text);
    if (number >= 0 && peeker->name.partition < 0 &&
        !lw_pulsar_name_partition(&peeker->name, number, topic, sizeof topic)) {
        return false;
    }
    set_settings(part);
    part->consumer = lw_pulsar_consumer_create(&peeker->broker->client, topic, &part->settings,
                                               index, &consumer_ops, part);
    if (!part->consumer) {
        return false;
    }
    lw_pulsar_consumer_demand(part->consumer, WINDOW, WINDOW_BYTES);
    lw_pulsar_consumer_start(part->consumer);
    return true;
}

/* Which partitions are read: one that is named, else all; a topic without any is its own. */
static enum lw_status
start_parts(struct peeker *peeker, struct lw_error *ret_error)
{
    int32_t wanted = peeker->name.partition >= 0 ? peeker->name.partition
                                                 : peeker->peek->partition;
    uint32_t found = peeker->partitions > 0 ? peeker->partitions : 1;
    if (peeker->name.partition < 0 && wanted >= (int32_t)found) {
        return lw_error_set(ret_error, LW_STATUS_NOT_FOUND, "E0503",
                            "topic \"%s\" has %u partition(s), none of number %d",
                            peeker->name.text, found, wanted);
    }
    peeker->count = wanted >= 0 ? 1 : found;
    peeker->parts = lw_alloc_array(peeker->count, sizeof *peeker->parts);
    bool is_good = peeker->parts != NULL;
    bool is_split = peeker->partitions > 0 || peeker->name.partition >= 0;
    for (uint32_t i = 0; is_good && i < peeker->count; i++) {
        int32_t number = wanted >= 0 ? wanted : (int32_t)i;
        is_good = start_part(peeker, i, is_split ? number : -1);
    }
    return is_good ? LW_STATUS_OK
                   : lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
}

/* -- Reading -------------------------------------------------------------------------------------- */

static bool
is_before_start(const struct peeker *peeker, const struct lw_pulsar_message_id *id)
{
    const struct lw_pulsar_message_id *start = &peeker->start;
    return peeker->peek->from == LW_PEEK_PLACE && id->ledger == start->ledger &&
           id->entry == start->entry && id->batch_index >= 0 &&
           id->batch_index < start->batch_index;
}

static bool
show(struct part *part, const struct lw_message *message)
{
    const struct peeker *peeker = part->peeker;
    struct lw_pulsar_message_id id = lw_pulsar_message_own_id(message);
    struct lw_message_times times = { -1, -1 };
    char place[PLACE_BYTES];
    if ((part->has_shown && lw_pulsar_message_id_compare(&id, &part->shown) <= 0) ||
        is_before_start(peeker, &id)) {
        return true; /* the reader began again, or at the batch of what was asked for */
    }
    lw_pulsar_message_times(message, &times);
    peeker->broker->base.ops->place(message, place, sizeof place);
    struct lw_peeked peeked = { .topic = peeker->peek->topic,
                                .partition = part->number,
                                .offset = -1,
                                .place = place,
                                .timestamp_ms = times.timestamp_ms,
                                .event_time_ms = times.event_time_ms,
                                .key = message->key,
                                .ordering_key = message->ordering_key,
                                .value = message->value,
                                .fault = message->fault };
    peeked.headers = lw_pulsar_message_headers(message, &peeked.header_count);
    part->shown = lw_pulsar_message_id_of(id.ledger, id.entry);
    part->shown.batch_index = id.batch_index;
    part->has_shown = true;
    part->settings.start_id = lw_pulsar_message_id_of(id.ledger, id.entry);
    part->settings.has_start_id = true;
    part->settings.start_seconds_ago = 0;
    part->is_ended = part->is_ended || is_at_end(part, &part->shown);
    return peeker->peek->on_message(&peeked, peeker->peek->user);
}

/* Shows what is here; false when no more is wanted. */
static bool
read_part(struct part *part, size_t *shown)
{
    struct lw_message messages[BATCH];
    struct lw_message *out[BATCH];
    bool is_wanted = true;
    uint64_t bytes = WINDOW_BYTES;
    for (size_t i = 0; i < BATCH; i++) {
        out[i] = &messages[i];
    }
    size_t count = lw_pulsar_consumer_receive(part->consumer, out, BATCH, &bytes);
    for (size_t i = 0; i < count; i++) {
        is_wanted = is_wanted && show(part, out[i]);
        lw_pulsar_consumer_ack(part->consumer, out[i]);
        lw_pulsar_message_release(out[i]);
    }
    lw_pulsar_consumer_demand(part->consumer, WINDOW, WINDOW_BYTES);
    *shown += count;
    return is_wanted;
}

/* True when every partition is at its end. */
static bool
is_all_ended(struct peeker *peeker, bool asks)
{
    bool is_all = true;
    for (uint32_t i = 0; i < peeker->count; i++) {
        struct part *part = &peeker->parts[i];
        if (!part->is_ended && asks && part->is_begun && !part->last_request.connection) {
            (void)lw_pulsar_consumer_ask_last(part->consumer, &part->last_request, on_last);
        }
        is_all = is_all && part->is_ended;
    }
    return is_all;
}

static bool
is_all_begun(const struct peeker *peeker)
{
    for (uint32_t i = 0; i < peeker->count; i++) {
        if (!peeker->parts[i].is_begun) {
            return false;
        }
    }
    return true;
}

/* One turn's yield of every part; false when enough was shown. */
static bool
read_parts(struct peeker *peeker, size_t *ret_shown)
{
    for (uint32_t i = 0; i < peeker->count; i++) {
        if (!read_part(&peeker->parts[i], ret_shown)) {
            return false;
        }
    }
    return true;
}

/* Nothing came for a while: is that the end? */
static bool
is_over(struct peeker *peeker, bool is_idle)
{
    const struct lw_peek *peek = peeker->peek;
    bool is_end = peek->stops_at_end && is_all_ended(peeker, is_idle);
    return is_end || (is_idle && peek->on_idle && !peek->on_idle(peek->user));
}

static enum lw_status
read_all(struct peeker *peeker, struct lw_error *ret_error)
{
    const struct lw_host *host = peeker->host;
    uint64_t deadline = host->now + (uint64_t)peeker->peek->timeout_ms * LW_MS;
    uint64_t idle_at = host->now + IDLE_NS;
    for (;;) {
        size_t shown = 0;
        turn(peeker, idle_at);
        if (!read_parts(peeker, &shown)) {
            return LW_STATUS_OK;
        }
        if (peeker->is_failed || (host->now >= deadline && !is_all_begun(peeker))) {
            return unanswered(peeker, ret_error);
        }
        bool is_idle = shown == 0 && host->now >= idle_at;
        if (is_over(peeker, is_idle)) {
            return LW_STATUS_OK;
        }
        idle_at = is_idle || shown > 0 ? host->now + IDLE_NS : idle_at;
    }
}

/* -- The whole ------------------------------------------------------------------------------------ */

static bool
is_any_open(const struct peeker *peeker)
{
    for (uint32_t i = 0; i < peeker->count; i++) {
        if (peeker->parts[i].consumer && !peeker->parts[i].is_stopped) {
            return true;
        }
    }
    return false;
}

static void
close_parts(struct peeker *peeker)
{
    uint64_t deadline = peeker->host->now + CLOSE_NS;
    uint32_t count = peeker->parts ? peeker->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (peeker->parts[i].consumer) {
            lw_pulsar_request_cancel(&peeker->parts[i].last_request);
            lw_pulsar_consumer_stop(peeker->parts[i].consumer, deadline);
        }
    }
    while (count > 0 && is_any_open(peeker) && peeker->host->now < deadline) {
        turn(peeker, deadline);
    }
    for (uint32_t i = 0; i < count; i++) {
        lw_pulsar_consumer_destroy(peeker->parts[i].consumer);
    }
    lw_free(peeker->parts);
}

/* As we write ids, the third number is that in a batch, not the partition of other tools. */
static void
take_batch_index(const char *place, struct lw_pulsar_message_id *id)
{
    size_t colons = 0;
    for (const char *at = place; (at = strchr(at, ':')) != NULL; at++) {
        colons++;
    }
    if (colons == 2) {
        id->batch_index = id->partition;
        id->partition = -1;
    }
}

/* Where to begin; ids of all ones are the beginning. */
static enum lw_status
read_start(struct peeker *peeker, struct lw_error *ret_error)
{
    const struct lw_peek *peek = peeker->peek;
    peeker->start = lw_pulsar_message_id_of(UINT64_MAX, UINT64_MAX);
    if (peek->from == LW_PEEK_OFFSET || peek->from == LW_PEEK_TAIL) {
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_UNSUPPORTED, "",
                                             "Pulsar's messages have no numbers to begin at");
        lw_error_help(ret_error, "say beginning, end, an id such as 12:7, or -5m for the last "
                                 "five minutes");
        return status;
    }
    if (peek->from == LW_PEEK_PLACE) {
        if (!lw_pulsar_message_id_parse(peek->place, &peeker->start)) {
            return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                                "\"%s\" is no id of a message, such as 12:7", peek->place);
        }
        take_batch_index(peek->place, &peeker->start);
    }
    return lw_pulsar_name_parse(peek->topic, &peeker->name, ret_error);
}

enum lw_status
lw_pulsar_peek(struct lw_broker *broker, const struct lw_peek *peek, struct lw_error *ret_error)
{
    struct peeker peeker = { .peek = peek,
                             .broker = lw_pulsar_broker_of(broker),
                             .host = broker->host };
    (void)snprintf(peeker.subscription, sizeof peeker.subscription, "laneway-peek-%016llx",
                   (unsigned long long)lw_host_random(broker->host));
    enum lw_status status = read_start(&peeker, ret_error);
    if (status == LW_STATUS_OK) {
        status = find_partitions(&peeker, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = start_parts(&peeker, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = read_all(&peeker, ret_error);
    }
    close_parts(&peeker);
    return status;
}
