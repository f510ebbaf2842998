/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler says beside the verdict: reason, delay, code, reply, outputs. Made on first use
 * and kept with the delivery's memory, so only deliveries that say something pay for it. The
 * running handler owns it, on whatever thread it runs; everything is copied.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "core/delivery.h"

#define OUTCOME_BYTES_KEPT 4096

struct lw_outcome *
lw_delivery_outcome(struct lw_delivery *delivery)
{
    if (!delivery->outcome) {
        delivery->outcome = lw_alloc(sizeof(*delivery->outcome));
        if (delivery->outcome) {
            lw_text_init(&delivery->outcome->bytes);
            lw_outcome_clear(delivery->outcome);
        }
    }
    return delivery->outcome;
}

void
lw_outcome_clear(struct lw_outcome *outcome)
{
    outcome->reason[0] = '\0';
    outcome->code = 0;
    outcome->has_code = false;
    outcome->signal = 0;
    outcome->delay_ms = -1;
    outcome->is_uncharged = false;
    outcome->output_count = 0;
    if (outcome->bytes.capacity > OUTCOME_BYTES_KEPT || outcome->bytes.is_failed) {
        lw_text_deinit(&outcome->bytes);
        lw_text_init(&outcome->bytes);
    } else {
        lw_text_clear(&outcome->bytes);
    }
}

void
lw_outcome_destroy(struct lw_outcome *outcome)
{
    if (!outcome) {
        return;
    }
    lw_text_deinit(&outcome->bytes);
    lw_free(outcome->outputs);
    lw_free(outcome);
}

void
lw_outcome_set_reason(struct lw_outcome *outcome, const char *reason, size_t length)
{
    size_t kept = length < LW_REASON_MAX ? length : LW_REASON_MAX;
    if (kept > 0) {
        memcpy(outcome->reason, reason, kept);
    }
    outcome->reason[kept] = '\0';
}

static bool
reserve_output(struct lw_outcome *outcome)
{
    if (outcome->output_count < outcome->output_capacity) {
        return true;
    }
    uint32_t capacity = outcome->output_capacity ? outcome->output_capacity * 2 : 2;
    void *grown = lw_resize_array(outcome->outputs, capacity, sizeof(*outcome->outputs));
    if (!grown) {
        return false;
    }
    outcome->outputs = grown;
    outcome->output_capacity = capacity;
    return true;
}

static size_t
store_bytes(struct lw_outcome *outcome, const void *data, size_t size)
{
    size_t start = outcome->bytes.size;
    lw_text_append_bytes(&outcome->bytes, data, size);
    return start;
}

static void
store_header(struct lw_outcome *outcome, const struct lw_header *header)
{
    uint32_t sizes[2] = { (uint32_t)header->name.size,
                          header->value.data ? (uint32_t)header->value.size : UINT32_MAX };
    store_bytes(outcome, sizes, sizeof(sizes));
    store_bytes(outcome, header->name.data, header->name.size);
    if (header->value.data) {
        store_bytes(outcome, header->value.data, header->value.size);
    }
}

static void
store_output(struct lw_outcome *outcome, bool is_reply, const struct lw_output *output,
             struct lw_stored_output *ret_stored)
{
    *ret_stored = (struct lw_stored_output){
        .is_reply = is_reply,
        .has_key = output->key.data != NULL,
        .has_value = output->value.data != NULL,
        .topic_size = output->topic ? strlen(output->topic) : 0,
        .key_size = output->key.size,
        .value_size = output->value.size,
        .header_count = output->header_count,
        .delay_ms = output->delay_ms,
    };
    ret_stored->topic = store_bytes(outcome, output->topic, ret_stored->topic_size);
    lw_text_append_char(&outcome->bytes, '\0');
    ret_stored->key = store_bytes(outcome, output->key.data, output->key.size);
    ret_stored->value = store_bytes(outcome, output->value.data, output->value.size);
    ret_stored->headers = outcome->bytes.size;
    for (size_t i = 0; i < output->header_count; i++) {
        store_header(outcome, &output->headers[i]);
    }
}

/* A second reply replaces the first: only the last one is meant. */
static struct lw_stored_output *
find_reply(struct lw_outcome *outcome)
{
    for (uint32_t i = 0; i < outcome->output_count; i++) {
        if (outcome->outputs[i].is_reply) {
            return &outcome->outputs[i];
        }
    }
    return NULL;
}

