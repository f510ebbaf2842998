/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peeking: partition after partition to their ends, then, if asked, on for what comes. An owner
 * holds a question until something comes (PATIENCE_MS at most), so following costs nothing. Without
 * an owner nobody can write, and the file is let go of between two looks, so that one can start.
 */
#include "brokers/spool/peek.h"

#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "brokers/spool/client.h"
#include "brokers/spool/spool.h"

enum { LOOK_COUNT = 256, PATIENCE_MS = 1000, LOOK_AGAIN_MS = 500, TURNS_MAX = 2 };

struct peeker {
    const struct lw_peek *peek;
    struct lw_spool_broker *broker;
    struct lw_spool_client client;
    struct lw_error *error;
    int32_t partitions;
    int64_t *offsets; /* where each partition goes on; -1: at its end */
    struct lw_header *headers;
    size_t header_capacity;
    bool is_over; /* the caller wants no more */
};

/* -- One answer ---------------------------------------------------------------------------------- */

static bool
view_headers(struct peeker *peeker, struct lw_bytes blob, struct lw_peeked *message)
{
    size_t count = lw_spool_count_headers(blob);
    if (count == SIZE_MAX) {
        return true;
    }
    if (count > peeker->header_capacity) {
        struct lw_header *headers = lw_resize_array(peeker->headers, count, sizeof *headers);
        if (!headers) {
            return false;
        }
        peeker->headers = headers;
        peeker->header_capacity = count;
    }
    lw_spool_view_headers(blob, peeker->headers);
    message->headers = peeker->headers;
    message->header_count = count;
    return true;
}

/* True while the caller wants more. */
static bool
show(struct peeker *peeker, int32_t partition)
{
    struct lw_spool_reader *answer = &peeker->client.answer;
    struct lw_peeked message = { .topic = peeker->peek->topic, .partition = partition };
    message.offset = lw_spool_get_i64(answer);
    message.timestamp_ms = lw_spool_get_i64(answer);
    message.event_time_ms = lw_spool_get_i64(answer);
    message.key = lw_spool_get_bytes(answer);
    message.ordering_key = lw_spool_get_bytes(answer);
    struct lw_bytes headers = lw_spool_get_bytes(answer);
    message.value = lw_spool_get_bytes(answer);
    if (answer->is_bad || !view_headers(peeker, headers, &message)) {
        return false;
    }
    int64_t since_ms = peeker->peek->from == LW_PEEK_AGO
                           ? lw_clock_wall_ms() - peeker->peek->ago_ms
                           : INT64_MIN;
    return message.timestamp_ms < since_ms ||
           peeker->peek->on_message(&message, peeker->peek->user);
}

/* The owner has ended: on with the next one, or with the file. */
static bool
comes_back(struct peeker *peeker, enum lw_status status, int turn)
{
    bool is_lost = status == LW_STATUS_UNKNOWN || status == LW_STATUS_UNAVAILABLE;
    if (!is_lost || peeker->client.store || turn >= TURNS_MAX) {
        return false;
    }
    lw_spool_client_close(&peeker->client);
    return lw_spool_client_open(&peeker->client, peeker->broker->path, &peeker->broker->options,
                                false, peeker->error) == LW_STATUS_OK;
}

/* Looks once; *ret_is_dry: the end was reached. */
static enum lw_status
look(struct peeker *peeker, int32_t partition, uint32_t patience_ms, bool *ret_is_dry)
{
    struct lw_spool_client *client = &peeker->client;
    struct lw_spool_look wanted = { .topic = peeker->peek->topic,
                                    .partition = partition,
                                    .offset = peeker->offsets[partition],
                                    .count_max = LOOK_COUNT,
                                    .patience_ms = patience_ms };
    enum lw_status status = LW_STATUS_OK;
    int turn = 0;
    do {
        lw_spool_begin_request(&client->out, LW_SPOOL_LOOK);
        lw_spool_put_look(&client->out, &wanted);
        status = lw_spool_client_ask(client, (int)peeker->peek->timeout_ms, peeker->error);
    } while (comes_back(peeker, status, turn++));
    if (status != LW_STATUS_OK) {
        return status;
    }
    int64_t next = lw_spool_get_i64(&client->answer);
    int64_t end = lw_spool_get_i64(&client->answer);
    peeker->offsets[partition] = next;
    while (!peeker->is_over && lw_spool_left(&client->answer) > 0) {
        peeker->is_over = !show(peeker, partition);
    }
    *ret_is_dry = next >= end;
    return LW_STATUS_OK;
}

/* -- All partitions ------------------------------------------------------------------------------- */

static bool
is_chosen(const struct peeker *peeker, int32_t partition)
{
    return peeker->peek->partition < 0 || peeker->peek->partition == partition;
}

