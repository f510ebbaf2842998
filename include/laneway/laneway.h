/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public interface of liblaneway: a dispatcher that takes messages from Apache Kafka
 * (and from a broker in memory), hands them to handlers by strict priority and in key order,
 * and settles every one of them exactly once.
 *
 * Threads. A dispatcher is driven by one thread: the caller of lw_dispatcher_run or
 * lw_dispatcher_poll. Other threads may call only
 *   lw_dispatcher_close, lw_dispatcher_request_close, lw_dispatcher_wait_closed,
 *   lw_delivery_finish, lw_ticket_finish, lw_batch_finish, lw_ticket_finish_batch, and, for a
 *   delivery that they hold, every lw_delivery_* function.
 *
 * Ownership. Everything that a function returns belongs to the library unless its comment says
 * otherwise. Options structs are started by their lw_<x>_options_init, which stamps the size
 * and all defaults; after that zero means zero. All strings given are copied.
 */
#ifndef LANEWAY_LANEWAY_H
#define LANEWAY_LANEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LW_API __attribute__((visibility("default")))
#define LW_MUST_USE __attribute__((warn_unused_result))
#else
#define LW_API
#define LW_MUST_USE
#endif

#define LW_VERSION_HEX 0x000100
#define LW_VERSION_STRING "0.1.0"

/* Returns the version of the linked library, such as "0.1.0". */
LW_API const char *lw_version(void);

/* -- Status and errors ------------------------------------------------------------------- */

/* How an operation ended. 0 is success; the names are those of lw_status_name. */
enum lw_status {
    LW_STATUS_OK = 0,
    LW_STATUS_INVALID,        /* an argument or option is wrong */
    LW_STATUS_CONFIG,         /* the configuration is wrong */
    LW_STATUS_NOT_FOUND,      /* no such file, topic, subscription, option */
    LW_STATUS_UNAVAILABLE,    /* a broker or service cannot be reached */
    LW_STATUS_DENIED,         /* no authorisation */
    LW_STATUS_TOO_LARGE,      /* above a limit of the broker or of ours */
    LW_STATUS_AGAIN,          /* no room now; an event says when there is */
    LW_STATUS_TIMEOUT,        /* a deadline passed */
    LW_STATUS_CLOSED,         /* used after close or stop */
    LW_STATUS_STATE,          /* not allowed in this state, such as subscribing after run */
    LW_STATUS_ALREADY,        /* done before, such as a second finish */
    LW_STATUS_WOULD_DEADLOCK, /* lw_dispatcher_close from inside a handler */
    LW_STATUS_NO_MEMORY,
    LW_STATUS_SYSTEM,      /* a call of the operating system failed */
    LW_STATUS_UNKNOWN,     /* sent, but never confirmed: it may or may not have happened */
    LW_STATUS_UNSUPPORTED, /* this broker, engine or version cannot do it */
    LW_STATUS_STOPPED, /* stopped by a handler policy: on_error, on_exhausted or on_undecodable: stop */
    LW_STATUS_UNFINISHED, /* the drain deadline passed; unfinished messages were given back */
    LW_STATUS_INTERNAL    /* a defect of ours */
};

/* What a person reads. `code` is the catalogue's ("E0501", see `laneway errors`), empty if none. */
struct lw_error {
    enum lw_status status;
    char code[8];
    char message[512]; /* one plain sentence */
    char help[512];    /* what to do, may be empty */
    char file[256];    /* with a position in a file, else empty */
    int line;          /* from 1 */
    int column;        /* from 1 */
    bool is_retriable;
    bool is_fatal;
};

/* Returns the constant lower-case name of a status, such as "too_large". */
LW_API const char *lw_status_name(enum lw_status status);
/* Returns the exit code (sysexits) that a program should end with for `error`. */
LW_API int lw_error_exit_code(const struct lw_error *error);

/* -- Bytes and headers -------------------------------------------------------------------- */

