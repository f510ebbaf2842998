/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a spool's options, and their reading. Everything is read into a copy, so that an
 * error changes nothing. Pure.
 */
#include "brokers/spool/options.h"

#include <string.h>

#include "base/error.h"

#define SCHEME "spool:"
#define FIELD(type, member)                                                                    \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define BROKER(member) FIELD(struct lw_spool_options, member)
#define READER(member) FIELD(struct lw_spool_reader_options, member)
#define YEARS_MS 3e12
#define HOUR_MS 3.6e6

static const struct lw_option_word sync_words[] = {
    { .word = "full", .value = LW_SPOOL_SYNC_FULL },
    { .word = "normal", .value = LW_SPOOL_SYNC_NORMAL },
    { .word = "off", .value = LW_SPOOL_SYNC_OFF },
    { 0 }
};
static const struct lw_option_word start_words[] = {
    { .word = "earliest", .value = LW_SPOOL_EARLIEST },
    { .word = "latest", .value = LW_SPOOL_LATEST },
    { 0 }
};

const struct lw_option lw_spool_rows[] = {
    { .name = "synchronous",
      .type = LW_OPTION_ENUM,
      BROKER(synchronous),
      .initial = "full",
      .words = sync_words,
      .doc = "full: a receipt means that the disk has it. normal: a crash of the machine may "
             "take the last moments. off: it may damage the file as well." },
    { .name = "partitions",
      .type = LW_OPTION_UINT,
      BROKER(partitions),
      .initial = "1",
      .min = 1,
      .max = LW_SPOOL_PARTITIONS_MAX,
      .doc = "Partitions of a topic that is made by its first use." },
    { .name = "keep",
      .type = LW_OPTION_DURATION,
      BROKER(keep_ms),
      .initial = "0s",
      .min = 0,
      .max = YEARS_MS,
      .doc = "How long a message stays in the file once every group has settled it." },
    { .name = "retention",
      .type = LW_OPTION_DURATION,
      BROKER(retention_ms),
      .initial = "0s",
      .min = 0,
      .max = YEARS_MS,
      .doc = "Older messages are deleted, handled or not; 0s: never." },
    { .name = "retention_bytes",
      .type = LW_OPTION_BYTES,
      BROKER(retention_bytes),
      .initial = "0B",
      .min = 0,
      .max = 1e15,
      .doc = "A partition's oldest messages are deleted above it, handled or not; 0B: never." },
    { .name = "file_bytes_max",
      .type = LW_OPTION_BYTES,
      BROKER(file_bytes_max),
      .initial = "0B",
      .min = 0,
      .max = 1e15,
      .doc = "How large the file may become; publishing waits then. 0B: as the disk allows." },
    { .name = "redelivery_delay",
      .type = LW_OPTION_DURATION,
      BROKER(redelivery_ms),
      .initial = "1s",
      .min = 0,
      .max = HOUR_MS,
      .doc = "When a message that is given back comes again, if nobody says it." },
    { 0 }
};

const struct lw_option lw_spool_reader_rows[] = {
    { .name = "initial_position",
      .type = LW_OPTION_ENUM,
      READER(initial_position),
      .initial = "earliest",
      .words = start_words,
      .doc = "Where a group begins that was never there: at what the file has, or behind it." },
    { 0 }
};

const char *
lw_spool_path_of(const char *url)
{
    size_t scheme = sizeof SCHEME - 1;
    if (!url || strncmp(url, SCHEME, scheme) != 0 || url[scheme] == '\0' ||
        url[strlen(url) - 1] == '/') {
        return NULL;
    }
    return url + scheme;
}

enum lw_status
lw_spool_check_url(const char *url, struct lw_error *ret_error)
{
    if (lw_spool_path_of(url)) {
        return LW_STATUS_OK;
    }
    (void)lw_error_set(ret_error, LW_STATUS_INVALID, "E0122",
                       "\"%s\" does not name a spool's file", url);
    lw_error_help(ret_error, "write spool:FILE, such as spool:orders.db");
    return LW_STATUS_INVALID;
}

static enum lw_status
refuse_name(const struct lw_option *rows, const char *name, struct lw_error *ret_error)
{
    const char *near = lw_option_nearest(rows, name);
    (void)lw_error_set(ret_error, LW_STATUS_INVALID, "E0421", "a spool has no property \"%s\"",
                       name);
    if (near) {
        lw_error_help(ret_error, "did you mean \"%s\"?", near);
    } else {
        lw_error_help(ret_error, "%s",
                      rows == lw_spool_rows
                          ? "it has synchronous, partitions, keep, retention, retention_bytes, "
                            "file_bytes_max and redelivery_delay"
                          : "a reader of a spool has initial_position");
    }
    return LW_STATUS_INVALID;
}

static enum lw_status
refuse_value(const struct lw_option *row, const char *value, struct lw_error *ret_error)
{
    struct lw_text type;
    lw_text_init(&type);
    lw_option_type_name(row, &type);
    (void)lw_error_set(ret_error, LW_STATUS_INVALID, "E0422",
                       "\"%s\" is no value for a spool's property %s", value, row->name);
    if (row->type == LW_OPTION_UINT) {
        lw_error_help(ret_error, "it takes a whole number from %.0f to %.0f", row->min,
                      row->max);
    } else {
        lw_error_help(ret_error, "it takes: %s", type.data ? type.data : "");
    }
    lw_text_deinit(&type);
    return LW_STATUS_INVALID;
}

enum lw_status
lw_spool_read(const struct lw_option *rows, void *options, const struct lw_property *properties,
              size_t count, struct lw_error *ret_error)
{
    lw_option_init(rows, options);
    for (size_t i = 0; i < count; i++) {
        ptrdiff_t offset = 0;
        union lw_option_value value;
        const struct lw_option *row = lw_option_find(rows, properties[i].name, &offset);
        if (!row) {
            return refuse_name(rows, properties[i].name, ret_error);
        }
        if (lw_option_parse(row, properties[i].value, &value) != LW_OPTION_FINE) {
            return refuse_value(row, properties[i].value, ret_error);
        }
        lw_option_store(row, value, options, offset);
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_spool_check_property(bool is_reader, const struct lw_property *property,
                        struct lw_error *ret_error)
{
    struct lw_spool_options options;
    struct lw_spool_reader_options reader;
    if (is_reader) {
        return lw_spool_read(lw_spool_reader_rows, &reader, property, 1, ret_error);
    }
    return lw_spool_read(lw_spool_rows, &options, property, 1, ret_error);
}

bool
lw_spool_is_topic(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    size_t length = strlen(name);
    return length > 0 && length <= LW_SPOOL_TOPIC_BYTES_MAX &&
           strspn(name, letters) == length && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}
