/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C (Castagnoli, reflected 0x82F63B78, inverted at both ends): the checksum of Pulsar's
 * payload frames. By the processor's instruction where it has one (SSE4.2; the CRC extension of
 * ARMv8), asked once, with three interleaved streams for long inputs; else by eight tables.
 * Chainable: lw_crc32c(lw_crc32c(0, a), b) is that of a followed by b. Pure, any thread.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_CRC32C_H
#define LW_BROKERS_PULSAR_WIRE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the start) over `size` bytes; `data` may be NULL when size is 0. */
uint32_t lw_crc32c(uint32_t crc, const void *data, size_t size);
/* The twin without special instructions; tests compare the two. */
uint32_t lw_crc32c_software(uint32_t crc, const void *data, size_t size);
bool lw_crc32c_is_hardware(void);

#endif
