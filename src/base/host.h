/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a dispatcher, a broker's protocol part and an engine see of the world: time, timers,
 * descriptors, a way in from other threads, deferred work, randomness, logs, fault points. The
 * libuv loop (base/loop) is one host, the simulator (moved clock) is another. One thread, the
 * loop thread, calls everything here except lw_mailbox_post on `mailbox`.
 *
 * A turn of a host: refresh `now`; fire due timers; take the mailbox and give each mail to its
 * owner's `on_mail`; run deferred work; run the turn hooks in order of their adding (the
 * dispatcher's step); sleep until the next deadline, a ready descriptor, mail or deferred work.
 */
#ifndef LW_BASE_HOST_H
#define LW_BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

#include "base/fault.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/timers.h"

struct lw_host;
struct lw_watch; /* a watched descriptor, owned by the host */

/* Work that runs at the next turn at the latest; intrusive, in the list at most once. */
struct lw_deferred {
    struct lw_list link;
    void (*fn)(struct lw_deferred *deferred);
};

/* Runs once per turn; returns the next time at which it wants a turn, LW_NEVER if only events. */
struct lw_turn {
    struct lw_list link;
    uint64_t (*fn)(struct lw_turn *turn, uint64_t now);
};

/* Mail that is not a delivery's: what to do with it on the loop thread. */
struct lw_letter {
    struct lw_mail mail;
    void (*fn)(struct lw_letter *letter);
};

/*
 * LW_READABLE | LW_WRITABLE. The end of a stream is readable. A descriptor in error is told once
 * as both, and then paused until it is re-watched.
 */
typedef void (*lw_watch_fn)(int fd, int events, void *user);

/*
 * A name that is being looked up; owned by who asks, begins as zeros. The answer comes later, once,
 * and lives during the call: addresses of stream sockets (struct addrinfo, without a port), or
 * NULL and why.
 */
struct addrinfo;
struct lw_resolve;
typedef void (*lw_resolve_fn)(struct lw_resolve *resolve, const struct addrinfo *addresses,
                              const char *failure);
struct lw_resolve {
    lw_resolve_fn fn; /* NULL: idle */
    void *job;        /* the host's */
};

struct lw_host_ops {
    int64_t (*wall_ms)(struct lw_host *host);  /* ms since 1970 */
    uint64_t (*refresh)(struct lw_host *host); /* reads the clock into host->now, returns it */
    struct lw_watch *(*watch)(struct lw_host *host, int fd, int events, lw_watch_fn fn,
                              void *user); /* level-triggered; NULL without memory */
    void (*rewatch)(struct lw_watch *watch, int events); /* 0 pauses it */
    void (*unwatch)(struct lw_watch *watch); /* no call after this; does not close fd */
    void (*wake)(struct lw_host *host); /* a turn is wanted, said between turns; may be NULL */
    /* Asks for the addresses of a name, off the loop thread; false: it cannot. May be NULL. */
    bool (*resolve)(struct lw_host *host, struct lw_resolve *resolve, const char *name);
    void (*unresolve)(struct lw_host *host, struct lw_resolve *resolve); /* no call after it */
};

struct lw_host {
    const struct lw_host_ops *ops;
    uint64_t now; /* monotonic ns, one value per turn */
    struct lw_timers timers;
    struct lw_mailbox mailbox; /* letters from other threads */
    struct lw_list deferred;
    struct lw_list turns;
    bool is_turn_due; /* somebody wants a turn at once */
    bool is_in_turn;
    uint64_t random_state[4]; /* xoshiro256**, seeded by the creator */
    struct lw_faults *faults; /* NULL in production */
    lw_log_fn log;            /* NULL: silent */
    void *log_user;
    enum lw_log_level log_level;
};

/* Sets up all but ops; `seed` may be 0 (then the caller seeds from the system). */
void lw_host_init(struct lw_host *host, const struct lw_host_ops *ops, uint64_t now,
                  uint64_t seed, int wake_fd);
uint64_t lw_host_random(struct lw_host *host);
/* Uniform in 0..bound (inclusive). */
uint64_t lw_host_random_to(struct lw_host *host, uint64_t bound);
void lw_host_defer(struct lw_host *host, struct lw_deferred *deferred);
void lw_deferred_init(struct lw_deferred *deferred, void (*fn)(struct lw_deferred *));
void lw_deferred_cancel(struct lw_deferred *deferred); /* harmless when it is not deferred */
/* Hooks may remove themselves and others while they run; one added in a turn runs in it, last. */
void lw_host_add_turn(struct lw_host *host, struct lw_turn *turn);
void lw_host_remove_turn(struct lw_turn *turn);
/*
 * Asks for a turn without sleeping before it. Needed after changes made between turns that the
 * host cannot see, such as arming a timer from the code of a foreign loop.
 */
void lw_host_want_turn(struct lw_host *host);
void lw_letter_init(struct lw_letter *letter, void (*fn)(struct lw_letter *));
/*
 * Posts from any thread; false when that letter is on its way already. It may be posted again
 * once its fn is called, and its memory must stay until then.
 */
bool lw_host_post(struct lw_host *host, struct lw_letter *letter);

/*
 * Looks a name up without blocking. False: not under way (no memory, or this host knows no names),
 * and `fn` is not called.
 */
bool lw_host_resolve(struct lw_host *host, struct lw_resolve *resolve, const char *name,
                     lw_resolve_fn fn);
void lw_host_resolve_cancel(struct lw_host *host, struct lw_resolve *resolve); /* or idle */
/* For hosts: gives the answer. */
void lw_resolve_answer(struct lw_resolve *resolve, const struct addrinfo *addresses,
                       const char *failure);

/*
 * One turn without sleeping: timers, mail, deferred work, turn hooks. Returns when the next turn
 * is due (host->now when at once, LW_NEVER when only an event can make work). Both hosts use it.
 */
uint64_t lw_host_turn(struct lw_host *host);
/* The same answer again, after changes between turns; `due` is what the last turn's hooks want. */
uint64_t lw_host_next(const struct lw_host *host, uint64_t due);

/* Logs one event: a constant dotted name, a sentence, and `key=value` fields by printf. */
void
lw_host_log(struct lw_host *host, enum lw_log_level level, const char *event, const char *text,
            const char *fields_format, ...) __attribute__((format(printf, 5, 6)));

#endif
