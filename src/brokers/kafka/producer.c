/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one idempotent producer of a cluster: replies, outputs, retry copies and dead letters. Each
 * accepted publication has exactly one receipt, from its delivery report; the client's status says
 * whether it was refused, confirmed, or nobody knows. Values are not copied: a publication lives
 * until its receipt. After a fatal error of the client everything that is out comes back as refused
 * or unknown, and a new client takes over.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "brokers/kafka/kafka.h"

#define ROOM_RETRY_NS (100 * LW_MS)

static void on_letter(struct lw_letter *letter);
static void on_room_due(struct lw_timer *timer, uint64_t now);

void
lw_kafka_producer_init(struct lw_kafka_producer *producer, struct lw_kafka_broker *broker)
{
    producer->broker = broker;
    lw_letter_init(&producer->letter, on_letter);
    lw_timer_init(&producer->room_timer, on_room_due);
    lw_list_init(&producer->topics);
    lw_list_init(&producer->pumps);
}

static void
on_queue_filled(rd_kafka_t *rk, void *opaque)
{
    (void)rk;
    struct lw_kafka_producer *producer = opaque;
    (void)lw_host_post(producer->broker->base.host, &producer->letter);
}

enum lw_status
lw_kafka_producer_start(struct lw_kafka_producer *producer, struct lw_error *ret_error)
{
    struct lw_kafka_broker *broker = producer->broker;
    rd_kafka_conf_t *conf = lw_kafka_settings_create(broker, LW_KAFKA_ROLE_PRODUCER, NULL, NULL,
                                                     ret_error);
    if (!conf) {
        return ret_error ? ret_error->status : LW_STATUS_CONFIG;
    }
    char reason[512];
    if (lw_kafka_broker_observe(broker, conf, NULL) == LW_STATUS_OK) {
        producer->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
    }
    if (!producer->rk) {
        rd_kafka_conf_destroy(conf);
        return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                            "the Kafka producer cannot be made: %s", reason);
    }
    producer->queue = rd_kafka_queue_get_main(producer->rk);
    (void)rd_kafka_set_log_queue(producer->rk, producer->queue);
    rd_kafka_queue_cb_event_enable(producer->queue, on_queue_filled, producer);
    (void)lw_host_post(broker->base.host, &producer->letter);
    return LW_STATUS_OK;
}

/* -- Topics ---------------------------------------------------------------------------------------- */

static void
sweep_topics(struct lw_kafka_producer *producer)
{
    struct lw_list *next = NULL;
    for (struct lw_list *at = producer->topics.next; at != &producer->topics; at = next) {
        next = at->next;
        struct lw_kafka_topic *topic = LW_CONTAINER(at, struct lw_kafka_topic, link);
        bool is_idle = topic->flying == 0 && topic->waiting_count == 0 && !topic->is_probing;
        if (is_idle && !topic->is_tier && !topic->is_consumed) {
            lw_kafka_topic_destroy(topic);
        }
    }
}

/* The list is kept in order of use, so the common case is the first one. */
struct lw_kafka_topic *
lw_kafka_producer_topic(struct lw_kafka_producer *producer, const char *name)
{
    for (struct lw_list *at = producer->topics.next; at != &producer->topics; at = at->next) {
        struct lw_kafka_topic *topic = LW_CONTAINER(at, struct lw_kafka_topic, link);
        if (strcmp(topic->name, name) == 0) {
            lw_list_remove(at);
            lw_list_push_front(&producer->topics, at);
            return topic;
        }
    }
    if (!producer->rk) {
        return NULL;
    }
    if (producer->topic_count >= LW_KAFKA_TOPICS_MAX) {
        sweep_topics(producer);
    }
    return lw_kafka_topic_create(producer, name);
}

/* -- Publishing --------------------------------------------------------------------------------------- */

/* A delayed copy goes to the tier of its delay, where its source's partition owner finds it. */
static struct lw_kafka_topic *
target_of(struct lw_kafka_producer *producer, const struct lw_publication *publication)
{
    struct lw_kafka_topic *topic = lw_kafka_producer_topic(producer, publication->topic);
    if (!topic || publication->delay_ms <= 0 || !topic->tiers_of) {
        return topic;
    }
    const struct lw_kafka_tier *tier = lw_kafka_tier_choose(topic->tiers_of,
                                                            publication->delay_ms);
    return tier ? lw_kafka_producer_topic(producer, tier->topic) : topic;
}

