/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one file that knows which brokers and engines exist. A broker is found by the scheme of its
 * URL, an engine by its kind; a handler that its engine cannot run is refused here, before
 * anything is started.
 */
#include "service/registry.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "brokers/memory/broker.h"
#include "engines/builtin.h"
#include "engines/common/plugin_file.h"
#include "engines/loop.h"
#include "engines/processes/engine.h"
#include "engines/processes/origin.h"
#include "engines/programs/engine.h"
#include "engines/threads.h"
#include "service/address_help.h"
#include "service/handler_fit.h"
#include "service/registry_http.h"
#include "service/service.h"
#if LW_WITH_KAFKA
#include "brokers/kafka/broker.h"
#include "brokers/kafka/peek.h"
#include "brokers/kafka/properties.h"
#endif
#if LW_WITH_PULSAR
#include "brokers/pulsar/broker.h"
#include "brokers/pulsar/peek.h"
#include "service/registry_pulsar.h"
#endif
#if LW_WITH_SPOOL
#include "brokers/spool/broker.h"
#include "brokers/spool/options.h"
#include "brokers/spool/peek.h"
#endif

/* -- Brokers ----------------------------------------------------------------------------------- */

static const struct lw_broker_ops *(*const brokers[])(void) = {
#if LW_WITH_KAFKA
    lw_kafka_broker_ops,
#endif
#if LW_WITH_PULSAR
    lw_pulsar_broker_ops,
#endif
#if LW_WITH_SPOOL
    lw_spool_broker_ops,
#endif
    lw_memory_broker_ops,
};

/* pulsar+ssl:// is the same broker, with TLS. */
static size_t
scheme_length(const char *url)
{
    static const char with_tls[] = "+ssl:";
    size_t length = strcspn(url, ":+");
    bool is_whole = url[length] != '+' ||
                    strncmp(url + length, with_tls, sizeof with_tls - 1) == 0;
    return is_whole ? length : strlen(url);
}

const struct lw_broker_ops *
lw_registry_broker(const char *url, struct lw_error *ret_error)
{
    size_t length = scheme_length(url);
    for (size_t i = 0; i < sizeof brokers / sizeof brokers[0]; i++) {
        const struct lw_broker_ops *ops = brokers[i]();
        if (strlen(ops->scheme) == length && memcmp(ops->scheme, url, length) == 0) {
            return ops;
        }
    }
    (void)lw_error_set(ret_error, LW_STATUS_INVALID, "E0508",
                       "no broker is known for the address \"%s\"", url);
    char help[sizeof ret_error->help];
    lw_address_help(url, help, sizeof help);
    lw_error_help(ret_error, "%s", help);
    return NULL;
}

enum lw_status
lw_registry_peek(struct lw_broker *broker, const struct lw_peek *peek,
                 struct lw_error *ret_error)
{
#if LW_WITH_KAFKA
    if (broker->ops == lw_kafka_broker_ops()) {
        return lw_kafka_peek(broker, peek, ret_error);
    }
#endif
#if LW_WITH_PULSAR
    if (broker->ops == lw_pulsar_broker_ops()) {
        return lw_pulsar_peek(broker, peek, ret_error);
    }
#endif
#if LW_WITH_SPOOL
    if (broker->ops == lw_spool_broker_ops()) {
        return lw_spool_peek(broker, peek, ret_error);
    }
#endif
    (void)peek;
    return lw_error_set(ret_error, LW_STATUS_UNSUPPORTED, "",
                        "topics of broker \"%s\" cannot be read from outside", broker->name);
}

#if LW_WITH_KAFKA
static void
append_property(const char *name, bool is_owned, void *user)
{
    struct lw_text *out = user;
    if (!is_owned) {
        lw_text_format(out, "  %s\n", name);
    }
}

void
lw_registry_client_properties(struct lw_text *out)
{
    lw_kafka_property_each(append_property, out);
}

static const struct lw_config_client kafka_client = {
    .owned = lw_kafka_property_owned,
    .check = lw_kafka_property_check,
    .suggest = lw_kafka_property_suggest,
    .version = lw_kafka_client_version,
    .client_name = "librdkafka",
};
#else
void
lw_registry_client_properties(struct lw_text *out)
{
    (void)out;
}
#endif

#if LW_WITH_SPOOL
static const struct lw_config_client spool_client = {
    .client_name = "spool",
    .check_url = lw_spool_check_url,
    .check_property = lw_spool_check_property,
};
#endif

