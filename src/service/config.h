/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration, read, checked and expanded: what the service has to build. Files, `.env`
 * files, environment and --set are laid over each other (later wins, in that order), every value
 * is typed by the option rows, pipelines are expanded to one subscription per topic, each with
 * the same public options struct that a C program would fill. A configuration with an error
 * gives no result; all errors are in the diagnostics. Nothing here connects to a broker.
 */
#ifndef LW_SERVICE_CONFIG_H
#define LW_SERVICE_CONFIG_H

#include "base/log.h"
#include "service/config_node.h"

/* -- Where it comes from -------------------------------------------------------------------- */

/* A file that is in memory already; `name` is shown in messages. */
struct lw_config_text {
    const char *name;
    const char *text;
    size_t size;
};

enum lw_config_broker_kind {
    LW_CONFIG_KAFKA,
    LW_CONFIG_MEMORY,            /* settles by position, as Kafka does */
    LW_CONFIG_MEMORY_INDIVIDUAL, /* properties: { mode: individual } */
    LW_CONFIG_PULSAR,
    LW_CONFIG_SPOOL /* a file on this machine */
};
enum { LW_CONFIG_BROKER_KINDS = LW_CONFIG_SPOOL + 1 };

struct lw_config_broker;

/* What the properties of a subscription mean for the rules; of Pulsar. */
struct lw_config_consumer {
    bool is_shared;           /* members take messages side by side: shared, key_shared */
    bool keeps_keys;          /* a key goes to one member: all but shared */
    bool keeps_all;           /* everything goes to one member: exclusive, failover */
    const char *type;         /* "shared" */
    bool has_policy;          /* a dead_letter_policy of the client */
    const char *policy_topic; /* its topic; NULL: the conventional one */
    uint32_t queue_size;      /* receiver_queue_size, if it is among them; else 0 */
};

/*
 * What a broker's own module knows about its part of a configuration; each may be NULL. Either
 * `check_property` judges a property, or `owned`, `check` and `suggest` do.
 */
struct lw_config_client {
    /* Returns why Laneway sets this property itself, NULL when it may be given. */
    const char *(*owned)(const char *name, const char *value);
    /* Returns NULL when the client takes it, else the client's own words (good until the next
     * call), "No such configuration property" among them for an unknown one. */
    const char *(*check)(const char *name, const char *value);
    /* Writes the nearest name that the client knows; false when none is near. */
    bool (*suggest)(const char *name, char *out, size_t size);
    /* Returns the version of the linked client, "2.0.2". */
    const char *(*version)(void);
    const char *client_name; /* "librdkafka" */

    enum lw_status (*check_url)(const char *url, struct lw_error *ret_error);
    enum lw_status (*check_property)(bool is_consumer, const struct lw_property *property,
                                     struct lw_error *ret_error);
    /* What contradicts each other among the properties of a broker. */
    enum lw_status (*check_broker)(const struct lw_property *properties, size_t count,
                                   struct lw_error *ret_error);
    /* A subscription's properties, laid over its broker's. */
    enum lw_status (*read_consumer)(const struct lw_config_broker *broker,
                                    const struct lw_property *properties, size_t count,
                                    struct lw_config_consumer *ret_consumer,
                                    struct lw_error *ret_error);
    /* Writes the one spelling of a topic. */
    enum lw_status (*read_topic)(const char *topic, char *out, size_t size,
                                 struct lw_error *ret_error);
    /* What is read may be a pattern; NULL: that is not offered. */
    bool (*is_pattern)(const char *topic);
    enum lw_status (*check_pattern)(const char *pattern, struct lw_error *ret_error);
    bool (*has_topic)(const char *pattern, const char *topic);
    /* The conventional names, as lw_broker_ops.default_topic. */
    bool (*default_topic)(bool is_retry, const char *topic, const char *subscription, char *out,
                          size_t size);
};

struct lw_config_source {
    const char *const *files; /* later wins */
    size_t file_count;
    const struct lw_config_text *texts; /* after the files */
    size_t text_count;
    const char *const *env_files; /* .env files */
    size_t env_file_count;
    const char *const *env;  /* NAME=VALUE, NULL-terminated; NULL: none */
    const char *const *sets; /* PATH=VALUE */
    size_t set_count;
    /* By kind of broker; NULL: what its client knows is not checked. */
    const struct lw_config_client *clients[LW_CONFIG_BROKER_KINDS];
    /* A program or plug-in that is not there is an error here, not at its start. */
    bool resolve_programs;
};

/* -- What comes out -------------------------------------------------------------------------- */

struct lw_config_service {
    struct lw_dispatcher_options dispatcher;
    const char *control; /* path of the control socket; NULL: the default place */
    enum lw_log_level log_level;
    enum lw_log_format log_format;
};

struct lw_config_broker {
    const char *name;
    const char *url;
    enum lw_config_broker_kind kind;
    const char *servers;                  /* Kafka: "host:port,host:port" */
    const struct lw_property *properties; /* those of `auth` and `tls` at their end */
    size_t property_count;
    struct lw_config_auth {
        const char *token;
        const char *plugin;
        const char *params;
    } auth;
    struct lw_config_tls {
        const char *trust_file;
        const char *certificate_file;
        const char *key_file;
        bool allows_insecure;
        bool validates_hostname;
    } tls;
    uint64_t prefetch_bytes;
    const struct lw_node *node;
};

