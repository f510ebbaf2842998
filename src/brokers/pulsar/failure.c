/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures in words. A broker's text is cut at its first line and made printable, since it may be
 * a stack trace, and it is never taken for more than a hint: what happens follows the code.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "brokers/pulsar/client.h"

enum { REASON_BYTES = 200 };

#define STARTING "Namespace not found"
#define UNREACHABLE "E0501"

static bool
is_of_class(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '$';
}

/* Some texts begin with the class of a Java exception, or several: org.x.Y$ZException: text. */
static struct lw_bytes
without_classes(struct lw_bytes message)
{
    static const char end[] = "Exception: ";
    const char *from = message.data;
    size_t length = 0;
    while (length < message.size && is_of_class(from[length])) {
        length++;
    }
    size_t whole = length + 2; /* with the colon and the blank */
    if (whole < sizeof end - 1 || whole > message.size ||
        memcmp(from + whole - (sizeof end - 1), end, sizeof end - 1) != 0) {
        return message;
    }
    return (struct lw_bytes){ from + whole, message.size - whole };
}

static void
copy_reason(struct lw_bytes text, char *out, size_t size)
{
    struct lw_bytes message = without_classes(without_classes(text));
    const char *from = message.data;
    size_t length = message.size < size ? message.size : size - 1;
    size_t at = 0;
    for (; at < length && from[at] != '\n' && from[at] != '\r'; at++) {
        unsigned char byte = (unsigned char)from[at];
        out[at] = (char)(byte < 0x20 || byte == 0x7f ? '?' : byte);
    }
    out[at] = '\0';
}

static bool
has_text(struct lw_bytes message, const char *text)
{
    return message.data && memmem(message.data, message.size, text, strlen(text)) != NULL;
}

static bool
is_retried(int32_t code, enum lw_pulsar_fate fate, struct lw_bytes message)
{
    switch (fate) {
    case LW_PULSAR_FATE_RETRY:
        return true;
    case LW_PULSAR_FATE_FATAL:
        return false;
    case LW_PULSAR_FATE_HANDLE:
        return code != LW_PULSAR_TOPIC_NOT_FOUND || has_text(message, STARTING);
    }
    return false;
}

static const char *
help_of(const struct lw_pulsar_server_error_info *info, int32_t code, bool is_again)
{
    if (code == LW_PULSAR_TOPIC_NOT_FOUND && is_again) {
        return "create it (pulsar-admin namespaces create TENANT/NAMESPACE); or the broker is "
               "still starting. Still trying; nothing is lost.";
    }
    return info->help ? info->help : is_again ? "Still trying; nothing is lost." : "";
}

void
lw_pulsar_failure_server(struct lw_pulsar_client *client, const char *what, int32_t code,
                         struct lw_bytes message, struct lw_pulsar_failure *ret_failure)
{
    char reason[REASON_BYTES] = "";
    const struct lw_pulsar_server_error_info *info = lw_pulsar_server_error_of(code);
    bool is_again = is_retried(code, info->fate, message);
    bool is_absent = code == LW_PULSAR_TOPIC_NOT_FOUND && !is_again;
    copy_reason(message, reason, sizeof reason);
    ret_failure->code = code;
    ret_failure->is_retried = is_again;
    (void)lw_error_set(&ret_failure->error, info->status, info->code,
                       "broker \"%s\" could not %s: %s (%s%s%s)", client->name, what,
                       is_absent ? "there is no such topic" : info->meaning, info->name,
                       reason[0] ? ": " : "", reason);
    lw_error_help(&ret_failure->error, "%s", help_of(info, code, is_again));
    ret_failure->error.is_retriable = is_again;
}

void
lw_pulsar_failure_disconnected(struct lw_pulsar_client *client, const char *what,
                               const struct lw_error *cause,
                               struct lw_pulsar_failure *ret_failure)
{
    ret_failure->code = -1;
    ret_failure->is_retried = true;
    if (cause) {
        struct lw_error copy = *cause; /* it may be the one that is filled in */
        (void)lw_error_set(&ret_failure->error, copy.status, copy.code,
                           "cannot %s at broker \"%s\": %.300s", what, client->name,
                           copy.message);
        lw_error_help(&ret_failure->error, "%s", copy.help);
    } else {
        (void)lw_error_set(&ret_failure->error, LW_STATUS_CLOSED, UNREACHABLE,
                           "cannot %s at broker \"%s\": the connection was closed", what,
                           client->name);
    }
    ret_failure->error.is_retriable = true;
}

void
lw_pulsar_failure_timeout(struct lw_pulsar_client *client, const char *what,
                          struct lw_pulsar_failure *ret_failure)
{
    ret_failure->code = -1;
    ret_failure->is_retried = true;
    (void)lw_error_set(&ret_failure->error, LW_STATUS_TIMEOUT, UNREACHABLE,
                       "broker \"%s\" did not answer in time to: %s", client->name, what);
    lw_error_help(&ret_failure->error, "Still trying; nothing is lost.");
    ret_failure->error.is_retriable = true;
}
