/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading service URLs strictly: what other clients ignore silently (a path, a user) is an error
 * here, since it never does what its author meant. Hosts are not resolved here.
 */
#include "brokers/pulsar/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define CODE "E0122"
#define PLAIN "pulsar://"
#define TLS "pulsar+ssl://"

enum { PLAIN_PORT = 6650, TLS_PORT = 6651, PIECE_BYTES = LW_PULSAR_HOST_BYTES + 16 };

/* What may be shown of a URL: never what stands before an @. */
static void
show(const char *url, char *out, size_t size)
{
    const char *scheme = strstr(url, "://");
    const char *at = strrchr(url, '@');
    if (!at) {
        (void)snprintf(out, size, "%.160s", url);
    } else {
        (void)snprintf(out, size, "%.*s***@%.120s", scheme ? (int)(scheme + 3 - url) : 0, url,
                       at + 1);
    }
}

static enum lw_status
refuse(struct lw_error *ret_error, const char *url, const char *why, const char *help)
{
    char shown[256];
    show(url, shown, sizeof shown);
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, CODE,
                                         "\"%s\" is not an address of Pulsar: %s", shown, why);
    lw_error_help(ret_error, "%s", help);
    return status;
}

static const char usual_help[] = "write pulsar://HOST:PORT[,HOST:PORT], or "
                                 "pulsar+ssl://HOST:PORT for TLS; without a port it "
                                 "is 6650, with TLS 6651";

/* -- One host ------------------------------------------------------------------------------------- */

static bool
is_host_name(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._";
    return *text && text[strspn(text, allowed)] == '\0';
}

static const char *
parse_port(const char *text, uint16_t *ret_port)
{
    int64_t number = 0;
    bool is_number = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
    if (!is_number || !lw_text_to_int(text, &number) || number < 1 || number > 65535) {
        return "a port is a number from 1 to 65535";
    }
    *ret_port = (uint16_t)number;
    return NULL;
}

/* "[::1]:6650"; the piece is changed. */
static const char *
parse_bracketed(char *piece, struct lw_pulsar_host *host)
{
    struct in6_addr binary;
    char *end = strchr(piece, ']');
    if (!end) {
        return "a bracket is not closed";
    }
    *end = '\0';
    if (inet_pton(AF_INET6, piece + 1, &binary) != 1) {
        return "what stands in brackets is no IPv6 address";
    }
    lw_text_copy(host->name, sizeof host->name, piece + 1);
    host->is_ip = true;
    host->is_ip6 = true;
    if (end[1] == ':') {
        return parse_port(end + 2, &host->port);
    }
    return end[1] == '\0' ? NULL : "after a bracket only a port can follow";
}

static const char *
parse_host(char *piece, struct lw_pulsar_host *host)
{
    struct in_addr binary;
    if (piece[0] == '[') {
        return parse_bracketed(piece, host);
    }
    char *colon = strchr(piece, ':');
    if (colon && strchr(colon + 1, ':')) {
        return "an IPv6 address stands in brackets, as in pulsar://[::1]:6650";
    }
    if (colon) {
        *colon = '\0';
    }
    if (*piece == '\0') {
        return "a host is missing";
    }
    if (strlen(piece) > 253 || !is_host_name(piece)) {
        return "a host is letters, digits, - _ and .";
    }
    lw_text_copy(host->name, sizeof host->name, piece);
    host->is_ip = inet_pton(AF_INET, piece, &binary) == 1;
    return colon ? parse_port(colon + 1, &host->port) : NULL;
}

/* Copies one entry of the list without the blanks around it. */
static const char *
copy_piece(const char *text, size_t size, char out[PIECE_BYTES])
{
    while (size > 0 && text[0] == ' ') {
        text++;
        size--;
    }
    while (size > 0 && text[size - 1] == ' ') {
        size--;
    }
    if (size >= PIECE_BYTES) {
        return "a host is too long";
    }
    memcpy(out, text, size);
    out[size] = '\0';
    return NULL;
}

/* -- The list ------------------------------------------------------------------------------------- */

static const char *
add_host(struct lw_pulsar_address *address, const char *text, size_t size)
{
    char piece[PIECE_BYTES];
    struct lw_pulsar_host host;
    memset(&host, 0, sizeof host);
    host.port = address->is_tls ? TLS_PORT : PLAIN_PORT;
    const char *why = copy_piece(text, size, piece);
    why = why ? why : parse_host(piece, &host);
    if (!why && address->count == LW_PULSAR_HOSTS_MAX) {
        why = "there are more than 64 hosts";
    }
    if (!why) {
        address->hosts[address->count++] = host;
    }
    return why;
}

static const char *
add_hosts(struct lw_pulsar_address *address, const char *list)
{
    size_t end = strcspn(list, "/");
    if (list[end] == '/' && list[end + 1] != '\0') {
        return "it has a path";
    }
    const char *why = NULL;
    for (size_t at = 0; !why && at <= end;) {
        size_t size = strcspn(list + at, ",;/");
        why = add_host(address, list + at, size);
        at += size + 1;
    }
    return why;
}

