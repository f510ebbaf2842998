/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C three ways: eight tables (Intel's slicing by 8), the instruction of the processor, and,
 * where it can multiply without carry, three streams of it at once, since one instruction takes
 * three cycles to answer but one to start. Three neighbouring blocks of equal length are summed
 * apart and joined: a sum is moved over the n words that follow it by multiplying it with x^64n,
 * modulo the polynomial. All tables are made once, when the program or the library is loaded, and
 * are only read afterwards.
 */
#include "brokers/pulsar/wire/crc32c.h"

#include <endian.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#define HAS_INSTRUCTION 1
#define TARGET __attribute__((target("sse4.2")))
#define TARGET_PRODUCT __attribute__((target("sse4.2,pclmul")))
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#define HAS_INSTRUCTION 1
#define TARGET __attribute__((target("+crc")))
#define TARGET_PRODUCT __attribute__((target("+crc+crypto")))
#else
#define HAS_INSTRUCTION 0
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78)

enum { BYTE_VALUES = 256, STREAMS = 3, BLOCK_WORDS_MAX = 256 };
#define WORD_BYTES ((size_t)8)
#define STREAMS_BYTES_MIN ((size_t)384) /* for fewer, joining costs more than it saves */

static uint32_t slices[WORD_BYTES][BYTE_VALUES];
/* x^(64n - 33) for n words: a product of two sums is short of one bit, its reduction adds 32. */
static uint32_t factors[(STREAMS - 1) * BLOCK_WORDS_MAX + 1];
static bool is_hardware;
static bool has_product;

static uint32_t
add_zero_byte(uint32_t sum)
{
    return sum >> 8 ^ slices[0][sum & 0xff];
}

static void
fill_slices(void)
{
    for (uint32_t i = 0; i < BYTE_VALUES; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (POLYNOMIAL & (0 - (sum & 1)));
        }
        slices[0][i] = sum;
    }
    for (size_t slice = 1; slice < WORD_BYTES; slice++) {
        for (uint32_t i = 0; i < BYTE_VALUES; i++) {
            slices[slice][i] = add_zero_byte(slices[slice - 1][i]);
        }
    }
}

static void
fill_factors(void)
{
    enum { COUNT = sizeof factors / sizeof factors[0] };
    factors[1] = 1; /* x^31: the bits of a sum are in reverse */
    for (size_t words = 2; words < COUNT; words++) {
        factors[words] = factors[words - 1];
        for (size_t i = 0; i < WORD_BYTES; i++) {
            factors[words] = add_zero_byte(factors[words]);
        }
    }
}

static void
find_instructions(void)
{
#if defined(__x86_64__)
    is_hardware = __builtin_cpu_supports("sse4.2");
    has_product = is_hardware && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    enum { HWCAP_PMULL_BIT = 1 << 4, HWCAP_CRC32_BIT = 1 << 7 };
    is_hardware = (getauxval(AT_HWCAP) & HWCAP_CRC32_BIT) != 0;
    has_product = is_hardware && (getauxval(AT_HWCAP) & HWCAP_PMULL_BIT) != 0;
#endif
}

__attribute__((constructor)) static void
fill_tables(void)
{
    fill_slices();
    fill_factors();
    find_instructions();
}

static inline uint64_t
load_word(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return le64toh(word);
}

static uint32_t
sum_by_tables(uint32_t sum, const uint8_t *at, size_t size)
{
    for (; size >= WORD_BYTES; at += WORD_BYTES, size -= WORD_BYTES) {
        uint64_t word = load_word(at) ^ sum;
        sum = 0;
        for (size_t i = 0; i < WORD_BYTES; i++) {
            sum ^= slices[WORD_BYTES - 1 - i][word >> (8 * i) & 0xff];
        }
    }
    for (; size > 0; at++, size--) {
        sum = sum >> 8 ^ slices[0][(sum ^ *at) & 0xff];
    }
    return sum;
}

uint32_t
lw_crc32c_software(uint32_t crc, const void *data, size_t size)
{
    return ~sum_by_tables(~crc, (const uint8_t *)data, size);
}

bool
lw_crc32c_is_hardware(void)
{
    return is_hardware;
}

#if HAS_INSTRUCTION

TARGET static inline uint64_t
add_word(uint64_t sum, uint64_t word)
{
#if defined(__x86_64__)
    return _mm_crc32_u64(sum, word);
#else
    return __crc32cd((uint32_t)sum, word);
#endif
}

