/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers in shared objects through the whole service: from a file and from options structs, on
 * the engines that can run them, refused on the others, opened once and closed once; and the
 * starter of `laneway init plugin`, built by the compiler as its Makefile does it.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "service/handler_fit.h"
#include "tests/service/config_fixture.h"
#include "tests/service/service_fixture.h"

#define PLUGIN(name) LW_BINARY_DIR "/tests/plugins/" name ".so"

enum { TEXT_BYTES = 4096, TURNS_MAX = 60000 };

struct trial {
    struct service_fixture *service;
    struct lw_dispatcher *dispatcher; /* for files; that of `service` is for options structs */
    char folder[40];
    char config[64];
    char journal[64];
    char text[TEXT_BYTES];
};

static int
setup(void **state)
{
    struct trial *trial = lw_alloc(sizeof *trial);
    assert_int_equal(service_setup((void **)&trial->service), 0);
    trial->dispatcher = lw_dispatcher_create(NULL, NULL);
    snprintf(trial->folder, sizeof trial->folder, "/tmp/laneway-plugins-XXXXXX");
    assert_non_null(mkdtemp(trial->folder));
    snprintf(trial->config, sizeof trial->config, "%s/config.yaml", trial->folder);
    snprintf(trial->journal, sizeof trial->journal, "%s/journal", trial->folder);
    *state = trial;
    return 0;
}

static int
teardown(void **state)
{
    struct trial *trial = *state;
    char object[64];
    lw_dispatcher_destroy(trial->dispatcher);
    assert_int_equal(service_teardown((void **)&trial->service), 0);
    snprintf(object, sizeof object, "%s/orders.so", trial->folder);
    (void)unlink(object);
    (void)unlink(trial->config);
    (void)unlink(trial->journal);
    assert_int_equal(rmdir(trial->folder), 0);
    lw_free(trial);
    return 0;
}

static void
write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static const char *
read_text(struct trial *trial, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(trial->text, 1, TEXT_BYTES - 1, file) : 0;
    trial->text[size] = '\0';
    if (file) {
        fclose(file);
    }
    return trial->text;
}

/* A configuration of one topic; `handler` is the value of handlers.work. */
static enum lw_status
load(struct trial *trial, const char *handler)
{
    snprintf(trial->text, TEXT_BYTES,
             "version: 1\n"
             "service: { name: shop }\n"
             "brokers: { main: { url: \"%s\" } }\n"
             "handlers: { work: %s }\n"
             "pipelines:\n"
             "  jobs: { broker: main, handler: work, consumer: { group: group }, topics: [a],\n"
             "          reply: { topic: replies } }\n",
             trial->service->url, handler);
    write_text(trial->config, trial->text);
    return lw_dispatcher_load(trial->dispatcher, trial->config, NULL, 0,
                              &trial->service->error);
}

static void
run_dry(struct trial *trial, struct lw_dispatcher *dispatcher, const char *group,
        const char *topic)
{
    struct lw_memory_hub *hub = trial->service->hub;
    for (int i = 0; i < TURNS_MAX && lw_memory_hub_backlog(hub, group, topic) > 0; i++) {
        service_turn(dispatcher);
    }
    assert_int_equal(lw_memory_hub_backlog(hub, group, topic), 0);
}

static void
destroy(struct lw_dispatcher **dispatcher)
{
    lw_dispatcher_destroy(*dispatcher);
    *dispatcher = NULL;
}

static size_t
count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

/* -- From a file --------------------------------------------------------------------------------- */

static void
run_on(struct trial *trial, const char *engine)
{
    char handler[512];
    char opened[128];
    snprintf(handler, sizeof handler,
             "{ plugin: %s, engine: %s, options: { journal: %s, table: orders } }",
             PLUGIN("journal"), engine, trial->journal);
    assert_int_equal(load(trial, handler), LW_STATUS_OK);
    snprintf(opened, sizeof opened, "open work of shop on %s, worker 0\n", engine);
    assert_ptr_equal(strstr(read_text(trial, trial->journal), opened), trial->text);
    service_publish(trial->service, "a", "k", 5);
    run_dry(trial, trial->dispatcher, "group", "a");
    destroy(&trial->dispatcher);
    read_text(trial, trial->journal);
    assert_int_equal(count_of(trial->text, "\na "), 5);
    assert_non_null(strstr(trial->text, "option table=orders\n"));
    assert_int_equal(count_of(trial->text, "open"), 1);
    assert_int_equal(count_of(trial->text, "close\n"), 1);
    assert_string_equal(trial->text + strlen(trial->text) - strlen("close\n"), "close\n");
}

