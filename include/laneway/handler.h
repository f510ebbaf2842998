/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For authors of handler plug-ins: handlers in a shared object that a configuration names by
 * `plugin: PATH` and, if it holds several, `symbol: NAME`. (plugin.h is something else: the tables
 * of brokers and engines, which are linked in.) The functions of laneway.h are left undefined in
 * the shared object; it finds them in the process that loads it: in the command, or in a program
 * that embeds the library and is linked to liblaneway.so, or to liblaneway.a with -rdynamic.
 *
 * LW_HANDLER_ABI names what a plug-in may rely on: this file, and what handlers may call of
 * laneway.h. A plug-in built for another number is refused before any of its functions is called.
 * Structs may grow at their end without a new number.
 */
#ifndef LANEWAY_HANDLER_H
#define LANEWAY_HANDLER_H

#include <laneway/laneway.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A whole plug-in, built by `cc -shared -fPIC -o orders.so orders.c`:
 *
 *     static enum lw_verdict
 *     handle(struct lw_delivery *delivery, void *user) { ... return LW_OK; }
 *
 *     LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .handle = handle };
 */
#define LW_HANDLER_ABI 1

/* What one instance is told at its start; lives until `open` returns. */
struct lw_handler_setup {
    size_t size;
    const char *service; /* service.name */
    const char *handler; /* its name in the configuration */
    enum lw_engine_kind engine;
    uint32_t worker; /* number of the worker process, from 0; elsewhere 0 */
    /* The section `options` of the handler, in its order. */
    const struct lw_property *options;
    size_t option_count;
    /* For lw_loop_timer and lw_loop_watch; NULL where there is no loop of a dispatcher. */
    struct lw_dispatcher *dispatcher;
};

/* Returns the value of an option, or `otherwise` when it was not given. Any thread. */
LW_API const char *lw_handler_option(const struct lw_handler_setup *setup, const char *name,
                                     const char *otherwise);

/*
 * A handler: at least one of the four forms is given. Where the handler is to take several messages
 * at once (`batch`), it is `handle_batch_async` or `handle_batch`, else `handle_async` or `handle`;
 * the asynchronous one of the two is the loop's alone, and its first choice.
 */
struct lw_handler_plugin {
    uint32_t abi;      /* LW_HANDLER_ABI; both are filled by LW_HANDLER_HEAD */
    uint32_t size;     /* of this struct as the plug-in knows it */
    const char *about; /* one line for a person, such as "orders 1.4"; may be NULL */
    /*
     * Returns the verdict. Engine threads calls it on several threads at once, engine processes on
     * one thread of each worker, engine loop on the loop thread, which it must not block.
     */
    lw_handler_fn handle;
    /* Engine loop: returns at once and ends each delivery by lw_delivery_finish. */
    lw_handler_async_fn handle_async;
    /*
     * Once per instance, before its first message; an instance is one entry of `handlers`, on
     * engine processes one worker. May block. `*ret_user` becomes the `user` of the calls. Any
     * status but LW_STATUS_OK refuses the start (a worker: it is tried again with growing pauses);
     * error->message says why and error->help what to do, both may be left empty. NULL: none.
     */
    enum lw_status (*open)(const struct lw_handler_setup *setup, void **ret_user,
                           struct lw_error *error);
    /*
     * Once for each instance that was opened, after its last handler returned; timers and watches
     * of the dispatcher are gone by then. Not called when the process is killed. NULL: none.
     */
    void (*close)(void *user);
    /*
     * Takes several messages in one call, where the configuration has a `batch` of more than one;
     * called where `handle` would be. Without a `batch` it gets one at a time, where its plug-in
     * has no form for one.
     */
    lw_handler_batch_fn handle_batch;
    /* The same for engine loop: returns at once and ends each call by lw_batch_finish. */
    lw_handler_batch_async_fn handle_batch_async;
};

/* Begins the definition of a handler under that name. */
#ifdef __cplusplus
#define LW_HANDLER(symbol) extern "C" LW_API const struct lw_handler_plugin symbol
#else
#define LW_HANDLER(symbol) LW_API const struct lw_handler_plugin symbol
#endif

/* The first members of its initialiser. */
#define LW_HANDLER_HEAD LW_HANDLER_ABI, sizeof(struct lw_handler_plugin)

/* The symbol that is looked for when the configuration names none. */
#define LW_HANDLER_SYMBOL "lw_handler"

#ifdef __cplusplus
}
#endif

#endif
