/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader is a stack in the tree itself: `open` is the map or list being filled, and its parent
 * is where the end event returns to. A map waits either for a key or for the value of `key`.
 * libyaml allocates by itself with malloc; only its parser object lives here, on the stack.
 */
#include "service/config_yaml.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/assert.h"
#include "service/source_line.h"

enum { NAME_BYTES_MAX = 96, KEY_BYTES_MAX = 256 };

struct reader {
    const struct lw_document *document;
    const struct lw_place *fixed; /* of all nodes, instead of positions in the document */
    struct lw_config_arena *arena;
    struct lw_diagnostics *diagnostics;
    struct lw_node *root;
    struct lw_node *open;
    const char *key; /* of the value that comes next; NULL: a key comes next */
    struct lw_place key_place;
    uint32_t depth;
    uint32_t nodes;
    bool is_failed;
};

static struct lw_place
place_of(const struct reader *reader, yaml_mark_t begin, yaml_mark_t end)
{
    if (reader->fixed) {
        return *reader->fixed;
    }
    struct lw_place place = { .document = reader->document, .name = reader->document->name };
    place.line = (uint32_t)begin.line + 1;
    place.column = (uint32_t)begin.column + 1;
    place.length = end.line == begin.line ? (uint32_t)(end.column - begin.column) : 1;
    return place;
}

static struct lw_diagnostic *
refuse(struct reader *reader, const char *code, const yaml_event_t *event, const char *what)
{
    struct lw_place place = place_of(reader, event->start_mark, event->end_mark);
    reader->is_failed = true;
    return lw_diagnostics_add(reader->diagnostics, LW_SEVERITY_ERROR, code, &place, "%s", what);
}

static void
refuse_syntax(struct reader *reader, const yaml_parser_t *parser)
{
    reader->is_failed = true;
    if (parser->error == YAML_MEMORY_ERROR) {
        reader->arena->is_failed = true;
        return;
    }
    struct lw_place place = place_of(reader, parser->problem_mark, parser->problem_mark);
    const char *problem = parser->problem ? parser->problem : "cannot be read";
    struct lw_diagnostic *item = lw_diagnostics_add(reader->diagnostics, LW_SEVERITY_ERROR,
                                                    "E0102", &place, "this is not YAML: %s",
                                                    problem);
    if (strstr(problem, "cannot start any token")) {
        lw_diagnostic_help(item, "indent with spaces, not tabs, and put quotes around a value "
                                 "that begins with @ ` or %%");
    } else if (strstr(problem, "mapping values are not allowed")) {
        lw_diagnostic_help(item,
                           "put quotes around a value that contains \": \", and check the "
                           "indentation of this line");
    } else if (parser->context && parser->context_mark.line + 1 < place.line) {
        lw_diagnostic_help(item, "%s that begins in line %zu", parser->context,
                           parser->context_mark.line + 1);
    }
}

static struct lw_node *
add_node(struct reader *reader, enum lw_node_kind kind, const yaml_event_t *event)
{
    if (++reader->nodes > LW_YAML_NODES_MAX) {
        refuse(reader, "E0110", event, "this file has more than 20,000 values");
        return NULL;
    }
    struct lw_node *node = lw_node_create(reader->arena, kind);
    if (!node) {
        reader->is_failed = true;
        return NULL;
    }
    node->place = place_of(reader, event->start_mark, event->end_mark);
    node->origin = reader->fixed ? LW_ORIGIN_SET : LW_ORIGIN_FILE;
    if (reader->open) {
        node->key = reader->key;
        node->key_place = reader->key_place;
        reader->key = NULL;
        lw_node_append(reader->open, node);
    } else {
        reader->root = node;
    }
    return node;
}

static bool
wants_key(const struct reader *reader)
{
    return reader->open && reader->open->kind == LW_NODE_MAP && !reader->key;
}

static void
open_node(struct reader *reader, enum lw_node_kind kind, const yaml_event_t *event)
{
    if (wants_key(reader)) {
        refuse(reader, "E0102", event, "a key must be a name, not a list or a map");
    } else if (++reader->depth > LW_YAML_DEPTH_MAX) {
        refuse(reader, "E0110", event, "this is nested more than 32 levels deep");
    } else {
        struct lw_node *node = add_node(reader, kind, event);
        reader->open = node ? node : reader->open;
    }
}

static int
compare_keys(const void *a, const void *b)
{
    const struct lw_node *left = *(struct lw_node *const *)a;
    const struct lw_node *right = *(struct lw_node *const *)b;
    int order = strcmp(left->key, right->key);
    if (order != 0) {
        return order;
    }
    if (left->key_place.line != right->key_place.line) {
        return left->key_place.line < right->key_place.line ? -1 : 1;
    }
    return (int)left->key_place.column - (int)right->key_place.column;
}

/* The file is read on, so that its other errors are told too. */
static void
refuse_duplicate(struct reader *reader, const struct lw_node *first, struct lw_node *second)
{
    char name[NAME_BYTES_MAX];
    second->is_bad = true;
    struct lw_diagnostic *item = lw_diagnostics_add(
        reader->diagnostics, LW_SEVERITY_ERROR, "E0108", &second->key_place,
        "the key \"%s\" is given twice", lw_text_shown(second->key, name, sizeof(name)));
    lw_diagnostic_show(item, &first->key_place);
    lw_diagnostic_help(item, "the first one is in line %u; keep one of them",
                       first->key_place.line);
}

