/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the public options structs, and the init functions that stamp their defaults. A
 * default is written once, here, in the words of the configuration file. After an init zero
 * means zero: priority 0, no jitter, a drain without an end.
 */
#include "service/options.h"

#include <string.h>

#include "base/assert.h"

#define YEAR_MS 31536000000.0
#define DAY_MS 86400000.0
#define COUNT_MAX 1000000000.0

#define FIELD(type, member)                                                                    \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define DISPATCHER(member) FIELD(struct lw_dispatcher_options, member)
#define SUBSCRIPTION(member) FIELD(struct lw_subscription_options, member)
#define RETRY(member) FIELD(struct lw_retry_options, member)
#define BACKOFF(member) FIELD(struct lw_backoff_options, member)
#define DEAD_LETTER(member) FIELD(struct lw_dead_letter_options, member)
#define REPLY(member) FIELD(struct lw_reply_options, member)

static const struct lw_option_word shutdown_words[] = { { .word = "graceful", .value = 0 },
                                                        { .word = "abort", .value = 1 },
                                                        { 0 } };

static const struct lw_option_word warning_words[] = {
    { .word = "print", .value = LW_WARNINGS_PRINT },
    { .word = "silent", .value = LW_WARNINGS_SILENT },
    { .word = "error", .value = LW_WARNINGS_ERROR },
    { 0 }
};

const struct lw_option lw_dispatcher_rows[] = {
    { .name = "name",
      .type = LW_OPTION_TEXT,
      DISPATCHER(name),
      .initial = "laneway",
      .doc = "Name of the service: client ids, log field, control socket." },
    { .name = "concurrency",
      .type = LW_OPTION_UINT,
      DISPATCHER(concurrency),
      .initial = "16",
      .min = 1,
      .max = 100000,
      .doc = "Slots: handlers running at once over all pipelines." },
    { .name = "drain_timeout",
      .type = LW_OPTION_DURATION,
      DISPATCHER(drain_timeout_ms),
      .initial = "25s",
      .min = 0,
      .max = YEAR_MS,
      .doc = "On a stop: time to finish what is in flight; the rest is given back. 0 waits for "
             "ever. At most 5s of it go to pending dead letters." },
    { .name = "shutdown",
      .type = LW_OPTION_ENUM,
      DISPATCHER(is_abort),
      .initial = "graceful",
      .words = shutdown_words,
      .doc = "graceful drains; abort gives everything unfinished back at once." },
    { .name = "retry_warnings",
      .type = LW_OPTION_ENUM,
      DISPATCHER(retry_warnings),
      .initial = "print",
      .words = warning_words,
      .doc = "What to do when nobody here consumes a retry topic." },
    { .name = "commit_interval",
      .type = LW_OPTION_DURATION,
      DISPATCHER(commit_interval_ms),
      .initial = "100ms",
      .min = 1,
      .max = 3600000,
      .doc = "Longest time that finished messages wait for their commit." },
    { .name = "commit_count",
      .type = LW_OPTION_UINT,
      DISPATCHER(commit_count),
      .initial = "10000",
      .min = 1,
      .max = COUNT_MAX,
      .doc = "Finished messages after which a commit is sent before its interval." },
    { .name = "pinned_bytes",
      .type = LW_OPTION_BYTES,
      DISPATCHER(pinned_bytes),
      .initial = "256MiB",
      .min = 1048576,
      .max = 1.0e15,
      .doc = "Memory of the clients' buffers that kept messages may pin; above it they are "
             "copied out." },
    { .name = "random_seed",
      .type = LW_OPTION_UINT,
      DISPATCHER(random_seed),
      .initial = "0",
      .min = 0,
      .max = 9.2e18,
      .doc = "Seed of jitter; 0 takes one from the system." },
    { 0 }
};

static const struct lw_option_word ordering_words[] = {
    { .word = "default", .value = LW_ORDERING_DEFAULT, .is_alias = true },
    { .word = "key", .value = LW_ORDERING_KEY },
    { .word = "key_hash", .value = LW_ORDERING_KEY, .is_alias = true },
    { .word = "partition", .value = LW_ORDERING_PARTITION },
    { .word = "none", .value = LW_ORDERING_NONE },
    { .word = "unordered", .value = LW_ORDERING_NONE, .is_alias = true },
    { 0 }
};

