/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte string drives the offsets ledger beside a naive model: the sorted list of what is open,
 * and the next position. The first bytes choose start and window; each further pair of bytes is
 * an operation and its argument. After every one the ledger must agree about what is open, what
 * is safe (P2), what is full and how many gaps there are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "core/offsets.h"

enum { OPEN_MAX = 2048, NEARBY = 200 };

struct model {
    int64_t open[OPEN_MAX]; /* ascending */
    size_t count;
    int64_t next; /* -1: unknown */
    int64_t window;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int64_t
safe_of(const struct model *model)
{
    return model->count > 0 ? model->open[0] : model->next;
}

static bool
is_open(const struct model *model, int64_t position, size_t *ret_index)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->open[i] == position) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* Runs of done positions that lie above the first open one. */
static uint64_t
gaps_of(const struct model *model)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        int64_t after = i + 1 < model->count ? model->open[i + 1] : model->next;
        count += after > model->open[i] + 1;
    }
    return count;
}

static void
open_position(struct lw_offsets *offsets, struct model *model, int64_t position)
{
    enum lw_status status = lw_offsets_open(offsets, position);
    if (position < model->next || position < 0) {
        lw_assert(status == LW_STATUS_ALREADY);
        return;
    }
    if (model->count > 0 && position - model->open[0] >= model->window) {
        lw_assert(status == LW_STATUS_AGAIN);
        return;
    }
    lw_assert(status == LW_STATUS_OK);
    model->open[model->count++] = position;
    model->next = position + 1;
}

static void
finish_position(struct lw_offsets *offsets, struct model *model, int64_t position)
{
    size_t index = 0;
    bool was_open = is_open(model, position, &index);
    lw_assert(lw_offsets_is_open(offsets, position) == was_open);
    lw_assert(lw_offsets_done(offsets, position) == was_open);
    if (was_open) {
        model->count--;
        memmove(&model->open[index], &model->open[index + 1],
                (model->count - index) * sizeof(model->open[0]));
    }
}

static void
advance(struct lw_offsets *offsets, struct model *model, int64_t position)
{
    enum lw_status status = lw_offsets_advance_to(offsets, position);
    if (position < 0) {
        lw_assert(status == LW_STATUS_INVALID);
        return;
    }
    bool does_fit = model->count == 0 || position - model->open[0] <= model->window;
    lw_assert(status == (does_fit || position <= model->next ? LW_STATUS_OK : LW_STATUS_AGAIN));
    if (status == LW_STATUS_OK && position > model->next) {
        model->next = position;
    }
}

static void
check(struct lw_offsets *offsets, const struct model *model)
{
    lw_assert(lw_offsets_gap_count(offsets) == gaps_of(model));
    lw_assert(lw_offsets_safe(offsets) == safe_of(model));
    lw_assert(lw_offsets_gap_count(offsets) == gaps_of(model));
    lw_assert(offsets->open == model->count && offsets->next == model->next);
    bool is_full = model->count > 0 && model->next - model->open[0] >= model->window;
    lw_assert(lw_offsets_is_full(offsets) == is_full);
    int64_t from = safe_of(model) - 3;
    for (int64_t position = from; position < from + NEARBY; position++) {
        size_t index;
        lw_assert(lw_offsets_is_open(offsets, position) == is_open(model, position, &index));
    }
}

static void
operate(struct lw_offsets *offsets, struct model *model, uint8_t operation, uint8_t argument)
{
    int64_t next = model->next < 0 ? 0 : model->next;
    switch (operation % 8) {
    case 0: /* a run without a hole */
        for (int i = 0; i < argument && model->count < OPEN_MAX; i++) {
            open_position(offsets, model, next + i);
        }
        break;
    case 1: /* a hole */
        open_position(offsets, model, next + argument);
        break;
    case 2: /* a huge hole */
        open_position(offsets, model, next + ((int64_t)argument << 12));
        break;
    case 3: /* one that is open, if any */
        finish_position(offsets, model,
                        model->count > 0 ? model->open[argument % model->count] : argument);
        break;
    case 4: /* any position near the base */
        finish_position(offsets, model, safe_of(model) + argument - 8);
        break;
    case 5:
        advance(offsets, model, next + argument - 4);
        break;
    case 6: /* below next */
        open_position(offsets, model, next - argument - 1);
        break;
    default:
        check(offsets, model);
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int64_t starts[] = {
        -1, 0, 5, 63, 64, INT64_C(1) << 31, (INT64_C(1) << 53) - 9, (INT64_C(1) << 61)
    };
    if (size < 2 || size > 4096) {
        return 0;
    }
    static struct model model;
    struct lw_offsets offsets;
    model.count = 0;
    model.next = starts[bytes[0] % 8];
    model.window = (INT64_C(64) << bytes[1] % 6) + bytes[1] % 64;
    lw_offsets_init(&offsets, model.next, (uint32_t)model.window);
    for (size_t i = 2; i + 1 < size && model.count < OPEN_MAX; i += 2) {
        operate(&offsets, &model, bytes[i], bytes[i + 1]);
    }
    check(&offsets, &model);
    lw_offsets_deinit(&offsets);
    return 0;
}
