/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of protocol buffers as a table of its fields: number, kind, place in the struct,
 * default. One decoder and one encoder serve all tables, so both directions of a command cannot
 * differ. Every struct begins with `uint64_t has`. A table may have parts (messages in it) whose
 * tables have none: two levels are all that Pulsar needs, and nothing recurses.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_FIELDS_H
#define LW_BROKERS_PULSAR_WIRE_FIELDS_H

#include "brokers/pulsar/wire/fault.h"
#include "brokers/pulsar/wire/list.h"

enum lw_pulsar_kind {
    LW_PULSAR_KIND_U64, /* uint64_t and int64_t */
    LW_PULSAR_KIND_U32,
    LW_PULSAR_KIND_I32, /* and enumerations; a negative one takes ten bytes */
    LW_PULSAR_KIND_BOOL,
    LW_PULSAR_KIND_DOUBLE,
    LW_PULSAR_KIND_BYTES,
    LW_PULSAR_KIND_LIST,    /* of texts, bytes or messages */
    LW_PULSAR_KIND_NUMBERS, /* a list of numbers */
    LW_PULSAR_KIND_PART,
};

struct lw_pulsar_table;

struct lw_pulsar_field {
    uint8_t id;
    uint8_t kind;    /* enum lw_pulsar_kind */
    int8_t fallback; /* the default of a number; larger ones are set by the command */
    bool is_required;
    uint16_t offset;
    const struct lw_pulsar_table *part;
};

struct lw_pulsar_table {
    const struct lw_pulsar_field *fields; /* ascending by id */
    uint32_t count;
    uint32_t size;     /* of the struct */
    uint64_t required; /* bits of the fields that must come */
};

/*
 * Rows of a table: (struct, number, kind, member), then the default or the part's table. A type
 * and a member cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
 */
#define ROW(type, number, kind_name, member, value, required, table)                           \
    {                                                                                          \
        .id = number, .kind = LW_PULSAR_KIND_##kind_name, .fallback = value,                   \
        .is_required = required, .offset = offsetof(type, member), .part = table               \
    }
#define FIELD(type, number, kind, member) ROW(type, number, kind, member, 0, false, NULL)
#define REQUIRED(type, number, kind, member) ROW(type, number, kind, member, 0, true, NULL)
#define DEFAULT(type, number, kind, member, value)                                             \
    ROW(type, number, kind, member, value, false, NULL)
#define PART(type, number, member, table) ROW(type, number, PART, member, 0, false, &(table))
#define PART_REQUIRED(type, number, member, table)                                             \
    ROW(type, number, PART, member, 0, true, &(table))
#define BIT(number) (UINT64_C(1) << (number))
#define TABLE(type, rows, required_bits)                                                       \
    {                                                                                          \
        .fields = (rows), .count = sizeof(rows) / sizeof((rows)[0]), .size = sizeof(type),     \
        .required = (required_bits)                                                            \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

extern const struct lw_pulsar_table lw_pulsar_message_id_table;
extern const struct lw_pulsar_table lw_pulsar_metadata_table;
extern const struct lw_pulsar_table lw_pulsar_single_metadata_table;
extern const struct lw_pulsar_table lw_pulsar_entry_metadata_table;
/* The table of a command; NULL for a type that we do not know. */
const struct lw_pulsar_table *lw_pulsar_command_table(int32_t type);

void lw_pulsar_fields_init(const struct lw_pulsar_table *table, void *out);
/* Sets *out whole, defaults included; on a fault its content is of no use. */
enum lw_pulsar_fault
lw_pulsar_fields_decode(const struct lw_pulsar_table *table, struct lw_bytes bytes, void *out);
void lw_pulsar_fields_encode(const struct lw_pulsar_table *table, const void *from,
                             struct lw_proto_writer *writer);

/* A field that is met while decoding by hand: adds it to a list that begins at its tag. */
LW_INLINE void
lw_pulsar_list_extend(struct lw_pulsar_list *list, uint32_t id, const uint8_t *tag,
                      const uint8_t *end)
{
    if (list->count++ == 0) {
        list->at = tag;
        list->id = (uint16_t)id;
    }
    list->size = (size_t)(end - list->at);
}

#endif