/* A view of bytes. data == NULL is "null" (no key, a tombstone), which is not "empty". */
struct lw_bytes {
    const void *data;
    size_t size;
};

struct lw_header {
    struct lw_bytes name; /* text, not terminated by a zero */
    struct lw_bytes value;
};

/* Returns a view of a zero-terminated text; NULL gives the null view. */
LW_API struct lw_bytes lw_bytes_of(const char *text);

/* -- Verdicts and deliveries ---------------------------------------------------------------- */

/* What a handler says about a message. */
enum lw_verdict {
    LW_OK = 0, /* done: publish the reply and outputs if any, then settle */
    LW_RETRY,  /* may work later */
    LW_DEAD,   /* can never work: to the dead-letter topic */
    LW_DROP,   /* deliberately ignored: settled, counted apart */
    LW_ERROR,  /* no usable answer; what follows is the policy's on_error */
    LW_PENDING /* an asynchronous handler will call lw_delivery_finish later */
};

/*
 * One message in a handler's hands. A blocking handler may use it until it returns, an
 * asynchronous one until it calls lw_delivery_finish. All views die with it.
 */
struct lw_delivery;

LW_API struct lw_bytes lw_delivery_value(const struct lw_delivery *delivery);
LW_API struct lw_bytes lw_delivery_key(const struct lw_delivery *delivery);
/* The key that orders: Pulsar's ordering key if there is one, else the key. */
LW_API struct lw_bytes lw_delivery_ordering_key(const struct lw_delivery *delivery);
LW_API const char *lw_delivery_topic(const struct lw_delivery *delivery);
LW_API const char *lw_delivery_subscription(const struct lw_delivery *delivery);
LW_API const char *lw_delivery_pipeline(const struct lw_delivery *delivery);
LW_API int32_t lw_delivery_partition(const struct lw_delivery *delivery);
LW_API int64_t lw_delivery_offset(const struct lw_delivery *delivery);
/* Producer's or broker's time in ms since 1970, -1 if unknown. */
LW_API int64_t lw_delivery_timestamp_ms(const struct lw_delivery *delivery);
/* Application's time in ms since 1970, -1 if none. */
LW_API int64_t lw_delivery_event_time_ms(const struct lw_delivery *delivery);
/* Runs of this message in this process, from 1. */
LW_API uint32_t lw_delivery_attempt(const struct lw_delivery *delivery);
/* Republications through retry topics so far. */
LW_API uint32_t lw_delivery_retries(const struct lw_delivery *delivery);
/* The broker's own count of earlier deliveries, 0 where it has none. */
LW_API uint32_t lw_delivery_redeliveries(const struct lw_delivery *delivery);
/* Milliseconds until the attempt's deadline, 0 when it passed, -1 without one. */
LW_API int64_t lw_delivery_deadline_ms(const struct lw_delivery *delivery);
/* True when the attempt's time is over or its partition was taken away: stop if you can. */
LW_API bool lw_delivery_is_cancelled(const struct lw_delivery *delivery);
/*
 * Writes the stable identity BROKER/TOPIC/PARTITION/POSITION of the message's first appearance,
 * kept through retry copies; use it to recognise duplicates. Returns the length needed without
 * the terminating zero; at most `size` bytes are written, always terminated if size > 0.
 */
LW_API size_t lw_delivery_message_id(const struct lw_delivery *delivery, char *out,
                                     size_t size);
/* Returns all headers in order, duplicates kept. The array dies with the delivery. */
LW_API const struct lw_header *
lw_delivery_headers(const struct lw_delivery *delivery, size_t *ret_count);
/* Returns the last header of that name, or the null view. */
LW_API struct lw_bytes lw_delivery_header(const struct lw_delivery *delivery, const char *name);

