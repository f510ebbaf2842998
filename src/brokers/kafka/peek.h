/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a topic for a person (`laneway peek`): without a group, without committing anything, on
 * a client of its own. Blocking; for the command, on a broker that was created and never started.
 */
#ifndef LW_BROKERS_KAFKA_PEEK_H
#define LW_BROKERS_KAFKA_PEEK_H

#include "brokers/common/peek.h"

/*
 * NOT_FOUND without the topic or partition; UNAVAILABLE when nobody answers; UNSUPPORTED for a
 * place or a time.
 */
enum lw_status
lw_kafka_peek(struct lw_broker *broker, const struct lw_peek *peek, struct lw_error *ret_error);

#endif
