/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C three ways: eight tables (Intel's slicing by 8), the instruction of the processor, and,
 * for long inputs, three streams of it at once, since one instruction takes three cycles to
 * answer but one to start. Three neighbouring blocks are summed apart and joined by "moving" a
 * sum over as many zero bytes as follow it: a linear map, kept as four tables of 256 words. All
 * tables are made once, when the program or the library is loaded, and are only read afterwards.
 */
#include "brokers/pulsar/wire/crc32c.h"

#include <endian.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HAS_INSTRUCTION 1
#define TARGET __attribute__((target("sse4.2")))
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#define HAS_INSTRUCTION 1
#define TARGET __attribute__((target("+crc")))
#else
#define HAS_INSTRUCTION 0
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78)

enum { BYTE_VALUES = 256, STREAMS = 3 };
#define WORD_BYTES ((size_t)8)
#define BLOCK_BYTES ((size_t)512)

static uint32_t slices[WORD_BYTES][BYTE_VALUES];
static uint32_t moves[4][BYTE_VALUES]; /* of a sum, over BLOCK_BYTES zero bytes */
static bool is_hardware;

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

/* The map is linear: an entry is the sum of the images of its bits. */
static uint32_t
sum_images(const uint32_t *images, uint32_t bits)
{
    uint32_t sum = 0;
    for (unsigned bit = 0; bit < 8; bit++) {
        sum ^= (bits >> bit & 1) != 0 ? images[bit] : 0;
    }
    return sum;
}

static void
fill_moves(void)
{
    uint32_t images[32];
    for (unsigned bit = 0; bit < 32; bit++) {
        images[bit] = UINT32_C(1) << bit;
        for (size_t i = 0; i < BLOCK_BYTES; i++) {
            images[bit] = add_zero_byte(images[bit]);
        }
    }
    for (unsigned byte = 0; byte < 4; byte++) {
        for (uint32_t i = 0; i < BYTE_VALUES; i++) {
            moves[byte][i] = sum_images(images + (size_t)8 * byte, i);
        }
    }
}

static bool
find_instruction(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
    enum { HWCAP_CRC32_BIT = 1 << 7 };
    return (getauxval(AT_HWCAP) & HWCAP_CRC32_BIT) != 0;
#else
    return false;
#endif
}

__attribute__((constructor)) static void
fill_tables(void)
{
    fill_slices();
    fill_moves();
    is_hardware = find_instruction();
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

TARGET static inline uint32_t
add_word(uint32_t sum, uint64_t word)
{
#if defined(__x86_64__)
    return (uint32_t)_mm_crc32_u64(sum, word);
#else
    return __crc32cd(sum, word);
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
add_byte(uint32_t sum, uint8_t byte)
{
#if defined(__x86_64__)
    return _mm_crc32_u8(sum, byte);
#else
    return __crc32cb(sum, byte);
#endif
}

static inline uint32_t
move(uint32_t sum)
{
    return moves[0][sum & 0xff] ^ moves[1][sum >> 8 & 0xff] ^ moves[2][sum >> 16 & 0xff] ^
           moves[3][sum >> 24];
}

/* STREAMS blocks at once. */
TARGET static uint32_t
sum_blocks(uint32_t sum, const uint8_t *at)
{
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t i = 0; i < BLOCK_BYTES; i += WORD_BYTES) {
        sum = add_word(sum, load_word(at + i));
        second = add_word(second, load_word(at + BLOCK_BYTES + i));
        third = add_word(third, load_word(at + 2 * BLOCK_BYTES + i));
    }
    return move(move(sum) ^ second) ^ third;
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
    for (size &= 3; size > 0; at++, size--) {
        sum = add_byte(sum, *at);
    }
    return sum;
}

TARGET static uint32_t
sum_by_instruction(uint32_t sum, const uint8_t *at, size_t size)
{
    for (; size >= STREAMS * BLOCK_BYTES; at += STREAMS * BLOCK_BYTES) {
        sum = sum_blocks(sum, at);
        size -= STREAMS * BLOCK_BYTES;
    }
    for (; size >= 4 * WORD_BYTES; at += 4 * WORD_BYTES, size -= 4 * WORD_BYTES) {
        sum = add_word(sum, load_word(at));
        sum = add_word(sum, load_word(at + WORD_BYTES));
        sum = add_word(sum, load_word(at + 2 * WORD_BYTES));
        sum = add_word(sum, load_word(at + 3 * WORD_BYTES));
    }
    for (; size >= WORD_BYTES; at += WORD_BYTES, size -= WORD_BYTES) {
        sum = add_word(sum, load_word(at));
    }
    return sum_rest(sum, at, size);
}

#endif

uint32_t
lw_crc32c(uint32_t crc, const void *data, size_t size)
{
#if HAS_INSTRUCTION
    if (__builtin_expect(is_hardware, 1)) {
        return ~sum_by_instruction(~crc, (const uint8_t *)data, size);
    }
#endif
    return lw_crc32c_software(crc, data, size);
}
