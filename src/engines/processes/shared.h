/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that our process (the owner) and one worker process share: a page of words and two
 * rings of bytes, requests and answers, each with one writer and one reader. It is a memfd sealed
 * against any change of its size, so that no end can make the other fault. Each ring is mapped
 * twice in a row: a record never wraps.
 *
 * Positions are counts of bytes that only grow; each is written by one end. Sleeping is Dekker's
 * pattern (see base/mailbox.c): who publishes does it by an exchange and then looks whether the
 * other sleeps; who falls asleep says so by an exchange and then looks once more.
 */
#ifndef LW_ENGINES_PROCESSES_SHARED_H
#define LW_ENGINES_PROCESSES_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes are multiples of it: the largest page of the machines that we know. */
#define LW_PROCESSES_PAGE 65536

struct lw_processes_words {
    /* Written by the owner. */
    _Alignas(64) _Atomic uint64_t request_head;
    _Atomic uint64_t answer_tail;
    _Atomic uint64_t cancelled; /* the request whose answer nobody wants any more */
    _Atomic uint32_t is_leaving;
    /* Written by the worker. */
    _Alignas(64) _Atomic uint64_t answer_head;
    _Alignas(64) _Atomic uint64_t request_tail;
    _Atomic uint64_t started; /* the request that a handler was called with last */
    /* Set by who sleeps, taken by who wakes. */
    _Alignas(64) _Atomic uint32_t worker_sleeps;
    _Alignas(64) _Atomic uint32_t owner_sleeps;
};

struct lw_processes_shared {
    struct lw_processes_words *words; /* NULL: not mapped */
    unsigned char *requests;
    unsigned char *answers;
    size_t request_bytes; /* powers of two, multiples of LW_PROCESSES_PAGE */
    size_t answer_bytes;
};

/* The size of a ring that holds at least `bytes`. */
size_t lw_processes_ring_bytes(size_t bytes);
/* Makes and maps it; 0 or an errno. The caller closes *ret_fd. */
int lw_processes_shared_create(size_t ring_bytes, struct lw_processes_shared *ret_shared,
                               int *ret_fd);
/* Maps what the other end made; 0 or an errno. */
int lw_processes_shared_open(int fd, size_t ring_bytes, struct lw_processes_shared *ret_shared);
void lw_processes_shared_close(struct lw_processes_shared *shared);

/* Sealed memory for one item, `size` bytes of `data`; a descriptor, or -1 and errno. */
int lw_processes_item_create(const void *data, size_t size);
/* True when nobody can change or shorten what that descriptor holds, which is `size` bytes. */
bool lw_processes_item_is_sound(int fd, size_t size);

/* Copies from memory that the other end may change meanwhile: what was copied stays as it is. */
void lw_processes_copy_once(void *out, const void *shared, size_t size);

#endif
