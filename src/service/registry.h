/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which brokers and engines exist: the only place that knows. A new one is one line in
 * registry.c.
 */
#ifndef LW_SERVICE_REGISTRY_H
#define LW_SERVICE_REGISTRY_H

#include <laneway/plugin.h>

#include "service/config.h"

/* Finds the broker by the URL's scheme; NULL and *ret_error when there is none. */
const struct lw_broker_ops *lw_registry_broker(const char *url, struct lw_error *ret_error);

struct lw_peek;

/* Reads a topic for a person (brokers/common/peek.h). UNSUPPORTED for the memory broker. */
enum lw_status lw_registry_peek(struct lw_broker *broker, const struct lw_peek *peek,
                                struct lw_error *ret_error);

/* What an engine is to run. */
struct lw_engine_request {
    const char *name; /* shown in logs */
    const struct lw_subscription_options *options;
    const struct lw_config_handler *handler; /* NULL: not from a configuration */
};

/* Makes the engine that the options ask for. INVALID when its kind cannot run what is given. */
enum lw_status
lw_registry_engine(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
                   struct lw_engine **ret_engine, struct lw_error *ret_error);
/* What the client of that kind of broker says; NULL when there is none, or it is not built in. */
const struct lw_config_client *lw_registry_client(enum lw_config_broker_kind kind);
/* Puts the clients of all kinds into a source. */
void lw_registry_clients(struct lw_config_source *source);
/* Appends the names of all properties that can be given to the Kafka client, one a line. */
void lw_registry_client_properties(struct lw_text *out);

#endif
