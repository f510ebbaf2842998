/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of several members, for handlers that take several messages at once: their start, their
 * end member by member, and the clock of what waits for company (core/gather.h). A stream whose
 * engine has a `batch` has all its tasks here, also those of one. Loop thread.
 */
#ifndef LW_DISPATCHER_TASK_H
#define LW_DISPATCHER_TASK_H

#include "dispatcher/dispatcher.h"

/* What the engine's `batch` means for the stream, which has its own limits already. */
enum lw_status lw_task_init_stream(struct lw_stream *stream, struct lw_error *ret_error);
/* The stream's gather_timer. */
void lw_task_on_timer(struct lw_timer *timer, uint64_t now);
/* Runs the chosen task, which holds a slot. */
void lw_task_run(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                 struct lw_delivery *first);
/* Its handler call ended: the slot is free, each member is judged once or runs again. */
void lw_task_finish(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                    struct lw_delivery *first);
/* The result of this running delivery is not wanted; its engine hears of whole tasks only. */
void lw_task_cancel(struct lw_delivery *delivery);
/* Once a step: when what waits for company is looked at again. */
void lw_task_arm(struct lw_dispatcher *dispatcher);
/* Nothing more is received: nothing waits for company. */
void lw_task_close(struct lw_dispatcher *dispatcher);

#endif
