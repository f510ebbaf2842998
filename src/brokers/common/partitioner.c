/* SPDX-License-Identifier: Apache-2.0 */
/*
 * murmur2 with Kafka's seed, by Austin Appleby (public domain); reads little-endian whatever the
 * machine, so that a key lies in the partition where every Kafka client would put it. Pure.
 * Checked against the values of Kafka's own test.
 */
#include "brokers/common/partitioner.h"

#define MURMUR_M UINT32_C(0x5bd1e995)
#define MURMUR_SEED UINT32_C(0x9747b28c)

static uint32_t
load(const unsigned char *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

uint32_t
lw_partitioner_hash(struct lw_bytes key)
{
    const unsigned char *from = key.data;
    size_t left = key.size;
    uint32_t hash = MURMUR_SEED ^ (uint32_t)key.size;
    for (; left >= 4; left -= 4, from += 4) {
        uint32_t k = load(from) * MURMUR_M;
        hash = hash * MURMUR_M ^ (k ^ k >> 24) * MURMUR_M;
    }
    for (size_t i = left; i > 0; i--) {
        hash ^= (uint32_t)from[i - 1] << 8 * (i - 1);
    }
    if (left > 0) {
        hash *= MURMUR_M;
    }
    hash = (hash ^ hash >> 13) * MURMUR_M;
    return hash ^ hash >> 15;
}

int32_t
lw_partitioner_choose(struct lw_bytes key, int32_t count)
{
    return (int32_t)((lw_partitioner_hash(key) & INT32_MAX) % (uint32_t)count);
}
