/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libuv host: the only file that includes libuv and, with base/clock.c, the only one that
 * reads clocks. It drives lw_host_turn, sleeps in libuv's poll, and arms one timerfd for the
 * wheel (a uv_timer fires up to 0.7 ms late). Descriptors and the eventfd are CLOEXEC. No thread
 * but the loop thread may call these, lw_host_post excepted. It is pollable from a foreign loop:
 * the descriptor stays readable while deferred work or a due timer waits. The thread that drives
 * it has SIGPIPE blocked from its first turn on: a pipe without a reader is an error of write.
 */
#ifndef LW_BASE_LOOP_H
#define LW_BASE_LOOP_H

#include "base/host.h"

struct lw_loop; /* begins with its host */

enum lw_status lw_loop_create(uint64_t seed, struct lw_loop **ret_loop);
void lw_loop_destroy(struct lw_loop *loop); /* NULL is fine; watches must be gone */
struct lw_host *lw_loop_host(struct lw_loop *loop);
struct lw_loop *lw_loop_of(struct lw_host *host); /* NULL: not a loop's host */
/* Turns until lw_loop_stop. Sleeps only when nothing is due. */
void lw_loop_run(struct lw_loop *loop);
/* Ends lw_loop_run after this turn; called outside of it, makes the next one return at once. */
void lw_loop_stop(struct lw_loop *loop);
/* One turn without sleeping. */
void lw_loop_poll(struct lw_loop *loop);
/*
 * One turn that first may sleep until `deadline` (ns, LW_NEVER allowed): it returns when what woke
 * it has been worked off. It may return early without anything having happened.
 */
void lw_loop_turn_until(struct lw_loop *loop, uint64_t deadline);
/* Readable when lw_loop_poll has work; to be polled, never read. */
int lw_loop_fd(struct lw_loop *loop);

#endif
