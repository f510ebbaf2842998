/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms.c: things that one may find under the name of a handler: good ones, of an older and a
 * newer build, and what must be refused.
 */
#include <laneway/handler.h>

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static void
handle_async(struct lw_delivery *delivery, void *user)
{
    (void)user;
    (void)lw_delivery_finish(delivery, LW_OK);
}

static size_t
handle_batch(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
             void *user)
{
    (void)deliveries;
    (void)user;
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = LW_OK;
    }
    return count;
}

LW_HANDLER(blocking) = { LW_HANDLER_HEAD, .handle = handle };
LW_HANDLER(asynchronous) = { LW_HANDLER_HEAD, .handle_async = handle_async };
LW_HANDLER(both) = { LW_HANDLER_HEAD, .handle = handle, .handle_async = handle_async };
LW_HANDLER(batches) = { LW_HANDLER_HEAD, .handle_batch = handle_batch };
static void
handle_batch_async(struct lw_delivery *const deliveries[], size_t count, void *user)
{
    static const enum lw_verdict verdicts[16] = { LW_OK };
    (void)user;
    (void)lw_batch_finish(deliveries[0], verdicts, count < 16 ? count : 16);
}

LW_HANDLER(batches_async) = { LW_HANDLER_HEAD, .handle_batch_async = handle_batch_async };
LW_HANDLER(neither) = { LW_HANDLER_HEAD, .about = "nothing to call" };
LW_HANDLER(other_abi) = { LW_HANDLER_ABI + 1, sizeof(struct lw_handler_plugin),
                          .handle = handle };
LW_HANDLER(no_size) = { LW_HANDLER_ABI, 0, .handle = handle };
LW_HANDLER(too_large) = { LW_HANDLER_ABI, 1000000, .handle = handle };

/* As built with an earlier header, in which `handle` was the last member. */
struct older {
    uint32_t abi;
    uint32_t size;
    const char *about;
    lw_handler_fn handle;
};
LW_API const struct older older = { LW_HANDLER_ABI, sizeof(struct older), "older", handle };

/* As built with a later header: one member more, not in use, and in use. */
struct newer {
    struct lw_handler_plugin base;
    lw_handler_fn handle_better;
};
LW_API const struct newer newer_unused = {
    { LW_HANDLER_ABI, sizeof(struct newer), .handle = handle }, NULL
};
LW_API const struct newer newer_used = {
    { LW_HANDLER_ABI, sizeof(struct newer), .handle = handle }, handle
};

LW_API const int number = 7;
LW_API enum lw_verdict function(struct lw_delivery *delivery, void *user);

enum lw_verdict
function(struct lw_delivery *delivery, void *user)
{
    return handle(delivery, user);
}
