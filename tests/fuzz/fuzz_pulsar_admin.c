/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an answer of Pulsar's admin API. Holds that a number of partitions is one and that a
 * reason is a terminated text within its bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/pulsar/admin.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint64_t live = lw_alloc_live();
    char *text = malloc(size + 1);
    if (size > 0) {
        memcpy(text, bytes, size);
    }
    text[size] = '\0';
    struct lw_fetch_answer answer = { .code = 404, .data = text, .size = size };
    struct lw_pulsar_admin_answer out;
    memset(&out, 'x', sizeof out);
    lw_pulsar_admin_read(&answer, &out);
    lw_assert(out.partitions >= -1);
    lw_assert(memchr(out.reason, '\0', sizeof out.reason) != NULL);
    free(text);
    lw_assert(lw_alloc_live() == live);
    return 0;
}