static void
a_plugin_runs_on_the_loop(void **state)
{
    run_on(*state, "loop");
}

static void
a_plugin_runs_on_threads(void **state)
{
    run_on(*state, "threads");
}

static void
an_asynchronous_plugin_runs_on_the_loop_by_its_symbol(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(load(trial, "{ plugin: " PLUGIN("forms") ", symbol: asynchronous, "
                                                              "engine: loop }"),
                     LW_STATUS_OK);
    service_publish(trial->service, "a", "k", 5);
    run_dry(trial, trial->dispatcher, "group", "a");
}

static void
take_batches_on(struct trial *trial, const char *engine)
{
    char handler[512];
    snprintf(handler, sizeof handler,
             "{ plugin: %s, engine: %s,%s options: { journal: %s },\n"
             "  batch: { size: 3, wait: 1h } }",
             PLUGIN("journal"), engine, strcmp(engine, "processes") == 0 ? " workers: 1," : "",
             trial->journal);
    assert_int_equal(load(trial, handler), LW_STATUS_OK);
    service_publish(trial->service, "a", "k", 6);
    run_dry(trial, trial->dispatcher, "group", "a");
    destroy(&trial->dispatcher);
    read_text(trial, trial->journal);
    assert_int_equal(count_of(trial->text, "batch of 3\n"), 2);
    assert_int_equal(count_of(trial->text, "batch of"), 2);
    assert_int_equal(count_of(trial->text, "\na "), 6);
}

static void
a_plugin_takes_batches_on_the_loop(void **state)
{
    take_batches_on(*state, "loop");
}

static void
a_plugin_takes_batches_on_threads(void **state)
{
    take_batches_on(*state, "threads");
}

static void
a_plugin_takes_batches_in_processes(void **state)
{
    take_batches_on(*state, "processes");
}

/* No batch is wanted, and it has no other form. */
static void
a_plugin_that_has_only_batches_gets_one_message_at_a_time(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(load(trial, "{ plugin: " PLUGIN("forms") ", symbol: batches }"),
                     LW_STATUS_OK);
    service_publish(trial->service, "a", "k", 5);
    run_dry(trial, trial->dispatcher, "group", "a");
}

static void
a_plugin_that_has_only_batches_gets_one_at_a_time_in_processes(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(load(trial,
                          "{ plugin: " PLUGIN("forms") ", symbol: batches,\n"
                                                       "  engine: processes, workers: 1 }"),
                     LW_STATUS_OK);
    service_publish(trial->service, "a", "k", 5);
    run_dry(trial, trial->dispatcher, "group", "a");
}

static void
an_asynchronous_plugin_takes_batches_on_the_loop(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(load(trial,
                          "{ plugin: " PLUGIN("forms") ", symbol: batches_async,\n"
                                                       "  engine: loop, batch: { size: 3 } }"),
                     LW_STATUS_OK);
    service_publish(trial->service, "a", "k", 8);
    run_dry(trial, trial->dispatcher, "group", "a");
}

static void
a_plugin_without_a_form_for_batches_is_refused_them(void **state)
{
    static const enum lw_engine_kind engines[] = { LW_ENGINE_LOOP, LW_ENGINE_THREADS,
                                                   LW_ENGINE_PROCESSES };
    struct trial *trial = *state;
    struct lw_subscription_options options = trial->service->options;
    struct lw_error *error = &trial->service->error;
    options.plugin = PLUGIN("forms");
    options.symbol = "blocking";
    options.batch.size = 2;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        options.engine = engines[i];
        assert_int_equal(lw_dispatcher_subscribe(trial->service->dispatcher, &options, error),
                         LW_STATUS_INVALID);
        assert_string_equal(error->code, "E0320");
        assert_non_null(strstr(error->help, "give the plug-in handle_batch"));
    }
    options.symbol = "batches";
    options.processes.pins_lanes = true;
    assert_int_equal(lw_dispatcher_subscribe(trial->service->dispatcher, &options, error),
                     LW_STATUS_INVALID);
    assert_non_null(strstr(error->message, "its lanes are pinned"));
}

