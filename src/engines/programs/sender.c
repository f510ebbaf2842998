/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outgoing side of a worker. A batch of requests costs one write. The kernel keeps what the
 * reader left in a pipe until both ends are closed and tells its size on either end, which is
 * how unread bytes are known after a death. Invariants: written <= text.size; pieces ascend by `at`,
 * and none lies before `written`; piece_bytes is what they still have to give.
 */
#include "engines/programs/sender.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"

/* A smaller payload costs less as a copy than as a part of its own. */
enum { KEPT_BYTES = 1 << 20, PIECE_BYTES_MIN = 4096, PARTS_MAX = 64 };

void
lw_programs_sender_init(struct lw_programs_sender *sender)
{
    *sender = (struct lw_programs_sender){ .written = 0 };
    lw_text_init(&sender->text);
}

static void
drop_pieces(struct lw_programs_sender *sender, uint32_t from)
{
    for (uint32_t i = from; i < sender->piece_end; i++) {
        lw_free((void *)(uintptr_t)sender->pieces[i].own.data);
    }
    sender->piece_end = from;
}

void
lw_programs_sender_deinit(struct lw_programs_sender *sender)
{
    drop_pieces(sender, sender->piece_first);
    lw_free(sender->pieces);
    lw_text_deinit(&sender->text);
    lw_programs_sender_init(sender);
}

void
lw_programs_sender_begin(struct lw_programs_sender *sender)
{
    drop_pieces(sender, sender->piece_first);
    lw_text_clear(&sender->text);
    sender->written = 0;
    sender->piece_first = 0;
    sender->piece_end = 0;
    sender->piece_bytes = 0;
    sender->sent_total = 0;
    sender->unread = 0;
}

bool
lw_programs_sender_has_more(const struct lw_programs_sender *sender)
{
    return sender->written < sender->text.size || sender->piece_first < sender->piece_end;
}

uint64_t
lw_programs_sender_place(struct lw_programs_sender *sender)
{
    struct lw_text *text = &sender->text;
    size_t rest = text->size - sender->written;
    if (sender->written > KEPT_BYTES / 2 && rest < sender->written) {
        memmove(text->data, text->data + sender->written, rest);
        for (uint32_t i = sender->piece_first; i < sender->piece_end; i++) {
            sender->pieces[i].at -= sender->written;
        }
        text->size = rest;
        sender->written = 0;
    }
    return sender->sent_total + rest + sender->piece_bytes;
}

/* -- Pieces --------------------------------------------------------------------------------- */

static struct lw_bytes
view_of(const struct lw_programs_piece *piece)
{
    return piece->bytes ? *piece->bytes : piece->own;
}

static bool
make_piece_room(struct lw_programs_sender *sender)
{
    uint32_t count = sender->piece_end - sender->piece_first;
    if (sender->piece_end < sender->piece_capacity) {
        return true;
    }
    if (count > 0 && sender->piece_first > 0) {
        memmove(sender->pieces, sender->pieces + sender->piece_first,
                count * sizeof *sender->pieces);
    }
    sender->piece_first = 0;
    sender->piece_end = count;
    if (count < sender->piece_capacity) {
        return true;
    }
    uint32_t capacity = sender->piece_capacity ? sender->piece_capacity * 2 : 8;
    void *grown = lw_resize_array(sender->pieces, capacity, sizeof *sender->pieces);
    if (!grown) {
        return false;
    }
    sender->pieces = grown;
    sender->piece_capacity = capacity;
    return true;
}

bool
lw_programs_sender_append(struct lw_programs_sender *sender, const struct lw_bytes *bytes)
{
    if (bytes->size < PIECE_BYTES_MIN) {
        if (bytes->size > 0) {
            lw_text_append_bytes(&sender->text, bytes->data, bytes->size);
        }
        return !sender->text.is_failed;
    }
    if (!make_piece_room(sender)) {
        return false;
    }
    sender->pieces[sender->piece_end++] = (struct lw_programs_piece){ .at = sender->text.size,
                                                                      .bytes = bytes };
    sender->piece_bytes += bytes->size;
    return true;
}

bool
lw_programs_sender_keep(struct lw_programs_sender *sender, const struct lw_bytes *bytes)
{
    for (uint32_t i = sender->piece_first; i < sender->piece_end; i++) {
        struct lw_programs_piece *piece = &sender->pieces[i];
        if (piece->bytes != bytes) {
            continue;
        }
        size_t rest = bytes->size - piece->written;
        char *copy = lw_alloc_array(rest, 1);
        if (!copy) {
            return false;
        }
        memcpy(copy, (const char *)bytes->data + piece->written, rest);
        piece->own = (struct lw_bytes){ copy, rest };
        piece->bytes = NULL;
        piece->written = 0;
    }
    return true;
}

