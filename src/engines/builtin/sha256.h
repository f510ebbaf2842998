/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of one short message, as a unit of computing for the cpu handler. */
#ifndef LW_ENGINES_BUILTIN_SHA256_H
#define LW_ENGINES_BUILTIN_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define LW_SHA256_BYTES 32

void lw_sha256(const void *data, size_t size, uint8_t ret_digest[LW_SHA256_BYTES]);

#endif
