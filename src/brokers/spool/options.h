/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be said of a spool: `spool:PATH`, properties of the broker, properties of a reader.
 * The rows are read by the broker, by `laneway check` and by the test of docs/spool.md.
 */
#ifndef LW_BROKERS_SPOOL_OPTIONS_H
#define LW_BROKERS_SPOOL_OPTIONS_H

#include <laneway/plugin.h>

#include "base/option.h"

enum {
    LW_SPOOL_PARTITIONS_MAX = 1024,
    LW_SPOOL_MESSAGE_BYTES_MAX = 16 << 20,
    LW_SPOOL_TOPIC_BYTES_MAX = 249
};

enum lw_spool_sync {
    LW_SPOOL_SYNC_FULL,   /* a receipt means: it is on the disk */
    LW_SPOOL_SYNC_NORMAL, /* survives the process; the last moments may not survive the machine */
    LW_SPOOL_SYNC_OFF     /* the same, and the file may be damaged then */
};

enum lw_spool_start { LW_SPOOL_EARLIEST, LW_SPOOL_LATEST };

struct lw_spool_options {
    uint8_t synchronous;      /* enum lw_spool_sync */
    uint32_t partitions;      /* of a topic that is made by its first use */
    int64_t keep_ms;          /* how long a message stays that every group has settled */
    int64_t retention_ms;     /* older ones are deleted, read or not; 0 never */
    uint64_t retention_bytes; /* of a partition, alike */
    uint64_t file_bytes_max;  /* 0: as much as the disk has */
    int64_t redelivery_ms;    /* of what is given back without a delay */
};

struct lw_spool_reader_options {
    uint8_t initial_position; /* enum lw_spool_start */
};

extern const struct lw_option lw_spool_rows[];
extern const struct lw_option lw_spool_reader_rows[];

/* The path in "spool:PATH"; NULL when it is none. */
const char *lw_spool_path_of(const char *url);
enum lw_status lw_spool_check_url(const char *url, struct lw_error *ret_error);
/* Reads properties over the defaults. */
enum lw_status
lw_spool_read(const struct lw_option *rows, void *options, const struct lw_property *properties,
              size_t count, struct lw_error *ret_error);
/* For lw_config_client. */
enum lw_status lw_spool_check_property(bool is_reader, const struct lw_property *property,
                                       struct lw_error *ret_error);
/* True for a name that a topic may have: letters, digits, '.', '_', '-', at most 249. */
bool lw_spool_is_topic(const char *name);

#endif
