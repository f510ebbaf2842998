/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics for the command: describing what is there, making what is not. Through the owner if there
 * is one; describing does not make a file. Blocks, on a broker that was never started.
 */
#include <string.h>

#include "base/error.h"
#include "brokers/spool/client.h"
#include "brokers/spool/spool.h"

static void
read_answers(struct lw_spool_client *client, struct lw_topic_info *topics, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        topics[i].partitions = (int32_t)lw_spool_get_u32(&client->answer);
        uint32_t status = lw_spool_get_u32(&client->answer);
        const char *why = lw_spool_get_text(&client->answer);
        bool is_bad = client->answer.is_bad || status > LW_STATUS_INTERNAL;
        topics[i].status = is_bad ? LW_STATUS_UNKNOWN : (enum lw_status)status;
        lw_text_copy(topics[i].reason, sizeof topics[i].reason,
                     is_bad ? "the owner's answer cannot be read" : why);
    }
}

static enum lw_status
ask(struct lw_spool_broker *broker, struct lw_topic_info *topics, size_t n, bool is_making,
    int64_t timeout_ms, struct lw_error *ret_error)
{
    struct lw_spool_client client;
    enum lw_status status = lw_spool_client_open(&client, broker->path, &broker->options,
                                                 is_making, ret_error);
    if (status == LW_STATUS_OK) {
        lw_spool_begin_request(&client.out, LW_SPOOL_TOPICS);
        lw_spool_put_topics(&client.out, topics, n, is_making);
        status = lw_spool_client_ask(&client, (int)timeout_ms, ret_error);
    }
    if (status == LW_STATUS_OK) {
        read_answers(&client, topics, n);
    }
    lw_spool_client_close(&client);
    return status;
}

/* A file that is not there has no topics; a folder that is not there is an error. */
static enum lw_status
describe_nothing(struct lw_topic_info *topics, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        topics[i].partitions = 0;
        topics[i].status = LW_STATUS_OK;
        topics[i].reason[0] = '\0';
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_spool_describe(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                  int64_t timeout_ms, struct lw_error *ret_error)
{
    struct lw_spool_broker *own = lw_spool_broker_of(broker);
    if (!lw_spool_is_there(own->path)) {
        return describe_nothing(topics, n);
    }
    return ask(own, topics, n, false, timeout_ms, ret_error);
}

/* The table's signature has five. NOLINTNEXTLINE(readability-function-size) */
enum lw_status
lw_spool_create(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                int64_t timeout_ms, struct lw_error *ret_error)
{
    return ask(lw_spool_broker_of(broker), topics, n, true, timeout_ms, ret_error);
}
