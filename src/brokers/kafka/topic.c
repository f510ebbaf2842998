/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One topic of the producer. Its reason to exist: the cluster refuses whole batches. Fifty small
 * messages can be refused because together they are above the topic's limit, and one large one
 * takes its neighbours with it. So after such a refusal what came back waits here and goes again
 * with ever less out at once (the window is halved at each refusal); only a message that was out
 * alone and was refused is too large. A window that was learned stays, unless one message was the
 * whole reason.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/kafka/kafka.h"

enum { RECORD_OVERHEAD_BYTES = 70, PARTITION_GAP_MAX = 16 };

/* -- Life ------------------------------------------------------------------------------------------ */

/* A retry topic with tiers, or a tier: what the sources of this broker say. */
static void
find_role(struct lw_kafka_topic *topic)
{
    struct lw_kafka_broker *broker = topic->producer->broker;
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        const struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, link);
        bool is_retry = source->retry_topic && strcmp(source->retry_topic, topic->name) == 0;
        if (is_retry && !topic->tiers_of) {
            topic->tiers_of = source;
        }
        for (size_t i = 0; i < source->tier_count; i++) {
            topic->is_tier = topic->is_tier || strcmp(source->tiers[i].topic, topic->name) == 0;
        }
    }
}

struct lw_kafka_topic *
lw_kafka_topic_create(struct lw_kafka_producer *producer, const char *name)
{
    struct lw_kafka_topic *topic = lw_alloc(sizeof *topic);
    if (!topic) {
        return NULL;
    }
    lw_list_init(&topic->link);
    lw_list_init(&topic->pump);
    topic->producer = producer;
    topic->window_bytes = UINT64_MAX;
    topic->window_before_bytes = UINT64_MAX;
    topic->name = lw_copy_text(name);
    rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(producer->rk);
    rd_kafka_topic_conf_set_opaque(conf, topic);
    topic->rkt = topic->name ? rd_kafka_topic_new(producer->rk, name, conf) : NULL;
    if (!topic->rkt) {
        lw_free(topic->name);
        lw_free(topic);
        return NULL;
    }
    find_role(topic);
    lw_list_push_front(&producer->topics, &topic->link);
    producer->topic_count++;
    return topic;
}

void
lw_kafka_topic_destroy(struct lw_kafka_topic *topic)
{
    lw_assert(topic->waiting_count == 0);
    lw_list_remove(&topic->link);
    lw_list_remove(&topic->pump);
    topic->producer->topic_count--;
    rd_kafka_topic_destroy(topic->rkt);
    lw_free(topic->waiting);
    lw_free(topic->name);
    lw_free(topic);
}

/* A partition without a leader looks absent; so look a little further before believing it. */
int32_t
lw_kafka_topic_partitions(struct lw_kafka_topic *topic)
{
    if (topic->partitions > 0) {
        return topic->partitions;
    }
    for (int32_t number = 0; number < topic->partitions + PARTITION_GAP_MAX; number++) {
        if (rd_kafka_topic_partition_available(topic->rkt, number)) {
            topic->partitions = number + 1;
        }
    }
    return topic->partitions;
}

/* -- Sending ------------------------------------------------------------------------------------------ */

static uint64_t
size_of(const struct lw_publication *publication)
{
    uint64_t size =
        RECORD_OVERHEAD_BYTES + publication->key.size + publication->value.size;
    for (size_t i = 0; i < publication->header_count; i++) {
        size += publication->headers[i].name.size + publication->headers[i].value.size;
    }
    return size;
}

static rd_kafka_headers_t *
headers_of(const struct lw_publication *publication)
{
    if (publication->header_count == 0) {
        return NULL;
    }
    rd_kafka_headers_t *headers = rd_kafka_headers_new(publication->header_count);
    for (size_t i = 0; i < publication->header_count; i++) {
        const struct lw_header *header = &publication->headers[i];
        /* A size of -1 would be measured, and a NULL value is null whatever the size. */
        (void)rd_kafka_header_add(headers, header->name.data, (ssize_t)header->name.size,
                                  header->value.data, (ssize_t)header->value.size);
    }
    return headers;
}

