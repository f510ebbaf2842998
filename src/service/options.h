/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option rows of the public structs: the one source of their defaults, of the keys of a
 * configuration file, of the plan, the JSON Schema and the reference page. Offsets are those of
 * struct lw_dispatcher_options and struct lw_subscription_options in <laneway/laneway.h>; the
 * rows that only a file has are in config_rows.h.
 */
#ifndef LW_SERVICE_OPTIONS_H
#define LW_SERVICE_OPTIONS_H

#include "base/option.h"

extern const struct lw_option lw_dispatcher_rows[];   /* struct lw_dispatcher_options */
extern const struct lw_option lw_subscription_rows[]; /* ..subscription_options: a pipeline */
extern const struct lw_option lw_topic_rows[];        /* ..: what one topic may set apart */
extern const struct lw_option lw_handler_rows[];      /* ..: how its handler is run */
extern const struct lw_option lw_processes_rows[];    /* struct lw_processes_tuning */
extern const struct lw_option lw_http_rows[];         /* struct lw_http_options */
extern const struct lw_option lw_backoff_rows[];      /* struct lw_backoff_options: copies */
extern const struct lw_option lw_in_place_backoff_rows[]; /* ..: retries in place */

/* What a profile sets for the values that the user leaves alone. */
struct lw_profile_row {
    const char *name;
    const char *doc;
    enum lw_profile profile;
    uint32_t receiver_queue_size;
    uint32_t max_in_flight;
    bool is_window_fixed; /* false: steered between 1 and receiver_queue_size */
};

/* Returns the row of a profile; never NULL. */
const struct lw_profile_row *lw_profile_find(enum lw_profile profile);
/* Returns all five, in the order of the enum. */
const struct lw_profile_row *lw_profile_rows(size_t *ret_count);

#endif
