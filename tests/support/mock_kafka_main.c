/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdkafka's mock cluster as a process of its own, so that a test or bench measures a client
 * without the broker in the same process. Prints "READY host:port" and serves until stdin ends,
 * which also happens when the test that started it dies.
 *
 * Commands come on stdin, one a line, and each is answered by one line, "ok" or "failed: why".
 * The mock keeps 5 MiB and 100,000 batches of a partition and drops the oldest silently: a fill
 * that did not fit whole is therefore a failure here. Joining a group takes 3 s with 2.0.2.
 */
#include <getopt.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 8, VALUE_BYTES_MAX = 1 << 20, ERRORS_MAX = 10000, WAIT_MS = 30000 };

struct mock {
    rd_kafka_t *owner;
    rd_kafka_mock_cluster_t *cluster;
    const char *compression;
    long brokers;
};

struct fill {
    const char *topic;
    long count;
    long value_bytes;
    long keys; /* 0: no keys, partitions in turn */
    int32_t partitions;
    long refused;
};

static const char usage[] =
    "usage: mock_kafka [--brokers N] [--topics NAME:PARTITIONS,...]\n"
    "                  [--compression none|lz4|...] [--fill NAME:COUNT:SIZE:KEYS]... [--rtt "
    "MS]\n"
    "commands on stdin:\n"
    "  topic NAME PARTITIONS            fill NAME COUNT SIZE KEYS\n"
    "  error API_KEY CODE COUNT         (the next COUNT such requests fail; -195 disconnects)\n"
    "  clear API_KEY                    rtt MS\n"
    "  down BROKER | up BROKER          (-1: all)\n"
    "  leader TOPIC PARTITION BROKER    (-1: none)\n"
    "  coordinator group|transaction ID BROKER\n";

/* Splits in place; more than WORDS_MAX words are as wrong as too few. */
static int
split(char *text, const char *between, char *ret_words[WORDS_MAX])
{
    char *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(text, between, &rest); word != NULL;
         word = strtok_r(NULL, between, &rest)) {
        if (count == WORDS_MAX) {
            return 0;
        }
        ret_words[count++] = word;
    }
    return count;
}

static bool
parse_number(const char *text, long least, long most, long *ret_number)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < least || number > most) {
        return false;
    }
    *ret_number = number;
    return true;
}

static void
on_receipt(rd_kafka_t *producer, const rd_kafka_message_t *message, void *user)
{
    struct fill *fill = user;
    (void)producer;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fill->refused++;
    }
}

static rd_kafka_t *
create_client(const struct mock *mock, struct fill *fill)
{
    const char *settings[][2] = {
        { "bootstrap.servers",
          mock->cluster ? rd_kafka_mock_cluster_bootstraps(mock->cluster) : "" },
        { "log_level", "3" },
        { "linger.ms", "5" },
        { "batch.num.messages", "10000" },
        { "queue.buffering.max.messages", "200000" },
        { "enable.idempotence", "true" }, /* keeps the order when a request is repeated */
        { "partitioner", "murmur2_random" },
        { "compression.type", mock->compression },
    };
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof(why)) !=
            RD_KAFKA_CONF_OK) {
            fprintf(stderr, "mock_kafka: %s\n", why);
            rd_kafka_conf_destroy(conf);
            return NULL;
        }
    }
    rd_kafka_conf_set_dr_msg_cb(conf, on_receipt);
    rd_kafka_conf_set_opaque(conf, fill);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    if (client == NULL) {
        fprintf(stderr, "mock_kafka: %s\n", why);
        rd_kafka_conf_destroy(conf);
    }
    return client;
}

/* The value begins with the message's number in 12 digits, as far as its size allows. */
static void
write_value(char *value, long value_bytes, long number)
{
    char digits[24];
    int count = snprintf(digits, sizeof(digits), "%012ld", number);
    memcpy(value, digits, (size_t)(value_bytes < count ? value_bytes : count));
}

