/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of one broker through plugin.h only, for transcripts: what happens is told as one line
 * of text. Events: "up", "down", "assigned TOPIC/P@POS" ("+TOPIC..." for a companion),
 * "revoking", "lost", "position TOPIC/P@POS", "published STATUS", "room", "committed STATUS",
 * "error STATUS", "closed", joined by ", ". Messages: "P:POS=VALUE", with "xN" behind when the
 * broker counts N earlier deliveries, joined by " ".
 */
#ifndef TESTS_BROKERS_CLIENT_H
#define TESTS_BROKERS_CLIENT_H

#include <laneway/plugin.h>

enum {
    CLIENT_SOURCES_MAX = 8,
    CLIENT_SLOTS_MAX = 128,
    CLIENT_HELD_MAX = 4096,
    CLIENT_SENT_MAX = 4096,
    CLIENT_TEXT_MAX = 16384
};

struct client_slot {
    struct lw_source *source;
    uint32_t slot;
    char topic[256];
    int32_t partition;
    uint64_t generation;
    bool is_live;
};

struct client_sent {
    struct lw_publication publication;
    int receipts;
    enum lw_status status;
};

struct client {
    struct lw_broker *broker;
    const struct lw_broker_ops *ops;
    struct lw_source *sources[CLIENT_SOURCES_MAX];
    size_t source_count;
    struct client_slot slots[CLIENT_SLOTS_MAX];
    size_t slot_count;
    uint64_t revoking[CLIENT_SLOTS_MAX]; /* generations that wait for an answer */
    size_t revoking_count;
    uint64_t deadline;                           /* of the last REVOKING */
    struct lw_message messages[CLIENT_HELD_MAX]; /* every one that was received */
    bool is_held[CLIENT_HELD_MAX];
    struct lw_source *origin[CLIENT_HELD_MAX];
    size_t message_count;
    struct client_sent sent[CLIENT_SENT_MAX];
    size_t sent_count;
    bool is_closed;
    bool is_up;
    int commits_answered;
    enum lw_status last_commit;
    struct lw_error last_error;
    char text[CLIENT_TEXT_MAX];
};

/* Allocated, since it is large; the caller ends it by client_destroy. */
struct client *client_create(struct lw_host *host, const struct lw_broker_ops *ops,
                             const char *name, const char *url);
/* The same with properties of the broker. */
struct client *client_create_with(struct lw_host *host, const struct lw_broker_ops *ops,
                                  const char *name, const char *url,
                                  const struct lw_property *properties, size_t property_count);
/* Destroys the broker too; it must be closed, or never started. */
void client_destroy(struct client *client);
/* The source's options, to be changed before client_subscribe_with. */
struct lw_source_options client_options(const char *topic, const char *subscription);
struct lw_source *
client_subscribe(struct client *client, const char *topic, const char *subscription);
struct lw_source *
client_subscribe_with(struct client *client, const struct lw_source_options *options);
void client_start(struct client *client);
/* Drains the events and tells them. */
const char *client_events(struct client *client);
/* Receives up to n of that source and tells them; they are held. */
const char *client_receive(struct client *client, struct lw_source *source, size_t n);
/* How often a piece of text occurs. */
size_t client_count(const char *text, const char *piece);
void client_release(struct client *client, size_t index);
void client_release_all(struct client *client);
enum lw_status
client_commit(struct client *client, const char *topic, int32_t partition, int64_t position);
void client_ack(struct client *client, size_t index);
void client_nack(struct client *client, size_t index, int64_t delay_ms);
/* Answers every REVOKING so far. */
void client_answer(struct client *client);
/* Offers one publication; its index, or SIZE_MAX when there was no room. */
size_t
client_publish(struct client *client, const char *topic, const char *key, const char *value);
size_t client_offer(struct client *client, const struct lw_publication *publication);

#endif
