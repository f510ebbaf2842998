/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks come from the client's spare ones while they are of the usual size. The list of spare
 * ones is bounded, so that a burst does not keep its memory for ever.
 */
#include "brokers/pulsar/block.h"

#include "base/alloc.h"
#include "brokers/pulsar/client.h"

struct lw_pulsar_block *
lw_pulsar_block_create(struct lw_pulsar_client *client, size_t bytes)
{
    struct lw_pulsar_block *block = client->spare_blocks;
    if (block && bytes <= LW_PULSAR_BLOCK_BYTES) {
        client->spare_blocks = block->next;
        client->spare_count--;
    } else {
        size_t capacity = bytes < LW_PULSAR_BLOCK_BYTES ? LW_PULSAR_BLOCK_BYTES : bytes;
        block = lw_resize_array(NULL, 1, sizeof *block + capacity);
        if (!block) {
            return NULL;
        }
        block->client = client;
        block->capacity = capacity;
    }
    block->next = NULL;
    block->holds = 1;
    return block;
}

void
lw_pulsar_block_free(struct lw_pulsar_block *block)
{
    struct lw_pulsar_client *client = block->client;
    if (block->capacity == LW_PULSAR_BLOCK_BYTES &&
        client->spare_count < LW_PULSAR_SPARE_BLOCKS_MAX) {
        block->next = client->spare_blocks;
        client->spare_blocks = block;
        client->spare_count++;
    } else {
        lw_free(block);
    }
}
