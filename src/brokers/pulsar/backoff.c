/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses between attempts: doubled with each failure up to a cap, times a random factor of 0.9 to
 * 1.0, so that many who lost the same broker do not come back in lockstep.
 */
#include "brokers/pulsar/client.h"

static uint64_t
jitter(struct lw_pulsar_client *client, uint64_t pause)
{
    return pause - lw_host_random_to(client->host, pause / 10);
}

uint64_t
lw_pulsar_backoff_next(struct lw_pulsar_backoff *backoff, struct lw_pulsar_client *client)
{
    uint64_t pause = client->options.backoff_first_ns;
    uint64_t cap = client->options.backoff_max_ns;
    for (uint32_t i = 0; i < backoff->failures && pause < cap; i++) {
        pause = pause > cap / 2 ? cap : pause * 2;
    }
    backoff->failures += backoff->failures < UINT32_MAX ? 1 : 0;
    return jitter(client, pause < cap ? pause : cap);
}

void
lw_pulsar_backoff_reset(struct lw_pulsar_backoff *backoff)
{
    backoff->failures = 0;
}
