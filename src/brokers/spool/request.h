/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others may ask the owner of a spool, and how it is written: requests and answers as frames
 * (a length of four bytes, then what wire.h knows). Whoever finds the file free asks itself the
 * same questions, without a socket. A request begins with the version and what it wants, an answer
 * with a status and a text that says why.
 */
#ifndef LW_BROKERS_SPOOL_REQUEST_H
#define LW_BROKERS_SPOOL_REQUEST_H

#include "brokers/spool/store.h"
#include "brokers/spool/wire.h"

enum {
    LW_SPOOL_PROTOCOL = 1,
    LW_SPOOL_FRAME_MAX = 64 << 20,
    LW_SPOOL_REQUEST_ITEMS_MAX = 4096
};

enum lw_spool_request {
    LW_SPOOL_PUBLISH = 1,
    LW_SPOOL_TOPICS,
    LW_SPOOL_LOOK,
    LW_SPOOL_YIELD /* an owner that only publishes leaves the file to one who reads */
};

/* One publication on its way into the file. */
struct lw_spool_item {
    struct lw_publication *publication;
    struct lw_spool_topic *topic;
    enum lw_status status;
};

struct lw_spool_batch {
    struct lw_list link; /* of those that are to be written */
    struct lw_spool_item *items;
    uint32_t count;
    bool is_own; /* the loop's; else a guest's */
};

/* Publications that came as a request; views into it. */
struct lw_spool_guests {
    struct lw_publication *publications;
    struct lw_spool_item *items;
    uint32_t count;
};

/* Reading from a place on, for a person. */
struct lw_spool_look {
    const char *topic;
    int32_t partition;
    int64_t offset; /* from here on; -1: only what comes */
    uint32_t count_max;
    uint32_t patience_ms; /* how long the owner may wait for something to come */
};

void lw_spool_begin_request(struct lw_text *out, enum lw_spool_request kind);
/* Writes the length over the first four bytes. */
void lw_spool_end_frame(struct lw_text *out);
void lw_spool_put_publication(struct lw_text *out, const struct lw_publication *publication);
void lw_spool_put_topics(struct lw_text *out, const struct lw_topic_info *topics, size_t n,
                         bool is_making);
void lw_spool_put_look(struct lw_text *out, const struct lw_spool_look *look);

/* Reads version and kind; 0: it is none of ours. */
int lw_spool_read_request(struct lw_spool_reader *reader);
bool lw_spool_read_guests(struct lw_spool_reader *reader, struct lw_spool_guests *ret_guests);
void lw_spool_free_guests(struct lw_spool_guests *guests);
bool lw_spool_read_look(struct lw_spool_reader *reader, struct lw_spool_look *ret_look);

/* Answers, complete with the length. */
void lw_spool_answer_error(struct lw_text *out, enum lw_status status, const char *why);
void lw_spool_answer_guests(struct lw_text *out, const struct lw_spool_guests *guests,
                            const char *why);
void lw_spool_answer_topics(struct lw_spool_store *store, struct lw_spool_reader *reader,
                            struct lw_text *out);
/* ALREADY: no, the owner reads it, too. */
void lw_spool_answer_yield(struct lw_text *out, bool is_reader);
/* False: nothing is there yet, and nothing was written. */
bool lw_spool_answer_look(struct lw_spool_store *store, struct lw_spool_look *look,
                          bool is_last, struct lw_text *out);

#endif
