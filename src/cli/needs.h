/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topics that a configuration needs: those it reads, the tiers and topics of its retries, its
 * dead letters and replies; each once per broker, with the topics whose partitions it follows
 * (a retry tier must have as many partitions as its source).
 */
#ifndef LW_CLI_NEEDS_H
#define LW_CLI_NEEDS_H

#include "service/config.h"

enum lw_need_kind { LW_NEED_SOURCE, LW_NEED_RETRY, LW_NEED_DEAD_LETTER, LW_NEED_REPLY };

enum { LW_NEED_NAME_MAX = 1024 };

/* Tenants and namespaces are somebody's decision; laneway does not make them. */
#define LW_CLI_MAKE_NAMESPACE "pulsar-admin namespaces create TENANT/NAMESPACE"

struct lw_need {
    enum lw_need_kind kind;
    const struct lw_config_broker *broker;
    const struct lw_node *node;  /* the place in the file that asks for it first */
    char name[LW_NEED_NAME_MAX]; /* in its one spelling */
    int32_t partitions;          /* found at the broker; 0 absent, -1 not known */
    char reason[160];            /* why it is not known */
    enum lw_status status;       /* the same for the exit code */
};

/* `need` has the partitions of `source`, both indices. */
struct lw_need_link {
    size_t need;
    size_t source;
};

struct lw_needs {
    struct lw_need *items;
    size_t count;
    size_t capacity;
    struct lw_need_link *links;
    size_t link_count;
    size_t link_capacity;
    bool is_failed; /* out of memory */
};

void lw_needs_init(struct lw_needs *needs, const struct lw_config *config);
void lw_needs_deinit(struct lw_needs *needs);
/* Partitions that it should have: the most of what it follows; 0 when nothing is known. */
int32_t lw_needs_wanted(const struct lw_needs *needs, size_t index);
const char *lw_need_kind_name(enum lw_need_kind kind);

#endif