static void
two_entries_are_two_instances(void **state)
{
    struct trial *trial = *state;
    snprintf(trial->text, TEXT_BYTES,
             "version: 1\n"
             "brokers: { main: { url: \"%s\" } }\n"
             "handlers:\n"
             "  x: { plugin: %s, options: { journal: %s } }\n"
             "  y: { plugin: %s, options: { journal: %s } }\n"
             "  unused: { plugin: %s, options: { journal: %s } }\n"
             "pipelines:\n"
             "  p: { broker: main, handler: x, consumer: { group: g }, topics: [a, b] }\n"
             "  q: { broker: main, handler: y, consumer: { group: g }, topics: [c] }\n",
             trial->service->url, PLUGIN("journal"), trial->journal, PLUGIN("journal"),
             trial->journal, PLUGIN("journal"), trial->journal);
    write_text(trial->config, trial->text);
    assert_int_equal(
        lw_dispatcher_load(trial->dispatcher, trial->config, NULL, 0, &trial->service->error),
        LW_STATUS_OK);
    destroy(&trial->dispatcher);
    read_text(trial, trial->journal);
    assert_int_equal(count_of(trial->text, "open x"), 1);
    assert_int_equal(count_of(trial->text, "open y"), 1);
    assert_int_equal(count_of(trial->text, "open"), 2);
    assert_int_equal(count_of(trial->text, "close"), 2);
}

static void
a_plugin_that_refuses_to_start_stops_the_load(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(
        load(trial, "{ plugin: " PLUGIN("journal") ", options: { refuse: away } }"),
        LW_STATUS_UNAVAILABLE);
    assert_string_equal(trial->service->error.code, "E0609");
    assert_string_equal(trial->service->error.message, "handler \"work\" cannot start: away");
    destroy(&trial->dispatcher);
}

static void
a_plugin_that_cannot_be_loaded_stops_the_load(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(load(trial, "{ plugin: ./none.so }"), LW_STATUS_CONFIG);
    assert_string_equal(trial->service->error.code, "E0601");
    assert_non_null(
        strstr(trial->service->error.message, trial->folder)); /* the file's folder */
    assert_int_equal(load(trial, "{ plugin: " PLUGIN("forms") ", symbol: other_abi }"),
                     LW_STATUS_CONFIG);
    assert_string_equal(trial->service->error.code, "E0608");
}

/* -- From options structs ------------------------------------------------------------------------ */

static void
an_embedding_program_names_a_plugin_in_its_options(void **state)
{
    struct trial *trial = *state;
    struct service_fixture *service = trial->service;
    const struct lw_property options[] = { { "journal", trial->journal } };
    service->options.plugin = PLUGIN("journal");
    service->options.plugin_options = options;
    service->options.plugin_option_count = 1;
    service->options.engine = LW_ENGINE_THREADS;
    service->options.handler = NULL;
    service_subscribe(service);
    service_publish(service, "topic", "k", 3);
    run_dry(trial, service->dispatcher, "group", "topic");
    destroy(&service->dispatcher);
    assert_int_equal(count_of(read_text(trial, trial->journal), "\ntopic "), 3);
}

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static size_t
do_nothing_at_once(struct lw_delivery *const deliveries[], size_t count,
                   enum lw_verdict verdicts[], void *user)
{
    (void)deliveries;
    (void)user;
    verdicts[0] = LW_OK;
    return count;
}

static void
finish_at_once(struct lw_delivery *delivery, void *user)
{
    (void)user;
    (void)lw_delivery_finish(delivery, LW_OK);
}

/* Every engine with every form of handler: taken or refused as the table says, in plain words. */
static void
finish_all_at_once(struct lw_delivery *const deliveries[], size_t count, void *user)
{
    enum lw_verdict verdict = LW_OK;
    (void)user;
    (void)lw_batch_finish(deliveries[0], &verdict, count > 0);
}

/* Of tests/plugins/forms.c, for forms that are one of a plug-in. */
static const char *
symbol_of(enum lw_handler_form form)
{
    return form == LW_FORM_PLUGIN               ? "blocking"
           : form == LW_FORM_PLUGIN_ASYNC       ? "asynchronous"
           : form == LW_FORM_PLUGIN_BATCH       ? "batches"
           : form == LW_FORM_PLUGIN_BATCH_ASYNC ? "batches_async"
                                                : NULL;
}

