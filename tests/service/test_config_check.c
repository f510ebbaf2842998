/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules between values: what is refused, what is warned about, and what stays silent. For each
 * rule there is a configuration that breaks it and one beside it that does not, so that neither
 * the rule nor its silence can go missing.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <string.h>

/* One pipeline "p" on Kafka with these keys behind the required ones (YAML flow, indented). */
static const char *
pipeline(const char *keys)
{
    static char text[4000];
    snprintf(text, sizeof(text),
             "version: 1\n"
             "brokers: { main: { url: 'kafka://localhost:9092' } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p:\n"
             "    broker: main\n"
             "    handler: h\n"
             "    consumer: { group: g }\n"
             "    topics: [a, b]\n"
             "%s",
             keys);
    return text;
}

/* Two pipelines "p" and "q" with these bodies behind broker and handler. */
static const char *
two_pipelines(const char *broker, const char *first, const char *second)
{
    static char text[4000];
    snprintf(text, sizeof(text),
             "version: 1\n"
             "brokers: { main: { url: %s } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p: { broker: main, handler: h, %s }\n"
             "  q: { broker: main, handler: h, %s }\n",
             broker, first, second);
    return text;
}

/* A memory broker that acknowledges each message by itself. */
static const char *const individual = "'memory:', properties: { mode: individual }";

static void
a_retry_topic_with_key_order_is_refused(void **state)
{
    (void)state;
    config_mentions(
        pipeline("    retry: { topic: again }\n"),
        "bad.yaml:10:14: error[E0307]: a retry topic breaks \"ordering: key\": later "
        "messages of the key would overtake the retried one\n"
        "   10 |     retry: { topic: again }\n"
        "      |              ^^^^^\n"
        "help: use \"in_place: true\" to hold the key while it is retried, or "
        "\"allow_overtaking: true\" if you accept it\n"
        "1 error\n");
    config_mentions(pipeline("    ordering: partition\n    retry: { topic: again }\n"),
                    "breaks \"ordering: partition\": later messages of the partition would");
    config_is_fine(pipeline("    ordering: none\n    retry: { topic: again }\n"));
    config_is_fine(pipeline("    retry: { topic: again, allow_overtaking: true }\n"));
}

static void
counting_words_of_the_other_way_are_refused(void **state)
{
    (void)state;
    config_mentions(
        pipeline("    retry: { max_retries: 3 }\n"),
        "error[E0308]: \"max_retries\" counts copies in a retry topic, but there is "
        "none\n"
        "   10 |     retry: { max_retries: 3 }\n"
        "      |              ^^^^^^^^^^^\n"
        "help: write max_attempts (runs in all) for retries in place, or add "
        "retry.topic\n");
    config_mentions(pipeline("    retry: { in_place: true, max_retries: 3 }\n"),
                    "error[E0308]: \"max_retries\" counts copies");
    config_mentions(
        pipeline("    ordering: none\n    retry: { topic: again, max_attempts: 3 }\n"),
        "error[E0308]: \"max_attempts\" counts runs in place, but retries go to a topic\n");
    config_mentions(pipeline("    retry: { tiers: [1s] }\n"),
                    "error[E0308]: \"tiers\" belongs to a retry topic, but there is none\n");
    config_mentions(
        pipeline(
            "    ordering: none\n    retry: { topic: x, in_place_backoff: { max: 1m } }\n"),
        "error[E0308]: \"in_place_backoff\" is for retries in place");
    config_is_fine(pipeline("    ordering: none\n"
                            "    retry: { topic: x, in_place: true, max_attempts: 2, "
                            "max_retries: 3 }\n"));
}

static void
a_conventional_retry_topic_is_named_after_the_source(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(
        &fixture,
        pipeline("    ordering: none\n    retry: { in_place: false, max_retries: 3 }\n"));
    assert_int_equal(fixture.printed.size, 0);
    assert_string_equal(fixture.config->subscriptions[1].options.retry.topic, "b.retry");
    config_close(&fixture);
}

static void
backoff_limits_must_not_contradict(void **state)
{
    (void)state;
    config_mentions(pipeline("    retry: { backoff: { initial: 1m, max: 5s } }\n"),
                    "error[E0310]: the first delay (1m) is longer than the longest (5s)\n");
    config_mentions(pipeline("    ordering: none\n    retry: { topic: x, tiers: [5s, 1s] }\n"),
                    "error[E0310]: tiers must ascend, be longer than 0 and at most 1d, and be "
                    "at most 16\n");
}

