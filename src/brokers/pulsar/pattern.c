/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling and matching topic patterns. The translation goes through the text once, knows where
 * it is inside brackets, and never writes more than the buffer holds.
 */
#include "brokers/pulsar/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define CODE "E0124"
#define DEFAULT_NAMESPACE "public/default"

enum { POSIX_BYTES = LW_PULSAR_PATTERN_BYTES * 10, REPEATS_MAX = 1000 };

static enum lw_status
refuse(struct lw_error *ret_error, const char *text, const char *why)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, CODE,
                                         "\"%.200s\" is not a pattern of topics: %s", text,
                                         why);
    lw_error_help(ret_error, "write orders_.* or persistent://tenant/namespace/orders_.*; only "
                             "the topic's own name is a regular expression");
    return status;
}

/* -- Translation ---------------------------------------------------------------------------------- */

struct translation {
    uint32_t repeats; /* the product of all {n,m} so far */
    const char *at;
    char out[POSIX_BYTES];
    size_t size;
    bool is_in_bracket;
    bool is_after_quantifier;
    const char *why;
};

static void
put(struct translation *work, const char *text)
{
    size_t length = strlen(text);
    if (work->size + length >= sizeof work->out) {
        work->why = "it is too long";
        return;
    }
    memcpy(work->out + work->size, text, length + 1);
    work->size += length;
}

static void
put_char(struct translation *work, char c)
{
    char text[2] = { c, '\0' };
    put(work, text);
}

/* A class as a whole or, inside brackets, as one of their members. */
static const char *
class_of(char letter, bool is_in_bracket)
{
    switch (letter) {
    case 'd':
        return is_in_bracket ? "0-9" : "[0-9]";
    case 'w':
        return is_in_bracket ? "[:alnum:]_" : "[[:alnum:]_]";
    case 's':
        return is_in_bracket ? "[:space:]" : "[[:space:]]";
    case 'D':
        return is_in_bracket ? NULL : "[^0-9]";
    case 'W':
        return is_in_bracket ? NULL : "[^[:alnum:]_]";
    case 'S':
        return is_in_bracket ? NULL : "[^[:space:]]";
    default:
        return NULL;
    }
}

static bool
is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
translate_escape(struct translation *work)
{
    char c = work->at[1];
    const char *class = class_of(c, work->is_in_bracket);
    work->at += c ? 2 : 1;
    if (class) {
        put(work, class);
    } else if (c == '\0' || is_alphanumeric(c)) {
        work->why = "it has an escape that is not known here";
    } else if (work->is_in_bracket && strchr("\\]^-[", c)) {
        work->why = "use no escapes inside brackets; put ] first, - last and ^ not first";
    } else if (work->is_in_bracket) {
        put_char(work, c); /* a backslash would be a member of its own there */
    } else {
        put_char(work, '\\');
        put_char(work, c);
    }
}

/* Copies the opening of a bracket: "[", "[^", and a "]" that stands first. */
static void
open_bracket(struct translation *work)
{
    work->is_in_bracket = true;
    put_char(work, *work->at++);
    if (*work->at == '^') {
        put_char(work, *work->at++);
    }
    if (*work->at == ']') {
        put_char(work, *work->at++);
    }
}

static void
translate_in_bracket(struct translation *work)
{
    bool is_named = work->at[0] == '[' && work->at[1] == ':';
    const char *end = is_named ? strstr(work->at, ":]") : NULL;
    if (end) {
        while (work->at < end + 2) {
            put_char(work, *work->at++);
        }
        return;
    }
    work->is_in_bracket = *work->at != ']';
    put_char(work, *work->at++);
}

static void
translate_group(struct translation *work)
{
    put_char(work, '(');
    work->at++;
    if (work->at[0] == '?' && work->at[1] == ':') {
        work->at += 2;
    } else if (work->at[0] == '?') {
        work->why = "look-around and named groups are not known here";
    }
}

/* Each repeat is written out by the C library, nested ones times each other: memory without end. */
static void
count_repeat(struct translation *work)
{
    unsigned long low = 0;
    unsigned long high = 0;
    char *end = NULL;
    low = strtoul(work->at + 1, &end, 10);
    high = *end == ',' ? strtoul(end + 1, NULL, 10) : 0;
    high = high > low ? high : low;
    high = high < REPEATS_MAX ? high : REPEATS_MAX + 1;
    work->repeats *= high > 1 ? (uint32_t)high : 1;
    if (work->repeats > REPEATS_MAX) {
        work->why = "its repeats multiply to more than 1000";
    }
}

static void
translate_one(struct translation *work)
{
    bool was_quantifier = work->is_after_quantifier;
    work->is_after_quantifier = false;
    if (*work->at == '\\') {
        translate_escape(work);
    } else if (work->is_in_bracket) {
        translate_in_bracket(work);
    } else if (*work->at == '[') {
        open_bracket(work);
    } else if (was_quantifier && strchr("*{", *work->at)) {
        work->why = "a quantifier follows another one"; /* the C library takes for ever */
    } else if (*work->at == '{') {
        count_repeat(work);
        put_char(work, *work->at++);
    } else if (*work->at == '(') {
        translate_group(work);
    } else if (was_quantifier && *work->at == '?') {
        work->at++; /* lazy or not is the same when all must match */
        work->is_after_quantifier = true;
    } else if (was_quantifier && *work->at == '+') {
        work->why = "possessive quantifiers are not known here";
    } else {
        work->is_after_quantifier = strchr("*+?}", *work->at) != NULL;
        put_char(work, *work->at++);
    }
}

