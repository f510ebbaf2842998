/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin.c: the conformance suite with handlers from a shared object, on the loop (blocking
 * and asynchronous, which finishes from threads of its own) and on threads.
 */
#include "tests/support/test.h"

#include "engines/common/plugin_file.h"
#include "engines/loop.h"
#include "engines/threads.h"
#include "tests/engines/conformance.h"

enum { THREADS = 3 };

static void
load(const char *symbol, struct lw_plugin_file *ret_file)
{
    struct lw_error error = { 0 };
    struct lw_handler_setup setup = { .size = sizeof setup, .handler = "obey" };
    if (lw_plugin_file_load("obey", LW_BINARY_DIR "/tests/plugins/obey.so", symbol, ret_file,
                            &error) != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(lw_plugin_file_open(ret_file, &setup, &error), LW_STATUS_OK);
}

/* The object stays mapped when it is closed, so it may be closed before its engine is. */
static void
create(struct world *world, const char *symbol, int64_t timeout_ms, uint32_t threads)
{
    struct lw_plugin_file file;
    load(symbol, &file);
    struct lw_handler_options options = { .handler = file.table.handle,
                                          .handler_async = file.table.handle_async,
                                          .user = file.user,
                                          .timeout_ms = timeout_ms,
                                          .threads = threads };
    enum lw_status status = (threads > 0 ? lw_threads_engine_create : lw_loop_engine_create)(
        world->host, &world->completions, "obey", &options, &world->engine);
    lw_plugin_file_close(&file);
    assert_int_equal(status, LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, NULL), LW_STATUS_OK);
}

static void
create_blocking(struct world *world, int64_t timeout_ms)
{
    create(world, NULL, timeout_ms, 0);
}

static void
create_async(struct world *world, int64_t timeout_ms)
{
    create(world, "lw_handler_async", timeout_ms, 0);
}

static void
create_threads(struct world *world, int64_t timeout_ms)
{
    create(world, NULL, timeout_ms, THREADS);
}

int
main(void)
{
    static const struct engine_kit kits[] = {
        { .name = "plug-in on loop, blocking", .create = create_blocking },
        { .name = "plug-in on loop, asynchronous", .create = create_async, .can_wait = true },
        { .name = "plug-in on threads",
          .create = create_threads,
          .room = THREADS,
          .can_wait = true },
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof kits / sizeof kits[0]; i++) {
        failed += conformance_run(&kits[i]);
    }
    return failed;
}
