/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a configuration to a dispatcher: brokers, one engine per handler (its workers are shared
 * by all topics that it serves), subscriptions in the order of the file. The service section can
 * only be taken over while the dispatcher is still empty, so loading comes first.
 */
#include "service/load.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "service/registry.h"
#include "service/service.h"

/* -- Building ---------------------------------------------------------------------------------- */

static enum lw_status
add_broker(struct lw_dispatcher *dispatcher, const struct lw_config_broker *broker,
           struct lw_error *ret_error)
{
    char prefetch[32] = "";
    size_t count = broker->property_count;
    struct lw_property *properties = lw_alloc_array(count + 1, sizeof *properties);
    if (!properties) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    if (count > 0) {
        memcpy(properties, broker->properties, count * sizeof *properties);
    }
    if (broker->kind == LW_CONFIG_KAFKA && broker->prefetch_bytes > 0) {
        (void)snprintf(prefetch, sizeof prefetch, "%llu",
                       (unsigned long long)broker->prefetch_bytes);
        properties[count++] = (struct lw_property){ "prefetch_bytes", prefetch };
    }
    enum lw_status status = lw_dispatcher_connect(dispatcher, broker->name, broker->url,
                                                  properties, count, ret_error);
    lw_free(properties);
    return status;
}

static const struct lw_binding *
find_binding(const struct lw_bindings *bindings, const char *name)
{
    for (size_t i = 0; i < bindings->count; i++) {
        if (bindings->items[i].name && strcmp(bindings->items[i].name, name) == 0) {
            return &bindings->items[i];
        }
    }
    return NULL;
}

static enum lw_status
bind_function(const struct lw_config_handler *handler, struct lw_bindings bindings,
              struct lw_subscription_options *run, struct lw_error *ret_error)
{
    const struct lw_binding *binding = find_binding(&bindings, handler->function);
    if (!binding) {
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0203",
                                             "no function is called \"%s\" (handler \"%s\")",
                                             handler->function, handler->name);
        lw_error_help(ret_error, "\"function\" is for programs that embed the library and give "
                                 "their functions to lw_dispatcher_load");
        return status;
    }
    run->handler = binding->handler;
    run->handler_async = binding->handler_async;
    run->handler_batch = binding->handler_batch;
    run->handler_batch_async = binding->handler_batch_async;
    run->user = binding->user;
    return LW_STATUS_OK;
}

/*
 * How the handler is run; false when no pipeline uses it. A program is told its pipeline's name
 * when there is only one, and its replies are kept when any topic publishes them.
 */
static bool
read_run(const struct lw_config *config, const struct lw_config_handler *handler,
         struct lw_subscription_options *ret_run)
{
    size_t count = 0;
    *ret_run = handler->run;
    for (size_t i = 0; i < config->pipeline_count; i++) {
        if (config->pipelines[i].handler == handler) {
            ret_run->pipeline = count == 0 ? config->pipelines[i].name : NULL;
            count++;
        }
    }
    for (size_t i = 0; i < config->subscription_count; i++) {
        const struct lw_config_subscription *item = &config->subscriptions[i];
        if (item->pipeline->handler == handler && item->options.reply.topic) {
            ret_run->reply.topic = item->options.reply.topic;
        }
    }
    return count > 0;
}

