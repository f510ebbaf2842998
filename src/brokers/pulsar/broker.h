/* SPDX-License-Identifier: Apache-2.0 */
/* The Pulsar broker's table, for the registry. */
#ifndef LW_BROKERS_PULSAR_BROKER_H
#define LW_BROKERS_PULSAR_BROKER_H

#include <laneway/plugin.h>

const struct lw_broker_ops *lw_pulsar_broker_ops(void);

#endif