static const struct lw_option_word keyless_words[] = {
    { .word = "default", .value = LW_KEYLESS_DEFAULT, .is_alias = true },
    { .word = "shared", .value = LW_KEYLESS_SHARED },
    { .word = "rotate", .value = LW_KEYLESS_ROTATE },
    { 0 }
};

static const struct lw_option_word profile_words[] = {
    { .word = "adaptive", .value = LW_PROFILE_ADAPTIVE },
    { .word = "priority", .value = LW_PROFILE_PRIORITY },
    { .word = "throughput", .value = LW_PROFILE_THROUGHPUT },
    { .word = "low_latency", .value = LW_PROFILE_LOW_LATENCY },
    { .word = "constrained", .value = LW_PROFILE_CONSTRAINED },
    { 0 }
};

static const struct lw_option_word on_error_words[] = {
    { .word = "default", .value = LW_ON_ERROR_DEFAULT, .is_alias = true },
    { .word = "redeliver", .value = LW_ON_ERROR_REDELIVER },
    { .word = "retry", .value = LW_ON_ERROR_RETRY },
    { .word = "dead", .value = LW_ON_ERROR_DEAD },
    { .word = "drop", .value = LW_ON_ERROR_DROP },
    { .word = "stop", .value = LW_ON_ERROR_STOP },
    { 0 }
};

static const struct lw_option_word on_undecodable_words[] = {
    { .word = "dead", .value = LW_ON_UNDECODABLE_DEAD },
    { .word = "hold", .value = LW_ON_UNDECODABLE_HOLD },
    { .word = "drop", .value = LW_ON_UNDECODABLE_DROP },
    { .word = "stop", .value = LW_ON_UNDECODABLE_STOP },
    { 0 }
};

static const struct lw_option_word on_exhausted_words[] = {
    { .word = "drop", .value = LW_ON_EXHAUSTED_DROP },
    { .word = "hold", .value = LW_ON_EXHAUSTED_HOLD },
    { .word = "stop", .value = LW_ON_EXHAUSTED_STOP },
    { 0 }
};

static const struct lw_option_word oversize_words[] = {
    { .word = "dead", .value = LW_ON_OVERSIZE_DEAD },
    { .word = "retry", .value = LW_ON_OVERSIZE_RETRY },
    { 0 }
};

static const struct lw_option_word payload_words[] = {
    { .word = "full", .value = LW_PAYLOAD_FULL },
    { .word = "headers_only", .value = LW_PAYLOAD_HEADERS_ONLY },
    { .word = "metadata_only", .value = LW_PAYLOAD_HEADERS_ONLY, .is_alias = true },
    { 0 }
};

static const struct lw_option_word unlimited_words[] = { { .word = "unlimited", .value = -1 },
                                                         { 0 } };

#define BACKOFF_ROWS(max_text, jitter_text)                                                    \
    { .name = "initial",                                                                       \
      .type = LW_OPTION_DURATION,                                                              \
      BACKOFF(initial_ms),                                                                     \
      .initial = "1s",                                                                         \
      .min = 0,                                                                                \
      .max = DAY_MS,                                                                           \
      .doc = "Delay before the first retry." },                                                \
        { .name = "multiplier",                                                                \
          .type = LW_OPTION_DOUBLE,                                                            \
          BACKOFF(multiplier),                                                                 \
          .initial = "2",                                                                      \
          .min = 1,                                                                            \
          .max = 100,                                                                          \
          .doc = "Each delay is the one before times this; 1 keeps it constant." },            \
        { .name = "max",                                                                       \
          .type = LW_OPTION_DURATION,                                                          \
          BACKOFF(max_ms),                                                                     \
          .initial = (max_text),                                                               \
          .min = 0,                                                                            \
          .max = DAY_MS,                                                                       \
          .doc = "No delay is longer than this." },                                            \
        { .name = "jitter",                                                                    \
          .type = LW_OPTION_DURATION,                                                          \
          BACKOFF(jitter_ms),                                                                  \
          .initial = (jitter_text),                                                            \
          .min = 0,                                                                            \
          .max = DAY_MS,                                                                       \
          .doc = "A random part from 0 to this is added to each delay." },                     \
    {                                                                                          \
        0                                                                                      \
    }

const struct lw_option lw_backoff_rows[] = { BACKOFF_ROWS("5m", "0") };
const struct lw_option lw_in_place_backoff_rows[] = { BACKOFF_ROWS("30s", "200ms") };

