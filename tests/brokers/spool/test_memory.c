/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lack of memory: the n-th allocation fails, for n = 1, 2, 3 ... while a spool is opened, and while it
 * works. Opening is refused with a reason; work goes on, or is refused and can be tried again; nothing
 * leaks, and nothing that was confirmed is missing afterwards.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/spool/broker.h"
#include "tests/brokers/spool/fixture.h"

enum { NTH_MAX = 400 };

static bool
is_closed(struct lw_broker *broker)
{
    struct lw_event events[16];
    size_t count = broker->ops->events(broker, events, 16);
    bool is = false;
    for (size_t i = 0; i < count; i++) {
        is = is || events[i].kind == LW_EVENT_CLOSED;
        if (events[i].kind == LW_EVENT_REVOKING) {
            broker->ops->revoke_done(broker, events[i].generation);
        }
    }
    return is;
}

static void
end(struct spool *spool, struct lw_broker *broker)
{
    broker->ops->stop_sources(broker);
    broker->ops->close(broker);
    while (!is_closed(broker)) {
        spool_pump(spool, 1);
    }
    broker->ops->destroy(broker);
}

/* True when it worked, so that nothing more can fail. */
static bool
open_with_failure(struct spool *spool, uint64_t nth)
{
    struct lw_broker *broker = NULL;
    struct lw_source *source = NULL;
    struct lw_error error = { 0 };
    const struct lw_source_options options = client_options("orders", "group");
    const struct lw_broker_ops *ops = lw_spool_broker_ops();
    lw_alloc_fail_at(nth);
    enum lw_status status = ops->create(spool->host, "oom", spool->url, NULL, 0, &broker,
                                        &error);
    if (status == LW_STATUS_OK) {
        status = ops->subscribe(broker, &options, &source, &error);
    }
    if (status == LW_STATUS_OK) {
        status = ops->start(broker, &error);
    }
    lw_alloc_fail_at(0);
    if (status == LW_STATUS_OK) {
        end(spool, broker);
        return true;
    }
    assert_int_equal(status, LW_STATUS_NO_MEMORY);
    assert_int_equal(error.status, LW_STATUS_NO_MEMORY);
    if (broker) {
        ops->destroy(broker);
    }
    return false;
}

static void
opening_without_memory_is_refused(void **state)
{
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 0, 3);
    spool_close(*state, client);
    uint64_t live = lw_alloc_live();
    uint64_t nth = 1;
    while (!open_with_failure(*state, nth)) {
        assert_int_equal(lw_alloc_live(), live);
        nth++;
        assert_true(nth < NTH_MAX);
    }
    assert_true(nth > 10);
    assert_int_equal(lw_alloc_live(), live);
}

/* Publishes until it is accepted and confirmed. */
static void
publish_stubbornly(struct spool *spool, struct client *client, const char *value)
{
    size_t index = SIZE_MAX;
    do {
        index = client_publish(client, "orders", "key", value);
        if (index != SIZE_MAX) {
            spool_await_receipts(spool, client, client->sent_count);
        }
        spool_pump(spool, 1);
        client_events(client);
    } while (index == SIZE_MAX || client->sent[index].status != LW_STATUS_OK);
}

static void
work_goes_on_when_there_is_memory_again(void **state)
{
    struct spool *spool = *state;
    uint64_t live = lw_alloc_live();
    struct client *client = spool_open(spool, "orders");
    for (uint64_t nth = 1; nth <= 12; nth++) {
        lw_alloc_fail_at(nth);
        publish_stubbornly(spool, client, "value");
        lw_alloc_fail_at(0);
    }
    spool_receive(spool, client, 12);
    for (size_t i = 0; i < client->message_count; i++) {
        client_ack(client, i);
    }
    spool_close(spool, client);
    assert_int_equal(lw_alloc_live(), live);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {
        TEST(opening_without_memory_is_refused),
        TEST(work_goes_on_when_there_is_memory_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
