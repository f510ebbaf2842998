/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers behind HTTP: the address and the headers, with the place of a mistake in them, and
 * what does not go together. Relative paths begin at the file that names them.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engines/http/url.h"
#include "service/config_build.h"
#include "service/config_file.h"

enum { SHOWN_BYTES_MAX = 80, WHY_BYTES_MAX = 160 };

static const struct lw_node *
given(const struct lw_config_handler *handler, const char *path)
{
    const struct lw_node *node = lw_node_at(handler->node, path);
    return node && !node->is_bad ? node : NULL;
}

static void
check_url(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    char why[WHY_BYTES_MAX];
    char shown[SHOWN_BYTES_MAX];
    size_t at = 0;
    const struct lw_node *node = given(handler, "http");
    if (!node || lw_http_url_check(handler->http.url, &at, why, sizeof(why))) {
        return;
    }
    struct lw_place place = node->place;
    bool is_exact = !node->is_secret && !node->is_quoted && at < place.length;
    if (is_exact) {
        place.column += (uint32_t)at;
        place.length -= (uint32_t)at;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0125", &place,
        "\"%s\" is no address of a service: %s", lw_node_shown(node, shown, sizeof(shown)),
        why);
    lw_diagnostic_help(item,
                       "such as http://127.0.0.1:8080/orders or https://orders.internal/in");
}

static void
check_headers(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    const struct lw_node *map = given(handler, "headers");
    for (const struct lw_node *node = map ? map->first : NULL; node; node = node->next) {
        const char *fault = node->is_bad || node->kind != LW_NODE_SCALAR
                                ? NULL
                                : lw_http_header_fault(node->key, node->text,
                                                       handler->http.token != NULL);
        if (fault) {
            char shown[SHOWN_BYTES_MAX];
            struct lw_diagnostic *item = lw_diagnostics_add(
                build->diagnostics, LW_SEVERITY_ERROR, "E0126", lw_node_name_place(node),
                "the header \"%s\" %s", lw_text_shown(node->key, shown, sizeof(shown)), fault);
            lw_diagnostic_help(item, "docs/handlers-http.md lists what every request has");
        }
    }
}

static bool
is_tls(const struct lw_config_handler *handler)
{
    return handler->http.url && strncasecmp(handler->http.url, "https:", 6) == 0;
}

static void
check_tls(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    const struct lw_node *tls = given(handler, "tls");
    const struct lw_node *own = given(handler, "tls.certificate_file");
    const struct lw_node *key = given(handler, "tls.key_file");
    if (tls && handler->http.url && !is_tls(handler)) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0314", lw_node_name_place(tls),
            "handlers.%s has \"tls\", but its address begins with http://", handler->name);
        lw_diagnostic_show(item, lw_node_name_place(lw_node_child(handler->node, "http")));
        lw_diagnostic_help(item, "write https://, or leave \"tls\" out: it would protect "
                                 "nothing");
    }
    if (!own != !key) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0107", lw_node_name_place(own ? own : key),
            "handlers.%s.tls needs \"%s\", too", handler->name,
            own ? "key_file" : "certificate_file");
        lw_diagnostic_help(item, "a certificate and its key belong together");
    }
}

static bool
is_loopback(const char *url)
{
    const char *host = strstr(url, "//");
    host = host ? host + 2 : url;
    size_t size = strcspn(host, *host == '[' ? "/?" : ":/?");
    bool is_number = strspn(host, "0123456789.") == size;
    return (is_number && strncmp(host, "127.", 4) == 0) || strncmp(host, "[::1]", 5) == 0 ||
           (size == 9 && strncasecmp(host, "localhost", 9) == 0);
}

static void
check_token(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    const struct lw_node *token = given(handler, "auth.token");
    const char *url = handler->http.url;
    if (token && url && !is_tls(handler) && !is_loopback(url)) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_WARNING, "W0318", lw_node_name_place(token),
            "the token of handlers.%s goes over the network unprotected", handler->name);
        lw_diagnostic_help(item, "write https:// if the service speaks TLS");
    }
}

static void
place(struct lw_config_build *build, const struct lw_config_handler *handler, const char *path,
      const char **file)
{
    const struct lw_node *node = given(handler, path);
    const struct lw_document *document = node ? node->place.document : NULL;
    const char *directory = document && document->directory ? document->directory : ".";
    if (*file && node) {
        *file = lw_config_file_join(directory, *file, build->arena);
    }
}

/* file:PATH and file:///PATH; "file:" stays in front of the path. */
static void
place_token(struct lw_config_build *build, struct lw_config_handler *handler)
{
    const char *token = handler->http.token;
    if (!token || strncmp(token, "file:", 5) != 0) {
        return;
    }
    const char *path = strncmp(token, "file://", 7) == 0 ? token + 7 : token + 5;
    place(build, handler, "auth.token", &path);
    size_t size = path ? strlen(path) : 0;
    char *placed = path ? lw_config_arena_array(build->arena, size + 6, 1) : NULL;
    if (placed) {
        (void)snprintf(placed, size + 6, "file:%s", path);
    }
    handler->http.token = placed ? placed : token;
}

void
lw_config_build_http(struct lw_config_build *build, struct lw_config_handler *handler)
{
    struct lw_http_options *http = &handler->http;
    check_url(build, handler);
    check_headers(build, handler);
    check_tls(build, handler);
    check_token(build, handler);
    place(build, handler, "tls.trust_file", &http->trust_file);
    place(build, handler, "tls.certificate_file", &http->certificate_file);
    place(build, handler, "tls.key_file", &http->key_file);
    place_token(build, handler);
    handler->run.http = http;
}
