/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the headers that we read and write, and nothing else: Pyrallel's six and our own
 * on Kafka, the Java client's on Pulsar, and what is passed on to replies. A name is part of what
 * other programs read, so it never changes.
 */
#ifndef LW_POLICY_HEADER_NAMES_H
#define LW_POLICY_HEADER_NAMES_H

/* Kafka: where it came from, why and after how many runs. */
#define LW_HEADER_REASON "x-error-reason"
#define LW_HEADER_ATTEMPT "x-retry-attempt"
#define LW_HEADER_SOURCE_TOPIC "source-topic"
#define LW_HEADER_PARTITION "partition"
#define LW_HEADER_OFFSET "offset"
#define LW_HEADER_EPOCH "epoch"
#define LW_HEADER_ID "x-laneway-id"
#define LW_HEADER_RETRIES "x-laneway-retries"
#define LW_HEADER_NOT_BEFORE "x-laneway-not-before"
#define LW_HEADER_TIMESTAMP "x-laneway-timestamp"
#define LW_HEADER_DEAD_LETTER_TOPIC "x-laneway-dead-letter-topic"

/* Pulsar, beside LW_HEADER_ID. ORIGIN_MESSAGE_IDY_TIME is Java's older name of the origin's id. */
#define LW_PROPERTY_REAL_TOPIC "REAL_TOPIC"
#define LW_PROPERTY_ORIGIN_ID "ORIGIN_MESSAGE_ID"
#define LW_PROPERTY_ORIGIN_ID_JAVA "ORIGIN_MESSAGE_IDY_TIME"
#define LW_PROPERTY_REAL_SUBSCRIPTION "REAL_SUBSCRIPTION"
#define LW_PROPERTY_RECONSUME_TIMES "RECONSUMETIMES"
#define LW_PROPERTY_DELAY_TIME "DELAY_TIME"
#define LW_PROPERTY_DEAD_LETTER_TOPIC "DEAD_LETTER_TOPIC"

/* Both: passed on from a message to what it caused. */
#define LW_HEADER_TRACE_PARENT "traceparent"
#define LW_HEADER_TRACE_STATE "tracestate"
#define LW_HEADER_CONTENT_TYPE "content-type"

#endif
