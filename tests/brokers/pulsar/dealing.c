/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's part: demand, events, receive, answers to revokes. Loopback delivers at once as a
 * rule; where it does not, the moved clock runs ahead, which costs a try and nothing else.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/broker.h"
#include "tests/brokers/pulsar/dealing.h"

enum { DEMAND = 100, LOOK_EVERY = 8 };

static void
on_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
       void *user)
{
    struct dealing *dealing = user;
    size_t length = strlen(dealing->log);
    (void)level;
    (void)snprintf(dealing->log + length, sizeof dealing->log - length, "%s %s %s\n", event,
                   text, fields);
}

void
dealing_init(struct dealing *dealing)
{
    memset(dealing, 0, sizeof *dealing);
    dealing->live = lw_alloc_live();
    virtual_host_init(&dealing->virtual_host, 1);
    dealing->virtual_host.host.log = on_log;
    dealing->virtual_host.host.log_user = dealing;
    embedded_settings_init(&dealing->settings);
}

void
dealing_serve(struct dealing *dealing)
{
    dealing->broker = embedded_create(&dealing->virtual_host.host, &dealing->settings);
}

void
dealing_property(struct dealing *dealing, const char *name, const char *value)
{
    assert_true(dealing->property_count < DEALING_PROPERTIES_MAX);
    dealing->properties[dealing->property_count++] = (struct lw_property){ name, value };
}

void
dealing_open(struct dealing *dealing)
{
    dealing->client = client_create_with(&dealing->virtual_host.host, lw_pulsar_broker_ops(),
                                         "client", embedded_url(dealing->broker, 0),
                                         dealing->properties, dealing->property_count);
}

struct lw_source_options
dealing_options(const char *topic)
{
    static const struct lw_property properties[] = { { "consumer_type", "Shared" },
                                                     { "initial_position", "Earliest" } };
    struct lw_source_options options = client_options(topic, "s");
    options.properties = properties;
    options.property_count = 2;
    return options;
}

/* -- Waiting --------------------------------------------------------------------------------------- */

static uint64_t
moved(const struct dealing *dealing)
{
    const struct embedded_counts *counts = embedded_counts(dealing->broker);
    return counts->bytes_in + counts->bytes_out + counts->connections;
}

bool
dealing_await(struct dealing *dealing, dealing_fn is_true, void *user, int64_t limit_ms)
{
    struct virtual_host *virtual_host = &dealing->virtual_host;
    uint64_t end = virtual_host->host.now + (uint64_t)limit_ms * LW_MS;
    for (uint32_t idle = 0;;) {
        virtual_host_settle(virtual_host);
        (void)client_events(dealing->client);
        if (is_true(dealing, user)) {
            return true;
        }
        uint64_t before = moved(dealing);
        virtual_host_settle(virtual_host); /* what was asked for goes out, */
        virtual_host_settle(virtual_host); /* and is heard */
        if (moved(dealing) != before) {
            continue;
        }
        if (++idle % LOOK_EVERY == 0) {
            (void)poll(NULL, 0, 1);
        } else if (!virtual_host_jump(virtual_host, end)) {
            return false;
        }
    }
}

void
dealing_until(struct dealing *dealing, dealing_fn is_true, void *user, int64_t limit_ms)
{
    if (!dealing_await(dealing, is_true, user, limit_ms)) {
        fail_msg("it did not come in time; %s", dealing->log);
    }
}

static bool
never(struct dealing *dealing, void *user)
{
    (void)dealing, (void)user;
    return false;
}

void
dealing_pass_ms(struct dealing *dealing, int64_t ms)
{
    struct virtual_host *virtual_host = &dealing->virtual_host;
    uint64_t end = virtual_host->host.now + (uint64_t)ms * LW_MS;
    (void)dealing_await(dealing, never, NULL, ms);
    virtual_host->host.now = end;
    virtual_host_settle(virtual_host);
    (void)client_events(dealing->client);
}

size_t
dealing_live(const struct dealing *dealing)
{
    size_t count = 0;
    for (size_t i = 0; i < dealing->client->slot_count; i++) {
        count += dealing->client->slots[i].is_live;
    }
    return count;
}

static bool
is_live(struct dealing *dealing, void *user)
{
    return dealing_live(dealing) == *(const size_t *)user;
}

void
dealing_until_live(struct dealing *dealing, size_t slots)
{
    dealing_until(dealing, is_live, &slots, 60000);
}

size_t
dealing_receive(struct dealing *dealing)
{
    struct client *client = dealing->client;
    size_t before = client->message_count;
    for (size_t i = 0; i < client->source_count; i++) {
        size_t room = CLIENT_HELD_MAX - client->message_count;
        (void)client_receive(client, client->sources[i], room < DEMAND ? room : DEMAND);
        client->ops->demand(client->sources[i], DEMAND, 1 << 20);
    }
    return client->message_count - before;
}

static bool
has_messages(struct dealing *dealing, void *user)
{
    (void)dealing_receive(dealing);
    return dealing->client->message_count >= *(const size_t *)user;
}

void
dealing_until_messages(struct dealing *dealing, size_t count)
{
    dealing_until(dealing, has_messages, &count, 60000);
}

/* -- Ending ---------------------------------------------------------------------------------------- */

static bool
is_given_up(struct dealing *dealing, void *user)
{
    (void)user;
    client_answer(dealing->client);
    return dealing_live(dealing) == 0;
}

static bool
is_closed(struct dealing *dealing, void *user)
{
    (void)user;
    return dealing->client->is_closed;
}

void
dealing_close(struct dealing *dealing)
{
    struct client *client = dealing->client;
    client->ops->stop_sources(client->broker);
    dealing_until(dealing, is_given_up, NULL, 60000);
    client_release_all(client);
    client->ops->close(client->broker);
    dealing_until(dealing, is_closed, NULL, 60000);
    client_destroy(client);
    dealing->client = NULL;
}

void
dealing_deinit(struct dealing *dealing)
{
    const struct embedded_counts *counts = embedded_counts(dealing->broker);
    if (counts->violations > 0 || counts->protocol_errors > 0) {
        fail_msg("%s %s", counts->first_violation, counts->last_error);
    }
    virtual_host_settle(&dealing->virtual_host);
    assert_int_equal(embedded_consumers(dealing->broker, NULL), 0);
    assert_int_equal(embedded_producers(dealing->broker, NULL), 0);
    embedded_destroy(dealing->broker);
    virtual_host_settle(&dealing->virtual_host);
    assert_true(lw_list_is_empty(&dealing->virtual_host.watches));
    assert_int_equal(lw_alloc_live(), dealing->live);
}

size_t
dealing_logged(const struct dealing *dealing, const char *event)
{
    return client_count(dealing->log, event);
}
