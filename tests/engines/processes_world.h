/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes_world.h: the processes engine with plug-ins of tests/plugins.
 */
#ifndef TESTS_ENGINES_PROCESSES_WORLD_H
#define TESTS_ENGINES_PROCESSES_WORLD_H

#include <sys/types.h>

#include "engines/processes/engine.h"
#include "tests/engines/world.h"

/* One worker, window 1, timeouts of 10 s, the plug-in tests/plugins/NAME.so. */
struct lw_processes_options processes_options(const char *plugin);
/* Creates world->engine, named "obey", and starts it. */
void processes_create(struct world *world, const struct lw_processes_options *options);
struct world *processes_open_world(const struct lw_processes_options *options);
struct lw_processes_figures processes_figures(const struct world *world);
void processes_signal_zygote(const struct world *world, int signal);
/* Kills the zygote, and waits until the engine has noticed it. */
void processes_kill_zygote(struct world *world);
/* The process of that worker; waits until it is known, which may be after its first answers. */
pid_t processes_pid(struct world *world, uint32_t which);
/* Kills one of its processes, if that one is running now. */
void processes_kill_any(const struct world *world, uint32_t which);
/* For world_wait: a handler of `naughty` has begun what it waits in. */
bool processes_have_begun(struct world *world);
/* For world_wait: the process of the first worker has ended, whoever was told. */
bool processes_first_is_over(struct world *world);

/* A file that is made by whoever does something once, in a folder of its own, and the command. */
struct processes_once {
    char folder[32];
    char path[64];
    char command[96];
};
void processes_once_init(struct processes_once *once, const char *word);
/* Fails the test when it was not done. */
void processes_once_deinit(const struct processes_once *once);

#endif
