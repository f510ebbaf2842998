/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_processes.c: the body of an answer as a hostile worker process may write it, beside a head
 * whose sizes come from the same bytes. What is accepted must be whole: every view lies in what
 * was kept, texts end, and reading it again gives the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "engines/processes/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS_MAX = 4096 };

static void
look_at(const struct lw_outcome *outcome)
{
    static struct lw_header headers[HEADERS_MAX];
    size_t sum = strlen(outcome->reason);
    for (uint32_t i = 0; i < outcome->output_count; i++) {
        struct lw_output view;
        if (outcome->outputs[i].header_count > HEADERS_MAX) {
            continue;
        }
        lw_outcome_view(outcome, i, &view, headers);
        sum += view.topic ? strlen(view.topic) : 0;
        sum += view.key.size + view.value.size;
        lw_assert(view.value.data || view.value.size == 0);
        for (size_t j = 0; j < view.header_count; j++) {
            sum += headers[j].name.size + headers[j].value.size;
        }
    }
    lw_assert(sum <= outcome->bytes.size + LW_REASON_MAX);
}

/* What was read is written as a worker would write it, and read again. */
static void
write_again(struct lw_delivery *delivery, const struct lw_processes_answer *head)
{
    struct lw_processes_answer again = *head;
    again.body_size = lw_processes_answer_measure(delivery->outcome);
    again.output_count = delivery->outcome->output_count;
    unsigned char *body = lw_alloc((size_t)again.body_size);
    lw_assert(body != NULL);
    lw_processes_answer_write(delivery->outcome, body);
    lw_assert(lw_processes_answer_read(&again, body, delivery) == LW_PROCESSES_READ_OK);
    lw_assert(lw_processes_answer_measure(delivery->outcome) == again.body_size);
    lw_free(body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lw_processes_answer head = { .delay_ms = -1 };
    struct lw_delivery delivery = { .attempt = 1 };
    struct {
        uint16_t reason_size;
        uint16_t output_count;
    } sizes;
    if (size < sizeof sizes) {
        return 0;
    }
    memcpy(&sizes, data, sizeof sizes);
    head.reason_size = sizes.reason_size;
    head.output_count = sizes.output_count;
    head.body_size = size - sizeof sizes;
    if (lw_processes_answer_read(&head, data + sizeof sizes, &delivery) ==
        LW_PROCESSES_READ_OK) {
        look_at(delivery.outcome);
        write_again(&delivery, &head);
    }
    lw_outcome_destroy(delivery.outcome);
    return 0;
}