static enum lw_status
refuse_scheme(struct lw_error *ret_error, const char *url)
{
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) {
        return refuse(ret_error, url, "that is the address of the admin API",
                      "Laneway speaks the binary protocol: write pulsar://HOST:6650 (or "
                      "pulsar+ssl://HOST:6651); an http address belongs into the property "
                      "admin_url");
    }
    return refuse(ret_error, url,
                  strstr(url, "://") ? "the scheme is pulsar or pulsar+ssl"
                                     : "it does not begin with pulsar://",
                  usual_help);
}

enum lw_status
lw_pulsar_address_parse(const char *url, struct lw_pulsar_address *ret_address,
                        struct lw_error *ret_error)
{
    struct lw_pulsar_address address = { .is_tls = strncmp(url, TLS, strlen(TLS)) == 0 };
    if (!address.is_tls && strncmp(url, PLAIN, strlen(PLAIN)) != 0) {
        return refuse_scheme(ret_error, url);
    }
    const char *list = url + (address.is_tls ? strlen(TLS) : strlen(PLAIN));
    if (strchr(list, '@')) {
        return refuse(ret_error, url, "it holds a user or a password",
                      "credentials do not belong into an address, which is shown and logged: "
                      "use the properties token, or auth_plugin and auth_params");
    }
    address.hosts = lw_alloc_array(LW_PULSAR_HOSTS_MAX, sizeof *address.hosts);
    if (!address.hosts) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for an address");
    }
    const char *why = add_hosts(&address, list);
    if (why) {
        lw_pulsar_address_deinit(&address);
        return refuse(ret_error, url, why, usual_help);
    }
    *ret_address = address;
    return LW_STATUS_OK;
}

void
lw_pulsar_address_deinit(struct lw_pulsar_address *address)
{
    lw_free(address->hosts);
    address->hosts = NULL;
    address->count = 0;
}

bool
lw_pulsar_address_parse_broker(const char *url, struct lw_pulsar_host *ret_host,
                               bool *ret_is_tls)
{
    struct lw_pulsar_address address = { 0 };
    if (lw_pulsar_address_parse(url, &address, NULL) != LW_STATUS_OK) {
        return false;
    }
    bool is_one = address.count == 1;
    if (is_one) {
        *ret_host = address.hosts[0];
        *ret_is_tls = address.is_tls;
    }
    lw_pulsar_address_deinit(&address);
    return is_one;
}

/* -- Printing ------------------------------------------------------------------------------------- */

void
lw_pulsar_host_format(const struct lw_pulsar_host *host, struct lw_text *out)
{
    lw_text_format(out, host->is_ip6 ? "[%s]:%u" : "%s:%u", host->name,
                   (unsigned int)host->port);
}

void
lw_pulsar_address_format(const struct lw_pulsar_address *address, struct lw_text *out)
{
    lw_text_append(out, address->is_tls ? TLS : PLAIN);
    for (size_t i = 0; i < address->count; i++) {
        lw_text_append(out, i > 0 ? "," : "");
        lw_pulsar_host_format(&address->hosts[i], out);
    }
}

bool
lw_pulsar_host_is_same(const struct lw_pulsar_host *a, const struct lw_pulsar_host *b)
{
    return a->port == b->port && strcasecmp(a->name, b->name) == 0;
}

enum lw_status
lw_pulsar_address_admin(const struct lw_pulsar_address *address, const char *option,
                        struct lw_text *out, struct lw_error *ret_error)
{
    if (!option || !*option) {
        struct lw_pulsar_host host = address->hosts[0];
        host.port = address->is_tls ? 8443 : 8080;
        lw_text_append(out, address->is_tls ? "https://" : "http://");
        lw_pulsar_host_format(&host, out);
        return out->is_failed ? LW_STATUS_NO_MEMORY : LW_STATUS_OK;
    }
    const char *host = strstr(option, "://");
    bool is_http = strncmp(option, "http://", 7) == 0 || strncmp(option, "https://", 8) == 0;
    if (!is_http || host[3] == '\0' || host[3] == '/' || strpbrk(option, "@ ")) {
        return refuse(ret_error, option, "admin_url is an http address without credentials",
                      "write admin_url: http://HOST:8080 (or https://HOST:8443)");
    }
    size_t size = strlen(option);
    while (option[size - 1] == '/') {
        size--;
    }
    lw_text_append_bytes(out, option, size);
    return out->is_failed ? LW_STATUS_NO_MEMORY : LW_STATUS_OK;
}

/* -- Rotation ------------------------------------------------------------------------------------- */

void
lw_pulsar_rotation_init(struct lw_pulsar_rotation *rotation,
                        const struct lw_pulsar_address *address, uint64_t random)
{
    rotation->address = address;
    rotation->at = (size_t)(random % address->count);
    rotation->failures = 0;
}

const struct lw_pulsar_host *
lw_pulsar_rotation_host(const struct lw_pulsar_rotation *rotation)
{
    return &rotation->address->hosts[rotation->at];
}

bool
lw_pulsar_rotation_fail(struct lw_pulsar_rotation *rotation)
{
    rotation->at = (rotation->at + 1) % rotation->address->count;
    rotation->failures++;
    if (rotation->failures < rotation->address->count) {
        return false;
    }
    rotation->failures = 0;
    return true;
}

void
lw_pulsar_rotation_succeed(struct lw_pulsar_rotation *rotation)
{
    rotation->failures = 0;
}
