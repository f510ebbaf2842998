/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs_world.c: options and making of a programs engine for tests. Scripts run by the
 * python3 of the PATH, without site packages, which starts in half the time.
 */
#include "tests/support/test.h"

#include "tests/engines/programs_world.h"

#include <stdio.h>

struct lw_programs_options
programs_options(const char *script, const char *how)
{
    static char path[256];
    static const char *argv[6];
    (void)snprintf(path, sizeof path, "%s/tests/engines/data/%s", LW_SOURCE_DIR, script);
    argv[0] = "python3";
    argv[1] = "-S";
    argv[2] = path;
    argv[3] = how;
    argv[4] = NULL;
    return (struct lw_programs_options){
        .program = argv,
        .service = "test",
        .pipeline = "orders",
        .workers = 1,
        .window = 1,
        .timeout_ms = 10000,
        .start_timeout_ms = 10000,
    };
}

void
programs_create(struct world *world, const struct lw_programs_options *options)
{
    assert_int_equal(lw_programs_engine_create(world->host, &world->completions, "obey",
                                               options, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, NULL), LW_STATUS_OK);
}
