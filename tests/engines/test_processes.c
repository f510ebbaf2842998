/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processes.c: the processes engine with a handler that behaves: the conformance suite, what
 * a handler sees in its process.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/engines/conformance.h"
#include "tests/engines/processes_world.h"

static void
create_obeying(struct world *world, int64_t timeout_ms)
{
    struct lw_processes_options options = processes_options("obey");
    options.workers = 2;
    options.timeout_ms = timeout_ms;
    processes_create(world, &options);
}

static void
create_one_with_a_window(struct world *world, int64_t timeout_ms)
{
    struct lw_processes_options options = processes_options("obey");
    options.window = 2;
    options.timeout_ms = timeout_ms;
    processes_create(world, &options);
}

int
main(void)
{
    const struct engine_kit kit = { .name = "processes",
                                    .create = create_obeying,
                                    .room = 2,
                                    .can_wait = true,
                                    .can_end_early = true };
    const struct engine_kit windowed = { .name = "processes, one worker with a window",
                                         .create = create_one_with_a_window,
                                         .room = 2,
                                         .can_wait = true,
                                         .can_end_early = true };
    return conformance_run(&kit) + conformance_run(&windowed);
}
