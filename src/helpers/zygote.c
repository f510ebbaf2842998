/* SPDX-License-Identifier: Apache-2.0 */
/*
 * laneway-zygote: the process from which engine processes forks its workers (see
 * engines/processes/zygote.h). It is started by the library, with its orders on descriptor 3, and
 * is of no use by itself. A plug-in finds the functions of laneway.h here: those for deliveries do
 * what they do everywhere; a worker has neither a loop nor a dispatcher, and says so.
 */
#include <stdio.h>

#include <laneway/handler.h>

#include "engines/processes/control.h"
#include "engines/processes/zygote.h"

enum { EXIT_SAYS_USAGE = 64 };

/* -- What a worker process does not have ----------------------------------------------------------- */

struct lw_loop_timer *
lw_loop_timer(struct lw_dispatcher *dispatcher, int64_t delay_us, lw_loop_timer_fn fn,
              void *user)
{
    (void)dispatcher;
    (void)delay_us;
    (void)fn;
    (void)user;
    return NULL;
}

void
lw_loop_timer_cancel(struct lw_loop_timer *timer)
{
    (void)timer;
}

struct lw_loop_watch *
lw_loop_watch(struct lw_dispatcher *dispatcher, int fd, int events, lw_loop_watch_fn fn,
              void *user)
{
    (void)dispatcher;
    (void)fd;
    (void)events;
    (void)fn;
    (void)user;
    return NULL;
}

void
lw_loop_watch_cancel(struct lw_loop_watch *watch)
{
    (void)watch;
}

void
lw_dispatcher_request_close(struct lw_dispatcher *dispatcher)
{
    (void)dispatcher;
    (void)fputs("a worker process cannot close its dispatcher\n", stderr);
}

void
lw_dispatcher_request_abort(struct lw_dispatcher *dispatcher)
{
    (void)dispatcher;
    (void)fputs("a worker process cannot stop its dispatcher\n", stderr);
}

/* -- What plug-ins call; named here so that the linker keeps and exports it ------------------------ */

typedef void (*function)(void);

extern const function lw_zygote_exports[];
const function lw_zygote_exports[] = {
    (function)lw_version,
    (function)lw_status_name,
    (function)lw_error_exit_code,
    (function)lw_bytes_of,
    (function)lw_handler_option,
    (function)lw_allocator_set,
    (function)lw_delivery_value,
    (function)lw_delivery_key,
    (function)lw_delivery_ordering_key,
    (function)lw_delivery_topic,
    (function)lw_delivery_subscription,
    (function)lw_delivery_pipeline,
    (function)lw_delivery_partition,
    (function)lw_delivery_offset,
    (function)lw_delivery_timestamp_ms,
    (function)lw_delivery_event_time_ms,
    (function)lw_delivery_attempt,
    (function)lw_delivery_retries,
    (function)lw_delivery_redeliveries,
    (function)lw_delivery_deadline_ms,
    (function)lw_delivery_is_cancelled,
    (function)lw_delivery_message_id,
    (function)lw_delivery_headers,
    (function)lw_delivery_header,
    (function)lw_delivery_dispatcher,
    (function)lw_delivery_dead,
    (function)lw_delivery_drop,
    (function)lw_delivery_retry,
    (function)lw_delivery_error,
    (function)lw_delivery_reply,
    (function)lw_delivery_publish,
    (function)lw_delivery_finish,
    (function)lw_delivery_ticket,
    (function)lw_ticket_finish,
    (function)lw_batch_finish,
    (function)lw_ticket_finish_batch,
    NULL,
};

int
main(int argc, char **argv)
{
    if (argc != 1) {
        (void)fprintf(stderr, "%s is started by Laneway itself\n", argv[0]);
        return EXIT_SAYS_USAGE;
    }
    return lw_processes_zygote_run(LW_PROCESSES_CONTROL_FD);
}
