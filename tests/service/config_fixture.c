/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture and a client that knows a handful of properties. Every load checks that a result
 * and errors exclude each other, and every close that nothing leaked, so that all tests of the
 * configuration hold both.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "service/registry.h"

const char *const config_small = "version: 1\n"
                                 "brokers: { main: { url: 'kafka://localhost:9092' } }\n"
                                 "handlers: { hello: { program: [python3, hello.py] } }\n"
                                 "pipelines:\n"
                                 "  hello: { broker: main, handler: hello, consumer: { group: "
                                 "hello }, topics: [greetings] }\n";

static const char *const known_properties[] = {
    "security.protocol",      "sasl.username",     "enable.auto.commit",
    "sasl.password",          "auto.offset.reset", "client.id",
    "statistics.interval.ms", "ssl.key.pem",       NULL
};

/* A few of those that are ours, each but with the value that does no harm. */
static const char *
property_owned(const char *name, const char *value)
{
    if (strcmp(name, "enable.auto.commit") == 0 && strcmp(value, "false") != 0) {
        return "messages are committed when their effects are confirmed, never by a clock";
    }
    return strcmp(name, "group.id") == 0 ? "the group is the pipeline's" : NULL;
}

static bool
property_suggest(const char *name, char *out, size_t size)
{
    size_t distance = 0;
    for (size_t i = 0; known_properties[i]; i++) {
        if (lw_option_is_near(name, known_properties[i], &distance)) {
            lw_text_copy(out, size, known_properties[i]);
            return true;
        }
    }
    return false;
}

static const char *
client_version(void)
{
    return "2.0.2";
}

static const char *
property_check(const char *name, const char *value)
{
    static char said[200];
    for (size_t i = 0; known_properties[i]; i++) {
        if (strcmp(known_properties[i], name) == 0) {
            snprintf(said, sizeof(said), "Invalid value \"%s\" for property \"%s\"", value,
                     name);
            return strcmp(value, "nonsense") == 0 ? said : NULL;
        }
    }
    snprintf(said, sizeof(said), "No such configuration property: \"%s\"", name);
    return said;
}

const struct lw_config_client config_client = { .owned = property_owned,
                                                .check = property_check,
                                                .suggest = property_suggest,
                                                .version = client_version,
                                                .client_name = "librdkafka" };

void
config_open_source(struct config_fixture *fixture, struct lw_config_source source)
{
    fixture->live_before = lw_alloc_live();
    if (!source.clients[LW_CONFIG_KAFKA]) {
        source.clients[LW_CONFIG_KAFKA] = &config_client;
    }
    source.clients[LW_CONFIG_SPOOL] = lw_registry_client(LW_CONFIG_SPOOL);
    source.clients[LW_CONFIG_PULSAR] = lw_registry_client(LW_CONFIG_PULSAR);
    lw_diagnostics_init(&fixture->diagnostics);
    lw_text_init(&fixture->printed);
    fixture->config = lw_config_load(&source, &fixture->diagnostics);
    lw_diagnostics_print(&fixture->diagnostics, false, &fixture->printed);
    assert_false(fixture->diagnostics.is_out_of_memory);
    assert_true((fixture->config == NULL) == lw_diagnostics_has_error(&fixture->diagnostics));
}

void
config_open(struct config_fixture *fixture, const char *text)
{
    struct lw_config_text document = { "bad.yaml", text, strlen(text) };
    config_open_source(fixture,
                       (struct lw_config_source){ .texts = &document, .text_count = 1 });
}

void
config_close(struct config_fixture *fixture)
{
    lw_config_destroy(fixture->config);
    lw_text_deinit(&fixture->printed);
    lw_diagnostics_deinit(&fixture->diagnostics);
    assert_int_equal(lw_alloc_live(), fixture->live_before);
}

void
config_says(const char *text, const char *expected)
{
    struct config_fixture fixture;
    config_open(&fixture, text);
    assert_string_equal(fixture.printed.data ? fixture.printed.data : "", expected);
    config_close(&fixture);
}

void
config_mentions(const char *text, const char *part)
{
    struct config_fixture fixture;
    config_open(&fixture, text);
    const char *printed = fixture.printed.data ? fixture.printed.data : "";
    if (!strstr(printed, part)) {
        fail_msg("not said: %s\nsaid: %s", part, printed);
    }
    config_close(&fixture);
}

void
config_is_fine(const char *text)
{
    config_says(text, "");
}
