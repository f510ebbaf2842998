/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's default partitioner: murmur2 of the key, as the Java client computes it. Pure. */
#ifndef LW_BROKERS_COMMON_PARTITIONER_H
#define LW_BROKERS_COMMON_PARTITIONER_H

#include <stdint.h>

#include <laneway/laneway.h>

uint32_t lw_partitioner_hash(struct lw_bytes key);
/* Partition of a key (which may be empty, not null) among `count` > 0. */
int32_t lw_partitioner_choose(struct lw_bytes key, int32_t count);

#endif
