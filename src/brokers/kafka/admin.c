/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the command (`check --connect`, `topics plan|create`): which topics exist, and making them.
 * The only calls of this broker that block; a client of its own that is gone afterwards. Asking
 * never creates a topic, whatever the cluster's auto.create says.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

static rd_kafka_t *
open_client(struct lw_kafka_broker *broker, struct lw_error *ret_error)
{
    rd_kafka_conf_t *conf = lw_kafka_settings_create(broker, LW_KAFKA_ROLE_ADMIN, NULL, NULL,
                                                     ret_error);
    if (!conf) {
        return NULL;
    }
    char reason[512];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason);
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        (void)lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                           "the Kafka client cannot be made: %s", reason);
    }
    return rk;
}

/* What the client said about its connections, the last but "all are down". */
static void
read_reasons(struct lw_kafka_broker *broker, rd_kafka_t *rk)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
    rd_kafka_event_t *event = NULL;
    while ((event = rd_kafka_queue_poll(queue, 0))) {
        rd_kafka_resp_err_t code = rd_kafka_event_error(event);
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR &&
            code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
            broker->failure_code = code;
            lw_text_copy(broker->failure, sizeof broker->failure,
                         rd_kafka_event_error_string(event));
        }
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
}

static enum lw_status
say_unreachable(struct lw_kafka_broker *broker, rd_kafka_t *rk, rd_kafka_resp_err_t code,
                struct lw_error *ret_error)
{
    struct lw_error error;
    read_reasons(broker, rk);
    if (!broker->failure[0]) {
        broker->failure_code = code;
        lw_text_copy(broker->failure, sizeof broker->failure, rd_kafka_err2str(code));
    }
    lw_kafka_error_unreachable(broker, broker->failure_code, broker->failure, &error);
    if (ret_error) {
        *ret_error = error;
    }
    return error.status;
}

static void
fill_info(struct lw_topic_info *info, rd_kafka_resp_err_t code, int partitions)
{
    info->status = lw_kafka_error_status(code);
    info->partitions = code ? 0 : partitions;
    lw_text_copy(info->reason, sizeof info->reason, code ? rd_kafka_err2str(code) : "");
    if (info->status == LW_STATUS_NOT_FOUND) {
        info->status = LW_STATUS_OK; /* absent is an answer */
    }
}

static rd_kafka_resp_err_t
describe(rd_kafka_t *rk, struct lw_topic_info *info, int timeout_ms)
{
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, info->name, NULL);
    if (!rkt) {
        fill_info(info, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, 0);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 0, rkt, &metadata, timeout_ms);
    if (!code && metadata->topic_cnt == 1) {
        fill_info(info, metadata->topics[0].err, metadata->topics[0].partition_cnt);
    } else if (!code) {
        fill_info(info, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, 0);
    }
    if (!code) {
        rd_kafka_metadata_destroy(metadata);
    }
    rd_kafka_topic_destroy(rkt);
    return code;
}

enum lw_status
lw_kafka_admin_describe(struct lw_broker *base, struct lw_topic_info *topics, size_t n,
                        int64_t timeout_ms, struct lw_error *ret_error)
{
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    rd_kafka_t *rk = open_client(broker, ret_error);
    if (!rk) {
        return ret_error ? ret_error->status : LW_STATUS_CONFIG;
    }
    enum lw_status status = LW_STATUS_OK;
    for (size_t i = 0; i < n && status == LW_STATUS_OK; i++) {
        rd_kafka_resp_err_t code = describe(rk, &topics[i], (int)timeout_ms);
        if (code) {
            status = say_unreachable(broker, rk, code, ret_error);
        }
    }
    rd_kafka_destroy(rk);
    return status;
}

/* -- Creating --------------------------------------------------------------------------------------- */

/* NULL, with the reason in `info`, when the client does not take the name or the number. */
static rd_kafka_NewTopic_t *
new_topic(struct lw_topic_info *info)
{
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(info->name, info->partitions, -1,
                                                       info->reason, sizeof info->reason);
    if (!topic) {
        info->status = LW_STATUS_INVALID;
        return NULL;
    }
    if (info->retention_ms >= 0) {
        char value[32];
        (void)snprintf(value, sizeof value, "%lld", (long long)info->retention_ms);
        (void)rd_kafka_NewTopic_set_config(topic, "retention.ms", value);
    }
    return topic;
}

static void
read_result(const rd_kafka_topic_result_t *result, struct lw_topic_info *topics, size_t n)
{
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(result);
    const char *reason = rd_kafka_topic_result_error_string(result);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(topics[i].name, rd_kafka_topic_result_name(result)) == 0) {
            bool is_there = code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
            topics[i].status = is_there ? LW_STATUS_ALREADY : lw_kafka_error_status(code);
            lw_text_copy(topics[i].reason, sizeof topics[i].reason,
                         !code    ? ""
                         : reason ? reason
                                  : rd_kafka_err2str(code));
        }
    }
}

struct creation {
    struct lw_kafka_broker *broker;
    rd_kafka_t *rk;
    struct lw_topic_info *topics;
    size_t count;
    int timeout_ms;
    struct lw_error *ret_error;
};

static enum lw_status
read_results(const struct creation *creation, rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t code = event ? rd_kafka_event_error(event)
                                     : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (code) {
        return say_unreachable(creation->broker, creation->rk, code, creation->ret_error);
    }
    size_t count = 0;
    const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(
        rd_kafka_event_CreateTopics_result(event), &count);
    for (size_t i = 0; i < count; i++) {
        read_result(results[i], creation->topics, creation->count);
    }
    return LW_STATUS_OK;
}

static enum lw_status
request(const struct creation *creation, rd_kafka_NewTopic_t **wanted, size_t count)
{
    char reason[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(creation->rk);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(
        creation->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    (void)rd_kafka_AdminOptions_set_request_timeout(options, creation->timeout_ms, reason,
                                                    sizeof reason);
    (void)rd_kafka_AdminOptions_set_operation_timeout(options, creation->timeout_ms, reason,
                                                      sizeof reason);
    rd_kafka_CreateTopics(creation->rk, wanted, count, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, creation->timeout_ms + 1000);
    enum lw_status status = read_results(creation, event);
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return status;
}

static enum lw_status
create_all(const struct creation *creation)
{
    rd_kafka_NewTopic_t **wanted = lw_alloc_array(creation->count + 1,
                                                  sizeof(rd_kafka_NewTopic_t *));
    if (!wanted) {
        return lw_error_set(creation->ret_error, LW_STATUS_NO_MEMORY, "",
                            "no memory for %zu topics", creation->count);
    }
    size_t count = 0;
    for (size_t i = 0; i < creation->count; i++) {
        wanted[count] = new_topic(&creation->topics[i]);
        count += wanted[count] ? 1 : 0;
    }
    enum lw_status status = count > 0 ? request(creation, wanted, count) : LW_STATUS_OK;
    rd_kafka_NewTopic_destroy_array(wanted, count);
    lw_free(wanted);
    return status;
}

enum lw_status
lw_kafka_admin_create(struct lw_broker *base, struct lw_topic_info *topics, size_t n,
                      int64_t timeout_ms, struct lw_error *ret_error)
{
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    rd_kafka_t *rk = open_client(broker, ret_error);
    if (!rk) {
        return ret_error ? ret_error->status : LW_STATUS_CONFIG;
    }
    struct creation creation = { broker, rk, topics, n, (int)timeout_ms, ret_error };
    enum lw_status status = create_all(&creation);
    rd_kafka_destroy(rk);
    return status;
}
