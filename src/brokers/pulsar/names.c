/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are split once, from the left, into a struct with offsets into the canonical text. The
 * partition is what follows the last "-partition-" when it is a number without leading zeros;
 * anything else is an ordinary part of the name, as the broker sees it.
 */
#include "brokers/pulsar/names.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fetch.h"

#define CODE "E0123"
#define PERSISTENT "persistent://"
#define NON_PERSISTENT "non-persistent://"
#define DEFAULT_NAMESPACE "public/default"
#define PARTITION "-partition-"
#define SHOWN "%.200s"

enum { DIGITS_MAX = 9, PARTS_MAX = 4 };

static enum lw_status
refuse(struct lw_error *ret_error, const char *text, const char *why)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, CODE,
                                         "\"" SHOWN "\" is not a topic name of Pulsar: %s",
                                         text, why);
    lw_error_help(ret_error, "write orders, tenant/namespace/orders or "
                             "persistent://tenant/namespace/orders");
    return status;
}

/* -- Splitting ----------------------------------------------------------------------------------- */

static size_t
count_slashes(const char *text)
{
    size_t count = 0;
    for (; *text; text++) {
        count += *text == '/';
    }
    return count;
}

static bool
has_control(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

/* Tenant, cluster and namespace. */
static bool
is_word(const char *text, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-=:.";
    if (size == 0) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (!strchr(allowed, text[i])) {
            return false;
        }
    }
    return true;
}

/* Writes the canonical form; what is wrong with it is found afterwards. */
static const char *
spell(const char *text, struct lw_pulsar_name *name)
{
    const char *scheme = strstr(text, "://");
    const char *domain = "";
    if (!scheme) {
        size_t slashes = count_slashes(text);
        if (slashes != 0 && slashes != 2) {
            return "a name without domain is one word or tenant/namespace/topic";
        }
        domain = slashes == 0 ? PERSISTENT DEFAULT_NAMESPACE "/" : PERSISTENT;
    } else if (strncmp(text, PERSISTENT, strlen(PERSISTENT)) != 0 &&
               strncmp(text, NON_PERSISTENT, strlen(NON_PERSISTENT)) != 0) {
        return "the domain is persistent:// or non-persistent://";
    }
    int length = snprintf(name->text, sizeof name->text, "%s%s", domain, text);
    if (length < 0 || (size_t)length >= sizeof name->text) {
        return "it is too long";
    }
    name->size = (size_t)length;
    return NULL;
}

/* Offsets of the parts behind the domain; the last one takes all further slashes. */
static const char *
split(struct lw_pulsar_name *name)
{
    name->is_persistent = name->text[0] == 'p';
    size_t start = name->is_persistent ? strlen(PERSISTENT) : strlen(NON_PERSISTENT);
    size_t slashes = count_slashes(name->text + start);
    if (slashes < 2) {
        return "a full name is DOMAIN://TENANT/NAMESPACE/TOPIC";
    }
    size_t words = slashes == 2 ? 2 : PARTS_MAX - 1;
    size_t at = start;
    for (size_t i = 0; i < words; i++) {
        size_t size = strcspn(name->text + at, "/");
        if (!is_word(name->text + at, size)) {
            return "tenant and namespace are letters, digits and - _ = : .";
        }
        at += size + 1;
    }
    name->namespace_start = start;
    name->namespace_size = at - 1 - start;
    name->local_start = at;
    name->has_cluster = words == PARTS_MAX - 1;
    return name->text[at] ? NULL : "the topic's own name is empty";
}

static const char *
last_partition(const char *local)
{
    const char *found = NULL;
    for (const char *at = local; (at = strstr(at, PARTITION)) != NULL; at++) {
        found = at;
    }
    return found;
}

static void
find_partition(struct lw_pulsar_name *name)
{
    name->partition = -1;
    name->base_size = name->size;
    const char *local = name->text + name->local_start;
    const char *suffix = last_partition(local);
    const char *digits = suffix ? suffix + strlen(PARTITION) : "";
    size_t count = strspn(digits, "0123456789");
    bool is_number = count > 0 && count <= DIGITS_MAX && digits[count] == '\0' &&
                     (digits[0] != '0' || count == 1);
    int64_t number = 0;
    if (suffix != local && is_number && lw_text_to_int(digits, &number)) {
        name->partition = (int32_t)number;
        name->base_size = (size_t)(suffix - name->text);
    }
}