enum lw_config_handler_kind {
    LW_CONFIG_PROGRAM,
    LW_CONFIG_BUILTIN,
    LW_CONFIG_FUNCTION,
    LW_CONFIG_PLUGIN,
    LW_CONFIG_HTTP
};

enum lw_config_builtin {
    LW_BUILTIN_NOOP,
    LW_BUILTIN_ECHO,  /* replies with the value */
    LW_BUILTIN_SLEEP, /* blocks for value ms */
    LW_BUILTIN_IO,    /* waits for value ms without blocking */
    LW_BUILTIN_CPU,   /* computes value rounds */
    LW_BUILTIN_FAIL_N /* fails the first value runs of a message, then ok */
};

struct lw_config_handler {
    const char *name;
    enum lw_config_handler_kind kind;
    struct lw_subscription_options run; /* engine, threads, timeout_ms, program, ... */
    struct lw_http_options http;        /* of LW_CONFIG_HTTP; run.http leads here */
    enum lw_config_builtin builtin;
    int64_t builtin_value;
    const char *builtin_text;      /* "sleep:5ms" */
    const char *function;          /* the name that the program binds */
    const struct lw_property *env; /* added to a program's environment */
    size_t env_count;
    const struct lw_node *node;
};

struct lw_config_pipeline {
    const char *name;
    const struct lw_config_broker *broker;
    const struct lw_config_handler *handler;
    const char *broker_name;
    const char *handler_name;
    const char *group;
    const char *type;                     /* consumer.type; NULL: not given */
    const struct lw_property *properties; /* consumer.properties, with the type on Pulsar */
    size_t property_count;
    struct lw_config_consumer consumer;    /* Pulsar */
    struct lw_subscription_options common; /* before topics are put in */
    size_t first;                          /* its subscriptions, in lw_config.subscriptions */
    size_t count;
    const struct lw_node *node;
};

struct lw_config_subscription {
    struct lw_subscription_options options; /* complete but for a function's pointer */
    const struct lw_config_pipeline *pipeline;
    uint32_t rank; /* served 1st, 2nd, ...; equals share a rank */
    bool is_rank_shared;
    const char *dead_letter_topic; /* the conventional name put in; NULL: none */
    bool is_pattern;               /* it reads all topics that match options.topic */
    /* The names in their one spelling, to be compared; NULL: none, or not known before. */
    const char *topic_id;
    const char *retry_id;
    const char *dead_letter_id;
    const char *reply_id;
    const struct lw_node *node; /* the topic's place in the file */
};

struct lw_config {
    struct lw_config_service service;
    struct lw_config_broker *brokers;
    size_t broker_count;
    struct lw_config_handler *handlers;
    size_t handler_count;
    struct lw_config_pipeline *pipelines;
    size_t pipeline_count;
    struct lw_config_subscription *subscriptions; /* in the order of the file */
    size_t subscription_count;
    struct lw_node *root;
    struct lw_config_arena arena;
};

enum { LW_CONFIG_SUBSCRIPTIONS_MAX = 10000 };

/*
 * Reads, checks and expands. NULL when there is an error in *diagnostics (initialised by the
 * caller, who prints and frees it), or without memory (is_out_of_memory). Warnings and notes may
 * come with a result. Blocks while it reads files.
 */
struct lw_config *
lw_config_load(const struct lw_config_source *source, struct lw_diagnostics *diagnostics);
void lw_config_destroy(struct lw_config *config);

/* Finds by name; NULL when there is none. */
const struct lw_config_broker *
lw_config_broker(const struct lw_config *config, const char *name);
const struct lw_config_handler *
lw_config_handler(const struct lw_config *config, const char *name);

/* Messages that one worker of the handler may hold, the engine's default put in. */
uint32_t lw_config_window(const struct lw_config_handler *handler);

/* What is true of a kind of broker where the file says nothing. */
struct lw_config_traits {
    const char *scheme;
    enum lw_ordering ordering;
    bool retries_in_place;   /* what `retry` means without a retry topic */
    bool has_nack;           /* gives one message back */
    bool has_tiers;          /* delays by topics of their own */
    const char *dead_letter; /* "{topic}.dlq" */
    const char *retry;       /* "{topic}.retry" */
};
const struct lw_config_traits *lw_config_traits(enum lw_config_broker_kind kind);
/* True for brokers that others can reach; the memory broker lives in its process. */
bool lw_config_is_remote(const struct lw_config_broker *broker);
/* How the subscription orders, the broker's default put in. */
enum lw_ordering lw_config_ordering(const struct lw_config_subscription *subscription);
/* True when `retry` runs the message again here. */
bool lw_config_is_in_place(const struct lw_config_subscription *subscription);

/* -- Printing ---------------------------------------------------------------------------------- */

/* Appends what `run` would do, for a person. Secrets are ***. */
void lw_config_plan_print(const struct lw_config *config, struct lw_text *out);
/* The same for a program. */
void lw_config_plan_json(const struct lw_config *config, struct lw_json *json);
/* Appends the JSON Schema (draft 2020-12) of the file, indented. */
void lw_config_schema(struct lw_text *out);
/* Appends the reference page in Markdown (docs/configuration.md). */
void lw_config_reference(struct lw_text *out);

#endif
