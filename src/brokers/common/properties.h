/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of a client library as they were given to a broker or a subscription, copied. Of a
 * name that came twice the last value counts. Pure; one thread.
 */
#ifndef LW_BROKERS_COMMON_PROPERTIES_H
#define LW_BROKERS_COMMON_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

#include <laneway/laneway.h>

struct lw_properties {
    struct lw_property *items;
    size_t count;
};

/* False without memory; then the list is empty. */
bool lw_properties_copy(struct lw_properties *properties, const struct lw_property *from,
                        size_t count);
void lw_properties_deinit(struct lw_properties *properties);
/* The value given last, or NULL. */
const char *lw_properties_get(const struct lw_properties *properties, const char *name);
/* True when both say the same, in whatever order. */
bool lw_properties_are_equal(const struct lw_properties *a, const struct lw_properties *b);

#endif
