/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which topics are there, for the command: asked of the service itself, with the address and the
 * credentials that a run would use, so an answer also says that those are right. Asking creates
 * nothing. A broker that cannot be asked so (before 4.0) is asked by the admin API, once it
 * answered at all. Turns the broker's own loop until the answers or the time-out.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/loop.h"
#include "brokers/pulsar/connection.h"
#include "brokers/pulsar/lookup.h"
#include "brokers/pulsar/names.h"
#include "brokers/pulsar/pulsar.h"

#define TURN_NS (50 * LW_MS)

struct describer {
    struct lw_pulsar_broker *broker;
    struct lw_pulsar_find find;
    uint64_t deadline;
    struct lw_pulsar_failure failure; /* of the last answer, if it was one */
    struct lw_error down;             /* why the broker is not reached, as far as is known */
    uint32_t partitions;
    bool is_exact;
    bool is_answered;
    bool is_failed;
};

static void
on_found(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct describer *describer = LW_CONTAINER(find, struct describer, find);
    describer->is_answered = true;
    describer->is_failed = result->failure != NULL;
    if (result->failure) {
        describer->failure = *result->failure;
    }
}

static void
on_partitions(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct describer *describer = LW_CONTAINER(find, struct describer, find);
    on_found(find, result);
    describer->partitions = result->partitions;
    describer->is_exact = result->is_exact || result->failure;
}

/* Nobody but the command waits here: of the broker's events only a reason is of interest. */
static void
turn(struct describer *describer)
{
    struct lw_event event;
    struct lw_host *host = describer->broker->base.host;
    struct lw_loop *loop = lw_loop_of(host);
    if (loop) {
        lw_loop_turn_until(loop, host->ops->refresh(host) + TURN_NS);
    } else {
        (void)lw_host_turn(host);
    }
    while (lw_events_take(&describer->broker->events, &event, 1) == 1) {
        if (event.kind == LW_EVENT_BROKER_DOWN && event.error) {
            describer->down = *event.error;
        }
    }
}

/* False when the time was over. */
static bool
await(struct describer *describer)
{
    struct lw_host *host = describer->broker->base.host;
    while (!describer->is_answered && host->ops->refresh(host) < describer->deadline) {
        turn(describer);
    }
    lw_pulsar_find_cancel(&describer->find);
    return describer->is_answered;
}

/* Refused credentials are the broker's answer to everything, not about a topic. */
static bool
is_about_topic(const struct describer *describer)
{
    return !describer->is_failed || (describer->failure.code >= 0 &&
                                     strcmp(describer->failure.error.code, "E0502") != 0);
}

static bool
ask(struct describer *describer, const char *topic)
{
    describer->is_answered = false;
    lw_pulsar_find_partitions(&describer->broker->client, &describer->find, topic, false,
                              on_partitions);
    return await(describer);
}

/* An absent topic of an absent namespace looks the same, but has no owner. */
static void
look_for_namespace(struct describer *describer, const struct lw_pulsar_name *name,
                   struct lw_topic_info *info)
{
    const struct lw_bytes none = { NULL, 0 };
    char space[LW_PULSAR_NAME_BYTES];
    describer->is_answered = false;
    lw_pulsar_find_owner(&describer->broker->client, &describer->find, name->text, none,
                         on_found);
    if (await(describer) && describer->is_failed &&
        describer->failure.code == LW_PULSAR_TOPIC_NOT_FOUND &&
        lw_pulsar_name_namespace(name, space, sizeof space)) {
        info->status = LW_STATUS_NOT_FOUND;
        (void)snprintf(info->reason, sizeof info->reason, "there is no namespace %.130s",
                       space);
    }
}

static void
fill(struct describer *describer, const struct lw_pulsar_name *name, struct lw_topic_info *info)
{
    info->status = LW_STATUS_OK;
    info->reason[0] = '\0';
    if (!describer->is_failed) {
        info->partitions = describer->partitions > 0 ? (int32_t)describer->partitions : 1;
        return;
    }
    info->partitions = 0;
    if (describer->failure.code == LW_PULSAR_TOPIC_NOT_FOUND) {
        look_for_namespace(describer, name, info);
        return;
    }
    info->status = describer->failure.error.status;
    lw_text_copy(info->reason, sizeof info->reason,
                 info->status == LW_STATUS_DENIED ? "no permission to look at it"
                                                  : describer->failure.error.message);
}

static enum lw_status
say_failed(const struct describer *describer, struct lw_error *ret_error)
{
    const struct lw_error *reason = describer->is_answered ? &describer->failure.error
                                                           : &describer->down;
    if (reason->status == LW_STATUS_OK) {
        return lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                            "broker \"%s\" did not answer in time", describer->broker->name);
    }
    if (ret_error) {
        *ret_error = *reason;
    }
    return reason->status;
}

static enum lw_status
describe_one(struct describer *describer, struct lw_topic_info *info,
             struct lw_error *ret_error)
{
    struct lw_pulsar_name name;
    struct lw_error error;
    info->partitions = 0;
    info->status = lw_pulsar_name_parse(info->name, &name, &error);
    if (info->status != LW_STATUS_OK) {
        lw_text_copy(info->reason, sizeof info->reason, error.message);
        return LW_STATUS_OK;
    }
    if (!ask(describer, name.text) || !is_about_topic(describer)) {
        return say_failed(describer, ret_error);
    }
    fill(describer, &name, info);
    return LW_STATUS_OK;
}

enum lw_status
lw_pulsar_describe(struct lw_pulsar_broker *broker, struct lw_topic_info *topics, size_t n,
                   int64_t timeout_ms, struct lw_error *ret_error)
{
    struct lw_host *host = broker->base.host;
    struct describer describer = { .broker = broker };
    enum lw_status status = LW_STATUS_OK;
    describer.deadline = host->ops->refresh(host) + (uint64_t)timeout_ms * LW_MS;
    describer.is_exact = true;
    for (size_t i = 0; i < n && status == LW_STATUS_OK && describer.is_exact; i++) {
        status = describe_one(&describer, &topics[i], ret_error);
    }
    if (describer.is_exact) {
        return status;
    }
    return lw_pulsar_admin_describe(&broker->client, broker->client.options.admin_url, topics,
                                    n, timeout_ms, ret_error);
}
