/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Service and brokers, and what the other builders share: the profile, names of entries that
 * are near to a wrong one, what is true of a kind of broker. Handlers are built in
 * config_handlers.c, pipelines in config_pipelines.c.
 */
#include "service/config_build.h"

#include <string.h>

#include "service/address_help.h"
#include "service/config_bind.h"
#include "service/config_file.h"
#include "service/config_rows.h"
#include "service/options.h"

enum { SHOWN_BYTES_MAX = 80, NAME_CHARS_MAX = 64, HELP_BYTES = 256 };

static const struct lw_config_traits traits[] = {
    [LW_CONFIG_KAFKA] = { .scheme = "kafka",
                          .ordering = LW_ORDERING_KEY,
                          .retries_in_place = true,
                          .has_tiers = true,
                          .dead_letter = "{topic}.dlq",
                          .retry = "{topic}.retry" },
    [LW_CONFIG_MEMORY] = { .scheme = "memory",
                           .ordering = LW_ORDERING_KEY,
                           .retries_in_place = true,
                           .has_tiers = true,
                           .dead_letter = "{topic}.dlq",
                           .retry = "{topic}.retry" },
    [LW_CONFIG_MEMORY_INDIVIDUAL] = { .scheme = "memory",
                                      .ordering = LW_ORDERING_NONE,
                                      .has_nack = true,
                                      .dead_letter = "{topic}-{group}-DLQ",
                                      .retry = "{topic}-{group}-RETRY" },
    [LW_CONFIG_PULSAR] = { .scheme = "pulsar",
                           .ordering = LW_ORDERING_NONE,
                           .has_nack = true,
                           .dead_letter = "{topic}-{group}-DLQ",
                           .retry = "{topic}-{group}-RETRY" },
    [LW_CONFIG_SPOOL] = { .scheme = "spool",
                          .ordering = LW_ORDERING_KEY,
                          .retries_in_place = true,
                          .has_nack = true,
                          .dead_letter = "{topic}.dlq",
                          .retry = "{topic}.retry" },
};

const struct lw_config_traits *
lw_config_traits(enum lw_config_broker_kind kind)
{
    return &traits[kind];
}

bool
lw_config_is_remote(const struct lw_config_broker *broker)
{
    return broker->kind != LW_CONFIG_MEMORY && broker->kind != LW_CONFIG_MEMORY_INDIVIDUAL;
}

bool
lw_config_build_is_usable(const struct lw_node *entry)
{
    return !entry->is_bad && entry->kind == LW_NODE_MAP;
}

size_t
lw_config_build_count(const struct lw_node *map)
{
    size_t count = 0;
    for (const struct lw_node *entry = map ? map->first : NULL; entry; entry = entry->next) {
        count += lw_config_build_is_usable(entry);
    }
    return count;
}

void
lw_config_build_profile(struct lw_subscription_options *options, const struct lw_node *node,
                        struct lw_config_arena *arena)
{
    const char *word = lw_config_bind_text(node, "profile", arena);
    const struct lw_option *row = lw_option_find(lw_topic_rows, "profile", NULL);
    union lw_option_value value;
    if (word && lw_option_parse(row, word, &value) == LW_OPTION_FINE) {
        const struct lw_profile_row *profile = lw_profile_find((enum lw_profile)value.number);
        options->profile = profile->profile;
        options->receiver_queue_size = profile->receiver_queue_size;
        options->max_in_flight = profile->max_in_flight;
    }
}

static const struct lw_node *
nearest_entry(const struct lw_node *names, const char *name)
{
    const struct lw_node *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (const struct lw_node *entry = names ? names->first : NULL; entry;
         entry = entry->next) {
        size_t distance = 0;
        if (entry->key && lw_option_is_near(name, entry->key, &distance) &&
            distance < best_distance) {
            best = entry;
            best_distance = distance;
        }
    }
    return best;
}

void
lw_config_build_unknown(struct lw_config_build *build, const struct lw_node *reference,
                        const char *code, const char *kind, const struct lw_node *names)
{
    char shown[SHOWN_BYTES_MAX];
    const struct lw_node *best = nearest_entry(names, reference->text);
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, code, &reference->place,
        "no %s is called \"%s\"", kind, lw_node_shown(reference, shown, sizeof(shown)));
    if (best && best->key_place.line > 0) {
        lw_diagnostic_help(item, "did you mean \"%s\" (line %u)?", best->key,
                           best->key_place.line);
    } else if (best) {
        lw_diagnostic_help(item, "did you mean \"%s\"?", best->key);
    } else {
        lw_diagnostic_help(item, "name one of the entries under \"%ss\"", kind);
    }
}

/* The name becomes a file name (the control socket) and part of client ids. */
static void
check_service_name(struct lw_config_build *build, const char *name)
{
    char shown[SHOWN_BYTES_MAX];
    const struct lw_node *node = lw_node_at(build->config->root, "service.name");
    bool is_fine = name[0] != '.' && strlen(name) <= NAME_CHARS_MAX;
    for (const char *at = name; *at; at++) {
        is_fine = is_fine && *at != '/' && (unsigned char)*at >= ' ' && *at != 0x7F;
    }
    if (is_fine || !node) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0117", &node->place,
        "\"%s\" is not a name for a service", lw_node_shown(node, shown, sizeof(shown)));
    lw_diagnostic_help(item,
                       "it becomes part of a file's name: no \"/\", no \".\" in front, at "
                       "most 64 characters");
}

