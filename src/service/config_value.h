/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value against its row: type, unit, range, word. Also the values inside lists, properties
 * and number maps, which have no rows of their own.
 */
#ifndef LW_SERVICE_CONFIG_VALUE_H
#define LW_SERVICE_CONFIG_VALUE_H

#include "service/config_node.h"

/* Reports what is wrong and marks the node (or the item of its list) bad. */
void lw_config_value_check(struct lw_node *node, struct lw_diagnostics *diagnostics);

#endif
