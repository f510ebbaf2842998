/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dispatcher of the public interface on a memory hub of its own. The hub settles individually,
 * so that a backlog is what was not acknowledged.
 */
#include "tests/support/test.h"

#include "tests/service/service_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

int
service_setup(void **state)
{
    static unsigned number;
    struct service_fixture *fixture = lw_alloc(sizeof *fixture);
    struct lw_memory_options options;
    char name[40];
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    (void)snprintf(name, sizeof name, "service-%d-%u", (int)getpid(), ++number);
    (void)snprintf(fixture->url, sizeof fixture->url, "memory:%s", name);
    fixture->hub = lw_memory_hub_open(name, &options);
    fixture->dispatcher = service_create(fixture, NULL);
    lw_subscription_options_init(&fixture->options);
    fixture->options.broker = "main";
    fixture->options.topic = "topic";
    fixture->options.subscription = "group";
    *state = fixture;
    return 0;
}

int
service_teardown(void **state)
{
    struct service_fixture *fixture = *state;
    lw_dispatcher_destroy(fixture->dispatcher);
    lw_memory_hub_close(fixture->hub);
    lw_free(fixture);
    return 0;
}

struct lw_dispatcher *
service_create(struct service_fixture *fixture, const struct lw_dispatcher_options *options)
{
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(options, &fixture->error);
    assert_non_null(dispatcher);
    assert_int_equal(
        lw_dispatcher_connect(dispatcher, "main", fixture->url, NULL, 0, &fixture->error),
        LW_STATUS_OK);
    return dispatcher;
}

void
service_publish(struct service_fixture *fixture, const char *topic, const char *key,
                unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char value[32];
        (void)snprintf(value, sizeof value, "value %u", i);
        struct lw_memory_item item = lw_memory_item_of(topic, key, value);
        assert_int_equal(lw_memory_hub_publish(fixture->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

uint64_t
service_backlog(const struct service_fixture *fixture, const char *topic)
{
    return lw_memory_hub_backlog(fixture->hub, "group", topic);
}

void
service_subscribe(struct service_fixture *fixture)
{
    enum lw_status status = lw_dispatcher_subscribe(fixture->dispatcher, &fixture->options,
                                                    &fixture->error);
    if (status != LW_STATUS_OK) {
        print_error("%s\n", fixture->error.message);
    }
    assert_int_equal(status, LW_STATUS_OK);
}

void
service_turn(struct lw_dispatcher *dispatcher)
{
    struct pollfd item = { .fd = lw_dispatcher_fd(dispatcher), .events = POLLIN };
    assert_int_equal(poll(&item, 1, 60000), 1);
    assert_int_equal(lw_dispatcher_poll(dispatcher, NULL), LW_STATUS_OK);
}
