/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary headers: a byte string is cut into names and values (names of ours come up often),
 * read, and made into a retry copy, a copy of that copy, and a dead letter, for both families.
 * Whatever came in, everything that is not ours goes out bit for bit in order, ours once each,
 * the identity does not change from copy to copy, and the reason is valid text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "policy/header_names.h"
#include "policy/origin.h"

enum { HEADERS_MAX = 512, OWN_MAX = 13 };

static const char *const OWN[2][OWN_MAX] = {
    [LW_HEADERS_KAFKA] = { LW_HEADER_REASON, LW_HEADER_ATTEMPT, LW_HEADER_SOURCE_TOPIC,
                           LW_HEADER_PARTITION, LW_HEADER_OFFSET, LW_HEADER_EPOCH, LW_HEADER_ID,
                           LW_HEADER_RETRIES, LW_HEADER_NOT_BEFORE, LW_HEADER_TIMESTAMP,
                           LW_HEADER_DEAD_LETTER_TOPIC },
    [LW_HEADERS_PULSAR] = { LW_PROPERTY_REAL_TOPIC, LW_PROPERTY_ORIGIN_ID,
                            LW_PROPERTY_ORIGIN_ID_JAVA, LW_PROPERTY_RECONSUME_TIMES,
                            LW_PROPERTY_DELAY_TIME, LW_PROPERTY_DEAD_LETTER_TOPIC,
                            LW_PROPERTY_REAL_SUBSCRIPTION, LW_HEADER_ID, LW_HEADER_REASON,
                            LW_HEADER_ATTEMPT },
};

struct input {
    const uint8_t *bytes;
    size_t size;
    struct lw_header headers[HEADERS_MAX];
    size_t count;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint8_t
take_byte(struct input *input)
{
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->bytes++;
}

/* 255 is null; else so many bytes of the input. */
static struct lw_bytes
take_bytes(struct input *input)
{
    size_t size = take_byte(input);
    if (size == 255) {
        return (struct lw_bytes){ NULL, 0 };
    }
    size = size < input->size ? size : input->size;
    struct lw_bytes result = { input->bytes, size };
    input->bytes += size;
    input->size -= size;
    return result;
}

static void
take_headers(struct input *input, enum lw_header_family family)
{
    input->count = 0;
    while (input->size > 0 && input->count < HEADERS_MAX) {
        struct lw_header *header = &input->headers[input->count++];
        uint8_t choice = take_byte(input);
        const char *own = choice < 64 ? OWN[family][choice % OWN_MAX] : NULL;
        header->name = own != NULL ? lw_bytes_of(own) : take_bytes(input);
        header->value = take_bytes(input);
    }
}

static bool
is_own(enum lw_header_family family, struct lw_bytes name)
{
    for (size_t i = 0; i < OWN_MAX; i++) {
        if (OWN[family][i] != NULL && lw_text_is_equal(name, OWN[family][i])) {
            return true;
        }
    }
    return false;
}

static bool
is_same(const struct lw_header *a, const struct lw_header *b)
{
    return lw_bytes_is_equal(a->name, b->name) && lw_bytes_is_equal(a->value, b->value);
}

/* Every header of somebody else in `from` is in `to`, in the same order, and no other. */
static void
check_others(enum lw_header_family family, const struct lw_header *from, size_t count,
             const struct lw_headers *to)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_own(family, from[i].name)) {
            while (at < to->count && is_own(family, to->items[at].name)) {
                at++;
            }
            lw_assert(at < to->count && is_same(&from[i], &to->items[at]));
            at++;
        }
    }
    for (; at < to->count; at++) {
        lw_assert(is_own(family, to->items[at].name));
    }
}

/* Ours are there once at most; Pulsar's retry copies leave the two of Kafka's alone. */
static void
check_own(enum lw_header_family family, const struct lw_headers *list, bool is_dead_letter)
{
    for (size_t i = 0; i < OWN_MAX && OWN[family][i] != NULL; i++) {
        size_t count = 0;
        for (size_t j = 0; j < list->count; j++) {
            count += lw_text_is_equal(list->items[j].name, OWN[family][i]);
        }
        bool is_ours = family == LW_HEADERS_KAFKA || is_dead_letter || i < 8;
        lw_assert(!is_ours || count <= 1);
    }
}

