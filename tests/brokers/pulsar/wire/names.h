/* SPDX-License-Identifier: Apache-2.0 */
/* Field names of the protocol, by command type (below 1000) or by part. See names.c. */
#ifndef TESTS_BROKERS_PULSAR_WIRE_NAMES_H
#define TESTS_BROKERS_PULSAR_WIRE_NAMES_H

#include "brokers/pulsar/wire/command.h"

enum {
    NAMES_FEATURE_FLAGS = 1000,
    NAMES_AUTH_DATA,
    NAMES_SCHEMA,
    NAMES_KEY_SHARED,
    NAMES_MESSAGE_ID,
    NAMES_METADATA,
    NAMES_ENTRY_METADATA,
};

struct capture_name {
    int scope; /* a command type or one of the parts above */
    unsigned id;
    const char *name;
    bool is_hex;
};

/* NULL when the scope has no such field. */
const struct capture_name *capture_name_find(int scope, const char *name);

#endif
