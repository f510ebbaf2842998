/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded broker speaks TLS on a port of its own, and asks for a client's certificate when
 * it is told to: seen with the connections of the client.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "tests/brokers/pulsar/certificates.h"
#include "tests/brokers/pulsar/peer.h"
#include "tests/support/pulsar/embedded.h"

static struct certificates files;

static int
make_files(void **state)
{
    static const struct certificate_wish wishes[] = {
        { .name = "ca", .is_authority = 1 },
        { .name = "server", .issuer = "ca", .hosts = "IP:127.0.0.1" },
        { .name = "client", .issuer = "ca", .hosts = "DNS:client.example" },
        { .name = "named", .issuer = "ca", .hosts = "DNS:broker.example" },
    };
    (void)state;
    certificates_init(&files);
    for (int i = 0; i < 4; i++) {
        certificates_make(&files, &wishes[i]);
    }
    return 0;
}

static int
remove_files(void **state)
{
    (void)state;
    certificates_deinit(&files);
    return 0;
}

#define PATH(name) certificates_path(&files, (name))

/* Dials by TLS; true: there is a connection. */
static bool
dials(bool wants_client, bool has_client)
{
    struct world *world = calloc(1, sizeof *world);
    struct embedded_settings settings;
    struct lw_pulsar_client_settings client = world_settings();
    struct lw_error error;
    embedded_settings_init(&settings);
    settings.tls_certificate_file = PATH("server.pem");
    settings.tls_key_file = PATH("server.key");
    settings.tls_trust_file = wants_client ? PATH("ca.pem") : NULL;
    client.tls.trust_file = PATH("ca.pem");
    client.tls.validates_hostname = true;
    client.tls.certificate_file = has_client ? PATH("client.pem") : NULL;
    client.tls.key_file = has_client ? PATH("client.key") : NULL;
    world_init(world, "pulsar+ssl://127.0.0.1:1", &client);
    struct embedded *broker = embedded_create(world->host, &settings);
    lw_pulsar_address_deinit(&world->client.address);
    assert_int_equal(
        lw_pulsar_address_parse(embedded_tls_url(broker, 0), &world->client.address, &error),
        LW_STATUS_OK);
    world_dial(world);
    world_until(world, world_is_dialled, world);
    bool is_connected = world->connection != NULL;
    embedded_destroy(broker);
    world_deinit(world);
    free(world);
    return is_connected;
}

/*
 * The service has a name that leads nowhere; the proxy is the embedded broker, whose certificate
 * is for that name: so the connection went there, and who was meant was checked.
 */
static bool
dials_by_proxy(const char *service)
{
    static const struct virtual_name names[] = { { "broker.example", { "127.0.0.9" } },
                                                 { "other.example", { "127.0.0.9" } },
                                                 { NULL, { NULL } } };
    struct world *world = calloc(1, sizeof *world);
    struct embedded_settings settings;
    struct lw_pulsar_client_settings client = world_settings();
    bool is_tls = false;
    embedded_settings_init(&settings);
    settings.tls_certificate_file = PATH("named.pem");
    settings.tls_key_file = PATH("named.key");
    client.tls.trust_file = PATH("ca.pem");
    world_init(world, service, &client);
    world->virtual_host.names = names;
    struct embedded *broker = embedded_create(world->host, &settings);
    world->client.options.has_proxy = true;
    assert_true(lw_pulsar_address_parse_broker(embedded_tls_url(broker, 0),
                                               &world->client.options.proxy, &is_tls));
    world_dial(world);
    world_until(world, world_is_dialled, world);
    bool is_connected = world->connection != NULL;
    embedded_destroy(broker);
    world_deinit(world);
    free(world);
    return is_connected;
}

static void
a_proxy_is_dialled_in_place_of_the_broker_that_is_meant(void **state)
{
    (void)state;
    assert_true(dials_by_proxy("pulsar+ssl://broker.example:6651"));
    assert_false(dials_by_proxy("pulsar+ssl://other.example:6651"));
}

static void
tls_carries_the_protocol(void **state)
{
    (void)state;
    assert_true(dials(false, false));
    assert_true(dials(true, true));
}

static void
a_client_without_the_wanted_certificate_is_refused(void **state)
{
    (void)state;
    assert_false(dials(true, false));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_carries_the_protocol),
        cmocka_unit_test(a_client_without_the_wanted_certificate_is_refused),
        cmocka_unit_test(a_proxy_is_dialled_in_place_of_the_broker_that_is_meant),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
