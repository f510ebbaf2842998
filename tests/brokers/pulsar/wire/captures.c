/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads captures and compares decoded structs with them, field by field, through the field
 * tables and their names.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/wire/captures.h"
#include "tests/brokers/pulsar/wire/names.h"

json_t *
captures_load(void)
{
    json_error_t error;
    json_t *captures = json_load_file(LW_SOURCE_DIR "/tests/data/pulsar-captures.json", 0,
                                      &error);
    if (captures == NULL) {
        fail_msg("%s at line %d", error.text, error.line);
    }
    return captures;
}

static unsigned
nibble(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

struct lw_bytes
hex_bytes(const char *hex)
{
    uint8_t *data = test_malloc(strlen(hex) / 2 + 1);
    size_t size = 0;
    for (; *hex != '\0'; hex += 2) {
        hex += strspn(hex, " ");
        data[size++] = (uint8_t)(nibble(hex[0]) << 4 | nibble(hex[1]));
    }
    return (struct lw_bytes){ data, size };
}

void
hex_free(struct lw_bytes bytes)
{
    test_free((void *)(uintptr_t)bytes.data);
}

static void
check_bytes(struct lw_bytes bytes, const json_t *expected, bool is_hex)
{
    const char *text = json_string_value(expected);
    assert_non_null(text);
    assert_non_null(bytes.data);
    if (is_hex) {
        struct lw_bytes wanted = hex_bytes(text);
        assert_int_equal(bytes.size, wanted.size);
        assert_memory_equal(bytes.data, wanted.data, wanted.size);
        hex_free(wanted);
    } else {
        assert_int_equal(bytes.size, json_string_length(expected));
        assert_memory_equal(bytes.data, text, bytes.size);
    }
}

static const struct lw_pulsar_field *
field_of(const struct lw_pulsar_table *table, unsigned id)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->fields[i].id == id) {
            return &table->fields[i];
        }
    }
    fail_msg("no field %u", id);
    return NULL;
}

static void
check_number(const struct lw_pulsar_field *field, const uint8_t *place, const json_t *expected)
{
    long long wanted = json_is_boolean(expected) ? json_is_true(expected)
                                                 : json_integer_value(expected);
    if (field->kind == LW_PULSAR_KIND_U64) {
        assert_int_equal(*(const int64_t *)place, wanted);
    } else if (field->kind == LW_PULSAR_KIND_BOOL) {
        assert_int_equal(*(const bool *)place, wanted);
    } else {
        assert_int_equal(*(const int32_t *)place, wanted);
    }
}

static void
check_pair(struct lw_pulsar_walk *walk, const json_t *expected)
{
    struct lw_pulsar_pair pair;
    assert_true(lw_pulsar_walk_pair(walk, &pair));
    check_bytes(pair.key, json_object_get(expected, "key"), false);
    check_bytes(pair.value, json_object_get(expected, "value"), false);
}

static void
check_range(struct lw_pulsar_walk *walk, const json_t *expected)
{
    struct lw_pulsar_range range;
    assert_true(lw_pulsar_walk_range(walk, &range));
    assert_int_equal(range.start, json_integer_value(json_object_get(expected, "start")));
    assert_int_equal(range.end, json_integer_value(json_object_get(expected, "end")));
}

static void
check_id(struct lw_pulsar_walk *walk, const json_t *expected)
{
    struct lw_pulsar_message_id id;
    assert_true(lw_pulsar_walk_id(walk, &id));
    check_fields(NAMES_MESSAGE_ID, &lw_pulsar_message_id_table, &id, expected);
}

/* One item of a list: what it is shows in what is expected. */
static void
check_item(struct lw_pulsar_walk *walk, const json_t *expected)
{
    struct lw_bytes bytes;
    uint64_t number;
    if (json_is_integer(expected)) {
        assert_true(lw_pulsar_walk_number(walk, &number));
        assert_int_equal(number, json_integer_value(expected));
    } else if (json_is_string(expected)) {
        assert_true(lw_pulsar_walk_bytes(walk, &bytes));
        check_bytes(bytes, expected, false);
    } else if (json_object_get(expected, "key") != NULL) {
        check_pair(walk, expected);
    } else if (json_object_get(expected, "start") != NULL) {
        check_range(walk, expected);
    } else {
        check_id(walk, expected);
    }
}

static void
check_list(const struct lw_pulsar_list *list, const json_t *expected)
{
    size_t index;
    json_t *item;
    struct lw_bytes more;
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    json_array_foreach(expected, index, item)
    {
        check_item(&walk, item);
    }
    assert_false(lw_pulsar_walk_bytes(&walk, &more));
    assert_false(walk.reader.is_bad);
    assert_int_equal(list->count, json_array_size(expected));
}

static int
scope_of(const char *name)
{
    return strcmp(name, "feature_flags") == 0   ? NAMES_FEATURE_FLAGS
           : strcmp(name, "schema") == 0        ? NAMES_SCHEMA
           : strcmp(name, "keySharedMeta") == 0 ? NAMES_KEY_SHARED
           : strcmp(name, "challenge") == 0 || strcmp(name, "response") == 0 ? NAMES_AUTH_DATA
                                                                             : NAMES_MESSAGE_ID;
}

static void
check_field(const struct capture_name *name, const struct lw_pulsar_field *field,
            const uint8_t *place, const json_t *expected)
{
    switch ((enum lw_pulsar_kind)field->kind) {
    case LW_PULSAR_KIND_U64:
    case LW_PULSAR_KIND_U32:
    case LW_PULSAR_KIND_I32:
    case LW_PULSAR_KIND_BOOL:
        check_number(field, place, expected);
        break;
    case LW_PULSAR_KIND_DOUBLE:
        assert_true(*(const double *)place == json_number_value(expected));
        break;
    case LW_PULSAR_KIND_BYTES:
        check_bytes(*(const struct lw_bytes *)place, expected, name->is_hex);
        break;
    case LW_PULSAR_KIND_LIST:
    case LW_PULSAR_KIND_NUMBERS:
        check_list((const struct lw_pulsar_list *)place, expected);
        break;
    case LW_PULSAR_KIND_PART:
        check_fields(scope_of(name->name), field->part, place, expected);
        break;
    }
}

void
check_fields(int scope, const struct lw_pulsar_table *table, const void *decoded,
             const json_t *expected)
{
    const char *key;
    json_t *value;
    uint64_t has = 0;
    json_object_foreach((json_t *)(uintptr_t)expected, key, value)
    {
        const struct capture_name *name = capture_name_find(scope, key);
        if (name == NULL) {
            fail_msg("scope %d has no field %s", scope, key);
        }
        const struct lw_pulsar_field *field = field_of(table, name->id);
        check_field(name, field, (const uint8_t *)decoded + field->offset, value);
        has |= UINT64_C(1) << name->id;
    }
    assert_int_equal(*(const uint64_t *)decoded, has);
}
