/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs_world.c: options and making of a programs engine for tests. Scripts run by the
 * python3 of the PATH, without site packages, which starts in half the time.
 */
#include "tests/support/test.h"

#include "tests/engines/programs_world.h"

#include <stdio.h>
#include <unistd.h>

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

struct world *
programs_open_world(const char *script, const char *how, const char *argument,
                    struct lw_programs_options *over)
{
    struct world *world = world_create();
    struct lw_programs_options options = programs_options(script, how);
    const char *program[7] = { NULL };
    if (over) {
        over->program = options.program;
        options = *over;
    }
    for (size_t i = 0; options.program[i]; i++) {
        program[i] = options.program[i];
        program[i + 1] = argument;
    }
    options.program = program;
    programs_create(world, &options);
    return world;
}

const char *
programs_marker(void)
{
    static char path[64];
    (void)snprintf(path, sizeof path, "/tmp/laneway-test-%d", (int)getpid());
    (void)unlink(path);
    return path;
}