static void
a_dead_letter_topic_that_is_the_topic_itself_is_a_loop(void **state)
{
    (void)state;
    config_says(pipeline("    dead_letter: { topic: b }\n"),
                "bad.yaml:10:27: error[E0302]: dead letters of \"b\" go to \"b\", the topic "
                "itself: they would come back for ever\n"
                "   10 |     dead_letter: { topic: b }\n"
                "      |                           ^\n"
                "help: choose a dead-letter topic that no pipeline here reads\n"
                "1 error\n");
}

static void
a_loop_through_another_pipeline_is_found(void **state)
{
    (void)state;
    config_mentions(
        two_pipelines("'memory:'",
                      "consumer: { group: g }, topics: [a], dead_letter: { topic: b }",
                      "consumer: { group: g }, topics: [b], dead_letter: { topic: a }"),
        "error[E0302]: dead letters of \"a\" go to \"b\", which is read here and leads "
        "back: they would go round for ever\n");
}

static void
reading_dead_letters_without_a_loop_is_fine(void **state)
{
    (void)state;
    config_is_fine(two_pipelines(
        "'memory:'", "consumer: { group: g }, topics: [a], dead_letter: { topic: b }",
        "consumer: { group: g }, topics: [b]"));
}

static void
one_group_must_not_read_a_topic_twice(void **state)
{
    (void)state;
    config_says(
        two_pipelines("'memory:'", "consumer: { group: g }, topics: [a]",
                      "consumer: { group: g }, topics: [b, a]"),
        "bad.yaml:6:70: error[E0301]: pipelines \"p\" and \"q\" both read \"a\" in group "
        "\"g\"\n"
        "    5 |   p: { broker: main, handler: h, consumer: { group: g }, topics: [a] }\n"
        "    6 |   q: { broker: main, handler: h, consumer: { group: g }, topics: [b, a] "
        "}\n"
        "      |                                                                      ^\n"
        "help: a group gives each message to one reader: give one of them a group of its "
        "own, or put the topic into one pipeline\n"
        "1 error\n");
    config_is_fine(two_pipelines("'memory:'", "consumer: { group: g }, topics: [a]",
                                 "consumer: { group: other }, topics: [a]"));
}

static void
a_topic_that_is_listed_twice_is_refused(void **state)
{
    (void)state;
    config_mentions(two_pipelines("'memory:'", "consumer: { group: g }, topics: [a, a]",
                                  "consumer: { group: g }, topics: [b]"),
                    "error[E0301]: the topic \"a\" is there twice\n");
}

static void
one_group_has_one_set_of_client_properties(void **state)
{
    (void)state;
    const char *first =
        "consumer: { group: g, properties: { auto.offset.reset: earliest } }, topics: [a]";
    config_mentions(
        two_pipelines("'kafka://h:1'", first, "consumer: { group: g }, topics: [b]"),
        "error[E0306]: pipelines \"p\" and \"q\" share group \"g\", but their "
        "consumer.properties differ\n");
    config_mentions(
        two_pipelines("'kafka://h:1'", first,
                      "consumer: { group: g, properties: { auto.offset.reset: latest "
                      "} }, topics: [b]"),
        "error[E0306]");
    config_is_fine(
        two_pipelines("'kafka://h:1'", first,
                      "consumer: { group: g, properties: { auto.offset.reset: earliest "
                      "} }, topics: [b]"));
}

static void
a_retry_topic_that_nobody_reads_follows_the_warning_mode(void **state)
{
    (void)state;
    char text[4200];
    static const char body[] = "consumer: { group: g }, topics: [a], ordering: none, retry: { "
                               "topic: again%s }";
    char first[300];
    snprintf(first, sizeof(first), body, "");
    const char *source = two_pipelines(individual, first,
                                       "consumer: { group: g }, topics: [b]");
    config_mentions(source, "warning[W0301]: nobody here reads the retry topic \"again\"\n");
    snprintf(text, sizeof(text), "%sservice: { retry_warnings: error }\n", source);
    config_mentions(text, "error[E0309]: nobody here reads the retry topic \"again\"\n");
    snprintf(text, sizeof(text), "%sservice: { retry_warnings: silent }\n", source);
    config_is_fine(text);
    config_is_fine(two_pipelines(individual, first, "consumer: { group: g }, topics: [again]"));
    snprintf(first, sizeof(first), body, ", external: true");
    config_is_fine(two_pipelines(individual, first, "consumer: { group: g }, topics: [b]"));
}