static void
which_form_of_a_plugin_is_called_follows_from_engine_and_batch(void **state)
{
    struct lw_handler_plugin all = { .handle = do_nothing,
                                     .handle_async = finish_at_once,
                                     .handle_batch = do_nothing_at_once,
                                     .handle_batch_async = finish_all_at_once };
    struct lw_handler_plugin few = { .handle_async = finish_at_once,
                                     .handle_batch = do_nothing_at_once };
    (void)state;
#define FORM(table, engine, is_several) lw_handler_plugin_form(&(table), (engine), (is_several))
    assert_int_equal(FORM(all, LW_ENGINE_LOOP, false), LW_FORM_PLUGIN_ASYNC);
    assert_int_equal(FORM(all, LW_ENGINE_LOOP, true), LW_FORM_PLUGIN_BATCH_ASYNC);
    assert_int_equal(FORM(all, LW_ENGINE_PROCESSES, false), LW_FORM_PLUGIN);
    assert_int_equal(FORM(all, LW_ENGINE_THREADS, true), LW_FORM_PLUGIN_BATCH);
    assert_int_equal(FORM(few, LW_ENGINE_LOOP, false), LW_FORM_PLUGIN_ASYNC);
    assert_int_equal(FORM(few, LW_ENGINE_THREADS, false), LW_FORM_PLUGIN_BATCH);
    few.handle_batch = NULL;
    assert_int_equal(FORM(few, LW_ENGINE_THREADS, false), LW_FORM_PLUGIN_ASYNC); /* refused */
    assert_int_equal(FORM(few, LW_ENGINE_LOOP, true), LW_FORM_PLUGIN_ASYNC);     /* E0320 */
#undef FORM
}

static void
every_bad_combination_of_engine_and_handler_is_refused(void **state)
{
    struct trial *trial = *state;
    static const char *const program[] = { "cat", NULL };
    struct lw_error *error = &trial->service->error;
    struct lw_http_options http;
    lw_http_options_init(&http);
    http.url = "http://127.0.0.1:9/";
    for (int engine = 0; lw_engine_kind_name((enum lw_engine_kind)engine); engine++) {
        for (int form = 0; form < LW_HANDLER_FORMS; form++) {
            struct lw_subscription_options options = trial->service->options;
            struct lw_dispatcher *dispatcher = service_create(trial->service, NULL);
            options.engine = (enum lw_engine_kind)engine;
            options.handler = form == LW_FORM_FUNCTION ? do_nothing : NULL;
            options.handler_async = form == LW_FORM_ASYNC ? finish_at_once : NULL;
            options.handler_batch = form == LW_FORM_BATCH ? do_nothing_at_once : NULL;
            options.handler_batch_async = form == LW_FORM_BATCH_ASYNC ? finish_all_at_once
                                                                      : NULL;
            options.program = form == LW_FORM_PROGRAM ? program : NULL;
            options.http = form == LW_FORM_SERVICE ? &http : NULL;
            options.plugin = symbol_of((enum lw_handler_form)form) ? PLUGIN("forms") : NULL;
            options.symbol = symbol_of((enum lw_handler_form)form);
            enum lw_status status = lw_dispatcher_subscribe(dispatcher, &options, error);
            bool fits = lw_handler_fits(options.engine, (enum lw_handler_form)form);
            assert_int_equal(status, fits ? LW_STATUS_OK : LW_STATUS_INVALID);
            if (!fits) {
                assert_string_equal(error->code, "E0606");
                assert_non_null(strstr(error->message, lw_engine_kind_name(options.engine)));
                assert_non_null(strstr(error->help, "runs on engine "));
            }
            lw_dispatcher_destroy(dispatcher);
        }
    }
}

static void
an_engine_that_does_not_exist_is_refused(void **state)
{
    struct trial *trial = *state;
    trial->service->options.engine = (enum lw_engine_kind)99;
    trial->service->options.handler = do_nothing;
    assert_int_equal(lw_dispatcher_subscribe(trial->service->dispatcher,
                                             &trial->service->options, &trial->service->error),
                     LW_STATUS_INVALID);
    assert_non_null(strstr(trial->service->error.message, "no such engine"));
}

static void
the_help_names_every_engine_that_fits(void **state)
{
    char help[256];
    char small[12];
    (void)state;
    lw_handler_fit_help(LW_FORM_PROGRAM, help, sizeof help);
    assert_string_equal(help, "a program runs on engine programs");
    lw_handler_fit_help(LW_FORM_FUNCTION, help, sizeof help);
    assert_string_equal(help,
                        "a function that returns its verdict runs on engine loop or threads");
    lw_handler_fit_help(LW_FORM_PROGRAM, small, sizeof small);
    assert_string_equal(small, "a program r");
}

