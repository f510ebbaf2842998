/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for received bytes. A connection reads into a block; frames in it are used where they
 * lie, and each message that is kept holds the block. A frame that does not end in its block is
 * continued in the next one, to which its beginning is moved; one larger than a block gets a block
 * of its size. Blocks go back to the client when nobody holds them. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_BLOCK_H
#define LW_BROKERS_PULSAR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

struct lw_pulsar_client;

enum { LW_PULSAR_BLOCK_BYTES = 256 * 1024, LW_PULSAR_SPARE_BLOCKS_MAX = 16 };

struct lw_pulsar_block {
    struct lw_pulsar_client *client;
    struct lw_pulsar_block *next; /* of the spare ones */
    uint32_t holds;
    size_t capacity;
    uint8_t data[];
};

/* Held once; NULL: no memory. */
struct lw_pulsar_block *lw_pulsar_block_create(struct lw_pulsar_client *client, size_t bytes);
void lw_pulsar_block_free(struct lw_pulsar_block *block);

static inline void
lw_pulsar_block_hold(struct lw_pulsar_block *block)
{
    block->holds++;
}

static inline void
lw_pulsar_block_drop(struct lw_pulsar_block *block)
{
    if (--block->holds == 0) {
        lw_pulsar_block_free(block);
    }
}

#endif
