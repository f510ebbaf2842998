/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding alone: MESSAGE frames of Pulsar from memory, of 100 B messages with a key. */
#ifndef BENCH_SUPPORT_PULSAR_DECODE_H
#define BENCH_SUPPORT_PULSAR_DECODE_H

#include <stdint.h>

/* Decodes one frame again and again until n messages came; members 0: it is not a batch. */
void lw_bench_decode(int32_t members, uint64_t n);

#endif
