/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topic names from templates. Every function measures first and writes only what fits whole, so
 * a cut name can never name somebody else's topic. What is conventional is the broker's business
 * (`default_topic`), not this file's. Pure.
 */
#include "policy/topic_names.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { KAFKA_NAME_MAX = 249 };

static const char PLACE[] = "{topic}";

/* The length of the text that `pattern` gives; written into `out` when it is not NULL. */
static size_t
expand(const char *pattern, const char *topic, char *out)
{
    size_t length = 0;
    size_t topic_length = strlen(topic);
    while (*pattern != '\0') {
        bool is_place = strncmp(pattern, PLACE, sizeof(PLACE) - 1) == 0;
        const char *part = is_place ? topic : pattern;
        size_t part_length = is_place ? topic_length : 1;
        if (out != NULL) {
            memcpy(out + length, part, part_length);
        }
        length += part_length;
        pattern += is_place ? sizeof(PLACE) - 1 : 1;
    }
    return length;
}

bool
lw_topic_expand(const char *pattern, const char *topic, char *out, size_t size)
{
    if (pattern == NULL || topic == NULL) {
        return false;
    }
    size_t length = expand(pattern, topic, NULL);
    if (length == 0 || length >= size) {
        return false;
    }
    expand(pattern, topic, out);
    out[length] = '\0';
    return true;
}

bool
lw_topic_tier(const char *retry_topic, int64_t delay_ms, char *out, size_t size)
{
    char delay[64];
    lw_text_from_duration_ms(delay_ms, delay, sizeof(delay));
    size_t topic_length = strlen(retry_topic);
    size_t delay_length = strlen(delay);
    if (topic_length == 0 || delay_ms < 0 || topic_length + 1 + delay_length >= size) {
        return false;
    }
    (void)snprintf(out, size, "%s.%s", retry_topic, delay);
    return true;
}

static bool
is_kafka_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-';
}

bool
lw_topic_is_valid_kafka(const char *topic)
{
    size_t length = 0;
    for (; topic[length] != '\0'; length++) {
        if (length >= KAFKA_NAME_MAX || !is_kafka_char(topic[length])) {
            return false;
        }
    }
    return length > 0 && strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0;
}
