/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which consumer of a Key_Shared subscription gets a key. murmur3 over the key; declared ranges
 * cut 65,536 slots (0 counts as 1), the ring of consistent hashing has 65,535 of them, from 1.
 * A ring point is the same hash of "name NUL index NUL point", points 0 to 99; a slot belongs to
 * the first point that is not below it, the first of all after the last.
 */
#include "tests/support/pulsar/embedded_state.h"

enum { POINTS = 100, DIVIDED = 65535 };

static uint32_t
rotate(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t
scramble(uint32_t k)
{
    return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t
finish(uint32_t h, size_t size)
{
    h ^= (uint32_t)size;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

uint32_t
embedded_hash(struct lw_bytes key)
{
    const uint8_t *at = key.data;
    uint32_t h = 0;
    uint32_t tail = 0;
    size_t blocks = key.size / 4;
    for (size_t i = 0; i < blocks; i++, at += 4) {
        uint32_t k = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                     (uint32_t)at[3] << 24;
        h = rotate(h ^ scramble(k), 13) * 5 + 0xe6546b64u;
    }
    for (size_t i = key.size % 4; i > 0; i--) {
        tail = tail << 8 | at[i - 1];
    }
    h ^= scramble(tail);
    return finish(h, key.size) & 0x7fffffffu;
}

static uint32_t
sticky(uint32_t hash)
{
    uint32_t slot = hash % EMBEDDED_SLOTS;
    return slot == 0 ? 1 : slot;
}

uint32_t
embedded_slot_sticky(struct lw_bytes key)
{
    return sticky(embedded_hash(key));
}

uint32_t
embedded_slot_divided(struct lw_bytes key)
{
    return embedded_hash(key) % DIVIDED + 1;
}

/* -- Keys of entries ----------------------------------------------------------------------------------- */

static int
digit_of(uint8_t c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

/* Returns how many bytes came out. */
static size_t
decode_base64(struct lw_bytes text, uint8_t *out, size_t size)
{
    uint32_t bits = 0;
    int have = 0;
    size_t count = 0;
    const uint8_t *from = text.data;
    for (size_t i = 0; i < text.size && digit_of(from[i]) >= 0; i++) {
        bits = bits << 6 | (uint32_t)digit_of(from[i]);
        have += 6;
        if (have >= 8 && count < size) {
            have -= 8;
            out[count++] = (uint8_t)(bits >> have);
        }
    }
    return count;
}

uint32_t
embedded_key_hash(const struct lw_pulsar_metadata *metadata)
{
    uint8_t scratch[2 * EMBEDDED_NAME_BYTES];
    if (metadata->ordering_key.data != NULL) {
        return embedded_hash(metadata->ordering_key);
    }
    if (metadata->partition_key.data != NULL && metadata->is_key_b64) {
        size_t size = decode_base64(metadata->partition_key, scratch, sizeof scratch);
        return embedded_hash((struct lw_bytes){ scratch, size });
    }
    if (metadata->partition_key.data != NULL) {
        return embedded_hash(metadata->partition_key);
    }
    int size = snprintf(
        (char *)scratch, sizeof scratch, "%.*s-%llu", (int)metadata->producer_name.size,
        (const char *)metadata->producer_name.data, (unsigned long long)metadata->sequence_id);
    return embedded_hash((struct lw_bytes){ scratch, (size_t)size });
}

uint32_t
embedded_entry_slot(const struct embedded_subscription *subscription,
                    const struct embedded_entry *entry)
{
    return subscription->is_sticky ? sticky(entry->hash) : entry->hash % DIVIDED + 1;
}

/* -- Consumers ------------------------------------------------------------------------------------------ */

static int
by_hash(const void *a, const void *b)
{
    const struct embedded_ring_point *left = a;
    const struct embedded_ring_point *right = b;
    if (left->hash != right->hash) {
        return left->hash < right->hash ? -1 : 1;
    }
    return left->serial < right->serial ? -1 : left->serial > right->serial;
}

static void
add_points(struct embedded_subscription *subscription, const struct embedded_consumer *consumer)
{
    char text[EMBEDDED_NAME_BYTES + 32];
    for (int i = 0; i < POINTS; i++) {
        int size = snprintf(text, sizeof text, "%s%c%u%c%d", consumer->name, 0, consumer->index,
                            0, i);
        subscription->ring[subscription->ring_count++] = (struct embedded_ring_point){
            .hash = embedded_slot_divided((struct lw_bytes){ text, (size_t)size }),
            .serial = consumer->serial,
        };
    }
}

void
embedded_ring_make(struct embedded_subscription *subscription)
{
    uint32_t count = 0;
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        count++;
    }
    free(subscription->ring);
    subscription->ring = embedded_new((count + 1) * POINTS * sizeof *subscription->ring);
    subscription->ring_count = 0;
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        add_points(subscription, LW_CONTAINER(node, struct embedded_consumer, in_subscription));
    }
    if (subscription->ring_count > 0) {
        qsort(subscription->ring, subscription->ring_count, sizeof *subscription->ring,
              by_hash);
    }
}

static bool
covers(const struct embedded_consumer *consumer, uint32_t slot)
{
    for (uint32_t i = 0; i < consumer->range_count; i++) {
        if ((int64_t)slot >= consumer->ranges[i].start &&
            (int64_t)slot <= consumer->ranges[i].end) {
            return true;
        }
    }
    return false;
}

struct embedded_consumer *
embedded_slot_owner(const struct embedded_subscription *subscription, uint32_t slot)
{
    if (subscription->is_sticky) {
        for (struct lw_list *node = subscription->consumers.next;
             node != &subscription->consumers; node = node->next) {
            struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                              in_subscription);
            if (covers(consumer, slot)) {
                return consumer;
            }
        }
        return NULL;
    }
    uint32_t low = 0;
    uint32_t high = subscription->ring_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (subscription->ring[middle].hash < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (subscription->ring_count == 0) {
        return NULL;
    }
    low = low == subscription->ring_count ? 0 : low;
    return embedded_consumer_of(subscription, subscription->ring[low].serial);
}

bool
embedded_ranges_meet(const struct embedded_subscription *subscription,
                     const struct lw_pulsar_range *ranges, uint32_t count)
{
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        const struct embedded_consumer *consumer = LW_CONTAINER_CONST(
            node, struct embedded_consumer, in_subscription);
        for (uint32_t i = 0; i < consumer->range_count * count; i++) {
            const struct lw_pulsar_range *mine = &consumer->ranges[i / count];
            const struct lw_pulsar_range *other = &ranges[i % count];
            if (mine->start <= other->end && other->start <= mine->end) {
                return true;
            }
        }
    }
    return false;
}