/* Give a reason (copied, at most 512 bytes kept) with the verdict that they return. */
LW_API enum lw_verdict lw_delivery_dead(struct lw_delivery *delivery, const char *reason);
LW_API enum lw_verdict lw_delivery_drop(struct lw_delivery *delivery, const char *reason);
/* delay_ms < 0: the configured backoff. */
LW_API enum lw_verdict
lw_delivery_retry(struct lw_delivery *delivery, const char *reason, int64_t delay_ms);
/* `code` is mapped by the subscription's error classes; unmapped it follows on_error. */
LW_API enum lw_verdict
lw_delivery_error(struct lw_delivery *delivery, int code, const char *reason);

/* A message to publish before the delivery is settled. Null views are kept as null. */
struct lw_output {
    const char *topic; /* NULL: the subscription's reply topic */
    struct lw_bytes key;
    struct lw_bytes value;
    const struct lw_header *headers;
    size_t header_count;
    int64_t delay_ms; /* 0: at once; where the broker can delay */
};

/*
 * Sets the reply. The bytes are copied; published and confirmed before the message is settled,
 * and only if the verdict is LW_OK. Ignored without a reply topic.
 */
LW_API enum lw_status lw_delivery_reply(struct lw_delivery *delivery, struct lw_bytes value);
/* Adds a further output, everything copied; LW_STATUS_TOO_LARGE above 1,024 outputs. */
LW_API enum lw_status
lw_delivery_publish(struct lw_delivery *delivery, const struct lw_output *output);

/*
 * Ends an asynchronous delivery, from any thread, exactly once. A second call gives
 * LW_STATUS_ALREADY as long as the delivery was not yet reused; where that can happen use a
 * ticket, which recognises it always.
 */
LW_API enum lw_status lw_delivery_finish(struct lw_delivery *delivery, enum lw_verdict verdict);

/* Names one run of one delivery for ever. */
struct lw_ticket {
    struct lw_delivery *delivery;
    uint32_t serial;
};
LW_API struct lw_ticket lw_delivery_ticket(struct lw_delivery *delivery);
LW_API enum lw_status lw_ticket_finish(struct lw_ticket ticket, enum lw_verdict verdict);

/* A blocking handler; runs where its engine says and returns the verdict. */
typedef enum lw_verdict (*lw_handler_fn)(struct lw_delivery *delivery, void *user);
/* An asynchronous handler; runs on the loop thread and ends with lw_delivery_finish. */
typedef void (*lw_handler_async_fn)(struct lw_delivery *delivery, void *user);
/*
 * A blocking handler of several messages at once, see struct lw_batch_options. Those of one
 * ordering key lie next to each other, in their order. `verdicts` has room for `count`. Returns
 * how many of them it gave: `count`, or with LW_BATCH_VERDICT_ONE just one, for all messages.
 * Messages without a verdict are retried, and it is said aloud. Reasons, delays, replies and
 * outputs are given to the delivery that they are about.
 */
typedef size_t (*lw_handler_batch_fn)(struct lw_delivery *const deliveries[], size_t count,
                                      enum lw_verdict verdicts[], void *user);
/*
 * An asynchronous one; runs on the loop thread and ends with lw_batch_finish. The array dies with
 * the call, the deliveries live until the end.
 */
typedef void (*lw_handler_batch_async_fn)(struct lw_delivery *const deliveries[], size_t count,
                                          void *user);
/*
 * Ends all that such a call was given, named by its first delivery or by that one's ticket; from any
 * thread, exactly once, as lw_delivery_finish does. `verdicts` are those of the first `count`, at
 * least 1, and mean what those of a blocking handler mean. LW_STATUS_INVALID, and nothing changes,
 * for what is no verdict. (lw_delivery_finish of the first is the same with its verdict alone; the
 * others cannot be finished by themselves, which gives LW_STATUS_ALREADY.)
 */
LW_API enum lw_status
lw_batch_finish(struct lw_delivery *first, const enum lw_verdict verdicts[], size_t count);
LW_API enum lw_status
lw_ticket_finish_batch(struct lw_ticket ticket, const enum lw_verdict verdicts[], size_t count);

/* -- Dispatcher ------------------------------------------------------------------------------ */

struct lw_dispatcher;

