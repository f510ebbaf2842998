/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading properties by the table. All is read into a copy, so that an error changes nothing.
 * Messages name options and show values, except those of rows that are secret.
 */
#include "brokers/pulsar/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define UNKNOWN "E0414"
#define REFUSED "E0415"
#define WRONG "E0416"
#define METADATA "properties."

enum { NAME_BYTES = 128, SCOPES = 3 };

static const enum lw_pulsar_scope scopes[SCOPES] = { LW_PULSAR_SCOPE_CLIENT,
                                                     LW_PULSAR_SCOPE_CONSUMER,
                                                     LW_PULSAR_SCOPE_PRODUCER };
static const char *const prefixes[SCOPES] = { "client.", "consumer.", "producer." };

/* -- Finding ---------------------------------------------------------------------------------------- */

enum lw_pulsar_fate_of_option
lw_pulsar_option_fate(const struct lw_option *row)
{
    if (row->type == LW_OPTION_LATER) {
        return LW_PULSAR_OPTION_REFUSED;
    }
    bool is_served = row->size > 0 || row->type == LW_OPTION_PROPERTIES;
    return is_served ? LW_PULSAR_OPTION_SERVED : LW_PULSAR_OPTION_EMPTY;
}

/* The name without its prefix; *ret_scope: the prefix's number, SCOPES: none. */
static const char *
strip(const char *name, int *ret_scope)
{
    for (int i = 0; i < SCOPES; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            *ret_scope = i;
            return name + strlen(prefixes[i]);
        }
    }
    *ret_scope = SCOPES;
    return name;
}

static const struct lw_option *
find_in(enum lw_pulsar_scope scope, const char *name)
{
    bool is_metadata = strlen(name) > strlen(METADATA) &&
                       strncmp(name, METADATA, strlen(METADATA)) == 0;
    return lw_option_find(lw_pulsar_option_rows(scope), is_metadata ? METADATA "*" : name,
                          NULL);
}

const struct lw_option *
lw_pulsar_option_find(const char *name, enum lw_pulsar_scope *ret_scope)
{
    int wanted = SCOPES;
    const char *bare = strip(name, &wanted);
    for (int i = 0; i < SCOPES; i++) {
        const struct lw_option *row = wanted == SCOPES || wanted == i ? find_in(scopes[i], bare)
                                                                      : NULL;
        if (row) {
            *ret_scope = scopes[i];
            return row;
        }
    }
    return NULL;
}

/* "receiverQueueSize" as receiver_queue_size. */
static void
to_snake(const char *name, char *out, size_t size)
{
    size_t used = 0;
    for (; *name && used + 3 < size; name++) {
        if (isupper((unsigned char)*name) && used > 0) {
            out[used++] = '_';
        }
        out[used++] = (char)tolower((unsigned char)*name);
    }
    out[used] = '\0';
}

bool
lw_pulsar_property_suggest(const char *name, char *out, size_t size)
{
    int scope = SCOPES;
    char snake[NAME_BYTES];
    const char *bare = strip(name, &scope);
    const char *best = NULL;
    size_t best_distance = 0;
    to_snake(bare, snake, sizeof snake);
    for (int i = 0; i < SCOPES; i++) {
        const char *near = lw_option_nearest(lw_pulsar_option_rows(scopes[i]), snake);
        near = find_in(scopes[i], snake) ? find_in(scopes[i], snake)->name : near;
        size_t distance = near ? lw_text_distance(snake, near) : 0;
        if (near && (!best || distance < best_distance)) {
            best = near;
            best_distance = distance;
        }
    }
    if (best) {
        lw_text_copy(out, size, best);
    }
    return best != NULL;
}

/* -- Values ----------------------------------------------------------------------------------------- */

/* Python writes True and False. */
static const char *
spell_bool(const struct lw_option *row, const char *value)
{
    if (row->type != LW_OPTION_BOOL) {
        return value;
    }
    return strcmp(value, "True") == 0 ? "true" : strcmp(value, "False") == 0 ? "false" : value;
}

static void
describe_range(const struct lw_option *row, char *out, size_t size)
{
    struct lw_text type;
    lw_text_init(&type);
    lw_option_type_name(row, &type);
    const char *words = type.data ? type.data : "";
    if (row->min < row->max) {
        (void)snprintf(out, size, "a %s from %.0f to %.0f", words, row->min, row->max);
    } else {
        (void)snprintf(out, size, "%s", words);
    }
    lw_text_deinit(&type);
}

static const char *
nearest_word(const struct lw_option *row, const char *value)
{
    const char *best = NULL;
    size_t best_distance = 3;
    for (const struct lw_option_word *word = row->words; word && word->word; word++) {
        size_t distance = lw_text_distance(value, word->word);
        if (!word->is_alias && distance < best_distance) {
            best = word->word;
            best_distance = distance;
        }
    }
    return best;
}

