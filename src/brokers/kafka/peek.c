/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peeking: a consumer without a group that reads all partitions of one topic into one queue. The
 * client's older interface is used for it, since the newer one wants a group.
 */
#include "brokers/kafka/peek.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

enum { IDLE_MS = 200 };

struct reader {
    const struct lw_peek *peek;
    struct lw_kafka_broker *broker;
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    rd_kafka_queue_t *queue;
    int32_t first;
    int32_t count; /* of partitions that are read */
    int32_t ended; /* that reached their end */
    bool *is_ended;
    struct lw_header *headers;
    size_t header_capacity;
    struct lw_error *ret_error;
};

/* -- Opening ------------------------------------------------------------------------------------ */

static enum lw_status
open_client(struct reader *reader)
{
    char reason[512];
    rd_kafka_conf_t *conf = lw_kafka_settings_create(reader->broker, LW_KAFKA_ROLE_ADMIN, NULL,
                                                     NULL, reader->ret_error);
    if (!conf) {
        return LW_STATUS_CONFIG;
    }
    (void)rd_kafka_conf_set(conf, "enable.partition.eof", "true", reason, sizeof reason);
    reader->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason);
    if (!reader->rk) {
        rd_kafka_conf_destroy(conf);
        return lw_error_set(reader->ret_error, LW_STATUS_CONFIG, "E0410",
                            "the Kafka client cannot be made: %s", reason);
    }
    reader->rkt = rd_kafka_topic_new(reader->rk, reader->peek->topic, NULL);
    reader->queue = rd_kafka_queue_new(reader->rk);
    if (!reader->rkt || !reader->queue) {
        return lw_error_set(reader->ret_error, LW_STATUS_INVALID, "E0503",
                            "\"%s\" is no topic that the client takes", reader->peek->topic);
    }
    return LW_STATUS_OK;
}

/* The client's last words about its connections, for the error that the user reads. */
static enum lw_status
say_unreachable(struct reader *reader, rd_kafka_resp_err_t code)
{
    struct lw_kafka_broker *broker = reader->broker;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(reader->rk);
    rd_kafka_event_t *event = NULL;
    struct lw_error error = { 0 };
    broker->failure_code = code;
    lw_text_copy(broker->failure, sizeof broker->failure, rd_kafka_err2str(code));
    while ((event = rd_kafka_queue_poll(queue, 0))) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR &&
            rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
            broker->failure_code = rd_kafka_event_error(event);
            lw_text_copy(broker->failure, sizeof broker->failure,
                         rd_kafka_event_error_string(event));
        }
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    lw_kafka_error_unreachable(broker, broker->failure_code, broker->failure, &error);
    if (reader->ret_error) {
        *reader->ret_error = error;
    }
    return error.status;
}

static enum lw_status
choose_partitions(struct reader *reader, int32_t found)
{
    const struct lw_peek *peek = reader->peek;
    if (found == 0) {
        return lw_error_set(reader->ret_error, LW_STATUS_NOT_FOUND, "E0503",
                            "topic \"%s\" does not exist", peek->topic);
    }
    if (peek->partition >= found) {
        return lw_error_set(reader->ret_error, LW_STATUS_NOT_FOUND, "E0503",
                            "topic \"%s\" has %d partitions, none of number %d", peek->topic,
                            found, peek->partition);
    }
    reader->first = peek->partition >= 0 ? peek->partition : 0;
    reader->count = peek->partition >= 0 ? 1 : found;
    reader->is_ended = lw_alloc_array((size_t)reader->count, sizeof *reader->is_ended);
    return reader->is_ended
               ? LW_STATUS_OK
               : lw_error_set(reader->ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
}

static enum lw_status
find_partitions(struct reader *reader)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t code = rd_kafka_metadata(reader->rk, 0, reader->rkt, &metadata,
                                                 (int)reader->peek->timeout_ms);
    if (code) {
        return say_unreachable(reader, code);
    }
    bool is_there = metadata->topic_cnt == 1 && !metadata->topics[0].err;
    rd_kafka_resp_err_t problem = metadata->topic_cnt == 1 ? metadata->topics[0].err : 0;
    int32_t found = is_there ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    if (problem && problem != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        return lw_error_set(reader->ret_error, lw_kafka_error_status(problem), "E0504",
                            "topic \"%s\" cannot be read: %s", reader->peek->topic,
                            rd_kafka_err2str(problem));
    }
    return choose_partitions(reader, found);
}

static int64_t
offset_of(const struct lw_peek *peek)
{
    switch (peek->from) {
    case LW_PEEK_BEGINNING:
        return RD_KAFKA_OFFSET_BEGINNING;
    case LW_PEEK_END:
        return RD_KAFKA_OFFSET_END;
    case LW_PEEK_OFFSET:
        return peek->offset;
    case LW_PEEK_TAIL:
        return RD_KAFKA_OFFSET_TAIL(peek->offset);
    case LW_PEEK_PLACE:
    case LW_PEEK_AGO:
        break; /* refused before */
    }
    return RD_KAFKA_OFFSET_BEGINNING;
}