enum lw_log_level { LW_LOG_ERROR, LW_LOG_WARN, LW_LOG_INFO, LW_LOG_DEBUG, LW_LOG_TRACE };

/* One event: a fixed name, a sentence, and `key=value` fields already formatted. Any thread. */
typedef void (*lw_log_fn)(enum lw_log_level level, const char *event, const char *text,
                          const char *fields, void *user);

enum lw_engine_kind {
    LW_ENGINE_LOOP,
    LW_ENGINE_THREADS,
    LW_ENGINE_PROGRAMS,
    LW_ENGINE_HTTP,
    LW_ENGINE_PROCESSES
};
/* How LW_ENGINE_PROGRAMS speaks with a program (docs/protocol.md). */
enum lw_protocol {
    LW_PROTOCOL_LINES,  /* kept alive, lines of JSON */
    LW_PROTOCOL_FRAMES, /* kept alive, JSON headers and raw bytes */
    LW_PROTOCOL_ONCE    /* run for each message; the exit code is the verdict */
};
enum lw_ordering {
    LW_ORDERING_DEFAULT,
    LW_ORDERING_KEY,
    LW_ORDERING_PARTITION,
    LW_ORDERING_NONE
};
enum lw_keyless { LW_KEYLESS_DEFAULT, LW_KEYLESS_SHARED, LW_KEYLESS_ROTATE };
enum lw_on_error {
    LW_ON_ERROR_DEFAULT,   /* Kafka, spool: retry; Pulsar: redeliver */
    LW_ON_ERROR_REDELIVER, /* give back to the broker; on ordered Kafka lanes: retry in place */
    LW_ON_ERROR_RETRY,
    LW_ON_ERROR_DEAD,
    LW_ON_ERROR_DROP,
    LW_ON_ERROR_STOP
};
enum lw_on_exhausted { LW_ON_EXHAUSTED_DROP, LW_ON_EXHAUSTED_HOLD, LW_ON_EXHAUSTED_STOP };

/*
 * What follows a message that cannot be read: encrypted, damaged, packed in an unknown way. DEAD is
 * a dead letter, or HOLD where there can be none. Brokers whose client reads messages itself
 * (Kafka's) give none such.
 */
enum lw_on_undecodable {
    LW_ON_UNDECODABLE_DEAD,
    LW_ON_UNDECODABLE_HOLD,
    LW_ON_UNDECODABLE_DROP,
    LW_ON_UNDECODABLE_STOP
};
enum lw_on_oversize { LW_ON_OVERSIZE_DEAD, LW_ON_OVERSIZE_RETRY };
enum lw_payload { LW_PAYLOAD_FULL, LW_PAYLOAD_HEADERS_ONLY };
enum lw_warnings { LW_WARNINGS_PRINT, LW_WARNINGS_SILENT, LW_WARNINGS_ERROR };
enum lw_tristate { LW_DEFAULT = -1, LW_NO = 0, LW_YES = 1 };
enum lw_profile {
    LW_PROFILE_ADAPTIVE,
    LW_PROFILE_PRIORITY,
    LW_PROFILE_THROUGHPUT,
    LW_PROFILE_LOW_LATENCY,
    LW_PROFILE_CONSTRAINED
};

enum lw_batch_keys { LW_BATCH_KEYS_MANY, LW_BATCH_KEYS_ONE };
enum lw_batch_verdict { LW_BATCH_VERDICT_EACH, LW_BATCH_VERDICT_ONE };

/*
 * Several messages in one call of the handler. It is called when `size` or `bytes` of them are
 * here or when the first has waited for `wait_ms` since it could run; what waits has not begun.
 * Of a key in order, the messages behind one that is to be retried in place run again after it,
 * whatever was said of them. With one verdict for all, a retry or an error does not say whose
 * fault it was: nobody is charged, and each runs again alone.
 */
struct lw_batch_options {
    uint32_t size;           /* 1: messages, at most */
    int64_t wait_ms;         /* 10 */
    uint64_t bytes;          /* 16 MiB of keys and values, once reached no further message */
    enum lw_batch_keys keys; /* of several ordering keys, or of one at a time */
    enum lw_batch_verdict verdict;
};

