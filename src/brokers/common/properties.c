/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of properties with strings of its own: what a broker was given must outlive the call that
 * gave it. What the names mean, and which may be given, their client's module knows.
 */
#include "brokers/common/properties.h"

#include <string.h>

#include "base/alloc.h"

bool
lw_properties_copy(struct lw_properties *properties, const struct lw_property *from,
                   size_t count)
{
    properties->count = 0;
    properties->items = count ? lw_alloc_array(count, sizeof *properties->items) : NULL;
    if (count && !properties->items) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct lw_property *item = &properties->items[properties->count++];
        item->name = lw_copy_text(from[i].name);
        item->value = lw_copy_text(from[i].value ? from[i].value : "");
        if (!item->name || !item->value) {
            lw_properties_deinit(properties);
            return false;
        }
    }
    return true;
}

void
lw_properties_deinit(struct lw_properties *properties)
{
    for (size_t i = 0; i < properties->count; i++) {
        lw_free((void *)(uintptr_t)properties->items[i].name);
        lw_free((void *)(uintptr_t)properties->items[i].value);
    }
    lw_free(properties->items);
    properties->items = NULL;
    properties->count = 0;
}

const char *
lw_properties_get(const struct lw_properties *properties, const char *name)
{
    for (size_t i = properties->count; i > 0; i--) {
        if (strcmp(properties->items[i - 1].name, name) == 0) {
            return properties->items[i - 1].value;
        }
    }
    return NULL;
}

static bool
is_part_of(const struct lw_properties *a, const struct lw_properties *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const char *mine = lw_properties_get(a, a->items[i].name);
        const char *other = lw_properties_get(b, a->items[i].name);
        if (!mine || !other || strcmp(mine, other) != 0) {
            return false;
        }
    }
    return true;
}

bool
lw_properties_are_equal(const struct lw_properties *a, const struct lw_properties *b)
{
    return is_part_of(a, b) && is_part_of(b, a);
}
