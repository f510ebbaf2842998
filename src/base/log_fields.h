/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a log line, `key=value key="quoted value"`, taken apart: what the text form and
 * the JSON form of base/log share. Pure.
 */
#ifndef LW_BASE_LOG_FIELDS_H
#define LW_BASE_LOG_FIELDS_H

#include <stdbool.h>

#include "base/json.h"
#include "base/text.h"

struct lw_log_field {
    struct lw_bytes key;
    struct lw_bytes value; /* without its quotes, still escaped */
    bool is_quoted;
};

/* Takes the next field off *at; false at the end. What has no key gets the key "detail". */
bool lw_log_field_next(const char **at, struct lw_log_field *ret_field);
/* Appends a value without its escapes. */
void lw_log_field_append(struct lw_text *text, const struct lw_log_field *field);
/* Writes all fields into the open JSON object; `scratch` is for unescaping. */
void lw_log_fields_to_json(struct lw_json *json, const char *fields, struct lw_text *scratch);
/* Appends all fields as text, each after one space, values quoted where they need it. */
void lw_log_fields_to_text(struct lw_text *text, const char *fields, struct lw_text *scratch);
/* Appends text for a person: control characters and bytes that are no UTF-8 made visible. */
void lw_log_append_clean(struct lw_text *text, struct lw_bytes bytes);

#endif