static enum lw_status
look_to_the_end(struct peeker *peeker)
{
    enum lw_status status = LW_STATUS_OK;
    for (int32_t i = 0; i < peeker->partitions && status == LW_STATUS_OK; i++) {
        bool is_dry = !is_chosen(peeker, i);
        while (!is_dry && !peeker->is_over && status == LW_STATUS_OK) {
            status = look(peeker, i, 0, &is_dry);
        }
    }
    return status;
}

/* The chosen partitions wait in turn; one alone waits for what comes. */
static enum lw_status
wait_for_more(struct peeker *peeker)
{
    bool is_dry = false;
    bool is_one = peeker->partitions == 1 || peeker->peek->partition >= 0;
    int32_t partition = peeker->peek->partition >= 0 ? peeker->peek->partition : 0;
    if (is_one && !peeker->client.store) {
        return look(peeker, partition, PATIENCE_MS, &is_dry);
    }
    if (peeker->client.store) {
        lw_spool_client_close(&peeker->client);
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
        return lw_spool_client_open(&peeker->client, peeker->broker->path,
                                    &peeker->broker->options, false, peeker->error);
    }
    (void)poll(NULL, 0, LOOK_AGAIN_MS);
    return LW_STATUS_OK;
}

static enum lw_status
set_offsets(struct peeker *peeker)
{
    const struct lw_peek *peek = peeker->peek;
    enum lw_status status = LW_STATUS_OK;
    peeker->offsets = lw_alloc_array((size_t)peeker->partitions, sizeof *peeker->offsets);
    if (!peeker->offsets) {
        return lw_error_set(peeker->error, LW_STATUS_NO_MEMORY, "", "no memory to look");
    }
    bool is_at_end = peek->from == LW_PEEK_END || peek->from == LW_PEEK_TAIL;
    for (int32_t i = 0; i < peeker->partitions && status == LW_STATUS_OK; i++) {
        bool is_dry = false;
        peeker->offsets[i] = is_at_end ? -1 : peek->from == LW_PEEK_OFFSET ? peek->offset : 0;
        if (is_at_end) {
            status = look(peeker, i, 0, &is_dry); /* says where the end is */
        }
        if (peek->from == LW_PEEK_TAIL) {
            int64_t tail = peeker->offsets[i] - peek->offset;
            peeker->offsets[i] = tail > 0 ? tail : 0;
        }
    }
    return status;
}

static enum lw_status
find_topic(struct peeker *peeker)
{
    const struct lw_peek *peek = peeker->peek;
    struct lw_topic_info info = { .name = peek->topic };
    struct lw_spool_client *client = &peeker->client;
    enum lw_status status = LW_STATUS_OK;
    int turn = 0;
    do {
        lw_spool_begin_request(&client->out, LW_SPOOL_TOPICS);
        lw_spool_put_topics(&client->out, &info, 1, false);
        status = lw_spool_client_ask(client, (int)peek->timeout_ms, peeker->error);
    } while (comes_back(peeker, status, turn++));
    if (status != LW_STATUS_OK) {
        return status;
    }
    peeker->partitions = (int32_t)lw_spool_get_u32(&client->answer);
    if (peeker->partitions > peek->partition && peeker->partitions > 0) {
        return LW_STATUS_OK;
    }
    return lw_error_set(peeker->error, LW_STATUS_NOT_FOUND, "E0503",
                        peeker->partitions > 0 ? "topic \"%s\" has no such partition"
                                               : "topic \"%s\" does not exist",
                        peek->topic);
}

static enum lw_status
follow(struct peeker *peeker)
{
    enum lw_status status = look_to_the_end(peeker);
    while (status == LW_STATUS_OK && !peeker->is_over && !peeker->peek->stops_at_end) {
        if (!peeker->peek->on_idle(peeker->peek->user)) {
            break;
        }
        status = wait_for_more(peeker);
        if (status == LW_STATUS_OK && !peeker->is_over) {
            status = look_to_the_end(peeker);
        }
    }
    return status;
}

enum lw_status
lw_spool_peek(struct lw_broker *broker, const struct lw_peek *peek, struct lw_error *ret_error)
{
    struct lw_spool_broker *own = lw_spool_broker_of(broker);
    struct peeker peeker = { .peek = peek, .broker = own, .error = ret_error };
    if (peek->from == LW_PEEK_PLACE) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "a spool's messages have numbers, such as 12");
    }
    enum lw_status status = lw_spool_client_open(&peeker.client, own->path, &own->options,
                                                 false, ret_error);
    if (status == LW_STATUS_OK) {
        status = find_topic(&peeker);
    }
    if (status == LW_STATUS_OK) {
        status = set_offsets(&peeker);
    }
    if (status == LW_STATUS_OK) {
        status = follow(&peeker);
    }
    lw_spool_client_close(&peeker.client);
    lw_free(peeker.offsets);
    lw_free(peeker.headers);
    return status;
}
