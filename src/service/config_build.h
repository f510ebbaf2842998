/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the checked tree to struct lw_config, in the order of the sections: service, brokers,
 * handlers, pipelines, and the pipelines' topics. Reports references to nothing and what a
 * section needs as a whole; rules across sections are in config_check.h. Each step uses what is
 * right and passes over what was reported.
 */
#ifndef LW_SERVICE_CONFIG_BUILD_H
#define LW_SERVICE_CONFIG_BUILD_H

#include "service/config.h"

struct lw_config_build {
    struct lw_config *config;
    struct lw_config_arena *arena;
    struct lw_diagnostics *diagnostics;
    const struct lw_config_source *source;
    size_t capacity; /* of config->subscriptions */
};

void lw_config_build_service(struct lw_config_build *build);
void lw_config_build_brokers(struct lw_config_build *build);
void lw_config_build_handlers(struct lw_config_build *build);
/* The file of a handler in a shared object (config_plugin.c). */
void lw_config_build_plugin(struct lw_config_build *build, struct lw_config_handler *handler);
void lw_config_build_pipelines(struct lw_config_build *build);

/* Says what is wrong with an address, by its client; true when nothing is. */
bool lw_config_build_url(struct lw_config_build *build, const struct lw_config_broker *broker);
/* Checks the address; `auth` and `tls` become properties (config_pulsar.c). */
void lw_config_build_pulsar(struct lw_config_build *build, struct lw_config_broker *broker);
/* consumer.type becomes a property, receiver_queue_size the option of that name. */
void
lw_config_build_consumer(struct lw_config_build *build, struct lw_config_pipeline *pipeline);
/* Checks address, headers and what goes with them; sets run.http (config_http.c). */
void lw_config_build_http(struct lw_config_build *build, struct lw_config_handler *handler);
/* What is known of that broker; NULL: nothing. */
const struct lw_config_client *lw_config_build_client(const struct lw_config_build *build,
                                                      const struct lw_config_broker *broker);

/* Sets the profile's values, before single values are laid over them. */
void lw_config_build_profile(struct lw_subscription_options *options,
                             const struct lw_node *node, struct lw_config_arena *arena);
/* Number of children of a section of the root, the good ones only. */
size_t lw_config_build_count(const struct lw_node *map);
/* True for an entry that can be used. */
bool lw_config_build_is_usable(const struct lw_node *entry);
/* Reports "no broker is called ..." with the nearest name. `names` is the section. */
void lw_config_build_unknown(struct lw_config_build *build, const struct lw_node *reference,
                             const char *code, const char *kind, const struct lw_node *names);

/* -- Topics (config_topics.c) --------------------------------------------------------------- */

enum { LW_FAMILY_LEVELS_MAX = 2 };

/* One topic of a pipeline, expanded. */
struct lw_config_topic {
    const char *name;
    const char *id; /* its one spelling; of a pattern itself */
    bool is_pattern;
    int32_t priority;
    const struct lw_node *node; /* the entry, or the matrix */
    struct lw_node *entry;      /* with rows of its own; NULL in a matrix */
    size_t level_count;         /* placeholders of the matrix and what they stand for here */
    const char *level_names[LW_FAMILY_LEVELS_MAX];
    const char *level_values[LW_FAMILY_LEVELS_MAX];
};

/* Expands `topics` of a pipeline; *ret_count may be 0 after errors. */
struct lw_config_topic *
lw_config_topics_expand(struct lw_config_build *build,
                        const struct lw_config_pipeline *pipeline, size_t *ret_count);
/*
 * Puts {topic}, {group} and the topic's levels into a text. NULL after reporting an unknown
 * placeholder at `node`.
 */
const char *lw_config_topics_fill(struct lw_config_build *build, const char *text,
                                  const struct lw_config_topic *topic, const char *group,
                                  const struct lw_node *node);
/*
 * Returns the one spelling of a name on that broker (which may be unknown, NULL); NULL after
 * reporting one that it would not take.
 */
const char *
lw_config_topics_check(struct lw_config_build *build, const struct lw_config_broker *broker,
                       const char *name, const struct lw_node *node);
/* The conventional name of a topic that fails; NULL when it cannot be made. */
const char *lw_config_topics_default(struct lw_config_build *build,
                                     const struct lw_config_pipeline *pipeline,
                                     const struct lw_config_topic *topic, bool is_retry);

/* -- Families (config_family.c) ------------------------------------------------------------- */

struct lw_config_level {
    const char *name; /* lower-cased */
    int64_t value;
    const struct lw_node *node;
};

struct lw_config_family {
    const struct lw_node *matrix;
    const struct lw_node *maps[LW_FAMILY_LEVELS_MAX];
    struct lw_config_level *levels[LW_FAMILY_LEVELS_MAX];
    size_t counts[LW_FAMILY_LEVELS_MAX];
    size_t map_count;
};

/* Reads the maps of a matrix and checks the rules of a family; false after reporting. */
bool lw_config_family_read(struct lw_config_build *build, const struct lw_node *matrix,
                           struct lw_config_family *ret_family);

#endif
