/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of error codes: what `laneway errors [CODE]` prints and docs/errors.md is made
 * from. A code is given once and keeps its meaning for ever. E01 syntax, keys and units, E02
 * references, E03 rules, E04 client properties, E05 brokers, E06 handlers, E07 running, E08
 * controlling; W: warnings and notes, numbered by the same hundreds. Every code that the program prints
 * has a row here (a test holds that).
 */
#ifndef LW_SERVICE_CATALOGUE_H
#define LW_SERVICE_CATALOGUE_H

#include "base/json.h"
#include "base/text.h"

struct lw_catalogue_entry {
    const char *code;  /* "E0101" */
    const char *title; /* a clause without a full stop */
    const char *explanation;
    const char *remedy; /* what to do; an imperative */
};

/* Returns all entries in order of their codes. */
const struct lw_catalogue_entry *lw_catalogue_entries(size_t *ret_count);
/* Finds by code, in upper or lower case; NULL when there is none. */
const struct lw_catalogue_entry *lw_catalogue_find(const char *code);
/* Returns the code that is nearest to a misspelt one, or NULL. */
const char *lw_catalogue_nearest(const char *code);

/* Appends one line a code. */
void lw_catalogue_list(struct lw_text *out);
/* Appends title, explanation and remedy of one code, wrapped for a terminal. */
void lw_catalogue_print(const struct lw_catalogue_entry *entry, struct lw_text *out);
/* Appends an array of objects. */
void lw_catalogue_json(struct lw_json *json);
/* Appends the page docs/errors.md. */
void lw_catalogue_reference(struct lw_text *out);

#endif
