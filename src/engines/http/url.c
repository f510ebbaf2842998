/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of addresses (RFC 3986, narrowed): credentials and fragments are refused, since the
 * one would be shown and the other is never sent. What is right here libcurl takes, too.
 */
#include "engines/http/url.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { URL_BYTES_MAX = 8000, PORT_MAX = 65535 };

/* A place in an address, and what is wrong there; no text: nothing. */
struct fault {
    const char *at;
    const char *text;
};

static const char *
find_bad_byte(const char *url)
{
    for (; *url; url++) {
        unsigned char c = (unsigned char)*url;
        if (c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}", c)) {
            return url;
        }
    }
    return NULL;
}

static bool
is_host_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("-._~%", c));
}

/* Returns the end of the host, or NULL with *ret_bad. */
static const char *
skip_host(const char *host, const char *end, const char **ret_bad)
{
    const char *at = host;
    if (*at == '[') {
        const char *close = memchr(at, ']', (size_t)(end - at));
        bool is_right = close &&
                        strspn(at + 1, "0123456789abcdefABCDEF:.%") >= (size_t)(close - at - 1);
        *ret_bad = host;
        return is_right && close > at + 1 ? close + 1 : NULL;
    }
    while (at < end && is_host_byte(*at)) {
        at++;
    }
    *ret_bad = at;
    return at == end || *at == ':' ? at : NULL;
}

static bool
is_port(const char *at, const char *end)
{
    uint32_t port = 0;
    size_t digits = (size_t)(end - at);
    for (const char *digit = at; digit < end; digit++) {
        if (*digit < '0' || *digit > '9' || digits > 5) {
            return false;
        }
        port = port * 10 + (uint32_t)(*digit - '0');
    }
    return digits > 0 && port > 0 && port <= PORT_MAX;
}

static struct fault
find_fault(const char *url)
{
    const char *bad = find_bad_byte(url);
    bool is_plain = strncasecmp(url, "http://", 7) == 0;
    if (!is_plain && strncasecmp(url, "https://", 8) != 0) {
        return (struct fault){ url, "it begins with neither http:// nor https://" };
    }
    if (bad) {
        return (struct fault){
            bad, "it holds a blank or another byte that must be percent-encoded"
        };
    }
    const char *host = url + (is_plain ? 7 : 8);
    const char *end = host + strcspn(host, "/?#");
    if (memchr(host, '@', (size_t)(end - host))) {
        return (struct fault){
            host, "credentials do not belong into an address; use auth.token or headers"
        };
    }
    if (host == end || *host == ':') {
        return (struct fault){ host, "it has no host" };
    }
    const char *after = skip_host(host, end, &bad);
    if (!after) {
        return (struct fault){ bad, "the name of its host ends here" };
    }
    if (after < end && (*after != ':' || !is_port(after + 1, end))) {
        return (struct fault){ after + 1, "its port is no number from 1 to 65535" };
    }
    const char *fragment = strchr(end, '#');
    return (struct fault){ fragment, fragment ? "a part behind # is never sent" : NULL };
}

bool
lw_http_url_check(const char *url, size_t *ret_at, char *why, size_t size)
{
    struct fault fault = strlen(url) > URL_BYTES_MAX
                             ? (struct fault){ url, "it is longer than 8,000 bytes" }
                             : find_fault(url);
    if (fault.text) {
        *ret_at = (size_t)(fault.at - url);
        (void)snprintf(why, size, "%s", fault.text);
    }
    return fault.text == NULL;
}

size_t
lw_http_url_origin(const char *url)
{
    const char *host = strstr(url, "//");
    host = host ? host + 2 : url;
    return (size_t)(host - url) + strcspn(host, "/?#");
}

static bool
is_name(const char *text)
{
    const char *at = text;
    while (*at && lw_http_is_token((unsigned char)*at)) {
        at++;
    }
    return at > text && !*at;
}

static bool
is_value(const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Those that a request cannot do without, and those that are made from each message. */
static bool
is_ours(const char *name)
{
    static const char *const names[] = { "content-length", "transfer-encoding", "connection",
                                         "expect",         "upgrade",           "te",
                                         "trailer",        "keep-alive",        "traceparent",
                                         "tracestate" };
    static const char *const prefixes[] = { "ce-", "x-laneway-", "x-msg-", ":" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

const char *
lw_http_header_fault(const char *name, const char *value, bool has_token)
{
    if (has_token && strcasecmp(name, "authorization") == 0) {
        return "is set by auth.token; keep one of the two";
    }
    if (is_ours(name)) {
        return "is set by Laneway";
    }
    if (!is_name(name)) {
        return "has a name that is no token of HTTP";
    }
    if (!is_value(value)) {
        return "has a value with a control character, such as a line end";
    }
    return NULL;
}
