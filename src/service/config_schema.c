/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema of the file, for editors. Every table of rows becomes one definition, named by
 * its path; a queue of tables replaces recursion. A scalar may always be a reference such as
 * ${NAME} instead, since those are put in after parsing.
 */
#include <jansson.h>

#include <string.h>

#include "service/config.h"
#include "service/config_rows.h"

enum { TABLES_MAX = 32, NAME_BYTES_MAX = 96 };

struct table {
    char name[NAME_BYTES_MAX];
    const struct lw_option *rows;
    const char *doc;
};

struct schema {
    struct lw_json *json;
    struct table tables[TABLES_MAX];
    size_t count;
};

static void
put(struct lw_json *json, const char *key, const char *value)
{
    lw_json_key(json, key);
    lw_json_string(json, value);
}

static void
put_type(struct lw_json *json, const char *type)
{
    lw_json_object(json);
    put(json, "type", type);
    lw_json_object_end(json);
}

/* Notes a table for later and writes a reference to it. */
static void
put_reference(struct schema *schema, const struct table *owner, const char *name,
              const struct lw_option *rows, const char *doc)
{
    char target[NAME_BYTES_MAX + 16];
    struct table *table = &schema->tables[schema->count++];
    struct lw_text text;
    lw_text_init(&text);
    lw_text_format(&text, "%s%s%s", owner->name, owner->name[0] != '\0' ? "." : "", name);
    schema->json->text->is_failed |= text.is_failed;
    lw_text_copy(table->name, sizeof(table->name), text.data ? text.data : name);
    lw_text_deinit(&text);
    table->rows = rows;
    table->doc = doc;
    lw_text_copy(target, sizeof(target), "#/$defs/");
    lw_text_copy(target + strlen(target), sizeof(target) - strlen(target), table->name);
    lw_json_object(schema->json);
    put(schema->json, "$ref", target);
    lw_json_object_end(schema->json);
}

static void
put_indirect(struct lw_json *json)
{
    lw_json_object(json);
    put(json, "$ref", "#/$defs/reference");
    lw_json_object_end(json);
}

static void
put_pattern(struct lw_json *json, const char *pattern)
{
    lw_json_object(json);
    put(json, "type", "string");
    put(json, "pattern", pattern);
    lw_json_object_end(json);
}

static void
put_number(const struct lw_option *row, struct lw_json *json)
{
    lw_json_object(json);
    put(json, "type", row->type == LW_OPTION_DOUBLE ? "number" : "integer");
    if (row->min < row->max) {
        lw_json_key(json, "minimum");
        lw_json_int(json, (int64_t)row->min);
        lw_json_key(json, "maximum");
        lw_json_int(json, (int64_t)row->max);
    }
    lw_json_object_end(json);
}

static void
put_words(const struct lw_option_word *words, struct lw_json *json)
{
    lw_json_object(json);
    lw_json_key(json, "enum");
    lw_json_array(json);
    for (; words->word; words++) {
        if (!words->is_later) {
            lw_json_string(json, words->word);
        }
    }
    lw_json_array_end(json);
    lw_json_object_end(json);
}

static void
put_plain(struct lw_json *json)
{
    lw_json_object(json);
    lw_json_key(json, "type");
    lw_json_array(json);
    lw_json_string(json, "string");
    lw_json_string(json, "number");
    lw_json_string(json, "boolean");
    lw_json_array_end(json);
    lw_json_object_end(json);
}

static void
put_zero(struct lw_json *json)
{
    lw_json_object(json);
    lw_json_key(json, "const");
    lw_json_int(json, 0);
    lw_json_object_end(json);
}