static enum lw_status
add_engine(struct lw_dispatcher *dispatcher, const struct lw_config_handler *handler,
           const struct lw_subscription_options *run, struct lw_engine **ret_engine,
           struct lw_error *ret_error)
{
    struct lw_engine_request request = { handler->name, run, handler };
    struct lw_engine *engine = NULL;
    enum lw_status status = lw_registry_engine(dispatcher, &request, &engine, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_dispatcher_add_engine(dispatcher, engine);
    if (status != LW_STATUS_OK) {
        engine->ops->destroy(engine);
        return lw_error_set(ret_error, status, "", "cannot add handler \"%s\": %s",
                            handler->name, lw_status_name(status));
    }
    *ret_engine = engine;
    return LW_STATUS_OK;
}

/* Makes the engines of all handlers that are used; the others' places stay NULL. */
static enum lw_status
add_engines(struct lw_dispatcher *dispatcher, const struct lw_config *config,
            struct lw_bindings bindings, struct lw_engine **engines, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    for (size_t i = 0; i < config->handler_count && status == LW_STATUS_OK; i++) {
        const struct lw_config_handler *handler = &config->handlers[i];
        struct lw_subscription_options run;
        if (!read_run(config, handler, &run)) {
            continue;
        }
        if (handler->kind == LW_CONFIG_FUNCTION) {
            status = bind_function(handler, bindings, &run, ret_error);
        }
        if (status == LW_STATUS_OK) {
            status = add_engine(dispatcher, handler, &run, &engines[i], ret_error);
        }
    }
    return status;
}

static enum lw_status
add_streams(struct lw_dispatcher *dispatcher, const struct lw_config *config,
            struct lw_engine *const *engines, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    for (size_t i = 0; i < config->subscription_count && status == LW_STATUS_OK; i++) {
        const struct lw_config_subscription *item = &config->subscriptions[i];
        size_t handler = (size_t)(item->pipeline->handler - config->handlers);
        status = lw_dispatcher_add_stream(dispatcher, &item->options, engines[handler],
                                          ret_error);
    }
    return status;
}

enum lw_status
lw_service_build(struct lw_dispatcher *dispatcher, const struct lw_config *config,
                 struct lw_bindings bindings, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    struct lw_engine **engines = lw_alloc_array(config->handler_count + 1,
                                                sizeof(struct lw_engine *));
    if (!engines) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    for (size_t i = 0; i < config->broker_count && status == LW_STATUS_OK; i++) {
        status = add_broker(dispatcher, &config->brokers[i], ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = add_engines(dispatcher, config, bindings, engines, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = add_streams(dispatcher, config, engines, ret_error);
    }
    lw_free(engines);
    return status;
}

/* -- Loading a file ---------------------------------------------------------------------------- */

/* Begins anew with other options; the dispatcher was empty. */
static enum lw_status
renew(struct lw_service *service, const struct lw_dispatcher_options *options,
      struct lw_error *ret_error)
{
    struct lw_dispatcher *dispatcher = &service->dispatcher;
    struct lw_host *host = dispatcher->host;
    lw_dispatcher_deinit(dispatcher);
    enum lw_status status = lw_dispatcher_init(dispatcher, host, host->mailbox.wake_fd, options,
                                               ret_error);
    service->is_broken = status != LW_STATUS_OK;
    dispatcher->host = host;
    dispatcher->owner = service;
    return status;
}

static enum lw_status
load_config(struct lw_service *service, const struct lw_config *config,
            struct lw_bindings bindings, struct lw_error *ret_error)
{
    struct lw_dispatcher *dispatcher = &service->dispatcher;
    struct lw_dispatcher_options before = dispatcher->options;
    struct lw_dispatcher_options options = config->service.dispatcher;
    char *name = lw_copy_text(dispatcher->name);
    before.name = name;
    options.log = before.log;
    options.log_user = before.log_user;
    options.random_seed = before.random_seed;
    enum lw_status status = renew(service, &options, ret_error);
    if (status == LW_STATUS_OK) {
        status = lw_service_build(dispatcher, config, bindings, ret_error);
    }
    if (status != LW_STATUS_OK && !service->is_broken) {
        (void)renew(service, &before, NULL);
    }
    lw_free(name);
    return status;
}

enum lw_status
lw_service_load(struct lw_dispatcher *dispatcher, const char *path, struct lw_bindings bindings,
                struct lw_error *ret_error)
{
    struct lw_diagnostics diagnostics;
    struct lw_config_source source = {
        .files = &path,
        .file_count = 1,
        .env = (const char *const *)environ,
    };
    if (dispatcher->link_count + dispatcher->stream_count + dispatcher->engine_count > 0) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "",
                            "a file is loaded before brokers and subscriptions are added");
    }
    lw_registry_clients(&source);
    lw_diagnostics_init(&diagnostics);
    struct lw_config *config = lw_config_load(&source, &diagnostics);
    enum lw_status status = LW_STATUS_OK;
    if (!config) {
        status = lw_diagnostics_error(&diagnostics, ret_error);
    } else {
        status = load_config(lw_service_of(dispatcher), config, bindings, ret_error);
    }
    lw_config_destroy(config);
    lw_diagnostics_deinit(&diagnostics);
    return status;
}