/* -- What `check` says --------------------------------------------------------------------------- */

static void
checking(const char *handler, bool is_resolved, const char *said)
{
    char text[1024];
    struct config_fixture fixture;
    snprintf(
        text, sizeof text,
        "version: 1\n"
        "brokers: { main: { url: 'memory:' } }\n"
        "handlers:\n"
        "  h:\n"
        "%s"
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: [a] } "
        "}\n",
        handler);
    struct lw_config_text item = { "bad.yaml", text, strlen(text) };
    config_open_source(&fixture, (struct lw_config_source){ .texts = &item,
                                                            .text_count = 1,
                                                            .resolve_programs = is_resolved });
    if (said[0] == '\0') {
        assert_null(fixture.printed.data);
    } else if (!fixture.printed.data || !strstr(fixture.printed.data, said)) {
        fail_msg("%s", fixture.printed.data ? fixture.printed.data : "nothing was said");
    }
    config_close(&fixture);
}

static void
check_points_at_the_plugin_that_cannot_be_loaded(void **state)
{
    (void)state;
    checking(
        "    plugin: /nonexistent/x.so\n", true,
        "bad.yaml:5:13: error[E0601]: handler \"h\" cannot be loaded: /nonexistent/x.so: No "
        "such file or directory\n"
        "    5 |     plugin: /nonexistent/x.so\n"
        "      |             ^^^^^^^^^^^^^^^^^\n"
        "help: build the plug-in");
    checking("    plugin: /nonexistent/x.so\n", false, "");
    checking("    plugin: " PLUGIN("undefined") "\n", true, "nobody_defines_this");
    checking("    plugin: " PLUGIN("forms") "\n    symbol: blocking\n", true, "");
    checking("    plugin: ''\n", true, "error[E0121]: handlers.h.plugin is empty\n");
}

static void
check_refuses_an_engine_that_cannot_run_the_plugin(void **state)
{
    (void)state;
    checking(
        "    plugin: " PLUGIN("forms") "\n    symbol: asynchronous\n    engine: threads\n",
        true,
        "bad.yaml:7:13: error[E0311]: engine \"threads\" cannot run handlers.h: it has only "
        "handle_async\n");
    checking("    plugin: " PLUGIN("forms") "\n    symbol: asynchronous\n    engine: loop\n",
             true, "");
    checking("    plugin: x.so\n    engine: programs\n", false,
             "help: a plug-in runs on engine loop");
}

static void
check_refuses_a_batch_for_a_plugin_that_takes_one_at_a_time(void **state)
{
    (void)state;
    checking(
        "    plugin: " PLUGIN("forms") "\n    symbol: blocking\n    batch: { size: 2 }\n", true,
        "error[E0320]: handlers.h takes one message at a time: the plug-in has no form for "
        "several\n");
    checking("    plugin: " PLUGIN("forms") "\n    symbol: batches\n    engine: processes\n"
                                            "    batch: { size: 2 }\n",
             true, "");
    checking("    plugin: " PLUGIN("forms") "\n    symbol: batches_async\n"
                                            "    batch: { size: 2 }\n",
             true, "cannot run handlers.h: it has only handle_batch_async\n");
}

static void
keys_of_a_plugin_without_one_are_warned_about(void **state)
{
    (void)state;
    checking("    builtin: echo\n    symbol: x\n", true,
             "warning[W0308]: \"symbol\" has no effect: handlers.h is not a plug-in\n");
    checking("    builtin: echo\n    options: { a: b }\n", true,
             "warning[W0308]: \"options\" has no effect: handlers.h is not a plug-in\n");
}

static void
the_plan_shows_the_plugin(void **state)
{
    struct config_fixture fixture;
    struct lw_text plan;
    static const char text[] =
        "version: 1\n"
        "brokers: { main: { url: 'memory:' } }\n"
        "handlers: { h: { plugin: ./x.so, symbol: orders, options: { table: t } } }\n"
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: [a] } }\n";
    (void)state;
    config_open(&fixture, text);
    assert_non_null(fixture.config);
    lw_text_init(&plan);
    lw_config_plan_print(fixture.config, &plan);
    assert_non_null(strstr(plan.data, "handler h: plug-in ./x.so (orders) on threads"));
    assert_non_null(strstr(plan.data, "handlers.h.options.table"));
    lw_text_deinit(&plan);
    config_close(&fixture);
}