void
lw_kafka_producer_receipt(struct lw_kafka_producer *producer,
                          struct lw_publication *publication, enum lw_status status)
{
    struct lw_event event = { .kind = LW_EVENT_PUBLISHED,
                              .publication = publication,
                              .status = status };
    producer->outstanding--;
    lw_events_push_reserved(&producer->broker->events, &event);
}

/* Accepted, with a place for its receipt; or there is no room. */
static bool
accept_one(struct lw_kafka_producer *producer, struct lw_publication *publication)
{
    struct lw_events *events = &producer->broker->events;
    struct lw_kafka_topic *topic = target_of(producer, publication);
    if (!topic || !lw_events_reserve(events, 1)) {
        return false;
    }
    producer->outstanding++;
    enum lw_status status = lw_kafka_topic_send(topic, publication);
    if (status == LW_STATUS_AGAIN) {
        producer->outstanding--;
        events->reserved--;
        return false;
    }
    if (status != LW_STATUS_OK) {
        lw_kafka_producer_receipt(producer, publication, status);
    }
    return true;
}

size_t
lw_kafka_producer_publish(struct lw_kafka_producer *producer,
                          struct lw_publication *const items[], size_t n)
{
    bool is_ready = producer->rk && !producer->is_broken && !producer->is_closing;
    size_t accepted = 0;
    while (is_ready && accepted < n && accept_one(producer, items[accepted])) {
        accepted++;
    }
    if (accepted < n && !producer->is_closing) {
        struct lw_host *host = producer->broker->base.host;
        producer->wants_room = true;
        lw_timers_arm(&host->timers, &producer->room_timer, host->now + ROOM_RETRY_NS);
    }
    return accepted;
}

static void
say_room(struct lw_kafka_producer *producer)
{
    if (producer->wants_room && !producer->is_broken) {
        struct lw_event event = { .kind = LW_EVENT_PUBLISH_ROOM };
        producer->wants_room = false;
        lw_timers_disarm(&producer->broker->base.host->timers, &producer->room_timer);
        lw_events_push(&producer->broker->events, &event);
    }
}

static void
pump_all(struct lw_kafka_producer *producer)
{
    struct lw_list *next = NULL;
    for (struct lw_list *at = producer->pumps.next; at != &producer->pumps; at = next) {
        next = at->next;
        lw_kafka_topic_pump(LW_CONTAINER(at, struct lw_kafka_topic, pump));
    }
}

static void
on_room_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_kafka_producer *producer = LW_CONTAINER(timer, struct lw_kafka_producer,
                                                      room_timer);
    pump_all(producer);
    say_room(producer);
    if (producer->wants_room || !lw_list_is_empty(&producer->pumps)) {
        lw_timers_arm(&producer->broker->base.host->timers, timer, now + ROOM_RETRY_NS);
    }
}

/* -- Reports ------------------------------------------------------------------------------------------- */

enum lw_status
lw_kafka_producer_status(rd_kafka_resp_err_t error, rd_kafka_msg_status_t status)
{
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return LW_STATUS_OK;
    }
    if (status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED) {
        return LW_STATUS_UNKNOWN;
    }
    enum lw_status known = lw_kafka_error_status(error);
    return known == LW_STATUS_TIMEOUT ? LW_STATUS_UNAVAILABLE : known;
}

static void
on_reports(rd_kafka_event_t *event)
{
    const rd_kafka_message_t *message = NULL;
    while ((message = rd_kafka_event_message_next(event))) {
        struct lw_kafka_topic *topic = rd_kafka_topic_opaque(message->rkt);
        if (message->_private == topic) {
            lw_kafka_topic_on_probe(topic);
            continue;
        }
        lw_kafka_topic_on_report(topic, message->_private, message->err,
                                 rd_kafka_message_status(message));
    }
}

