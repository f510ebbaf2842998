/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: a handler that writes into the file of its option `journal` what is done to it, and
 * whose start fails when the option `refuse` gives it a reason.
 */
#include <laneway/handler.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *
engine_of(const struct lw_handler_setup *setup)
{
    return setup->engine == LW_ENGINE_LOOP      ? "loop"
           : setup->engine == LW_ENGINE_THREADS ? "threads"
                                                : "processes";
}

static void
note_setup(FILE *journal, const struct lw_handler_setup *setup)
{
    (void)fprintf(journal, "open %s of %s on %s, worker %" PRIu32 "%s\n", setup->handler,
                  setup->service, engine_of(setup), setup->worker,
                  setup->dispatcher ? "" : ", no dispatcher");
    for (size_t i = 0; i < setup->option_count; i++) {
        (void)fprintf(journal, "option %s=%s\n", setup->options[i].name,
                      setup->options[i].value);
    }
}

static enum lw_status
open_journal(const struct lw_handler_setup *setup, void **ret_user, struct lw_error *error)
{
    const char *refusal = lw_handler_option(setup, "refuse", NULL);
    if (refusal) {
        (void)snprintf(error->message, sizeof error->message, "%s", refusal);
        (void)snprintf(error->help, sizeof error->help, "take `refuse` away");
        return LW_STATUS_UNAVAILABLE;
    }
    FILE *journal = fopen(lw_handler_option(setup, "journal", "/dev/null"), "a");
    if (!journal) {
        return LW_STATUS_SYSTEM;
    }
    setvbuf(journal, NULL, _IOLBF, 0);
    note_setup(journal, setup);
    *ret_user = journal;
    return LW_STATUS_OK;
}

static void
close_journal(void *user)
{
    FILE *journal = user;
    (void)fputs("close\n", journal);
    (void)fclose(journal);
}

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    struct lw_bytes value = lw_delivery_value(delivery);
    (void)fprintf(user, "%s %.*s\n", lw_delivery_topic(delivery), (int)value.size,
                  (const char *)value.data);
    return lw_delivery_reply(delivery, value) == LW_STATUS_OK ? LW_OK : LW_RETRY;
}

static size_t
handle_batch(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
             void *user)
{
    (void)fprintf(user, "batch of %zu\n", count);
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = handle(deliveries[i], user);
    }
    return count;
}

LW_HANDLER(lw_handler) = {
    LW_HANDLER_HEAD,      .about = "journal 1",   .handle = handle,
    .open = open_journal, .close = close_journal, .handle_batch = handle_batch,
};
