/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON writer into a lw_text: commas and nesting are kept by the writer, strings escaped,
 * invalid UTF-8 replaced by U+FFFD. Reading is jansson's. base64 for bytes lives here too.
 */
#ifndef LW_BASE_JSON_H
#define LW_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct lw_json {
    struct lw_text *text;
    uint64_t has_item; /* one bit per nesting level */
    uint32_t depth;
    bool is_after_key;
};

void lw_json_init(struct lw_json *json, struct lw_text *text);
void lw_json_object(struct lw_json *json);
void lw_json_object_end(struct lw_json *json);
void lw_json_array(struct lw_json *json);
void lw_json_array_end(struct lw_json *json);
void lw_json_key(struct lw_json *json, const char *key);
void lw_json_key_bytes(struct lw_json *json, struct lw_bytes key);
void lw_json_string(struct lw_json *json, const char *value);    /* NULL writes null */
void lw_json_bytes(struct lw_json *json, struct lw_bytes value); /* as text; null view: null */
void lw_json_base64(struct lw_json *json, struct lw_bytes value);
void lw_json_int(struct lw_json *json, int64_t value);
void lw_json_double(struct lw_json *json, double value);
void lw_json_bool(struct lw_json *json, bool value);
void lw_json_null(struct lw_json *json);
/* Strict RFC 4648 with padding; false on any other input. *ret_data is freed by the caller. */
bool lw_base64_decode(const char *text, size_t length, void **ret_data, size_t *ret_size);
/* "2026-01-02T03:04:05.678Z"; out holds at least 32 bytes. Years 0 to 9999, clamped to them. */
void lw_json_time(int64_t wall_ms, char out[32]);

#endif
