/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fast hash of bytes for tables in memory: two loads and two multiplications up to 16 bytes,
 * which most keys are. Follows the construction of wyhash (final version 4, public domain): 64 by
 * 64 bit multiplications folded by xor. Not for anything that is stored or sent: the value
 * depends on the byte order of the machine. A secret seed keeps chosen keys from colliding on
 * purpose. Inline, since the path of a message pays for every instruction. Pure.
 */
#ifndef LW_BASE_HASH_H
#define LW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LW_HASH_P0 UINT64_C(0xa0761d6478bd642f)
#define LW_HASH_P1 UINT64_C(0xe7037ed1a0b428db)
#define LW_HASH_P2 UINT64_C(0x8ebc6af09c88c6e3)

__extension__ typedef unsigned __int128 lw_uint128;

/* The two halves of a * b, folded. */
static inline uint64_t
lw_hash_mix(uint64_t a, uint64_t b)
{
    lw_uint128 product = (lw_uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t
lw_hash_load8(const unsigned char *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint64_t
lw_hash_load4(const unsigned char *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Folds 16 bytes at a time until 1 to 16 are left (17 or more come in). */
static inline uint64_t
lw_hash_blocks(const unsigned char *from, size_t size, uint64_t state, uint64_t secret)
{
    for (; size > 16; from += 16, size -= 16) {
        state = lw_hash_mix(lw_hash_load8(from) ^ secret, lw_hash_load8(from + 8) ^ state);
    }
    return state;
}

/* Hashes `size` bytes; `data` may be NULL when size is 0. */
static inline uint64_t
lw_hash_bytes(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *from = (const unsigned char *)data;
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t secret = seed ^ LW_HASH_P1; /* in both factors: none can be made 0 on purpose */
    uint64_t state = seed ^ LW_HASH_P0;
    if (__builtin_expect(size > 16, 0)) {
        state = lw_hash_blocks(from, size, state, secret);
        a = lw_hash_load8(from + size - 16);
        b = lw_hash_load8(from + size - 8);
    } else if (size >= 8) {
        a = lw_hash_load8(from);
        b = lw_hash_load8(from + size - 8);
    } else if (size >= 4) {
        a = lw_hash_load4(from);
        b = lw_hash_load4(from + size - 4);
    } else if (size > 0) {
        a = (uint64_t)from[0] << 16 | (uint64_t)from[size >> 1] << 8 | from[size - 1];
    }
    return lw_hash_mix(LW_HASH_P2 ^ size, lw_hash_mix(a ^ secret, b ^ state));
}

/* Hashes one number, such as a position. */
static inline uint64_t
lw_hash_u64(uint64_t value, uint64_t seed)
{
    return lw_hash_mix(value ^ LW_HASH_P0, seed ^ LW_HASH_P1);
}

#endif