struct lw_dispatcher_options {
    size_t size;
    const char *name;         /* "laneway": client ids, log field */
    uint32_t concurrency;     /* 16: handlers running at once over all subscriptions */
    int64_t drain_timeout_ms; /* 25,000; 0 waits for ever */
    bool is_abort;            /* false; true: stop without draining */
    enum lw_warnings retry_warnings;
    int64_t commit_interval_ms; /* 100 */
    uint32_t commit_count;      /* 10,000 */
    uint64_t pinned_bytes;      /* 256 MiB: of clients' buffers that kept messages may pin */
    uint64_t random_seed;       /* 0: from the system */
    bool logs_keys;             /* false: no key of a message is ever logged */
    lw_log_fn log;              /* NULL: nothing is logged */
    void *log_user;
};

struct lw_backoff_options {
    int64_t initial_ms; /* 1,000 */
    double multiplier;  /* 2 */
    int64_t max_ms;     /* in place 30,000; republication 300,000 */
    int64_t jitter_ms;  /* in place 200; republication 0; uniform, only added */
};

struct lw_retry_options {
    enum lw_tristate in_place; /* default: yes on Kafka without a retry topic, else no */
    uint32_t max_attempts;     /* 3 runs in all, in place */
    const char *topic;         /* republication, NULL none; `{topic}` stands for the source */
    int64_t max_retries;       /* republications; -1 unlimited; 0 straight to the dead letter */
    struct lw_backoff_options backoff; /* republication */
    struct lw_backoff_options in_place_backoff;
    const int64_t *tiers_ms; /* NULL: the distinct backoff steps */
    size_t tier_count;
    bool is_external;      /* the retry topic is consumed by somebody else */
    bool allow_overtaking; /* accept a retry topic with key order */
};

struct lw_dead_letter_options {
    bool is_off;
    const char *broker; /* NULL: the source's */
    const char *topic;  /* NULL: the broker's convention; `{topic}` stands for the source */
    enum lw_payload payload;
    const char *const *allow; /* patterns of topics that a header may choose; NULL: none more */
    size_t allow_count;
};

struct lw_reply_options {
    const char *broker; /* NULL: the source's */
    const char *topic;  /* NULL: replies are ignored */
    const char *key;    /* "keep" (default), "none" or the name of a header */
    enum lw_on_oversize on_oversize;
};

/* When engine processes hands over what it has gathered for a worker, below `batch_size`. */
enum lw_handover {
    LW_HANDOVER_DEMAND,        /* as soon as the worker has nothing else to do */
    LW_HANDOVER_MIN_RESIDENCE, /* the same, once the oldest has waited for `batch_min_residence` */
    LW_HANDOVER_TIMER          /* only when the oldest has waited for `batch_wait` */
};

/* Engine processes. */
struct lw_processes_tuning {
    uint32_t min_workers;    /* 1: started at once; more when these are busy. 0: all */
    uint32_t max_crashes;    /* 3: a message that was charged so many is dead */
    uint32_t recycle_after;  /* 0 never: a worker is replaced after so many messages */
    uint32_t recycle_jitter; /* 0: and a random part of this more, drawn once a process */
    bool pins_lanes;         /* false; true: a key always meets the same worker */
    bool binds_cpus;         /* false; true: each worker to one processor */
    uint64_t ring_bytes;     /* 256 KiB: each way, for each worker */
    uint64_t item_bytes_max; /* 16 MiB: a larger message is dead */
    uint32_t batch_size;     /* 64: so many are handed over at once at the latest */
    int64_t batch_wait_ms;   /* 0: whatever there is in every turn */
    enum lw_handover handover;
    int64_t batch_min_residence_ms; /* 0 */
};

/* Codes from..to (inclusive) that a handler gives with `error` mean `verdict`. */
struct lw_error_class {
    int from;
    int to;
    enum lw_verdict verdict;
};

