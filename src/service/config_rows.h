/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of the whole file: the rows of the public options structs (options.h) put into
 * their sections, and the rows that only a file has. Keys of later versions are rows too, so
 * that they are refused by name.
 */
#ifndef LW_SERVICE_CONFIG_ROWS_H
#define LW_SERVICE_CONFIG_ROWS_H

#include "base/option.h"

extern const struct lw_option lw_config_root;           /* a GROUP: the file */
extern const struct lw_option lw_service_rows[];        /* struct lw_config_service */
extern const struct lw_option lw_broker_rows[];         /* struct lw_config_broker */
extern const struct lw_option lw_config_handler_rows[]; /* struct lw_config_handler */
extern const struct lw_option lw_pipeline_rows[];       /* struct lw_config_pipeline */
extern const struct lw_option lw_topic_entry_rows[];    /* struct lw_subscription_options */

#endif
