/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox: a stack of intrusive nodes pushed by compare-and-swap and taken whole, then
 * turned round, so that the taker never meets a half-linked node (the exchange-based queue was
 * rejected for that: its taker may have to spin on a poster that lost its processor).
 *
 * Sleeping is Dekker's pattern: a poster pushes, then looks at is_sleeping; the taker sets
 * is_sleeping, then looks at the stack. Both orders must be sequentially consistent, so at least
 * one sees the other. Exactly one poster clears the flag and writes to the eventfd. The taker sets
 * it by an exchange: on x86 a store of this order is one anyway, and under qemu-user a store with
 * release and a load with acquire of the Arm architecture can pass each other on an x86 host.
 *
 * is_posted is exchanged on both sides, so that a refused post is one that comes before the
 * opening, and what its poster wrote is seen after it. A plain store would open in the taker's
 * store buffer and let the taker read old data while the poster is still refused.
 */
#include "base/mailbox.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "base/assert.h"

void
lw_mailbox_init(struct lw_mailbox *mailbox, int wake_fd)
{
    atomic_init(&mailbox->newest, NULL);
    atomic_init(&mailbox->is_sleeping, false);
    atomic_init(&mailbox->posting, 0);
    mailbox->wake_fd = wake_fd;
}

void
lw_mail_init(struct lw_mail *mail)
{
    mail->next = NULL;
    atomic_init(&mail->is_posted, false);
}

static void
wake(struct lw_mailbox *mailbox)
{
    uint64_t one = 1;
    if (mailbox->wake_fd < 0) {
        return;
    }
    ssize_t written = 0;
    do {
        written = write(mailbox->wake_fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
    /* EAGAIN: the counter is at its end, so the descriptor is readable all the same. */
    lw_assert(written > 0 || errno == EAGAIN);
}

bool
lw_mailbox_post(struct lw_mailbox *mailbox, struct lw_mail *mail)
{
    if (atomic_exchange_explicit(&mail->is_posted, true, memory_order_acq_rel)) {
        return false;
    }
    struct lw_mail *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do {
        mail->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(
        &mailbox->newest, &newest, mail, memory_order_seq_cst, memory_order_relaxed));
    if (atomic_load_explicit(&mailbox->is_sleeping, memory_order_seq_cst) &&
        atomic_exchange_explicit(&mailbox->is_sleeping, false, memory_order_seq_cst)) {
        wake(mailbox);
    }
    return true;
}

bool
lw_mailbox_post_counted(struct lw_mailbox *mailbox, struct lw_mail *mail)
{
    (void)atomic_fetch_add_explicit(&mailbox->posting, 1, memory_order_relaxed);
    bool is_posted = lw_mailbox_post(mailbox, mail);
    (void)atomic_fetch_sub_explicit(&mailbox->posting, 1, memory_order_release);
    return is_posted;
}

/* A few instructions of another thread are waited for: nothing could tell of their end but itself. */
void
lw_mailbox_retire(struct lw_mailbox *mailbox)
{
    while (atomic_load_explicit(&mailbox->posting, memory_order_acquire) != 0) {
        (void)sched_yield();
    }
}

struct lw_mail *
lw_mailbox_take(struct lw_mailbox *mailbox)
{
    if (!atomic_load_explicit(&mailbox->newest, memory_order_relaxed)) {
        return NULL;
    }
    struct lw_mail *mail = atomic_exchange_explicit(&mailbox->newest, NULL,
                                                    memory_order_acquire);
    struct lw_mail *oldest = NULL;
    while (mail) {
        struct lw_mail *older = mail->next;
        mail->next = oldest;
        oldest = mail;
        mail = older;
    }
    return oldest;
}

void
lw_mail_open(struct lw_mail *mail)
{
    (void)atomic_exchange_explicit(&mail->is_posted, false, memory_order_acq_rel);
}

bool
lw_mailbox_sleep(struct lw_mailbox *mailbox)
{
    (void)atomic_exchange_explicit(&mailbox->is_sleeping, true, memory_order_seq_cst);
    if (!atomic_load_explicit(&mailbox->newest, memory_order_seq_cst)) {
        return false;
    }
    atomic_store_explicit(&mailbox->is_sleeping, false, memory_order_relaxed);
    return true;
}

void
lw_mailbox_awake(struct lw_mailbox *mailbox)
{
    atomic_store_explicit(&mailbox->is_sleeping, false, memory_order_relaxed);
}