static enum lw_status
start(struct reader *reader)
{
    for (int32_t i = 0; i < reader->count; i++) {
        if (rd_kafka_consume_start_queue(reader->rkt, reader->first + i,
                                         offset_of(reader->peek), reader->queue) != 0) {
            return lw_error_set(reader->ret_error, LW_STATUS_UNAVAILABLE, "E0503",
                                "partition %d of \"%s\" cannot be read: %s", reader->first + i,
                                reader->peek->topic, rd_kafka_err2str(rd_kafka_last_error()));
        }
    }
    return LW_STATUS_OK;
}

/* -- Reading ------------------------------------------------------------------------------------ */

static size_t
read_headers(struct reader *reader, const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers = NULL;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return 0;
    }
    size_t count = rd_kafka_header_cnt(headers);
    if (count > reader->header_capacity) {
        void *grown = lw_resize_array(reader->headers, count, sizeof *reader->headers);
        if (!grown) {
            return 0;
        }
        reader->headers = grown;
        reader->header_capacity = count;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = "";
        const void *value = NULL;
        size_t size = 0;
        (void)rd_kafka_header_get_all(headers, i, &name, &value, &size);
        reader->headers[i] = (struct lw_header){ { name, strlen(name) }, { value, size } };
    }
    return count;
}

static bool
show(struct reader *reader, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    struct lw_peeked peeked = {
        .topic = reader->peek->topic,
        .partition = message->partition,
        .offset = message->offset,
        .timestamp_ms = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp,
        .event_time_ms = -1,
        .key = { message->key, message->key_len },
        .value = { message->payload, message->len },
    };
    peeked.header_count = read_headers(reader, message);
    peeked.headers = reader->headers;
    return reader->peek->on_message(&peeked, reader->peek->user);
}

/* True when every partition has reached its end. */
static bool
note_end(struct reader *reader, int32_t partition)
{
    lw_assert(reader->is_ended && partition >= reader->first);
    if (!reader->is_ended[partition - reader->first]) {
        reader->is_ended[partition - reader->first] = true;
        reader->ended++;
    }
    return reader->ended == reader->count;
}

static enum lw_status
read_all(struct reader *reader)
{
    bool is_over = false;
    while (!is_over) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(reader->queue, IDLE_MS);
        if (!message) {
            is_over = reader->peek->on_idle && !reader->peek->on_idle(reader->peek->user);
            continue;
        }
        rd_kafka_resp_err_t code = message->err;
        if (!code) {
            is_over = !show(reader, message);
        } else if (code == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            is_over = note_end(reader, message->partition) && reader->peek->stops_at_end;
        }
        rd_kafka_message_destroy(message);
        if (code && code != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            return lw_error_set(reader->ret_error, lw_kafka_error_status(code), "E0504",
                                "topic \"%s\" cannot be read: %s", reader->peek->topic,
                                rd_kafka_err2str(code));
        }
    }
    return LW_STATUS_OK;
}

static void
close_reader(struct reader *reader)
{
    for (int32_t i = 0; reader->queue && i < reader->count; i++) {
        (void)rd_kafka_consume_stop(reader->rkt, reader->first + i);
    }
    if (reader->queue) {
        rd_kafka_queue_destroy(reader->queue);
    }
    if (reader->rkt) {
        rd_kafka_topic_destroy(reader->rkt);
    }
    if (reader->rk) {
        rd_kafka_destroy(reader->rk);
    }
    lw_free(reader->is_ended);
    lw_free(reader->headers);
}

enum lw_status
lw_kafka_peek(struct lw_broker *broker, const struct lw_peek *peek, struct lw_error *ret_error)
{
    struct reader reader = { .peek = peek,
                             .broker = lw_kafka_broker_of(broker),
                             .ret_error = ret_error };
    if (peek->from == LW_PEEK_PLACE || peek->from == LW_PEEK_AGO) {
        enum lw_status refused = lw_error_set(ret_error, LW_STATUS_UNSUPPORTED, "",
                                              "Kafka knows no such place to begin at");
        lw_error_help(ret_error, "say beginning, end, an offset, or -N for the last N");
        return refused;
    }
    enum lw_status status = open_client(&reader);
    if (status == LW_STATUS_OK) {
        status = find_partitions(&reader);
    }
    if (status == LW_STATUS_OK) {
        status = start(&reader);
    }
    if (status == LW_STATUS_OK) {
        status = read_all(&reader);
    }
    close_reader(&reader);
    return status;
}
