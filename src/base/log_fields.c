/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes log fields apart and writes them in both forms. Whatever is in a value, a line stays one
 * line and a terminal is not told to do anything: control characters are made visible. A value
 * that was not quoted by its writer may still hold spaces: it ends before the next ` key=`. Pure.
 */
#include "base/log_fields.h"

#include <string.h>

static bool
is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '-';
}

/* Returns the length of the key that stands at `at` with its equals sign behind it, else 0. */
static size_t
key_length(const char *at)
{
    size_t length = 0;
    while (is_key_char(at[length])) {
        length++;
    }
    return at[length] == '=' ? length : 0;
}

/* Returns the end of a value without quotes: before the next ` key=`. */
static const char *
find_end(const char *at)
{
    while (*at && !(*at == ' ' && key_length(at + 1) > 0)) {
        at++;
    }
    return at;
}

/* Returns the closing quote, or the end of the text when somebody cut it off. */
static const char *
find_quote(const char *at)
{
    while (*at && *at != '"') {
        at += at[0] == '\\' && at[1] ? 2 : 1;
    }
    return at;
}

bool
lw_log_field_next(const char **at, struct lw_log_field *ret_field)
{
    const char *from = *at + strspn(*at, " ");
    if (*from == '\0') {
        return false;
    }
    size_t length = key_length(from);
    ret_field->key = length ? (struct lw_bytes){ from, length } : lw_bytes_of("detail");
    from += length ? length + 1 : 0;
    ret_field->is_quoted = length && *from == '"';
    from += ret_field->is_quoted;
    const char *end = ret_field->is_quoted ? find_quote(from) : find_end(from);
    ret_field->value = (struct lw_bytes){ from, (size_t)(end - from) };
    *at = end + (ret_field->is_quoted && *end == '"');
    return true;
}

static char
unescaped(char c)
{
    static const char from[] = "nrt";
    static const char to[] = "\n\r\t";
    const char *found = memchr(from, c, sizeof from - 1);
    return found ? to[found - from] : c;
}

void
lw_log_field_append(struct lw_text *text, const struct lw_log_field *field)
{
    const char *from = (const char *)field->value.data;
    if (!field->is_quoted) {
        lw_text_append_bytes(text, from, field->value.size);
        return;
    }
    for (size_t i = 0; i < field->value.size; i++) {
        bool is_escaped = from[i] == '\\' && i + 1 < field->value.size;
        i += is_escaped;
        lw_text_append_char(text, is_escaped ? unescaped(from[i]) : from[i]);
    }
}

/* Appends a byte that must not reach a terminal, by its number. */
static void
append_visible(struct lw_text *text, unsigned char c)
{
    if (c == '\n') {
        lw_text_append(text, "\\n");
    } else if (c == '\t') {
        lw_text_append_char(text, ' ');
    } else {
        lw_text_format(text, "\\x%02x", c);
    }
}

/* U+0080 to U+009F are control characters too: a terminal may take U+009B for escape [. */
static bool
is_control(const unsigned char *at, size_t size)
{
    return (size == 1 && (at[0] < 0x20 || at[0] == 0x7f)) ||
           (size == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

void
lw_log_append_clean(struct lw_text *text, struct lw_bytes bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t rest = bytes.size;
    while (rest > 0) {
        size_t size = lw_text_utf8_size(at, rest);
        if (size == 0 || is_control(at, size)) {
            append_visible(text, at[0]);
            size = 1;
        } else {
            lw_text_append_bytes(text, at, size);
        }
        at += size;
        rest -= size;
    }
}

/* A whole number as JSON writes it and any reader keeps it exactly: at most 15 digits. */
static bool
is_number(struct lw_bytes value, int64_t *ret_number)
{
    const char *from = (const char *)value.data;
    size_t sign = value.size > 0 && from[0] == '-';
    bool is_padded = value.size > sign + 1 && from[sign] == '0';
    return value.size - sign <= 15 && !is_padded && from[0] != '+' &&
           lw_bytes_to_int(value, ret_number);
}

static void
field_to_json(struct lw_json *json, const struct lw_log_field *field, struct lw_text *scratch)
{
    int64_t number = 0;
    lw_json_key_bytes(json, field->key);
    if (!field->is_quoted && is_number(field->value, &number)) {
        lw_json_int(json, number);
    } else if (!field->is_quoted && lw_text_is_equal(field->value, "true")) {
        lw_json_bool(json, true);
    } else if (!field->is_quoted && lw_text_is_equal(field->value, "false")) {
        lw_json_bool(json, false);
    } else {
        lw_text_clear(scratch);
        lw_log_field_append(scratch, field);
        lw_json_bytes(json,
                      (struct lw_bytes){ scratch->data ? scratch->data : "", scratch->size });
    }
}

void
lw_log_fields_to_json(struct lw_json *json, const char *fields, struct lw_text *scratch)
{
    struct lw_log_field field;
    while (lw_log_field_next(&fields, &field)) {
        field_to_json(json, &field, scratch);
    }
}

static bool
needs_quotes(const struct lw_text *value)
{
    return value->size == 0 || strpbrk(value->data, " \"=\n\t") != NULL;
}

/* Quotes inside of quotes are escaped again; the rest is made visible. */
static void
append_quoted(struct lw_text *text, const struct lw_text *value)
{
    lw_text_append_char(text, '"');
    const char *at = value->size ? value->data : "";
    while (*at) {
        size_t run = strcspn(at, "\"");
        lw_log_append_clean(text, (struct lw_bytes){ at, run });
        at += run;
        if (*at) {
            lw_text_append(text, "\\\"");
            at++;
        }
    }
    lw_text_append_char(text, '"');
}

void
lw_log_fields_to_text(struct lw_text *text, const char *fields, struct lw_text *scratch)
{
    struct lw_log_field field;
    while (lw_log_field_next(&fields, &field)) {
        lw_text_clear(scratch);
        lw_log_field_append(scratch, &field);
        lw_text_append_char(text, ' ');
        lw_text_append_bytes(text, field.key.data, field.key.size);
        lw_text_append_char(text, '=');
        if (needs_quotes(scratch)) {
            append_quoted(text, scratch);
        } else {
            lw_log_append_clean(text, (struct lw_bytes){ scratch->data, scratch->size });
        }
    }
}
