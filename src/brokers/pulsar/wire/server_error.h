/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error codes of a Pulsar broker and what becomes of the operation that got one: one row each,
 * from which everybody takes what he decides by and what people read.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_SERVER_ERROR_H
#define LW_BROKERS_PULSAR_WIRE_SERVER_ERROR_H

#include <stdint.h>

#include <laneway/laneway.h>

enum lw_pulsar_server_error {
    LW_PULSAR_UNKNOWN_ERROR = 0,
    LW_PULSAR_METADATA_ERROR = 1,
    LW_PULSAR_PERSISTENCE_ERROR = 2,
    LW_PULSAR_AUTHENTICATION_ERROR = 3,
    LW_PULSAR_AUTHORIZATION_ERROR = 4,
    LW_PULSAR_CONSUMER_BUSY = 5,
    LW_PULSAR_SERVICE_NOT_READY = 6,
    LW_PULSAR_QUOTA_EXCEEDED_ERROR = 7,     /* ProducerBlockedQuotaExceededError */
    LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION = 8, /* ProducerBlockedQuotaExceededException */
    LW_PULSAR_CHECKSUM_ERROR = 9,
    LW_PULSAR_UNSUPPORTED_VERSION = 10,
    LW_PULSAR_TOPIC_NOT_FOUND = 11,
    LW_PULSAR_SUBSCRIPTION_NOT_FOUND = 12,
    LW_PULSAR_CONSUMER_NOT_FOUND = 13,
    LW_PULSAR_TOO_MANY_REQUESTS = 14,
    LW_PULSAR_TOPIC_TERMINATED = 15,
    LW_PULSAR_PRODUCER_BUSY = 16,
    LW_PULSAR_INVALID_TOPIC_NAME = 17,
    LW_PULSAR_INCOMPATIBLE_SCHEMA = 18,
    LW_PULSAR_CONSUMER_ASSIGN_ERROR = 19,
    LW_PULSAR_COORDINATOR_NOT_FOUND = 20, /* TransactionCoordinatorNotFound */
    LW_PULSAR_INVALID_TXN_STATUS = 21,
    LW_PULSAR_NOT_ALLOWED = 22,
    LW_PULSAR_TRANSACTION_CONFLICT = 23,
    LW_PULSAR_TRANSACTION_NOT_FOUND = 24,
    LW_PULSAR_PRODUCER_FENCED = 25,
};
enum { LW_PULSAR_SERVER_ERROR_COUNT = 26 };

enum lw_pulsar_fate {
    LW_PULSAR_FATE_RETRY,  /* again with backoff, after a fresh lookup */
    LW_PULSAR_FATE_FATAL,  /* final for this operation */
    LW_PULSAR_FATE_HANDLE, /* depends on the operation: its owner decides */
};

/* A subscription that was refused is tried again for ever, unless it can never work. */
enum lw_pulsar_again {
    LW_PULSAR_AGAIN,
    LW_PULSAR_AGAIN_SLOWLY, /* somebody has to do something first */
    LW_PULSAR_NEVER         /* before it worked once; else AGAIN */
};

struct lw_pulsar_server_error_info {
    const char *name; /* as the broker's protocol spells it: "TopicNotFound" */
    const char *meaning;
    enum lw_pulsar_fate fate;
    enum lw_pulsar_again subscribe;
    enum lw_status publish; /* of what waits for its producer; OK: it is kept and goes later */
    enum lw_status status;  /* as people and programs see it */
    const char *code;       /* of our catalogue: "E0514" */
    const char *help;       /* NULL: what fits the fate */
};

/* Never NULL: an unknown code is described as UnknownError. */
const struct lw_pulsar_server_error_info *lw_pulsar_server_error_of(int32_t code);

#endif
