/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of struct lw_http_options: handlers behind HTTP. They stand beside the other keys of a
 * handler; which of them belong together the checks of config_http.c say.
 */
#include <string.h>

#include "service/options.h"

#define HTTP(member)                                                                           \
    .offset = offsetof(struct lw_http_options, member),                                        \
    .size = sizeof(((struct lw_http_options *)0)->member)

static const struct lw_option_word method_words[] = {
    { .word = "POST", .value = LW_HTTP_METHOD_POST },
    { .word = "PUT", .value = LW_HTTP_METHOD_PUT },
    { .word = "PATCH", .value = LW_HTTP_METHOD_PATCH },
    { .word = "post", .value = LW_HTTP_METHOD_POST, .is_alias = true },
    { .word = "put", .value = LW_HTTP_METHOD_PUT, .is_alias = true },
    { .word = "patch", .value = LW_HTTP_METHOD_PATCH, .is_alias = true },
    { 0 }
};

static const struct lw_option_word version_words[] = {
    { .word = "auto", .value = LW_HTTP_VERSION_AUTO },
    { .word = "1.1", .value = LW_HTTP_VERSION_1_1 },
    { 0 }
};

static const struct lw_option auth_rows[] = {
    { .name = "token",
      .type = LW_OPTION_TEXT,
      HTTP(token),
      .is_secret = true,
      .doc = "Bearer token: itself, file:PATH (relative to this file, read again when it "
             "changes) or env:NAME." },
    { 0 }
};

static const struct lw_option tls_rows[] = {
    { .name = "trust_file",
      .type = LW_OPTION_TEXT,
      HTTP(trust_file),
      .initial_note = "the system's authorities",
      .doc = "PEM file of trusted authorities; relative to this file, as the next two." },
    { .name = "certificate_file",
      .type = LW_OPTION_TEXT,
      HTTP(certificate_file),
      .doc = "PEM file of our own certificate." },
    { .name = "key_file",
      .type = LW_OPTION_TEXT,
      HTTP(key_file),
      .doc = "PEM file of its key." },
    { .name = "allow_insecure",
      .type = LW_OPTION_BOOL,
      HTTP(allows_insecure),
      .initial = "false",
      .doc = "No certificate is checked at all." },
    { .name = "validate_hostname",
      .type = LW_OPTION_BOOL,
      HTTP(validates_hostname),
      .initial = "true",
      .doc = "The certificate must be for the name in the address." },
    { 0 }
};

const struct lw_option lw_http_rows[] = {
    { .name = "http",
      .type = LW_OPTION_TEXT,
      HTTP(url),
      .doc = "Address of a service that is asked once for each message: "
             "http://HOST[:PORT]/PATH or https://... (handlers-http.md)." },
    { .name = "method",
      .type = LW_OPTION_ENUM,
      HTTP(method),
      .initial = "POST",
      .words = method_words,
      .doc = "Method of its requests." },
    { .name = "headers",
      .type = LW_OPTION_PROPERTIES,
      .offset = offsetof(struct lw_http_options, headers),
      .size = sizeof(void *),
      .count_offset = offsetof(struct lw_http_options, header_count),
      .doc = "Headers of every request to it; content-type is for messages that have none." },
    { .name = "connections",
      .type = LW_OPTION_UINT,
      HTTP(connections),
      .initial = "0",
      .initial_note = "service.concurrency",
      .min = 0,
      .max = 10000,
      .doc =
          "Requests to it at once, each on a kept connection; over HTTP/2 they share some." },
    { .name = "http_version",
      .type = LW_OPTION_ENUM,
      HTTP(version),
      .initial = "auto",
      .words = version_words,
      .doc = "auto: 2 over TLS where the service offers it, else 1.1." },
    { .name = "connect_timeout",
      .type = LW_OPTION_DURATION,
      HTTP(connect_timeout_ms),
      .initial = "10s",
      .min = 1,
      .max = 3600000,
      .doc = "Time for a connection to it, TLS included; then it counts as not reachable." },
    { .name = "max_hold",
      .type = LW_OPTION_DURATION,
      HTTP(max_hold_ms),
      .initial = "10m",
      .min = 0,
      .max = 31536000000.0,
      .doc = "So long a message that is answered 429 or 503 is put off without a charge; also "
             "the longest Retry-After that is followed." },
    { .name = "max_answer_bytes",
      .type = LW_OPTION_BYTES,
      HTTP(answer_bytes_max),
      .initial = "1MiB",
      .min = 1024,
      .max = 2147483648.0,
      .doc = "A larger answer is cut off, and an error." },
    { .name = "proxy",
      .type = LW_OPTION_TEXT,
      HTTP(proxy),
      .initial_note = "none; the environment is not asked",
      .is_secret = true,
      .doc = "Proxy to it, such as http://proxy:3128; it may hold credentials." },
    { .name = "auth",
      .type = LW_OPTION_GROUP,
      .rows = auth_rows,
      .doc = "Credentials for the service behind http." },
    { .name = "tls",
      .type = LW_OPTION_GROUP,
      .rows = tls_rows,
      .doc = "Certificates for the service behind https://." },
    { 0 }
};

void
lw_http_options_init(struct lw_http_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
    lw_option_init(lw_http_rows, options);
}
