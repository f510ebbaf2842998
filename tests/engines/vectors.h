/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors.h: the test vectors of the protocols (tests/data/protocol), which tests of clients read
 * too. A content is a text, null, or {"b64": ...}; what is decoded lives until vectors_forget.
 */
#ifndef TESTS_ENGINES_VECTORS_H
#define TESTS_ENGINES_VECTORS_H

#include <jansson.h>

#include "core/delivery.h"

#define VECTORS_HEADERS_MAX 16
#define VECTORS_KEPT_MAX 64

struct vectors_kept {
    void *memory[VECTORS_KEPT_MAX];
    size_t count;
};

/* Reads a file of tests/data/protocol; the caller frees it by json_decref. */
json_t *vectors_load(const char *name);
/* "" when there is no such field. */
const char *vectors_text(const json_t *object, const char *name);
int64_t vectors_int(const json_t *object, const char *name, int64_t otherwise);
struct lw_bytes vectors_content(const json_t *value, struct vectors_kept *kept);
void vectors_forget(struct vectors_kept *kept);
/* A list of pairs; answers how many. */
size_t vectors_headers(const json_t *list, struct lw_header *out, struct vectors_kept *kept);
void vectors_expect_bytes(const char *vector, const char *what, struct lw_bytes got,
                          struct lw_bytes wanted);
/* Verdict, reason, delay, code, reply and outputs; the outcome may be NULL. */
void vectors_check_outcome(const char *name, enum lw_verdict verdict,
                           const struct lw_outcome *outcome, const json_t *wanted);

#endif