void
lw_config_build_service(struct lw_config_build *build)
{
    struct lw_config_service *service = &build->config->service;
    lw_dispatcher_options_init(&service->dispatcher);
    lw_option_init(lw_service_rows, service);
    lw_config_bind(lw_node_child(build->config->root, "service"), lw_service_rows, service,
                   build->arena);
    check_service_name(build, service->dispatcher.name);
}

/* Appends a part of a list without the blanks around it, behind a comma; empty ones are dropped. */
static size_t
append_part(char *out, size_t used, const char *part, size_t length)
{
    size_t skip = strspn(part, " \t");
    while (length > skip && (part[length - 1] == ' ' || part[length - 1] == '\t')) {
        length--;
    }
    if (length <= skip) {
        return used;
    }
    if (used > 0) {
        out[used++] = ',';
    }
    memmove(out + used, part + skip, length - skip);
    return used + length - skip;
}

/* "a:9092, b:9092," to "a:9092,b:9092"; NULL when nothing is left. */
static const char *
clean_servers(const char *text, struct lw_config_arena *arena)
{
    char *out = lw_config_arena_text(arena, text, strlen(text));
    size_t used = 0;
    while (out && *text) {
        size_t length = strcspn(text, ",");
        used = append_part(out, used, text, length);
        text += length + (text[length] == ',' ? 1 : 0);
    }
    if (!out || used == 0) {
        return NULL;
    }
    out[used] = '\0';
    return out;
}

static void
refuse_url(struct lw_config_build *build, const struct lw_config_broker *broker)
{
    char shown[SHOWN_BYTES_MAX];
    char help[HELP_BYTES];
    const struct lw_node *node = lw_node_child(broker->node, "url");
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0122", &node->place,
        "\"%s\" is not a broker's address", lw_node_shown(node, shown, sizeof(shown)));
    lw_address_help(node->is_secret ? NULL : broker->url, help, sizeof help);
    lw_diagnostic_help(item, "%s", help);
}

/* "memory:", or "memory:NAME" for one that is shared inside the process. */
static bool
is_memory(const char *url)
{
    static const char scheme[] = "memory:";
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
        return false;
    }
    const char *name = url + sizeof(scheme) - 1;
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "._-")] == '\0';
}

static enum lw_config_broker_kind
memory_kind(const struct lw_config_broker *broker)
{
    for (size_t i = 0; i < broker->property_count; i++) {
        if (strcmp(broker->properties[i].name, "mode") == 0 &&
            strcmp(broker->properties[i].value, "individual") == 0) {
            return LW_CONFIG_MEMORY_INDIVIDUAL;
        }
    }
    return LW_CONFIG_MEMORY;
}

static bool
begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The file's path begins at the folder of the configuration, as those of programs do. */
static void
place_spool(struct lw_config_build *build, struct lw_config_broker *broker)
{
    static const char scheme[] = "spool:";
    const struct lw_node *node = lw_node_child(broker->node, "url");
    const struct lw_document *document = node ? node->place.document : NULL;
    const char *directory = document && document->directory ? document->directory : ".";
    if (lw_config_build_url(build, broker)) {
        const char *path = lw_config_file_join(directory, broker->url + sizeof(scheme) - 1,
                                               build->arena);
        broker->url = path ? lw_config_arena_format(build->arena, "%s%s", scheme, path)
                           : broker->url;
    }
}

static void
read_url(struct lw_config_build *build, struct lw_config_broker *broker)
{
    static const char scheme[] = "kafka://";
    if (is_memory(broker->url)) {
        broker->kind = memory_kind(broker);
        return;
    }
    if (begins_with(broker->url, "pulsar://") || begins_with(broker->url, "pulsar+ssl://")) {
        broker->kind = LW_CONFIG_PULSAR;
        lw_config_build_pulsar(build, broker);
        return;
    }
    if (begins_with(broker->url, "spool:")) {
        broker->kind = LW_CONFIG_SPOOL;
        place_spool(build, broker);
        return;
    }
    if (begins_with(broker->url, scheme) &&
        strpbrk(broker->url + sizeof(scheme) - 1, "/\r\n?#@") == NULL) {
        broker->servers = clean_servers(broker->url + sizeof(scheme) - 1, build->arena);
    }
    if (!broker->servers && !build->arena->is_failed) {
        refuse_url(build, broker);
    }
}

void
lw_config_build_brokers(struct lw_config_build *build)
{
    struct lw_config *config = build->config;
    struct lw_node *map = lw_node_child(config->root, "brokers");
    size_t count = lw_config_build_count(map);
    config->brokers = lw_config_arena_array(build->arena, count, sizeof(config->brokers[0]));
    for (struct lw_node *entry = map ? map->first : NULL; config->brokers && entry;
         entry = entry->next) {
        if (!lw_config_build_is_usable(entry)) {
            continue;
        }
        struct lw_config_broker *broker = &config->brokers[config->broker_count++];
        broker->name = entry->key;
        broker->node = entry;
        lw_option_init(lw_broker_rows, broker);
        lw_config_bind(entry, lw_broker_rows, broker, build->arena);
        if (broker->url) {
            read_url(build, broker);
        }
    }
}

const struct lw_config_broker *
lw_config_broker(const struct lw_config *config, const char *name)
{
    for (size_t i = 0; name && i < config->broker_count; i++) {
        if (strcmp(config->brokers[i].name, name) == 0) {
            return &config->brokers[i];
        }
    }
    return NULL;
}

const struct lw_config_handler *
lw_config_handler(const struct lw_config *config, const char *name)
{
    for (size_t i = 0; name && i < config->handler_count; i++) {
        if (strcmp(config->handlers[i].name, name) == 0) {
            return &config->handlers[i];
        }
    }
    return NULL;
}
