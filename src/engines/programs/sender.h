/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on their way into a program's standard input: a buffer that is written as the pipe has
 * room, and the count of what the program has surely not read, so that a message that still lay
 * in the pipe when the program died is never blamed for the death. Large payloads are not copied
 * into the buffer: a piece points at the view in its delivery, which is looked at anew for every
 * write, since the bytes may move while the message runs.
 */
#ifndef LW_ENGINES_PROGRAMS_SENDER_H
#define LW_ENGINES_PROGRAMS_SENDER_H

#include "base/text.h"

enum lw_programs_sent {
    LW_PROGRAMS_SENT_ALL,
    LW_PROGRAMS_SENT_SOME,  /* the pipe is full: go on when it is writable */
    LW_PROGRAMS_SENT_CLOSED /* nobody reads any more */
};

struct lw_programs_piece {
    size_t at;                    /* of text: it comes before the byte there */
    size_t written;               /* of it */
    const struct lw_bytes *bytes; /* a view in a delivery; NULL: `own` */
    struct lw_bytes own;
};

struct lw_programs_sender {
    struct lw_text text; /* what the next bytes are appended to */
    size_t written;      /* of text */
    struct lw_programs_piece *pieces;
    uint32_t piece_first; /* the first that is not through */
    uint32_t piece_end;
    uint32_t piece_capacity;
    uint64_t piece_bytes; /* of pieces, not written yet */
    uint64_t sent_total;  /* bytes that went into the pipe */
    uint64_t unread;      /* of those, surely never read; known once the reader is gone */
};

void lw_programs_sender_init(struct lw_programs_sender *sender);
void lw_programs_sender_deinit(struct lw_programs_sender *sender);
/* A new pipe: forgets everything but the memory. */
void lw_programs_sender_begin(struct lw_programs_sender *sender);
bool lw_programs_sender_has_more(const struct lw_programs_sender *sender);
/* The place in the stream of the byte that is appended next. Also makes room at the front. */
uint64_t lw_programs_sender_place(struct lw_programs_sender *sender);
/* Appends the bytes of a view, large ones without a copy; false without memory. */
bool lw_programs_sender_append(struct lw_programs_sender *sender, const struct lw_bytes *bytes);
/* The delivery of these views ends: keeps a copy of what was not written; false: no memory. */
bool lw_programs_sender_keep(struct lw_programs_sender *sender, const struct lw_bytes *bytes);
/* Where the stream ends now, to take back what is appended from here on, before any flush. */
struct lw_programs_mark {
    size_t size;
    uint32_t piece_count;
    uint64_t piece_bytes;
};
struct lw_programs_mark lw_programs_sender_mark(const struct lw_programs_sender *sender);
void lw_programs_sender_rewind(struct lw_programs_sender *sender, struct lw_programs_mark mark);
enum lw_programs_sent lw_programs_sender_flush(struct lw_programs_sender *sender, int fd);
/* The reader is gone; `fd` is our end, still open. No delivery is looked at any more. */
void lw_programs_sender_end(struct lw_programs_sender *sender, int fd);
/* True when bytes from that place on were surely never read. After lw_programs_sender_end. */
bool lw_programs_sender_is_unread(const struct lw_programs_sender *sender, uint64_t place);

#endif
