/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_lines.c: arbitrary bytes as the lines of a program. Every line is read and, where it is an
 * answer, applied to a message. Nothing may crash, and what an answer makes is always whole: a
 * known verdict, a terminated reason, outputs that can be viewed, a delay that makes sense.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "engines/programs/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
view_all(const struct lw_outcome *outcome)
{
    for (uint32_t i = 0; i < outcome->output_count; i++) {
        size_t count = outcome->outputs[i].header_count;
        struct lw_header *headers = lw_alloc_array(count, sizeof *headers);
        struct lw_output view;
        lw_assert(headers || count == 0);
        lw_outcome_view(outcome, i, &view, headers);
        lw_assert(outcome->outputs[i].is_reply || (view.topic && view.topic[0]));
        lw_assert(view.delay_ms >= 0);
        lw_free(headers);
    }
}

static void
apply(const struct lw_programs_answer *answer, struct lw_delivery *delivery)
{
    if (delivery->outcome) {
        lw_outcome_clear(delivery->outcome);
    }
    enum lw_verdict verdict = lw_programs_answer_apply(answer, delivery);
    lw_assert(verdict <= LW_ERROR);
    if (delivery->outcome) {
        lw_assert(strlen(delivery->outcome->reason) <= LW_REASON_MAX);
        lw_assert(delivery->outcome->delay_ms >= -1);
        view_all(delivery->outcome);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lw_delivery delivery = { .attempt = 1 };
    const char *at = (const char *)bytes;
    const char *end = at + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        struct lw_programs_answer answer;
        lw_programs_answer_read((struct lw_bytes){ at, (size_t)(stop - at) }, &answer);
        lw_assert(answer.kind != LW_PROGRAMS_LINE_EXTEND || answer.extend_ms >= 0);
        if (answer.kind == LW_PROGRAMS_LINE_ANSWER) {
            lw_assert(answer.id > 0);
            apply(&answer, &delivery);
        }
        lw_programs_answer_clear(&answer);
        at = newline ? newline + 1 : end;
    }
    lw_outcome_destroy(delivery.outcome);
    return 0;
}