static void
put_scalar(const struct lw_option *row, struct lw_json *json)
{
    switch (row->type) {
    case LW_OPTION_BOOL:
    case LW_OPTION_TRISTATE:
        put_type(json, "boolean");
        break;
    case LW_OPTION_INT:
    case LW_OPTION_UINT:
    case LW_OPTION_DOUBLE:
        put_number(row, json);
        break;
    case LW_OPTION_DURATION:
        put_zero(json);
        put_pattern(json, "^([0-9]+(d|h|m|s|ms))+$");
        break;
    case LW_OPTION_BYTES:
        put_zero(json);
        put_pattern(json, "^[0-9]+([KMGT]iB|[kKMGT]?B)$");
        break;
    case LW_OPTION_TEXT:
        put_plain(json);
        break;
    case LW_OPTION_ENUM:
    case LW_OPTION_TEXTS:
    case LW_OPTION_DURATIONS:
    case LW_OPTION_PROPERTIES:
    case LW_OPTION_NUMBERS:
    case LW_OPTION_GROUP:
    case LW_OPTION_INCLUDE:
    case LW_OPTION_MAP:
    case LW_OPTION_LIST:
    case LW_OPTION_ANY:
    case LW_OPTION_LATER:
    case LW_OPTION_END:
        break;
    }
    if (row->words) {
        put_words(row->words, json);
    }
    put_indirect(json);
}

static void
put_array(const struct lw_option *row, struct lw_json *json)
{
    lw_json_object(json);
    put(json, "type", "array");
    lw_json_key(json, "items");
    if (row->type == LW_OPTION_DURATIONS) {
        put_pattern(json, "^([0-9]+(d|h|m|s|ms))+$|\\$\\{");
    } else {
        put_plain(json);
    }
    lw_json_object_end(json);
    if (row->is_list_of_text) {
        put_plain(json);
    }
}

static void
put_free_map(const struct lw_option *row, struct lw_json *json)
{
    lw_json_object(json);
    put(json, "type", "object");
    lw_json_key(json, "additionalProperties");
    if (row->type == LW_OPTION_NUMBERS) {
        put_type(json, "integer");
    } else {
        put_plain(json);
    }
    lw_json_object_end(json);
    if (row->type == LW_OPTION_PROPERTIES) {
        put_type(json, "null");
    }
}

static void
put_map(struct schema *schema, const struct table *owner, const struct lw_option *row)
{
    struct lw_json *json = schema->json;
    lw_json_object(json);
    put(json, "type", "object");
    lw_json_key(json, "minProperties");
    lw_json_int(json, 1);
    lw_json_key(json, "propertyNames");
    put_pattern(json, "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$");
    lw_json_key(json, "additionalProperties");
    put_reference(schema, owner, row->name, row->rows, row->doc);
    lw_json_object_end(json);
}

static void
put_list(struct schema *schema, const struct table *owner, const struct lw_option *row)
{
    struct lw_json *json = schema->json;
    lw_json_object(json);
    put(json, "type", "array");
    lw_json_key(json, "minItems");
    lw_json_int(json, 1);
    lw_json_key(json, "items");
    lw_json_object(json);
    lw_json_key(json, "anyOf");
    lw_json_array(json);
    put_reference(schema, owner, row->name, row->rows, row->doc);
    if (row->alternative) {
        put_plain(json);
    }
    lw_json_array_end(json);
    lw_json_object_end(json);
    lw_json_object_end(json);
    if (row->alternative) {
        put_reference(schema, owner, "family", row->alternative, row->doc);
    }
}

static void
put_section(struct schema *schema, const struct table *owner, const struct lw_option *row)
{
    put_reference(schema, owner, row->name, row->rows, row->doc);
    if (row->off_word) {
        lw_json_object(schema->json);
        put(schema->json, "const", row->off_word);
        lw_json_object_end(schema->json);
    }
    put_type(schema->json, "null");
}

static void
put_default(const struct lw_option *row, struct lw_json *json)
{
    union lw_option_value value;
    if (!row->initial || row->initial_note) {
        return;
    }
    bool is_number = row->type == LW_OPTION_INT || row->type == LW_OPTION_UINT;
    lw_json_key(json, "default");
    if (row->type == LW_OPTION_BOOL) {
        lw_json_bool(json, strcmp(row->initial, "true") == 0);
    } else if (is_number && lw_text_to_int(row->initial, &value.number)) {
        lw_json_int(json, value.number);
    } else {
        lw_json_string(json, row->initial);
    }
}

