/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual host, one hub, and clients of it: what every test of the memory broker stands on. */
#ifndef TESTS_BROKERS_MEMORY_FIXTURE_H
#define TESTS_BROKERS_MEMORY_FIXTURE_H

#include "brokers/memory/broker.h"
#include "brokers/memory/hub.h"
#include "tests/brokers/client.h"
#include "tests/support/virtual_host.h"

struct fixture {
    struct virtual_host virtual_host;
    struct lw_memory_hub *hub;
    char url[32];
    struct client *clients[4];
    size_t client_count;
};

#define SECONDS(n) ((uint64_t)(n)*1000 * LW_MS)

/* options NULL: the defaults. */
struct fixture *fixture_create(const struct lw_memory_options *options);
/* Closes every client in good order and checks that nothing is left in memory. */
void fixture_destroy(struct fixture *fixture);
/* A client that is not started yet. */
struct client *fixture_client(struct fixture *fixture, const char *name);
/* A started client of one topic; what happened at the start was told and is forgotten. */
struct client *
fixture_member(struct fixture *fixture, const char *name, const char *topic, const char *group);
/* The client's process dies; it is gone from the fixture. */
void fixture_kill(struct fixture *fixture, struct client *client, bool is_applied);
/* Publishes `count` messages "m0", "m1", … with that key (NULL none). */
void fixture_fill(struct fixture *fixture, const char *topic, const char *key, int count);
void fixture_settle(struct fixture *fixture);
/* All clients answer what they are asked until nothing is asked any more. */
void fixture_agree(struct fixture *fixture);

#endif
