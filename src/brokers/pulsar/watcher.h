/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watcher of a namespace's topics (WATCH_TOPIC_LIST), where the broker offers it: a doorbell. What
 * has changed is not believed but asked for again, so that a lost ring costs time and nothing else;
 * whoever owns it goes on asking at a slow pace. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_WATCHER_H
#define LW_BROKERS_PULSAR_WATCHER_H

#include "brokers/pulsar/connection.h"

/*
 * IDLE     -> DIALLING by ensure
 * DIALLING -> ASKING, IDLE when there is no connection, or one to a broker without watchers
 * ASKING   -> WATCHING, IDLE when it is refused
 * WATCHING -> IDLE at the connection's end; each -> IDLE by stop
 */
enum lw_pulsar_watcher_state {
    LW_PULSAR_WATCHER_IDLE,
    LW_PULSAR_WATCHER_DIALLING,
    LW_PULSAR_WATCHER_ASKING,
    LW_PULSAR_WATCHER_WATCHING
};

struct lw_pulsar_watcher;
/* Something may have changed: topics came or went, the watch began, or it ended. */
typedef void (*lw_pulsar_watcher_fn)(struct lw_pulsar_watcher *watcher);

struct lw_pulsar_watcher { /* embedded in its owner */
    struct lw_pulsar_client *client;
    const char *namespace_name;
    lw_pulsar_watcher_fn fn;
    enum lw_pulsar_watcher_state state;
    struct lw_pulsar_user user;
    struct lw_pulsar_dial dial;
    struct lw_pulsar_request request;
};

/* `namespace_name` is the owner's. */
void lw_pulsar_watcher_init(struct lw_pulsar_watcher *watcher, struct lw_pulsar_client *client,
                            const char *namespace_name, lw_pulsar_watcher_fn fn);
/* Begins to watch unless it does already; does nothing where watchers are not offered. */
void lw_pulsar_watcher_ensure(struct lw_pulsar_watcher *watcher);
/* Harmless if idle. */
void lw_pulsar_watcher_stop(struct lw_pulsar_watcher *watcher);
bool lw_pulsar_watcher_is_watching(const struct lw_pulsar_watcher *watcher);

#endif