/* "5s" where the unit is in the option's name, "yes" for true, a word that is misspelt. */
static void
help_value(const struct lw_option *row, const char *value, struct lw_error *ret_error)
{
    const char *word = nearest_word(row, value);
    size_t digits = strspn(value, "0123456789");
    bool is_number = row->type == LW_OPTION_INT || row->type == LW_OPTION_UINT;
    bool has_unit = is_number && digits > 0 && isalpha((unsigned char)value[digits]);
    if (word && !row->is_secret) {
        lw_error_help(ret_error, "did you mean \"%s\"?", word);
    } else if (has_unit && !row->is_secret) {
        lw_error_help(ret_error, "write a bare number: the options of the clients have their "
                                 "unit in their name");
    } else if (row->type == LW_OPTION_BOOL && !row->is_secret) {
        lw_error_help(ret_error, "write true or false");
    } else {
        lw_error_help(ret_error, "docs/pulsar-options.md lists the options and their values");
    }
}

static enum lw_status
refuse_value(const struct lw_option *row, const char *name, const char *value,
             struct lw_error *ret_error)
{
    char range[256];
    describe_range(row, range, sizeof range);
    enum lw_status status = row->is_secret
                                ? lw_error_set(ret_error, LW_STATUS_CONFIG, WRONG,
                                               "\"%s\" has a wrong value", name)
                                : lw_error_set(ret_error, LW_STATUS_CONFIG, WRONG,
                                               "\"%s\" cannot be \"%.80s\": it wants %s", name,
                                               value, range);
    help_value(row, value, ret_error);
    return status;
}

static bool
is_harmless(const struct lw_option *row, const char *value)
{
    return row->initial && strcasecmp(row->initial, value) == 0;
}

static enum lw_status
refuse_option(const struct lw_option *row, const char *name, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(
        ret_error, LW_STATUS_UNSUPPORTED, REFUSED,
        "the option \"%s\" of the Pulsar clients is not served: %s", name, row->doc);
    lw_error_help(ret_error,
                  row->initial ? "leave it out, or leave it at %s"
                               : "leave it out; docs/pulsar-options.md says what is there "
                                 "instead",
                  row->initial);
    return status;
}

/* A value that the clients have and we do not. */
static enum lw_status
refuse_word(const struct lw_option *row, const char *name, const char *value,
            struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_UNSUPPORTED, REFUSED,
                                         "\"%s\" of the option \"%s\" is not served", value,
                                         name);
    lw_error_help(ret_error, "%s", row->doc);
    return status;
}

static enum lw_status
refuse_name(const char *name, struct lw_error *ret_error)
{
    char near[NAME_BYTES];
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, UNKNOWN,
                                         "there is no option \"%.100s\" of Pulsar", name);
    if (lw_pulsar_property_suggest(name, near, sizeof near)) {
        lw_error_help(ret_error, "did you mean \"%s\"?", near);
    } else {
        lw_error_help(ret_error, "docs/pulsar-options.md lists them");
    }
    return status;
}

/* -- Storing ---------------------------------------------------------------------------------------- */

static void *
part_of(struct lw_pulsar_options *options, enum lw_pulsar_scope scope)
{
    switch (scope) {
    case LW_PULSAR_SCOPE_CLIENT:
        return &options->client;
    case LW_PULSAR_SCOPE_CONSUMER:
        return &options->consumer;
    case LW_PULSAR_SCOPE_PRODUCER:
        return &options->producer;
    }
    return NULL;
}

static size_t
size_of_metadata(const struct lw_pulsar_metadata_options *metadata)
{
    size_t size = 0;
    for (size_t i = 0; i < metadata->count; i++) {
        const struct lw_property *item = &metadata->items[i];
        size += strlen(item->name) + strlen(item->value);
    }
    return size;
}

static enum lw_status
add_metadata(struct lw_pulsar_options *options, enum lw_pulsar_scope scope,
             const struct lw_property *property, struct lw_error *ret_error)
{
    int prefix = SCOPES;
    const char *name = strip(property->name, &prefix) + strlen(METADATA);
    struct lw_pulsar_metadata_options *metadata = scope == LW_PULSAR_SCOPE_PRODUCER
                                                      ? &options->producer.properties
                                                      : &options->consumer.properties;
    size_t at = 0;
    while (at < metadata->count && strcmp(metadata->items[at].name, name) != 0) {
        at++;
    }
    if (at == LW_PULSAR_METADATA_MAX) {
        return lw_error_set(ret_error, LW_STATUS_CONFIG, WRONG,
                            "\"%.100s\" is one too many: there can be %d properties.NAME",
                            property->name, LW_PULSAR_METADATA_MAX);
    }
    const char *value = property->value ? property->value : "";
    metadata->items[at] = (struct lw_property){ name, value };
    metadata->count = at == metadata->count ? at + 1 : metadata->count;
    if (size_of_metadata(metadata) > LW_PULSAR_METADATA_BYTES_MAX) {
        return lw_error_set(ret_error, LW_STATUS_CONFIG, WRONG,
                            "with \"%.100s\" the names and values of properties.NAME have more "
                            "than %d bytes",
                            property->name, LW_PULSAR_METADATA_BYTES_MAX);
    }
    return LW_STATUS_OK;
}