static const struct lw_option retry_rows[] = {
    { .name = "in_place",
      .type = LW_OPTION_TRISTATE,
      RETRY(in_place),
      .initial = "default",
      .initial_note = "true on Kafka without a retry topic",
      .doc = "Hold the message (and its key) and run it again here, in order." },
    { .name = "max_attempts",
      .type = LW_OPTION_UINT,
      RETRY(max_attempts),
      .initial = "3",
      .min = 1,
      .max = COUNT_MAX,
      .doc = "In place: runs in all, the first one included." },
    { .name = "topic",
      .type = LW_OPTION_TEXT,
      RETRY(topic),
      .initial_note = "{topic}.retry (Pulsar: {topic}-{group}-RETRY) when only max_retries or "
                      "tiers are given",
      .doc = "Republication: the topic that gets a copy with a delay; order is lost." },
    { .name = "max_retries",
      .type = LW_OPTION_INT,
      RETRY(max_retries),
      .initial = "unlimited",
      .min = 0,
      .max = COUNT_MAX,
      .words = unlimited_words,
      .doc = "Republications; the failure after the last one is dead-lettered, 0 does so at "
             "once." },
    { .name = "backoff",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct lw_retry_options, backoff),
      .rows = lw_backoff_rows,
      .doc = "Delays of republication; without a retry topic those in place." },
    { .name = "in_place_backoff",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct lw_retry_options, in_place_backoff),
      .rows = lw_in_place_backoff_rows,
      .doc = "Delays in place." },
    { .name = "tiers",
      .type = LW_OPTION_DURATIONS,
      RETRY(tiers_ms),
      .count_offset = offsetof(struct lw_retry_options, tier_count),
      .initial_note = "the distinct backoff steps",
      .doc = "Kafka: delays that get a topic of their own, TOPIC.DELAY; a delay is rounded up "
             "to its tier." },
    { .name = "external",
      .type = LW_OPTION_BOOL,
      RETRY(is_external),
      .initial = "false",
      .doc = "Somebody else consumes the retry topic: no warning." },
    { .name = "allow_overtaking",
      .type = LW_OPTION_BOOL,
      RETRY(allow_overtaking),
      .initial = "false",
      .doc = "Accept that later messages of a key overtake a copy in the retry topic." },
    { 0 }
};

static const struct lw_option dead_letter_rows[] = {
    { .name = "broker",
      .type = LW_OPTION_TEXT,
      DEAD_LETTER(broker),
      .initial_note = "the pipeline's",
      .doc = "Broker of the dead-letter topic." },
    { .name = "topic",
      .type = LW_OPTION_TEXT,
      DEAD_LETTER(topic),
      .initial_note = "{topic}.dlq; on Pulsar {topic}-{group}-DLQ",
      .doc = "Dead-letter topic; {topic} stands for the source." },
    { .name = "payload",
      .type = LW_OPTION_ENUM,
      DEAD_LETTER(payload),
      .initial = "full",
      .words = payload_words,
      .doc = "headers_only sends neither key nor value." },
    { .name = "allow",
      .type = LW_OPTION_TEXTS,
      DEAD_LETTER(allow),
      .count_offset = offsetof(struct lw_dead_letter_options, allow_count),
      .is_list_of_text = true,
      .initial_note = "the dead-letter topics of all subscriptions here",
      .doc = "Patterns of further topics that a message's own header may choose." },
    { 0 }
};

static const struct lw_option reply_rows[] = {
    { .name = "broker",
      .type = LW_OPTION_TEXT,
      REPLY(broker),
      .initial_note = "the pipeline's",
      .doc = "Broker of the reply topic." },
    { .name = "topic",
      .type = LW_OPTION_TEXT,
      REPLY(topic),
      .doc = "Where a handler's reply is published, before the message is settled; without it "
             "replies are ignored." },
    { .name = "key",
      .type = LW_OPTION_TEXT,
      REPLY(key),
      .initial = "keep",
      .doc = "Key of the reply: keep, none, or the name of a header." },
    { .name = "on_oversize",
      .type = LW_OPTION_ENUM,
      REPLY(on_oversize),
      .initial = "dead",
      .words = oversize_words,
      .doc = "A reply above the broker's limit makes the verdict this." },
    { 0 }
};

