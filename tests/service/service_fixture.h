/* SPDX-License-Identifier: Apache-2.0 */
/* A dispatcher of the public interface on a named memory hub, for the tests of the service. */
#ifndef TESTS_SERVICE_SERVICE_FIXTURE_H
#define TESTS_SERVICE_SERVICE_FIXTURE_H

#include <laneway/laneway.h>

#include "brokers/memory/hub.h"

struct service_fixture {
    struct lw_memory_hub *hub;
    struct lw_dispatcher *dispatcher;
    struct lw_subscription_options options; /* on `topic`, engine loop */
    struct lw_error error;
    char url[64];
};

/* cmocka set-up and teardown; teardown destroys what is left. */
int service_setup(void **state);
int service_teardown(void **state);

/* Another dispatcher on the same hub. */
struct lw_dispatcher *
service_create(struct service_fixture *fixture, const struct lw_dispatcher_options *options);
void service_publish(struct service_fixture *fixture, const char *topic, const char *key,
                     unsigned count);
uint64_t service_backlog(const struct service_fixture *fixture, const char *topic);
/* Waits until there is something to do, and does it; fails the test after a minute. */
void service_turn(struct lw_dispatcher *dispatcher);
/* Subscribes fixture->options and asserts that it went well. */
void service_subscribe(struct service_fixture *fixture);

#endif
