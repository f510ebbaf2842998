/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of keys and the choice of a partition. Java hashes the UTF-16 units of a text; clients
 * that hash bytes, or signed characters, send other alphabets' keys elsewhere.
 */
#include "brokers/pulsar/route.h"

enum { MASK = 0x7fffffff, REPLACEMENT = 0xfffd, SURROGATES = 0x10000 };

static uint32_t
decode(const uint8_t *at, size_t size)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    if (size == 0) {
        return REPLACEMENT;
    }
    uint32_t point = at[0] & masks[size];
    for (size_t i = 1; i < size; i++) {
        point = point << 6 | (at[i] & 0x3f);
    }
    return point;
}

uint32_t
lw_pulsar_hash_java_string(struct lw_bytes key)
{
    const uint8_t *at = key.data;
    uint32_t hash = 0;
    for (size_t i = 0; i < key.size;) {
        size_t size = lw_text_utf8_size(at + i, key.size - i);
        uint32_t point = decode(at + i, size);
        if (point >= SURROGATES) {
            hash = 31 * hash + (0xd800 | (point - SURROGATES) >> 10);
            point = 0xdc00 | ((point - SURROGATES) & 0x3ff);
        }
        hash = 31 * hash + point;
        i += size > 0 ? size : 1;
    }
    return hash & MASK;
}

static uint32_t
rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t
scramble(uint32_t block)
{
    return rotate(block * UINT32_C(0xcc9e2d51), 15) * UINT32_C(0x1b873593);
}

static uint32_t
load(const uint8_t *at, size_t size)
{
    uint32_t block = 0;
    for (size_t i = 0; i < size; i++) {
        block |= (uint32_t)at[i] << 8 * i;
    }
    return block;
}

uint32_t
lw_pulsar_hash_murmur3(struct lw_bytes key)
{
    const uint8_t *at = key.data;
    uint32_t hash = 0;
    size_t left = key.size;
    for (; left >= 4; at += 4, left -= 4) {
        hash = rotate(hash ^ scramble(load(at, 4)), 13) * 5 + UINT32_C(0xe6546b64);
    }
    hash ^= left > 0 ? scramble(load(at, left)) : 0;
    hash ^= (uint32_t)key.size;
    hash = (hash ^ hash >> 16) * UINT32_C(0x85ebca6b);
    hash = (hash ^ hash >> 13) * UINT32_C(0xc2b2ae35);
    return (hash ^ hash >> 16) & MASK;
}

/* -- Choosing -------------------------------------------------------------------------------------- */

void
lw_pulsar_router_init(struct lw_pulsar_router *router,
                      const struct lw_pulsar_producer_settings *options, uint64_t random)
{
    *router = (struct lw_pulsar_router){ .options = options, .at = (uint32_t)random & MASK };
}

static bool
is_turn_over(const struct lw_pulsar_router *router, size_t bytes, uint64_t now)
{
    const struct lw_pulsar_producer_settings *options = router->options;
    return !options->batches || router->messages >= options->batch_messages_max ||
           router->bytes + bytes > options->batch_bytes_max ||
           now - router->since > options->batch_delay_ns;
}

static uint32_t
choose_in_turn(struct lw_pulsar_router *router, size_t bytes, uint64_t now)
{
    if (is_turn_over(router, bytes, now)) {
        router->at = (router->at + 1) & MASK;
        router->messages = 0;
        router->bytes = 0;
        router->since = now;
    }
    router->messages++;
    router->bytes += bytes;
    return router->at;
}

uint32_t
lw_pulsar_router_choose(struct lw_pulsar_router *router, struct lw_bytes key, size_t bytes,
                        uint32_t partitions, uint64_t now)
{
    if (key.data) {
        uint32_t hash = router->options->hashing == LW_PULSAR_HASH_MURMUR3
                            ? lw_pulsar_hash_murmur3(key)
                            : lw_pulsar_hash_java_string(key);
        return hash % partitions;
    }
    if (router->options->routing == LW_PULSAR_ROUTE_SINGLE) {
        return router->at % partitions;
    }
    return choose_in_turn(router, bytes, now) % partitions;
}
