/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file, and what is known of it in memory. To be read in one sitting:
 *
 *   store -> topics -> partitions (a log each) -> positions (a group in a partition)
 *
 * Messages lie in one table; the number of a row is the partition's id in the high bits and the
 * offset in the low ones, so a partition is a range and reading on is a step in a tree, whatever
 * the length of the queue. A position says: everything below `next` is settled, except what has a
 * row in `unsettled`. A row is made for the few that are not in order: given back, delayed, or
 * overtaken by a later one that was settled. `given` says how far a handler may have seen, so
 * that after a crash those count as delivered before.
 *
 * Nothing in memory changes by a transaction that fails: what a commit makes true is applied after
 * it (lw_spool_settle_apply, lw_spool_log_apply). One thread at a time owns a store.
 */
#ifndef LW_BROKERS_SPOOL_STORE_H
#define LW_BROKERS_SPOOL_STORE_H

#include <laneway/plugin.h>

#include "base/list.h"
#include "base/pool.h"
#include "brokers/spool/lock.h"
#include "brokers/spool/options.h"

struct sqlite3;
struct sqlite3_stmt;
struct lw_spool_fetch;

enum {
    LW_SPOOL_SCHEMA = 1,
    LW_SPOOL_APPLICATION = 0x4c776179, /* "Lway", in the file's header */
    LW_SPOOL_OFFSET_BITS = 44
};
#define LW_SPOOL_NEVER_MS INT64_MAX
/* A hundred years, whatever a guest says. */
#define LW_SPOOL_DELAY_MAX_MS INT64_C(3155760000000)

/* Prepared once; the order is that of the texts in statements.c. */
enum lw_spool_statement {
    LW_SPOOL_BEGIN,
    LW_SPOOL_COMMIT,
    LW_SPOOL_ROLLBACK,
    LW_SPOOL_ADD_TOPIC,
    LW_SPOOL_ADD_PARTITION,
    LW_SPOOL_ADD_POSITION,
    LW_SPOOL_APPEND,
    LW_SPOOL_SET_PARTITION,
    LW_SPOOL_READ,
    LW_SPOOL_READ_ONE,
    LW_SPOOL_DUE,
    LW_SPOOL_NEXT_DUE,
    LW_SPOOL_SET_POSITION,
    LW_SPOOL_PUT_UNSETTLED,
    LW_SPOOL_TAKE_UNSETTLED,
    LW_SPOOL_DROP_UNSETTLED,
    LW_SPOOL_LEAST_UNSETTLED,
    LW_SPOOL_TRIM,
    LW_SPOOL_TRIM_UNSETTLED,
    LW_SPOOL_FIRST,
    LW_SPOOL_SIZES,
    LW_SPOOL_COUNT_WAITING,
    LW_SPOOL_FREE_TAKEN,
    LW_SPOOL_PAGES,
    LW_SPOOL_FREE_PAGES,
    LW_SPOOL_STATEMENTS
};

struct lw_spool_topic {
    struct lw_list link;
    int64_t id;
    char *name;
    int64_t retention_ms; /* -1: the broker's */
    uint32_t rotation;    /* of keyless messages */
    int32_t partition_count;
    struct lw_spool_partition *partitions;
};

struct lw_spool_partition {
    struct lw_spool_topic *topic;
    int32_t number;
    int64_t id;
    int64_t first; /* nothing is stored below */
    int64_t stored_first;
    int64_t next;   /* offset of the next message */
    int64_t stored; /* the same, of what is committed */
    uint64_t bytes; /* keys, values and headers that are stored */
    uint64_t stored_bytes;
    struct lw_list positions;
    struct lw_list dirty; /* appended to in this transaction */
    struct lw_list worn;  /* there may be something to delete */
};

/* A message that is out: given to the loop, or being given. */
struct lw_spool_out {
    void *pool_link;
    struct lw_list link;    /* fresh ones: of the position, by offset */
    struct lw_list verdict; /* of the position, once it has one; or in `taken` */
    struct lw_spool_position *position;
    int64_t offset;
    int64_t due_ms; /* given back: then */
    uint32_t redeliveries;
    bool has_row;
    bool is_judged;
    bool is_ack;
};

struct lw_spool_position {
    struct lw_list link;  /* of the partition */
    struct lw_list dirty; /* of the store: has something to write */
    struct lw_spool_partition *partition;
    int64_t id;
    int64_t next;
    int64_t given;
    int64_t seen;         /* the dispatcher was given all fresh ones below */
    int64_t cursor;       /* next fresh one to read */
    int64_t new_next;     /* what this transaction makes of next */
    int64_t taken_due_ms; /* rows up to this pair were taken, since the last write */
    int64_t taken_offset;
    int64_t due_ms;   /* of the first row behind that pair; NEVER: none */
    int64_t least;    /* everything below is settled; -1: to be looked up */
    uint64_t waiting; /* rows behind that pair */
    struct lw_list fresh;
    struct lw_list judged;
    struct lw_list taken;         /* rows that are out, which the file does not know yet */
    struct lw_spool_fetch *asked; /* waits for messages */
};

struct lw_spool_store {
    struct sqlite3 *db;
    struct sqlite3_stmt *statements[LW_SPOOL_STATEMENTS];
    struct lw_spool_lock lock;
    struct lw_spool_options options;
    char *path;
    struct lw_list topics;
    struct lw_list dirty_partitions;
    struct lw_list dirty_positions;
    struct lw_list worn;
    struct lw_pool outs;
    struct lw_error error;   /* of the last failure */
    uint64_t judged_count;   /* verdicts that wait for a commit */
    uint64_t returned_count; /* among them: not acknowledged, so they come again */
    uint32_t append_bound;   /* columns of APPEND that are not NULL, as bits */
    uint32_t worn_count;     /* settled, since somebody looked what can be deleted */
    int64_t pages_max;       /* of publications; 0: as many as the disk has */
    bool is_in_transaction;
    bool has_retention; /* something is to be deleted by its age or size */
    bool keeps_settled; /* whoever reads the file deletes that, as his `keep` says */
};

