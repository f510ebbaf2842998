/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to find something, shared by all who ask for the same. lookup.c knows who asks, what
 * is equal and how many may run; search.c walks the steps:
 *
 *   WAITING -> ASKING      a place is free; the service is dialled
 *   ASKING -> ASKING       a redirect
 *   ASKING -> REACHING     the owner is known
 *   WAITING -> REACHING    it was assigned by a broker; REACHING -> ASKING when it is not there
 *   each -> finished       lw_pulsar_search_finish, once
 */
#ifndef LW_BROKERS_PULSAR_SEARCH_H
#define LW_BROKERS_PULSAR_SEARCH_H

#include "brokers/pulsar/lookup.h"

enum lw_pulsar_search_kind {
    LW_PULSAR_SEARCH_PARTITIONS,
    LW_PULSAR_SEARCH_OWNER,
    LW_PULSAR_SEARCH_TOPICS
};

/* What is looked for. */
struct lw_pulsar_query {
    enum lw_pulsar_search_kind kind;
    const char *name;         /* the topic, or the namespace */
    bool creates;             /* PARTITIONS */
    int32_t mode;             /* TOPICS */
    const char *pattern;      /* TOPICS; NULL: all */
    struct lw_bytes hash;     /* TOPICS */
    struct lw_bytes assigned; /* OWNER */
    const char *service;      /* OWNER; NULL: ours */
};

struct lw_pulsar_search {
    struct lw_list link; /* in client->lookups or lookups_waiting */
    struct lw_pulsar_client *client;
    struct lw_list finds;
    struct lw_text key;  /* in client->searches: equal searches have equal keys */
    struct lw_text what; /* for texts: "look up ..." */
    enum lw_pulsar_search_kind kind;
    char *name;
    char *pattern;
    char *hash; /* with hash_size bytes */
    size_t hash_size;
    char *assigned; /* tried first; NULL: no, or no more */
    char *service;  /* of another cluster, which is asked instead of ours; NULL: ours */
    int32_t mode;
    bool creates;
    bool is_exact; /* PARTITIONS: the broker was asked to create nothing */
    bool is_running;
    bool is_authoritative;
    uint32_t redirects;
    struct lw_pulsar_host through; /* where the question went: the proxy, if there is one */
    uint64_t deadline;
    struct lw_timer timer;
    struct lw_pulsar_dial dial;
    struct lw_pulsar_request request;
};

/* -- search.c -------------------------------------------------------------------------------------- */

void lw_pulsar_search_run(struct lw_pulsar_search *search);
void lw_pulsar_search_on_deadline(struct lw_timer *timer, uint64_t now);

/* -- lookup.c --------------------------------------------------------------------------------------- */

/* Tells all who ask, and frees it. */
void lw_pulsar_search_finish(struct lw_pulsar_search *search,
                             const struct lw_pulsar_find_result *result);
/* Forgets all of them without an answer. */
void lw_pulsar_search_drop_all(struct lw_pulsar_client *client);
void lw_pulsar_search_refuse_all(struct lw_deferred *deferred);

#endif
