/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way from other threads to the loop thread: many posters, one taker. A mail is an
 * intrusive node that is in the mailbox at most once; posting it twice is seen. The taker is
 * woken (one write to the eventfd) only when the mailbox was empty and the taker had said that
 * it sleeps, so a busy loop is never woken per message.
 *
 * Posters: any thread. Taker: the loop thread. Memory order: what a poster wrote before the post
 * is seen by the taker after the take.
 */
#ifndef LW_BASE_MAILBOX_H
#define LW_BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include <laneway/laneway.h>

struct lw_mail {
    struct lw_mail *next;
    atomic_bool is_posted;
};

struct lw_mailbox {
    _Atomic(struct lw_mail *) newest;
    atomic_bool is_sleeping;
    atomic_uint posting; /* in lw_mailbox_post_counted now */
    int wake_fd;         /* eventfd owned by the loop; -1 under the simulator */
};

void lw_mailbox_init(struct lw_mailbox *mailbox, int wake_fd);
void lw_mail_init(struct lw_mail *mail);
/*
 * Posts; false when this mail is posted already and not yet opened. What was written before is
 * seen by the taker after it opened the mail, also when the post was refused: one mail can stand
 * for any number of changes. Any thread.
 */
bool lw_mailbox_post(struct lw_mailbox *mailbox, struct lw_mail *mail);
/*
 * The same for a thread that is not joined before the mailbox goes: it still looks at the mailbox when
 * its mail may have been taken already, and lw_mailbox_retire waits until it does not any more.
 */
bool lw_mailbox_post_counted(struct lw_mailbox *mailbox, struct lw_mail *mail);
/* Returns once no counted post is under way; none may begin. Then the memory may go. */
void lw_mailbox_retire(struct lw_mailbox *mailbox);
/*
 * Takes everything, oldest first, linked by `next`; NULL when empty. The mails count as posted
 * until lw_mail_open.
 */
struct lw_mail *lw_mailbox_take(struct lw_mailbox *mailbox);
/* Lets the mail be posted again; look at what it stands for after this, not before. */
void lw_mail_open(struct lw_mail *mail);
/* Announces sleep; true when there is mail after all and the taker must not sleep. */
bool lw_mailbox_sleep(struct lw_mailbox *mailbox);
void lw_mailbox_awake(struct lw_mailbox *mailbox);

#endif