/* -- Life (schema.c, store.c) ------------------------------------------------------------------ */

struct lw_spool_opening {
    const char *path;
    const struct lw_spool_options *options;
    bool is_made;   /* a file that is not there */
    long owner_pid; /* set by ALREADY; 0: not known */
};

/*
 * Locks, opens, checks and reads the file. ALREADY: somebody owns it. NOT_FOUND: it, or its folder,
 * is not there.
 */
enum lw_status
lw_spool_store_open(struct lw_spool_opening *opening, struct lw_spool_store **ret_store,
                    struct lw_error *ret_error);
void lw_spool_store_close(struct lw_spool_store *store); /* NULL is fine */
bool lw_spool_is_there(const char *path);
/* Opens the database, or says why not; makes the tables of a new one. */
enum lw_status
lw_spool_schema_open(struct lw_spool_store *store, bool is_made, struct lw_error *ret_error);
enum lw_status
lw_spool_statements_prepare(struct lw_spool_store *store, struct lw_error *ret_error);
void lw_spool_statements_finalize(struct lw_spool_store *store);

/* -- Transactions ------------------------------------------------------------------------------- */

/* False: store->error says why. */
bool lw_spool_begin(struct lw_spool_store *store);
bool lw_spool_commit(struct lw_spool_store *store);
void lw_spool_rollback(struct lw_spool_store *store);
/* Outside of transactions: empties SQLite's log into the file, so that it can be written anew. */
void lw_spool_checkpoint(struct lw_spool_store *store);
/* A statement with so many numbers bound; runs it to its end. */
bool lw_spool_run(struct lw_spool_store *store, enum lw_spool_statement which,
                  const int64_t *numbers, int count);
/* The same for one that answers a number; *ret_value stays when there is no row or it is NULL. */
bool lw_spool_ask(struct lw_spool_store *store, enum lw_spool_statement which,
                  const int64_t *numbers, int count, int64_t *ret_value);
struct sqlite3_stmt *lw_spool_bind(struct lw_spool_store *store, enum lw_spool_statement which,
                                   const int64_t *numbers, int count);
bool lw_spool_fail(struct lw_spool_store *store, const char *doing); /* false, for return */

static inline int64_t
lw_spool_row(const struct lw_spool_partition *partition, int64_t offset)
{
    return partition->id * (INT64_C(1) << LW_SPOOL_OFFSET_BITS) + offset;
}

static inline int64_t
lw_spool_offset(int64_t row)
{
    return row & ((INT64_C(1) << LW_SPOOL_OFFSET_BITS) - 1);
}

/* -- Topics and positions ------------------------------------------------------------------------ */

/* All partitions of all topics: starts with NULL, ends with NULL. */
struct lw_spool_partition *lw_spool_next_partition(struct lw_spool_store *store,
                                                   const struct lw_spool_partition *partition);
struct lw_spool_topic *lw_spool_find_topic(struct lw_spool_store *store, const char *name);
/* Outside of transactions. NULL: store->error. */
struct lw_spool_topic *lw_spool_make_topic(struct lw_spool_store *store, const char *name,
                                           int32_t partitions, int64_t retention_ms);
/* The position of a group in a partition, made when it is new. NULL: store->error. */
struct lw_spool_position *
lw_spool_use_position(struct lw_spool_store *store, struct lw_spool_partition *partition,
                      const char *group, bool is_latest);

/* -- Messages (log.c) --------------------------------------------------------------------------- */

/* In a transaction. NOT_FOUND: no such partition; SYSTEM: store->error. */
enum lw_status lw_spool_append(struct lw_spool_store *store, struct lw_spool_topic *topic,
                               const struct lw_publication *publication, int64_t now_ms);
bool lw_spool_log_write(struct lw_spool_store *store);
void lw_spool_log_apply(struct lw_spool_store *store);
void lw_spool_log_revert(struct lw_spool_store *store);

/* -- Settling (settle.c) ------------------------------------------------------------------------ */

void lw_spool_judge(struct lw_spool_store *store, struct lw_spool_out *out, bool is_ack,
                    int64_t due_ms);
/* Gives it back unseen, as it was: it waits until due_ms. */
void lw_spool_delay(struct lw_spool_store *store, struct lw_spool_out *out, int64_t due_ms);
void lw_spool_note_taken(struct lw_spool_store *store, struct lw_spool_out *out);
void lw_spool_note_seen(struct lw_spool_store *store, struct lw_spool_position *position,
                        int64_t seen);
bool lw_spool_settle_write(struct lw_spool_store *store);
void lw_spool_settle_apply(struct lw_spool_store *store);
/* The last write of an orderly end: what is out was not lost with a crash. */
bool lw_spool_settle_leave(struct lw_spool_store *store);

/* -- Retention (trim.c) ------------------------------------------------------------------------- */

/* In a transaction: deletes a bounded number of what nobody needs. */
bool lw_spool_trim(struct lw_spool_store *store, int64_t now_ms);
bool lw_spool_has_worn(const struct lw_spool_store *store);
/* One partition, or all, are looked at by the next trims. */
void lw_spool_wear_one(struct lw_spool_store *store, struct lw_spool_partition *partition);
void lw_spool_wear(struct lw_spool_store *store);

#endif
