/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads configurations from texts and hands out what was said about them. One fixture at a time
 * per variable; `config_close` gives everything back and checks that nothing leaks.
 */
#ifndef TESTS_SERVICE_CONFIG_FIXTURE_H
#define TESTS_SERVICE_CONFIG_FIXTURE_H

#include "tests/support/test.h"

#include "service/config.h"

struct config_fixture {
    struct lw_config *config;
    struct lw_diagnostics diagnostics;
    struct lw_text printed; /* the diagnostics as a terminal shows them, without colour */
    uint64_t live_before;
};

/* A whole small configuration that is right. */
extern const char *const config_small;
/* A client that knows a few properties, like the Kafka client of version 2.0.2. */
extern const struct lw_config_client config_client;

/* Loads one text, named "bad.yaml"; with the client above and no environment. */
void config_open(struct config_fixture *fixture, const char *text);
/* Loads a whole source; its client is set if it has none. */
void config_open_source(struct config_fixture *fixture, struct lw_config_source source);
void config_close(struct config_fixture *fixture);

/* Loads the text and asserts the exact print. */
void config_says(const char *text, const char *expected);
/* Loads the text; what is said must contain `part`. */
void config_mentions(const char *text, const char *part);
/* Loads the text; no diagnostics at all. */
void config_is_fine(const char *text);

#endif
