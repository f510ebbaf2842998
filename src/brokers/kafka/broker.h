/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka broker on librdkafka. `kafka://host:port[,host:port]`; read kafka.h for its parts. */
#ifndef LW_BROKERS_KAFKA_BROKER_H
#define LW_BROKERS_KAFKA_BROKER_H

#include <laneway/plugin.h>

const struct lw_broker_ops *lw_kafka_broker_ops(void);
/* The client library's version, such as "2.0.2". */
const char *lw_kafka_client_version(void);
/* Last statistics (JSON) of the consumer of that group, or of the producer (NULL). May be NULL. */
const char *lw_kafka_broker_statistics(const struct lw_broker *broker, const char *group);

#endif
