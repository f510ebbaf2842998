/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses what a wrong address was meant to be: a scheme that is misspelt, written in capitals or
 * missing (the usual ports tell it then), or the web address of a broker's admin API. What may hold
 * a password is never repeated.
 */
#include "service/address_help.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { SCHEME_BYTES = 24, DISTANCE_MAX = 2 };

struct word {
    const char *wrong; /* scheme, or the port of an address without one */
    const char *scheme;
};

static const char *const schemes[] = { "kafka", "pulsar", "pulsar+ssl" };
static const struct word others[] = {
    { "pulsars", "pulsar+ssl" }, { "pulsar+tls", "pulsar+ssl" }, { "pulsar-ssl", "pulsar+ssl" },
    { "pulsar+tcp", "pulsar" },  { "kafka+ssl", "kafka" },       { "kafkas", "kafka" },
};
static const struct word ports[] = { { "6650", "pulsar" },
                                     { "6651", "pulsar+ssl" },
                                     { "9092", "kafka" },
                                     { "9093", "kafka" },
                                     { "9094", "kafka" } };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *
by_word(const struct word *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(words[i].wrong, text) == 0) {
            return words[i].scheme;
        }
    }
    return NULL;
}

static const char *
by_scheme(const char *text, size_t distance_max)
{
    const char *best = by_word(others, COUNT(others), text);
    size_t best_distance = best ? 0 : distance_max + 1;
    for (size_t i = 0; i < COUNT(schemes); i++) {
        bool is_same = strcasecmp(schemes[i], text) == 0;
        size_t distance = is_same ? 0 : lw_text_distance(text, schemes[i]);
        if (distance < best_distance) {
            best = schemes[i];
            best_distance = distance;
        }
    }
    return best;
}

/* "pulsar:6650" is a host as well as a scheme; the port decides. */
static const char *
by_port(const char *url)
{
    const char *colon = strrchr(url, ':');
    return colon && !strchr(url, '/') ? by_word(ports, COUNT(ports), colon + 1) : NULL;
}

static bool
is_web(const char *scheme)
{
    return strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0;
}

void
lw_address_help(const char *url, char *out, size_t size)
{
    static const char usual[] = "write kafka://HOST:PORT[,HOST:PORT], pulsar://HOST:PORT, "
                                "pulsar+ssl://HOST:PORT, spool:FILE, or memory: for a broker "
                                "inside this process";
    char scheme[SCHEME_BYTES];
    const char *rest = url ? url + strcspn(url, ":/") : NULL;
    bool is_shown = rest && rest > url && !strchr(url, '@') && strlen(url) < size / 2;
    if (!is_shown) {
        lw_text_copy(out, size, usual);
        return;
    }
    lw_text_copy(scheme, (size_t)(rest - url) < SCHEME_BYTES ? (size_t)(rest - url) + 1 : 1,
                 url);
    if (is_web(scheme)) {
        lw_text_copy(out, size,
                     "a broker is reached by its own protocol, as in pulsar://HOST:6650; the "
                     "address of Pulsar's admin API is the property admin_url");
        return;
    }
    const char *meant = by_port(url);
    rest = meant ? url : rest + strspn(rest, ":/");
    if (!meant) {
        meant = by_scheme(scheme, strstr(url, "://") ? DISTANCE_MAX : 0);
    }
    if (meant && *rest) {
        (void)snprintf(out, size, "did you mean \"%s://%s\"?", meant, rest);
    } else {
        lw_text_copy(out, size, usual);
    }
}