static void
tiers_of_kafka_need_no_reader(void **state)
{
    (void)state;
    config_is_fine(pipeline("    ordering: none\n    retry: { topic: again }\n"));
}

static void
switched_off_dead_letters_are_warned_about(void **state)
{
    (void)state;
    config_says(pipeline("    dead_letter: none\n"),
                "bad.yaml:10:5: warning[W0303]: without dead letters, messages that cannot be "
                "handled are logged and dropped\n"
                "   10 |     dead_letter: none\n"
                "      |     ^^^^^^^^^^^^^^^^^\n"
                "help: on_exhausted: hold or stop keeps them\n"
                "1 warning\n");
    config_is_fine(pipeline("    dead_letter: none\n    on_exhausted: hold\n"));
    config_mentions(pipeline("    on_exhausted: hold\n"),
                    "warning[W0308]: \"on_exhausted\" has no effect: there is a dead-letter "
                    "topic\n");
}

static void
redeliver_on_kafka_is_noted(void **state)
{
    (void)state;
    config_mentions(
        pipeline("    on_error: redeliver\n"),
        "note[W0307]: this broker cannot take one message back: on_error: redeliver runs it "
        "again in place\n");
    config_is_fine(two_pipelines(individual,
                                 "consumer: { group: g }, topics: [a], on_error: redeliver",
                                 "consumer: { group: g }, topics: [b]"));
}

/* The pipeline above with a handler and a service of its own. */
static void
with_handler(const char *service, const char *handler, const char *said)
{
    char text[2000];
    snprintf(
        text, sizeof(text),
        "version: 1\n"
        "service: { %s }\n"
        "brokers: { main: { url: 'memory:' } }\n"
        "handlers: { h: { %s } }\n"
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: [a] } "
        "}\n",
        service, handler);
    if (said[0] == '\0') {
        config_is_fine(text);
    } else {
        config_mentions(text, said);
    }
}

static void
a_timeout_longer_than_the_drain_is_noted_if_one_was_chosen(void **state)
{
    (void)state;
    with_handler("", "builtin: echo", "");
    with_handler(
        "", "builtin: echo, timeout: 1m",
        "note[W0306]: an attempt of \"h\" may take 1m, longer than the drain of 25s: such "
        "attempts are given back at a stop\n");
    with_handler("drain_timeout: 10s", "builtin: echo",
                 "note[W0306]: an attempt of \"h\" may take 30s, longer than the drain of 10s");
    with_handler("drain_timeout: 0", "builtin: echo", "");
}

static void
workers_far_from_the_slots_are_noted(void **state)
{
    (void)state;
    with_handler("", "program: [x], workers: 4, window: 4", "");
    with_handler(
        "concurrency: 20", "program: [x], workers: 2, window: 4",
        "note[W0304]: 2 workers x window 4 = 8 messages at once, but there are 20 slots: "
        "the others stay empty\n");
    with_handler(
        "", "program: [x], workers: 40",
        "note[W0304]: 40 workers x window 1 = 40 messages at once, but there are only 16 "
        "slots\n");
}

static void
large_windows_with_priorities_are_noted(void **state)
{
    (void)state;
    config_mentions(
        pipeline(
            "    profile: throughput\n"
            "  q: { broker: main, handler: h, consumer: { group: g }, topics: [ { name: c, "
            "priority: 1 } ] }\n"),
        "note[W0305]: large windows make priority coarse: up to 1000 messages of each topic "
        "are "
        "held here\n");
    config_is_fine(pipeline("    profile: throughput\n"));
}

static void
entries_that_nobody_uses_are_noted(void **state)
{
    (void)state;
    config_mentions(
        "version: 1\n"
        "brokers: { main: { url: 'memory:' }, spare: { url: 'memory:' } }\n"
        "handlers: { h: { builtin: echo }, idle: { builtin: noop } }\n"
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: "
        "[a] } }\n",
        "note[W0309]: no pipeline uses the broker \"spare\"\n");
}

static void
replies_that_are_read_as_messages_are_warned_about(void **state)
{
    (void)state;
    config_mentions(two_pipelines("'memory:'",
                                  "consumer: { group: g }, topics: [a], reply: { topic: b }",
                                  "consumer: { group: g }, topics: [b]"),
                    "warning[W0310]: replies go to \"b\", which pipeline \"q\" reads as "
                    "messages\n");
    config_mentions(pipeline("    reply: { key: none }\n"),
                    "warning[W0308]: \"key\" has no effect: there is no reply.topic\n");
}

