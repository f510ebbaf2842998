/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a spool's topic for a person: brokers/common/peek.h. */
#ifndef LW_BROKERS_SPOOL_PEEK_H
#define LW_BROKERS_SPOOL_PEEK_H

#include "brokers/common/peek.h"

enum lw_status
lw_spool_peek(struct lw_broker *broker, const struct lw_peek *peek, struct lw_error *ret_error);

#endif
