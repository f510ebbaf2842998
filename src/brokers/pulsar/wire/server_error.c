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
#define AGAIN LW_PULSAR_AGAIN
#define SLOWLY LW_PULSAR_AGAIN_SLOWLY
#define NEVER LW_PULSAR_NEVER

#define NO_TOPIC "E0503"
#define NO_RIGHT "E0504"
#define REFUSED "E0514"

#define OVER_QUOTA                                                                             \
    "its consumers are behind, or raise the quota of the namespace. Still trying; nothing is " \
    "lost."

#define GRANT                                                                                  \
    "grant it to the role: pulsar-admin namespaces grant-permission TENANT/NAMESPACE --role "  \
    "ROLE --actions produce,consume"

/* clang-format off */
static const struct lw_pulsar_server_error_info infos[LW_PULSAR_SERVER_ERROR_COUNT] = {
    /* name, meaning,
       fate, subscription, what waits to be published, as people see it, our code, help */
    [LW_PULSAR_UNKNOWN_ERROR] = {
        "UnknownError", "the broker does not say more",
        HANDLE, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_METADATA_ERROR] = {
        "MetadataError", "the broker's metadata store failed, or it does not know the consumer",
        HANDLE, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_PERSISTENCE_ERROR] = {
        "PersistenceError", "the broker's storage failed",
        RETRY, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_AUTHENTICATION_ERROR] = {
        "AuthenticationError", "the credentials were refused",
        FATAL, SLOWLY, LW_STATUS_DENIED, LW_STATUS_DENIED, NO_RIGHT,
        GRANT },
    [LW_PULSAR_AUTHORIZATION_ERROR] = {
        "AuthorizationError", "no permission for this topic or operation",
        FATAL, SLOWLY, LW_STATUS_DENIED, LW_STATUS_DENIED, NO_RIGHT,
        GRANT },
    [LW_PULSAR_CONSUMER_BUSY] = {
        "ConsumerBusy", "the subscription is taken, or of another type",
        HANDLE, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED,
        "It waits until the other consumer is gone; with the property admin_url set, "
        "the log says who that is. Nothing is lost." },
    [LW_PULSAR_SERVICE_NOT_READY] = {
        "ServiceNotReady", "this broker does not serve the topic at the moment",
        RETRY, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_QUOTA_EXCEEDED_ERROR] = {
        "ProducerBlockedQuotaExceededError", "backlog quota: producers are held",
        RETRY, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, OVER_QUOTA },
    [LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION] = {
        "ProducerBlockedQuotaExceededException", "backlog quota: producers are refused",
        RETRY, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, OVER_QUOTA },
    [LW_PULSAR_CHECKSUM_ERROR] = {
        "ChecksumError", "the broker saw a wrong checksum",
        HANDLE, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_UNSUPPORTED_VERSION] = {
        "UnsupportedVersionError", "the broker or the client is too old",
        FATAL, NEVER, LW_STATUS_DENIED, LW_STATUS_UNSUPPORTED, REFUSED, NULL },
    [LW_PULSAR_TOPIC_NOT_FOUND] = {
        "TopicNotFound", "no such topic, or a broker that is still starting",
        HANDLE, AGAIN, LW_STATUS_NOT_FOUND, LW_STATUS_NOT_FOUND, NO_TOPIC,
        "create it, or correct its name" },
    [LW_PULSAR_SUBSCRIPTION_NOT_FOUND] = {
        "SubscriptionNotFound", "no such subscription, and it is not created",
        FATAL, AGAIN, LW_STATUS_OK, LW_STATUS_NOT_FOUND, NO_TOPIC,
        "create it, or correct its name" },
    [LW_PULSAR_CONSUMER_NOT_FOUND] = {
        "ConsumerNotFound", "no such consumer",
        FATAL, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_TOO_MANY_REQUESTS] = {
        "TooManyRequests", "the broker limits requests",
        RETRY, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_TOPIC_TERMINATED] = {
        "TopicTerminatedError", "the topic takes no more messages",
        FATAL, AGAIN, LW_STATUS_DENIED, LW_STATUS_UNAVAILABLE, REFUSED,
        "it was ended for good: use another topic" },
    [LW_PULSAR_PRODUCER_BUSY] = {
        "ProducerBusy", "the producer's name or the topic is taken",
        HANDLE, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED,
        "another producer has it: give this one another producer_name, or wait. Still "
        "trying; nothing is lost." },
    [LW_PULSAR_INVALID_TOPIC_NAME] = {
        "InvalidTopicName", "not a name of a topic",
        FATAL, NEVER, LW_STATUS_INVALID, LW_STATUS_INVALID, REFUSED, "correct the name" },
    [LW_PULSAR_INCOMPATIBLE_SCHEMA] = {
        "IncompatibleSchema", "the topic's schema does not allow this",
        FATAL, NEVER, LW_STATUS_DENIED, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_CONSUMER_ASSIGN_ERROR] = {
        "ConsumerAssignError", "the hash ranges overlap those of another consumer",
        FATAL, NEVER, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED,
        "give each consumer sticky_ranges of its own" },
    [LW_PULSAR_COORDINATOR_NOT_FOUND] = {
        "TransactionCoordinatorNotFound", "no transaction coordinator here",
        RETRY, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_INVALID_TXN_STATUS] = {
        "InvalidTxnStatus", "the transaction is over",
        FATAL, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_NOT_ALLOWED] = {
        "NotAllowedError", "the broker does not allow this",
        FATAL, NEVER, LW_STATUS_DENIED, LW_STATUS_UNSUPPORTED, REFUSED, NULL },
    [LW_PULSAR_TRANSACTION_CONFLICT] = {
        "TransactionConflict", "conflicts with another transaction",
        FATAL, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_TRANSACTION_NOT_FOUND] = {
        "TransactionNotFound", "no such transaction",
        FATAL, AGAIN, LW_STATUS_OK, LW_STATUS_UNAVAILABLE, REFUSED, NULL },
    [LW_PULSAR_PRODUCER_FENCED] = {
        "ProducerFenced", "another producer took the topic for itself",
        FATAL, AGAIN, LW_STATUS_DENIED, LW_STATUS_UNAVAILABLE, REFUSED,
        "it comes back when the other one is gone; nothing is lost" },
};
/* clang-format on */

const struct lw_pulsar_server_error_info *
lw_pulsar_server_error_of(int32_t code)
{
    bool is_known = code >= 0 && code < LW_PULSAR_SERVER_ERROR_COUNT;
    return &infos[is_known ? code : LW_PULSAR_UNKNOWN_ERROR];
}