static void
handlers_are_one_thing_on_a_fitting_engine(void **state)
{
    (void)state;
    with_handler("", "timeout: 1s",
                 "error[E0107]: handlers.h needs \"program\", \"plugin\", \"http\", "
                 "\"builtin\" or \"function\"\n");
    with_handler("", "builtin: echo, program: [x]",
                 "error[E0311]: handlers.h has both \"program\" and \"builtin\"\n");
    with_handler("", "program: [x], engine: threads",
                 "error[E0311]: engine \"threads\" cannot run handlers.h\n");
    with_handler("", "function: f, engine: programs",
                 "help: a function that returns its verdict runs on engine loop or threads\n");
    with_handler("", "builtin: 'sleep:5ms', engine: loop",
                 "help: this one blocks and needs engine: threads");
    with_handler("", "builtin: 'sleep:5'",
                 "error[E0106]: \"sleep:5\" is not a built-in handler");
    with_handler("", "builtin: 'fail-n:3'", "");
    with_handler("", "builtin: echo, workers: 3",
                 "warning[W0308]: \"workers\" has no effect: handlers.h is not a program\n");
}

static void
programs_are_looked_for_only_when_asked(void **state)
{
    (void)state;
    struct config_fixture fixture;
    const char *sets[] = { "handlers.hello.program=[no-such-program-here]" };
    struct lw_config_text text = { "small.yaml", config_small, strlen(config_small) };
    struct lw_config_source source = {
        .texts = &text, .text_count = 1, .sets = sets, .set_count = 1
    };
    config_open_source(&fixture, source);
    assert_non_null(fixture.config);
    config_close(&fixture);
    source.resolve_programs = true;
    config_open_source(&fixture, source);
    assert_string_equal(fixture.printed.data,
                        "--set handlers.hello.program: error[E0207]: there is no program "
                        "\"no-such-program-here\"\nhelp: it is not in PATH\n1 error\n");
    config_close(&fixture);
}

/* A folder and a file without the right to be executed are there, and no program. */
static void
what_is_no_program_is_told_as_what_it_is(void **state)
{
    static const char *const cases[][2] = {
        { "handlers.hello.program=[/tmp]", "\"/tmp\" is a folder\n" },
        { "handlers.hello.program=[/etc/passwd]", "\"/etc/passwd\" is not executable\n" },
        { "handlers.hello.program=[/tmp/none-here]",
          "there is no program \"/tmp/none-here\"\n" },
    };
    struct lw_config_text text = { "small.yaml", config_small, strlen(config_small) };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config_fixture fixture;
        const char *sets[] = { cases[i][0] };
        struct lw_config_source source = { .texts = &text,
                                           .text_count = 1,
                                           .sets = sets,
                                           .set_count = 1,
                                           .resolve_programs = true };
        config_open_source(&fixture, source);
        assert_null(fixture.config);
        assert_non_null(strstr(fixture.printed.data, cases[i][1]));
        assert_non_null(strstr(fixture.printed.data, "\nhelp: "));
        config_close(&fixture);
    }
}

/* A broker with one property. */
static void
with_property(const char *property, const char *said)
{
    char text[2000];
    snprintf(text, sizeof(text),
             "brokers: { main: { url: 'kafka://h:1', properties: { %s } } }\n", property);
    config_mentions(text, said);
}

static void
properties_that_are_ours_are_refused_with_the_reason(void **state)
{
    (void)state;
    with_property(
        "enable.auto.commit: true",
        "error[E0411]: the property \"enable.auto.commit\" is set by Laneway\n"
        "    1 | brokers: { main: { url: 'kafka://h:1', properties: { "
        "enable.auto.commit: true } } }\n"
        "      |                                                      "
        "^^^^^^^^^^^^^^^^^^\n"
        "help: leave it out: messages are committed when their effects are confirmed, "
        "never by a clock\n");
    with_property("group.id: x", "help: leave it out: the group is the pipeline's\n");
    char text[1000];
    snprintf(text, sizeof(text), "%s", config_small);
    char *end = strstr(text, "9092' }") + strlen("9092'");
    char rest[1000];
    snprintf(rest, sizeof(rest), "%s", end);
    snprintf(end, sizeof(text) - (size_t)(end - text),
             ", properties: { enable.auto.commit: false }%s", rest);
    config_is_fine(text);
}