/* Exit codes from..to (inclusive) of a program that is run once for each message. */
struct lw_exit_class {
    int from;
    int to;
    enum lw_verdict verdict;
    bool is_broken; /* the handler is at fault: it pauses, and no message is charged */
};

struct lw_property {
    const char *name;
    const char *value;
};

enum lw_http_method { LW_HTTP_METHOD_POST, LW_HTTP_METHOD_PUT, LW_HTTP_METHOD_PATCH };
enum lw_http_version {
    LW_HTTP_VERSION_AUTO, /* 2 over TLS where the service offers it, else 1.1 */
    LW_HTTP_VERSION_1_1
};

/* LW_ENGINE_HTTP: the handler is a service, asked once for each message. */
struct lw_http_options {
    size_t size;
    const char *url; /* required: http://HOST[:PORT]/PATH or https://... */
    enum lw_http_method method;
    enum lw_http_version version;
    const struct lw_property *headers; /* sent with every request */
    size_t header_count;
    uint32_t connections;         /* 0: concurrency; requests at once */
    int64_t connect_timeout_ms;   /* 10,000 */
    int64_t max_hold_ms;          /* 600,000: so long 429 and 503 are charged to nobody */
    uint64_t answer_bytes_max;    /* 1 MiB */
    const char *token;            /* bearer token: itself, file:PATH (read anew), env:NAME */
    const char *trust_file;       /* PEM; NULL: the system's authorities */
    const char *certificate_file; /* PEM, of our own */
    const char *key_file;
    bool allows_insecure;    /* false; true: no certificate is checked */
    bool validates_hostname; /* true */
    const char *proxy;       /* NULL: none, whatever the environment says */
};

struct lw_subscription_options {
    size_t size;
    const char *broker;       /* required, a name given to lw_dispatcher_connect */
    const char *topic;        /* required */
    const char *subscription; /* required: the consumer group */
    const char *pipeline;     /* NULL: the topic */
    int32_t priority;         /* 100; lower is served first */
    enum lw_ordering ordering;
    enum lw_keyless keyless;
    uint32_t concurrency;         /* 0: no limit of its own */
    uint32_t max_in_flight;       /* 1,000 messages received and not settled */
    uint64_t max_in_flight_bytes; /* 64 MiB */
    uint32_t max_uncommitted;     /* 1,048,576 a partition */
    uint32_t receiver_queue_size; /* 1,000: upper end of the receive window */
    enum lw_profile profile;
    int64_t receive_stall_timeout_ms; /* 60,000 */

    enum lw_engine_kind engine;
    lw_handler_fn handler; /* blocking, on LW_ENGINE_THREADS or _LOOP; or lw_processes_init */
    lw_handler_async_fn handler_async;             /* on LW_ENGINE_LOOP */
    lw_handler_batch_fn handler_batch;             /* blocking, on the same */
    lw_handler_batch_async_fn handler_batch_async; /* on LW_ENGINE_LOOP */
    struct lw_batch_options batch; /* of those for several, plug-ins, programs and http */
    void *user;
    uint32_t threads;           /* LW_ENGINE_THREADS: 0 = concurrency */
    int64_t timeout_ms;         /* 30,000 for one attempt; 0 none */
    const char *const *program; /* LW_ENGINE_PROGRAMS: argv, NULL-terminated */
    const char *directory;      /* the program's working directory; NULL: ours */
    enum lw_protocol protocol;
    const struct lw_exit_class *exit_codes; /* LW_PROTOCOL_ONCE: the first that fits decides */
    size_t exit_code_count;
    uint32_t workers;         /* 0: min(concurrency, CPUs); LW_PROTOCOL_ONCE: concurrency */
    uint32_t window;          /* 1: messages that one worker may hold */
    int64_t start_timeout_ms; /* 10,000 */
    uint64_t memory_max;      /* resident bytes of a worker and its children; 0: no limit */
    int64_t cpu_max_ms;       /* processor time on one message; 0: no limit */
    uint32_t nofile;          /* open files of a worker; 0: as ours */
    const char *run_as;       /* NAME or NUMBER[:GROUP], of the workers; NULL: as we */
    const struct lw_http_options *http; /* LW_ENGINE_HTTP */
    /* In place of a function or program: a shared object with a handler (laneway/handler.h). */
    const char *plugin;
    const char *symbol; /* NULL: "lw_handler" */
    const struct lw_property *plugin_options;
    size_t plugin_option_count;
    struct lw_processes_tuning processes;