enum lw_status
lw_pulsar_name_parse(const char *text, struct lw_pulsar_name *ret_name,
                     struct lw_error *ret_error)
{
    struct lw_pulsar_name name;
    memset(&name, 0, sizeof name);
    if (has_control(text) || !lw_text_is_utf8(text, strlen(text))) {
        return refuse(ret_error, "?", "it holds control characters or is not UTF-8");
    }
    if (strncmp(text, "topic://", 8) == 0 || strncmp(text, "segment://", 10) == 0) {
        return refuse(ret_error, text, "scalable topics are not supported");
    }
    const char *why = *text ? spell(text, &name) : "it is empty";
    why = why ? why : split(&name);
    if (why) {
        return refuse(ret_error, text, why);
    }
    find_partition(&name);
    *ret_name = name;
    return LW_STATUS_OK;
}

bool
lw_pulsar_name_is_same(const char *a, const char *b)
{
    struct lw_pulsar_name first;
    struct lw_pulsar_name second;
    return lw_pulsar_name_parse(a, &first, NULL) == LW_STATUS_OK &&
           lw_pulsar_name_parse(b, &second, NULL) == LW_STATUS_OK &&
           strcmp(first.text, second.text) == 0;
}

/* -- Names made from names --------------------------------------------------------------------- */

void
lw_pulsar_name_to_base(struct lw_pulsar_name *name)
{
    name->text[name->base_size] = '\0';
    name->size = name->base_size;
    name->partition = -1;
}

static bool
fits(int length, size_t size)
{
    return length >= 0 && (size_t)length < size;
}

bool
lw_pulsar_name_partition(const struct lw_pulsar_name *name, int32_t partition, char *out,
                         size_t size)
{
    return partition >= 0 && fits(snprintf(out, size, "%.*s" PARTITION "%d",
                                           (int)name->base_size, name->text, (int)partition),
                                  size);
}

bool
lw_pulsar_name_namespace(const struct lw_pulsar_name *name, char *out, size_t size)
{
    return fits(snprintf(out, size, "%.*s", (int)name->namespace_size,
                         name->text + name->namespace_start),
                size);
}

bool
lw_pulsar_name_is_system(const struct lw_pulsar_name *name)
{
    static const char system_namespace[] = "pulsar/system";
    struct lw_bytes space = { name->text + name->namespace_start, name->namespace_size };
    return strncmp(name->text + name->local_start, "__", 2) == 0 ||
           lw_text_is_equal(space, system_namespace);
}

bool
lw_pulsar_name_default_topic(enum lw_topic_kind kind, const char *topic,
                             const char *subscription, char *out, size_t size)
{
    struct lw_pulsar_name name = { 0 };
    struct lw_pulsar_name made;
    char text[LW_PULSAR_NAME_BYTES];
    if (*subscription == '\0' || strchr(subscription, '/') ||
        lw_pulsar_name_parse(topic, &name, NULL) != LW_STATUS_OK) {
        return false;
    }
    int length = snprintf(text, sizeof text, "%.*s-%s-%s", (int)name.base_size, name.text,
                          subscription, kind == LW_TOPIC_RETRY ? "RETRY" : "DLQ");
    return fits(length, sizeof text) && (size_t)length < size &&
           lw_pulsar_name_parse(text, &made, NULL) == LW_STATUS_OK &&
           fits(snprintf(out, size, "%s", made.text), size);
}

/* -- URLs ---------------------------------------------------------------------------------------- */

void
lw_pulsar_name_rest_path(const struct lw_pulsar_name *name, struct lw_text *out)
{
    lw_text_append(out, name->is_persistent ? "persistent/" : "non-persistent/");
    lw_text_append_bytes(out, name->text + name->namespace_start, name->namespace_size);
    lw_text_append_char(out, '/');
    lw_fetch_escape(out, name->text + name->local_start);
}