const struct lw_config_client *
lw_registry_client(enum lw_config_broker_kind kind)
{
    switch (kind) {
    case LW_CONFIG_KAFKA:
#if LW_WITH_KAFKA
        return &kafka_client;
#else
        return NULL;
#endif
    case LW_CONFIG_PULSAR:
#if LW_WITH_PULSAR
        return lw_registry_pulsar();
#else
        return NULL;
#endif
    case LW_CONFIG_SPOOL:
#if LW_WITH_SPOOL
        return &spool_client;
#else
        return NULL;
#endif
    case LW_CONFIG_MEMORY:
    case LW_CONFIG_MEMORY_INDIVIDUAL:
        return NULL;
    }
    return NULL;
}

void
lw_registry_clients(struct lw_config_source *source)
{
    for (int kind = 0; kind < LW_CONFIG_BROKER_KINDS; kind++) {
        source->clients[kind] = lw_registry_client((enum lw_config_broker_kind)kind);
    }
}

/* -- Engines ----------------------------------------------------------------------------------- */

static enum lw_status
refuse(const char *name, const char *what, const char *help, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, "E0606",
                                         "handler \"%s\": %s", name, what);
    lw_error_help(ret_error, "%s", help);
    return status;
}

static enum lw_status
refuse_form(const char *name, enum lw_engine_kind engine, enum lw_handler_form form,
            struct lw_error *ret_error)
{
    char what[128];
    char help[256];
    (void)snprintf(what, sizeof what, "engine %s cannot run %s", lw_engine_kind_name(engine),
                   lw_handler_form_name(form));
    lw_handler_fit_help(form, help, sizeof help);
    return refuse(name, what, help, ret_error);
}

static enum lw_handler_form
function_form_of(const struct lw_subscription_options *options)
{
    return options->handler_async         ? LW_FORM_ASYNC
           : options->handler_batch       ? LW_FORM_BATCH
           : options->handler_batch_async ? LW_FORM_BATCH_ASYNC
                                          : LW_FORM_FUNCTION;
}

static enum lw_handler_form
form_of(const struct lw_subscription_options *options)
{
    return options->plugin    ? LW_FORM_PLUGIN
           : options->http    ? LW_FORM_SERVICE
           : options->program ? LW_FORM_PROGRAM
                              : function_form_of(options);
}

static enum lw_status
refuse_batch(const char *name, const char *what, const char *help, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, "E0320",
                                         "handler \"%s\": %s", name, what);
    lw_error_help(ret_error, "%s", help);
    return status;
}

/* Several messages at once only where they can be taken. */
static enum lw_status
check_batch(const char *name, const struct lw_subscription_options *options,
            struct lw_error *ret_error)
{
    const struct lw_batch_options *batch = &options->batch;
    if (batch->size == 0 || batch->bytes == 0 || batch->wait_ms < 0) {
        return refuse_batch(name, "a batch of no messages or no bytes, or a wait below 0",
                            "batch.size and batch.bytes are at least 1", ret_error);
    }
    bool is_told = options->program && options->protocol != LW_PROTOCOL_ONCE;
    if (batch->size > 1 && options->engine == LW_ENGINE_PROCESSES &&
        options->processes.pins_lanes && batch->keys == LW_BATCH_KEYS_MANY) {
        return refuse_batch(
            name,
            "its lanes are pinned, and a batch of several keys belongs to no single worker",
            "use \"batch: {keys: one}\", or \"lanes: shared\"", ret_error);
    }
    bool is_function = options->handler_batch || options->handler_batch_async;
    if (batch->size == 1 || is_function || options->http || options->plugin || is_told) {
        return LW_STATUS_OK;
    }
    char what[128];
    (void)snprintf(what, sizeof what, "%s takes one message at a time",
                   lw_handler_form_name(form_of(options)));
    return refuse_batch(name, what,
                        options->program
                            ? "protocol once is one process for each message; use protocol "
                              "lines or frames, or leave batch out"
                            : "leave batch out, or set handler_batch, a function for it",
                        ret_error);
}

/* A function of the program on engine processes. */
static enum lw_status
check_own(const char *name, const struct lw_subscription_options *options,
          struct lw_error *ret_error)
{
    char fit[128];
    char help[256];
    if (lw_processes_has_origin()) {
        return check_batch(name, options, ret_error);
    }
    lw_handler_fit_help(form_of(options), fit, sizeof fit);
    (void)snprintf(help, sizeof help,
                   "%s; call lw_processes_init as the first thing in main, or give it as a "
                   "plug-in",
                   fit);
    return refuse(name,
                  "engine processes cannot run a function of a program that has not called "
                  "lw_processes_init",
                  help, ret_error);
}

