/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs_world.h: the programs engine with the little programs of tests/engines/data.
 */
#ifndef TESTS_ENGINES_PROGRAMS_WORLD_H
#define TESTS_ENGINES_PROGRAMS_WORLD_H

#include "engines/programs/engine.h"
#include "tests/engines/world.h"

/* One worker, window 1, timeouts of 10 s; the program is python3 tests/engines/data/SCRIPT [HOW].
 * The argv is static. */
struct lw_programs_options programs_options(const char *script, const char *how);
/* Creates world->engine, named "obey", and starts it. */
void programs_create(struct world *world, const struct lw_programs_options *options);

/* A world with an engine of that script; `over` (may be NULL) gives all options but the program. */
struct world *programs_open_world(const char *script, const char *how, const char *argument,
                                  struct lw_programs_options *over);
/* A path of a file that does not exist, for programs that leave a mark. */
const char *programs_marker(void);

#endif
