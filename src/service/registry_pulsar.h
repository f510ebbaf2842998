/* SPDX-License-Identifier: Apache-2.0 */
/* What the Pulsar client says about its part of a configuration, for the registry. */
#ifndef LW_SERVICE_REGISTRY_PULSAR_H
#define LW_SERVICE_REGISTRY_PULSAR_H

#include "service/config.h"

const struct lw_config_client *lw_registry_pulsar(void);

#endif