TARGET static inline uint32_t
add_half(uint32_t sum, uint32_t half)
{
#if defined(__x86_64__)
    return _mm_crc32_u32(sum, half);
#else
    return __crc32cw(sum, half);
#endif
}

TARGET static inline uint32_t
add_quarter(uint32_t sum, uint16_t quarter)
{
#if defined(__x86_64__)
    return _mm_crc32_u16(sum, quarter);
#else
    return __crc32ch(sum, quarter);
#endif
}

TARGET static inline uint32_t
add_byte(uint32_t sum, uint8_t byte)
{
#if defined(__x86_64__)
    return _mm_crc32_u8(sum, byte);
#else
    return __crc32cb(sum, byte);
#endif
}

/* Without carry. */
TARGET_PRODUCT static inline uint64_t
product(uint64_t sum, uint32_t factor)
{
#if defined(__x86_64__)
    __m128i both = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum),
                                        _mm_cvtsi64_si128((long long)factor), 0);
    return (uint64_t)_mm_cvtsi128_si64(both);
#else
    return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)sum, (poly64_t)factor)),
                          0);
#endif
}

/* STREAMS blocks of so many words at once. */
TARGET_PRODUCT static uint64_t
sum_blocks(uint64_t sum, const uint8_t *at, size_t words)
{
    const uint8_t *end = at + words * WORD_BYTES;
    size_t block = words * WORD_BYTES;
    uint64_t second = 0;
    uint64_t third = 0;
    for (; at != end; at += WORD_BYTES) {
        sum = add_word(sum, load_word(at));
        second = add_word(second, load_word(at + block));
        third = add_word(third, load_word(at + 2 * block));
    }
    uint64_t joined = product(sum, factors[2 * words]) ^ product(second, factors[words]);
    return add_word(0, joined) ^ third;
}

TARGET_PRODUCT static uint64_t
sum_streams(uint64_t sum, const uint8_t **at, size_t *size)
{
    while (*size >= STREAMS_BYTES_MIN) {
        size_t words = *size / WORD_BYTES / STREAMS;
        words = words < BLOCK_WORDS_MAX ? words : BLOCK_WORDS_MAX;
        sum = sum_blocks(sum, *at, words);
        *at += STREAMS * words * WORD_BYTES;
        *size -= STREAMS * words * WORD_BYTES;
    }
    return sum;
}

/* The last bytes, fewer than a word. */
TARGET static inline uint32_t
sum_rest(uint32_t sum, const uint8_t *at, size_t size)
{
    if ((size & 4) != 0) {
        uint32_t half;
        memcpy(&half, at, sizeof half);
        sum = add_half(sum, le32toh(half));
        at += 4;
    }
    if ((size & 2) != 0) {
        uint16_t quarter;
        memcpy(&quarter, at, sizeof quarter);
        sum = add_quarter(sum, le16toh(quarter));
        at += 2;
    }
    return (size & 1) != 0 ? add_byte(sum, *at) : sum;
}

TARGET static uint32_t
sum_by_instruction(uint32_t crc, const uint8_t *at, size_t size)
{
    uint64_t sum = ~crc;
    if (size >= STREAMS_BYTES_MIN && has_product) {
        sum = sum_streams(sum, &at, &size);
    }
    for (; size >= 8 * WORD_BYTES; at += 8 * WORD_BYTES, size -= 8 * WORD_BYTES) {
        sum = add_word(sum, load_word(at));
        sum = add_word(sum, load_word(at + WORD_BYTES));
        sum = add_word(sum, load_word(at + 2 * WORD_BYTES));
        sum = add_word(sum, load_word(at + 3 * WORD_BYTES));
        sum = add_word(sum, load_word(at + 4 * WORD_BYTES));
        sum = add_word(sum, load_word(at + 5 * WORD_BYTES));
        sum = add_word(sum, load_word(at + 6 * WORD_BYTES));
        sum = add_word(sum, load_word(at + 7 * WORD_BYTES));
    }
    for (; size >= WORD_BYTES; at += WORD_BYTES, size -= WORD_BYTES) {
        sum = add_word(sum, load_word(at));
    }
    return ~sum_rest((uint32_t)sum, at, size);
}

#endif

uint32_t
lw_crc32c(uint32_t crc, const void *data, size_t size)
{
#if HAS_INSTRUCTION
    if (__builtin_expect(is_hardware, 1)) {
        return sum_by_instruction(crc, (const uint8_t *)data, size);
    }
#endif
    return lw_crc32c_software(crc, data, size);
}
