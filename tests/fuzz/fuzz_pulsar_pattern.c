/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a pattern of topics, and each further line as a topic that it may have. Holds that
 * compiling is bounded in time and memory, that an answer is the same twice, and that the broker's
 * own topics never belong.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/pulsar/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_topic(const struct lw_pulsar_pattern *pattern, const char *topic)
{
    struct lw_error error;
    struct lw_pulsar_name name;
    bool has = lw_pulsar_pattern_has(pattern, topic);
    lw_assert(has == lw_pulsar_pattern_has(pattern, topic));
    if (has) {
        lw_assert(lw_pulsar_name_parse(topic, &name, &error) == LW_STATUS_OK);
        lw_assert(!lw_pulsar_name_is_system(&name));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lw_error error;
    struct lw_pulsar_pattern pattern;
    char *rest = NULL;
    char *text = malloc(size + 1);
    if (size > 0) {
        memcpy(text, bytes, size);
    }
    text[size] = '\0';
    char *line = strtok_r(text, "\n", &rest);
    if (line &&
        lw_pulsar_pattern_init(&pattern, line, LW_PULSAR_REGEX_ALL, &error) == LW_STATUS_OK) {
        while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
            check_topic(&pattern, line);
        }
        lw_pulsar_pattern_deinit(&pattern);
    }
    free(text);
    return 0;
}
