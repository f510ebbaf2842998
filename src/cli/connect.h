/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the brokers of a configuration know: whether they answer, and which of the topics it
 * needs are there, with how many partitions. Also makes topics. Blocking; for the command.
 */
#ifndef LW_CLI_CONNECT_H
#define LW_CLI_CONNECT_H

#include <laneway/plugin.h>

#include "base/json.h"
#include "base/loop.h"
#include "cli/command.h"
#include "cli/needs.h"

struct lw_connect_broker {
    const struct lw_config_broker *config;
    struct lw_broker *broker; /* NULL: it could not be made */
    struct lw_error error;    /* status OK: it answered */
};

struct lw_connect {
    struct lw_loop *loop;
    struct lw_needs needs;
    struct lw_connect_broker *brokers;
    size_t broker_count;
    int64_t timeout_ms;
    int exit_code; /* 0, or that of the first broker that did not answer */
};

/* A broker of the registry, not started; the caller destroys it by its table. */
enum lw_status lw_connect_create(struct lw_host *host, const struct lw_config_broker *config,
                                 struct lw_broker **ret_broker, struct lw_error *ret_error);

/* Asks all brokers; what is missing becomes a warning in `diagnostics` (may be NULL). */
void lw_connect_run(struct lw_connect *connect, const struct lw_config *config,
                    int64_t timeout_ms, struct lw_diagnostics *diagnostics);
/* Harmless on zeros. */
void lw_connect_deinit(struct lw_connect *connect);
/* Asks the brokers again for their topics. */
void lw_connect_describe(struct lw_connect *connect);
/* Makes the topics of one broker; the infos carry what became of each. */
enum lw_status
lw_connect_make(struct lw_connect *connect, struct lw_connect_broker *broker,
                struct lw_topic_info *topics, size_t count, struct lw_error *ret_error);

/* Appends a paragraph a broker; nothing on zeros. */
void lw_connect_print(const struct lw_connect *connect, struct lw_text *out);
/* Appends an array of brokers with their topics. */
void lw_connect_json(const struct lw_connect *connect, struct lw_json *json);

#endif
