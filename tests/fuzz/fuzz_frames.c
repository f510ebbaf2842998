/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_frames.c: arbitrary bytes as what a hostile program writes under protocol frames, arriving
 * in pieces whose size the first byte chooses, for one message or, if that is odd, for two in one
 * task. Nothing may crash, no byte may be taken twice or for ever, every frame has all its bytes,
 * and what an answer makes is whole.
 */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "engines/programs/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { UNIT_BYTES_MAX = 1 << 16 };

static void
check(const struct lw_programs_answer *answer, struct lw_delivery *delivery)
{
    lw_assert(!answer->is_framed || answer->root);
    lw_assert(answer->is_framed || answer->tail.size == 0);
    lw_assert(answer->kind != LW_PROGRAMS_LINE_EXTEND || answer->extend_ms >= 0);
    if (answer->kind != LW_PROGRAMS_LINE_ANSWER) {
        return;
    }
    lw_assert(answer->id > 0);
    for (struct lw_delivery *at = delivery; at; at = at->task_next) {
        if (at->outcome) {
            lw_outcome_clear(at->outcome);
        }
    }
    enum lw_verdict verdict = lw_programs_answer_apply(answer, delivery);
    lw_assert(verdict <= LW_ERROR || (delivery->is_batch && verdict == LW_PENDING));
    for (const struct lw_delivery *at = delivery; at; at = at->task_next) {
        const struct lw_outcome *outcome = at->outcome;
        for (uint32_t i = 0; outcome && i < outcome->output_count; i++) {
            lw_assert(outcome->outputs[i].value_size <= answer->line.size + answer->tail.size);
        }
    }
}

/* Takes all that is whole; false when the stream is broken. */
static bool
take_all(struct lw_programs_reader *reader, struct lw_delivery *delivery)
{
    struct lw_programs_answer answer;
    enum lw_programs_next next = LW_PROGRAMS_NEXT_NONE;
    size_t before = reader->begin;
    while ((next = lw_programs_frames.next(reader, &answer)) == LW_PROGRAMS_NEXT_UNIT) {
        lw_assert(reader->begin > before && reader->begin <= reader->end);
        before = reader->begin;
        check(&answer, delivery);
        lw_programs_answer_clear(&answer);
    }
    lw_assert(next != LW_PROGRAMS_NEXT_BROKEN || answer.why[0] != '\0');
    return next == LW_PROGRAMS_NEXT_NONE;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lw_delivery second = { .attempt = 1, .is_batch = true };
    struct lw_delivery delivery = { .attempt = 1 };
    struct lw_programs_reader reader;
    struct lw_programs_answer answer;
    if (size < 2) {
        return 0;
    }
    delivery.is_batch = bytes[0] % 2 == 1;
    delivery.task_next = delivery.is_batch ? &second : NULL;
    size_t step = (size_t)bytes[0] + 1;
    lw_programs_reader_init(&reader, UNIT_BYTES_MAX, false);
    reader.data = lw_alloc_array(size, 1);
    reader.capacity = size;
    memcpy(reader.data, bytes + 1, size - 1);
    bool is_whole = true;
    while (is_whole && reader.end < size - 1) {
        size_t left = size - 1 - reader.end;
        reader.end += left < step ? left : step;
        is_whole = take_all(&reader, &delivery);
    }
    if (is_whole && lw_programs_frames.rest(&reader, &answer) == LW_PROGRAMS_NEXT_UNIT) {
        check(&answer, &delivery);
        lw_programs_answer_clear(&answer);
    }
    lw_programs_reader_deinit(&reader);
    lw_outcome_destroy(delivery.outcome);
    lw_outcome_destroy(second.outcome);
    return 0;
}