struct lw_programs_mark
lw_programs_sender_mark(const struct lw_programs_sender *sender)
{
    return (struct lw_programs_mark){ .size = sender->text.size,
                                      .piece_count = sender->piece_end - sender->piece_first,
                                      .piece_bytes = sender->piece_bytes };
}

void
lw_programs_sender_rewind(struct lw_programs_sender *sender, struct lw_programs_mark mark)
{
    sender->text.size = mark.size;
    sender->text.is_failed = false;
    sender->piece_end = sender->piece_first + mark.piece_count;
    sender->piece_bytes = mark.piece_bytes;
}

/* -- Writing -------------------------------------------------------------------------------- */

/* Keeps the buffer, unless a giant made it large. */
static void
forget_written(struct lw_programs_sender *sender)
{
    sender->written = 0;
    sender->piece_first = 0;
    sender->piece_end = 0;
    if (sender->text.capacity > KEPT_BYTES) {
        lw_text_deinit(&sender->text);
    } else {
        lw_text_clear(&sender->text);
    }
}

static void
add_part(struct iovec *parts, int *count, const char *data, size_t size)
{
    if (size > 0 && *count < PARTS_MAX) {
        parts[(*count)++] = (struct iovec){ (void *)(uintptr_t)data, size };
    }
}

/* What comes next in the stream: text and pieces in turn. */
static int
gather(const struct lw_programs_sender *sender, struct iovec parts[PARTS_MAX])
{
    int count = 0;
    size_t at = sender->written;
    const char *text = sender->text.data;
    for (uint32_t i = sender->piece_first; i < sender->piece_end && count < PARTS_MAX; i++) {
        const struct lw_programs_piece *piece = &sender->pieces[i];
        struct lw_bytes bytes = view_of(piece);
        if (piece->at > at) {
            add_part(parts, &count, text + at, piece->at - at);
        }
        add_part(parts, &count, (const char *)bytes.data + piece->written,
                 bytes.size - piece->written);
        at = piece->at;
    }
    if (sender->text.size > at) {
        add_part(parts, &count, text + at, sender->text.size - at);
    }
    return count;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void
advance_piece(struct lw_programs_sender *sender, size_t size)
{
    struct lw_programs_piece *piece = &sender->pieces[sender->piece_first];
    piece->written += size;
    sender->piece_bytes -= size;
    if (piece->written == view_of(piece).size) {
        lw_free((void *)(uintptr_t)piece->own.data);
        sender->piece_first++;
    }
}

static void
advance(struct lw_programs_sender *sender, size_t sent)
{
    sender->sent_total += sent;
    while (sent > 0) {
        bool has_piece = sender->piece_first < sender->piece_end;
        const struct lw_programs_piece *piece = has_piece ? &sender->pieces[sender->piece_first]
                                                          : NULL;
        size_t run = (piece ? piece->at : sender->text.size) - sender->written;
        size_t part = least(run, sent);
        sender->written += part;
        sent -= part;
        if (piece && sent > 0) {
            part = least(view_of(piece).size - piece->written, sent);
            advance_piece(sender, part);
            sent -= part;
        }
    }
}

enum lw_programs_sent
lw_programs_sender_flush(struct lw_programs_sender *sender, int fd)
{
    struct iovec parts[PARTS_MAX];
    while (lw_programs_sender_has_more(sender)) {
        ssize_t sent = writev(fd, parts, gather(sender, parts));
        if (sent < 0 && errno == EAGAIN) {
            return LW_PROGRAMS_SENT_SOME;
        }
        if (sent < 0 && errno != EINTR) {
            return LW_PROGRAMS_SENT_CLOSED;
        }
        advance(sender, sent > 0 ? (size_t)sent : 0);
    }
    forget_written(sender);
    return LW_PROGRAMS_SENT_ALL;
}

void
lw_programs_sender_end(struct lw_programs_sender *sender, int fd)
{
    int unread = 0;
    drop_pieces(sender, sender->piece_first);
    sender->piece_bytes = 0;
    if (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0) {
        sender->unread = (uint64_t)unread;
    }
}

bool
lw_programs_sender_is_unread(const struct lw_programs_sender *sender, uint64_t place)
{
    return place >= sender->sent_total - sender->unread;
}
