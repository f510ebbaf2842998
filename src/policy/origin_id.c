/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers between separators, read from the left; a number is what lw_bytes_to_int takes. Ledgers
 * and entries are not negative, partitions and indexes are not below -1.
 */
#include "policy/origin_id.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { PARTS_MIN = 3, PARTS_MAX = 4, TEXT_BYTES_MAX = 256 };

/* Splits at `separator`; the number of parts, 0 when one is no number or there are too many. */
static size_t
split(struct lw_bytes text, char separator, int64_t parts[PARTS_MAX])
{
    const char *at = text.data;
    size_t left = text.size;
    for (size_t count = 0; count < PARTS_MAX;) {
        const char *end = memchr(at, separator, left);
        size_t size = end ? (size_t)(end - at) : left;
        if (!lw_bytes_to_int((struct lw_bytes){ at, size }, &parts[count++])) {
            return 0;
        }
        if (!end) {
            return count;
        }
        at = end + 1;
        left -= size + 1;
    }
    return 0;
}

static bool
is_index(int64_t number)
{
    return number >= -1 && number <= INT32_MAX;
}

bool
lw_origin_id_parse(struct lw_bytes text, struct lw_origin_id *ret_id)
{
    int64_t parts[PARTS_MAX] = { 0, 0, -1, -1 };
    const char *bytes = text.data;
    if (text.size < 2 || text.size > TEXT_BYTES_MAX) {
        return false;
    }
    bool is_tuple = bytes[0] == '(' && bytes[text.size - 1] == ')';
    const char *last = is_tuple ? NULL : memrchr(bytes, ';', text.size);
    if (is_tuple) {
        text = (struct lw_bytes){ bytes + 1, text.size - 2 };
    } else if (last) {
        text = (struct lw_bytes){ last + 1, text.size - (size_t)(last + 1 - bytes) };
    }
    size_t count = split(text, is_tuple ? ',' : ':', parts);
    parts[3] = count == PARTS_MAX ? parts[3] : -1;
    if (count < PARTS_MIN || (is_tuple && count != PARTS_MAX) || parts[0] < 0 || parts[1] < 0 ||
        !is_index(parts[2]) || !is_index(parts[3])) {
        return false;
    }
    *ret_id = (struct lw_origin_id){ parts[0], parts[1], (int32_t)parts[2], (int32_t)parts[3] };
    return true;
}

static void
write_id(const struct lw_origin_id *id, bool has_partition, char out[LW_ORIGIN_ID_BYTES])
{
    size_t used = (size_t)snprintf(out, LW_ORIGIN_ID_BYTES, "%lld:%lld", (long long)id->ledger,
                                   (long long)id->entry);
    if (has_partition) {
        used += (size_t)snprintf(out + used, LW_ORIGIN_ID_BYTES - used, ":%d",
                                 (int)id->partition);
    }
    if (id->batch_index >= 0) {
        (void)snprintf(out + used, LW_ORIGIN_ID_BYTES - used, ":%d", (int)id->batch_index);
    }
}

void
lw_origin_id_write_java(const struct lw_origin_id *id, char out[LW_ORIGIN_ID_BYTES])
{
    write_id(id, true, out);
}

void
lw_origin_id_write_place(const struct lw_origin_id *id, char out[LW_ORIGIN_ID_BYTES])
{
    write_id(id, false, out);
}
