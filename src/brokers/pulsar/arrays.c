/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each array has its class before it. The last one given is the first one taken: it is still in
 * the caches. A class is found by the number of leading zeros; the smallest holds 32 bytes, the
 * largest of those that are kept half a megabyte.
 */
#include "brokers/pulsar/arrays.h"

#include "base/alloc.h"
#include "base/list.h"

enum { SHIFT_MIN = 5, CLASS_NONE = LW_PULSAR_ARRAY_CLASSES };

struct lw_pulsar_array {
    struct lw_pulsar_array *next; /* of the spare ones */
    uint32_t class;
    _Alignas(16) uint8_t data[];
};

static size_t
class_bytes(uint32_t class)
{
    return (size_t)1 << (SHIFT_MIN + class);
}

static uint32_t
class_of(size_t bytes)
{
    uint64_t last = bytes > 1 ? bytes - 1 : 1;
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(last);
    uint32_t class = bits > SHIFT_MIN ? bits - SHIFT_MIN : 0;
    return class < CLASS_NONE ? class : CLASS_NONE;
}

void
lw_pulsar_arrays_deinit(struct lw_pulsar_arrays *arrays)
{
    for (size_t i = 0; i < LW_PULSAR_ARRAY_CLASSES; i++) {
        while (arrays->spare[i]) {
            struct lw_pulsar_array *array = arrays->spare[i];
            arrays->spare[i] = array->next;
            lw_free(array);
        }
    }
    arrays->spare_bytes = 0;
}

void *
lw_pulsar_arrays_take(struct lw_pulsar_arrays *arrays, size_t bytes)
{
    uint32_t class = class_of(bytes);
    if (class != CLASS_NONE && arrays->spare[class]) {
        struct lw_pulsar_array *spare = arrays->spare[class];
        arrays->spare[class] = spare->next;
        arrays->spare_bytes -= class_bytes(class);
        return spare->data;
    }
    size_t size = class == CLASS_NONE ? bytes : class_bytes(class);
    struct lw_pulsar_array *array = size > SIZE_MAX - sizeof *array
                                        ? NULL
                                        : lw_resize_array(NULL, 1, sizeof *array + size);
    if (!array) {
        return NULL;
    }
    array->class = class;
    return array->data;
}

void
lw_pulsar_arrays_give(struct lw_pulsar_arrays *arrays, void *data)
{
    struct lw_pulsar_array *array = LW_CONTAINER(data, struct lw_pulsar_array, data);
    uint32_t class = array->class;
    if (class == CLASS_NONE ||
        arrays->spare_bytes + class_bytes(class) > LW_PULSAR_SPARE_ARRAY_BYTES_MAX) {
        lw_free(array);
        return;
    }
    array->next = arrays->spare[class];
    arrays->spare[class] = array;
    arrays->spare_bytes += class_bytes(class);
}