static void
put_row(struct schema *schema, const struct table *owner, const struct lw_option *row)
{
    struct lw_json *json = schema->json;
    lw_json_object(json);
    put(json, "description", row->doc);
    put_default(row, json);
    if (row->type != LW_OPTION_ANY) {
        lw_json_key(json, "anyOf");
        lw_json_array(json);
        if (lw_option_is_scalar(row)) {
            put_scalar(row, json);
        } else if (row->type == LW_OPTION_GROUP) {
            put_section(schema, owner, row);
        } else if (row->type == LW_OPTION_MAP) {
            put_map(schema, owner, row);
        } else if (row->type == LW_OPTION_LIST) {
            put_list(schema, owner, row);
        } else if (row->type == LW_OPTION_TEXTS || row->type == LW_OPTION_DURATIONS) {
            put_array(row, json);
        } else {
            put_free_map(row, json);
        }
        lw_json_array_end(json);
    }
    lw_json_object_end(json);
}

static void
put_key(struct schema *schema, const struct table *owner, const struct lw_option *row,
        const char *name)
{
    lw_json_key(schema->json, name);
    put_row(schema, owner, row);
}

static void
put_required(const struct table *table, struct lw_json *json)
{
    struct lw_option_walk walk;
    lw_json_key(json, "required");
    lw_json_array(json);
    lw_option_walk_start(&walk, table->rows, LW_WALK_FLAT);
    while (lw_option_walk_next(&walk)) {
        if (walk.row->is_required && !walk.row->alias) {
            lw_json_string(json, walk.row->name);
        }
    }
    lw_json_array_end(json);
}

/* The keys of one table; `table` is a copy, since the queue grows meanwhile. */
static void
put_table(struct schema *schema, struct table table)
{
    struct lw_json *json = schema->json;
    const struct lw_option *wildcard = NULL;
    struct lw_option_walk walk;
    put(json, "description", table.doc);
    put(json, "type", "object");
    put_required(&table, json);
    lw_json_key(json, "properties");
    lw_json_object(json);
    lw_option_walk_start(&walk, table.rows, LW_WALK_FLAT);
    while (lw_option_walk_next(&walk)) {
        if (walk.row->name[0] == '*') {
            wildcard = walk.row;
        } else if (walk.row->type != LW_OPTION_LATER) {
            put_key(schema, &table, walk.row, walk.row->name);
        }
        if (walk.row->alias) {
            put_key(schema, &table, walk.row, walk.row->alias);
        }
    }
    lw_json_object_end(json);
    lw_json_key(json, "additionalProperties");
    if (wildcard) {
        put_row(schema, &table, wildcard);
    } else {
        lw_json_bool(json, false);
    }
}

static void
put_schema(struct lw_json *json)
{
    struct schema schema = { .json = json };
    struct table root = { .rows = lw_config_root.rows, .doc = lw_config_root.doc };
    lw_json_object(json);
    put(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    put(json, "title", "Laneway configuration, version 1");
    put_table(&schema, root);
    lw_json_key(json, "$defs");
    lw_json_object(json);
    lw_json_key(json, "reference");
    put_pattern(json, "\\$\\{");
    for (size_t i = 0; i < schema.count; i++) {
        lw_json_key(json, schema.tables[i].name);
        lw_json_object(json);
        put_table(&schema, schema.tables[i]);
        lw_json_object_end(json);
    }
    lw_json_object_end(json);
    lw_json_object_end(json);
}

static int
append(const char *part, size_t size, void *text)
{
    lw_text_append_bytes(text, part, size);
    return 0;
}

void
lw_config_schema(struct lw_text *out)
{
    struct lw_text compact;
    struct lw_json json;
    lw_text_init(&compact);
    lw_json_init(&json, &compact);
    put_schema(&json);
    json_t *tree = compact.is_failed ? NULL : json_loadb(compact.data, compact.size, 0, NULL);
    if (!tree || json_dump_callback(tree, append, out, JSON_INDENT(2)) != 0) {
        out->is_failed = true;
    }
    lw_text_append_char(out, '\n');
    json_decref(tree);
    lw_text_deinit(&compact);
}
