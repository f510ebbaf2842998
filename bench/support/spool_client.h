/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool driven as a dispatcher drives it, through plugin.h, on a loop of its own. Its topic and its
 * group have fixed names. What goes wrong ends the bench.
 */
#ifndef LW_BENCH_SPOOL_CLIENT_H
#define LW_BENCH_SPOOL_CLIENT_H

#include "base/loop.h"
#include "brokers/spool/broker.h"

#define LW_SPOOL_BENCH_TOPIC "bench"
#define LW_SPOOL_BENCH_GROUP "group"

enum { LW_SPOOL_BENCH_OPEN = 2048, LW_SPOOL_BENCH_BATCH = 256 };

struct lw_spool_bench {
    char path[320];
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_broker *broker;
    struct lw_source *source; /* NULL: it only publishes */
    bool has_own_keys;        /* each message that is published; else one key for all */
    struct lw_publication publications[LW_SPOOL_BENCH_OPEN];
    struct lw_publication *spare[LW_SPOOL_BENCH_OPEN];
    char keys[LW_SPOOL_BENCH_OPEN][16];
    size_t spare_count;
    uint64_t sent;
    uint64_t receipts;
    struct lw_message messages[LW_SPOOL_BENCH_BATCH];
    bool is_closed;
};

struct lw_spool_bench_options {
    const char *path;
    const char *synchronous;
    const char *keep; /* NULL: the default */
    bool is_reading;
    uint32_t queue_size; /* of a reader; 0: 1,000 */
};

/* 66 bytes, as the peers' benches send. */
extern const char lw_spool_bench_payload[];

void lw_spool_bench_fail(const char *what) __attribute__((noreturn));
struct lw_spool_bench *lw_spool_bench_open(const struct lw_spool_bench_options *options);
/* Returns the number of transactions. */
uint64_t lw_spool_bench_close(struct lw_spool_bench *bench);
/* Turns the loop until something comes, and takes it. */
void lw_spool_bench_turn(struct lw_spool_bench *bench);
/* False: there is no room. */
bool lw_spool_bench_publish(struct lw_spool_bench *bench);
/* Publishes so many, and waits for their receipts. */
void lw_spool_bench_publish_all(struct lw_spool_bench *bench, uint64_t count);
void lw_spool_bench_demand(struct lw_spool_bench *bench);
/* Receives what is there, at most so many; each is acknowledged or only released. */
size_t lw_spool_bench_receive(struct lw_spool_bench *bench, size_t most, bool is_acked);
/* Waits until so many have come. */
void lw_spool_bench_receive_all(struct lw_spool_bench *bench, uint64_t count, bool is_acked);
/* The file and what lies beside it. */
void lw_spool_bench_remove(const char *path);

#endif