const struct lw_option lw_topic_rows[] = {
    { .name = "concurrency",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(concurrency),
      .initial = "0",
      .min = 0,
      .max = 100000,
      .doc = "Handlers running at once for one topic; 0: only the service's limit." },
    { .name = "max_in_flight",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(max_in_flight),
      .initial = "1000",
      .min = 1,
      .max = COUNT_MAX,
      .doc = "Messages received and not settled, per topic; receiving stops at this mark." },
    { .name = "max_in_flight_bytes",
      .type = LW_OPTION_BYTES,
      SUBSCRIPTION(max_in_flight_bytes),
      .initial = "64MiB",
      .min = 1,
      .max = 1.0e15,
      .doc = "The same in bytes." },
    { .name = "receiver_queue_size",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(receiver_queue_size),
      .initial = "1000",
      .min = 1,
      .max = COUNT_MAX,
      .doc = "Upper end of the receive window: messages held locally before they are chosen." },
    { .name = "profile",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(profile),
      .initial = "adaptive",
      .words = profile_words,
      .doc = "A set of values for the queue sizes; single values override it." },
    { 0 }
};

const struct lw_option lw_subscription_rows[] = {
    { .name = "ordering",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(ordering),
      .initial = "default",
      .initial_note = "key; on Pulsar none",
      .words = ordering_words,
      .doc = "key: one message of a key at a time, in order; partition; none." },
    { .name = "keyless",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(keyless),
      .initial = "default",
      .initial_note = "by the broker",
      .words = keyless_words,
      .doc = "Messages without a key: shared puts them into one lane, rotate runs them in "
             "parallel." },
    { .type = LW_OPTION_INCLUDE, .rows = lw_topic_rows },
    { .name = "max_uncommitted",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(max_uncommitted),
      .initial = "1048576",
      .min = 1,
      .max = COUNT_MAX,
      .doc =
          "Kafka: offsets from the oldest unfinished to the newest received, per partition." },
    { .name = "receive_stall_timeout",
      .type = LW_OPTION_DURATION,
      SUBSCRIPTION(receive_stall_timeout_ms),
      .initial = "60s",
      .min = 0,
      .max = YEAR_MS,
      .doc = "A topic with a backlog that gave nothing for this long is said aloud and mended; "
             "0: never." },
    { .name = "retry",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct lw_subscription_options, retry),
      .rows = retry_rows,
      .doc = "What the verdict retry does." },
    { .name = "on_error",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(on_error),
      .initial = "default",
      .initial_note = "redeliver on Pulsar, else retry",
      .words = on_error_words,
      .doc = "What follows a crash, a timeout or an unknown answer." },
    { .name = "on_exhausted",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(on_exhausted),
      .initial = "drop",
      .words = on_exhausted_words,
      .doc = "With dead_letter: none, what follows the last failure." },
    { .name = "on_undecodable",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(on_undecodable),
      .initial = "dead",
      .words = on_undecodable_words,
      .doc = "What follows a message that no handler can be given, because it is encrypted or "
             "damaged; with dead_letter: none, dead means hold. Pulsar." },
    { .name = "dead_letter",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct lw_subscription_options, dead_letter),
      .rows = dead_letter_rows,
      .off_word = "none",
      .off_offset = offsetof(struct lw_subscription_options, dead_letter.is_off),
      .doc = "Where messages go that cannot be handled; the word none drops them." },
    { .name = "reply",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct lw_subscription_options, reply),
      .rows = reply_rows,
      .doc = "Where answers of the handler go." },
    { 0 }
};

static const struct lw_option_word batch_keys_words[] = {
    { .word = "many", .value = LW_BATCH_KEYS_MANY },
    { .word = "one", .value = LW_BATCH_KEYS_ONE },
    { 0 }
};

static const struct lw_option_word batch_verdict_words[] = {
    { .word = "each", .value = LW_BATCH_VERDICT_EACH },
    { .word = "one", .value = LW_BATCH_VERDICT_ONE },
    { 0 }
};

