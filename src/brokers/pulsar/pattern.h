/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern of topics for discovery: the namespace is fixed, the topic's own name is a regular
 * expression that must match all of it: `orders_.*`, `tenant/ns/orders_.*`,
 * `persistent://tenant/ns/.*`. Written as other clients write it; it is judged by the C library's
 * extended expressions, so \d, \w, \s, (?:...) and lazy quantifiers are translated, and what has
 * no counterpart (look-around, back references) is refused before anything is sent.
 */
#ifndef LW_BROKERS_PULSAR_PATTERN_H
#define LW_BROKERS_PULSAR_PATTERN_H

#include <regex.h>

#include "brokers/pulsar/names.h"

enum { LW_PULSAR_PATTERN_BYTES = 512 };

/* Which topics of the namespace are looked at; values as on the wire. */
enum lw_pulsar_regex_mode {
    LW_PULSAR_REGEX_PERSISTENT = 0,
    LW_PULSAR_REGEX_NON_PERSISTENT = 1,
    LW_PULSAR_REGEX_ALL = 2
};

struct lw_pulsar_pattern {
    char namespace_name[LW_PULSAR_NAME_BYTES];
    char text[LW_PULSAR_PATTERN_BYTES]; /* of the topic's own name, as the user wrote it */
    enum lw_pulsar_regex_mode mode;
    regex_t regex;
};

/* Compiles; INVALID with E0124. The caller ends it with deinit. */
enum lw_status
lw_pulsar_pattern_init(struct lw_pulsar_pattern *pattern, const char *text,
                       enum lw_pulsar_regex_mode mode, struct lw_error *ret_error);
void lw_pulsar_pattern_deinit(struct lw_pulsar_pattern *pattern);
/*
 * True when the topic belongs to the pattern: a partition is judged by its base name, and the
 * broker's own topics never belong.
 */
bool lw_pulsar_pattern_has(const struct lw_pulsar_pattern *pattern, const char *topic);

#endif
