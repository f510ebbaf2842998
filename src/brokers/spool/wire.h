/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and byte strings in one after the other, little-endian, a string with its length before
 * it (all ones: null). So headers lie in the file, and so the owner's socket is spoken. Reading
 * never goes beyond the end: `is_bad` stays set, and what was read is zeros or null then. Pure.
 */
#ifndef LW_BROKERS_SPOOL_WIRE_H
#define LW_BROKERS_SPOOL_WIRE_H

#include "base/text.h"

struct lw_spool_reader {
    const unsigned char *at;
    const unsigned char *end;
    bool is_bad;
};

void lw_spool_put_u32(struct lw_text *out, uint32_t value);
void lw_spool_put_i64(struct lw_text *out, int64_t value);
void lw_spool_put_bytes(struct lw_text *out, struct lw_bytes bytes);
void lw_spool_put_headers(struct lw_text *out, const struct lw_header *headers, size_t count);
/* Writes a number over what stands at that place. */
void lw_spool_patch_u32(struct lw_text *out, size_t place, uint32_t value);

void lw_spool_read_init(struct lw_spool_reader *reader, const void *data, size_t size);
uint32_t lw_spool_get_u32(struct lw_spool_reader *reader);
int64_t lw_spool_get_i64(struct lw_spool_reader *reader);
struct lw_bytes lw_spool_get_bytes(struct lw_spool_reader *reader); /* a view */
/* A view that ends with a zero which is not counted; NULL when it does not. */
const char *lw_spool_get_text(struct lw_spool_reader *reader);
void lw_spool_put_text(struct lw_text *out, const char *text);
size_t lw_spool_left(const struct lw_spool_reader *reader);
/* How many headers a blob holds; SIZE_MAX when it is none. */
size_t lw_spool_count_headers(struct lw_bytes blob);
/* Fills views into the blob, which lw_spool_count_headers has accepted. */
void lw_spool_view_headers(struct lw_bytes blob, struct lw_header *out);

#endif