/* Empties a client that a fatal error made useless. */
static void
enter_broken(struct lw_kafka_producer *producer, const char *reason)
{
    char quoted[512];
    if (producer->is_broken) {
        return;
    }
    producer->is_broken = true;
    lw_host_log(producer->broker->base.host, LW_LOG_ERROR, "kafka.producer_broken",
                "the producer cannot go on and is replaced; what was out is sent again",
                "broker=%s outstanding=%llu reason=%s", producer->broker->name,
                (unsigned long long)producer->outstanding,
                lw_log_quote(reason, quoted, sizeof quoted));
    (void)rd_kafka_purge(producer->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    for (struct lw_list *at = producer->topics.next; at != &producer->topics; at = at->next) {
        lw_kafka_topic_give_up(LW_CONTAINER(at, struct lw_kafka_topic, link));
    }
}

static void
on_error(struct lw_kafka_producer *producer, rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    const char *reason = rd_kafka_event_error_string(event);
    if (rd_kafka_event_error_is_fatal(event)) {
        enter_broken(producer, reason);
        return;
    }
    bool is_needed = producer->outstanding > 0 ||
                     producer->broker->phase == LW_KAFKA_STARTING ||
                     lw_list_is_empty(&producer->broker->sources);
    lw_kafka_error_on_event(producer->broker, code, reason, is_needed);
}

static void
on_event(struct lw_kafka_producer *producer, rd_kafka_event_t *event)
{
    if (!lw_kafka_client_on_common(producer->broker, event, &producer->statistics,
                                   "producer")) {
        int type = rd_kafka_event_type(event);
        if (type == RD_KAFKA_EVENT_DR) {
            on_reports(event);
        } else if (type == RD_KAFKA_EVENT_ERROR) {
            on_error(producer, event);
        } else if (type == RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH) {
            lw_kafka_token_refresh(producer->broker->token, producer->rk);
        }
    }
    rd_kafka_event_destroy(event);
}

static void
free_client(struct lw_kafka_producer *producer)
{
    while (!lw_list_is_empty(&producer->topics)) {
        lw_kafka_topic_destroy(
            LW_CONTAINER(lw_list_first(&producer->topics), struct lw_kafka_topic, link));
    }
    if (producer->rk) {
        lw_kafka_producer_silence(producer);
        if (producer->broker->token) {
            lw_kafka_token_forget(producer->broker->token, producer->rk);
        }
        rd_kafka_destroy(producer->rk);
        producer->rk = NULL;
    }
}

bool
lw_kafka_producer_is_empty(const struct lw_kafka_producer *producer)
{
    return producer->outstanding == 0 && producer->probes == 0;
}

/* The new client, once nothing of the old one is out. */
static void
replace(struct lw_kafka_producer *producer)
{
    struct lw_error error;
    free_client(producer);
    producer->is_broken = false;
    if (lw_kafka_producer_start(producer, &error) != LW_STATUS_OK) {
        lw_host_log(producer->broker->base.host, LW_LOG_ERROR, "kafka.producer_failed",
                    error.message, "broker=%s", producer->broker->name);
    }
    say_room(producer);
}

static void
on_letter(struct lw_letter *letter)
{
    struct lw_kafka_producer *producer = LW_CONTAINER(letter, struct lw_kafka_producer, letter);
    rd_kafka_event_t *event = NULL;
    while (producer->queue && (event = rd_kafka_queue_poll(producer->queue, 0))) {
        on_event(producer, event);
        pump_all(producer);
    }
    say_room(producer);
    if (producer->is_broken && lw_kafka_producer_is_empty(producer) && !producer->is_closing) {
        replace(producer);
    }
    lw_kafka_broker_continue_close(producer->broker);
}

/* -- Ending ---------------------------------------------------------------------------------------------- */

void
lw_kafka_producer_close(struct lw_kafka_producer *producer)
{
    if (producer->is_closing) {
        return;
    }
    producer->is_closing = true;
    producer->wants_room = false;
    lw_timers_disarm(&producer->broker->base.host->timers, &producer->room_timer);
    if (!producer->rk) {
        return;
    }
    for (struct lw_list *at = producer->topics.next; at != &producer->topics; at = at->next) {
        lw_kafka_topic_give_up(LW_CONTAINER(at, struct lw_kafka_topic, link));
    }
    if (!lw_kafka_producer_is_empty(producer)) {
        (void)rd_kafka_purge(producer->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    }
}

void
lw_kafka_producer_silence(struct lw_kafka_producer *producer)
{
    if (producer->queue) {
        rd_kafka_queue_cb_event_enable(producer->queue, NULL, NULL);
        rd_kafka_queue_destroy(producer->queue);
        producer->queue = NULL;
    }
}

void
lw_kafka_producer_deinit(struct lw_kafka_producer *producer)
{
    if (producer->broker) {
        lw_timers_disarm(&producer->broker->base.host->timers, &producer->room_timer);
        free_client(producer);
    }
    lw_free(producer->statistics);
    producer->statistics = NULL;
}
