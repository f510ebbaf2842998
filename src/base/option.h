/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option rows: one description of every setting, from which parser, defaults, checks, plan, JSON
 * Schema and reference page are made. A row names a key, its type, its default *in the words of
 * the file* ("25s"), its range, and the offset of the field in a struct. Rows nest: GROUP is a
 * section whose fields lie in the same struct, INCLUDE puts the keys of another table at the same
 * level, MAP and LIST hold entries of their own. A table ends with a row of zeros.
 * This file knows nothing of YAML and of positions. It never allocates: lists are bound by its
 * caller. No recursion: tables are walked with an explicit stack.
 */
#ifndef LW_BASE_OPTION_H
#define LW_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum lw_option_type {
    LW_OPTION_END = 0,
    LW_OPTION_BOOL,
    LW_OPTION_TRISTATE, /* enum lw_tristate: true, false, or by the broker */
    LW_OPTION_INT,      /* signed, of row->size bytes */
    LW_OPTION_UINT,     /* unsigned, of row->size bytes */
    LW_OPTION_DOUBLE,
    LW_OPTION_DURATION,   /* int64_t milliseconds; "30s" */
    LW_OPTION_BYTES,      /* uint64_t; "64MiB" */
    LW_OPTION_TEXT,       /* const char * */
    LW_OPTION_ENUM,       /* one of row->words, stored in row->size bytes */
    LW_OPTION_TEXTS,      /* const char *const *, NULL-terminated, and a count */
    LW_OPTION_DURATIONS,  /* const int64_t * and a count */
    LW_OPTION_PROPERTIES, /* const struct lw_property * and a count: any keys, scalar values */
    LW_OPTION_NUMBERS,    /* names with whole numbers; bound by its owner */
    LW_OPTION_GROUP,      /* a section with row->rows */
    LW_OPTION_INCLUDE,    /* row->rows at the same level */
    LW_OPTION_MAP,        /* named entries of row->rows */
    LW_OPTION_LIST,       /* entries of row->rows; or a section of row->alternative */
    LW_OPTION_ANY,        /* kept for others, not looked at */
    LW_OPTION_LATER       /* a key of a later version: refused by name */
};

/* What a change of the value asks for while running. */
enum lw_option_reload { LW_RELOAD_RESTART = 0, LW_RELOAD_LIVE };

struct lw_option_word {
    const char *word; /* NULL ends the list */
    int64_t value;
    bool is_alias; /* accepted, never printed */
    bool is_later; /* known, but not in this version */
};

struct lw_option {
    const char *name;  /* "*" takes every key that no other row takes */
    const char *alias; /* another spelling of the name, accepted */
    enum lw_option_type type;
    enum lw_option_reload reload;
    ptrdiff_t offset; /* of the field; of GROUP and INCLUDE: added to those of their rows */
    ptrdiff_t count_offset;   /* of the size_t beside a list; 0: none */
    size_t size;              /* of the field */
    const char *initial;      /* the default in words of the file; NULL: zero */
    const char *initial_note; /* what pages show when the default is not a constant */
    double min; /* of numbers, in the unit of the field; not looked at when min == max */
    double max;
    const struct lw_option_word *words; /* of ENUM; of numbers: words for special values */
    const struct lw_option *rows;
    const struct lw_option *alternative;
    const char *off_word; /* GROUP: this scalar in its place sets the bool at off_offset */
    ptrdiff_t off_offset;
    const char *doc;
    bool is_secret;
    bool is_required;
    bool is_list_of_text; /* TEXTS: "a, b" is taken for [a, b] */
    bool is_unbound;      /* known and checked, but filled in by its owner */
};

/* Why a text is no value of a row. */
enum lw_option_fault {
    LW_OPTION_FINE = 0,
    LW_OPTION_NEEDS_UNIT,
    LW_OPTION_WRONG_TYPE,
    LW_OPTION_OUT_OF_RANGE,
    LW_OPTION_UNKNOWN_WORD,
    LW_OPTION_LATER_WORD
};

union lw_option_value {
    int64_t number;
    double real;
    const char *text; /* borrowed */
};

/* True for a row whose value is one scalar. */
bool lw_option_is_scalar(const struct lw_option *row);
/* Reads a value of a scalar row. Nothing is written on a fault. */
enum lw_option_fault lw_option_parse(const struct lw_option *row, const char *text,
                                     union lw_option_value *ret_value);
/* Writes the value into the struct whose rows these are; `offset` as the walk gives it. */
void lw_option_store(const struct lw_option *row, union lw_option_value value, void *base,
                     ptrdiff_t offset);
/* Appends the value of a field as it would be written in a file; "-" for none. */
void lw_option_format(const struct lw_option *row, const void *base, ptrdiff_t offset,
                      struct lw_text *out);
/* Appends the type in a reader's words: "duration", "true or false", "a | b". */
void lw_option_type_name(const struct lw_option *row, struct lw_text *out);

/* Fills every field that has a default; all others are left as they are. */
void lw_option_init(const struct lw_option *rows, void *base);
/* Copies the fields of all rows from one struct to another of the same layout. */
void lw_option_copy(const struct lw_option *rows, void *to, const void *from);
/* Finds a key in a table, includes looked through. *ret_offset: of its field. May be NULL. */
const struct lw_option *
lw_option_find(const struct lw_option *rows, const char *name, ptrdiff_t *ret_offset);
/* Returns the allowed key that is nearest to a misspelt one, or NULL when none is near. */
const char *lw_option_nearest(const struct lw_option *rows, const char *name);
/* True when two names are near enough for "did you mean". */
bool lw_option_is_near(const char *name, const char *candidate, size_t *ret_distance);

/* How far a walk goes down. */
enum lw_option_depth {
    LW_WALK_FLAT,   /* keys of one level */
    LW_WALK_STRUCT, /* and sections: all fields of one struct */
    LW_WALK_ALL     /* and the rows of entries, whose offsets begin at 0 again */
};

enum { LW_OPTION_LEVELS_MAX = 12 };

/* Rows in order, each section before its keys; includes are looked through, never yielded. */
struct lw_option_walk {
    const struct lw_option *row; /* the current one */
    ptrdiff_t offset;            /* of its field */
    uint32_t level;              /* 0 for the keys of the table itself */
    enum lw_option_depth depth;
    uint32_t frame_count;
    struct lw_option_frame {
        const struct lw_option *next;
        ptrdiff_t base;
        bool is_include;
        const struct lw_option *owner; /* the section or entry that these rows belong to */
    } frames[LW_OPTION_LEVELS_MAX];
};

void lw_option_walk_start(struct lw_option_walk *walk, const struct lw_option *rows,
                          enum lw_option_depth depth);
bool lw_option_walk_next(struct lw_option_walk *walk);
/* Appends "retry.backoff.max" for the current row. */
void lw_option_walk_path(const struct lw_option_walk *walk, struct lw_text *out);

#endif