/* A copy for a tier follows its message's partition, since that one's owner reads the tier. */
static int32_t
partition_of(struct lw_kafka_topic *topic, const struct lw_publication *publication)
{
    if (publication->partition >= 0 || !topic->is_tier || !publication->base) {
        return publication->partition;
    }
    int32_t number = lw_kafka_message_partition(publication->base);
    int32_t partitions = lw_kafka_topic_partitions(topic);
    return number >= 0 && partitions > 0 ? number % partitions : number;
}

static rd_kafka_resp_err_t
produce(struct lw_kafka_topic *topic, struct lw_publication *publication)
{
    rd_kafka_headers_t *headers = headers_of(publication);
    int32_t partition = partition_of(topic, publication);
    rd_kafka_vu_t items[6] = {
        { .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = topic->rkt },
        { .vtype = RD_KAFKA_VTYPE_PARTITION,
          .u.i32 = partition < 0 ? RD_KAFKA_PARTITION_UA : partition },
        { .vtype = RD_KAFKA_VTYPE_VALUE,
          .u.mem = { (void *)(uintptr_t)publication->value.data, publication->value.size } },
        { .vtype = RD_KAFKA_VTYPE_KEY,
          .u.mem = { (void *)(uintptr_t)publication->key.data, publication->key.size } },
        { .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = publication },
        { .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
    };
    rd_kafka_error_t *error =
        rd_kafka_produceva(topic->producer->rk, items, headers ? 6 : 5);
    if (!error) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    if (headers) {
        rd_kafka_headers_destroy(headers); /* taken over only when accepted */
    }
    return code;
}

static bool
has_window(const struct lw_kafka_topic *topic, uint64_t size)
{
    return topic->flying == 0 || topic->flying_bytes + size <= topic->window_bytes;
}

/* OK: it is out. AGAIN: no room in the client. Else it is refused for good. */
static enum lw_status
launch(struct lw_kafka_topic *topic, struct lw_publication *publication)
{
    rd_kafka_resp_err_t code = produce(topic, publication);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        return LW_STATUS_AGAIN;
    }
    if (code) {
        return lw_kafka_producer_status(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    }
    topic->alone = topic->flying == 0 ? publication : NULL;
    topic->flying++;
    topic->flying_bytes += size_of(publication);
    topic->is_shrunk = false;
    return LW_STATUS_OK;
}

static bool
reserve_waiting(struct lw_kafka_topic *topic)
{
    if (topic->waiting_count < topic->waiting_capacity) {
        return true;
    }
    uint32_t capacity = topic->waiting_capacity ? topic->waiting_capacity * 2 : 64;
    struct lw_publication **waiting =
        lw_alloc_array(capacity, sizeof(struct lw_publication *));
    if (!waiting) {
        return false;
    }
    for (uint32_t i = 0; i < topic->waiting_count; i++) {
        waiting[i] = topic->waiting[(topic->waiting_first + i) % topic->waiting_capacity];
    }
    lw_free(topic->waiting);
    topic->waiting = waiting;
    topic->waiting_capacity = capacity;
    topic->waiting_first = 0;
    return true;
}

static bool
wait_in_line(struct lw_kafka_topic *topic, struct lw_publication *publication)
{
    if (!reserve_waiting(topic)) {
        return false;
    }
    uint32_t at = (topic->waiting_first + topic->waiting_count) % topic->waiting_capacity;
    topic->waiting[at] = publication;
    topic->waiting_count++;
    if (lw_list_is_empty(&topic->pump)) {
        lw_list_push(&topic->producer->pumps, &topic->pump);
    }
    return true;
}

static struct lw_publication *
take_waiting(struct lw_kafka_topic *topic)
{
    struct lw_publication *publication = topic->waiting[topic->waiting_first];
    topic->waiting_first = (topic->waiting_first + 1) % topic->waiting_capacity;
    topic->waiting_count--;
    if (topic->waiting_count == 0) {
        lw_list_remove(&topic->pump);
    }
    return publication;
}

enum lw_status
lw_kafka_topic_send(struct lw_kafka_topic *topic, struct lw_publication *publication)
{
    if (topic->waiting_count == 0 && has_window(topic, size_of(publication))) {
        return launch(topic, publication);
    }
    return wait_in_line(topic, publication) ? LW_STATUS_OK : LW_STATUS_AGAIN;
}

/* -- Reports --------------------------------------------------------------------------------------------- */

/* Everything that came back went out again: what was learned stays, or is forgotten. */
static void
end_refusal(struct lw_kafka_topic *topic)
{
    if (topic->flying > 0 || topic->waiting_count > 0) {
        return;
    }
    if (topic->has_culprit) {
        topic->window_bytes = topic->window_before_bytes;
        topic->has_culprit = false;
    }
    topic->window_before_bytes = topic->window_bytes;
}

void
lw_kafka_topic_pump(struct lw_kafka_topic *topic)
{
    while (topic->waiting_count > 0 && !topic->producer->is_broken) {
        struct lw_publication *publication = topic->waiting[topic->waiting_first];
        if (!has_window(topic, size_of(publication))) {
            return;
        }
        enum lw_status status = launch(topic, publication);
        if (status == LW_STATUS_AGAIN) {
            return; /* a report or the producer's timer comes back here */
        }
        (void)take_waiting(topic);
        if (status != LW_STATUS_OK) {
            lw_kafka_producer_receipt(topic->producer, publication, status);
        }
    }
    end_refusal(topic);
}

static void
shrink(struct lw_kafka_topic *topic)
{
    if (topic->is_shrunk) {
        return; /* the same batch's other messages */
    }
    uint64_t out =
        topic->flying_bytes < topic->window_bytes ? topic->flying_bytes : topic->window_bytes;
    topic->window_bytes = out / 2;
    topic->is_shrunk = true;
    lw_host_log(topic->producer->broker->base.host, LW_LOG_INFO, "kafka.batch_refused",
                "the cluster refused a batch as too large; its messages go again in smaller ones",
                "topic=%s bytes=%llu", topic->name, (unsigned long long)out);
}

/* A refusal for size: alone it is the message's own fault, else it goes again. */
static bool
goes_again(struct lw_kafka_topic *topic, struct lw_publication *publication, bool was_alone)
{
    if (was_alone) {
        topic->has_culprit = true;
        return false;
    }
    if (topic->producer->is_closing || topic->producer->is_broken) {
        return false;
    }
    shrink(topic);
    return wait_in_line(topic, publication);
}

void
lw_kafka_topic_on_report(struct lw_kafka_topic *topic, struct lw_publication *publication,
                         rd_kafka_resp_err_t error, rd_kafka_msg_status_t status)
{
    enum lw_status ended = lw_kafka_producer_status(error, status);
    bool was_alone = topic->alone == publication;
    bool is_again =
        ended == LW_STATUS_TOO_LARGE && goes_again(topic, publication, was_alone);
    topic->flying--;
    topic->flying_bytes -= size_of(publication);
    if (was_alone) {
        topic->alone = NULL;
    }
    if (ended == LW_STATUS_NOT_FOUND) {
        topic->partitions = 0; /* look again */
    }
    if (is_again) {
        return;
    }
    if (ended == LW_STATUS_TOO_LARGE && !was_alone) {
        ended = LW_STATUS_UNAVAILABLE; /* not judged by itself: not its own fault yet */
    }
    lw_kafka_producer_receipt(topic->producer, publication, ended);
    if (topic->waiting_count == 0) {
        end_refusal(topic);
    }
}

void
lw_kafka_topic_give_up(struct lw_kafka_topic *topic)
{
    while (topic->waiting_count > 0) {
        lw_kafka_producer_receipt(topic->producer, take_waiting(topic), LW_STATUS_UNAVAILABLE);
    }
}