static const char *
compile(const char *text, regex_t *regex)
{
    struct translation work;
    memset(&work, 0, sizeof work);
    work.at = text;
    work.repeats = 1;
    put(&work, "^(");
    while (*work.at && !work.why) {
        translate_one(&work);
    }
    put(&work, ")$");
    if (work.why) {
        return work.why;
    }
    return regcomp(regex, work.out, REG_EXTENDED | REG_NOSUB) == 0
               ? NULL
               : "the regular expression is malformed";
}

/* -- Pattern -------------------------------------------------------------------------------------- */

/* Where the expression begins; NULL when the namespace is not complete. */
static const char *
skip_slashes(const char *text, size_t count)
{
    for (size_t i = 0; i < count && text; i++) {
        text = strchr(text, '/');
        text = text ? text + 1 : NULL;
    }
    return text;
}

static const char *
split(struct lw_pulsar_pattern *pattern, const char *text, const char **ret_expression)
{
    const char *scheme = strstr(text, "://");
    const char *rest = scheme ? scheme + 3 : text;
    const char *expression = skip_slashes(rest, 2);
    if (scheme && strncmp(text, "persistent://", 13) != 0 &&
        strncmp(text, "non-persistent://", 17) != 0) {
        return "the domain is persistent:// or non-persistent://";
    }
    if (!expression && (scheme || strchr(rest, '/'))) {
        return "it needs tenant and namespace before the expression";
    }
    int length = expression ? snprintf(pattern->namespace_name, sizeof pattern->namespace_name,
                                       "%.*s", (int)(expression - rest - 1), rest)
                            : snprintf(pattern->namespace_name, sizeof pattern->namespace_name,
                                       DEFAULT_NAMESPACE);
    if (length < 0 || (size_t)length >= sizeof pattern->namespace_name) {
        return "it is too long";
    }
    if (text[0] == 'n' && scheme && pattern->mode == LW_PULSAR_REGEX_PERSISTENT) {
        return "it is non-persistent, but regex_subscription_mode takes persistent topics only";
    }
    *ret_expression = expression ? expression : rest;
    return NULL;
}

/* A pattern with a domain sees that domain only, whatever the mode adds. */
static const char *
narrow(struct lw_pulsar_pattern *pattern, const char *text)
{
    if (!strstr(text, "://")) {
        return NULL;
    }
    bool is_persistent = text[0] == 'p';
    if (is_persistent && pattern->mode == LW_PULSAR_REGEX_NON_PERSISTENT) {
        return "it is persistent, but regex_subscription_mode takes non-persistent topics only";
    }
    pattern->mode = is_persistent ? LW_PULSAR_REGEX_PERSISTENT : LW_PULSAR_REGEX_NON_PERSISTENT;
    return NULL;
}

enum lw_status
lw_pulsar_pattern_init(struct lw_pulsar_pattern *pattern, const char *text,
                       enum lw_pulsar_regex_mode mode, struct lw_error *ret_error)
{
    struct lw_pulsar_name name;
    char probe[LW_PULSAR_NAME_BYTES + 8];
    const char *expression = "";
    memset(pattern, 0, sizeof *pattern);
    pattern->mode = mode;
    const char *why = split(pattern, text, &expression);
    why = why ? why : narrow(pattern, text);
    if (!why && (*expression == '\0' || strlen(expression) >= sizeof pattern->text)) {
        why = *expression ? "it is too long" : "the expression is empty";
    }
    if (!why && strchr(expression, '/')) {
        why = "the expression stands for one name and cannot hold a slash";
    }
    (void)snprintf(probe, sizeof probe, "%s/x", pattern->namespace_name);
    if (!why && lw_pulsar_name_parse(probe, &name, NULL) != LW_STATUS_OK) {
        why = "tenant and namespace are fixed names";
    }
    why = why ? why : compile(expression, &pattern->regex);
    if (why) {
        return refuse(ret_error, text, why);
    }
    lw_text_copy(pattern->text, sizeof pattern->text, expression);
    return LW_STATUS_OK;
}

void
lw_pulsar_pattern_deinit(struct lw_pulsar_pattern *pattern)
{
    regfree(&pattern->regex);
}

static bool
is_domain_wanted(enum lw_pulsar_regex_mode mode, bool is_persistent)
{
    switch (mode) {
    case LW_PULSAR_REGEX_PERSISTENT:
        return is_persistent;
    case LW_PULSAR_REGEX_NON_PERSISTENT:
        return !is_persistent;
    case LW_PULSAR_REGEX_ALL:
        return true;
    }
    return false;
}

bool
lw_pulsar_pattern_has(const struct lw_pulsar_pattern *pattern, const char *topic)
{
    struct lw_pulsar_name name;
    if (lw_pulsar_name_parse(topic, &name, NULL) != LW_STATUS_OK ||
        lw_pulsar_name_is_system(&name) ||
        !is_domain_wanted(pattern->mode, name.is_persistent)) {
        return false;
    }
    lw_pulsar_name_to_base(&name);
    struct lw_bytes space = { name.text + name.namespace_start, name.namespace_size };
    return lw_text_is_equal(space, pattern->namespace_name) &&
           regexec(&pattern->regex, name.text + name.local_start, 0, NULL, 0) == 0;
}