/* Sorting keeps this cheap for a map with thousands of keys. */
static void
check_duplicates(struct reader *reader, const struct lw_node *map)
{
    size_t count = 0;
    for (const struct lw_node *child = map->first; child; child = child->next) {
        count++;
    }
    if (count < 2) {
        return;
    }
    struct lw_node **sorted = lw_config_arena_array(reader->arena, count, sizeof(void *));
    if (!sorted) {
        reader->is_failed = true;
        return;
    }
    size_t at = 0;
    for (struct lw_node *child = map->first; child; child = child->next) {
        sorted[at++] = child;
    }
    qsort(sorted, count, sizeof(void *), compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0) {
            refuse_duplicate(reader, sorted[i - 1], sorted[i]);
        }
    }
}

static void
close_node(struct reader *reader)
{
    lw_assert(reader->open);
    if (reader->open->kind == LW_NODE_MAP) {
        check_duplicates(reader, reader->open);
    }
    reader->depth--;
    reader->open = reader->open->parent;
}

static void
on_key(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (length == 0 || length > KEY_BYTES_MAX || memchr(text, '\n', length)) {
        refuse(reader, "E0102", event, "a key must be a short name");
    } else if (length == 2 && memcmp(text, "<<", 2) == 0) {
        refuse(reader, "E0109", event, "merge keys (<<) are not used in configurations");
    } else {
        reader->key = lw_config_arena_text(reader->arena, text, length);
        reader->key_place = place_of(reader, event->start_mark, event->end_mark);
        reader->is_failed |= reader->key == NULL;
    }
}

static void
on_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length)) {
        refuse(reader, "E0102", event, "a value must not contain a zero byte");
        return;
    }
    if (wants_key(reader)) {
        on_key(reader, event);
        return;
    }
    struct lw_node *node = add_node(reader, LW_NODE_SCALAR, event);
    if (node) {
        node->text = lw_config_arena_text(reader->arena, text, length);
        node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        node->is_secret = node->key && lw_name_is_secret(node->key, strlen(node->key));
        reader->is_failed |= node->text == NULL;
    }
}

static void
refuse_reference(struct reader *reader, const yaml_event_t *event)
{
    struct lw_diagnostic *item = refuse(
        reader, "E0109", event, "anchors, aliases and tags are not used in configurations");
    lw_diagnostic_help(item, "write the value out where it is needed; a value that begins with "
                             "& * or ! needs quotes");
}

static void
on_event(struct reader *reader, const yaml_event_t *event)
{
    bool is_marked = false;
    if (event->type == YAML_SCALAR_EVENT) {
        is_marked = event->data.scalar.anchor || event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        is_marked = event->data.mapping_start.anchor || event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        is_marked = event->data.sequence_start.anchor || event->data.sequence_start.tag;
    }
    if (is_marked || event->type == YAML_ALIAS_EVENT) {
        refuse_reference(reader, event);
    } else if (event->type == YAML_SCALAR_EVENT) {
        on_scalar(reader, event);
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        open_node(reader, LW_NODE_MAP, event);
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        open_node(reader, LW_NODE_LIST, event);
    } else if (event->type == YAML_MAPPING_END_EVENT ||
               event->type == YAML_SEQUENCE_END_EVENT) {
        close_node(reader);
    } else if (event->type == YAML_DOCUMENT_START_EVENT && reader->root) {
        refuse(reader, "E0102", event, "a file holds one document; this begins a second one");
    }
}

static void
parse_all(struct reader *reader, const char *text, size_t size)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        reader->arena->is_failed = true;
        return;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    for (bool is_done = false; !is_done && !reader->is_failed;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            refuse_syntax(reader, &parser);
            break;
        }
        on_event(reader, &event);
        is_done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

static bool
is_readable(struct reader *reader)
{
    const struct lw_document *document = reader->document;
    struct lw_place place = { .name = document->name };
    if (document->size > LW_YAML_BYTES_MAX) {
        lw_diagnostics_add(reader->diagnostics, LW_SEVERITY_ERROR, "E0110", &place,
                           "the file is larger than 1MiB");
        return false;
    }
    if (!lw_text_is_utf8(document->text, document->size)) {
        struct lw_diagnostic *item = lw_diagnostics_add(reader->diagnostics, LW_SEVERITY_ERROR,
                                                        "E0111", &place,
                                                        "the file is not UTF-8 text");
        lw_diagnostic_help(item, "save it as UTF-8");
        return false;
    }
    return true;
}

static struct lw_node *
finish_root(struct reader *reader)
{
    struct lw_node *root = reader->root;
    if (!root || (root->kind == LW_NODE_SCALAR && lw_node_is_empty(root))) {
        root = lw_node_create(reader->arena, LW_NODE_MAP);
        if (root) {
            root->place.name = reader->document->name;
        }
    } else if (root->kind != LW_NODE_MAP) {
        lw_diagnostics_add(reader->diagnostics, LW_SEVERITY_ERROR, "E0103", &root->place,
                           "a configuration begins with keys such as \"version: 1\"");
        return NULL;
    }
    return root;
}

struct lw_node *
lw_config_yaml_read(const struct lw_document *document, struct lw_config_arena *arena,
                    struct lw_diagnostics *diagnostics)
{
    struct reader reader = { .document = document, .arena = arena, .diagnostics = diagnostics };
    if (!is_readable(&reader)) {
        return NULL;
    }
    parse_all(&reader, document->text, document->size);
    return reader.is_failed || arena->is_failed ? NULL : finish_root(&reader);
}

struct lw_node *
lw_config_yaml_value(const char *text, const struct lw_place *place,
                     struct lw_config_arena *arena, struct lw_diagnostics *diagnostics)
{
    struct lw_document document = { .name = place->name, .text = text, .size = strlen(text) };
    struct reader reader = {
        .document = &document, .fixed = place, .arena = arena, .diagnostics = diagnostics
    };
    if (!is_readable(&reader)) {
        return NULL;
    }
    parse_all(&reader, text, document.size);
    return reader.is_failed || arena->is_failed ? NULL : reader.root;
}
