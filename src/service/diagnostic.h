/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a configuration, as a list for a person: position, severity and code, one
 * sentence, the source lines with a caret, and help. One printer gives them the shape that
 * editors can jump to; `check` and `run` print the same text. The list is bounded; what came
 * after is counted. Values that are secret must not be put into a sentence (lw_node_shown in
 * config_node.h); in source lines the value behind a secret-looking key is blotted out here.
 */
#ifndef LW_SERVICE_DIAGNOSTIC_H
#define LW_SERVICE_DIAGNOSTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/text.h"

enum lw_severity { LW_SEVERITY_ERROR, LW_SEVERITY_WARNING, LW_SEVERITY_NOTE };

/* A text with lines: a file that was read. */
struct lw_document {
    const char *name;      /* as the user gave it */
    const char *directory; /* that relative paths in it start from; "." */
    const char *text;
    size_t size;
};

/* Lines and columns from 1, columns and lengths in characters. line 0: no position. */
struct lw_place {
    const struct lw_document *document; /* NULL: no source lines */
    const char *name;                   /* file, or variable, or option of the command */
    uint32_t line;
    uint32_t column;
    uint32_t length;
};

enum { LW_SOURCE_LINES_MAX = 4, LW_DIAGNOSTICS_MAX = 100 };

struct lw_source_line {
    uint32_t number;
    char *text; /* made printable, secrets blotted out */
};

struct lw_diagnostic {
    enum lw_severity severity;
    char code[8];
    char *name; /* of the file; empty without one */
    uint32_t line;
    uint32_t column;
    uint32_t caret_column; /* within the shown line, from 0 */
    uint32_t caret_length;
    char *message;
    char *help;                                       /* may be NULL; may have several lines */
    struct lw_source_line lines[LW_SOURCE_LINES_MAX]; /* the first one is the position's */
    size_t line_count;
};

struct lw_diagnostics {
    struct lw_diagnostic *items;
    size_t count;
    size_t capacity;
    size_t counts[3]; /* by severity, the dropped ones too */
    size_t dropped;
    bool is_out_of_memory;
    struct lw_diagnostic spare; /* what is filled when nothing can be kept */
};

void lw_diagnostics_init(struct lw_diagnostics *list);
void lw_diagnostics_deinit(struct lw_diagnostics *list);
/* True when something is an error (or memory ran out). */
bool lw_diagnostics_has_error(const struct lw_diagnostics *list);

/* Adds one; never NULL. `place` may be NULL. The pointer is good until the next add. */
struct lw_diagnostic *
lw_diagnostics_add(struct lw_diagnostics *list, enum lw_severity severity, const char *code,
                   const struct lw_place *place, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Sets the help of the diagnostic just added. */
void lw_diagnostic_help(struct lw_diagnostic *diagnostic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Shows a further line of the same file; a line that is shown already is not repeated. */
void lw_diagnostic_show(struct lw_diagnostic *diagnostic, const struct lw_place *place);

/* Orders by name of the file, then line and column. */
void lw_diagnostics_sort(struct lw_diagnostics *list);
/* Appends all of them and the closing count. Nothing at all for an empty list. */
void
lw_diagnostics_print(const struct lw_diagnostics *list, bool is_coloured, struct lw_text *out);
void lw_diagnostic_print(const struct lw_diagnostic *diagnostic, bool is_coloured,
                         struct lw_text *out);
/* Appends an array of objects: severity, code, file, line, column, message, help. */
void lw_diagnostics_json(const struct lw_diagnostics *list, struct lw_json *json);
/* Fills *ret_error from the first error; returns its status. */
enum lw_status
lw_diagnostics_error(const struct lw_diagnostics *list, struct lw_error *ret_error);

#endif
