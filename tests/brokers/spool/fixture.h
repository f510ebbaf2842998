/* SPDX-License-Identifier: Apache-2.0 */
/* A spool in a folder of its own, on a real loop, driven through plugin.h by the test client. */
#ifndef TESTS_BROKERS_SPOOL_FIXTURE_H
#define TESTS_BROKERS_SPOOL_FIXTURE_H

#include "base/loop.h"
#include "tests/brokers/client.h"

struct spool {
    struct lw_loop *loop;
    struct lw_host *host;
    char folder[64];
    char path[128];
    char url[160];
};

enum { SPOOL_PATIENCE_MS = 60000 };

/* cmocka's setup and teardown; *state is the spool. */
int spool_setup(void **state);
int spool_teardown(void **state);
void spool_make(struct spool *spool);
void spool_remove(struct spool *spool);
/* Turns the loop for so long. */
void spool_pump(struct spool *spool, uint64_t ms);
/* A client that reads a topic (NULL: none) as group "group", started. */
struct client *spool_open(struct spool *spool, const char *topic);
struct client *spool_open_with(struct spool *spool, const char *topic,
                               const struct lw_property *properties, size_t count);
/* Ends it as a dispatcher does. */
void spool_close(struct spool *spool, struct client *client);
/* Receives until there are so many in all; fails when they do not come. */
void spool_receive(struct spool *spool, struct client *client, size_t count);
/* Publishes and waits for the receipts, which must be ok. */
void spool_publish(struct spool *spool, struct client *client, const char *topic,
                   const char *key, int first, int count);
void spool_await_receipts(struct spool *spool, struct client *client, size_t count);
/* Runs SQL on the file, which nobody owns; the first column of the first row as a number. */
long long spool_sql(const struct spool *spool, const char *text);

#endif
