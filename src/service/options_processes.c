/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of struct lw_processes_tuning: what only engine processes has. They are a group of their
 * own among the keys of a handler.
 */
#include "service/options.h"

#define PROCESSES(member)                                                                      \
    .offset = offsetof(struct lw_processes_tuning, member),                                    \
    .size = sizeof(((struct lw_processes_tuning *)0)->member)

#define DAY_MS 86400000.0
#define COUNT_MAX 1000000000.0

static const struct lw_option_word lanes_words[] = { { .word = "shared", .value = false },
                                                     { .word = "pinned", .value = true },
                                                     { 0 } };

static const struct lw_option_word handover_words[] = {
    { .word = "demand", .value = LW_HANDOVER_DEMAND },
    { .word = "demand_min_residence", .value = LW_HANDOVER_MIN_RESIDENCE },
    { .word = "timer", .value = LW_HANDOVER_TIMER },
    { 0 }
};

const struct lw_option lw_processes_rows[] = {
    { .name = "min_workers",
      .type = LW_OPTION_UINT,
      PROCESSES(min_workers),
      .initial = "1",
      .min = 1,
      .max = 10000,
      .doc = "Workers that are started at once, at most `workers`; more are when messages wait "
             "for each of these, as many again each time. With lanes: pinned all are." },
    { .name = "max_crashes",
      .type = LW_OPTION_UINT,
      PROCESSES(max_crashes),
      .initial = "3",
      .min = 1,
      .max = 1000,
      .doc = "A message that crashed its worker so often, running alone, is dead." },
    { .name = "recycle_after",
      .type = LW_OPTION_UINT,
      PROCESSES(recycle_after),
      .initial = "0",
      .min = 0,
      .max = COUNT_MAX,
      .doc = "A worker is replaced after so many messages; 0: never." },
    { .name = "recycle_jitter",
      .type = LW_OPTION_UINT,
      PROCESSES(recycle_jitter),
      .initial = "0",
      .min = 0,
      .max = COUNT_MAX,
      .doc = "And up to so many more, drawn once for each worker." },
    { .name = "lanes",
      .type = LW_OPTION_ENUM,
      PROCESSES(pins_lanes),
      .initial = "shared",
      .words = lanes_words,
      .doc =
          "shared: a message goes to the worker that holds least; pinned: a key always meets "
          "the same worker, and waits for it." },
    { .name = "bind_cpus",
      .type = LW_OPTION_BOOL,
      PROCESSES(binds_cpus),
      .initial = "false",
      .doc = "Bind each worker to one processor, in turn." },
    { .name = "ring",
      .type = LW_OPTION_BYTES,
      PROCESSES(ring_bytes),
      .initial = "256KiB",
      .min = 65536,
      .max = 1 << 30,
      .doc =
          "Shared memory of a worker, each way; rounded up to a power of two. What is larger "
          "than a quarter of it goes in memory of its own." },
    { .name = "item_max",
      .type = LW_OPTION_BYTES,
      PROCESSES(item_bytes_max),
      .initial = "16MiB",
      .min = 1024,
      .max = 1 << 30,
      .doc = "A message (or what a handler answers) that is larger is dead." },
    { .name = "batch_size",
      .type = LW_OPTION_UINT,
      PROCESSES(batch_size),
      .initial = "64",
      .min = 1,
      .max = 100000,
      .doc = "Messages that are handed to a worker at once, at the latest." },
    { .name = "batch_wait",
      .type = LW_OPTION_DURATION,
      PROCESSES(batch_wait_ms),
      .initial = "0",
      .min = 0,
      .max = DAY_MS,
      .doc = "How long the oldest of fewer messages may wait; 0: all are handed over in every "
             "turn." },
    { .name = "handover",
      .type = LW_OPTION_ENUM,
      PROCESSES(handover),
      .initial = "demand",
      .words = handover_words,
      .doc =
          "With batch_wait: hand fewer messages over when the worker has nothing else to do, "
          "the same once the oldest waited for batch_min_residence, or by time only." },
    { .name = "batch_min_residence",
      .type = LW_OPTION_DURATION,
      PROCESSES(batch_min_residence_ms),
      .initial = "0",
      .min = 0,
      .max = DAY_MS,
      .doc = "For demand_min_residence." },
    { 0 }
};
