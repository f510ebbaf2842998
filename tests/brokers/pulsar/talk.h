/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bare client of the embedded broker, frame by frame, on a host with a moved clock: what the
 * broker does is seen without any of the client that it is made for.
 */
#ifndef TESTS_BROKERS_PULSAR_TALK_H
#define TESTS_BROKERS_PULSAR_TALK_H

#include "tests/support/pulsar/embedded.h"
#include "tests/support/virtual_host.h"

enum { TALKERS_MAX = 4, TALK_BYTES = 8 * 1024 * 1024 };

struct talker {
    int fd;
    uint8_t *in;
    size_t size;
    size_t used;
    struct lw_pulsar_command command; /* the last one read; views live until the next read */
    struct lw_bytes rest;
    bool is_ended;      /* the broker closed */
    uint32_t pongs_due; /* of questions whether more is to come */
};

struct talk {
    struct virtual_host virtual_host;
    struct embedded *broker;
    struct talker talkers[TALKERS_MAX]; /* the first is connected */
};

/* Settings without keep-alive and without the need of a lookup; a test may change them. */
struct embedded_settings talk_settings(void);
struct talk *talk_create(const struct embedded_settings *settings); /* NULL: those */
void talk_destroy(struct talk *talk);
/* Connects to a member of the cluster; says nothing yet. */
struct talker *talk_dial(struct talk *talk, int number, int member);
/* Connects to member 0, CONNECT, CONNECTED. */
struct talker *talk_join(struct talk *talk, int number);
void
talk_send(struct talk *talk, struct talker *talker, const struct lw_pulsar_command *command);
void talk_send_bytes(struct talk *talk, struct talker *talker, const void *data, size_t size);
/* The next command, which must be of that type. */
const struct lw_pulsar_command *
talk_expect(struct talk *talk, struct talker *talker, enum lw_pulsar_command_type type);
/* The next one if earlier commands caused one. */
const struct lw_pulsar_command *talk_poll(struct talk *talk, struct talker *talker);
void talk_expect_end(struct talk *talk, struct talker *talker);
/* Lets time pass for both, and a quarter of a millisecond, since timers fire up to a tick late. */
void talk_pass_ms(struct talk *talk, int64_t ms);

struct lw_pulsar_command talk_connect_command(void);
/* SUBSCRIBE at the earliest position, topic t, subscription s; consumer and request of that id. */
struct lw_pulsar_command talk_subscribe_command(int32_t type, uint64_t id, const char *name);
/* The same, sent; SUCCESS comes. */
void talk_subscribe(struct talk *talk, struct talker *talker, int32_t type, uint64_t id,
                    const char *name);
void talk_flow(struct talk *talk, struct talker *talker, uint64_t id, uint32_t permits);
/* How many MESSAGEs come now; the entries of the first 256 are noted. */
size_t talk_entries(struct talk *talk, struct talker *talker, uint64_t *out_entries);
/* ACK, or REDELIVER_UNACKNOWLEDGED, of these entries of the topic's first ledger. */
void talk_ids(struct talk *talk, struct talker *talker, enum lw_pulsar_command_type type,
              uint64_t id, const uint64_t *entries, size_t count);
/* PRODUCER of topic t, and PRODUCER_SUCCESS. */
void talk_produce(struct talk *talk, struct talker *talker, uint64_t id, const char *name);
void talk_publish(struct talk *talk, struct talker *talker, uint64_t id, uint64_t sequence,
                  const char *value);
/* Entries into topic t: `batch` members each (0: plain), key or NULL. */
void talk_fill(struct talk *talk, uint64_t entries, int32_t batch, const char *key);

#endif