static const struct lw_option batch_rows[] = {
    { .name = "size",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(batch.size),
      .initial = "1",
      .min = 1,
      .max = 10000,
      .doc = "Messages of one call, at most. 1: no batches." },
    { .name = "wait",
      .type = LW_OPTION_DURATION,
      SUBSCRIPTION(batch.wait_ms),
      .initial = "10ms",
      .min = 0,
      .max = 3600000,
      .doc = "So long a message that could run waits for company. 0: takes what is here." },
    { .name = "bytes",
      .type = LW_OPTION_BYTES,
      SUBSCRIPTION(batch.bytes),
      .initial = "16MiB",
      .min = 1,
      .max = 1073741824,
      .doc = "Keys and values of a batch: once it has so many, no further message joins it." },
    { .name = "keys",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(batch.keys),
      .initial = "many",
      .words = batch_keys_words,
      .doc = "Whether a batch has messages of several ordering keys, those of one key next to "
             "each other and in order, or of one only." },
    { .name = "verdict",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(batch.verdict),
      .initial = "each",
      .words = batch_verdict_words,
      .doc =
          "Whether the handler judges each message, or gives one verdict for all; a retry or "
          "an error for all charges nobody and runs each again alone." },
    { 0 }
};

static const struct lw_option_word engine_words[] = {
    { .word = "loop", .value = LW_ENGINE_LOOP },
    { .word = "threads", .value = LW_ENGINE_THREADS },
    { .word = "programs", .value = LW_ENGINE_PROGRAMS },
    { .word = "http", .value = LW_ENGINE_HTTP },
    { .word = "processes", .value = LW_ENGINE_PROCESSES },
    { 0 }
};

static const struct lw_option_word protocol_words[] = {
    { .word = "lines", .value = LW_PROTOCOL_LINES },
    { .word = "frames", .value = LW_PROTOCOL_FRAMES },
    { .word = "once", .value = LW_PROTOCOL_ONCE },
    { 0 }
};

const struct lw_option lw_handler_rows[] = {
    { .name = "engine",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(engine),
      .initial = "threads",
      .initial_note = "programs for a program, http for http, else what suits the handler",
      .words = engine_words,
      .doc = "Where the handler runs." },
    { .name = "batch",
      .type = LW_OPTION_GROUP,
      .rows = batch_rows,
      .doc = "Several messages in one call of the handler." },
    { .name = "timeout",
      .type = LW_OPTION_DURATION,
      SUBSCRIPTION(timeout_ms),
      .initial = "30s",
      .min = 0,
      .max = YEAR_MS,
      .doc = "Of one attempt; then it counts as error, and a program is ended. 0: none." },
    { .name = "threads",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(threads),
      .initial = "0",
      .initial_note = "service.concurrency",
      .min = 0,
      .max = 10000,
      .doc = "Threads of engine threads." },
    { .name = "program",
      .type = LW_OPTION_TEXTS,
      SUBSCRIPTION(program),
      .doc = "Program and arguments, never a shell; relative to this file." },
    { .name = "protocol",
      .type = LW_OPTION_ENUM,
      SUBSCRIPTION(protocol),
      .initial = "lines",
      .words = protocol_words,
      .doc = "How the program is spoken to; lines: one JSON object per line; frames: the same "
             "with raw bytes, for large or binary payloads; once: run for each message, the "
             "exit code is the verdict." },
    { .name = "directory",
      .type = LW_OPTION_TEXT,
      SUBSCRIPTION(directory),
      .initial_note = "that of this file",
      .doc = "Working directory of the program." },
    { .name = "workers",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(workers),
      .initial = "0",
      .initial_note = "CPUs, at most service.concurrency; once: service.concurrency",
      .min = 0,
      .max = 10000,
      .doc =
          "Processes kept alive, of a program or on engine processes; protocol once: running "
          "at once." },
    { .name = "window",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(window),
      .initial = "0",
      .initial_note = "1; on engine processes 64",
      .min = 0,
      .max = 100000,
      .doc =
          "Messages that one worker may hold at once; on engine processes fewer when they take "
          "long." },
    { .name = "start_timeout",
      .type = LW_OPTION_DURATION,
      SUBSCRIPTION(start_timeout_ms),
      .initial = "10s",
      .min = 1,
      .max = YEAR_MS,
      .doc = "Time for a program's first answer, or for loading and opening a plug-in in its "
             "process." },
    { .name = "memory_max",
      .type = LW_OPTION_BYTES,
      SUBSCRIPTION(memory_max),
      .initial = "0",
      .initial_note = "no limit",
      .doc =
          "Memory that a worker and its children may have resident together, looked at every "
          "250ms; above it the worker is killed and its message charged." },
    { .name = "cpu_max",
      .type = LW_OPTION_DURATION,
      SUBSCRIPTION(cpu_max_ms),
      .initial = "0",
      .initial_note = "no limit",
      .min = 0,
      .max = YEAR_MS,
      .doc =
          "Processor time that a worker and its children may spend on one message, looked at "
          "every 250ms; above it the worker is killed and its message charged." },
    { .name = "nofile",
      .type = LW_OPTION_UINT,
      SUBSCRIPTION(nofile),
      .initial = "0",
      .initial_note = "as for Laneway itself",
      .min = 0,
      .max = 1048576,
      .doc = "Files that each process of a worker may have open." },
    { .name = "user",
      .type = LW_OPTION_TEXT,
      SUBSCRIPTION(run_as),
      .initial_note = "the user of Laneway itself",
      .doc =
          "Whom the program runs as: a name or a number, with :GROUP after it if that is not "
          "the user's own. It can gain no privileges. Needs root, or CAP_SETUID, CAP_SETGID "
          "and CAP_KILL." },
    { .name = "processes",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct lw_subscription_options, processes),
      .rows = lw_processes_rows,
      .doc = "More about engine processes." },
    { .name = "plugin",
      .type = LW_OPTION_TEXT,
      SUBSCRIPTION(plugin),
      .doc = "Shared object with the handler (laneway/handler.h); relative to this file." },
    { .name = "symbol",
      .type = LW_OPTION_TEXT,
      SUBSCRIPTION(symbol),
      .initial_note = "lw_handler",
      .doc = "Name of the handler in its plugin." },
    { .name = "options",
      .type = LW_OPTION_PROPERTIES,
      .offset = offsetof(struct lw_subscription_options, plugin_options),
      .size = sizeof(void *),
      .count_offset = offsetof(struct lw_subscription_options, plugin_option_count),
      .doc = "Handed to the plugin when it is opened; it says what it understands." },
    { 0 }
};

