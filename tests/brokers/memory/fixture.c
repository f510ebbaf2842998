/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of the memory broker's tests. Ending it is a test of its own: every client stops
 * its sources, answers its revokes, releases, closes and is told so, and then no allocation is
 * left over from before the fixture was made.
 */
#include "tests/support/test.h"

#include "tests/brokers/memory/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t live_before;
static int fixture_count; /* a failed test leaves its hub behind: the next has another name */

struct fixture *
fixture_create(const struct lw_memory_options *options)
{
    live_before = lw_alloc_live();
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    virtual_host_init(&fixture->virtual_host, 1);
    snprintf(fixture->url, sizeof fixture->url, "memory:fixture%d", fixture_count++);
    fixture->hub = lw_memory_hub_open(strchr(fixture->url, ':') + 1, options);
    assert_non_null(fixture->hub);
    return fixture;
}

static void
end_client(struct fixture *fixture, struct client *client)
{
    client_events(client);
    client->ops->stop_sources(client->broker);
    fixture_settle(fixture);
    client_events(client);
    client_answer(client);
    fixture_settle(fixture);
    client_release_all(client);
    client->ops->close(client->broker);
    fixture_settle(fixture);
    assert_true(client_count(client_events(client), "closed") == 1);
    for (size_t i = 0; i < client->sent_count; i++) {
        assert_int_equal(client->sent[i].receipts, 1);
    }
}

void
fixture_destroy(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->client_count; i++) {
        end_client(fixture, fixture->clients[i]);
    }
    for (size_t i = 0; i < fixture->client_count; i++) {
        client_destroy(fixture->clients[i]);
    }
    lw_memory_hub_close(fixture->hub);
    free(fixture);
    assert_int_equal(lw_alloc_live(), live_before);
}

struct client *
fixture_client(struct fixture *fixture, const char *name)
{
    struct client *client = client_create(&fixture->virtual_host.host, lw_memory_broker_ops(),
                                          name, fixture->url);
    fixture->clients[fixture->client_count++] = client;
    return client;
}

struct client *
fixture_member(struct fixture *fixture, const char *name, const char *topic, const char *group)
{
    struct client *client = fixture_client(fixture, name);
    client_subscribe(client, topic, group);
    client_start(client);
    fixture_agree(fixture);
    return client;
}

void
fixture_kill(struct fixture *fixture, struct client *client, bool is_applied)
{
    lw_memory_broker_vanish(client->broker, is_applied);
    client_release_all(client);
    client_destroy(client);
    for (size_t i = 0; i < fixture->client_count; i++) {
        if (fixture->clients[i] == client) {
            fixture->clients[i] = fixture->clients[--fixture->client_count];
        }
    }
}

void
fixture_fill(struct fixture *fixture, const char *topic, const char *key, int count)
{
    for (int i = 0; i < count; i++) {
        char value[32];
        snprintf(value, sizeof value, "m%d", i);
        struct lw_memory_item item = lw_memory_item_of(topic, key, value);
        assert_int_equal(lw_memory_hub_publish(fixture->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

void
fixture_settle(struct fixture *fixture)
{
    virtual_host_settle(&fixture->virtual_host);
}

void
fixture_agree(struct fixture *fixture)
{
    size_t asked = 0;
    do {
        fixture_settle(fixture);
        asked = 0;
        for (size_t i = 0; i < fixture->client_count; i++) {
            client_events(fixture->clients[i]);
            asked += fixture->clients[i]->revoking_count;
            client_answer(fixture->clients[i]);
        }
    } while (asked > 0);
}