static enum lw_status
store(struct lw_pulsar_options *options, enum lw_pulsar_scope scope,
      const struct lw_option *row, const struct lw_property *property,
      struct lw_error *ret_error)
{
    union lw_option_value value;
    const char *text = spell_bool(row, property->value ? property->value : "");
    enum lw_option_fault fault = lw_option_parse(row, text, &value);
    if (fault == LW_OPTION_LATER_WORD) {
        return refuse_word(row, property->name, text, ret_error);
    }
    if (fault != LW_OPTION_FINE) {
        return refuse_value(row, property->name, text, ret_error);
    }
    if (row->type == LW_OPTION_TEXT && *text == '\0') {
        value.text = NULL; /* not given */
    }
    if (row->size > 0) {
        lw_option_store(row, value, part_of(options, scope), row->offset);
    }
    return LW_STATUS_OK;
}

static enum lw_status
read_one(struct lw_pulsar_options *options, const struct lw_property *property,
         bool is_consumer_only, struct lw_error *ret_error)
{
    enum lw_pulsar_scope scope = LW_PULSAR_SCOPE_CLIENT;
    const struct lw_option *row = lw_pulsar_option_find(property->name, &scope);
    if (!row) {
        return refuse_name(property->name, ret_error);
    }
    if (row->type == LW_OPTION_LATER) {
        return is_harmless(row, property->value ? property->value : "")
                   ? LW_STATUS_OK
                   : refuse_option(row, property->name, ret_error);
    }
    if (is_consumer_only && scope != LW_PULSAR_SCOPE_CONSUMER) {
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, UNKNOWN,
                                             "\"%s\" is no option of a subscription",
                                             property->name);
        lw_error_help(ret_error, "it belongs into the properties of the broker");
        return status;
    }
    return row->type == LW_OPTION_PROPERTIES ? add_metadata(options, scope, property, ret_error)
                                             : store(options, scope, row, property, ret_error);
}

static enum lw_status
read_all(struct lw_pulsar_options *options, const struct lw_property *properties, size_t count,
         bool is_consumer_only, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    for (size_t i = 0; i < count && status == LW_STATUS_OK; i++) {
        status = read_one(options, &properties[i], is_consumer_only, ret_error);
    }
    return status;
}

void
lw_pulsar_options_init(struct lw_pulsar_options *options)
{
    memset(options, 0, sizeof *options);
    for (int i = 0; i < SCOPES; i++) {
        lw_option_init(lw_pulsar_option_rows(scopes[i]), part_of(options, scopes[i]));
    }
}

static bool
is_given(const struct lw_property *properties, size_t count, const char *name)
{
    int prefix = SCOPES;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(strip(properties[i].name, &prefix), name) == 0) {
            return true;
        }
    }
    return false;
}

enum lw_status
lw_pulsar_options_read_broker(struct lw_pulsar_options *options,
                              const struct lw_property *properties, size_t count,
                              struct lw_error *ret_error)
{
    struct lw_pulsar_options copy = *options;
    enum lw_status status = read_all(&copy, properties, count, false, ret_error);
    if (copy.producer.chunking_enabled && !is_given(properties, count, "batching_enabled")) {
        copy.producer.batching_enabled = false;
    }
    if (status == LW_STATUS_OK) {
        status = lw_pulsar_options_check_broker(&copy, ret_error);
    }
    if (status == LW_STATUS_OK) {
        *options = copy;
    }
    return status;
}

enum lw_status
lw_pulsar_options_read_consumer(struct lw_pulsar_consumer_options *options,
                                const struct lw_property *properties, size_t count,
                                struct lw_error *ret_error)
{
    struct lw_pulsar_options copy;
    lw_pulsar_options_init(&copy);
    copy.consumer = *options;
    enum lw_status status = read_all(&copy, properties, count, true, ret_error);
    if (status == LW_STATUS_OK) {
        *options = copy.consumer;
    }
    return status;
}

/* -- For the reader of configurations -------------------------------------------------------------- */

const char *
lw_pulsar_property_check(const char *name, const char *value)
{
    static struct lw_error error;
    struct lw_pulsar_options options;
    struct lw_property property = { name, value };
    lw_pulsar_options_init(&options);
    return read_one(&options, &property, false, &error) == LW_STATUS_OK ? NULL : error.message;
}

const char *
lw_pulsar_property_owned(const char *name, const char *value)
{
    enum lw_pulsar_scope scope = LW_PULSAR_SCOPE_CLIENT;
    const struct lw_option *row = lw_pulsar_option_find(name, &scope);
    bool is_refused = row && row->type == LW_OPTION_LATER &&
                      !(value && is_harmless(row, value));
    return is_refused ? row->doc : NULL;
}
