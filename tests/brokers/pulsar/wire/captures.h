/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/data/pulsar-captures.json: frames seen between real clients and a real broker, with the
 * fields that another decoder found in them. Numbers of 2^63 and above are written as the
 * negative numbers of the same 64 bits.
 */
#ifndef TESTS_BROKERS_PULSAR_WIRE_CAPTURES_H
#define TESTS_BROKERS_PULSAR_WIRE_CAPTURES_H

#include <jansson.h>

#include "brokers/pulsar/wire/fields.h"
#include "brokers/pulsar/wire/message.h"

/* The array of all captures; the caller drops it with json_decref. */
json_t *captures_load(void);
/* The bytes of a text in hexadecimal (spaces allowed), to be freed with hex_free. */
struct lw_bytes hex_bytes(const char *hex);
void hex_free(struct lw_bytes bytes);
/* Fails the test unless the struct holds exactly what the object says: each field, no other. */
void check_fields(int scope, const struct lw_pulsar_table *table, const void *decoded,
                  const json_t *expected);

#endif
