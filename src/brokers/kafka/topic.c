/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One topic of the producer. Its reason to exist: the cluster refuses whole batches. Fifty small
 * messages can be refused because together they are above the topic's limit, and one large one
 * takes its neighbours with it. So after such a refusal what came back waits here and goes again
 * with ever less out at once (the window is halved at each refusal); only a message that was out
 * alone and was refused is too large. A window that was learned stays, unless one message was the
 * whole reason.
 *
 * How many partitions a topic has is told by the client to partitioners only. So topics that are
 * consumed here, and tiers, have a partitioner of ours that notes the number, and a probe: a
 * message for a partition that cannot exist, which the client fails by itself as soon as it knows
 * the topic. Nothing is sent and nothing blocks.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/kafka/kafka.h"

enum { RECORD_OVERHEAD_BYTES = 70 };

/* -- Life ------------------------------------------------------------------------------------------ */

/* A source's topic, a retry topic with tiers, or a tier: what the sources of this broker say. */
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
        topic->is_consumed = topic->is_consumed || strcmp(source->topic, topic->name) == 0;
        for (size_t i = 0; i < source->tier_count; i++) {
            topic->is_tier = topic->is_tier || strcmp(source->tiers[i].topic, topic->name) == 0;
        }
    }
}

typedef int32_t (*partitioner_fn)(const rd_kafka_topic_t *, const void *, size_t, int32_t,
                                  void *, void *);

/* The client's own partitioner of that name, as the property `partitioner` chooses it. */
static partitioner_fn
find_partitioner(const struct lw_kafka_topic *topic)
{
    static const struct {
        const char *name;
        partitioner_fn fn;
    } known[] = {
        { "murmur2_random", rd_kafka_msg_partitioner_murmur2_random },
        { "murmur2", rd_kafka_msg_partitioner_murmur2 },
        { "consistent", rd_kafka_msg_partitioner_consistent },
        { "consistent_random", rd_kafka_msg_partitioner_consistent_random },
        { "random", rd_kafka_msg_partitioner_random },
        { "fnv1a", rd_kafka_msg_partitioner_fnv1a },
        { "fnv1a_random", rd_kafka_msg_partitioner_fnv1a_random },
    };
    const char *name = lw_properties_get(&topic->producer->broker->properties, "partitioner");
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].fn;
        }
    }
    return rd_kafka_msg_partitioner_murmur2_random;
}

/*
 * On any thread of the client; a probe's partition is none. The signature is the client's.
 * NOLINTBEGIN(readability-function-size)
 */
static int32_t
choose_partition(const rd_kafka_topic_t *rkt, const void *key, size_t size, int32_t count,
                 void *topic_opaque, void *message_opaque)
{
    struct lw_kafka_topic *topic = topic_opaque;
    atomic_store_explicit(&topic->partitions, count, memory_order_relaxed);
    if (message_opaque == topic) {
        return count;
    }
    return find_partitioner(topic)(rkt, key, size, count, topic_opaque, message_opaque);
}
/* NOLINTEND(readability-function-size) */

static void
probe(struct lw_kafka_topic *topic)
{
    /* With a key, since those without may be given a partition before any partitioner is asked. */
    int result = rd_kafka_produce(topic->rkt, RD_KAFKA_PARTITION_UA, 0, NULL, 0, "probe", 5,
                                  topic);
    topic->is_probing = result == 0;
    topic->producer->probes += topic->is_probing ? 1 : 0;
}

void
lw_kafka_topic_on_probe(struct lw_kafka_topic *topic)
{
    topic->is_probing = false;
    topic->producer->probes--;
}

static bool
open_handle(struct lw_kafka_topic *topic)
{
    rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(topic->producer->rk);
    rd_kafka_topic_conf_set_opaque(conf, topic);
    if (topic->is_tier || topic->is_consumed) {
        rd_kafka_topic_conf_set_partitioner_cb(conf, choose_partition);
    }
    topic->rkt = rd_kafka_topic_new(topic->producer->rk, topic->name, conf);
    return topic->rkt != NULL;
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
    if (topic->name) {
        find_role(topic);
    }
    if (!topic->name || !open_handle(topic)) {
        lw_free(topic->name);
        lw_free(topic);
        return NULL;
    }
    lw_list_push_front(&producer->topics, &topic->link);
    producer->topic_count++;
    if (topic->is_tier || topic->is_consumed) {
        probe(topic);
    }
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

int32_t
lw_kafka_topic_partitions(const struct lw_kafka_topic *topic)
{
    return atomic_load_explicit(&topic->partitions, memory_order_relaxed);
}

/* -- Sending ------------------------------------------------------------------------------------------ */

static uint64_t
size_of(const struct lw_publication *publication)
{
    uint64_t size = RECORD_OVERHEAD_BYTES + publication->key.size + publication->value.size;
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
    rd_kafka_error_t *error = rd_kafka_produceva(topic->producer->rk, items, headers ? 6 : 5);
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
    struct lw_publication **waiting = lw_alloc_array(capacity, sizeof(struct lw_publication *));
    if (!waiting) {
        return false;
    }
    for (uint32_t i = 0; topic->waiting_capacity > 0 && i < topic->waiting_count; i++) {
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
    uint64_t out = topic->flying_bytes < topic->window_bytes ? topic->flying_bytes
                                                             : topic->window_bytes;
    topic->window_bytes = out / 2;
    topic->is_shrunk = true;
    lw_host_log(
        topic->producer->broker->base.host, LW_LOG_INFO, "kafka.batch_refused",
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
    bool is_again = ended == LW_STATUS_TOO_LARGE && goes_again(topic, publication, was_alone);
    topic->flying--;
    topic->flying_bytes -= size_of(publication);
    if (was_alone) {
        topic->alone = NULL;
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
