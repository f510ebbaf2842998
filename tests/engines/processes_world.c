/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes_world.c: options and making of a processes engine for tests. The zygote is the one of
 * this build folder.
 */
#include "tests/support/test.h"

#include "tests/engines/processes_world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engines/processes/processes.h"

struct lw_processes_options
processes_options(const char *plugin)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/tests/plugins/%s.so", LW_BINARY_DIR, plugin);
    return (struct lw_processes_options){
        .path = path,
        .service = "test",
        .pipeline = "orders",
        .zygote = LW_BINARY_DIR "/libexec/laneway/laneway-zygote",
        .workers = 1,
        .window = 1,
        .timeout_ms = 10000,
        .start_timeout_ms = 20000,
        .tune = { .max_crashes = 3,
                  .ring_bytes = 65536,
                  .item_bytes_max = 4 << 20,
                  .batch_size = 64 },
    };
}

void
processes_create(struct world *world, const struct lw_processes_options *options)
{
    struct lw_error error = { 0 };
    assert_int_equal(lw_processes_engine_create(world->host, &world->completions, "obey",
                                                options, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, &error), LW_STATUS_OK);
}

struct world *
processes_open_world(const struct lw_processes_options *options)
{
    struct world *world = world_create();
    processes_create(world, options);
    return world;
}

struct lw_processes_figures
processes_figures(const struct world *world)
{
    struct lw_processes_figures figures;
    assert_true(lw_processes_engine_is(world->engine));
    lw_processes_engine_figures(world->engine, &figures);
    return figures;
}

static const struct lw_processes *
processes_in(const struct world *world)
{
    return LW_CONTAINER(world->engine, struct lw_processes, engine);
}

static bool
have_pids(struct world *world)
{
    const struct lw_processes *processes = processes_in(world);
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        if (processes->workers[i].pid <= 1) {
            return false;
        }
    }
    return true;
}

pid_t
processes_pid(struct world *world, uint32_t which)
{
    world_wait(world, have_pids);
    return processes_in(world)->workers[which].pid;
}

static bool
is_lost(struct world *world)
{
    return processes_in(world)->zygote_state == LW_PROCESSES_LOST;
}

void
processes_signal_zygote(const struct world *world, int signal)
{
    pid_t pid = processes_in(world)->zygote.pid;
    assert_true(pid > 1);
    assert_int_equal(kill(pid, signal), 0);
}

void
processes_kill_zygote(struct world *world)
{
    processes_signal_zygote(world, SIGKILL);
    world_wait(world, is_lost);
}

void
processes_kill_any(const struct world *world, uint32_t which)
{
    const struct lw_processes *processes = processes_in(world);
    pid_t pid = processes->workers[which % processes->worker_count].pid;
    if (pid > 1) {
        (void)kill(pid, SIGKILL);
    }
}

bool
processes_have_begun(struct world *world)
{
    return world_has_logged(world, "it has begun");
}

bool
processes_first_is_over(struct world *world)
{
    return processes_in(world)->workers[0].is_over;
}

void
processes_once_init(struct processes_once *once, const char *word)
{
    (void)snprintf(once->folder, sizeof once->folder, "/tmp/laneway-test-XXXXXX");
    assert_non_null(mkdtemp(once->folder));
    (void)snprintf(once->path, sizeof once->path, "%s/once", once->folder);
    (void)snprintf(once->command, sizeof once->command, "%s %s", word, once->path);
}

void
processes_once_deinit(const struct processes_once *once)
{
    assert_int_equal(remove(once->path), 0);
    assert_int_equal(remove(once->folder), 0);
}
