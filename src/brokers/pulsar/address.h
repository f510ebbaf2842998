/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Service URLs: pulsar://host[:port][,host[:port]...] and pulsar+ssl://, with IPv6 literals in
 * brackets, default ports 6650 and 6651. The rotation walks over the hosts: the next one at once
 * when one fails, a pause only after a whole round. Texts for people never hold what stood before
 * an @, since that is a password. Pure; the hosts are owned by the address.
 */
#ifndef LW_BROKERS_PULSAR_ADDRESS_H
#define LW_BROKERS_PULSAR_ADDRESS_H

#include <laneway/laneway.h>

#include "base/text.h"

enum { LW_PULSAR_HOSTS_MAX = 64, LW_PULSAR_HOST_BYTES = 256 };

struct lw_pulsar_host {
    char name[LW_PULSAR_HOST_BYTES]; /* without brackets */
    uint16_t port;
    bool is_ip; /* a literal: no name for SNI */
    bool is_ip6;
};

struct lw_pulsar_address {
    struct lw_pulsar_host *hosts;
    size_t count;
    bool is_tls;
};

/* Parses a service URL; E0122 with a help otherwise. */
enum lw_status lw_pulsar_address_parse(const char *url, struct lw_pulsar_address *ret_address,
                                       struct lw_error *ret_error);
void lw_pulsar_address_deinit(struct lw_pulsar_address *address);
/* Parses the URL of one broker, as lookups answer it; false when it is none. */
bool lw_pulsar_address_parse_broker(const char *url, struct lw_pulsar_host *ret_host,
                                    bool *ret_is_tls);
/* Appends "host:port", as proxy_to_broker_url wants it. */
void lw_pulsar_host_format(const struct lw_pulsar_host *host, struct lw_text *out);
/* Appends the URL in its canonical form, for messages and as key of a table. */
void lw_pulsar_address_format(const struct lw_pulsar_address *address, struct lw_text *out);
bool lw_pulsar_host_is_same(const struct lw_pulsar_host *a, const struct lw_pulsar_host *b);
/*
 * Appends the base URL of the admin API without a slash at its end: `option` when it is given
 * (http:// or https://, else E0122), else made from the first host with the usual port, 8080 or
 * with TLS 8443.
 */
enum lw_status
lw_pulsar_address_admin(const struct lw_pulsar_address *address, const char *option,
                        struct lw_text *out, struct lw_error *ret_error);

/* Where the next attempt goes. A host counts as working when the *operation* succeeded there. */
struct lw_pulsar_rotation {
    const struct lw_pulsar_address *address;
    size_t at;
    size_t failures; /* in this round */
};

/* Begins at a random host, so that a fleet does not come to the first one. */
void lw_pulsar_rotation_init(struct lw_pulsar_rotation *rotation,
                             const struct lw_pulsar_address *address, uint64_t random);
const struct lw_pulsar_host *lw_pulsar_rotation_host(const struct lw_pulsar_rotation *rotation);
/* Goes on to the next host; true when all have failed since the last pause or success. */
bool lw_pulsar_rotation_fail(struct lw_pulsar_rotation *rotation);
/* Stays at this host: it is tried first when the connection ends. */
void lw_pulsar_rotation_succeed(struct lw_pulsar_rotation *rotation);

#endif
