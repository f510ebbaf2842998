/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers.c: the handlers of bench/engines.c in a shared object, one of each kind: `noop` does
 * nothing, `nap` blocks for 5 ms, `cpu` computes 500 digests of SHA-256.
 */
#include <laneway/handler.h>

#include <poll.h>
#include <time.h>

#include "engines/builtin/sha256.h"

enum { SLEEP_NS = 5000000, DIGESTS = 500 };

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static enum lw_verdict
sleep_a_little(struct lw_delivery *delivery, void *user)
{
    struct timespec left = { .tv_nsec = SLEEP_NS };
    (void)delivery;
    (void)user;
    (void)ppoll(NULL, 0, &left, NULL);
    return LW_OK;
}

static enum lw_verdict
compute(struct lw_delivery *delivery, void *user)
{
    uint8_t digest[LW_SHA256_BYTES] = { 0 };
    (void)delivery;
    (void)user;
    for (int i = 0; i < DIGESTS; i++) {
        lw_sha256(digest, sizeof digest, digest);
    }
    __asm__ volatile("" : : "r"(digest) : "memory"); /* the work is wanted, the result is not */
    return LW_OK;
}

LW_HANDLER(noop) = { LW_HANDLER_HEAD, .handle = do_nothing };
LW_HANDLER(nap) = { LW_HANDLER_HEAD, .handle = sleep_a_little };
LW_HANDLER(cpu) = { LW_HANDLER_HEAD, .handle = compute };