/* -- The starter --------------------------------------------------------------------------------- */

static void
build_starter(const struct trial *trial)
{
    char command[512];
    snprintf(command, sizeof command,
             "cc -std=c17 -Wall -Wextra -Werror -O2 -shared -fPIC -I%s/include -o %s/orders.so "
             "%s/examples/plugin/orders.c",
             LW_SOURCE_DIR, trial->folder, LW_SOURCE_DIR);
    assert_int_equal(system(command), 0);
}

static void
load_starter(struct trial *trial)
{
    static const char address[] = "kafka://localhost:9092";
    static const char start[] = "      properties:\n        auto.offset.reset: earliest\n";
    char whole[TEXT_BYTES];
    snprintf(whole, sizeof whole, "%s",
             read_text(trial, LW_SOURCE_DIR "/examples/plugin/orders.yaml"));
    char *at = strstr(whole, address);
    assert_non_null(at);
    char *properties = strstr(whole, start);
    assert_non_null(properties);
    snprintf(trial->text, TEXT_BYTES, "%.*s%s\n    properties: { mode: individual }%.*s%s",
             (int)(at - whole), whole, trial->service->url,
             (int)(properties - (at + strlen(address))), at + strlen(address),
             properties + strlen(start));
    write_text(trial->config, trial->text);
    if (lw_dispatcher_load(trial->dispatcher, trial->config, NULL, 0, &trial->service->error) !=
        LW_STATUS_OK) {
        fail_msg("%s", trial->service->error.message);
    }
}

static void
send(struct trial *trial, const char *value)
{
    struct lw_memory_item item = lw_memory_item_of("orders", NULL, value);
    assert_int_equal(lw_memory_hub_publish(trial->service->hub, &item, NULL, NULL),
                     LW_STATUS_OK);
}

static void
the_starter_is_built_loaded_and_confirms_orders(void **state)
{
    struct trial *trial = *state;
    build_starter(trial);
    load_starter(trial);
    for (int i = 0; i < 20; i++) {
        send(trial, "{\"id\": 7}");
    }
    send(trial, "{\"name\": \"no id\"}");
    run_dry(trial, trial->dispatcher, "orders-service", "orders");
    assert_int_equal(lw_memory_hub_each(trial->service->hub, "order_confirmations", NULL, NULL),
                     20);
    assert_int_equal(lw_memory_hub_each(trial->service->hub, "orders_dead", NULL, NULL), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plugin_runs_on_the_loop),
        TEST(a_plugin_runs_on_threads),
        TEST(an_asynchronous_plugin_runs_on_the_loop_by_its_symbol),
        TEST(a_plugin_takes_batches_on_the_loop),
        TEST(a_plugin_takes_batches_on_threads),
        TEST(a_plugin_takes_batches_in_processes),
        TEST(a_plugin_that_has_only_batches_gets_one_message_at_a_time),
        TEST(a_plugin_that_has_only_batches_gets_one_at_a_time_in_processes),
        TEST(an_asynchronous_plugin_takes_batches_on_the_loop),
        TEST(which_form_of_a_plugin_is_called_follows_from_engine_and_batch),
        TEST(a_plugin_without_a_form_for_batches_is_refused_them),
        TEST(two_entries_are_two_instances),
        TEST(a_plugin_that_refuses_to_start_stops_the_load),
        TEST(a_plugin_that_cannot_be_loaded_stops_the_load),
        TEST(an_embedding_program_names_a_plugin_in_its_options),
        TEST(every_bad_combination_of_engine_and_handler_is_refused),
        TEST(an_engine_that_does_not_exist_is_refused),
        cmocka_unit_test(the_help_names_every_engine_that_fits),
        cmocka_unit_test(check_points_at_the_plugin_that_cannot_be_loaded),
        cmocka_unit_test(check_refuses_an_engine_that_cannot_run_the_plugin),
        cmocka_unit_test(check_refuses_a_batch_for_a_plugin_that_takes_one_at_a_time),
        cmocka_unit_test(keys_of_a_plugin_without_one_are_warned_about),
        cmocka_unit_test(the_plan_shows_the_plugin),
        TEST(the_starter_is_built_loaded_and_confirms_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
