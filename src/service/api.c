/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions that make a dispatcher and fill it: broker by broker, subscription by
 * subscription, or from a file (load.c). Everything is checked before anything is changed; what
 * failed leaves the dispatcher as it was. Running and closing is service.c.
 */
#include <string.h>

#include "base/error.h"
#include "service/load.h"
#include "service/options.h"
#include "service/registry.h"
#include "service/service.h"

struct lw_dispatcher *
lw_dispatcher_create(const struct lw_dispatcher_options *options, struct lw_error *ret_error)
{
    struct lw_dispatcher_options full;
    struct lw_service *service = NULL;
    lw_dispatcher_options_init(&full);
    if (options) {
        if (options->size == 0 || options->size > sizeof full) {
            (void)lw_error_set(ret_error, LW_STATUS_INVALID, "",
                               "the options were not started by lw_dispatcher_options_init");
            return NULL;
        }
        memcpy(&full, options, options->size);
        full.size = sizeof full;
    }
    if (full.concurrency == 0) {
        (void)lw_error_set(ret_error, LW_STATUS_INVALID, "", "concurrency must be at least 1");
        return NULL;
    }
    if (lw_service_create(&full, &service, ret_error) != LW_STATUS_OK) {
        return NULL;
    }
    return &service->dispatcher;
}

void
lw_dispatcher_destroy(struct lw_dispatcher *dispatcher)
{
    if (dispatcher) {
        lw_service_destroy(lw_service_of(dispatcher));
    }
}

enum lw_status
lw_service_check_new(struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    struct lw_service *service = lw_service_of(dispatcher);
    if (service->is_broken) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    (void)pthread_mutex_lock(&service->mutex);
    bool is_new = service->state == LW_SERVICE_NEW;
    (void)pthread_mutex_unlock(&service->mutex);
    if (is_new) {
        return LW_STATUS_OK;
    }
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_STATE, "",
                                         "brokers and subscriptions are added before run");
    lw_error_help(ret_error, "make a second dispatcher for what comes later");
    return status;
}

/* The public signature has six. NOLINTBEGIN(readability-function-size) */
enum lw_status
lw_dispatcher_connect(struct lw_dispatcher *dispatcher, const char *name, const char *url,
                      const struct lw_property *properties, size_t property_count,
                      struct lw_error *ret_error)
{
    struct lw_broker *broker = NULL;
    struct lw_link *link = NULL;
    enum lw_status status = lw_service_check_new(dispatcher, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (!name || !name[0] || !url) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "a broker needs a name and a URL");
    }
    if (lw_dispatcher_find_link(dispatcher, name)) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "two brokers are called \"%s\"",
                            name);
    }
    const struct lw_broker_ops *ops = lw_registry_broker(url, ret_error);
    if (!ops) {
        return LW_STATUS_INVALID;
    }
    status = ops->create(dispatcher->host, name, url, properties, property_count, &broker,
                         ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_dispatcher_add_broker(dispatcher, broker, &link);
    if (status != LW_STATUS_OK) {
        ops->destroy(broker);
        return lw_error_set(ret_error, status, "", "cannot add broker \"%s\": %s", name,
                            lw_status_name(status));
    }
    return LW_STATUS_OK;
}

/* NOLINTEND(readability-function-size) */

/* A profile's own numbers, where the caller left the defaults. */
static void
apply_profile(struct lw_subscription_options *options)
{
    const struct lw_profile_row *plain = lw_profile_find(LW_PROFILE_ADAPTIVE);
    const struct lw_profile_row *profile = lw_profile_find(options->profile);
    if (options->receiver_queue_size == plain->receiver_queue_size) {
        options->receiver_queue_size = profile->receiver_queue_size;
    }
    if (options->max_in_flight == plain->max_in_flight) {
        options->max_in_flight = profile->max_in_flight;
    }
}

enum lw_status
lw_subscription_options_adopt(const struct lw_subscription_options *given,
                              struct lw_subscription_options *ret_full,
                              struct lw_error *ret_error)
{
    if (!given || given->size == 0 || given->size > sizeof *ret_full) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "the options were not started by lw_subscription_options_init");
    }
    lw_subscription_options_init(ret_full);
    memcpy(ret_full, given, given->size);
    ret_full->size = sizeof *ret_full;
    if ((unsigned)ret_full->profile > LW_PROFILE_CONSTRAINED) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "profile %d does not exist",
                            (int)ret_full->profile);
    }
    apply_profile(ret_full);
    return LW_STATUS_OK;
}

enum lw_status
lw_service_subscribe(struct lw_dispatcher *dispatcher,
                     const struct lw_subscription_options *options, size_t count,
                     struct lw_engine *engine, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    size_t added = 0;
    for (; added < count; added++) {
        status = lw_dispatcher_add_stream(dispatcher, &options[added], engine, ret_error);
        if (status != LW_STATUS_OK) {
            goto fail;
        }
    }
    status = lw_dispatcher_add_engine(dispatcher, engine);
    if (status == LW_STATUS_OK) {
        return LW_STATUS_OK;
    }
    (void)lw_error_set(ret_error, status, "", "cannot add the handler: %s",
                       lw_status_name(status));
fail:
    for (; added > 0; added--) {
        lw_dispatcher_drop_last_stream(dispatcher);
    }
    engine->ops->destroy(engine);
    return status;
}

enum lw_status
lw_dispatcher_subscribe(struct lw_dispatcher *dispatcher,
                        const struct lw_subscription_options *options,
                        struct lw_error *ret_error)
{
    struct lw_subscription_options full = { .size = 0 };
    struct lw_engine *engine = NULL;
    enum lw_status status = lw_service_check_new(dispatcher, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_subscription_options_adopt(options, &full, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_engine_request request = {
        .name = full.pipeline ? full.pipeline
                : full.topic  ? full.topic
                              : "",
        .options = &full,
    };
    status = lw_registry_engine(dispatcher, &request, &engine, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    return lw_service_subscribe(dispatcher, &full, 1, engine, ret_error);
}

enum lw_status
lw_dispatcher_load(struct lw_dispatcher *dispatcher, const char *path,
                   const struct lw_binding *bindings, size_t binding_count,
                   struct lw_error *ret_error)
{
    enum lw_status status = lw_service_check_new(dispatcher, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    return lw_service_load(dispatcher, path, (struct lw_bindings){ bindings, binding_count },
                           ret_error);
}
