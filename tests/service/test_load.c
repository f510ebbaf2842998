/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a file to a running dispatcher: functions bound by name, built-in handlers and programs,
 * and that a failed load leaves nothing behind.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "dispatcher/dispatcher.h"
#include "tests/service/service_fixture.h"

struct load_fixture {
    struct service_fixture *service;
    struct lw_dispatcher *dispatcher;
    char path[40];
    unsigned count;
};

static enum lw_verdict
count(struct lw_delivery *delivery, void *user)
{
    struct load_fixture *fixture = user;
    if (++fixture->count == 2) {
        lw_dispatcher_request_close(lw_delivery_dispatcher(delivery));
    }
    return LW_OK;
}

static int
setup(void **state)
{
    struct load_fixture *fixture = lw_alloc(sizeof *fixture);
    assert_int_equal(service_setup((void **)&fixture->service), 0);
    fixture->dispatcher = lw_dispatcher_create(NULL, NULL);
    assert_non_null(fixture->dispatcher);
    (void)snprintf(fixture->path, sizeof fixture->path, "/tmp/laneway-load-XXXXXX");
    close(mkstemp(fixture->path));
    *state = fixture;
    return 0;
}

static int
teardown(void **state)
{
    struct load_fixture *fixture = *state;
    lw_dispatcher_destroy(fixture->dispatcher);
    (void)unlink(fixture->path);
    assert_int_equal(service_teardown((void **)&fixture->service), 0);
    lw_free(fixture);
    return 0;
}

/* A configuration with two topics; `handler` is the value of handlers.work. */
static void
write_config(struct load_fixture *fixture, const char *handler)
{
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    assert_true(
        fprintf(file,
                "version: 1\n"
                "service: { name: loaded, concurrency: 7 }\n"
                "brokers: { main: { url: \"%s\" } }\n"
                "handlers:\n  work: %s\n"
                "pipelines:\n"
                "  jobs: { broker: main, handler: work, consumer: { group: group },\n"
                "          topics: [ { name: low, priority: 20 }, { name: high, priority: "
                "10 } ] }\n",
                fixture->service->url, handler) > 0);
    assert_int_equal(fclose(file), 0);
}

static enum lw_status
load(struct load_fixture *fixture, const char *name)
{
    struct lw_binding binding = { .name = name, .handler = count, .user = fixture };
    return lw_dispatcher_load(fixture->dispatcher, fixture->path, &binding, 1,
                              &fixture->service->error);
}

static void
a_file_is_run_with_a_bound_function(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ function: on_job, engine: loop }");
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_OK);
    service_publish(fixture->service, "low", "k", 1);
    service_publish(fixture->service, "high", "k", 1);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, NULL), LW_STATUS_OK);
    assert_int_equal(fixture->count, 2);
}

static void
the_service_section_is_taken_over(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ function: on_job, engine: loop }");
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_OK);
    assert_string_equal(fixture->dispatcher->name, "loaded");
    assert_int_equal(fixture->dispatcher->options.concurrency, 7);
    assert_int_equal(fixture->dispatcher->engine_count, 1);
    assert_int_equal(fixture->dispatcher->stream_count, 2);
    assert_int_equal(fixture->dispatcher->streams[0]->subscription.priority, 20);
}

static void
a_function_that_nobody_bound_leaves_the_dispatcher_as_it_was(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ function: on_job, engine: loop }");
    assert_int_equal(load(fixture, "other"), LW_STATUS_CONFIG);
    assert_string_equal(fixture->service->error.code, "E0203");
    assert_string_equal(fixture->dispatcher->name, "laneway");
    assert_int_equal(fixture->dispatcher->link_count, 0);
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_OK);
}

static void
an_error_in_the_file_has_its_place(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ function: on_job, enigne: loop }");
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_CONFIG);
    assert_string_equal(fixture->service->error.code, "E0101");
    assert_int_equal(fixture->service->error.line, 5);
    assert_string_equal(fixture->service->error.file, fixture->path);
}

static void
loading_comes_before_anything_else_is_added(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ builtin: noop }");
    assert_int_equal(lw_dispatcher_connect(fixture->dispatcher, "x", "memory:", NULL, 0, NULL),
                     LW_STATUS_OK);
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_STATE);
}

static void
a_builtin_handler_needs_no_function(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ builtin: \"io:1ms\" }");
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_OK);
    service_publish(fixture->service, "low", "k", 3);
    for (int i = 0; i < 60000 && service_backlog(fixture->service, "low") > 0; i++) {
        service_turn(fixture->dispatcher);
    }
    assert_int_equal(service_backlog(fixture->service, "low"), 0);
}

static void
a_program_handles_messages(void **state)
{
    struct load_fixture *fixture = *state;
    write_config(fixture, "{ program: [python3, " LW_SOURCE_DIR
                          "/examples/handlers/confirm.py], protocol: lines, workers: 1 }");
    assert_int_equal(load(fixture, "on_job"), LW_STATUS_OK);
    service_publish(fixture->service, "low", "k", 1);
    for (int i = 0; i < 60000 && service_backlog(fixture->service, "low") > 0; i++) {
        service_turn(fixture->dispatcher);
    }
    assert_int_equal(service_backlog(fixture->service, "low"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_run_with_a_bound_function),
        TEST(the_service_section_is_taken_over),
        TEST(a_function_that_nobody_bound_leaves_the_dispatcher_as_it_was),
        TEST(an_error_in_the_file_has_its_place),
        TEST(loading_comes_before_anything_else_is_added),
        TEST(a_builtin_handler_needs_no_function),
        TEST(a_program_handles_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