static void
properties_are_checked_by_the_client(void **state)
{
    (void)state;
    with_property("security.protocol: nonsense",
                  "error[E0412]: \"nonsense\" is no value for the client's property "
                  "security.protocol\n");
    with_property(
        "zzz.unknown: 1",
        "error[E0410]: the Kafka client does not know the property \"zzz.unknown\"\n");
}

static void
the_memory_broker_has_properties_of_its_own(void **state)
{
    (void)state;
    config_mentions("brokers: { main: { url: 'memory:', properties: { client.id: x } } }\n",
                    "error[E0413]: the memory broker has no property \"client.id\"\n");
    config_mentions("brokers: { main: { url: 'memory:a', properties: { mode: x } } }\n",
                    "error[E0412]: \"x\" is no value for the memory broker's property mode\n");
    config_mentions("brokers: { main: { url: 'memory:', properties: { partitions: 0 } } }\n",
                    "error[E0412]");
    config_mentions(two_pipelines("'memory:'",
                                  "consumer: { group: g, properties: { a: b } }, topics: [a]",
                                  "consumer: { group: q }, topics: [b]"),
                    "error[E0413]: the memory broker has no properties for consumers\n");
    config_mentions("brokers: { main: { url: 'memory:a b' } }\n", "error[E0122]");
}

static void
a_broker_that_acknowledges_singly_has_other_defaults(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, two_pipelines(individual, "consumer: { group: g }, topics: [a]",
                                        "consumer: { group: g }, topics: [b], retry: { "
                                        "max_retries: 3, external: true }"));
    assert_int_equal(fixture.printed.size, 0);
    const struct lw_config_subscription *items = fixture.config->subscriptions;
    assert_int_equal(lw_config_ordering(&items[0]), LW_ORDERING_NONE);
    assert_false(lw_config_is_in_place(&items[0]));
    assert_string_equal(items[0].dead_letter_topic, "a-g-DLQ");
    assert_string_equal(items[1].options.retry.topic, "b-g-RETRY");
    config_close(&fixture);
}

static void
addresses_of_brokers_are_understood(void **state)
{
    (void)state;
    struct config_fixture fixture;
    const char *sets[] = { "brokers.main.url=kafka://a:1, ,b:2," };
    struct lw_config_text text = { "small.yaml", config_small, strlen(config_small) };
    config_open_source(&fixture,
                       (struct lw_config_source){
                           .texts = &text, .text_count = 1, .sets = sets, .set_count = 1 });
    assert_string_equal(fixture.config->brokers[0].servers, "a:1,b:2");
    config_close(&fixture);
    config_mentions("brokers: { main: { url: 'kafka:// , ' } }\n",
                    "error[E0122]: \"kafka:// , \" "
                    "is not a broker's address\n");
    config_mentions("brokers: { main: { url: 'localhost:9092' } }\n", "E0122");
}

static void
names_that_no_broker_would_take_are_refused(void **state)
{
    (void)state;
    config_mentions(pipeline("    dead_letter: { topic: 'a b' }\n"),
                    "error[E0117]: \"a b\" is not a topic name\n");
    config_mentions(pipeline("    reply: { topic: 'x/y' }\n"), "error[E0117]");
    config_mentions("service: { name: a/b }\n",
                    "error[E0117]: \"a/b\" is not a name for a service\n");
    config_mentions("brokers: { 'a.b': { url: 'memory:' } }\n",
                    "error[E0117]: \"a.b\" is not a name\n");
}

static void
a_dead_letter_name_that_gets_too_long_is_refused_at_once(void **state)
{
    (void)state;
    char topic[250];
    char keys[600];
    memset(topic, 't', 249);
    topic[249] = '\0';
    snprintf(keys, sizeof(keys), "consumer: { group: g }, topics: [%s]", topic);
    config_mentions(
        two_pipelines("'memory:'", keys, "consumer: { group: g }, topics: [y]"),
        "error[E0117]: \"tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt");
}

/* A handler with this batch, beside what it is, and a pipeline with these keys. */
static const char *
batch(const char *handler, const char *keys)
{
    static char text[4000];
    snprintf(text, sizeof(text),
             "version: 1\n"
             "brokers: { main: { url: 'kafka://localhost:9092' } }\n"
             "handlers: { h: { %s } }\n"
             "pipelines:\n"
             "  p: { broker: main, handler: h, consumer: { group: g }, topics: [a]%s }\n",
             handler, keys);
    return text;
}