    struct lw_retry_options retry;
    enum lw_on_error on_error;
    enum lw_on_exhausted on_exhausted;
    enum lw_on_undecodable on_undecodable;
    const struct lw_error_class *errors;
    size_t error_count;
    struct lw_dead_letter_options dead_letter;
    struct lw_reply_options reply;
    const struct lw_property *properties; /* for the client library */
    size_t property_count;
};

LW_API void lw_dispatcher_options_init(struct lw_dispatcher_options *options);
LW_API void lw_subscription_options_init(struct lw_subscription_options *options);
LW_API void lw_http_options_init(struct lw_http_options *options);

/* Creates a dispatcher; NULL and *ret_error on failure. The caller destroys it. */
LW_API struct lw_dispatcher *
lw_dispatcher_create(const struct lw_dispatcher_options *options, struct lw_error *ret_error);
/*
 * Waits for running handlers, then frees everything; NULL is fine. No callback runs after it
 * returned. Not from inside a handler.
 */
LW_API void lw_dispatcher_destroy(struct lw_dispatcher *dispatcher);

/*
 * Names a broker by its address: kafka://host:port[,host:port], pulsar://host:port, spool:file,
 * memory: . Connects in run.
 */
LW_API LW_MUST_USE enum lw_status
lw_dispatcher_connect(struct lw_dispatcher *dispatcher, const char *name, const char *url,
                      const struct lw_property *properties, size_t property_count,
                      struct lw_error *ret_error);
/* Adds a subscription; LW_STATUS_STATE after run began. Everything is checked here. */
LW_API LW_MUST_USE enum lw_status
lw_dispatcher_subscribe(struct lw_dispatcher *dispatcher,
                        const struct lw_subscription_options *options,
                        struct lw_error *ret_error);

/* A level or sublevel of a priority family; names are lower-cased. */
struct lw_level {
    const char *name;
    int32_t value;
};

struct lw_family_options {
    size_t size;
    const char *prefix; /* topics are prefix_level or prefix_level_sublevel */
    const struct lw_level *levels;
    size_t level_count;
    const struct lw_level
        *sublevels; /* may be none; values >= 0, below the smallest level gap */
    size_t sublevel_count;
    const char
        *retry_sublevel; /* its topic is the level's retry topic; or retry.topic, or none */
};

LW_API void lw_family_options_init(struct lw_family_options *options);
/* Subscribes to all topics of a family, all or nothing; `common` applies to each. */
LW_API LW_MUST_USE enum lw_status
lw_dispatcher_subscribe_family(struct lw_dispatcher *dispatcher,
                               const struct lw_family_options *family,
                               const struct lw_subscription_options *common,
                               struct lw_error *ret_error);
/*
 * Fills the dispatcher from a configuration file. `bind` gives C functions to handlers that the
 * file names with `function: NAME`; may be NULL.
 */
struct lw_binding {
    const char *name;
    lw_handler_fn handler;
    lw_handler_async_fn handler_async;
    void *user;
    lw_handler_batch_fn handler_batch;
    lw_handler_batch_async_fn handler_batch_async;
};
LW_API LW_MUST_USE enum lw_status
lw_dispatcher_load(struct lw_dispatcher *dispatcher, const char *path,
                   const struct lw_binding *bindings, size_t binding_count,
                   struct lw_error *ret_error);

/*
 * Runs until closed and drained, or until a fatal error. Blocks. LW_STATUS_OK after a complete
 * drain, LW_STATUS_UNFINISHED when the drain deadline passed, LW_STATUS_STOPPED by policy.
 */
