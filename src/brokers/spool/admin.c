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

struct question {
    struct lw_topic_info *topics;
    size_t count;
    bool is_making;
    int64_t timeout_ms;
};

static enum lw_status
ask(struct lw_spool_broker *broker, const struct question *question, struct lw_error *ret_error)
{
    struct lw_spool_client client;
    enum lw_status status = lw_spool_client_open(&client, broker->path, &broker->options,
                                                 question->is_making, ret_error);
    if (status == LW_STATUS_OK) {
        lw_spool_begin_request(&client.out, LW_SPOOL_TOPICS);
        lw_spool_put_topics(&client.out, question->topics, question->count,
                            question->is_making);
        status = lw_spool_client_ask(&client, (int)question->timeout_ms, ret_error);
    }
    if (status == LW_STATUS_OK) {
        read_answers(&client, question->topics, question->count);
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
    return ask(own, &(struct question){ topics, n, false, timeout_ms }, ret_error);
}

enum lw_status
lw_spool_create(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                int64_t timeout_ms, struct lw_error *ret_error)
{
    return ask(lw_spool_broker_of(broker), &(struct question){ topics, n, true, timeout_ms },
               ret_error);
}
