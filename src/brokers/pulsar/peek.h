/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a topic for a person (`laneway peek`): by readers, whose subscriptions are forgotten with
 * them, so nobody's place moves. Blocking; for the command, on a broker that was created and never
 * started.
 */
#ifndef LW_BROKERS_PULSAR_PEEK_H
#define LW_BROKERS_PULSAR_PEEK_H

#include "brokers/common/peek.h"

/*
 * NOT_FOUND without the topic or partition; UNAVAILABLE when nobody answers; UNSUPPORTED for an
 * offset or a tail; INVALID for a place that is none.
 */
enum lw_status lw_pulsar_peek(struct lw_broker *broker, const struct lw_peek *peek,
                              struct lw_error *ret_error);

#endif