static const struct lw_option priority_rows[] = { { .name = "priority",
                                                    .type = LW_OPTION_INT,
                                                    SUBSCRIPTION(priority),
                                                    .initial = "100",
                                                    .doc = "Lower is served first." },
                                                  { 0 } };

static const struct lw_profile_row profiles[] = {
    { .profile = LW_PROFILE_ADAPTIVE,
      .name = "adaptive",
      .receiver_queue_size = 1000,
      .max_in_flight = 1000,
      .doc = "the window follows demand between 1 and receiver_queue_size; priority is decided "
             "late" },
    { .profile = LW_PROFILE_PRIORITY,
      .name = "priority",
      .receiver_queue_size = 1,
      .max_in_flight = 1000,
      .is_window_fixed = true,
      .doc = "one message held per topic: the strictest priority, the least throughput" },
    { .profile = LW_PROFILE_THROUGHPUT,
      .name = "throughput",
      .receiver_queue_size = 1000,
      .max_in_flight = 2000,
      .is_window_fixed = true,
      .doc = "large fixed windows: several members of one group share unevenly, priority is "
             "coarse" },
    { .profile = LW_PROFILE_LOW_LATENCY,
      .name = "low_latency",
      .receiver_queue_size = 200,
      .max_in_flight = 512,
      .is_window_fixed = true,
      .doc = "medium fixed windows and few messages in flight" },
    { .profile = LW_PROFILE_CONSTRAINED,
      .name = "constrained",
      .receiver_queue_size = 64,
      .max_in_flight = 256,
      .is_window_fixed = true,
      .doc = "small fixed windows and few messages in flight, for a small machine" },
};

const struct lw_profile_row *
lw_profile_rows(size_t *ret_count)
{
    *ret_count = sizeof(profiles) / sizeof(profiles[0]);
    return profiles;
}

const struct lw_profile_row *
lw_profile_find(enum lw_profile profile)
{
    lw_assert(profiles[profile].profile == profile);
    return &profiles[profile];
}

void
lw_dispatcher_options_init(struct lw_dispatcher_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
    lw_option_init(lw_dispatcher_rows, options);
}

void
lw_subscription_options_init(struct lw_subscription_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
    lw_option_init(lw_subscription_rows, options);
    lw_option_init(lw_handler_rows, options);
    lw_option_init(priority_rows, options);
}

void
lw_family_options_init(struct lw_family_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}
