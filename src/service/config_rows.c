/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the configuration file. A row without a field (size 0) is checked by the binder
 * and filled in by its owner: references, topics, error classes, built-in handlers.
 */
#include "service/config_rows.h"

#include "service/config.h"
#include "service/options.h"

#define FIELD(type, member)                                                                    \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define SERVICE(member) FIELD(struct lw_config_service, member)
#define BROKER(member) FIELD(struct lw_config_broker, member)
#define HANDLER(member) FIELD(struct lw_config_handler, member)
#define PIPELINE(member) FIELD(struct lw_config_pipeline, member)
#define TOPIC(member) FIELD(struct lw_subscription_options, member)
#define LATER(key, text)                                                                       \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_LATER, .doc = (text)                                  \
    }

static const struct lw_option_word level_words[] = {
    { .word = "error", .value = LW_LOG_ERROR }, { .word = "warn", .value = LW_LOG_WARN },
    { .word = "info", .value = LW_LOG_INFO },   { .word = "debug", .value = LW_LOG_DEBUG },
    { .word = "trace", .value = LW_LOG_TRACE }, { 0 }
};

static const struct lw_option_word format_words[] = {
    { .word = "auto", .value = LW_LOG_FORMAT_AUTO },
    { .word = "text", .value = LW_LOG_FORMAT_TEXT },
    { .word = "json", .value = LW_LOG_FORMAT_JSON },
    { 0 }
};

static const struct lw_option log_rows[] = {
    { .name = "level",
      .type = LW_OPTION_ENUM,
      SERVICE(log_level),
      .reload = LW_RELOAD_LIVE,
      .initial = "info",
      .words = level_words,
      .doc = "Least important level that is written." },
    { .name = "format",
      .type = LW_OPTION_ENUM,
      SERVICE(log_format),
      .reload = LW_RELOAD_LIVE,
      .initial = "auto",
      .words = format_words,
      .doc = "auto: text on a terminal, JSON lines otherwise." },
    { .name = "keys",
      .type = LW_OPTION_BOOL,
      SERVICE(dispatcher.logs_keys),
      .reload = LW_RELOAD_LIVE,
      .initial = "false",
      .doc = "Write message keys into the log." },
    { 0 }
};

const struct lw_option lw_service_rows[] = {
    { .type = LW_OPTION_INCLUDE,
      .offset = offsetof(struct lw_config_service, dispatcher),
      .rows = lw_dispatcher_rows },
    { .name = "control",
      .type = LW_OPTION_TEXT,
      SERVICE(control),
      .initial_note = "NAME.sock in $XDG_RUNTIME_DIR, else /run/laneway",
      .doc = "Path of the unix socket that status, explain, pause, resume and drain use." },
    { .name = "log",
      .type = LW_OPTION_GROUP,
      .rows = log_rows,
      .doc = "The log, on standard error." },
    LATER("http", "The dashboard and metrics over HTTP."),
    LATER("metrics", "Metrics over HTTP."),
    LATER("notify", "Notifications."),
    LATER("tracing", "Traces."),
    LATER("audit", "The audit log."),
    { 0 }
};

static const struct lw_option auth_rows[] = {
    { .name = "token",
      .type = LW_OPTION_TEXT,
      BROKER(auth.token),
      .is_secret = true,
      .doc = "A token, file:///PATH or env:NAME; the latter two are read again at every "
             "connection." },
    { .name = "plugin",
      .type = LW_OPTION_TEXT,
      BROKER(auth.plugin),
      .doc = "token, basic, tls, oauth2, or the class name of an official client." },
    { .name = "params",
      .type = LW_OPTION_TEXT,
      BROKER(auth.params),
      .is_secret = true,
      .doc = "What the plugin needs, written as for the official clients." },
    { 0 }
};

static const struct lw_option tls_rows[] = {
    { .name = "trust_file",
      .type = LW_OPTION_TEXT,
      BROKER(tls.trust_file),
      .initial_note = "the system's authorities",
      .doc = "PEM file of trusted authorities; relative to this file, as the next two." },
    { .name = "certificate_file",
      .type = LW_OPTION_TEXT,
      BROKER(tls.certificate_file),
      .doc = "PEM file of our own certificate." },
    { .name = "key_file",
      .type = LW_OPTION_TEXT,
      BROKER(tls.key_file),
      .doc = "PEM file of its key." },
    { .name = "allow_insecure",
      .type = LW_OPTION_BOOL,
      BROKER(tls.allows_insecure),
      .initial = "false",
      .doc = "No certificate is checked at all." },
    { .name = "validate_hostname",
      .type = LW_OPTION_BOOL,
      BROKER(tls.validates_hostname),
      .initial = "true",
      .doc = "The certificate must be for the broker's name." },
    { 0 }
};