static void
batches_fit_the_handler_the_order_and_the_limits(void **state)
{
    (void)state;
    config_is_fine(batch("builtin: echo, batch: { size: 100, keys: one, verdict: one }", ""));
    config_mentions(
        batch("program: [cat], protocol: once, batch: { size: 2 }", ""),
        "error[E0320]: handlers.h takes one message at a time: protocol once is one "
        "process for each message");
    config_is_fine(batch("program: [cat], batch: { size: 2 }", ""));
    config_is_fine(batch("http: 'http://h/', batch: { size: 2 }", ""));
    config_mentions(batch("plugin: h.so, engine: processes, processes: { lanes: pinned }, "
                          "batch: { size: 2 }",
                          ""),
                    "error[E0320]: the lanes of handlers.h are pinned");
    config_is_fine(batch("plugin: h.so, engine: processes, processes: { lanes: pinned }, "
                         "batch: { size: 2, keys: one }",
                         ""));
    config_mentions(batch("builtin: 'io:5ms', engine: loop, batch: { size: 2 }", ""),
                    "error[E0320]: handlers.h takes one message at a time");
    config_mentions(
        batch("builtin: echo, batch: { size: 11 }", ", max_in_flight: 10"),
        "error[E0320]: a batch of 11 can never fill: \"a\" has at most 10 messages");
    config_is_fine(batch("builtin: echo, batch: { size: 10 }", ", max_in_flight: 10"));
    config_mentions(batch("builtin: echo, batch: { size: 5, keys: one }", ", ordering: none"),
                    "error[E0320]: \"a\" has no order, so its batches cannot be of one key");
    config_mentions(
        batch("builtin: echo, batch: { size: 5 }", ", reply: { topic: r, on_oversize: retry }"),
        "error[E0320]: a message of \"a\" whose reply is too large would run again");
    config_is_fine(batch("builtin: echo, batch: { size: 5 }",
                         ", ordering: none, reply: { topic: r, on_oversize: retry }"));
    config_is_fine(
        batch("builtin: echo, batch: { size: 5 }", ", reply: { topic: r, on_oversize: dead }"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retry_topic_with_key_order_is_refused),
        cmocka_unit_test(counting_words_of_the_other_way_are_refused),
        cmocka_unit_test(a_conventional_retry_topic_is_named_after_the_source),
        cmocka_unit_test(backoff_limits_must_not_contradict),
        cmocka_unit_test(a_dead_letter_topic_that_is_the_topic_itself_is_a_loop),
        cmocka_unit_test(a_loop_through_another_pipeline_is_found),
        cmocka_unit_test(reading_dead_letters_without_a_loop_is_fine),
        cmocka_unit_test(one_group_must_not_read_a_topic_twice),
        cmocka_unit_test(a_topic_that_is_listed_twice_is_refused),
        cmocka_unit_test(one_group_has_one_set_of_client_properties),
        cmocka_unit_test(a_retry_topic_that_nobody_reads_follows_the_warning_mode),
        cmocka_unit_test(tiers_of_kafka_need_no_reader),
        cmocka_unit_test(switched_off_dead_letters_are_warned_about),
        cmocka_unit_test(redeliver_on_kafka_is_noted),
        cmocka_unit_test(a_timeout_longer_than_the_drain_is_noted_if_one_was_chosen),
        cmocka_unit_test(workers_far_from_the_slots_are_noted),
        cmocka_unit_test(large_windows_with_priorities_are_noted),
        cmocka_unit_test(entries_that_nobody_uses_are_noted),
        cmocka_unit_test(replies_that_are_read_as_messages_are_warned_about),
        cmocka_unit_test(handlers_are_one_thing_on_a_fitting_engine),
        cmocka_unit_test(programs_are_looked_for_only_when_asked),
        cmocka_unit_test(what_is_no_program_is_told_as_what_it_is),
        cmocka_unit_test(properties_that_are_ours_are_refused_with_the_reason),
        cmocka_unit_test(properties_are_checked_by_the_client),
        cmocka_unit_test(the_memory_broker_has_properties_of_its_own),
        cmocka_unit_test(a_broker_that_acknowledges_singly_has_other_defaults),
        cmocka_unit_test(addresses_of_brokers_are_understood),
        cmocka_unit_test(names_that_no_broker_would_take_are_refused),
        cmocka_unit_test(a_dead_letter_name_that_gets_too_long_is_refused_at_once),
        cmocka_unit_test(batches_fit_the_handler_the_order_and_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