static bool
produce_one(rd_kafka_t *producer, const struct fill *fill, char *value, long number)
{
    char text[24];
    const char *key = NULL;
    int key_bytes = 0;
    int32_t partition = (int32_t)(number % fill->partitions);
    if (fill->keys > 0) {
        key_bytes = snprintf(text, sizeof(text), "key-%ld", number % fill->keys);
        key = text;
        partition = RD_KAFKA_PARTITION_UA;
    }
    write_value(value, fill->value_bytes, number);
    for (;;) {
        rd_kafka_resp_err_t error = rd_kafka_producev(
            producer, RD_KAFKA_V_TOPIC(fill->topic), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_KEY(key, (size_t)key_bytes),
            RD_KAFKA_V_VALUE(value, (size_t)fill->value_bytes),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            return error == RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        rd_kafka_poll(producer, 50);
    }
}

/* Returns the number of messages that the topic holds, or -1 if it has lost some. */
static long
count_kept(rd_kafka_t *client, const struct fill *fill)
{
    long kept = 0;
    for (int32_t i = 0; i < fill->partitions; i++) {
        int64_t low = 0;
        int64_t high = 0;
        if (rd_kafka_query_watermark_offsets(client, fill->topic, i, &low, &high, WAIT_MS) !=
                RD_KAFKA_RESP_ERR_NO_ERROR ||
            low != 0) {
            return -1;
        }
        kept += (long)high;
    }
    return kept;
}

static bool
find_partitions(rd_kafka_t *client, struct fill *fill)
{
    const struct rd_kafka_metadata *found = NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, fill->topic, NULL);
    if (topic != NULL &&
        rd_kafka_metadata(client, 0, topic, &found, WAIT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        fill->partitions = found->topics[0].partition_cnt;
        rd_kafka_metadata_destroy(found);
    }
    if (topic != NULL) {
        rd_kafka_topic_destroy(topic);
    }
    return fill->partitions > 0;
}

static const char *
fill_with(rd_kafka_t *producer, struct fill *fill)
{
    static char value[VALUE_BYTES_MAX];
    if (!find_partitions(producer, fill)) {
        return "no such topic";
    }
    long before = count_kept(producer, fill);
    memset(value, 'x', sizeof(value));
    for (long i = 0; i < fill->count; i++) {
        if (!produce_one(producer, fill, value, i)) {
            return "a message was not taken";
        }
        if (i % 1000 == 0) {
            rd_kafka_poll(producer, 0);
        }
    }
    if (rd_kafka_flush(producer, WAIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR || fill->refused > 0) {
        return "a message was refused";
    }
    if (before < 0 || count_kept(producer, fill) != before + fill->count) {
        return "a partition keeps 5 MiB: take more partitions, fewer messages or --compression";
    }
    return NULL;
}

static const char *
fill_topic(struct mock *mock, char *words[], int count)
{
    struct fill fill = { .topic = words[0] };
    if (count != 4 || !parse_number(words[1], 1, INT32_MAX, &fill.count) ||
        !parse_number(words[2], 0, VALUE_BYTES_MAX - 1024, &fill.value_bytes) ||
        !parse_number(words[3], 0, INT32_MAX, &fill.keys)) {
        return "fill needs NAME COUNT SIZE KEYS";
    }
    rd_kafka_t *producer = create_client(mock, &fill);
    if (producer == NULL) {
        return "no producer";
    }
    const char *failure = fill_with(producer, &fill);
    rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_destroy(producer);
    return failure;
}

static const char *
create_topic(struct mock *mock, char *words[], int count)
{
    long partitions = 0;
    if (count != 2 || !parse_number(words[1], 1, 10000, &partitions)) {
        return "a topic needs NAME and PARTITIONS";
    }
    return rd_kafka_mock_topic_create(mock->cluster, words[0], (int)partitions, 1)
               ? "the topic was not created"
               : NULL;
}

static const char *
push_errors(struct mock *mock, char *words[], int count)
{
    static rd_kafka_resp_err_t errors[ERRORS_MAX];
    long api_key = 0;
    long code = 0;
    long times = 0;
    if (count != 3 || !parse_number(words[0], 0, INT16_MAX, &api_key) ||
        !parse_number(words[1], -1000, INT16_MAX, &code) ||
        !parse_number(words[2], 1, ERRORS_MAX, &times)) {
        return "error needs API_KEY CODE COUNT";
    }
    for (long i = 0; i < times; i++) {
        errors[i] = (rd_kafka_resp_err_t)code;
    }
    rd_kafka_mock_push_request_errors_array(mock->cluster, (int16_t)api_key, (size_t)times,
                                            errors);
    return NULL;
}

static const char *
clear_errors(struct mock *mock, char *words[], int count)
{
    long api_key = 0;
    if (count != 1 || !parse_number(words[0], 0, INT16_MAX, &api_key)) {
        return "clear needs API_KEY";
    }
    rd_kafka_mock_clear_request_errors(mock->cluster, (int16_t)api_key);
    return NULL;
}

static const char *
set_rtt(struct mock *mock, char *words[], int count)
{
    long rtt_ms = 0;
    if (count != 1 || !parse_number(words[0], 0, WAIT_MS, &rtt_ms)) {
        return "rtt needs milliseconds";
    }
    return rd_kafka_mock_broker_set_rtt(mock->cluster, -1, (int)rtt_ms) ? "rtt was not set"
                                                                        : NULL;
}

static const char *
set_broker(struct mock *mock, char *words[], int count, bool is_up)
{
    long broker = 0;
    if (count != 1 || !parse_number(words[0], -1, mock->brokers, &broker)) {
        return "a broker's number is needed";
    }
    rd_kafka_resp_err_t error = is_up ? rd_kafka_mock_broker_set_up(mock->cluster,
                                                                    (int32_t)broker)
                                      : rd_kafka_mock_broker_set_down(mock->cluster,
                                                                      (int32_t)broker);
    return error ? rd_kafka_err2str(error) : NULL;
}

static const char *
bring_up(struct mock *mock, char *words[], int count)
{
    return set_broker(mock, words, count, true);
}

static const char *
take_down(struct mock *mock, char *words[], int count)
{
    return set_broker(mock, words, count, false);
}

static const char *
set_leader(struct mock *mock, char *words[], int count)
{
    long partition = 0;
    long broker = 0;
    if (count != 3 || !parse_number(words[1], 0, INT32_MAX, &partition) ||
        !parse_number(words[2], -1, mock->brokers, &broker)) {
        return "leader needs TOPIC PARTITION BROKER";
    }
    rd_kafka_resp_err_t error = rd_kafka_mock_partition_set_leader(
        mock->cluster, words[0], (int32_t)partition, (int32_t)broker);
    return error ? rd_kafka_err2str(error) : NULL;
}

static const char *
set_coordinator(struct mock *mock, char *words[], int count)
{
    long broker = 0;
    if (count != 3 || !parse_number(words[2], -1, INT32_MAX, &broker)) {
        return "coordinator needs group|transaction ID BROKER";
    }
    rd_kafka_resp_err_t error = rd_kafka_mock_coordinator_set(mock->cluster, words[0], words[1],
                                                              (int32_t)broker);
    return error ? rd_kafka_err2str(error) : NULL;
}

static const struct command {
    const char *name;
    const char *(*run)(struct mock *mock, char *words[], int count);
} commands[] = {
    { "topic", create_topic }, { "fill", fill_topic },   { "error", push_errors },
    { "clear", clear_errors }, { "rtt", set_rtt },       { "down", take_down },
    { "up", bring_up },        { "leader", set_leader }, { "coordinator", set_coordinator },
};

static const char *
run_command(struct mock *mock, char *line)
{
    char *words[WORDS_MAX] = { NULL };
    int count = split(line, " \t\n", words);
    for (size_t i = 0; count > 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(words[0], commands[i].name) == 0) {
            return commands[i].run(mock, words + 1, count - 1);
        }
    }
    return "unknown command";
}

static void
serve(struct mock *mock)
{
    char line[512];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const char *failure = run_command(mock, line);
        printf("%s%s\n", failure ? "failed: " : "ok", failure ? failure : "");
        fflush(stdout);
    }
}