const struct lw_option lw_broker_rows[] = {
    { .name = "url",
      .type = LW_OPTION_TEXT,
      BROKER(url),
      .is_required = true,
      .doc = "kafka://HOST:PORT[,HOST:PORT], pulsar://HOST:PORT[,HOST:PORT], pulsar+ssl://..., "
             "spool:FILE for a durable queue in a file, or memory: for a broker inside this "
             "process." },
    { .name = "properties",
      .type = LW_OPTION_PROPERTIES,
      .offset = offsetof(struct lw_config_broker, properties),
      .size = sizeof(void *),
      .count_offset = offsetof(struct lw_config_broker, property_count),
      .doc =
          "Properties of the client library, spelled as there, handed to it unchanged; on "
          "Pulsar the options of the official clients (pulsar-options.md). The memory broker "
          "has mode (position or individual), sharing, protocol, partitions." },
    { .name = "prefetch_bytes",
      .type = LW_OPTION_BYTES,
      BROKER(prefetch_bytes),
      .initial = "256MiB",
      .min = 1024 * 1024,
      .max = 1.0e15,
      .doc = "Kafka: what the client may fetch ahead, over all partitions of a group." },
    { .name = "auth",
      .type = LW_OPTION_GROUP,
      .rows = auth_rows,
      .doc = "Pulsar: credentials. Kafka has them among its properties." },
    { .name = "tls",
      .type = LW_OPTION_GROUP,
      .rows = tls_rows,
      .doc = "Pulsar: certificates; pulsar+ssl:// switches TLS on." },
    { 0 }
};

const struct lw_option lw_config_handler_rows[] = {
    { .type = LW_OPTION_INCLUDE,
      .offset = offsetof(struct lw_config_handler, run),
      .rows = lw_handler_rows },
    { .type = LW_OPTION_INCLUDE,
      .offset = offsetof(struct lw_config_handler, http),
      .rows = lw_http_rows },
    { .name = "env",
      .type = LW_OPTION_PROPERTIES,
      .offset = offsetof(struct lw_config_handler, env),
      .size = sizeof(void *),
      .count_offset = offsetof(struct lw_config_handler, env_count),
      .doc = "Variables added to the program's environment." },
    { .name = "exit_codes",
      .type = LW_OPTION_PROPERTIES,
      .is_unbound = true,
      .doc = "Protocol once: what exit codes (3, or 10-19) mean, over the table of the "
             "protocol: ok, retry, dead, drop, error, broken." },
    { .name = "builtin",
      .type = LW_OPTION_TEXT,
      HANDLER(builtin_text),
      .doc = "A handler for trials: echo, noop, sleep:5ms, io:5ms, cpu:500, fail-n:3." },
    { .name = "function",
      .type = LW_OPTION_TEXT,
      HANDLER(function),
      .doc = "Name of a C function that the embedding program binds." },
    { 0 }
};

static const struct lw_option_word type_words[] = { { .word = "shared" },
                                                    { .word = "key_shared" },
                                                    { .word = "failover" },
                                                    { .word = "exclusive" },
                                                    { 0 } };

static const struct lw_option consumer_rows[] = {
    { .name = "group",
      .alias = "subscription",
      .type = LW_OPTION_TEXT,
      PIPELINE(group),
      .is_required = true,
      .doc = "Consumer group; on Pulsar the subscription." },
    { .name = "properties",
      .type = LW_OPTION_PROPERTIES,
      .offset = offsetof(struct lw_config_pipeline, properties),
      .size = sizeof(void *),
      .count_offset = offsetof(struct lw_config_pipeline, property_count),
      .doc = "Properties of the client library for this group, such as auto.offset.reset; on "
             "Pulsar options of its consumers." },
    { .name = "type",
      .type = LW_OPTION_ENUM,
      .words = type_words,
      .is_unbound = true,
      .initial_note = "shared",
      .doc = "Pulsar: type of the subscription. Delays of retries need shared or key_shared; "
             "order needs key_shared, failover or exclusive." },
    { 0 }
};