/* Exactly what the engine can run is given; `is_own`: by the program, not by us. */
static enum lw_status
check_handler(const char *name, const struct lw_subscription_options *options, bool is_own,
              struct lw_error *ret_error)
{
    int count = (options->handler != NULL) + (options->handler_async != NULL) +
                (options->handler_batch != NULL) + (options->handler_batch_async != NULL) +
                (options->program != NULL) + (options->plugin != NULL) +
                (options->http != NULL);
    if (count == 0) {
        return refuse(name, "there is no function, program, plug-in or service to run",
                      "set handler, one of its other forms, program, plugin or http",
                      ret_error);
    }
    if (count > 1) {
        return refuse(name,
                      "more than one of handler, handler_async, handler_batch, "
                      "handler_batch_async, program, plugin and http is set",
                      "keep the one that its engine runs", ret_error);
    }
    if (!lw_engine_kind_name(options->engine)) {
        return refuse(name, "there is no such engine",
                      "engine is one of the LW_ENGINE_... constants", ret_error);
    }
    bool is_function = options->handler || options->handler_batch;
    if (is_own && options->engine == LW_ENGINE_PROCESSES && is_function) {
        return check_own(name, options, ret_error);
    }
    return lw_handler_fits(options->engine, form_of(options))
               ? check_batch(name, options, ret_error)
               : refuse_form(name, options->engine, form_of(options), ret_error);
}

/* What 0 stands for: as many as can run at once. */
static uint32_t
slots_of(const struct lw_dispatcher *dispatcher, const struct lw_subscription_options *options)
{
    uint32_t slots = dispatcher->options.concurrency;
    bool is_less = options->concurrency > 0 && options->concurrency < slots;
    return is_less ? options->concurrency : slots;
}

static void
destroy_builtin(void *object)
{
    lw_builtin_destroy(object);
}