static const char *
create_topics(struct mock *mock, char *list)
{
    char *rest = NULL;
    for (char *each = strtok_r(list, ",", &rest); each != NULL;
         each = strtok_r(NULL, ",", &rest)) {
        char *words[WORDS_MAX] = { NULL };
        const char *failure = create_topic(mock, words, split(each, ":", words));
        if (failure != NULL) {
            return failure;
        }
    }
    return NULL;
}

static const char *
apply_option(struct mock *mock, int option, char *value)
{
    char *words[WORDS_MAX] = { NULL };
    switch (option) {
    case 't':
        return create_topics(mock, value);
    case 'f':
        return fill_topic(mock, words, split(value, ":", words));
    case 'r':
        words[0] = value;
        return set_rtt(mock, words, 1);
    case 'c':
        mock->compression = value;
        return NULL;
    case 'b':
        return NULL; /* read before the cluster was made */
    default:
        return usage;
    }
}

static int
apply_options(struct mock *mock, int argc, char **argv, const char *only)
{
    static const struct option known[] = {
        { "brokers", required_argument, NULL, 'b' },
        { "topics", required_argument, NULL, 't' },
        { "fill", required_argument, NULL, 'f' },
        { "rtt", required_argument, NULL, 'r' },
        { "compression", required_argument, NULL, 'c' },
        { NULL, 0, NULL, 0 },
    };
    int option = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        const char *failure = NULL;
        if (only == NULL) {
            failure = apply_option(mock, option, optarg);
        } else if (option == '?' ||
                   (option == 'b' && !parse_number(optarg, 1, 16, &mock->brokers))) {
            failure = only;
        }
        if (failure != NULL) {
            fprintf(stderr, "mock_kafka: %s\n", failure);
            return -1;
        }
    }
    return optind == argc ? 0 : -1;
}

int
main(int argc, char **argv)
{
    struct mock mock = { .compression = "none", .brokers = 1 };
    int code = EXIT_FAILURE;
    if (apply_options(&mock, argc, argv, usage) != 0) {
        return 64;
    }
    mock.owner = create_client(&mock, NULL);
    if (mock.owner == NULL) {
        return code;
    }
    mock.cluster = rd_kafka_mock_cluster_new(mock.owner, (int)mock.brokers);
    if (mock.cluster != NULL && apply_options(&mock, argc, argv, NULL) == 0) {
        printf("READY %s\n", rd_kafka_mock_cluster_bootstraps(mock.cluster));
        fflush(stdout);
        serve(&mock);
        code = EXIT_SUCCESS;
    }
    if (mock.cluster != NULL) {
        rd_kafka_mock_cluster_destroy(mock.cluster);
    }
    rd_kafka_destroy(mock.owner);
    return code;
}