static const struct lw_option matrix_rows[] = {
    { .name = "name",
      .type = LW_OPTION_TEXT,
      .is_required = true,
      .is_unbound = true,
      .doc = "Topic name with one {placeholder} for each of the maps beside it." },
    { .name = "*",
      .type = LW_OPTION_NUMBERS,
      .doc = "A level: names (lower-cased) with numbers. A topic's priority is the sum; the "
             "second map must stay below the smallest gap of the first." },
    { 0 }
};

static const struct lw_option matrix_section_rows[] = {
    { .name = "matrix",
      .type = LW_OPTION_GROUP,
      .rows = matrix_rows,
      .is_required = true,
      .doc = "A family of topics: every combination of one or two maps." },
    { 0 }
};

const struct lw_option lw_topic_entry_rows[] = { { .name = "name",
                                                   .type = LW_OPTION_TEXT,
                                                   TOPIC(topic),
                                                   .is_required = true,
                                                   .doc = "Topic." },
                                                 { .name = "priority",
                                                   .type = LW_OPTION_INT,
                                                   TOPIC(priority),
                                                   .initial = "100",
                                                   .doc = "Lower is served first." },
                                                 { .type = LW_OPTION_INCLUDE,
                                                   .rows = lw_topic_rows },
                                                 { 0 } };

static const struct lw_option_word class_words[] = { { .word = "dead", .value = LW_DEAD },
                                                     { .word = "retry", .value = LW_RETRY },
                                                     { .word = "error", .value = LW_ERROR },
                                                     { 0 } };

static const struct lw_option error_rows[] = {
    { .name = "codes",
      .type = LW_OPTION_TEXTS,
      .is_required = true,
      .is_unbound = true,
      .is_list_of_text = true,
      .doc = "Numbers and ranges: [2, 10-19]." },
    { .name = "verdict",
      .type = LW_OPTION_ENUM,
      .is_required = true,
      .is_unbound = true,
      .words = class_words,
      .doc = "What these codes mean; where several match, dead beats retry beats error." },
    { 0 }
};

const struct lw_option lw_pipeline_rows[] = {
    { .name = "broker",
      .type = LW_OPTION_TEXT,
      PIPELINE(broker_name),
      .is_required = true,
      .doc = "One of brokers." },
    { .name = "handler",
      .type = LW_OPTION_TEXT,
      PIPELINE(handler_name),
      .is_required = true,
      .doc = "One of handlers." },
    { .name = "consumer",
      .type = LW_OPTION_GROUP,
      .rows = consumer_rows,
      .is_required = true,
      .doc = "How the topics are read." },
    { .name = "topics",
      .type = LW_OPTION_LIST,
      .rows = lw_topic_entry_rows,
      .alternative = matrix_section_rows,
      .is_required = true,
      .doc = "The topics: a list of names or of sections, or a matrix." },
    { .type = LW_OPTION_INCLUDE,
      .offset = offsetof(struct lw_config_pipeline, common),
      .rows = lw_subscription_rows },
    { .name = "errors",
      .type = LW_OPTION_LIST,
      .rows = error_rows,
      .doc = "Classes of the codes that a handler gives with the verdict error." },
    LATER("offsets", "Snapshots of what is done behind a gap."),
    LATER("max_blocking", "Giving up a message that holds commits for too long."),
    LATER("poison", "The circuit for a key that always fails."),
    LATER("rate", "Rate limits."),
    LATER("redrive", "Redriving dead letters."),
    { 0 }
};

static const struct lw_option root_rows[] = {
    { .name = "version",
      .type = LW_OPTION_TEXT,
      .is_required = true,
      .is_unbound = true,
      .doc = "Version of this format: 1." },
    { .name = "service",
      .type = LW_OPTION_GROUP,
      .rows = lw_service_rows,
      .doc = "The process." },
    { .name = "brokers",
      .type = LW_OPTION_MAP,
      .rows = lw_broker_rows,
      .is_required = true,
      .doc = "Where messages come from and go to." },
    { .name = "handlers",
      .type = LW_OPTION_MAP,
      .rows = lw_config_handler_rows,
      .is_required = true,
      .doc = "What is run for a message: one of program, plugin, http, builtin, function." },
    { .name = "pipelines",
      .type = LW_OPTION_MAP,
      .rows = lw_pipeline_rows,
      .is_required = true,
      .doc = "Topics, the handler for them, and what happens on failure." },
    { .name = "extensions",
      .type = LW_OPTION_ANY,
      .doc = "Kept for other programs, not looked at." },
    { 0 }
};

const struct lw_option lw_config_root = { .name = "configuration",
                                          .type = LW_OPTION_GROUP,
                                          .rows = root_rows,
                                          .doc = "A configuration of Laneway." };
