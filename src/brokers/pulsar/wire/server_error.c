/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a broker's error codes. Fates are those seen on Pulsar 4.2: ConsumerBusy and
 * ProducerBusy are answered at once while the other holder lives and pass when it is gone, and
 * TopicNotFound is also the answer of a broker that is still starting ("Namespace not found"),
 * so their owners decide.
 */
#include "brokers/pulsar/wire/server_error.h"

#include <stddef.h>

#define RETRY LW_PULSAR_FATE_RETRY
#define FATAL LW_PULSAR_FATE_FATAL
#define HANDLE LW_PULSAR_FATE_HANDLE

static const struct lw_pulsar_server_error_info infos[LW_PULSAR_SERVER_ERROR_COUNT] = {
    [LW_PULSAR_UNKNOWN_ERROR] = { "UnknownError", "the broker does not say more", HANDLE,
                                  true },
    [LW_PULSAR_METADATA_ERROR] = { "MetadataError",
                                   "the broker's metadata store failed, or it does not know "
                                   "the "
                                   "consumer",
                                   HANDLE, true },
    [LW_PULSAR_PERSISTENCE_ERROR] = { "PersistenceError", "the broker's storage failed", RETRY,
                                      true },
    [LW_PULSAR_AUTHENTICATION_ERROR] = { "AuthenticationError", "the credentials were refused",
                                         FATAL, false },
    [LW_PULSAR_AUTHORIZATION_ERROR] = { "AuthorizationError",
                                        "no permission for this topic or operation", FATAL,
                                        false },
    [LW_PULSAR_CONSUMER_BUSY] = { "ConsumerBusy",
                                  "the subscription is taken, or of another type", HANDLE,
                                  true },
    [LW_PULSAR_SERVICE_NOT_READY] = { "ServiceNotReady",
                                      "this broker does not serve the topic at the moment",
                                      RETRY, true },
    [LW_PULSAR_QUOTA_EXCEEDED_ERROR] = { "ProducerBlockedQuotaExceededError",
                                         "backlog quota: producers are held", RETRY, true },
    [LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION] = { "ProducerBlockedQuotaExceededException",
                                             "backlog quota: producers are refused", RETRY,
                                             true },
    [LW_PULSAR_CHECKSUM_ERROR] = { "ChecksumError", "the broker saw a wrong checksum", HANDLE,
                                   true },
    [LW_PULSAR_UNSUPPORTED_VERSION] = { "UnsupportedVersionError",
                                        "the broker or the client is too old", FATAL, false },
    [LW_PULSAR_TOPIC_NOT_FOUND] = { "TopicNotFound",
                                    "no such topic, or a broker that is still starting", HANDLE,
                                    true },
    [LW_PULSAR_SUBSCRIPTION_NOT_FOUND] = { "SubscriptionNotFound",
                                           "no such subscription, and it is not created", FATAL,
                                           false },
    [LW_PULSAR_CONSUMER_NOT_FOUND] = { "ConsumerNotFound", "no such consumer", FATAL, false },
    [LW_PULSAR_TOO_MANY_REQUESTS] = { "TooManyRequests", "the broker limits requests", RETRY,
                                      true },
    [LW_PULSAR_TOPIC_TERMINATED] = { "TopicTerminatedError", "the topic takes no more messages",
                                     FATAL, false },
    [LW_PULSAR_PRODUCER_BUSY] = { "ProducerBusy", "the producer's name or the topic is taken",
                                  HANDLE, true },
    [LW_PULSAR_INVALID_TOPIC_NAME] = { "InvalidTopicName", "not a name of a topic", FATAL,
                                       false },
    [LW_PULSAR_INCOMPATIBLE_SCHEMA] = { "IncompatibleSchema",
                                        "the topic's schema does not allow this", FATAL,
                                        false },
    [LW_PULSAR_CONSUMER_ASSIGN_ERROR] = { "ConsumerAssignError",
                                          "the hash ranges overlap those of another consumer",
                                          FATAL, true },
    [LW_PULSAR_COORDINATOR_NOT_FOUND] = { "TransactionCoordinatorNotFound",
                                          "no transaction coordinator here", RETRY, true },
    [LW_PULSAR_INVALID_TXN_STATUS] = { "InvalidTxnStatus", "the transaction is over", FATAL,
                                       false },
    [LW_PULSAR_NOT_ALLOWED] = { "NotAllowedError", "the broker does not allow this", FATAL,
                                false },
    [LW_PULSAR_TRANSACTION_CONFLICT] = { "TransactionConflict",
                                         "conflicts with another transaction", FATAL, false },
    [LW_PULSAR_TRANSACTION_NOT_FOUND] = { "TransactionNotFound", "no such transaction", FATAL,
                                          false },
    [LW_PULSAR_PRODUCER_FENCED] = { "ProducerFenced",
                                    "another producer took the topic for itself", FATAL,
                                    false },
};

const struct lw_pulsar_server_error_info *
lw_pulsar_server_error_of(int32_t code)
{
    bool is_known = code >= 0 && code < LW_PULSAR_SERVER_ERROR_COUNT;
    return &infos[is_known ? code : LW_PULSAR_UNKNOWN_ERROR];
}

const char *
lw_pulsar_fate_name(enum lw_pulsar_fate fate)
{
    switch (fate) {
    case LW_PULSAR_FATE_RETRY:
        return "retry";
    case LW_PULSAR_FATE_FATAL:
        return "fatal";
    case LW_PULSAR_FATE_HANDLE:
        return "handle";
    }
    return "unknown";
}