/* The function that the engine can run; the built-in handler lives as long as the service. */
static enum lw_status
resolve_builtin(struct lw_dispatcher *dispatcher, const struct lw_config_handler *handler,
                struct lw_subscription_options *options, struct lw_error *ret_error)
{
    struct lw_builtin *builtin = NULL;
    enum lw_status status = lw_builtin_create(handler->builtin_text, &builtin, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (!lw_service_keep(lw_service_of(dispatcher), destroy_builtin, builtin)) {
        lw_builtin_destroy(builtin);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    bool is_async = options->engine == LW_ENGINE_LOOP && builtin->handler_async;
    bool is_batch = options->batch.size > 1 && !is_async;
    options->handler = is_async || is_batch ? NULL : builtin->handler;
    options->handler_batch = is_batch ? builtin->handler_batch : NULL;
    options->handler_async = is_async ? builtin->handler_async : NULL;
    options->user = builtin->user;
    return LW_STATUS_OK;
}

static void
destroy_plugin(void *object)
{
    lw_plugin_file_close(object);
    lw_free(object);
}

/* What of the plug-in its engine calls. */
static enum lw_handler_form
form_of_plugin(const struct lw_handler_plugin *table,
               const struct lw_subscription_options *options)
{
    return lw_handler_plugin_form(table, options->engine, options->batch.size > 1);
}

/* Before any of its functions is called. */
static enum lw_status
check_table(const struct lw_engine_request *request, const struct lw_handler_plugin *table,
            struct lw_error *ret_error)
{
    const struct lw_subscription_options *options = request->options;
    enum lw_handler_form form = form_of_plugin(table, options);
    if (options->batch.size > 1 && !lw_handler_plugin_takes_several(form)) {
        return refuse_batch(request->name, "the plug-in takes one message at a time",
                            "leave batch out, or give the plug-in handle_batch", ret_error);
    }
    return lw_handler_fits(options->engine, form)
               ? LW_STATUS_OK
               : refuse_form(request->name, options->engine, form, ret_error);
}

static enum lw_status
open_plugin(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
            struct lw_plugin_file *file, struct lw_error *ret_error)
{
    const struct lw_subscription_options *options = request->options;
    struct lw_handler_setup setup = {
        .size = sizeof setup,
        .service = dispatcher->name,
        .handler = request->name,
        .engine = options->engine,
        .options = options->plugin_options,
        .option_count = options->plugin_option_count,
        .dispatcher = dispatcher,
    };
    enum lw_status status = check_table(request, &file->table, ret_error);
    return status == LW_STATUS_OK ? lw_plugin_file_open(file, &setup, ret_error) : status;
}

/*
 * Loads the plug-in and opens it; its functions take the place of its name. It is closed with the
 * service, after the engine: an instance per handler.
 */
static enum lw_status
resolve_plugin(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
               struct lw_subscription_options *options, struct lw_error *ret_error)
{
    struct lw_plugin_file *file = lw_alloc(sizeof *file);
    if (!file || !lw_service_keep(lw_service_of(dispatcher), destroy_plugin, file)) {
        lw_free(file);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    enum lw_status status = lw_plugin_file_load(request->name, options->plugin, options->symbol,
                                                file, ret_error);
    if (status == LW_STATUS_OK) {
        status = open_plugin(dispatcher, request, file, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    const struct lw_handler_plugin *table = &file->table;
    enum lw_handler_form form = form_of_plugin(table, options);
    options->handler = form == LW_FORM_PLUGIN ? table->handle : NULL;
    options->handler_async = form == LW_FORM_PLUGIN_ASYNC ? table->handle_async : NULL;
    options->handler_batch = form == LW_FORM_PLUGIN_BATCH ? table->handle_batch : NULL;
    options->handler_batch_async = form == LW_FORM_PLUGIN_BATCH_ASYNC
                                       ? table->handle_batch_async
                                       : NULL;
    options->user = file->user;
    options->plugin = NULL;
    return LW_STATUS_OK;
}

static uint32_t
cpu_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? (uint32_t)count : 1;
}

static uint32_t
workers_of(const struct lw_dispatcher *dispatcher,
           const struct lw_subscription_options *options, uint32_t most)
{
    uint32_t slots = slots_of(dispatcher, options);
    return options->workers ? options->workers : slots < most ? slots : most;
}

/* NAME=VALUE texts in one allocation, ended by NULL; NULL without memory. */
static char **
join_environment(const struct lw_property *env, size_t count)
{
    size_t size = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++) {
        size += strlen(env[i].name) + strlen(env[i].value) + 2;
    }
    char **list = lw_alloc(size);
    char *next = list ? (char *)(list + count + 1) : NULL;
    for (size_t i = 0; next && i < count; i++) {
        size_t room = strlen(env[i].name) + strlen(env[i].value) + 2;
        (void)snprintf(next, room, "%s=%s", env[i].name, env[i].value);
        list[i] = next;
        next += room;
    }
    return list;
}

static enum lw_status
create_programs(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
                const struct lw_subscription_options *options, struct lw_engine **ret_engine)
{
    const struct lw_config_handler *handler = request->handler;
    char **environment = join_environment(handler ? handler->env : NULL,
                                          handler ? handler->env_count : 0);
    if (!environment) {
        return LW_STATUS_NO_MEMORY;
    }
    bool is_once = options->protocol == LW_PROTOCOL_ONCE;
    struct lw_programs_options run = {
        .program = options->program,
        .protocol = options->protocol,
        .exit_codes = options->exit_codes,
        .exit_code_count = options->exit_code_count,
        .has_reply = options->reply.topic != NULL,
        .directory = options->directory,
        .environment = (const char *const *)environment,
        .service = dispatcher->name,
        .pipeline = options->pipeline,
        .workers = workers_of(dispatcher, options,
                              is_once ? slots_of(dispatcher, options) : cpu_count()),
        .window = options->window ? options->window : 1,
        .batch = options->batch,
        .timeout_ms = options->timeout_ms,
        .start_timeout_ms = options->start_timeout_ms,
        .limits = { .memory_max = options->memory_max,
                    .cpu_max_ms = options->cpu_max_ms,
                    .nofile = options->nofile,
                    .user = options->run_as },
    };
    run.batch.size = run.batch.size > 1 ? run.batch.size : 0;
    enum lw_status status = lw_programs_engine_create(
        dispatcher->host, &dispatcher->completions, request->name, &run, ret_engine);
    lw_free(environment);
    return status;
}

/*
 * The plug-in is looked at here, so that one that cannot run is refused at once; it is opened in
 * the worker processes only.
 */
static enum lw_status
check_plugin(const struct lw_engine_request *request, struct lw_subscription_options *options,
             struct lw_error *ret_error)
{
    struct lw_plugin_file file = { 0 };
    enum lw_status status = lw_plugin_file_load(request->name, options->plugin, options->symbol,
                                                &file, ret_error);
    if (status == LW_STATUS_OK) {
        status = check_table(request, &file.table, ret_error);
        bool is_batch = lw_handler_plugin_takes_several(form_of_plugin(&file.table, options));
        options->batch.size = is_batch ? options->batch.size : 0;
    }
    lw_plugin_file_close(&file);
    return status;
}

static enum lw_status
create_processes(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
                 const struct lw_subscription_options *options, struct lw_engine **ret_engine)
{
    struct lw_processes_options run = {
        .path = options->plugin,
        .handler = options->handler,
        .handler_batch = options->handler_batch,
        .user = options->user,
        .symbol = options->symbol,
        .service = dispatcher->name,
        .pipeline = options->pipeline,
        .options = options->plugin_options,
        .option_count = options->plugin_option_count,
        .workers = workers_of(dispatcher, options, cpu_count()),
        .window = options->window ? options->window : LW_PROCESSES_WINDOW,
        .timeout_ms = options->timeout_ms,
        .start_timeout_ms = options->start_timeout_ms,
        .memory_max = options->memory_max,
        .tune = options->processes,
        .batch = options->batch,
    };
    run.batch.size = options->handler ? 0 : run.batch.size; /* as check_plugin has set it */
    return lw_processes_engine_create(dispatcher->host, &dispatcher->completions, request->name,
                                      &run, ret_engine);
}

static enum lw_status
create_functions(struct lw_dispatcher *dispatcher, const char *name,
                 const struct lw_subscription_options *options, struct lw_engine **ret_engine)
{
    struct lw_handler_options run = {
        .handler = options->handler,
        .handler_async = options->handler_async,
        .handler_batch = options->handler_batch,
        .handler_batch_async = options->handler_batch_async,
        .batch = options->batch,
        .user = options->user,
        .timeout_ms = options->timeout_ms,
        .threads = options->threads ? options->threads : slots_of(dispatcher, options),
    };
    if (options->engine == LW_ENGINE_THREADS) {
        return lw_threads_engine_create(dispatcher->host, &dispatcher->completions, name, &run,
                                        ret_engine);
    }
    return lw_loop_engine_create(dispatcher->host, &dispatcher->completions, name, &run,
                                 ret_engine);
}

static enum lw_status
create(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
       const struct lw_subscription_options *options, struct lw_engine **ret_engine)
{
    switch (options->engine) {
    case LW_ENGINE_PROGRAMS:
        return create_programs(dispatcher, request, options, ret_engine);
    case LW_ENGINE_PROCESSES:
        return create_processes(dispatcher, request, options, ret_engine);
    case LW_ENGINE_LOOP:
    case LW_ENGINE_THREADS:
    case LW_ENGINE_HTTP: /* made elsewhere */
        break;
    }
    return create_functions(dispatcher, request->name, options, ret_engine);
}

enum lw_status
lw_registry_engine(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
                   struct lw_engine **ret_engine, struct lw_error *ret_error)
{
    const struct lw_config_handler *handler = request->handler;
    struct lw_subscription_options run = *request->options;
    enum lw_status status = LW_STATUS_OK;
    if (handler && handler->kind == LW_CONFIG_BUILTIN) {
        status = resolve_builtin(dispatcher, handler, &run, ret_error);
    }
    if (status == LW_STATUS_OK) {
        bool is_own = !handler || handler->kind != LW_CONFIG_BUILTIN;
        status = check_handler(request->name, &run, is_own, ret_error);
    }
    if (status == LW_STATUS_OK && run.plugin) {
        status = run.engine == LW_ENGINE_PROCESSES
                     ? check_plugin(request, &run, ret_error)
                     : resolve_plugin(dispatcher, request, &run, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (run.engine == LW_ENGINE_HTTP) {
        return lw_registry_http(dispatcher, request, slots_of(dispatcher, &run), ret_engine,
                                ret_error);
    }
    status = create(dispatcher, request, &run, ret_engine);
    if (status != LW_STATUS_OK) {
        return lw_error_set(ret_error, status, "", "handler \"%s\": cannot make engine %s: %s",
                            request->name, lw_engine_kind_name(run.engine),
                            lw_status_name(status));
    }
    return LW_STATUS_OK;
}