static void
check_reason(const struct lw_headers *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct lw_bytes value = list->items[i].value;
        if (lw_text_is_equal(list->items[i].name, LW_HEADER_REASON)) {
            lw_assert(value.data != NULL && value.size <= 512);
            lw_assert(lw_text_is_utf8(value.data, value.size));
            for (size_t j = 0; j < value.size; j++) {
                lw_assert(((const uint8_t *)value.data)[j] >= 0x20);
            }
        }
    }
}

static void
check_read(enum lw_header_family family, const struct lw_headers *list, uint32_t retries)
{
    struct lw_origin origin;
    lw_origin_read(family, list->items, list->count, &origin);
    lw_assert(origin.retries == retries);
    lw_assert(origin.message_id.size > 0 && origin.topic.size > 0);
}

static void
check_identity(enum lw_header_family family, const struct lw_headers *a,
               const struct lw_headers *b)
{
    struct lw_origin first;
    struct lw_origin second;
    lw_origin_read(family, a->items, a->count, &first);
    lw_origin_read(family, b->items, b->count, &second);
    lw_assert(lw_bytes_is_equal(first.message_id, second.message_id));
    lw_assert(lw_bytes_is_equal(first.topic, second.topic));
    lw_assert(lw_bytes_is_equal(first.dead_letter_topic, second.dead_letter_topic));
    lw_assert(first.timestamp_ms == second.timestamp_ms);
}

static void
check_copies(const struct input *input, struct lw_origin_facts *facts)
{
    struct lw_headers retry;
    struct lw_headers again;
    struct lw_headers dead;
    struct lw_origin origin;
    lw_headers_init(&retry);
    lw_headers_init(&again);
    lw_headers_init(&dead);
    lw_origin_read(facts->family, input->headers, input->count, &origin);
    facts->retries = origin.retries + 1;
    lw_assert(lw_origin_build_retry(facts, input->headers, input->count, &retry));
    check_others(facts->family, input->headers, input->count, &retry);
    check_own(facts->family, &retry, false);
    check_read(facts->family, &retry,
               facts->retries < LW_RETRIES_MAX ? facts->retries : LW_RETRIES_MAX);
    facts->topic = "somewhere else";
    lw_assert(lw_origin_build_retry(facts, retry.items, retry.count, &again));
    lw_assert(again.count == retry.count);
    check_identity(facts->family, &retry, &again);
    lw_assert(lw_origin_build_dead_letter(facts, again.items, again.count, &dead));
    check_others(facts->family, again.items, again.count, &dead);
    check_own(facts->family, &dead, true);
    check_identity(facts->family, &again, &dead);
    check_reason(&dead);
    lw_assert(lw_origin_build_dead_letter(facts, input->headers, input->count, &dead));
    check_others(facts->family, input->headers, input->count, &dead);
    check_own(facts->family, &dead, true);
    lw_headers_deinit(&retry);
    lw_headers_deinit(&again);
    lw_headers_deinit(&dead);
}

static void
check_reply(const struct input *input)
{
    struct lw_headers reply;
    size_t half = input->count / 2;
    lw_headers_init(&reply);
    lw_assert(lw_origin_build_reply(input->headers, half, input->headers + half,
                                    input->count - half, &reply));
    lw_assert(reply.count >= half && reply.count <= half + 3);
    for (size_t i = 0; i < half; i++) {
        lw_assert(is_same(&reply.items[i], &input->headers[i]));
    }
    lw_headers_deinit(&reply);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct input input;
    char reason[256];
    input.bytes = bytes;
    input.size = size;
    uint8_t options = take_byte(&input);
    struct lw_bytes text = take_bytes(&input);
    memcpy(reason, text.data != NULL ? text.data : "", text.size);
    reason[text.size] = '\0';
    struct lw_origin_facts facts = {
        .family = (options & 1) != 0 ? LW_HEADERS_PULSAR : LW_HEADERS_KAFKA,
        .broker = "main",
        .topic = "orders",
        .partition = 3,
        .position = 42,
        .generation = UINT64_C(1) << 40,
        .timestamp_ms = (options & 2) != 0 ? 1600000000000 : -1,
        .attempt = 2,
        .reason = reason,
        .dead_letter_topic = (options & 4) != 0 ? "orders.dlq" : NULL,
        .not_before_ms = (options & 8) != 0 ? 1700000000000 : -1,
        .delay_ms = (options & 16) != 0 ? 30000 : -1,
    };
    take_headers(&input, facts.family);
    check_copies(&input, &facts);
    check_reply(&input);
    return 0;
}
