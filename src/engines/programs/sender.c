/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outgoing side of a worker. A batch of requests costs one write. The kernel keeps what the
 * reader left in a pipe until both ends are closed and tells its size on either end, which is
 * how unread bytes are known after a death. Invariant: written <= text.size.
 */
#include "engines/programs/sender.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { KEPT_BYTES = 1 << 20 };

void
lw_programs_sender_init(struct lw_programs_sender *sender)
{
    *sender = (struct lw_programs_sender){ .written = 0 };
    lw_text_init(&sender->text);
}

void
lw_programs_sender_deinit(struct lw_programs_sender *sender)
{
    lw_text_deinit(&sender->text);
    sender->written = 0;
}

void
lw_programs_sender_begin(struct lw_programs_sender *sender)
{
    lw_text_clear(&sender->text);
    sender->written = 0;
    sender->sent_total = 0;
    sender->unread = 0;
}

bool
lw_programs_sender_has_more(const struct lw_programs_sender *sender)
{
    return sender->written < sender->text.size;
}

uint64_t
lw_programs_sender_place(struct lw_programs_sender *sender)
{
    struct lw_text *text = &sender->text;
    size_t rest = text->size - sender->written;
    if (sender->written > KEPT_BYTES / 2 && rest < sender->written) {
        memmove(text->data, text->data + sender->written, rest);
        text->size = rest;
        sender->written = 0;
    }
    return sender->sent_total + rest;
}

/* Keeps the buffer, unless a giant made it large. */
static void
forget_written(struct lw_programs_sender *sender)
{
    sender->written = 0;
    if (sender->text.capacity > KEPT_BYTES) {
        lw_text_deinit(&sender->text);
    } else {
        lw_text_clear(&sender->text);
    }
}

enum lw_programs_sent
lw_programs_sender_flush(struct lw_programs_sender *sender, int fd)
{
    while (lw_programs_sender_has_more(sender)) {
        ssize_t sent = write(fd, sender->text.data + sender->written,
                             sender->text.size - sender->written);
        if (sent < 0 && errno == EAGAIN) {
            return LW_PROGRAMS_SENT_SOME;
        }
        if (sent < 0 && errno != EINTR) {
            return LW_PROGRAMS_SENT_CLOSED;
        }
        sender->written += sent > 0 ? (size_t)sent : 0;
        sender->sent_total += sent > 0 ? (uint64_t)sent : 0;
    }
    forget_written(sender);
    return LW_PROGRAMS_SENT_ALL;
}

void
lw_programs_sender_end(struct lw_programs_sender *sender, int fd)
{
    int unread = 0;
    if (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0) {
        sender->unread = (uint64_t)unread;
    }
}

bool
lw_programs_sender_is_unread(const struct lw_programs_sender *sender, uint64_t place)
{
    return place >= sender->sent_total - sender->unread;
}