enum lw_status
lw_outcome_add(struct lw_outcome *outcome, bool is_reply, const struct lw_output *output)
{
    struct lw_stored_output stored;
    struct lw_stored_output *place = is_reply ? find_reply(outcome) : NULL;
    if (!place && outcome->output_count >= LW_OUTPUTS_MAX) {
        return LW_STATUS_TOO_LARGE;
    }
    if (!place && !reserve_output(outcome)) {
        return LW_STATUS_NO_MEMORY;
    }
    store_output(outcome, is_reply, output, &stored);
    if (outcome->bytes.is_failed) {
        return LW_STATUS_NO_MEMORY;
    }
    if (!place) {
        place = &outcome->outputs[outcome->output_count++];
    }
    *place = stored;
    return LW_STATUS_OK;
}

static size_t
view_header(const char *base, size_t at, struct lw_header *ret_header)
{
    uint32_t sizes[2];
    memcpy(sizes, base + at, sizeof(sizes));
    at += sizeof(sizes);
    ret_header->name = (struct lw_bytes){ base + at, sizes[0] };
    at += sizes[0];
    ret_header->value = (struct lw_bytes){ NULL, 0 };
    if (sizes[1] != UINT32_MAX) {
        ret_header->value = (struct lw_bytes){ base + at, sizes[1] };
        at += sizes[1];
    }
    return at;
}

void
lw_outcome_view(const struct lw_outcome *outcome, uint32_t index, struct lw_output *ret_view,
                struct lw_header *headers)
{
    const struct lw_stored_output *stored = &outcome->outputs[index];
    const char *base = outcome->bytes.data;
    *ret_view = (struct lw_output){
        .topic = stored->topic_size ? base + stored->topic : NULL,
        .key = { stored->has_key ? base + stored->key : NULL, stored->key_size },
        .value = { stored->has_value ? base + stored->value : NULL, stored->value_size },
        .headers = headers,
        .header_count = stored->header_count,
        .delay_ms = stored->delay_ms,
    };
    size_t at = stored->headers;
    for (size_t i = 0; i < stored->header_count; i++) {
        at = view_header(base, at, &headers[i]);
    }
}

const char *
lw_delivery_reason(const struct lw_delivery *delivery)
{
    return delivery->outcome ? delivery->outcome->reason : "";
}

/* -- The public side: what handlers call ---------------------------------------------------- */

static enum lw_verdict
say(struct lw_delivery *delivery, enum lw_verdict verdict, const char *reason)
{
    if (reason) {
        struct lw_outcome *outcome = lw_delivery_outcome(delivery);
        if (outcome) {
            lw_outcome_set_reason(outcome, reason, strlen(reason));
        }
    }
    return verdict;
}

enum lw_verdict
lw_delivery_dead(struct lw_delivery *delivery, const char *reason)
{
    return say(delivery, LW_DEAD, reason);
}

enum lw_verdict
lw_delivery_drop(struct lw_delivery *delivery, const char *reason)
{
    return say(delivery, LW_DROP, reason);
}

enum lw_verdict
lw_delivery_retry(struct lw_delivery *delivery, const char *reason, int64_t delay_ms)
{
    struct lw_outcome *outcome = delay_ms >= 0 ? lw_delivery_outcome(delivery) : NULL;
    if (outcome) {
        outcome->delay_ms = delay_ms;
    }
    return say(delivery, LW_RETRY, reason);
}

enum lw_verdict
lw_delivery_error(struct lw_delivery *delivery, int code, const char *reason)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (outcome) {
        outcome->code = code;
        outcome->has_code = true;
    }
    return say(delivery, LW_ERROR, reason);
}

enum lw_status
lw_delivery_reply(struct lw_delivery *delivery, struct lw_bytes value)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    struct lw_output output = { .value = value };
    return outcome ? lw_outcome_add(outcome, true, &output) : LW_STATUS_NO_MEMORY;
}

enum lw_status
lw_delivery_publish(struct lw_delivery *delivery, const struct lw_output *output)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    return outcome ? lw_outcome_add(outcome, false, output) : LW_STATUS_NO_MEMORY;
}