LW_API LW_MUST_USE enum lw_status
lw_dispatcher_run(struct lw_dispatcher *dispatcher, struct lw_error *ret_error);
/* For a loop of your own: becomes readable when lw_dispatcher_poll has work. */
LW_API int lw_dispatcher_fd(struct lw_dispatcher *dispatcher);
/* Starts on first use, does what is due, never blocks. LW_STATUS_CLOSED once it has ended. */
LW_API LW_MUST_USE enum lw_status
lw_dispatcher_poll(struct lw_dispatcher *dispatcher, struct lw_error *ret_error);

/* Asks for a drain and returns at once; any thread, also inside a handler or a signal hook. */
LW_API void lw_dispatcher_request_close(struct lw_dispatcher *dispatcher);
/* Asks for a stop without draining: unfinished messages are given back. Any thread. */
LW_API void lw_dispatcher_request_abort(struct lw_dispatcher *dispatcher);
/*
 * Asks for a drain and waits for its end; any thread, any number of times. From inside a
 * handler or the loop thread: LW_STATUS_WOULD_DEADLOCK. Before run: the broker keeps all.
 */
LW_API enum lw_status lw_dispatcher_close(struct lw_dispatcher *dispatcher);
/* Waits up to timeout_ms (-1 for ever) for the end; the end's status, or LW_STATUS_TIMEOUT. */
LW_API enum lw_status
lw_dispatcher_wait_closed(struct lw_dispatcher *dispatcher, int64_t timeout_ms);

/* -- For asynchronous handlers: timers and descriptors of the dispatcher's loop --------------- */

struct lw_loop_timer;
struct lw_loop_watch;
typedef void (*lw_loop_timer_fn)(void *user);
typedef void (*lw_loop_watch_fn)(int fd, int events, void *user);
enum { LW_READABLE = 1, LW_WRITABLE = 2 };

/* Runs `fn` once on the loop thread after delay_us. Loop thread only. NULL without memory. */
LW_API struct lw_loop_timer *lw_loop_timer(struct lw_dispatcher *dispatcher, int64_t delay_us,
                                           lw_loop_timer_fn fn, void *user);
LW_API void lw_loop_timer_cancel(struct lw_loop_timer *timer);
/* Calls `fn` on the loop thread whenever `fd` is ready. Loop thread only. */
LW_API struct lw_loop_watch *lw_loop_watch(struct lw_dispatcher *dispatcher, int fd, int events,
                                           lw_loop_watch_fn fn, void *user);
LW_API void lw_loop_watch_cancel(struct lw_loop_watch *watch);
/* The dispatcher that runs this delivery. */
LW_API struct lw_dispatcher *lw_delivery_dispatcher(const struct lw_delivery *delivery);

/* -- Processes of the program itself ----------------------------------------------------------- */

/*
 * Forks a small process from the program as it is now, from which LW_ENGINE_PROCESSES forks its
 * workers for a `handler` of the program; without it only plug-ins run there. To be called as the
 * first thing in main: with a second thread it is refused (LW_STATUS_STATE, E0633). A handler and
 * what `user` points to are in a worker what they were at this call: globals and functions of the
 * program and of the libraries that it is linked to, not what main made or changed later; each
 * worker changes a copy of its own, and nothing that the program does at its end (atexit) is done
 * there. The process ends with the program. Again is fine and does nothing; after a fork of one's
 * own it is to be called anew.
 */
LW_API LW_MUST_USE enum lw_status lw_processes_init(struct lw_error *ret_error);

/* -- Memory ------------------------------------------------------------------------------------ */

struct lw_allocator {
    void *(*alloc)(size_t size, void *user);
    void *(*resize)(void *pointer, size_t size, void *user);
    void (*free)(void *pointer, void *user);
    void *user;
};
/* Replaces malloc for the whole process; only before any other call of the library. */
LW_API void lw_allocator_set(const struct lw_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
